/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sentences for people; see iocom/err.h. */
#include "iocom/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int iocom_err_set(struct iocom_err *err, int code, const char *fmt, ...)
{
	int saved = errno;

	if (err) {
		va_list ap;

		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	errno = saved;
	return code;
}

void iocom_err_prefix(struct iocom_err *err, const char *fmt, ...)
{
	char head[256];
	char old[sizeof(err->text)];
	int saved = errno;
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(head, sizeof(head), fmt, ap);
	va_end(ap);
	memcpy(old, err->text, sizeof(old));
	/* The prefix is short; a text that is too long is cut at its end. */
	snprintf(err->text, sizeof(err->text), "%s: %.700s", head, old);
	errno = saved;
}
