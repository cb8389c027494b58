// SPDX-License-Identifier: GPL-2.0-only
/* lc-watch: tell what changes on running volumes. */
#include <stdlib.h>

#include "cmd.h"
#include "dm.h"
#include "util.h"
#include "watch.h"

static const struct cmd_option long_options[] = {
	{ "hooks", 'k', "DIR", "programs to run for each change, else those in /etc/lc/hooks.d" },
	{ NULL, 0, NULL, NULL }
};

static int run(int argc, char **argv)
{
	const char *hooks = "/etc/lc/hooks.d";
	int c, ret;

	while ((c = cmd_option(&cmd_watch, argc, argv, &ret)) >= 0)
		hooks = optarg;
	if (c == CMD_END)
		return ret;
	if (optind < argc)
		return usage_error("'%s': takes no argument", argv[optind]);
	dm_setup();
	return watch(hooks);
}

const struct cmd cmd_watch = {
	.name = "watch",
	.summary = "tell journal and hooks what changes",
	.usage = "[--hooks=DIR]",
	.text = "Waits for changes of the mode of all volumes, of lost blocks, and for the end of the\n"
		"rescue of a degraded volume.  Tells the journal, and runs the hooks.",
	.options = long_options,
	.run = run,
};
