/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a target tells the homes of its jobs, and until when it tells it again. */
#ifndef IOCOM_TARGET_REPORT_H
#define IOCOM_TARGET_REPORT_H

#include "agent/agent.h"

/* How one job ended.  Until home has answered it stays due in the journal. */
void target_report(struct agent *a, const struct job_order *o, const struct job_report *r);
/*
 * How all ended jobs did, many in one message where they have the same home.  FAILED: the
 * journal could not take them; home may have one that can, and hears of each once.
 */
void target_report_ended(struct agent *a, bool failed);
void target_tell_started(struct agent *a, struct job *job);

#endif
