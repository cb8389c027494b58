// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes cache images by hand, for the tests of lc-dump and lc-check.
 *
 *   mklog IMAGE < script
 *
 * One command a line, "key=value" pairs behind it (defaults in the code):
 *
 *   sb     segment=65536 csum=1|2 epoch= first= tail= tail_segment= clean=0|1 long_sums=0|1
 *          next= head= items= generation= sb_seq= volume= copies=0,1,2 lanes=0|1
 *          mark_epoch= clean_epoch= warm= no_mark=0|1 promoted=0|1
 *          owner= mark_owner=
 *          text=offset:hex (at most 64 bytes, into each copy)
 *   data   segment= slot= seq= epoch= first= durable= cut= lane= blocks=1,2,3 mask= lost=
 *          torn=0|1
 *   group  segment= slot= seq= epoch= first= blocks=1,2,- mask= torn=0|1; -: a hole
 *   range  segment= slot= seq= epoch= first= durable= cut= lane= block= count= type=3|4|5
 *   ckpt   items=slot:block:flags,... cuts=slot:seq,...
 *   mark   file= epoch= state=1|2 offset= nr_lost= owner= text=
 *
 * "sb" comes first.  Data slot of block b in seq s is filled with (b * 31 + s) & 0xff.
 * With torn=1 no slot is what its checksum says.
 * data, group, range and mark take forge=offset:byte, under a good checksum.  A log of several
 * lanes has lanes=1, and as many segments side by side as the script says, with their boundaries.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../dm-lc/tests/formatted.h"

static struct lc_sb sb;
static int fd;
static char line[65536];

static void die(const char *what)
{
	fprintf(stderr, "mklog: %s: %s\n", what, line);
	exit(1);
}

static const char *text_of(const char *key)
{
	static char value[65536];
	char pattern[64], *at;

	snprintf(pattern, sizeof(pattern), " %s=", key);
	at = strstr(line, pattern);
	if (!at)
		return NULL;
	at += strlen(pattern);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, " \n"), at);
	return value;
}

