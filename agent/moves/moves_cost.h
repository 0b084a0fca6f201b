/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What moves cost, as the moves from here to a node have shown: the frozen time c = f + m/b of
 * MODEL 2.4, by the least squares of what is known, in which five further moves halve the weight of
 * each.  Before the first move two assumed ones count, and ever less later.
 */
#ifndef IOCOM_MOVES_COST_H
#define IOCOM_MOVES_COST_H

#include <stdint.h>

/* Weighted sums over moves, of x = MB and y = ms. */
struct moves_cost {
	double n, x, y, xx, xy;
};

/* Assumes F_MS and MB_PER_S. */
void moves_cost_begin(struct moves_cost *cost, double f_ms, double mb_per_s);
/* A move of MB took MS. */
void moves_cost_learn(struct moves_cost *cost, double mb, double ms);
/* Says what the next one takes: F_MS >= 0, MB_PER_S > 0. */
void moves_cost_tell(const struct moves_cost *cost, double *f_ms, double *mb_per_s);

#endif
