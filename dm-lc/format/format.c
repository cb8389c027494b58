// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec of the on-disk format.  See format.h for the contract and lc_format.h for the
 * drawing.  With csum.c, which has the checksums, the only file that touches __le fields.
 *
 * Decoders read the raw bytes once, and bound numbers against the geometry (itself bounded
 * first) and the device size before they multiply them: nothing overflows 64 bits.
 */
#include <linux/types.h>
#include <linux/errno.h>
#include <linux/string.h>
#ifdef __KERNEL__
#include <linux/math64.h>
#endif

#include "format.h"

#define MIB	(1ULL << 20)

static int bad(const char **why, int err, const char *text)
{
	if (why)
		*why = text;
	return err;
}

static bool is_pow2(u64 n)
{
	return n && !(n & (n - 1));
}

static bool csum_type_known(u32 type)
{
	return type == LC_CSUM_CRC32C || type == LC_CSUM_XXH64;
}

static u64 ckpt_bytes_for(u64 nr_slots)
{
	/* Rounded up to 64 KiB, so that it can be written in large pieces. */
	u64 blocks = (nr_slots + LC_CKPT_ENTRIES - 1) / LC_CKPT_ENTRIES;

	return (blocks * LC_SLOT_BYTES + 65535) & ~65535ULL;
}

int lc_geometry_compute(struct lc_geometry *geo, u64 cache_bytes, u32 segment_bytes)
{
	u64 avail, n, max;

	if (!is_pow2(segment_bytes) || segment_bytes < LC_SEGMENT_BYTES_MIN ||
	    segment_bytes > LC_SEGMENT_BYTES_MAX)
		return -EINVAL;
	memset(geo, 0, sizeof(*geo));
	geo->cache_bytes = cache_bytes & ~(u64)(LC_SLOT_BYTES - 1);
	geo->segment_bytes = segment_bytes;
	geo->seg_slots = segment_bytes >> LC_SLOT_SHIFT;
	geo->segments_offset = segment_bytes > MIB ? segment_bytes : MIB;
	if (geo->cache_bytes < geo->segments_offset + MIB)
		return -ENOSPC;
	geo->end_offset = geo->cache_bytes - MIB;
	avail = geo->end_offset - geo->segments_offset;
	max = LC_MAX_SLOTS >> (__builtin_ctz(segment_bytes) - LC_SLOT_SHIFT);
	n = avail / segment_bytes;
	if (n > max)
		n = max;
	while (n && n * segment_bytes + ckpt_bytes_for(n * geo->seg_slots) > avail) {
		u64 over = n * segment_bytes + ckpt_bytes_for(n * geo->seg_slots) - avail;
		u64 step = over / segment_bytes;

		n -= step ? step : 1;
	}
	if (n < LC_MIN_SEGMENTS)
		return -ENOSPC;
	geo->nr_segments = n;
	geo->nr_slots = n * geo->seg_slots;
	geo->ckpt_offset = geo->segments_offset + n * segment_bytes;
	geo->ckpt_bytes = ckpt_bytes_for(geo->nr_slots);
	return 0;
}

int lc_geometry_check(const struct lc_geometry *geo)
{
	u64 seg = geo->segment_bytes;

	if (!is_pow2(seg) || seg < LC_SEGMENT_BYTES_MIN || seg > LC_SEGMENT_BYTES_MAX ||
	    geo->seg_slots != seg >> LC_SLOT_SHIFT)
		return -ERANGE;
	if (geo->cache_bytes < 2 * MIB || geo->cache_bytes >> 62 ||
	    geo->cache_bytes % LC_SLOT_BYTES || geo->end_offset % LC_SLOT_BYTES ||
	    geo->segments_offset % seg || geo->ckpt_offset % LC_SLOT_BYTES ||
	    geo->ckpt_bytes % LC_SLOT_BYTES)
		return -ERANGE;
	if (geo->segments_offset < LC_SB_COPY_STRIDE * 2 ||
	    geo->segments_offset > geo->cache_bytes ||
	    geo->end_offset > geo->cache_bytes - LC_SLOT_BYTES)
		return -ERANGE;
	if (geo->nr_segments < LC_MIN_SEGMENTS ||
	    geo->nr_segments > (geo->cache_bytes - geo->segments_offset) / seg ||
	    geo->nr_segments > LC_MAX_SLOTS / geo->seg_slots)
		return -ERANGE;
	if (geo->nr_slots != geo->nr_segments * geo->seg_slots ||
	    geo->ckpt_offset < geo->segments_offset + geo->nr_segments * seg ||
	    geo->ckpt_offset > geo->end_offset ||
	    geo->ckpt_bytes > geo->end_offset - geo->ckpt_offset ||
	    geo->ckpt_bytes < ckpt_bytes_for(geo->nr_slots))
		return -ERANGE;
	return 0;
}

u64 lc_format_sb_address(const struct lc_geometry *geo, unsigned int copy)
{
	return copy < 2 ? copy * LC_SB_COPY_STRIDE : geo->end_offset;
}

u64 lc_format_mark_address(u64 mark_offset, unsigned int copy)
{
	return mark_offset + copy * LC_MARK_COPY_STRIDE;
}

