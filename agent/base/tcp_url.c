/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See tcp_url.h. */
#include "agent/base/tcp_url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void tcp_url(char *out, size_t size, const char *address, unsigned port)
{
	bool v6 = strchr(address, ':') && *address != '[';

	snprintf(out, size, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", address, port);
}
