/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shared by the tests of workloads. */
#ifndef WORKLOAD_FIXTURE_H
#define WORKLOAD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload.h"

#define SAMPLES "tests/sim/data/"

#define NEAR(got, wanted, within)                                                                  \
	do {                                                                                       \
		double got_ = (got), wanted_ = (wanted);                                           \
		if (!(fabs(got_ - wanted_) <= (within)))                                           \
			fail_msg("%s: got %.10g, wanted %.10g", #got, got_, wanted_);              \
	} while (0)

static inline struct workload_options defaults(void)
{
	struct workload_options o;

	workload_options_default(&o);
	return o;
}

/* Opens the trace, or fails the test with the message. */
static inline struct workload *must_open(const char *path, const struct workload_options *o)
{
	struct iocom_err err = {0};
	struct workload *w = workload_open(path, o, &err);

	if (!w)
		fail_msg("%s", err.text);
	return w;
}

static inline struct workload *must_open_text(const char *text, const struct workload_options *o)
{
	struct iocom_err err = {0};
	struct workload *w = workload_open_memory(text, strlen(text), "t", o, &err);

	if (!w)
		fail_msg("%s", err.text);
	return w;
}

static inline struct sim_job must_next(struct workload *w)
{
	struct iocom_err err = {0};
	struct sim_job job = {0};

	if (workload_next(w, &job, &err) != 1)
		fail_msg("no next job: %s", err.text);
	return job;
}

static inline void must_end(struct workload *w)
{
	struct iocom_err err = {0};
	struct sim_job job;

	assert_int_equal(workload_next(w, &job, &err), 0);
	assert_int_equal(workload_next(w, &job, &err), 0);
}

static inline bool same_job(const struct sim_job *a, const struct sim_job *b)
{
	return a->id == b->id && a->arrival_ms == b->arrival_ms && a->home == b->home &&
	       a->tasks == b->tasks && a->kind == b->kind && a->cpu_ms == b->cpu_ms &&
	       a->io_per_ms == b->io_per_ms && a->request_kb == b->request_kb &&
	       a->request_sd_kb == b->request_sd_kb && a->reaccess == b->reaccess &&
	       a->requests == b->requests && a->memory_mb == b->memory_mb &&
	       a->faults_per_ms == b->faults_per_ms && a->initial_mb == b->initial_mb &&
	       a->write_fraction == b->write_fraction && a->barrier_ms == b->barrier_ms &&
	       a->messages_per_ms == b->messages_per_ms && a->message_kb == b->message_kb;
}

/* Checks that TEXT is refused with exactly this message ("t" stands for the file). */
static inline void refused(const char *text, const struct workload_options *o, const char *message)
{
	struct iocom_err err = {0};
	struct workload *w = workload_open_memory(text, strlen(text), "t", o, &err);

	if (w) {
		workload_free(w);
		fail_msg("accepted; wanted %s", message);
	}
	assert_string_equal(err.text, message);
}

#endif
