/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Log lines of the daemons, to standard error, with the syslog level prefix
 * ("<4>") that journald reads when started by systemd.  The caller owns the
 * logger; there is no global one.
 */
#ifndef IOCOM_LOG_H
#define IOCOM_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_L_ERROR = 3, LOG_L_WARNING = 4, LOG_L_INFO = 6, LOG_L_DEBUG = 7 };

struct logger {
	const char *program; /* borrowed */
	enum log_level level;
	bool systemd;	   /* prefix levels instead of time and program name */
	uint64_t window_s; /* rate limit: state of the current second */
	unsigned in_window, provoked;
	uint64_t lost;	     /* ... in this second */
	uint64_t suppressed; /* lines not written because of the rate limit */
};

void log_init(struct logger *logger, const char *program);
/* At most 50 lines a second; what was dropped is counted and said once. */
__attribute__((format(printf, 3, 4))) void log_write(struct logger *logger, enum log_level level,
						     const char *fmt, ...);
/*
 * As log_write, for what anybody can bring about as often as he likes: such lines have half of
 * the room, and so cannot keep the others out.
 */
__attribute__((format(printf, 3, 4))) void log_provoked(struct logger *logger, enum log_level level,
							const char *fmt, ...);

#endif
