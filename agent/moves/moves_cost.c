/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See moves_cost.h. */
#include "agent/moves/moves_cost.h"

#include <math.h>

#define COST_KEPT     0.87 /* of the weight of earlier moves: a half after five more */
#define COST_ASSUMED  0.5  /* the weight of each of the two assumed moves */
#define COST_FAR_MB   100  /* the size of the second one */
#define COST_SLOPE_MS 1e-3 /* the least time for a MB: nothing moves faster than 1 TB/s */

static void cost_add(struct moves_cost *c, double weight, double mb, double ms)
{
	c->n += weight;
	c->x += weight * mb;
	c->y += weight * ms;
	c->xx += weight * mb * mb;
	c->xy += weight * mb * ms;
}

void moves_cost_begin(struct moves_cost *c, double f_ms, double mb_per_s)
{
	*c = (struct moves_cost){0};
	cost_add(c, COST_ASSUMED, 0, f_ms);
	cost_add(c, COST_ASSUMED, COST_FAR_MB, f_ms + 1e3 * COST_FAR_MB / mb_per_s);
}

void moves_cost_learn(struct moves_cost *c, double mb, double ms)
{
	c->n *= COST_KEPT;
	c->x *= COST_KEPT;
	c->y *= COST_KEPT;
	c->xx *= COST_KEPT;
	c->xy *= COST_KEPT;
	cost_add(c, 1, mb, ms);
}

void moves_cost_tell(const struct moves_cost *c, double *f_ms, double *mb_per_s)
{
	double spread = c->n * c->xx - c->x * c->x;
	double slope = spread > 0 ? (c->n * c->xy - c->x * c->y) / spread : 0;

	slope = fmax(slope, COST_SLOPE_MS);
	*f_ms = fmax((c->y - slope * c->x) / c->n, 0);
	*mb_per_s = 1e3 / slope;
}
