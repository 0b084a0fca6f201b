/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a node has, as its cgroup's files say it, in both versions of the files (host.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/measure/host.h"
#include "agent/measure/machine_time.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static char dir[] = "/tmp/iocom-test-host-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/iocom-test-host-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct host host_of(bool v2)
{
	struct host host = {.memory_v2 = v2};

	snprintf(host.memory, sizeof(host.memory), "%s", dir);
	return host;
}

static void test_v2(void **state)
{
	struct host host = host_of(true);
	struct host_reading r;
	struct iocom_err err = {0};

	(void)state;
	put("memory.current", "90000000\n");
	put("memory.max", "200000000\n");
	put("memory.swap.current", "1000000\n");
	put("memory.stat",
	    "anon 30000000\nfile 50000000\nfile_dirty 4000000\nfile_writeback 2000000\n"
	    "inactive_file 20000000\nactive_file 10000000\n");
	assert_int_equal(host_read(&host, &r, &err), 0);
	NEAR(r.memory_mb, 200);
	NEAR(r.used_mb, 61);
	NEAR(r.dirty_mb, 6);
	/* The files stay open, and what they say then counts. */
	put("memory.current", "95000000\n");
	put("memory.max", "max\n");
	assert_int_equal(host_read(&host, &r, &err), 0);
	assert_true(r.memory_mb > 0);
	NEAR(r.used_mb, 66);
	host_fini(&host);
	for (int i = 0; i < HOST_FILES; i++)
		assert_int_equal(host.files[i].open, 0);
}

static void test_v1(void **state)
{
	struct host host = host_of(false);
	struct host_reading r;
	struct iocom_err err = {0};

	(void)state;
	put("memory.usage_in_bytes", "90000000\n");
	put("memory.limit_in_bytes", "200000000\n");
	put("memory.stat", "dirty 77\nwriteback 77\ntotal_dirty 3000000\ntotal_writeback 500000\n"
			   "total_swap 1000000\ntotal_inactive_file 20000000\n"
			   "total_active_file 10000000\n");
	assert_int_equal(host_read(&host, &r, &err), 0);
	NEAR(r.memory_mb, 200);
	NEAR(r.used_mb, 61);
	NEAR(r.dirty_mb, 3.5);
	host_fini(&host);
}

/* A kernel that does not say what is dirty; a scope that is gone; the whole machine. */
static void test_less(void **state)
{
	struct host host = host_of(true);
	struct host_reading r;
	struct iocom_err err = {0};

	(void)state;
	put("memory.current", "90000000\n");
	put("memory.stat", "anon 30000000\n");
	assert_int_equal(host_read(&host, &r, &err), 0);
	NEAR(r.dirty_mb, 0);
	host_fini(&host);
	strcat(host.memory, "/gone");
	assert_int_equal(host_read(&host, &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/gone"));
	host.memory[0] = 0;
	assert_int_equal(host_read(&host, &r, &err), 0);
	assert_true(r.memory_mb > 0 && r.dirty_mb >= 0 && r.dirty_mb < r.memory_mb);
	assert_int_equal(r.cores, sysconf(_SC_NPROCESSORS_ONLN));
	host_fini(&host);
}

static void test_online(void **state)
{
	(void)state;
	assert_int_equal(host_online("0\n"), 1);
	assert_int_equal(host_online("0-1\n"), 2);
	assert_int_equal(host_online("0-3,8,10-11\n"), 7);
	assert_int_equal(host_online("7"), 1);
	assert_int_equal(host_online(""), 0);
	assert_int_equal(host_online("\n"), 0);
	assert_int_equal(host_online("none"), 0);
	assert_int_equal(host_online("3-1"), 0);
	assert_int_equal(host_online("0-99999999999999999999"), 0);
}

static void test_machine_shares(void **state)
{
	const struct machine_time before = {.all = 1000, .idle = 400, .stolen = 50};
	struct machine_time now = {.all = 1200, .idle = 409, .stolen = 150};

	(void)state;
	NEAR(machine_time_stolen(&before, &now), 0.5);
	assert_true(machine_time_crowded(&before, &now));
	now.idle = 410;
	assert_false(machine_time_crowded(&before, &now));
	now.idle = 399; /* it went back, as the kernel's may */
	assert_true(machine_time_crowded(&before, &now));
	NEAR(machine_time_stolen(&now, &before), 0);
	assert_false(machine_time_crowded(&before, &before));
	NEAR(machine_time_stolen(&before, &before), 0);
}

/* The columns of proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice. */
static void test_machine_time(void **state)
{
	struct machine_time t = {0};
	char file[PATH_MAX];

	(void)state;
	snprintf(file, sizeof(file), "%s/stat", dir);
	assert_int_equal(machine_time_read(file, &t), -ENOENT);
	put("stat", "cpu  100 20 30 400 50 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
	assert_int_equal(machine_time_read(file, &t), 0);
	assert_true(t.all == 621 && t.idle == 450 && t.stolen == 8);
	put("stat", "cpu  100 20 30 400\n"); /* a kernel before 2.6.11 */
	assert_int_equal(machine_time_read(file, &t), -EBADMSG);
	put("stat", "");
	assert_int_equal(machine_time_read(file, &t), -EBADMSG);
	assert_int_equal(machine_time_read("/proc/stat", &t), 0);
	assert_true(t.all > t.idle && t.idle > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_v2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_less, setup, teardown),
		cmocka_unit_test(test_online),
		cmocka_unit_test_setup_teardown(test_machine_time, setup, teardown),
		cmocka_unit_test(test_machine_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
