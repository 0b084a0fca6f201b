/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job moves between the shims of two nodes (mover.h; IOCOM_CRIU, or an installed one). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/mover.h"
#include "user/cgroup_user.h"
#include "user/channel/bytes.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/record.h"
#include "user/wire.h"

#define FIFO "/tmp/iocom-a-named-pipe"

static uint64_t cgroup_us(const struct mover *m)
{
	char name[SPEC_JOB_MAX + 32];
	struct cgroup_mounts mounts;
	struct cgroup group;

	assert_int_equal(cgroup_user_job(name, sizeof(name), 0, m->job.name), 0);
	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, mover_nodes[m->at].scope, name, &group, NULL), 0);
	return cgroup_cpu_us(&group);
}

/* There and back again, with no line lost and none doubled. */
static void test_moves(void **state)
{
	struct want want = MOVER_SH(MOVER_COUNT);
	struct mover m = mover_begin(&want);

	(void)state;
	for (int i = 0; i < 6; i++) {
		mover_expect(&m, 30);
		mover_move(&m);
	}
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

static void give_numbers(struct mover *m, unsigned from, unsigned to)
{
	char text[32];

	for (unsigned i = from; i < to; i++) {
		snprintf(text, sizeof(text), "%u\n", i);
		mover_give(m, text);
	}
}

/*
 * What waits in the pipes at that moment goes along: output that nobody reads, more than the shim
 * keeps, and input that the job has not read.
 */
static void test_pipes(void **state)
{
	struct want want = MOVER_SH("i=0; while [ $i -lt 200000 ]; do echo $i; i=$((i + 1)); done; "
				    "while read x; do echo $x; done; exit 5");
	struct mover m = mover_begin(&want);

	(void)state;
	give_numbers(&m, 200000, 201000);
	usleep(1000000);
	mover_move(&m);
	mover_expect_until(&m, 150000);
	mover_move(&m);
	mover_expect_until(&m, 201000);
	give_numbers(&m, 201000, 202000);
	mover_move(&m);
	mover_expect_until(&m, 201500);
	mover_give(&m, "");
	mover_end(&m, 0);
	assert_int_equal(m.next, 202000);
}

/* A client that attaches while it moves is told to try again, and the job keeps its own. */
static void expect_no_attach(const struct mover *m)
{
	struct attach_ask ask = {.node = "here"};
	struct launch_ask wish;
	struct frame frame;
	size_t length;
	void *packed;
	int fd[2];

	snprintf(ask.job, sizeof(ask.job), "%s", m->job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish = (struct launch_ask){.packed = packed, .length = length};
	assert_int_equal(launch_attach(mover_nodes[m->at].run, m->job.name, &wish, fd[1]), 0);
	close(fd[1]);
	free(packed);
	assert_int_equal(frame_read(fd[0], &frame, FRAME_DATA_MAX + 64, NULL), 0);
	assert_int_equal(frame.type, FRAME_ERROR);
	assert_non_null(memmem(frame.payload, frame.length, "try again", 9));
	frame_free(&frame);
	close(fd[0]);
}

/* It stays: nothing is lost but time, and it may move the next time. */
static void test_stays(void **state)
{
	struct want want = MOVER_SH(MOVER_COUNT);
	struct mover m = mover_begin(&want);
	struct launch_event event;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job there;
		unsigned seen;

		mover_expect(&m, 30);
		there = mover_hold(&m, &event);
		seen = m.next;
		expect_no_attach(&m);
		assert_int_equal(mover_decide(&mover_nodes[!m.at], m.job.name, LAUNCH_ABORT), 0);
		assert_int_equal(mover_decide(&mover_nodes[!m.at], m.job.name, LAUNCH_GO),
				 -EALREADY);
		mover_gone(&m, &there, !m.at, 3);
		/* While it is held it writes nothing. */
		assert_int_equal(m.next, seen);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_LEAVE),
				 -EALREADY);
		mover_expect(&m, 100);
	}
	mover_move(&m);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

