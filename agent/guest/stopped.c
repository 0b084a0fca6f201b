/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See stopped.h. */
#include "agent/guest/stopped.h"

#include "user/process_stat.h"

bool stopped_is(pid_t pid)
{
	char stat[256];

	/* t: a debugger holds it. */
	return pid > 0 && !process_stat(pid, stat, sizeof(stat)) && *stat == 'T';
}