u64 lc_format_position(const struct lc_geometry *geo, u64 segment)
{
#ifdef __KERNEL__
	u64 position;

	div64_u64_rem(segment, geo->nr_segments, &position);
	return position;
#else
	return segment % geo->nr_segments;
#endif
}

u64 lc_format_slot_address(const struct lc_geometry *geo, u64 position, u32 slot)
{
	return geo->segments_offset + position * geo->segment_bytes + ((u64)slot << LC_SLOT_SHIFT);
}

u64 lc_format_log_address(const struct lc_geometry *geo, u64 segment, u32 slot)
{
	return lc_format_slot_address(geo, lc_format_position(geo, segment), slot);
}

/* Text fields end in a NUL on media, so that native ones always do. */
static void put_text(char *to, const char *from, size_t len)
{
	size_t n = strnlen(from, len - 1);

	memset(to, 0, len);
	memcpy(to, from, n);
}

void lc_sb_encode(const struct lc_sb *sb, unsigned int copy, struct lc_superblock *raw)
{
	u32 i;

	memset(raw, 0, sizeof(*raw));
	memcpy(raw->magic, LC_SB_MAGIC, LC_MAGIC_LEN);
	raw->generation = cpu_to_le64(sb->generation);
	memcpy(raw->cache_uuid, sb->cache_uuid, 16);
	memcpy(raw->volume_uuid, sb->volume_uuid, 16);
	put_text(raw->label, sb->label, sizeof(raw->label));
	raw->address = cpu_to_le64(lc_format_sb_address(&sb->geo, copy));
	raw->sb_seq = cpu_to_le64(sb->sb_seq);
	raw->version = cpu_to_le32(LC_FORMAT_VERSION);
	raw->creator_version = cpu_to_le32(sb->creator_version);
	raw->compat = cpu_to_le64(sb->compat);
	raw->incompat = cpu_to_le64(sb->incompat);
	raw->cache_bytes = cpu_to_le64(sb->geo.cache_bytes);
	raw->segments_offset = cpu_to_le64(sb->geo.segments_offset);
	raw->nr_segments = cpu_to_le64(sb->geo.nr_segments);
	raw->ckpt_offset = cpu_to_le64(sb->geo.ckpt_offset);
	raw->ckpt_bytes = cpu_to_le64(sb->geo.ckpt_bytes);
	raw->end_offset = cpu_to_le64(sb->geo.end_offset);
	raw->segment_bytes = cpu_to_le32(sb->geo.segment_bytes);
	raw->slot_bytes = cpu_to_le32(LC_SLOT_BYTES);
	raw->header_slots = cpu_to_le32(LC_HEADER_SLOTS);
	raw->lane_limit = cpu_to_le32(sb->lane_limit);
	raw->csum_type = cpu_to_le32(sb->csum_type);
	raw->cache_lbs = cpu_to_le32(sb->cache_lbs);
	raw->backing_lbs = cpu_to_le32(sb->backing_lbs);
	raw->flags = cpu_to_le32(sb->flags);
	raw->volume_sectors = cpu_to_le64(sb->volume_sectors);
	raw->backing_bytes = cpu_to_le64(sb->backing_bytes);
	raw->data_offset = cpu_to_le64(sb->data_offset);
	raw->mark_offset = cpu_to_le64(sb->mark_offset);
	raw->epoch = cpu_to_le64(sb->epoch);
	raw->epoch_first_seq = cpu_to_le64(sb->epoch_first_seq);
	raw->tail_seq = cpu_to_le64(sb->tail_seq);
	raw->tail_segment = cpu_to_le64(sb->tail_segment);
	raw->next_seq = cpu_to_le64(sb->next_seq);
	raw->head_segment = cpu_to_le64(sb->head_segment);
	raw->ckpt_entries = cpu_to_le64(sb->ckpt_entries);
	raw->fingerprint = cpu_to_le64(sb->fingerprint);
	raw->opened_at = cpu_to_le64(sb->opened_at);
	memcpy(raw->opener_boot_id, sb->opener_boot_id, 16);
	put_text(raw->opener_host, sb->opener_host, sizeof(raw->opener_host));
	put_text(raw->backing_wwn, sb->backing_wwn, sizeof(raw->backing_wwn));
	put_text(raw->backing_serial, sb->backing_serial, sizeof(raw->backing_serial));
	put_text(raw->backing_partuuid, sb->backing_partuuid, sizeof(raw->backing_partuuid));
	put_text(raw->backing_dm_uuid, sb->backing_dm_uuid, sizeof(raw->backing_dm_uuid));
	put_text(raw->options, sb->options, sizeof(raw->options));
	raw->nr_skips = cpu_to_le32(sb->nr_skips);
	for (i = 0; i < sb->nr_skips && i < LC_SB_SKIPS; i++) {
		raw->skips[i].segment = cpu_to_le64(sb->skips[i].segment);
		raw->skips[i].count = cpu_to_le64(sb->skips[i].count);
	}
	raw->nr_lives = cpu_to_le32(sb->nr_lives);
	for (i = 0; i < sb->nr_lives && i < LC_SB_LIVES; i++) {
		raw->lives[i].epoch = cpu_to_le64(sb->lives[i].epoch);
		raw->lives[i].first_seq = cpu_to_le64(sb->lives[i].first_seq);
	}
	raw->mark_epoch = cpu_to_le64(sb->mark_epoch);
	raw->clean_epoch = cpu_to_le64(sb->clean_epoch);
	for (i = 0; i < LC_SB_SAMPLES; i++)
		raw->samples[i] = cpu_to_le32(sb->samples[i]);
	raw->warm_segment = cpu_to_le64(sb->warm_segment);
	raw->warm_ahead = cpu_to_le32(sb->warm_ahead);
	raw->warm_epoch = cpu_to_le64(sb->warm_epoch);
	raw->owner = cpu_to_le64(sb->owner);
	raw->mark_owner = cpu_to_le64(sb->mark_owner);
	raw->csum = cpu_to_le64(lc_block_csum(sb->csum_type, sb->generation, raw));
}

