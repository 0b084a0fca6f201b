/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that attach later: after a cut, from elsewhere, after the end; and detached jobs. */
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/frame.h"
#include "user/record.h"
#include "agent/shim/order.h"
#include "tests/lib/stage.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}

/* Asks for JOB at FROM. Returns the client's end, or a negative errno. */
static int ask_as(const struct stage *stage, const char *job, uint64_t out, uint64_t err,
		  const char *resume, const char *jobs, bool take)
{
	struct attach_ask ask = {
		.node = "here",
		.take = take,
		.from = {0, out, err},
		.taken = {0, out == ATTACH_FIRST ? 0 : out, err == ATTACH_FIRST ? 0 : err}};
	struct launch_ask wish;
	size_t length;
	void *packed;
	int fd[2], leash, rc;

	snprintf(ask.job, sizeof(ask.job), "%s", job);
	snprintf(ask.resume, sizeof(ask.resume), "%s", resume);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish = (struct launch_ask){.packed = packed, .length = length};
	rc = launch_attach(stage->run, job, &wish, fd[1]);
	if (rc == -ESRCH && jobs) {
		rc = launch_replay(stage->shim, stage->scope, jobs, NULL, 0, &wish, fd[1], &leash,
				   NULL);
		assert_int_equal(rc, 0);
		close(leash);
	} else {
		close(fd[1]);
	}
	free(packed);
	if (!rc)
		return fd[0];
	close(fd[0]);
	return rc;
}

/* Asks as a client that takes the job from its present one. */
static int ask_for(const struct stage *stage, const char *job, uint64_t out, uint64_t err,
		   const char *resume, const char *jobs)
{
	return ask_as(stage, job, out, err, resume, jobs, true);
}

/* Plays the client CLIENT to its end, with its output in stage->out and stage->err. */
static int play(const struct stage *stage, int client, struct run_result *result)
{
	struct run_stream_options options = {
		.stdio = {-1, open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
			  open(stage->err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)},
	};
	int status = run_stream(&options, client, result);

	close(options.stdio[1]);
	close(options.stdio[2]);
	return status;
}

static int play_again(const struct stage *stage, const char *job, uint64_t out,
		      struct run_result *result)
{
	int fd = ask_for(stage, job, out, ATTACH_FIRST, "", stage->jobs);

	assert_true(fd >= 0);
	return play(stage, fd, result);
}

/* Reads frames by hand until one of TYPE comes; its payload stays in FRAME. */
static void await_frame(int fd, uint8_t type, struct frame *frame)
{
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(frame_read(fd, frame, FRAME_DATA_MAX + 64, NULL), 0);
		if (frame->type == type)
			return;
		frame_free(frame);
	}
	fail();
}

static void expect_error(int fd, const char *words)
{
	struct frame frame;

	assert_true(fd >= 0);
	await_frame(fd, FRAME_ERROR, &frame);
	if (!strstr((char *)frame.payload, words))
		fail_msg("'%s' is not in '%s'", words, (char *)frame.payload);
	frame_free(&frame);
	close(fd);
}

static void finish(const struct stage *stage, struct job *job)
{
	close(job->leash);
	stage_reap(job);
	record_remove(stage->jobs, job->name);
}

/* Reads output of stream 1 by hand into OUT, at least TOTAL bytes. */
static size_t read_output(int client, uint8_t *out, size_t total, size_t room)
{
	size_t have = 0;
	struct frame frame;

	while (have < total) {
		await_frame(client, FRAME_DATA, &frame);
		assert_int_equal(frame.payload[0], 1);
		assert_int_equal(wire_u64(frame.payload + 1), have);
		assert_true(have + frame.length - FRAME_DATA_HEAD <= room);
		memcpy(out + have, frame.payload + FRAME_DATA_HEAD, frame.length - FRAME_DATA_HEAD);
		have += frame.length - FRAME_DATA_HEAD;
		frame_free(&frame);
	}
	return have;
}

struct again {
	struct stage *stage;
	const char *job;
	unsigned count;
	bool refuse;
};

static int come_again(void *arg, const struct attach_ask *ask, struct records *records,
		      bool *secure)
{
	struct again *again = arg;

	(void)secure; /* as before */
	(void)records;
	again->count++;
	if (again->refuse)
		return -ECONNREFUSED;
	return ask_for(again->stage, again->job, ask->from[1], ask->from[2], ask->resume, NULL);
}

