// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scan after a crash.  See warmup.h.
 *
 * Each step takes what may be taken of what was read (backscan.h), and if that is nothing, reads
 * the chain of headers of the next lower segment.  A header that is taken is read again.
 * Meanwhile the place of the lowest segment that anything was taken from is held, and so are those
 * above it (WS7).
 *
 * The work grows with the headers on the SSD, each of which is read twice, and with the blocks that
 * they name.  What is held is bounded (LC_BACKSCAN_MOST), and freed at the end.
 *
 * Teardown: lc_warmup_quiesce() has cancelled the work, and only lc_warmup_resume() and the work
 * itself queue it.  No place is held between two steps.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "format/backscan.h"
#include "format/chain.h"
#include "life/warmup.h"
#include "log/cache.h"
#include "store/admit.h"
#include "store/index.h"
#include "store/io.h"
#include "store/ring.h"
#include "store/sums.h"
#include "store/warm.h"

#define STEP	16	/* headers taken in one step */

struct lc_warmup {
	struct lc_cache *c;
	struct work_struct work;
	bool running;			/* READ_ONCE() */
	/* Of the work, and of lc_warmup_resume() before the first step: */
	struct lc_backscan scan;
	void *header;			/* a slot; NULL: not begun, or ended */
	void *data;			/* a slot */
	u64 next;			/* one above the segment to be read next */
	u64 unread;			/* highest segment of which something could not be read */
	u64 taken;			/* WS7: lowest one that was taken from, or warm.end */
};

/* --- taking ----------------------------------------------------------------- */

/* It may be readable the next time. */
static void note_unread(struct lc_warmup *w, u64 segment)
{
	w->unread = max(w->unread, segment);
}

/* Return: of a slot that should hold the block; or another sum, if it cannot be read. */
static u32 read_sum(struct lc_warmup *w, u64 block, u64 segment, u32 slot)
{
	struct lc_cache *c = w->c;
	u64 address = lc_format_log_address(&c->sb.geo, segment, slot);

	if (!lc_io_sync(c->env.cache, REQ_OP_READ, address, w->data, LC_SLOT_BYTES))
		return lc_format_slot_csum(&c->sb, block, w->data);
	note_unread(w, segment);
	return 0;
}

/* Are the blocks of a group what its header says?  What has rotted on its way is read again. */
static bool group_whole(struct lc_warmup *w, const struct lc_backscan_item *group, u32 nr)
{
	u32 first = group->slot + LC_HEADER_SLOTS, i;
	struct lc_entry_info entry;

	for (i = 0; i < nr; i++) {
		lc_entry_decode(w->header, i, &entry);
		if (entry.type == LC_ENTRY_DATA &&
		    entry.csum != read_sum(w, entry.block, group->segment, first + i) &&
		    entry.csum != read_sum(w, entry.block, group->segment, first + i))
			return false;
	}
	return true;
}

/* A copy on the SSD.  Above the tail replay knows it already. */
static void take_copy(struct lc_warmup *w, const struct lc_backscan_item *item,
		      const struct lc_entry_info *entry, u32 slot)
{
	struct lc_mapping other, map = {
		.slot = slot, .mask = entry->mask, .use = item->group ? LC_ADMIT_PROMOTED : 0,
	};
	struct lc_cache *c = w->c;
	u64 block;

	if (!item->group && item->key >= c->warm.tail_seq)
		return;
	/* A copy of no sector would look pending. */
	if (entry->lost || !entry->mask) {
		lc_warm_touch(&c->warm, entry->block, entry->block);
		return;
	}
	/* Only the scan and replay have the index name such a slot. */
	if (lc_index_peek(c->index, slot, &block, &other))
		return;
	lc_sums_put(&c->sums, slot, entry->csum);
	if (lc_warm_enter(&c->warm, c->index, entry->block, &map))
		WRITE_ONCE(c->warm.entered, c->warm.entered + 1);
}

