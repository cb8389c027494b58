/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the kernel as the module's files need to compile unchanged for one thread of a
 * process.  shim.mk makes every <linux/...> that the module includes a line that includes this
 * file, but for what ../../userland/kernel has: types, errno, string, crc32 and xxhash.  What that
 * folder's params/ has is included from there.
 *
 * Barriers are nothing.  A lock only knows whether it is held.  Work that is queued waits in
 * shim_works until the user of the shim runs it, and a task that waits for something calls the
 * user's shim_wait().  Bios of the log go to the user's submit_bio(); all other I/O goes to
 * lc_io_sync() and lc_io_flush() of io.h, which the user implements, too, as shim_log() and
 * shim_warn() below.  The rest is in heap.c (memory), io.c, say.c (messages) and work.c.
 */
#ifndef HOST_SHIM_H
#define HOST_SHIM_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <linux/build_bug.h>
#include <linux/types.h>
#include <params/linux/kernel.h>

/* --- words --------------------------------------------------------------- */

typedef long long s64;
typedef u64 sector_t;
typedef u32 blk_opf_t;
typedef u8 blk_status_t;

#define U32_MAX		0xffffffffu
#define U64_MAX		(~0ULL)

#define __rcu
#define __acquires(x)
#define __releases(x)
#define ____cacheline_aligned_in_smp
#define noinline

#define smp_mb()		do { } while (0)
#define smp_rmb()		do { } while (0)
#define smp_wmb()		do { } while (0)
#define cond_resched()		do { } while (0)
#define msleep(ms)		((void)(ms))
#define BUILD_BUG_ON(cond)	static_assert(!(cond), #cond)
#define BUILD_BUG_ON_MSG(cond, text)	static_assert(!(cond), text)
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define min(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
				   _a < _b ? _a : _b; })
#define max(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
				   _a > _b ? _a : _b; })
#define min3(a, b, c)		min(min(a, b), c)
#define max3(a, b, c)		max(max(a, b), c)
#define min_t(type, a, b)	({ type _a = (a); type _b = (b); _a < _b ? _a : _b; })
#define max_t(type, a, b)	({ type _a = (a); type _b = (b); _a > _b ? _a : _b; })
#define clamp_t(type, v, lo, hi) ({ type _v = (v), _lo = (lo), _hi = (hi); \
				   _v < _lo ? _lo : _v > _hi ? _hi : _v; })
#define swap(a, b)		do { __typeof__(a) _a = (a); (a) = (b); (b) = _a; } while (0)
#define cmpxchg(ptr, from, to)	({ __typeof__(*(ptr)) _was = *(ptr); \
				   if (_was == (from)) \
					*(ptr) = (to); \
				   _was; })
#define cmpxchg_release(ptr, from, to) cmpxchg(ptr, from, to)

/* Of the user of the shim, to whom a warning is a failure. */
void shim_warn(const char *what, const char *file, int line);
#define WARN_ON_ONCE(cond)	({ bool _cond = (cond); \
				   if (_cond) \
					shim_warn(#cond, __FILE__, __LINE__); \
				   _cond; })

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
	*rest = a % b;
	return a / b;
}

#define BIT(n)			(1UL << (n))
#define round_down(n, to)	((n) & ~((to) - 1))
#define DIV_ROUND_UP(a, b)	(((a) + (b) - 1) / (b))
#define DIV_ROUND_UP_ULL(a, b)	DIV_ROUND_UP(a, b)
#define sort(items, nr, size, compare, swap) qsort(items, nr, size, compare)

static inline u32 hweight8(u8 bits)
{
	return __builtin_popcount(bits);
}

static inline unsigned long __ffs(u64 word)
{
	return __builtin_ctzll(word);
}

static inline int ilog2(u64 n)
{
	return 63 - __builtin_clzll(n);
}

static inline u64 roundup_pow_of_two(u64 n)
{
	return n <= 1 ? 1 : 1ULL << (64 - __builtin_clzll(n - 1));
}

static inline u64 rounddown_pow_of_two(u64 n)
{
	return 1ULL << ilog2(n);
}

static inline u32 hash_64(u64 value, unsigned int bits)
{
	return value * 0x61C8864680B583EBULL >> (64 - bits);
}

static inline u32 reciprocal_scale(u32 value, u32 end)
{
	return (u64)value * end >> 32;
}

static inline ssize_t strscpy(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
	return n;
}

#include "shim_list.h"

/* --- locks, counters, work ----------------------------------------------- */

