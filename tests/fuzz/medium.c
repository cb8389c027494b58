// SPDX-License-Identifier: GPL-2.0-only
/* Two small disks in memory and their short form, see medium.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "medium.h"

#define AT_FILL		0x4000
#define AT_HDD		0x8000
#define AT_OFFSET	0x0fff

/* Zeroes it takes to end an extent: what the next one's head costs. */
#define GAP		8

static const u8 zeroes[LC_SLOT_BYTES];

void medium_init(struct medium *m)
{
	memset(m, 0, sizeof(*m));
}

void medium_free(struct medium *m)
{
	unsigned int disk, i;

	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		for (i = 0; i < MEDIUM_BLOCKS; i++)
			free(m->block[disk][i]);
	}
	medium_init(m);
}

void medium_copy(struct medium *to, const struct medium *from)
{
	unsigned int disk, i;

	medium_free(to);
	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		to->nr_blocks[disk] = from->nr_blocks[disk];
		for (i = 0; i < from->nr_blocks[disk]; i++) {
			if (from->block[disk][i])
				memcpy(medium_block(to, disk, i), from->block[disk][i],
				       LC_SLOT_BYTES);
		}
	}
}

bool medium_same(const struct medium *a, const struct medium *b, unsigned int disk)
{
	unsigned int i;

	if (a->nr_blocks[disk] != b->nr_blocks[disk])
		return false;
	for (i = 0; i < a->nr_blocks[disk]; i++) {
		const u8 *x = medium_peek(a, disk, i), *y = medium_peek(b, disk, i);

		if (x != y && memcmp(x, y, LC_SLOT_BYTES))
			return false;
	}
	return true;
}

u8 *medium_block(struct medium *m, unsigned int disk, u64 block)
{
	u8 **at;

	if (block >= m->nr_blocks[disk])
		return NULL;
	at = &m->block[disk][block];
	if (!*at)
		*at = calloc(1, LC_SLOT_BYTES);
	if (!*at)
		abort();
	return *at;
}

const u8 *medium_peek(const struct medium *m, unsigned int disk, u64 block)
{
	if (block >= m->nr_blocks[disk])
		return NULL;
	return m->block[disk][block] ? m->block[disk][block] : zeroes;
}

static bool inside(const struct medium *m, unsigned int disk, u64 offset, size_t len)
{
	u64 bytes = (u64)m->nr_blocks[disk] << LC_SLOT_SHIFT;

	return offset <= bytes && len <= bytes - offset;
}

int medium_read(const struct medium *m, unsigned int disk, u64 offset, void *to, size_t len)
{
	u8 *p = to;

	if (!inside(m, disk, offset, len))
		return -EIO;
	while (len) {
		u32 from = offset % LC_SLOT_BYTES;
		size_t n = len < LC_SLOT_BYTES - from ? len : LC_SLOT_BYTES - from;

		memcpy(p, medium_peek(m, disk, offset >> LC_SLOT_SHIFT) + from, n);
		p += n;
		offset += n;
		len -= n;
	}
	return 0;
}

int medium_write(struct medium *m, unsigned int disk, u64 offset, const void *from, size_t len)
{
	const u8 *p = from;

	if (!inside(m, disk, offset, len))
		return -EIO;
	while (len) {
		u32 to = offset % LC_SLOT_BYTES;
		size_t n = len < LC_SLOT_BYTES - to ? len : LC_SLOT_BYTES - to;

		memcpy(medium_block(m, disk, offset >> LC_SLOT_SHIFT) + to, p, n);
		p += n;
		offset += n;
		len -= n;
	}
	return 0;
}

static u16 get16(const u8 *p)
{
	return p[0] | p[1] << 8;
}

