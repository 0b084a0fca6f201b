/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See watchdog.h. */
#include "agent/base/watchdog.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/notify.h"

#define HALF_OF_US 500 /* ns in half a microsecond */

/* Reads a positive whole number.  Returns 0 if TEXT is anything else. */
static uint64_t positive(const char *text)
{
	unsigned long long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	return *end || errno ? 0 : value;
}

uint64_t watchdog_period_us(void)
{
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t period = positive(getenv("WATCHDOG_USEC"));

	if (pid && positive(pid) != (uint64_t)getpid())
		return 0;
	return period > UINT64_MAX / HALF_OF_US ? 0 : period;
}

static void watchdog_feed(void *arg)
{
	struct watchdog *w = arg;

	notify_systemd("WATCHDOG=1");
	loop_start(w->loop, &w->timer, w->half_ns);
}

void watchdog_start(struct watchdog *w, struct loop *loop)
{
	uint64_t period = watchdog_period_us();

	*w = (struct watchdog){.timer = {.fire = watchdog_feed, .arg = w}};
	if (!period)
		return;
	w->loop = loop;
	w->half_ns = period * HALF_OF_US;
	loop_start(loop, &w->timer, 0);
}
