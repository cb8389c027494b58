/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scan that brings clean copies back after a crash, in the background.
 *
 * start.c says which segments it reads, if any.  It runs once in a life, while the volume is not
 * suspended.  docs/design.rst, "Warm after a crash", has the invariants (WS1 to WS9), and warm.h
 * says how it meets the rest of the volume.
 *
 * It reads one header at a time.  A step of its work reads a segment, or takes a few headers, so
 * others run between two steps.
 */
#ifndef LC_WARMUP_H
#define LC_WARMUP_H

struct lc_cache;
struct lc_warmup;

/* May sleep.  Return: the room or NULL. */
struct lc_warmup *lc_warmup_create(struct lc_cache *c);

/* After lc_warmup_quiesce().  @warmup or NULL.  May sleep. */
void lc_warmup_destroy(struct lc_warmup *warmup);

/* The volume is started and not suspended: begin, or go on.  May sleep. */
void lc_warmup_resume(struct lc_warmup *warmup);

/* Wait for the step that is under way, and begin none.  May sleep, for some reads of the SSD. */
void lc_warmup_quiesce(struct lc_warmup *warmup);

#endif /* LC_WARMUP_H */
