/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitor's time: three clocks, all in ns, read together:
 *
 *   real       the date: only shown, never subtracted, because it can step
 *   boot       time since boot with suspend: used for ages
 *   monotonic  time since boot without suspend: used for rates
 */
#ifndef IOCOM_MONITOR_CLOCK_H
#define IOCOM_MONITOR_CLOCK_H

#include <stdint.h>
#include <time.h>

struct monitor_clock {
	uint64_t real_ns, boot_ns, monotonic_ns;
};

/* Reads one clock, in nanoseconds. */
uint64_t monitor_clock_ns(clockid_t clock);
void monitor_clock_read(struct monitor_clock *now);

/* Returns the time awake from BEFORE to NOW; 0 if a clock ran back. */
uint64_t monitor_clock_elapsed(const struct monitor_clock *before, const struct monitor_clock *now);
/* Returns the time suspended in between. */
uint64_t monitor_clock_suspended(const struct monitor_clock *before,
				 const struct monitor_clock *now);
/*
 * Returns the date of BEFORE in NOW's calendar: even after a step of the date, the span between the
 * two is true. Returns 0 if that date is before 1970.
 */
uint64_t monitor_clock_date(const struct monitor_clock *before, const struct monitor_clock *now);

#endif
