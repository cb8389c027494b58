// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sequential streams of bios.  See stream.h.
 *
 * A stream that is continued keeps its entry; a new one takes the entry of the one that was begun
 * the longest ago, unless that one has been continued since the hand came by.
 */
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "bio/stream.h"

#define CONTINUED	0x80000000u	/* in sectors[]: since the hand came by */

void lc_stream_init(struct lc_streams *streams)
{
	memset(streams, 0, sizeof(*streams));
}

/* Return: an entry that may be taken: the hand gives each stream that goes on one more round. */
static u32 victim(struct lc_streams *streams)
{
	u32 i = READ_ONCE(streams->next), tries;

	for (tries = 0; tries < LC_STREAMS; tries++) {
		u32 sectors;

		i = (i + 1) % LC_STREAMS;
		sectors = READ_ONCE(streams->sectors[i]);
		if (!(sectors & CONTINUED))
			break;
		WRITE_ONCE(streams->sectors[i], sectors & ~CONTINUED);
	}
	WRITE_ONCE(streams->next, i);
	return i;
}

u32 lc_stream_note(struct lc_streams *streams, u64 sector, u32 nr)
{
	u32 i, sectors;

	for (i = 0; i < LC_STREAMS; i++) {
		/* No bio ends where the first sector begins: 0 is an empty entry. */
		if (READ_ONCE(streams->ends[i]) != sector || !sector)
			continue;
		sectors = READ_ONCE(streams->sectors[i]) & ~CONTINUED;
		sectors = min(sectors + nr, CONTINUED - 1);
		WRITE_ONCE(streams->sectors[i], sectors | CONTINUED);
		WRITE_ONCE(streams->ends[i], sector + nr);
		return sectors;
	}
	i = victim(streams);
	WRITE_ONCE(streams->sectors[i], nr);
	WRITE_ONCE(streams->ends[i], sector + nr);
	return nr;
}
