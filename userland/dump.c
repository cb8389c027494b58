// SPDX-License-Identifier: GPL-2.0-only
/* Superblock, segments and records as JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "memory.h"
#include "text.h"
#include "util.h"

static void add_u64(json_object *obj, const char *key, u64 value)
{
	json_object_object_add(obj, key, json_object_new_uint64(value));
}

static void add_text(json_object *obj, const char *key, const char *text)
{
	json_object_object_add(obj, key, json_object_new_string(shown(text)));
}

static void add_hex(json_object *obj, const char *key, u64 value)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", value);
	json_object_object_add(obj, key, json_object_new_string(text));
}

json_object *dump_copies(const struct image *img)
{
	json_object *array = json_object_new_array();
	unsigned int i;

	for (i = 0; i < LC_SB_COPIES; i++) {
		json_object *obj = json_object_new_object();

		add_u64(obj, "copy", i);
		add_text(obj, "state", img->err[i] ? img->why[i] : "good");
		if (!img->err[i]) {
			add_u64(obj, "sb_seq", img->copy[i].sb_seq);
			add_u64(obj, "epoch", img->copy[i].epoch);
			add_hex(obj, "generation", img->copy[i].generation);
		}
		json_object_array_add(array, obj);
	}
	return array;
}

static void add_geometry(json_object *obj, const struct lc_sb *sb)
{
	add_u64(obj, "cache_bytes", sb->geo.cache_bytes);
	add_u64(obj, "segment_bytes", sb->geo.segment_bytes);
	add_u64(obj, "nr_segments", sb->geo.nr_segments);
	add_u64(obj, "segments_offset", sb->geo.segments_offset);
	add_u64(obj, "ckpt_offset", sb->geo.ckpt_offset);
	add_u64(obj, "ckpt_bytes", sb->geo.ckpt_bytes);
	add_u64(obj, "end_offset", sb->geo.end_offset);
	add_u64(obj, "lane_limit", sb->lane_limit);
	add_text(obj, "checksum", sb->csum_type == LC_CSUM_XXH64 ? "xxh64" : "crc32c");
	add_u64(obj, "cache_lbs", sb->cache_lbs);
	add_u64(obj, "backing_lbs", sb->backing_lbs);
	add_u64(obj, "volume_sectors", sb->volume_sectors);
	add_u64(obj, "backing_bytes", sb->backing_bytes);
	add_u64(obj, "data_offset", sb->data_offset);
	if (sb->mark_offset == LC_NO_MARK)
		json_object_object_add(obj, "mark_offset", NULL);
	else
		add_u64(obj, "mark_offset", sb->mark_offset);
}

static void add_life(json_object *obj, const struct lc_sb *sb)
{
	json_object *skips = json_object_new_array(), *lives = json_object_new_array();
	u32 i;

	add_u64(obj, "epoch", sb->epoch);
	add_u64(obj, "epoch_first_seq", sb->epoch_first_seq);
	add_u64(obj, "tail_seq", sb->tail_seq);
	add_u64(obj, "tail_segment", sb->tail_segment);
	json_object_object_add(obj, "clean", json_object_new_boolean(sb->flags & LC_SB_CLEAN));
	add_u64(obj, "next_seq", sb->next_seq);
	add_u64(obj, "head_segment", sb->head_segment);
	add_u64(obj, "ckpt_entries", sb->ckpt_entries);
	add_hex(obj, "fingerprint", sb->fingerprint);
	add_u64(obj, "mark_epoch", sb->mark_epoch);
	add_u64(obj, "clean_epoch", sb->clean_epoch);
	add_u64(obj, "warm_segment", sb->warm_segment);
	add_u64(obj, "warm_ahead", sb->warm_ahead);
	add_u64(obj, "warm_epoch", sb->warm_epoch);
	add_hex(obj, "owner", sb->owner);
	add_hex(obj, "mark_owner", sb->mark_owner);
	add_text(obj, "opened_at", time_text(sb->opened_at));
	add_text(obj, "opener_boot_id", uuid_text(sb->opener_boot_id));
	add_text(obj, "opener_host", sb->opener_host);
	for (i = 0; i < sb->nr_skips; i++) {
		json_object *skip = json_object_new_object();

		add_u64(skip, "segment", sb->skips[i].segment);
		add_u64(skip, "count", sb->skips[i].count);
		json_object_array_add(skips, skip);
	}
	json_object_object_add(obj, "skips", skips);
	for (i = 0; i < sb->nr_lives; i++) {
		json_object *life = json_object_new_object();

		add_u64(life, "epoch", sb->lives[i].epoch);
		add_u64(life, "first_seq", sb->lives[i].first_seq);
		json_object_array_add(lives, life);
	}
	json_object_object_add(obj, "earlier_lives", lives);
}

/* Of a superblock that was decoded all bits are known. */
static const char *features_text(u64 incompat)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s%s%s%s", incompat & LC_INCOMPAT_LANES ? " lanes" : "",
		 incompat & LC_INCOMPAT_SHORT_SUMS ? " short_sums" : "",
		 incompat & LC_INCOMPAT_MOVED_HEAD ? " moved_head" : "",
		 incompat & LC_INCOMPAT_PROMOTED ? " promoted" : "");
	return incompat ? text + 1 : "none";
}

