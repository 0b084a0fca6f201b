/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Bulletins: unpacking returns what was packed, and damage is refused and never read past. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/cluster/bulletin.h"
#include "user/pack.h"
#include "balancer/view/vector_codec.h"

static struct iocom_vector make(const char *name)
{
	struct iocom_vector v = {
		.port = 7700,
		.boot_id = UINT64_MAX,
		.sequence = 12,
		.time_ns = 1700000000123456789,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1.5,
		.cpu_burst = 2.5,
		.run_queue = 0.25,
		.memory_mb = 24000,
		.explicit_per_ms = 0.5,
		.disks = 1,
		.disk_utilisation = 1,
		.disk_mb_per_s = 20,
		.cpu_sharers = 1.75,
		.disk_sharers = 0.5,
		.cpu_left_ms = 2000,
		.disk_left_ms = 1e10,
		.network_mb_per_s = 125,
		.bits = 3,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	snprintf(v.address, sizeof(v.address), "10.0.0.1");
	return v;
}

struct got {
	struct iocom_vector v[BULLETIN_VECTORS_MAX];
	uint64_t age[BULLETIN_VECTORS_MAX];
	size_t n, direct;
};

static void each(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	struct got *g = arg;

	assert_true(g->n < BULLETIN_VECTORS_MAX);
	g->age[g->n] = age_ns;
	g->v[g->n++] = *v;
	g->direct += direct;
}

static void fill(struct matrix *m, unsigned n)
{
	matrix_init(m, "me");
	for (unsigned i = 0; i < n; i++) {
		char name[16];
		struct iocom_vector v;

		snprintf(name, sizeof(name), "n%u", i);
		v = make(name);
		matrix_put(m, &v, 0, 1000000000ull + i);
	}
}

static void test_round_trip(void **state)
{
	struct iocom_vector own = make("me");
	static struct got got;
	char from[IOCOM_NAME_MAX];
	msgpack_sbuffer b;
	struct matrix m;
	uint64_t bad = 0;

	(void)state;
	fill(&m, 300);
	msgpack_sbuffer_init(&b);
	bulletin_pack(&b, &own, &m, 1500000000ull);
	memset(&got, 0, sizeof(got));
	assert_int_equal(bulletin_unpack(b.data, b.size, from, &bad, each, &got), 0);
	assert_string_equal(from, "me");
	assert_int_equal(bad, 0);
	assert_int_equal(got.n, BULLETIN_VECTORS_MAX);
	assert_int_equal(got.direct, 1);
	assert_memory_equal(&got.v[0], &own, sizeof(own));
	assert_string_equal(got.v[1].name, "n299"); /* the newest vector */
	assert_int_equal(got.age[1], 499000000);    /* in whole milliseconds */
	assert_true(b.size < 256 * 260);
	msgpack_sbuffer_destroy(&b);
	matrix_fini(&m);
}

/* A user may declare more than any machine has. The other nodes must still hear of this node. */
static void test_declared_beyond_range(void **state)
{
	struct iocom_vector own = make("me");
	static struct got got;
	char from[IOCOM_NAME_MAX];
	msgpack_sbuffer b;
	struct matrix m;
	uint64_t bad = 0;

	(void)state;
	own.explicit_per_ms = 4e12;
	own.memory_requested_mb = 4e15;
	own.cpu_left_ms = INFINITY;
	own.cpu_sharers = 4e9;
	vector_bound(&own);
	fill(&m, 0);
	msgpack_sbuffer_init(&b);
	bulletin_pack(&b, &own, &m, 1500000000ull);
	memset(&got, 0, sizeof(got));
	assert_int_equal(bulletin_unpack(b.data, b.size, from, &bad, each, &got), 0);
	assert_int_equal(bad, 0);
	assert_int_equal(got.n, 1);
	assert_true(got.v[0].explicit_per_ms >= 1e6);
	assert_true(got.v[0].cpu_left_ms >= 1e11 && got.v[0].cpu_sharers >= 1e6);
	msgpack_sbuffer_destroy(&b);
	matrix_fini(&m);
}

static void test_out_of_range(void **state)
{
	enum { COUNT = 12 };
	struct iocom_vector vs[COUNT];
	msgpack_sbuffer b;
	msgpack_packer pk;
	static struct got got;
	char from[IOCOM_NAME_MAX];
	uint64_t bad = 0;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		vs[i] = make("x");
	vs[1].run_queue = -1;
	vs[2].disk_utilisation = 2;
	vs[3].cores = 0;
	vs[4].name[0] = 0;
	vs[5].memory_mb = 1.0 / 0.0;
	vs[6].cpu_burst = 0;
	vs[7].cpu_sharers = 1.1e7;
	vs[8].disk_sharers = -0.5;
	vs[9].cpu_left_ms = 1.1e12;
	vs[10].disk_left_ms = NAN;
	vs[11].disk_parallel = -1;
	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 3);
	pack_u64(&pk, "v", BULLETIN_VERSION);
	pack_str(&pk, "from", "x");
	pack_key(&pk, "vectors");
	msgpack_pack_array(&pk, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		msgpack_pack_array(&pk, 2);
		msgpack_pack_uint64(&pk, 0);
		vector_pack(&pk, &vs[i]);
	}
	memset(&got, 0, sizeof(got));
	assert_int_equal(bulletin_unpack(b.data, b.size, from, &bad, each, &got), 0);
	assert_int_equal(got.n, 1);
	assert_int_equal(bad, COUNT - 1);
	msgpack_sbuffer_destroy(&b);
}

