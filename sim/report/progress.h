/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A bar on standard error with the time left, on a terminal only. */
#ifndef SIM_REPORT_PROGRESS_H
#define SIM_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
	bool terminal;
	double start_s;
	const char *name;
};

void progress_begin(struct progress *p, const char *name);
/* Shows DONE of TOTAL runs; the fraction of DONE stands for runs in progress. */
void progress_show(struct progress *p, double done, size_t total);
void progress_end(struct progress *p); /* removes the bar */
double progress_seconds(const struct progress *p);
/* Makes the line, for tests: "NAME [####    ]  40 %  12/30 runs, 1 min 10 s left". */
void progress_line(char *out, size_t size, const char *name, double done, size_t total,
		   double elapsed_s);

#endif
