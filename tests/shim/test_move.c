/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job moves between the shims of two nodes, by a real criu (IOCOM_CRIU, or an installed one): the
 * test plays both agents, who decide, and the client, who finds the job again.
 */
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

#include "agent/shim/move/criu.h"
#include "tests/lib/criu.h"
#include "tests/lib/stage.h"
#include "user/cgroup_user.h"
#include "user/channel/bytes.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/record.h"
#include "user/wire.h"

#define LIMIT_MS 30000

static struct criu criu;
static struct stage nodes[2];

/* A job, where it is, and its client, who checks each line. */
struct mover {
	struct want want;
	struct job job;
	unsigned at; /* the node */
	int client;
	uint64_t got, given; /* offsets in its output and input */
	char input[65536];   /* all that it was given */
	unsigned next;
	char line[64];
	size_t length;
};

#define SH(script)                                                                                 \
	{                                                                                          \
		.migratable = true, .root = true, .allow_root = true, .grace_ms = 20000, .argv = { \
			"/bin/sh",                                                                 \
			"-c",                                                                      \
			script,                                                                    \
			NULL                                                                       \
		}                                                                                  \
	}
#define COUNT "i=0; while :; do echo $i; i=$((i + 1)); sleep 0.001; done"

static struct mover begin(const struct want *want)
{
	struct mover m = {.want = *want};
	struct launch_event event;

	m.job = stage_start(&nodes[0], &m.want);
	assert_int_equal(m.job.rc, 0);
	assert_int_equal(stage_event(m.job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	m.client = m.job.client;
	return m;
}

static void take_bytes(struct mover *m, const uint8_t *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		assert_true(m->length < sizeof(m->line));
		m->line[m->length++] = data[i] == '\n' ? 0 : (char)data[i];
		if (data[i] != '\n')
			continue;
		if (strtoul(m->line, NULL, 10) != m->next)
			fail_msg("line '%s' instead of %u", m->line, m->next);
		m->next++;
		m->length = 0;
	}
	m->got += length;
}

/* Says that the output up to TAKEN was taken. */
static void give_credit(int client, uint64_t taken)
{
	uint8_t credit[FRAME_DATA_HEAD] = {1};

	bytes_put_u64(credit + 1, taken + FRAME_WINDOW);
	(void)frame_write(client, FRAME_CREDIT, credit, sizeof(credit));
}

/* Reads one frame.  Returns its type, or 0 at the end of the connection. */
static int client_read(struct mover *m)
{
	struct frame frame;
	int rc = frame_read(m->client, &frame, FRAME_DATA_MAX + 64, NULL), type;

	if (rc == FRAME_E_EOF || rc == FRAME_E_CUT || rc == -ECONNRESET)
		return 0;
	assert_int_equal(rc, 0);
	type = frame.type;
	if (type == FRAME_DATA && frame.payload[0] == 2 && frame.length > FRAME_DATA_HEAD)
		fail_msg("%.*s", (int)frame.length - FRAME_DATA_HEAD,
			 (char *)frame.payload + FRAME_DATA_HEAD);
	if (type == FRAME_DATA && frame.payload[0] == 1) {
		assert_int_equal(wire_u64(frame.payload + 1), m->got);
		take_bytes(m, frame.payload + FRAME_DATA_HEAD, frame.length - FRAME_DATA_HEAD);
		give_credit(m->client, m->got);
	}
	frame_free(&frame);
	return type;
}

static void expect_until(struct mover *m, unsigned until)
{
	while (m->next < until)
		assert_true(client_read(m) != 0);
}

static void expect_lines(struct mover *m, unsigned lines)
{
	expect_until(m, m->next + lines);
}

static void send_input(struct mover *m, size_t length)
{
	uint8_t head[FRAME_DATA_HEAD] = {0};

	bytes_put_u64(head + 1, m->given);
	assert_int_equal(frame_write2(m->client, FRAME_DATA, head, sizeof(head),
				      m->input + m->given, (uint32_t)length),
			 0);
	m->given += length;
}

/* "" ends the input. */
static void give(struct mover *m, const char *text)
{
	assert_true(m->given + strlen(text) < sizeof(m->input));
	memcpy(m->input + m->given, text, strlen(text));
	send_input(m, strlen(text));
}

/* --- the agents ---------------------------------------------------------------------------- */

/* Waits for an answer of a control socket. */
static int answer(int fd, struct iocom_err *err)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc = fd;

