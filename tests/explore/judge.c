// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is what recovery made of a crash state right?
 *
 *  1. It did not refuse, did not warn, and wrote nothing but superblocks and marks.
 *  2. Every record it believes in is one of this history, at a place where it was written,
 *     and the index is exactly what the records up to the last of them say.
 *  3. By what a user reads: every sector holds what was written there (P3), all of it is
 *     what the first n operations leave (P2), and all that was acknowledged is among them
 *     (P1).  Blocks that were discarded may read as anything they held before, or zeros.  A write
 *     around the log may be there or not, until a FLUSH has promised it; then it or a newer one is.
 *
 * With rot, recovery may refuse; if it goes on, everything must be there that any header
 * left tells of (L4), or everything at all if it is not a header that rotted (L9).
 *
 * With an old disk, it may refuse, too; if it goes on, everything must be there: the copy lacks
 * nothing then (S7).
 */
#include "history.h"
#include "store/admit.h"
#include "store/claims.h"
#include "store/index.h"
#include "crash.h"
#include "judge.h"
#include "replay.h"
#include "store/ring.h"
#include "standin.h"

const char *const verdict_names[NR_VERDICTS] = {
	[FINE] = "fine", [BAD_REFUSED] = "refused", [BAD_P1] = "P1", [BAD_P2] = "P2",
	[BAD_P3] = "P3", [BAD_INDEX] = "index", [BAD_MEDIA] = "media", [BAD_WARNING] = "warning",
	[BAD_STUCK] = "stuck",
};

struct trial {
	const struct life *life;
	const struct crash *crash;
	const struct life *next;
	u32 floor_op;
	u64 floor_seq;
	u64 last_seq;		/* of the run */
	u32 nr_ops;		/* until the crash */
	u32 seen[MAX_SECTORS];
};

/* --- rot ------------------------------------------------------------------------ */

/* Is this header on the disk, whole? */
static bool header_left(const struct trial *t, const struct rec *rec, u32 place)
{
	return rec->places[place].time <= t->crash->at && rec->seq != t->crash->rot_arg;
}

/* First segment that replay does not come to, too many before it being without a header. */
static u64 scan_end(const struct trial *t)
{
	u64 tail = t->next->tail_segment, segment, seq;
	u32 stale = 0, i;

	for (segment = tail; segment < tail + world->params.segments; segment++) {
		bool any = false;

		for (seq = t->next->tail_seq; seq <= world->last_seq && !any; seq++) {
			const struct rec *rec = rec_of_seq(seq);

			for (i = 0; i < rec->nr_places; i++)
				any |= rec->places[i].segment == segment && header_left(t, rec, i);
		}
		stale = any ? 0 : stale + 1;
		if (stale > max(world->params.lane_limit, 2 * (world->params.lanes ?: 1)))
			break;
	}
	return segment;
}

/* Highest seq of which a header that is left says that it was durable. */
static u64 told_durable(const struct trial *t)
{
	u64 told = t->life->start_seq, end = scan_end(t), seq;
	u32 i;

	for (seq = told + 1; seq <= world->last_seq; seq++) {
		const struct rec *rec = rec_of_seq(seq);

		for (i = 0; i < rec->nr_places; i++) {
			if (header_left(t, rec, i) && rec->places[i].segment < end &&
			    rec->places[i].told_durable > told)
				told = rec->places[i].told_durable;
		}
	}
	return told;
}

/*
 * Does nothing tell of the record with the rotten header?  If nobody says that it was
 * durable, it is a torn tail for all anybody can know, and what of it was written back
 * already is a mixture.
 */
static bool untold(const struct trial *t)
{
	return t->crash->rot == ROT_HEADER && told_durable(t) < t->crash->rot_arg;
}

/* --- the log ---------------------------------------------------------------------- */