static int sb_check_head(const struct lc_superblock *raw, const char **why)
{
	u32 type = le32_to_cpu(raw->csum_type);

	if (memcmp(raw->magic, LC_SB_MAGIC, LC_MAGIC_LEN))
		return bad(why, -ENODATA, "no dm-lc superblock");
	/* A newer version may sum differently: say "newer", not "damaged". */
	if (le32_to_cpu(raw->version) > LC_FORMAT_VERSION)
		return bad(why, -EOPNOTSUPP, "format version is newer than this software");
	if (!csum_type_known(type))
		return bad(why, -EBADMSG, "unknown checksum type");
	if (le64_to_cpu(raw->csum) != lc_block_csum(type, le64_to_cpu(raw->generation), raw))
		return bad(why, -EBADMSG, "superblock checksum does not match");
	if (!raw->version)
		return bad(why, -ERANGE, "format version 0");
	if (le64_to_cpu(raw->incompat) & ~LC_INCOMPAT_ALL)
		return bad(why, -EOPNOTSUPP, "unknown incompatible feature");
	if (le64_to_cpu(raw->ro_compat) & ~LC_RO_COMPAT_ALL)
		return bad(why, -EOPNOTSUPP, "unknown read-only compatible feature");
	if (le32_to_cpu(raw->flags) & ~LC_SB_FLAGS_ALL)
		return bad(why, -ERANGE, "unknown flag");
	if (le32_to_cpu(raw->slot_bytes) != LC_SLOT_BYTES ||
	    le32_to_cpu(raw->header_slots) != LC_HEADER_SLOTS)
		return bad(why, -ERANGE, "slot geometry out of bounds");
	return 0;
}

static bool lbs_possible(u32 lbs)
{
	return is_pow2(lbs) && lbs >= 512 && lbs <= LC_SLOT_BYTES;
}

/* The head lies after the volume, and the mark where the head was. */
static bool moved_head_possible(const struct lc_sb *sb, u64 bytes)
{
	return sb->flags & LC_SB_IN_PLACE && !sb->data_offset && !sb->mark_offset &&
	       !(bytes % LC_SLOT_BYTES) && bytes >= LC_MARK_BYTES &&
	       sb->backing_bytes - bytes >= LC_MARK_BYTES;
}

static int sb_check_volume(const struct lc_sb *sb, const char **why)
{
	u64 bytes = sb->volume_sectors << 9;

	if (!lbs_possible(sb->cache_lbs) || !lbs_possible(sb->backing_lbs))
		return bad(why, -ERANGE, "logical block size out of bounds");
	if (!sb->volume_sectors || sb->volume_sectors >= LC_MAX_BLOCKS * LC_BLOCK_SECTORS ||
	    sb->backing_bytes >> 62 || bytes > sb->backing_bytes ||
	    sb->data_offset > sb->backing_bytes - bytes || sb->data_offset % LC_SLOT_BYTES)
		return bad(why, -ERANGE, "volume reaches beyond the backing device");
	if (sb->incompat & LC_INCOMPAT_MOVED_HEAD)
		return moved_head_possible(sb, bytes) ? 0 :
		       bad(why, -ERANGE, "moved head where it cannot be");
	if (sb->mark_offset != LC_NO_MARK &&
	    (sb->mark_offset > sb->backing_bytes ||
	     sb->backing_bytes - sb->mark_offset < LC_MARK_BYTES ||
	     sb->mark_offset % LC_SLOT_BYTES ||
	     (sb->mark_offset < sb->data_offset + bytes &&
	      sb->mark_offset + LC_MARK_BYTES > sb->data_offset)))
		return bad(why, -ERANGE, "mark overlaps the volume or the end");
	return 0;
}

static bool lives_rise(const struct lc_sb *sb)
{
	u64 epoch = sb->epoch, seq = sb->epoch_first_seq;
	u32 i;

	for (i = sb->nr_lives; i--; ) {
		if (sb->lives[i].epoch >= epoch || sb->lives[i].first_seq >= seq)
			return false;
		epoch = sb->lives[i].epoch;
		seq = sb->lives[i].first_seq;
	}
	return true;
}

