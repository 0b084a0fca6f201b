/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Detached jobs that write more than is kept: a client that attaches gets the beginning and the
 * end, and is told what is missing and where. And detached jobs with a terminal.
 */
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
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cgroup.h"
#include "user/frame.h"
#include "user/record.h"
#include "user/process_slot.h"
#include "tests/lib/stage.h"

#define QUOTA 262144
#define HEAD  131072 /* half of the quota */
#define RING  98304  /* the ring of standard output: half of the quota, less an eighth */

/* Writes N bytes: a counter of four bytes each. */
#define COUNT(bytes)                                                                               \
	"python3 -c 'import sys,struct\n"                                                          \
	"for i in range(0," #bytes ",65536): sys.stdout.buffer.write(b\"\".join(struct.pack("      \
	"\">I\",i//4+k) for k in range(16384)))'"
#define MIB8 8388608

static struct want detached(const char *script)
{
	return (struct want){
		.argv = {"/bin/sh", "-c", script, NULL}, .detach = true, .spool_bytes = QUOTA};
}

static struct job start(const struct stage *stage, const struct want *want)
{
	struct run_stream_options options = {.stdio = {-1, -1, -1}, .leave = true};
	struct job job = stage_start((struct stage *)stage, want);
	struct run_result result;

	assert_int_equal(job.rc, 0);
	assert_int_equal(run_stream(&options, job.client, &result), 0);
	return job;
}

static void over(const struct stage *stage, struct job *job)
{
	close(job->leash);
	stage_reap(job);
	record_remove(stage->jobs, job->name);
}

/* Lock file for the shim that sends what is kept; NULL: none. */
static const char *place;
static int watch = -1; /* that shim's leash, if the test wants it */

/*
 * Attaches to the running shim, or to a new one that sends what is kept. Returns the client's
 * end.
 */
static int come(const struct stage *stage, const char *job, struct attach_ask ask)
{
	const struct timeval limit = {.tv_sec = 20};
	struct launch_ask wish;
	int fd[2], leash, rc;
	size_t length;
	void *packed;

	strcpy(ask.node, "here");
	snprintf(ask.job, sizeof(ask.job), "%s", job);
	attach_nonce(ask.nonce);
	assert_int_equal(attach_pack(&ask, &packed, &length), 0);
	stage_pair(fd);
	wish = (struct launch_ask){.packed = packed, .length = length};
	rc = launch_attach(stage->run, job, &wish, fd[1]);
	if (rc == -ESRCH) {
		rc = launch_replay(stage->shim, stage->scope, stage->jobs, place, 4242, &wish,
				   fd[1], &leash, NULL);
		if (place)
			watch = leash;
		else
			close(leash);
	} else {
		close(fd[1]);
	}
	assert_int_equal(rc, 0);
	free(packed);
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd[0];
}

static struct attach_ask from(uint64_t out)
{
	return (struct attach_ask){.from = {0, out, ATTACH_FIRST},
				   .taken = {0, out == ATTACH_FIRST ? 0 : out, 0},
				   .gaps = true};
}

/* --- a client that works like `iocom attach` --- */

struct gaps {
	unsigned count;
	uint64_t bytes, last;
};

static void take_gap(void *arg, int stream, uint64_t from, uint64_t to)
{
	struct gaps *gaps = &((struct gaps *)arg)[stream - 1];

	gaps->count++;
	gaps->bytes += to - from;
	gaps->last = to - from;
}

/* Plays the client to its end, outputs in stage->out and stage->err. Returns the exit code. */
static int play(const struct stage *stage, int client, struct gaps gaps[2],
		struct run_result *result)
{
	struct run_stream_options options = {
		.stdio = {-1, open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
			  open(stage->err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)},
		.gap = gaps ? take_gap : NULL,
		.arg = gaps,
	};
	int status = run_stream(&options, client, result);

	close(options.stdio[1]);
	close(options.stdio[2]);
	return status;
}

/* Checks that stage->out has at AT the N bytes of the count from FIRST on. */
static void check_file(const struct stage *stage, uint64_t at, uint64_t first, size_t n)
{
	int fd = open(stage->out, O_RDONLY | O_CLOEXEC);
	uint8_t four[4];

	for (size_t i = 0; i < n; i += 4 * 509) {
		assert_int_equal(pread(fd, four, 4, (off_t)(at + i)), 4);
		assert_int_equal(wire_u32(four), (first + i) / 4);
	}
	close(fd);
}

static uint64_t size_of(const struct stage *stage)
{
	int fd = open(stage->out, O_RDONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);

	close(fd);
	return (uint64_t)size;
}

