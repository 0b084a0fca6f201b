/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A part of a gang: the shim starts its launcher as the job's user and passes messages between it
 * and the client.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/stage.h"
#include "user/frame.h"
#include "user/gang_plan.h"
#include "user/wire.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}

static void add_plan(struct want *want, enum gang_launch launch)
{
	struct gang_node node = {.name = "here", .tasks = 2};
	uint32_t ranks[] = {0, 1};
	const struct gang_plan plan = {.gang = "stage",
				       .launch = launch,
				       .tasks = 2,
				       .nnodes = 1,
				       .nodes = &node,
				       .ranks = ranks};
	struct iocom_err err;

	assert_int_equal(gang_plan_pack(&plan, &want->gang, &want->gang_length, &err), 0);
}

/* What a client has heard by hand. */
static struct heard {
	char out[4096], err[4096];
	size_t length[2];
	struct gang_message last;
	unsigned messages;
	uint8_t kind;
	uint32_t value;
	char text[256];
} heard;

/* Reads frames until one of TYPE comes.  Returns false at the end of the stream. */
static bool hear_until(int fd, uint8_t type)
{
	struct frame frame;
	bool found = false;

	while (!found && !frame_read(fd, &frame, FRAME_PAYLOAD_MAX, NULL)) {
		found = frame.type == type;
		if (frame.type == FRAME_DATA && frame.payload[0] &&
		    frame.length > FRAME_DATA_HEAD) {
			int k = frame.payload[0] - 1;
			size_t n = frame.length - FRAME_DATA_HEAD;
			char *to = k ? heard.err : heard.out;

			assert_true(heard.length[k] + n < sizeof(heard.out));
			memcpy(to + heard.length[k], frame.payload + FRAME_DATA_HEAD, n);
			heard.length[k] += n;
		}
		if (frame.type == FRAME_GANG) {
			assert_int_equal(
				gang_message_unpack(&heard.last, frame.payload, frame.length), 0);
			heard.messages++;
		}
		if (frame.type == FRAME_EXIT) {
			heard.kind = frame.payload[0];
			heard.value = wire_u32(frame.payload + 1);
			snprintf(heard.text, sizeof(heard.text), "%s", frame.payload + 5);
		}
		frame_free(&frame);
	}
	return found;
}

static struct job begin(struct stage *stage, struct want *want, enum gang_launch launch)
{
	struct job job;

	memset(&heard, 0, sizeof(heard));
	add_plan(want, launch);
	job = stage_start(stage, want);
	free(want->gang);
	assert_int_equal(job.rc, 0);
	return job;
}

static void say_go(int fd)
{
	const struct gang_message message = {.type = GANG_GO};
	uint8_t data[GANG_MESSAGE_MAX];
	size_t n = gang_message_pack(&message, data);

	assert_int_equal(frame_write(fd, FRAME_GANG, data, (uint32_t)n), 0);
}

static void end(struct job *job)
{
	if (!heard.text[0])
		frame_write(job->client, FRAME_EXIT, NULL, 0);
	close(job->client);
	close(job->leash);
	stage_reap(job);
}

static void test_part(void **state)
{
	struct want want = SH("echo $IOCOM_TASK `id -u`; echo bad >&2");
	struct job job = begin(*state, &want, GANG_LAUNCH_TASKS);

	assert_true(hear_until(job.client, FRAME_GANG));
	assert_int_equal(heard.last.type, GANG_READY);
	assert_int_equal(heard.length[0], 0);
	say_go(job.client);
	assert_true(hear_until(job.client, FRAME_GANG));
	assert_int_equal(heard.last.type, GANG_BEGUN);
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.kind, 0);
	assert_int_equal(heard.value, 0);
	assert_non_null(strstr(heard.out, "0 65534\n"));
	assert_non_null(strstr(heard.out, "1 65534\n"));
	assert_string_equal(heard.err, "bad\nbad\n");
	end(&job);
}

/* The reason comes before the end, and leftovers that do not heed TERM are killed. */
static void test_failure(void **state)
{
	struct want want = SH("trap '' TERM; [ $IOCOM_TASK = 1 ] && { sleep 0.1; exit 9; }; "
			      "sleep 977.75; sleep 977.75");
	struct job job = begin(*state, &want, GANG_LAUNCH_TASKS);

	assert_true(hear_until(job.client, FRAME_GANG));
	say_go(job.client);
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.last.type, GANG_FAILED);
	assert_int_equal(heard.last.rank, 1);
	assert_int_equal(heard.last.value, 9);
	assert_int_equal(heard.messages, 3);
	assert_int_equal(heard.value, 9);
	assert_string_equal(heard.text, "task 1 on here ended with status 9");
	assert_int_equal(stage_count("sleep", "977.75"), 0);
	end(&job);
}

/* What fails after it was told to end is not to blame. */
static void test_told_to_end(void **state)
{
	struct want want = SH("trap 'exit 9' TERM; echo x; while :; do sleep 0.02; done");
	struct job job = begin(*state, &want, GANG_LAUNCH_TASKS);

	assert_true(hear_until(job.client, FRAME_GANG));
	say_go(job.client);
	while (heard.length[0] < 4)
		assert_true(hear_until(job.client, FRAME_DATA));
	stage_signal(*state, job.name, SIGTERM);
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.value, 9);
	assert_string_equal(heard.text, GANG_TOLD_TO_END);
	end(&job);
}

