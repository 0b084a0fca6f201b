/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The sentence that a person reads when something failed.
 *
 * Functions return 0, a negative errno (fatal, passed up unchanged) or a positive condition
 * documented per function. If a person must read the cause, the last parameter takes the
 * sentence: what was attempted, on what, why it failed, what to do.
 */
#ifndef IOCOM_ERR_H
#define IOCOM_ERR_H

#include <stdarg.h>

struct iocom_err {
	char text[1024]; /* "" when nothing failed */
};

/*
 * Formats the sentence into ERR (which may be NULL) and returns CODE, so that
 * a failing path reads `return iocom_err_set(err, -ENOENT, "...", ...);`.
 * Keeps errno.
 */
__attribute__((format(printf, 3, 4))) int iocom_err_set(struct iocom_err *err, int code,
							const char *fmt, ...);

/* Puts "PREFIX: " before the text of ERR; keeps errno. */
__attribute__((format(printf, 2, 3))) void iocom_err_prefix(struct iocom_err *err, const char *fmt,
							    ...);

#endif
