// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC32C (Castagnoli, reflected polynomial 0x82f63b78) with eight tables, so
 * that one step takes eight bytes.  The tables are computed at first use; the
 * tools have one thread.
 */
#include <linux/crc32.h>

#define POLY	0x82f63b78u

static u32 table[8][256];

static void fill_tables(void)
{
	u32 i, crc;
	int bit, t;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLY : 0);
		table[0][i] = crc;
	}
	for (i = 0; i < 256; i++) {
		for (t = 1; t < 8; t++)
			table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
	}
}

/**
 * crc32c() - update a CRC32C register
 * @crc: register before
 * @data: bytes
 * @len: how many
 *
 * Return: the register after.
 */
u32 crc32c(u32 crc, const void *data, unsigned int len)
{
	const u8 *p = data;

	if (!table[0][1])
		fill_tables();
	for (; len >= 8; len -= 8, p += 8) {
		crc ^= p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
		crc = table[7][crc & 0xff] ^ table[6][crc >> 8 & 0xff] ^
		      table[5][crc >> 16 & 0xff] ^ table[4][crc >> 24] ^
		      table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	while (len--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}