	if (fd < 0)
		return fd;
	do
		rc = poll(&p, 1, LIMIT_MS) == 1 ? launch_move_answer(fd, err) : -ETIMEDOUT;
	while (rc == -EAGAIN);
	close(fd);
	return rc;
}

static int decide(const struct stage *node, const char *job, enum launch_decision decision)
{
	return answer(launch_decide_ask(node->run, job, decision), &(struct iocom_err){0});
}

static void event_of(int leash, enum launch_event_type type, struct launch_event *event)
{
	int rc = -EAGAIN;

	for (int i = 0; i < 3 && rc == -EAGAIN; i++)
		rc = stage_event(leash, event);
	assert_int_equal(rc, 0);
	if (event->type != type)
		print_message("%s\n", event->text);
	assert_int_equal(event->type, type);
}

/* Starts the shim where M goes.  Its "client" is the stream that the other shim gets. */
static struct job shim_there(struct mover *m)
{
	struct want want = m->want;
	struct job there;

	want.name = m->job.name;
	want.criu = criu.program;
	there = stage_start(&nodes[!m->at], &want);
	assert_int_equal(there.rc, 0);
	return there;
}

/* Returns what the shim of M says. */
static int ask_move(const struct mover *m, const struct job *there, struct iocom_err *err)
{
	return answer(launch_move_ask(nodes[m->at].run, m->job.name, criu.program,
				      stage_records(there), there->client),
		      err);
}

/* Moves M as far as it is held at both. */
static struct job hold(struct mover *m, struct launch_event *event)
{
	struct job there = shim_there(m);
	struct iocom_err err = {0};

	if (ask_move(m, &there, &err))
		fail_msg("%s", err.text);
	close(there.client);
	event_of(m->job.leash, LAUNCH_MOVED, event);
	if (event->failed) {
		print_message("%s\n", event->text);
		event_of(there.leash, LAUNCH_READY, event);
	}
	event_of(there.leash, LAUNCH_READY, &(struct launch_event){0});
	return there;
}

/* A shim says how the job ended there, and leaves nothing. */
static struct launch_event gone(struct mover *m, struct job *shim, unsigned at, int kind)
{
	struct launch_event event;

	event_of(shim->leash, LAUNCH_EXITED, &event);
	assert_int_equal(event.kind, kind);
	close(shim->leash);
	stage_reap(shim);
	assert_false(stage_group_exists(&nodes[at], m->job.name));
	assert_true(launch_forget(nodes[at].jobs, nodes[at].run, m->job.name) <= 0);
	return event;
}

/* The shim that has it now says how much input has arrived; the rest is sent once more. */
static void give_again(struct mover *m)
{
	struct attach_state known;
	struct frame frame;
	uint64_t given = m->given;

	assert_int_equal(frame_read(m->client, &frame, FRAME_DATA_MAX + 64, NULL), 0);
	assert_int_equal(frame.type, FRAME_STARTED);
	attach_state_unpack(&known, frame.payload, frame.length);
	frame_free(&frame);
	assert_true(known.input <= given);
	m->given = known.input;
	if (m->given < given)
		send_input(m, given - m->given);
}

/* The client was cut off, was told no end, and finds the job at the other node. */
static void client_follows(struct mover *m)
{
	struct attach_ask ask = {
		.node = "here",
		.resume = "0",
		.from = {0, m->got, 0},
		.taken = {0, m->got, 0},
	};
	struct launch_ask wish;
	size_t length;
	void *packed;
	int fd[2], type;

	while ((type = client_read(m)) != 0)
		assert_int_not_equal(type, FRAME_EXIT);
	close(m->client);
	ask.from[1] = ask.taken[1] = m->got;
	snprintf(ask.job, sizeof(ask.job), "%s", m->job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish = (struct launch_ask){.packed = packed, .length = length};
	assert_int_equal(launch_attach(nodes[m->at].run, m->job.name, &wish, fd[1]), 0);
	close(fd[1]);
	free(packed);
	m->client = fd[0];
	give_again(m);
}

/* What was held there is the job now. */
static void go(struct mover *m, struct job *there)
{
	assert_int_equal(decide(&nodes[m->at], m->job.name, LAUNCH_LEAVE), 0);
	assert_int_equal(decide(&nodes[!m->at], m->job.name, LAUNCH_GO), 0);
	event_of(there->leash, LAUNCH_STARTED, &(struct launch_event){0});
	gone(m, &m->job, m->at, RECORD_MOVED);
	m->at = !m->at;
	m->job.leash = there->leash;
	m->job.shim = there->shim;
	client_follows(m);
}

static void move(struct mover *m)
{
	struct launch_event event;
	struct job there = hold(m, &event);

	print_message("%u ms frozen, of these %u to save %u KiB\n", (unsigned)event.frozen_ms,
		      (unsigned)event.dump_ms, (unsigned)(event.bytes >> 10));
	go(m, &there);
}

static void end(struct mover *m, int signal)
{
	int type;

	if (signal)
		assert_int_equal(stage_signal(&nodes[m->at], m->job.name, signal), 0);
	while ((type = client_read(m)) != FRAME_EXIT)
		assert_int_not_equal(type, 0);
	assert_int_equal(frame_write(m->client, FRAME_EXIT, NULL, 0), 0);
	close(m->client);
	gone(m, &m->job, m->at, signal ? 1 : 0);
}

static uint64_t cgroup_us(const struct mover *m)
{
	char name[SPEC_JOB_MAX + 32];
	struct cgroup_mounts mounts;
	struct cgroup group;

	assert_int_equal(cgroup_user_job(name, sizeof(name), 0, m->job.name), 0);
	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, nodes[m->at].scope, name, &group, NULL), 0);
	return cgroup_cpu_us(&group);
}

