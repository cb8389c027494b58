/* SPDX-License-Identifier: GPL-2.0-only */
/* Verification of the checkpoint that a clean stop leaves. */
#ifndef LC_CHECKPOINT_H
#define LC_CHECKPOINT_H

#include "report.h"

/* The superblock of @c is known and clean.  Says what is damaged, and sets bad_checkpoint. */
void check_checkpoint(struct check *c);

#endif
