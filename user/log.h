/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Log lines of the daemons, written to standard error. If systemd started the daemon, each has
 * the syslog level prefix ("<4>") that journald reads. The caller owns the logger; there is no
 * global one.
 */
#ifndef IOCOM_LOG_H
#define IOCOM_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_L_ERROR = 3, LOG_L_WARNING = 4, LOG_L_INFO = 6, LOG_L_DEBUG = 7 };

struct logger {
	const char *program; /* borrowed */
	enum log_level level;
	bool systemd;	   /* write level prefixes, not time and program name */
	uint64_t window_s; /* rate limit: state of the current second */
	unsigned in_window, provoked;
	uint64_t lost;	     /* lines written in this second */
	uint64_t suppressed; /* lines not written because of the rate limit */
};

void log_init(struct logger *logger, const char *program);
/* Writes at most 50 lines a second, and logs once how many were dropped. */
__attribute__((format(printf, 3, 4))) void log_write(struct logger *logger, enum log_level level,
						     const char *fmt, ...);
/*
 * As log_write, for events that anybody can cause as often as they like. Such lines get half of
 * the room, so that they cannot crowd out the others.
 */
__attribute__((format(printf, 3, 4))) void log_provoked(struct logger *logger, enum log_level level,
							const char *fmt, ...);

#endif
