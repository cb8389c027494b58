/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks of other pairs on the HDD (S13).
 *
 * An HDD that was paired with another cache since must not be used with this one.  The mark of
 * the other pair is where formatting puts it: at the start of the disk, or in its last MiB.  The
 * mark of this pair may lie in the middle of a disk that has grown, where formatting a new pair
 * does not overwrite it, so that it alone does not tell.
 */
#ifndef LC_FOREIGN_H
#define LC_FOREIGN_H

struct lc_env;

/**
 * lc_foreign_check() - is there no mark of another pair on the HDD?
 * @env: of a volume that is not started
 *
 * May sleep.  Only reads, and says which mark it found.  A place that cannot be read counts as
 * one without a mark.  Return: 0; -EINVAL: there is one; -ENOMEM.
 */
int lc_foreign_check(struct lc_env *env);

#endif /* LC_FOREIGN_H */
