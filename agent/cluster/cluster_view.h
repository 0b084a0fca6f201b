/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * From the load matrix to what the rules look at (wall-clock rates).  Node 0 is
 * home: its own vector, exact and fresh.  The others follow by name, each with
 * what home placed there since its last vector ("charges", MODEL 3.0).
 *
 * A charge ends when a vector arrives that already counts the job: the target
 * tells with its grant from which (boot id, sequence) on that is so, and no
 * clock is compared.
 */
#ifndef IOCOM_AGENT_VIEW_H
#define IOCOM_AGENT_VIEW_H

#include <stdint.h>

#include "iocom/rules.h"
#include "agent/cluster/matrix.h"
#include "balancer/view/view_json.h"

#define VIEW_CHARGES_MAX 4096
#define VIEW_CHARGE_NS	 (30ull * 1000000000ull) /* at the latest, it ends after this */

/* Requests of the machines' disks are compared at this size. */
#define VIEW_REQUEST_KB	    128
#define VIEW_REFERENCE_MIPS 1000 /* of cpu_speed 1 */

struct view_charge {
	char node[IOCOM_NAME_MAX];
	uint64_t boot_id, sequence; /* the first vector of the target that counts it */
	uint64_t since_ns;	    /* CLOCK_BOOTTIME */
	struct rules_request request;
};

struct view_charges {
	struct view_charge *list;
	size_t count, room;
	uint64_t lost; /* no room: decisions may herd for a period */
};

void view_charges_fini(struct view_charges *c);
/* Adds one; at VIEW_CHARGES_MAX the oldest goes and `lost` counts. */
void view_charge_add(struct view_charges *c, const struct view_charge *charge);
/* Ends those that the matrix's vectors already count. */
void view_charges_settle(struct view_charges *c, const struct matrix *m, uint64_t now_ns);

/* One vector as a node of the rules. */
void view_node(const struct iocom_vector *v, double age_ms, struct rules_node *out);
/* The parameters of every live decision. */
void view_params(struct rules_params *params);
/*
 * A new view, to be freed: SELF first (home), then the living nodes of M by name,
 * charged; parameters of wall rates.  The job and the seed are the caller's.  0 or
 * -ENOMEM.
 */
int view_build(const struct iocom_vector *self, const struct matrix *m,
	       const struct view_charges *charges, uint64_t now_ns, struct view_file *out);

#endif
