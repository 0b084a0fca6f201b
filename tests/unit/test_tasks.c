// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// A launcher (iocom-tasks) as its shim starts it: when it begins, what its tasks get, how they end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/gang_plan.h"

#define PATIENCE_MS 60000
#define TEXT_MAX    65536
#define SILENCE_MS  2000 // after the tasks' end, of what they left behind

static struct gang_node nodes[2];
static uint32_t ranks[1100];
static rlim_t processes, files; // limits of the launcher; 0: ours

// TASKS on this node (n1); the last one of all is on another, n2.
static struct gang_plan plan_of(uint32_t tasks)
{
	struct gang_plan plan = {.gang = "n1-4f2a-57",
				 .launch = GANG_LAUNCH_TASKS,
				 .tasks = tasks + 1,
				 .nnodes = 2,
				 .nodes = nodes,
				 .ranks = ranks};

	strcpy(nodes[0].name, "n1");
	strcpy(nodes[1].name, "n2");
	nodes[0].first = 0;
	nodes[0].tasks = nodes[1].first = tasks;
	nodes[1].tasks = 1;
	for (uint32_t i = 0; i <= tasks; i++)
		ranks[i] = i;
	return plan;
}

struct launched {
	pid_t pid;
	int control, in, out, err; // our ends
	char said[2][TEXT_MAX];	   // on out and err
	size_t length[2];
	bool counts;	 // only lines are of interest
	size_t lines[2]; // on out and err
};

static const char *build(void)
{
	const char *dir = getenv("IOCOM_BUILD");

	return dir ? dir : "build";
}

static int plan_file(const struct gang_plan *plan)
{
	struct iocom_err err;
	size_t length;
	void *data;
	int fd = memfd_create("plan", 0);

	assert_int_equal(gang_plan_pack(plan, &data, &length, &err), 0);
	assert_int_equal(write(fd, data, length), length);
	free(data);
	return fd;
}

static void child(int plan, int control, const int stdio[3], const char *executable,
		  const char *const *argv)
{
	char path[512], a[12], b[12];
	const char *words[16] = {path, a, b, executable, "--"};

	for (int i = 0; i < 3; i++)
		dup2(stdio[i], i);
	snprintf(path, sizeof(path), "%s/iocom-tasks", build());
	snprintf(a, sizeof(a), "%d", plan);
	snprintf(b, sizeof(b), "%d", control);
	for (int i = 0; argv[i]; i++)
		words[5 + i] = argv[i];
	setsid();
	if (processes)
		setrlimit(RLIMIT_NPROC, &(struct rlimit){processes, processes});
	if (files)
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files});
	// A user whose processes are these alone.
	if (processes && setuid((uid_t)(1000000000 + getpid())))
		_exit(99);
	execv(path, (char *const *)words);
	_exit(98);
}

static struct launched *launch(const struct gang_plan *plan, const char *executable,
			       const char *const *argv)
{
	struct launched *l = calloc(1, sizeof(*l));
	int in[2], out[2], err[2], line[2], fd = plan_file(plan);

	assert_int_equal(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC) + pipe2(err, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line), 0);
	fcntl(line[0], F_SETFD, FD_CLOEXEC);
	l->pid = fork();
	if (l->pid == 0)
		child(fd, line[1], (int[]){in[0], out[1], err[1]}, executable, argv);
	close(fd);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	close(line[1]);
	l->control = line[0];
	l->in = in[1];
	l->out = out[0];
	l->err = err[0];
	return l;
}

static struct launched *launch_sh(const struct gang_plan *plan, const char *script)
{
	return launch(plan, "/bin/sh", (const char *const[]){"sh", "-c", script, NULL});
}

