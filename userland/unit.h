/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Texts as systemd's unit files take them.  All results are to be freed; nothing complains.
 */
#ifndef LC_UNIT_H
#define LC_UNIT_H

/* A text as part of the name of a unit, as systemd-escape(1) does it. */
char *unit_escape(const char *text);
/* The same of an absolute path without "//", "." and "..", as systemd-escape --path does it. */
char *unit_escape_path(const char *path);
/*
 * A text as one word of a line, such as an argument of ExecStart=.  systemd takes backslashes, then
 * specifiers (%), then variables ($) for special, so these two are doubled and all other characters
 * but the plain ones become \xNN.
 */
char *unit_word(const char *text);
/* The same of the path of a command, whose variables systemd does not look at. */
char *unit_command(const char *path);
/* A text in udev's links below /dev/disk, such as by-label. */
char *udev_escape(const char *text);

#endif
