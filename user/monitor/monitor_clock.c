/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "user/monitor/monitor_clock.h"

uint64_t monitor_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void monitor_clock_read(struct monitor_clock *now)
{
	now->monotonic_ns = monitor_clock_ns(CLOCK_MONOTONIC);
	now->boot_ns = monitor_clock_ns(CLOCK_BOOTTIME);
	now->real_ns = monitor_clock_ns(CLOCK_REALTIME);
}

static uint64_t forward(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

uint64_t monitor_clock_elapsed(const struct monitor_clock *before, const struct monitor_clock *now)
{
	return forward(before->monotonic_ns, now->monotonic_ns);
}

uint64_t monitor_clock_suspended(const struct monitor_clock *before,
				 const struct monitor_clock *now)
{
	/* We read the clocks one after the other, so a smaller difference is no suspend. */
	const uint64_t noise_ns = 1000000;
	uint64_t span = forward(before->boot_ns, now->boot_ns);
	uint64_t suspended = forward(monitor_clock_elapsed(before, now), span);

	return suspended > noise_ns ? suspended : 0;
}

uint64_t monitor_clock_date(const struct monitor_clock *before, const struct monitor_clock *now)
{
	return forward(forward(before->boot_ns, now->boot_ns), now->real_ns);
}
