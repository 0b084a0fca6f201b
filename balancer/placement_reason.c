/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See placement_reason.h. */
#include "balancer/placement_reason.h"

#include <math.h>
#include <string.h>

#include "balancer/listing.h"

const char *placement_reason_chosen(const struct placement *p)
{
	return *p->node ? p->node : p->plan.node;
}

bool placement_reason_no_room(const struct placement *p)
{
	bool memory = false;

	/* The reasons do not show it for each node: those that cannot win are not all judged. */
	for (size_t i = 0; i < p->plan.nreasons; i++)
		memory |= !strncmp(p->plan.reasons[i].criterion, "mem-", 4);
	return memory && placement_wanted_mb(p) > 0 && !placement_room_elsewhere(p);
}

/* --- which one decided ---------------------------------------------------------------- */

/* Tests of whether a node may take the job at all; the others compare loads. */
static bool reason_is_of_room(const struct plan_reason *r)
{
	static const char *const names[] = {"accepts", "has-disk", "mem-fits", "remote-memory"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(r->criterion, names[i]))
			return true;
	return false;
}

/* How near a test that failed was to holding: 1 is on the edge, 0 far from it. */
static double reason_nearness(const struct plan_reason *r)
{
	double small = *r->relation == '>' ? r->left : r->right;
	double large = *r->relation == '>' ? r->right : r->left;

	if (!(large > 0) || !isfinite(large) || !isfinite(small))
		return 0;
	return small / large;
}

/* The nearest of the failed tests of HOME, or of the others; of room, or of loads. */
static const struct plan_reason *reason_nearest(const struct placement *p, bool home, bool room)
{
	const struct plan_reason *best = NULL;

	for (size_t i = 0; i < p->plan.nreasons; i++) {
		const struct plan_reason *r = &p->plan.reasons[i];

		if (r->holds || !*r->relation || !strcmp(r->node, p->home) != home ||
		    reason_is_of_room(r) != room)
			continue;
		if (!best || reason_nearness(r) > reason_nearness(best))
			best = r;
	}
	return best;
}

/* The last test that NODE passed. */
static const struct plan_reason *reason_passed(const struct placement *p, const char *node)
{
	for (size_t i = p->plan.nreasons; i-- > 0;) {
		const struct plan_reason *r = &p->plan.reasons[i];

		if (!strcmp(r->node, node) && *r->relation && r->holds)
			return r;
	}
	return NULL;
}

const struct plan_reason *placement_reason_deciding(const struct placement *p)
{
	const char *chosen = placement_reason_chosen(p);
	const struct plan_reason *r;

	if (p->forced || p->ask.picked || p->plan.queued || !strcmp(p->policy, "nlb"))
		return NULL;
	if (strcmp(chosen, p->home) != 0) {
		r = reason_passed(p, chosen);
		return r ? r : reason_passed(p, p->home);
	}
	if (strcmp(p->plan.node, p->home) != 0)
		return NULL; /* the nodes that the policy chose refused: no test decided */
	if (placement_reason_no_room(p))
		return reason_nearest(p, false, true);
	r = reason_nearest(p, false, false);
	if (!r)
		r = reason_nearest(p, true, false);
	return r ? r : reason_nearest(p, false, true);
}

/* --- in numbers ------------------------------------------------------------------------- */

static const struct {
	const char *from, *to;
	double factor, least; /* for sides of LEAST or more */
} reason_units[] = {
	{"ms", "s", 1e-3, 1000},
	{"requests/ms", "requests/s", 1e3, 0},
	{"disk utilisation", "% of the disk", 100, 0},
};

void placement_reason_sides(const struct plan_reason *r, struct placement_sides *sides)
{
	double left = r->left, right = r->right, most = fmax(fabs(left), fabs(right));

	sides->unit = r->unit;
	for (size_t i = 0; i < sizeof(reason_units) / sizeof(*reason_units); i++) {
		if (strcmp(r->unit, reason_units[i].from) != 0 || most < reason_units[i].least)
			continue;
		sides->unit = reason_units[i].to;
		left *= reason_units[i].factor;
		right *= reason_units[i].factor;
		break;
	}
	listing_quantity(sides->left, sizeof(sides->left), left);
	listing_quantity(sides->right, sizeof(sides->right), right);
	if (left != right && !strcmp(sides->left, sides->right)) {
		snprintf(sides->left, sizeof(sides->left), "%.8g", left);
		snprintf(sides->right, sizeof(sides->right), "%.8g", right);
	}
}

void placement_reason_numbers(const struct plan_reason *r, FILE *out)
{
	struct placement_sides sides;

	placement_reason_sides(r, &sides);
	fprintf(out, "%s %s %s%s%s", sides.left, r->relation, sides.right, *sides.unit ? " " : "",
		sides.unit);
}
