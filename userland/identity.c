// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is a device?  From sysfs alone, so that it works in an initramfs without udev.
 * A partition has the model, serial and WWN of its disk and is told apart by its
 * PARTUUID, which device.c reads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/blkpg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "identity.h"
#include "memory.h"
#include "util.h"

/* First line of sysfs file @dir/@name; false if it is not there or empty. */
static bool read_sysfs(const char *dir, const char *name, char *text, size_t len)
{
	char *path = xasprintf("%s/%s", dir, name);
	ssize_t n = -1;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	text[0] = '\0';
	if (fd < 0)
		return false;
	n = read(fd, text, len - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	clean_text(text);
	return text[0];
}

/* SCSI page 0x80: the serial behind four bytes of header. */
static void read_scsi_serial(const char *dir, char *serial, size_t len)
{
	char *path = xasprintf("%s/device/vpd_pg80", dir);
	unsigned char page[256];
	ssize_t n = -1;
	size_t chars;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return;
	n = read(fd, page, sizeof(page));
	close(fd);
	if (n <= 4)
		return;
	chars = page[3] < n - 4 ? page[3] : n - 4;
	if (chars >= len)
		chars = len - 1;
	memcpy(serial, page + 4, chars);
	serial[chars] = '\0';
	clean_text(serial);
}

static void read_disk(struct identity *id, const char *dir)
{
	char text[32];

	if (!read_sysfs(dir, "device/model", id->model, sizeof(id->model)))
		read_sysfs(dir, "device/name", id->model, sizeof(id->model));	/* MMC */
	/* NVMe and virtio keep them beside the queue, SCSI and MMC below device. */
	if (!read_sysfs(dir, "wwid", id->wwn, sizeof(id->wwn)))
		read_sysfs(dir, "device/wwid", id->wwn, sizeof(id->wwn));
	if (!read_sysfs(dir, "serial", id->serial, sizeof(id->serial)) &&
	    !read_sysfs(dir, "device/serial", id->serial, sizeof(id->serial)))
		read_scsi_serial(dir, id->serial, sizeof(id->serial));
	read_sysfs(dir, "dm/uuid", id->dm_uuid, sizeof(id->dm_uuid));
	id->rotational = !read_sysfs(dir, "queue/rotational", text, sizeof(text)) ? -1 :
			 text[0] == '1';
	id->host_managed = read_sysfs(dir, "queue/zoned", text, sizeof(text)) &&
			   !strcmp(text, "host-managed");
}

static dev_t parse_devno(const char *text)
{
	unsigned int major, minor;

	return sscanf(text, "%u:%u", &major, &minor) == 2 ? makedev(major, minor) : 0;
}

int identity_read(struct identity *id, dev_t devno)
{
	char *link = xasprintf("/sys/dev/block/%u:%u", major(devno), minor(devno));
	char dir[PATH_MAX], text[64], *path;

	memset(id, 0, sizeof(*id));
	id->whole = devno;
	path = realpath(link, dir);
	free(link);
	if (!path)
		return -ENODEV;
	snprintf(id->name, sizeof(id->name), "%s", strrchr(dir, '/') + 1);
	id->is_partition = read_sysfs(dir, "partition", text, sizeof(text));
	if (id->is_partition) {
		*strrchr(dir, '/') = '\0';
		if (read_sysfs(dir, "dev", text, sizeof(text)))
			id->whole = parse_devno(text);
	}
	read_disk(id, dir);
	return 0;
}

unsigned int identity_partitions(const struct identity *id, struct blkpg_partition **parts)
{
	char *link = xasprintf("/sys/dev/block/%u:%u", major(id->whole), minor(id->whole));
	DIR *list = id->is_partition ? NULL : opendir(link);
	struct dirent *entry;
	unsigned int nr = 0;

	*parts = NULL;
	while (list && (entry = readdir(list))) {
		char *dir = xasprintf("%s/%s", link, entry->d_name);
		char number[16], start[32], sectors[32];

		if (read_sysfs(dir, "partition", number, sizeof(number)) &&
		    read_sysfs(dir, "start", start, sizeof(start)) &&
		    read_sysfs(dir, "size", sectors, sizeof(sectors))) {
			*parts = xrealloc(*parts, nr + 1, sizeof(**parts));
			memset(&(*parts)[nr], 0, sizeof(**parts));
			(*parts)[nr].pno = atoi(number);
			(*parts)[nr].start = strtoll(start, NULL, 10) << 9;
			(*parts)[nr++].length = strtoll(sectors, NULL, 10) << 9;
		}
		free(dir);
	}
	if (list)
		closedir(list);
	free(link);
	return nr;
}

const char *identity_text(const struct identity *id)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s%s",
		 id->model[0] ? id->model : "no model name",
		 id->serial[0] ? ", serial " : "", id->serial,
		 id->wwn[0] ? ", WWN " : "", id->wwn,
		 id->partuuid[0] ? ", PARTUUID " : "", id->partuuid,
		 id->dm_uuid[0] ? ", DM UUID " : "", id->dm_uuid);
	return text;
}

