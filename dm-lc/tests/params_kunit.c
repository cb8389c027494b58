// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options: what is parsed is printed, what is printed parses to the same, and
 * every mistake gets a text that names option and range and changes nothing.
 */
#include <kunit/test.h>
#include <linux/string.h>

#include "../format/params.h"

#define MAX_WORDS	24

/* Split @line as device mapper does and parse it. */
static int parse(struct kunit *test, struct lc_params *params, const char *line,
		 const char **error)
{
	char *text = kunit_kzalloc(test, strlen(line) + 1, GFP_KERNEL), *word;
	char *argv[MAX_WORDS];
	unsigned int argc = 0;

	KUNIT_ASSERT_NOT_NULL(test, text);
	memcpy(text, line, strlen(line));
	while ((word = strsep(&text, " "))) {
		if (*word && argc < MAX_WORDS)
			argv[argc++] = word;
	}
	*error = NULL;
	return lc_params_parse(params, argc, argv, error);
}

struct line {
	const char *in;
	const char *out;	/* what is printed, or part of the error */
};

static const struct line good_lines[] = {
	{ "", "0" },
	{ "0", "0" },
	{ "2 buffers 4", "2 buffers 4" },
	{ "2 buffers 65536", "2 buffers 65536" },
	{ "2 writeback off", "2 writeback off" },
	{ "2 writeback on", "2 writeback on" },
	{ "2 idle_seal_ms 0", "2 idle_seal_ms 0" },
	{ "2 idle_seal_ms 3600000", "2 idle_seal_ms 3600000" },
	{ "2 ssd_patience_ms 0", "2 ssd_patience_ms 0" },
	{ "2 hdd_patience_ms 86400000", "2 hdd_patience_ms 86400000" },
	{ "2 verify_reads on", "2 verify_reads on" },
	{ "4 verify_reads off writeback on", "4 writeback on verify_reads off" },
	{ "2 read_cache on", "2 read_cache on" },
	{ "2 bypass_kb 1048576", "2 bypass_kb 1048576" },
	{ "2 warm off", "2 warm off" },
	{ "2 cache_mode writeback", "2 cache_mode writeback" },
	{ "2 cache_mode writethrough", "2 cache_mode writethrough" },
	{ "2 cache_mode writearound", "2 cache_mode writearound" },
	{ "4 read_cache off stats on", "4 stats on read_cache off" },
	{ "2 writeback_batch 1048576", "2 writeback_batch 1048576" },
	{ "2 writeback_depth 1", "2 writeback_depth 1" },
	{ "4 low_watermark 98 high_watermark 99", "4 high_watermark 99 low_watermark 98" },
	{ "4 high_watermark 1 low_watermark 0", "4 high_watermark 1 low_watermark 0" },
	{ "2 buffers 064", "2 buffers 64" },
	{ "6 writeback off idle_seal_ms 5 writeback_depth 2",
	  "6 writeback_depth 2 idle_seal_ms 5 writeback off" },
	{ "8 writeback_batch 64 low_watermark 3 high_watermark 4 buffers 9",
	  "8 buffers 9 high_watermark 4 low_watermark 3 writeback_batch 64" },
};

KUNIT_ARRAY_PARAM_DESC(good_lines, good_lines, in);

static void round_trip(struct kunit *test)
{
	const struct line *line = test->param_value;
	struct lc_params params, again;
	const char *error;
	char printed[256];
	unsigned int len;

	lc_params_defaults(&params);
	KUNIT_ASSERT_EQ(test, parse(test, &params, line->in, &error), 0);
	KUNIT_EXPECT_NULL(test, error);
	len = lc_params_print(&params, printed, sizeof(printed));
	KUNIT_EXPECT_STREQ(test, printed, line->out);
	KUNIT_EXPECT_EQ(test, len, strlen(line->out));
	lc_params_defaults(&again);
	KUNIT_ASSERT_EQ(test, parse(test, &again, printed, &error), 0);
	KUNIT_EXPECT_MEMEQ(test, &params, &again, sizeof(params));
}

