/* SPDX-License-Identifier: GPL-2.0-only */
/* The status line.  See status.c. */
#ifndef LC_STATUS_H
#define LC_STATUS_H

struct lc_core;

void lc_status_info(struct lc_core *core, char *result, unsigned int maxlen);
void lc_status_ima(struct lc_core *core, char *result, unsigned int maxlen);

int lc_status_list(struct lc_core *core, unsigned int argc, char **argv, char *result,
		   unsigned int maxlen);

#endif /* LC_STATUS_H */