static void judge_run(const struct trial *t)
{
	const struct life *next = t->next;
	u32 i;

	if (t->last_seq < t->floor_seq)
		trouble(BAD_P1, "record %llu was durable, the log ends with %llu",
			t->floor_seq, t->last_seq);
	if (t->last_seq > world->last_seq)
		trouble(BAD_P2, "the log ends with record %llu, which was never written",
			t->last_seq);
	for (i = 0; i < next->nr_kept && !world->trouble; i++) {
		const struct kept *kept = &next->kept[i];

		if (kept->seq != next->tail_seq + i)
			trouble(BAD_P2, "record %llu follows %llu", kept->seq,
				next->tail_seq + i - 1);
		else if (rec_find_place(rec_of_seq(kept->seq), kept, t->crash->at) == NONE)
			trouble(BAD_P2, "a dead record %llu in segment %llu slot %u came back",
				kept->seq, kept->segment, kept->slot);
		else if (kept->segment >= next->next_segment)
			trouble(BAD_INDEX, "the next life would overwrite record %llu", kept->seq);
	}
	if (next->next_segment < next->tail_segment ||
	    next->next_segment > next->tail_segment + world->params.segments)
		trouble(BAD_INDEX, "the ring is impossible: tail %llu, head %llu",
			next->tail_segment, next->next_segment);
}

/* Where recovery found a record: its slot, or a place of it as the model knows. */
static u32 kept_place(const struct trial *t, const struct rec *rec)
{
	u64 i = rec->seq - t->next->tail_seq;

	if (rec->seq < t->next->tail_seq || i >= t->next->nr_kept)
		return rec->cur;
	return rec_find_place(rec, &t->next->kept[i], t->crash->at);
}

static void judge_mapping(const struct trial *t, u32 block, const struct lc_mapping *map,
			  const struct rec *rec)
{
	bool needed = rec && rec->seq >= t->next->tail_seq;
	u32 i;

	if (!map) {
		if (needed)
			trouble(BAD_INDEX, "block %u of record %llu is not in the index", block,
				rec->seq);
		return;
	}
	/* A promoted copy is in no record.  It is the HDD's: read_block(). */
	if (map->use & LC_ADMIT_PROMOTED && !needed && !map->dirty && !map->lost &&
	    map->mask == 0xff && (t->next->clean || world->params.rescan) &&
	    world->vol->c.ring->segments[map->slot / SEG_SLOTS].number < t->next->next_segment)
		return;
	for (i = 0; rec && i < rec->nr_slots; i++) {
		if (rec->entries[i].used && rec->entries[i].block == block)
			break;
	}
	if (!rec)
		trouble(BAD_INDEX, "block %u is in the index but was discarded", block);
	else if (map->slot != slot_of(rec, kept_place(t, rec), i) ||
		 map->mask != rec->entries[i].mask || map->lost)
		trouble(BAD_INDEX, "block %u is mapped to slot %u mask %02x instead of record %llu",
			block, map->slot, map->mask, rec->seq);
	else if (!needed && (map->dirty || (!t->next->clean && !world->params.rescan)))
		trouble(BAD_INDEX, "block %u is mapped to record %llu below the tail", block,
			rec->seq);
}

bool lookup(u64 block, struct lc_mapping *map)
{
	struct lc_index *index = world->vol->c.index;
	u32 bucket = lc_index_lock(index, block);
	bool found = lc_index_lookup(index, bucket, block, map);

	lc_index_unlock(index, bucket);
	return found;
}

/* What a user reads in a block; @clean: is the HDD to hold the same? */
static void read_block(struct trial *t, u32 block, const struct lc_mapping *map, bool bytes)
{
	const struct dpage *hdd, *ssd = NULL;
	u32 s, *seen = t->seen + block * PAGE_SECTORS;

	hdd = image_page(&t->next->view[HDD], hdd_page(block));
	if (map)
		ssd = image_page(&t->next->view[SSD], map->slot +
				 (world->format.geo.segments_offset >> LC_SLOT_SHIFT));
	for (s = 0; s < PAGE_SECTORS; s++) {
		const struct dpage *page = map && map->mask & 1u << s ? ssd : hdd;
		const struct op *op = &world->ops[page->tags[s]];
		const u32 *words = (const u32 *)(page->bytes + (s << 9));

		seen[s] = page->tags[s];
		if (page == ssd && !map->dirty && hdd->tags[s] != seen[s] &&
		    /* Then the HDD may change what it returns. */
		    !discarded_since(block, min(hdd->tags[s], seen[s]), t->nr_ops))
			trouble(BAD_INDEX, "block %u is clean but not on the HDD", block);
		if (page == ssd && map->dirty && hdd->tags[s] != seen[s] && t->life &&
		    t->life->left <= t->crash->at)
			trouble(BAD_P1, "block %u is only on the SSD, although the log was left",
				block);
		if (!seen[s])
			continue;
		if (seen[s] > t->nr_ops || op->nr || op->block != block || !(op->mask & 1u << s))
			trouble(BAD_P3, "block %u sector %u holds bytes of something else", block,
				s);
		else if (op->dead)
			trouble(BAD_P2, "block %u sector %u: lost write %u came back", block, s,
				seen[s]);
		if (bytes && (words[0] != seen[s] || words[1] != block || words[2] != s ||
			      words[127] != ~seen[s]))
			trouble(BAD_P3, "block %u sector %u holds other bytes than written",
				block, s);
		if (world->trouble)
			return;
	}
}

