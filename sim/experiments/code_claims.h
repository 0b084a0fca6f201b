/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Claims that need a judgement of their own; what each reads of struct claim is said here. */
#ifndef SIM_EXPERIMENTS_CODE_CLAIMS_H
#define SIM_EXPERIMENTS_CODE_CLAIMS_H

#include "sim/experiments/experiment.h"

typedef void claim_code(const struct claim_context *context, const struct claim *claim,
			struct judgement *out);

/* Correlation of `measure` with x over `at` is at least `printed` for every series. */
claim_code claim_linear;
/* Mean slope from the point `at` on is below `printed` times that before it. */
claim_code claim_slower_after;
/* b / (b-fc) > a / b at the points together: feedback ("B-fc") beats balancing. */
claim_code claim_feedback_more;
/* Mean of `measure` over the points is significantly below `printed`. */
claim_code claim_less_than;
/* Growth of each of `a` from first to last point is below the factor `printed`. */
claim_code claim_hardly_grows;
/* nlb / a here exceeds nlb / b in each other experiment "ID/b". */
claim_code claim_more_over_nlb;
/* `a` at `at` is at most `printed` times the least of all `b` at all points. */
claim_code claim_near_best;
/* Gain of the least of all `b` at all points over `a` at `at` is at least `printed`. */
claim_code claim_best_gain;
/* The means of all `a` agree within the relative width `printed`. */
claim_code claim_agree;
/* The least reduction of `a` against `b` (each point, each b) is within 25 % of `printed`. */
claim_code claim_least_reduction;
/* Each series of `a` lies above the series of `b` at the same place in its list. */
claim_code claim_each_above;
/* No `a` is significantly above a `b` over the points together. */
claim_code claim_not_above;
/* The value at the point `at` is at least `printed` times that at every other point. */
claim_code claim_point_largest;
/* `a` exceeds each of `b` at `at`, by a factor of at most `printed`. */
claim_code claim_slightly_worse;
/* Over pairs of `a` and `b` at the same place: the least (most) gain of a over b, within 25 %. */
claim_code claim_least_pair_gain;
claim_code claim_most_pair_gain;
/* The mean gain of `a` over all `b` exceeds that in the experiment named as this one but
 * ending in "a" (COM-6a for COM-6c). */
claim_code claim_more_than_a;
/* The gain of `a` over each of `b` is less at the last point than at the first. */
claim_code claim_advantage_falls;
/* Largest over smallest mean of `a` along the points is at most `printed`. */
claim_code claim_flat;
/* At least `printed` claims of the paper `a` turn from the first reading to that named `at`. */
claim_code claim_reading;

#endif
