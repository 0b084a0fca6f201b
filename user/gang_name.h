/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Names of parallel jobs.  A gang is a job with several tasks, on one node or more; what it has on
 * one node is a part, a job of its own.  Part K of gang "n1-4f2a-57" is job "n1-4f2a-57.K".
 */
#ifndef IOCOM_GANG_NAME_H
#define IOCOM_GANG_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/spec.h"

#define GANG_PARTS_MAX 1024 /* a gang has at most so many parts, one a node */
#define GANG_TASKS_MAX 4096 /* and so many tasks */

/* Writes the name of part NUMBER of GANG to OUT.  Returns 0 or -ENAMETOOLONG. */
int gang_part_name(const char *gang, uint32_t number, char out[SPEC_JOB_MAX]);
/*
 * Returns true if JOB is the name of a part; GANG and NUMBER, which may be NULL, get the gang's
 * name and the part's number.
 */
bool gang_part_of(const char *job, char gang[SPEC_JOB_MAX], uint32_t *number);
/* Returns true if JOB is GANG itself or one of its parts. */
bool gang_has(const char *gang, const char *job);

#endif