// The launcher's next message; 0: it has closed the line.
static int next(struct launched *l, struct gang_message *message)
{
	struct pollfd entry = {.fd = l->control, .events = POLLIN};
	uint8_t data[GANG_MESSAGE_MAX];
	ssize_t n;

	assert_int_equal(poll(&entry, 1, PATIENCE_MS), 1);
	n = recv(l->control, data, sizeof(data), 0);
	if (n <= 0)
		return 0;
	assert_int_equal(gang_message_unpack(message, data, (size_t)n), 0);
	return message->type;
}

static void say_go(struct launched *l)
{
	const struct gang_message message = {.type = GANG_GO};
	uint8_t data[GANG_MESSAGE_MAX];
	size_t n = gang_message_pack(&message, data);

	assert_int_equal(send(l->control, data, n, 0), n);
}

static void go(struct launched *l)
{
	struct gang_message ready;

	assert_int_equal(next(l, &ready), GANG_READY);
	say_go(l);
}

static void read_bytes(int fd, size_t n)
{
	char data[64];

	while (n) {
		ssize_t got = read(fd, data, n < sizeof(data) ? n : sizeof(data));

		assert_true(got > 0);
		n -= (size_t)got;
	}
}

static int status_of(const struct launched *l)
{
	int status;

	assert_int_equal(waitpid(l->pid, &status, 0), l->pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Reads both outputs to their ends.
static void read_all(struct launched *l)
{
	struct pollfd entries[2] = {{.fd = l->out, .events = POLLIN},
				    {.fd = l->err, .events = POLLIN}};

	while (entries[0].fd >= 0 || entries[1].fd >= 0) {
		assert_true(poll(entries, 2, PATIENCE_MS) > 0);
		for (int i = 0; i < 2; i++) {
			ssize_t n;

			if (!entries[i].revents)
				continue;
			n = read(entries[i].fd, l->said[i] + l->length[i],
				 TEXT_MAX - 1 - l->length[i]);
			for (ssize_t k = 0; k < n; k++)
				l->lines[i] += l->said[i][l->length[i] + (size_t)k] == '\n';
			if (n <= 0)
				entries[i].fd = -1;
			else if (!l->counts)
				l->length[i] += (size_t)n;
		}
	}
}

static int finish(struct launched *l)
{
	read_all(l);
	return status_of(l);
}

static void close_all(struct launched *l)
{
	close(l->control);
	if (l->in >= 0)
		close(l->in);
	close(l->out);
	close(l->err);
	free(l);
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void test_tasks_run(void **state)
{
	struct gang_plan plan = plan_of(3);
	struct launched *l =
		launch_sh(&plan, "echo $IOCOM_GANG $IOCOM_TASK $IOCOM_TASKS $IOCOM_LOCAL_TASK "
				 "$IOCOM_LOCAL_TASKS $IOCOM_NODES");
	struct gang_message m;

	(void)state;
	go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	assert_int_equal(finish(l), 0);
	assert_int_equal(count(l->said[0], "\n"), 3);
	assert_non_null(strstr(l->said[0], "n1-4f2a-57 0 4 0 3 n1,n2\n"));
	assert_non_null(strstr(l->said[0], "n1-4f2a-57 2 4 2 3 n1,n2\n"));
	assert_string_equal(l->said[1], "");
	assert_int_equal(next(l, &m), 0);
	close_all(l);
}

static void test_input_is_task_0s(void **state)
{
	struct gang_plan plan = plan_of(3);
	struct launched *l = launch_sh(&plan, "wc -c");

	(void)state;
	go(l);
	assert_int_equal(write(l->in, "hello", 5), 5);
	close(l->in);
	l->in = -1;
	assert_int_equal(finish(l), 0);
	assert_int_equal(count(l->said[0], "5\n"), 1);
	assert_int_equal(count(l->said[0], "0\n"), 2);
	close_all(l);
}

// Nothing starts before GO; a signal meanwhile ends the launcher.
static void test_no_go(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l = launch_sh(&plan, "echo started");
	struct gang_message m;

	(void)state;
	assert_int_equal(next(l, &m), GANG_READY);
	assert_int_equal(send(l->control, "\xc0garbage", 8, 0), 8);
	kill(-l->pid, SIGTERM);
	assert_int_equal(finish(l), 143);
	assert_string_equal(l->said[0], "");
	close_all(l);
}

// Without its supervisor nobody would end the tasks.
static void test_line_closed(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l = launch_sh(&plan, "sleep 977.25");
	struct gang_message m;

	(void)state;
	go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	shutdown(l->control, SHUT_RDWR);
	assert_int_equal(finish(l), 137);
	close_all(l);
}

static void test_a_failure_ends_all(void **state)
{
	struct gang_plan plan = plan_of(3);
	// Task 2 fails; task 0 ends when it is asked to, task 1 does not.
	struct launched *l =
		launch_sh(&plan, "case $IOCOM_TASK in 2) sleep 0.2; exit 7;; "
				 "1) trap '' TERM; sleep 977.5 & wait; sleep 977.5;; "
				 "0) trap 'echo asked; exit 0' TERM; sleep 977.5 & wait;; "
				 "esac");
	struct gang_message m;

	(void)state;
	go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	assert_int_equal(next(l, &m), GANG_FAILED);
	assert_int_equal(m.rank, 2);
	assert_false(m.signalled);
	assert_int_equal(m.value, 7);
	assert_string_equal(m.text, "");
	assert_int_equal(status_of(l), 7);
	kill(-l->pid, SIGKILL); // what task 1 has started; the shim does so
	read_all(l);
	assert_string_equal(l->said[0], "asked\n");
	assert_int_equal(next(l, &m), 0);
	close_all(l);
}

static void test_killed_by_a_signal(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l =
		launch_sh(&plan, "[ $IOCOM_TASK = 0 ] && kill -SEGV $$; exec sleep 977");
	struct gang_message m;

	(void)state;
	go(l);
	while (next(l, &m) == GANG_BEGUN)
		;
	assert_int_equal(m.type, GANG_FAILED);
	assert_int_equal(m.rank, 0);
	assert_true(m.signalled);
	assert_int_equal(m.value, SIGSEGV);
	assert_int_equal(finish(l), 128 + SIGSEGV);
	close_all(l);
}

static void test_keep_going(void **state)
{
	struct gang_plan plan = plan_of(3);
	struct launched *l;
	struct gang_message m;

	(void)state;
	plan.keep_going = true;
	l = launch_sh(&plan, "[ $IOCOM_TASK = 0 ] && exit 3; sleep 0.3; echo done");
	go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	assert_int_equal(finish(l), 3);
	assert_string_equal(l->said[0], "done\ndone\n");
	/* The client is told all the same, of the first. */
	assert_int_equal(next(l, &m), GANG_FAILED);
	assert_int_equal(m.rank, 0);
	assert_int_equal(m.value, 3);
	assert_int_equal(next(l, &m), 0);
	close_all(l);
}

static void test_labels(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l;

	(void)state;
	plan.label = true;
	l = launch_sh(&plan, "echo one; printf half; sleep 0.2; printf 'line\\nlast'; "
			     "[ $IOCOM_TASK = 1 ] && echo bad >&2; "
			     "head -c 20000 /dev/zero | tr '\\0' x >&2; exit 0");
	go(l);
	assert_int_equal(finish(l), 0);
	assert_int_equal(count(l->said[0], "0: one\n"), 1);
	assert_int_equal(count(l->said[0], "1: one\n"), 1);
	assert_int_equal(count(l->said[0], "0: halfline\n"), 1);
	assert_int_equal(count(l->said[0], "1: last\n"), 1);
	assert_int_equal(count(l->said[1], "1: bad\n"), 1);
	assert_int_equal(count(l->said[1], "x"), 40000);
	assert_int_equal(count(l->said[1], "\n"), 5); // longer lines become two
	close_all(l);
}

// Waits for the launcher's end and leaves it to be reaped.  Returns false after MS.
static bool ends_within(const struct launched *l, int ms)
{
	int pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0), n;

	assert_true(pidfd >= 0);
	n = poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, ms);
	close(pidfd);
	return n == 1;
}

// Output that a slow reader has not taken yet when the tasks have ended is not lost.
static void test_labels_wait_for_the_reader(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l;

	(void)state;
	plan.label = true;
	l = launch_sh(&plan, "yes | head -n 20000; printf end");
	go(l);
	assert_false(ends_within(l, SILENCE_MS + 1000));
	l->counts = true;
	assert_int_equal(finish(l), 0);
	assert_int_equal(l->lines[0], 2 * 20001);
	close_all(l);
}

// When nobody reads any more, tasks hear of it as without labels.
static void test_labels_without_a_reader(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l;
	struct gang_message m;

	(void)state;
	plan.label = true;
	plan.keep_going = true;
	l = launch(&plan, "/usr/bin/yes", (const char *const[]){"yes", NULL});
	go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	close(l->out);
	l->out = open("/dev/null", O_RDONLY);
	assert_int_equal(next(l, &m), GANG_FAILED);
	assert_true(m.signalled);
	assert_int_equal(m.value, SIGPIPE);
	assert_int_equal(finish(l), 128 + SIGPIPE);
	close_all(l);
}

// A signal for all reaches tasks that have a process group of their own, as timeout(1) makes one.
static void test_signals_reach_groups(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l;

	(void)state;
	l = launch(&plan, "/usr/bin/setsid",
		   (const char *const[]){"setsid", "sh", "-c",
					 "trap 'echo asked; exit 0' TERM; echo up; "
					 "while :; do sleep 0.1; done",
					 NULL});
	go(l);
	read_bytes(l->out, 6); // "up" of both
	kill(-l->pid, SIGTERM);
	assert_true(ends_within(l, PATIENCE_MS));
	assert_int_equal(finish(l), 0);
	assert_string_equal(l->said[0], "asked\nasked\n");
	close_all(l);
}

// A signal that comes while tasks are being started ends those too that it does not find yet.
static void test_signal_in_the_start(void **state)
{
	struct gang_plan plan = plan_of(300);
	struct launched *l;

	(void)state;
	plan.keep_going = true;
	l = launch_sh(&plan, "echo up; exec sleep 977");
	go(l);
	read_bytes(l->out, 3);
	kill(-l->pid, SIGTERM);
	assert_true(ends_within(l, PATIENCE_MS));
	assert_int_equal(finish(l), 143);
	close_all(l);
}

// Signals that end no process end no launcher, before GO and after.
static void test_harmless_signals(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l = launch_sh(&plan, "trap 'echo got; exit 0' XCPU; echo up; "
					      "while :; do sleep 0.1; done");
	struct gang_message m;

	(void)state;
	assert_int_equal(next(l, &m), GANG_READY);
	kill(l->pid, SIGWINCH);
	kill(l->pid, SIGSTOP);
	kill(l->pid, SIGCONT);
	say_go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	read_bytes(l->out, 6); // "up" of both
	kill(-l->pid, SIGXCPU);
	assert_int_equal(finish(l), 0);
	assert_string_equal(l->said[0], "got\ngot\n");
	close_all(l);
}

static void test_no_command(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l;
	struct gang_message m;

	(void)state;
	l = launch(&plan, "no-such-program", (const char *const[]){"no-such-program", NULL});
	assert_int_equal(next(l, &m), 0);
	assert_int_equal(finish(l), 127);
	assert_string_equal(l->said[1], "iocom: no-such-program: command not found on node n1\n");
	close_all(l);
	l = launch(&plan, "/etc/passwd", (const char *const[]){"passwd", NULL});
	assert_int_equal(next(l, &m), 0);
	assert_int_equal(finish(l), 126);
	assert_string_equal(l->said[1], "iocom: passwd: cannot be executed on node n1\n");
	close_all(l);
}

static void test_kinds(void **state)
{
	struct gang_plan plan = plan_of(2);
	struct launched *l;
	struct gang_message m;

	(void)state;
	plan.launch = GANG_LAUNCH_PMIX;
	l = launch_sh(&plan, "true");
	assert_int_equal(next(l, &m), 0);
	assert_int_equal(finish(l), 125);
	assert_string_equal(l->said[1], "iocom: this launcher starts no such gangs\n");
	close_all(l);
}

static void test_many(void **state)
{
	struct gang_plan plan = plan_of(1000);
	struct launched *l = launch_sh(&plan, "true");
	struct gang_message m;

	(void)state;
	go(l);
	assert_int_equal(next(l, &m), GANG_BEGUN);
	assert_int_equal(finish(l), 0);
	close_all(l);
}

static void test_limits(void **state)
{
	struct gang_plan plan = plan_of(40);
	struct launched *l;
	struct gang_message m;

	(void)state;
	files = 100;
	l = launch_sh(&plan, "true");
	files = 0;
	assert_int_equal(next(l, &m), 0);
	assert_int_equal(finish(l), 125);
	assert_non_null(strstr(l->said[1], "the limit of 100 open files (ulimit -Hn) forbids 40 "
					   "tasks on node n1, which need 184"));
	close_all(l);
	if (geteuid() != 0)
		skip();
	processes = 20;
	l = launch(&plan, "/bin/sleep", (const char *const[]){"sleep", "977", NULL});
	processes = 0;
	go(l);
	assert_int_equal(next(l, &m), GANG_FAILED);
	assert_int_equal(m.value, 125);
	assert_int_equal(finish(l), 125);
	assert_non_null(strstr(m.text, "the limit of 20 processes (ulimit -u) forbids 40 tasks on "
				       "node n1, which has started "));
	close_all(l);
}

static void test_binding(void **state)
{
	struct gang_plan plan = plan_of(1);
	struct launched *l;
	char mine[64];

	(void)state;
	plan.bind = true;
	l = launch_sh(&plan, "grep Cpus_allowed_list /proc/self/status; exec nproc");
	go(l);
	assert_int_equal(finish(l), 0);
	snprintf(mine, sizeof(mine), "\n%ld\n", sysconf(_SC_NPROCESSORS_ONLN));
	assert_non_null(strstr(l->said[0], mine)); // one task has all of them
	close_all(l);
	// Too few for each: all have all, and a sentence says so.
	plan = plan_of((uint32_t)sysconf(_SC_NPROCESSORS_ONLN) + 1);
	plan.bind = true;
	l = launch_sh(&plan, "nproc");
	go(l);
	assert_int_equal(finish(l), 0);
	assert_int_equal(count(l->said[0], mine + 1), plan.nodes[0].tasks);
	assert_int_equal(count(l->said[1], "\n"), 1);
	assert_non_null(strstr(l->said[1], "tasks on node n1 are bound to none"));
	close_all(l);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	plan = plan_of(2);
	plan.bind = true;
	l = launch_sh(&plan, "taskset -p $$ | sed 's/.*: //'");
	go(l);
	assert_int_equal(finish(l), 0);
	assert_int_equal(count(l->said[0], "\n"), 2);
	assert_true(strncmp(l->said[0], strchr(l->said[0], '\n') + 1,
			    strcspn(l->said[0], "\n") + 1) != 0);
	close_all(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks_run),
		cmocka_unit_test(test_input_is_task_0s),
		cmocka_unit_test(test_no_go),
		cmocka_unit_test(test_line_closed),
		cmocka_unit_test(test_a_failure_ends_all),
		cmocka_unit_test(test_killed_by_a_signal),
		cmocka_unit_test(test_keep_going),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_labels_wait_for_the_reader),
		cmocka_unit_test(test_labels_without_a_reader),
		cmocka_unit_test(test_signals_reach_groups),
		cmocka_unit_test(test_signal_in_the_start),
		cmocka_unit_test(test_harmless_signals),
		cmocka_unit_test(test_no_command),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_binding),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
