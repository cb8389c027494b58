// SPDX-License-Identifier: GPL-2.0-only
/*
 * Crash states.
 *
 * A power cut leaves of each command that is not durable all, nothing, the first or last
 * sectors, or any of them, each command by itself.  A warm crash, where the kernel dies
 * and the disks do not, leaves everything that was completed, still volatile, and any part
 * of what was in flight: the next life begins with these in the caches.  Rot is a durable
 * sector that went bad besides.  What a power cut tore of a record may be unreadable, too.
 * An old disk is a copy of before one of the lives, put in the
 * place of the disk after the power cut.
 */
#include "crash.h"
#include "history.h"
#include "life.h"

#define CARRIED		1000	/* above any ordinal of a command submitted in the life */

/* --- drawing ------------------------------------------------------------------ */

static u32 first_failure(const struct life *life)
{
	u32 i;

	for (i = 0; i < life->nr_done; i++) {
		if (life->cmds[life->done[i]].failed)
			return life->cmds[life->done[i]].completed;
	}
	return NEVER;
}

static u32 draw_time(const struct life *life, struct rng *rng)
{
	u32 end = life->now, at;

	switch (rnd(rng, 8)) {
	case 0:
		return end;
	case 1:
		/* Recovery itself is interrupted. */
		return rnd(rng, life->started + 1);
	case 2:
	case 3:
		/* Right behind an acknowledgement. */
		if (life->nr_acks) {
			at = life->acks[rnd(rng, life->nr_acks)].time + rnd(rng, 2);
			return min(at, end);
		}
		break;
	case 4:
	case 5:
		/* When failed records are written elsewhere, or have been. */
		at = first_failure(life);
		if (at < end)
			return at + rnd(rng, end - at + 1);
		break;
	}
	return rnd(rng, end + 1);
}

static struct fate draw_fate(const struct life *life, const struct crash *crash, u32 index,
			     struct rng *rng)
{
	const struct cmd *cmd = &life->cmds[index];
	u32 sectors = cmd_sectors(cmd);
	struct rng mine;
	struct fate fate = {
		.time = cmd->submitted - life->started, .ordinal = cmd->ordinal,
		.kind = FATE_DROPPED,
	};

	switch (sectors > 1 ? rnd(rng, 7) : 0) {
	case 3:
		fate.kind = FATE_FIRST;
		fate.arg = 1 + rnd(rng, sectors - 1);
		break;
	case 4:
		fate.kind = FATE_LAST;
		fate.arg = 1 + rnd(rng, sectors - 1);
		break;
	case 5:
		/* The header, if it is a record, and no data. */
		fate.kind = FATE_FIRST;
		fate.arg = min(sectors - 1, 1u * PAGE_SECTORS);
		break;
	case 6:
		fate.kind = FATE_SOME;
		fate.arg = rnd(rng, 1u << 30);
		break;
	}
	/* By numbers of its own: what a seed is else does not change. */
	mine.state = ~rng->state;
	if (cmd->owner == OWNER_RECORD && !crash->warm && chance(&mine, 8)) {
		fate.kind = FATE_UNREADABLE;
		fate.arg = rnd(&mine, 1u << 30);
	}
	return fate;
}

static void add_fate(struct crash *crash, const struct fate *fate)
{
	if (crash->nr_fates < MAX_FATES)
		crash->fates[crash->nr_fates++] = *fate;
}

