/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A library to preload: its name service does not answer while the file $HANG_NAMES exists. */
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

int getpwuid_r(uid_t uid, struct passwd *entry, char *room, size_t size, struct passwd **found)
{
	int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **) = NULL;
	const char *file = getenv("HANG_NAMES");

	while (file && access(file, F_OK) == 0)
		usleep(20000);
	*(void **)&real = dlsym(RTLD_NEXT, "getpwuid_r");
	return real(uid, entry, room, size, found);
}
