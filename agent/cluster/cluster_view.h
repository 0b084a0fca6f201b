/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The load matrix as the rules look at it: indexed (wall-clock rates), and kept up to
 * date by each event, so that a decision neither copies the cluster nor builds an index.
 *
 *   vector heard   its node is set, and charged with what the vector does not count yet
 *   node dropped   its node is removed; the newest node takes over its index
 *   job placed     its node is charged with what the job needs (MODEL 3.0)
 *   decision       home is set from its own vector, exact and fresh; charges that are
 *                  too old end
 *
 * Each costs O(log n) with n nodes, and O(charges of the node) where a charge ends.
 *
 * A charge ends when a vector arrives that already counts the job: the target tells
 * with its grant from which (boot id, sequence) on that is so, and no clock is compared.
 *
 * Node 0 is home.  Indices matter: equal nodes are drawn by index, so the same plan
 * follows from the same seed only with the same order of nodes.  The file of a view
 * therefore lists the nodes by index.  A node that stays alive may change its index when
 * another is dropped.  The rules do not look at ages: they are calculated only where a
 * node is shown.
 */
#ifndef IOCOM_CLUSTER_VIEW_H
#define IOCOM_CLUSTER_VIEW_H

#include <stdint.h>

#include "iocom/rules.h"
#include "agent/base/matrix.h"
#include "balancer/view/view_decide.h"
#include "balancer/view/view_json.h"

#define VIEW_CHARGES_MAX 4096
#define VIEW_CHARGE_NS	 (30ull * 1000000000ull) /* a charge ends after this time at the latest */

/* The size of the requests for which the machines' disks are compared. */
#define VIEW_REQUEST_KB	    128
#define VIEW_REFERENCE_MIPS 1000 /* the job's CPU time at a cpu_speed of 1 */

struct view_charge {
	char node[IOCOM_NAME_MAX];
	/* the sequence of the first vector of the target that counts the job */
	uint64_t boot_id, sequence;
	uint64_t since_ns; /* CLOCK_BOOTTIME, not before the charge before it */
	struct rules_request request;
};

struct cluster_view;

/*
 * Makes the view of M and watches M (matrix_watch) until it is freed; M must outlive it. Home is a
 * placeholder until the first refresh.  Returns NULL if there is no memory.
 */
struct cluster_view *cluster_view_new(struct matrix *m);
/* Decides by PARAMS from now on, which have the rates of view_params. */
void cluster_view_use(struct cluster_view *v, const struct rules_params *params);
/* Weighs disk load by W_IO (MODEL 3.10) in the next decision, and in the file of its view. */
void cluster_view_weigh(struct cluster_view *v, double w_io);
void cluster_view_free(struct cluster_view *v);
/*
 * Call it before a decision: sets home from OWN and ends charges older than VIEW_CHARGE_NS. Returns
 * 0, or -EINVAL (OWN is out of the range of the rules; home stays as it was).
 */
int cluster_view_refresh(struct cluster_view *v, const struct iocom_vector *own, uint64_t now_ns);
/*
 * Adds a charge, unless its node is not there or the node's vector counts it already.  At
 * VIEW_CHARGES_MAX the oldest charge is removed and counts as lost.  Returns its number; 0: none.
 */
uint64_t cluster_view_charge(struct cluster_view *v, const struct view_charge *charge);
/* Takes a charge back: the job does not go there.  One that has ended, and 0, are fine. */
void cluster_view_uncharge(struct cluster_view *v, uint64_t number);
/*
 * Decides as view_decide_on.  The first decision by a policy builds the indexes that it needs; they
 * are kept from then on.
 */
int cluster_view_decide(struct cluster_view *v, const struct view_policy *policy,
			const struct rules_request *job, uint64_t seed,
			struct view_decision *decision, struct iocom_err *err);
/* What moves of jobs cost by the rules, F ms by itself (2.4), but to those nodes PATHS. */
struct cluster_view_costs {
	double fixed_ms;
	const struct rules_path *paths; /* by node */
	size_t npaths;
};
/*
 * Decides by a policy that migrates which one of the N TASKS, which run at home, should leave it.
 * Returns 1: MOVE says which, and PLAN why; 0: none; negative errno.
 */
int cluster_view_migrate(struct cluster_view *v, enum rules_policy policy,
			 const struct cluster_view_costs *costs, const struct rules_task *tasks,
			 size_t n, uint64_t seed, struct rules_move *move, struct rules_plan *plan);
/*
 * The same for a gang, all of whose tasks are placed at once; PORTS has one for each node of the
 * view.  -ERANGE: they do not fit.
 */
int cluster_view_decide_gang(struct cluster_view *v, const struct view_policy *policy,
			     const struct rules_request *job, const struct rules_port *ports,
			     uint64_t seed, struct view_decision *decision, struct iocom_err *err);
/* Says, as view_expect, what JOB would take at each of the N nodes AT. */
int cluster_view_expect(const struct cluster_view *v, enum rules_policy policy,
			const struct rules_request *job, const uint32_t *at, size_t n,
			struct rules_expectation *out);
/*
 * Copies all that a decision looks at: every node with its age and its charges. The caller adds the
 * job and the seed, and frees OUT. Deciding on it gives the same plan. Returns 0 or -ENOMEM.
 */
int cluster_view_file(const struct cluster_view *v, uint64_t now_ns, struct view_file *out);

/*
 * The number of nodes, home included; a node's last vector (valid until the view changes), and its
 * age.
 */
uint32_t cluster_view_count(const struct cluster_view *v);
const struct iocom_vector *cluster_view_vector(const struct cluster_view *v, uint32_t index);
double cluster_view_age_ms(const struct cluster_view *v, uint32_t index, uint64_t now_ns);
/*
 * The number of charges now, and of those lost because there was no room or memory: then decisions
 * may herd for a period.
 */
size_t cluster_view_charges(const struct cluster_view *v);
uint64_t cluster_view_charges_lost(const struct cluster_view *v);
/*
 * Returns how many vectors have no node in the view: they are out of the rules' range, or there was
 * no memory.
 */
uint64_t cluster_view_left_out(const struct cluster_view *v);

/* Makes a node of the rules from one vector. */
void view_node(const struct iocom_vector *v, double age_ms, struct rules_node *out);
/* The parameters of every live decision, where no setting says otherwise. */
void view_params(struct rules_params *params);

#endif