/* --- a client that was killed, and one that attaches later --- */

#define BULK (3u << 20)

/* Checks the bytes of a counter, four each: any gap or repeat shows. */
#define COUNT                                                                                      \
	"import sys,struct\n"                                                                      \
	"for i in range(12): sys.stdout.buffer.write(b''.join(struct.pack('>I',i*65536+k) "        \
	"for k in range(65536)))\n"

static void check_count(const uint8_t *data, size_t first, size_t length)
{
	for (size_t i = (first + 3) / 4; 4 * i + 4 <= first + length; i++)
		assert_int_equal(wire_u32(data + 4 * i - first), i);
}

static void test_killed_client(void **state)
{
	struct want want = {.argv = {"/usr/bin/python3", "-c", COUNT, NULL}, .grace_ms = 20000};
	static uint8_t first[BULK];
	struct stage *stage = *state;
	struct run_result result;
	struct job job;
	struct stat st;
	uint8_t *rest;
	size_t have;
	int fd;

	if (access("/usr/bin/python3", X_OK))
		skip();
	job = stage_start(stage, &want);
	/* The client gets some bytes, confirms none, and is gone. */
	have = read_output(job.client, first, 200000, sizeof(first));
	check_count(first, 0, have);
	close(job.client);
	usleep(100000);
	assert_int_equal(play_again(stage, job.name, have, &result), 0);
	assert_int_equal(stat(stage->out, &st), 0);
	assert_int_equal(have + (size_t)st.st_size, BULK);
	fd = open(stage->out, O_RDONLY | O_CLOEXEC);
	rest = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, rest, (size_t)st.st_size), st.st_size);
	check_count(rest, have, (size_t)st.st_size);
	free(rest);
	close(fd);
	finish(stage, &job);
}

/* Without an offset it begins at the first byte that no client confirmed. */
static void test_attach_first(void **state)
{
	struct want want = SH("echo one; read x; echo two; exit 4");
	struct stage *stage = *state;
	struct launch_event event;
	struct run_result result;
	struct job job;

	want.grace_ms = 20000;
	job = stage_start(stage, &want);
	close(job.client);
	/* Only then its shim takes clients. */
	assert_int_equal(stage_event(job.leash, &event), 0);
	{
		/* The end of the input makes the job write its second line. */
		struct run_stream_options options = {
			.stdio = {open("/dev/null", O_RDONLY | O_CLOEXEC),
				  open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
				  -1},
		};
		int fd = ask_for(stage, job.name, ATTACH_FIRST, ATTACH_FIRST, "", NULL);

		assert_int_equal(run_stream(&options, fd, &result), 4);
		close(options.stdio[0]);
		close(options.stdio[1]);
	}
	assert_string_equal(stage_read(stage->out), "one\ntwo\n");
	finish(stage, &job);
}

/* No client comes back: the grace ends the job, as without attach. */
static void test_nobody_comes(void **state)
{
	struct want want = {.argv = {"sleep", "975", NULL}, .grace_ms = 300};
	struct stage *stage = *state;
	struct launch_event event;
	struct job job = stage_start(stage, &want);

	assert_int_equal(stage_event(job.leash, &event), 0);
	close(job.client);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.value, SIGKILL);
	assert_int_equal(stage_count("sleep", "975"), 0);
	finish(stage, &job);
}

/* Impossible offsets are refused with numbers, and the job goes on. */
static void test_bad_offsets(void **state)
{
	struct want want = SH("head -c 1000 /dev/zero; sleep 974");
	struct stage *stage = *state;
	uint8_t data[4096];
	struct job job;
	int fd;

	want.grace_ms = 20000;
	job = stage_start(stage, &want);
	assert_int_equal(read_output(job.client, data, 1000, sizeof(data)), 1000);
	expect_error(ask_for(stage, job.name, 5000, 0, "", NULL), "it ends at 1000");
	expect_error(ask_for(stage, job.name, 0, 7, "", NULL), "it ends at 0");
	/* What a client confirmed is not kept any more. */
	fd = ask_for(stage, job.name, 600, 0, "", NULL);
	expect_error(job.client, "from elsewhere");
	expect_error(ask_for(stage, job.name, 0, 0, "", NULL), "the first kept byte is 600");
	for (int i = 0; i < 500 && stage_count("sleep", "974") != 1; i++)
		usleep(10000); /* perhaps the shell has not started it yet */
	assert_int_equal(stage_count("sleep", "974"), 1);
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	close(fd);
	finish(stage, &job);
}

