/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_error.h. */
#include "agent/net/net_error.h"

#include <errno.h>
#include <nng/nng.h>

int net_error(int e, const char *what, const char *url, unsigned limit_ms, struct iocom_err *err)
{
	switch (e) {
	case 0:
		return 0;
	case NNG_EADDRINUSE:
		return iocom_err_set(err, -EADDRINUSE,
				     "cannot %s %s: the port is in use, perhaps by another iocomd; "
				     "find its owner with `ss -ltnp`, or choose --port",
				     what, url);
	case NNG_EADDRINVAL:
		return iocom_err_set(err, -EADDRNOTAVAIL,
				     "cannot %s %s: no such address on this machine; see --listen",
				     what, url);
	case NNG_ENOMEM:
		return iocom_err_set(err, -ENOMEM, "out of memory");
	case NNG_ETIMEDOUT:
		return iocom_err_set(err, -ETIMEDOUT,
				     "no answer within %g s from %s (is iocomd running there?)",
				     limit_ms / 1e3, url);
	case NNG_ECANCELED:
	case NNG_ECLOSED:
		return iocom_err_set(err, -ECANCELED, "the agent is stopping");
	default:
		return iocom_err_set(err, -EIO, "cannot %s %s: %s", what, url, nng_strerror(e));
	}
}