/* --- the tests ----------------------------------------------------------------------------- */

/* There and back again, with no line lost and none doubled. */
static void test_moves(void **state)
{
	struct want want = SH(COUNT);
	struct mover m = begin(&want);

	(void)state;
	for (int i = 0; i < 6; i++) {
		expect_lines(&m, 30);
		move(&m);
	}
	expect_lines(&m, 100);
	end(&m, SIGTERM);
}

static void give_numbers(struct mover *m, unsigned from, unsigned to)
{
	char text[32];

	for (unsigned i = from; i < to; i++) {
		snprintf(text, sizeof(text), "%u\n", i);
		give(m, text);
	}
}

/*
 * What waits in the pipes at that moment goes along: output that nobody reads, more than the shim
 * keeps, and input that the job has not read.
 */
static void test_pipes(void **state)
{
	struct want want = SH("i=0; while [ $i -lt 200000 ]; do echo $i; i=$((i + 1)); done; "
			      "while read x; do echo $x; done; exit 5");
	struct mover m = begin(&want);
	int type;

	(void)state;
	give_numbers(&m, 200000, 201000);
	usleep(1000000);
	move(&m);
	expect_until(&m, 150000);
	move(&m);
	expect_until(&m, 201000);
	give_numbers(&m, 201000, 202000);
	move(&m);
	expect_until(&m, 201500);
	give(&m, "");
	while ((type = client_read(&m)) != FRAME_EXIT)
		assert_int_not_equal(type, 0);
	assert_int_equal(m.next, 202000);
	assert_int_equal(frame_write(m.client, FRAME_EXIT, NULL, 0), 0);
	close(m.client);
	gone(&m, &m.job, m.at, 0);
}

/* It stays: nothing is lost but time, and it may move the next time. */
static void test_stays(void **state)
{
	struct want want = SH(COUNT);
	struct mover m = begin(&want);
	struct launch_event event;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job there;
		unsigned seen;

		expect_lines(&m, 30);
		there = hold(&m, &event);
		seen = m.next;
		assert_int_equal(decide(&nodes[!m.at], m.job.name, LAUNCH_ABORT), 0);
		assert_int_equal(decide(&nodes[!m.at], m.job.name, LAUNCH_GO), -EALREADY);
		gone(&m, &there, !m.at, 3);
		/* While it is held it writes nothing. */
		assert_int_equal(m.next, seen);
		assert_int_equal(decide(&nodes[m.at], m.job.name, LAUNCH_STAY), 0);
		assert_int_equal(decide(&nodes[m.at], m.job.name, LAUNCH_LEAVE), -EALREADY);
		expect_lines(&m, 100);
	}
	move(&m);
	expect_lines(&m, 100);
	end(&m, SIGTERM);
}

/* A signal that comes while it is held reaches it where it goes on, there or here. */
static void test_signals(void **state)
{
	struct want want = SH("exec 2>/dev/null; n=0; trap 'echo $n; n=$((n + 1))' USR1; "
			      "while :; do sleep 0.01; done");
	struct mover m = begin(&want);
	struct launch_event event;
	struct job there;

	(void)state;
	usleep(100000);
	there = hold(&m, &event);
	assert_int_equal(stage_signal(&nodes[m.at], m.job.name, SIGUSR1), 0);
	go(&m, &there);
	expect_lines(&m, 1);
	there = hold(&m, &event);
	assert_int_equal(stage_signal(&nodes[m.at], m.job.name, SIGUSR1), 0);
	assert_int_equal(decide(&nodes[!m.at], m.job.name, LAUNCH_ABORT), 0);
	gone(&m, &there, !m.at, 3);
	assert_int_equal(decide(&nodes[m.at], m.job.name, LAUNCH_STAY), 0);
	expect_lines(&m, 1);
	end(&m, SIGKILL);
}