static void judge_blocks(struct trial *t, bool bytes)
{
	u32 map_of[MAX_VOLUME], block;
	struct lc_mapping map;
	bool found;

	memcpy(map_of, world->base_map, sizeof(map_of));
	if (t->last_seq >= world->base_seq)
		map_apply(map_of, world->base_seq, t->last_seq);
	for (block = world->first_block; block < world->end_block && !world->trouble; block++) {
		found = lookup(block, &map);
		read_block(t, block, found ? &map : NULL, bytes);
		judge_mapping(t, block, found ? &map : NULL,
			      map_of[block] == NONE ? NULL : &world->recs[map_of[block]]);
	}
}

/* --- the user ---------------------------------------------------------------------- */

static void judge_user(const struct trial *t)
{
	struct content expected = world->base;
	u32 first = world->first_block * PAGE_SECTORS, end = world->end_block * PAGE_SECTORS;
	u32 last = 0, s, n;

	for (s = first; s < end; s++) {
		if (!world->ops[t->seen[s]].around)
			last = max(last, t->seen[s]);
	}
	/* A write around the log may cover the last one that is in it. */
	for (n = world->base_op + 1; (world->params.leave || world->params.around) && n <= t->nr_ops;
	     n++) {
		const struct op *op = &world->ops[n];
		u64 seq = op->around || op->dead || op->nr || op->rec == NONE ? 0 :
			  world->recs[op->rec].seq;

		if (seq && seq <= t->last_seq)
			last = max(last, n);
	}
	/* Of several lanes each has its own order: what is there the log says (L11). */
	if (world->params.lanes > 1)
		last = t->nr_ops;
	for (n = world->base_op + 1; n <= t->nr_ops && !world->trouble; n++) {
		const struct op *op = &world->ops[n];

		/* One with FUA that went around the log in part has promised itself only. */
		if (n > t->floor_op && !(op->fua && op->acked <= t->crash->at))
			continue;
		if (op->around || op_survives(n, last, t->last_seq))
			continue;
		/* Of several lanes a FLUSH closes what needs it: others may still wait (G7). */
		if (op->fua && op->acked > t->crash->at)
			continue;
		/* Discards after a lost write make its loss void. */
		if (!op->nr && !op->dead && !discarded_since(op->block, n, t->nr_ops))
			trouble(BAD_P1, "write %u to block %u was acknowledged and is gone", n,
				op->block);
	}
	content_apply(&expected, world->base_op, t->nr_ops, last, t->last_seq, t->crash->at);
	for (s = first; s < end && !world->trouble; s++) {
		if (expected.weak[s] && world->ops[expected.op[s]].acked <= t->crash->at &&
		    t->seen[s] && !world->ops[t->seen[s]].stays)
			trouble(BAD_P1, "block %u sector %u: write %u was discarded and is back",
				s / PAGE_SECTORS, s % PAGE_SECTORS, t->seen[s]);
		if (expected.weak[s] ? t->seen[s] < expected.op[s] :
				       t->seen[s] == expected.op[s])
			continue;
		/* What nobody was promised may be there, or not. */
		if (t->seen[s] > expected.op[s] && world->ops[t->seen[s]].around)
			continue;
		trouble(expected.op[s] <= t->floor_op ? BAD_P1 : BAD_P2,
			"block %u sector %u: write %u is gone, %u is there, write %u survived",
			s / PAGE_SECTORS, s % PAGE_SECTORS, expected.op[s], t->seen[s], last);
	}
}

static struct trial t;

/* The scan after a crash, to its end. */
static void scan_again(void)
{
	struct work_struct *work;

	while (!world->trouble && (work = worker_nth(WORKER_SCAN, 0)))
		shim_run(work);
}

/**
 * judge_clean() - does the HDD hold what was promoted, or the scan after a crash brought back?
 * @life: its actions are used up
 *
 * Not looked at: blocks that something changes right now.
 */
