/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the targets that take whole images share: their mutator, which keeps most
 * checksums right.
 *
 * Their input: u8 options, u8 number of a written block of the SSD that cannot be read
 * (0: none), the image in its short form (see medium.h).
 */
#ifndef FUZZ_IMAGES_H
#define FUZZ_IMAGES_H

#define IMAGES_PREFIX	2

#endif
