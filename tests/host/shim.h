/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the kernel as core.c, recovery.c, super.c, mark.c, checkpoint.c, index.c, segment.c
 * and params.c need to compile unchanged for one thread.  shim.mk makes every <linux/...>
 * that the module includes a line that includes this file, but for what ../../userland/kernel has:
 * types, errno, string, crc32 and xxhash.  What that folder's params/ has is included from there.
 *
 * Locks and barriers are nothing, a work item only remembers that it was queued.  There is no bio:
 * the user of the shim implements lc_io_sync() and lc_io_flush() of io.h, and shim_log() and
 * shim_warn() below.  The rest is in heap.c (memory), io.c and say.c (messages).
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

#define __rcu
#define __acquires(x)
#define __releases(x)
#define ____cacheline_aligned_in_smp

#define smp_mb()		do { } while (0)
#define cond_resched()		do { } while (0)
#define msleep(ms)		((void)(ms))
#define BUILD_BUG_ON(cond)	static_assert(!(cond), #cond)
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define min(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
				   _a < _b ? _a : _b; })
#define max(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
				   _a > _b ? _a : _b; })
#define min_t(type, a, b)	({ type _a = (a); type _b = (b); _a < _b ? _a : _b; })
#define max_t(type, a, b)	({ type _a = (a); type _b = (b); _a > _b ? _a : _b; })
#define clamp_t(type, v, lo, hi) ({ type _v = (v), _lo = (lo), _hi = (hi); \
				   _v < _lo ? _lo : _v > _hi ? _hi : _v; })
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
#define DIV_ROUND_UP_ULL(a, b)	(((a) + (b) - 1) / (b))

static inline u32 hweight8(u8 bits)
{
	return __builtin_popcount(bits);
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

/* --- lists --------------------------------------------------------------- */

struct list_head {
	struct list_head *next, *prev;
};

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

static inline void init_llist_head(struct llist_head *head)
{
	head->first = NULL;
}

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_add(struct list_head *item, struct list_head *head)
{
	item->next = head->next;
	item->prev = head;
	head->next->prev = item;
	head->next = item;
}

static inline void list_add_tail(struct list_head *item, struct list_head *head)
{
	list_add(item, head->prev);
}

static inline void list_del(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_for_each_entry(pos, head, member) \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); \
	     &pos->member != (head); \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* --- locks, counters, work ----------------------------------------------- */

typedef struct { int unused; } spinlock_t;
struct mutex { int held; };
struct lock_class_key { int unused; };

#define DEFINE_MUTEX(name)	struct mutex name
#define spin_lock_init(lock)	do { } while (0)
#define spin_lock(lock)		((void)(lock))
#define spin_unlock(lock)	((void)(lock))
#define spin_lock_irq(lock)	((void)(lock))
#define spin_lock_irqsave(lock, flags)	((void)(lock), (void)(flags = 0))
#define spin_unlock_irqrestore(lock, flags)	((void)(lock), (void)(flags))
#define spin_unlock_irq(lock)	((void)(lock))
/* One thread, which is never preempted. */
#define CONFIG_PREEMPT_RT 0
#define IS_ENABLED(option) (option)
#define preempt_disable() do { } while (0)
#define preempt_enable() do { } while (0)
#define lockdep_assert_held(lock) ((void)(lock))
#define mutex_init(lock)	((lock)->held = 0)
#define mutex_destroy(lock)	((void)(lock))
#define mutex_lock(lock)	((lock)->held++)
#define mutex_unlock(lock)	((lock)->held--)

typedef struct { int value; } atomic_t;
typedef struct { s64 value; } atomic64_t;
typedef struct { int value; } refcount_t;

#define atomic_set(a, v)	((a)->value = (v))
#define atomic_read(a)		((a)->value)
#define atomic_inc(a)		((a)->value++)
#define atomic_xchg(a, v)	({ int _old = (a)->value; (a)->value = (v); _old; })
#define atomic_dec_and_test(a)	(!--(a)->value)
#define atomic64_set(a, v)	((a)->value = (v))
#define atomic64_read(a)	((a)->value)
#define atomic64_add(v, a)	((a)->value += (v))
#define atomic64_inc(a)		((a)->value++)
#define atomic64_dec(a)		((a)->value--)
#define refcount_set(r, v)	((r)->value = (v))
#define refcount_inc(r)		((r)->value++)
#define refcount_dec_and_test(r) (!--(r)->value)

struct percpu_counter { s64 count; };

#define percpu_counter_init(c, v, gfp)		((c)->count = (v), 0)
#define percpu_counter_destroy(c)		((void)(c))
#define percpu_counter_set(c, v)		((c)->count = (v))
#define percpu_counter_add_batch(c, v, batch)	((c)->count += (v))
#define percpu_counter_sum_positive(c)		((u64)((c)->count < 0 ? 0 : (c)->count))

struct rb_node {
	struct rb_node *left, *right;
};

struct rb_root_cached {
	struct rb_node *first;
};

struct work_struct {
	void (*func)(struct work_struct *work);
	bool queued;
};

struct delayed_work {
	struct work_struct work;
};

struct workqueue_struct;

#define WQ_MEM_RECLAIM	0
#define WQ_UNBOUND	0
#define WQ_PERCPU	0
#define HZ		250
#define MSEC_PER_SEC	1000
#define INIT_WORK(w, f)		((w)->func = (f), (w)->queued = false)
#define INIT_DELAYED_WORK(w, f)	INIT_WORK(&(w)->work, f)
#define queue_work(wq, w)	((void)(wq), (w)->queued = true)
#define queue_delayed_work(wq, w, ticks) queue_work(wq, &(w)->work)
#define mod_delayed_work(wq, w, ticks) queue_work(wq, &(w)->work)
#define to_delayed_work(w)	container_of(w, struct delayed_work, work)
#define cancel_work_sync(w)	((w)->queued = false)
#define cancel_delayed_work_sync(w) cancel_work_sync(&(w)->work)
#define flush_work(w)		((void)(w))
#define msecs_to_jiffies(ms)	((ms) * HZ / 1000)
#define jiffies			0UL
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)
/* Never looked into: any address says that there is one. */
#define alloc_workqueue(name, flags, n) ((struct workqueue_struct *)(name))
#define alloc_ordered_workqueue(name, flags) alloc_workqueue(name, flags, 1)
#define destroy_workqueue(wq)	((void)(wq))

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
/* Free all there is. */
void shim_heap_reset(void);
/* With SHIM_MALLOC: how many allocations there are. */
size_t shim_heap_used(void);