/* A signal that comes while it is held reaches it where it goes on, there or here. */
static void test_signals(void **state)
{
	struct want want = MOVER_SH("exec 2>/dev/null; n=0; trap 'echo $n; n=$((n + 1))' USR1; "
				    "while :; do sleep 0.01; done");
	struct mover m = mover_begin(&want);
	struct launch_event event;
	struct job there;

	(void)state;
	usleep(100000);
	there = mover_hold(&m, &event);
	assert_int_equal(stage_signal(&mover_nodes[m.at], m.job.name, SIGUSR1), 0);
	mover_go(&m, &there);
	mover_expect(&m, 1);
	there = mover_hold(&m, &event);
	assert_int_equal(stage_signal(&mover_nodes[m.at], m.job.name, SIGUSR1), 0);
	assert_int_equal(mover_decide(&mover_nodes[!m.at], m.job.name, LAUNCH_ABORT), 0);
	mover_gone(&m, &there, !m.at, 3);
	assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
	mover_expect(&m, 1);
	/* However many came, the one that ends it is among them. */
	there = mover_hold(&m, &event);
	for (int i = 0; i < 200; i++)
		assert_int_equal(stage_signal(&mover_nodes[m.at], m.job.name, SIGUSR1), 0);
	assert_int_equal(stage_signal(&mover_nodes[m.at], m.job.name, SIGKILL), 0);
	assert_int_equal(mover_decide(&mover_nodes[!m.at], m.job.name, LAUNCH_ABORT), 0);
	mover_gone(&m, &there, !m.at, 3);
	assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
	mover_end(&m, 0 - SIGKILL);
}

/* A refusal: the job goes on, and nothing of it is left where it was to go. */
static void expect_refusal(struct mover *m, const char *why)
{
	struct job there = mover_there(m);
	struct launch_event event;
	struct iocom_err err = {0};
	int rc = mover_ask(m, &there, &err);

	close(there.client);
	if (!rc) {
		mover_event(m->job.leash, LAUNCH_MOVED, &event);
		assert_true(event.failed);
		snprintf(err.text, sizeof(err.text), "%s", event.text);
		assert_int_equal(mover_decide(&mover_nodes[m->at], m->job.name, LAUNCH_LEAVE),
				 -EALREADY);
		assert_int_equal(mover_decide(&mover_nodes[m->at], m->job.name, LAUNCH_STAY), 0);
	}
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
	mover_gone(m, &there, !m->at, 3);
}

static void test_refusals(void **state)
{
	struct want talks = {.migratable = true,
			     .root = true,
			     .allow_root = true,
			     .argv = {"/usr/bin/python3", "-c",
				      "import socket,time\n"
				      "l=socket.socket(); l.bind(('127.0.0.1',0)); l.listen(1)\n"
				      "n=0\n"
				      "while True: print(n,flush=True); n+=1; time.sleep(0.001)\n",
				      NULL}};
	struct want plain = MOVER_SH(MOVER_COUNT);
	struct mover m = mover_begin(&talks);

	(void)state;
	mover_expect(&m, 10);
	expect_refusal(&m, "network");
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
	plain.migratable = false;
	m = mover_begin(&plain);
	mover_expect(&m, 10);
	expect_refusal(&m, "it was not started with --migratable");
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
	unlink(FIFO);
	plain = (struct want)MOVER_SH("mkfifo " FIFO "; exec 3<>" FIFO "; " MOVER_COUNT);
	m = mover_begin(&plain);
	mover_expect(&m, 10);
	expect_refusal(&m, "a named pipe");
	mover_expect(&m, 100);
	mover_end(&m, SIGKILL);
	unlink(FIFO);
}

