/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See seldom.h. */
#include "agent/base/seldom.h"

bool seldom_again(uint64_t *said_ns, uint64_t now_ns, uint64_t every_ns)
{
	if (*said_ns && now_ns - *said_ns < every_ns)
		return false;
	*said_ns = now_ns;
	return true;
}