/* Neither a newer agent's bulletin nor that of one whose vectors were shorter is understood. */
static void test_version(void **state)
{
	char from[IOCOM_NAME_MAX];
	msgpack_sbuffer b;
	msgpack_packer pk;
	uint64_t bad = 0;

	(void)state;
	for (int other = -1; other <= 1; other += 2) {
		msgpack_sbuffer_init(&b);
		msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
		msgpack_pack_map(&pk, 2);
		pack_u64(&pk, "v", (uint64_t)(BULLETIN_VERSION + other));
		pack_str(&pk, "from", "new");
		assert_int_equal(bulletin_unpack(b.data, b.size, from, &bad, each, NULL),
				 BULLETIN_E_VERSION);
		assert_string_equal(from, "new");
		msgpack_sbuffer_destroy(&b);
	}
}

/* Damage: cut everywhere, and bytes changed by a seeded generator. */
static void test_damage(void **state)
{
	struct iocom_vector own = make("me");
	char from[IOCOM_NAME_MAX];
	static struct got got;
	msgpack_sbuffer b;
	struct matrix m;
	uint64_t bad = 0;
	unsigned seed = 1;

	(void)state;
	fill(&m, 2);
	msgpack_sbuffer_init(&b);
	bulletin_pack(&b, &own, &m, 2000000000ull);
	for (size_t n = 0; n < b.size; n++) {
		char *copy =
			malloc(n + 1); /* a block of its own, so that reading past it is noticed */

		memcpy(copy, b.data, n);
		got.n = 0;
		assert_int_equal(bulletin_unpack(copy, n, from, &bad, each, &got),
				 BULLETIN_E_GARBAGE);
		free(copy);
	}
	for (int i = 0; i < 20000; i++) {
		char *copy = malloc(b.size);

		memcpy(copy, b.data, b.size);
		for (int k = 0; k < 3; k++)
			copy[rand_r(&seed) % b.size] = (char)rand_r(&seed);
		got.n = 0;
		bulletin_unpack(copy, b.size, from, &bad, each, &got);
		free(copy);
	}
	msgpack_sbuffer_destroy(&b);
	matrix_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_declared_beyond_range),
		cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_version),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
