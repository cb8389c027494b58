// SPDX-License-Identifier: GPL-2.0-only
/* lc-remove: stop a volume.  The kernel makes the clean stop when the device goes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "cmd.h"
#include "detach.h"
#include "device.h"
#include "dm.h"
#include "drain.h"
#include "identity.h"
#include "text.h"
#include "util.h"

enum { OPT_DETACH = 256, OPT_NO_DRAIN, OPT_MISSING_OK, OPT_BUSY_OK };

/* What the command line asks for. */
struct choices {
	bool no_drain, detach, missing_ok, busy_ok;
};

static const struct cmd_option long_options[] = {
	{ "detach", OPT_DETACH, NULL, "then take the pair apart, as lc-detach does" },
	{ "no-drain", OPT_NO_DRAIN, NULL, "leave the data on the SSD; lc-resume brings it back" },
	{ "no-flush", OPT_NO_DRAIN, NULL, NULL },
	{ "missing-ok", OPT_MISSING_OK, NULL, "a volume that is not there is no error" },
	{ "busy-ok", OPT_BUSY_OK, NULL, "a volume that is in use is left as it is, which is no error" },
	{ NULL, 0, NULL, NULL }
};

/* It may have been renamed since, or be gone, and another one have its number. */
static int look_again(struct dm_facts *facts)
{
	char *table = facts->params;
	int ret;

	facts->params = NULL;
	ret = dm_facts_again(facts);
	if (!ret && (!facts->exists || !facts->target || strcmp(facts->target, "lc") ||
		     strcmp(facts->params, table))) {
		complain(facts->name, "somebody else has removed it or exchanged its table "
			 "meanwhile; nothing more is done");
		ret = -ENODEV;
	}
	free(table);
	return ret;
}

/*
 * After a umount udev looks at the device for a moment, to see what it holds.  So one that is
 * open is looked at again for some seconds, unless it is known who uses it.
 */
static int refuse_open(struct dm_facts *facts, bool busy_ok)
{
	const struct timespec pause = { .tv_nsec = 200 * 1000000L };
	unsigned int tries = 0;
	char holder[256] = "";

	while (facts->open_count && !holder[0] && tries++ < 25) {
		identity_explain_busy(makedev(facts->major, facts->minor), holder, sizeof(holder));
		if (holder[0])
			break;
		nanosleep(&pause, NULL);
		if (look_again(facts))
			return -ENODEV;
	}
	if (!facts->open_count)
		return 0;
	if (busy_ok)
		printf("%s: is in use%s; the end of the shutdown stops it\n", shown(facts->name),
		       shown(holder));
	else
		complain(facts->name,
			 "is in use (open %d times)%s; unmount it or stop what uses it first",
			 facts->open_count, holder);
	return -EBUSY;
}

/* The device node of "MAJOR:MINOR" by the kernel's name: there may be no udev to make links. */
static int node_path(const char *number, char *path, size_t len)
{
	unsigned int major, minor;
	struct identity id;
	char *slash;

	if (sscanf(number, "%u:%u", &major, &minor) != 2 ||
	    identity_read(&id, makedev(major, minor))) {
		complain(NULL, "device %s is gone; use lc-detach with the names of the devices",
			 number);
		return -ENODEV;
	}
	snprintf(path, len, "/dev/%s", id.name);
	/* sysfs has no slashes in names. */
	while ((slash = strchr(path, '!')))
		*slash = '/';
	return 0;
}

/* The volume is gone; "MAJOR:MINOR" texts name its devices. */
static int detach(const char *hdd_number, const char *ssd_number)
{
	char hdd_path[80], ssd_path[80];
	struct device ssd, hdd;
	int ret;

	if (node_path(hdd_number, hdd_path, sizeof(hdd_path)) ||
	    node_path(ssd_number, ssd_path, sizeof(ssd_path)) ||
	    device_open(&hdd, hdd_path, DEVICE_WRITE | DEVICE_EXCL))
		return LC_EXIT_FAIL;
	ret = device_open(&ssd, ssd_path, DEVICE_WRITE | DEVICE_EXCL);
	if (!ret) {
		ret = detach_pair(&ssd, &hdd, 0);
		device_close(&ssd);
	}
	device_close(&hdd);
	return ret ? LC_EXIT_FAIL : LC_EXIT_OK;
}

