/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Opens a monitor and takes its first reading; prints the milliseconds of both steps. */
#include <stdio.h>
#include <time.h>

#include "user/monitor/monitor.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(void)
{
	const struct monitor_config config = {0};
	struct monitor_sample sample;
	struct monitor *monitor;
	struct iocom_err err = {""};
	double began = now_ms(), opened;

	if (monitor_open(&monitor, &config, &err))
		return fprintf(stderr, "firstsample: %s\n", err.text), 1;
	opened = now_ms();
	if (monitor_sample(monitor, &sample, &err))
		return fprintf(stderr, "firstsample: %s\n", err.text), 1;
	printf("%.2f %.2f\n", opened - began, now_ms() - opened);
	monitor_free(monitor);
	return 0;
}
