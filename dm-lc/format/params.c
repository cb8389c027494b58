// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options.  One table; everything else walks it.
 *
 * The error texts are constants that name option and range, because ti->error
 * must outlive the constructor.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include "params.h"

struct option {
	const char *name;
	size_t offset;
	u32 min, max, preset;
	const char *const *words;	/* of its values from 0 to max; NULL: it is a number */
	bool at_load;		/* not by message */
	const char *error;
};

#define OPTION(_name, _min, _max, _preset, _at_load) {				\
	.name = #_name, .offset = offsetof(struct lc_params, _name),		\
	.min = _min, .max = _max, .preset = _preset, .at_load = _at_load,	\
	.error = "Option " #_name " must be a number from " #_min " to " #_max,	\
}

#define WORDS(_name, _words, _max, _preset, _error) {					\
	.name = #_name, .offset = offsetof(struct lc_params, _name),		\
	.max = _max, .preset = _preset, .words = _words,			\
	.error = "Option " #_name " must be " _error,				\
}

#define SWITCH(_name, _preset) WORDS(_name, switch_words, 1, _preset, "on or off")

static const char *const switch_words[] = { "off", "on" };
static const char *const cache_modes[] = {
	[LC_WRITEBACK] = "writeback",
	[LC_WRITETHROUGH] = "writethrough",
	[LC_WRITEAROUND] = "writearound",
};

static const struct option options[] = {
	OPTION(buffers, 4, 65536, 64, true),
	OPTION(high_watermark, 1, 99, 60, false),
	OPTION(low_watermark, 0, 98, 40, false),
	OPTION(writeback_batch, 64, 1048576, 8192, false),
	OPTION(writeback_depth, 1, 256, 16, false),
	OPTION(idle_seal_ms, 0, 3600000, 1000, false),
	SWITCH(writeback, 1),
	OPTION(ssd_patience_ms, 0, 3600000, 30000, false),
	OPTION(hdd_patience_ms, 0, 86400000, 0, false),
	SWITCH(verify_reads, 0),
	OPTION(lanes, 0, 128, 0, true),
	SWITCH(stats, 0),
	SWITCH(read_cache, 0),
	OPTION(bypass_kb, 0, 1048576, 0, false),
	SWITCH(warm, 1),
	WORDS(cache_mode, cache_modes, LC_WRITEAROUND, LC_WRITEBACK,
	      "writeback, writethrough or writearound"),
};

static u32 *value_of(struct lc_params *params, const struct option *o)
{
	return (u32 *)((char *)params + o->offset);
}

void lc_params_defaults(struct lc_params *params)
{
	unsigned int i;

	memset(params, 0, sizeof(*params));
	for (i = 0; i < ARRAY_SIZE(options); i++)
		*value_of(params, &options[i]) = options[i].preset;
}

const char *lc_cache_mode_name(u32 mode)
{
	return cache_modes[mode];
}

static int parse_value(const struct option *o, const char *text, u32 *value)
{
	if (o->words) {
		for (*value = 0; *value <= o->max && strcmp(o->words[*value], text); ++*value)
			;
		return *value <= o->max ? 0 : -EINVAL;
	}
	if (kstrtou32(text, 10, value) || *value < o->min || *value > o->max)
		return -EINVAL;
	return 0;
}

int lc_params_set(struct lc_params *params, const char *key, const char *value,
		  bool running, const char **error)
{
	struct lc_params next = *params;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (!strcmp(key, options[i].name))
			break;
	}
	if (i == ARRAY_SIZE(options)) {
		*error = "Unknown option";
		return -EINVAL;
	}
	if (running && options[i].at_load) {
		*error = "Option can only be set by loading a table";
		return -EINVAL;
	}
	if (parse_value(&options[i], value, value_of(&next, &options[i]))) {
		*error = options[i].error;
		return -EINVAL;
	}
	if (running && next.low_watermark >= next.high_watermark) {
		*error = "Option low_watermark must be below high_watermark";
		return -EINVAL;
	}
	next.given |= BIT(i);
	*params = next;
	return 0;
}

int lc_params_parse(struct lc_params *params, unsigned int argc, char **argv,
		    const char **error)
{
	struct lc_params next = *params;
	unsigned int count, i;
	u32 before;

	if (!argc)
		return 0;
	if (kstrtouint(argv[0], 10, &count) || count != argc - 1) {
		*error = "Number of option arguments does not match";
		return -EINVAL;
	}
	if (count % 2) {
		*error = "Option without a value";
		return -EINVAL;
	}
	for (i = 1; i < argc; i += 2) {
		before = next.given;
		if (lc_params_set(&next, argv[i], argv[i + 1], false, error))
			return -EINVAL;
		if (next.given == before) {
			*error = "Option given twice";
			return -EINVAL;
		}
	}
	if (next.low_watermark >= next.high_watermark) {
		*error = "Option low_watermark must be below high_watermark";
		return -EINVAL;
	}
	*params = next;
	return 0;
}

void lc_params_store(struct lc_params *to, const struct lc_params *from)
{
	struct lc_params next = *from;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		WRITE_ONCE(*value_of(to, &options[i]), *value_of(&next, &options[i]));
	/* Pairs with lc_params_print(). */
	smp_store_release(&to->given, next.given);
}

unsigned int lc_params_print(const struct lc_params *params, char *result, unsigned int maxlen)
{
	/* Pairs with lc_params_store(): the values are not older. */
	u32 given = smp_load_acquire(&params->given);
	unsigned int len, i;

	len = scnprintf(result, maxlen, "%u", 2 * hweight32(given));
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		u32 value = READ_ONCE(*value_of((struct lc_params *)params, &options[i]));

		if (!(given & BIT(i)))
			continue;
		if (options[i].words)
			len += scnprintf(result + len, maxlen - len, " %s %s", options[i].name,
					 options[i].words[value]);
		else
			len += scnprintf(result + len, maxlen - len, " %s %u", options[i].name,
					 value);
	}
	return len;
}
