/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that computes, reads and sends: its phases and their times, learned from
 * one run, against what it did (MODEL 5.10).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/bodies.h"
#include "user/monitor/job_times.h"
#include "tests/lib/watch.h"

#define COMPUTE_MS 1000.0
#define SEND_BYTES (256 * MIB)

/* Reads everything until the sender closes. */
static int sink(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(7999)};
	int s = socket(AF_INET, SOCK_STREAM, 0), c;
	char *buffer = body_buffer(MIB);

	if (!buffer || bind(s, (struct sockaddr *)&any, sizeof(any)) || listen(s, 1))
		return 1;
	c = accept(s, NULL, NULL);
	while (read(c, buffer, MIB) > 0)
		;
	return 0;
}

static int send_all(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7999)};
	char *buffer = body_buffer(MIB);
	int s = -1;

	inet_pton(AF_INET, address, &to.sin_addr);
	for (int i = 0; i < 100; i++) {
		s = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(s, (struct sockaddr *)&to, sizeof(to)))
			break;
		close(s);
		usleep(20000);
	}
	for (size_t at = 0; at < SEND_BYTES;) {
		ssize_t n = write(s, buffer, MIB);

		if (n <= 0)
			return 1;
		at += (size_t)n;
	}
	return 0;
}

/* Reports that a part is done and waits for the signal to go on, so that readings fall between
 * the parts. */
static void pause_between(int told, int go)
{
	char byte;

	if (write(told, "r", 1) != 1 || read(go, &byte, 1) != 1)
		_exit(9);
}

static void run_phases(struct watch *watch, const char *cgroup, int told, int go)
{
	char path[160];
	struct body w = {.path = path, .bytes = 16 * MIB, .block = 256 * KIB, .flags = O_DIRECT};

	snprintf(path, sizeof(path), "%s/big", watch->rig.mount);
	if (rig_enter_cgroup(cgroup, 0) || rig_enter_netns(watch->rig.netns[0]))
		_exit(2);
	pause_between(told, go);
	body_burn(body_cpu_ms() + COMPUTE_MS);
	pause_between(told, go);
	for (int i = 0; i < 32; i++)
		if (body_read(&w))
			_exit(3);
	pause_between(told, go);
	_exit(send_all(watch->rig.address[1]));
}

/* Takes one reading of the job and adds it to B. */
static void learn(struct watch *watch, uint64_t id, double network_mb_per_s, struct behaviour *b)
{
	struct job_times_network network = {.mb_per_s = network_mb_per_s};
	const struct iocom_job_load *job;
	struct job_times times;

	watch_sample(watch);
	job = watch_job(watch, id);
	if (!job)
		return;
	job_times(job, &network, &times);
	job_times_learn(b, &times, (double)watch->sample.elapsed_ns / 1e6);
}

/* Computes, reads, sends: three phases, and the truth of each. */
static void test_phases(void **state)
{
	struct watch *watch = *state;
	int told[2], go[2];
	double share[BEHAVIOUR_RESOURCES], r[BEHAVIOUR_RESOURCES], total;
	struct behaviour b = {0};
	char cgroup[160], byte;
	uint64_t id = watch_cgroup(watch->rig.cgroup, "phases", cgroup, sizeof(cgroup));
	struct iocom_disk disk;
	double served;
	pid_t pid, receiver;

	assert_int_equal(pipe(told) | pipe(go), 0);
	receiver = fork();
	if (!receiver) {
		alarm(120); /* in case this test fails before anybody connects */
		_exit(rig_enter_netns(watch->rig.netns[1]) || sink());
	}
	pid = fork();
	if (!pid)
		run_phases(watch, cgroup, told[1], go[0]);
	/* Use direct I/O on the file below, so that the disk takes some time. */
	rig_shell("losetup --direct-io=on /dev/%s", watch->rig.disk);
	watch_sample(watch);
	disk = *watch_disk(watch);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read(told[0], &byte, 1), 1);
		learn(watch, id, 10, &b);
		if (i == 1)
			watch_compare_within("computes 1 s", "T_CPU, ms", COMPUTE_MS,
					     b.phases[b.n - 1].ms[BEHAVIOUR_CPU],
					     0.02 * COMPUTE_MS + 10);
		assert_int_equal(write(go[1], "g", 1), 1);
	}
	assert_int_equal(rig_wait(pid), 0);
	assert_int_equal(rig_wait(receiver), 0);
	learn(watch, id, 10, &b);
	served = (double)(watch_disk(watch)->service_sum_ns - disk.service_sum_ns) / 1e6;
	for (size_t i = 0; i < b.n; i++)
		printf("# |phase %zu: %s, T_CPU %.0f T_COM %.0f T_Disk %.0f ms of %.0f\n", i + 1,
		       behaviour_resource_name(b.phases[i].dominant), b.phases[i].ms[BEHAVIOUR_CPU],
		       b.phases[i].ms[BEHAVIOUR_COM], b.phases[i].ms[BEHAVIOUR_DISK],
		       b.phases[i].wall_ms);
	total = behaviour_sum(&b, r);
	behaviour_shares(&b, share);
	watch_compare_within("sends 256 MiB at 10 MB/s", "T_COM, ms", SEND_BYTES / 1e4,
			     r[BEHAVIOUR_COM], 1);
	/* What the file system writes by itself is the disk's, too; emulated, it takes long. */
	watch_compare_within("reads 512 MiB", "T_Disk, ms, of the disk's", served,
			     r[BEHAVIOUR_DISK], 0.02 * served + (watch_emulated() ? 50 : 5));
	watch_compare("phases", "sum of shares, %", 100, 100 * (share[0] + share[1] + share[2]),
		      1e-9);
	assert_true(b.disk_low_ms <= r[BEHAVIOUR_DISK] && r[BEHAVIOUR_DISK] <= b.disk_high_ms);
	assert_true(total > 0 && behaviour_valid(&b));
	assert_int_equal(b.phases[0].dominant, BEHAVIOUR_CPU);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.phases[1].dominant, BEHAVIOUR_DISK);
	assert_int_equal(b.phases[2].dominant, BEHAVIOUR_COM);
	assert_string_equal(behaviour_class(&b), "communication");
	for (int i = 0; i < 2; i++) {
		close(told[i]);
		close(go[i]);
	}
	assert_int_equal(rmdir(cgroup), 0);
}

static int watch_up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	char path[160];
	struct body w = {.path = path, .bytes = 16 * MIB, .block = MIB, .flags = O_SYNC};

	*state = watch;
	watch_rig(watch, 128);
	snprintf(path, sizeof(path), "%s/big", watch->rig.mount);
	if (rig_wait(rig_start(body_write, &w)) != 0)
		return -1;
	watch_open(watch, NULL);
	w.flags = O_DIRECT;
	return rig_wait(rig_start(body_read, &w)); /* now the monitor sees the disk */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests_name("phases", tests, watch_up, watch_down);
}
