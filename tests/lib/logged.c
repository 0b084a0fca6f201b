/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See logged.h. */
#include "tests/lib/logged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	FILE *before;
	char *text;
	size_t size;
} kept;

int logged_begin(struct logger *log)
{
	FILE *file = open_memstream(&kept.text, &kept.size);

	if (!file)
		return -1;
	log_init(log, "iocomd");
	kept.before = stderr;
	stderr = file;
	return 0;
}

void logged_end(void)
{
	if (!kept.before)
		return;
	fclose(stderr);
	stderr = kept.before;
	kept.before = NULL;
	free(kept.text);
}

unsigned logged(const char *text)
{
	unsigned n = 0;

	fflush(stderr);
	for (const char *at = kept.text; (at = strstr(at, text)); at++)
		n++;
	return n;
}
