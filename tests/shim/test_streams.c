/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job's streams, and what happens when one of the four parties dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/frame.h"
#include "tests/lib/stage.h"
#include "user/record.h"

#define BULK (100u << 20)

#define SH(script)                                                                                 \
	{                                                                                          \
		.argv = { "/bin/sh", "-c", script, NULL }                                          \
	}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- bytes --- */

static void make_bulk(const char *path)
{
	static uint64_t block[8192];
	uint64_t x = 88172645463325252u;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	for (unsigned done = 0; done < BULK; done += sizeof(block)) {
		for (size_t i = 0; i < sizeof(block) / sizeof(block[0]); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = x;
		}
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	}
	close(fd);
}

/* Returns true if two files hold the same bytes. */
static bool same(const char *a, const char *b)
{
	char command[8400];

	snprintf(command, sizeof(command), "cmp %s %s", a, b);
	return system(command) == 0;
}

static void test_bulk(void **state)
{
	struct want cat = {.argv = {"cat", NULL}}, both = SH("tee /dev/stderr");
	struct stage *stage = *state;
	struct run_result result;
	char in[128];
	double begun;

	snprintf(in, sizeof(in), "%s/bulk", stage->dir);
	make_bulk(in);
	cat.in = both.in = in;
	begun = now_s();
	assert_int_equal(stage_run(stage, &cat, &result), 0);
	print_message("100 MiB in and out: %.0f MB/s\n", BULK / 1e6 / (now_s() - begun));
	assert_true(same(in, stage->out));
	assert_int_equal(stage_run(stage, &both, &result), 0);
	assert_true(same(in, stage->out));
	assert_true(same(in, stage->err));
	unlink(in);
}

static void test_small_and_empty(void **state)
{
	struct want count = SH("wc -c; printf 'no newline' >&2"), zero = SH("printf 'a\\0b\\377'");
	struct stage *stage = *state;
	struct run_result result;

	assert_int_equal(stage_run(stage, &count, &result), 0);
	assert_string_equal(stage_read(stage->out), "0\n");
	assert_string_equal(stage_read(stage->err), "no newline");
	assert_int_equal(stage_run(stage, &zero, &result), 0);
	assert_memory_equal(stage_read(stage->out), "a\0b\377", 4);
}

/*
 * Plays a client in a process of its own with OUT as its standard output. OTHER is a descriptor
 * that only the test may hold (the far end of a pipe), or -1.
 */
static pid_t client(struct job *job, int in, int out, int other)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct run_stream_options options = {.stdio = {in, out, -1}, .signals = true};
		struct run_result result;
		int status;

		close(job->leash);
		if (other >= 0)
			close(other);
		dup2(out, 1);
		close(out);
		options.stdio[1] = 1;
		options.records = stage_records(job);
		status = run_stream(&options, job->client, &result);
		_exit(status);
	}
	close(job->client);
	return pid;
}

static int client_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* `iocom run -- yes | head -c 2` */
static void test_reader_leaves(void **state)
{
	struct want want = {.argv = {"yes", NULL}};
	struct stage *stage = *state;
	struct job job = stage_start(stage, &want);
	char two[2];
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = client(&job, -1, fd[1], fd[0]);
	close(fd[1]);
	assert_int_equal(read(fd[0], two, 2), 2);
	close(fd[0]);
	assert_int_equal(client_status(pid), 141);
	close(job.leash);
	stage_reap(&job);
}

