// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sampling profiler for guests that have no counters a profiler could use: one timer per
 * processor notes whom it interrupts, and where.  <debugfs>/lcprof/samples: write 1 to start
 * afresh, 0 to stop; a read then gives a line for each sample: the task's name, a tab, the
 * function.
 *
 * Code that runs with interrupts off is seen where it lets them on again.
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include <asm/irq_regs.h>

#define LCPROF_SAMPLES	(1 << 16)	/* of each processor; later ones are dropped */
#define LCPROF_PERIOD	(NSEC_PER_MSEC / 2)

struct lcprof_sample {
	unsigned long place;
	char task[TASK_COMM_LEN];
};

struct lcprof_cpu {
	struct hrtimer timer;
	struct lcprof_sample *samples;
	unsigned int nr;	/* the timer's while it runs, then the reader's */
};

static DEFINE_PER_CPU(struct lcprof_cpu, lcprof_cpus);
static DEFINE_MUTEX(lcprof_mutex);	/* starting, stopping, reading */
static bool lcprof_running;
static struct dentry *lcprof_dir;

static enum hrtimer_restart lcprof_tick(struct hrtimer *timer)
{
	struct lcprof_cpu *cpu = container_of(timer, struct lcprof_cpu, timer);
	struct pt_regs *regs = get_irq_regs();

	if (regs && cpu->nr < LCPROF_SAMPLES) {
		struct lcprof_sample *sample = &cpu->samples[cpu->nr++];

		sample->place = instruction_pointer(regs);
		strscpy(sample->task, current->comm, sizeof(sample->task));
	}
	hrtimer_forward_now(timer, ns_to_ktime(LCPROF_PERIOD));
	return HRTIMER_RESTART;
}

static void lcprof_begin(void *unused)
{
	struct lcprof_cpu *cpu = this_cpu_ptr(&lcprof_cpus);

	cpu->nr = 0;
	hrtimer_start(&cpu->timer, ns_to_ktime(LCPROF_PERIOD), HRTIMER_MODE_REL_PINNED_HARD);
}

static void lcprof_stop(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu(lcprof_cpus, cpu).timer);
	lcprof_running = false;
}

static int lcprof_show(struct seq_file *file, void *unused)
{
	unsigned int i;
	int cpu;

	mutex_lock(&lcprof_mutex);
	for_each_possible_cpu(cpu) {
		struct lcprof_cpu *of = &per_cpu(lcprof_cpus, cpu);

		for (i = 0; !lcprof_running && i < of->nr; i++)
			seq_printf(file, "%s\t%ps\n", of->samples[i].task,
				   (void *)of->samples[i].place);
	}
	mutex_unlock(&lcprof_mutex);
	return 0;
}

static int lcprof_open(struct inode *inode, struct file *file)
{
	return single_open(file, lcprof_show, NULL);
}

static ssize_t lcprof_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	bool on;
	int err = kstrtobool_from_user(from, size, &on);

	if (err)
		return err;
	mutex_lock(&lcprof_mutex);
	lcprof_stop();
	if (on) {
		lcprof_running = true;
		on_each_cpu(lcprof_begin, NULL, true);
	}
	mutex_unlock(&lcprof_mutex);
	return size;
}

static const struct file_operations lcprof_fops = {
	.owner = THIS_MODULE,
	.open = lcprof_open,
	.read = seq_read,
	.write = lcprof_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void lcprof_free(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vfree(per_cpu(lcprof_cpus, cpu).samples);
}

static int __init lcprof_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct lcprof_cpu *of = &per_cpu(lcprof_cpus, cpu);

		lcprof_timer_setup(&of->timer, lcprof_tick);
		of->samples = vmalloc(LCPROF_SAMPLES * sizeof(*of->samples));
		if (!of->samples) {
			lcprof_free();
			return -ENOMEM;
		}
	}
	lcprof_dir = debugfs_create_dir("lcprof", NULL);
	if (IS_ERR(lcprof_dir)) {
		lcprof_free();
		return PTR_ERR(lcprof_dir);
	}
	debugfs_create_file("samples", 0600, lcprof_dir, NULL, &lcprof_fops);
	return 0;
}

static void __exit lcprof_exit(void)
{
	debugfs_remove(lcprof_dir);	/* waits for tasks that read from it */
	lcprof_stop();
	lcprof_free();
}

module_init(lcprof_init);
module_exit(lcprof_exit);
MODULE_DESCRIPTION("Profiler of the dm-lc benchmark");
MODULE_LICENSE("GPL");
