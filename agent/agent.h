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
/* Runs until SIGTERM or SIGINT.  Returns 0 or negative errno. */
int agent_run(struct agent *agent);
/* Stops the agent; running jobs go on. */
void agent_stop(struct agent *agent);

#endif
