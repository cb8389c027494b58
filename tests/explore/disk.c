// SPDX-License-Identifier: GPL-2.0-only
/*
 * The modelled disks.  See disk.h.
 */
#include "world.h"

#define MAX_PAGES	40960

static struct dpage *pages;
static u32 nr_pages;
static const struct dpage zero_page;

/**
 * dpage_new() - a page with undefined contents, until dpage_release()
 */
struct dpage *dpage_new(void)
{
	if (!pages)
		pages = aligned_alloc(64, MAX_PAGES * sizeof(*pages));
	if (!pages || nr_pages == MAX_PAGES) {
		fprintf(stderr, "explore: out of pages\n");
		exit(2);
	}
	return &pages[nr_pages++];
}

u32 dpage_mark(void)
{
	return nr_pages;
}

void dpage_release(u32 mark)
{
	nr_pages = mark;
}

/* Is it time to end this path? */
bool dpage_short(void)
{
	return nr_pages > MAX_PAGES - 8192;
}

const struct dpage *image_page(const struct image *image, u32 page)
{
	const struct dpage *p = image->pages[page];

	return p ? p : &zero_page;
}

/**
 * image_put() - sectors of a page of the disk become those of another page
 * @image: the disk
 * @page: number of the page
 * @mask: which sectors
 * @from: where they come from
 */
void image_put(struct image *image, u32 page, u8 mask, const struct dpage *from)
{
	const struct dpage *old = image_page(image, page);
	struct dpage *mixed;
	u32 i;

	if (!mask)
		return;
	if (mask == 0xff) {
		image->pages[page] = from;
		return;
	}
	mixed = dpage_new();
	for (i = 0; i < PAGE_SECTORS; i++) {
		const struct dpage *source = mask & 1u << i ? from : old;

		memcpy(mixed->bytes + (i << 9), source->bytes + (i << 9), 512);
		mixed->tags[i] = source->tags[i];
	}
	image->pages[page] = mixed;
}

/**
 * cmd_new() - submit a command; a write gets its pieces by cmd_add_piece()
 * @life: the life
 * @disk: which disk
 * @owner: who waits for it
 */
struct cmd *cmd_new(struct life *life, enum disk_id disk, enum cmd_owner owner)
{
	struct cmd *cmd = &life->cmds[life->nr_cmds];

	if (life->nr_cmds == MAX_CMDS) {
		fprintf(stderr, "explore: too many commands\n");
		exit(2);
	}
	if (life->last_submit != life->now) {
		life->last_submit = life->now;
		life->last_ordinal = 0;
	}
	*cmd = (struct cmd) {
		.disk = disk, .owner = owner, .submitted = life->now,
		.ordinal = life->last_ordinal++, .completed = NEVER, .durable = NEVER,
		.voided = NEVER,
		.pieces = &life->pieces[life->nr_pieces],
	};
	life->flying[life->nr_flying++] = life->nr_cmds++;
	return cmd;
}

void cmd_add_piece(struct life *life, struct cmd *cmd, u32 page, u8 mask,
		   const struct dpage *from)
{
	if (life->nr_pieces == MAX_PIECES || cmd->nr_pieces == MAX_CMD_PIECES) {
		fprintf(stderr, "explore: too many pieces\n");
		exit(2);
	}
	if (page >= world->disk_pages[cmd->disk]) {
		trouble(BAD_MEDIA, "a command reaches page %u, behind the end of the %s", page,
			cmd->disk == SSD ? "SSD" : "HDD");
		return;
	}
	life->pieces[life->nr_pieces++] = (struct piece) {
		.page = page, .mask = mask, .from = from,
	};
	cmd->nr_pieces++;
}

static void cmd_land(struct life *life, struct cmd *cmd)
{
	u32 index = cmd - life->cmds, i;

	cmd->completed = life->now;
	life->done[life->nr_done++] = index;
	for (i = 0; life->flying[i] != index; i++)
		;
	/* In their order: the oldest first. */
	memmove(&life->flying[i], &life->flying[i + 1],
		(--life->nr_flying - i) * sizeof(life->flying[0]));
}

static void cmd_tell(const struct cmd *cmd, const char *how)
{
	static const char *const owners[] = {
		[OWNER_SYNC] = "metadata", [OWNER_READ] = "read", [OWNER_RECORD] = "record",
		[OWNER_LOG_FLUSH] = "log",
		[OWNER_WRITEBACK] = "writeback", [OWNER_WRITEBACK_FLUSH] = "writeback",
		[OWNER_DISCARD] = "discard", [OWNER_AROUND] = "around",
		[OWNER_THROUGH] = "through", [OWNER_GROUP] = "group",
	};

	say("%6u %s of %u:%u (%s, %s page %u) %s", world->life->now,
	    cmd->flush ? "FLUSH" : "write", cmd->submitted, cmd->ordinal, owners[cmd->owner],
	    cmd->disk == SSD ? "SSD" : "HDD", cmd->nr_pieces ? cmd->pieces[0].page : 0, how);
}

/**
 * cmd_complete() - a command ends well
 * @life: the life
 * @cmd: in flight
 */
void cmd_complete(struct life *life, struct cmd *cmd)
{
	u32 i;

	cmd_land(life, cmd);
	cmd_tell(cmd, "completes");
	if (!cmd->flush) {
		for (i = 0; i < cmd->nr_pieces; i++)
			image_put(&life->view[cmd->disk], cmd->pieces[i].page,
				  cmd->pieces[i].mask, cmd->pieces[i].from);
		if (cmd->fua || world->bdev[cmd->disk].write_through)
			cmd->durable = life->now;
		return;
	}
	for (i = 0; i < life->nr_cmds; i++) {
		struct cmd *other = &life->cmds[i];

		/* An action completes one command at most, and first of all. */
		if (other->disk == cmd->disk && !other->flush &&
		    (!other->failed || other->disk == HDD) &&
		    other->voided == NEVER && other->durable == NEVER &&
		    other->completed <= cmd->submitted)
			other->durable = life->now;
	}
}

/**
 * cmd_fail() - a command ends with an error
 * @life: the life
 * @cmd: in flight
 *
 * Any part of a write may be on the disk, and no FLUSH makes that certain.  The HDD, however, shows
 * what it holds after a FLUSH, so that nothing of such a write comes back later (DB1).  A FLUSH
 * that fails voids what completed since the last good one (F2, F3).
 */
void cmd_fail(struct life *life, struct cmd *cmd)
{
	u32 i;

	cmd_land(life, cmd);
	cmd->failed = true;
	cmd_tell(cmd, "fails");
	for (i = 0; cmd->flush && i < life->nr_cmds; i++) {
		struct cmd *other = &life->cmds[i];

		if (other->disk == cmd->disk && other->completed != NEVER &&
		    other->durable == NEVER)
			other->voided = min(other->voided, life->now);
	}
	if (cmd->told)
		cmd->told(cmd->told_arg);
}

u32 cmd_sectors(const struct cmd *cmd)
{
	u32 nr = 0, i;

	for (i = 0; i < cmd->nr_pieces; i++)
		nr += hweight8(cmd->pieces[i].mask);
	return nr;
}