static const uint64_t end = MIB8, ring = MIB8 - RING;

static void test_beginning_and_end(void **state)
{
	const struct want want = detached(COUNT(8388608) "; echo it failed >&2; exit 7");
	struct stage *stage = *state;
	struct gaps gaps[2] = {0};
	struct run_result result;
	struct job job = start(stage, &want);

	stage_reap(&job); /* the job did not have to wait */
	assert_int_equal(play(stage, come(stage, job.name, from(ATTACH_FIRST)), gaps, &result), 7);
	assert_string_equal(result.text, "");
	assert_true(size_of(stage) == HEAD + RING);
	check_file(stage, 0, 0, HEAD);
	check_file(stage, HEAD, ring, RING);
	assert_int_equal(gaps[0].count, 1);
	assert_true(gaps[0].bytes == ring - HEAD);
	assert_int_equal(gaps[1].count, 0);
	assert_string_equal(stage_read(stage->err), "it failed\n");
	/* An old program would take the gap for damage, so it gets the beginning and a number. */
	{
		struct attach_ask ask = from(ATTACH_FIRST);

		ask.gaps = false;
		assert_int_equal(play(stage, come(stage, job.name, ask), NULL, &result), 7);
	}
	assert_true(size_of(stage) == HEAD);
	check_file(stage, 0, 0, HEAD);
	assert_non_null(strstr(result.text, "8257546 bytes of the job's output were not kept, or"));
	over(stage, &job);
}

static void test_any_offset(void **state)
{
	static const struct {
		uint64_t from, gap, bytes;
	} cases[] = {
		{HEAD - 8, MIB8 - RING - HEAD, RING + 8}, /* inside the beginning */
		{HEAD, MIB8 - RING - HEAD, RING},	  /* at the end of the beginning */
		{HEAD + 1000, MIB8 - RING - HEAD - 1000, RING},
		{MIB8 - RING, 0, RING}, /* at the start of the ring */
		{MIB8 - 12, 0, 12},
		{MIB8, 0, 0},
	};
	const struct want want = detached(COUNT(8388608));
	struct stage *stage = *state;
	struct run_result result;
	struct job job = start(stage, &want);

	stage_reap(&job);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gaps gaps[2] = {0};
		uint64_t n = cases[i].bytes;

		assert_int_equal(
			play(stage, come(stage, job.name, from(cases[i].from)), gaps, &result), 0);
		assert_true(gaps[0].bytes == cases[i].gap);
		assert_true(size_of(stage) == n);
		check_file(stage, n > RING ? n - RING : 0, n > RING ? ring : end - n,
			   n > RING ? RING : n);
	}
	assert_int_equal(play(stage, come(stage, job.name, from(end + 1)), NULL, &result), 125);
	assert_non_null(strstr(result.text, "it ends at 8388608"));
	over(stage, &job);
}

/* A gap is still damage for a client that did not ask for gaps. */
static void test_unasked_gap(void **state)
{
	const struct want want = detached(COUNT(8388608));
	struct stage *stage = *state;
	struct run_result result;
	struct job job = start(stage, &want);

	stage_reap(&job);
	assert_int_equal(play(stage, come(stage, job.name, from(ATTACH_FIRST)), NULL, &result),
			 255);
	assert_non_null(strstr(result.text, "are missing"));
	over(stage, &job);
}

/* The supervisor is killed in the middle: both parts that it kept are found. */
static void test_killed_supervisor(void **state)
{
	const struct want want = detached(COUNT(8388608) "; echo last >&2; sleep 60");
	struct stage *stage = *state;
	struct gaps gaps[2] = {0};
	struct run_result result;
	struct job job = start(stage, &want);
	struct cgroup_mounts mounts;
	struct cgroup group;
	char name[128];
	int client = come(stage, job.name, from(0));
	struct frame frame;

	/* The job writes its error output last. */
	for (bool there = false; !there; frame_free(&frame)) {
		assert_int_equal(frame_read(client, &frame, FRAME_DATA_MAX + 64, NULL), 0);
		there = frame.type == FRAME_DATA && frame.payload[0] == 2;
	}
	kill(job.shim, SIGKILL);
	close(client);
	stage_reap(&job);
	snprintf(name, sizeof(name), "jobs/user@65534/%s", job.name);
	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, stage->scope, name, &group, NULL), 0);
	cgroup_remove(&group, 5000);
	assert_int_equal(play(stage, come(stage, job.name, from(ATTACH_FIRST)), gaps, &result),
			 255);
	assert_non_null(strstr(result.text, "its outcome is unknown"));
	assert_true(size_of(stage) == HEAD + RING);
	check_file(stage, HEAD, ring, RING);
	assert_true(gaps[0].bytes == ring - HEAD);
	assert_string_equal(stage_read(stage->err), "last\n");
	over(stage, &job);
}

