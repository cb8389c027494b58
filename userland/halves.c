// SPDX-License-Identifier: GPL-2.0-only
/* The halves of pairs that are attached, see halves.h. */
#include <libudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "halves.h"
#include "identity.h"
#include "memory.h"
#include "probe.h"
#include "text.h"
#include "util.h"

static struct half *add(struct halves *halves, const char *path, bool cache)
{
	struct half *half;

	halves->list = xrealloc(halves->list, halves->nr + 1, sizeof(*halves->list));
	half = &halves->list[halves->nr++];
	memset(half, 0, sizeof(*half));
	half->path = xasprintf("%s", path);
	half->cache = cache;
	return half;
}

static bool is_one(const char *text)
{
	return text && !strcmp(text, "1");
}

static void take(struct halves *halves, struct udev_device *dev)
{
	const char *type = udev_device_get_property_value(dev, "ID_FS_TYPE");
	const char *uuid = udev_device_get_property_value(dev, "ID_FS_UUID");
	const char *path = udev_device_get_devnode(dev);
	struct half *half;

	if (!type || !path || is_one(udev_device_get_property_value(dev, "DM_MULTIPATH_DEVICE_PATH")) ||
	    is_one(udev_device_get_sysattr_value(dev, "dm/suspended")))
		return;
	half = add(halves, path, !strcmp(type, "lc_cache"));
	half->newer = !uuid && udev_device_get_property_value(dev, "ID_FS_VERSION");
	snprintf(half->uuid, sizeof(half->uuid), "%s", uuid ? uuid : "");
}

static void ask_udev(struct halves *halves)
{
	struct udev *udev = udev_new();
	struct udev_enumerate *found = udev ? udev_enumerate_new(udev) : NULL;
	struct udev_list_entry *entry;
	struct udev_device *dev;

	if (found && udev_enumerate_add_match_subsystem(found, "block") >= 0 &&
	    udev_enumerate_add_match_property(found, "ID_FS_TYPE", "lc_*") >= 0 &&
	    udev_enumerate_scan_devices(found) >= 0) {
		udev_list_entry_foreach(entry, udev_enumerate_get_list_entry(found)) {
			dev = udev_device_new_from_syspath(udev, udev_list_entry_get_name(entry));
			if (dev)
				take(halves, dev);
			udev_device_unref(dev);
		}
	}
	udev_enumerate_unref(found);
	udev_unref(udev);
}

static void read_all(struct halves *halves)
{
	char **paths = identity_list();
	struct probe probe;
	struct half *half;
	struct device dev;
	size_t i;

	for (i = 0; paths[i]; i++) {
		if (device_open(&dev, paths[i], DEVICE_GLANCE | DEVICE_QUIET))
			continue;
		if (!probe_device(&dev, &probe) && probe.role != PROBE_NEITHER) {
			half = add(halves, paths[i], probe.role == PROBE_CACHE);
			half->newer = !probe.known && probe.version;
			if (probe.known)
				snprintf(half->uuid, sizeof(half->uuid), "%s",
					 uuid_text(probe.uuid));
		}
		device_close(&dev);
	}
	identity_list_free(paths);
}

void halves_find(struct halves *halves)
{
	memset(halves, 0, sizeof(*halves));
	if (!access("/run/udev/control", F_OK))
		ask_udev(halves);
	else
		read_all(halves);
}

void halves_free(struct halves *halves)
{
	size_t i;

	for (i = 0; i < halves->nr; i++)
		free(halves->list[i].path);
	free(halves->list);
	halves->list = NULL;
	halves->nr = 0;
}

bool halves_link(const char *path, const char *kind, char uuid[HALVES_UUID + 1])
{
	static const char by_lc[] = "/dev/disk/by-lc/";
	const char *name;

	if (!path || strncmp(path, by_lc, strlen(by_lc)))
		return false;
	name = path + strlen(by_lc);
	if (strcspn(name, "./") != HALVES_UUID || name[HALVES_UUID] != '.' ||
	    strcmp(name + HALVES_UUID + 1, kind))
		return false;
	snprintf(uuid, HALVES_UUID + 1, "%s", name);
	return true;
}