/* A client that lost its connection hears again what was said. */
static void test_again(void **state)
{
	struct want want = SH("exec sleep 977.76");
	struct stage *stage = *state;
	struct attach_ask ask = {.node = "here", .resume = "0", .take = true};
	struct launch_ask wish = {0};
	struct launch_event event;
	struct job job;
	int fd[2];
	size_t length;
	void *packed;

	want.grace_ms = 20000;
	job = begin(stage, &want, GANG_LAUNCH_TASKS);
	assert_true(hear_until(job.client, FRAME_GANG));
	say_go(job.client);
	assert_true(hear_until(job.client, FRAME_GANG));
	close(job.client);
	assert_int_equal(stage_event(job.leash, &event), 0);
	memset(&heard, 0, sizeof(heard));

	snprintf(ask.job, sizeof(ask.job), "%s", job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish.packed = packed;
	wish.length = length;
	assert_int_equal(launch_attach(stage->run, job.name, &wish, fd[1]), 0);
	close(fd[1]);
	free(packed);
	job.client = fd[0];
	assert_true(hear_until(fd[0], FRAME_GANG));
	assert_int_equal(heard.last.type, GANG_READY);
	assert_true(hear_until(fd[0], FRAME_GANG));
	assert_int_equal(heard.last.type, GANG_BEGUN);
	stage_signal(stage, job.name, SIGKILL);
	assert_true(hear_until(fd[0], FRAME_EXIT));
	/* The launcher is killed, or its task a moment before it. */
	assert_int_equal(heard.value, heard.kind == 1 ? SIGKILL : 128 + SIGKILL);
	end(&job);
}

static void test_no_launcher(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state, elsewhere = *stage;
	char command[9000];
	struct job job;

	/* A shim without launchers beside it. */
	snprintf(elsewhere.shim, sizeof(elsewhere.shim), "%s/bare-shim", stage->dir);
	snprintf(command, sizeof(command), "cp %s %s", stage->shim, elsewhere.shim);
	assert_int_equal(system(command), 0);
	job = begin(&elsewhere, &want, GANG_LAUNCH_PMIX);
	stage->sequence = elsewhere.sequence;
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.kind, 3);
	assert_non_null(strstr(heard.text, "node here has no iocom-pmix ("));
	assert_non_null(strstr(heard.text, "which starts MPI programs by PMIx there; install it"));
	end(&job);
	unlink(elsewhere.shim);
}

static void test_no_command(void **state)
{
	struct want want = {.argv = {"/nonexistent/program", NULL}};
	struct job job = begin(*state, &want, GANG_LAUNCH_TASKS);

	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.kind, 2);
	assert_int_equal(heard.value, 127);
	assert_string_equal(heard.text, "/nonexistent/program: command not found on node here");
	end(&job);
}

static void test_bad_plan(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state;
	struct job job;

	memset(&heard, 0, sizeof(heard));
	want.gang = (void *)"\x80";
	want.gang_length = 1;
	job = stage_start(stage, &want);
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.kind, 3);
	end(&job);

	/* A plan whose tasks start themselves has no launcher. */
	job = begin(stage, &want, GANG_LAUNCH_NONE);
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_string_equal(heard.text, "the plan of gang stage has no launcher");
	end(&job);
}

/* A message for a gang breaks the stream of an ordinary job. */
static void test_no_gang(void **state)
{
	struct want want = SH("sleep 977.8");
	struct job job;

	memset(&heard, 0, sizeof(heard));
	job = stage_start(*state, &want);
	assert_true(hear_until(job.client, FRAME_STARTED));
	say_go(job.client);
	assert_false(hear_until(job.client, FRAME_EXIT));
	end(&job);
	assert_int_equal(stage_count("sleep", "977.8"), 0);
}

/* The client may say what it likes, often: the launcher obeys the first GO. */
static void test_many_messages(void **state)
{
	struct want want = SH("echo alive");
	struct job job = begin(*state, &want, GANG_LAUNCH_TASKS);

	assert_true(hear_until(job.client, FRAME_GANG));
	for (int i = 0; i < 500; i++)
		say_go(job.client);
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.value, 0);
	assert_string_equal(heard.out, "alive\nalive\n");
	end(&job);
}

/* A launcher that says too much is cut off, and its output comes all the same. */
static void test_flood(void **state)
{
	struct want want = SH("true");
	struct stage *stage = *state, elsewhere = *stage;
	const struct gang_message ready = {.type = GANG_READY};
	uint8_t data[GANG_MESSAGE_MAX];
	size_t n = gang_message_pack(&ready, data);
	char path[256], command[9000];
	struct job job;
	FILE *file;

	snprintf(elsewhere.shim, sizeof(elsewhere.shim), "%s/iocom-shim", stage->dir);
	snprintf(command, sizeof(command), "cp %s %s && chmod 755 %s", stage->shim, elsewhere.shim,
		 stage->dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/iocom-tasks", stage->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/bash\nfor i in {1..100}; do printf '");
	for (size_t i = 0; i < n; i++)
		fprintf(file, "\\x%02x", data[i]);
	fprintf(file, "' >&$2; done 2>/dev/null\nhead -c 3000 /dev/zero | tr '\\0' x\nexit 7\n");
	fclose(file);
	assert_int_equal(chmod(path, 0755), 0);

	job = begin(&elsewhere, &want, GANG_LAUNCH_TASKS);
	stage->sequence = elsewhere.sequence;
	assert_true(hear_until(job.client, FRAME_EXIT));
	assert_int_equal(heard.messages, 8);
	assert_int_equal(heard.value, 7);
	assert_int_equal(heard.length[0], 3000);
	end(&job);
	unlink(elsewhere.shim);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part),	      cmocka_unit_test(test_failure),
		cmocka_unit_test(test_told_to_end),   cmocka_unit_test(test_again),
		cmocka_unit_test(test_no_launcher),   cmocka_unit_test(test_no_command),
		cmocka_unit_test(test_bad_plan),      cmocka_unit_test(test_no_gang),
		cmocka_unit_test(test_many_messages), cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests_name("gang", tests, stage_setup, stage_teardown);
}
