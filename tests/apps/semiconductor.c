/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A semiconductor device by Monte Carlo: each rank moves its own particles through a field, for
 * itself.  Only in each fourth phase all charges are added up to the new field, and a rank passes
 * its particles on to another, which has them checked and keeps its own: rare but big messages.
 */
#include <stdlib.h>

#include "app.h"

#define PARTICLES 4096
#define BINS	  64
#define EVERY	  4

static uint64_t charge(struct app *app, const uint64_t *particles, size_t first, size_t count,
		       uint64_t field[BINS])
{
	for (int b = 0; b < BINS; b++)
		field[b] = 0;
	for (size_t i = 0; i < count; i++)
		field[particles[i] % BINS] += app_mix(particles[i], first + i);
	app_sum(app, field, BINS);
	return field[0] + field[BINS / 2];
}

/* To the rank that is DISTANCE further on, from the one that is so far back. */
static void pass_on(struct app *app, uint64_t *particles, size_t count, int distance)
{
	int to = (app->rank + distance) % app->ranks;
	int from = (app->rank + app->ranks - distance) % app->ranks;
	size_t theirs = app_first(app, PARTICLES, from + 1) - app_first(app, PARTICLES, from);
	uint64_t *others = app_zeros(app, theirs, 8);
	struct app_part out = {to, particles, count * 8}, in = {from, others, theirs * 8};

	app_exchange(app, &out, 1, &in, 1);
	free(others);
}

static uint64_t semiconductor(struct app *app)
{
	size_t first = app_first(app, PARTICLES, app->rank);
	size_t count = app_first(app, PARTICLES, app->rank + 1) - first;
	uint64_t *particles, field[BINS] = {0}, result = 0;

	if (!count)
		app_die(app, "there are %d particles for %d ranks", PARTICLES, app->ranks);
	particles = app_zeros(app, count, 8);
	for (size_t i = 0; i < count; i++)
		particles[i] = app_mix(app->seed, first + i);
	for (long phase = 0; phase < app->phases; phase++) {
		for (size_t i = 0; i < count; i++)
			particles[i] = app_mix(particles[i], field[particles[i] % BINS]);
		app_compute(app, app->compute_ms);
		if (phase % EVERY == EVERY - 1 || phase == app->phases - 1) {
			if (app->ranks > 1)
				pass_on(app, particles, count,
					1 + (int)(phase / EVERY % (app->ranks - 1)));
			result = app_mix(result, charge(app, particles, first, count, field));
		}
		app_write(app);
	}
	free(particles);
	return result;
}

int main(int argc, char **argv)
{
	return app_main(
		argc, argv, "semiconductor",
		"A semiconductor by Monte Carlo: ranks compute for themselves; in each fourth\n"
		"phase, and the last, each sends messages to one other, and all add up a field.",
		semiconductor);
}
