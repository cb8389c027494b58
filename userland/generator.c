// SPDX-License-Identifier: GPL-2.0-only
/*
 * Units for the volumes of /etc/lctab, see generator.h.
 *
 * Why the units are what they are, by what would go wrong:
 *
 * - Shutdown with a file system mounted by UUID, or with LVM on the volume.  Such a mount has no
 *   dependency on the volume's own device.  All mounts but those with _netdev are ordered after
 *   local-fs-pre.target, and the service before it: so at shutdown mounts go first.  For a volume
 *   with _netdev it is remote-fs-pre.target.  What is open even then (swap by UUID, logical volumes,
 *   a mount with nofail's lack of order) is left to the end of the shutdown: there systemd-shutdown
 *   removes all devices of device mapper, and the module stops the volume as cleanly.
 *
 * - A replay or a late SSD that takes longer than the 90 s a mount waits for /dev/mapper/NAME.  The
 *   device unit requires the service, and has no time limit of its own: the service has those of its
 *   devices, and if the start fails the mount fails at once.  So a mount starts a volume with noauto,
 *   too.  A limit in fstab counts more.  A mount by UUID needs one there
 *   (x-systemd.device-timeout=) if the devices may be late.
 *
 * - A stop of the service while it is mounted.  It stops those that require the device, and those are
 *   ordered after blockdev@: this target is stopped with the service and orders them.  The device
 *   unit itself must not be ordered after the service: its own stop lasts until the device is gone,
 *   and the service, which lets it go, would wait for that.
 *
 * - A device that appears after its timeout.  Its unit wants the service, and systemd starts what
 *   is wanted by a device that is plugged in without anybody having waited.  The SSD that comes
 *   last starts the volume as the hard disk that comes last does; the service waits for the other.
 *
 * - The SSD dies while the volume runs.  The volume goes on without it (mode degraded), so no stop
 *   comes from the SSD: that would unmount a working volume.  The hard disk's does, with
 *   StopPropagatedFrom=: once it is gone the volume cannot work, and after the stop a disk that is
 *   plugged in again starts it anew, with all the SSD holds.
 *
 * - A device never appears.  The service wants its devices and does not require them (nor has
 *   BindsTo=): otherwise it would fail as a dependency, before it has said anything.  So it starts
 *   after the timeout, lc-resume tells which device is not there and what can be done, and
 *   systemctl status shows that.  lc.target fails with the service, and the boot goes on; what a
 *   mount that lacks its device means is up to its own line in fstab.  With nofail nothing is
 *   ordered after the service, so nobody waits.
 *
 * - A start that hangs in replay, in the kernel.  Nothing can end it, so it has no time limit: one
 *   would leave a volume that starts behind the back of a failed unit.  The console shows that the
 *   job runs.  With nofail the boot goes on beside it.
 *
 * - A daemon-reload, or a change of root from an initramfs that has started the volume.  The units
 *   are the same as before, and a service that is started again finds the volume (--running-ok).
 *
 * - udevd stops before the service at shutdown: lc-remove would wait for its rules.  The service
 *   is ordered after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "generator.h"
#include "lctab.h"
#include "memory.h"
#include "text.h"
#include "unit.h"
#include "util.h"

/*
 * What a stop takes: the batch of writeback under way, the index, a FLUSH of each device.  Each
 * command may be repeated by the kernel for three minutes (five times 30 s) on a disk that
 * recovers errors.  The data in the log stays there: nothing is drained.
 */
#define STOP_SECONDS	300
/* Of a device, where nothing else is said: systemd's own. */
#define DEVICE_SECONDS	90

/* One volume, in systemd's words; texts are of the lifetime of the struct. */
struct unit {
	const struct lctab_line *line;
	const char *folder;	/* where units go */
	char *service;		/* lc@NAME.service */
	char *node;		/* dev-mapper-NAME */
	char *ssd, *hdd;	/* their .device units; hdd may be NULL */
};

static bool to_kernel_log;
static bool failed;

static void tell(const char *subject, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void tell(const char *subject, const char *fmt, ...)
{
	char *text, *line;
	va_list args;
	int fd;

	failed = true;
	va_start(args, fmt);
	text = shown_format(fmt, args);
	va_end(args);
	complain(subject, "%s", text);
	fd = to_kernel_log ? open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY) : -1;
	if (fd >= 0) {
		line = xasprintf("<3>lc-generator: %s: %.800s\n", shown(subject), text);
		/* It is on stderr anyway. */
		if (write(fd, line, strlen(line)) < 0)
			to_kernel_log = false;
		close(fd);
		free(line);
	}
	free(text);
}

/* A new file, to be closed by end_file(); NULL after complaining.  @path is the caller's. */
static FILE *begin_file(const char *path)
{
	FILE *file = fopen(path, "wxe");

	if (!file) {
		tell(path, "cannot be made: %s", strerror(errno));
		return NULL;
	}
	fprintf(file, "# Made by lc-generator\n\n[Unit]\n");
	return file;
}

