/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Claims about a probe's executions (probe/probe.h), judged seed by seed over the rows
 * of `a` (and `b`) at the first point; x, y, y2 are columns.  "Third": of a seed's
 * executions, ordered by x.
 */
#ifndef SIM_EXPERIMENTS_PROBE_CLAIMS_H
#define SIM_EXPERIMENTS_PROBE_CLAIMS_H

#include "sim/experiments/code_claims.h"

/* Correlation of y with x: of the sign of `printed`, significant, at least so strong. */
claim_code claim_correlates;
/* ... within 25 % of `printed`. */
claim_code claim_correlation;
/* ... weaker than `printed`, whatever its sign. */
claim_code claim_uncorrelated;
/* ... significantly greater of `a` than of `b`. */
claim_code claim_correlates_more;
/* Standard deviation of y in the last third over that in the first: significantly above 1. */
claim_code claim_spread_grows;
/* Mean of y in the last third over that in the first: significantly more of `a` than `b`. */
claim_code claim_grows_more;
/* y is below y2 in the first third and above it in the last, both significantly. */
claim_code claim_crossing;
/* Of five groups by x the last is not the highest in y, significantly. */
claim_code claim_falls_again;
/* x is below 1 in a share of at least `printed` of the executions, significantly. */
claim_code claim_mostly_zero;
/* Where x is below 1: the standard deviation of y is greater than elsewhere, significantly. */
claim_code claim_spread_at_zero;
/* Where x is below 1: the least y is at most the median of y elsewhere. */
claim_code claim_excellent_at_zero;
/* Where x is above `printed` (below, if `down`): y is mostly below y2, significantly. */
claim_code claim_mostly_below;
/* Standard deviation of y below that of y2, significantly. */
claim_code claim_less_spread;
/* Standard deviation of y is at most `printed` of its mean. */
claim_code claim_nearly_constant;
/* In the last third: y2 is below y where the remote load average is in its lower half, and by
 * more than in its upper half; both significantly. */
claim_code claim_gain_at_idle_target;
/* x local, y remote load: inside the best rectangle {x above, y below} the remote site is
 * mostly the faster one, elsewhere the local, both significantly. */
claim_code claim_rectangle;
/* The greatest y where x is in its first third is at least `printed` of the greatest y. */
claim_code claim_full_at_few;
/* At each point the best series of `measure` lies within `printed` .. `band`. */
claim_code claim_best_within;

#endif
