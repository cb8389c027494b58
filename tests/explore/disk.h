/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The modelled disks.
 *
 * A disk is an array of pointers to pages of 4 KiB that never change once they are on it,
 * so a copy of a disk is a copy of the pointers, and a torn write makes at most a few new
 * pages.  A NULL pointer is a page of zeros.
 *
 * Both disks have a volatile cache, the SSD in most paths.  A write command is
 *   in flight   from its submission to its completion; a power cut may keep any sectors
 *   volatile    from then until a FLUSH that was submitted later has completed; the same
 *   durable     from then on; at once on completion if it had FUA, or without such a cache
 * and a command that failed is volatile for ever.  Commands take effect in the order of
 * their completion; what is in flight at a crash comes last.
 *
 * Besides its bytes every page says of each sector which write of the user put it there.
 * The tags are copied wherever the bytes are copied, so the judge need not read the bytes
 * of each sector of each state; see judge().
 */
#ifndef EXPLORE_DISK_H
#define EXPLORE_DISK_H

#include <linux/types.h>

#define PAGE_SECTORS	8
#define NEVER		0xffffffffu
#define TAG_META	0xffffffffu	/* not data of the user; 0: never written */
#define TAG_UNREADABLE	0xfffffffeu	/* an error when it is read */
#define MAX_CMDS	1536
#define MAX_PIECES	12288
#define MAX_CMD_PIECES	128

enum disk_id { SSD, HDD, NR_DISKS };

struct dpage {
	u8 bytes[4096];
	u32 tags[PAGE_SECTORS];		/* number of the user's operation */
} __attribute__((aligned(64)));

struct piece {
	u32 page;			/* of the disk */
	u8 mask;			/* sectors of it */
	const struct dpage *from;
};

/* What a command is for, and who waits for it. */
enum cmd_owner {
	OWNER_SYNC,			/* code of the module that sleeps: superblock, mark, ... */
	OWNER_READ,
	OWNER_RECORD,
	OWNER_LOG_FLUSH,
	OWNER_WRITEBACK,
	OWNER_WRITEBACK_FLUSH,
	OWNER_DISCARD,
	OWNER_AROUND,			/* a user's write around the log, or its FLUSH */
	OWNER_THROUGH,			/* such a write by promote.c */
	OWNER_GROUP,			/* of promoted blocks, or its FLUSH */
};

struct bio;

struct cmd {
	u8 disk;
	u8 owner;
	bool flush;			/* FLUSH without data; else a read or write */
	bool fua;
	bool failed;
	u32 submitted;			/* times: number of actions done in this life */
	u32 ordinal;			/* among the commands submitted at that time */
	u32 completed;
	u32 durable;
	u32 voided;			/* by a FLUSH that failed: volatile for ever */
	u32 nr_pieces;
	struct piece *pieces;
	/* OWNER_RECORD: index, place; OWNER_DISCARD: which one; OWNER_AROUND: first operation */
	u32 rec;
	u32 place;
	struct bio *bio;		/* or NULL */
	void (*told)(void *arg);	/* called if it fails, or NULL */
	void *told_arg;
};

struct image {
	const struct dpage **pages;
};

struct life;

/* Memory for pages: a stack. */
struct dpage *dpage_new(void);
u32 dpage_mark(void);
void dpage_release(u32 mark);
bool dpage_short(void);

const struct dpage *image_page(const struct image *image, u32 page);
void image_put(struct image *image, u32 page, u8 mask, const struct dpage *from);

struct cmd *cmd_new(struct life *life, enum disk_id disk, enum cmd_owner owner);
void cmd_add_piece(struct life *life, struct cmd *cmd, u32 page, u8 mask,
		   const struct dpage *from);
void cmd_complete(struct life *life, struct cmd *cmd);
void cmd_fail(struct life *life, struct cmd *cmd);
u32 cmd_sectors(const struct cmd *cmd);

/* What a power cut at @at may do to it. */
static inline bool cmd_undecided(const struct cmd *cmd, u32 at)
{
	return cmd->nr_pieces && cmd->submitted <= at && cmd->durable > at;
}

#endif /* EXPLORE_DISK_H */
