/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Generators: moments, shares, independence of the jobs, presets, applications. */
#include "tests/sim/workload_fixture.h"

#include "sim/workload/applications.h"
#include "sim/workload/homes.h"
#include "sim/workload/lifetime.h"
#include "sim/workload/presets.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct workload *must_generate(const struct generator_params *p)
{
	struct iocom_err err = {0};
	struct workload *w = generator_new(p, &err);

	if (!w)
		fail_msg("%s", err.text);
	return w;
}

static struct generator_params preset(const char *name)
{
	struct generator_params p;
	struct preset_args args;
	struct iocom_err err = {0};

	preset_args_default(&args);
	if (preset_fill(&p, name, &args, &err))
		fail_msg("%s", err.text);
	return p;
}

struct moments {
	double n, sum, sum2;
};

static void add(struct moments *m, double x)
{
	m->n++;
	m->sum += x;
	m->sum2 += x * x;
}

static double mean(const struct moments *m)
{
	return m->sum / m->n;
}

static double cv(const struct moments *m)
{
	return sqrt(m->sum2 / m->n - mean(m) * mean(m)) / mean(m);
}

static void test_arrivals(void **state)
{
	struct generator_params p;
	struct moments gap = {0, 0, 0};
	double last = 0, first = 0;
	struct workload *w;

	(void)state;
	generator_params_default(&p);
	p.jobs = 40000;
	p.interarrival_ms = 250;
	w = must_generate(&p);
	for (uint64_t i = 0; i < p.jobs; i++) {
		struct sim_job j = must_next(w);

		assert_true(j.arrival_ms > last || !i);
		first = i ? first : j.arrival_ms;
		add(&gap, j.arrival_ms - last);
		last = j.arrival_ms;
	}
	must_end(w);
	assert_true(first > 0);
	NEAR(mean(&gap), 250, 5);
	NEAR(cv(&gap), 1, 0.03); /* Poisson */
	workload_free(w);
	p.arrivals_regular = true;
	p.jobs = 3;
	w = must_generate(&p);
	must_next(w);
	must_next(w);
	NEAR(must_next(w).arrival_ms, 750, 1e-9);
	workload_free(w);
}

/*
 * Job k depends only on the seed and on k: other numbers of jobs or other rates do not
 * change it.
 */
static void test_only_seed_and_number(void **state)
{
	struct generator_params p = preset("acm-30"), q;
	struct workload *a, *b, *c;
	bool differs = false;

	(void)state;
	p.jobs = 1000;
	q = p;
	q.jobs = 500;
	q.kind[0].io_per_ms *= 3; /* this changes only the rates */
	q.interarrival_ms *= 2;
	a = must_generate(&p);
	b = must_generate(&q);
	q.seed = 99;
	c = must_generate(&q);
	for (int i = 0; i < 500; i++) {
		struct sim_job x = must_next(a), y = must_next(b), z = must_next(c);

		assert_int_equal(x.home, y.home);
		assert_int_equal(x.kind, y.kind);
		assert_int_equal(x.tasks, y.tasks);
		NEAR(x.cpu_ms, y.cpu_ms, 0);
		NEAR(x.memory_mb, y.memory_mb, 0);
		NEAR(y.arrival_ms / x.arrival_ms, 2, 1e-9);
		NEAR(x.io_per_ms * 3, y.io_per_ms, 1e-9);
		differs |= x.cpu_ms != z.cpu_ms && x.memory_mb != z.memory_mb;
	}
	must_end(b);
	assert_true(differs);
	assert_string_not_equal(workload_info(a)->hash, workload_info(b)->hash);
	assert_string_not_equal(workload_info(b)->hash, workload_info(c)->hash);
	workload_free(a);
	workload_free(b);
	workload_free(c);
}

