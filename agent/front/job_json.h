/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job of the journal as listings have it. */
#ifndef IOCOM_JOB_JSON_H
#define IOCOM_JOB_JSON_H

#include <jansson.h>

#include "agent/front/front.h"

/* A list of jobs is made with one of these, zeroed but for `front`: it keeps the last user. */
struct job_json {
	const struct front *front;
	uid_t last_uid;
	char last_user[64];
};

/* A new object; NULL: no memory. */
json_t *job_json(struct job_json *list, const struct journal_job *job);

#endif
