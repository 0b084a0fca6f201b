/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See mover.h. */
#include "tests/lib/mover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/channel/bytes.h"
#include "user/frame.h"
#include "user/record.h"
#include "user/wire.h"

struct criu mover_criu;
struct stage mover_nodes[2];

struct mover mover_begin(const struct want *want)
{
	struct mover m = {.want = *want};
	struct launch_event event;

	m.job = stage_start(&mover_nodes[0], &m.want);
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

void mover_credit(int client, uint64_t taken)
{
	uint8_t credit[FRAME_DATA_HEAD] = {1};

	bytes_put_u64(credit + 1, taken + FRAME_WINDOW);
	(void)frame_write(client, FRAME_CREDIT, credit, sizeof(credit));
}

int mover_read(struct mover *m)
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
		mover_credit(m->client, m->got);
	}
	frame_free(&frame);
	return type;
}

void mover_expect_until(struct mover *m, unsigned until)
{
	while (m->next < until)
		assert_true(mover_read(m) != 0);
}

void mover_expect(struct mover *m, unsigned lines)
{
	mover_expect_until(m, m->next + lines);
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

void mover_give(struct mover *m, const char *text)
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
		rc = poll(&p, 1, MOVER_LIMIT_MS) == 1 ? launch_move_answer(fd, err) : -ETIMEDOUT;
	while (rc == -EAGAIN);
	close(fd);
	return rc;
}

int mover_decide(const struct stage *node, const char *job, enum launch_decision decision)
{
	return answer(launch_decide_ask(node->run, job, decision), &(struct iocom_err){0});
}

void mover_event(int leash, enum launch_event_type type, struct launch_event *event)
{
	int rc = -EAGAIN;

	for (int i = 0; i < 3 && rc == -EAGAIN; i++)
		rc = stage_event(leash, event);
	assert_int_equal(rc, 0);
	if (event->type != type)
		print_message("%s\n", event->text);
	assert_int_equal(event->type, type);
}

struct job mover_there(struct mover *m)
{
	struct want want = m->want;
	struct job there;

	want.name = m->job.name;
	want.criu = mover_criu.program;
	there = stage_start(&mover_nodes[!m->at], &want);
	assert_int_equal(there.rc, 0);
	return there;
}

int mover_ask(const struct mover *m, const struct job *there, struct iocom_err *err)
{
	return answer(launch_move_ask(mover_nodes[m->at].run, m->job.name, mover_criu.program, true,
				      stage_records(there), there->client),
		      err);
}

struct job mover_hold(struct mover *m, struct launch_event *event)
{
	struct job there = mover_there(m);
	struct iocom_err err = {0};

	if (mover_ask(m, &there, &err))
		fail_msg("%s", err.text);
	close(there.client);
	mover_event(m->job.leash, LAUNCH_MOVED, event);
	if (event->failed) {
		print_message("%s\n", event->text);
		mover_event(there.leash, LAUNCH_READY, event);
	}
	mover_event(there.leash, LAUNCH_READY, &(struct launch_event){0});
	return there;
}

struct launch_event mover_gone(struct mover *m, struct job *shim, unsigned at, int kind)
{
	struct launch_event event;

	mover_event(shim->leash, LAUNCH_EXITED, &event);
	assert_int_equal(event.kind, kind);
	close(shim->leash);
	stage_reap(shim);
	assert_false(stage_group_exists(&mover_nodes[at], m->job.name));
	assert_true(launch_forget(mover_nodes[at].jobs, mover_nodes[at].run, m->job.name) <= 0);
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

void mover_follow(struct mover *m)
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

	while ((type = mover_read(m)) != 0)
		assert_int_not_equal(type, FRAME_EXIT);
	close(m->client);
	ask.from[1] = ask.taken[1] = m->got;
	snprintf(ask.job, sizeof(ask.job), "%s", m->job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish = (struct launch_ask){.packed = packed, .length = length};
	assert_int_equal(launch_attach(mover_nodes[m->at].run, m->job.name, &wish, fd[1]), 0);
	close(fd[1]);
	free(packed);
	m->client = fd[0];
	give_again(m);
}

void mover_go(struct mover *m, struct job *there)
{
	assert_int_equal(mover_decide(&mover_nodes[m->at], m->job.name, LAUNCH_LEAVE), 0);
	assert_int_equal(mover_decide(&mover_nodes[!m->at], m->job.name, LAUNCH_GO), 0);
	mover_event(there->leash, LAUNCH_STARTED, &(struct launch_event){0});
	mover_gone(m, &m->job, m->at, RECORD_MOVED);
	m->at = !m->at;
	m->job.leash = there->leash;
	m->job.shim = there->shim;
	mover_follow(m);
}

void mover_move(struct mover *m)
{
	struct launch_event event;
	struct job there = mover_hold(m, &event);

	print_message("%u ms frozen, of these %u to save %u KiB\n", (unsigned)event.frozen_ms,
		      (unsigned)event.dump_ms, (unsigned)(event.bytes >> 10));
	mover_go(m, &there);
}

void mover_end(struct mover *m, int signal)
{
	int type;

	if (signal > 0)
		assert_int_equal(stage_signal(&mover_nodes[m->at], m->job.name, signal), 0);
	while ((type = mover_read(m)) != FRAME_EXIT)
		assert_int_not_equal(type, 0);
	assert_int_equal(frame_write(m->client, FRAME_EXIT, NULL, 0), 0);
	close(m->client);
	mover_gone(m, &m->job, m->at, signal ? 1 : 0);
}

int mover_up(void **state)
{
	(void)state;
	return stage_up(&mover_nodes[0]) || stage_up(&mover_nodes[1]) ? -1 : 0;
}

int mover_down(void **state)
{
	(void)state;
	stage_down(&mover_nodes[0]);
	stage_down(&mover_nodes[1]);
	return 0;
}
