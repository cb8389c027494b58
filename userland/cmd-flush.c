// SPDX-License-Identifier: GPL-2.0-only
/* lc-flush: bring what was written so far to the hard disk. */
#include <getopt.h>
#include <stdio.h>

#include "commands.h"
#include "dm.h"
#include "flush.h"
#include "util.h"

static void help(void)
{
	printf("Usage: lc-flush [--buffers] NAME\n\n"
	       "Brings everything written so far to the hard disk, and waits for it.\n\n"
	       "      --buffers   only from RAM to the SSD\n"
	       "  -h, --help; -V, --version\n");
}

static const struct option long_options[] = {
	{ "buffers", no_argument, NULL, 'b' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

int cmd_flush(int argc, char **argv)
{
	struct dm_facts facts;
	bool buffers = false;
	int c, ret;

	while ((c = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'b':
			buffers = true;
			break;
		case 'h':
			help();
			return LC_EXIT_OK;
		case 'V':
			util_print_version();
			return LC_EXIT_OK;
		default:
			return usage_error("bad command line");
		}
	}
	if (optind != argc - 1)
		return usage_error("name exactly one volume");
	dm_setup();
	if (dm_require_lc(argv[optind], &facts))
		return LC_EXIT_FAIL;
	dm_facts_free(&facts);
	if (facts.suspended) {
		complain(argv[optind], "is suspended; resume it with: dmsetup resume %s",
			 argv[optind]);
		return LC_EXIT_FAIL;
	}
	ret = buffers ? flush_buffers(&facts) : flush_volume(&facts);
	return ret ? LC_EXIT_FAIL : LC_EXIT_OK;
}