static const struct line bad_lines[] = {
	{ "1", "arguments does not match" },
	{ "x", "arguments does not match" },
	{ "-2 buffers 4", "arguments does not match" },
	{ "4294967298 buffers 4", "arguments does not match" },
	{ "1 buffers 4", "arguments does not match" },
	{ "4 buffers 4", "arguments does not match" },
	{ "1 buffers", "without a value" },
	{ "3 buffers 4 writeback", "without a value" },
	{ "2 colour 4", "Unknown option" },
	{ "2 Buffers 4", "Unknown option" },
	{ "2 buffer 4", "Unknown option" },
	{ "2 given 4", "Unknown option" },
	{ "4 buffers 8 buffers 8", "given twice" },
	{ "4 writeback on writeback off", "given twice" },
	{ "2 buffers 3", "buffers must be a number from 4 to 65536" },
	{ "2 buffers 65537", "buffers must be a number from 4 to 65536" },
	{ "2 buffers -4", "buffers must be a number from 4 to 65536" },
	{ "2 buffers 0x10", "buffers must be a number from 4 to 65536" },
	{ "2 buffers 4294967300", "buffers must be a number from 4 to 65536" },
	{ "2 buffers 18446744073709551620", "buffers must be a number from 4 to 65536" },
	{ "2 buffers 8k", "buffers must be a number from 4 to 65536" },
	{ "2 buffers many", "buffers must be a number from 4 to 65536" },
	{ "2 high_watermark 0", "high_watermark must be a number from 1 to 99" },
	{ "2 high_watermark 100", "high_watermark must be a number from 1 to 99" },
	{ "2 high_watermark 50%", "high_watermark must be a number from 1 to 99" },
	{ "2 low_watermark 99", "low_watermark must be a number from 0 to 98" },
	{ "2 low_watermark -1", "low_watermark must be a number from 0 to 98" },
	{ "2 low_watermark 60", "low_watermark must be below high_watermark" },
	{ "2 high_watermark 40", "low_watermark must be below high_watermark" },
	{ "2 writeback_batch 63", "writeback_batch must be a number from 64 to 1048576" },
	{ "2 writeback_batch 1048577", "writeback_batch must be a number from 64 to 1048576" },
	{ "2 writeback_depth 0", "writeback_depth must be a number from 1 to 256" },
	{ "2 writeback_depth 257", "writeback_depth must be a number from 1 to 256" },
	{ "2 idle_seal_ms 3600001", "idle_seal_ms must be a number from 0 to 3600000" },
	{ "2 ssd_patience_ms 3600001", "ssd_patience_ms must be a number from 0 to 3600000" },
	{ "2 hdd_patience_ms 86400001", "hdd_patience_ms must be a number from 0 to 86400000" },
	{ "2 idle_seal_ms 1.5", "idle_seal_ms must be a number from 0 to 3600000" },
	{ "2 writeback 1", "writeback must be on or off" },
	{ "2 writeback ON", "writeback must be on or off" },
	{ "2 writeback of", "writeback must be on or off" },
	{ "2 verify_reads 1", "verify_reads must be on or off" },
	{ "2 read_cache 1", "read_cache must be on or off" },
	{ "2 cache_mode 1", "cache_mode must be writeback, writethrough or writearound" },
	{ "2 cache_mode write", "cache_mode must be writeback, writethrough or writearound" },
	{ "2 bypass_kb 1048577", "bypass_kb must be a number from 0 to 1048576" },
};

KUNIT_ARRAY_PARAM_DESC(bad_lines, bad_lines, in);

static void refused(struct kunit *test)
{
	const struct line *line = test->param_value;
	struct lc_params params, before;
	const char *error;

	lc_params_defaults(&params);
	before = params;
	KUNIT_EXPECT_EQ(test, parse(test, &params, line->in, &error), -EINVAL);
	KUNIT_ASSERT_NOT_NULL(test, error);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(error, line->out), "it says: %s", error);
	KUNIT_EXPECT_MEMEQ(test, &params, &before, sizeof(params));
}

