/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPLORE_MINIMISE_H
#define EXPLORE_MINIMISE_H

#include "path.h"

void minimise(struct path *path, enum verdict verdict);

#endif /* EXPLORE_MINIMISE_H */