static int sb_check_life(const struct lc_sb *sb, const char **why)
{
	u64 top = LC_NUMBERS_END;

	if (sb->epoch >= top || sb->epoch_first_seq >= top || sb->tail_seq >= top ||
	    sb->tail_segment >= top || sb->next_seq >= top || sb->head_segment >= top)
		return bad(why, -ERANGE, "sequence number out of bounds");
	if (!sb->tail_segment || !sb->tail_seq || !sb->lane_limit || sb->lane_limit > 1024)
		return bad(why, -ERANGE, "tail or lane limit is zero or too large");
	if (sb->warm_segment >= top || sb->warm_epoch > sb->epoch)
		return bad(why, -ERANGE, "segment or life of believed copies out of bounds");
	if (sb->nr_skips > LC_SB_SKIPS)
		return bad(why, -ERANGE, "too many skipped segments");
	if (sb->nr_lives > LC_SB_LIVES || !lives_rise(sb))
		return bad(why, -ERANGE, "earlier lives out of order or too many");
	if (sb->mark_epoch > sb->epoch || sb->clean_epoch > sb->epoch)
		return bad(why, -ERANGE, "a life that the hard disk has seen is out of bounds");
	if (!(sb->flags & LC_SB_CLEAN))
		return 0;
	if (sb->head_segment < sb->tail_segment ||
	    sb->head_segment - sb->tail_segment > sb->geo.nr_segments ||
	    sb->next_seq < sb->tail_seq || sb->ckpt_entries > sb->geo.nr_slots)
		return bad(why, -ERANGE, "checkpoint out of bounds");
	return 0;
}

static void sb_decode_text(const struct lc_superblock *raw, struct lc_sb *sb)
{
	put_text(sb->label, raw->label, sizeof(sb->label));
	put_text(sb->opener_host, raw->opener_host, sizeof(sb->opener_host));
	put_text(sb->backing_wwn, raw->backing_wwn, sizeof(sb->backing_wwn));
	put_text(sb->backing_serial, raw->backing_serial, sizeof(sb->backing_serial));
	put_text(sb->backing_partuuid, raw->backing_partuuid, sizeof(sb->backing_partuuid));
	put_text(sb->backing_dm_uuid, raw->backing_dm_uuid, sizeof(sb->backing_dm_uuid));
	put_text(sb->options, raw->options, sizeof(sb->options));
}

static void sb_decode_geometry(const struct lc_superblock *raw, struct lc_geometry *geo)
{
	geo->cache_bytes = le64_to_cpu(raw->cache_bytes);
	geo->segments_offset = le64_to_cpu(raw->segments_offset);
	geo->nr_segments = le64_to_cpu(raw->nr_segments);
	geo->ckpt_offset = le64_to_cpu(raw->ckpt_offset);
	geo->ckpt_bytes = le64_to_cpu(raw->ckpt_bytes);
	geo->end_offset = le64_to_cpu(raw->end_offset);
	geo->segment_bytes = le32_to_cpu(raw->segment_bytes);
	geo->seg_slots = geo->segment_bytes >> LC_SLOT_SHIFT;
	geo->nr_slots = geo->nr_segments * geo->seg_slots;
}

static void sb_decode_numbers(const struct lc_superblock *raw, struct lc_sb *sb)
{
	u32 i;

	sb->generation = le64_to_cpu(raw->generation);
	memcpy(sb->cache_uuid, raw->cache_uuid, 16);
	memcpy(sb->volume_uuid, raw->volume_uuid, 16);
	sb->sb_seq = le64_to_cpu(raw->sb_seq);
	sb->creator_version = le32_to_cpu(raw->creator_version);
	sb->compat = le64_to_cpu(raw->compat);
	sb->incompat = le64_to_cpu(raw->incompat);
	sb->lane_limit = le32_to_cpu(raw->lane_limit);
	sb->csum_type = le32_to_cpu(raw->csum_type);
	sb->cache_lbs = le32_to_cpu(raw->cache_lbs);
	sb->backing_lbs = le32_to_cpu(raw->backing_lbs);
	sb->flags = le32_to_cpu(raw->flags);
	sb->volume_sectors = le64_to_cpu(raw->volume_sectors);
	sb->backing_bytes = le64_to_cpu(raw->backing_bytes);
	sb->data_offset = le64_to_cpu(raw->data_offset);
	sb->mark_offset = le64_to_cpu(raw->mark_offset);
	sb->epoch = le64_to_cpu(raw->epoch);
	sb->epoch_first_seq = le64_to_cpu(raw->epoch_first_seq);
	sb->tail_seq = le64_to_cpu(raw->tail_seq);
	sb->tail_segment = le64_to_cpu(raw->tail_segment);
	sb->next_seq = le64_to_cpu(raw->next_seq);
	sb->head_segment = le64_to_cpu(raw->head_segment);
	sb->ckpt_entries = le64_to_cpu(raw->ckpt_entries);
	sb->fingerprint = le64_to_cpu(raw->fingerprint);
	sb->opened_at = le64_to_cpu(raw->opened_at);
	memcpy(sb->opener_boot_id, raw->opener_boot_id, 16);
	sb->nr_skips = le32_to_cpu(raw->nr_skips);
	for (i = 0; i < LC_SB_SKIPS; i++) {
		sb->skips[i].segment = le64_to_cpu(raw->skips[i].segment);
		sb->skips[i].count = le64_to_cpu(raw->skips[i].count);
	}
	sb->nr_lives = le32_to_cpu(raw->nr_lives);
	for (i = 0; i < LC_SB_LIVES; i++) {
		sb->lives[i].epoch = le64_to_cpu(raw->lives[i].epoch);
		sb->lives[i].first_seq = le64_to_cpu(raw->lives[i].first_seq);
	}
	sb->mark_epoch = le64_to_cpu(raw->mark_epoch);
	sb->clean_epoch = le64_to_cpu(raw->clean_epoch);
	for (i = 0; i < LC_SB_SAMPLES; i++)
		sb->samples[i] = le32_to_cpu(raw->samples[i]);
	sb->warm_segment = le64_to_cpu(raw->warm_segment);
	sb->warm_ahead = le32_to_cpu(raw->warm_ahead);
	sb->warm_epoch = le64_to_cpu(raw->warm_epoch);
	sb->owner = le64_to_cpu(raw->owner);
	sb->mark_owner = le64_to_cpu(raw->mark_owner);
}

