/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Loads that are made up: what a file may say, and what is read from it. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/measure/synthetic.h"
#include "agent/measure/vector.h"
#include "user/clock.h"

#define assert_near(got, expected, within) assert_true(fabs((got) - (expected)) <= (within))

static char path[] = "/tmp/iocom-synthetic-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static int load(const char *text, struct synthetic **s, struct iocom_err *err)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return synthetic_open(s, path, err);
}

static void refused(const char *text, const char *sentence)
{
	struct iocom_err err = {0};
	struct synthetic *s;

	assert_int_equal(load(text, &s, &err), -EPROTO);
	assert_null(s);
	if (!strstr(err.text, sentence) || !strstr(err.text, path))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad_files(void **state)
{
	struct iocom_err err = {0};
	struct synthetic *s;
	char *long_text;

	(void)state;
	refused("", "line 1");
	refused("[1]", "no JSON object");
	refused("{\"loads\": []}", "1 to 4096 loads");
	refused("{\"cores\": 2}", "1 to 4096 loads");
	refused("{\"loads\": [{\"seconds\": 0}]}", "load 1: its seconds");
	refused("{\"loads\": [{\"seconds\": 1}, {\"cpu\": 1}]}", "load 2: its seconds");
	refused("{\"loads\": [{\"seconds\": 1, \"cpu\": -1}]}", "cpu is no number from 0 to 65536");
	refused("{\"loads\": [{\"seconds\": 1, \"cpu\": \"2\"}]}", "cpu is no number");
	refused("{\"loads\": [{\"seconds\": 1, \"disk\": 3}]}", "disk is no part of a load");
	refused("{\"loads\": [3]}", "load 1: it is no object");
	refused("{\"cores\": 1.5, \"loads\": [{\"seconds\": 1}]}", "cores is no whole number");
	refused("{\"gpu\": 1, \"loads\": [{\"seconds\": 1}]}", "gpu is none of");
	refused("{\"cores\": 1, \"cores\": 2, \"loads\": [{\"seconds\": 1}]}", "duplicate");
	long_text = calloc(1, SYNTHETIC_BYTES_MAX + 2);
	assert_non_null(long_text);
	memset(long_text, ' ', SYNTHETIC_BYTES_MAX + 1);
	refused(long_text, "more than 1048576 bytes");
	free(long_text);
	assert_int_equal(synthetic_open(&s, "/nonexistent", &err), -EPROTO);
	assert_non_null(strstr(err.text, "No such file"));
}

/* The vector of a node whose load is LOADS for some periods. */
static struct iocom_vector vector_of(const char *text, double seconds)
{
	const struct vector_self self = {.name = "s", .period_ms = 1000, .cpu_speed = 1};
	const struct vector_jobs_did none = {0};
	struct host_reading host;
	struct vector_state state;
	struct monitor_sample sample;
	struct iocom_err err = {0};
	struct iocom_vector v;
	struct synthetic *s;
	uint64_t now;

	if (load(text, &s, &err))
		fail_msg("%s", err.text);
	vector_init(&state);
	now = clock_boot_ns();
	for (double at = 0; at < seconds; at++) {
		synthetic_sample(s, now, now, &sample);
		assert_int_equal(vector_take(&state, &sample, &none), 0);
		vector_close(&state);
		now += CLOCK_NS_PER_S;
	}
	synthetic_host(s, now - CLOCK_NS_PER_S, &host);
	vector_build(&state, &self, &host, NULL, 0, 0, &v);
	vector_fini(&state);
	synthetic_free(s);
	return v;
}

static void test_vector(void **state)
{
	struct iocom_vector v = vector_of(
		"{\"cores\": 8, \"memory_mb\": 16000, \"loads\": [{\"seconds\": 60, "
		"\"run_queue\": 2.5, \"cpu\": 2, \"memory_used_mb\": 3000, "
		"\"disk_requests_per_s\": 100, \"disk_service_ms\": 4, \"disk_mb_per_s\": 30, "
		"\"sent_mb_per_s\": 5}]}",
		20);

	(void)state;
	assert_int_equal(v.cores, 8);
	assert_int_equal(v.disks, 1);
	assert_near(v.run_queue, 2.5, 1e-3);
	assert_near(v.memory_mb, 16000, 1e-9);
	assert_near(v.memory_requested_mb, 3000, 1e-9);
	assert_near(v.explicit_per_ms, 0.1, 1e-3);
	assert_near(v.disk_utilisation, 0.4, 1e-3);
	assert_near(v.disk_service_ms, 4, 1e-3);
	assert_near(v.disk_service_ms2, 32, 1e-2);
	assert_near(v.sent_mb_per_s, 5, 1e-2);
}

static void test_without_a_disk(void **state)
{
	struct iocom_vector v = vector_of("{\"disk\": false, \"loads\": [{\"seconds\": 1, "
					  "\"disk_requests_per_s\": 100}]}",
					  3);

	(void)state;
	assert_int_equal(v.disks, 0);
	assert_near(v.explicit_per_ms, 0, 1e-12);
}

/* One load follows the other, and after the last the first again. */
static void test_turns(void **state)
{
	const char *text = "{\"loads\": [{\"seconds\": 10, \"run_queue\": 1}, "
			   "{\"seconds\": 10, \"run_queue\": 5}]}";

	(void)state;
	assert_near(vector_of(text, 9).run_queue, 1, 0.02);
	assert_near(vector_of(text, 19).run_queue, 5, 0.02);
	assert_near(vector_of(text, 29).run_queue, 1, 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_without_a_disk),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
