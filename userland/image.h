/* SPDX-License-Identifier: GPL-2.0-only */
/* Superblocks and marks as found on the media. */
#ifndef LC_IMAGE_H
#define LC_IMAGE_H

#include "device.h"
#include "format.h"

/* All three copies of a superblock; err[i] is 0 or what lc_sb_decode() said of copy i. */
struct image {
	const struct device *dev;
	struct lc_sb copy[LC_SB_COPIES];
	int err[LC_SB_COPIES];
	const char *why[LC_SB_COPIES];
	bool has_magic[LC_SB_COPIES];
	int best;		/* front copy with the highest sb_seq, -1 if both are bad */
};

struct mark_pair {
	struct lc_mark_info copy[2];
	int err[2];
	const char *why[2];
	bool has_magic[2];
	/* Of an interrupted lc-format or lc-detach, torn after its first sector; see attach.c. */
	bool head_only[2];
	u64 offset;
	int best;		/* abandoned wins, then the higher mark_seq; -1 if both are bad */
};

/*
 * Read all copies of the superblock and choose the best.  @dev must outlive @img.  Return: 0 also
 * if no copy is valid (img->best is -1 then), or a negative errno if the device fails.
 */
int image_read(struct image *img, const struct device *dev);
/* The superblock to believe, NULL if there is none. */
const struct lc_sb *image_sb(const struct image *img);
/* Does any copy have our magic, even if it is damaged? */
bool image_any_magic(const struct image *img);
/* Can a front copy not be read, so that nothing proves that there is none? */
bool image_unreadable(const struct image *img);
/* Did a newer version write a copy?  Then the data is of that version, even if others are older. */
bool image_newer(const struct image *img);
/* Write one copy and make it durable.  0, or a negative errno after complaining. */
int image_write_sb(const struct device *dev, const struct lc_sb *sb, unsigned int copy);
/* Where the third copy is if only the device's size is known. */
u64 image_third_address(const struct device *dev);

/*
 * Read both copies of the mark in the area at @offset.  Return: 0 also if there is no mark
 * (marks->best is -1 then) or if a copy cannot be read; a negative errno if the device fails.
 */
int marks_read(struct mark_pair *marks, const struct device *dev, u64 offset);
/* The mark to believe, NULL if there is none. */
const struct lc_mark_info *marks_best(const struct mark_pair *marks);
/* As image_any_magic() and image_unreadable(). */
bool marks_any_magic(const struct mark_pair *marks);
bool marks_unreadable(const struct mark_pair *marks);
/* Is it of this format run of this cache? */
bool mark_belongs(const struct lc_mark_info *mark, const struct lc_sb *sb);
/* Where --in-place puts the mark. */
u64 mark_offset_in_place(u64 backing_bytes);

/*
 * Read block @index of the checkpoint of a clean stop.  @raw: its bytes, verified; each item is to
 * be decoded.  @nr: how many items it has, at least 1; 0 on error.  Return: 0, or a negative errno
 * and *why.
 */
int image_ckpt_block(const struct device *dev, const struct lc_sb *sb, u64 index,
		     struct lc_ckpt_block *raw, u32 *nr, const char **why);
/*
 * Number of the segment that was last opened in a position before a clean stop, 0 if none was.
 */
u64 image_segment_at(const struct lc_sb *sb, u64 position);

/* 0: not formatted or empty, 1: may hold data no hard disk has; *why says which. */
int image_dirty(const struct image *img, const char **why);

#endif
