/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocomd: the agent of one node. */
#ifndef IOCOM_AGENT_H
#define IOCOM_AGENT_H

#include "balancer/settings/settings.h"
#include "iocom/err.h"

struct agent;

/*
 * Sets up all parts, or none.  SET stays the caller's until agent_stop; agent_start adapts it where
 * this agent serves its own machine only.  Returns 0 or negative errno with the reason in ERR.
 */
int agent_start(struct agent **agent, struct settings *set, struct iocom_err *err);
/*
 * Has SIGHUP read the settings again by READ, which fills NEXT.  If they are good, those that
 * settings_live.h calls live hold at once; otherwise nothing changes, and the log says why.
 */
void agent_on_reload(struct agent *agent,
		     int (*read)(void *arg, struct settings *next, struct iocom_err *err),
		     void *arg);
/* Runs until SIGTERM or SIGINT.  Returns 0 or negative errno. */
int agent_run(struct agent *agent);
/* Stops the agent; running jobs go on. */
void agent_stop(struct agent *agent);

#endif
