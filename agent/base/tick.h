/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The loop's own tick, which tells how long the loop keeps its timers waiting: a timer that is due
 * every TICK_NS, and may be TICK_LAX_NS late if the loop sleeps until then.  counters.ticks counts
 * the ticks.  A loop that is held up skips the ticks that it missed, so fewer are counted.
 * counters.tick_late_ms is the greatest delay of a tick in the last minute, in milliseconds,
 * without what the loop chose to sleep.  A machine that slept shows its sleep there.
 */
#ifndef IOCOM_TICK_H
#define IOCOM_TICK_H

#include <stdint.h>

#include "agent/base/counters.h"
#include "agent/base/loop.h"

#define TICK_NS	    500000000u
#define TICK_LAX_NS (TICK_NS / 8 * 7)
#define TICK_SLOTS  12
#define TICK_SLOT_S 5 /* so that the slots together are a minute */

struct tick {
	struct loop *loop;
	struct counters *counters;
	struct loop_timer timer;
	uint64_t late_ns[TICK_SLOTS]; /* the greatest delay in each slot of the last minute */
	uint64_t slot;		      /* the slot now, counted from the clock's beginning */
};

/*
 * Starts TICK, which the caller keeps while LOOP runs; LOOP and COUNTERS are borrowed.  WITH: a
 * moment at which the loop will be awake anyway, as some ticks then are, too; 0: none is known.
 */
void tick_start(struct tick *tick, struct loop *loop, struct counters *counters, uint64_t with_ns);

#endif
