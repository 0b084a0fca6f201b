/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The clocks of all programs: BOOTTIME for ages, REALTIME for dates, a thread's CPU time for
 * cost. */
#ifndef IOCOM_CLOCK_H
#define IOCOM_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define CLOCK_NS_PER_MS 1000000ull
#define CLOCK_NS_PER_S	1000000000ull

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

static inline uint64_t clock_boot_ms(void)
{
	return clock_boot_ns() / CLOCK_NS_PER_MS;
}

static inline uint64_t clock_real_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* Returns the CPU time of this thread. */
static inline uint64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The CPU time of USAGE in us, the program's and the kernel's for it. */
static inline uint64_t clock_usage_us(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

#endif