/* --- another terminal --- */

/* A client that does not ask to take the job gets none that has a client, and changes nothing. */
static void test_not_taken(void **state)
{
	struct want want = SH("echo one; read x; echo two; exit 5");
	struct stage *stage = *state;
	struct job job;
	char data[8];
	int fd;

	want.grace_ms = 20000;
	job = stage_start(stage, &want);
	assert_int_equal(read_output(job.client, (uint8_t *)data, 4, sizeof(data)), 4);
	expect_error(ask_as(stage, job.name, 0, 0, "", NULL, false),
		     "is attached at 127.0.0.1; --take");
	expect_error(ask_as(stage, job.name, ATTACH_FIRST, 0, "", NULL, false), "--take takes it");
	/* A client that is gone blocks nobody. */
	close(job.client);
	fd = ask_as(stage, job.name, 0, 0, "", NULL, false);
	assert_int_equal(read_output(fd, (uint8_t *)data, 4, sizeof(data)), 4);
	assert_memory_equal(data, "one\n", 4);
	/* And the new one is now the job's client. */
	expect_error(ask_as(stage, job.name, 0, 0, "", NULL, false), "--take");
	close(fd);
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	finish(stage, &job);
}

static void test_taken_over(void **state)
{
	struct want want = SH("echo one; read x; echo two; exit 5");
	struct stage *stage = *state;
	struct run_result result;
	char one[4];
	struct job job;
	int fd[2], status, again;
	pid_t pid;

	want.grace_ms = 20000;
	job = stage_start(stage, &want);
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct attach_ask self = {.node = "here", .resume = "0"};
		struct again none = {.stage = stage, .job = job.name};
		struct run_stream_options options = {.stdio = {-1, fd[1], -1},
						     .again = come_again,
						     .again_ms = 5000,
						     .self = &self,
						     .arg = &none};

		snprintf(self.job, sizeof(self.job), "%s", job.name);
		status = run_stream(&options, job.client, &result);
		/* The client was told that it lost the job, and did not try to get it back. */
		_exit(status == 255 && strstr(result.text, "from elsewhere") && !none.count ? 0
											    : 1);
	}
	close(job.client);
	close(fd[1]);
	assert_int_equal(read(fd[0], one, 4), 4);
	again = ask_for(stage, job.name, ATTACH_FIRST, ATTACH_FIRST, "", NULL);
	assert_true(again >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd[0]);
	close(again);
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	finish(stage, &job);
}

/* A superseded client may not resume; the job's present client may. */
static void test_resume_is_bound(void **state)
{
	struct want want = {.argv = {"sleep", "973", NULL}, .grace_ms = 20000};
	struct stage *stage = *state;
	struct frame frame;
	struct job job = stage_start(stage, &want);
	int fd;

	await_frame(job.client, FRAME_STARTED, &frame);
	frame_free(&frame);
	close(job.client);
	expect_error(ask_for(stage, job.name, 0, 0, "0123", NULL), "from elsewhere");
	fd = ask_for(stage, job.name, 0, 0, "0", NULL); /* the nonce of the stage's jobs */
	await_frame(fd, FRAME_STARTED, &frame);
	frame_free(&frame);
	close(fd);
	fd = ask_for(stage, job.name, 0, 0, "", NULL); /* another nonce */
	await_frame(fd, FRAME_STARTED, &frame);
	frame_free(&frame);
	expect_error(ask_for(stage, job.name, 0, 0, "0", NULL), "from elsewhere");
	close(fd);
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	finish(stage, &job);
}

/* --- the client itself comes back --- */

/*
 * Stands between both ends so that the test can cut: copies until AFTER bytes went to the
 * client.
 */
static pid_t cut_between(int client, int shim, size_t after)
{
	pid_t pid = fork();
	char data[16384];
	size_t done = 0;

	if (pid)
		return pid;
	while (done < after) {
		struct pollfd p[2] = {{.fd = client, .events = POLLIN},
				      {.fd = shim, .events = POLLIN}};
		ssize_t n;

		poll(p, 2, -1);
		if (p[1].revents) {
			n = read(shim, data, sizeof(data));
			if (n <= 0 || write(client, data, (size_t)n) != n)
				break;
			done += (size_t)n;
		}
		if (p[0].revents) {
			n = read(client, data, sizeof(data));
			if (n <= 0 || write(shim, data, (size_t)n) != n)
				break;
		}
	}
	_exit(0);
}

