// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// PMI-1 as the launcher of a part serves it: lines, keys, where ranks are, and what two ranks may
// say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/tasks/pmi1.h"
#include "agent/tasks/pmi1_keys.h"
#include "agent/tasks/pmi1_line.h"
#include "agent/tasks/tasks_own.h"
#include "user/clock.h"

#define RANKS 2

// --- lines ----------------------------------------------------------------------------------

static int parse(struct pmi1_line *line, const char *text)
{
	static char copy[PMI1_LINE_MAX];

	snprintf(copy, sizeof(copy), "%s", text);
	return pmi1_line_parse(line, copy);
}

static void test_lines(void **state)
{
	char many[PMI1_LINE_MAX] = "";
	struct pmi1_line line;

	(void)state;
	assert_int_equal(parse(&line, "cmd=put kvsname=gang  key=a value=x=y "), 0);
	assert_int_equal(line.count, 4);
	assert_string_equal(pmi1_line_get(&line, "cmd"), "put");
	assert_string_equal(pmi1_line_get(&line, "key"), "a");
	assert_string_equal(pmi1_line_get(&line, "value"), "x=y");
	assert_null(pmi1_line_get(&line, "val"));
	assert_int_equal(parse(&line, "cmd=put value="), 0);
	assert_string_equal(pmi1_line_get(&line, "value"), "");
	assert_int_equal(parse(&line, ""), -EBADMSG);
	assert_int_equal(parse(&line, "   "), -EBADMSG);
	assert_int_equal(parse(&line, "endcmd"), -EBADMSG);
	assert_int_equal(parse(&line, "cmd=put =x"), -EBADMSG);
	assert_int_equal(parse(&line, "cmd=put key=a\tb"), -EBADMSG);
	assert_int_equal(parse(&line, "cmd=put key=\x7f"), -EBADMSG);
	for (int i = 0; i < PMI1_WORDS_MAX; i++)
		strcat(many, "a=b ");
	assert_int_equal(parse(&line, many), 0);
	strcat(many, "a=b");
	assert_int_equal(parse(&line, many), -EBADMSG);
}

// --- keys -------------------------------------------------------------------------------------

static void test_keys(void **state)
{
	struct pmi1_keys keys = {0}, others = {0};
	char key[PMI1_KEY_MAX + 1], value[PMI1_VALUE_MAX + 1];

	(void)state;
	memset(key, 'k', sizeof(key));
	memset(value, 'v', sizeof(value));
	key[PMI1_KEY_MAX] = value[PMI1_VALUE_MAX] = 0;
	assert_int_equal(pmi1_keys_put(&keys, key, "x", 1), -EINVAL);
	assert_int_equal(pmi1_keys_put(&keys, "a", value, 1), -EINVAL);
	assert_int_equal(pmi1_keys_put(&keys, "", "x", 1), -EINVAL);
	assert_int_equal(pmi1_keys_put(&keys, "a b", "x", 1), -EINVAL);
	assert_int_equal(pmi1_keys_put(&keys, "a", "x\ny=z", 1), -EINVAL);
	assert_int_equal(keys.fresh.length, 0);
	key[PMI1_KEY_MAX - 1] = value[PMI1_VALUE_MAX - 1] = 0;
	assert_int_equal(pmi1_keys_put(&keys, key, value, 1), 0);
	assert_int_equal(pmi1_keys_put(&keys, "a", "1", 1), 0);
	assert_int_equal(pmi1_keys_put(&keys, "a", "2=3", 1), 0);
	assert_int_equal(pmi1_keys_put(&keys, "mine", "4", 0), 0);
	assert_string_equal(pmi1_keys_get(&keys, "a"), "2=3");
	assert_null(pmi1_keys_get(&keys, "b"));
	assert_int_equal(
		pmi1_keys_learn(&others, (const char *)queue_front(&keys.fresh), keys.fresh.length),
		0);
	assert_string_equal(pmi1_keys_get(&others, "a"), "2=3");
	assert_string_equal(pmi1_keys_get(&others, key), value);
	assert_null(pmi1_keys_get(&others, "mine"));
	assert_int_equal(others.fresh.length, 0);
	assert_int_equal(pmi1_keys_learn(&others, "", 0), 0);
	assert_int_equal(pmi1_keys_learn(&others, "a=b", 3), -EBADMSG);
	assert_int_equal(pmi1_keys_learn(&others, "ab\n", 3), -EBADMSG);
	assert_int_equal(pmi1_keys_learn(&others, "a=\0\n", 4), -EBADMSG);
	assert_int_equal(pmi1_keys_learn(&others, "=b\n", 3), -EINVAL);
	pmi1_keys_free(&keys);
	pmi1_keys_free(&others);
}