/* The job stops reading: the client must not wait for its own input. */
static void test_job_closes_input(void **state)
{
	struct want want = SH("head -c 1; exec 0<&-; sleep 0.2; exit 6");
	struct stage *stage = *state;
	struct job job = stage_start(stage, &want);
	int fd[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid;

	/* the client's input is neither written to the end nor closed */
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_int_equal(write(fd[1], "xyz", 3), 3);
	pid = client(&job, fd[0], null, fd[1]);
	assert_int_equal(client_status(pid), 6);
	close(fd[0]);
	close(fd[1]);
	close(null);
	close(job.leash);
	stage_reap(&job);
}

/* No client reads the outputs, and the job does not read its input: all buffers fill. */
static void test_stalled_reader(void **state)
{
	struct want want = SH("cat /dev/zero >&2 & cat /dev/zero");
	struct want other = {.argv = {"cat", NULL}};
	struct stage *stage = *state;
	struct job job = stage_start(stage, &want);
	long shim_kb, client_kb;
	struct run_result result;
	int fd[2], zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct run_stream_options options = {.stdio = {zero, fd[1], fd[1]},
						     .records = stage_records(&job)};

		close(fd[0]);
		close(job.leash);
		_exit(run_stream(&options, job.client, &result));
	}
	close(job.client);
	close(fd[1]);
	close(zero);
	/* A busy machine takes its time until both windows are full; then nothing grows any more.
	 */
	for (int i = 0; i < 100; i++) {
		usleep(100000);
		shim_kb = stage_private_kb(job.shim);
		client_kb = stage_private_kb(pid);
		if (shim_kb >= (long)(2 * FRAME_WINDOW / 1024) &&
		    client_kb >= (long)(FRAME_WINDOW / 1024) && i >= 6)
			break;
	}
	print_message("all stalled: shim %ld KB, client %ld KB private\n", shim_kb, client_kb);
	if (!getenv("IOCOM_SANITIZED")) {
		/* Two windows are really in use; 1.9 MB are usual, and a third would be too much.
		 */
		long keys_kb = stage->secure ? 192 : 0; /* to seal one frame, and its code */

		assert_in_range(shim_kb, 2 * FRAME_WINDOW / 1024, 2176 + keys_kb);
		assert_in_range(client_kb, FRAME_WINDOW / 1024, 4096 + keys_kb);
	}
	/* Other jobs do not notice. */
	other.in = stage->shim;
	assert_int_equal(stage_run(stage, &other, &result), 0);
	assert_true(same(stage->shim, stage->out));
	assert_true(stage_private_kb(job.shim) <= shim_kb + 64);
	close(fd[0]);
	assert_int_equal(client_status(pid), 141);
	close(job.leash);
	stage_reap(&job);
}

/* The first process ends, another still holds the output: the shim drains it, then kills. */
static void test_leftovers(void **state)
{
	struct want quiet = SH("sleep 986 & echo done"), late = SH("(sleep 0.5; echo late) &");
	struct stage *stage = *state;
	struct run_result result;
	double begun = now_s();

	assert_int_equal(stage_run(stage, &quiet, &result), 0);
	assert_string_equal(stage_read(stage->out), "done\n");
	assert_true(now_s() - begun > 1.8);
	assert_int_equal(stage_count("sleep", "986"), 0);
	assert_int_equal(stage_run(stage, &late, &result), 0);
	assert_string_equal(stage_read(stage->out), "late\n");
}

/* --- deaths --- */

static void test_client_dies(void **state)
{
	struct want want = SH("setsid sh -c 'sleep 985 & sleep 985' & sleep 985");
	struct stage *stage = *state;
	struct launch_event event;
	double begun;
	struct job job;

	want.grace_ms = 1000;
	job = stage_start(stage, &want);
	assert_int_equal(stage_event(job.leash, &event), 0);
	begun = now_s();
	close(job.client);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_EXITED);
	assert_int_equal(event.kind, 1);
	assert_int_equal(event.value, SIGKILL);
	assert_true(now_s() - begun > 0.9); /* the job does not end before the end of its grace */
	assert_int_equal(stage_count("sleep", "985"), 0);
	assert_false(stage_group_exists(stage, job.name));
	close(job.leash);
	stage_reap(&job);
}

