// SPDX-License-Identifier: GPL-2.0-only
/* The lc binary: finds the command by its own name (lc-format) or its first argument. */
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "generator.h"
#include "memory.h"
#include "probe.h"
#include "util.h"

static const struct cmd *const commands[] = {
	&cmd_format, &cmd_resume, &cmd_flush, &cmd_status,
	&cmd_remove, &cmd_detach, &cmd_dump, &cmd_check, &cmd_watch,
};

static void usage(FILE *to)
{
	size_t i;

	fprintf(to, "Usage: lc COMMAND ...   or   lc-COMMAND ...\n\nCommands:\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "\n'lc COMMAND --help' explains a command, lc(8) all of it.\n");
}

static int run(const char *name, int argc, char **argv)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct cmd *cmd = commands[i];

		if (strcmp(name, cmd->name))
			continue;
		util_set_program(cmd->name);
		util_check_output(cmd->exit_fail ? cmd->exit_fail : LC_EXIT_FAIL);
		return cmd->run(argc, argv);
	}
	/* For udev, not for people. */
	if (!strcmp(name, "probe")) {
		util_set_program(name);
		return probe_main(argc, argv);
	}
	fprintf(stderr, "lc: %s: no such command\n", name);
	usage(stderr);
	return LC_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const char *name = argc ? basename(argv[0]) : "lc";

	/* Lines come out as they are made, so that a log of a long run can be followed. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	util_check_output(LC_EXIT_FAIL);
	/* systemd's, not a command for people. */
	if (!strcmp(name, "lc-generator")) {
		util_set_program("generator");
		return generator_run(argc, argv);
	}
	if (!strncmp(name, "lc-", 3))
		return run(name + 3, argc, argv);
	if (argc < 2) {
		usage(stderr);
		return LC_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return LC_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		cmd_print_version();
		return LC_EXIT_OK;
	}
	return run(argv[1], argc - 1, argv + 1);
}
