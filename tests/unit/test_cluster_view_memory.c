/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory that runs out at every allocation in turn, while vectors are heard, jobs are
 * placed and decisions are taken: a node that finds no memory is left out until its next
 * vector, a charge is counted as lost, and the view goes on.  Allocation is replaced by
 * what glibc exports under other names, so sanitized builds skip this.
 */
#include "tests/unit/rules_fixture.h"

#include <errno.h>

#include "agent/cluster/cluster_view.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

static void test_every_failing_allocation_is_survived(void **state)
{
	(void)state;
	print_message("skipped: the sanitizer owns the allocator\n");
	skip();
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static long left = -1; /* allocations that still succeed; negative: all */
static long held;      /* blocks allocated and not freed */
static bool failed;

static bool spent(void)
{
	if (left < 0 || left-- > 0)
		return false;
	left = 0;
	return failed = true;
}

static void *counted(void *p)
{
	held += p != NULL;
	return p;
}

void *malloc(size_t size)
{
	return spent() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return spent() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	void *grown = spent() ? NULL : __libc_realloc(p, size);

	held += !p && grown;
	return grown;
}

void free(void *p)
{
	held -= p != NULL;
	__libc_free(p);
}

#define S     1000000000ull
#define NODES 40u /* the view must grow twice */

static struct iocom_vector vector_of(uint32_t i, uint64_t sequence)
{
	struct iocom_vector v = {
		.boot_id = 1,
		.sequence = sequence,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.run_queue = i % 7,
		.memory_mb = 1000,
		.explicit_per_ms = 0.01 * (i % 5),
		.disks = 1,
		.disk_mb_per_s = 40,
		.disk_fixed_ms = 1,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "n%u", i);
	return v;
}

/* Returns how many of the vectors the matrix took. */
static uint32_t hear_all(struct matrix *m, uint64_t sequence)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < NODES; i++) {
		struct iocom_vector v = vector_of(i, sequence);
		int rc = matrix_put(m, &v, 0, sequence * S);

		assert_true(rc == 0 || (rc == -ENOMEM && failed));
		taken += rc == 0;
	}
	return taken;
}

static void place_on(struct cluster_view *v, uint32_t i, uint64_t sequence)
{
	struct view_charge c = {.boot_id = 1,
				.sequence = sequence + 1,
				.since_ns = sequence * S,
				.request = {.cpu_ms = 1, .io_per_ms = 0.1, .tasks = 1}};

	snprintf(c.node, sizeof(c.node), "n%u", i);
	cluster_view_charge(v, &c);
}

static void decide(struct cluster_view *v, const char *name)
{
	struct rules_request job = {.cpu_ms = 1000, .io_per_ms = 0.2, .requests = 500, .tasks = 2};
	struct view_decision decision;
	struct view_policy policy;
	struct view_file file;
	int rc;

	assert_int_equal(view_policy_parse(name, &policy, NULL), 0);
	rc = cluster_view_decide(v, &policy, &job, 1, &decision, NULL);
	if (!rc)
		view_decision_fini(&decision);
	assert_true(rc == 0 || (rc == -ENOMEM && failed));
	rc = cluster_view_file(v, S, &file);
	if (!rc)
		view_file_fini(&file);
	assert_true(rc == 0 || (rc == -ENOMEM && failed));
}

/*
 * Checks that each node of the view belongs to an entry of the matrix, and that the entry says so.
 */
static void must_agree(const struct cluster_view *v, const struct matrix *m)
{
	size_t indexed = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct matrix_entry *e = matrix_at(m, i);

		indexed += e->view_index > 0;
		assert_true(e->alive || !e->view_index);
		if (e->view_index)
			assert_ptr_equal(cluster_view_vector(v, e->view_index), &e->vector);
	}
	assert_int_equal(cluster_view_count(v), indexed + 1);
}

static void run(struct cluster_view *v, struct matrix *m)
{
	struct iocom_vector own = vector_of(NODES, 1);

	hear_all(m, 10);
	for (uint32_t i = 0; i < NODES; i += 3)
		place_on(v, i, 10);
	assert_int_equal(cluster_view_refresh(v, &own, 10 * S), 0);
	decide(v, "iocm-pm");
	decide(v, "zatti-binary");
	matrix_expire(m, 12 * S);
	must_agree(v, m);
}

/* When memory is available again, one more vector from each node brings all of them back. */
static void recover(struct cluster_view *v, struct matrix *m)
{
	assert_int_equal(hear_all(m, 20), NODES);
	assert_int_equal(cluster_view_count(v), NODES + 1);
	assert_int_equal(cluster_view_charges(v), 0);
	must_agree(v, m);
	failed = false;
	decide(v, "iocm-pm");
	decide(v, "zatti-binary");
}

static void test_every_failing_allocation_is_survived(void **state)
{
	uint64_t left_out = 0, lost = 0;
	long n = 0, before = held;

	(void)state;
	do {
		struct cluster_view *v;
		struct matrix m;

		matrix_init(&m, "me");
		failed = false;
		left = n;
		v = cluster_view_new(&m);
		if (v)
			run(v, &m);
		left = -1;
		assert_true(v || failed);
		if (v) {
			bool was = failed;

			left_out += cluster_view_left_out(v);
			lost += cluster_view_charges_lost(v);
			recover(v, &m);
			failed = was;
		}
		cluster_view_free(v);
		matrix_fini(&m);
		assert_int_equal(held, before);
	} while (failed && ++n < 1000);
	assert_true(n > NODES && !failed);
	assert_true(left_out > 0 && lost > 0);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests_name("the kept view: memory", tests, NULL, NULL);
}
