/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which order may records and groups be believed that are read from the end of the log down?
 *
 * The scan after a crash (life/warmup.c) reads segments from the highest number down, and adds what
 * their chains of headers lead to.  lc_backscan_next() gives back what may be taken, the newest
 * first.  It holds back what something newer may still be missing for (WS1, WS2).  So with one lane
 * a segment is added and taken at once; with several, a few are held.
 *
 * Pure, like format.h.  One task uses it.
 *
 *  BS1 need falls by one with each record that is given back.  It is the highest seq that was not.
 *  BS2 All records of epoch that are taken from now on have seqs from first_seq up to need; those
 *      of lower epochs are below first_seq.
 *  BS3 Nothing of epoch, or of a lower one, exists in segment ceiling or above.
 */
#ifndef LC_BACKSCAN_H
#define LC_BACKSCAN_H

#include "format.h"

#define LC_BACKSCAN_MOST	16384u	/* held back at once */

struct lc_backscan_item {
	u64 key;	/* seq of a record; of a group, the highest seq that is not newer */
	u64 epoch;
	u64 first_seq;	/* of the epoch */
	u64 segment;	/* number */
	u64 start;	/* record: the lowest segment of higher seqs; group: its number */
	u32 slot;	/* of the segment */
	bool group;
};

struct lc_backscan {
	struct lc_backscan_item *items;	/* of the owner, LC_BACKSCAN_MOST; a heap */
	u32 nr;
	u64 need;	/* BS1 */
	u64 epoch;	/* met last */
	u64 first_seq;	/* BS2 */
	u64 ceiling;	/* BS3 */
	u64 lowest;	/* epoch that may be held */
	u64 number;	/* highest of a group of this epoch that was given back */
	bool ended;	/* nothing more is believed */
};

/**
 * lc_backscan_init() - nothing was read yet
 * @b: items is set
 * @sb: of the life that scans
 * @first_segment: of this life
 */
void lc_backscan_init(struct lc_backscan *b, const struct lc_sb *sb, u64 first_segment);

/**
 * lc_backscan_add() - a header was read
 * @b: the scan
 * @info: as lc_record_decode() or lc_group_decode() has read it
 * @group: whether it is one; if its number is 0, it is never taken
 *
 * Of segments that fall, each once.  Return: false if there is too much; the scan has ended then.
 */
bool lc_backscan_add(struct lc_backscan *b, const struct lc_record_info *info, bool group);

/**
 * lc_backscan_next() - take what is next
 * @b: the scan
 * @item: gets it
 *
 * Return: false if there is none before more is added.
 */
bool lc_backscan_next(struct lc_backscan *b, struct lc_backscan_item *item);

/* Return: the highest segment of which something was added and not taken, 0 if there is none. */
u64 lc_backscan_held(const struct lc_backscan *b);

/*
 * Is all of a group on the SSD, if its header is?  Then another one of its life was sent after it
 * (WS8).  Else its checksums tell.  @group: just given back.
 */
bool lc_backscan_whole(struct lc_backscan *b, const struct lc_backscan_item *group);

#endif /* LC_BACKSCAN_H */