static void draw_fates(const struct life *life, struct crash *crash, struct rng *rng)
{
	u32 undecided[MAX_CMDS], nr = 0, i, one, percent;
	bool failed_only = false;
	struct fate fate;

	for (i = 0; i < life->nr_cmds; i++) {
		const struct cmd *cmd = &life->cmds[i];

		if (!cmd_undecided(cmd, crash->at))
			continue;
		/* What was completed is still in the disk's cache then. */
		if (crash->warm && cmd->completed <= crash->at && !cmd->failed &&
		    cmd->voided > crash->at)
			continue;
		undecided[nr++] = i;
	}
	if (!nr)
		return;
	one = rnd(rng, nr);
	switch (rnd(rng, 8)) {
	case 0:				/* all kept */
		return;
	case 1:				/* all dropped */
		percent = 100;
		break;
	case 2:				/* one not kept whole */
		fate = draw_fate(life, crash, undecided[one], rng);
		add_fate(crash, &fate);
		return;
	case 3:				/* only one kept, at least partly */
		for (i = 0; i < nr; i++) {
			fate = draw_fate(life, crash, undecided[i], rng);
			if (i != one)
				fate.kind = FATE_DROPPED;
			if (i != one || fate.kind != FATE_DROPPED)
				add_fate(crash, &fate);
		}
		return;
	case 4:				/* of what failed nothing, or not much */
		failed_only = true;
		percent = 80 + rnd(rng, 21);
		break;
	default:
		percent = 10 + rnd(rng, 80);
	}
	for (i = 0; i < nr; i++) {
		if (failed_only && !life->cmds[undecided[i]].failed)
			continue;
		if (!chance(rng, percent))
			continue;
		fate = draw_fate(life, crash, undecided[i], rng);
		if (percent == 100)
			fate.kind = FATE_DROPPED;
		add_fate(crash, &fate);
	}
}

/* One of the last, or one whose seq a dead record has, too (L2), or any. */
static u64 draw_seq(u64 first, u64 last, struct rng *rng)
{
	u32 i = rnd(rng, world->nr_recs), n;

	/* Of the last ones few others tell. */
	if (chance(rng, 50))
		return last - 1 - rnd(rng, min(last - first, 4ULL));
	for (n = 0; n < world->nr_recs && chance(rng, 99); n++) {
		u64 seq = world->recs[(i + n) % world->nr_recs].seq;

		if (seq >= first && seq < last && world->hist[seq] != (i + n) % world->nr_recs)
			return seq;
	}
	return first + rnd(rng, last - first);
}

/* Is a superblock or mark being written, or not durable yet? */
static bool meta_in_flight(const struct life *life, u32 at)
{
	u32 i;

	for (i = 0; i < life->nr_cmds; i++) {
		const struct cmd *cmd = &life->cmds[i];

		if (cmd->owner == OWNER_SYNC && cmd->submitted <= at &&
		    (cmd->flush ? cmd->completed : cmd->durable) > at)
			return true;
	}
	return false;
}

static void draw_rot(const struct life *life, struct crash *crash, struct rng *rng)
{
	u64 first = life->tail_seq, last = first;
	bool rewritten = false;

	crash->rot = ROT_NONE + 1 + rnd(rng, NR_ROTS - 1);
	crash->rot_arg = rnd(rng, 2);
	/* During a start nobody knows yet which life the superblock will name. */
	if (life->started > crash->at)
		crash->rot = ROT_NONE;
	if (crash->rot == ROT_MARK && world->params.layout == LAYOUT_NO_MARK)
		crash->rot = ROT_SUPERBLOCK;
	if (crash->rot != ROT_HEADER)
		return;
	while (last < MAX_SEQ - 1 && last <= world->last_seq &&
	       crash_rot_place(rec_of_seq(last), crash->at) != NONE)
		rewritten |= rec_of_seq(last++)->nr_places > 1;
	/* Recovery does not look everywhere then: see corpus/gap-l4-rewritten.path. */
	if (last == first || rewritten)
		crash->rot = ROT_NONE;
	else
		crash->rot_arg = draw_seq(first, last, rng);
}

/* By numbers of its own: what a seed is else does not change. */
static void draw_old(struct crash *crash, const struct rng *rng)
{
	struct rng mine = { .state = ~rng->state };

	/* Without a mark nothing tells of it but sampled blocks, after a clean stop. */
	if (world->params.layout == LAYOUT_NO_MARK || !world->nr_past || !chance(&mine, 10))
		return;
	crash->old = chance(&mine, 60) ? OLD_HDD : OLD_SSD;
	if (crash->old == OLD_SSD && chance(&mine, 50))
		crash->old = chance(&mine, 60) ? OLD_FORK : OLD_FORKS;
	/* The last ones are those that nearly fit. */
	crash->old_arg = chance(&mine, 50) ? world->nr_past - 1 : rnd(&mine, world->nr_past);
}

