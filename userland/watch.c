// SPDX-License-Identifier: GPL-2.0-only
/* Changes of running volumes, see watch.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dm.h"
#include "journal.h"
#include "memory.h"
#include "text.h"
#include "util.h"
#include "watch.h"

#define HOOK_SECONDS	60

/* One for each kind of entry, so that the journal can be searched for it (lc-watch(8)). */
#define ID_MODE		"MESSAGE_ID=7d1c2b6f0a6e4c0c9f5f3b8f6f0d2a41"
#define ID_LOST		"MESSAGE_ID=c3a9e0b15c1f4b6a8a52d7f4e9b03d72"
#define ID_SAVED	"MESSAGE_ID=18e6f4a3d2a94be0b5c79d0f3e6a1c95"

/* What was last told of a volume. */
struct known {
	unsigned int minor;
	char generation[32];
	char mode[32];
	u64 lost;
	bool saved;
	bool seen;		/* in this look */
};

struct watched {
	struct known *known;
	size_t nr;
	const char *hooks;
};

struct change {
	const char *event, *id;
	enum journal_priority priority;
	char *message;
};

static void wait_for_hooks(pid_t pid)
{
	struct pollfd end = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int status;

	if (end.fd >= 0 && !poll(&end, 1, HOOK_SECONDS * 1000)) {
		complain(NULL, "the hooks take more than %d s and are killed", HOOK_SECONDS);
		kill(-pid, SIGKILL);
	}
	if (end.fd >= 0)
		close(end.fd);
	if (waitpid(pid, &status, 0) == pid && (!WIFEXITED(status) || WEXITSTATUS(status)))
		complain(NULL, "a hook failed; see what it said above");
}

static void run_hooks(const char *folder, const char *const *fields)
{
	pid_t pid;

	if (access(folder, F_OK))
		return;
	pid = fork();
	if (pid < 0) {
		complain(folder, "hooks cannot be run: %s", strerror(errno));
		return;
	}
	/* By both, so that there is a group to kill, whichever comes first. */
	setpgid(pid, 0);
	if (pid)
		return wait_for_hooks(pid);
	for (; *fields; fields++) {
		if (!strncmp(*fields, "LC_", 3))
			putenv((char *)*fields);
	}
	execlp("run-parts", "run-parts", "--", folder, NULL);
	complain(folder, "hooks cannot be run: run-parts: %s", strerror(errno));
	_exit(127);
}

/* To journal and hooks. */
static void tell(const struct watched *w, const struct dm_facts *facts, const struct known *k,
		 const char *mode, u64 lost, const struct change *change)
{
	char *fields[] = {
		xasprintf("MESSAGE=%s: %s", shown(facts->name), change->message),
		xasprintf("%s", change->id),
		xasprintf("LC_VOLUME=%s", shown(facts->name)),
		xasprintf("LC_EVENT=%s", change->event),
		xasprintf("LC_MODE=%s", shown(mode)),
		xasprintf("LC_OLD_MODE=%s", shown(k->mode)),
		xasprintf("LC_LOST=%" PRIu64, (uint64_t)lost),
		NULL
	};
	char **field;

	journal_send(change->priority, (const char *const *)fields);
	run_hooks(w->hooks, (const char *const *)fields);
	for (field = fields; *field; field++)
		free(*field);
}

static const char *meaning(const char *mode)
{
	if (!strcmp(mode, "rw"))
		return "the cache works";
	if (!strcmp(mode, "degraded"))
		return "the SSD was given up, the volume goes on without a cache; leave it running "
		       "until all is saved, and no boot starts it before a new SSD is formatted";
	if (!strcmp(mode, "fail"))
		return "writes and flushes are refused; the kernel log has the reason";
	return "see lc-status(8)";
}

