/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See metrics_listen.h. */
#include "agent/metrics/metrics_listen.h"

#include <errno.h>
#include <string.h>

#include "agent/base/listen.h"

int metrics_listen(int *listener, const char *address, uint16_t port, struct iocom_err *err)
{
	struct listen_address found;
	int rc;

	*listener = -1;
	if (listen_find(&found, address, port, false, err))
		return iocom_err_set(err, -EINVAL, "metrics: '%.80s' is no numeric address",
				     address);
	rc = listen_open(listener, &found);
	if (rc == -EADDRINUSE)
		return iocom_err_set(err, rc,
				     "metrics: port %u at %s is in use; choose another with "
				     "--metrics-listen",
				     port, address);
	if (rc)
		return iocom_err_set(err, rc, "metrics: cannot listen at %s port %u: %s", address,
				     port, strerror(-rc));
	return 0;
}