static void test_mixture(void **state)
{
	struct generator_params p = preset("acm-30");
	struct moments io = {0, 0, 0}, cpu[3] = {io, io, io}, tasks = io;
	uint32_t least = 99, most = 0;
	double parallel = 0;
	struct workload *w;
	const double n = 40000;

	(void)state;
	p.jobs = (uint64_t)n;
	p.lifetime = LIFETIME_EXPONENTIAL;
	w = must_generate(&p);
	assert_int_equal(workload_info(w)->kinds, 3);
	assert_string_equal(workload_info(w)->kind[2], "memory");
	for (uint64_t i = 0; i < p.jobs; i++) {
		struct sim_job j = must_next(w);

		add(&cpu[j.kind], j.cpu_ms);
		if (j.kind == 0) {
			add(&io, j.io_per_ms);
			assert_true(j.io_per_ms > 0 && j.io_per_ms < 1.2);
		} else {
			NEAR(j.io_per_ms, 0, 0);
		}
		NEAR(j.faults_per_ms, j.kind == 2 ? 8 : 0.5, 0);
		if (j.tasks > 1) {
			parallel++;
			add(&tasks, j.tasks);
			least = j.tasks < least ? j.tasks : least;
			most = j.tasks > most ? j.tasks : most;
			NEAR(j.barrier_ms, 100, 0);
		} else {
			NEAR(j.barrier_ms, 0, 0);
		}
	}
	NEAR(cpu[0].n / n, 0.9, 0.01);
	NEAR(cpu[1].n / n, 0.05, 0.005);
	NEAR(mean(&io), 0.6, 0.01);
	NEAR(cv(&io), 1 / sqrt(3), 0.01); /* a uniform distribution from 0 */
	NEAR(mean(&cpu[0]), 400, 10);
	NEAR(mean(&cpu[1]), 4000, 300);
	NEAR(parallel / n, 0.3, 0.01);
	assert_int_equal(least, 2);
	assert_int_equal(most, 32);
	NEAR(mean(&tasks), 17, 0.3);
	workload_free(w);
}

static void check_lifetime(enum generator_lifetime kind, double shape, double max, double want_cv,
			   double margin)
{
	struct iocom_err err = {0};
	struct lifetime l;
	struct moments m = {0, 0, 0};

	if (lifetime_init(&l, kind, 400, shape, max, &err))
		fail_msg("%s", err.text);
	for (uint64_t k = 0; k < 200000; k++) {
		struct sim_random r = sim_random_stream(7, 3, k);
		double x = lifetime_draw(&l, &r);

		assert_true(x >= 0 && isfinite(x));
		assert_true(!(max > 0) || x <= max * (1 + 1e-9));
		assert_true(kind != LIFETIME_PARETO || x >= l.low * (1 - 1e-9));
		add(&m, x);
	}
	NEAR(mean(&m), 400, margin * 400);
	if (want_cv >= 0)
		NEAR(cv(&m), want_cv, 0.1 * want_cv + 1e-6);
}

static void test_lifetimes(void **state)
{
	struct iocom_err err = {0};
	struct lifetime l;

	(void)state;
	check_lifetime(LIFETIME_CONSTANT, 0, 0, 0, 1e-12);
	check_lifetime(LIFETIME_EXPONENTIAL, 1, 0, 1, 0.01);
	check_lifetime(LIFETIME_HYPEREXP, 9, 0, 3, 0.03);
	check_lifetime(LIFETIME_GAMMA, 80, 0, 0.2, 0.01);
	check_lifetime(LIFETIME_PARETO, 4, 0, 1 / sqrt(8), 0.02);
	check_lifetime(LIFETIME_PARETO, 1.5, 40000, -1, 0.03);
	check_lifetime(LIFETIME_PARETO, 1, 40000, -1, 0.03);
	check_lifetime(LIFETIME_PARETO, 0.8, 20000, -1, 0.03);
	/* uncut with shape 2 the least value is half the mean; a cut raises it a little */
	assert_int_equal(lifetime_init(&l, LIFETIME_PARETO, 400, 2, 0, &err), 0);
	NEAR(l.low, 200, 1e-9);
	assert_int_equal(lifetime_init(&l, LIFETIME_PARETO, 400, 2, 1e9, &err), 0);
	NEAR(l.low, 200, 1e-3);
	assert_int_equal(lifetime_init(&l, LIFETIME_PARETO, 400, 1, 0, &err), -EINVAL);
	assert_int_equal(lifetime_init(&l, LIFETIME_PARETO, 400, 2, 300, &err), -EINVAL);
	assert_int_equal(lifetime_init(&l, LIFETIME_HYPEREXP, 400, 0.5, 0, &err), -EINVAL);
	assert_int_equal(lifetime_init(&l, LIFETIME_GAMMA, NAN, 0.5, 0, &err), -EINVAL);
}

