/* SPDX-License-Identifier: GPL-2.0-only */
/* What must hold whatever the input; and the numbers an input is made of. */
#ifndef FUZZ_EXPECT_H
#define FUZZ_EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

/* abort() is what libFuzzer takes for a finding, and saves the input. */
#define EXPECT(cond)								\
	do {									\
		if (!(cond)) {							\
			fprintf(stderr, "%s:%d: EXPECT(%s) failed\n", __FILE__,	\
				__LINE__, #cond);				\
			abort();						\
		}								\
	} while (0)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const u8 *a, size_t a_size, const u8 *b, size_t b_size, u8 *out,
				 size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(u8 *data, size_t size, size_t max_size);

/* Reads an input from its start; zeroes behind its end. */
struct input {
	const u8 *data;
	size_t size;
};

static inline u64 input_bytes(struct input *in, unsigned int n)
{
	u64 value = 0;
	unsigned int i;

	for (i = 0; i < n && in->size; i++) {
		value |= (u64)*in->data++ << 8 * i;
		in->size--;
	}
	return value;
}

static inline u8 input_u8(struct input *in)
{
	return (u8)input_bytes(in, 1);
}

static inline u16 input_u16(struct input *in)
{
	return (u16)input_bytes(in, 2);
}

static inline u64 input_u64(struct input *in)
{
	return input_bytes(in, 8);
}

/* What is left, as a block of 4 KiB. */
static inline void input_block(struct input *in, void *block)
{
	size_t n = in->size < 4096 ? in->size : 4096;

	memset(block, 0, 4096);
	if (n)
		memcpy(block, in->data, n);
	in->data += n;
	in->size -= n;
}

#endif