// Between two barriers a part keeps so much and no more, whatever a rank puts again and again.
static void test_keys_bound(void **state)
{
	struct pmi1_keys keys = {0};
	char value[PMI1_VALUE_MAX];
	int rc;

	(void)state;
	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = 0;
	while (!(rc = pmi1_keys_put(&keys, "again", value, 1)))
		;
	assert_int_equal(rc, -ENOSPC);
	assert_true(keys.fresh.length <= PMI1_FRESH_MAX);
	assert_true(keys.fresh.length > PMI1_FRESH_MAX - 2 * PMI1_VALUE_MAX);
	pmi1_keys_free(&keys);
}

static void test_mapping(void **state)
{
	struct gang_node nodes[] = {{.first = 0, .tasks = 3}, {.first = 3, .tasks = 2}};
	uint32_t ranks[] = {0, 1, 4, 2, 3};
	struct gang_plan plan = {.tasks = 5, .nnodes = 2, .nodes = nodes, .ranks = ranks};
	char text[64];

	(void)state;
	assert_int_equal(pmi1_mapping(&plan, text, sizeof(text)), 0);
	assert_string_equal(text, "(vector,(0,1,2),(1,1,2),(0,1,1))");
	assert_int_equal(pmi1_mapping(&plan, text, strlen("(vector,(0,1,2),(1,1,2),(0,1,1))") + 1),
			 0);
	assert_int_equal(pmi1_mapping(&plan, text, strlen("(vector,(0,1,2),(1,1,2),(0,1,1))")),
			 -E2BIG);
	assert_int_equal(pmi1_mapping(&plan, text, 12), -E2BIG);
}

// --- two ranks and their launcher ---------------------------------------------------------------

static struct tasks tasks;
static struct gang_node node = {.name = "n1", .tasks = RANKS};
static uint32_t ranks[RANKS] = {0, 1};
static int fds[RANKS];

