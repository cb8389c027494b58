/* SPDX-License-Identifier: GPL-2.0-only */
/* Superblock, segments and records as JSON; lc-dump prints it either way. */
#ifndef LC_DUMP_H
#define LC_DUMP_H

#include <json-c/json.h>

#include "image.h"
#include "scan.h"

/* Each returns a new object, which the caller puts or adds to another one. */

/* Each copy of the superblock: good, or what is wrong with it. */
json_object *dump_copies(const struct image *img);
/* Every field. */
json_object *dump_superblock(const struct lc_sb *sb);
/* What replay would make of the headers. */
json_object *dump_log(const struct scan *scan);
/* The segments from the tail on that hold records. */
json_object *dump_segments(const struct scan *scan, const struct lc_sb *sb);
/* The groups of promoted blocks in them, by place. */
json_object *dump_groups(const struct scan *scan, const struct device *dev, const struct lc_sb *sb);
/* Where the checkpoint of a clean stop says that the tail may move to, as far as it is good. */
json_object *dump_boundaries(const struct device *dev, const struct lc_sb *sb);
/* Every header found from the tail on, by place; @entries: and what each lists. */
json_object *dump_records(const struct scan *scan, const struct device *dev,
			  const struct lc_sb *sb, bool entries);

/* "key: value" lines on stdout; an object within an array goes on one line. */
void dump_print(json_object *obj, int indent);

#endif
