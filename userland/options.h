/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options of the target: "key value key value" texts, as the superblock keeps them and a table
 * line takes them.  Nothing here complains.
 */
#ifndef LC_OPTIONS_H
#define LC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Set a key in @options, a buffer of @len bytes, as a command line says: "key=value", which goes to
 * the end, or "key=" to remove it.  Return: false, and nothing is changed, if @pair is neither, the
 * text does not fit, or key or value are no plain words.
 */
bool options_set_pair(char *options, size_t len, const char *pair);
/* How many words: two for each option. */
unsigned int options_words(const char *options);
/* Pairs of plain words, which a table line may take?  What is on a medium may be anything. */
bool options_plain(const char *options);
/*
 * Would the kernel refuse these options?  By the module's own table.
 * Return: the reason, to be freed; NULL if they are fine.
 */
char *options_why_bad(const char *options);
/* The same of one "key=value", whatever the options beside it are; "key=" is fine. */
char *options_why_bad_pair(const char *pair);

#endif