static void run_with_cut(struct stage *stage, bool refuse, uint32_t again_ms, int expected)
{
	struct want want = {.argv = {"cat", NULL}, .grace_ms = 15000};
	struct attach_ask self = {.node = "here", .resume = "0"};
	struct again again = {.stage = stage, .refuse = refuse};
	struct run_stream_options options = {
		.again = come_again, .again_ms = again_ms, .self = &self, .arg = &again};
	struct run_result result;
	char in[128], command[400];
	struct job job;
	int fd[2], status;
	pid_t pid;

	snprintf(in, sizeof(in), "%s/in", stage->dir);
	snprintf(command, sizeof(command), "head -c 5000000 /dev/urandom >%s", in);
	assert_int_equal(system(command), 0);
	job = stage_start(stage, &want);
	again.job = job.name;
	snprintf(self.job, sizeof(self.job), "%s", job.name);
	stage_pair(fd);
	pid = cut_between(fd[1], job.client, 1500000);
	close(fd[1]);
	close(job.client);
	options.stdio[0] = open(in, O_RDONLY | O_CLOEXEC);
	options.stdio[1] = open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	options.stdio[2] = -1;
	status = run_stream(&options, fd[0], &result);
	if (status != expected)
		print_message("# after %u attempts: %s\n", again.count, result.text);
	assert_int_equal(status, expected);
	waitpid(pid, NULL, 0);
	assert_true(again.count >= 1);
	if (!expected) {
		snprintf(command, sizeof(command), "cmp %s %s", in, stage->out);
		assert_int_equal(system(command), 0);
	} else {
		assert_int_equal(result.state, RUN_LOST);
		assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	}
	close(options.stdio[0]);
	close(options.stdio[1]);
	unlink(in);
	finish(stage, &job);
}

static void test_comes_back(void **state)
{
	run_with_cut(*state, false, 10000, 0);
}

static void test_cannot_come_back(void **state)
{
	run_with_cut(*state, true, 700, 255);
}

/* --- after the end --- */

/* The job ends without a client: what was not taken is kept, once, with its status. */
static void test_ended_meanwhile(void **state)
{
	struct want want = SH("echo one; echo two >&2; head -c 100000 /dev/zero; exit 6");
	struct stage *stage = *state;
	struct run_result result;
	struct launch_event event;
	struct stat st;
	struct job job;

	want.grace_ms = 20000;
	job = stage_start(stage, &want);
	close(job.client);
	while (!stage_event(job.leash, &event) && event.type != LAUNCH_EXITED)
		;
	assert_int_equal(event.value, 6);
	stage_reap(&job);
	/* The agent has recorded the end, but there is output to fetch. */
	assert_int_equal(launch_forget(stage->jobs, stage->run, job.name), 100000 + 4 + 4);
	for (int i = 0; i < 2; i++) { /* the same output comes once more */
		assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 6);
		assert_int_equal(stat(stage->out, &st), 0);
		assert_int_equal(st.st_size, 100004);
		assert_string_equal(stage_read(stage->err), "two\n");
	}
	assert_int_equal(play_again(stage, job.name, 100000, &result), 6);
	assert_memory_equal(stage_read(stage->out), "\0\0\0\0", 5);
	expect_error(ask_for(stage, job.name, 100005, 0, "", stage->jobs), "it ends at 100004");
	close(job.leash);
	record_remove(stage->jobs, job.name);
}

/* Nothing is kept beyond the bytes that the agent reserved, and a reader is told how many miss. */
static void left_with(struct stage *stage, uint64_t room, const char *missing)
{
	struct want want = SH("echo x >&2; head -c 520000 /dev/zero; exit 6");
	struct run_result result;
	struct stat st;
	struct job job;

	want.grace_ms = 20000;
	want.spill_less = SHIM_SPILL_MAX - room;
	job = stage_start(stage, &want);
	close(job.client);
	stage_reap(&job);
	assert_int_equal(launch_forget(stage->jobs, stage->run, job.name), room);
	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 6);
	assert_int_equal(stat(stage->out, &st), 0);
	assert_int_equal(st.st_size, room);
	assert_non_null(strstr(result.text, missing));
	close(job.leash);
	record_remove(stage->jobs, job.name);
}

