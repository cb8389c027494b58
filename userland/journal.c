// SPDX-License-Identifier: GPL-2.0-only
/* Entries of the journal, see journal.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "journal.h"

#define MESSAGE		"MESSAGE="

static bool sent(const char *text, size_t len)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool done;

	if (fd < 0)
		return false;
	done = sendto(fd, text, len, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to)) ==
	       (ssize_t)len;
	close(fd);
	return done;
}

void journal_send(enum journal_priority priority, const char *const *fields)
{
	char text[4096];
	int len = snprintf(text, sizeof(text), "PRIORITY=%d\nSYSLOG_IDENTIFIER=lc-watch\n", priority);
	const char *const *field;
	const char *message = "";

	for (field = fields; *field; field++) {
		if (len + strlen(*field) + 2 > sizeof(text))
			continue;
		len += snprintf(text + len, sizeof(text) - len, "%s\n", *field);
		if (!strncmp(*field, MESSAGE, strlen(MESSAGE)))
			message = *field + strlen(MESSAGE);
	}
	if (!sent(text, len))
		fprintf(stderr, "%s\n", message);
}
