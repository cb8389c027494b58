// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why the kernel has no target "lc".  It loads the module by itself, by calling modprobe(8), and
 * keeps neither the error nor what modprobe prints.  Calling it once more tells both.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "memory.h"
#include "module.h"
#include "util.h"

/* The first line that modprobe prints, or nothing.  Return: is the module loaded? */
static bool ask_modprobe(char *line, size_t len)
{
	FILE *pipe = popen("LC_ALL=C modprobe dm-lc 2>&1", "re");
	char rest[256];

	line[0] = '\0';
	if (!pipe)
		return false;
	if (!fgets(line, len, pipe))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	/* So that it can end. */
	while (fgets(rest, sizeof(rest), pipe))
		;
	return !pclose(pipe);
}

/* Headers of a kernel are in this folder, see debian/dm-lc-dkms.postinst. */
static bool has_headers(const char *release)
{
	char path[160];

	snprintf(path, sizeof(path), "/lib/modules/%s/build/include", release);
	return !access(path, F_OK);
}

static void explain_missing(const char *name, const char *release)
{
	if (has_headers(release))
		complain(name, "there is no module dm-lc for this kernel, %s: 'dkms status dm-lc' "
			 "shows for which kernels dkms has built it, and 'dkms autoinstall' builds "
			 "it for this one; from the sources, 'make install' does", release);
	else
		complain(name, "there is no module dm-lc for this kernel, %s, and none can be built, "
			 "because the kernel's headers are missing: with 'apt install "
			 "linux-headers-%s' dkms builds it", release, release);
}

void module_explain(const char *name)
{
	struct utsname system;
	char says[256];

	uname(&system);
	if (ask_modprobe(says, sizeof(says)))
		complain(name, "the module dm-lc is loaded now; give the command again");
	else if (strstr(says, "not found in directory"))
		explain_missing(name, system.release);
	else if (strstr(says, "Key was rejected") || strstr(says, "Operation not permitted"))
		complain(name, "the kernel rejects the module dm-lc (%s): it takes modules only that "
			 "are signed with a key it knows, as Secure Boot wants; 'mokutil --import "
			 "/var/lib/dkms/mok.pub' and a reboot make dkms' key known, see "
			 "lc-resume(8)", says);
	else
		complain(name, "the module dm-lc cannot be loaded: %s; see the kernel log (dmesg), "
			 "and 'dkms status dm-lc' for the kernels it was built for",
			 says[0] ? says : "modprobe prints no reason");
}