static void end_file(FILE *file, const char *path)
{
	bool bad = ferror(file);

	if (fclose(file) || bad)
		tell(path, "cannot be written: %s", strerror(errno));
}

/* A folder beside a unit, such as X.device.wants, to be freed; NULL after complaining. */
static char *make_folder(const struct unit *u, const char *unit, const char *kind)
{
	char *path = xasprintf("%s/%s.%s", u->folder, unit, kind);

	if (!mkdir(path, 0755) || errno == EEXIST)
		return path;
	tell(path, "cannot be made: %s", strerror(errno));
	free(path);
	return NULL;
}

/* Have @unit want or require the service. */
static void link_from(const struct unit *u, const char *unit, const char *kind)
{
	char *folder = make_folder(u, unit, kind), *path, *target;

	if (!folder)
		return;
	path = xasprintf("%s/%s", folder, u->service);
	target = xasprintf("../%s", u->service);
	if (symlink(target, path))
		tell(path, "cannot be made: %s", strerror(errno));
	free(target);
	free(path);
	free(folder);
}

/* One line of a drop-in for a .device unit. */
static void drop_in(const struct unit *u, const char *unit, const char *name, const char *line)
{
	char *folder = make_folder(u, unit, "d"), *path;
	FILE *file;

	if (!folder)
		return;
	path = xasprintf("%s/%s", folder, name);
	/* The line of another volume may have the same device, and comes first. */
	file = access(path, F_OK) ? begin_file(path) : NULL;
	if (file) {
		fprintf(file, "%s\n", line);
		end_file(file, path);
	}
	free(path);
	free(folder);
}

static void limit_waiting(const struct unit *u, const char *device)
{
	char *line;

	if (!device || !u->line->has_timeout)
		return;
	line = u->line->timeout == LCTAB_FOREVER ? xasprintf("JobRunningTimeoutSec=infinity") :
	       xasprintf("JobRunningTimeoutSec=%llus", u->line->timeout);
	drop_in(u, device, "50-lc-device-timeout.conf", line);
	free(line);
}

/*
 * What brings disks over the network.  The units of the devices give the order of the start, these
 * names that of the stop: the volume goes before the connection.  network-online.target says
 * nothing at a stop, and at the start the devices say it better.  nbd has a unit for each device.
 */
static void write_network(FILE *file, const struct lctab_line *line)
{
	const char *const paths[] = { line->ssd, line->hdd };
	size_t i, len;

	fprintf(file, "After=network.target iscsid.service open-iscsi.service iscsi.service "
		"rbdmap.service\n");
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		if (!paths[i] || strncmp(paths[i], "/dev/nbd", 8))
			continue;
		len = 3 + strspn(paths[i] + 8, "0123456789");
		if (len > 3)
			fprintf(file, "After=nbd@%.*s.service\n", (int)len, paths[i] + 5);
	}
}

static void write_order(FILE *file, const struct unit *u)
{
	const struct lctab_line *line = u->line;

	fprintf(file, "DefaultDependencies=no\nIgnoreOnIsolate=true\n");
	fprintf(file, "Wants=modprobe@dm_mod.service blockdev@%s.target\n", u->node);
	fprintf(file, "After=modprobe@dm_mod.service systemd-udevd-kernel.socket "
		"systemd-udevd.service\n");
	fprintf(file, "Before=blockdev@%s.target\nPropagatesStopTo=blockdev@%s.target\n", u->node,
		u->node);
	fprintf(file, "Wants=%s\nAfter=%s\n", u->ssd, u->ssd);
	if (u->hdd)
		fprintf(file, "Wants=%s\nAfter=%s\nStopPropagatedFrom=%s\n", u->hdd, u->hdd, u->hdd);
	if (line->netdev)
		write_network(file, line);
	if (!line->nofail)
		fprintf(file, "Wants=%s\nBefore=%s %s\n",
			line->netdev ? "remote-fs-pre.target" : "local-fs-pre.target",
			line->netdev ? "remote-fs-pre.target" : "local-fs-pre.target",
			line->netdev ? "remote-lc.target" : "lc.target");
	/* Those of the initramfs are stopped by it, after the root file system. */
	if (!line->in_initrd)
		fprintf(file, "Conflicts=umount.target\n");
	fprintf(file, "Before=umount.target\n");
}

/* @wait: for a hard disk that no unit waits for. */
static void write_start(FILE *file, const struct lctab_line *line, const char *lc)
{
	char *ssd = unit_word(line->ssd), *hdd = line->hdd ? unit_word(line->hdd) : NULL;
	char *name = unit_word(line->name), *pair;
	size_t i;

	fprintf(file, "ExecStart=%s resume --running-ok", lc);
	if (line->iostats)
		fprintf(file, " --iostats");
	if (!hdd && line->has_timeout && line->timeout == LCTAB_FOREVER)
		fprintf(file, " --wait=infinity");
	else if (!hdd)
		fprintf(file, " --wait=%llu", line->has_timeout ? line->timeout : DEVICE_SECONDS);
	for (i = 0; i < line->nr_pairs; i++) {
		pair = unit_word(line->pairs[i]);
		fprintf(file, " -o %s", pair);
		free(pair);
	}
	fprintf(file, " -- %s %s%s%s\n", name, ssd, hdd ? " " : "", hdd ? hdd : "");
	fprintf(file, "ExecStop=%s remove --no-drain --missing-ok --busy-ok -- %s\n", lc, name);
	free(name);
	free(hdd);
	free(ssd);
}