static void test_left_quota(void **state)
{
	left_with(*state, 65536, "454466 bytes of the job's output were not kept");
	left_with(*state, 0, "520002 bytes of the job's output were not kept");
}

/* The client took all output and was gone before it knew the status, so the status is kept. */
static void test_status_kept(void **state)
{
	struct want want = SH("echo all; sleep 0.3; exit 12");
	struct stage *stage = *state;
	struct run_result result;
	struct wire wire;
	uint8_t data[64];
	struct job job;

	want.grace_ms = 20000;
	job = stage_start(stage, &want);
	assert_int_equal(read_output(job.client, data, 4, sizeof(data)), 4);
	assert_int_equal(wire_init(&wire, job.client, NULL), 0);
	assert_int_equal(wire_credit(&wire, 1, 4 + FRAME_WINDOW), 0);
	wire_deinit(&wire);
	stage_reap(&job);
	assert_int_equal(launch_forget(stage->jobs, stage->run, job.name), 0);
	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 12);
	assert_string_equal(stage_read(stage->out), "");
	close(job.leash);
	record_remove(stage->jobs, job.name);
}

/* A client that took all: nothing is kept, and nothing can be fetched. */
static void test_nothing_kept(void **state)
{
	struct want want = SH("echo all; exit 6");
	struct stage *stage = *state;
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 6);
	expect_error(ask_for(stage, "stage-no-such-job", 0, 0, "", stage->jobs), "nothing is kept");
	{
		char job[SPEC_JOB_MAX];

		snprintf(job, sizeof(job), "stage-%d-%u", getpid(), stage->sequence);
		/* A client that comes back for the rest gets no end without it. */
		expect_error(ask_for(stage, job, 0, 0, "00ff", stage->jobs), "nothing is kept");
		assert_int_equal(play_again(stage, job, 0, &result), 6);
		assert_int_equal(result.state, RUN_EXITED);
		assert_non_null(strstr(result.text, "has ended with status 6; its output is not"));
		assert_string_equal(stage_read(stage->out), "");
		assert_int_equal(launch_forget(stage->jobs, stage->run, job), 0);
	}
}

/* --- detached jobs --- */

static struct job start_detached(struct stage *stage, struct want *want)
{
	struct run_stream_options options = {.stdio = {-1, -1, -1}, .leave = true};
	struct run_result result;
	struct job job;

	want->detach = true;
	job = stage_start(stage, want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(run_stream(&options, job.client, &result), 0);
	assert_int_equal(result.state, RUN_STARTED);
	return job;
}

static void test_detached(void **state)
{
	struct want want = SH("wc -c; echo err >&2; sleep 0.4; echo end; exit 7");
	struct stage *stage = *state;
	struct run_result result;
	char path[300];
	struct stat st;
	struct job job = start_detached(stage, &want); /* without a grace period */

	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 7);
	assert_string_equal(stage_read(stage->out), "0\nend\n");
	assert_string_equal(stage_read(stage->err), "err\n");
	stage_reap(&job);
	assert_int_equal(play_again(stage, job.name, 2, &result), 7);
	assert_string_equal(stage_read(stage->out), "end\n");
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job.name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/%s/out", stage->jobs, job.name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, 0);
	close(job.leash);
	record_remove(stage->jobs, job.name);
}

/* The client that reads goes away; the job does not notice. */
static void test_detached_reader_leaves(void **state)
{
	struct want want = SH("echo one; sleep 0.6; echo two; exit 3");
	struct stage *stage = *state;
	struct run_result result;
	struct frame frame;
	struct job job = start_detached(stage, &want);
	int fd = ask_for(stage, job.name, ATTACH_FIRST, ATTACH_FIRST, "", NULL);

	await_frame(fd, FRAME_DATA, &frame);
	frame_free(&frame);
	close(fd);
	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 3);
	assert_string_equal(stage_read(stage->out), "one\ntwo\n");
	finish(stage, &job);
}

/* Returns whether a signal waits for PID that it has not read yet. */
static bool pending(pid_t pid)
{
	char path[64], line[128];
	unsigned long waits = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in) && sscanf(line, "ShdPnd: %lx", &waits) != 1)
		;
	if (in)
		fclose(in);
	return waits;
}

/*
 * A client that attaches is told to leave before its first answer is here: it leaves, and the job
 * goes on.
 */