/* @facts: of the volume, with its table.  -EBUSY: it is open. */
static int drain_and_remove(struct dm_facts *facts, const struct choices *choices)
{
	bool drain = !choices->no_drain;
	int ret = refuse_open(facts, choices->busy_ok);

	if (ret)
		return ret;
	if (drain && facts->suspended) {
		complain(facts->name, "is suspended, so it cannot be drained; resume it with "
			 "'dmsetup resume %s', or give --no-drain", facts->name);
		return -EIO;
	}
	if (drain && drain_volume(facts)) {
		complain(facts->name, "was not removed; --no-drain leaves the data on the SSD");
		return -EIO;
	}
	/* That may have taken hours. */
	if (drain && look_again(facts))
		return -ENODEV;
	return dm_remove(facts);
}

/* The shutdown removes volumes, too: one that it has just removed is missing. */
static bool is_fine(const char *name, int err, const struct choices *choices)
{
	struct dm_facts facts;
	bool missing;

	if (err == -EBUSY && choices->busy_ok)
		return true;
	if (!choices->missing_ok || dm_facts(name, &facts))
		return false;
	missing = !facts.exists;
	dm_facts_free(&facts);
	if (missing)
		printf("%s: there is no such volume, nothing to stop\n", shown(name));
	return missing;
}

static int remove_volume(const char *name, const struct choices *choices)
{
	char hdd[16] = "", ssd[16] = "";
	struct dm_facts facts;
	int ret;

	if (is_fine(name, 0, choices))
		return LC_EXIT_OK;
	if (dm_require_lc(name, &facts))
		return LC_EXIT_FAIL;
	if (choices->detach && sscanf(facts.params, "%15[0-9:] %15[0-9:]", hdd, ssd) != 2) {
		complain(name, "its table does not tell its devices; use lc-remove, then lc-detach");
		dm_facts_free(&facts);
		return LC_EXIT_FAIL;
	}
	ret = drain_and_remove(&facts, choices);
	dm_facts_free(&facts);
	if (ret)
		return is_fine(name, ret, choices) ? LC_EXIT_OK : LC_EXIT_FAIL;
	return choices->detach ? detach(hdd, ssd) : LC_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct choices choices = { 0 };
	const char *name;
	int c, code;

	while ((c = cmd_option(&cmd_remove, argc, argv, &code)) >= 0) {
		if (c == OPT_NO_DRAIN)
			choices.no_drain = true;
		else if (c == OPT_DETACH)
			choices.detach = true;
		else if (c == OPT_MISSING_OK)
			choices.missing_ok = true;
		else if (c == OPT_BUSY_OK)
			choices.busy_ok = true;
	}
	if (c == CMD_END)
		return code;
	name = cmd_argument(argc, argv, "volume");
	if (!name)
		return LC_EXIT_USAGE;
	if (choices.detach && choices.no_drain)
		return usage_error("--detach needs all data on the hard disk; leave --no-drain out");
	if (choices.detach && (choices.missing_ok || choices.busy_ok))
		return usage_error("--detach needs the volume to be there and not in use; leave "
				   "--missing-ok and --busy-ok out");
	dm_setup();
	return remove_volume(name, &choices);
}

const struct cmd cmd_remove = {
	.name = "remove",
	.summary = "stop a cached volume",
	.usage = "[--no-drain | --detach] [--missing-ok] [--busy-ok] NAME",
	.text = "Drains the volume, so that all data is on its hard disk, and stops it.",
	.options = long_options,
	.run = run,
};