static int setup(void **state)
{
	struct iocom_err err;
	uint16_t port = 0;

	(void)state;
	tasks = (struct tasks){.control = -1, .count = RANKS, .ranks = ranks};
	tasks.plan = (struct gang_plan){.gang = "n1-4f2a-57",
					.launch = GANG_LAUNCH_PMI1,
					.tasks = RANKS,
					.nnodes = 1,
					.nodes = &node,
					.ranks = ranks};
	assert_int_equal(pmi1_kind.prepare(&tasks, &port, &err), 0);
	assert_int_equal(port, 0); // of one part
	assert_int_equal(pmi1_kind.join(&tasks, "", 0, &err), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct task_env env = {0};
		char number[32];

		fds[i] = -1;
		assert_int_equal(pmi1_kind.task(&tasks, i, &env, &fds[i], &err), 0);
		assert_true(fds[i] >= 0);
		snprintf(number, sizeof(number), "PMI_FD=%d", fds[i]);
		assert_string_equal(env.list[0], number);
		snprintf(number, sizeof(number), "PMI_RANK=%u", i);
		assert_string_equal(env.list[1], number);
		assert_string_equal(env.list[2], "PMI_SIZE=2");
		task_env_free(&env);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pmi1_kind.stop(&tasks);
	free(tasks.watches);
	free(tasks.entries);
	for (uint32_t i = 0; i < RANKS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return 0;
}

static void turns(void)
{
	for (int i = 0; i < 8; i++)
		tasks_turn(&tasks, 0);
}

static void say(uint32_t rank, const char *text)
{
	assert_int_equal(send(fds[rank], text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turns();
}

static void expect(uint32_t rank, const char *text)
{
	char got[PMI1_LINE_MAX];
	ssize_t n = recv(fds[rank], got, sizeof(got) - 1, MSG_DONTWAIT);

	got[n < 0 ? 0 : n] = 0;
	assert_string_equal(got, text);
}

#define INIT  "cmd=init pmi_version=1 pmi_subversion=1\n"
#define HELLO "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"

static void test_session(void **state)
{
	(void)state;
	say(0, "cmd=in");
	expect(0, "");
	say(0, "it pmi_version=1 pmi_subversion=1\ncmd=get_maxes\n");
	expect(0, HELLO "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024\n");
	say(0, "cmd=get_appnum\ncmd=get_my_kvsname\ncmd=get_universe_size\n");
	expect(0, "cmd=appnum appnum=0\ncmd=my_kvsname kvsname=gang\ncmd=universe_size size=2\n");
	say(0, "cmd=get kvsname=gang key=PMI_process_mapping\n");
	expect(0, "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n");
	say(1, INIT);
	expect(1, HELLO);
	say(1, "cmd=put kvsname=gang key=P1 value=a=b\n");
	expect(1, "cmd=put_result rc=0 msg=success\n");
	say(1, "cmd=put kvsname=gang value=x\n");
	expect(1, "cmd=put_result rc=-1 msg=bad_key_or_value\n");
	say(0, "cmd=barrier_in\n");
	expect(0, "");
	say(1, "cmd=barrier_in\n");
	expect(0, "cmd=barrier_out\n");
	expect(1, "cmd=barrier_out\n");
	say(0, "cmd=get kvsname=gang key=P1\n");
	expect(0, "cmd=get_result rc=0 msg=success value=a=b\n");
	say(0, "cmd=get kvsname=gang key=P2\n");
	expect(0, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
	say(0, "cmd=publish_name service=a port=b\n");
	expect(0, "cmd=publish_name_result rc=-1 msg=not_supported\n");
	for (uint32_t i = 0; i < RANKS; i++) {
		say(i, "cmd=finalize\n");
		expect(i, "cmd=finalize_ack\n");
	}
	assert_true(pmi1_kind.done(&tasks));
	for (uint32_t i = 0; i < RANKS; i++) {
		close(fds[i]);
		fds[i] = -1;
		pmi1_kind.ended(&tasks, i, 0);
	}
	assert_false(tasks.failing);
}

// MPI_Comm_spawn is refused when all its lines have come; what is within them is not obeyed.
static void test_spawn(void **state)
{
	(void)state;
	say(0, INIT "mcmd=spawn\nnprocs=2\nexecname=a b\ncmd=finalize\n");
	expect(0, HELLO);
	say(0, "endcmd\n");
	expect(0, "cmd=spawn_result rc=-1 msg=not_supported\n");
	assert_false(tasks.failing);
}

static void test_version(void **state)
{
	(void)state;
	say(0, "cmd=init pmi_version=2 pmi_subversion=0\n");
	expect(0, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
	assert_false(tasks.failing);
}

static void expect_failure(int status)
{
	assert_true(tasks.failing);
	assert_int_equal(tasks.status, status);
}

static void test_abort(void **state)
{
	(void)state;
	say(1, INIT "cmd=abort exitcode=3\n");
	expect_failure(3);
}

// A rank whose neighbour crashed may abort before the crash is heard of: the crash is told, too.
static void test_abort_by_a_crash(void **state)
{
	struct gang_message first, second;
	uint8_t data[GANG_MESSAGE_MAX];
	struct task list[RANKS] = {{.rank = 0}, {.rank = 1}};
	int line[2], signals;
	sigset_t set;
	ssize_t n;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	signals = signalfd(-1, &set, SFD_NONBLOCK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		list[i].pid = fork();
		if (!list[i].pid) {
			setpgid(0, 0);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		assert_true(list[i].pid > 0);
	}
	tasks.control = line[0];
	tasks.list = list;
	tasks.running = RANKS;
	tasks.kind = &pmi1_kind;
	assert_int_equal(tasks_watch(&tasks, signals, POLLIN, tasks_signal, NULL), 0);
	say(1, INIT "cmd=abort exitcode=15\n");
	expect_failure(15);
	assert_false(tasks.termed);
	n = recv(line[1], data, sizeof(data), MSG_DONTWAIT);
	assert_int_equal(gang_message_unpack(&first, data, (size_t)n), 0);
	assert_int_equal(first.rank, 1);
	assert_false(first.crash);
	kill(list[0].pid, SIGKILL); // cmocka has handlers for other crashes
	for (int i = 0; i < 500 && !tasks.crashed; i++)
		tasks_turn(&tasks, clock_boot_ms() + 20);
	expect_failure(128 + SIGKILL);
	assert_true(tasks.termed);
	n = recv(line[1], data, sizeof(data), MSG_DONTWAIT);
	assert_int_equal(gang_message_unpack(&second, data, (size_t)n), 0);
	assert_int_equal(second.rank, 0);
	assert_true(second.crash && second.signalled);
	assert_int_equal(second.value, SIGKILL);
	// One more is no news.
	kill(list[1].pid, SIGKILL);
	for (int i = 0; i < 500 && tasks.running; i++)
		tasks_turn(&tasks, clock_boot_ms() + 20);
	assert_int_equal(tasks.running, 0);
	assert_int_equal(recv(line[1], data, sizeof(data), MSG_DONTWAIT), -1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(signals);
	close(line[0]);
	close(line[1]);
}

static void test_abort_of_0(void **state)
{
	(void)state;
	say(1, INIT "cmd=abort exitcode=0\n");
	expect_failure(1);
}

static void test_no_finalize(void **state)
{
	(void)state;
	say(1, INIT);
	pmi1_kind.ended(&tasks, 1, 0);
	expect_failure(1);
}

// A program that is no MPI program may run so; but not beside ranks that wait for it.
static void test_no_mpi(void **state)
{
	(void)state;
	pmi1_kind.ended(&tasks, 0, 0);
	assert_false(tasks.failing);
	pmi1_kind.ended(&tasks, 1, 0);
	assert_false(tasks.failing);
	assert_true(pmi1_kind.done(&tasks));
}

static void test_no_init(void **state)
{
	(void)state;
	pmi1_kind.ended(&tasks, 1, 0);
	assert_false(tasks.failing);
	say(0, INIT "cmd=barrier_in\n");
	expect_failure(1);
}

// What no MPI library says ends the job, and the rank is no longer heard.
static void bad(const char *text, size_t length)
{
	char byte;

	assert_int_equal(send(fds[0], text, length, MSG_NOSIGNAL), (ssize_t)length);
	turns();
	expect_failure(TASKS_FAILED);
	while (recv(fds[0], &byte, 1, MSG_DONTWAIT) > 0)
		;
	assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
}

static void test_garbage(void **state)
{
	(void)state;
	bad("GET / HTTP/1.1\r\n\r\n", 18);
}

static void test_nul(void **state)
{
	(void)state;
	bad("cmd=get_appnum\0\n", 16);
}

static void test_no_command(void **state)
{
	(void)state;
	bad("key=a value=b\n", 14);
}

static void test_long_line(void **state)
{
	char text[PMI1_LINE_MAX];

	(void)state;
	memset(text, 'a', sizeof(text));
	bad(text, sizeof(text));
}

static void test_barrier_twice(void **state)
{
	(void)state;
	bad("cmd=barrier_in\ncmd=barrier_in\n", 30);
}

// One that asks and never reads is not heard until it reads; nothing is lost, and the other is
// served.
static void test_unread(void **state)
{
	static const char ask[] = "cmd=get kvsname=gang key=PMI_process_mapping\n";
	static const char answer[] = "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n";
	size_t asked = 0, got = 0;
	char text[4096];
	ssize_t n;

	(void)state;
	while ((n = send(fds[0], ask + asked % (sizeof(ask) - 1),
			 sizeof(ask) - 1 - asked % (sizeof(ask) - 1), MSG_DONTWAIT)) > 0) {
		asked += (size_t)n;
		assert_true(asked < 64u << 20);
		tasks_turn(&tasks, 0);
	}
	say(1, "cmd=get_appnum\n");
	expect(1, "cmd=appnum appnum=0\n");
	for (int idle = 0; idle < 100; idle++) {
		tasks_turn(&tasks, 0);
		while ((n = recv(fds[0], text, sizeof(text), MSG_DONTWAIT)) > 0) {
			got += (size_t)n;
			idle = 0;
		}
	}
	assert_int_equal(got, asked / (sizeof(ask) - 1) * (sizeof(answer) - 1));
	assert_false(tasks.failing);
}

#define SESSION(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_keys_bound),
		cmocka_unit_test(test_mapping),
		SESSION(test_session),
		SESSION(test_spawn),
		SESSION(test_version),
		SESSION(test_abort),
		SESSION(test_abort_by_a_crash),
		SESSION(test_abort_of_0),
		SESSION(test_no_finalize),
		SESSION(test_no_mpi),
		SESSION(test_no_init),
		SESSION(test_garbage),
		SESSION(test_nul),
		SESSION(test_no_command),
		SESSION(test_long_line),
		SESSION(test_barrier_twice),
		SESSION(test_unread),
	};

	setpgid(0, 0); // tasks that fail end their process group
	signal(SIGTERM, SIG_IGN);
	return cmocka_run_group_tests_name("pmi1", tests, NULL, NULL);
}
