/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The streams are reproducible, independent of one another, and have the stated distributions. */
#include "tests/sim/node_driver.h"
#include "sim/random.h"

#define DRAWS 400000

/* These values come from an independent computation and must never change. */
static void stream_is_pinned(void **state)
{
	struct sim_random r = {.key = 1};

	(void)state;
	assert_true(sim_random_next(&r) == 0xf2c6924e7dfed23eu);
	assert_true(sim_random_next(&r) == 0x24ac11cb72fcb4aau);
	assert_int_equal(r.counter, 2);
	r = sim_random_stream(1, 2, 3);
	assert_true(r.key == 0xd0734750fde362b3u && r.counter == 0);
	assert_true(sim_random_next(&r) == 0x3d67684ff40bf846u);
}

static void streams_differ(void **state)
{
	struct sim_random base = sim_random_stream(1, 1, 1), r;
	uint64_t first = sim_random_next(&base);

	(void)state;
	r = sim_random_stream(2, 1, 1);
	assert_true(sim_random_next(&r) != first);
	r = sim_random_stream(1, 2, 1);
	assert_true(sim_random_next(&r) != first);
	r = sim_random_stream(1, 1, 2);
	assert_true(sim_random_next(&r) != first);
	/* Seed, purpose and owner are not exchangeable. */
	assert_true(sim_random_stream(1, 2, 3).key != sim_random_stream(3, 2, 1).key);
	assert_true(sim_random_stream(1, 2, 3).key != sim_random_stream(2, 1, 3).key);
	assert_true(sim_random_stream(1, 2, 3).key != sim_random_stream(1, 3, 2).key);
}

struct moments {
	double mean, variance, least, most;
};

static struct moments measure(double (*draw)(struct sim_random *r))
{
	struct sim_random r = sim_random_stream(5, 6, 7);
	double sum = 0, square = 0;
	struct moments m = {.least = INFINITY, .most = -INFINITY};

	for (int i = 0; i < DRAWS; i++) {
		double x = draw(&r);

		sum += x;
		square += x * x;
		m.least = fmin(m.least, x);
		m.most = fmax(m.most, x);
	}
	m.mean = sum / DRAWS;
	m.variance = square / DRAWS - m.mean * m.mean;
	return m;
}

static double draw_uniform(struct sim_random *r)
{
	return sim_random_uniform(r);
}

static double draw_exponential(struct sim_random *r)
{
	return sim_random_exponential(r, 3);
}

static double draw_gamma(struct sim_random *r)
{
	return sim_random_gamma(r, 250, 50);
}

static double draw_gamma_wide(struct sim_random *r)
{
	return sim_random_gamma(r, 10, 20);
}

static double draw_gamma_constant(struct sim_random *r)
{
	return sim_random_gamma(r, 250, 0);
}

static double draw_pareto(struct sim_random *r)
{
	return sim_random_pareto(r, 4, 3);
}

static double draw_between(struct sim_random *r)
{
	return sim_random_between(r, -1, 3);
}

static double draw_integer(struct sim_random *r)
{
	return (double)sim_random_integer(r, 2, 32);
}

static void distributions_have_their_moments(void **state)
{
	struct moments m = measure(draw_uniform);

	(void)state;
	assert_near(m.mean, 0.5, 0.005);
	assert_near(m.variance, 1.0 / 12, 0.01);
	assert_true(m.least > 0 && m.most < 1);
	m = measure(draw_exponential);
	assert_near(m.mean, 3, 0.01);
	assert_near(m.variance, 9, 0.02);
	assert_true(m.least > 0);
	m = measure(draw_gamma);
	assert_near(m.mean, 250, 0.005);
	assert_near(m.variance, 2500, 0.02);
	m = measure(draw_gamma_wide);
	assert_near(m.mean, 10, 0.01);
	assert_near(m.variance, 400, 0.05);
	m = measure(draw_gamma_constant);
	assert_true(m.least == 250 && m.most == 250);
	m = measure(draw_pareto);
	assert_near(m.mean, 4, 0.01);
	assert_true(m.least >= 4 * 2.0 / 3);
	m = measure(draw_between);
	assert_near(m.mean, 1, 0.02);
	assert_true(m.least >= -1 && m.most <= 3);
	m = measure(draw_integer);
	assert_near(m.mean, 17, 0.01);
	assert_near(m.variance, (31.0 * 31 - 1) / 12, 0.02);
	assert_true(m.least == 2 && m.most == 32);
}

/* Chi squared of the bytes at each of the eight positions: 255 degrees of freedom. */
static void bits_are_even(void **state)
{
	struct sim_random r = sim_random_stream(11, 12, 13);
	unsigned int counts[8][256] = {{0}};
	const int draws = 256 * 1000;

	(void)state;
	for (int i = 0; i < draws; i++) {
		uint64_t x = sim_random_next(&r);

		for (int k = 0; k < 8; k++)
			counts[k][x >> 8 * k & 255]++;
	}
	for (int k = 0; k < 8; k++) {
		double chi = 0;

		for (int v = 0; v < 256; v++)
			chi += (counts[k][v] - 1000.0) * (counts[k][v] - 1000.0) / 1000;
		assert_true(chi > 160 && chi < 370); /* far tails */
	}
}

static double correlation(const double *x, const double *y, int n)
{
	double product = 0;

	for (int i = 0; i < n; i++)
		product += (x[i] - 0.5) * (y[i] - 0.5);
	return product / n * 12;
}

/* Streams of neighbouring owners, and each stream and its own shift, are independent. */
static void neighbours_are_independent(void **state)
{
	enum { N = 100000 };
	double *x = malloc(N * sizeof(*x)), *y = malloc(N * sizeof(*y));

	(void)state;
	assert_true(x && y);
	for (uint64_t owner = 0; owner < 8; owner++) {
		struct sim_random a = sim_random_stream(1, 1, owner);
		struct sim_random b = sim_random_stream(1, 1, owner + 1);

		for (int i = 0; i < N; i++) {
			x[i] = sim_random_uniform(&a);
			y[i] = sim_random_uniform(&b);
		}
		assert_true(fabs(correlation(x, y, N)) < 0.015);
		assert_true(fabs(correlation(x, x + 1, N - 1)) < 0.015);
	}
	/* The first draws of many owners are independent too, because tasks often draw little. */
	for (uint64_t owner = 0; owner < N; owner++) {
		struct sim_random a = sim_random_stream(1, 1, owner);

		x[owner] = sim_random_uniform(&a);
		y[owner] = sim_random_uniform(&a);
	}
	assert_true(fabs(correlation(x, y, N)) < 0.015);
	assert_true(fabs(correlation(x, x + 1, N - 1)) < 0.015);
	free(x);
	free(y);
}

static void whole_range_of_integers(void **state)
{
	struct sim_random r = sim_random_stream(1, 1, 1);
	uint64_t ored = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		ored |= sim_random_integer(&r, 0, UINT64_MAX);
	assert_true(ored == UINT64_MAX);
	for (int i = 0; i < 100; i++)
		assert_int_equal(sim_random_integer(&r, 9, 9), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_is_pinned),
		cmocka_unit_test(streams_differ),
		cmocka_unit_test(distributions_have_their_moments),
		cmocka_unit_test(bits_are_even),
		cmocka_unit_test(neighbours_are_independent),
		cmocka_unit_test(whole_range_of_integers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
