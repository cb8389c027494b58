// SPDX-License-Identifier: GPL-2.0-only
/*
 * The option parser, unmodified, against a second reading of docs/dm-lc.rst: what it takes
 * and what not, that a refusal says why and changes nothing, that what is printed says the
 * same again, and that no printing goes beyond its room.
 *
 * Input: u8 how, then text.  Bit 0: messages to a running volume, two words each, or else a
 * table line.  Bit 1: the first word of a table line is made the number of the others.
 */
#include <errno.h>

#include "expect.h"
#include "params.h"
#include "rng.h"

#define MAX_WORDS	40
#define ROOM		512

/* --- the second reading -------------------------------------------------- */

enum { NR_OPTIONS = 16 };

#define AT(field)	offsetof(struct lc_params, field)

static const struct {
	const char *name;
	size_t offset;
	u64 low, high;
	bool only_table;
	bool is_switch;
} known[NR_OPTIONS] = {
	{ "buffers", AT(buffers), 4, 65536, true, false },
	{ "high_watermark", AT(high_watermark), 1, 99, false, false },
	{ "low_watermark", AT(low_watermark), 0, 98, false, false },
	{ "writeback_batch", AT(writeback_batch), 64, 1048576, false, false },
	{ "writeback_depth", AT(writeback_depth), 1, 256, false, false },
	{ "idle_seal_ms", AT(idle_seal_ms), 0, 3600000, false, false },
	{ "writeback", AT(writeback), 0, 1, false, true },
	{ "ssd_patience_ms", AT(ssd_patience_ms), 0, 3600000, false, false },
	{ "hdd_patience_ms", AT(hdd_patience_ms), 0, 86400000, false, false },
	{ "verify_reads", AT(verify_reads), 0, 1, false, true },
	{ "lanes", AT(lanes), 0, 128, true, false },
	{ "stats", AT(stats), 0, 1, false, true },
	{ "read_cache", AT(read_cache), 0, 1, false, true },
	{ "bypass_kb", AT(bypass_kb), 0, 1048576, false, false },
	{ "warm", AT(warm), 0, 1, false, true },
	{ "cache_mode", AT(cache_mode), 0, 2, false, false },
};

static const char *const cache_modes[] = { "writeback", "writethrough", "writearound" };

/* Besides `given` all of it is options: one that is missing here would be taken for a bug. */
_Static_assert(sizeof(struct lc_params) == (NR_OPTIONS + 1) * sizeof(u32), "a new option");

static u32 option_of(const struct lc_params *params, unsigned int i)
{
	u32 value;

	memcpy(&value, (const char *)params + known[i].offset, sizeof(value));
	return value;
}

/* Decimal digits, perhaps behind a plus; anything too long for 32 bits is no number. */
static bool read_number(const char *text, u64 *value)
{
	text += *text == '+';
	if (!*text || strspn(text, "0123456789") != strlen(text))
		return false;
	text += strspn(text, "0");
	if (strlen(text) > 10)
		return false;
	*value = strtoull(*text ? text : "0", NULL, 10);
	return *value <= 0xffffffff;
}

static int find(const char *name)
{
	int i;

	for (i = 0; i < NR_OPTIONS && strcmp(name, known[i].name); i++)
		;
	return i < NR_OPTIONS ? i : -1;
}

static bool read_option(struct lc_params *params, const char *name, const char *text)
{
	int i = find(name);
	u64 value;
	u32 word;

	if (i < 0)
		return false;
	if (known[i].is_switch) {
		if (strcmp(text, "on") && strcmp(text, "off"))
			return false;
		value = !strcmp(text, "on");
	} else if (!strcmp(name, "cache_mode")) {
		for (value = 0; value <= known[i].high && strcmp(text, cache_modes[value]); value++)
			;
		if (value > known[i].high)
			return false;
	} else if (!read_number(text, &value) || value < known[i].low || value > known[i].high) {
		return false;
	}
	word = (u32)value;
	memcpy((char *)params + known[i].offset, &word, sizeof(word));
	return true;
}

static bool read_line(struct lc_params *params, unsigned int nr, char **words)
{
	unsigned int i, seen = 0;
	u64 count;

	if (!nr)
		return true;
	if (!read_number(words[0], &count) || count != nr - 1 || count % 2)
		return false;
	for (i = 1; i < nr; i += 2) {
		if (!read_option(params, words[i], words[i + 1]) || seen & 1u << find(words[i]))
			return false;
		seen |= 1u << find(words[i]);
	}
	return params->low_watermark < params->high_watermark;
}

static bool read_message(struct lc_params *params, const char *name, const char *text)
{
	return find(name) >= 0 && !known[find(name)].only_table &&
	       read_option(params, name, text) && params->low_watermark < params->high_watermark;
}

/* --- what must hold ------------------------------------------------------ */

/* Cuts the text at every blank, as device mapper does. */
static unsigned int cut(char *text, char **words)
{
	unsigned int nr = 0;
	char *rest = text;

	while (nr < MAX_WORDS && (words[nr] = strtok_r(rest, " \t\n\v\f\r", &rest)))
		nr++;
	return nr;
}