/* A restartable job has its lease where it goes before it runs there, or does not run. */
static void test_lease(void **state)
{
	struct want want = MOVER_SH(MOVER_COUNT);
	struct launch_event event;
	struct mover m;
	struct job there;

	(void)state;
	want.lease_ms = 60000;
	m = mover_begin(&want);
	mover_expect(&m, 10);
	m.want.lease_ms = 0;
	m.want.lease_is_over = true;
	there = mover_hold(&m, &event);
	assert_int_equal(launch_lease(there.leash, 0), 0); /* home has given it up */
	event = mover_gone(&m, &there, !m.at, 3);
	assert_string_equal(event.text, "its home node has given it up and may run it again");
	assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
	mover_expect(&m, 100);
	there = mover_hold(&m, &event);
	assert_int_equal(launch_lease(there.leash, clock_boot_ms() + 60000), 0);
	mover_go(&m, &there);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

/* The other node is lost while it takes the job: it goes on here. */
static void test_target_dies(void **state)
{
	struct want want = MOVER_SH(MOVER_COUNT);
	struct mover m = mover_begin(&want);
	struct launch_event event;
	struct launch_found found;
	struct iocom_err err = {0};
	struct job there;

	(void)state;
	mover_expect(&m, 30);
	there = mover_there(&m);
	kill(there.shim, SIGSTOP);
	assert_int_equal(mover_ask(&m, &there, &err), 0);
	close(there.client);
	assert_int_equal(mover_ask(&m, &there, &err), -EALREADY);
	usleep(200000);
	kill(there.shim, SIGKILL);
	mover_event(m.job.leash, LAUNCH_MOVED, &event);
	assert_true(event.failed);
	assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
	mover_expect(&m, 100);
	waitpid(there.shim, NULL, 0);
	close(there.leash);
	(void)launch_outcome(mover_nodes[!m.at].jobs, mover_nodes[!m.at].run, m.job.name, &found);
	(void)launch_forget(mover_nodes[!m.at].jobs, mover_nodes[!m.at].run, m.job.name);
	mover_move(&m);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

static int take_found(void *arg, const struct launch_found *found)
{
	struct launch_found *wanted = arg;

	if (!strcmp(found->job, wanted->job))
		*wanted = *found;
	return 0;
}

/* Both agents start again while it is held: the shims tell them, and are told. */
static void test_agents_restart(void **state)
{
	struct want want = MOVER_SH(MOVER_COUNT);
	struct mover m = mover_begin(&want);
	struct launch_found here, there;
	struct launch_event event;
	struct iocom_err err = {0};
	struct job shim;

	(void)state;
	mover_expect(&m, 30);
	shim = mover_hold(&m, &event);
	close(shim.leash);
	close(m.job.leash);
	snprintf(here.job, sizeof(here.job), "%s", m.job.name);
	snprintf(there.job, sizeof(there.job), "%s", m.job.name);
	assert_int_equal(
		launch_recover(mover_nodes[0].jobs, mover_nodes[0].run, take_found, &here, &err),
		0);
	assert_int_equal(
		launch_recover(mover_nodes[1].jobs, mover_nodes[1].run, take_found, &there, &err),
		0);
	/* Who does not answer within a moment answers on the leash. */
	m.job.leash = here.leash;
	if (!here.started.pid)
		mover_event(m.job.leash, LAUNCH_STARTED, &event);
	mover_event(m.job.leash, LAUNCH_MOVED, &event);
	assert_false(event.failed);
	assert_true(event.bytes > 0);
	shim.leash = there.leash;
	if (there.started.type != LAUNCH_READY)
		mover_event(shim.leash, LAUNCH_READY, &event);
	mover_go(&m, &shim);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

/* The shim where it was is lost once it is held: it goes on there. */
static void test_source_dies(void **state)
{
	struct want want = MOVER_SH(MOVER_COUNT);
	struct mover m = mover_begin(&want);
	struct launch_event event;
	struct launch_found found;
	struct job there;
	int status;

	(void)state;
	mover_expect(&m, 30);
	there = mover_hold(&m, &event);
	kill(m.job.shim, SIGKILL);
	waitpid(m.job.shim, &status, 0);
	close(m.job.leash);
	assert_int_equal(
		launch_outcome(mover_nodes[m.at].jobs, mover_nodes[m.at].run, m.job.name, &found),
		0);
	(void)launch_forget(mover_nodes[m.at].jobs, mover_nodes[m.at].run, m.job.name);
	assert_int_equal(mover_decide(&mover_nodes[!m.at], m.job.name, LAUNCH_GO), 0);
	mover_event(there.leash, LAUNCH_STARTED, &event);
	m.at = !m.at;
	m.job.leash = there.leash;
	m.job.shim = there.shim;
	mover_follow(&m);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

/* Returns at which byte of the output the line N begins. */
static uint64_t offset_of(uint64_t n)
{
	uint64_t offset = 0, from = 0, to = 10;

	for (unsigned digits = 1; from < n; digits++, from = to, to *= 10)
		offset += ((n < to ? n : to) - from) * (digits + 1);
	return offset;
}

/* Reads all that is kept of the job's output.  Returns the line after the last. */
static unsigned long read_kept(int fd)
{
	char line[32];
	unsigned long next = 0, n, gaps = 0;
	uint64_t at = 0;
	size_t length = 0;
	struct frame frame;

	for (;;) {
		assert_int_equal(frame_read(fd, &frame, FRAME_DATA_MAX + 64, NULL), 0);
		if (frame.type == FRAME_EXIT)
			break;
		if (frame.type != FRAME_DATA || frame.payload[0] != 1) {
			frame_free(&frame);
			continue;
		}
		if (wire_u64(frame.payload + 1) != at) {
			gaps++;
			at = wire_u64(frame.payload + 1);
			length = sizeof(line); /* of the first line only the end may be kept */
		}
		for (uint32_t i = FRAME_DATA_HEAD; i < frame.length; i++, at++) {
			char c = (char)frame.payload[i];

			if (c != '\n') {
				if (length < sizeof(line))
					line[length++] = c;
				continue;
			}
			if (length < sizeof(line)) {
				line[length] = 0;
				n = strtoul(line, NULL, 10);
				assert_int_equal(offset_of(n), at - length);
				next = n + 1;
			}
			length = 0;
		}
		mover_credit(fd, at);
		frame_free(&frame);
	}
	assert_int_equal(wire_u32(frame.payload + 1), 3);
	frame_free(&frame);
	assert_int_equal(gaps, 1);
	return next;
}

/* What a detached job wrote before it moved is kept where it ends: its beginning and its end. */
static void test_detached(void **state)
{
	struct want want = MOVER_SH("i=0; while [ $i -lt 300000 ]; do echo $i; i=$((i + 1)); "
				    "[ $((i % 60000)) -ne 0 ] || sleep 0.3; done; exit 3");
	struct attach_ask ask = {.node = "here", .from = {0, 0, 0}, .gaps = true};
	struct launch_ask wish;
	struct launch_event event;
	struct mover m;
	size_t length;
	void *packed;
	int fd[2], leash;

	(void)state;
	want.detach = true;
	m = mover_begin(&want);
	close(m.client);
	for (int i = 0; i < 3; i++) {
		struct job there;

		usleep(200000);
		there = mover_hold(&m, &event);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_LEAVE), 0);
		assert_int_equal(mover_decide(&mover_nodes[!m.at], m.job.name, LAUNCH_GO), 0);
		mover_event(there.leash, LAUNCH_STARTED, &event);
		mover_gone(&m, &m.job, m.at, RECORD_MOVED);
		m.at = !m.at;
		m.job.leash = there.leash;
		m.job.shim = there.shim;
	}
	mover_event(m.job.leash, LAUNCH_EXITED, &event);
	assert_int_equal(event.value, 3);
	close(m.job.leash);
	stage_reap(&m.job);
	snprintf(ask.job, sizeof(ask.job), "%s", m.job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	wish = (struct launch_ask){.packed = packed, .length = length};
	stage_pair(fd);
	assert_int_equal(launch_replay(mover_nodes[m.at].shim, mover_nodes[m.at].scope,
				       mover_nodes[m.at].jobs, NULL, 0, &wish, fd[1], &leash,
				       &(struct iocom_err){0}),
			 0);
	free(packed);
	assert_int_equal(read_kept(fd[0]), 300000);
	close(fd[0]);
	close(leash);
	record_remove(mover_nodes[m.at].jobs, m.job.name);
}

/* It ends, with its own status, where it came. */
static void test_status(void **state)
{
	struct want want = MOVER_SH("echo 0; sleep 1; exit 9");
	struct mover m = mover_begin(&want);
	struct frame frame;

	(void)state;
	mover_expect(&m, 1);
	mover_move(&m);
	do {
		assert_int_equal(frame_read(m.client, &frame, FRAME_DATA_MAX + 64, NULL), 0);
		if (frame.type != FRAME_EXIT)
			frame_free(&frame);
	} while (frame.type != FRAME_EXIT);
	assert_int_equal(frame.payload[0], 0);
	assert_int_equal(wire_u32(frame.payload + 1), 9);
	frame_free(&frame);
	assert_int_equal(frame_write(m.client, FRAME_EXIT, NULL, 0), 0);
	close(m.client);
	mover_gone(&m, &m.job, m.at, 0);
}

/* What it used before it moved counts, too: its CPU time, and the time since it began. */
static void test_account(void **state)
{
	struct want want = MOVER_SH("i=0; while [ $i -lt 500000 ]; do i=$((i + 1)); done; echo 0; "
				    "sleep 0.5; echo 1; sleep 0.5");
	struct mover m = mover_begin(&want);
	struct launch_event event;
	uint64_t begin_ms = clock_boot_ms();
	uint64_t burnt_us;

	(void)state;
	mover_expect_until(&m, 1);
	burnt_us = cgroup_us(&m);
	assert_true(burnt_us > 10000);
	mover_move(&m);
	while (mover_read(&m) != FRAME_EXIT)
		;
	assert_int_equal(frame_write(m.client, FRAME_EXIT, NULL, 0), 0);
	close(m.client);
	event = mover_gone(&m, &m.job, m.at, 0);
	assert_true(event.cpu_us >= burnt_us);
	/* criu's own work is less than what a second such loop would be. */
	assert_true(event.cpu_us < burnt_us + 1000000);
	assert_true(event.wall_ms >= 1000);
	assert_true(event.wall_ms <= clock_boot_ms() - begin_ms + 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),	    cmocka_unit_test(test_pipes),
		cmocka_unit_test(test_stays),	    cmocka_unit_test(test_signals),
		cmocka_unit_test(test_refusals),    cmocka_unit_test(test_status),
		cmocka_unit_test(test_lease),	    cmocka_unit_test(test_account),
		cmocka_unit_test(test_detached),    cmocka_unit_test(test_agents_restart),
		cmocka_unit_test(test_target_dies), cmocka_unit_test(test_source_dies),
	};

	if (!criu_to_test(&mover_criu))
		return 0;
	return cmocka_run_group_tests_name("move", tests, mover_up, mover_down);
}
