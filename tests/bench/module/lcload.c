// SPDX-License-Identifier: GPL-2.0-only
/*
 * A load generator without system calls: kernel threads that submit bios straight to a block
 * device.  A line of key=value words written to <debugfs>/lcload/run is a job; the write returns
 * when the job has ended, and the file then says what came of it.
 *
 *	dev=PATH	the device; its content is overwritten
 *	op=write|read	(read_pct=N mixes N percent of reads into writes)
 *	threads, depth	kernel threads, bios in flight of each
 *	bs		bytes of a bio, up to 1 MiB, whole logical blocks
 *	first, span	the part of the device, in bytes
 *	order=random|seq|once|zipf	once: a random order in which no block comes twice;
 *			zipf: each power of two of blocks gets as many bios as the next one
 *	count, ms	end after so many bios of each thread, or after that time
 *	flush_every=N	after N writes: wait for them, send a FLUSH, wait for it
 *	preflush, fua	1: put that flag on each write
 *	nowait=1	REQ_NOWAIT; a bio that is refused is submitted again without it
 *	seed
 *
 * The benchmark needs none of these:
 *
 *	pieces=N	the memory of each bio is in up to N random pieces, see odd.h; 0: in one
 *	granule=N	of their addresses and lengths, in bytes
 *	check=V, least=L	each sector written tells its place from `first` on, and version V;
 *			one that is read must do so, with a version from L to V
 */
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "odd.h"

#define LCLOAD_LINE		1024
#define LCLOAD_RESULT		2048
#define LCLOAD_MAX_THREADS	64
#define LCLOAD_MAX_DEPTH	256
#define LCLOAD_MAX_BS		(1 << 20)

/* Latencies are kept by power of two, eight steps each: 12 % apart. */
#define LCLOAD_STEPS		8
#define LCLOAD_BUCKETS		(64 * LCLOAD_STEPS)

enum lcload_kind { LCLOAD_READ, LCLOAD_WRITE, LCLOAD_FLUSH, LCLOAD_KINDS };
enum lcload_order { LCLOAD_RANDOM, LCLOAD_SEQ, LCLOAD_ONCE, LCLOAD_ZIPF };

static const char *const lcload_kinds[LCLOAD_KINDS] = { "read", "write", "flush" };

struct lcload_job {
	char dev[128];
	enum lcload_order order;
	u64 threads;
	u64 depth;
	u64 bs;
	u64 count;
	u64 ms;
	u64 first;
	u64 span;
	u64 read_pct;
	u64 flush_every;
	u64 preflush;
	u64 fua;
	u64 nowait;
	u64 seed;
	u64 pieces;
	u64 granule;
	u64 check;
	u64 least;
};

struct lcload_hist {
	u64 count;
	u64 max;
	u32 buckets[LCLOAD_BUCKETS];
};

struct lcload_thread;

/* One bio that is submitted again and again. */
struct lcload_slot {
	struct bio bio;
	struct bio_vec vec;
	struct bio_vec *vecs;	/* it, or several */
	struct llist_node node;
	struct lcload_thread *thread;
	struct lcload_slot *next;
	struct page *pages;
	sector_t sector;
	enum lcload_kind kind;
	cycles_t begun;
	cycles_t ended;
};

struct lcload_run {
	struct lcload_job job;
	struct lcload_dev dev;
	struct completion start;
	bool stop;
	u64 blocks;		/* in the span */
	unsigned long deadline;	/* jiffies */
};

struct lcload_thread {
	struct lcload_run *run;
	struct task_struct *task;
	struct completion finished;
	struct rnd_state rnd;
	unsigned int number;
	unsigned int in_flight;
	unsigned int unflushed;
	u64 issued;
	u64 errors;
	u64 pieces;
	u64 again;
	u64 wrong;		/* sectors */
	u64 wrong_place;	/* of one of them */
	struct lcload_slot *slots;
	struct lcload_slot *free;	/* of the thread alone */
	struct lcload_slot flush;
	struct llist_head done ____cacheline_aligned;
	wait_queue_head_t wait;
	ktime_t begun;
	ktime_t ended;
	cycles_t cycles;
	struct lcload_hist hist[LCLOAD_KINDS];
};

static DEFINE_MUTEX(lcload_mutex);	/* one job at a time; guards lcload_result */
static char lcload_result[LCLOAD_RESULT];
static struct dentry *lcload_dir;

/* ------------------------------------------------------------------ latencies */

