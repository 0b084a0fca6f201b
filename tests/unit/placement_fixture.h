/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The decision that an agent makes, as home, in a cluster of a given size. */
#ifndef PLACEMENT_FIXTURE_H
#define PLACEMENT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_view.h"
#include "balancer/view/placement.h"
#include "balancer/view/view_decide.h"

static inline struct iocom_vector fixture_vector(const char *name, double load)
{
	struct iocom_vector v = {
		.address = "10.0.0.1",
		.port = 7700,
		.boot_id = 0xfedcba9876543210,
		.sequence = 12,
		.time_ns = 1700000000123456789,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.cpu_burst = 2,
		.run_queue = load,
		.memory_mb = 1000,
		.memory_available_mb = 900 - load,
		.memory_requested_mb = 100 + load,
		.explicit_per_ms = 0.1 * load,
		.implicit_per_ms = 0.01 * load,
		.io_tasks = 1,
		.disks = 1,
		.disk_arrivals_per_ms = 0.1 * load,
		.disk_utilisation = load < 10 ? load / 10 : 1,
		.disk_service_ms = 3,
		.disk_service_ms2 = 9,
		.disk_mb_per_s = 20,
		.disk_fixed_ms = 0.1,
		.cpu_sharers = load,
		.disk_sharers = load / 2,
		.cpu_left_ms = 1000 * load,
		.disk_left_ms = 500 * load,
		.network_mb_per_s = 125,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

/* Node n1 is home, with a load of HOME_LOAD; the others have some. */
static inline void fixture_nodes(struct placement *p, struct matrix *m, size_t count,
				 double home_load)
{
	char name[32];

	matrix_init(m, "n1");
	p->nodes = calloc(count, sizeof(*p->nodes));
	p->nodes[p->nnodes++] = (struct placement_node){
		.vector = fixture_vector("n1", home_load),
		.self = true,
	};
	for (size_t i = 1; i < count; i++) {
		struct iocom_vector v;

		snprintf(name, sizeof(name), "n%zu", i + 1);
		v = fixture_vector(name, (double)(i * 7 % 11) * 0.7);
		if (matrix_put(m, &v, 0, 1))
			abort();
	}
	for (size_t i = 0; i < m->count; i++)
		p->nodes[p->nnodes++] = (struct placement_node){
			.vector = m->entries[i]->vector,
			.age_ms = (double)i / 8,
		};
}

/* Initialises P with the decision that POLICY makes on COUNT nodes. */
static inline void fixture_decide(struct placement *p, const char *policy, size_t count,
				  double home_load)
{
	static struct view_policy parsed;
	struct cluster_view *kept;
	struct view_decision d;
	struct view_file view;
	struct matrix m;

	placement_init(p);
	fixture_nodes(p, &m, count, home_load);
	kept = cluster_view_new(&m);
	if (!kept || view_policy_parse(policy, &parsed, NULL) ||
	    cluster_view_refresh(kept, &p->nodes[0].vector, 1) || cluster_view_file(kept, 1, &view))
		abort();
	p->need.value[NEED_IO_PER_S] = 200;
	p->need.source[NEED_IO_PER_S] = NEED_OPTION;
	p->need.source[NEED_CPU_S] = NEED_PROFILE;
	p->need_given = NEED_ALL;
	need_request(&p->need, &view.job);
	view.seed = 4711;
	if (view_decide(&view, &parsed, &d, NULL) ||
	    plan_record_take(&p->plan, plan_json(&d, true)))
		abort();
	p->policy = parsed.name;
	p->home = "n1";
	p->node = p->plan.node;
	p->expectation = d.expectation;
	p->seed = view.seed;
	view_decision_fini(&d);
	view_file_fini(&view);
	cluster_view_free(kept);
	matrix_fini(&m);
}

/* The job runs at the chosen node. */
static inline void fixture_place(struct placement *p)
{
	p->placed = true;
	p->job = "n1-0badcafe-17";
	p->address = "10.0.0.2";
	p->port = 7702;
	p->nonce = "0123456789abcdef0123456789abcdef";
	p->munge_socket = "/run/munge/munge.socket.2";
}

#endif
