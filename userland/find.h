/* SPDX-License-Identifier: GPL-2.0-only */
/* The hard disk that belongs to a cache. */
#ifndef LC_FIND_H
#define LC_FIND_H

#include "image.h"

bool backing_identity_known(const struct lc_sb *sb);
bool backing_provable(const struct lc_sb *sb);
bool backing_identity_matches(const struct lc_sb *sb, const struct identity *id);

/* 0 if @hdd is the disk of @sb and may be used; complains otherwise unless @quiet. */
int backing_verify(const struct lc_sb *sb, const struct device *hdd, bool quiet);

/* Finds it; returns a path to be freed, or NULL (after complaining, unless @quiet). */
char *backing_find(const struct lc_sb *sb, const struct device *ssd, bool quiet);

#endif
