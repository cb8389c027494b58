// SPDX-License-Identifier: GPL-2.0-only
/* Options of the target, see options.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "options.h"
#include "params.h"

static bool is_word(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("_-.+:", *text))
			return false;
	}
	return true;
}

bool options_plain(const char *options)
{
	unsigned int words = 0;
	char *copy = xasprintf("%s", options), *save = NULL, *word;
	bool plain = true;

	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save), words++)
		plain &= is_word(word);
	free(copy);
	return plain && !(words % 2);
}

static bool set(char *options, size_t len, const char *key, const char *value)
{
	char *old, *save = NULL, *word, *word_value;
	char out[1024] = "";
	size_t n = 0;

	if (!is_word(key) || (value && !is_word(value)))
		return false;
	old = xasprintf("%s", options);
	for (word = strtok_r(old, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		word_value = strtok_r(NULL, " ", &save);
		if (!word_value || !strcmp(word, key))
			continue;
		n += snprintf(out + n, sizeof(out) - n, "%s%s %s", n ? " " : "", word, word_value);
		if (n >= sizeof(out))
			break;
	}
	free(old);
	if (value && n < sizeof(out))
		n += snprintf(out + n, sizeof(out) - n, "%s%s %s", n ? " " : "", key, value);
	if (n >= sizeof(out) || n >= len)
		return false;
	strcpy(options, out);
	return true;
}

bool options_set_pair(char *options, size_t len, const char *pair)
{
	char *key = xasprintf("%s", pair);
	char *value = strchr(key, '=');
	bool ok = false;

	if (value) {
		*value++ = '\0';
		ok = set(options, len, key, *value ? value : NULL);
	}
	free(key);
	return ok;
}

unsigned int options_words(const char *options)
{
	unsigned int n = 0;

	while (*options) {
		options += strspn(options, " ");
		if (*options)
			n++;
		options += strcspn(options, " ");
	}
	return n;
}

char *options_why_bad(const char *options)
{
	char *words = xasprintf("%s", options), *save = NULL, *key, *value, *why = NULL;
	struct lc_params params;
	const char *error;

	lc_params_defaults(&params);
	for (key = strtok_r(words, " ", &save); key && !why; key = strtok_r(NULL, " ", &save)) {
		value = strtok_r(NULL, " ", &save);
		if (!value)
			why = xasprintf("option %s has no value", key);
		else if (lc_params_set(&params, key, value, false, &error))
			why = xasprintf("%s=%s: %s", key, value, error);
	}
	if (!why && params.low_watermark >= params.high_watermark)
		why = xasprintf("Option low_watermark must be below high_watermark");
	free(words);
	return why;
}

char *options_why_bad_pair(const char *pair)
{
	char *key = xasprintf("%s", pair), *value = strchr(key, '='), *why = NULL;
	struct lc_params params;
	const char *error;
	char one[512] = "";

	lc_params_defaults(&params);
	if (!options_set_pair(one, sizeof(one), pair)) {
		why = xasprintf("%s: must be KEY=VALUE, both plain words", pair);
	} else if (value[1]) {
		*value++ = '\0';
		if (lc_params_set(&params, key, value, false, &error))
			why = xasprintf("%s: %s", pair, error);
	}
	free(key);
	return why;
}