static void test_detached_reader_is_early(void **state)
{
	struct want want = SH("until [ -e \"$0\" ]; do sleep 0.05; done; exit 3");
	struct stage *stage = *state;
	struct run_result result;
	char go[128];
	struct job job;
	int fd[2], shim, status;
	pid_t looks, between;
	sigset_t term;

	snprintf(go, sizeof(go), "%s/go", stage->dir);
	want.argv[3] = go;
	job = start_detached(stage, &want);
	stage_pair(fd);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	looks = fork();
	if (!looks) {
		struct run_stream_options options = {
			.stdio = {-1, -1, -1}, .signals = true, .look = true};

		close(fd[1]);
		_exit(run_stream(&options, fd[0], &result));
	}
	kill(looks, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	close(fd[0]);
	/* Until it has taken the signal; it has heard nothing yet. */
	for (int i = 0; i < 6000 && pending(looks); i++)
		usleep(10000);
	assert_false(pending(looks));
	shim = ask_for(stage, job.name, ATTACH_FIRST, ATTACH_FIRST, "", NULL);
	assert_true(shim >= 0);
	between = cut_between(fd[1], shim, BULK);
	close(fd[1]);
	close(shim);
	assert_int_equal(waitpid(looks, &status, 0), looks);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
	waitpid(between, NULL, 0);
	close(open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 3);
	unlink(go);
	finish(stage, &job);
}

/* Signals to a job that is over or never began hit no process, not even its supervisor. */
static void test_signal_without_a_job(void **state)
{
	struct want want = SH("head -c 900000 /dev/zero; exit 6");
	static const uint8_t signals[] = {SIGTERM, SIGTSTP, SIGKILL};
	struct stage *stage = *state;
	struct run_result result;
	struct frame frame;
	struct job job = start_detached(stage, &want);
	int fd;

	stage_reap(&job);
	for (size_t i = 0; i < sizeof(signals); i++) {
		fd = ask_for(stage, job.name, ATTACH_FIRST, ATTACH_FIRST, "", stage->jobs);
		assert_true(fd >= 0);
		assert_int_equal(frame_write(fd, FRAME_SIGNAL, &signals[i], 1), 0);
		assert_int_equal(play(stage, fd, &result), 6);
	}
	close(job.leash);
	record_remove(stage->jobs, job.name);

	want = (struct want){.argv = {"true", NULL}, .uid = 4242424};
	job = stage_start(stage, &want);
	await_frame(job.client, FRAME_EXIT, &frame);
	frame_free(&frame);
	assert_int_equal(frame_write(job.client, FRAME_SIGNAL, &signals[0], 1), 0);
	usleep(200000);
	assert_int_equal(waitpid(job.shim, NULL, WNOHANG),
			 0); /* it waits for the client to confirm */
	close(job.client);
	assert_int_equal(stage_reap(&job), 1);
	close(job.leash);
}

static void put_input(int fd, uint64_t offset, const char *text)
{
	uint8_t head[FRAME_DATA_HEAD] = {0};

	for (int i = 0; i < 8; i++)
		head[i + 1] = (uint8_t)(offset >> (56 - 8 * i));
	assert_int_equal(
		frame_write2(fd, FRAME_DATA, head, sizeof(head), text, (uint32_t)strlen(text)), 0);
}

/* An earlier client sent the input to its end: a later one is told so, and stays. */
static void test_input_has_ended(void **state)
{
	struct want want = SH("stty -echo; echo ready; cat; echo end; sleep 1; exit 6");
	struct stage *stage = *state;
	struct attach_state now;
	struct frame frame;
	struct job job;
	int fd;

	want.grace_ms = 20000;
	want.tty = (struct terminal){.wanted = true, .size = {24, 80, 0, 0}, .name = "vt220"};
	job = stage_start(stage, &want);
	await_frame(job.client, FRAME_DATA, &frame);
	frame_free(&frame);
	put_input(job.client, 0, "line\n");
	put_input(job.client, 5, "");
	await_frame(job.client, FRAME_DATA, &frame);
	frame_free(&frame);
	fd = ask_for(stage, job.name, ATTACH_FIRST, ATTACH_FIRST, "", NULL);
	assert_true(fd >= 0);
	await_frame(fd, FRAME_STARTED, &frame);
	attach_state_unpack(&now, frame.payload, frame.length);
	frame_free(&frame);
	assert_int_equal(now.input, 5);
	await_frame(fd, FRAME_DATA, &frame);
	assert_int_equal(frame.payload[0], 0);
	assert_int_equal(frame.length, FRAME_DATA_HEAD);
	frame_free(&frame);
	put_input(fd, 5, "typed before that was heard\n");
	await_frame(fd, FRAME_EXIT, &frame);
	assert_int_equal(wire_u32(frame.payload + 1), 6);
	frame_free(&frame);
	close(fd);
	close(job.client);
	finish(stage, &job);
}

static void test_detached_quota(void **state)
{
	struct want want = SH("head -c 70000 /dev/zero; echo x >&2; head -c 30000 /dev/zero");
	struct stage *stage = *state;
	struct run_result result;
	struct stat st;
	struct job job;

	want.spool_bytes = 65536;
	job = start_detached(stage, &want);
	stage_reap(&job); /* the job did not have to wait */
	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 0);
	assert_int_equal(stat(stage->out, &st), 0);
	/* Only the beginning, if the client asks for no more: test_gaps.c has the rest. */
	assert_int_equal(st.st_size, 32768);
	assert_string_equal(stage_read(stage->err), "");
	assert_non_null(strstr(result.text, "67234 bytes"));
	close(job.leash);
	record_remove(stage->jobs, job.name);
	/* The target's own limit (1 MiB on this stage) bounds any wish. */
	want.argv[2] = "head -c 1048577 /dev/zero";
	want.spool_bytes = 1u << 30;
	job = start_detached(stage, &want);
	stage_reap(&job);
	assert_int_equal(play_again(stage, job.name, ATTACH_FIRST, &result), 0);
	assert_non_null(strstr(result.text, "524289 bytes"));
	close(job.leash);
	record_remove(stage->jobs, job.name);
}

