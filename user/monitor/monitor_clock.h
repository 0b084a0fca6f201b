/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitor's time.  Three clocks, all ns, read together:
 *
 *   real       the date: shown, never subtracted: it steps
 *   boot       since boot, suspend too: how long ago something was
 *   monotonic  since boot without suspend: what rates are divided by
 */
#ifndef IOCOM_MONITOR_CLOCK_H
#define IOCOM_MONITOR_CLOCK_H

#include <stdint.h>
#include <time.h>

struct monitor_clock {
	uint64_t real_ns, boot_ns, monotonic_ns;
};

/* One clock, in nanoseconds. */
uint64_t monitor_clock_ns(clockid_t clock);
void monitor_clock_read(struct monitor_clock *now);

/* Time awake from BEFORE to NOW; 0 when a clock ran back. */
uint64_t monitor_clock_elapsed(const struct monitor_clock *before, const struct monitor_clock *now);
/* Time suspended in between. */
uint64_t monitor_clock_suspended(const struct monitor_clock *before,
				 const struct monitor_clock *now);
/*
 * The date of BEFORE as NOW's calendar has it: after a step of the date the span
 * between the two is still the true one.  0 when that lies before 1970.
 */
uint64_t monitor_clock_date(const struct monitor_clock *before, const struct monitor_clock *now);

#endif
