/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Claims about a probe's executions (probe/probe.h), judged seed by seed over the rows of `a` (and
 * `b`) at the first point; x, y, y2 are columns.  A "third" is a third of a seed's executions,
 * ordered by x.
 */
#ifndef SIM_EXPERIMENTS_PROBE_CLAIMS_H
#define SIM_EXPERIMENTS_PROBE_CLAIMS_H

#include "sim/experiments/code_claims.h"

/* The correlation of y with x has the sign of `printed`, is significant and at least as strong. */
claim_code claim_correlates;
/* The correlation of y with x is within 25 % of `printed`. */
claim_code claim_correlation;
/* The correlation of y with x is weaker than `printed`, whatever its sign. */
claim_code claim_uncorrelated;
/* The correlation of y with x is significantly greater for `a` than for `b`. */
claim_code claim_correlates_more;
/* The standard deviation of y is significantly greater in the last third than in the first. */
claim_code claim_spread_grows;
/* The mean of y grows from the first to the last third significantly more for `a` than for `b`. */
claim_code claim_grows_more;
/* y is below y2 in the first third and above it in the last, both significantly. */
claim_code claim_crossing;
/* One of the five groups by x, but not the last one, is significantly highest in y. */
claim_code claim_falls_again;
/* x is below 1 in a share of at least `printed` of the executions, significantly. */
claim_code claim_mostly_zero;
/* Where x is below 1, the standard deviation of y is significantly greater than elsewhere. */
claim_code claim_spread_at_zero;
/* Where x is below 1, the least y is at most the median of y elsewhere. */
claim_code claim_excellent_at_zero;
/* Where x is above `printed` (below, if `down`), y is mostly below y2, significantly. */
claim_code claim_mostly_below;
/* The standard deviation of y is significantly below that of y2. */
claim_code claim_less_spread;
/* The standard deviation of y is at most `printed` times its mean. */
claim_code claim_nearly_constant;
/*
 * In the last third, y2 is below y where the remote load average is in its lower half,
 * and by more than in its upper half; both significantly.
 */
claim_code claim_gain_at_idle_target;
/*
 * x is the local load, y the remote load.  Inside the best rectangle {x above, y below}
 * the remote site is mostly faster, elsewhere the local site; both significantly.
 */
claim_code claim_rectangle;
/* The greatest y in the first third is at least `printed` times the greatest y. */
claim_code claim_full_at_few;
/* At each point the best series in `measure` is between `printed` and `band`. */
claim_code claim_best_within;

#endif