static void test_homes(void **state)
{
	const double weights[] = {0, 3, 0, 1, 0};
	double count[5] = {0}, top = 0;
	struct iocom_err err = {0};
	struct homes h;

	(void)state;
	assert_int_equal(homes_init(&h, 5, 0, weights, 1, &err), 0);
	for (int i = 0; i < 10000; i++)
		count[homes_draw(&h, (i + 0.5) / 10000)]++;
	NEAR(count[1], 7500, 1);
	NEAR(count[3], 2500, 1);
	homes_deinit(&h);
	/* skew 1 over 4 nodes: 12/25, 6/25, 4/25, 3/25 in a shuffled order */
	assert_int_equal(homes_init(&h, 4, 1, NULL, 1, &err), 0);
	memset(count, 0, sizeof(count));
	for (int i = 0; i < 10000; i++)
		count[homes_draw(&h, (i + 0.5) / 10000)]++;
	for (int i = 0; i < 4; i++)
		top = count[i] > top ? count[i] : top;
	NEAR(top, 4800, 1);
	NEAR(count[0] + count[1] + count[2] + count[3], 10000, 0);
	homes_deinit(&h);
	assert_int_equal(homes_init(&h, 4, 0, NULL, 1, &err), 0);
	assert_int_equal(homes_draw(&h, 0.9999999999999999), 3);
	assert_int_equal(homes_draw(&h, 1e-300), 0);
	homes_deinit(&h);
	assert_int_equal(homes_init(&h, 1, 0, (double[]){0}, 1, &err), -EINVAL);
	assert_int_equal(homes_init(&h, 1, 0, (double[]){NAN}, 1, &err), -EINVAL);
	assert_int_equal(homes_init(&h, 0, 0, NULL, 1, &err), -EINVAL);
}

static void rejected(const struct generator_params *p, const char *message)
{
	struct iocom_err err = {0};
	struct workload *w = generator_new(p, &err);

	if (w)
		fail_msg("accepted; wanted %s", message);
	assert_string_equal(err.text, message);
}

static void test_rejected(void **state)
{
	struct generator_params p, q;

	(void)state;
	generator_params_default(&p);
	q = p;
	q.jobs = 0;
	rejected(&q, "generator: jobs: expected a number from 1 to 1e+15, found 0");
	q = p;
	q.interarrival_ms = NAN;
	rejected(&q, "generator: interarrival_ms: expected a number from 0 to 1e+12, found nan");
	q = p;
	q.kind[0].io_per_ms = -1;
	rejected(&q, "job: io_per_ms: expected a number from 0 to 1e+06, found -1");
	q = p;
	q.kind[0].memory_shape = 1;
	rejected(&q, "job: memory_shape: expected above 1 (Pareto) or 0 (constant), found 1");
	q = p;
	q.kind[0].parallel_share = 1;
	q.kind[0].tasks_max = 1;
	rejected(&q, "job: tasks: expected a least number from 1 up to the largest, found 2 to 1");
	q = p;
	q.kind[0].share = 0;
	rejected(&q, "generator: the shares of its kinds add up to 0");
	q = p;
	q.kinds = SIM_KINDS_MAX + 1;
	rejected(&q, "generator: kinds: expected a number from 1 to 16, found 17");
}

/* Every preset generates jobs with the values of its paper. */
static void test_presets(void **state)
{
	const char *name, *text;
	unsigned int n = 0;

	(void)state;
	for (; (name = preset_name(n, &text)); n++) {
		struct generator_params p = preset(name);
		struct workload *w = must_generate(&p);

		assert_true(*text);
		assert_string_equal(workload_info(w)->synthetic, "all");
		for (int i = 0; i < 100; i++) {
			struct sim_job j = must_next(w);

			assert_true(j.home < p.nodes && j.tasks >= 1 && j.cpu_ms > 0);
		}
		workload_free(w);
	}
	assert_int_equal(n, 28);
}

static void test_preset_values(void **state)
{
	struct generator_params p = preset("fc");

	(void)state;
	assert_int_equal(p.nodes, 6);
	NEAR(p.kind[0].io_per_ms, 2.8, 0);
	NEAR(p.kind[0].faults_per_ms, 2.0, 0);
	NEAR(p.kind[0].request_kb, 250, 0);
	NEAR(p.kind[0].request_sd_kb, 50, 1e-9);
	p = preset("sld-ex");
	assert_int_equal(p.jobs, 6337 + 28 + 4 + 1398 + 704 + 5338);
	NEAR(p.home_weights[3], 1398, 0);
	p = preset("acm-trace1");
	assert_int_equal(p.nodes, 60);
	NEAR(p.kind[0].io_per_ms, 2, 0);
	NEAR(p.kind[0].initial_mb, 50, 0);
	NEAR(p.kind[0].share, 0.9, 1e-12);
	p = preset("acm-trace3");
	NEAR(p.kind[0].request_kb, 1000, 0);
	NEAR(p.kind[0].initial_mb, 0, 0);
	p = preset("acm-trace4");
	NEAR(p.kind[0].io_per_ms, 0.01, 0);
	NEAR(p.kind[0].faults_per_ms, 8, 0);
	NEAR(p.kind[1].share, 0.1, 1e-12);
	/* Pareto memory by default, constant for the applications */
	NEAR(preset("fc").kind[0].memory_shape, 1.5, 0);
	NEAR(preset("lu").kind[0].memory_shape, 0, 0);
	p = preset("com");
	NEAR(p.kind[0].messages_per_ms, 0.5, 0);
	NEAR(p.kind[0].message_kb, 512, 0);
	NEAR(p.kind[0].barrier_ms, 2, 1e-12);
	NEAR(p.kind[0].io_per_ms, 1e-5, 0);
	assert_int_equal(p.kind[0].tasks_min, 16);
	assert_int_equal(p.kind[0].tasks_max, 16);
	/* 30 % and 60 % parallel jobs have the same arrivals */
	NEAR(preset("acm-30").interarrival_ms, preset("acm-60").interarrival_ms, 0);
}

