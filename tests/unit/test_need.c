/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a job needs: an option overrides the profile, which overrides the default; and what is
 * sent to other nodes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/guest/jobs.h"
#include "agent/home/need_resolve.h"
#include "user/pack.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static const struct profile profile = {
	.runs = 3,
	.cpu_ms = 2000,
	.requests = 500,
	.request_mb = 32,
	.memory_mb = 120,
	.wall_ms = 2100,
	.disk_ms = 100,
	.com_ms = 40,
};

/* Here the class takes 2 s of computation and 500 ms of the disk. */
static const struct profile_machine home = {.cpu_speed = 1, .disk_mb_per_s = 64};

/* Resolves NEED from an options map { NAME: VALUE }. */
static int resolve(struct need *n, const char *name, double value, const struct profile *p,
		   struct iocom_err *err)
{
	struct need_options options;
	msgpack_unpacked map;
	msgpack_sbuffer b;
	msgpack_packer pk;
	int rc;

	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, name ? 1 : 0);
	if (name)
		pack_f64(&pk, name, value);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	rc = need_options_unpack(&options, &map.data, err);
	if (!rc)
		need_resolve(n, &options, &(struct need_learned){.profile = p}, &home);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	return rc;
}

static void test_sources(void **state)
{
	struct iocom_err err = {0};
	struct rules_request r;
	struct need n;

	(void)state;
	assert_int_equal(resolve(&n, NULL, 0, NULL, &err), 0);
	NEAR(n.value[NEED_CPU_S], 1);
	NEAR(n.value[NEED_MEMORY_MB], 50);
	NEAR(n.value[NEED_IO_SIZE_KB], 128);
	assert_int_equal(n.source[NEED_MEMORY_MB], NEED_DEFAULT);
	NEAR(need_declared_mb(&n), 0); /* a default does not count as declared */
	NEAR(need_declared_per_ms(&n), 0);
	assert_int_equal(resolve(&n, "memory_mb", 700, &profile, &err), 0);
	NEAR(n.value[NEED_MEMORY_MB], 700);
	assert_int_equal(n.source[NEED_MEMORY_MB], NEED_OPTION);
	NEAR(n.value[NEED_IO_PER_S], 200);
	assert_int_equal(n.source[NEED_IO_PER_S], NEED_PROFILE);
	NEAR(need_declared_per_ms(&n), 0.2);
	NEAR(n.value[NEED_FAULTS_PER_MS], 1); /* the class never paged */
	NEAR(need_cpu_share(&n), 2.0 / 2.5);
	need_request(&n, &r);
	assert_non_null(r.com_ms);
	NEAR(r.com_ms[0], 40);
	assert_int_equal(resolve(&n, NULL, 0, NULL, &err), 0);
	need_request(&n, &r);
	assert_null(r.com_ms); /* nothing is known of it */
}

static void test_rate_and_number(void **state)
{
	struct rules_request r;
	struct need n;

	(void)state;
	assert_int_equal(resolve(&n, "io_per_s", 300, NULL, NULL), 0);
	NEAR(n.value[NEED_REQUESTS], 300); /* 1 s of the rate */
	assert_int_equal(resolve(&n, "requests", 500, NULL, NULL), 0);
	/* over 1 s of computation, the default, and 1 s at this home's disk */
	NEAR(n.value[NEED_IO_PER_S], 250);
	NEAR(need_declared_per_ms(&n), 0.25);
	need_request(&n, &r);
	NEAR(r.io_per_ms, 0.25);
	NEAR(r.requests, 500);
	NEAR(r.cpu_ms, 1000);
	assert_int_equal(r.tasks, 1);
	/* what is told beside a profile has the rate that follows from both: 4 s, and 0.5 s */
	assert_int_equal(resolve(&n, "cpu_s", 4, &profile, NULL), 0);
	NEAR(n.value[NEED_REQUESTS], 500);
	NEAR(n.value[NEED_IO_PER_S], 500 / 4.5);
	/* an option of 0 is an option */
	assert_int_equal(resolve(&n, "io_per_s", 0, &profile, NULL), 0);
	NEAR(n.value[NEED_IO_PER_S], 0);
}

