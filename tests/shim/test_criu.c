/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that can move is saved and restored by a real criu (IOCOM_CRIU, or an installed one): it
 * goes on where it was, at each time in a new cgroup and with new pipes, and not before it may.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent/init/hold.h"
#include "agent/init/init.h"
#include "agent/shim/child.h"
#include "agent/shim/move/criu.h"
#include "agent/shim/tty.h"
#include "tests/lib/criu.h"
#include "tests/lib/stage.h"
#include "user/cgroup_freeze.h"

#define LIMIT_MS 20000
#define PIPES	 4 /* input, output, errors, and what init says */

static struct criu criu;
/* What is read of a line so far. */
static char line[64];
static size_t line_at;

/* A job, and what the shim has of it. */
struct moved {
	struct stage *stage;
	struct cgroup group;
	struct child child;
	unsigned generation;
	char dir[64];
};

static void new_group(struct moved *m)
{
	struct cgroup_mounts mounts;
	char name[64];

	snprintf(name, sizeof(name), "jobs/moved-%u", m->generation++);
	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	assert_int_equal(cgroup_name(&mounts, m->stage->scope, name, &m->group, NULL), 0);
	assert_int_equal(cgroup_create(&m->group, NULL), 0);
}

static struct moved start_at(struct stage *stage, char *const *argv, const struct terminal *tty)
{
	char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	const struct identity identity = {.name = (char *)"root"};
	const struct order order = {
		.allow_root = true,
		.begin_ms = 60000,
		.spec = {.node = "here",
			 .executable = argv[0],
			 .cwd = (char *)"/",
			 .argv = (char **)argv,
			 .env = env,
			 .tty = *tty,
			 .migratable = true},
	};
	struct iocom_err err = {0};
	struct moved m = {.stage = stage};

	line_at = 0;

	new_group(&m);
	assert_int_equal(child_start(&m.child, &order, &identity, &m.group, NULL, &err), 0);
	snprintf(m.dir, sizeof(m.dir), "/dev/shm/iocom-images-%d", getpid());
	assert_int_equal(mkdir(m.dir, 0700), 0);
	return m;
}

static struct moved start(struct stage *stage, char *const *argv)
{
	return start_at(stage, argv, &(struct terminal){0});
}

/* Each line must be NEXT, and one more than the last.  Returns whether C ended one. */
static bool take_byte(char c, unsigned *next)
{
	line[line_at++] = c == '\n' ? 0 : c;
	assert_true(line_at < sizeof(line));
	if (c != '\n')
		return false;
	assert_int_equal(strtoul(line, NULL, 10), (*next)++);
	line_at = 0;
	return true;
}

static void expect_lines(const struct moved *m, unsigned *next, unsigned lines)
{
	struct pollfd p = {.fd = m->child.stdio[1], .events = POLLIN};
	char c;

	for (unsigned seen = 0; seen < lines;) {
		assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
		assert_int_equal(read(p.fd, &c, 1), 1);
		seen += take_byte(c, next);
	}
}

static pid_t command_of(const struct moved *m)
{
	char path[64];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", m->child.pid, m->child.pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	return pid;
}

static int status_descriptor(const struct moved *m)
{
	int fd = 3;
	struct criu_pipe p;

	while (criu_pipe_name(&p, m->child.pid, fd) && fd < 64)
		fd++;
	return fd;
}

static void name_pipes(const struct moved *m, struct criu_pipe pipes[PIPES])
{
	pid_t command = command_of(m);

	for (int i = 0; i < 3; i++)
		assert_int_equal(criu_pipe_name(&pipes[i], command, i), 0);
	assert_int_equal(criu_pipe_name(&pipes[3], m->child.pid, status_descriptor(m)), 0);
}