/* A client that sends garbage counts as gone. */
static void test_garbage(void **state)
{
	struct want want = {.argv = {"sleep", "984", NULL}};
	struct stage *stage = *state;
	struct launch_event event;
	uint8_t junk[512];
	struct job job;

	want.grace_ms = 100;
	for (int round = 0; round < 5; round++) {
		job = stage_start(stage, &want);
		assert_int_equal(stage_event(job.leash, &event), 0);
		memset(junk, round, sizeof(junk));
		if (round == 1)
			frame_header(junk, FRAME_DATA, 12); /* data for stream 1 */
		if (round == 2)
			frame_header(junk, FRAME_CREDIT, 9); /* credit for bytes never sent */
		if (round == 3)
			frame_header(junk, FRAME_DATA, 0); /* no stream at all */
		if (round == 4) {
			frame_header(junk, FRAME_DATA,
				     12); /* input that does not begin at offset 0 */
			memset(junk + FRAME_HEADER, 0, 9);
			junk[FRAME_HEADER + 8] = 7;
		}
		assert_true(write(job.client, junk, sizeof(junk)) > 0);
		assert_int_equal(stage_event(job.leash, &event), 0);
		assert_int_equal(event.value, SIGKILL);
		close(job.client);
		close(job.leash);
		assert_int_equal(stage_reap(&job), 0);
	}
}

/* A client with keys that sends in clear, or with other keys, or what was there before. */
static void test_wrong_records(void **state)
{
	struct want want = {.argv = {"sleep", "984", NULL}};
	struct stage *stage = *state;
	struct launch_event event;
	uint8_t frame[FRAME_HEADER + 1], sealed[64];
	const struct iovec piece = {frame, sizeof(frame)};

	want.grace_ms = 100;
	frame_header(frame, FRAME_SIGNAL, 1);
	frame[FRAME_HEADER] = SIGCONT;
	for (int round = 0; round < 4; round++) {
		struct job job = stage_start(stage, &want);
		size_t n = records_size(sizeof(frame));

		assert_int_equal(stage_event(job.leash, &event), 0);
		assert_int_equal(records_seal(&job.records, &piece, 1, sealed), 0);
		if (round == 0) /* a length that no record has */
			assert_int_equal(write(job.client, "\0\1garbage", 9), 9);
		if (round == 1) { /* sealed once more with another key */
			job.records.sends.key[0] ^= 1;
			assert_int_equal(records_seal(&job.records, &piece, 1, sealed), 0);
		}
		if (round == 2) /* the second comes without the first */
			assert_int_equal(records_seal(&job.records, &piece, 1, sealed), 0);
		if (round > 0)
			assert_int_equal(write(job.client, sealed, n), n);
		if (round == 3) /* again */
			assert_int_equal(write(job.client, sealed, n), n);
		assert_int_equal(stage_event(job.leash, &event), 0);
		assert_int_equal(event.value, SIGKILL);
		close(job.client);
		close(job.leash);
		assert_int_equal(stage_reap(&job), 0);
	}
}

