// SPDX-License-Identifier: GPL-2.0-only
/* lc-detach: take a pair apart; the opposite of lc-format. */
#include <string.h>

#include "cmd.h"
#include "detach.h"
#include "util.h"

static const struct cmd_option long_options[] = {
	{ "backing", 'b', "HDD", "the hard disk" },
	{ "force", 'f', "CLASS", "overrule one class of refusal; repeatable:\n"
	  "cache-missing   the SSD is gone; what only it held is LOST\n"
	  "lost-blocks     blocks are recorded as lost, and the list goes\n"
	  "other-path      a disk with the WWN of one of them is in use" },
	{ NULL, 0, NULL, NULL }
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

static int force(unsigned int *forced, const char *class)
{
	if (!strcmp(class, "cache-missing"))
		*forced |= DETACH_NO_CACHE;
	else if (!strcmp(class, "lost-blocks"))
		*forced |= DETACH_LOST;
	else if (!strcmp(class, "other-path"))
		*forced |= DETACH_PATH;
	else
		return usage_error("--force=%s: no such class of refusal", class);
	return 0;
}

static int run(int argc, char **argv)
{
	const char *hdd = NULL;
	unsigned int forced = 0;
	int c, code;

	while ((c = cmd_option(&cmd_detach, argc, argv, &code)) >= 0) {
		if (c == 'b') {
			hdd = optarg;
			continue;
		}
		code = force(&forced, optarg);
		if (code)
			return code;
	}
	if (c == CMD_END)
		return code;
	if (!hdd || argc - optind > 1)
		return usage_error("give --backing=HDD and at most one SSD");
	return detach(argv[optind], hdd, forced);
}

const struct cmd cmd_detach = {
	.name = "detach",
	.summary = "take a pair apart",
	.usage = "--backing HDD [--force CLASS] [SSD]",
	.text = "Takes a stopped volume apart.  The hard disk can be used without a cache then,\n"
		"the SSD for something else.  What was interrupted is finished by the same command.\n"
		"Without an SSD: a disk that went on without its cache, or whose cache is gone.",
	.options = long_options,
	.run = run,
};
