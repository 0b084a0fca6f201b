/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_state.h. */
#include "balancer/job_state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "balancer/listing.h"
#include "balancer/run/run.h"

bool job_state_lost(const json_t *job)
{
	return !strcmp(listing_string(job, "state"), "lost");
}

static const char *job_state_signal(int value)
{
	return sigabbrev_np(value) ? sigabbrev_np(value) : "?";
}

void job_state_outcome(char *out, size_t size, const json_t *job)
{
	int value = (int)listing_number(job, "exit_value");

	if (listing_number(job, "end_ns") <= 0)
		snprintf(out, size, "-");
	else if (listing_number(job, "exit_kind") == 1)
		snprintf(out, size, "signal %s", job_state_signal(value));
	else if (listing_number(job, "exit_kind") == 0)
		snprintf(out, size, "%d", value);
	else if (job_state_lost(job))
		snprintf(out, size, "unknown");
	else
		snprintf(out, size, "not started");
}

void job_state_failure(char *out, size_t size, const json_t *job)
{
	int value = (int)listing_number(job, "exit_value");

	*out = 0;
	if (listing_number(job, "end_ns") <= 0)
		return;
	if (listing_number(job, "exit_kind") == 1)
		snprintf(out, size, " and ended by signal %s", job_state_signal(value));
	else if (listing_number(job, "exit_kind") == 0 && value)
		snprintf(out, size, " and ended with status %d", value);
}

int job_state_status(const json_t *job)
{
	int value = (int)listing_number(job, "exit_value");

	if (job_state_lost(job))
		return RUN_UNKNOWN;
	switch ((int)listing_number(job, "exit_kind")) {
	case 0:
	case 2:
		return value;
	case 1:
		return 128 + value;
	default:
		return RUN_FAILED;
	}
}