static void take_entries(struct lc_warmup *w, const struct lc_backscan_item *item, u32 nr)
{
	struct lc_cache *c = w->c;
	u64 position = lc_ring_position(c->ring, item->segment);
	u32 base = (position << c->ring->slot_shift) + item->slot + LC_HEADER_SLOTS, i;
	struct lc_entry_info entry;

	for (i = 0; i < nr; i++) {
		lc_entry_decode(w->header, i, &entry);
		if (entry.type == LC_ENTRY_DATA)
			take_copy(w, item, &entry, base + i);
		else if (entry.type != LC_ENTRY_NONE)
			lc_warm_touch(&c->warm, entry.block, entry.block + entry.nr_blocks - 1);
	}
}

/* Return: an error of reading a header, or of decoding it; -ENODATA if it is of another kind. */
static int read_header(struct lc_warmup *w, u64 segment, u32 slot, bool group,
		       struct lc_record_info *info)
{
	const struct lc_sb *sb = &w->c->sb;
	int ret = lc_io_sync(w->c->env.cache, REQ_OP_READ,
			     lc_format_log_address(&sb->geo, segment, slot), w->header,
			     LC_SLOT_BYTES);

	if (ret) {
		note_unread(w, segment);
		return ret;
	}
	return group ? lc_group_decode(w->header, sb, segment, slot, info, NULL) :
		       lc_record_decode(w->header, sb, segment, slot, info, NULL);
}

/* [place held] Return: false if the header is not there any more. */
static bool take_header(struct lc_warmup *w, const struct lc_backscan_item *item)
{
	struct lc_cache *c = w->c;
	struct lc_record_info info;

	/* What has rotted on its way is read again. */
	if (read_header(w, item->segment, item->slot, item->group, &info) &&
	    read_header(w, item->segment, item->slot, item->group, &info))
		return false;
	if (info.epoch != item->epoch || (!item->group && info.seq != item->key))
		return false;
	if (item->group && !lc_backscan_whole(&w->scan, item) &&
	    !group_whole(w, item, info.nr_entries))
		return true;
	if (item->group)
		WRITE_ONCE(c->promoted, true);
	take_entries(w, item, info.nr_entries);
	return true;
}

/* --- reading ------------------------------------------------------------------ */

/* Go on behind the header at the chain's slot.  Return: an error: the chain ends there. */
static int follow(struct lc_warmup *w, struct lc_chain *chain, struct lc_record_info *info,
		  bool *group)
{
	int ret = read_header(w, chain->segment, chain->slot, false, info);

	*group = ret == -ENODATA;
	if (*group)
		ret = lc_group_decode(w->header, &w->c->sb, chain->segment, chain->slot, info,
				      NULL);
	/* What has rotted on its way is read again. */
	if (ret && ret != -ENODATA && ret != -ESTALE)
		ret = read_header(w, chain->segment, chain->slot, *group, info);
	return lc_chain_pass(chain, info, ret, NULL);
}

/* Whatever ends the chain: what is missing then, the seqs tell (WS1). */
static void read_segment(struct lc_warmup *w, u64 segment)
{
	struct lc_record_info info;
	struct lc_chain chain;
	bool group;

	lc_chain_start(&chain, segment, 0);
	while (!lc_chain_at_end(&chain, &w->c->sb.geo) && !follow(w, &chain, &info, &group)) {
		/* R7: what follows may be left of an earlier life. */
		chain.epoch = info.epoch;
		if (!lc_backscan_add(&w->scan, &info, group))
			return;
	}
}

/* --- the work ------------------------------------------------------------------- */

static void free_memory(struct lc_warmup *w)
{
	kvfree(w->scan.items);
	kfree(w->header);
	kfree(w->data);
	w->scan.items = NULL;
	w->header = NULL;
	w->data = NULL;
}

/*
 * @above: 0, or one above the highest segment that was not taken although it might be by another
 * scan.  What is overwritten, or lies behind what is, no scan takes.
 */
static void end_scan(struct lc_warmup *w, u64 above)
{
	struct lc_cache *c = w->c;

	/* What follows is before the rest is believed unknown no more. */
	if (lc_warm_end(&c->warm))
		above = c->warm.end;
	if (above)
		lc_warm_raise(&c->warm, above, true);
	lc_warm_sure(&c->warm);
	WRITE_ONCE(c->warm.left, 0);
	free_memory(w);
	lc_info(&c->env, "%llu blocks are cached again that were before the crash%s",
		c->warm.entered, above ? "; the rest is not known" : "");
}