static unsigned int lcload_bucket(u64 value)
{
	unsigned int power;

	if (value < LCLOAD_STEPS)
		return value;
	power = fls64(value) - 1;
	return (power - 2) * LCLOAD_STEPS + ((value >> (power - 3)) & (LCLOAD_STEPS - 1));
}

/* The smallest value that is beyond the bucket. */
static u64 lcload_bound(unsigned int bucket)
{
	unsigned int power = bucket / LCLOAD_STEPS + 2;

	if (bucket < LCLOAD_STEPS)
		return bucket + 1;
	return (u64)(LCLOAD_STEPS + bucket % LCLOAD_STEPS + 1) << (power - 3);
}

static void lcload_hist_add(struct lcload_hist *hist, u64 value)
{
	hist->buckets[lcload_bucket(value)]++;
	hist->count++;
	hist->max = max(hist->max, value);
}

static void lcload_hist_merge(struct lcload_hist *into, const struct lcload_hist *from)
{
	unsigned int i;

	for (i = 0; i < LCLOAD_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	into->max = max(into->max, from->max);
}

static u64 lcload_quantile(const struct lcload_hist *hist, unsigned int per_mille)
{
	u64 below = div_u64(hist->count * per_mille, 1000);
	u64 seen = 0;
	unsigned int i;

	for (i = 0; i < LCLOAD_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (seen > below)
			return min(lcload_bound(i), hist->max);
	}
	return hist->max;
}

/* ------------------------------------------------------------------ the threads */

static void lcload_end_io(struct bio *bio)
{
	struct lcload_slot *slot = container_of(bio, struct lcload_slot, bio);
	struct lcload_thread *thread = slot->thread;

	slot->ended = get_cycles();
	llist_add(&slot->node, &thread->done);
	if (wq_has_sleeper(&thread->wait))
		wake_up(&thread->wait);
}

static void lcload_submit(struct lcload_thread *thread, struct lcload_slot *slot)
{
	thread->in_flight++;
	slot->begun = get_cycles();
	submit_bio(&slot->bio);
}

/* Submit what REQ_NOWAIT has ended once more, without it.  Return: whether that was so. */
static bool lcload_again(struct lcload_thread *thread, struct lcload_slot *slot)
{
	struct lcload_run *run = thread->run;
	unsigned short vcnt = slot->bio.bi_vcnt;

	if (!(slot->bio.bi_opf & REQ_NOWAIT) || slot->bio.bi_status != BLK_STS_AGAIN)
		return false;
	bio_reset(&slot->bio, run->dev.bdev, slot->bio.bi_opf & ~REQ_NOWAIT);
	slot->bio.bi_vcnt = vcnt;
	slot->bio.bi_iter.bi_size = run->job.bs;
	slot->bio.bi_iter.bi_sector = slot->sector;
	slot->bio.bi_end_io = lcload_end_io;
	thread->again++;
	lcload_submit(thread, slot);
	return true;
}

/* Fill the data of a write with sectors that say what they are, or check the data of a read. */
static void lcload_sectors(struct lcload_thread *thread, struct lcload_slot *slot, bool look)
{
	struct lcload_job *job = &thread->run->job;
	struct odd_cursor cursor = { .vec = slot->vecs };
	u64 place = slot->sector - (job->first >> SECTOR_SHIFT);
	u64 end = place + (job->bs >> SECTOR_SHIFT);
	u64 words[ODD_WORDS];

	for (; place < end; place++) {
		if (!look)
			odd_fill(words, place, job->check);
		odd_copy(&cursor, words, !look);
		if (look && !odd_is(words, place, job->least, job->check)) {
			thread->wrong++;
			thread->wrong_place = place;
		}
	}
}

/* Take back what has completed; waits for one of them if nothing has. */
static void lcload_reap(struct lcload_thread *thread)
{
	struct lcload_slot *slot, *next;
	struct llist_node *list;

	wait_event(thread->wait, !llist_empty(&thread->done));
	list = llist_del_all(&thread->done);
	llist_for_each_entry_safe(slot, next, list, node) {
		lcload_hist_add(&thread->hist[slot->kind], slot->ended - slot->begun);
		thread->in_flight--;
		if (unlikely(slot->bio.bi_status)) {
			if (lcload_again(thread, slot))
				continue;
			thread->errors++;
		} else if (thread->run->job.check && slot->kind == LCLOAD_READ) {
			lcload_sectors(thread, slot, true);
		}
		if (slot == &thread->flush)
			continue;
		slot->next = thread->free;
		thread->free = slot;
	}
}

static void lcload_settle(struct lcload_thread *thread)
{
	while (thread->in_flight)
		lcload_reap(thread);
}

static void lcload_flush(struct lcload_thread *thread)
{
	struct lcload_slot *slot = &thread->flush;

	lcload_settle(thread);
	bio_reset(&slot->bio, thread->run->dev.bdev, REQ_OP_WRITE | REQ_PREFLUSH);
	slot->bio.bi_end_io = lcload_end_io;
	slot->kind = LCLOAD_FLUSH;
	lcload_submit(thread, slot);
	lcload_settle(thread);
	thread->unflushed = 0;
}

/* A bijection of the numbers below @blocks: steps that can be undone, until one falls inside. */
static u64 lcload_scatter(u64 number, u64 blocks, u64 seed)
{
	unsigned int bits = max(fls64(blocks - 1), 2);
	u64 mask = bits < 64 ? BIT_ULL(bits) - 1 : ~0ULL;
	unsigned int round;

	do {
		for (round = 0; round < 3; round++) {
			number = (number * 0x9e3779b97f4a7c15ULL + seed) & mask;
			number ^= number >> (bits / 2);
		}
	} while (number >= blocks);
	return number;
}

static u64 lcload_random(struct lcload_thread *thread, u64 below)
{
	u64 number = (u64)prandom_u32_state(&thread->rnd) << 32;

	number |= prandom_u32_state(&thread->rnd);
	div64_u64_rem(number, below, &number);
	return number;
}

/* Zipf's law by steps: of rank r, about 1 / r as often as of the first, whatever the seed. */
static u64 lcload_zipf(struct lcload_thread *thread)
{
	u64 blocks = thread->run->blocks, step, rank;

	do {
		step = BIT_ULL(lcload_random(thread, fls64(blocks)));
		rank = step - 1 + lcload_random(thread, step);
	} while (rank >= blocks);
	return lcload_scatter(rank, blocks, 1);
}

static u64 lcload_block(struct lcload_thread *thread)
{
	struct lcload_run *run = thread->run;
	u64 share, number;

	switch (run->job.order) {
	case LCLOAD_SEQ:
		/* Each thread has its own part. */
		share = div_u64(run->blocks, run->job.threads);
		div64_u64_rem(thread->issued, share, &number);
		return share * thread->number + number;
	case LCLOAD_ONCE:
		div64_u64_rem(thread->issued * run->job.threads + thread->number, run->blocks,
			      &number);
		return lcload_scatter(number, run->blocks, run->job.seed);
	case LCLOAD_ZIPF:
		return lcload_zipf(thread);
	default:
		return lcload_random(thread, run->blocks);
	}
}

static size_t lcload_room(const struct lcload_job *job)
{
	return job->bs + (job->pieces ? ODD_ROOM : 0);
}

/* The memory of a bio, and its content. */
static void lcload_memory(struct lcload_thread *thread, struct lcload_slot *slot, bool read)
{
	struct lcload_job *job = &thread->run->job;

	if (job->pieces)
		odd_pieces(&slot->bio, slot->pages, job->bs, job->pieces, job->granule,
			   &thread->rnd);
	else
		__bio_add_page(&slot->bio, slot->pages, job->bs, 0);
	thread->pieces += slot->bio.bi_vcnt;
	if (read && job->check)
		memset(page_address(slot->pages), ODD_POISON, lcload_room(job));
	else if (!read && job->check)
		lcload_sectors(thread, slot, false);
	else if (!read)
		*(u64 *)page_address(slot->pages) = thread->issued;
}

static void lcload_issue(struct lcload_thread *thread)
{
	struct lcload_run *run = thread->run;
	struct lcload_job *job = &run->job;
	struct lcload_slot *slot = thread->free;
	bool read = job->read_pct == 100 ||
		    (job->read_pct && prandom_u32_state(&thread->rnd) % 100 < job->read_pct);
	blk_opf_t opf = REQ_OP_WRITE | REQ_SYNC | REQ_IDLE;

	thread->free = slot->next;
	if (read)
		opf = REQ_OP_READ;
	else if (job->preflush)
		opf |= REQ_PREFLUSH;
	if (!read && job->fua)
		opf |= REQ_FUA;
	if (job->nowait)
		opf |= REQ_NOWAIT;
	bio_reset(&slot->bio, run->dev.bdev, opf);
	slot->sector = (job->first + lcload_block(thread) * job->bs) >> 9;
	slot->bio.bi_iter.bi_sector = slot->sector;
	slot->bio.bi_end_io = lcload_end_io;
	lcload_memory(thread, slot, read);
	slot->kind = read ? LCLOAD_READ : LCLOAD_WRITE;
	if (!read)
		thread->unflushed++;
	thread->issued++;
	lcload_submit(thread, slot);
}

static bool lcload_over(struct lcload_thread *thread)
{
	struct lcload_run *run = thread->run;

	if (run->job.count && thread->issued >= run->job.count)
		return true;
	return READ_ONCE(run->stop) || time_after_eq(jiffies, READ_ONCE(run->deadline));
}

static int lcload_thread_fn(void *data)
{
	struct lcload_thread *thread = data;
	u64 every = thread->run->job.flush_every;

	wait_for_completion(&thread->run->start);
	thread->begun = ktime_get();
	thread->cycles = get_cycles();
	while (!lcload_over(thread)) {
		/* A bio that is submitted again is not free. */
		while (!thread->free)
			lcload_reap(thread);
		lcload_issue(thread);
		if (every && thread->unflushed >= every)
			lcload_flush(thread);
		cond_resched();
	}
	lcload_settle(thread);
	thread->cycles = get_cycles() - thread->cycles;
	thread->ended = ktime_get();
	complete(&thread->finished);
	/* The module's text is left only by kthread_stop(). */
	set_current_state(TASK_IDLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_IDLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void lcload_slot_free(const struct lcload_job *job, struct lcload_slot *slot)
{
	if (!slot->pages)
		return;
	bio_uninit(&slot->bio);
	__free_pages(slot->pages, get_order(lcload_room(job)));
	if (slot->vecs != &slot->vec)
		kfree(slot->vecs);
}

static bool lcload_slot_init(struct lcload_thread *thread, struct lcload_slot *slot)
{
	struct lcload_job *job = &thread->run->job;

	slot->vecs = &slot->vec;
	if (job->pieces)
		slot->vecs = kcalloc(job->pieces, sizeof(*slot->vecs), GFP_KERNEL);
	if (!slot->vecs)
		return false;
	slot->pages = alloc_pages(GFP_KERNEL, get_order(lcload_room(job)));
	if (!slot->pages) {
		if (job->pieces)
			kfree(slot->vecs);
		return false;
	}
	prandom_bytes_state(&thread->rnd, page_address(slot->pages), job->bs);
	bio_init(&slot->bio, NULL, slot->vecs, job->pieces ?: 1, 0);
	slot->thread = thread;
	return true;
}

static void lcload_thread_free(struct lcload_thread *thread)
{
	u64 i;

	if (!thread)
		return;
	if (thread->task)
		kthread_stop(thread->task);
	for (i = 0; thread->slots && i < thread->run->job.depth; i++)
		lcload_slot_free(&thread->run->job, &thread->slots[i]);
	if (thread->flush.thread)
		bio_uninit(&thread->flush.bio);
	kvfree(thread->slots);
	kvfree(thread);
}

static struct lcload_thread *lcload_thread_new(struct lcload_run *run, unsigned int number)
{
	struct lcload_thread *thread = kvzalloc(sizeof(*thread), GFP_KERNEL);
	struct lcload_job *job = &run->job;
	u64 i;

	if (!thread)
		return NULL;
	thread->run = run;
	thread->number = number;
	init_completion(&thread->finished);
	init_llist_head(&thread->done);
	init_waitqueue_head(&thread->wait);
	prandom_seed_state(&thread->rnd, job->seed + number);
	thread->slots = kvcalloc(job->depth, sizeof(*thread->slots), GFP_KERNEL);
	if (!thread->slots)
		goto fail;
	for (i = 0; i < job->depth; i++) {
		struct lcload_slot *slot = &thread->slots[i];

		if (!lcload_slot_init(thread, slot))
			goto fail;
		slot->next = thread->free;
		thread->free = slot;
	}
	bio_init(&thread->flush.bio, NULL, NULL, 0, 0);
	thread->flush.thread = thread;
	thread->task = kthread_run(lcload_thread_fn, thread, "lcload/%u", number);
	if (!IS_ERR(thread->task))
		return thread;
	thread->task = NULL;
fail:
	lcload_thread_free(thread);
	return NULL;
}

/* ------------------------------------------------------------------ a run */

/* How many nanoseconds so many cycles are, by what this thread's own life took. */
static u64 lcload_ns(const struct lcload_thread *thread, u64 cycles)
{
	u64 life = max_t(u64, thread->cycles, 1);

	return mul_u64_u64_div_u64(cycles, ktime_to_ns(ktime_sub(thread->ended, thread->begun)),
				   life);
}

static void lcload_report(struct lcload_thread **threads, unsigned int nr)
{
	static const unsigned int quantiles[] = { 500, 900, 990, 999 };
	ktime_t begun = threads[0]->begun, ended = threads[0]->ended;
	u64 least = threads[0]->issued, most = least;
	size_t used = 0;
	unsigned int i, k, q;

	for (i = 1; i < nr; i++) {
		begun = min(begun, threads[i]->begun);
		ended = max(ended, threads[i]->ended);
		threads[0]->errors += threads[i]->errors;
		threads[0]->pieces += threads[i]->pieces;
		threads[0]->again += threads[i]->again;
		if (!threads[0]->wrong)
			threads[0]->wrong_place = threads[i]->wrong_place;
		threads[0]->wrong += threads[i]->wrong;
		least = min(least, threads[i]->issued);
		most = max(most, threads[i]->issued);
		for (k = 0; k < LCLOAD_KINDS; k++)
			lcload_hist_merge(&threads[0]->hist[k], &threads[i]->hist[k]);
	}
	used += scnprintf(lcload_result + used, LCLOAD_RESULT - used,
			  "ns %llu\nerrors %llu\nthread_least %llu\nthread_most %llu\n",
			  (u64)ktime_to_ns(ktime_sub(ended, begun)), threads[0]->errors,
			  least, most);
	used += scnprintf(lcload_result + used, LCLOAD_RESULT - used,
			  "pieces %llu\nagain %llu\nwrong %llu\nwrong_place %llu\n",
			  threads[0]->pieces, threads[0]->again, threads[0]->wrong,
			  threads[0]->wrong_place);
	for (k = 0; k < LCLOAD_KINDS; k++) {
		struct lcload_hist *hist = &threads[0]->hist[k];
		const char *kind = lcload_kinds[k];

		used += scnprintf(lcload_result + used, LCLOAD_RESULT - used, "%s %llu\n", kind,
				  hist->count);
		if (!hist->count)
			continue;
		for (q = 0; q < ARRAY_SIZE(quantiles); q++)
			used += scnprintf(lcload_result + used, LCLOAD_RESULT - used,
					  "%s_p%u_ns %llu\n", kind, quantiles[q],
					  lcload_ns(threads[0],
						    lcload_quantile(hist, quantiles[q])));
		used += scnprintf(lcload_result + used, LCLOAD_RESULT - used, "%s_max_ns %llu\n",
				  kind, lcload_ns(threads[0], hist->max));
	}
}

static int lcload_threads(struct lcload_run *run)
{
	unsigned int nr = run->job.threads, i;
	struct lcload_thread **threads = kcalloc(nr, sizeof(*threads), GFP_KERNEL);
	int err = 0;

	if (!threads)
		return -ENOMEM;
	for (i = 0; i < nr && !err; i++) {
		threads[i] = lcload_thread_new(run, i);
		if (!threads[i])
			err = -ENOMEM;
	}
	if (err)
		WRITE_ONCE(run->stop, true);
	WRITE_ONCE(run->deadline, jiffies + msecs_to_jiffies(run->job.ms));
	complete_all(&run->start);
	for (i = 0; i < nr && threads[i]; i++) {
		if (wait_for_completion_interruptible(&threads[i]->finished)) {
			err = -EINTR;
			WRITE_ONCE(run->stop, true);
			wait_for_completion(&threads[i]->finished);
		}
	}
	if (!err)
		lcload_report(threads, nr);
	for (i = 0; i < nr; i++)
		lcload_thread_free(threads[i]);
	kfree(threads);
	return err;
}

static bool lcload_odd_is_fine(const struct lcload_job *job)
{
	return job->pieces <= ODD_MAX_PIECES && job->granule <= ODD_MAX_GRANULE &&
	       is_power_of_2(job->granule) && job->least <= job->check;
}

static int lcload_check(struct lcload_run *run)
{
	unsigned int block = bdev_logical_block_size(run->dev.bdev);
	struct lcload_job *job = &run->job;
	u64 size = (u64)bdev_nr_sectors(run->dev.bdev) << 9;

	if (!job->span && job->first < size)
		job->span = size - job->first;
	if (!job->threads || job->threads > LCLOAD_MAX_THREADS || !job->depth ||
	    job->depth > LCLOAD_MAX_DEPTH || !job->bs || job->bs > LCLOAD_MAX_BS ||
	    job->bs % block || job->first % block || job->read_pct > 100 || !job->ms ||
	    job->ms > 3600 * 1000 || job->first > size || job->span > size - job->first ||
	    !lcload_odd_is_fine(job))
		return -EINVAL;
	run->blocks = div64_u64(job->span, job->bs);
	return run->blocks < job->threads ? -EINVAL : 0;
}

static const struct {
	const char *key;
	size_t offset;
} lcload_numbers[] = {
#define NUMBER(name) { #name, offsetof(struct lcload_job, name) }
	NUMBER(threads), NUMBER(depth), NUMBER(bs), NUMBER(count), NUMBER(ms), NUMBER(first),
	NUMBER(span), NUMBER(read_pct), NUMBER(flush_every), NUMBER(preflush), NUMBER(fua),
	NUMBER(nowait), NUMBER(seed), NUMBER(pieces), NUMBER(granule), NUMBER(check), NUMBER(least),
#undef NUMBER
};

static int lcload_parse_word(struct lcload_job *job, const char *key, const char *value)
{
	static const char *const orders[] = { "random", "seq", "once", "zipf" };
	unsigned int i;
	int found;

	if (!strcmp(key, "dev"))
		return strscpy(job->dev, value, sizeof(job->dev)) < 0 ? -ENAMETOOLONG : 0;
	if (!strcmp(key, "op")) {
		job->read_pct = strcmp(value, "read") ? 0 : 100;
		return job->read_pct || !strcmp(value, "write") ? 0 : -EINVAL;
	}
	if (!strcmp(key, "order")) {
		found = match_string(orders, ARRAY_SIZE(orders), value);
		if (found >= 0)
			job->order = found;
		return found < 0 ? found : 0;
	}
	for (i = 0; i < ARRAY_SIZE(lcload_numbers); i++)
		if (!strcmp(key, lcload_numbers[i].key))
			return kstrtou64(value, 0, (u64 *)((char *)job + lcload_numbers[i].offset));
	return -EINVAL;
}

static int lcload_parse(struct lcload_job *job, char *line)
{
	char *word, *value;
	int err = 0;

	*job = (struct lcload_job) {
		.threads = 1, .depth = 1, .bs = 4096, .ms = 60 * 1000, .seed = 1,
		.granule = 1,
	};
	while (!err && (word = strsep(&line, "\n "))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value)
			return -EINVAL;
		*value++ = '\0';
		err = lcload_parse_word(job, word, value);
	}
	return err;
}

static int lcload_run(char *line)
{
	struct lcload_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int err;

	if (!run)
		return -ENOMEM;
	init_completion(&run->start);
	err = lcload_parse(&run->job, line);
	if (err)
		goto free;
	err = lcload_open(&run->dev, run->job.dev);
	if (err)
		goto free;
	err = lcload_check(run);
	if (!err)
		err = lcload_threads(run);
	lcload_close(&run->dev);
free:
	kfree(run);
	return err;
}

/* ------------------------------------------------------------------ the file */

static ssize_t lcload_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	char *line;
	int err;

	if (size >= LCLOAD_LINE)
		return -E2BIG;
	line = memdup_user_nul(from, size);
	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&lcload_mutex);
	lcload_result[0] = '\0';
	err = lcload_run(line);
	mutex_unlock(&lcload_mutex);
	kfree(line);
	return err ?: size;
}

static ssize_t lcload_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	ssize_t got;

	mutex_lock(&lcload_mutex);
	got = simple_read_from_buffer(to, size, pos, lcload_result, strlen(lcload_result));
	mutex_unlock(&lcload_mutex);
	return got;
}

static const struct file_operations lcload_fops = {
	.owner = THIS_MODULE,
	.read = lcload_read,
	.write = lcload_write,
	.llseek = default_llseek,
};

static int __init lcload_init(void)
{
	lcload_dir = debugfs_create_dir("lcload", NULL);
	if (IS_ERR(lcload_dir))
		return PTR_ERR(lcload_dir);
	debugfs_create_file("run", 0600, lcload_dir, NULL, &lcload_fops);
	return 0;
}

static void __exit lcload_exit(void)
{
	debugfs_remove(lcload_dir);
}

module_init(lcload_init);
module_exit(lcload_exit);
MODULE_DESCRIPTION("Load generator of the dm-lc benchmark");
MODULE_LICENSE("GPL");
