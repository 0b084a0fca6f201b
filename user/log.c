/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Log lines of the daemons, rate-limited; see log.h. */
#include "user/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "user/utf8.h"

#define LINES_PER_SECOND 50
#define LINES_PROVOKED	 25 /* how many of these lines log_provoked may write at most */

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

static void log_put(const struct logger *logger, enum log_level level, const struct timespec *now,
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

/* Starts a new second, and logs how many lines the last second lost. */
static void next_window(struct logger *logger, const struct timespec *now)
{
	char text[96];

	if (logger->lost) {
		snprintf(text, sizeof(text), "%llu log lines suppressed (rate limit)",
			 (unsigned long long)logger->lost);
		log_put(logger, LOG_L_WARNING, now, text);
	}
	logger->window_s = (uint64_t)now->tv_sec;
	logger->in_window = logger->provoked = 0;
	logger->lost = 0;
}

/* Returns true if the current second has room for one more line. */
static bool admit(struct logger *logger, const struct timespec *now, bool provoked)
{
	if (logger->window_s != (uint64_t)now->tv_sec)
		next_window(logger, now);
	if (logger->in_window >= LINES_PER_SECOND ||
	    (provoked && logger->provoked >= LINES_PROVOKED)) {
		logger->lost++;
		logger->suppressed++;
		return false;
	}
	logger->in_window++;
	logger->provoked += provoked;
	return true;
}

static void log_write_line(struct logger *logger, enum log_level level, bool provoked,
			   const char *fmt, va_list ap)
{
	char text[1200];
	struct timespec now;
	int saved = errno;

	if (level > logger->level)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (admit(logger, &now, provoked)) {
		vsnprintf(text, sizeof(text), fmt, ap);
		utf8_plain(text); /* names from outside must not break the line */
		log_put(logger, level, &now, text);
	}
	errno = saved;
}

void log_write(struct logger *logger, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write_line(logger, level, false, fmt, ap);
	va_end(ap);
}

void log_provoked(struct logger *logger, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write_line(logger, level, true, fmt, ap);
	va_end(ap);
}