/* The record keeps the secret of the attempt, for an agent that comes later; only root reads it. */
static void test_record_has_secret(void **state)
{
	struct want want = {.argv = {"sleep", "984", NULL}};
	struct stage *stage = *state;
	uint8_t secret[SECRET_BYTES];
	struct launch_event event;
	struct stat st;
	struct job job = stage_start(stage, &want);
	char path[256];

	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(launch_secret(stage->jobs, job.name, secret), 0);
	assert_memory_equal(secret, "a secret of just 32 bytes, is it", SECRET_BYTES);
	assert_int_equal(launch_secret(stage->jobs, "none-such", secret), -ENOENT);
	snprintf(path, sizeof(path), "%s/%s/start", stage->jobs, job.name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job.name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(job.client);
	kill(job.shim, SIGKILL);
	close(job.leash);
	stage_reap(&job);
	kill(event.pid, SIGKILL);
	record_remove(stage->jobs, job.name);
}

/* A job that another build started has none. */
static void test_record_without_secret(void **state)
{
	struct want want = {.argv = {"true", NULL}};
	struct stage *stage = *state;
	uint8_t secret[SECRET_BYTES];
	struct launch_event event;
	struct job job = stage_start(stage, &want);

	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(launch_secret(stage->jobs, job.name, secret), -ENODATA);
	close(job.client);
	close(job.leash);
	stage_reap(&job);
	record_remove(stage->jobs, job.name);
}

/* The shim hears nothing from a client that attaches with keys but what is sealed with them. */
static void test_attach_with_keys(void **state)
{
	struct want want = SH("echo one; read x; echo $x; exit 8");
	struct stage *stage = *state;
	struct attach_ask ask = {
		.node = "here", .take = true, .from = {0, ATTACH_FIRST, ATTACH_FIRST}};
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct launch_ask wish;
	struct run_result result;
	struct records shim, client;
	struct job job = stage_start(stage, &want);
	int fd[2], in[2];
	void *packed;

	snprintf(ask.job, sizeof(ask.job), "%s", job.name);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &wish.length), 0);
	stage_keys(&shim, &client);
	wish.packed = packed;
	wish.records = &shim;
	stage_pair(fd);
	for (int i = 0; i < 100 && launch_attach(stage->run, job.name, &wish, fd[1]); i++)
		usleep(20000);
	close(fd[1]);
	close(job.client);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "two\n", 4), 4);
	close(in[1]);
	options.stdio[0] = in[0];
	options.stdio[1] = open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	options.records = &client;
	assert_int_equal(run_stream(&options, fd[0], &result), 8);
	assert_string_equal(stage_read(stage->out), "one\ntwo\n");
	close(options.stdio[1]);
	close(in[0]);
	free(packed);
	close(job.leash);
	stage_reap(&job);
	record_remove(stage->jobs, job.name);
}

static void test_agent_dies(void **state)
{
	struct want want = SH("echo one; sleep 1; echo two; exit 9");
	struct stage_recovered r = {0};
	struct stage *stage = *state;
	struct launch_event event;
	struct job job;
	int out = open(stage->out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t pid;

	want.jobs = stage->err; /* a directory of its own, so that only this job is found */
	unlink(stage->err);
	job = stage_start(stage, &want);
	assert_int_equal(stage_event(job.leash, &event), 0);
	pid = client(&job, -1, out, -1);
	close(job.leash); /* the agent is dead */
	usleep(200000);
	assert_int_equal(launch_recover(want.jobs, stage->run, stage_take_found, &r, NULL), 0);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.found.job, job.name);
	assert_int_equal(r.found.uid, 65534);
	assert_int_equal(r.found.started.pid, event.pid);
	assert_int_equal(r.found.started.cgroup_id, event.cgroup_id);
	assert_non_null(strstr(r.found.command, "/bin/sh -c echo one"));
	assert_true(r.found.leash >= 0);
	assert_int_equal(client_status(pid), 9);
	assert_string_equal(stage_read(stage->out), "one\ntwo\n");
	assert_int_equal(stage_event(r.found.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_EXITED);
	assert_int_equal(event.value, 9);
	close(r.found.leash);
	stage_reap(&job);
	/* The next agent finds the outcome until it is forgotten. */
	assert_int_equal(launch_recover(want.jobs, stage->run, stage_take_found, &r, NULL), 0);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.found.leash, -1);
	assert_int_equal(r.found.last.kind, 0);
	assert_int_equal(r.found.last.value, 9);
	launch_forget(want.jobs, stage->run, job.name);
	assert_int_equal(launch_recover(want.jobs, stage->run, stage_take_found, &r, NULL), 0);
	assert_int_equal(r.count, 2);
	rmdir(want.jobs);
	close(out);
}

