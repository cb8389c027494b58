/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries of systemd's journal with fields of their own, by its native protocol: a datagram of
 * NAME=VALUE lines (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).  libsystemd would be a large
 * dependency for one datagram.
 */
#ifndef LC_JOURNAL_H
#define LC_JOURNAL_H

/* As in syslog(3). */
enum journal_priority {
	JOURNAL_ERROR	= 3,
	JOURNAL_WARNING	= 4,
	JOURNAL_NOTICE	= 5,
};

/*
 * @fields: NAME=VALUE texts up to NULL, without line ends: the caller has escaped what it took
 * from elsewhere.  Without a journal the value of MESSAGE goes to standard error.
 */
void journal_send(enum journal_priority priority, const char *const *fields);

#endif