/* A reader of mapped files: all of its disk work is implicit, and decisions see it. */
static void test_mapped_reader(void **state)
{
	static const struct profile reader = {.runs = 1,
					      .cpu_ms = 400,
					      .fault_requests = 800,
					      .fault_mb = 102.4,
					      .wall_ms = 3300,
					      .disk_ms = 2900};
	struct rules_request r;
	struct need n;

	(void)state;
	assert_int_equal(resolve(&n, NULL, 0, &reader, NULL), 0);
	NEAR(n.value[NEED_REQUESTS], 800);
	assert_int_equal(n.source[NEED_REQUESTS], NEED_PROFILE);
	NEAR(n.value[NEED_IO_SIZE_KB], 128);
	NEAR(n.value[NEED_IO_PER_S], 800 / 2.0); /* 400 ms and 1600 ms of the disk */
	NEAR(n.value[NEED_IMPLICIT_SHARE], 1);
	NEAR(n.value[NEED_FAULTS_PER_MS], 2);
	NEAR(need_declared_per_ms(&n), 0); /* what counts as explicit */
	need_request(&n, &r);
	NEAR(r.requests, 800);
	NEAR(r.io_per_ms, 0.4);
	NEAR(r.implicit_share, 1);
	assert_int_equal(resolve(&n, "implicit_share", 0.25, &reader, NULL), 0);
	NEAR(need_declared_per_ms(&n), 0.3);
}

/* The class ran where the disk is as fast as memory; this home's disk moves 10 MB a second. */
static void test_rate_of_the_home(void **state)
{
	static const struct profile ran_fast = {
		.runs = 1, .requests = 10000, .request_mb = 640, .wall_ms = 1000, .disk_ms = 5};
	static const struct profile_machine slow = {.cpu_speed = 1, .disk_mb_per_s = 10};
	struct need_options options;
	struct need n;

	(void)state;
	need_options_init(&options);
	need_resolve(&n, &options, &(struct need_learned){.profile = &ran_fast}, &slow);
	NEAR(n.value[NEED_IO_PER_S], 156.25);
	NEAR(n.value[NEED_REQUESTS], 10000);
}

/* No work at all is a statement, too: not the lack of one. */
static void test_no_work(void **state)
{
	const struct need_learned learned = {.profile = &(struct profile){.cpu_ms = 20}};
	struct need_options options;
	struct rules_request r;
	struct need n;

	(void)state;
	need_options_init(&options);
	options.value[NEED_CPU_S] = 0;
	need_resolve(&n, &options, &learned, &home);
	assert_true(n.value[NEED_CPU_S] == 0 && n.value[NEED_REQUESTS] == 0);
	assert_true(need_is_known(&n));
	need_request(&n, &r);
	NEAR(r.cpu_ms, NEED_LEAST_MS);
	/* some I/O is work */
	options.value[NEED_REQUESTS] = 3;
	need_resolve(&n, &options, &learned, &home);
	need_request(&n, &r);
	NEAR(r.cpu_ms, 0);
	NEAR(r.requests, 3);
	/* what is not known stays unknown */
	need_init(&n);
	need_set(&n, NEED_CPU_S, 0, NEED_DEFAULT);
	need_request(&n, &r);
	NEAR(r.cpu_ms, 0);
}

/*
 * What is guessed decides where a job runs.  Nobody was told it, so it is no load that was
 * announced, and nothing is expected by it; and memory that is only guessed must not have a job
 * refused.
 */
static void test_guess(void **state)
{
	const struct need_learned learned = {.guess = &profile};
	struct need_options options;
	struct need n;

	(void)state;
	need_options_init(&options);
	need_resolve(&n, &options, &learned, &home);
	assert_false(need_is_known(&n));
	assert_true(need_is_guess(&n));
	NEAR(n.value[NEED_CPU_S], 2);
	NEAR(n.value[NEED_REQUESTS], 500);
	NEAR(n.value[NEED_IO_SIZE_KB], 64);
	NEAR(n.value[NEED_IO_PER_S], 200);
	NEAR(n.value[NEED_MEMORY_MB], 50);
	assert_int_equal(n.source[NEED_REQUESTS], NEED_GUESS);
	assert_string_equal(need_source_name(NEED_GUESS), "guess");
	NEAR(need_declared_per_ms(&n), 0);
	NEAR(need_declared_mb(&n), 0);
	/* who was short so far may still be long: no less than the default */
	need_resolve(&n, &options, &(struct need_learned){.guess = &(struct profile){.cpu_ms = 20}},
		     &home);
	NEAR(n.value[NEED_CPU_S], 1);
	assert_true(need_is_guess(&n));
	/* an option is more than a guess, and leaves the other fields guessed */
	options.value[NEED_REQUESTS] = 7;
	need_resolve(&n, &options, &learned, &home);
	NEAR(n.value[NEED_REQUESTS], 7);
	NEAR(n.value[NEED_CPU_S], 2);
	assert_true(need_is_known(&n));
	/* a profile is more than a guess */
	need_resolve(&n, &options, &(struct need_learned){.profile = &profile, .guess = &profile},
		     &home);
	assert_false(need_is_guess(&n));
}