static void same(const struct lc_params *a, const struct lc_params *b)
{
	unsigned int i;

	for (i = 0; i < NR_OPTIONS; i++)
		EXPECT(option_of(a, i) == option_of(b, i));
}

static void printed(const struct lc_params *params)
{
	char text[ROOM], cut_text[ROOM], *words[MAX_WORDS];
	const char *error = NULL;
	struct lc_params again;
	unsigned int len, room;

	len = lc_params_print(params, text, sizeof(text));
	EXPECT(len == strlen(text) && len < sizeof(text) - 1);
	for (room = 1; room <= len + 1; room++) {
		memset(cut_text, '#', sizeof(cut_text));
		EXPECT(lc_params_print(params, cut_text, room) < room);
		EXPECT(strnlen(cut_text, room) < room && cut_text[room] == '#');
		EXPECT(!strncmp(cut_text, text, strlen(cut_text)));
	}
	lc_params_defaults(&again);
	EXPECT(!lc_params_parse(&again, cut(text, words), words, &error) && !error);
	EXPECT(!memcmp(params, &again, sizeof(again)));
}

static void refused(const struct lc_params *params, const struct lc_params *before,
		    const char *error)
{
	EXPECT(error && *error);
	EXPECT(!memcmp(params, before, sizeof(*params)));
}

static void table_line(struct lc_params *params, unsigned int nr, char **words)
{
	const struct lc_params before = *params;
	struct lc_params wanted = before;
	const char *error = NULL;
	int ret = lc_params_parse(params, nr, words, &error);

	EXPECT(!ret == read_line(&wanted, nr, words));
	if (ret) {
		EXPECT(ret == -EINVAL);
		refused(params, &before, error);
	} else {
		same(params, &wanted);
		EXPECT(__builtin_popcount(params->given) == (int)nr / 2);
	}
}

static void message(struct lc_params *params, const char *name, const char *text)
{
	const struct lc_params before = *params;
	struct lc_params wanted = before;
	const char *error = NULL;
	int ret = lc_params_set(params, name, text, true, &error);

	EXPECT(!ret == read_message(&wanted, name, text));
	if (ret)
		refused(params, &before, error);
	else
		same(params, &wanted);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	u8 how = input_u8(&in);
	struct lc_params params;
	char *words[MAX_WORDS], *text = malloc(in.size + 1), count[12];
	unsigned int nr, i;

	EXPECT(text);
	memcpy(text, in.size ? (const char *)in.data : "", in.size);
	text[in.size] = '\0';
	nr = cut(text, words);
	lc_params_defaults(&params);
	for (i = 0; how & 1 && i + 1 < nr; i += 2)
		message(&params, words[i], words[i + 1]);
	if (!(how & 1)) {
		snprintf(count, sizeof(count), "%u", nr - 1);
		if (nr && how & 2)
			words[0] = count;
		table_line(&params, nr, words);
	}
	printed(&params);
	free(text);
	return 0;
}

/* --- words rather than bytes --------------------------------------------- */

static const char *const values[] = {
	"on", "off", "writeback", "writethrough", "writearound", "0", "1", "2", "3", "4", "39", "60", "63", "64", "98", "99", "100", "256",
	"257", "65536", "65537", "1048576", "1048577", "3600000", "3600001", "4294967295",
	"4294967296", "4294967300", "18446744073709551617", "-1", "+5", "007", "0x10", "5k", "ON",
	"given", "Buffers", "buffer", "%s",
};

static const char *any_word(struct rng *rng)
{
	if (rng_one_in(rng, 3))
		return known[rng_below(rng, NR_OPTIONS)].name;
	return values[rng_below(rng, sizeof(values) / sizeof(values[0]))];
}

/* Puts, replaces or takes away a word, or puts an option with a value. */
static unsigned int edit(struct rng *rng, const char **words, unsigned int nr)
{
	unsigned int at = (unsigned int)rng_below(rng, nr + 1), n = (unsigned int)rng_below(rng, 3);

	if (n == 2 && nr + 2 <= MAX_WORDS) {
		words[nr] = known[rng_below(rng, NR_OPTIONS)].name;
		words[nr + 1] = any_word(rng);
		return nr + 2;
	}
	if (at == nr)
		return nr;
	if (n == 1) {
		memmove(words + at, words + at + 1, (nr - at - 1) * sizeof(*words));
		return nr - 1;
	}
	words[at] = any_word(rng);
	return nr;
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max_size, unsigned int seed)
{
	struct rng rng = { seed };
	char text[ROOM], *cuts[MAX_WORDS];
	const char *words[MAX_WORDS];
	unsigned int nr, i, n;
	size_t len = 1;

	if (!size || size > sizeof(text) || rng_one_in(&rng, 4))
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	nr = cut(text, cuts);
	memcpy(words, cuts, nr * sizeof(*words));
	if (rng_one_in(&rng, 4))
		data[0] = (u8)rng_below(&rng, 4);
	for (n = 1 + (unsigned int)rng_below(&rng, 3); n; n--)
		nr = edit(&rng, words, nr);
	for (i = 0; i < nr && len + strlen(words[i]) + 1 <= max_size; i++) {
		memcpy(data + len, words[i], strlen(words[i]));
		len += strlen(words[i]);
		data[len++] = ' ';
	}
	return len;
}
