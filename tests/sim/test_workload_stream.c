/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Workloads as streams: rewinding, memory, options, hashes, quoted CSV. */
#include "tests/sim/workload_fixture.h"

#include <unistd.h>

#include "sim/workload/hash.h"
#include "sim/workload/lines.h"
#include "sim/workload/quoted.h"
#include "sim/workload/spec.h"

static const char *const samples[] = {
	SAMPLES "columns8.txt", SAMPLES "csd.csv",
	SAMPLES "log.swf",	SAMPLES "darshan.csv",
	SAMPLES "block.csv",	SAMPLES "recording.jsonl",
	"gen:acm-30,jobs=500",	"gen:plain,arrivals=regular,jobs=7",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct workload *open_sample(const char *text, const struct workload_options *o)
{
	struct iocom_err err = {0};
	struct workload *w = workload_spec_open(text, o, &err);

	if (!w)
		fail_msg("%s", err.text);
	return w;
}

/* Two passes, an interrupted one between them, and the copy in memory give the same jobs. */
static void test_rewind(void **state)
{
	(void)state;
	for (size_t s = 0; s < COUNT(samples); s++) {
		struct workload *a = open_sample(samples[s], NULL);
		struct workload *b = open_sample(samples[s], NULL);
		struct workload *held = workload_in_memory(open_sample(samples[s], NULL), NULL);
		uint64_t n = workload_info(a)->jobs;
		double last = 0;

		must_next(a);
		must_next(a);
		assert_int_equal(workload_rewind(a, NULL), 0);
		assert_non_null(held);
		assert_string_equal(workload_info(held)->hash, workload_info(a)->hash);
		assert_string_equal(workload_info(held)->synthetic, workload_info(a)->synthetic);
		assert_int_equal(workload_info(held)->jobs, n);
		for (uint64_t i = 0; i < n; i++) {
			struct sim_job x = must_next(a), y = must_next(b), z = must_next(held);

			assert_true(same_job(&x, &y) && same_job(&x, &z));
			assert_int_equal(x.id, i);
			assert_true(x.arrival_ms >= last);
			assert_true(x.home < workload_info(a)->nodes);
			assert_true(x.kind < workload_info(a)->kinds);
			last = x.arrival_ms;
		}
		must_end(a);
		must_end(b);
		must_end(held);
		assert_int_equal(workload_rewind(held, NULL), 0);
		must_next(held);
		workload_free(a);
		workload_free(b);
		workload_free(held);
	}
}

static void test_hash(void **state)
{
	struct workload *w = must_open_text("0 0 1 4 0 -1 0 0\n", NULL);
	char path[] = "/tmp/iocom-test-workload-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	/* the output of printf '0 0 1 4 0 -1 0 0\n' | sha256sum */
	assert_string_equal(
		workload_info(w)->hash,
		"sha256:86c186b098623eb2e992e8dc3370a6dd539430be152aea50e03bc225bf9ceec4");
	workload_free(w);
	assert_int_equal(write(fd, "0 0 1 4 0 -1 0 0\n", 17), 17);
	close(fd);
	w = must_open(path, NULL);
	assert_string_equal(
		workload_info(w)->hash,
		"sha256:86c186b098623eb2e992e8dc3370a6dd539430be152aea50e03bc225bf9ceec4");
	workload_free(w);
	unlink(path);
}

static void test_from_jobs(void **state)
{
	const struct sim_job jobs[] = {
		{.id = 0, .arrival_ms = 0, .home = 3, .tasks = 1, .kind = 1, .cpu_ms = 5},
		{.id = 1, .arrival_ms = 2, .home = 0, .tasks = 2, .cpu_ms = 7},
	};
	struct workload *w = workload_from_jobs(jobs, 2, "two"), *v;
	struct sim_job bad = {.kind = SIM_KINDS_MAX}, j;

	(void)state;
	assert_string_equal(workload_info(w)->source, "two");
	assert_int_equal(workload_info(w)->nodes, 4);
	assert_int_equal(workload_info(w)->kinds, 2);
	j = must_next(w);
	assert_true(same_job(&j, &jobs[0]));
	j = must_next(w);
	assert_true(same_job(&j, &jobs[1]));
	must_end(w);
	v = workload_from_jobs(jobs, 1, "two");
	assert_string_not_equal(workload_info(v)->hash, workload_info(w)->hash);
	workload_free(v);
	workload_free(w);
	assert_null(workload_from_jobs(&bad, 1, "bad"));
	w = workload_from_jobs(NULL, 0, "none");
	must_end(w);
	workload_free(w);
	workload_free(NULL);
}

static const char ten[] = "10 0 1 4 0 -1 0 0\n20 1 2 4 0 -1 0 0\n30 2 3 4 0 -1 0 0\n"
			  "40 3 4 4 0 -1 0 0\n50 4 5 4 0 -1 0 0\n";

static void test_options_window(void **state)
{
	struct workload_options o = defaults();
	struct workload *w;
	struct sim_job j;

	(void)state;
	o.from_s = 20;
	o.to_s = 50;
	o.time_scale = 0.5;
	o.min_cpu_ms = 2500;
	w = must_open_text(ten, &o);
	assert_int_equal(workload_info(w)->jobs, 2);
	assert_int_equal(workload_info(w)->left_out, 3);
	j = must_next(w);
	assert_int_equal(j.id, 0);
	assert_int_equal(j.home, 2);
	NEAR(j.arrival_ms, 5000, 1e-9); /* 20 s become time 0; 10 s are halved */
	j = must_next(w);
	NEAR(j.arrival_ms, 10000, 1e-9);
	must_end(w);
	workload_free(w);
	o = defaults();
	o.jobs_max = 2;
	w = must_open_text(ten, &o);
	assert_int_equal(workload_info(w)->jobs, 2);
	assert_int_equal(workload_info(w)->nodes, 2);
	must_next(w);
	must_next(w);
	must_end(w);
	workload_free(w);
}

/* The generated values of a job depend only on the seed and its record. */
static void test_generated_fields(void **state)
{
	struct workload_options o = defaults(), later = o;
	struct workload *all, *some, *other;
	double sum = 0, io = 0;
	bool differs = false;
	uint32_t homes = 0;
	char text[200000];
	size_t at = 0;

	(void)state;
	for (int i = 0; i < 3000; i++)
		at += (size_t)sprintf(text + at, "%d %d 0 5 1 5 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n", i,
				      i);
	o.nodes = 16;
	o.io_per_ms = 0.6;
	o.memory_shape = 3;
	later = o;
	later.from_s = 100;
	all = must_open_text(text, &o);
	some = must_open_text(text, &later);
	o.seed = 2;
	other = must_open_text(text, &o);
	assert_int_equal(workload_info(all)->nodes, 16);
	for (int i = 0; i < 3000; i++) {
		struct sim_job a = must_next(all), c = must_next(other);

		sum += a.memory_mb;
		io += a.io_per_ms;
		homes |= 1u << a.home;
		differs |= a.home != c.home && a.memory_mb != c.memory_mb;
		assert_true(a.io_per_ms >= 0 && a.io_per_ms <= 1.2);
		assert_true(a.home < 16);
		if (i >= 100) {
			struct sim_job b = must_next(some);

			assert_int_equal(a.home, b.home);
			NEAR(a.memory_mb, b.memory_mb, 0);
			NEAR(a.io_per_ms, b.io_per_ms, 0);
		}
	}
	assert_true(differs);
	assert_int_equal(homes, 0xffff);
	NEAR(sum / 3000, 4, 0.3);
	NEAR(io / 3000, 0.6, 0.03);
	workload_free(all);
	workload_free(some);
	workload_free(other);
}

static void test_option_names(void **state)
{
	struct workload_options o = defaults();
	struct iocom_err err = {0};
	const char *name, *meaning;
	unsigned int n = 0;
	double value;

	(void)state;
	assert_int_equal(workload_options_set(&o, "run", "3", &err), 0);
	assert_int_equal(o.run, 3);
	assert_int_equal(workload_options_set(&o, "requested", "yes", &err), 0);
	assert_true(o.requested);
	assert_int_equal(workload_options_set(&o, "time_scale", "2.5", &err), 0);
	NEAR(o.time_scale, 2.5, 0);
	assert_int_equal(workload_options_set(&o, "seed", "18446744073709551615", &err), 0);
	assert_true(o.seed == UINT64_MAX);
	assert_int_equal(workload_options_set(&o, "nodes", "1.5", &err), -EINVAL);
	assert_string_equal(err.text,
			    "nodes: expected a whole number from 0 to 1e+06, found \"1.5\"");
	assert_int_equal(workload_options_set(&o, "seed", "-1", &err), -EINVAL);
	assert_int_equal(workload_options_set(&o, "memory_mean_mb", "nan", &err), -EINVAL);
	assert_int_equal(workload_options_set(&o, "colour", "1", &err), -ENOENT);
	assert_non_null(strstr(err.text, "no option \"colour\"; it has: seed, nodes,"));
	for (; (name = workload_options_get(&o, n, &value, &meaning)); n++)
		assert_true(*name && *meaning && isfinite(value));
	assert_int_equal(n, 22);
}

/* --- fields of quoted CSV --------------------------------------------------------------- */

struct wanted_field {
	const char *text;
	size_t column;
};

static void check_csv(const char *line, const struct wanted_field *wanted, size_t n)
{
	struct source *source = source_memory(line, strlen(line), "t");
	struct iocom_err err = {0};
	struct quoted quoted;
	struct token f[8];
	struct lines l;
	size_t got;

	assert_int_equal(lines_init(&l, source), 0);
	quoted_init(&quoted);
	assert_int_equal(lines_next(&l, &err), 1);
	if (quoted_split(&quoted, &l, f, 8, &got, &err))
		fail_msg("%s", err.text);
	assert_int_equal(got, n);
	for (size_t i = 0; i < n; i++) {
		assert_true(token_is(&f[i], wanted[i].text));
		assert_int_equal(f[i].column, wanted[i].column);
	}
	assert_int_equal(lines_next(&l, &err), 0);
	quoted_deinit(&quoted);
	lines_deinit(&l);
	source_free(source);
}

static void test_quoted(void **state)
{
	(void)state;
	check_csv("a, b ,c\n", (struct wanted_field[]){{"a", 1}, {"b", 4}, {"c", 7}}, 3);
	check_csv("\"a\",\"b,x\" ,c\r\n", (struct wanted_field[]){{"a", 1}, {"b,x", 5}, {"c", 12}},
		  3);
	check_csv("  \"q\"\"q\",,", (struct wanted_field[]){{"q\"q", 3}, {"", 10}, {"", 11}}, 3);
	check_csv("\"\",\"\"\n", (struct wanted_field[]){{"", 1}, {"", 4}}, 2);
}

/* The fast way of reading a number gives the same bits as strtod. */
static void test_numbers(void **state)
{
	static const char *const good[] = {"0",
					   "-0",
					   ".005",
					   "5.",
					   "123456789012345678901",
					   "1e-5",
					   "0.1",
					   "9007199254740993",
					   "1.7976931348623157e308",
					   "+7",
					   "000012",
					   "3.141592653589793",
					   "4.9e-324",
					   "0.30",
					   "2.5E+03",
					   "0.000000000000000000000000000001"};
	static const char *const bad[] = {"",	 "-",	"+-1", ".",   "1.2.3", "1e",	"1e+", "e5",
					  "nan", "inf", "1 ",  "0x1", "1,5",   "1e999", "١"};
	double value;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct token t = {good[i], strlen(good[i]), 1};

		assert_true(token_parse(&t, &value));
		assert_true(value == strtod(good[i], NULL));
		assert_false(signbit(value));
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct token t = {bad[i], strlen(bad[i]), 1};

		if (token_parse(&t, &value))
			fail_msg("%s taken for %g", bad[i], value);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewind),		 cmocka_unit_test(test_hash),
		cmocka_unit_test(test_from_jobs),	 cmocka_unit_test(test_options_window),
		cmocka_unit_test(test_generated_fields), cmocka_unit_test(test_option_names),
		cmocka_unit_test(test_quoted),		 cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests_name("workload stream", tests, NULL, NULL);
}
