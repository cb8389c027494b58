/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands, and what their command lines have in common.  A command has one table of its
 * options: they are parsed by it, and --help shows it.
 */
#ifndef LC_CMD_H
#define LC_CMD_H

#include <getopt.h>

struct cmd_option {
	const char *name;	/* without dashes */
	int letter;		/* its short form; above 255: it has none */
	const char *value;	/* what it takes, for --help; NULL: nothing */
	/* What it does; a line end goes on in the same column.  NULL: an older name, not shown. */
	const char *text;
};

struct cmd {
	const char *name;	/* "format", of lc-format */
	const char *summary;	/* a line of 'lc --help' */
	const char *usage;	/* what follows the name on the command line */
	const char *text;	/* what it does */
	const struct cmd_option *options;	/* up to a NULL name; without --help, --version */
	void (*print_more)(void);	/* after the options; may be NULL */
	int (*run)(int argc, char **argv);	/* as main(); once in a process: getopt */
	int exit_fail, exit_usage;	/* exit codes; 0: those of util.h */
};

/* One file each, cmd-NAME.c. */
extern const struct cmd cmd_format, cmd_resume, cmd_flush, cmd_status, cmd_remove, cmd_detach,
			cmd_dump, cmd_check, cmd_watch;

enum {
	CMD_ARGUMENTS	= -1,
	CMD_END		= -2,
};

/*
 * The next option of a command line: its letter, with its value in optarg; optind is getopt's.
 * CMD_ARGUMENTS: there are no more, the arguments are argv[optind] and those after it.
 * CMD_END: the command ends with the exit code *@code.  --help or --version was given and is
 * done, or there is no such option, which has been complained about.
 */
int cmd_option(const struct cmd *cmd, int argc, char **argv, int *code);

/*
 * The argument of a command that takes one, once cmd_option() has returned CMD_ARGUMENTS.
 * @what: for the complaint.  Return: NULL after complaining if there is none, or another one.
 */
const char *cmd_argument(int argc, char **argv, const char *what);

void cmd_print_version(void);

#endif
