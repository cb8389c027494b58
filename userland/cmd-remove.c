// SPDX-License-Identifier: GPL-2.0-only
/* lc-remove: stop a volume.  The kernel makes the clean stop when the device goes. */
#include <getopt.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "commands.h"
#include "device.h"
#include "dm.h"
#include "flush.h"
#include "util.h"

static void help(void)
{
	printf("Usage: lc-remove [--no-flush] NAME\n\n"
	       "Writes all data of the volume to its hard disk and stops it.\n\n"
	       "      --no-flush  leave the data on the SSD; lc-resume brings it back\n"
	       "  -h, --help; -V, --version\n");
}

static const struct option long_options[] = {
	{ "no-flush", no_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

/*
 * After a umount udev looks at the device for a moment, to see what it holds.  So one that is
 * open is looked at again for some seconds, unless it is known who uses it.
 */
static int refuse_open(const char *name, struct dm_facts *facts)
{
	const struct timespec pause = { .tv_nsec = 200 * 1000000L };
	unsigned int tries = 0;
	char holder[256] = "";

	while (facts->open_count && !holder[0] && tries++ < 25) {
		device_explain_busy(makedev(facts->major, facts->minor), holder, sizeof(holder));
		if (holder[0])
			break;
		nanosleep(&pause, NULL);
		if (dm_require_lc(name, facts))
			return -1;
		dm_facts_free(facts);
	}
	if (!facts->open_count)
		return 0;
	complain(name, "is in use (open %d times)%s; unmount it or stop what uses it first",
		 facts->open_count, holder);
	return -1;
}

static int remove_volume(const char *name, bool flush)
{
	struct dm_facts facts;

	if (dm_require_lc(name, &facts))
		return LC_EXIT_FAIL;
	dm_facts_free(&facts);
	if (refuse_open(name, &facts))
		return LC_EXIT_FAIL;
	if (flush && facts.suspended) {
		complain(name, "is suspended, so it cannot be flushed; resume it with "
			 "'dmsetup resume %s', or give --no-flush", name);
		return LC_EXIT_FAIL;
	}
	if (flush && flush_volume(name)) {
		complain(name, "was not removed; --no-flush leaves the data on the SSD");
		return LC_EXIT_FAIL;
	}
	return dm_remove(name) ? LC_EXIT_FAIL : LC_EXIT_OK;
}

int cmd_remove(int argc, char **argv)
{
	bool flush = true;
	int c;

	while ((c = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'n':
			flush = false;
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
	return remove_volume(argv[optind], flush);
}
