// SPDX-License-Identifier: GPL-2.0-only
/*
 * Step 6 of giving an SSD up (rescue.c): save what is only there, while the volume goes on.
 *
 * It works as writeback does, with its list and its copier, which writeback does not need any
 * more: a batch of some thousand blocks is listed segment by segment, sorted by block, copied,
 * and made durable with one FLUSH.  Only then its blocks leave the index.
 *
 * Writes of users to a block wait while it is claimed (S-d), so a batch is claimed and copied in
 * pieces of MAX_CLAIMED blocks.  Sectors that users have written before the claim are not in the
 * mapping of the block any more, and are not copied.  When the piece is released, a write may come
 * before the FLUSH: then the HDD holds something newer, which the index need not know.
 *
 * A block that a device fails is left for the next pass (S-e, S-f).
 *
 * A pass ends after MAX_DEAD_READS slots in a row that cannot be read.  In the last pass the
 * superblock is read then: if that fails, too, the SSD is gone, and the other slots are not tried.
 *
 * A pause (suspend, other options) ends the batch after the piece under way, and makes what
 * was copied durable.  A removal goes on for REMOVAL_PATIENCE, or less if the HDD takes nothing.
 * What is not salvaged then is lost, and lc_rescue_record_lost() puts it into the mark's list.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bio/bypass.h"
#include "life/lc.h"
#include "life/salvage.h"
#include "log/lanes.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "writeback/collect.h"
#include "writeback/copy.h"
#include "writeback/writeback.h"

#define MAX_CLAIMED	128	/* writes to these wait, for a fraction of a second */
#define FEW_CLAIMED	16	/* while a device fails, and may take its time for that */
#define MAX_DEAD_READS	64	/* slots in a row that cannot be read: the SSD is gone */
#define FIRST_ROW	64	/* blocks in a row that the HDD refuses, then a pause */
#define MAX_ROW		8192
#define PAUSE_FIRST	HZ
#define PAUSE_LAST	(30 * HZ)
#define PAUSE_ERRORS	HZ		/* before the SSD is asked again */
#define REMOVAL_PATIENCE (60 * HZ)	/* a removal salvages no longer than that */
#define REMOVAL_TRIES	5	/* passes of which the HDD takes nothing */

struct lc_salvage {
	struct lc_volume *vol;
	struct workqueue_struct *wq;
	void (*done)(struct lc_volume *vol);
	struct delayed_work work;
	wait_queue_head_t wait;		/* stop was set */
	u64 *blocks;			/* MAX_CLAIMED, while they are claimed */
	bool active;			/* READ_ONCE(); cleared by the work, or who paused it */
	bool stop;	/* READ_ONCE(); under life_lock, but for lc_salvage_destroy() */

	/* owned by the work, or by who paused it */
	bool hurry;			/* until deadline, with short pauses */
	unsigned long deadline;		/* jiffies */
	bool last_pass;			/* what the SSD fails to give back is lost */
	bool ssd_gone;			/* in the last pass: nothing more is read */
	bool incomplete;		/* this pass was interrupted in a batch */
	u64 next;			/* segment number this pass goes on with; 0: begin one */
	unsigned long read_errors_since;	/* jiffies: the first pass that met such; 0: none */
	u64 nr_read_errors;		/* in this pass: the SSD failed to give them back */
	u64 nr_refused;			/* in this pass: the HDD failed to take them */
	u64 nr_saved;			/* in this pass */
	u32 dead_reads;			/* in a row */
	u32 row;			/* blocks the HDD refused in a row */
	u32 max_row;			/* before the next pause */
	unsigned long pause;		/* jiffies, the next one */
};

static bool must_stop(const struct lc_salvage *salvage)
{
	return READ_ONCE(salvage->stop) ||
	       (salvage->hurry && time_after(jiffies, salvage->deadline));
}

/* --- a piece of a batch ---------------------------------------------------- */

/* The piece is claimed: what of it is still missing on the HDD?  The rest has no mask. */
static void refresh(struct lc_volume *vol, struct lc_wb_item *items, u32 nr)
{
	struct lc_mapping map;
	u32 i, bucket;
	bool found;

	for (i = 0; i < nr; i++) {
		found = lc_index_lock_slot(vol->c.index, items[i].block, items[i].slot, &bucket,
					   &map);
		items[i].mask = found && map.dirty ? map.mask : 0;
		lc_index_unlock(vol->c.index, bucket);
	}
}

