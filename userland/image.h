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
	/* Of an interrupted lc-format or lc-detach, torn behind its first sector; see attach.c. */
	bool head_only[2];
	u64 offset;
	int best;		/* abandoned wins, then the higher mark_seq; -1 if both are bad */
};

int image_read(struct image *img, const struct device *dev);
const struct lc_sb *image_sb(const struct image *img);
bool image_any_magic(const struct image *img);
bool image_unreadable(const struct image *img);
bool image_newer(const struct image *img);
int image_write_sb(const struct device *dev, const struct lc_sb *sb, unsigned int copy);
u64 image_third_address(const struct device *dev);

int marks_read(struct mark_pair *marks, const struct device *dev, u64 offset);
const struct lc_mark_info *marks_best(const struct mark_pair *marks);
bool marks_any_magic(const struct mark_pair *marks);
bool marks_unreadable(const struct mark_pair *marks);
bool mark_belongs(const struct lc_mark_info *mark, const struct lc_sb *sb);
u64 mark_offset_in_place(u64 backing_bytes);

/* A block of the checkpoint: 0, or a negative errno and *why. */
int image_ckpt_block(const struct device *dev, const struct lc_sb *sb, u64 index,
		     struct lc_ckpt_block *raw, u32 *nr, const char **why);
u64 image_segment_at(const struct lc_sb *sb, u64 position);

/* 0: not formatted or empty, 1: may hold data no hard disk has; *why says which. */
int image_dirty(const struct image *img, const char **why);

#endif