/* One good option before the bad one must not stick. */
static void all_or_nothing(struct kunit *test)
{
	struct lc_params params, before;
	const char *error;

	lc_params_defaults(&params);
	before = params;
	KUNIT_EXPECT_EQ(test, parse(test, &params, "4 buffers 8 writeback maybe", &error),
			-EINVAL);
	KUNIT_EXPECT_MEMEQ(test, &params, &before, sizeof(params));
}

static void presets(struct kunit *test)
{
	static const struct lc_params preset = {
		.buffers = 64, .high_watermark = 60, .low_watermark = 40,
		.writeback_batch = 8192, .writeback_depth = 16, .idle_seal_ms = 1000,
		.writeback = 1, .ssd_patience_ms = 30000, .warm = 1,
	};
	struct lc_params params;

	memset(&params, 0xff, sizeof(params));
	lc_params_defaults(&params);
	KUNIT_EXPECT_MEMEQ(test, &params, &preset, sizeof(params));
}

/* By message: takes effect, shows in the table line, survives a reload. */
static void message(struct kunit *test)
{
	struct lc_params params, again;
	const char *error = NULL;
	char printed[256];

	lc_params_defaults(&params);
	KUNIT_ASSERT_EQ(test, parse(test, &params, "2 buffers 8", &error), 0);
	KUNIT_EXPECT_EQ(test, lc_params_set(&params, "writeback", "off", true, &error), 0);
	KUNIT_EXPECT_EQ(test, params.writeback, 0);
	KUNIT_EXPECT_EQ(test, lc_params_set(&params, "writeback_depth", "7", true, &error), 0);
	KUNIT_EXPECT_EQ(test, lc_params_set(&params, "writeback_depth", "9", true, &error), 0);
	lc_params_print(&params, printed, sizeof(printed));
	KUNIT_EXPECT_STREQ(test, printed, "6 buffers 8 writeback_depth 9 writeback off");
	lc_params_defaults(&again);
	KUNIT_EXPECT_EQ(test, parse(test, &again, printed, &error), 0);
	KUNIT_EXPECT_MEMEQ(test, &params, &again, sizeof(params));
}

static void message_refused(struct kunit *test)
{
	static const struct {
		const char *key, *value, *error;
	} bad[] = {
		{ "buffers", "8", "by loading a table" },
		{ "speed", "8", "Unknown option" },
		{ "high_watermark", "40", "below high_watermark" },
		{ "low_watermark", "60", "below high_watermark" },
		{ "writeback", "", "on or off" },
		{ "writeback_depth", "", "from 1 to 256" },
		{ "writeback_depth", "257", "from 1 to 256" },
	};
	struct lc_params params, before;
	const char *error;
	u32 i;

	lc_params_defaults(&params);
	before = params;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		error = "";
		KUNIT_EXPECT_EQ(test, lc_params_set(&params, bad[i].key, bad[i].value, true,
						    &error), -EINVAL);
		KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(error, bad[i].error), "it says: %s",
					  error);
		KUNIT_EXPECT_MEMEQ(test, &params, &before, sizeof(params));
	}
}

/* A short result is cut, never overrun. */
static void print_short(struct kunit *test)
{
	struct lc_params params;
	const char *error;
	char printed[64];
	unsigned int room;

	lc_params_defaults(&params);
	KUNIT_ASSERT_EQ(test, parse(test, &params, "4 buffers 8 writeback off", &error), 0);
	for (room = 1; room < sizeof(printed); room++) {
		memset(printed, '#', sizeof(printed));
		KUNIT_EXPECT_LT(test, lc_params_print(&params, printed, room), room);
		KUNIT_EXPECT_LT(test, strnlen(printed, room), room);
		KUNIT_EXPECT_EQ(test, printed[room], '#');
	}
}

static struct kunit_case params_cases[] = {
	KUNIT_CASE(presets),
	KUNIT_CASE_PARAM(round_trip, good_lines_gen_params),
	KUNIT_CASE_PARAM(refused, bad_lines_gen_params),
	KUNIT_CASE(all_or_nothing),
	KUNIT_CASE(message),
	KUNIT_CASE(message_refused),
	KUNIT_CASE(print_short),
	{}
};

static struct kunit_suite params_suite = {
	.name = "dm_lc_params",
	.test_cases = params_cases,
};

kunit_test_suite(params_suite);
