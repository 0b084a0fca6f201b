/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Exact sums over all nodes of a view: each term is put on a grid of 2^-64 and the sum is a
 * 128-bit integer, so that removing a term restores the earlier sum bit for bit, and the order
 * of changes does not matter.  A change is O(1); 2^31 terms of 2^32 fit.
 */
#include "balancer/rules/rules_private.h"

#define MOST 0x1p32
#define GRID 0x1p64

static struct rules_exact exact(double term)
{
	struct rules_exact e;

	term = term < MOST ? term : MOST;
	e.whole = (uint64_t)term;
	/* cppcheck-suppress floatConversionOverflow ; a fraction is below 1 */
	e.part = (uint64_t)((term - (double)e.whole) * GRID);
	return e;
}

void rules_exact_add(struct rules_exact *sum, double term)
{
	struct rules_exact e = exact(term);

	sum->whole += e.whole + __builtin_add_overflow(sum->part, e.part, &sum->part);
}

void rules_exact_subtract(struct rules_exact *sum, double term)
{
	struct rules_exact e = exact(term);

	sum->whole -= e.whole + __builtin_sub_overflow(sum->part, e.part, &sum->part);
}

double rules_exact_value(const struct rules_exact *sum)
{
	return (double)sum->whole + (double)sum->part / GRID;
}

static void totals_count(struct rules_totals *t, const struct rules_cell *c, uint32_t one)
{
	bool disk = c->disk_mb_per_s > 0, idle = c->cpu <= RULES_IDLE_TASKS;

	if (!c->accepts)
		return;
	t->accepting += one;
	t->accepting_disks += disk ? one : 0;
	t->idle += idle ? one : 0;
	t->idle_disks += idle && disk ? one : 0;
}

void rules_totals_add(struct rules_totals *t, const struct rules_cell *c)
{
	rules_exact_add(&t->io, c->io);
	rules_exact_add(&t->memory, c->memory);
	rules_exact_add(&t->cpu, c->cpu);
	rules_exact_add(&t->performance, c->performance);
	totals_count(t, c, 1);
}

void rules_totals_subtract(struct rules_totals *t, const struct rules_cell *c)
{
	rules_exact_subtract(&t->io, c->io);
	rules_exact_subtract(&t->memory, c->memory);
	rules_exact_subtract(&t->cpu, c->cpu);
	rules_exact_subtract(&t->performance, c->performance);
	totals_count(t, c, UINT32_MAX); /* minus one */
}
