/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reports on jobs: the slowdown that home keeps, and fields that older agents do not send. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "agent/jobs/job_report.h"
#include "user/pack.h"

/* 2 s of computation and 1 s of service at the disk; others had both for 3 s meanwhile. */
static const struct job_report shared = {
	.job = "n1-1-1",
	.state = "exited",
	.wall_ms = 6000,
	.cpu_ms = 2000,
	.alone_ms = 3000,
	.behaviour = {.n = 1,
		      .phases = {{.ms = {2000, 0, 1000}, .wall_ms = 6000}},
		      .disk_low_ms = 1000,
		      .disk_high_ms = 1000,
		      .disk_wait_ms = 1000,
		      .run_wait_ms = 2000},
};

static void test_slowdown(void **state)
{
	struct job_report r = shared;

	(void)state;
	assert_true(job_report_slowdown(&r, 6000) == 2);
	/* from the submission on, what its user waited for */
	assert_true(job_report_slowdown(&r, 7500) == 2.5);
	assert_false(job_report_rests(&r));
	/* a job with a time of its own: it waits for a person, a timer, another machine */
	r.wall_ms = 60000;
	assert_true(job_report_rests(&r));
	assert_true(job_report_slowdown(&r, 60000) == 0);
	/* nothing is known, or it cannot be */
	r = shared;
	r.alone_ms = 0;
	assert_true(job_report_slowdown(&r, 6000) == 0);
	r.alone_ms = INFINITY;
	assert_true(job_report_slowdown(&r, 6000) == 0);
	r.alone_ms = NAN;
	assert_true(job_report_slowdown(&r, 6000) == 0);
	r.alone_ms = 1e-9;
	assert_true(job_report_slowdown(&r, 6000) == 0);
	r.alone_ms = 3000;
	assert_true(job_report_slowdown(&r, 0) == 0);
	assert_true(job_report_slowdown(&r, -1) == 0);
	assert_true(job_report_slowdown(&r, NAN) == 0);
	/* several processors: it is faster than the sum of its work */
	assert_true(job_report_slowdown(&r, 1500) == 0.5);
}

static int there_and_back(const struct job_report *in, struct job_report *out)
{
	msgpack_sbuffer buffer;
	msgpack_unpacked map;
	int rc;

	msgpack_sbuffer_init(&buffer);
	job_report_pack(in, &buffer);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), 0);
	rc = job_report_unpack(out, &map.data);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

static void test_fields(void **state)
{
	struct job_report r = shared, back;

	(void)state;
	assert_int_equal(there_and_back(&r, &back), 0);
	assert_true(back.alone_ms == 3000 && !back.stopped);
	strcpy(r.state, "running");
	r.stopped = true;
	assert_int_equal(there_and_back(&r, &back), 0);
	assert_true(back.stopped);
	r.alone_ms = -1;
	assert_int_equal(there_and_back(&r, &back), -EBADMSG);
	r.alone_ms = NAN;
	assert_int_equal(there_and_back(&r, &back), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slowdown),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests_name("job_report", tests, NULL, NULL);
}
