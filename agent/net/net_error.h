/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* nng's errors as sentences. */
#ifndef IOCOM_NET_ERROR_H
#define IOCOM_NET_ERROR_H

#include "iocom/err.h"

/* Says that WHAT at URL failed with NNG_RC, within LIMIT_MS if it was time.  Returns an errno. */
int net_error(int nng_rc, const char *what, const char *url, unsigned limit_ms,
	      struct iocom_err *err);

#endif
