/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One run: a cluster, a workload, a policy, parameters -> a result. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/cluster.h"
#include "sim/params.h"
#include "sim/result.h"
#include "sim/workload.h"

/* Told now and then; false stops the run (-ECANCELED). */
typedef bool sim_progress_fn(void *arg, double time_ms, uint64_t completed);

/* One completed job, in order of (completion, id) with one thread. */
struct sim_completion {
	const struct sim_job *job;
	uint32_t node; /* where its first task ended */
	double start_ms, end_ms, alone_ms, slowdown;
	uint32_t moves; /* remote executions and migrations of its tasks */
};

struct sim_look; /* the view of one decision; valid during the callback */

struct sim_run {
	const struct sim_cluster *cluster;
	struct workload *workload; /* read from where it is to its end */
	const char *policy;	   /* a name of `iocom place --policy`, "feedback+" allowed */
	const struct sim_params *params;
	sim_progress_fn *progress; /* or NULL */
	/* Each completion (one thread only; -EINVAL otherwise), or NULL. */
	void (*completed)(void *arg, const struct sim_completion *c);
	/* Each decision (recordings, view export; one thread only), or NULL.  NODES: where
	 * the job's tasks go, unless plan->queued. */
	void (*decided)(void *arg, double time_ms, const struct sim_job *job,
			const struct rules_plan *plan, const uint32_t *nodes,
			const struct sim_look *look);
	void *arg;
};

/*
 * Describes node I of the cluster as the decision saw it; what the home has sent
 * to it since the last snapshot is among the tasks.  0 or -errno; NODE->tasks are
 * valid until the next call.
 */
int sim_look_node(const struct sim_look *look, uint32_t i, struct rules_node *node);
/* The seed that the decision's random choices follow from. */
uint64_t sim_look_seed(const struct sim_look *look);
/* What the rules were asked; valid during the callback. */
const struct rules_request *sim_look_request(const struct sim_look *look);
/* The controller of the rules that decided (inactive without one). */
void sim_look_control(const struct sim_look *look, struct rules_control *control);
/* The speed at which cpu_ms count: rules.reference_mips, or else the mean of the nodes'. */
double sim_reference_mips(const struct sim_cluster *cluster, const struct sim_params *p);

/*
 * 0; -EINVAL (unknown policy, home out of range, values out of range, job that no
 * memory of any node could hold is NOT an error: it pages); workload errors as
 * they come; -ENOMEM; -ECANCELED.  RESULT is to be freed in the first case only.
 */
int sim_run(const struct sim_run *run, struct sim_result *result, struct iocom_err *err);
/* What the job would take alone on an idle machine of its home (slowdown's divisor, O-3), ms. */
double sim_alone_ms(const struct sim_job *job, const struct sim_machine *home,
		    const struct sim_params *p, double reference_mips);

#endif
