// SPDX-License-Identifier: GPL-2.0-only
/* Options of the target, by the module's own table: what the kernel would refuse is refused here. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "options.h"
#include "params.h"
#include "util.h"

/**
 * options_why_bad() - would the kernel refuse these options?
 * @options: "key value key value"
 *
 * Return: the reason, to be freed; NULL if they are fine.
 */
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
