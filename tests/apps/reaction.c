/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A chemical reaction on a grid of 1024 x 64 cells, cut into blocks, one a rank.  In each phase a
 * rank exchanges the borders of its block with the ranks above, below, left and right of it.
 */
#include <stdlib.h>

#include "app.h"

#define ROWS	1024
#define COLUMNS 64

struct block {
	int above, below, left, right; /* ranks, -1: none */
	size_t row, rows, column, columns;
	uint64_t *cells, *next; /* with a border around */
};

static uint64_t *cell(const struct block *b, uint64_t *cells, size_t row, size_t column)
{
	return &cells[row * (b->columns + 2) + column];
}

/* As square as the number of ranks allows, more ranks down than across. */
static void cut(struct app *app, struct block *b)
{
	int across = 1, down, x, y;

	for (int n = 1; n * n <= app->ranks; n++)
		if (app->ranks % n == 0)
			across = n;
	down = app->ranks / across;
	if (down > ROWS || across > COLUMNS)
		app_die(app, "a grid of %d x %d cells is too small for %d ranks", ROWS, COLUMNS,
			app->ranks);
	x = app->rank % across;
	y = app->rank / across;
	b->left = x ? app->rank - 1 : -1;
	b->right = x < across - 1 ? app->rank + 1 : -1;
	b->above = y ? app->rank - across : -1;
	b->below = y < down - 1 ? app->rank + across : -1;
	b->row = (size_t)ROWS * (size_t)y / (size_t)down;
	b->rows = (size_t)ROWS * (size_t)(y + 1) / (size_t)down - b->row;
	b->column = (size_t)COLUMNS * (size_t)x / (size_t)across;
	b->columns = (size_t)COLUMNS * (size_t)(x + 1) / (size_t)across - b->column;
	b->cells = app_zeros(app, (b->rows + 2) * (b->columns + 2), 8);
	b->next = app_zeros(app, (b->rows + 2) * (b->columns + 2), 8);
}

/* Columns are not contiguous, so they are copied: SIDES has four of b->rows. */
static void borders(struct app *app, struct block *b, uint64_t *sides)
{
	uint64_t *left_out = sides, *right_out = sides + b->rows;
	uint64_t *left_in = sides + 2 * b->rows, *right_in = sides + 3 * b->rows;
	size_t row = b->columns * 8, column = b->rows * 8;
	struct app_part out[] = {{b->above, cell(b, b->cells, 1, 1), row},
				 {b->below, cell(b, b->cells, b->rows, 1), row},
				 {b->left, left_out, column},
				 {b->right, right_out, column}};
	struct app_part in[] = {{b->above, cell(b, b->cells, 0, 1), row},
				{b->below, cell(b, b->cells, b->rows + 1, 1), row},
				{b->left, left_in, column},
				{b->right, right_in, column}};

	for (size_t y = 0; y < b->rows; y++) {
		left_out[y] = *cell(b, b->cells, y + 1, 1);
		right_out[y] = *cell(b, b->cells, y + 1, b->columns);
	}
	app_exchange(app, out, 4, in, 4);
	for (size_t y = 0; y < b->rows; y++) {
		if (b->left >= 0)
			*cell(b, b->cells, y + 1, 0) = left_in[y];
		if (b->right >= 0)
			*cell(b, b->cells, y + 1, b->columns + 1) = right_in[y];
	}
}

static void react(struct block *b)
{
	uint64_t *swap = b->cells;

	for (size_t y = 1; y <= b->rows; y++)
		for (size_t x = 1; x <= b->columns; x++)
			*cell(b, b->next, y, x) = app_mix(*cell(b, b->cells, y - 1, x) +
								  3 * *cell(b, b->cells, y + 1, x),
							  5 * *cell(b, b->cells, y, x - 1) +
								  7 * *cell(b, b->cells, y, x + 1) +
								  *cell(b, b->cells, y, x));
	b->cells = b->next;
	b->next = swap;
}

static uint64_t reaction(struct app *app)
{
	struct block b;
	uint64_t *sides, sum[1] = {0};

	cut(app, &b);
	sides = app_zeros(app, 4 * b.rows, 8);
	for (size_t y = 0; y < b.rows; y++)
		for (size_t x = 0; x < b.columns; x++)
			*cell(&b, b.cells, y + 1, x + 1) =
				app_mix(app->seed, (b.row + y) * COLUMNS + b.column + x);
	for (long phase = 0; phase < app->phases; phase++) {
		borders(app, &b, sides);
		app_compute(app, app->compute_ms);
		react(&b);
		app_write(app);
	}
	for (size_t y = 0; y < b.rows; y++)
		for (size_t x = 0; x < b.columns; x++)
			sum[0] += app_mix(*cell(&b, b.cells, y + 1, x + 1),
					  (b.row + y) * COLUMNS + b.column + x);
	app_sum(app, sum, 1);
	free(sides);
	free(b.cells);
	free(b.next);
	return sum[0];
}

int main(int argc, char **argv)
{
	return app_main(
		argc, argv, "reaction",
		"A reaction on a grid: each rank exchanges messages with those above, below, left\n"
		"and right of it in each phase.",
		reaction);
}