static void write_service(const struct unit *u, const char *table, const char *lc)
{
	char *path = xasprintf("%s/%s", u->folder, u->service);
	char *source = unit_command(table);
	FILE *file = begin_file(path);

	if (file) {
		/* A name has no other character that a line of a unit would take for special. */
		fprintf(file, "Description=dm-lc volume %s\n", u->line->name);
		fprintf(file, "Documentation=man:lctab(5) man:lc-resume(8)\nSourcePath=%s\n",
			source);
		write_order(file, u);
		fprintf(file, "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
		fprintf(file, "TimeoutStartSec=infinity\nTimeoutStopSec=%ds\n", STOP_SECONDS);
		write_start(file, u->line, lc);
		end_file(file, path);
	}
	free(source);
	free(path);
}

static char *device_unit(const char *path)
{
	char *name = unit_escape_path(path), *unit = xasprintf("%s.device", name);

	free(name);
	return unit;
}

static void make_links(const struct unit *u)
{
	const struct lctab_line *line = u->line;
	char *device = xasprintf("%s.device", u->node);

	link_from(u, device, "requires");
	/* Before fstab's own, 50-device-timeout.conf. */
	drop_in(u, device, "40-lc.conf", "JobRunningTimeoutSec=infinity");
	free(device);
	limit_waiting(u, u->ssd);
	limit_waiting(u, u->hdd);
	if (line->noauto)
		return;
	link_from(u, line->netdev ? "remote-lc.target" : "lc.target",
		  line->nofail ? "wants" : "requires");
	link_from(u, u->ssd, "wants");
	if (u->hdd)
		link_from(u, u->hdd, "wants");
}

static void make_unit(const struct lctab_line *line, const char *folder, const char *table,
		      const char *lc)
{
	char *name = unit_escape(line->name), *node = xasprintf("/dev/mapper/%s", line->name);
	struct unit u = {
		.line = line,
		.folder = folder,
		.service = xasprintf("lc@%s.service", name),
		.node = unit_escape_path(node),
		.ssd = device_unit(line->ssd),
		.hdd = line->hdd ? device_unit(line->hdd) : NULL,
	};

	write_service(&u, table, lc);
	make_links(&u);
	free(u.hdd);
	free(u.ssd);
	free(u.node);
	free(u.service);
	free(node);
	free(name);
}

/* The binary that runs, as a command of ExecStart=, to be freed; NULL after complaining. */
static char *own_command(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len < 0) {
		tell("/proc/self/exe", "cannot be read: %s; no volume is started", strerror(errno));
		return NULL;
	}
	path[len] = '\0';
	return unit_command(path);
}

/* NULL if there is none, or after complaining.  A FIFO or a device would block the boot. */
static FILE *open_table(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	FILE *file;

	if (fd < 0) {
		if (errno != ENOENT)
			tell(path, "cannot be opened: %s; no volume is started", strerror(errno));
		return NULL;
	}
	file = !fstat(fd, &st) && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	if (!file) {
		tell(path, "is no regular file; no volume is started");
		close(fd);
	}
	return file;
}

static void say_faults(const struct lctab *tab, const char *path)
{
	char *subject;
	size_t i;

	for (i = 0; i < tab->nr_faults; i++) {
		subject = xasprintf("%s:%u", path, tab->faults[i].number);
		tell(subject, "%s; the line is left out", tab->faults[i].text);
		free(subject);
	}
}

int generator_run(int argc, char **argv)
{
	const char *path = getenv("LCTAB"), *scope = getenv("SYSTEMD_SCOPE");
	bool in_initrd = !access("/etc/initrd-release", F_OK);
	struct lctab tab;
	FILE *file;
	char *lc;
	size_t i;
	int ret;

	if (argc != 2 && argc != 4)
		return usage_error("systemd runs this, with the folders for units; see lctab(5)");
	to_kernel_log = scope && !strcmp(scope, "system");
	path = path ? path : LCTAB_PATH;
	file = open_table(path);
	if (!file)
		return failed ? LC_EXIT_FAIL : LC_EXIT_OK;
	ret = lctab_read(&tab, file);
	fclose(file);
	if (ret)
		tell(path, "cannot be read: %s", strerror(-ret));
	say_faults(&tab, path);
	lc = tab.nr ? own_command() : NULL;
	for (i = 0; lc && i < tab.nr; i++) {
		if (!in_initrd || tab.lines[i].in_initrd)
			make_unit(&tab.lines[i], argv[1], path, lc);
	}
	free(lc);
	lctab_free(&tab);
	return failed ? LC_EXIT_FAIL : LC_EXIT_OK;
}
