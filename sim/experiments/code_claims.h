/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims with a judgement of their own.  Each comment says how it uses struct claim. */
#ifndef SIM_EXPERIMENTS_CODE_CLAIMS_H
#define SIM_EXPERIMENTS_CODE_CLAIMS_H

#include "sim/experiments/experiment.h"

typedef void claim_code(const struct claim_context *context, const struct claim *claim,
			struct judgement *out);

/* The correlation of `measure` with x over `at` is at least `printed` for every series. */
claim_code claim_linear;
/* From the point `at` on the mean slope is below `printed` times the slope before it. */
claim_code claim_slower_after;
/* b / (b-fc) > a / b over all points together: feedback ("B-fc") gains more than balancing. */
claim_code claim_feedback_more;
/* `measure` is below `printed` at each point. */
claim_code claim_less_than;
/* Each of `a` grows from the first to the last point by less than the factor `printed`. */
claim_code claim_hardly_grows;
/* nlb / a here is greater than nlb / b in each other experiment "ID/b". */
claim_code claim_more_over_nlb;
/* `a` at `at` is at most `printed` times the least value of all `b` at all points. */
claim_code claim_near_best;
/* The least value of all `b` at all points gains at least `printed` over `a` at `at`. */
claim_code claim_best_gain;
/* All `a` agree within the relative width `printed` at `at`. */
claim_code claim_agree;
/* The least reduction of `a` against `b` (over points and all `b`) is `printed` or more. */
claim_code claim_least_reduction;
/* Each series of `a` is above the series of `b` at the same place in its list. */
claim_code claim_each_above;
/* No `a` is above a `b` by more than 2 % over the points together. */
claim_code claim_not_above;
/* The value at the point `at` is at least `printed` times the value at every other point. */
claim_code claim_point_largest;
/* `a` is greater than each of `b` at `at`, by a factor of at most `printed`. */
claim_code claim_slightly_worse;
/* Over pairs of `a` and `b` at the same place in their lists: the least gain of a over b is
 * `printed` or more; the largest is within 25 % of it. */
claim_code claim_least_pair_gain;
claim_code claim_most_pair_gain;
/* The mean gain of `a` over all `b` is greater than in the experiment with the same name
 * but ending in "a" (COM-6a for COM-6c). */
claim_code claim_more_than_a;
/* The gain of `a` over each of `b` is smaller at the last point than at the first. */
claim_code claim_advantage_falls;
/* No point of `a` differs from another by more than the factor `printed`. */
claim_code claim_flat;
/* At least `printed` claims of paper `a` change between the first reading and the one
 * named `at`. */
claim_code claim_reading;

#endif
