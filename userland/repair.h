/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Repairs of single blocks: each changes what check_run() found of its kind, a block a write.
 * With plans for the devices nothing is written, see plan.h.
 *
 * Return: 0, or a negative errno after complaining.
 */
#ifndef LC_REPAIR_H
#define LC_REPAIR_H

#include "report.h"

/* Bad copies are rewritten from the one that is believed; a damaged checkpoint is given up. */
int repair_superblocks(struct check *c);
/* The bad copy of the mark is rewritten from the good one. */
int repair_marks(struct check *c);
/* Slots that cannot be read are written empty; what that means shows when all is checked again. */
int repair_unread(struct check *c);
/* What bad slots held becomes lost sectors, by their headers. */
int repair_slots(struct check *c);

/* What all repairs are made of: one step in words, which is kept in c->steps if that is set, ... */
void repair_say(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ... and one block (LC_SLOT_BYTES) written to a device of @c, durable, and counted. */
int repair_write(struct check *c, const struct device *dev, u64 address, const void *block);

#endif
