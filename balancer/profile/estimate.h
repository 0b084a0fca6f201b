/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the next run of a class needs of one thing, from what its last runs measured.  Pure.
 *
 * Run i of n, the newest first, has the weight w_i = ESTIMATE_DECAY^i.  The mean and the spread are
 *
 *   m = sum w_i y_i / W,  W = sum w_i,  k = W^2 / sum w_i^2 (the runs that count, as equal ones)
 *   s^2 = sum w_i (y_i - m)^2 / W * k / (k - 1)
 *
 * The size of the input explains the need if at least ESTIMATE_LEAST runs had sizes that differ:
 * the line y = a + b x by least squares is used in place of the mean if its b is above 0 and the
 * sum of the squares of its errors, each at a run that was left out of the line,
 *
 *   e_i = (y_i - a - b x_i) / (1 - h_i),  h_i = 1/n + (x_i - mean x)^2 / sum (x_j - mean x)^2
 *
 * is less than ESTIMATE_CLEAR of that of the mean (n / (n - 1) (y_i - mean y)).  The spread is then
 * the root of the mean of the e_i^2.  A line tells no more than ESTIMATE_BEYOND times the largest
 * need or size seen, and nothing below 0.
 *
 * The confidence, 0 to 1, is 1 / (1 + 2 r).  r is the error to expect of the value as a part of it,
 * v / sqrt(k); the variation v is what was seen, and counts as two more runs that vary by half:
 *
 *   v^2 = ((n - 1) (s / m)^2 + 2 * 0.5^2) / (n + 1)
 */
#ifndef IOCOM_ESTIMATE_H
#define IOCOM_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#define ESTIMATE_DECAY	0.7
#define ESTIMATE_LEAST	3
#define ESTIMATE_CLEAR	0.5
#define ESTIMATE_BEYOND 100.0

struct estimate {
	double value, spread;
	double confidence; /* 0: no run */
	unsigned runs;	   /* that it is made from */
	bool line;	   /* by the size of the input: base + per_mb * size */
	double base, per_mb;
};

/*
 * Estimates from the N needs at NEED, the newest first.  SIZE_MB has the sizes of their inputs, and
 * WANTED_MB is that of the next run; below 0: unknown.
 */
void estimate_make(const double *need, const double *size_mb, size_t n, double wanted_mb,
		   struct estimate *out);
/* "low", "fair" or "high"; "none" for 0. */
const char *estimate_confidence_word(double confidence);

#endif