/* A refusal: the job goes on, and nothing of it is left where it was to go. */
static void expect_refusal(struct mover *m, const char *why)
{
	struct job there = shim_there(m);
	struct launch_event event;
	struct iocom_err err = {0};
	int rc = ask_move(m, &there, &err);

	close(there.client);
	if (!rc) {
		event_of(m->job.leash, LAUNCH_MOVED, &event);
		assert_true(event.failed);
		snprintf(err.text, sizeof(err.text), "%s", event.text);
		assert_int_equal(decide(&nodes[m->at], m->job.name, LAUNCH_STAY), 0);
	}
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
	gone(m, &there, !m->at, 3);
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
	struct want plain = SH(COUNT);
	struct mover m = begin(&talks);

	(void)state;
	expect_lines(&m, 10);
	expect_refusal(&m, "network");
	expect_lines(&m, 100);
	end(&m, SIGTERM);
	plain.migratable = false;
	m = begin(&plain);
	expect_lines(&m, 10);
	expect_refusal(&m, "it was not started with --migratable");
	expect_lines(&m, 100);
	end(&m, SIGTERM);
}

/* The other node is lost while it takes the job: it goes on here. */
static void test_target_dies(void **state)
{
	struct want want = SH(COUNT);
	struct mover m = begin(&want);
	struct launch_event event;
	struct launch_found found;
	struct iocom_err err = {0};
	struct job there;

	(void)state;
	expect_lines(&m, 30);
	there = shim_there(&m);
	kill(there.shim, SIGSTOP);
	assert_int_equal(ask_move(&m, &there, &err), 0);
	close(there.client);
	assert_int_equal(ask_move(&m, &there, &err), -EALREADY);
	usleep(200000);
	kill(there.shim, SIGKILL);
	event_of(m.job.leash, LAUNCH_MOVED, &event);
	assert_true(event.failed);
	assert_int_equal(decide(&nodes[m.at], m.job.name, LAUNCH_STAY), 0);
	expect_lines(&m, 100);
	waitpid(there.shim, NULL, 0);
	close(there.leash);
	(void)launch_outcome(nodes[!m.at].jobs, nodes[!m.at].run, m.job.name, &found);
	(void)launch_forget(nodes[!m.at].jobs, nodes[!m.at].run, m.job.name);
	move(&m);
	expect_lines(&m, 100);
	end(&m, SIGTERM);
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
	struct want want = SH(COUNT);
	struct mover m = begin(&want);
	struct launch_found here, there;
	struct launch_event event;
	struct iocom_err err = {0};
	struct job shim;

	(void)state;
	expect_lines(&m, 30);
	shim = hold(&m, &event);
	close(shim.leash);
	close(m.job.leash);
	snprintf(here.job, sizeof(here.job), "%s", m.job.name);
	snprintf(there.job, sizeof(there.job), "%s", m.job.name);
	assert_int_equal(launch_recover(nodes[0].jobs, nodes[0].run, take_found, &here, &err), 0);
	assert_int_equal(launch_recover(nodes[1].jobs, nodes[1].run, take_found, &there, &err), 0);
	/* Who does not answer within a moment answers on the leash. */
	m.job.leash = here.leash;
	if (!here.started.pid)
		event_of(m.job.leash, LAUNCH_STARTED, &event);
	event_of(m.job.leash, LAUNCH_MOVED, &event);
	assert_false(event.failed);
	assert_true(event.bytes > 0);
	shim.leash = there.leash;
	if (there.started.type != LAUNCH_READY)
		event_of(shim.leash, LAUNCH_READY, &event);
	go(&m, &shim);
	expect_lines(&m, 100);
	end(&m, SIGTERM);
}