static int hold_listen(const struct moved *m, char path[108])
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(path, 108, "%s/hold", m->dir);
	memcpy(sa.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* Restores M under a new group with these ends, as far as the hold.  Returns criu's pid. */
static pid_t restore_with(struct moved *m, const struct criu_pipe *pipes, size_t npipes,
			  const char *tty, struct child *fresh, int *hold)
{
	struct iocom_err err = {0};
	struct pollfd p = {.events = POLLIN};
	struct hold_ready ready;
	char path[108];
	int listening = hold_listen(m, path), n;
	pid_t pid = criu_restore(&criu, m->dir, &m->group, pipes, npipes, tty, path, &err);

	assert_true(pid > 0);
	for (size_t i = 0; i < npipes; i++)
		close(pipes[i].fd);
	p.fd = listening;
	n = poll(&p, 1, LIMIT_MS);
	if (n != 1)
		criu_restore_explain(m->dir, &err);
	if (n != 1)
		print_message("%s\n", err.text);
	assert_int_equal(n, 1);
	*hold = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(read(*hold, &ready, sizeof(ready)), sizeof(ready));
	assert_int_equal(ready.word, HOLD_READY);
	fresh->pid = ready.init;
	close(listening);
	unlink(path);
	return pid;
}

/* The same with new pipes. */
static pid_t restore(struct moved *m, struct criu_pipe pipes[PIPES], struct child *fresh, int *hold)
{
	int ends[PIPES][2];

	*fresh = (struct child){.pidfd = -1};
	for (int i = 0; i < PIPES; i++) {
		assert_int_equal(pipe2(ends[i], O_CLOEXEC), 0);
		pipes[i].fd = ends[i][i != 0];
	}
	for (int i = 0; i < 3; i++)
		fresh->stdio[i] = ends[i][i == 0];
	fresh->status = ends[3][0];
	return restore_with(m, pipes, PIPES, "", fresh, hold);
}

static void forget(struct moved *m)
{
	for (int i = 0; i < 3; i++)
		if (m->child.stdio[i] >= 0)
			close(m->child.stdio[i]);
	close(m->child.status);
	close(m->child.pidfd);
	cgroup_kill(&m->group);
	waitpid(m->child.pid, NULL, 0);
	assert_int_equal(cgroup_remove(&m->group, 5000), 0);
}

static void remove_images(const struct moved *m)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s", m->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(mkdir(m->dir, 0700), 0);
}

/* Saves M, which is frozen and has the terminal TTY ("": none). */
static int dumped(const struct criu *with, const struct moved *m, const char *tty,
		  struct iocom_err *err)
{
	const struct criu_job job = {
		.init = m->child.pid, .uid = getuid(), .group = m->group.v2, .tty = tty};

	return criu_dump(with, &job, m->dir, LIMIT_MS, err);
}

/* Freezes M and takes what is in its pipe, as a shim does: criu does not. */
static void freeze(const struct moved *m, unsigned *next)
{
	struct pollfd p = {.fd = m->child.stdio[1], .events = POLLIN};
	char c;

	assert_int_equal(cgroup_freeze(&m->group, LIMIT_MS), 0);
	while (poll(&p, 1, 0) == 1 && read(p.fd, &c, 1) == 1)
		take_byte(c, next);
}

