// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include "user/gang_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int gang_part_name(const char *gang, uint32_t number, char out[SPEC_JOB_MAX])
{
	int length = snprintf(out, SPEC_JOB_MAX, "%s.%u", gang, number);

	return length < 0 || length >= SPEC_JOB_MAX ? -ENAMETOOLONG : 0;
}

/*
 * A job's name ends with '-' and its sequence number, and only a part's has a '.' behind it.  A
 * node's own name may have dots and digits, too.
 */
bool gang_part_of(const char *job, char gang[SPEC_JOB_MAX], uint32_t *number)
{
	const char *sequence = strrchr(job, '-'), *dot = sequence ? strchr(sequence, '.') : NULL;
	uint32_t value = 0;
	size_t digits;

	if (!dot || dot == sequence + 1 || strlen(job) >= SPEC_JOB_MAX)
		return false;
	digits = strspn(dot + 1, "0123456789");
	if (!digits || dot[1 + digits] || digits > 4 || (digits > 1 && dot[1] == '0'))
		return false;
	for (const char *c = dot + 1; *c; c++)
		value = 10 * value + (uint32_t)(*c - '0');
	if (value >= GANG_PARTS_MAX ||
	    strspn(sequence + 1, "0123456789") != (size_t)(dot - sequence - 1))
		return false;
	if (gang) {
		memcpy(gang, job, (size_t)(dot - job));
		gang[dot - job] = '\0';
	}
	if (number)
		*number = value;
	return true;
}

bool gang_has(const char *gang, const char *job)
{
	char of[SPEC_JOB_MAX];

	return !strcmp(gang, job) || (gang_part_of(job, of, NULL) && !strcmp(gang, of));
}
