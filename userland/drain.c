// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sync and drain, see drain.h.
 *
 * "So far" is the log's head once the buffers are on the SSD: when the tail has
 * passed it, all of it is on the hard disk, whatever was written meanwhile.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dm.h"
#include "drain.h"
#include "util.h"

#define POLL_MS		200
#define PLAIN_MS	5000	/* between lines when stdout is no terminal */
#define STALL_MS	10000	/* "off" for so long: nothing will come */
#define RETRY_MS	20000	/* "retrying" for so long: nobody knows when it comes */

static volatile sig_atomic_t interrupted;

struct progress {
	u64 start_ns, last_ns, moved_ns;
	u64 first, goal, at;		/* seqs */
	u64 dirty;			/* blocks when it began */
	bool terminal;
};

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

struct state {
	u64 head, tail;			/* seqs */
	u64 dirty;			/* blocks */
	bool off, retrying;		/* writeback */
};

/* The numbers a drain needs, checked: 0, or an errno after complaining. */
static int read_state(struct dm_facts *volume, struct state *state)
{
	struct lc_status status;
	const char *mode, *writeback;
	int ret = dm_status(volume, &status);

	if (ret)
		return ret;
	mode = dm_status_get(&status, "mode");
	writeback = dm_status_get(&status, "writeback");
	state->off = writeback && !strcmp(writeback, "off");
	state->retrying = writeback && !strcmp(writeback, "retrying");
	if (!mode || strcmp(mode, "rw")) {
		complain(volume->name, "is in mode %s, so its data does not reach the hard disk; "
			 "see the kernel log and lc-status", mode ? mode : "unknown");
		ret = -EROFS;
	} else if (!dm_status_number(&status, "head_seq", &state->head) ||
		   !dm_status_number(&status, "tail_seq", &state->tail) ||
		   !dm_status_number(&status, "dirty", &state->dirty)) {
		complain(volume->name,
			 "odd status from the kernel: head_seq, tail_seq or dirty is missing");
		ret = -EPROTO;
	}
	dm_status_free(&status);
	return ret;
}

static void print_bar(const char *name, double part, u64 rate, u64 seconds_left)
{
	char bar[41];
	int filled = part * 40;

	memset(bar, '.', 40);
	memset(bar, '#', filled);
	bar[40] = '\0';
	printf("\r%s [%s] %3d%%  %s/s  %llu:%02llu left \033[K", name, bar, (int)(part * 100),
	       size_text(rate), seconds_left / 60, seconds_left % 60);
	fflush(stdout);
}

static void show_progress(const char *name, struct progress *p, u64 dirty)
{
	u64 now = now_ns();
	double seconds = (now - p->start_ns) / 1e9;
	u64 span = p->goal - p->first;
	double part = span ? (double)(p->at - p->first) / span : 1;
	u64 done, rate, left;

	/* The tail moves in steps; between them the dirty count tells more. */
	if (p->dirty && dirty < p->dirty && 1 - (double)dirty / p->dirty > part)
		part = 1 - (double)dirty / p->dirty;
	done = (p->dirty << 12) * part;
	rate = seconds > 0 ? done / seconds : 0;
	left = part > 0 ? seconds / part - seconds : 0;
	if (p->terminal) {
		print_bar(name, part, rate, left);
	} else if (now - p->last_ns >= PLAIN_MS * 1000000ULL) {
		printf("%s: %d%% of %s, %s/s, %llu s left\n", name, (int)(part * 100),
		       size_text(p->dirty << 12), size_text(rate), left);
		p->last_ns = now;
	}
}

/* Why is there no use in waiting on?  Return: 0, or an errno after complaining. */
static int check_stall(const char *name, const struct progress *p, const struct state *state)
{
	u64 stalled_ms = (now_ns() - p->moved_ns) / 1000000;

	if (state->off && stalled_ms > STALL_MS) {
		complain(name, "writeback is off; switch it on with: "
			 "dmsetup message %s 0 writeback on", name);
		return -EAGAIN;
	}
	if (state->retrying && stalled_ms > RETRY_MS) {
		complain(name, "writing to the hard disk fails; the kernel goes on trying and "
			 "nothing is lost, see the kernel log and lc-status, and drain again "
			 "when the disk works");
		return -EIO;
	}
	return 0;
}

static int wait_for_tail(struct dm_facts *volume, struct progress *p)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	u64 before = ~0ULL;
	struct state state;
	int ret;

	for (;;) {
		ret = read_state(volume, &state);
		if (ret)
			return ret;
		if (state.tail >= p->goal || !state.dirty)
			return 0;
		/* A batch under way may take long: then it is no stall. */
		if (state.tail > p->at || state.dirty < before ||
		    !(state.off || state.retrying))
			p->moved_ns = now_ns();
		p->at = state.tail > p->at ? state.tail : p->at;
		before = state.dirty;
		ret = check_stall(volume->name, p, &state);
		if (ret)
			return ret;
		show_progress(volume->name, p, state.dirty);
		nanosleep(&pause, NULL);
		if (interrupted) {
			complain(volume->name, "interrupted; the kernel goes on draining, nothing is lost");
			return -EINTR;
		}
	}
}

int sync_volume(struct dm_facts *volume)
{
	return dm_message(volume, "sync", "flush");
}

int drain_volume(struct dm_facts *volume)
{
	struct sigaction action = { .sa_handler = on_signal }, old_int, old_term;
	struct progress p = { .terminal = isatty(STDOUT_FILENO) };
	struct state state;
	int ret;

	ret = sync_volume(volume);
	if (!ret)
		ret = read_state(volume, &state);
	if (!ret)
		ret = dm_message(volume, "drain", "writeback");
	if (ret)
		return ret;
	p.start_ns = p.last_ns = p.moved_ns = now_ns();
	p.goal = state.head;
	p.first = p.at = state.tail;
	p.dirty = state.dirty;
	sigaction(SIGINT, &action, &old_int);
	sigaction(SIGTERM, &action, &old_term);
	ret = wait_for_tail(volume, &p);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	if (p.terminal)
		printf("\r\033[K");
	if (!ret)
		printf("%s: %s written to the hard disk in %.1f s\n", volume->name,
		       size_text(p.dirty << 12), (now_ns() - p.start_ns) / 1e9);
	return ret;
}
