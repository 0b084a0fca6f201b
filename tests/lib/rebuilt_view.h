/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the kept view (cluster_view.h) is compared with, for its plans and for its cost: a
 * copy of the cluster, made and indexed for each decision.  Home first, then the living
 * nodes of the matrix by name, each with its charges.
 */
#ifndef IOCOM_TESTS_REBUILT_VIEW_H
#define IOCOM_TESTS_REBUILT_VIEW_H

#include "agent/cluster/cluster_view.h"

struct view_charges {
	struct view_charge *list;
	size_t count, room;
	uint64_t lost; /* charges without room; decisions may herd for a period */
};

void view_charges_fini(struct view_charges *c);
/* Adds a charge; at VIEW_CHARGES_MAX the oldest is removed and `lost` counts it. */
void view_charge_add(struct view_charges *c, const struct view_charge *charge);
/* Ends the charges that the matrix's vectors already count. */
void view_charges_settle(struct view_charges *c, const struct matrix *m, uint64_t now_ns);

/*
 * A new view, to be freed: SELF first (home), then the living nodes of M by name, charged;
 * parameters of wall rates.  The job and the seed are the caller's.  Returns 0 or -ENOMEM.
 */
int view_build(const struct iocom_vector *self, const struct matrix *m,
	       const struct view_charges *charges, uint64_t now_ns, struct view_file *out);

#endif
