/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lc-generator: makes a unit of systemd for each line of /etc/lctab, as systemd.generator(7) says.
 *
 * systemd runs it at each boot and at each daemon-reload, with the folders for units ("normal",
 * "early", "late"), before anything is mounted or started and while nothing else can run.  So it
 * opens no device, waits for nothing, and needs the table, /proc and the first folder only.
 * The variable LCTAB names another table, for tests.
 */
#ifndef LC_GENERATOR_H
#define LC_GENERATOR_H

/*
 * As main().  Errors go to stderr, and to the kernel log if systemd asks: there is no journal yet.
 * Return: LC_EXIT_...; units of good lines are made all the same.
 */
int generator_run(int argc, char **argv);

#endif
