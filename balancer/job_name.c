/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_name.h. */
#include "balancer/job_name.h"

#include <stdio.h>
#include <string.h>

#define BOOT_DIGITS 8 /* of an agent's start, in whole names */
#define PART_DIGITS 4 /* of a part's number: GANG_PARTS_MAX */

static bool job_name_digits(const char *text, size_t n, const char *good, size_t most)
{
	return n && n <= most && strspn(text, good) >= n;
}

/* Takes a home of LENGTH bytes.  Returns false: no node has such a name. */
static bool job_name_home(struct job_name *name, const char *text, size_t length)
{
	if (!length || length >= sizeof(name->home))
		return false;
	memcpy(name->home, text, length);
	name->home[length] = 0;
	return spec_job_valid(name->home);
}

/* The last '-' of the first LENGTH bytes of TEXT; NULL: there is none. */
static const char *job_name_dash(const char *text, size_t length)
{
	while (length--)
		if (text[length] == '-')
			return text + length;
	return NULL;
}

/* Returns whether TEXT is a job's number, perhaps with a part's. */
static bool job_name_number(const char *text)
{
	static const char decimal[] = "0123456789";
	const char *dot = strchr(text, '.');

	if (!dot)
		return job_name_digits(text, strlen(text), decimal, 18);
	return job_name_digits(text, (size_t)(dot - text), decimal, 18) &&
	       job_name_digits(dot + 1, strlen(dot + 1), decimal, PART_DIGITS);
}

void job_name_parse(const char *text, struct job_name *name)
{
	static const char hex[] = "0123456789abcdef";
	const char *dash = strrchr(text, '-'), *number = dash ? dash + 1 : text, *boot;

	*name = (struct job_name){.kind = JOB_NAME_ODD};
	if (!strcmp(text, "last")) {
		name->kind = JOB_NAME_LAST;
		return;
	}
	if (!job_name_number(number))
		return;
	if (!dash) {
		name->kind = JOB_NAME_SHORT;
	} else {
		boot = job_name_dash(text, (size_t)(dash - text));
		if (boot && (size_t)(dash - boot - 1) == BOOT_DIGITS &&
		    job_name_digits(boot + 1, BOOT_DIGITS, hex, BOOT_DIGITS) &&
		    job_name_home(name, text, (size_t)(boot - text)))
			name->kind = JOB_NAME_WHOLE;
		else if (job_name_home(name, text, (size_t)(dash - text)))
			name->kind = JOB_NAME_SHORT;
		else
			return;
	}
	snprintf(name->number, sizeof(name->number), "%s", number);
}

void job_name_pattern(const struct job_name *name, char *out, size_t size)
{
	snprintf(out, size, "%s%s*-%s", name->home, *name->home ? "-" : "", name->number);
}

bool job_name_fits(const struct job_name *name, const char *job)
{
	struct job_name whole;

	job_name_parse(job, &whole);
	return whole.kind == JOB_NAME_WHOLE && !strcmp(whole.number, name->number) &&
	       (!*name->home || !strcmp(whole.home, name->home));
}
