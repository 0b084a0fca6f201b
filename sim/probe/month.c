/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The study: when the probe is executed and how busy the machines are then.
 *
 *   loops(t) = mean x (1 + swing cos(2 pi (t - 15 h) / 24 h)) x mood
 *   mood     Gamma of mean 1, one for each machine, drawn again every mood_h hours
 *   remote   = fixed_cost + busy_local min(1, q_local / busy_queue)
 *              + busy_remote min(1, q_remote / busy_queue) + response there   (ZAT-9.1)
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/probe/machine.h"

#define PI	 3.14159265358979323846
#define BUSIEST	 15 /* hour of the day */
#define MACHINES 2

enum { PURPOSE_MOOD = 0x50530000, PURPOSE_SLEEPERS };

/* The stream of a machine's draws for a period of mood_h hours. */
static struct sim_random month_stretch(const struct probe_spec *spec, uint64_t seed,
				       uint64_t purpose, uint64_t machine, double hour)
{
	return sim_random_stream(seed, purpose,
				 machine << 56 | (uint64_t)floor(hour / spec->mood_h));
}

static double loops_at(const struct probe_spec *spec, uint64_t seed, uint64_t machine, double hour)
{
	double mean = machine ? spec->remote : spec->local;
	double day = 1 + spec->swing * cos(2 * PI * (hour - BUSIEST) / 24);
	struct sim_random r = month_stretch(spec, seed, PURPOSE_MOOD, machine, hour);

	return mean * day * sim_random_gamma(&r, 1, spec->mood_sd);
}

static double overhead_s(const struct probe_spec *spec, const struct sim_params *p,
			 const struct probe_row *row)
{
	double local = fmin(1, row->v[PROBE_QUEUE] / spec->busy_queue);
	double remote = fmin(1, row->v[PROBE_R_QUEUE] / spec->busy_queue);

	return (p->rules.fixed_cost_ms + spec->busy_local_ms * local +
		spec->busy_remote_ms * remote) /
	       1000;
}

static int month_execute(const struct probe_spec *spec, const struct sim_cluster *cluster,
			 const struct sim_params *p, uint64_t seed, uint64_t k,
			 struct probe_row *row)
{
	double hour = 24 * spec->days * (double)k / spec->jobs;
	int ret = 0;

	row->v[PROBE_HOUR] = hour;
	for (uint64_t i = 0; i < MACHINES && !ret; i++) {
		struct sim_random r = month_stretch(spec, seed, PURPOSE_SLEEPERS, i, hour);
		struct probe_scene scene = {
			.spec = spec,
			.machine = &cluster->machines[i],
			.params = p,
			.loops = loops_at(spec, seed, i, hour),
			.idle_mb = sim_random_between(&r, 0, 2 * spec->idle_mb),
			.seed = seed,
			.owner = i << 56 | k << 24,
		};

		ret = probe_machine_run(&scene, &row->v[i ? PROBE_AT_REMOTE : PROBE_IDLE],
					&row->v[i ? PROBE_PURE_S : PROBE_LOCAL_S]);
	}
	row->v[PROBE_OVERHEAD_S] = overhead_s(spec, p, row);
	row->v[PROBE_REMOTE_S] = row->v[PROBE_PURE_S] + row->v[PROBE_OVERHEAD_S];
	return ret;
}

int probe_month_run(const struct probe_spec *spec, const struct sim_cluster *cluster,
		    const struct sim_params *p, uint64_t seed, bool (*keep_going)(void *),
		    void *arg, struct probe_month *month, struct iocom_err *err)
{
	int ret = 0;

	if (cluster->n != MACHINES)
		return iocom_err_set(err, -EINVAL,
				     "a probe needs two machines, a local and a remote one, not %u",
				     cluster->n);
	month->n = (uint32_t)spec->jobs;
	month->rows = calloc(month->n, sizeof(*month->rows));
	if (!month->rows)
		return -ENOMEM;
	for (uint32_t k = 0; k < month->n && !ret; k++)
		ret = keep_going && !keep_going(arg)
			      ? -ECANCELED
			      : month_execute(spec, cluster, p, seed, k, &month->rows[k]);
	if (ret)
		probe_month_free(month);
	return ret;
}

void probe_month_free(struct probe_month *month)
{
	free(month->rows);
	*month = (struct probe_month){0};
}