static void note_read_error(struct lc_salvage *salvage, const struct lc_wb_item *item)
{
	struct lc_volume *vol = salvage->vol;

	if (!salvage->last_pass) {
		salvage->nr_read_errors++;
		salvage->dead_reads++;
		return;
	}
	lc_index_mark_slot_lost(vol->c.index, item->block, item->slot);
	if (salvage->ssd_gone || ++salvage->dead_reads % MAX_DEAD_READS)
		return;
	salvage->ssd_gone = lc_io_sync(vol->c.env.cache, REQ_OP_READ | REQ_META, 0,
				       lc_writeback_header(vol->wb), LC_SLOT_BYTES);
}

static void note_refused(struct lc_salvage *salvage)
{
	salvage->nr_refused++;
	salvage->row++;
}

static void note_saved(struct lc_salvage *salvage)
{
	salvage->nr_saved++;
	salvage->dead_reads = 0;
	salvage->row = 0;
	salvage->max_row = FIRST_ROW;
	salvage->pause = PAUSE_FIRST;
}

/* What became of the piece.  Return: how many blocks of it the HDD took. */
static u32 count_results(struct lc_salvage *salvage, const struct lc_wb_item *items, u32 nr)
{
	u32 saved = 0, i;

	for (i = 0; i < nr; i++) {
		if (!items[i].mask)
			continue;
		if (items[i].result == LC_WB_REFUSED) {
			note_refused(salvage);
		} else if (items[i].result != LC_WB_COPIED) {
			note_read_error(salvage, &items[i]);
		} else {
			note_saved(salvage);
			saved++;
		}
	}
	return saved;
}

/* Copy some blocks, claimed meanwhile.  Return: how many the HDD took. */
static u32 copy_piece(struct lc_salvage *salvage, struct lc_wb_item *items, u32 nr)
{
	struct lc_volume *vol = salvage->vol;
	bool never = false;
	struct lc_wb_how how = { .on_error = LC_WB_SKIP, .stop = &never };
	u32 i;

	for (i = 0; i < nr; i++)
		salvage->blocks[i] = items[i].block;
	lc_bypass_claim(vol->bypass, salvage->blocks, nr);
	refresh(vol, items, nr);
	lc_wbcopy_run(lc_writeback_copy(vol->wb), items, nr, &how);
	lc_bypass_release(vol->bypass);
	return count_results(salvage, items, nr);
}

/* Errors may take long: then only writes to few blocks wait. */
static u32 piece_size(const struct lc_salvage *salvage)
{
	return salvage->row || salvage->dead_reads ? FEW_CLAIMED : MAX_CLAIMED;
}

/* --- a batch --------------------------------------------------------------- */

/*
 * Make durable what was copied.  If the HDD fails a FLUSH, ours or a user's at the same
 * time, it may have dropped data, and a later FLUSH does not report that (F3).
 */
static int flush_saved(struct lc_volume *vol, u32 failed_before)
{
	struct lc_env *env = &vol->c.env;
	int ret = lc_io_flush(env, env->backing);

	if (ret) {
		/* It may have dropped what users wrote, too, and their FLUSHes would end well. */
		lc_health_hdd_failed(&vol->c.health);
		return ret;
	}
	lc_bypass_wait_in_flight(vol->bypass);
	return lc_bypass_failed_flushes(vol->bypass) == failed_before ? 0 : -EIO;
}

/* The HDD durably holds what was copied of these: they leave the index. */
static void forget_saved(struct lc_volume *vol, const struct lc_wb_item *items, u32 nr)
{
	struct lc_mapping map;
	u32 i, bucket;
	bool found;

	for (i = 0; i < nr; i++) {
		if (items[i].result != LC_WB_COPIED || !items[i].mask)
			continue;
		found = lc_index_lock_slot(vol->c.index, items[i].block, items[i].slot, &bucket,
					   &map);
		/* Nothing is mapped anew, so its mask is within what was copied. */
		if (found)
			lc_index_hdd_has(vol->c.index, bucket, items[i].block, map.mask);
		lc_index_unlock(vol->c.index, bucket);
	}
}

/* The HDD refuses one block after the other: wait before the next one (S-e). */
static void pause_refused(struct lc_salvage *salvage)
{
	if (salvage->row < salvage->max_row)
		return;
	lc_err_limit(&salvage->vol->c.env,
		     "the backing device fails, %llu blocks are yet to be saved",
		     lc_index_dirty(salvage->vol->c.index));
	wait_event_idle_timeout(salvage->wait, must_stop(salvage),
				salvage->hurry ? PAUSE_FIRST : salvage->pause);
	salvage->row = 0;
	salvage->max_row = min_t(u32, salvage->max_row * 2, MAX_ROW);
	salvage->pause = min_t(unsigned long, salvage->pause * 2, PAUSE_LAST);
}

