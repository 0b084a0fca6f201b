/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Ended jobs as agents list them (request "report"), as gain.h takes them. */
#ifndef IOCOM_ENDINGS_H
#define IOCOM_ENDINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "balancer/report/gain.h"
#include "iocom/err.h"

/* Zeroed at first. */
struct endings {
	struct gain_job *jobs; /* their texts are those of `listed` */
	size_t njobs, room;
	json_t *listed; /* the jobs as they came */
	json_t *seen;	/* names of the jobs of files */
	bool cut;	/* older ones were left out */
};

/*
 * Adds the jobs of LIST, a JSON array, which is borrowed, until there are GAIN_JOBS.  Returns 0;
 * -EBADMSG: LIST or one of its jobs is not as agents write it; -ENOMEM.
 */
int endings_add(struct endings *endings, const json_t *list, struct iocom_err *err);
/*
 * Asks the agent for the ended jobs that were submitted since SINCE_NS: those of UID, or with -1 of
 * everybody.  NODE, new, gets its name.  Returns 0, or negative errno as client_ask does.
 */
int endings_ask(struct endings *endings, const char *run_dir, uint64_t since_ns, int64_t uid,
		json_t **node, struct iocom_err *err);
/*
 * Adds those of FILE, an output of `iocom report --json --jobs`, that no file had before.  NODES,
 * an array, gets the names of its nodes.  Returns 0 or negative errno.
 */
int endings_read(struct endings *endings, const char *file, json_t *nodes, struct iocom_err *err);
void endings_free(struct endings *endings);

#endif
