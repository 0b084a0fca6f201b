/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job comes from another node: instead of starting a command this shim takes its images and
 * what its former shim knew, restores it, and keeps it from running until the agent says "go"; the
 * former shim is its "client" until then.  If anything fails nothing of it has run here, and the
 * former shim is told why.
 */
#ifndef IOCOM_SHIM_ARRIVE_H
#define IOCOM_SHIM_ARRIVE_H

#include "iocom/err.h"

#define ARRIVE_LIMIT_MS 600000 /* to take and restore it */

struct identity;
struct shim;

/*
 * IDENTITY is the job's user on this node, and all that comes must be his (move/belongings.h).
 * FAILED: what went wrong before, as ERR says; 0: nothing.  Returns 0: the job runs, the shim has
 * its streams, and `source` the connection to the former shim, which may send signals; or negative
 * errno with the reason in ERR: nothing is left of it.
 */
int arrive_take(struct shim *shim, const struct identity *identity, int failed,
		struct iocom_err *err);

#endif
