/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Vortices in a fluid of two dimensions: each moves by what all others do to it, so that in each
 * phase every rank sends its vortices to all others.
 */
#include <stdlib.h>

#include "app.h"

#define VORTICES 1024

static void everybodys(struct app *app, uint64_t *vortices, struct app_part *out,
		       struct app_part *in)
{
	int n = 0;

	/* Each begins at another rank, so that they do not all send to the same one. */
	for (int i = 1; i < app->ranks; i++) {
		int to = (app->rank + i) % app->ranks;
		size_t mine = app_first(app, VORTICES, app->rank);
		size_t theirs = app_first(app, VORTICES, to);

		out[n] = (struct app_part){to, &vortices[mine],
					   8 * (app_first(app, VORTICES, app->rank + 1) - mine)};
		in[n++] = (struct app_part){to, &vortices[theirs],
					    8 * (app_first(app, VORTICES, to + 1) - theirs)};
	}
	app_exchange(app, out, n, in, n);
}

/* Shears in place of the law of Biot and Savart, which is not exact in integers. */
static uint64_t pull(uint64_t a, uint64_t b)
{
	uint64_t d = a - b;

	return (d ^ (d >> 29)) * 0x9e3779b97f4a7c15;
}

static uint64_t vortex(struct app *app)
{
	size_t first = app_first(app, VORTICES, app->rank);
	size_t end = app_first(app, VORTICES, app->rank + 1);
	uint64_t *vortices, *next, sum[1] = {0};
	struct app_part *out, *in;

	if (first == end)
		app_die(app, "there are %d vortices for %d ranks", VORTICES, app->ranks);
	vortices = app_zeros(app, VORTICES, 8);
	next = app_zeros(app, VORTICES, 8);
	out = app_zeros(app, (size_t)app->ranks, sizeof(*out));
	in = app_zeros(app, (size_t)app->ranks, sizeof(*in));
	for (size_t i = first; i < end; i++)
		vortices[i] = app_mix(app->seed, i);
	for (long phase = 0; phase < app->phases; phase++) {
		everybodys(app, vortices, out, in);
		app_compute(app, app->compute_ms);
		for (size_t i = first; i < end; i++) {
			next[i] = vortices[i];
			for (size_t j = 0; j < VORTICES; j++)
				next[i] += pull(vortices[i], vortices[j]);
		}
		for (size_t i = first; i < end; i++)
			vortices[i] = next[i];
		app_write(app);
	}
	for (size_t i = first; i < end; i++)
		sum[0] += app_mix(vortices[i], i);
	app_sum(app, sum, 1);
	free(vortices);
	free(next);
	free(out);
	free(in);
	return sum[0];
}

int main(int argc, char **argv)
{
	return app_main(
		argc, argv, "vortex",
		"Vortices in a fluid: in each phase every rank sends messages to all others.",
		vortex);
}