static struct known *known_of(struct watched *w, const struct dm_facts *facts,
			      const char *generation)
{
	struct known *k;

	for (k = w->known; k < w->known + w->nr; k++) {
		if (k->minor == facts->minor && !strcmp(k->generation, generation))
			return k;
	}
	w->known = xrealloc(w->known, w->nr + 1, sizeof(*w->known));
	k = &w->known[w->nr++];
	memset(k, 0, sizeof(*k));
	k->minor = facts->minor;
	snprintf(k->generation, sizeof(k->generation), "%s", generation);
	strcpy(k->mode, "rw");
	return k;
}

static void compare(struct watched *w, const struct dm_facts *facts, struct lc_status *status)
{
	const char *generation = dm_status_get(status, "generation");
	const char *mode = dm_status_get(status, "mode");
	struct change change;
	struct known *k;
	u64 lost = 0, dirty = 0;

	if (!mode)
		return;
	k = known_of(w, facts, generation ? generation : "");
	k->seen = true;
	dm_status_number(status, "lost", &lost);
	if (strcmp(mode, k->mode)) {
		change = (struct change){ "mode", ID_MODE,
			strcmp(mode, "rw") ? JOURNAL_ERROR : JOURNAL_NOTICE,
			xasprintf("mode %s, was %s: %s", shown(mode), shown(k->mode),
				  meaning(mode)) };
		tell(w, facts, k, mode, lost, &change);
		free(change.message);
		snprintf(k->mode, sizeof(k->mode), "%s", mode);
	}
	if (lost > k->lost) {
		change = (struct change){ "lost", ID_LOST, JOURNAL_ERROR,
			xasprintf("%" PRIu64 " blocks have lost sectors, before %" PRIu64
				  "; 'dmsetup message %s 0 list lost' names them",
				  (uint64_t)lost, (uint64_t)k->lost, shown(facts->name)) };
		tell(w, facts, k, mode, lost, &change);
		free(change.message);
	}
	k->lost = lost;
	if (!strcmp(mode, "degraded") && !k->saved && dm_status_number(status, "dirty", &dirty) &&
	    !dirty) {
		change = (struct change){ "saved", ID_SAVED, JOURNAL_NOTICE,
			xasprintf("all data that the SSD still returned is on the hard disk") };
		tell(w, facts, k, mode, lost, &change);
		free(change.message);
		k->saved = true;
	}
}

/* A volume that goes away meanwhile is no error. */
static int look(struct watched *w)
{
	struct lc_status status;
	struct dm_facts facts;
	char **names, **name;
	size_t i, kept = 0;

	if (dm_list_lc(&names))
		return -EIO;
	for (name = names; *name; name++) {
		if (dm_facts(*name, &facts))
			continue;
		if (facts.target && !strcmp(facts.target, "lc") && !dm_status(&facts, &status)) {
			compare(w, &facts, &status);
			dm_status_free(&status);
		}
		dm_facts_free(&facts);
	}
	dm_list_free(names);
	for (i = 0; i < w->nr; i++) {
		if (!w->known[i].seen)
			continue;
		w->known[i].seen = false;
		w->known[kept++] = w->known[i];
	}
	w->nr = kept;
	return 0;
}

/* Events up to now do not end the next poll() of @control. */
static int arm(int control)
{
	struct dm_ioctl request = {
		.version = { DM_VERSION_MAJOR, 0, 0 },
		.data_size = sizeof(request),
	};

	return ioctl(control, DM_DEV_ARM_POLL, &request) ? -errno : 0;
}

int watch(const char *hooks)
{
	const char *path = "/dev/mapper/control";
	struct watched w = { .hooks = hooks };
	struct pollfd control = { .events = POLLIN };

	control.fd = open(path, O_RDWR | O_CLOEXEC);
	if (control.fd < 0) {
		complain(path, "%s; watching needs root and the module dm-mod", strerror(errno));
		return LC_EXIT_FAIL;
	}
	for (;;) {
		int ret = arm(control.fd);

		if (ret) {
			complain(path, "the kernel tells no events: %s", strerror(-ret));
			break;
		}
		if (look(&w))
			break;
		while (poll(&control, 1, -1) < 0 && errno == EINTR)
			;
	}
	close(control.fd);
	free(w.known);
	return LC_EXIT_FAIL;
}
