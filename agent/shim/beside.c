/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See beside.h. */
#include "agent/shim/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BESIDE_SELF	"/proc/self/exe"
#define BESIDE_DELETED	" (deleted)" /* what it ends with while this program is being replaced */
#define BESIDE_FALLBACK IOCOM_PREFIX "/libexec/iocom"

int beside(char out[PATH_MAX], const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink(BESIDE_SELF, self, sizeof(self) - 1);
	size_t tail = strlen(BESIDE_DELETED);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	if (n > (ssize_t)tail && !strcmp(self + n - tail, BESIDE_DELETED))
		self[n - (ssize_t)tail] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	if (snprintf(out, PATH_MAX, "%s/%s", slash ? self : BESIDE_FALLBACK, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}
