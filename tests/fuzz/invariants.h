/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a decoder promises of what it accepts, in arithmetic that cannot overflow
 * and in words of its own.
 */
#ifndef FUZZ_INVARIANTS_H
#define FUZZ_INVARIANTS_H

#include "format.h"

void expect_geometry(const struct lc_geometry *geo);
void expect_superblock(const struct lc_sb *sb);
void expect_record(const struct lc_sb *sb, const struct lc_record_info *info);
void expect_group(const struct lc_sb *sb, const struct lc_record_info *info);
void expect_entry(const struct lc_sb *sb, const struct lc_record_info *info,
		  const struct lc_entry_info *entry);
void expect_item(const struct lc_sb *sb, const struct lc_ckpt_item *item);

/* One of the errors format.h lists. */
void expect_error(int ret, const char *why);

#endif
