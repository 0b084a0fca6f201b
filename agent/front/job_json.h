/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job of the journal as listings show it. */
#ifndef IOCOM_JOB_JSON_H
#define IOCOM_JOB_JSON_H

#include <jansson.h>

#include "agent/front/front.h"

/* State for a list of jobs, zeroed but for `front`: it caches the last user's name. */
struct job_json {
	const struct front *front;
	uid_t last_uid;
	char last_user[64];
};

/* The name of user UID, or the number; LIST keeps it until the next call. */
const char *job_json_user(struct job_json *list, uid_t uid);
/* TEXT, whose bytes need not be UTF-8, cut at 1 KiB; NULL is "". */
json_t *job_json_text(const char *text);
/* null: MS, or a factor, is not known. */
json_t *job_json_ms(double ms);
/* What an expectation was made from, in a word. */
const char *job_json_basis(int basis);
/* Makes a new object; NULL: out of memory. */
json_t *job_json(struct job_json *list, const struct journal_job *job);

#endif
