/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How people name jobs:
 *
 *   last                  the newest job that was submitted at this node
 *   17                    the job with this number, of any node, if there is one only
 *   n2-17                 the job with this number of home node n2, if there is one only
 *   n2-4f1c09aa-17        the whole name: home, its agent's start (8 hex digits), number
 *
 * A number may have a part's behind it: 17.3, n2-17.3, n2-4f1c09aa-17.3 is part 3 of the gang.
 */
#ifndef IOCOM_JOB_NAME_H
#define IOCOM_JOB_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "user/spec.h"

enum job_name_kind {
	JOB_NAME_LAST,
	JOB_NAME_WHOLE,
	JOB_NAME_SHORT,
	JOB_NAME_ODD, /* none of these: no job has such a name */
};

struct job_name {
	enum job_name_kind kind;
	char home[64];	 /* "": not said */
	char number[24]; /* digits, as written, with a part's; "": not said */
};

void job_name_parse(const char *text, struct job_name *name);
/* A glob that fits all jobs that the short NAME may mean, for the request "jobs". */
void job_name_pattern(const struct job_name *name, char *out, size_t size);
/* Returns true if JOB, a whole name, is one that the short NAME may mean. */
bool job_name_fits(const struct job_name *name, const char *job);

#endif