void judge_clean(const struct life *life)
{
	struct lc_cache *c = &world->vol->c;
	struct lc_mapping map;
	u32 block, s;

	if (life->phase != PHASE_RUN || (!world->params.rescan && !world->params.cache))
		return;
	for (block = world->first_block; block < world->end_block; block++) {
		const struct dpage *hdd, *ssd;

		if (!lookup(block, &map) || map.dirty ||
		    (c->ring->segments[map.slot / SEG_SLOTS].number >= life->next_segment &&
		     !(map.use & LC_ADMIT_PROMOTED)) ||
		    lc_claims_discards(c->claims, block, block))
			continue;
		hdd = image_page(&life->view[HDD], hdd_page(block));
		ssd = image_page(&life->view[SSD], map.slot +
				 (world->format.geo.segments_offset >> LC_SLOT_SHIFT));
		for (s = 0; s < PAGE_SECTORS; s++) {
			if (map.mask & 1u << s && hdd->tags[s] != ssd->tags[s] &&
			    /* As in read_block(): in a crash the HDD may have lost the discard. */
			    !discarded_since(block, min(hdd->tags[s], ssd->tags[s]),
					     world->nr_ops))
				trouble(BAD_INDEX, "block %u is clean but not on the HDD", block);
		}
	}
}

void judge_saw(u32 op, u32 *same, u32 *older)
{
	u32 first = world->ops[op].block * PAGE_SECTORS, s;

	*same = 0;
	*older = 0;
	for (s = 0; s < PAGE_SECTORS; s++) {
		if (!(world->ops[op].mask & 1u << s))
			continue;
		*same += t.seen[first + s] == op;
		*older += t.seen[first + s] < op;
	}
}

/**
 * judge() - is the state that was recovered right?
 * @life: the life that crashed, or NULL: just formatted
 * @crash: how
 * @next: the life that has started
 * @ret: what its start returned
 * @bytes: compare the bytes with their tags, too
 *
 * Return: the first thing that is wrong; world->why says what.
 */
enum verdict judge(const struct life *life, const struct crash *crash, const struct life *next,
		   int ret, bool bytes)
{
	if (ret) {
		if (next->nr_meta)
			trouble(BAD_MEDIA, "recovery refused, but wrote");
		if (crash->rot != ROT_HEADER && !crash->old)
			trouble(BAD_REFUSED, "the start was refused with error %d", ret);
		return world->trouble;
	}
	t.life = life;
	t.crash = crash;
	t.next = next;
	t.last_seq = next->start_seq;
	t.nr_ops = ops_until(crash->at);
	floor_at(life, crash->at, &t.floor_op, &t.floor_seq);
	if (untold(&t))
		return world->trouble;
	judge_run(&t);
	if (world->params.rescan == 1)
		scan_again();
	if (!world->trouble)
		judge_blocks(&t, bytes);
	if (!world->trouble)
		judge_user(&t);
	memcpy(world->began, t.seen, sizeof(world->began));
	return world->trouble;
}

/* --- what recovery believes in ------------------------------------------------ */

/*
 * The linker puts these between recovery.c and replay.c (--wrap), so that the judge sees
 * which records recovery believes in.
 */
int __real_lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
			    struct lc_replay_result *result);
int __wrap_lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
			    struct lc_replay_result *result);
void __real_lc_replay_truncate(struct lc_replay_log *log, u64 last_seq,
			       struct lc_replay_result *result);
void __wrap_lc_replay_truncate(struct lc_replay_log *log, u64 last_seq,
			       struct lc_replay_result *result);

static void note_kept(const struct lc_replay_log *log)
{
	struct life *life = world->life;
	u32 i;

	life->clean = false;
	life->nr_kept = 0;
	for (i = 0; i < log->nr; i++) {
		const struct lc_replay_record *r = lc_replay_at(log, i);

		if (!r->keep || life->nr_kept == MAX_SEQ)
			continue;
		life->kept[life->nr_kept++] = (struct kept) {
			.seq = r->seq, .segment = lc_replay_segment(log, r),
			.slot = lc_replay_slot(log, r),
		};
	}
}

int __wrap_lc_replay_select(const struct lc_sb *sb, struct lc_replay_log *log,
			    struct lc_replay_result *result)
{
	int ret = __real_lc_replay_select(sb, log, result);

	note_kept(log);
	return ret;
}

void __wrap_lc_replay_truncate(struct lc_replay_log *log, u64 last_seq,
			       struct lc_replay_result *result)
{
	__real_lc_replay_truncate(log, last_seq, result);
	note_kept(log);
}
