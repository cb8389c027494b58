// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device mapper, through libdevmapper.
 *
 * libdevmapper prints its own errors ("reload ioctl on lc0 failed"); they are
 * kept back and printed as the reason behind ours.  The kernel tells why it
 * refused a table in its log only, so the lines that appear there meanwhile
 * are shown as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <libdevmapper.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dm.h"
#include "memory.h"
#include "module.h"
#include "util.h"

#define LOG_ERROR	3	/* libdevmapper's levels are syslog's */

static char first_error[256];

static void keep_log(int level, const char *file, int line, int errno_or_class,
		     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void keep_log(int level, const char *file, int line, int errno_or_class,
		     const char *fmt, ...)
{
	va_list args;

	(void)file;
	(void)line;
	(void)errno_or_class;
	/* The first one tells the cause, the others what came of it. */
	if ((level & 7) > LOG_ERROR || first_error[0])
		return;
	va_start(args, fmt);
	vsnprintf(first_error, sizeof(first_error), fmt, args);
	va_end(args);
}

static bool use_udev(void)
{
	return !getenv("DM_DISABLE_UDEV") && !access("/run/udev/control", F_OK);
}

void dm_setup(void)
{
	dm_log_with_errno_init(keep_log);
	if (!use_udev()) {
		dm_udev_set_sync_support(0);
		dm_udev_set_checking(0);
	}
}

/*
 * Nothing can be asked without the control node.  Of an error in opening it libdevmapper keeps
 * no errno.
 */
static const char *remedy(int err)
{
	if (!err && access("/dev/mapper/control", R_OK | W_OK))
		err = errno;
	if (err == EACCES || err == EPERM)
		return "; run as root";
	return err == ENOENT && access("/dev/mapper/control", F_OK) ?
	       "; is the dm-mod module loaded?" : "";
}

static int fail(const char *name, const char *what, struct dm_task *task)
{
	int err = task ? dm_task_get_errno(task) : 0;

	complain(name, "%s: %s%s", what, first_error[0] ? first_error : strerror(err ? err : EIO),
		 remedy(err));
	first_error[0] = '\0';
	return err ? -err : -EIO;
}

static struct dm_task *new_task(int type, const char *name)
{
	struct dm_task *task;

	first_error[0] = '\0';
	task = dm_task_create(type);
	if (task && name && !dm_task_set_name(task, name)) {
		dm_task_destroy(task);
		task = NULL;
	}
	return task;
}

/* For a device that is known already, whatever its name is now. */
static struct dm_task *new_task_for(int type, const struct dm_facts *facts)
{
	struct dm_task *task = new_task(type, NULL);

	if (task && !dm_task_set_major_minor(task, facts->major, facts->minor, 0)) {
		dm_task_destroy(task);
		task = NULL;
	}
	return task;
}

/* @task has run: with the answer comes the name. */
static void follow_name(struct dm_task *task, struct dm_facts *facts)
{
	const char *name = dm_task_get_name(task);

	if (!name || !name[0] || !strcmp(name, facts->name))
		return;
	complain(name, "was renamed meanwhile, the name was %s; going on", facts->name);
	snprintf(facts->name, sizeof(facts->name), "%s", name);
}

/* With udev its rules make the nodes and we wait for them; without, libdevmapper does. */
static int run_with_nodes(struct dm_task *task)
{
	uint32_t cookie = 0;
	int ok;

	if (!use_udev()) {
		ok = dm_task_run(task);
		dm_task_update_nodes();
		return ok;
	}
	if (!dm_task_set_cookie(task, &cookie, 0))
		return 0;
	ok = dm_task_run(task);
	dm_udev_wait(cookie);
	return ok;
}

static int read_table(struct dm_facts *facts)
{
	struct dm_task *task = new_task_for(DM_DEVICE_TABLE, facts);
	char *type = NULL, *params = NULL;
	uint64_t start = 0, length = 0;
	int ret = 0;

	if (!task || !dm_task_run(task)) {
		ret = fail(facts->name, "cannot read its table", task);
	} else {
		dm_get_next_target(task, NULL, &start, &length, &type, &params);
		if (type) {
			facts->target = xasprintf("%s", type);
			facts->params = xasprintf("%s", params ? params : "");
			facts->sectors = length;
		}
	}
	if (task)
		dm_task_destroy(task);
	return ret;
}

/* The answer, and the table if there is one. */
static int ask(struct dm_task *task, struct dm_facts *facts)
{
	const char *uuid = NULL;
	struct dm_info info;
	int ret = 0;

	memset(&info, 0, sizeof(info));
	if (!task || !dm_task_run(task) || !dm_task_get_info(task, &info))
		ret = fail(facts->name, "cannot ask device mapper", task);
	else if (info.exists && facts->exists)
		follow_name(task, facts);
	if (!ret && info.exists)
		uuid = dm_task_get_uuid(task);
	snprintf(facts->uuid, sizeof(facts->uuid), "%s", uuid ? uuid : "");
	if (task)
		dm_task_destroy(task);
	facts->exists = !ret && info.exists;
	if (!facts->exists)
		return ret;
	facts->suspended = info.suspended;
	facts->open_count = info.open_count;
	facts->major = info.major;
	facts->minor = info.minor;
	ret = read_table(facts);
	if (ret)
		dm_facts_free(facts);
	return ret;
}

int dm_facts(const char *name, struct dm_facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	snprintf(facts->name, sizeof(facts->name), "%s", name);
	return ask(new_task(DM_DEVICE_INFO, name), facts);
}

int dm_facts_again(struct dm_facts *facts)
{
	dm_facts_free(facts);
	return ask(new_task_for(DM_DEVICE_INFO, facts), facts);
}

void dm_facts_free(struct dm_facts *facts)
{
	free(facts->target);
	free(facts->params);
	facts->target = NULL;
	facts->params = NULL;
}

/* Is @name the one that the kernel spells as the first @len bytes of @spelt?  See dm-lc/store/name.h. */
static bool spelt_as(const char *name, const char *spelt, size_t len)
{
	unsigned int byte;
	size_t used;

	if (strlen(name) == len && !memcmp(name, spelt, len))
		return true;
	for (; len && *name; name++, spelt += used, len -= used) {
		used = 1;
		byte = (unsigned char)*spelt;
		if (len >= 4 && sscanf(spelt, "\\x%2x", &byte) == 1)
			used = 4;
		if (byte != (unsigned char)*name)
			return false;
	}
	return !len && !*name;
}

/* Is it in a list of names that commas part? */
static bool is_listed(const char *name, const char *list)
{
	size_t len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (spelt_as(name, list, len))
			return true;
		if (!list[len])
			return false;
	}
}