/* The SSD fails all that is read: no use in asking for the others in this pass. */
static bool pass_hopeless(const struct lc_salvage *salvage)
{
	return !salvage->last_pass && salvage->dead_reads >= MAX_DEAD_READS;
}

/* Copy what is listed.  FLUSH once, and forget what is saved. */
static void save_batch(struct lc_salvage *salvage, struct lc_wb_list *list)
{
	struct lc_volume *vol = salvage->vol;
	u32 failed = lc_bypass_failed_flushes(vol->bypass), saved = 0, i = 0, nr;

	lc_wbcollect_sort(list);
	while (i < list->nr && !must_stop(salvage) && !pass_hopeless(salvage)) {
		nr = min(list->nr - i, piece_size(salvage));
		saved += copy_piece(salvage, list->items + i, nr);
		i += nr;
		pause_refused(salvage);
		cond_resched();
	}
	salvage->incomplete |= i < list->nr;
	if (saved && flush_saved(vol, failed))
		salvage->nr_refused += saved;
	else if (saved)
		forget_saved(vol, list->items, i);
	list->nr = 0;
}

/* --- a pass ---------------------------------------------------------------- */

/* Clean copies are on the HDD, and outdated there once users have written past them. */
static void forget_clean(struct lc_volume *vol, u64 number)
{
	u64 slot = lc_ring_position(vol->c.ring, number) << vol->c.ring->slot_shift, end, block;
	struct lc_mapping map;
	bool found;
	u32 bucket;

	end = slot + vol->c.sb.geo.seg_slots;
	for (; lc_index_next(vol->c.index, &slot, end, &block, &map); slot++) {
		if (map.dirty)
			continue;
		found = lc_index_lock_slot(vol->c.index, block, slot, &bucket, &map);
		if (found && !map.dirty)
			lc_index_hdd_has(vol->c.index, bucket, block, ~map.lost);
		lc_index_unlock(vol->c.index, bucket);
	}
}

/* List what a segment holds that the HDD does not. */
static void list_segment(struct lc_salvage *salvage, u64 number, struct lc_wb_list *list)
{
	struct lc_volume *vol = salvage->vol;
	bool never = false;
	struct lc_wb_source source = {
		.number = number, .header = lc_writeback_header(vol->wb), .stop = &never,
		.patient = !salvage->last_pass, .unreadable = salvage->ssd_gone,
	};
	u32 from = list->nr, i, kept = from;

	if (lc_wbcollect_segment(&vol->c, &source, list)) {
		/* Any of its blocks may be affected: list it again in the next pass. */
		list->nr = from;
		salvage->nr_read_errors++;
		salvage->dead_reads++;
		return;
	}
	for (i = from; i < list->nr; i++) {
		if (list->items[i].result == LC_WB_COPIED)
			list->items[kept++] = list->items[i];
		else
			note_read_error(salvage, &list->items[i]);
	}
	list->nr = kept;
}

static void begin_pass(struct lc_salvage *salvage)
{
	salvage->next = max(salvage->vol->c.ring->nr, lc_lanes_used(salvage->vol->c.lanes)) -
			salvage->vol->c.ring->nr;
	salvage->next = max_t(u64, salvage->next, 1);
	salvage->incomplete = false;
	salvage->nr_read_errors = 0;
	salvage->nr_refused = 0;
	salvage->nr_saved = 0;
	salvage->dead_reads = 0;
	salvage->ssd_gone = false;
}

/* Go on with the pass.  Return: whether it got through. */
static bool do_pass(struct lc_salvage *salvage)
{
	struct lc_volume *vol = salvage->vol;
	struct lc_wb_list *list = lc_writeback_list(vol->wb);
	u64 end = lc_lanes_used(vol->c.lanes);

	if (!salvage->next)
		begin_pass(salvage);
	lc_wbcollect_begin(list, 0);
	while (salvage->next < end && !must_stop(salvage) && !pass_hopeless(salvage)) {
		if (READ_ONCE(vol->c.bypassed))
			forget_clean(vol, salvage->next);
		list_segment(salvage, salvage->next++, list);
		if (list->nr && list->nr + vol->c.sb.geo.seg_slots > list->max)
			save_batch(salvage, list);
		cond_resched();
	}
	if (list->nr)
		save_batch(salvage, list);
	if (must_stop(salvage))
		return false;
	salvage->incomplete |= salvage->next < end;
	salvage->next = 0;
	return true;
}

static void salvage_done(struct lc_salvage *salvage)
{
	struct lc_volume *vol = salvage->vol;

	WRITE_ONCE(salvage->active, false);
	lc_bypass_watch(vol->bypass, false);
	salvage->done(vol);
	lc_warn(&vol->c.env, "the cache device is not needed any more, %llu blocks are lost",
		lc_index_lost(vol->c.index));
	lc_health_tell(&vol->c.health);
}