/**
 * crash_draw() - draw a crash state of a life
 * @life: the life
 * @crash: gets it
 * @rot: percent of states in which a sector is damaged besides; 0: nor is a disk an old one
 * @rng: random numbers
 */
void crash_draw(const struct life *life, struct crash *crash, u32 rot, struct rng *rng)
{
	crash->at = draw_time(life, rng);
	crash->warm = chance(rng, 12);
	/*
	 * What a start reads of a disk's cache after a warm crash it makes durable first of
	 * all.  Before that the power may go and take part of it away again; then more may
	 * survive than it saw, without the torn second copy of a record, say.
	 */
	if (!crash->at && !crash->warm && life->carried)
		crash->at = 1;
	crash->rot = ROT_NONE;
	crash->old = OLD_NONE;
	crash->nr_fates = 0;
	if (!crash->warm && chance(rng, rot))
		draw_rot(life, crash, rng);
	if (crash->rot == ROT_NONE || (crash->rot != ROT_HEADER && !meta_in_flight(life, crash->at)))
		draw_fates(life, crash, rng);
	if (rot && !crash->warm && crash->rot == ROT_NONE)
		draw_old(crash, rng);
}

/* --- making the disks ------------------------------------------------------------ */

static bool sector_kept(const struct fate *fate, u32 i, u32 nr)
{
	switch (fate->kind) {
	case FATE_KEPT:
		return true;
	case FATE_FIRST:
		return i < fate->arg;
	case FATE_LAST:
		return i + fate->arg >= nr;
	case FATE_SOME:
		return hash_64((u64)fate->arg << 20 | i, 8) & 1;
	}
	return false;
}

/* What is left of each piece, into @masks. */
static void piece_masks(const struct cmd *cmd, const struct fate *fate, u8 *masks)
{
	u32 nr = cmd_sectors(cmd), i, s, n = 0;

	for (i = 0; i < cmd->nr_pieces; i++) {
		masks[i] = 0;
		for (s = 0; s < PAGE_SECTORS; s++) {
			if (cmd->pieces[i].mask & 1u << s && sector_kept(fate, n++, nr))
				masks[i] |= 1u << s;
		}
	}
}

static u32 masks_sectors(const u8 *masks, u32 nr)
{
	u32 sectors = 0;

	while (nr--)
		sectors += hweight8(masks[nr]);
	return sectors;
}

/* A command is in the cache of the disk when the next life begins. */
static void carry(struct life *next, const struct cmd *cmd, bool durable, const u8 *masks)
{
	struct cmd *copy = &next->cmds[next->nr_cmds];
	u32 i;

	*copy = *cmd;
	copy->submitted = 0;
	copy->ordinal = CARRIED + next->nr_cmds;
	copy->completed = 0;
	copy->durable = durable ? 0 : NEVER;
	copy->failed = false;
	copy->voided = NEVER;
	copy->owner = OWNER_SYNC;
	copy->nr_pieces = 0;
	copy->pieces = &next->pieces[next->nr_pieces];
	for (i = 0; i < cmd->nr_pieces; i++) {
		if (!masks[i])
			continue;
		cmd_add_piece(next, copy, cmd->pieces[i].page, masks[i], cmd->pieces[i].from);
		image_put(&next->view[cmd->disk], cmd->pieces[i].page, masks[i],
			  cmd->pieces[i].from);
	}
	next->done[next->nr_done++] = next->nr_cmds++;
	next->carried = true;
}

