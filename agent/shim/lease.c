/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See lease.h. */
#include "agent/shim/lease.h"

#include <stdio.h>

void lease_hear(struct lease *lease, uint64_t until_ms)
{
	if (!lease->until_ms)
		return;
	if (!until_ms)
		lease->until_ms = 1; /* a time in the past; 0 would mean no lease */
	else if (until_ms > lease->until_ms && lease->until_ms > 1)
		lease->until_ms = until_ms;
}

bool lease_given_up(const struct lease *lease)
{
	return lease->until_ms == 1;
}

bool lease_over(struct lease *lease, uint64_t now_ms)
{
	if (!lease->until_ms || lease->why || now_ms < lease->until_ms)
		return false;
	lease->why = lease_given_up(lease)
			     ? "its home node has given it up and may run it again elsewhere"
			     : "its lease ran out: its home node did not answer; the job was ended "
			       "and may run again";
	return true;
}

void lease_client_lost(struct lease *lease)
{
	if (lease->until_ms && !lease->why)
		lease->why = "contact to its client was lost; the job was ended and may run again";
}

void lease_expel(struct lease *lease, const char *why)
{
	if (!lease->expelled[0])
		snprintf(lease->expelled, sizeof(lease->expelled), "%s", why);
}

/* Returns true if END came of the expulsion. */
static bool lease_expelled(const struct lease *lease, const struct record_exit *end)
{
	return lease->expelled[0] && (end->kind == 1 || (end->kind == 0 && end->value));
}

void lease_outcome(const struct lease *lease, struct record_exit *end)
{
	if (!lease->why && lease_expelled(lease, end)) {
		snprintf(end->text, sizeof(end->text), "%s%s", lease->expelled,
			 lease->until_ms ? "; it may run again" : "");
		if (!lease->until_ms)
			return;
		end->kind = 3;
		end->value = LEASE_OUTCOME;
	}
	if (!lease->why)
		return;
	end->kind = 3;
	end->value = LEASE_OUTCOME;
	snprintf(end->text, sizeof(end->text), "%s", lease->why);
}