/* Plays the client in a process of its own, whose output is a pipe with a slow reader. */
static pid_t slow_client(const struct stage *stage, const char *job, int pipes[2], int told)
{
	pid_t pid = fork();

	if (!pid) {
		struct gaps gaps[2] = {0};
		struct run_stream_options options = {
			.stdio = {-1, pipes[1], open("/dev/null", O_WRONLY | O_CLOEXEC)},
			.gap = take_gap,
			.arg = gaps,
		};
		struct run_result result;
		int status;

		close(pipes[0]);
		status = run_stream(&options, come(stage, job, from(0)), &result);
		if (write(told, gaps, sizeof(gaps)) != sizeof(gaps))
			_exit(99);
		_exit(status);
	}
	close(pipes[1]);
	return pid;
}

/* The job writes faster than the client reads: the ring overtakes the client more than once. */
static void test_overtaken(void **state)
{
	const struct want want = detached("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do " COUNT(
		4194304) "; sleep 0.1; done; exit 9");
	struct stage *stage = *state;
	struct job job = start(stage, &want);
	struct gaps gaps[2] = {0};
	int pipes[2], told[2], status;
	static uint8_t data[65536];
	uint64_t total = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = slow_client(stage, job.name, pipes, told[1]);
	while ((n = read(pipes[0], data, sizeof(data))) > 0) {
		total += (uint64_t)n;
		usleep(stage_group_exists(stage, job.name) ? 20000 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_int_equal(read(told[0], gaps, sizeof(gaps)), sizeof(gaps));
	print_message("# %u gaps for a slow reader\n", gaps[0].count);
	assert_true(gaps[0].count >= 2);
	assert_true(total + gaps[0].bytes == UINT64_C(12) * 4194304);
	close(pipes[0]);
	close(told[0]);
	close(told[1]);
	over(stage, &job);
}

/*
 * A lock file has one sender, even if the agent forgot it; the sender is known and can be
 * killed.
 */
static void test_place(void **state)
{
	struct want want = detached("head -c 8000000 /dev/zero");
	struct stage *stage = *state;
	struct run_result result;
	char path[128], end_of[4];
	struct frame frame;
	struct job job;
	int first, leash;
	uid_t uid;
	pid_t pid, leaving;

	want.spool_bytes = 1 << 20;
	job = start(stage, &want);
	stage_reap(&job);
	snprintf(path, sizeof(path), "%s/place", stage->dir);
	place = path;
	first = come(stage, job.name, from(0));
	leash = watch;
	assert_int_equal(frame_read(first, &frame, FRAME_DATA_MAX + 64, NULL), 0);
	assert_int_equal(frame.type, FRAME_STARTED);
	frame_free(&frame);
	assert_int_equal(process_slot_holder(path, &pid, &uid), 1);
	assert_true(uid == 4242 && pid > 1);
	assert_int_equal(play(stage, come(stage, job.name, from(0)), NULL, &result), 125);
	assert_non_null(strstr(result.text, "others are reading"));
	close(watch);
	close(leash); /* this is what an agent that ends does: the shim goes on */
	assert_int_equal(process_slot_holder(path, &pid, &uid), 1);
	assert_int_equal(process_slot_kill(path), 0);
	while (!frame_read(first, &frame, FRAME_DATA_MAX + 64, NULL))
		frame_free(&frame);
	assert_true(read(first, end_of, 1) <= 0);
	for (int i = 0; i < 500 && process_slot_holder(path, &pid, &uid); i++)
		usleep(10000);
	assert_int_equal(process_slot_holder(path, &pid, &uid), 0);
	assert_int_equal(process_slot_kill(path), -ESRCH);
	close(first);
	/* One that is just leaving keeps nobody out. */
	leaving = fork();
	if (!leaving) {
		if (process_slot_take(path, 4242) < 0)
			_exit(1);
		usleep(100000);
		_exit(0);
	}
	for (int i = 0; i < 500 && !process_slot_holder(path, &pid, &uid); i++)
		usleep(1000);
	play(stage, come(stage, job.name, from(0)), NULL, &result);
	assert_null(strstr(result.text, "others are reading"));
	assert_int_equal(waitpid(leaving, NULL, 0), leaving);
	place = NULL;
	over(stage, &job);
}

/* --- a terminal --- */

static struct want terminal(const char *script)
{
	struct want want = detached(script);

	want.tty = (struct terminal){
		.wanted = true, .size = {24, 80, 0, 0}, .name = "vt220", .utf8 = true};
	return want;
}

static void put(int fd, uint64_t at, const char *text)
{
	uint8_t head[FRAME_DATA_HEAD] = {0};

	for (int i = 0; i < 8; i++)
		head[i + 1] = (uint8_t)(at >> (56 - 8 * i));
	assert_int_equal(
		frame_write2(fd, FRAME_DATA, head, sizeof(head), text, (uint32_t)strlen(text)), 0);
}

/* Waits until the output has TEXT; puts the state of STARTED into NOW unless it is NULL. */
static void hear(int fd, const char *text, struct attach_state *now)
{
	static char all[400000];
	struct frame frame;
	size_t n = 0;

	all[0] = 0;
	while (!strstr(all, text)) {
		assert_int_equal(frame_read(fd, &frame, FRAME_DATA_MAX + 64, NULL), 0);
		if (frame.type == FRAME_STARTED && now)
			attach_state_unpack(now, frame.payload, frame.length);
		assert_int_not_equal(frame.type, FRAME_ERROR);
		if (frame.type == FRAME_DATA && frame.payload[0] == 1 &&
		    n + frame.length < sizeof(all)) {
			memcpy(all + n, frame.payload + FRAME_DATA_HEAD,
			       frame.length - FRAME_DATA_HEAD);
			n += frame.length - FRAME_DATA_HEAD;
			all[n] = 0;
		}
		frame_free(&frame);
	}
}

static void test_terminal_stays(void **state)
{
	/* A signal may end a read that waits: the next one has the line. */
	const struct want want =
		terminal("trap 'stty size' WINCH; echo ready; "
			 "until [ \"$x\" = end ]; do read x && echo got=$x; done; exit 4");
	static const uint8_t size[TERMINAL_SIZE_BYTES] = {0, 31, 0, 99};
	struct stage *stage = *state;
	struct attach_state now = {0};
	struct run_result result;
	struct job job = start(stage, &want);
	int fd = come(stage, job.name, from(ATTACH_FIRST));

	hear(fd, "ready", &now);
	assert_true(now.tty && now.detached);
	put(fd, 0, "one\n");
	hear(fd, "got=one", NULL);
	close(fd); /* no client is there, and nothing is hung up */
	usleep(300000);
	fd = come(stage, job.name, from(ATTACH_FIRST));
	hear(fd, "got=one", &now);
	assert_true(now.input == 4);
	assert_int_equal(frame_write(fd, FRAME_WINSIZE, size, sizeof(size)), 0);
	put(fd, 4, "two\n");
	hear(fd, "31 99", NULL);
	put(fd, 8, "end\n");
	hear(fd, "got=end", NULL);
	close(fd);
	stage_reap(&job);
	/* The job is over: it has no terminal any more, but all its output. */
	fd = come(stage, job.name, from(ATTACH_FIRST));
	hear(fd, "got=end", &now);
	assert_false(now.tty);
	close(fd);
	assert_int_equal(play(stage, come(stage, job.name, from(ATTACH_FIRST)), (struct gaps[2]){0},
			      &result),
			 4);
	over(stage, &job);
}

/* A client of a screen gets its recent output, or all of it if it asks for all. */
static void test_recent(void **state)
{
	struct want want = terminal("head -c 300000 /dev/zero | tr '\\0' x; echo; echo ready; "
				    "sleep 60");
	struct stage *stage = *state;
	struct attach_ask ask = from(ATTACH_FIRST);
	struct attach_state now = {0};
	struct job job;
	int fd;

	want.spool_bytes = 1 << 20;
	job = start(stage, &want);
	fd = come(stage, job.name, ask);
	hear(fd, "ready", &now);
	assert_true(now.from[1] == 0);
	close(fd);
	ask.recent = true;
	fd = come(stage, job.name, ask);
	hear(fd, "ready", &now);
	assert_true(now.from[1] == 300000 + strlen("\r\nready\r\n") - 65536);
	assert_int_equal(frame_write(fd, FRAME_SIGNAL, "\x09", 1), 0);
	close(fd);
	over(stage, &job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beginning_and_end), cmocka_unit_test(test_any_offset),
		cmocka_unit_test(test_unasked_gap),	  cmocka_unit_test(test_killed_supervisor),
		cmocka_unit_test(test_overtaken),	  cmocka_unit_test(test_place),
		cmocka_unit_test(test_terminal_stays),	  cmocka_unit_test(test_recent),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("gaps", tests, stage_setup, stage_teardown);
}
