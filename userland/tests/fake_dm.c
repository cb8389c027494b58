// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for libdevmapper (LD_PRELOAD), so that the tools' side of it can be
 * tested without a kernel module.  The one device lives in a folder named by
 * FAKE_DM: files "name", "table", "target", "status" and "open" (one line; the last line
 * of several is for ever, the others for one look each), "suspended",
 * "refuse" (text: creation fails), "unknown" (messages that are refused), "no-target" (the kernel
 * does not know the target).  What is asked of it goes to "log".
 */
#include <errno.h>
#include <libdevmapper.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dm_task {
	int type;
	char name[128], params[1024], text[1024];
	uint64_t sectors;
	int err;
	/* A struct dm_names and the name behind it. */
	union {
		uint64_t aligned;
		char bytes[sizeof(struct dm_names) + 160];
	} list;
};

static struct dm_names *names_of(struct dm_task *t)
{
	return (struct dm_names *)t->list.bytes;
}

static dm_log_with_errno_fn logger;

static char *path_of(const char *name)
{
	static char path[4][512];
	static int at;
	char *out = path[at++ % 4];

	snprintf(out, 512, "%s/%s", getenv("FAKE_DM"), name);
	return out;
}

static int get(const char *name, char *text, size_t len)
{
	FILE *f = fopen(path_of(name), "r");

	text[0] = '\0';
	if (!f)
		return 0;
	if (!fgets(text, len, f))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
	return 1;
}

static void put(const char *name, const char *mode, const char *fmt, ...)
{
	FILE *f = fopen(path_of(name), mode);
	va_list args;

	if (!f)
		return;
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	fclose(f);
}

/* Take the first line of a file, but leave the last. */
static void take_line(const char *name, char *text, size_t len)
{
	char rest[16384];
	FILE *f = fopen(path_of(name), "r");
	size_t n;

	text[0] = '\0';
	if (!f || !fgets(text, len, f))
		return;
	n = fread(rest, 1, sizeof(rest) - 1, f);
	rest[n] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	if (n)
		put(name, "w", "%s", rest);
}

static int fail(struct dm_task *t, int err, const char *text)
{
	t->err = err;
	if (logger)
		logger(3, "", 0, err, "%s", text);
	return 0;
}

struct dm_task *dm_task_create(int type)
{
	struct dm_task *t = calloc(1, sizeof(*t));

	t->type = type;
	return t;
}

void dm_task_destroy(struct dm_task *t)
{
	free(t);
}

int dm_task_set_name(struct dm_task *t, const char *name)
{
	snprintf(t->name, sizeof(t->name), "%s", name);
	return 1;
}

/* There is one device, which keeps its number. */
int dm_task_set_major_minor(struct dm_task *t, int major, int minor, int fallback)
{
	(void)major;
	(void)minor;
	(void)fallback;
	if (!get("name", t->name, sizeof(t->name)))
		strcpy(t->name, "gone");
	return 1;
}

const char *dm_task_get_name(const struct dm_task *t)
{
	return t->name;
}

int dm_task_set_uuid(struct dm_task *t, const char *uuid)
{
	put("log", "a", "uuid %s\n", uuid);
	put("uuid", "w", "%s\n", uuid);
	(void)t;
	return 1;
}

const char *dm_task_get_uuid(const struct dm_task *t)
{
	static char uuid[128];

	(void)t;
	get("uuid", uuid, sizeof(uuid));
	return uuid;
}

int dm_task_add_target(struct dm_task *t, uint64_t start, uint64_t size, const char *ttype,
		       const char *params)
{
	snprintf(t->params, sizeof(t->params), "%s", params);
	t->sectors = size;
	put("log", "a", "create %s %llu %llu %s %s\n", t->name, (unsigned long long)start,
	    (unsigned long long)size, ttype, params);
	return 1;
}

int dm_task_set_message(struct dm_task *t, const char *message)
{
	put("log", "a", "message %s %s\n", t->name, message);
	snprintf(t->text, sizeof(t->text), "%s", message);
	return 1;
}

int dm_task_set_sector(struct dm_task *t, uint64_t sector)
{
	(void)t;
	(void)sector;
	return 1;
}

int dm_task_no_flush(struct dm_task *t)
{
	(void)t;
	return 1;
}

static int create(struct dm_task *t)
{
	char text[256];

	if (get("refuse", text, sizeof(text)))
		return fail(t, EINVAL, text);
	put("name", "w", "%s\n", t->name);
	put("table", "w", "%s\n", t->params);
	return 1;
}

static int send_message(struct dm_task *t)
{
	char unknown[256];

	if (get("unknown", unknown, sizeof(unknown)) && strstr(unknown, t->text))
		return fail(t, EINVAL, "device-mapper: message ioctl failed: Invalid argument");
	return 1;
}

int dm_task_run(struct dm_task *t)
{
	char name[128];

	if (t->type == DM_DEVICE_CREATE)
		return create(t);
	if (t->type == DM_DEVICE_TARGET_MSG)
		return send_message(t);
	if (t->type == DM_DEVICE_REMOVE) {
		put("log", "a", "remove %s\n", t->name);
		unlink(path_of("name"));
	} else if (t->type == DM_DEVICE_STATUS) {
		take_line("status", t->text, sizeof(t->text));
	} else if (t->type == DM_DEVICE_TABLE) {
		get("table", t->text, sizeof(t->text));
	} else if (t->type == DM_DEVICE_LIST && get("name", name, sizeof(name))) {
		names_of(t)->dev = 1;
		strcpy(names_of(t)->name, name);
	}
	return 1;
}

int dm_task_get_errno(struct dm_task *t)
{
	return t->err;
}

int dm_task_retry_remove(struct dm_task *t)
{
	(void)t;
	return 1;
}

int dm_task_get_info(struct dm_task *t, struct dm_info *info)
{
	char name[128], text[64];

	memset(info, 0, sizeof(*info));
	info->exists = get("name", name, sizeof(name)) && !strcmp(name, t->name);
	take_line("open", text, sizeof(text));
	info->open_count = atoi(text);
	info->suspended = get("suspended", text, sizeof(text));
	return 1;
}

struct dm_names *dm_task_get_names(struct dm_task *t)
{
	return names_of(t);
}

struct dm_versions *dm_task_get_versions(struct dm_task *t)
{
	/* Of a size that has room for two names. */
	static union {
		struct dm_versions versions;
		char bytes[2 * sizeof(struct dm_versions) + 32];
	} list;
	struct dm_versions *second;
	char text[8];

	(void)t;
	memset(&list, 0, sizeof(list));
	strcpy(list.versions.name, "linear");
	if (get("no-target", text, sizeof(text)))
		return &list.versions;
	list.versions.next = sizeof(struct dm_versions) + 16;
	second = (struct dm_versions *)(list.bytes + list.versions.next);
	strcpy(second->name, "lc");
	return &list.versions;
}

void *dm_get_next_target(struct dm_task *t, void *next, uint64_t *start, uint64_t *length,
			 char **target_type, char **params)
{
	static char target[64];

	(void)next;
	if (!get("target", target, sizeof(target)))
		strcpy(target, "lc");
	*start = 0;
	*length = 2048;
	*target_type = target;
	*params = t->text;
	return NULL;
}

void dm_task_update_nodes(void)
{
}

int dm_mknodes(const char *name)
{
	(void)name;
	return 1;
}

void dm_log_with_errno_init(dm_log_with_errno_fn fn)
{
	logger = fn;
}