#define kmalloc(n, gfp)		shim_alloc(n, gfp)
#define kzalloc(n, gfp)		shim_alloc(n, (gfp) | __GFP_ZERO)
#define kcalloc(nr, n, gfp)	kzalloc((size_t)(nr) * (n), gfp)
#define kvcalloc(nr, n, gfp)	kcalloc(nr, n, gfp)
#define __vmalloc(n, gfp)	shim_alloc(n, gfp)
#define kfree(p)		shim_free(p)
#define kvfree(p)		shim_free(p)
#define vfree(p)		shim_free(p)

struct page;
#define alloc_pages(gfp, order)	((struct page *)shim_alloc(PAGE_SIZE << (order), gfp))
#define page_address(p)		((void *)(p))
#define __get_free_pages(gfp, order) ((unsigned long)shim_alloc(PAGE_SIZE << (order), gfp))
#define free_pages(p, order)	shim_free((void *)(p))
#define data_race(expr)		({ __typeof__(expr) race_ = (expr); race_; })
#define memalloc_noio_save()	0u
#define memalloc_noio_restore(flags) ((void)(flags))

typedef struct { int unused; } mempool_t;
#define mempool_init_page_pool(pool, n, order) ((void)(pool), 0)
#define mempool_exit(pool)	((void)(pool))

/* --- block devices and device mapper ------------------------------------- */

#define REQ_OP_READ	0u
#define REQ_OP_WRITE	1u
#define REQ_PREFLUSH	2u
#define REQ_FUA		4u
#define REQ_META	0u
#define REQ_SYNC	0u
#define REQ_IDLE	0u

struct disk;

struct block_device {
	struct disk *disk;
	dev_t bd_dev;
	u64 bytes;
};

struct bio;
struct completion { int unused; };
struct bvec_iter { int unused; };
struct bio_vec { int unused; };
typedef struct { int unused; } wait_queue_head_t;
struct bio { blk_status_t bi_status; };
struct mapped_device;
struct dm_table;

struct dm_dev {
	struct block_device *bdev;
};

struct dm_target {
	struct dm_table *table;
	sector_t len;
};

#define bdev_nr_bytes(bdev)		((bdev)->bytes)
#define bdev_logical_block_size(bdev)	512u
#define bdev_write_cache(bdev)		((void)(bdev), true)
#define dm_bio_from_per_bio_data(data, size) ((struct bio *)(data))
#define dm_per_bio_data(bio, size)	((void *)(bio))
void bio_endio(struct bio *bio);
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

#define DECLARE_STATIC_KEY_FALSE(name) extern int name
#define static_branch_unlikely(key)	(*(key))
#define __percpu

/* One memory node; current is nobody. */
#define num_node_state(state)	1
#define numa_node_id()		0
#define ____cacheline_aligned_in_smp
#define current			(&shim_task)

extern struct task_struct { int pid; } shim_task;

#endif /* HOST_SHIM_H */