/* Say what became of the volume that had this name, if the kernel knows. */
static void complain_missing(const char *name)
{
	struct lc_status status;
	struct dm_facts facts;
	const char *former;
	bool found = false;
	char **names;
	size_t i;

	if (dm_list_lc(&names))
		return;
	for (i = 0; names[i]; i++) {
		if (dm_facts(names[i], &facts))
			continue;
		if (facts.exists && !dm_status(&facts, &status)) {
			former = dm_status_get(&status, "former_names");
			if (former && strcmp(former, "-") && is_listed(name, former)) {
				complain(name, "no such device: the volume was renamed to %s; use "
					 "that name", facts.name);
				found = true;
			}
			dm_status_free(&status);
		}
		dm_facts_free(&facts);
	}
	dm_list_free(names);
	if (!found)
		complain(name, "no such device; 'lc-status' lists the running volumes");
}

int dm_require_lc(const char *name, struct dm_facts *facts)
{
	int ret = dm_facts(name, facts);

	if (ret)
		return ret;
	if (!facts->exists) {
		complain_missing(name);
		return -ENODEV;
	}
	if (!facts->target || strcmp(facts->target, "lc")) {
		complain(name, "is not an lc device but %s; 'lc-status' lists the running volumes",
			 facts->target ? facts->target : "one without a table");
		dm_facts_free(facts);
		return -EINVAL;
	}
	return 0;
}

