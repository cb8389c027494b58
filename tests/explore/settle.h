/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does every request end?  The last life of a seed goes on after its plan: nothing fails any more,
 * each thread and each disk gets its turn again and again, and no user asks for more.  Then every
 * bio must end.  One that does not end was forgotten: a wake-up is missing, work was not queued, or
 * a queue was left.  This is liveness; the crash states are about safety only.
 *
 * Time passes only when nothing else can go on, so that a timer does not hide such a fault longer
 * than needed: the idle clock seals what is open, sleepers wake up, and writeback is asked for
 * space.  Not for paths with rewrite.c, which is not the module's.
 */
#ifndef EXPLORE_SETTLE_H
#define EXPLORE_SETTLE_H

#include "world.h"

/* Live the plan, then as above.  Return: false, with no verdict: too long to be told. */
bool settle(struct life *life);

#endif /* EXPLORE_SETTLE_H */