/* Some pages of it, at least one, cannot be read; the others are there. */
static void leave_unreadable(struct life *next, const struct cmd *cmd, u32 arg)
{
	struct dpage *bad = dpage_new();
	u32 i;

	memset(bad->bytes, 0xbd, sizeof(bad->bytes));
	for (i = 0; i < PAGE_SECTORS; i++)
		bad->tags[i] = TAG_UNREADABLE;
	for (i = 0; i < cmd->nr_pieces; i++) {
		bool gone = i == arg % cmd->nr_pieces || hash_64((u64)arg << 20 | i, 8) & 1;

		image_put(&next->base[cmd->disk], cmd->pieces[i].page,
			  gone ? 0xff : cmd->pieces[i].mask, gone ? bad : cmd->pieces[i].from);
	}
}

struct leaving {
	const struct life *life;
	const struct crash *crash;
	struct life *next;
	bool volatile_seen[NR_DISKS];
};

/* One command takes effect, as far as it does. */
static void leave(struct leaving *l, u32 index, bool carrying)
{
	const struct cmd *cmd = &l->life->cmds[index];
	struct fate fate = { .kind = FATE_KEPT };
	bool durable = cmd->durable <= l->crash->at;
	u8 masks[MAX_CMD_PIECES];
	u32 i;

	if (!cmd->nr_pieces || (durable && cmd->failed))
		return;
	/* What follows something volatile keeps its place behind it. */
	l->volatile_seen[cmd->disk] |= l->crash->warm && !durable;
	if (carrying != l->volatile_seen[cmd->disk])
		return;
	for (i = 0; !durable && i < l->crash->nr_fates; i++) {
		if (l->crash->fates[i].time == cmd->submitted - l->life->started &&
		    l->crash->fates[i].ordinal == cmd->ordinal)
			fate = l->crash->fates[i];
	}
	if (fate.kind == FATE_UNREADABLE && !carrying && cmd->nr_pieces) {
		say("       write %u:%u to page %u of the SSD cannot be read", cmd->submitted,
		    cmd->ordinal, cmd->pieces[0].page);
		leave_unreadable(l->next, cmd, fate.arg);
		return;
	}
	piece_masks(cmd, &fate, masks);
	if (!durable)
		say("       of write %u:%u to page %u of the %s %u sectors remain", cmd->submitted,
		    cmd->ordinal, cmd->pieces[0].page, cmd->disk == SSD ? "SSD" : "HDD",
		    masks_sectors(masks, cmd->nr_pieces));
	if (carrying) {
		carry(l->next, cmd, durable, masks);
		return;
	}
	for (i = 0; i < cmd->nr_pieces; i++)
		image_put(&l->next->base[cmd->disk], cmd->pieces[i].page, masks[i],
			  cmd->pieces[i].from);
}

static void leave_all(struct leaving *l, bool carrying)
{
	const struct life *life = l->life;
	u32 i;

	memset(l->volatile_seen, 0, sizeof(l->volatile_seen));
	for (i = 0; i < life->nr_done; i++) {
		if (life->cmds[life->done[i]].completed <= l->crash->at)
			leave(l, life->done[i], carrying);
	}
	for (i = 0; i < life->nr_cmds; i++) {
		if (life->cmds[i].submitted <= l->crash->at &&
		    life->cmds[i].completed > l->crash->at)
			leave(l, i, carrying);
	}
}

/* The place of a record that was submitted last, or NONE. */
u32 crash_rot_place(const struct rec *rec, u32 at)
{
	u32 i = rec->nr_places;

	while (i--) {
		if (rec->places[i].time <= at)
			return i;
	}
	return NONE;
}

static u64 rot_address(const struct crash *crash, enum disk_id *disk)
{
	const struct lc_sb *sb = &world->format;
	const struct place *place;
	const struct rec *rec;

	*disk = SSD;
	switch (crash->rot) {
	case ROT_HEADER:
		rec = rec_of_seq(crash->rot_arg);
		place = &rec->places[crash_rot_place(rec, crash->at)];
		return lc_format_log_address(&sb->geo, place->segment, place->slot);
	case ROT_SUPERBLOCK:
		return lc_format_sb_address(&sb->geo, crash->rot_arg);
	case ROT_MARK:
		*disk = HDD;
		return lc_format_mark_address(sb->mark_offset, crash->rot_arg);
	default:
		return sb->geo.ckpt_offset;
	}
}

