/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What every part of the agent uses: the loop and its clocks, the log, the counters, and the
 * settings, of which a reload changes some (balancer/settings/settings_live.h): those a part reads
 * whenever it needs them, in the loop's thread.  Each part borrows them.
 */
#ifndef IOCOM_AGENT_BASE_H
#define IOCOM_AGENT_BASE_H

#include <stdint.h>

#include "agent/base/counters.h"
#include "agent/base/loop.h"
#include "balancer/settings/settings.h"
#include "iocom/err.h"
#include "user/log.h"

struct complaints;
struct loop_share;

struct base {
	struct loop *loop;
	struct logger *log;
	struct counters *counters;
	const struct settings *set;
	struct loop_share *shares;     /* each user's part of the loop's time; NULL: not counted */
	struct complaints *complaints; /* what was complained of; NULL: each is logged */
	uint64_t boot_id;	       /* identifies this start of the agent: random, never 0 */
};

/* Counts and logs a failure of the journal. */
void base_journal_failed(const struct base *base, const struct iocom_err *err);

#endif