static void test_detached_fails(void **state)
{
	struct want want = {.argv = {"/no/such/command", NULL}, .detach = true};
	struct run_stream_options options = {.stdio = {-1, -1, -1}, .leave = true};
	struct stage *stage = *state;
	struct run_result result;
	struct job job = stage_start(stage, &want);

	assert_int_equal(run_stream(&options, job.client, &result), 127);
	assert_non_null(strstr(result.text, "/no/such/command"));
	finish(stage, &job);
}

/* A link in place of a spool file: nothing is written or read through it. */
static void test_spool_links(void **state)
{
	struct want want = SH("echo kept; exit 1");
	struct stage *stage = *state;
	char path[300], other[128];
	struct job job = start_detached(stage, &want);

	stage_reap(&job);
	close(job.leash);
	snprintf(other, sizeof(other), "%s/secret", stage->dir);
	close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "%s/%s/out", stage->jobs, job.name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	expect_error(ask_for(stage, job.name, 0, 0, "", stage->jobs), "nothing is kept");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(link(other, path), 0);
	expect_error(ask_for(stage, job.name, 0, 0, "", stage->jobs), "nothing is kept");
	record_remove(stage->jobs, job.name);
}

/* A client that does not read delays no detached job and takes no memory. */
static void test_detached_stalled(void **state)
{
	struct want want = SH("head -c 900000 /dev/zero; exit 8");
	struct stage *stage = *state;
	struct launch_event event;
	struct job job = start_detached(stage, &want);
	int fd = ask_for(stage, job.name, 0, 0, "", stage->jobs);

	while (!stage_event(job.leash, &event) && event.type != LAUNCH_EXITED)
		;
	assert_int_equal(event.value, 8);
	close(fd);
	finish(stage, &job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_client),
		cmocka_unit_test(test_attach_first),
		cmocka_unit_test(test_nobody_comes),
		cmocka_unit_test(test_bad_offsets),
		cmocka_unit_test(test_not_taken),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_resume_is_bound),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_cannot_come_back),
		cmocka_unit_test(test_ended_meanwhile),
		cmocka_unit_test(test_left_quota),
		cmocka_unit_test(test_status_kept),
		cmocka_unit_test(test_nothing_kept),
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_detached_reader_leaves),
		cmocka_unit_test(test_detached_reader_is_early),
		cmocka_unit_test(test_signal_without_a_job),
		cmocka_unit_test(test_input_has_ended),
		cmocka_unit_test(test_detached_quota),
		cmocka_unit_test(test_detached_fails),
		cmocka_unit_test(test_spool_links),
		cmocka_unit_test(test_detached_stalled),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("attach", tests, stage_setup, stage_teardown);
}
