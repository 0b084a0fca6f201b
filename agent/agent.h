/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocomd: the agent of one node. */
#ifndef IOCOM_AGENT_H
#define IOCOM_AGENT_H

#include "balancer/settings/settings.h"
#include "iocom/err.h"

struct agent;

/*
 * Sets everything up, or nothing.  SET is the caller's and stays until agent_stop; it is adapted
 * where this machine serves itself only.  0 or negative errno with the sentence.
 */
int agent_start(struct agent **agent, struct settings *set, struct iocom_err *err);
/* Until SIGTERM or SIGINT.  0 or negative errno. */
int agent_run(struct agent *agent);
/* Jobs that run are left alone. */
void agent_stop(struct agent *agent);

#endif