void medium_unpack(struct medium *m, const u8 *data, size_t size)
{
	const u8 *end = data + size;

	medium_free(m);
	if (size < 4)
		return;
	m->nr_blocks[MEDIUM_SSD] = get16(data) % (MEDIUM_BLOCKS + 1);
	m->nr_blocks[MEDIUM_HDD] = get16(data + 2) % (MEDIUM_BLOCKS + 1);
	for (data += 4; end - data > 6; ) {
		unsigned int disk = get16(data + 2) & AT_HDD ? MEDIUM_HDD : MEDIUM_SSD;
		bool fill = get16(data + 2) & AT_FILL;
		u32 offset = get16(data + 2) & AT_OFFSET;
		size_t len = get16(data + 4) % (LC_SLOT_BYTES - offset + 1), n;
		u8 *block = medium_block(m, disk, get16(data));

		data += 6;
		n = fill ? 1 : len;
		if (n > (size_t)(end - data))
			n = end - data;
		if (block && fill)
			memset(block + offset, *data, len);
		else if (block)
			memcpy(block + offset, data, n);
		data += n;
	}
}

struct packer {
	u8 *data;
	size_t size, max;
};

static void pack_byte(struct packer *p, u8 byte)
{
	if (p->size < p->max)
		p->data[p->size] = byte;
	p->size++;
}

static void pack16(struct packer *p, u16 value)
{
	pack_byte(p, value & 0xff);
	pack_byte(p, value >> 8);
}

static void pack_extent(struct packer *p, unsigned int disk, u32 block, const u8 *bytes,
			u32 from, u32 to)
{
	bool fill = true;
	u32 i;

	for (i = from; i < to; i++)
		fill &= bytes[i] == bytes[from];
	pack16(p, block);
	pack16(p, from | (disk == MEDIUM_HDD ? AT_HDD : 0) | (fill ? AT_FILL : 0));
	pack16(p, to - from);
	for (i = from; i < (fill ? from + 1 : to); i++)
		pack_byte(p, bytes[i]);
}

/* Most of most blocks is zero, so words at a time. */
static u32 skip_zeroes(const u8 *bytes, u32 from)
{
	u64 word;

	for (from++; from % sizeof(word); from++) {
		if (bytes[from])
			return from;
	}
	for (; from < LC_SLOT_BYTES; from += sizeof(word)) {
		memcpy(&word, bytes + from, sizeof(word));
		if (word)
			break;
	}
	return from;
}

static void pack_block(struct packer *p, unsigned int disk, u32 block, const u8 *bytes)
{
	u32 from = 0, to, i;

	while (from < LC_SLOT_BYTES) {
		if (!bytes[from]) {
			from = skip_zeroes(bytes, from);
			continue;
		}
		to = from + 1;	/* behind the last byte that is not zero */
		for (i = to; i < LC_SLOT_BYTES && i - to < GAP; i++) {
			if (bytes[i])
				to = i + 1;
		}
		pack_extent(p, disk, block, bytes, from, to);
		from = to;
	}
}

size_t medium_pack(const struct medium *m, u8 *data, size_t max)
{
	struct packer p = { data, 0, max };
	unsigned int disk, i;

	pack16(&p, m->nr_blocks[MEDIUM_SSD]);
	pack16(&p, m->nr_blocks[MEDIUM_HDD]);
	for (disk = 0; disk < MEDIUM_DISKS; disk++) {
		for (i = 0; i < m->nr_blocks[disk]; i++) {
			if (m->block[disk][i])
				pack_block(&p, disk, i, m->block[disk][i]);
		}
	}
	return p.size <= max ? p.size : 0;
}

bool medium_superblock(const struct medium *m, struct lc_sb *sb)
{
	struct lc_superblock raw;
	unsigned int copy;

	for (copy = 0; copy < 2; copy++) {
		if (!medium_read(m, MEDIUM_SSD, copy * LC_SB_COPY_STRIDE, &raw, sizeof(raw)) &&
		    !lc_sb_decode(&raw, copy, sb, NULL))
			return true;
	}
	return false;
}