static void test_preset_args(void **state)
{
	struct generator_params p;
	struct preset_args a;
	struct iocom_err err = {0};

	(void)state;
	preset_args_default(&a);
	a.share = 0.25;
	a.tasks_min = 4;
	a.messages_per_ms = 0.2;
	a.seed = 9;
	a.jobs = 12;
	assert_int_equal(preset_fill(&p, "COM-IO", &a, &err), 0);
	NEAR(p.kind[0].share, 0.25, 0);
	NEAR(p.kind[1].share, 0.75, 0);
	assert_int_equal(p.kind[1].tasks_max, 4);
	NEAR(p.kind[1].messages_per_ms, 0, 0);
	NEAR(p.kind[0].barrier_ms, 5, 1e-12);
	assert_int_equal(p.jobs, 12);
	assert_int_equal(p.seed, 9);
	/* a given memory applies to the memory-intensive jobs */
	a.memory_mb = 50;
	assert_int_equal(preset_fill(&p, "com-memory", &a, &err), 0);
	NEAR(p.kind[0].memory_mean_mb, 4, 0);
	NEAR(p.kind[1].memory_mean_mb, 50, 0);
	a.share = 2;
	assert_int_equal(preset_fill(&p, "com-io", &a, &err), -EINVAL);
	assert_string_equal(err.text, "share: expected a number from 0 to 1, found 2");
	assert_int_equal(preset_fill(&p, "none", &a, &err), -ENOENT);
	assert_non_null(strstr(err.text, "acm-30, acm-60"));
	assert_non_null(strstr(err.text, "plain), found \"none\""));
}

static void test_applications(void **state)
{
	static const struct {
		const char *name;
		double share;
	} shares[] = {{"dmine", 0.74}, {"db2", 0.82},	{"lu", 0.99},
		      {"pgrep", 0.36}, {"titan", 0.24}, {"cholesky", 0.40}};
	struct generator_kind k, lu;

	(void)state;
	for (size_t i = 0; i < COUNT(shares); i++) {
		assert_int_equal(application_kind(shares[i].name, &k), 0);
		NEAR(application_io_share(&k), shares[i].share, 1e-12);
		assert_true(k.write_fraction < 0.1);
		/* the applications with computation and I/O only: LU takes longest */
		assert_int_equal(application_kind("LU", &lu), 0);
		NEAR(k.cpu_factor / (1 - shares[i].share), strcmp(k.name, "LU") ? 1 : 4, 1e-9);
	}
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(
			application_kind(application_name(APPLICATION_COMMUNICATION, i), &k), 0);
		assert_true(k.messages_per_ms >= 0.1 && k.messages_per_ms <= 0.5);
		/* O-29: the job is communication-intensive at 1 Gbps */
		assert_true(k.messages_per_ms * k.message_kb > 125);
	}
	assert_null(application_name(APPLICATION_COMMUNICATION, 5));
	assert_null(application_name(APPLICATION_IO, 6));
	assert_int_equal(application_kind("word", &k), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrivals),    cmocka_unit_test(test_only_seed_and_number),
		cmocka_unit_test(test_mixture),	    cmocka_unit_test(test_lifetimes),
		cmocka_unit_test(test_homes),	    cmocka_unit_test(test_rejected),
		cmocka_unit_test(test_presets),	    cmocka_unit_test(test_preset_values),
		cmocka_unit_test(test_preset_args), cmocka_unit_test(test_applications),
	};

	return cmocka_run_group_tests_name("workload generator", tests, NULL, NULL);
}
