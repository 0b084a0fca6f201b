/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the shim, late shims, and shims of other versions: what a new agent makes of them. */
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
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/frame.h"
#include "user/leash_wire.h"
#include "user/pack.h"
#include "user/record.h"
#include "tests/lib/stage.h"

#define SH(script) .argv = {"/bin/sh", "-c", script, NULL}

static uint64_t now_ms(void)
{
	return clock_boot_ns() / CLOCK_NS_PER_MS;
}

/* Looks for JOB as a new agent does, and waits up to WAIT_MS for an answer. */
static int look(const struct stage *stage, const char *job, unsigned wait_ms,
		struct launch_found *f)
{
	uint64_t until_ms = now_ms() + wait_ms;
	int rc = launch_outcome(stage->jobs, stage->run, job, f);

	while (!rc && (f->busy || (f->leash >= 0 && !f->started.pid)) && !f->newer &&
	       now_ms() < until_ms) {
		struct launch_event event;
		int read = f->leash < 0 ? -EPIPE : launch_read(f->leash, &event);

		if (!read)
			f->started = event;
		if (!read || read == -EAGAIN) {
			usleep(10000);
			continue;
		}
		if (f->leash >= 0)
			close(f->leash);
		f->leash = -1;
		f->busy = f->newer = read == -EPROTONOSUPPORT;
		if (f->newer)
			break;
		usleep(10000);
		rc = launch_outcome(stage->jobs, stage->run, job, f);
	}
	return rc;
}

static bool is_late(const struct launch_found *f)
{
	return f->busy || (f->leash >= 0 && !f->started.pid);
}

/* --- the lease at the shim --- */

/* Returns true if the process is gone, or a zombie that its new parent has not noticed. */
static bool gone(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return kill(pid, 0) || strstr(stage_read(path), ") Z ");
}

static struct job begin(struct stage *stage, const struct want *want, pid_t *pid)
{
	struct launch_event event;
	struct job job = stage_start(stage, want);

	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	*pid = event.pid;
	return job;
}

/* Waits until the shim reports the end. */
static struct launch_event finish(struct stage *stage, struct job *job)
{
	struct launch_event event;

