/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lock of a higher room, for assertions.
 *
 * A lower room may rely on a lock whose struct it does not know.  The owner of the lock tells where
 * it is, and the lower room asserts that it is held.  Without lockdep there is no pointer and no
 * assertion.
 */
#ifndef LC_UPPER_H
#define LC_UPPER_H

#include <linux/lockdep.h>
#include <linux/spinlock.h>

struct lc_upper_lock {
#ifdef CONFIG_LOCKDEP
	const spinlock_t *lock;
#endif
};

#ifdef CONFIG_LOCKDEP

/* Before the first assertion.  @l outlives the last one.  Any context. */
static inline void lc_upper_lock_set(struct lc_upper_lock *upper, const spinlock_t *l)
{
	upper->lock = l;
}

static inline void lc_assert_upper_held(const struct lc_upper_lock *upper)
{
	lockdep_assert_held(upper->lock);
}

#else

#define lc_upper_lock_set(upper, l)	((void)(upper), (void)(l))
#define lc_assert_upper_held(upper)	((void)(upper))

#endif

#endif /* LC_UPPER_H */
