/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * This node as the rules' models of the buffer see it (MODEL 1.3, 1.5).
 *
 * The kernel counts requests that reached the disk, lambda_j (1 - h_j), per ms that j computed.
 * The rate lambda_j of all accesses solves that together with (5.4), in which h_j depends on all
 * rates; ROUNDS of a damped iteration do it.  How often data is read again (feedback_reaccess)
 * nobody measures: it is assumed.  Page faults are measured, and feedback_faults_per_ms is the
 * least that is assumed: the papers' nodes page once working sets and buffer do not fit beside each
 * other (5 a ms, FC), but Linux gives cache up first, so by default only faults that happen count.
 * Memory that is not the jobs' is divided among them: only the sum counts.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/cluster/cluster_view.h"
#include "agent/feedback/feedback_own.h"

#define ROUNDS	     32
#define CPU_LEAST_MS 1.0
#define FAULT_MS     8.1 /* FC: a page fault at an idle disk */
#define KB_PER_MB    1000.0

static double node_length_ms(const struct guest_running *job)
{
	return fmax(fmax(job->need_cpu_ms, 2 * job->cpu_ms), 2 * CPU_LEAST_MS);
}

static void node_task(const struct feedback *f, const struct guest_running *job, double others_mb,
		      struct rules_task *task)
{
	double cpu_ms = fmax(job->cpu_ms, CPU_LEAST_MS);

	*task = (struct rules_task){
		.cpu_ms = node_length_ms(job),
		.age_ms = job->cpu_ms,
		.io_per_ms = job->requests / cpu_ms,
		.request_kb = job->requests > 0 ? job->moved_mb * KB_PER_MB / job->requests : 0,
		.reaccess = f->set.reaccess,
		.memory_mb = job->memory_mb + others_mb,
		.faults_per_ms = fmax(job->faults / cpu_ms, f->set.faults_per_ms),
	};
}

/* From rates of misses to rates of accesses; returns the hit rate of all accesses together. */
static double node_accesses(struct rules_task *tasks, size_t n, double buffer_mb)
{
	double *missed = calloc(n + 1, sizeof(*missed));
	double accesses = 0, hits = 0;

	for (size_t i = 0; missed && i < n; i++)
		missed[i] = tasks[i].io_per_ms;
	for (int round = 0; missed && round < ROUNDS; round++) {
		double all = 0;

		for (size_t i = 0; i < n; i++)
			all += tasks[i].io_per_ms * tasks[i].request_kb;
		accesses = hits = 0;
		for (size_t i = 0; i < n; i++) {
			struct rules_task *t = &tasks[i];
			double h = rules_hit_rate(t->reaccess, buffer_mb * KB_PER_MB, t->io_per_ms,
						  t->request_kb, t->cpu_ms, all);

			hits += h * t->io_per_ms;
			accesses += t->io_per_ms;
			t->io_per_ms = (t->io_per_ms + missed[i] / (1 - h)) / 2;
		}
	}
	free(missed);
	return accesses > 0 ? hits / accesses : 0;
}

static double node_share(double x)
{
	return x > 1 ? 1 : x > 0 ? x : 0;
}

int feedback_look(const struct feedback *f, const struct iocom_vector *own,
		  const struct guest_running *jobs, size_t njobs, struct rules_outcome *outcome)
{
	struct rules_task *tasks = calloc(njobs + 1, sizeof(*tasks));
	double disk = own->explicit_per_ms + own->implicit_per_ms, of_jobs = 0, others;
	struct rules_node node;
	int rc;

	if (!tasks)
		return -ENOMEM;
	for (size_t i = 0; i < njobs; i++)
		of_jobs += jobs[i].memory_mb;
	others = njobs ? fmax(0, own->memory_requested_mb - of_jobs) / (double)njobs : 0;
	for (size_t i = 0; i < njobs; i++)
		node_task(f, &jobs[i], others, &tasks[i]);
	outcome->cpu_utilisation = node_share(own->cores ? own->run_queue / own->cores : 0);
	outcome->disk_utilisation = node_share(own->disk_utilisation);
	outcome->implicit_share = node_share(disk > 0 ? own->implicit_per_ms / disk : 0);
	outcome->hit_rate = node_share(node_accesses(tasks, njobs, f->buffer.applied_mb));
	view_node(own, 0, &node);
	node.ram_mb = f->buffer.memory_mb;
	node.tasks = tasks;
	node.ntasks = njobs;
	rc = rules_foresee(f->rules, &node,
			   own->disk_service_ms > 0 ? own->disk_service_ms : FAULT_MS, true);
	free(tasks);
	return rc;
}
