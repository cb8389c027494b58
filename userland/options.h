/* SPDX-License-Identifier: GPL-2.0-only */
/* Options of the target, by the module's own table. */
#ifndef LC_OPTIONS_H
#define LC_OPTIONS_H

char *options_why_bad(const char *options);

#endif