/* What is to rot may not be there: not written yet, or its place used again. */
static bool can_rot(const struct life *life, const struct crash *crash, const struct life *next)
{
	const struct lc_record_header *raw;
	enum disk_id disk;

	/* Of what is there twice one may rot, unless the other one is just being written. */
	if (crash->rot != ROT_HEADER)
		return crash->rot != ROT_NONE &&
		       !(crash->nr_fates && meta_in_flight(life, crash->at));
	if (!crash->rot_arg || crash->rot_arg > world->last_seq ||
	    crash_rot_place(rec_of_seq(crash->rot_arg), crash->at) == NONE)
		return false;
	raw = (const void *)image_page(&next->base[SSD],
				       rot_address(crash, &disk) >> LC_SLOT_SHIFT)->bytes;
	return !memcmp(raw->magic, LC_RECORD_MAGIC, LC_MAGIC_LEN) &&
	       le64_to_cpu(raw->seq) == crash->rot_arg;
}

static void rot(const struct crash *crash, struct life *next)
{
	enum disk_id disk;
	u32 page = rot_address(crash, &disk) >> LC_SLOT_SHIFT;
	struct dpage *bad = dpage_new();

	*bad = *image_page(&next->base[disk], page);
	/* Summed in each kind of block, however few entries a record has. */
	bad->bytes[offsetof(struct lc_record_header, wall_clock)] ^= 0x40;
	say("       page %u of the %s rots", page, disk == SSD ? "SSD" : "HDD");
	next->base[disk].pages[page] = bad;
}

/*
 * The copy was used for a start of its own, which was cut between superblock and mark.  Such a start
 * sees what the start of that life saw, so its superblock is the same, but for the owner (T5).
 */
static void fork_ssd(const struct crash *crash, struct life *next)
{
	struct lc_sb sb = world->past[crash->old_arg].sb;
	u32 i;

	say("       which %s", crash->old == OLD_FORK ? "was started" : "was started twice");
	sb.owner = ~sb.owner;
	sb.epoch += crash->old == OLD_FORKS;
	for (i = 0; i < LC_SB_COPIES; i++) {
		struct dpage *page = dpage_new();

		memset(page->tags, 0xff, sizeof(page->tags));
		lc_sb_encode(&sb, i, (struct lc_superblock *)page->bytes);
		next->base[SSD].pages[lc_format_sb_address(&sb.geo, i) >> LC_SLOT_SHIFT] = page;
	}
}

static void put_back(const struct crash *crash, struct life *next)
{
	enum disk_id disk = crash->old == OLD_HDD ? HDD : SSD;

	say("       the %s is a copy from before life %u", disk == SSD ? "SSD" : "HDD",
	    crash->old_arg);
	memcpy(next->base[disk].pages, world->past[crash->old_arg].disks[disk].pages,
	       world->disk_pages[disk] * sizeof(void *));
	if (crash->old == OLD_FORK || crash->old == OLD_FORKS)
		fork_ssd(crash, next);
}

/**
 * crash_apply() - the disks a crash leaves
 * @life: the life that ended
 * @crash: how
 * @next: gets them, prepared to be started
 */
void crash_apply(const struct life *life, const struct crash *crash, struct life *next)
{
	struct leaving l = { .life = life, .crash = crash, .next = next };
	u32 d;

	say("%6u crash: %s", crash->at, crash->warm ? "the kernel" : "the power");
	for (d = 0; d < NR_DISKS; d++)
		memcpy(next->base[d].pages, life->base[d].pages,
		       world->disk_pages[d] * sizeof(void *));
	leave_all(&l, false);
	if (can_rot(life, crash, next))
		rot(crash, next);
	if (crash->old && crash->old_arg < world->nr_past)
		put_back(crash, next);
	life_prepare(next);
	if (crash->warm)
		leave_all(&l, true);
}
