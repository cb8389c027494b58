// SPDX-License-Identifier: GPL-2.0-only
/* lc-detach: take a pair apart; the opposite of lc-format. */
#include <getopt.h>
#include <string.h>

#include "commands.h"
#include "detach.h"
#include "util.h"

static void help(void)
{
	printf("Usage: lc-detach --backing HDD [--force CLASS] [SSD]\n\n"
	       "Takes a stopped volume apart.  The hard disk can be used without a cache then,\n"
	       "the SSD for something else.  What was interrupted is finished by the same command.\n"
	       "Without an SSD: a disk that went on without its cache, or whose cache is gone.\n\n"
	       "  -b, --backing=HDD     the hard disk\n"
	       "  -f, --force=CLASS     overrule one class of refusal; repeatable:\n"
	       "      cache-missing     the SSD is gone; what only it held is LOST\n"
	       "      lost-blocks       blocks are recorded as lost, and the list goes\n"
	       "      other-path        a disk with the WWN of one of them is in use\n"
	       "  -h, --help; -V, --version\n");
}

static const struct option long_options[] = {
	{ "backing", required_argument, NULL, 'b' },
	{ "force", required_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

static int detach(const char *ssd_path, const char *hdd_path, unsigned int forced)
{
	struct device ssd, hdd;
	int ret;

	if (device_open(&hdd, hdd_path, DEVICE_WRITE | DEVICE_EXCL))
		return LC_EXIT_FAIL;
	if (ssd_path && device_open(&ssd, ssd_path, DEVICE_WRITE | DEVICE_EXCL)) {
		device_close(&hdd);
		return LC_EXIT_FAIL;
	}
	ret = detach_pair(ssd_path ? &ssd : NULL, &hdd, forced);
	if (ssd_path)
		device_close(&ssd);
	device_close(&hdd);
	return ret ? LC_EXIT_FAIL : LC_EXIT_OK;
}

int cmd_detach(int argc, char **argv)
{
	const char *hdd = NULL;
	unsigned int forced = 0;
	int c;

	while ((c = getopt_long(argc, argv, "b:f:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'b':
			hdd = optarg;
			break;
		case 'f':
			if (!strcmp(optarg, "cache-missing"))
				forced |= DETACH_NO_CACHE;
			else if (!strcmp(optarg, "lost-blocks"))
				forced |= DETACH_LOST;
			else if (!strcmp(optarg, "other-path"))
				forced |= DETACH_PATH;
			else
				return usage_error("--force=%s: no such class of refusal", optarg);
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
	if (!hdd || argc - optind > 1)
		return usage_error("give --backing=HDD and at most one SSD");
	return detach(argv[optind], hdd, forced);
}
