/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What each part of the agent stands on: the loop and its clocks, the log, the counters, and
 * the settings, which nobody changes once the agent has started.  All are borrowed.
 */
#ifndef IOCOM_AGENT_BASE_H
#define IOCOM_AGENT_BASE_H

#include <stdint.h>

#include "agent/base/counters.h"
#include "agent/base/loop.h"
#include "balancer/settings/settings.h"
#include "iocom/err.h"
#include "user/log.h"

struct base {
	struct loop *loop;
	struct logger *log;
	struct counters *counters;
	const struct settings *set;
	uint64_t boot_id; /* of this start of the agent: random, never 0 */
};

/* The journal failed: this is counted and logged. */
void base_journal_failed(const struct base *base, const struct iocom_err *err);

#endif