json_object *dump_superblock(const struct lc_sb *sb)
{
	json_object *obj = json_object_new_object();
	char version[32];

	add_hex(obj, "generation", sb->generation);
	add_text(obj, "cache_uuid", uuid_text(sb->cache_uuid));
	add_text(obj, "volume_uuid", uuid_text(sb->volume_uuid));
	add_text(obj, "label", sb->label);
	add_u64(obj, "sb_seq", sb->sb_seq);
	add_text(obj, "incompat", features_text(sb->incompat));
	snprintf(version, sizeof(version), "%u.%u.%u", sb->creator_version >> 16,
		 sb->creator_version >> 8 & 0xff, sb->creator_version & 0xff);
	add_text(obj, "creator_version", version);
	json_object_object_add(obj, "in_place",
			       json_object_new_boolean(sb->flags & LC_SB_IN_PLACE));
	add_geometry(obj, sb);
	add_life(obj, sb);
	add_text(obj, "backing_wwn", sb->backing_wwn);
	add_text(obj, "backing_serial", sb->backing_serial);
	add_text(obj, "backing_partuuid", sb->backing_partuuid);
	add_text(obj, "backing_dm_uuid", sb->backing_dm_uuid);
	add_text(obj, "options", sb->options);
	return obj;
}

json_object *dump_log(const struct scan *scan)
{
	json_object *obj = json_object_new_object();

	add_text(obj, "verdict",
		 scan_unknown(scan)	      ? "holds records this version does not know"
		 : scan->verdict == -EUCLEAN ? "damaged: durable records are missing"
		 : scan->verdict == -ESTALE  ? "the superblock is older than the log"
		 : scan->verdict == -E2BIG   ? "holds records of too many lives"
					     : "unbroken");
	add_u64(obj, "first_seq", scan->run.first_seq);
	add_u64(obj, "last_seq", scan->run.last_seq);
	add_u64(obj, "durable_seq", scan->run.durable_seq);
	add_u64(obj, "next_segment", scan->run.next_segment);
	add_u64(obj, "records_in_run", scan->run.nr_kept);
	add_u64(obj, "headers_found", scan->nr);
	add_u64(obj, "segments_read", scan->nr_segments_read);
	return obj;
}

json_object *dump_segments(const struct scan *scan, const struct lc_sb *sb)
{
	json_object *array = json_object_new_array();
	size_t i = 0;

	while (i < scan->nr) {
		json_object *obj = json_object_new_object();
		u64 segment = scan->found[i].segment, kept = 0, slots = 0;
		u64 lowest = ~0ULL, highest = 0, nr = 0;

		for (; i < scan->nr && scan->found[i].segment == segment; i++, nr++) {
			const struct lc_record_info *r = &scan->found[i];

			kept += scan->kept[i];
			slots += LC_HEADER_SLOTS + r->nr_slots;
			lowest = r->seq < lowest ? r->seq : lowest;
			highest = r->seq > highest ? r->seq : highest;
		}
		add_u64(obj, "segment", segment);
		add_u64(obj, "position", lc_format_position(&sb->geo, segment));
		add_u64(obj, "records", nr);
		add_u64(obj, "in_run", kept);
		add_u64(obj, "first_seq", lowest);
		add_u64(obj, "last_seq", highest);
		add_u64(obj, "slots_used", slots);
		json_object_array_add(array, obj);
	}
	return array;
}

/* Of one segment.  A header that is damaged or was not written does not hide those behind it. */
static void add_groups(json_object *array, const struct device *dev, const struct lc_sb *sb,
		       u64 segment)
{
	struct lc_record_header raw;
	struct lc_record_info info;
	struct lc_chain chain;

	lc_chain_start(&chain, segment, 0);
	while (!lc_chain_at_end(&chain, &sb->geo)) {
		json_object *obj;
		u64 blocks = 0;
		u32 i;

		if (scan_step_any(dev, sb, &chain, &raw, &info)) {
			lc_chain_skip(&chain);
			continue;
		}
		if (memcmp(raw.magic, LC_GROUP_MAGIC, LC_MAGIC_LEN))
			continue;
		for (i = 0; i < info.nr_entries; i++)
			blocks += raw.entries[i].type != LC_ENTRY_NONE;
		obj = json_object_new_object();
		add_u64(obj, "segment", segment);
		add_u64(obj, "slot", info.first_slot);
		add_u64(obj, "slots", info.nr_slots);
		add_u64(obj, "blocks", blocks);
		add_u64(obj, "epoch", info.epoch);
		add_text(obj, "written", time_text(info.wall_clock));
		json_object_array_add(array, obj);
	}
}

