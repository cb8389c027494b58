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
 * A mapped device.  It keeps its number, but may be renamed at any time: so what is asked of it
 * after dm_facts() goes by the number, and @name follows.
 */
struct dm_facts {
	char name[128];
	bool exists;
	bool suspended;
	int open_count;
	unsigned int major, minor;
	char *target;		/* type of the first target, NULL without a table */
	char *params;		/* its table parameters */
	u64 sectors;
};

void dm_setup(void);
int dm_facts(const char *name, struct dm_facts *facts);
/* Of texts only: name and numbers stay. */
void dm_facts_free(struct dm_facts *facts);
int dm_facts_again(struct dm_facts *facts);
int dm_require_lc(const char *name, struct dm_facts *facts);
/* All mapped devices with an lc target; ends in NULL.  @names is NULL on error. */
int dm_list_lc(char ***names);
void dm_list_free(char **names);

int dm_create_lc(const char *name, const char *uuid, u64 sectors, const char *params);
void dm_iostats_off(const char *name);
int dm_remove(struct dm_facts *facts);
int dm_message(struct dm_facts *facts, const char *message);

int dm_status(struct dm_facts *facts, struct lc_status *status);
void dm_status_free(struct lc_status *status);
const char *dm_status_get(const struct lc_status *status, const char *key);
bool dm_status_number(const struct lc_status *status, const char *key, u64 *value);

#endif
