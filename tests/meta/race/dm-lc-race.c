// SPDX-License-Identifier: GPL-2.0-only
/* Two threads change one word without a lock until it is unloaded: the harness must notice. */
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>

static struct task_struct *threads[2];
static unsigned long word;

static int count(void *unused)
{
	while (!kthread_should_stop()) {
		word++;
		barrier();
		cond_resched();
	}
	return 0;
}

static void stop(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		if (!IS_ERR_OR_NULL(threads[i]))
			kthread_stop(threads[i]);
	}
}

static int __init race_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = kthread_run(count, NULL, "race%u", i);
		if (IS_ERR(threads[i])) {
			stop();
			return PTR_ERR(threads[i]);
		}
	}
	return 0;
}

static void __exit race_exit(void)
{
	stop();
}

module_init(race_init);
module_exit(race_exit);
MODULE_DESCRIPTION("Has a data race for a test of the test harness");
MODULE_LICENSE("GPL");
