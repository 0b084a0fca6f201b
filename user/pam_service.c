/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pam_service.h. The form of the files is that of pam.d(5). */
#include "user/pam_service.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define INCLUDES_MAX 8 /* depth of files that take each other in */

static int pam_service_read(const char *directory, const char *name, int depth);

/* Returns 1 if LINE is an auth line or takes in a file that has one, else 0. */
static int pam_service_line(const char *directory, char *line, int depth)
{
	static const char blanks[] = " \t\n";
	char *save = NULL, *word = strtok_r(line, blanks, &save);

	if (!word || *word == '#')
		return 0;
	if (!strcasecmp(word, "@include")) {
		word = strtok_r(NULL, blanks, &save);
		return word && depth < INCLUDES_MAX &&
		       pam_service_read(directory, word, depth + 1) == 1;
	}
	return !strcasecmp(word + (*word == '-'), "auth"); /* '-': the module may be missing */
}

static int pam_service_read(const char *directory, const char *name, int depth)
{
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	int found = 0;
	FILE *in;

	if (*name == '/')
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), "%s/%s", directory, name);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	while (!found && getline(&line, &size, in) > 0)
		found = pam_service_line(directory, line, depth);
	if (!found && ferror(in))
		found = -EIO;
	free(line);
	fclose(in);
	return found;
}

int pam_service_has_auth(const char *directory, const char *name)
{
	return pam_service_read(directory, name, 0);
}