int lc_sb_decode(const struct lc_superblock *raw, unsigned int copy, struct lc_sb *sb,
		 const char **why)
{
	int ret = sb_check_head(raw, why);

	if (ret)
		return ret;
	memset(sb, 0, sizeof(*sb));
	sb_decode_geometry(raw, &sb->geo);
	if (lc_geometry_check(&sb->geo))
		return bad(why, -ERANGE, "geometry out of bounds");
	if (le64_to_cpu(raw->address) != lc_format_sb_address(&sb->geo, copy))
		return bad(why, -EXDEV, "superblock found at an address that is not its own");
	sb_decode_numbers(raw, sb);
	sb_decode_text(raw, sb);
	ret = sb_check_volume(sb, why);
	return ret ? ret : sb_check_life(sb, why);
}

void lc_mark_encode(const struct lc_mark_info *mark, u32 csum_type, u64 mark_offset,
		    unsigned int copy, struct lc_mark *raw)
{
	u32 i;

	memset(raw, 0, sizeof(*raw));
	memcpy(raw->magic, LC_MARK_MAGIC, LC_MAGIC_LEN);
	raw->generation = cpu_to_le64(mark->generation);
	memcpy(raw->cache_uuid, mark->cache_uuid, 16);
	memcpy(raw->volume_uuid, mark->volume_uuid, 16);
	put_text(raw->label, mark->label, sizeof(raw->label));
	raw->address = cpu_to_le64(lc_format_mark_address(mark_offset, copy));
	raw->mark_seq = cpu_to_le64(mark->mark_seq);
	raw->version = cpu_to_le32(LC_FORMAT_VERSION);
	raw->state = cpu_to_le32(mark->state);
	raw->epoch = cpu_to_le64(mark->epoch);
	raw->owner = cpu_to_le64(mark->owner);
	raw->volume_sectors = cpu_to_le64(mark->volume_sectors);
	raw->data_offset = cpu_to_le64(mark->data_offset);
	raw->head_offset = cpu_to_le64(mark->head_offset);
	raw->nr_lost = cpu_to_le32(mark->nr_lost);
	for (i = 0; i < LC_MARK_LOST && i < mark->nr_lost; i++) {
		raw->lost[i].sector = cpu_to_le64(mark->lost[i].sector);
		raw->lost[i].nr_sectors = cpu_to_le64(mark->lost[i].nr_sectors);
	}
	raw->csum_type = csum_type;
	raw->csum = cpu_to_le64(lc_block_csum(csum_type, mark->generation, raw));
}

int lc_mark_decode(const struct lc_mark *raw, u64 mark_offset, unsigned int copy,
		   struct lc_mark_info *mark, const char **why)
{
	u32 i;

