/* SPDX-License-Identifier: GPL-2.0-only */
/* Superblock, segments and records as JSON; lc-dump prints it either way. */
#ifndef LC_DUMP_H
#define LC_DUMP_H

#include <json-c/json.h>

#include "image.h"
#include "scan.h"

json_object *dump_copies(const struct image *img);
json_object *dump_superblock(const struct lc_sb *sb);
json_object *dump_log(const struct scan *scan);
json_object *dump_segments(const struct scan *scan, const struct lc_sb *sb);
json_object *dump_cuts(const struct device *dev, const struct lc_sb *sb);
json_object *dump_records(const struct scan *scan, const struct device *dev,
			  const struct lc_sb *sb, bool entries);

/* "key: value" lines; an object within an array goes on one line. */
void dump_print(json_object *obj, int indent);

#endif
