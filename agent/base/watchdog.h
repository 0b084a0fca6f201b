/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Feeds systemd's watchdog (WatchdogSec= of the unit) from a timer of the loop, every half period:
 * if the loop is held up for a whole period, systemd ends the agent and starts it again.
 */
#ifndef IOCOM_WATCHDOG_H
#define IOCOM_WATCHDOG_H

#include <stdint.h>

#include "agent/base/loop.h"

struct watchdog {
	struct loop *loop; /* NULL: nobody waits for us */
	struct loop_timer timer;
	uint64_t half_ns;
};

/*
 * The watchdog's period in us by $WATCHDOG_USEC and $WATCHDOG_PID, as systemd sets them.  0: there
 * is no watchdog, it waits for another process, or a variable is no number.
 */
uint64_t watchdog_period_us(void);
/* Feeds it now and from then on; does nothing without a watchdog.  LOOP is borrowed. */
void watchdog_start(struct watchdog *watchdog, struct loop *loop);

#endif
