/* SPDX-License-Identifier: GPL-2.0-only */
/* One function per command; each takes main()'s arguments and returns the exit code. */
#ifndef LC_COMMANDS_H
#define LC_COMMANDS_H

int cmd_format(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_flush(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_remove(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_check(int argc, char **argv);

#endif
