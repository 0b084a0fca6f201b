/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One run takes a cluster, a workload, a policy and parameters, and gives a result. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/cluster.h"
#include "sim/params.h"
#include "sim/result.h"
#include "sim/workload.h"

/* The run calls it from time to time; returning false stops the run (-ECANCELED). */
typedef bool sim_progress_fn(void *arg, double time_ms, uint64_t completed);

/* One completed job.  With one thread they come in order of (completion, id). */
struct sim_completion {
	const struct sim_job *job;
	uint32_t node; /* where the first task of the job ended */
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
	/* Called for each completion, or NULL.  Needs a run with one thread (-EINVAL otherwise). */
	void (*completed)(void *arg, const struct sim_completion *c);
	/* Called for each decision (recordings, exported views), or NULL.  Needs one thread.
	 * NODES says where the job's tasks go, unless plan->queued. */
	void (*decided)(void *arg, double time_ms, const struct sim_job *job,
			const struct rules_plan *plan, const uint32_t *nodes,
			const struct sim_look *look);
	void *arg;
};

/*
 * Describes node I of the cluster as the decision saw it.  Its tasks include those that the home
 * has sent to it since the last snapshot.  Returns 0 or -errno; NODE->tasks are valid until the
 * next call.
 */
int sim_look_node(const struct sim_look *look, uint32_t i, struct rules_node *node);
/* The seed of the decision's random choices. */
uint64_t sim_look_seed(const struct sim_look *look);
/* The request that the rules were asked about; valid during the callback. */
const struct rules_request *sim_look_request(const struct sim_look *look);
/* Why the tasks of a job that was placed all at once go where they go; NULL: it was not. */
const struct rules_gang_plan *sim_look_gang(const struct sim_look *look);
/* The controller of the rules that decided (inactive without one). */
void sim_look_control(const struct sim_look *look, struct rules_control *control);
/* The speed that cpu_ms refer to: rules.reference_mips if set, else the mean of the nodes. */
double sim_reference_mips(const struct sim_cluster *cluster, const struct sim_params *p);

/*
 * Runs the simulation.  Returns 0; -EINVAL (unknown policy, home or values out of range);
 * errors of the workload as they are; -ENOMEM; -ECANCELED.  A job that no node's memory can
 * hold is no error: it pages.  The caller frees RESULT only after 0.
 */
int sim_run(const struct sim_run *run, struct sim_result *result, struct iocom_err *err);
/* Time in ms that the job takes alone on an idle machine like its home: the divisor of
 * its slowdown (O-3). */
double sim_alone_ms(const struct sim_job *job, const struct sim_machine *home,
		    const struct sim_params *p, double reference_mips);

#endif
