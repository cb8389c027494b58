// SPDX-License-Identifier: GPL-2.0-only
/* Forgets memory: the harness must notice. */
#include <linux/module.h>
#include <linux/slab.h>

static int __init leak_init(void)
{
	int i;

	/* Several: a stale pointer on some stack may hide one or two of them. */
	for (i = 0; i < 16; i++)
		if (!kmalloc(1024, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}

static void __exit leak_exit(void)
{
}

module_init(leak_init);
module_exit(leak_exit);
MODULE_DESCRIPTION("Leaks memory for a test of the test harness");
MODULE_LICENSE("GPL");