/* How many locks that must not be slept under are held, and preempt_disable(). */
extern int shim_atomic;

typedef struct { int held; } spinlock_t;
struct mutex { int held; };
struct lock_class_key { int unused; };

static inline void shim_spin_lock(int *held, const char *name, const char *file, int line)
{
	/* The other task never runs. */
	if (*held)
		shim_warn(name, file, line);
	*held = 1;
	shim_atomic++;
}

static inline void shim_spin_unlock(int *held, const char *name, const char *file, int line)
{
	if (!*held)
		shim_warn(name, file, line);
	*held = 0;
	shim_atomic--;
}

bool shim_sleep(const void *on, bool timed);
void shim_wake(const void *on);

static inline void shim_mutex_lock(int *held, const char *name, const char *file, int line)
{
	if (shim_atomic)
		shim_warn(name, file, line);
	while (*held)
		shim_sleep(held, false);
	*held = 1;
}

static inline void shim_mutex_unlock(int *held)
{
	*held = 0;
	shim_wake(held);
}

#define DEFINE_MUTEX(name)	struct mutex name
#define spin_lock_init(lock)	((lock)->held = 0)
#define spin_lock(lock)		shim_spin_lock(&(lock)->held, "spin_lock(" #lock ")", \
					       __FILE__, __LINE__)
#define spin_unlock(lock)	shim_spin_unlock(&(lock)->held, "spin_unlock(" #lock ")", \
						 __FILE__, __LINE__)
