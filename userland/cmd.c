// SPDX-License-Identifier: GPL-2.0-only
/* Command lines, see cmd.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "memory.h"
#include "util.h"

void cmd_print_version(void)
{
	printf("lc (dm-lc) %d.%d.%d\n", LC_VERSION_MAJOR, LC_VERSION_MINOR, LC_VERSION_PATCH);
}

static bool has_short_form(const struct cmd_option *option)
{
	return option->letter < 256;
}

/* "  -b, --backing=HDD", to be freed. */
static char *label_of(const struct cmd_option *option)
{
	char letter[4] = "   ";

	if (has_short_form(option))
		snprintf(letter, sizeof(letter), "-%c,", option->letter);
	return xasprintf("  %s --%s%s%s", letter, option->name, option->value ? "=" : "",
			 option->value ? option->value : "");
}

static void print_option(const struct cmd_option *option, int column)
{
	char *label = label_of(option);
	const char *text = option->text;
	size_t len = strcspn(text, "\n");

	printf("%-*s%.*s\n", column, label, (int)len, text);
	while (text[len]) {
		text += len + 1;
		len = strcspn(text, "\n");
		printf("%*s%.*s\n", column, "", (int)len, text);
	}
	free(label);
}

static void print_help(const struct cmd *cmd)
{
	const struct cmd_option *option;
	int column = 0;

	for (option = cmd->options; option->name; option++) {
		char *label = label_of(option);

		if ((int)strlen(label) + 2 > column)
			column = strlen(label) + 2;
		free(label);
	}
	printf("Usage: lc-%s %s\n\n%s\n\n", cmd->name, cmd->usage, cmd->text);
	for (option = cmd->options; option->name; option++) {
		if (option->text)
			print_option(option, column);
	}
	if (cmd->print_more)
		cmd->print_more();
	printf("  -h, --help; -V, --version\n");
}

/* getopt_long() by the table of a command. */
static int next_option(const struct cmd *cmd, int argc, char **argv)
{
	const struct cmd_option *option;
	struct option *longs, *to;
	char *letters, *end;
	size_t nr = 2;		/* --help and --version */
	int letter;

	for (option = cmd->options; option->name; option++)
		nr++;
	longs = xcalloc(nr + 1, sizeof(*longs));
	letters = xcalloc(nr + 1, 2);
	to = longs;
	end = letters;
	for (option = cmd->options; option->name; option++) {
		*to++ = (struct option){
			.name = option->name,
			.has_arg = option->value ? required_argument : no_argument,
			.val = option->letter,
		};
		if (has_short_form(option))
			end += sprintf(end, "%c%s", option->letter, option->value ? ":" : "");
	}
	*to++ = (struct option){ .name = "help", .val = 'h' };
	*to = (struct option){ .name = "version", .val = 'V' };
	sprintf(end, "hV");
	letter = getopt_long(argc, argv, letters, longs, NULL);
	free(letters);
	free(longs);
	return letter;
}

int cmd_option(const struct cmd *cmd, int argc, char **argv, int *code)
{
	int letter = next_option(cmd, argc, argv);

	switch (letter) {
	case -1:
		return CMD_ARGUMENTS;
	case 'h':
		print_help(cmd);
		*code = LC_EXIT_OK;
		return CMD_END;
	case 'V':
		cmd_print_version();
		*code = LC_EXIT_OK;
		return CMD_END;
	case '?':
		usage_error("bad command line");
		*code = cmd->exit_usage ? cmd->exit_usage : LC_EXIT_USAGE;
		return CMD_END;
	default:
		return letter;
	}
}

const char *cmd_argument(int argc, char **argv, const char *what)
{
	if (optind == argc - 1)
		return argv[optind];
	usage_error("name exactly one %s", what);
	return NULL;
}