	if (memcmp(raw->magic, LC_MARK_MAGIC, LC_MAGIC_LEN))
		return bad(why, -ENODATA, "no dm-lc mark");
	if (le32_to_cpu(raw->version) > LC_FORMAT_VERSION)
		return bad(why, -EOPNOTSUPP, "mark version is newer than this software");
	if (!csum_type_known(raw->csum_type) ||
	    le64_to_cpu(raw->csum) != lc_block_csum(raw->csum_type,
						    le64_to_cpu(raw->generation), raw))
		return bad(why, -EBADMSG, "mark checksum does not match");
	if (!raw->version)
		return bad(why, -ERANGE, "mark version 0");
	if (le64_to_cpu(raw->address) != lc_format_mark_address(mark_offset, copy))
		return bad(why, -EXDEV, "mark found at an address that is not its own");
	memset(mark, 0, sizeof(*mark));
	mark->generation = le64_to_cpu(raw->generation);
	memcpy(mark->cache_uuid, raw->cache_uuid, 16);
	memcpy(mark->volume_uuid, raw->volume_uuid, 16);
	put_text(mark->label, raw->label, sizeof(mark->label));
	mark->mark_seq = le64_to_cpu(raw->mark_seq);
	mark->state = le32_to_cpu(raw->state);
	mark->epoch = le64_to_cpu(raw->epoch);
	mark->owner = le64_to_cpu(raw->owner);
	mark->volume_sectors = le64_to_cpu(raw->volume_sectors);
	mark->data_offset = le64_to_cpu(raw->data_offset);
	mark->head_offset = le64_to_cpu(raw->head_offset);
	mark->nr_lost = le32_to_cpu(raw->nr_lost);
	if (mark->nr_lost > LC_MARK_LOST && mark->nr_lost != LC_MARK_LOST_TOO_MANY)
		return bad(why, -ERANGE, "mark lists too many lost ranges");
	for (i = 0; i < LC_MARK_LOST && i < mark->nr_lost; i++) {
		mark->lost[i].sector = le64_to_cpu(raw->lost[i].sector);
		mark->lost[i].nr_sectors = le64_to_cpu(raw->lost[i].nr_sectors);
	}
	if (mark->state < LC_MARK_PAIRED || mark->state > LC_MARK_DETACHING)
		return bad(why, -ERANGE, "mark state unknown");
	if (mark->head_offset && (mark->head_offset < LC_MARK_BYTES || mark->data_offset ||
				  mark->head_offset % LC_SLOT_BYTES || mark->head_offset >> 62 ||
				  mark->head_offset >> 9 != mark->volume_sectors))
		return bad(why, -ERANGE, "mark says that the head is where it cannot be");
	return 0;
}

bool lc_entry_is_range(u8 type)
{
	return type >= LC_ENTRY_RANGE_TOMBSTONE && type <= LC_ENTRY_RANGE_LOST;
}

void lc_entry_encode(struct lc_record_header *raw, unsigned int i,
		     const struct lc_entry_info *entry)
{
	struct lc_entry *e = &raw->entries[i];

	e->block_lo = cpu_to_le32((u32)entry->block);
	e->block_hi = (u8)(entry->block >> 32);
	e->backing = 0;
	e->mask = entry->mask;
	e->type = entry->type;
	e->csum = cpu_to_le32(lc_entry_is_range(entry->type) ? (u32)entry->nr_blocks :
							       entry->csum);
	/* It is hardly ever set, and 64 slots share a cache line: only what changes it writes. */
	if (raw->lost[i] != entry->lost)
		raw->lost[i] = entry->lost;
}

void lc_entry_decode(const struct lc_record_header *raw, unsigned int i,
		     struct lc_entry_info *entry)
{
	const struct lc_entry *e = &raw->entries[i];

	entry->block = lc_entry_block(e);
	entry->mask = e->mask;
	entry->lost = raw->lost[i];
	entry->type = e->type;
	entry->nr_blocks = lc_entry_is_range(e->type) ? le32_to_cpu(e->csum) : 1;
	entry->csum = lc_entry_is_range(e->type) ? 0 : le32_to_cpu(e->csum);
}

static void header_seal(struct lc_record_header *raw, const struct lc_sb *sb,
			const struct lc_record_info *info, const char *magic)
{
	u64 position = lc_format_position(&sb->geo, info->segment);

	memcpy(raw->magic, magic, LC_MAGIC_LEN);
	raw->generation = cpu_to_le64(sb->generation);
	memcpy(raw->cache_uuid, sb->cache_uuid, 16);
	raw->address = cpu_to_le64(lc_format_slot_address(&sb->geo, position, info->first_slot));
	raw->segment = cpu_to_le64(info->segment);
	raw->seq = cpu_to_le64(info->seq);
	raw->epoch = cpu_to_le64(info->epoch);
	raw->epoch_first_seq = cpu_to_le64(info->epoch_first_seq);
	raw->boundary = cpu_to_le64(info->boundary);
	raw->tail_seq = cpu_to_le64(info->tail_seq);
	raw->durable_seq = cpu_to_le64(info->durable_seq);
	raw->wall_clock = cpu_to_le64(info->wall_clock);
	raw->lane = cpu_to_le16(info->lane);
	raw->type = info->type;
	raw->flags = 0;
	raw->nr_entries = cpu_to_le16(info->nr_entries);
	raw->nr_slots = cpu_to_le16(info->nr_slots);
	raw->number = cpu_to_le64(info->number);
	memset(raw->reserved, 0, sizeof(raw->reserved));
	raw->csum = cpu_to_le64(lc_record_csum(raw, sb));
}

void lc_record_seal(struct lc_record_header *raw, const struct lc_sb *sb,
		    const struct lc_record_info *info)
{
	header_seal(raw, sb, info, LC_RECORD_MAGIC);
}

void lc_group_seal(struct lc_record_header *raw, const struct lc_sb *sb,
		   const struct lc_record_info *info)
{
	header_seal(raw, sb, info, LC_GROUP_MAGIC);
}

/* Sectors of a block that the volume has: all, but of the last block. */
static u8 volume_mask(const struct lc_sb *sb, u64 block)
{
	u64 left = sb->volume_sectors - block * LC_BLOCK_SECTORS;

	return left < LC_BLOCK_SECTORS ? (1u << left) - 1 : 0xff;
}

