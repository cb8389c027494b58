// SPDX-License-Identifier: GPL-2.0-only
/* What lc-check says, see report.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "text.h"

void check_say(const struct check *c, const char *fmt, ...)
{
	va_list args;
	char *text;

	if (c->quiet)
		return;
	va_start(args, fmt);
	text = shown_format(fmt, args);
	va_end(args);
	printf("%s\n", text);
	free(text);
}

void check_damage(struct check *c, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	c->nr_damage++;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	if (text)
		c->damage_sum = lc_format_csum64(LC_CSUM_XXH64, c->damage_sum, text, strlen(text));
	check_say(c, "DAMAGE: %s", text ? text : "(no memory to say which)");
	free(text);
}