int dm_list_lc(char ***list)
{
	struct dm_task *task = new_task(DM_DEVICE_LIST, NULL);
	struct dm_names *names;
	char **out = NULL;
	unsigned int next = 0;
	size_t nr = 0;
	int ret = 0;

	*list = NULL;
	names = task && dm_task_run(task) ? dm_task_get_names(task) : NULL;
	if (!names) {
		ret = fail(NULL, "cannot list devices", task);
		goto out;
	}
	out = xcalloc(1, sizeof(*out));
	if (!names->dev)
		goto out;
	do {
		struct dm_facts facts;

		names = (struct dm_names *)((char *)names + next);
		next = names->next;
		/* One that goes away meanwhile is not an error. */
		if (!dm_facts(names->name, &facts) && facts.target && !strcmp(facts.target, "lc")) {
			out = xrealloc(out, nr + 2, sizeof(*out));
			out[nr++] = xasprintf("%s", names->name);
			out[nr] = NULL;
		}
		dm_facts_free(&facts);
	} while (next);
out:
	if (task)
		dm_task_destroy(task);
	*list = out;
	return ret;
}

void dm_list_free(char **names)
{
	size_t i;

	for (i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

static int kernel_log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* Is it of another lc volume?  Lines of a volume bear its number and its name. */
static bool of_another(const char *text, const char *name)
{
	static const char prefix[] = "device-mapper: lc: ";
	const char *at = strstr(text, prefix);
	int open = 0;
	size_t len;

	if (!at || (sscanf(at + strlen(prefix), "%*u:%*u (%n", &open), !open))
		return false;
	at += strlen(prefix) + open;
	len = strcspn(at, ")");
	/* The log has a backslash as another such text. */
	return !memchr(at, '\\', len) && !spelt_as(name, at, len);
}

/* Show what device mapper logged since kernel_log_open(); returns how many lines. */
static int kernel_log_show(int fd, const char *name)
{
	char record[8192], *text;
	int shown = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	for (;;) {
		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)	/* overwritten before we read it */
			continue;
		if (n <= 0)
			return shown;
		record[n] = '\0';
		text = strchr(record, ';');
		if (!text || !strstr(text, "device-mapper: "))
			continue;
		text[1 + strcspn(text + 1, "\n")] = '\0';
		if (of_another(text, name))
			continue;
		complain(name, "the kernel says: %s", text + 1);
		shown++;
	}
}

/* Does the kernel know the target?  If it does not say, it is taken to. */
static bool has_target(void)
{
	struct dm_task *task = new_task(DM_DEVICE_LIST_VERSIONS, NULL);
	struct dm_versions *at, *next;
	bool found = true;

	if (task && dm_task_run(task)) {
		found = false;
		for (next = dm_task_get_versions(task), at = NULL; next && next != at && !found;) {
			at = next;
			found = !strcmp(at->name, "lc");
			next = (struct dm_versions *)((char *)at + at->next);
		}
	}
	if (task)
		dm_task_destroy(task);
	first_error[0] = '\0';
	return found;
}

int dm_create_lc(const char *name, const char *uuid, u64 sectors, const char *params)
{
	struct dm_task *task = new_task(DM_DEVICE_CREATE, name);
	int log = kernel_log_open();
	int ret = 0;

	/* On failure libdevmapper takes the device without a table away again. */
	if (!task || !dm_task_set_uuid(task, uuid) ||
	    !dm_task_add_target(task, 0, sectors, "lc", params) || !run_with_nodes(task)) {
		ret = fail(name, "the kernel refused to start it", task);
		if (!kernel_log_show(log, name))
			complain(name, "see the kernel log (dmesg) for its reason");
		if (!has_target())
			module_explain(name);
	}
	if (task)
		dm_task_destroy(task);
	if (log >= 0)
		close(log);
	return ret;
}

void dm_iostats_off(const char *name)
{
	struct dm_facts facts;
	char *path;
	FILE *file;

	if (dm_facts(name, &facts))
		return;
	path = xasprintf("/sys/dev/block/%u:%u/queue/iostats", facts.major, facts.minor);
	file = fopen(path, "w");
	if (file)
		fputs("0", file);
	/* What the kernel does not have costs nothing. */
	if (file ? fclose(file) : errno != ENOENT)
		complain(name, "warning: I/O statistics stay on: %s: %s", path, strerror(errno));
	free(path);
	dm_facts_free(&facts);
}

static int make_empty_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : close(fd);
}

