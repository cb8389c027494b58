// SPDX-License-Identifier: GPL-2.0-only
/* Processors, see cpu.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

#define WHITE	" \t\n"

static bool starts_with(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

static bool has_word(const char *line, const char *word)
{
	size_t len = strlen(word);

	for (line += strcspn(line, WHITE); *line; line += strcspn(line, WHITE)) {
		line += strspn(line, WHITE);
		if (strcspn(line, WHITE) == len && starts_with(line, word))
			return true;
	}
	return false;
}

/* All processors of a machine that runs one kernel have what the first one has. */
bool cpu_sums_crc32c(void)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	bool found = false, ended = false;
	char *line = NULL;
	size_t size = 0;

	while (file && !ended && getline(&line, &size, file) > 0) {
		/* It shows what the host's processors have, and uses no instructions of them. */
		if (starts_with(line, "vendor_id") && strstr(line, "User Mode Linux"))
			break;
		ended = starts_with(line, "flags") || starts_with(line, "Features");
		if (starts_with(line, "flags"))
			found = has_word(line, "sse4_2") && has_word(line, "pclmulqdq");
		else if (ended)
			found = has_word(line, "crc32");
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}
