/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Molecular dynamics: molecules in a ring of cells, a block of it at each rank.  In each step a
 * rank exchanges its border with both neighbours; then all ranks add up the energy, on which the
 * next step depends.
 */
#include <stdlib.h>

#include "app.h"

#define CELLS 4096

static uint64_t molecular(struct app *app)
{
	size_t first = app_first(app, CELLS, app->rank);
	size_t count = app_first(app, CELLS, app->rank + 1) - first;
	/* With room for a neighbour's cell at either end. */
	uint64_t *cells, *next, energy[1] = {0};
	int left = (app->rank + app->ranks - 1) % app->ranks;
	int right = (app->rank + 1) % app->ranks;

	if (!count)
		app_die(app, "there are %d cells for %d ranks", CELLS, app->ranks);
	cells = app_zeros(app, count + 2, 8);
	next = app_zeros(app, count + 2, 8);
	for (size_t i = 1; i <= count; i++)
		cells[i] = app_mix(app->seed, first + i - 1);
	for (long step = 0; step < app->phases; step++) {
		/* With two ranks both neighbours are the same one: the order tells its two apart.
		 */
		struct app_part out[] = {{left, &cells[1], 8}, {right, &cells[count], 8}};
		struct app_part in[] = {{right, &cells[count + 1], 8}, {left, &cells[0], 8}};
		uint64_t *swap = cells;

		if (app->ranks == 1) {
			cells[0] = cells[count];
			cells[count + 1] = cells[1];
		}
		app_exchange(app, out, 2, in, 2);
		app_compute(app, app->compute_ms);
		energy[0] = app_mix(energy[0], (uint64_t)step);
		for (size_t i = 1; i <= count; i++)
			next[i] = app_mix(cells[i - 1] + cells[i + 1], cells[i] ^ energy[0]);
		energy[0] = 0;
		for (size_t i = 1; i <= count; i++)
			energy[0] += app_mix(next[i], first + i);
		app_sum(app, energy, 1);
		cells = next;
		next = swap;
		app_write(app);
	}
	free(cells);
	free(next);
	return energy[0];
}

int main(int argc, char **argv)
{
	return app_main(
		argc, argv, "molecular",
		"Molecular dynamics: each rank exchanges messages with its two neighbours in a\n"
		"ring, then all add up one number, in each phase.",
		molecular);
}