static int record_check_entries(const struct lc_record_header *raw, const struct lc_sb *sb,
				const struct lc_record_info *info, const char **why)
{
	u64 nr_blocks = (sb->volume_sectors + LC_BLOCK_SECTORS - 1) / LC_BLOCK_SECTORS;
	bool in_range_record = info->type == LC_RECORD_RANGE;
	struct lc_entry_info e;
	unsigned int i;

	for (i = 0; i < info->nr_entries; i++) {
		lc_entry_decode(raw, i, &e);
		if (e.type == LC_ENTRY_NONE)
			continue;
		if (e.type > LC_ENTRY_RANGE_LOST ||
		    lc_entry_is_range(e.type) != in_range_record)
			return bad(why, -ERANGE, "entry type unknown");
		if (raw->entries[i].backing)
			return bad(why, -EOPNOTSUPP, "entry of another backing device");
		if (e.block >= nr_blocks || !e.nr_blocks || e.nr_blocks > nr_blocks - e.block ||
		    ((e.mask | e.lost) & ~volume_mask(sb, e.block)))
			return bad(why, -ERANGE, "entry beyond the end of the volume");
		if (e.mask & e.lost)
			return bad(why, -ERANGE, "sector both valid and lost");
	}
	return 0;
}

/* Is @raw a header of this kind, and of this place? */
static int header_check(const struct lc_record_header *raw, const struct lc_sb *sb, u64 segment,
			u32 first_slot, const char *magic, const char **why)
{
	u64 position = lc_format_position(&sb->geo, segment);

	if (memcmp(raw->magic, magic, LC_MAGIC_LEN))
		return bad(why, -ENODATA, "no record header");
	if (le64_to_cpu(raw->generation) != sb->generation ||
	    memcmp(raw->cache_uuid, sb->cache_uuid, 16))
		return bad(why, -ESTALE, "record of an earlier format or another device");
	if (le64_to_cpu(raw->csum) != lc_record_csum(raw, sb))
		return bad(why, -EBADMSG, "record header checksum does not match");
	if (le64_to_cpu(raw->address) != lc_format_slot_address(&sb->geo, position, first_slot))
		return bad(why, -EXDEV, "record found at an address that is not its own");
	if (le64_to_cpu(raw->segment) != segment)
		return bad(why, -ESTALE, "record of another lap of the ring");
	return 0;
}

static void header_decode(const struct lc_record_header *raw, u32 first_slot,
			  struct lc_record_info *info)
{
	info->segment = le64_to_cpu(raw->segment);
	info->seq = le64_to_cpu(raw->seq);
	info->epoch = le64_to_cpu(raw->epoch);
	info->epoch_first_seq = le64_to_cpu(raw->epoch_first_seq);
	info->boundary = le64_to_cpu(raw->boundary);
	info->tail_seq = le64_to_cpu(raw->tail_seq);
	info->durable_seq = le64_to_cpu(raw->durable_seq);
	info->wall_clock = le64_to_cpu(raw->wall_clock);
	info->lane = le16_to_cpu(raw->lane);
	info->type = raw->type;
	info->nr_entries = le16_to_cpu(raw->nr_entries);
	info->nr_slots = le16_to_cpu(raw->nr_slots);
	info->first_slot = first_slot;
	info->number = le64_to_cpu(raw->number);
}

static bool slots_possible(const struct lc_sb *sb, const struct lc_record_info *info)
{
	return info->nr_entries && info->nr_entries <= LC_RECORD_ENTRIES &&
	       info->nr_slots == (info->type == LC_RECORD_DATA ? info->nr_entries : 0) &&
	       info->first_slot + LC_HEADER_SLOTS + info->nr_slots <= sb->geo.seg_slots;
}

int lc_record_decode(const struct lc_record_header *raw, const struct lc_sb *sb, u64 segment,
		     u32 first_slot, struct lc_record_info *info, const char **why)
{
	u64 top = LC_NUMBERS_END;
	int ret;

	ret = header_check(raw, sb, segment, first_slot, LC_RECORD_MAGIC, why);
	if (ret)
		return ret;
	header_decode(raw, first_slot, info);
	if (raw->flags || (info->type != LC_RECORD_DATA && info->type != LC_RECORD_RANGE))
		return bad(why, -EOPNOTSUPP, "record type or flag unknown");
	if (!slots_possible(sb, info))
		return bad(why, -ERANGE, "record reaches beyond its segment");
	if (!info->seq || info->seq >= top || info->epoch >= top || !info->epoch_first_seq ||
	    info->epoch_first_seq > info->seq || info->durable_seq >= info->seq ||
	    info->lane >= sb->lane_limit || info->boundary > segment)
		return bad(why, -ERANGE, "record sequence out of bounds");
	return record_check_entries(raw, sb, info, why);
}

