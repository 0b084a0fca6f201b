/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Asks home's agent for the next attempt of a restartable job whose node is lost.  Only home
 * decides, and it says when to ask again; this program just waits.
 */
#include "balancer/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/client.h"
#include "user/clock.h"

#define WAIT_MAX_MS   5000
#define FOLLOW_MIN_MS 10000 /* so long a job that can move is looked for where it was, and went */

static void pause_ms(uint64_t ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

	while (clock_nanosleep(CLOCK_BOOTTIME, 0, &t, &t) == EINTR)
		;
}

static uint64_t run_again_now_s(void)
{
	return clock_boot_ns() / CLOCK_NS_PER_S;
}

bool run_may_restart(const struct run_result *result)
{
	if (result->signal)
		return false;
	return result->state == RUN_STARTED || result->state == RUN_LOST ||
	       (result->state == RUN_EXITED && result->kind == 3 && result->value == RUN_UNKNOWN);
}

/* Fills RESULT with the end of an attempt that we had lost sight of. */
static int told_end(const struct placement_lost *lost, struct run_result *result)
{
	result->state = RUN_EXITED;
	result->kind = (uint8_t)lost->kind;
	result->value = (uint32_t)lost->value;
	snprintf(result->text, sizeof(result->text),
		 "contact was lost; its home node knows how it ended, its output may be cut");
	return 1;
}

/*
 * The only node that the user allows has one lease's time to return.  Returns 0, or an error
 * when the time is over.
 */
static int still_silent(const struct placement_lost *lost, uint64_t *since_s, struct iocom_err *err)
{
	const char *node = lost->silent;
	uint64_t limit_s = lost->lease_ms / 1000;

	if (!*node) {
		*since_s = 0;
		return 0;
	}
	if (!*since_s)
		*since_s = run_again_now_s();
	if (run_again_now_s() - *since_s < limit_s)
		return 0;
	return iocom_err_set(err, -EHOSTUNREACH,
			     "node %s did not come back within %llu s, and no other may run the "
			     "job (--node)",
			     node, (unsigned long long)limit_s);
}

int run_again(int (*ask)(void *arg, struct placement *answer, struct iocom_err *err), void *arg,
	      uint64_t least_ms, struct run_result *result, struct placement *got,
	      struct iocom_err *err)
{
	uint64_t heard_s = run_again_now_s(), silent_s = 0;

	for (;;) {
		uint64_t wait_ms = 1000;
		int rc = ask(arg, got, err);

		if (rc && (!client_agent_is_away(rc) || run_again_now_s() - heard_s > RUN_AGAIN_S))
			return rc;
		if (!rc) {
			heard_s = run_again_now_s();
			err->text[0] = 0;
			wait_ms = got->lost.wait_ms;
			if (!wait_ms)
				return *got->lost.state ? told_end(&got->lost, result) : 0;
			rc = still_silent(&got->lost, &silent_s, err);
			if (rc)
				return rc;
		}
		err->text[0] = 0;
		placement_fini(got);
		if (wait_ms < least_ms)
			wait_ms = least_ms;
		pause_ms(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
	}
}

void run_again_keep_outputs(struct run_stream_options *options, int lease_ms, bool moves)
{
	for (int i = 1; i < 3; i++) {
		int copy = fcntl(i, F_DUPFD_CLOEXEC, 3);

		if (copy >= 0)
			options->stdio[i] = copy;
	}
	/* When the lease ends, ask home: it may have given this attempt up, unless it moved. */
	if (moves) {
		uint32_t follow_ms = lease_ms > FOLLOW_MIN_MS ? (uint32_t)lease_ms : FOLLOW_MIN_MS;

		if (options->again_ms > follow_ms)
			options->again_ms = follow_ms;
	} else if (lease_ms / 1000 < WIRE_SILENCE_S) {
		options->patience_s = lease_ms ? lease_ms / 1000 + 1 : 0;
		options->again = NULL;
	} else if (options->again_ms > (uint32_t)lease_ms - WIRE_SILENCE_S * 1000) {
		options->again_ms = (uint32_t)lease_ms - WIRE_SILENCE_S * 1000 + 1000;
	}
}

void run_again_drop_outputs(const struct run_stream_options *options)
{
	for (int i = 1; i < 3; i++)
		if (options->stdio[i] > 2)
			close(options->stdio[i]);
}
