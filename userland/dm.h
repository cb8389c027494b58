/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device mapper, through libdevmapper.  Works with and without udev: without it
 * (or with DM_DISABLE_UDEV set) libdevmapper makes the nodes itself.
 *
 * Functions return 0 or a negative errno and have complained already.
 */
#ifndef LC_DM_H
#define LC_DM_H

#include <linux/types.h>

#define LC_STATUS_KEYS	64

/* The status line: "key value" pairs, kept in the kernel's order, unknown ones too. */
struct lc_status {
	char *text;
	unsigned int nr;
	struct {
		const char *key;
		const char *value;
	} pair[LC_STATUS_KEYS];
};

/*
 * A mapped device.  It keeps its number, but may be renamed at any time.  So functions that take
 * these facts use the number, and update @name.
 */
struct dm_facts {
	char name[128];
	bool exists;
	bool suspended;
	int open_count;
	unsigned int major, minor;
	char uuid[130];		/* device mapper's */
	char *target;		/* type of the first target, NULL without a table */
	char *params;		/* its table parameters */
	u64 sectors;
};

/* Before anything else here. */
void dm_setup(void);

/*
 * What device mapper knows of @name.  A name that no device has is no error: facts->exists is
 * false then.  The texts are to be freed by dm_facts_free(), which leaves name and numbers.
 */
int dm_facts(const char *name, struct dm_facts *facts);
void dm_facts_free(struct dm_facts *facts);
/* The same of a device that dm_facts() has found, in place of what was known of it. */
int dm_facts_again(struct dm_facts *facts);
/* As dm_facts(), but it is an error if there is no such device, or if it is no lc volume. */
int dm_require_lc(const char *name, struct dm_facts *facts);

/*
 * The names of all mapped devices with an lc target, ending in NULL; to be freed by
 * dm_list_free(), which takes NULL as well.  *@names is NULL on error.
 */
int dm_list_lc(char ***names);
void dm_list_free(char **names);

/*
 * Create and start a volume of a name that is free.  @uuid: device mapper's; the kernel refuses a
 * second device of the same one.  @params: what follows "lc" in its table.
 */
int dm_create_lc(const char *name, const char *uuid, u64 sectors, const char *params);
/*
 * Have the kernel keep no I/O statistics of a mapped device: they cost each bio a counter and two
 * looks at the clock.  If that fails, there is a warning.
 */
void dm_iostats_off(const char *name);
/*
 * Note for 90-dm-lc.rules, until the next boot, that a volume's I/O statistics are to be left alone,
 * or that they are not.  If that fails, there is a warning.
 */
void dm_iostats_choose(const char *name, bool leave);
/* Stop a mapped device and take it away. */
int dm_remove(struct dm_facts *facts);
/*
 * Send a message to an lc target, and wait until it is done.  @older: is sent instead if the kernel
 * does not take @message (EINVAL), because the module is older than the tools; may be NULL.
 */
int dm_message(struct dm_facts *facts, const char *message, const char *older);

/* Read the status line of an lc volume, without a flush; to be freed unless this fails. */
int dm_status(struct dm_facts *facts, struct lc_status *status);
void dm_status_free(struct lc_status *status);
/* The value of a key, part of @status; NULL if the kernel did not give it. */
const char *dm_status_get(const struct lc_status *status, const char *key);
/* The same of a decimal number.  Return: false, without a complaint, if it is none. */
bool dm_status_number(const struct lc_status *status, const char *key, u64 *value);

#endif
