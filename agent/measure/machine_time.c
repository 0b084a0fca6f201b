/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See machine_time.h. */
#include "agent/measure/machine_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* The columns of the line "cpu": proc_stat(5).  Guests' time is in user and nice, too. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

int machine_time_read(const char *file, struct machine_time *out)
{
	uint64_t t[COLUMNS];
	FILE *f = fopen(file, "re");
	int n;

	if (!f)
		return -errno;
	n = fscanf(f,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ],
		   &t[STEAL]);
	fclose(f);
	if (n != COLUMNS)
		return -EBADMSG;
	*out = (struct machine_time){.idle = t[IDLE] + t[IOWAIT], .stolen = t[STEAL]};
	for (int i = 0; i < COLUMNS; i++)
		out->all += t[i];
	return 0;
}

/* The kernel's counters of idle time may go back a little. */
static double machine_time_share(uint64_t before, uint64_t now, uint64_t ticks)
{
	double share = now > before && ticks > 0 ? (double)(now - before) / (double)ticks : 0;

	return share < 1 ? share : 1;
}

static uint64_t machine_time_passed(const struct machine_time *before,
				    const struct machine_time *now)
{
	return now->all > before->all ? now->all - before->all : 0;
}

double machine_time_stolen(const struct machine_time *before, const struct machine_time *now)
{
	return machine_time_share(before->stolen, now->stolen, machine_time_passed(before, now));
}

bool machine_time_crowded(const struct machine_time *before, const struct machine_time *now)
{
	uint64_t ticks = machine_time_passed(before, now);

	return ticks > 0 && machine_time_share(before->idle, now->idle, ticks) < MACHINE_TIME_IDLE;
}
