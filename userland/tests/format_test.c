// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sums that the tools compute: known ones, and the golden ones of a slot that
 * dm-lc/tests/csum_kunit.c expects of the module.
 */
#include <linux/crc32.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../dm-lc/tests/formatted.h"

static void check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "format_test: %s\n", what);
		exit(1);
	}
}

int main(void)
{
	static const char digits[] = "123456789";
	static u8 zeros[32], slot[LC_SLOT_BYTES];
	struct lc_sb sb;
	unsigned int i;

	check(~crc32c(~0u, digits, 9) == 0xe3069283u, "crc32c of 123456789");
	check(~crc32c(~0u, zeros, 32) == 0x8a9136aau, "crc32c of 32 zeroes (RFC 3720)");
	check(crc32c(crc32c(~0u, digits, 4), digits + 4, 5) == crc32c(~0u, digits, 9),
	      "crc32c in two pieces");
	check(!formatted_sb(&sb, 64 << 20, LC_SEGMENT_BYTES_MIN), "geometry");
	for (i = 0; i < LC_SLOT_BYTES; i++)
		slot[i] = i * 7;
	sb.csum_type = LC_CSUM_CRC32C;
	check(lc_format_slot_csum(&sb, 0x89abc, slot) == 0xc35a4f4d, "crc32c of a slot");
	sb.csum_type = LC_CSUM_XXH64;
	check(lc_format_slot_csum(&sb, 0x89abc, slot) == 0x486e822c, "xxh64 of a slot");
	printf("format_test: ok\n");
	return 0;
}
