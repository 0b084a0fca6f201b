/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory fails at every allocation in turn: each failure is reported, nothing is lost, and the
 * view still decides as before. The test replaces glibc's allocation functions, so sanitized
 * builds skip it.
 */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	print_message("skipped: the sanitizer owns the allocator\n");
	skip();
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static long left = -1; /* allocations that still succeed; negative: all succeed */

static bool spent(void)
{
	if (left < 0)
		return false;
	return left-- == 0 ? (left = 0, true) : false;
}

void *malloc(size_t size)
{
	return spent() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return spent() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return spent() ? NULL : __libc_realloc(p, size);
}

/* Migration, and rebuilding Zatti's tables: if that fails, the old indexes stay. */
static int run_others(struct rules_view *view, const struct rules_params *params)
{
	struct rules_task tasks[] = {{.cpu_ms = 1e6, .io_per_ms = 1, .request_kb = 250},
				     {.cpu_ms = 1e6, .io_per_ms = 1, .request_kb = 250}};
	struct rules *rules = rules_new(RULES_IO_PM, params, 1);
	struct rules_node home = node_fc("home");
	struct rules_params other = *params;
	struct rules_move moves[2];
	size_t n;
	int ret;

	if (rules == NULL)
		return -ENOMEM;
	home.tasks = tasks;
	home.ntasks = 2;
	ret = rules_view_set(view, 0, &home);
	if (ret == 0)
		ret = rules_migrate(rules, view, 0, tasks, 2, moves, 2, &n, NULL);
	rules_free(rules);
	other.zatti_queue = 7;
	if (ret == 0)
		ret = rules_view_keep(view, RULES_ZATTI_REAL, &other);
	if (ret == 0)
		ret = rules_view_keep_also(view, RULES_WAL, &other);
	if (ret >= 0)
		ret = rules_view_keep_also(view, RULES_ZATTI_BINARY, &other);
	return ret < 0 ? ret : 0;
}

/* Undo notes of a mark, jobs of many tasks, the controller's history. */
static int run_jobs(struct rules_view *view, const struct rules_params *params)
{
	struct rules_request job = job_io(1, 1);
	uint32_t before = rules_view_count(view), nodes[40];
	struct rules *rules = rules_new(RULES_CPU_RE, params, 1);
	struct rules *batch = rules_new(RULES_BS, params, 1);
	struct rules_plan plan;
	int ret = rules == NULL || batch == NULL ? -ENOMEM : rules_view_mark(view);

	for (uint32_t i = 0; ret == 0 && i < 30; i++)
		ret = i % 7 == 6   ? rules_view_pop(view)
		      : i % 7 == 5 ? rules_view_remove(view, i % 9)
				   : rules_view_charge(view, i % 9, &job);
	rules_view_rollback(view);
	assert_int_equal(rules_view_count(view), before);
	job.tasks = 40;
	if (ret == 0)
		ret = rules_place_job(rules, view, 0, &job, &plan, nodes);
	if (ret == 0)
		ret = rules_place_job(batch, view, 0, &job, &plan, nodes);
	if (ret == 0)
		ret = rules_feedback(rules, 640, 160);
	rules_free(rules);
	rules_free(batch);
	return ret;
}

/* Runs everything that allocates. Returns 0 or -ENOMEM. */
static int run(struct rules_view **view, struct rules **rules, const struct rules_params *params)
{
	struct rules_node node = node_live("n", 0.5, 1);
	struct rules_request job = job_io(1, 1);
	struct rules_plan plan;
	int ret = 0;

	*rules = rules_new(RULES_IO_RE, params, 1);
	*view = rules_view_new();
	if (*rules == NULL || *view == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < 40; i++)
		ret = rules_view_set(*view, i, &node);
	if (ret == 0)
		ret = rules_place(*rules, *view, 0, &job, &plan);
	if (ret == 0)
		ret = run_jobs(*view, params);
	return ret < 0 ? ret : run_others(*view, params);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct rules_node node = node_live("n", 0.5, 1);
	struct rules_request job = job_io(1, 1);
	struct rules_params params;
	struct rules_view *view;
	struct rules *rules;
	struct rules_plan plan;
	int ret = -ENOMEM;
	long n;

	(void)state;
	rules_params_default(&params, RULES_RATES_WALL);
	for (n = 0; ret != 0; n++) {
		assert_true(n < 200);
		left = n;
		ret = run(&view, &rules, &params);
		left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
		if (ret < 0 && rules != NULL && view != NULL) {
			for (uint32_t i = rules_view_count(view); i < 40; i++)
				assert_int_equal(rules_view_set(view, i, &node), 0);
			assert_true(rules_view_keep_also(view, RULES_IO_RE, &params) >= 0);
			assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		}
		rules_free(rules);
		rules_view_free(view);
	}
	assert_true(n > 30);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests_name("rules: memory", tests, NULL, NULL);
}
