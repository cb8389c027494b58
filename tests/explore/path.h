/* SPDX-License-Identifier: GPL-2.0-only */
/* A path: lives, each ended by a crash; as text, and done again.  See path.c. */
#ifndef EXPLORE_PATH_H
#define EXPLORE_PATH_H

#include "world.h"

/* How a life ends when no time is given. */
#define AT_END		NEVER

struct step {
	bool reformat;		/* instead of a crash: lc-format on the same disks */
	struct crash crash;	/* at: in the start, or AT_END of the actions */
	u32 nr_actions;
	struct action actions[MAX_ACTIONS];
};

struct path {
	struct params params;
	u32 nr_steps;
	struct step steps[MAX_LIVES];
};

void world_reset(const struct params *params);
struct life *life_other(const struct life *life);
void life_reformat(struct life *life, struct life *next);
void step_take(struct step *step, const struct life *life, const struct crash *crash);

enum verdict path_run(const struct path *path, bool bytes);
bool params_read(struct params *params, char *line);
bool path_read(struct path *path, FILE *file, const char *name);
void path_write(const struct path *path, FILE *file);
void path_tell(const struct path *path);

#endif /* EXPLORE_PATH_H */