/* A guess reaches the node that runs the job; a build that knows none takes it for a default. */
static void test_guess_in_an_order(void **state)
{
	struct need_options options;
	const msgpack_object *need;
	msgpack_unpacked map;
	msgpack_sbuffer b;
	msgpack_packer pk;
	struct need n, back;

	(void)state;
	need_options_init(&options);
	options.value[NEED_DATA_MB] = 5;
	need_resolve(&n, &options, &(struct need_learned){.guess = &profile}, &home);
	msgpack_sbuffer_init(&b);
	msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 1);
	need_pack(&n, &pk);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(need_unpack(&back, &map.data), 0);
	for (enum need_field f = 0; f < NEED_FIELDS; f++) {
		NEAR(back.value[f], n.value[f]);
		assert_int_equal(back.source[f], n.source[f]);
	}
	need = unpack_get(unpack_get(&map.data, "need"), "requests");
	assert_int_equal(need->via.array.ptr[1].via.u64, NEED_DEFAULT);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
}

static void test_mistakes(void **state)
{
	struct iocom_err err = {0};
	struct need n;

	(void)state;
	assert_int_equal(resolve(&n, "memory_mb", -1, NULL, &err), -EINVAL);
	assert_int_equal(resolve(&n, "memory_mb", NAN, NULL, &err), -EINVAL);
	assert_int_equal(resolve(&n, "memory_mb", 1e30, NULL, &err), -EINVAL);
	assert_int_equal(resolve(&n, "implicit_share", 1.01, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "from 0 to 1"));
	assert_int_equal(resolve(&n, "memery_mb", 1, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "memery_mb"));
}

static void test_order(void **state)
{
	struct job_order order =
				 {
					 .job = "n1-12345678-9",
					 .home = "n1",
					 .home_address = "10.0.0.1",
					 .home_port = 7700,
					 .uid = 1000,
					 .hops = 2,
					 .class_name = "sort",
					 .command = "sort \xff big",
					 .policy = "iocm-re",
					 .cwd = "/tmp",
					 .executable = "/usr/bin/sort",
					 .submit_ns = 1700000000123456789,
					 .move = 3,
					 .done_cpu_ms = 1500,
					 .done_requests = 40,
					 .processor = UINT64_MAX - 5,
					 .home_io = 0.25,
				 },
			 back;
	msgpack_unpacked map;
	msgpack_sbuffer b;

	(void)state;
	resolve(&order.need, "memory_mb", 700, &profile, NULL);
	msgpack_sbuffer_init(&b);
	job_order_pack(&order, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(job_order_unpack(&back, &map.data), 0);
	assert_memory_equal(&back, &order, sizeof(order));
	msgpack_unpacked_destroy(&map);
	/* A message from a build that did not know this need. */
	memcpy(memmem(b.data, b.size, "com_ms", 6), "com_xx", 6);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(job_order_unpack(&back, &map.data), 0);
	assert_float_equal(back.need.value[NEED_COM_MS], 0, 0);
	assert_int_equal(back.need.source[NEED_COM_MS], NEED_DEFAULT);
	assert_float_equal(back.need.value[NEED_MEMORY_MB], 700, 0);
	msgpack_unpacked_destroy(&map);
	/* Nor of processors. */
	memcpy(memmem(b.data, b.size, "processor", 9), "prxcessor", 9);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(job_order_unpack(&back, &map.data), 0);
	assert_true(back.processor == 0 && back.move == 3);
	msgpack_unpacked_destroy(&map);
	/* The source of a need must be one of three. */
	((char *)memmem(b.data, b.size, "memory_mb", 9))[9 + 1 + 9] = 3;
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(job_order_unpack(&back, &map.data), -EBADMSG);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_clear(&b);
	strcpy(order.job, "../../etc/passwd"); /* a job id is a file name, never a path */
	job_order_pack(&order, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(job_order_unpack(&back, &map.data), -EBADMSG);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_rate_and_number),
		cmocka_unit_test(test_mapped_reader),
		cmocka_unit_test(test_rate_of_the_home),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_no_work),
		cmocka_unit_test(test_guess_in_an_order),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
