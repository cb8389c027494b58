// SPDX-License-Identifier: GPL-2.0-only
/* lc-flush: drain a volume, or sync it. */
#include <errno.h>

#include "cmd.h"
#include "dm.h"
#include "drain.h"
#include "util.h"

enum { OPT_BUFFERS = 256 };

static const struct cmd_option long_options[] = {
	{ "buffers", OPT_BUFFERS, NULL, "sync only: make what was written durable on the SSD" },
	{ NULL, 0, NULL, NULL }
};

static int flush(struct dm_facts *facts, bool sync_only)
{
	if (facts->suspended) {
		complain(facts->name, "is suspended; resume it with: dmsetup resume %s",
			 facts->name);
		return -EBUSY;
	}
	return sync_only ? sync_volume(facts) : drain_volume(facts);
}

static int run(int argc, char **argv)
{
	struct dm_facts facts;
	bool sync_only = false;
	const char *name;
	int c, ret;

	while ((c = cmd_option(&cmd_flush, argc, argv, &ret)) >= 0)
		sync_only |= c == OPT_BUFFERS;
	if (c == CMD_END)
		return ret;
	name = cmd_argument(argc, argv, "volume");
	if (!name)
		return LC_EXIT_USAGE;
	dm_setup();
	if (dm_require_lc(name, &facts))
		return LC_EXIT_FAIL;
	ret = flush(&facts, sync_only);
	dm_facts_free(&facts);
	return ret ? LC_EXIT_FAIL : LC_EXIT_OK;
}

const struct cmd cmd_flush = {
	.name = "flush",
	.summary = "drain a volume: write the cached data to the hard disk",
	.usage = "[--buffers] NAME",
	.text = "Drains the volume: brings everything written so far to the hard disk, and waits for it.",
	.options = long_options,
	.run = run,
};