static bool must_end(const struct lc_warmup *w)
{
	const struct lc_cache *c = w->c;

	return w->scan.ended || READ_ONCE(c->warm.full) || !READ_ONCE(c->env.params.warm) ||
	       lc_mode(&c->health) != LC_MODE_RW || lc_ssd_failed(&c->health);
}

/* Return: one above the highest segment of which anything was not taken. */
static u64 not_taken(const struct lc_warmup *w, u64 segment)
{
	return max3(lc_backscan_held(&w->scan), w->next - 1, max(segment, w->unread)) + 1;
}

/* Return: whether there was something to take, or the scan has ended. */
static bool take(struct lc_warmup *w)
{
	struct lc_cache *c = w->c;
	struct lc_backscan_item item;
	bool there;
	u32 i;

	for (i = 0; i < STEP && !must_end(w); i++) {
		if (!lc_backscan_next(&w->scan, &item))
			return i;
		w->taken = min(w->taken, item.segment);
		if (!lc_ring_fill_old(c->ring, w->taken)) {
			end_scan(w, not_taken(w, item.segment));
			return true;
		}
		there = take_header(w, &item);
		lc_ring_filled(c->ring, w->taken);
		if (lc_ring_head(c->ring) - w->taken == c->ring->nr)
			lc_kick(&c->env.refill);
		/* The table of what was touched may have got full within this one. */
		if (!there || READ_ONCE(c->warm.full)) {
			end_scan(w, not_taken(w, item.segment));
			return true;
		}
	}
	if (must_end(w))
		end_scan(w, not_taken(w, 0));
	return true;
}

static void step_work(struct work_struct *work)
{
	struct lc_warmup *w = container_of(work, struct lc_warmup, work);
	struct lc_cache *c = w->c;

	if (!w->header)
		return;
	if (!take(w)) {
		if (w->next == c->warm.lowest) {
			end_scan(w, w->unread ? not_taken(w, 0) : 0);
		} else {
			read_segment(w, --w->next);
			/* With the one that is taken now. */
			WRITE_ONCE(c->warm.left, w->next - c->warm.lowest + 1);
		}
	}
	if (w->header && READ_ONCE(w->running))
		queue_work(c->verify_wq, &w->work);
}

/* Return: whether there is memory for a scan. */
static bool begin(struct lc_warmup *w)
{
	struct lc_cache *c = w->c;
	/* Memory must not be reclaimed through the volume that is suspended. */
	unsigned int noio = lc_noio_save();

	w->header = kmalloc(LC_SLOT_BYTES, GFP_KERNEL);
	w->data = kmalloc(LC_SLOT_BYTES, GFP_KERNEL);
	w->scan.items = kvmalloc_array(LC_BACKSCAN_MOST, sizeof(*w->scan.items), GFP_KERNEL);
	lc_noio_restore(noio);
	if (!w->header || !w->data || !w->scan.items)
		return false;
	lc_backscan_init(&w->scan, &c->sb, c->warm.end);
	w->next = c->warm.end;
	w->taken = w->next;
	WRITE_ONCE(c->warm.left, w->next - c->warm.lowest);
	return true;
}

void lc_warmup_resume(struct lc_warmup *w)
{
	struct lc_cache *c = w->c;

	WRITE_ONCE(w->running, true);
	if (!READ_ONCE(c->warm.scanning))
		return;
	if (!w->header && !begin(w)) {
		end_scan(w, c->warm.end);
		return;
	}
	queue_work(c->verify_wq, &w->work);
}

void lc_warmup_quiesce(struct lc_warmup *w)
{
	WRITE_ONCE(w->running, false);
	cancel_work_sync(&w->work);
}

struct lc_warmup *lc_warmup_create(struct lc_cache *c)
{
	struct lc_warmup *w = kzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return NULL;
	w->c = c;
	INIT_WORK(&w->work, step_work);
	return w;
}

void lc_warmup_destroy(struct lc_warmup *w)
{
	if (!w)
		return;
	free_memory(w);
	lc_warm_end(&w->c->warm);
	kfree(w);
}
