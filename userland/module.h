/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel module, seen from the tools. */
#ifndef LC_MODULE_H
#define LC_MODULE_H

/*
 * The kernel knows no target "lc", although it looks for the module by itself: ask modprobe(8) why
 * there is none, and complain about @name with the reason and the remedy.
 */
void module_explain(const char *name);

#endif
