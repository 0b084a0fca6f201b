/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A bar on standard error with the time left; see progress.h. */
#include "sim/report/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WIDTH 24

static double progress_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress_begin(struct progress *p, const char *name)
{
	p->terminal = isatty(STDERR_FILENO);
	p->start_s = progress_now_s();
	p->name = name;
}

double progress_seconds(const struct progress *p)
{
	return progress_now_s() - p->start_s;
}

static void span(char *out, size_t size, double s)
{
	if (s >= 3600)
		snprintf(out, size, "%.0f h %02.0f min", (double)(int)(s / 3600),
			 (double)((int)(s / 60) % 60));
	else if (s >= 60)
		snprintf(out, size, "%d min %02d s", (int)s / 60, (int)s % 60);
	else
		snprintf(out, size, "%.0f s", s);
}

void progress_line(char *out, size_t size, const char *name, double done, size_t total,
		   double elapsed_s)
{
	double part = total ? fmin(done / (double)total, 1) : 1;
	int filled = (int)(part * WIDTH);
	char bar[WIDTH + 1], left[48] = "";

	memset(bar, '#', (size_t)filled);
	memset(bar + filled, ' ', (size_t)(WIDTH - filled));
	bar[WIDTH] = '\0';
	if (part > 0 && part < 1) {
		span(left, sizeof(left), elapsed_s / part - elapsed_s);
		strcat(left, " left");
	}
	snprintf(out, size, "%s [%s] %3d %%  %zu/%zu runs%s%s", name, bar, (int)(100 * part),
		 (size_t)done, total, left[0] ? ", " : "", left);
}

void progress_show(struct progress *p, double done, size_t total)
{
	char line[160];

	if (!p->terminal)
		return;
	progress_line(line, sizeof(line), p->name, done, total, progress_seconds(p));
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->terminal)
		fputs("\r\033[K", stderr);
}