static void test_shim_dies(void **state)
{
	struct want want = SH("sleep 983 & sleep 983");
	struct launch_event event;
	struct launch_found found;
	struct stage *stage = *state;
	struct job job = stage_start(stage, &want);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid;

	assert_int_equal(stage_event(job.leash, &event), 0);
	pid = client(&job, -1, null, -1);
	close(null);
	usleep(100000);
	kill(job.shim, SIGKILL);
	assert_int_equal(client_status(pid), 255);
	assert_int_equal(stage_event(job.leash, &event), -EPIPE);
	stage_reap(&job);
	assert_int_equal(launch_outcome(stage->jobs, stage->run, job.name, &found), 0);
	assert_int_equal(found.last.kind, 3);
	assert_int_equal(found.leash, -1);
	assert_int_equal(stage_count("sleep", "983"), 0);
	assert_false(stage_group_exists(stage, job.name));
	close(job.leash);
	launch_forget(stage->jobs, stage->run, job.name);
}

static void test_client_forwards_signals(void **state)
{
	struct want want = SH("trap 'exit 33' USR1; trap 'exit 34' INT; echo r; "
			      "while :; do sleep 0.05; done");
	struct stage *stage = *state;
	const int signals[2] = {SIGUSR1, SIGINT};

	for (int i = 0; i < 2; i++) {
		struct job job = stage_start(stage, &want);
		char ready[2];
		int fd[2];
		pid_t pid;

		assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
		pid = client(&job, -1, fd[1], fd[0]);
		close(fd[1]);
		assert_int_equal(read(fd[0], ready, 2), 2);
		kill(pid, signals[i]);
		assert_int_equal(client_status(pid), 33 + i);
		close(fd[0]);
		close(job.leash);
		stage_reap(&job);
	}
}

/* TSTP stops job and client, CONT lets both go on. */
static void test_stop_and_go(void **state)
{
	struct want want = SH("echo r; i=0; while [ $i -lt 10 ]; do sleep 0.05; i=$((i+1)); done; "
			      "exit 5");
	struct stage *stage = *state;
	struct launch_event event;
	struct job job;
	char path[64], ready[2];
	const char *stat = NULL;
	int fd[2], status;
	pid_t pid;

	/* bash forks, but dash uses vfork: stopped in between it would wait, not be stopped. */
	want.argv[0] = "/bin/bash";
	job = stage_start(stage, &want);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = client(&job, -1, fd[1], fd[0]);
	close(fd[1]);
	assert_int_equal(read(fd[0], ready, 2), 2);
	kill(pid, SIGTSTP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	snprintf(path, sizeof(path), "/proc/%d/stat", event.pid);
	/* The client stops at once; the signal to the job takes a moment. */
	for (int i = 0; i < 500; i++) {
		stat = stage_read(path);
		if (!strncmp(strrchr(stat, ')'), ") T", 3))
			break;
		usleep(10000);
	}
	assert_memory_equal(strrchr(stat, ')'), ") T", 3);
	kill(pid, SIGCONT);
	assert_int_equal(client_status(pid), 5);
	close(fd[0]);
	close(job.leash);
	stage_reap(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_small_and_empty),
		cmocka_unit_test(test_reader_leaves),
		cmocka_unit_test(test_job_closes_input),
		cmocka_unit_test(test_stalled_reader),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_client_dies),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_agent_dies),
		cmocka_unit_test(test_shim_dies),
		cmocka_unit_test(test_client_forwards_signals),
		cmocka_unit_test(test_stop_and_go),
		cmocka_unit_test(test_record_without_secret),
	};
	/* All of it again: to the client and the job it makes no difference. */
	const struct CMUnitTest sealed[] = {
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_small_and_empty),
		cmocka_unit_test(test_reader_leaves),
		cmocka_unit_test(test_job_closes_input),
		cmocka_unit_test(test_stalled_reader),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_client_dies),
		cmocka_unit_test(test_wrong_records),
		cmocka_unit_test(test_record_has_secret),
		cmocka_unit_test(test_attach_with_keys),
		cmocka_unit_test(test_agent_dies),
		cmocka_unit_test(test_shim_dies),
		cmocka_unit_test(test_client_forwards_signals),
		cmocka_unit_test(test_stop_and_go),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("streams", tests, stage_setup, stage_teardown) +
	       cmocka_run_group_tests_name("sealed streams", sealed, stage_setup_secure,
					   stage_teardown);
}
