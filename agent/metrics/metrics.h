/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * /metrics of this agent: takes every reading, shows a new page each period.
 * Without metrics_listen all of it does nothing.
 */
#ifndef IOCOM_AGENT_METRICS_H
#define IOCOM_AGENT_METRICS_H

#include "agent/agent.h"

struct metrics;

/* Listens when the settings say so.  0; negative errno with the sentence. */
int metrics_start(struct agent *a, struct iocom_err *err);
void metrics_stop(struct agent *a);
/* A new reading: each job's part goes to its series.  NULL: it failed. */
void metrics_sampled(struct agent *a, const struct monitor_sample *sample);
/* The period is over and the vector told. */
void metrics_period(struct agent *a);

#endif