/* Is @devno, or a partition of it, named in the third field of a mount table? */
static bool find_mount(dev_t devno, char *text, size_t len)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;
	char line[4096], where[1024];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		struct identity id;

		if (sscanf(line, "%*d %*d %u:%u %*s %1023s", &major, &minor, where) != 3 || !major)
			continue;
		found = makedev(major, minor) == devno ||
			(!identity_read(&id, makedev(major, minor)) && id.whole == devno);
	}
	fclose(f);
	if (found)
		snprintf(text, len, ": mounted on %s", where);
	return found;
}

/* The last of the devices that are built on @devno. */
static bool find_holder(dev_t devno, char *text, size_t len)
{
	char *path = xasprintf("/sys/dev/block/%u:%u/holders", major(devno), minor(devno));
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;
	char name[64];

	while (dir && (entry = readdir(dir))) {
		char *sub;

		if (entry->d_name[0] == '.')
			continue;
		sub = xasprintf("%s/%s", path, entry->d_name);
		if (!read_sysfs(sub, "dm/name", name, sizeof(name)))
			snprintf(name, sizeof(name), "%.63s", entry->d_name);
		snprintf(text, len, ": held by %s", name);
		free(sub);
		found = true;
	}
	if (dir)
		closedir(dir);
	free(path);
	return found;
}

void identity_explain_busy(dev_t devno, char *text, size_t len)
{
	struct identity id;

	text[0] = '\0';
	if (find_mount(devno, text, len) || find_holder(devno, text, len))
		return;
	if (!identity_read(&id, devno) && id.is_partition)
		find_holder(id.whole, text, len);
}

/* RAM disks lose everything, and optical and floppy drives take seconds to say nothing. */
static bool ignored_kind(const char *name)
{
	static const char * const kinds[] = { "ram", "zram", "sr", "fd", "mtdblock" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return true;
	}
	return false;
}

char **identity_list(void)
{
	struct dirent **entries;
	size_t nr = 0;
	char **paths;
	int i, n;

	n = scandir("/sys/class/block", &entries, NULL, versionsort);
	paths = xcalloc(n > 0 ? n + 1 : 1, sizeof(*paths));
	for (i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char *dir = xasprintf("/sys/class/block/%s", name);
		char size[32];

		if (name[0] != '.' && !ignored_kind(name) &&
		    read_sysfs(dir, "size", size, sizeof(size)) && strcmp(size, "0")) {
			char *slash;

			paths[nr++] = xasprintf("/dev/%s", name);
			/* sysfs writes cciss!c0d0 for /dev/cciss/c0d0. */
			while ((slash = strchr(paths[nr - 1], '!')))
				*slash = '/';
		}
		free(dir);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return paths;
}

void identity_list_free(char **paths)
{
	size_t i;

	for (i = 0; paths[i]; i++)
		free(paths[i]);
	free(paths);
}
