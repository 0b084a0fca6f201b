/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that moved goes on at another node: its client, who lost contact, asks this machine's agent
 * where that is.
 */
#ifndef IOCOM_RUN_FOLLOW_H
#define IOCOM_RUN_FOLLOW_H

#include <jansson.h>
#include <stdbool.h>

#include "balancer/run/run.h"

struct run_follow {
	json_t *answer; /* which the target borrows from; NULL: nobody was asked yet */
	struct run_target target;
};

/*
 * Fills TARGET from the agent's ANSWER to "attach", which it borrows from.  Returns 0 or -EPROTO
 * with the reason in ERR.
 */
int run_follow_target(struct run_target *target, const json_t *answer, const char *run_dir,
		      struct iocom_err *err);
/*
 * Asks the agent of RUN_DIR where the job of SELF is.  Returns true if that is another node than
 * SELF names: SELF names it now, and FOLLOW's target leads there.
 */
bool run_follow(struct run_follow *follow, const char *run_dir, struct attach_ask *self);
void run_follow_fini(struct run_follow *follow);

#endif