json_object *dump_groups(const struct scan *scan, const struct device *dev, const struct lc_sb *sb)
{
	json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		if (!i || scan->found[i].segment != scan->found[i - 1].segment)
			add_groups(array, dev, sb, scan->found[i].segment);
	}
	return array;
}

json_object *dump_boundaries(const struct device *dev, const struct lc_sb *sb)
{
	json_object *array = json_object_new_array();
	struct lc_ckpt_block raw;
	struct lc_ckpt_item item;
	u64 index, seen = 0;
	const char *why;
	u32 i, nr;

	for (index = 0; seen < sb->ckpt_entries; index++, seen += nr) {
		if (image_ckpt_block(dev, sb, index, &raw, &nr, &why))
			break;
		for (i = 0; i < nr; i++) {
			json_object *obj;

			if (lc_ckpt_item_decode(&raw, sb, i, &item) ||
			    !(item.flags & LC_CKPT_ENTRY_BOUNDARY))
				continue;
			obj = json_object_new_object();
			add_u64(obj, "segment",
				image_segment_at(sb, item.slot / sb->geo.seg_slots));
			add_u64(obj, "seq", item.seq);
			json_object_array_add(array, obj);
		}
	}
	return array;
}

static const char *entry_type_text(u8 type)
{
	static const char * const names[] = {
		"none", "data", "zero", "range-tombstone", "range-zero", "range-lost",
	};

	return type < ARRAY_SIZE(names) ? names[type] : "unknown";
}

static json_object *dump_entries(const struct lc_record_header *raw,
				 const struct lc_record_info *info)
{
	json_object *array = json_object_new_array();
	unsigned int i;

	for (i = 0; i < info->nr_entries; i++) {
		json_object *obj = json_object_new_object();
		struct lc_entry_info e;

		lc_entry_decode(raw, i, &e);
		add_text(obj, "type", entry_type_text(e.type));
		add_u64(obj, "block", e.block);
		add_u64(obj, "blocks", e.nr_blocks);
		add_u64(obj, "mask", e.mask);
		add_u64(obj, "lost", e.lost);
		add_u64(obj, "csum", e.csum);
		json_object_array_add(array, obj);
	}
	return array;
}

json_object *dump_records(const struct scan *scan, const struct device *dev,
			  const struct lc_sb *sb, bool entries)
{
	json_object *array = json_object_new_array();
	struct lc_record_header raw;
	struct lc_record_info again;
	const char *why;
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		const struct lc_record_info *r = &scan->found[i];
		json_object *obj = json_object_new_object();

		add_u64(obj, "seq", r->seq);
		add_text(obj, "type", r->type == LC_RECORD_DATA ? "data" : "range");
		json_object_object_add(obj, "in_run", json_object_new_boolean(scan->kept[i]));
		json_object_object_add(obj, "hidden", json_object_new_boolean(scan->hidden[i]));
		add_u64(obj, "epoch", r->epoch);
		add_u64(obj, "epoch_first_seq", r->epoch_first_seq);
		add_u64(obj, "segment", r->segment);
		add_u64(obj, "slot", r->first_slot);
		add_u64(obj, "entries", r->nr_entries);
		add_u64(obj, "slots", r->nr_slots);
		add_u64(obj, "lane", r->lane);
		add_u64(obj, "cut", r->boundary);
		add_u64(obj, "tail_seq", r->tail_seq);
		add_u64(obj, "durable_seq", r->durable_seq);
		add_text(obj, "written", time_text(r->wall_clock));
		if (entries && !scan_read_header(dev, sb, r->segment, r->first_slot, &raw, &again,
						 &why))
			json_object_object_add(obj, "entry_list", dump_entries(&raw, &again));
		json_object_array_add(array, obj);
	}
	return array;
}

static void print_scalar(json_object *value)
{
	printf("%s", value ? json_object_get_string(value) : "none");
}

static void print_row(json_object *row, int indent)
{
	json_object *nested = NULL;
	size_t i;

	printf("%*s", indent, "");
	json_object_object_foreach(row, key, value) {
		if (json_object_is_type(value, json_type_array)) {
			nested = value;
			continue;
		}
		printf("%s ", key);
		print_scalar(value);
		printf("  ");
	}
	printf("\n");
	for (i = 0; nested && i < json_object_array_length(nested); i++)
		print_row(json_object_array_get_idx(nested, i), indent + 2);
}

void dump_print(json_object *obj, int indent)
{
	json_object_object_foreach(obj, key, value) {
		size_t i;

		printf("%*s%s:", indent, "", key);
		if (json_object_is_type(value, json_type_object)) {
			printf("\n");
			dump_print(value, indent + 2);
		} else if (json_object_is_type(value, json_type_array)) {
			printf("\n");
			for (i = 0; i < json_object_array_length(value); i++)
				print_row(json_object_array_get_idx(value, i), indent + 2);
		} else {
			printf(" ");
			print_scalar(value);
			printf("\n");
		}
	}
}