static void new_program(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void end(struct moved *m)
{
	forget(m);
	remove_images(m);
	rmdir(m->dir);
}

static char *const counts[] = {(char *)"/bin/sh", (char *)"-c",
			       (char *)"i=0; while :; do echo $i; i=$((i + 1)); sleep 0.001; done",
			       NULL};

static void test_dump_leaves_it(void **state)
{
	struct moved m = start(*state, counts);
	struct iocom_err err = {0};
	unsigned next = 0;
	int rc;

	expect_lines(&m, &next, 20);
	for (int i = 0; i < 3; i++) {
		freeze(&m, &next);
		rc = dumped(&criu, &m, "", &err);
		if (rc)
			print_message("%s\n", err.text);
		assert_int_equal(rc, 0);
		assert_int_equal(cgroup_thaw(&m.group), 0);
		expect_lines(&m, &next, 200);
		remove_images(&m);
	}
	end(&m);
}

/* Saves M and lets it go on in a new cgroup. */
static void move(struct moved *m, unsigned *next)
{
	struct criu_pipe pipes[PIPES];
	struct iocom_err err = {0};
	struct moved old;
	struct child fresh;
	pid_t running;
	int hold, how;

	freeze(m, next);
	name_pipes(m, pipes);
	assert_int_equal(dumped(&criu, m, "", &err), 0);
	old = *m;
	new_group(m);
	running = restore(m, pipes, &fresh, &hold);
	forget(&old);
	assert_int_equal(write(hold, "g", 1), 1);
	close(hold);
	assert_int_equal(waitpid(running, &how, 0), running);
	assert_int_equal(how, 0);
	m->child = fresh;
	m->child.pidfd = -1;
	remove_images(m);
}

/* Each move: no line is lost or doubled, though some were in the pipe. */
static void test_moves(void **state)
{
	struct moved m = start(*state, counts);
	unsigned next = 0;

	for (int i = 0; i < 5; i++) {
		expect_lines(&m, &next, 50);
		move(&m, &next);
		expect_lines(&m, &next, 50);
	}
	/* Its end is told as ever. */
	{
		struct init_end word;

		kill(command_of(&m), SIGKILL);
		assert_int_equal(read(m.child.status, &word, sizeof(word)), sizeof(word));
		assert_true(WIFSIGNALED(word.status));
		assert_int_equal(WTERMSIG(word.status), SIGKILL);
	}
	end(&m);
}

/* Saves M, which has a terminal, and lets it go on in a new cgroup with a new one. */
static void move_tty(struct moved *m, unsigned *next)
{
	struct child fresh = {.pidfd = -1, .stdio = {-1, -1, -1}};
	struct terminal wanted = {.wanted = true};
	struct criu_pipe ends[2];
	struct iocom_err err = {0};
	int slave = tty_peer(m->child.stdio[0]), status[2], hold, how;
	struct moved old;
	struct tty tty;
	pid_t running;

	freeze(m, next);
	assert_int_equal(criu_tty_name(ends[0].name, slave), 0);
	assert_int_equal(criu_pipe_name(&ends[1], m->child.pid, status_descriptor(m)), 0);
	assert_int_equal(ioctl(slave, TIOCGWINSZ, &wanted.size), 0);
	close(slave);
	assert_int_equal(dumped(&criu, m, ends[0].name, &err), 0);
	old = *m;
	new_group(m);
	assert_int_equal(tty_open(&tty, &wanted, 0, 0), 0);
	assert_int_equal(pipe2(status, O_CLOEXEC), 0);
	ends[0].fd = tty.slave;
	ends[1].fd = status[1];
	running = restore_with(m, ends, 2, ttyname(tty.slave), &fresh, &hold);
	fresh.stdio[0] = tty.in;
	fresh.stdio[1] = tty.out;
	fresh.status = status[0];
	forget(&old);
	assert_int_equal(write(hold, "g", 1), 1);
	close(hold);
	assert_int_equal(waitpid(running, &how, 0), running);
	assert_int_equal(how, 0);
	m->child = fresh;
	remove_images(m);
}

/* The terminal is that of the whole session, and has what criu keeps of it. */
static void test_terminal(void **state)
{
	static char *const argv[] = {
		(char *)"/bin/sh", (char *)"-c",
		(char *)"stty -echo -onlcr susp ^P; i=0; while :; do echo $i; i=$((i + 1)); "
			"sleep 0.001; done",
		NULL};
	const struct terminal wanted = {.wanted = true, .size = {33, 99, 0, 0}};
	struct moved m = start_at(*state, argv, &wanted);
	struct init_end word;
	struct termios modes;
	struct winsize size;
	unsigned next = 0;

	for (int i = 0; i < 3; i++) {
		expect_lines(&m, &next, 50);
		move_tty(&m, &next);
		expect_lines(&m, &next, 50);
		assert_int_equal(tcgetattr(m.child.stdio[0], &modes), 0);
		assert_false(modes.c_lflag & ECHO);
		assert_false(modes.c_oflag & ONLCR);
		assert_int_equal(modes.c_cc[VSUSP], 'P' & 0x1f);
		assert_int_equal(ioctl(m.child.stdio[0], TIOCGWINSZ, &size), 0);
		assert_memory_equal(&size, &wanted.size, sizeof(size));
		assert_int_equal(tcgetsid(m.child.stdio[0]), m.child.pid);
		assert_int_equal(tcgetpgrp(m.child.stdio[0]), m.child.pid);
	}
	/* ^C reaches its foreground. */
	assert_int_equal(write(m.child.stdio[0], "\x03", 1), 1);
	assert_int_equal(read(m.child.status, &word, sizeof(word)), sizeof(word));
	assert_true(WIFSIGNALED(word.status));
	assert_int_equal(WTERMSIG(word.status), SIGINT);
	end(&m);
}

/* A child that has ended, and that its parent waits for only when it is told to. */
static void test_zombie(void **state)
{
	static char *const argv[] = {
		(char *)"/usr/bin/python3", (char *)"-c",
		(char *)"import os, time\n"
			"child = os.fork()\n"
			"if not child: os._exit(5)\n"
			"for i in range(1000000):\n"
			"    os.write(1, b'%d\\n' % i)\n"
			"    time.sleep(0.001)\n"
			"    if i == 200: assert os.waitpid(child, 0) == (child, 5 << 8)\n",
		NULL};
	struct moved m = start(*state, argv);
	unsigned next = 0;

	expect_lines(&m, &next, 20);
	move(&m, &next);
	assert_true(next < 200);
	expect_lines(&m, &next, 400);
	end(&m);
}

/* Nobody says go: what was restored ends, and has not run; the source goes on. */
static void test_no_go(void **state)
{
	struct moved m = start(*state, counts), old;
	struct criu_pipe pipes[PIPES];
	struct iocom_err err = {0};
	struct child fresh;
	unsigned next = 0;
	pid_t running;
	int hold, how;
	char c;

	expect_lines(&m, &next, 20);
	freeze(&m, &next);
	name_pipes(&m, pipes);
	assert_int_equal(dumped(&criu, &m, "", &err), 0);
	old = m;
	new_group(&m);
	running = restore(&m, pipes, &fresh, &hold);
	close(hold);
	assert_int_equal(waitpid(running, &how, 0), running);
	assert_int_not_equal(how, 0);
	assert_int_equal(read(fresh.status, &c, 1), 0);
	assert_int_equal(cgroup_remove(&m.group, 5000), 0);
	for (int i = 0; i < 3; i++)
		close(fresh.stdio[i]);
	close(fresh.status);
	m = old;
	m.generation++;
	assert_int_equal(cgroup_thaw(&m.group), 0);
	expect_lines(&m, &next, 200);
	end(&m);
}

/* What cannot be saved is named, and goes on. */
static void test_refusals(void **state)
{
	static char *const talks[] = {
		(char *)"/usr/bin/python3", (char *)"-c",
		(char *)"import socket,time\n"
			"l=socket.socket(); l.bind(('127.0.0.1',0)); l.listen(1)\n"
			"c=socket.create_connection(l.getsockname()); a,_=l.accept()\n"
			"n=0\n"
			"while True: print(n,flush=True); n+=1; time.sleep(0.001)\n",
		NULL};
	struct moved m = start(*state, talks);
	struct iocom_err err = {0};
	unsigned next = 0;

	expect_lines(&m, &next, 5);
	freeze(&m, &next);
	assert_int_equal(dumped(&criu, &m, "", &err), -ENOTSUP);
	/* criu 4.1 cannot save any socket on Linux 6.16 and later. */
	assert_non_null(strstr(err.text, "it has a"));
	assert_non_null(strstr(err.text, "network"));
	assert_int_equal(cgroup_thaw(&m.group), 0);
	expect_lines(&m, &next, 100);
	end(&m);
}

/* The process that laid the node's /proc over the job's is killed: the job's own is back. */
static void test_keeper_killed(void **state)
{
	struct moved m = start(*state, counts);
	struct criu killer = criu;
	struct iocom_err err = {0};
	char proc[64], self[16];
	unsigned next = 0;

	expect_lines(&m, &next, 5);
	snprintf(killer.program, sizeof(killer.program), "%s/killer", m.dir);
	new_program(killer.program, "#!/bin/sh\nkill -9 $PPID\n");
	freeze(&m, &next);
	assert_int_equal(dumped(&killer, &m, "", &err), -EIO);
	assert_string_equal(err.text, "");
	snprintf(proc, sizeof(proc), "/proc/%d/root/proc/self", m.child.pid);
	assert_int_equal(readlink(proc, self, sizeof(self)), -1);
	assert_int_equal(dumped(&criu, &m, "", &err), 0);
	assert_int_equal(cgroup_thaw(&m.group), 0);
	expect_lines(&m, &next, 100);
	end(&m);
}

/* A program that cannot be called is not explained by what was logged before. */
static void test_old_log(void **state)
{
	struct moved m = start(*state, counts);
	struct criu none = criu;
	struct iocom_err err = {0};
	char log[80];
	unsigned next = 0;

	snprintf(log, sizeof(log), "%s/dump.log", m.dir);
	new_program(log, "(00.1) Error (x.c:1): io_uring\n");
	snprintf(none.program, sizeof(none.program), "/nonexistent/criu");
	freeze(&m, &next);
	assert_int_equal(dumped(&none, &m, "", &err), -EIO);
	assert_string_equal(err.text, "criu could not save it");
	assert_int_equal(cgroup_thaw(&m.group), 0);
	expect_lines(&m, &next, 20);
	end(&m);
}

static void test_find(void **state)
{
	char path[] = "/tmp/iocom-criu-XXXXXX";
	struct iocom_err err = {0};
	struct criu found;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(criu_find(&found, "/nonexistent/criu", &err), -ENOENT);
	assert_string_equal(err.text, "there is no criu at /nonexistent/criu");
	assert_true(fd >= 0);
	dprintf(fd, "#!/bin/sh\necho 'Version: 3.17.1'\n");
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	assert_int_equal(criu_find(&found, path, &err), -EPROTONOSUPPORT);
	assert_string_equal(err.text, "criu 3.17 is too old: 4.0 is the oldest that works");
	fd = open(path, O_WRONLY | O_TRUNC);
	dprintf(fd, "#!/bin/sh\necho hello\n");
	close(fd);
	assert_int_equal(criu_find(&found, path, &err), -EPROTO);
	assert_non_null(strstr(err.text, "does not say its version as criu does"));
	unlink(path);
}

/* The shim's programs are beside it, and here this is the shim. */
static void lay_beside(const char *name)
{
	char self[512], to[600], from[600];
	const char *build = getenv("IOCOM_BUILD");
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	*strrchr(self, '/') = 0;
	snprintf(to, sizeof(to), "%s/%s", self, name);
	snprintf(from, sizeof(from), "%s/%s", build ? build : "build", name);
	unlink(to);
	if (symlink(from, to))
		print_message("%s: %s\n", to, strerror(errno));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	 cmocka_unit_test(test_dump_leaves_it),
		cmocka_unit_test(test_moves),	 cmocka_unit_test(test_no_go),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_keeper_killed),
		cmocka_unit_test(test_old_log),	 cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_terminal),
	};

	if (!criu_to_test(&criu))
		return 0;
	lay_beside("iocom-init");
	lay_beside("iocom-hold");
	lay_beside("iocom-tty.so");
	return cmocka_run_group_tests_name("criu", tests, stage_setup, stage_teardown);
}