/* The shim where it was is lost once it is held: it goes on there. */
static void test_source_dies(void **state)
{
	struct want want = SH(COUNT);
	struct mover m = begin(&want);
	struct launch_event event;
	struct launch_found found;
	struct job there;
	int status;

	(void)state;
	expect_lines(&m, 30);
	there = hold(&m, &event);
	kill(m.job.shim, SIGKILL);
	waitpid(m.job.shim, &status, 0);
	close(m.job.leash);
	assert_int_equal(launch_outcome(nodes[m.at].jobs, nodes[m.at].run, m.job.name, &found), 0);
	(void)launch_forget(nodes[m.at].jobs, nodes[m.at].run, m.job.name);
	assert_int_equal(decide(&nodes[!m.at], m.job.name, LAUNCH_GO), 0);
	event_of(there.leash, LAUNCH_STARTED, &event);
	m.at = !m.at;
	m.job.leash = there.leash;
	m.job.shim = there.shim;
	client_follows(&m);
	expect_lines(&m, 100);
	end(&m, SIGTERM);
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
		give_credit(fd, at);
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
	struct want want = SH("i=0; while [ $i -lt 300000 ]; do echo $i; i=$((i + 1)); "
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
	m = begin(&want);
	close(m.client);
	for (int i = 0; i < 3; i++) {
		struct job there;

		usleep(200000);
		there = hold(&m, &event);
		assert_int_equal(decide(&nodes[m.at], m.job.name, LAUNCH_LEAVE), 0);
		assert_int_equal(decide(&nodes[!m.at], m.job.name, LAUNCH_GO), 0);
		event_of(there.leash, LAUNCH_STARTED, &event);
		gone(&m, &m.job, m.at, RECORD_MOVED);
		m.at = !m.at;
		m.job.leash = there.leash;
		m.job.shim = there.shim;
	}
	event_of(m.job.leash, LAUNCH_EXITED, &event);
	assert_int_equal(event.value, 3);
	close(m.job.leash);
	stage_reap(&m.job);
	snprintf(ask.job, sizeof(ask.job), "%s", m.job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	wish = (struct launch_ask){.packed = packed, .length = length};
	stage_pair(fd);
	assert_int_equal(launch_replay(nodes[m.at].shim, nodes[m.at].scope, nodes[m.at].jobs, NULL,
				       0, &wish, fd[1], &leash, &(struct iocom_err){0}),
			 0);
	free(packed);
	assert_int_equal(read_kept(fd[0]), 300000);
	close(fd[0]);
	close(leash);
	record_remove(nodes[m.at].jobs, m.job.name);
}

/* It ends, with its own status, where it came. */
static void test_status(void **state)
{
	struct want want = SH("echo 0; sleep 1; exit 9");
	struct mover m = begin(&want);
	struct frame frame;

	(void)state;
	expect_lines(&m, 1);
	move(&m);
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
	gone(&m, &m.job, m.at, 0);
}

/* What it used before it moved counts, too: its CPU time, and the time since it began. */
static void test_account(void **state)
{
	struct want want = SH("i=0; while [ $i -lt 500000 ]; do i=$((i + 1)); done; echo 0; "
			      "sleep 0.5; echo 1; sleep 0.5");
	struct mover m = begin(&want);
	struct launch_event event;
	uint64_t begin_ms = clock_boot_ms();
	uint64_t burnt_us;

	(void)state;
	expect_until(&m, 1);
	burnt_us = cgroup_us(&m);
	assert_true(burnt_us > 10000);
	move(&m);
	while (client_read(&m) != FRAME_EXIT)
		;
	assert_int_equal(frame_write(m.client, FRAME_EXIT, NULL, 0), 0);
	close(m.client);
	event = gone(&m, &m.job, m.at, 0);
	assert_true(event.cpu_us >= burnt_us);
	/* criu's own work is less than what a second such loop would be. */
	assert_true(event.cpu_us < burnt_us + 1000000);
	assert_true(event.wall_ms >= 1000);
	assert_true(event.wall_ms <= clock_boot_ms() - begin_ms + 100);
}

static int nodes_up(void **state)
{
	(void)state;
	return stage_up(&nodes[0]) || stage_up(&nodes[1]) ? -1 : 0;
}

static int nodes_down(void **state)
{
	(void)state;
	stage_down(&nodes[0]);
	stage_down(&nodes[1]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),	       cmocka_unit_test(test_pipes),
		cmocka_unit_test(test_stays),	       cmocka_unit_test(test_signals),
		cmocka_unit_test(test_refusals),       cmocka_unit_test(test_status),
		cmocka_unit_test(test_account),	       cmocka_unit_test(test_detached),
		cmocka_unit_test(test_agents_restart), cmocka_unit_test(test_target_dies),
		cmocka_unit_test(test_source_dies),
	};

	if (!criu_to_test(&criu))
		return 0;
	return cmocka_run_group_tests_name("move", tests, nodes_up, nodes_down);
}