/* One pass, or what is left of it.  Return: when to do the next one; 0: not now, or it is over. */
static unsigned long work_on(struct lc_salvage *salvage)
{
	u32 patience = READ_ONCE(salvage->vol->c.env.params.ssd_patience_ms);

	if (!do_pass(salvage))
		return 0;
	if (!salvage->nr_read_errors && !salvage->nr_refused && !salvage->incomplete) {
		salvage_done(salvage);
		return 0;
	}
	if (!salvage->nr_read_errors) {
		salvage->last_pass = false;
		salvage->read_errors_since = 0;
		if (!salvage->nr_refused)
			return 1;
		return salvage->hurry ? PAUSE_FIRST : PAUSE_LAST;
	}
	if (!salvage->read_errors_since)
		salvage->read_errors_since = jiffies | 1;
	salvage->last_pass = time_after_eq(jiffies, salvage->read_errors_since +
					   msecs_to_jiffies(patience));
	return PAUSE_ERRORS;
}

static void salvage_work(struct work_struct *work)
{
	struct lc_salvage *salvage = container_of(to_delayed_work(work), struct lc_salvage, work);
	unsigned long pause;

	if (!salvage->active || READ_ONCE(salvage->stop))
		return;
	pause = work_on(salvage);
	if (pause && !READ_ONCE(salvage->stop))
		queue_delayed_work(salvage->wq, &salvage->work, pause);
}

/* --- interface --------------------------------------------------------------- */

void lc_salvage_begin(struct lc_salvage *salvage)
{
	lockdep_assert_held(&salvage->vol->life_lock);
	WRITE_ONCE(salvage->active, true);
	lc_bypass_watch(salvage->vol->bypass, true);
}

bool lc_salvage_active(const struct lc_salvage *salvage)
{
	return READ_ONCE(salvage->active);
}

/* The work does not run afterwards, nor begin, until stop is cleared. */
static void stop_work(struct lc_salvage *salvage)
{
	WRITE_ONCE(salvage->stop, true);
	wake_up_all(&salvage->wait);
	/* It does not queue itself again once it sees stop, and this waits until it has. */
	cancel_delayed_work_sync(&salvage->work);
}

bool lc_salvage_pause(struct lc_salvage *salvage)
{
	bool paused = salvage->stop;

	lockdep_assert_held(&salvage->vol->life_lock);
	stop_work(salvage);
	return !paused && salvage->active;
}

void lc_salvage_resume(struct lc_salvage *salvage)
{
	lockdep_assert_held(&salvage->vol->life_lock);
	WRITE_ONCE(salvage->stop, false);
	queue_delayed_work(salvage->wq, &salvage->work, 0);
}

void lc_salvage_finish(struct lc_salvage *salvage)
{
	u32 tries = REMOVAL_TRIES;
	unsigned long pause;

	lockdep_assert_held(&salvage->vol->life_lock);
	lc_salvage_pause(salvage);
	WRITE_ONCE(salvage->stop, false);
	salvage->hurry = true;
	salvage->deadline = jiffies + REMOVAL_PATIENCE;
	while (salvage->active && !must_stop(salvage)) {
		pause = work_on(salvage);
		if (salvage->nr_refused && !salvage->nr_saved && !--tries)
			break;
		if (pause)
			schedule_timeout_idle(pause);
	}
	WRITE_ONCE(salvage->stop, true);
	if (salvage->active)
		lc_err(&salvage->vol->c.env, "removed before all was salvaged: %llu blocks are lost",
		       lc_index_dirty(salvage->vol->c.index));
}

struct lc_salvage *lc_salvage_create(struct lc_volume *vol, struct workqueue_struct *wq,
				     void (*done)(struct lc_volume *vol))
{
	struct lc_salvage *salvage = kzalloc(sizeof(*salvage), GFP_KERNEL);

	if (!salvage)
		return NULL;
	salvage->vol = vol;
	salvage->wq = wq;
	salvage->done = done;
	salvage->max_row = FIRST_ROW;
	salvage->pause = PAUSE_FIRST;
	INIT_DELAYED_WORK(&salvage->work, salvage_work);
	init_waitqueue_head(&salvage->wait);
	salvage->blocks = kvcalloc(MAX_CLAIMED, sizeof(*salvage->blocks), GFP_KERNEL);
	if (salvage->blocks)
		return salvage;
	kfree(salvage);
	return NULL;
}

void lc_salvage_destroy(struct lc_salvage *salvage)
{
	if (!salvage)
		return;
	stop_work(salvage);
	kvfree(salvage->blocks);
	kfree(salvage);
}