static u64 number(const char *key, u64 otherwise)
{
	const char *value = text_of(key);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

static void put(int to, const void *buf, u64 at)
{
	if (pwrite(to, buf, LC_SLOT_BYTES, at) != LC_SLOT_BYTES)
		die("write failed");
}

static void sum_block(u8 *bytes)
{
	static const u8 zero[8];
	__le64 csum;
	u64 sum;

	sum = lc_format_csum64(sb.csum_type, sb.generation, bytes, 8);
	sum = lc_format_csum64(sb.csum_type, sum, zero, 8);
	csum = cpu_to_le64(lc_format_csum64(sb.csum_type, sum, bytes + 16, LC_SLOT_BYTES - 16));
	memcpy(bytes + 8, &csum, sizeof(csum));
}

/* What no writer makes: another byte in a block, and a checksum that agrees. */
static void forge(void *block)
{
	const char *word = text_of("forge");
	unsigned int offset, value;
	u8 *bytes = block;
	__le64 csum;

	if (!word)
		return;
	if (sscanf(word, "%u:%u", &offset, &value) != 2 || offset >= LC_SLOT_BYTES)
		die("bad forge");
	bytes[offset] = value;
	if (!memcmp(bytes, LC_RECORD_MAGIC, LC_MAGIC_LEN) ||
	    !memcmp(bytes, LC_GROUP_MAGIC, LC_MAGIC_LEN)) {
		csum = cpu_to_le64(lc_record_csum(block, &sb));
		memcpy(bytes + 8, &csum, sizeof(csum));
		return;
	}
	sum_block(bytes);
}

/* Any bytes where a text is. */
static void put_text(void *block)
{
	const char *word = text_of("text"), *hex = word ? strchr(word, ':') : NULL;
	unsigned int at, i, byte;

	if (!word)
		return;
	if (sscanf(word, "%u:", &at) != 1 || !hex || at + 64 > LC_SLOT_BYTES)
		die("bad text");
	hex++;
	memset((u8 *)block + at, 0, 64);
	for (i = 0; i < 64 && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		((u8 *)block)[at + i] = byte;
	sum_block(block);
}

static void make_sb(void)
{
	const char *copies = text_of("copies");
	struct lc_superblock raw;
	struct stat st;
	unsigned int i;

	if (fstat(fd, &st))
		die("no size");
	if (formatted_sb(&sb, st.st_size, number("segment", 65536)))
		die("geometry");
	formatted_lay_out(&sb, number("no_mark", 0) ? LAYOUT_NO_MARK : LAYOUT_FRONT,
			  number("volume", sb.volume_sectors));
	sb.generation = number("generation", sb.generation);
	sb.sb_seq = number("sb_seq", 7);
	sb.csum_type = number("csum", sb.csum_type);
	if (number("clean", 0))
		sb.flags |= LC_SB_CLEAN;
	sb.epoch = number("epoch", 1);
	sb.epoch_first_seq = number("first", 1);
	sb.tail_seq = number("tail", 1);
	sb.tail_segment = number("tail_segment", 1);
	sb.next_seq = number("next", 1);
	sb.head_segment = number("head", 1);
	sb.ckpt_entries = number("items", 0);
	sb.mark_epoch = number("mark_epoch", 0);
	sb.clean_epoch = number("clean_epoch", 0);
	sb.warm_segment = number("warm", 0);
	sb.owner = number("owner", 0);
	sb.mark_owner = number("mark_owner", 0);
	if (number("lanes", 0))
		sb.incompat |= LC_INCOMPAT_LANES;
	if (number("promoted", 0))
		sb.incompat |= LC_INCOMPAT_PROMOTED;
	if (number("long_sums", 0))
		sb.incompat &= ~LC_INCOMPAT_SHORT_SUMS;
	for (i = 0; i < LC_SB_COPIES; i++) {
		if (copies && !strchr(copies, '0' + (int)i))
			continue;
		lc_sb_encode(&sb, i, &raw);
		put_text(&raw);
		put(fd, &raw, lc_format_sb_address(&sb.geo, i));
	}
}

typedef void seal_fn(struct lc_record_header *raw, const struct lc_sb *of,
		     const struct lc_record_info *info);

static void seal(struct lc_record_header *raw, struct lc_record_info *info, seal_fn *with)
{
	u64 at;

	info->segment = number("segment", 1);
	info->first_slot = number("slot", 0);
	info->seq = number("seq", 1);
	info->epoch = number("epoch", sb.epoch);
	info->epoch_first_seq = number("first", sb.epoch_first_seq);
	info->durable_seq = number("durable", 0);
	info->boundary = number("cut", 0);
	info->lane = number("lane", 0);
	info->tail_seq = sb.tail_seq;
	with(raw, &sb, info);
	forge(raw);
	at = lc_format_log_address(&sb.geo, info->segment, info->first_slot);
	put(fd, raw, at);
}

static void make_slots(seal_fn *with)
{
	struct lc_record_info info = { .type = LC_RECORD_DATA };
	char *blocks = strdup(text_of("blocks")), *save = NULL, *word;
	u64 segment = number("segment", 1), seq = number("seq", 1);
	struct lc_record_header raw;
	u32 slot = number("slot", 0);
	u8 data[LC_SLOT_BYTES];

	memset(&raw, 0, sizeof(raw));
	for (word = strtok_r(blocks, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		struct lc_entry_info e = {
			.block = strtoull(word, NULL, 0),
			.mask = number("mask", 0xff),
			.lost = number("lost", 0),
			.type = strcmp(word, "-") ? LC_ENTRY_DATA : LC_ENTRY_NONE,
		};

		memset(data, (int)(e.block * 31 + seq) & 0xff, sizeof(data));
		e.csum = lc_format_slot_csum(&sb, e.block, data);
		lc_entry_encode(&raw, info.nr_entries++, &e);
		data[0] ^= number("torn", 0);
		put(fd, data, lc_format_log_address(&sb.geo, segment, slot + info.nr_entries));
	}
	free(blocks);
	info.nr_slots = info.nr_entries;
	seal(&raw, &info, with);
}

static void make_range(void)
{
	struct lc_record_info info = { .type = LC_RECORD_RANGE, .nr_entries = 1 };
	struct lc_entry_info e = {
		.block = number("block", 0),
		.nr_blocks = number("count", 1),
		.type = number("type", LC_ENTRY_RANGE_TOMBSTONE),
	};
	struct lc_record_header raw;

	memset(&raw, 0, sizeof(raw));
	lc_entry_encode(&raw, 0, &e);
	seal(&raw, &info, lc_record_seal);
}

static void parse_block(const char *word, struct lc_ckpt_item *item)
{
	item->mask = 0xff;
	if (sscanf(word, "%u:%llu:%hhu", &item->slot, &item->block, &item->flags) != 3)
		die("bad item");
}

static void parse_boundary(const char *word, struct lc_ckpt_item *item)
{
	item->flags = LC_CKPT_ENTRY_BOUNDARY;
	if (sscanf(word, "%u:%llu", &item->slot, &item->seq) != 2)
		die("bad boundary");
}

/* Add what a list names, if there is one. */
static u32 add_items(struct lc_ckpt_block *raw, u32 nr, const char *key,
		     void (*parse)(const char *word, struct lc_ckpt_item *item))
{
	const char *value = text_of(key);
	char *list = strdup(value ? value : ""), *save = NULL, *word;

	for (word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		struct lc_ckpt_item item = { .block = 0 };

		parse(word, &item);
		lc_ckpt_encode(raw, nr++, &item);
	}
	free(list);
	return nr;
}

static void make_ckpt(void)
{
	struct lc_ckpt_block raw;
	u32 nr;

	memset(&raw, 0, sizeof(raw));
	nr = add_items(&raw, 0, "items", parse_block);
	nr = add_items(&raw, nr, "cuts", parse_boundary);
	lc_ckpt_seal(&raw, &sb, 0, nr);
	put(fd, &raw, sb.geo.ckpt_offset);
}

static void make_mark(void)
{
	struct lc_mark_info mark;
	struct lc_mark raw;
	const char *file;
	unsigned int i;
	int to;

	formatted_mark(&sb, &mark);
	mark.state = number("state", mark.state);
	mark.epoch = number("epoch", mark.epoch);
	mark.owner = number("owner", mark.owner);
	mark.nr_lost = number("nr_lost", 0);
	for (i = 0; i < LC_MARK_LOST && i < mark.nr_lost; i++)
		mark.lost[i] = (struct lc_lost){ .sector = i * 64, .nr_sectors = 8 };
	file = text_of("file");
	to = file ? open(file, O_RDWR | O_CREAT, 0600) : -1;
	if (to < 0)
		die("no file");
	for (i = 0; i < 2; i++) {
		u64 offset = number("offset", 0);

		lc_mark_encode(&mark, sb.csum_type, offset, i, &raw);
		forge(&raw);
		put_text(&raw);
		put(to, &raw, lc_format_mark_address(offset, i));
	}
	close(to);
}

int main(int argc, char **argv)
{
	if (argc != 2 || (fd = open(argv[1], O_RDWR)) < 0) {
		fprintf(stderr, "usage: mklog IMAGE < script\n");
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "sb", 2))
			make_sb();
		else if (!strncmp(line, "data ", 5))
			make_slots(lc_record_seal);
		else if (!strncmp(line, "group ", 6))
			make_slots(lc_group_seal);
		else if (!strncmp(line, "range ", 6))
			make_range();
		else if (!strncmp(line, "ckpt ", 5))
			make_ckpt();
		else if (!strncmp(line, "mark ", 5))
			make_mark();
		else if (line[0] != '\n')
			die("unknown command");
	}
	return 0;
}
