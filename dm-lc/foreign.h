/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is the hard disk another pair's by now?  The mark of that pair is where formatting puts it:
 * at the start of the disk, or in its last MiB.  Ours, of an old pair in place, may lie in
 * the middle of a disk that has grown since, where formatting a new pair does not meet it.
 * Sleeps, only reads.
 */
#ifndef LC_FOREIGN_H
#define LC_FOREIGN_H

struct lc_env;

int lc_foreign_check(struct lc_env *env);

#endif /* LC_FOREIGN_H */