int lc_group_decode(const struct lc_record_header *raw, const struct lc_sb *sb, u64 segment,
		    u32 first_slot, struct lc_record_info *info, const char **why)
{
	struct lc_entry_info e;
	u32 i;
	int ret;

	ret = header_check(raw, sb, segment, first_slot, LC_GROUP_MAGIC, why);
	if (ret)
		return ret;
	header_decode(raw, first_slot, info);
	if (raw->flags || info->type != LC_RECORD_DATA)
		return bad(why, -EOPNOTSUPP, "record type or flag unknown");
	if (!slots_possible(sb, info))
		return bad(why, -ERANGE, "record reaches beyond its segment");
	/* The last seq before it: 0 if there was none. */
	if (info->seq >= LC_NUMBERS_END || info->epoch >= LC_NUMBERS_END ||
	    !info->epoch_first_seq || info->epoch_first_seq > info->seq + 1)
		return bad(why, -ERANGE, "record sequence out of bounds");
	ret = record_check_entries(raw, sb, info, why);
	for (i = 0; !ret && i < info->nr_entries; i++) {
		lc_entry_decode(raw, i, &e);
		if (e.type != LC_ENTRY_NONE && (e.type != LC_ENTRY_DATA || e.mask != 0xff))
			ret = bad(why, -ERANGE, "promoted block that is not whole");
	}
	return ret;
}

void lc_ckpt_encode(struct lc_ckpt_block *raw, unsigned int i, const struct lc_ckpt_item *item)
{
	struct lc_ckpt_entry *e = &raw->entries[i];
	bool boundary = item->flags == LC_CKPT_ENTRY_BOUNDARY;
	u64 number = boundary ? item->seq : item->block;

	e->slot = cpu_to_le32(item->slot);
	e->block_lo = cpu_to_le32((u32)number);
	e->block_hi = (u8)(number >> 32);
	e->mask = boundary ? (u8)(number >> 40) : item->mask;
	e->lost = boundary ? (u8)(number >> 48) : item->lost;
	e->flags = item->flags;
}

void lc_ckpt_seal(struct lc_ckpt_block *raw, const struct lc_sb *sb, u64 index, u32 nr_entries)
{
	memcpy(raw->magic, LC_CKPT_MAGIC, LC_MAGIC_LEN);
	raw->generation = cpu_to_le64(sb->generation);
	raw->epoch = cpu_to_le64(sb->epoch);
	raw->index = cpu_to_le64(index);
	raw->nr_entries = cpu_to_le32(nr_entries);
	memset(raw->reserved, 0, sizeof(raw->reserved));
	raw->csum = cpu_to_le64(lc_block_csum(sb->csum_type, sb->generation, raw));
}

int lc_ckpt_decode(const struct lc_ckpt_block *raw, const struct lc_sb *sb, u64 index,
		   u32 *nr_entries, const char **why)
{
	if (memcmp(raw->magic, LC_CKPT_MAGIC, LC_MAGIC_LEN))
		return bad(why, -ENODATA, "no checkpoint block");
	if (le64_to_cpu(raw->generation) != sb->generation || le64_to_cpu(raw->epoch) != sb->epoch)
		return bad(why, -ESTALE, "checkpoint block of another life");
	if (le64_to_cpu(raw->csum) != lc_block_csum(sb->csum_type, sb->generation, raw))
		return bad(why, -EBADMSG, "checkpoint block checksum does not match");
	if (le64_to_cpu(raw->index) != index)
		return bad(why, -EXDEV, "checkpoint block out of place");
	*nr_entries = le32_to_cpu(raw->nr_entries);
	if (*nr_entries > LC_CKPT_ENTRIES)
		return bad(why, -ERANGE, "checkpoint block too full");
	return 0;
}

static bool boundary_possible(const struct lc_sb *sb, const struct lc_ckpt_item *item)
{
	return sb->incompat & LC_INCOMPAT_LANES && item->slot < sb->geo.nr_slots &&
	       !(item->slot % sb->geo.seg_slots) && item->seq >= sb->tail_seq &&
	       item->seq <= sb->next_seq;
}

/* Of a block. */
static u8 possible_flags(const struct lc_sb *sb)
{
	u8 flags = LC_CKPT_ENTRY_DIRTY;

	if (sb->incompat & LC_INCOMPAT_PROMOTED)
		flags |= 0x1f << LC_CKPT_USE_SHIFT;
	return flags;
}

int lc_ckpt_item_decode(const struct lc_ckpt_block *raw, const struct lc_sb *sb, unsigned int i,
			struct lc_ckpt_item *item)
{
	u64 nr_blocks = (sb->volume_sectors + LC_BLOCK_SECTORS - 1) / LC_BLOCK_SECTORS;
	const struct lc_ckpt_entry *e = &raw->entries[i];
	u64 number = (u64)e->block_hi << 32 | le32_to_cpu(e->block_lo);

	*item = (struct lc_ckpt_item) { .slot = le32_to_cpu(e->slot), .flags = e->flags };
	if (item->flags == LC_CKPT_ENTRY_BOUNDARY) {
		item->seq = (u64)e->lost << 48 | (u64)e->mask << 40 | number;
		return boundary_possible(sb, item) ? 0 : -ERANGE;
	}
	item->block = number;
	item->mask = e->mask;
	item->lost = e->lost;
	if (item->slot >= sb->geo.nr_slots || item->block >= nr_blocks ||
	    (item->mask & item->lost) || !(item->mask | item->lost) ||
	    ((item->mask | item->lost) & ~volume_mask(sb, item->block)) ||
	    (item->flags & ~possible_flags(sb)))
		return -ERANGE;
	return 0;
}