#define spin_lock_irq(lock)	spin_lock(lock)
#define spin_lock_nest_lock(lock, outer) spin_lock(lock)
#define spin_lock_irqsave(lock, flags)	((void)(flags = 0), spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags)	((void)(flags), spin_unlock(lock))
#define spin_unlock_irq(lock)	spin_unlock(lock)
#define __acquire(lock)		((void)(lock))
#define __release(lock)		((void)(lock))
#define CONFIG_PREEMPT_RT 0
#define IS_ENABLED(option) (option)
#define preempt_disable()	((void)shim_atomic++)
#define preempt_enable()	((void)shim_atomic--)
#define lockdep_assert_held(lock) \
	((lock)->held ? (void)0 : shim_warn(#lock " is not held", __FILE__, __LINE__))
#define lockdep_assert_not_held(lock) \
	((lock)->held ? shim_warn(#lock " is held", __FILE__, __LINE__) : (void)0)
#define lockdep_assert_preemption_disabled() \
	(shim_atomic ? (void)0 : shim_warn("preemption is enabled", __FILE__, __LINE__))
#define RCU_LOCKDEP_WARN(cond, text)	do { } while (0)
#define mutex_init(lock)	((lock)->held = 0)
#define mutex_destroy(lock)	((void)(lock))
#define mutex_lock(lock)	shim_mutex_lock(&(lock)->held, "mutex_lock(" #lock ")", \
						__FILE__, __LINE__)
#define mutex_unlock(lock)	shim_mutex_unlock(&(lock)->held)

/* Nobody reads anything while it is freed. */
#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
#define synchronize_rcu()	do { } while (0)
#define rcu_access_pointer(p)	(p)
#define rcu_dereference(p)	(p)
#define rcu_assign_pointer(p, v) ((p) = (v))

typedef struct { int value; } atomic_t;
typedef struct { s64 value; } atomic64_t;
typedef struct { int value; } refcount_t;

#define atomic_set(a, v)	((a)->value = (v))
#define atomic_read(a)		((a)->value)
#define atomic_add(v, a)	((a)->value += (v))
#define atomic_sub(v, a)	((a)->value -= (v))
#define atomic_inc(a)		((a)->value++)
#define atomic_dec(a)		((a)->value--)
#define atomic_inc_return(a)	(++(a)->value)
#define atomic_xchg(a, v)	({ int _old = (a)->value; (a)->value = (v); _old; })
#define atomic_dec_and_test(a)	(!--(a)->value)
#define atomic_inc_not_zero(a)	((a)->value ? (a)->value++, true : false)
#define atomic64_set(a, v)	((a)->value = (v))
#define atomic64_read(a)	((a)->value)
#define atomic64_add(v, a)	((a)->value += (v))
#define atomic64_inc(a)		((a)->value++)
#define atomic64_dec(a)		((a)->value--)
#define atomic64_dec_return(a)	(--(a)->value)
#define atomic64_read_acquire(a) atomic64_read(a)
#define atomic64_set_release(a, v) atomic64_set(a, v)

static inline bool atomic64_try_cmpxchg(atomic64_t *a, s64 *old, s64 new)
{
	if (a->value != *old) {
		*old = a->value;
		return false;
	}
	a->value = new;
	return true;
}

#define refcount_set(r, v)	((r)->value = (v))
#define refcount_inc(r)		((r)->value++)
#define refcount_dec_and_test(r) (!--(r)->value)

struct percpu_counter { s64 count; };

#define percpu_counter_init(c, v, gfp)		((c)->count = (v), 0)
#define percpu_counter_destroy(c)		((void)(c))
#define percpu_counter_set(c, v)		((c)->count = (v))
#define percpu_counter_add_batch(c, v, batch)	((c)->count += (v))
#define percpu_counter_sum_positive(c)		((u64)((c)->count < 0 ? 0 : (c)->count))

#include "shim_work.h"

/* --- memory -------------------------------------------------------------- */

typedef u32 gfp_t;

#define GFP_KERNEL	0u
#define GFP_NOIO	0u
#define __GFP_ZERO	1u
#define __GFP_NORETRY	0u
#define __GFP_RETRY_MAYFAIL	0u
#define __GFP_NOWARN	0u
#define PAGE_SHIFT	12
#define PAGE_SIZE	4096u
#define totalram_pages()	(1ul << 20)
/* Pages; of the heap. */
extern long shim_available;
#define si_mem_available()	shim_available

void *shim_alloc(size_t bytes, gfp_t flags);
void shim_free(const void *memory);
/*
 * Pages of zeros.  shim_heap_reset() clears them only after shim_kept_written(): write buffers take
 * most of the memory, and most lives end before anything is written to them.
 */
void *shim_alloc_kept(size_t bytes);
void shim_kept_written(void);
/* Free all there is. */
void shim_heap_reset(void);
/* With SHIM_MALLOC: how many allocations there are. */
size_t shim_heap_used(void);

#define kmalloc(n, gfp)		shim_alloc(n, gfp)
#define kzalloc(n, gfp)		shim_alloc(n, (gfp) | __GFP_ZERO)
#define kcalloc(nr, n, gfp)	kzalloc((size_t)(nr) * (n), gfp)
#define kvcalloc(nr, n, gfp)	kcalloc(nr, n, gfp)
#define kvmalloc_array(nr, n, gfp)	shim_alloc((size_t)(nr) * (n), gfp)
#define __vmalloc(n, gfp)	shim_alloc(n, gfp)
#define kfree(p)		shim_free(p)
#define kvfree(p)		shim_free(p)
#define kzalloc_node(n, gfp, node)	kzalloc(n, gfp)
#define kvmalloc_node(n, gfp, node)	shim_alloc(n, gfp)
#define vfree(p)		shim_free(p)

struct page;
#define alloc_pages(gfp, order)	((struct page *)shim_alloc(PAGE_SIZE << (order), gfp))
#define page_address(p)		((void *)(p))
#define __get_free_pages(gfp, order) ((unsigned long)shim_alloc(PAGE_SIZE << (order), gfp))
#define free_pages(p, order)	shim_free((void *)(p))
#define __get_free_page(gfp)	__get_free_pages(gfp, 0)
#define free_page(p)		free_pages(p, 0)
#define offset_in_page(p)	((void)(p), 0u)	/* virt_to_page() is the address itself */
#define __free_pages(p, order)	shim_free(p)
#define alloc_page(gfp)		alloc_pages(gfp, 0)
#define __free_page(p)		shim_free(p)
#define alloc_pages_node(node, gfp, order) ((struct page *)shim_alloc_kept(PAGE_SIZE << (order)))
#define virt_to_page(p)		((struct page *)(p))
#define struct_size(p, member, nr) (sizeof(*(p)) + (nr) * sizeof((p)->member[0]))
#define data_race(expr)		({ __typeof__(expr) race_ = (expr); race_; })
#define memalloc_noio_save()	0u
#define memalloc_noio_restore(flags) ((void)(flags))

typedef struct { size_t bytes; } mempool_t;
#define mempool_alloc(pool, gfp) shim_alloc((pool)->bytes, gfp)
#define mempool_free(page, pool) ((void)(pool), shim_free(page))
#define mempool_init_kmalloc_pool(pool, n, size) ((pool)->bytes = (size), 0)
#define mempool_init_page_pool(pool, n, order) ((pool)->bytes = PAGE_SIZE << (order), 0)
#define mempool_exit(pool)	((void)(pool))

/* --- block devices and device mapper ------------------------------------- */

#include "shim_bio.h"

struct mapped_device;
struct dm_table;

struct dm_dev {
	struct block_device *bdev;
};

struct dm_target {
	struct dm_table *table;
	sector_t len;
};

/* Device mapper has them in one piece of memory, too. */
#define dm_bio_from_per_bio_data(data, size) ((struct bio *)((char *)(data) + (size)))
#define dm_per_bio_data(bio, size)	((void *)((char *)(bio) - (size)))
#define DM_MAPIO_SUBMITTED		0
#define DM_MAPIO_REMAPPED		1
#define DM_MAPIO_KILL			4
#define DM_ENDIO_DONE			0
#define DM_ENDIO_INCOMPLETE		1
struct bio;
void dm_accept_partial_bio(struct bio *bio, unsigned int sectors);
#define dm_noflush_suspending(ti)	((void)(ti), false)
#define dm_table_event(table)		((void)(table))
#define dm_table_get_md(table)		((struct mapped_device *)(table))
#define dm_device_name(md)		"shim"
#define DM_NAME_LEN			128

#define __printf(format, args)
void shim_log(int level, const char *format, va_list args);
#define DEFINE_RATELIMIT_STATE(name, interval, burst) bool name = true
#define __ratelimit(state)		(*(state))
#define LOGLEVEL_ERR			3
#define LOGLEVEL_WARNING		4
#define LOGLEVEL_INFO			6

/* --- time and names ------------------------------------------------------- */

#define ktime_get_real_ns()	1700000000000000000ULL
#define NSEC_PER_SEC		1000000000ULL
/* Time that goes on as the user of the shim likes. */
extern u64 shim_now;
#define ktime_get_ns()		shim_now
#define jiffies			((unsigned long)(shim_now / (NSEC_PER_SEC / HZ)))
#define time_after(a, b)	((long)((b) - (a)) < 0)
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)

/* No two are alike, and nothing that a seed decides depends on them. */
extern u64 shim_random;
#define get_random_u64()	(++shim_random)

struct shim_utsname {
	char nodename[16];
};

static inline const struct shim_utsname *init_utsname(void)
{
	static const struct shim_utsname name = { "shim" };

	return &name;
}

#define BITS_TO_LONGS(nr)	(((nr) + 63) / 64)

static inline void __set_bit(u64 nr, unsigned long *bits)
{
	bits[nr / 64] |= 1ULL << nr % 64;
}

static inline bool test_bit(u64 nr, const unsigned long *bits)
{
	return bits[nr / 64] >> nr % 64 & 1;
}

static inline bool test_and_set_bit_lock(u64 nr, unsigned long *bits)
{
	bool was = test_bit(nr, bits);

	__set_bit(nr, bits);
	return was;
}

static inline void clear_bit_unlock(u64 nr, unsigned long *bits)
{
	bits[nr / 64] &= ~(1ULL << nr % 64);
}

#define DECLARE_STATIC_KEY_FALSE(name) extern int name
#define static_branch_unlikely(key)	(*(key))

#define dm_disk(md)	(md)
#define disk_devt(disk)	((void)(disk), (dev_t)0)

/* Tracepoints are functions that do nothing. */
#define TP_PROTO(...)			__VA_ARGS__
#define TP_ARGS(...)
#define TP_STRUCT__entry(...)
#define TP_fast_assign(...)
#define TP_printk(...)
#define DECLARE_EVENT_CLASS(...)
#define TRACE_EVENT(name, proto, ...) \
	static inline void trace_##name(proto) {} \
	static inline bool trace_##name##_enabled(void) { return false; }
#define DEFINE_EVENT(class, name, proto, args) \
	static inline void trace_##name(proto) {} \
	static inline bool trace_##name##_enabled(void) { return false; }
#define __percpu

/* One memory node. */
#define NUMA_NO_NODE		(-1)
#define N_CPU			0
#define nr_node_ids		1
#define num_node_state(state)	1
#define numa_node_id()		0
#define for_each_node_state(node, state) for ((node) = 0; (node) < 1; (node)++)

#define PF_WQ_WORKER		1
#define PF_MEMALLOC		2
#define current			(&shim_current)
#define is_percpu_thread()	true

/* Who calls map(), as the user of the shim says. */
extern struct task_struct {
	int pid;
	unsigned int flags;
	const void *on;			/* io_schedule() sleeps on that */
} shim_current;

#endif /* HOST_SHIM_H */
