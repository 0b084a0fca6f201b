/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What every reader must guarantee for any bytes: it refuses them with a sentence, or it serves
 * as many jobs as it announced, in order, with finite values, and the same ones again.
 */
#ifndef FUZZ_WORKLOAD_H
#define FUZZ_WORKLOAD_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

static inline void check_job(const struct sim_job *j, const struct workload_info *info, uint64_t id)
{
	const double values[] = {j->arrival_ms,	    j->cpu_ms,	      j->io_per_ms,
				 j->request_kb,	    j->request_sd_kb, j->reaccess,
				 j->memory_mb,	    j->faults_per_ms, j->initial_mb,
				 j->write_fraction, j->barrier_ms,    j->messages_per_ms,
				 j->message_kb};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		must(isfinite(values[i]) && values[i] >= 0);
	must(isfinite(j->requests));
	must(j->id == id && j->tasks >= 1 && j->home < info->nodes && j->kind < info->kinds);
	must(j->write_fraction <= 1);
}

/* Reads all jobs of a pass. Returns the sum of their arrivals. */
static inline double check_pass(struct workload *w)
{
	const struct workload_info *info = workload_info(w);
	struct iocom_err err = {0};
	struct sim_job j;
	double last = 0, sum = 0;
	uint64_t n = 0;
	int rc;

	while ((rc = workload_next(w, &j, &err)) == 1) {
		check_job(&j, info, n++);
		must(j.arrival_ms >= last);
		last = j.arrival_ms;
		sum += last;
	}
	must(rc == 0 && n == info->jobs);
	return sum;
}

static inline void check_workload(struct workload *w, const struct iocom_err *err)
{
	struct iocom_err again = {0};
	double sum;

	if (!w) {
		must(*err->text);
		return;
	}
	sum = check_pass(w);
	must(workload_rewind(w, &again) == 0);
	must(check_pass(w) == sum);
	workload_free(w);
}

/* Reads DATA after PREFIX (a header line), once plainly and once with every option inverted. */
static inline int fuzz_workload(const char *prefix, const uint8_t *data, size_t size)
{
	size_t head = strlen(prefix);
	char *text = malloc(head + size + 1);
	struct workload_options o;
	struct iocom_err err = {0};

	must(text != NULL);
	memcpy(text, prefix, head);
	if (size)
		memcpy(text + head, data, size);
	workload_options_default(&o);
	check_workload(workload_open_memory(text, head + size, "fuzz", &o, &err), &err);
	o.nodes = 3;
	o.home_skew = 1;
	o.from_s = 1;
	o.to_s = 1000;
	o.jobs_max = 5;
	o.min_cpu_ms = 1;
	o.tasks_max = 2;
	o.requested = true;
	o.burst_gap_ms = size % 2 ? 100 : -1;
	o.memory_shape = 0;
	o.io_per_ms = 0.5;
	o.run = 0;
	err.text[0] = '\0';
	check_workload(workload_open_memory(text, head + size, "fuzz", &o, &err), &err);
	free(text);
	return 0;
}

#endif