void dm_iostats_choose(const char *name, bool leave)
{
	static const char folder[] = "/run/dm-lc-iostats";
	char *path = xasprintf("%s/%s", folder, name);
	int ret;

	if (leave) {
		/* If it cannot be made, the file cannot either. */
		mkdir(folder, 0755);
		ret = make_empty_file(path);
	} else {
		ret = unlink(path) && errno != ENOENT ? -errno : 0;
	}
	if (ret)
		complain(path, "warning: cannot be %s: %s; udev switches I/O statistics %s when the "
			 "table is exchanged", leave ? "made" : "removed", strerror(-ret),
			 leave ? "off" : "not off");
	free(path);
}

int dm_remove(struct dm_facts *facts)
{
	struct dm_task *task = new_task_for(DM_DEVICE_REMOVE, facts);
	int ret = 0;

	/* udev may open it for a moment, after its last user has closed it. */
	if (!task || !dm_task_retry_remove(task) || !run_with_nodes(task))
		ret = fail(facts->name, "cannot be removed", task);
	else if (!use_udev())
		dm_mknodes(facts->name);	/* libdevmapper takes away what it was given by name */
	if (task)
		dm_task_destroy(task);
	return ret;
}

int dm_message(struct dm_facts *facts, const char *message, const char *older)
{
	struct dm_task *task = new_task_for(DM_DEVICE_TARGET_MSG, facts);
	char *what = xasprintf("message '%s' failed", message);
	bool unknown = false;
	int ret = 0;

	if (!task || !dm_task_set_sector(task, 0) || !dm_task_set_message(task, message) ||
	    !dm_task_run(task)) {
		unknown = older && task && dm_task_get_errno(task) == EINVAL;
		if (!unknown)
			ret = fail(facts->name, what, task);
	}
	if (task)
		dm_task_destroy(task);
	free(what);
	return unknown ? dm_message(facts, older, NULL) : ret;
}

static int split_status(const char *name, struct lc_status *status)
{
	char *save = NULL, *key, *value;

	status->nr = 0;
	for (key = strtok_r(status->text, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
		value = strtok_r(NULL, " ", &save);
		if (!value) {
			complain(name, "odd status from the kernel: '%s' has no value", key);
			return -EPROTO;
		}
		if (status->nr == LC_STATUS_KEYS)
			break;
		status->pair[status->nr].key = key;
		status->pair[status->nr++].value = value;
	}
	return 0;
}

int dm_status(struct dm_facts *facts, struct lc_status *status)
{
	struct dm_task *task = new_task_for(DM_DEVICE_STATUS, facts);
	char *type = NULL, *params = NULL;
	uint64_t start, length;
	int ret = 0;

	memset(status, 0, sizeof(*status));
	/* Looking must not make the kernel flush. */
	if (!task || !dm_task_no_flush(task) || !dm_task_run(task)) {
		ret = fail(facts->name, "cannot read its status", task);
	} else {
		follow_name(task, facts);
		dm_get_next_target(task, NULL, &start, &length, &type, &params);
		if (!type || strcmp(type, "lc")) {
			complain(facts->name,
				 "is not an lc device; 'lc-status' lists the running volumes");
			ret = -EINVAL;
		} else {
			status->text = xasprintf("%s", params ? params : "");
			ret = split_status(facts->name, status);
		}
	}
	if (task)
		dm_task_destroy(task);
	if (ret)
		dm_status_free(status);
	return ret;
}

void dm_status_free(struct lc_status *status)
{
	free(status->text);
	status->text = NULL;
	status->nr = 0;
}

const char *dm_status_get(const struct lc_status *status, const char *key)
{
	unsigned int i;

	for (i = 0; i < status->nr; i++) {
		if (!strcmp(status->pair[i].key, key))
			return status->pair[i].value;
	}
	return NULL;
}

bool dm_status_number(const struct lc_status *status, const char *key, u64 *value)
{
	const char *text = dm_status_get(status, key);
	char *end;

	if (!text || !*text)
		return false;
	*value = strtoull(text, &end, 10);
	return !*end;
}
