/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A renderer: in each phase (a picture) the master hands out tiles, one to whoever is free, with
 * what is to be seen in it, and gets its pixels back.  Tiles cost from a quarter to seven quarters
 * of the mean.  Rank 0 is the master and renders only if it is alone.
 */
#include <stdlib.h>
#include <string.h>

#include "app.h"

enum tag { TAG_TILE = 10, TAG_PIXELS };

#define TILES_A_MESSAGE 8 /* a picture has so many times --messages */

struct tile {
	uint64_t number; /* 0: this picture has no more for you */
	uint64_t picture, pixels;
};

static uint64_t tiles(const struct app *app)
{
	return (uint64_t)app->messages * TILES_A_MESSAGE;
}

static uint64_t render_tile(struct app *app, const struct tile *tile)
{
	double slaves = app->ranks > 1 ? app->ranks - 1 : 1;
	double uneven = 0.25 + 1.5 * (double)(app_mix(tile->picture, tile->number) % 1024) / 1023;
	uint64_t pixels = app_mix(app->seed, tile->picture);

	for (int i = 0; i < 4096; i++)
		pixels = app_mix(pixels, tile->number + (uint64_t)i);
	app_compute(app, app->compute_ms * slaves / (double)tiles(app) * uneven);
	return pixels;
}

static uint64_t render_alone(struct app *app)
{
	uint64_t sum = 0;

	for (uint64_t picture = 0; picture < (uint64_t)app->phases; picture++) {
		for (uint64_t number = 1; number <= tiles(app); number++) {
			struct tile tile = {.number = number, .picture = picture};

			sum += render_tile(app, &tile);
		}
		app_write(app);
	}
	return sum;
}

static uint64_t key_of(const struct tile *tile)
{
	return app_mix(tile->picture, tile->number);
}

/* Answers each slave's pixels (none at first) with a tile, until all know that there is no more. */
static uint64_t master(struct app *app)
{
	size_t bytes = app_padded(app, sizeof(struct tile));
	char *in = app_zeros(app, 1, bytes);
	char **out = app_zeros(app, (size_t)app->ranks, sizeof(char *));
	MPI_Request *sent = app_zeros(app, (size_t)app->ranks, sizeof(MPI_Request));
	uint64_t sum = 0;

	for (int r = 1; r < app->ranks; r++) {
		out[r] = app_zeros(app, 1, bytes);
		sent[r] = MPI_REQUEST_NULL;
	}
	for (uint64_t picture = 0; picture < (uint64_t)app->phases; picture++) {
		uint64_t next = 1;

		for (int busy = app->ranks - 1; busy;) {
			struct tile tile, got;
			MPI_Request request;
			MPI_Status status;
			int bytes_in;

			MPI_Irecv(in, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_PIXELS,
				  MPI_COMM_WORLD, &request);
			app_wait(app, 1, &request, &status);
			MPI_Get_count(&status, MPI_BYTE, &bytes_in);
			memcpy(&got, in, sizeof(got));
			if ((size_t)bytes_in == bytes && got.number)
				app_check(app, in, sizeof(got), status.MPI_SOURCE, 0, key_of(&got));
			sum += got.pixels;
			tile = (struct tile){.picture = picture};
			if (next <= tiles(app))
				tile.number = next++;
			else
				busy--;
			app_wait(app, 1, &sent[status.MPI_SOURCE], NULL);
			memcpy(out[status.MPI_SOURCE], &tile, sizeof(tile));
			if (tile.number)
				app_fill(app, out[status.MPI_SOURCE], sizeof(tile), 0,
					 status.MPI_SOURCE, key_of(&tile));
			app_send(app, out[status.MPI_SOURCE], tile.number ? bytes : sizeof(tile),
				 status.MPI_SOURCE, TAG_TILE, &sent[status.MPI_SOURCE]);
		}
		app_write(app);
	}
	app_wait(app, app->ranks - 1, sent + 1, NULL);
	for (int r = 1; r < app->ranks; r++)
		free(out[r]);
	free(out);
	free(sent);
	free(in);
	return sum;
}

static void slave(struct app *app)
{
	size_t bytes = app_padded(app, sizeof(struct tile));
	char *in = app_zeros(app, 1, bytes), *out = app_zeros(app, 1, bytes);

	for (long picture = 0; picture < app->phases; picture++) {
		struct tile tile = {0};

		do {
			MPI_Request requests[2];
			double began = MPI_Wtime();

			memcpy(out, &tile, sizeof(tile));
			if (tile.number)
				app_fill(app, out, sizeof(tile), app->rank, 0, key_of(&tile));
			app_send(app, out, tile.number ? bytes : sizeof(tile), 0, TAG_PIXELS,
				 &requests[0]);
			MPI_Irecv(in, (int)bytes, MPI_BYTE, 0, TAG_TILE, MPI_COMM_WORLD,
				  &requests[1]);
			app_wait(app, 2, requests, NULL);
			app->com_ms += (MPI_Wtime() - began) * 1e3;
			memcpy(&tile, in, sizeof(tile));
			if (!tile.number)
				break;
			app_check(app, in, sizeof(tile), 0, app->rank, key_of(&tile));
			tile.pixels = render_tile(app, &tile);
		} while (true);
		app_write(app);
	}
	free(in);
	free(out);
}

static uint64_t render(struct app *app)
{
	uint64_t sum[1] = {0};

	if (app->ranks == 1)
		return render_alone(app);
	if (app->rank == 0)
		sum[0] = master(app);
	else
		slave(app);
	app_sum(app, sum, 1);
	return sum[0];
}

int main(int argc, char **argv)
{
	return app_main(argc, argv, "render",
			"A renderer: rank 0 hands out tiles of uneven cost, 8 times --messages in "
			"a phase,\n"
			"and gets their pixels; a tile and its pixels are --bytes each.",
			render);
}
