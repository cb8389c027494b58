/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sequential streams of bios: how long is the one that a bio continues?  Pure: no lock, no I/O.
 *
 * A long sequential read gains little from the SSD, and would push out what gains much.  So the
 * ends of the last LC_STREAMS streams are kept, by place.  A bio that begins where a stream ends
 * continues it, whoever sends it: a stream that moves from one task to another is still one seek.
 *
 * Invariants
 *  ST1 The length that a bio is told is never more than that of bios which followed one another
 *      without a gap, this one included, unless two tasks race: then it is a hint.
 *  ST2 A call looks at LC_STREAMS entries, which are four cache lines, and writes at most one.
 */
#ifndef LC_STREAM_H
#define LC_STREAM_H

#include <linux/types.h>

#define LC_STREAMS	32u

/* No lock: entries are read and written with READ_ONCE() and WRITE_ONCE(), and may be mixed. */
struct lc_streams {
	u64 ends[LC_STREAMS];		/* the sector after the last bio, or 0 */
	u32 sectors[LC_STREAMS];	/* how long the stream is */
	u32 next;			/* the entry that a new stream takes */
};

/* No stream is known.  No other task uses @streams. */
void lc_stream_init(struct lc_streams *streams);

/**
 * lc_stream_note() - a bio comes
 * @streams: of the volume, of one direction
 * @sector: its first
 * @nr: how many
 *
 * Any context.  Return: sectors of the stream so far, those of the bio included.
 */
u32 lc_stream_note(struct lc_streams *streams, u64 sector, u32 nr);

#endif /* LC_STREAM_H */
