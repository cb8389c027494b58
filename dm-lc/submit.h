/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a closed record to the SSD: its final image, and the bio.  See send.c. */
#ifndef LC_SEND_H
#define LC_SEND_H

#include <linux/types.h>

struct bio_list;
struct bio;
struct lc_core;
struct lc_record;
struct lc_send;

struct lc_send *lc_send_create(struct lc_core *core);
void lc_send_destroy(struct lc_send *send);
void lc_send_enter(struct lc_send *send, struct lc_record *rec);
void lc_send_again(struct lc_send *send, struct lc_record *rec);
bool lc_send_idle(struct lc_send *send);
u32 lc_send_most(const struct lc_send *send);
u32 lc_send_piece(const struct lc_send *send);
bool lc_send_enough(const struct lc_send *send);

void lc_send_seal(struct lc_core *core, struct lc_record *rec, u64 durable_seq);
struct bio *lc_send_prepare(struct lc_send *send, struct lc_record *rec, bool direct);
void lc_send_cancel(struct lc_send *send, struct bio *bio);
void lc_send_submit(struct lc_send *send, struct bio *bio, bool fua, struct bio_list *later);
void lc_send_bios(struct bio_list *bios);
bool lc_send_is_one_command(struct lc_core *core, const struct lc_record *rec);

#endif /* LC_SEND_H */
