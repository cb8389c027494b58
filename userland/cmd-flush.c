// SPDX-License-Identifier: GPL-2.0-only
/* lc-flush: bring what was written so far to the hard disk. */
#include <errno.h>

#include "cmd.h"
#include "dm.h"
#include "flush.h"
#include "util.h"

enum { OPT_BUFFERS = 256 };

static const struct cmd_option long_options[] = {
	{ "buffers", OPT_BUFFERS, NULL, "only from RAM to the SSD" },
	{ NULL, 0, NULL, NULL }
};

static int flush(struct dm_facts *facts, bool buffers)
{
	if (facts->suspended) {
		complain(facts->name, "is suspended; resume it with: dmsetup resume %s",
			 facts->name);
		return -EBUSY;
	}
	return buffers ? flush_buffers(facts) : flush_volume(facts);
}

static int run(int argc, char **argv)
{
	struct dm_facts facts;
	bool buffers = false;
	const char *name;
	int c, ret;

	while ((c = cmd_option(&cmd_flush, argc, argv, &ret)) >= 0)
		buffers |= c == OPT_BUFFERS;
	if (c == CMD_END)
		return ret;
	name = cmd_argument(argc, argv, "volume");
	if (!name)
		return LC_EXIT_USAGE;
	dm_setup();
	if (dm_require_lc(name, &facts))
		return LC_EXIT_FAIL;
	ret = flush(&facts, buffers);
	dm_facts_free(&facts);
	return ret ? LC_EXIT_FAIL : LC_EXIT_OK;
}

const struct cmd cmd_flush = {
	.name = "flush",
	.summary = "write the cached data to the hard disk",
	.usage = "[--buffers] NAME",
	.text = "Brings everything written so far to the hard disk, and waits for it.",
	.options = long_options,
	.run = run,
};