	assert_int_equal(stage_event(job->leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_EXITED);
	close(job->client);
	close(job->leash);
	assert_int_equal(stage_reap(job), 0);
	assert_false(stage_group_exists(stage, job->name));
	launch_forget(stage->jobs, stage->run, job->name);
	return event;
}

/* In milliseconds: a time from now on, or NOTHING; TAKEN: the lease is taken away. */
enum { NOTHING = -1, TAKEN = 0 };

static const struct lease_case {
	const char *what, *script;
	uint32_t lease_ms;
	int renewals[2]; /* sent one right after the other */
	uint32_t kind, value;
	const char *text;  /* this text is in the sentence of the end */
	uint64_t least_ms; /* it did not end sooner */
} lease_cases[] = {
	{"it runs out",
	 "setsid sleep 971 & trap '' TERM INT HUP; sleep 971",
	 600,
	 {NOTHING, NOTHING},
	 3,
	 255,
	 "lease ran out",
	 600},
	{"a job that needs none obeys none", "sleep 1; exit 4", 0, {TAKEN, 1}, 0, 4, NULL, 1000},
	/* A late message with an earlier end changes nothing. */
	{"renewed", "sleep 1.5; exit 6", 700, {60000, 100}, 0, 6, NULL, 1500},
	{"taken away: no way back", "sleep 972", 600000, {TAKEN, 60000}, 3, 255, "given it up", 0},
	{"it runs out for a stopped job",
	 "kill -STOP $$; sleep 973",
	 500,
	 {NOTHING, NOTHING},
	 3,
	 255,
	 NULL,
	 500},
};

static void one_lease(struct stage *stage, const struct lease_case *c)
{
	struct want want = {SH(c->script), .lease_ms = c->lease_ms};
	uint64_t before = now_ms();
	struct launch_event end;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	for (size_t i = 0; i < 2 && c->renewals[i] != NOTHING; i++) {
		uint64_t until = c->renewals[i] == TAKEN || !c->lease_ms
					 ? (uint64_t)c->renewals[i]
					 : now_ms() + (uint64_t)c->renewals[i];

		assert_int_equal(launch_lease(job.leash, until), 0);
	}
	end = finish(stage, &job);
	if (end.kind != c->kind || end.value != c->value ||
	    (c->text && !strstr(end.text, c->text)) || now_ms() < before + c->least_ms ||
	    !gone(pid))
		fail_msg("%s: kind %d, value %d: %s, after %llu ms", c->what, (int)end.kind,
			 (int)end.value, end.text, (unsigned long long)(now_ms() - before));
}

static void test_leases(void **state)
{
	for (size_t i = 0; i < sizeof(lease_cases) / sizeof(lease_cases[0]); i++)
		one_lease(*state, &lease_cases[i]);
}

/* The node was so slow that the lease ended before the job could begin: it may run elsewhere. */
static void test_lease_over_before_the_job(void **state)
{
	struct stage *stage = *state;
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct run_result result;
	struct launch_event end;
	struct job job;
	char mark[128];
	struct want want = {.argv = {"/bin/sh", "-c", "touch \"$0\"; exec sleep 975", mark, NULL},
			    .lease_is_over = true};

	snprintf(mark, sizeof(mark), "%s/began", stage->dir);
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(run_stream(&options, job.client, &result), LAUNCH_NEVER);
	assert_non_null(strstr(result.text, "took longer to begin"));
	assert_int_equal(stage_event(job.leash, &end), 0);
	assert_int_equal(end.type, LAUNCH_EXITED);
	assert_int_equal(end.kind, 3);
	assert_int_equal(end.value, LAUNCH_NEVER);
	close(job.leash);
	assert_int_equal(stage_reap(&job), 1);
	assert_false(stage_group_exists(stage, job.name));
	assert_int_equal(access(mark, F_OK), -1);
}

/* Leftovers of the first process that never fall silent have no lease of their own. */
static void test_lease_over_for_what_is_left(void **state)
{
	struct want want = {SH("(trap '' HUP; exec timeout 20 yes) & sleep 0.1; exit 0"),
			    .lease_ms = 900};
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct stage *stage = *state;
	struct run_result result;
	struct launch_event end;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	options.stdio[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_int_equal(run_stream(&options, job.client, &result), 255);
	assert_non_null(strstr(result.text, "lease ran out"));
	close(options.stdio[1]);
	job.client = -1;
	end = finish(stage, &job);
	assert_int_equal(end.kind, 3);
	assert_int_equal(end.value, 255);
}

#define SLOW_LEASE_MS 8000

/* Nothing of the job runs, only its client is slow: it ended by itself, within its lease. */
static void test_lease_over_for_a_slow_client(void **state)
{
	struct want want = {SH("head -c 600000 /dev/zero; exit 8"), .lease_ms = SLOW_LEASE_MS};
	struct run_stream_options options = {.stdio = {-1, -1, -1}};
	struct stage *stage = *state;
	struct run_result result;
	struct launch_event end;
	uint64_t over_ms = now_ms() + SLOW_LEASE_MS;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	while (!gone(pid) && now_ms() < over_ms)
		usleep(10000);
	assert_true(now_ms() < over_ms); /* it ended in time: else nothing is tested */
	while (now_ms() < over_ms + 300)
		usleep(10000);
	options.stdio[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_int_equal(run_stream(&options, job.client, &result), 8);
	close(options.stdio[1]);
	job.client = -1;
	end = finish(stage, &job);
	assert_int_equal(end.kind, 0);
	assert_int_equal(end.value, 8);
}

static void test_signal_is_the_users(void **state)
{
	struct want want = {SH("sleep 974"), .lease_ms = 60000};
	struct stage *stage = *state;
	struct launch_event end;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	/* The owner killed it: this is its own end, and it must not run again. */
	assert_int_equal(stage_signal(stage, job.name, SIGKILL), 0);
	end = finish(stage, &job);
	assert_int_equal(end.kind, 1);
	assert_int_equal(end.value, SIGKILL);
}

/* Returns true if PID catches SIGTERM. */
static bool catches_term(pid_t pid)
{
	unsigned long long caught = 0;
	char path[64], line[256];
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	in = fopen(path, "r");
	while (in && fgets(line, sizeof(line), in))
		(void)sscanf(line, "SigCgt: %llx", &caught);
	if (in)
		fclose(in);
	return caught & 1ull << (SIGTERM - 1);
}

/* The node's owner expels it: one with a lease may run again, unless it ended well all the same. */
static void test_expelled(void **state)
{
	static const struct {
		const char *script;
		uint64_t lease_ms;
		unsigned kind, value;
		const char *text;
	} cases[] = {
		{"sleep 976", 60000, 3, 255, "expelled; it may run again"},
		{"trap 'exit 3' TERM; while :; do sleep 0.05; done", 60000, 3, 255,
		 "expelled; it may run again"},
		{"trap 'exit 0' TERM; while :; do sleep 0.05; done", 60000, 0, 0, ""},
		{"sleep 977", 0, 1, SIGTERM, "expelled"},
		{"trap 'exit 3' TERM; while :; do sleep 0.05; done", 0, 0, 3, "expelled"},
	};
	struct stage *stage = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct want want = {SH(cases[i].script), .lease_ms = cases[i].lease_ms};
		struct launch_event end;
		pid_t pid;
		struct job job = begin(stage, &want, &pid);

		for (int n = 0; !strncmp(cases[i].script, "trap", 4) && !catches_term(pid); n++) {
			assert_true(n < 1000);
			usleep(10000);
		}
		assert_int_equal(stage_expel(stage, job.name, SIGTERM, "expelled"), 0);
		end = finish(stage, &job);
		if (end.kind != cases[i].kind || end.value != cases[i].value ||
		    strcmp(end.text, cases[i].text) != 0)
			fail_msg("%s: kind %d, value %d: %s", cases[i].script, (int)end.kind,
				 (int)end.value, end.text);
	}
}

static void test_client_lost(void **state)
{
	struct want want = {SH("sleep 975"), .lease_ms = 60000, .grace_ms = 300};
	struct stage *stage = *state;
	struct launch_event end;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	close(job.client);
	job.client = open("/dev/null", O_RDONLY | O_CLOEXEC);
	end = finish(stage, &job);
	assert_int_equal(end.kind, 3);
	assert_non_null(strstr(end.text, "contact"));
}

static void test_agent_speaks_garbage(void **state)
{
	struct want want = {SH("sleep 0.5; exit 5"), .lease_ms = 60000};
	struct stage *stage = *state;
	struct launch_event event;
	struct launch_found found;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	assert_int_equal(send(job.leash, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	assert_int_equal(stage_event(job.leash, &event), -EPIPE);
	/* The job goes on, and the next agent is served. */
	assert_int_equal(look(stage, job.name, 2000, &found), 0);
	assert_true(found.leash >= 0 && !is_late(&found));
	close(job.leash);
	job.leash = found.leash;
	assert_int_equal(finish(stage, &job).value, 5);
}

/* Ends the shim when no agent is there to notice, and home may run the job again. */
static void end_without_agent(struct stage *stage, uint32_t lease_ms, int signal)
{
	const struct want want = {
		SH("setsid sleep 977 & sleep 976"),
		.lease_ms = lease_ms,
	};
	struct launch_found f = {0};
	bool alive = true;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	kill(job.shim, signal);
	for (int i = 0; i < 500 && (alive = !gone(pid)); i++)
		usleep(10000);
	assert_false(alive);
	for (int i = 0; i < 500 && (alive = stage_count("sleep", "977") > 0); i++)
		usleep(10000);
	assert_false(alive);
	kill(job.shim, SIGKILL);
	close(job.client);
	close(job.leash);
	stage_reap(&job);
	assert_int_equal(look(stage, job.name, 1000, &f), 0);
	assert_int_equal(f.last.kind, 3);
	launch_forget(stage->jobs, stage->run, job.name);
}

static void test_lease_outlives_no_shim(void **state)
{
	end_without_agent(*state, 600000, SIGKILL);
	end_without_agent(*state, 600, SIGSTOP);
}

/* --- late shims --- */

static void wait_stopped(pid_t pid)
{
	char path[64];

	kill(pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 500 && !strstr(stage_read(path), ") T "); i++)
		usleep(10000);
}

static void test_stopped_shim_is_late(void **state)
{
	struct want want = {SH("sleep 0.3; exit 8")};
	struct stage *stage = *state;
	struct launch_found found, again;
	struct launch_event event;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	close(job.leash); /* the agent is dead */
	wait_stopped(job.shim);
	assert_int_equal(look(stage, job.name, 100, &found), 0);
	assert_true(is_late(&found));
	assert_true(found.leash >= 0);
	assert_int_equal(launch_read(found.leash, &event), -EAGAIN);
	/* Many agents ask: at last the queue is full, and the shim is still late. */
	for (int i = 0; i < 16; i++) {
		assert_int_equal(look(stage, job.name, 0, &again), 0);
		assert_true(is_late(&again));
		if (again.leash < 0)
			break;
		close(again.leash);
	}
	assert_int_equal(again.leash, -1);
	assert_false(gone(pid));
	kill(job.shim, SIGCONT);
	/* It answers all of them; the last one holds the leash. */
	assert_int_equal(stage_event(found.leash, &event), 0);
	assert_int_equal(event.type, LAUNCH_STARTED);
	assert_int_equal(event.pid, pid);
	close(found.leash);
	do
		assert_int_equal(look(stage, job.name, 2000, &found), 0);
	while (is_late(&found));
	if (found.leash >= 0) {
		assert_int_equal(stage_event(found.leash, &found.last), 0);
		close(found.leash);
	}
	assert_int_equal(found.last.kind, 0);
	assert_int_equal(found.last.value, 8);
	close(job.client);
	stage_reap(&job);
	launch_forget(stage->jobs, stage->run, job.name);
}

static void test_late_shim_is_killed(void **state)
{
	struct want want = {SH("sleep 976")};
	struct stage *stage = *state;
	struct launch_found found, after;
	struct launch_event event;
	pid_t pid;
	struct job job = begin(stage, &want, &pid);

	close(job.leash);
	wait_stopped(job.shim);
	assert_int_equal(look(stage, job.name, 0, &found), 0);
	assert_true(is_late(&found) && found.leash >= 0);
	kill(job.shim, SIGKILL);
	stage_reap(&job);
	/* Only now the job is lost, and its processes are killed. */
	assert_int_equal(stage_event(found.leash, &event), -EPIPE);
	assert_int_equal(look(stage, job.name, 0, &after), 0);
	assert_false(is_late(&after));
	assert_int_equal(after.leash, -1);
	assert_int_equal(after.last.kind, 3);
	assert_true(gone(pid));
	assert_false(stage_group_exists(stage, job.name));
	close(found.leash);
	close(job.client);
	launch_forget(stage->jobs, stage->run, job.name);
}

/* --- shims of other versions, played --- */

struct played {
	char job[SPEC_JOB_MAX];
	int dir, listen;
};

static struct played play(struct stage *stage, const char *job)
{
	struct record_start start = {.uid = 65534, .shim = getpid(), .start_ns = 1};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct played p = {0};
	char path[256];

	snprintf(p.job, sizeof(p.job), "%s", job);
	snprintf(start.job, sizeof(start.job), "%s", job);
	snprintf(start.scope, sizeof(start.scope), "%s", stage->scope);
	record_make_dirs(stage->jobs, NULL);
	record_make_dirs(stage->run, NULL);
	snprintf(path, sizeof(path), "%s/%s", stage->jobs, job);
	assert_int_equal(mkdir(path, 0700), 0);
	p.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(record_lock(p.dir), 0);
	assert_int_equal(record_write_start(p.dir, &start, NULL), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s.sock", stage->run, job);
	p.listen = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p.listen, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(p.listen, 4), 0);
	return p;
}

/* Answers one question for the leash in a child, which speaks versions FRAME and VERSION. */
static pid_t answer(const struct played *p, uint8_t frame_version, int version)
{
	pid_t pid = fork();

	if (pid == 0) {
		uint8_t asked[LEASH_MESSAGE_MAX], frame[256];
		msgpack_sbuffer buffer;
		msgpack_packer pk;
		int fd = accept(p->listen, NULL, NULL);

		/* Any agent sends frame version 1, because old shims know no other. */
		if (recv(fd, asked, sizeof(asked), 0) < FRAME_HEADER || asked[2] != 1)
			_exit(1);
		pack_begin(&pk, &buffer, version ? 5 : 4);
		if (version)
			pack_u64(&pk, "v", (uint64_t)version);
		pack_str(&pk, "event", "started");
		pack_str(&pk, "job", p->job);
		pack_u64(&pk, "pid", 4711);
		pack_u64(&pk, "cgroup_id", 12);
		frame_header(frame, FRAME_REQUEST, (uint32_t)buffer.size);
		frame[2] = frame_version;
		memcpy(frame + FRAME_HEADER, buffer.data, buffer.size);
		if (send(fd, frame, FRAME_HEADER + buffer.size, 0) < 0)
			_exit(1);
		recv(fd, asked, 1, 0); /* waits until the agent closes */
		_exit(0);
	}
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void play_end(struct stage *stage, struct played *p)
{
	close(p->listen);
	close(p->dir);
	launch_forget(stage->jobs, stage->run, p->job);
}

static void test_shims_of_other_builds(void **state)
{
	static const struct {
		uint8_t frame;
		int version;
	} cases[] = {{1, 0}, {1, 1}, {2, 1}, {9, 1}};
	struct stage *stage = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct played p = play(stage, "n1-0000abcd-1");
		pid_t pid = answer(&p, cases[i].frame, cases[i].version);
		struct launch_found found;

		assert_int_equal(look(stage, p.job, 5000, &found), 0);
		assert_true(found.leash >= 0 && !is_late(&found));
		assert_int_equal(found.started.pid, 4711);
		close(found.leash);
		assert_int_equal(status_of(pid), 0);
		play_end(stage, &p);
	}
}

static void test_shim_of_a_later_version(void **state)
{
	struct record_exit end = {.pid = 4711, .kind = 0, .value = 3};
	struct stage *stage = *state;
	struct played p = play(stage, "n1-0000abcd-2");
	pid_t pid = answer(&p, 2, LEASH_VERSION + 1);
	struct launch_found found;

	assert_int_equal(look(stage, p.job, 5000, &found), 0);
	assert_true(is_late(&found));
	assert_true(found.newer);
	assert_int_equal(found.leash, -1);
	assert_int_equal(status_of(pid), 0);
	/* The agent leaves the job alone until it ends; then its record says how. */
	assert_int_equal(record_write_exit(p.dir, &end, NULL), 0);
	assert_int_equal(look(stage, p.job, 0, &found), 0);
	assert_false(is_late(&found));
	assert_int_equal(found.last.kind, 0);
	assert_int_equal(found.last.value, 3);
	play_end(stage, &p);
}

static void test_record_of_a_later_version(void **state)
{
	struct stage *stage = *state;
	struct played p = play(stage, "n1-0000abcd-3");
	struct launch_found found;
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int fd = openat(p.dir, "exit", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	pack_begin(&pk, &buffer, 1);
	pack_u64(&pk, "v", 77);
	assert_int_equal(write(fd, buffer.data, buffer.size), buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	close(fd);
	/* While its shim holds the lock, no agent touches the job. */
	assert_int_equal(look(stage, p.job, 0, &found), 0);
	assert_true(is_late(&found));
	if (found.leash >= 0)
		close(found.leash);
	close(p.dir);
	p.dir = -1;
	close(p.listen);
	p.listen = -1;
	assert_int_equal(look(stage, p.job, 0, &found), 0);
	assert_false(is_late(&found));
	assert_int_equal(found.last.kind, 3);
	assert_non_null(strstr(found.last.text, "another version"));
	launch_forget(stage->jobs, stage->run, p.job);
}

static void test_order_of_another_version(void **state)
{
	/* The old agent still runs when the file of the shim is already the new one. */
	struct stage *stage = *state;
	struct want want = {.argv = {"/bin/true", NULL}};
	struct run_result result;
	char script[160], real[sizeof(stage->shim)];
	int fd;

	snprintf(script, sizeof(script), "%s/old-shim", stage->dir);
	fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	/* Writes an order whose "v" is 99: the position is after the map's head and the key. */
	dprintf(fd,
		"#!/usr/bin/python3\nimport os, sys\n"
		"b = os.pread(4, 1 << 20, 0)\ni = b.index(b'\\xa1v') + 2\n"
		"m = os.memfd_create('o'); os.write(m, b[:i] + b'\\x63' + b[i + 1:])\n"
		"os.dup2(m, 4, True)\n[os.set_inheritable(n, True) for n in (3, 5)]\n"
		"os.execv('%s', ['iocom-shim'])\n",
		stage->shim);
	close(fd);
	memcpy(real, stage->shim, sizeof(real));
	snprintf(stage->shim, sizeof(stage->shim), "%s", script);
	assert_int_equal(stage_run(stage, &want, &result), 125);
	memcpy(stage->shim, real, sizeof(real));
	assert_non_null(strstr(result.text, "different versions"));
	unlink(script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_lease_over_before_the_job),
		cmocka_unit_test(test_lease_over_for_what_is_left),
		cmocka_unit_test(test_lease_over_for_a_slow_client),
		cmocka_unit_test(test_signal_is_the_users),
		cmocka_unit_test(test_expelled),
		cmocka_unit_test(test_client_lost),
		cmocka_unit_test(test_agent_speaks_garbage),
		cmocka_unit_test(test_lease_outlives_no_shim),
		cmocka_unit_test(test_stopped_shim_is_late),
		cmocka_unit_test(test_late_shim_is_killed),
		cmocka_unit_test(test_shims_of_other_builds),
		cmocka_unit_test(test_shim_of_a_later_version),
		cmocka_unit_test(test_record_of_a_later_version),
		cmocka_unit_test(test_order_of_another_version),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a shim needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("lease", tests, stage_setup, stage_teardown);
}
