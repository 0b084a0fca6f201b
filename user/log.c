/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Log lines of the daemons, rate-limited; see log.h. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "utf8.h"

#define LINES_PER_SECOND 50

void log_init(struct logger *logger, const char *program)
{
	*logger = (struct logger){
		.program = program,
		.level = LOG_L_INFO,
		/* systemd sets JOURNAL_STREAM when standard error goes to the journal. */
		.systemd = getenv("JOURNAL_STREAM") != NULL,
	};
}

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_L_ERROR:
		return "error: ";
	case LOG_L_WARNING:
		return "warning: ";
	case LOG_L_INFO:
		return "";
	case LOG_L_DEBUG:
		return "debug: ";
	}
	return "";
}

static void put(const struct logger *logger, enum log_level level, const struct timespec *now,
		const char *text)
{
	struct tm tm;
	char when[32];

	if (logger->systemd) {
		fprintf(stderr, "<%d>%s\n", level, text);
		return;
	}
	gmtime_r(&now->tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(stderr, "%s.%03ldZ %s: %s%s\n", when, now->tv_nsec / 1000000, logger->program,
		level_name(level), text);
}

/* True when the current second has room for one more line. */
static bool admit(struct logger *logger, const struct timespec *now)
{
	char text[96];

	if (logger->window_s != (uint64_t)now->tv_sec) {
		uint64_t lost = logger->in_window > LINES_PER_SECOND
					? logger->in_window - LINES_PER_SECOND
					: 0;

		logger->window_s = (uint64_t)now->tv_sec;
		logger->in_window = 0;
		if (lost) {
			snprintf(text, sizeof(text), "%llu log lines suppressed (rate limit)",
				 (unsigned long long)lost);
			put(logger, LOG_L_WARNING, now, text);
		}
	}
	if (++logger->in_window <= LINES_PER_SECOND)
		return true;
	logger->suppressed++;
	return false;
}

void log_write(struct logger *logger, enum log_level level, const char *fmt, ...)
{
	char text[1200];
	struct timespec now;
	int saved = errno;
	va_list ap;

	if (level > logger->level)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (admit(logger, &now)) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		utf8_plain(text); /* names of others stand in it: one event, one line */
		put(logger, level, &now, text);
	}
	errno = saved;
}
