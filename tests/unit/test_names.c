/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Looking up hosts: with a helper that the test plays itself (order, bounds, answers that are
 * nonsense, a helper that ends or hangs), and, as root, with the real one.
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/net/names.h"
#include "agent/net/names_packet.h"
#include "tests/lib/confined.h"
#include "user/clock.h"

#define NOBODY	 65534
#define LIMIT_NS (20 * CLOCK_NS_PER_S)

/* What was answered to one who asked. */
struct asker {
	struct stand *stand;
	unsigned answers;
	size_t n;
	char first[INET6_ADDRSTRLEN], why[NAMES_WHY_MAX];
	void (*then)(struct asker *asker);
};

struct stand {
	struct loop *loop;
	struct names *names;
	int helper; /* the other end */
	unsigned breaks;
	char why[128];
	struct asker askers[NAMES_ASKS_MAX + 1];
};

static void took(void *arg, const struct names_answer *answer)
{
	struct asker *a = arg;

	a->answers++;
	a->n = answer->n;
	snprintf(a->first, sizeof(a->first), "%s", answer->n ? answer->addresses[0] : "");
	snprintf(a->why, sizeof(a->why), "%s", answer->why ? answer->why : "");
	assert_int_equal(!answer->n, !!answer->why);
	if (a->then)
		a->then(a);
}

static void broke(void *arg, const char *why)
{
	struct stand *s = arg;

	s->breaks++;
	snprintf(s->why, sizeof(s->why), "%s", why);
	loop_stop(s->loop);
}

static int ask(struct stand *s, unsigned asker, const char *host)
{
	return names_ask(s->names, host, took, &s->askers[asker]);
}

static void turn(struct stand *s)
{
	loop_advance(s->loop, 0);
}

static int set_up(void **state)
{
	struct stand *s = calloc(1, sizeof(*s));
	struct names_config config = {.broken = broke, .arg = s};
	int ends[2];

	assert_non_null(s);
	for (size_t i = 0; i <= NAMES_ASKS_MAX; i++)
		s->askers[i].stand = s;
	assert_int_equal(loop_new_virtual(&s->loop, CLOCK_NS_PER_S, CLOCK_NS_PER_S, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	config.loop = s->loop;
	config.fd = ends[0];
	s->helper = ends[1];
	assert_int_equal(names_new(&s->names, &config, NULL), 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	names_free(s->names);
	loop_free(s->loop);
	if (s->helper >= 0)
		close(s->helper);
	free(s);
	return 0;
}

/* --- the helper, as the test plays it ------------------------------------------------------- */

/* Takes the next question, which must be for HOST, and returns its slot. */
static uint32_t helper_takes(struct stand *s, const char *host)
{
	struct names_question q;

	assert_int_equal(recv(s->helper, &q, sizeof(q), MSG_DONTWAIT), sizeof(q));
	assert_string_equal(q.host, host);
	assert_true(q.slot < NAMES_WORKERS);
	return q.slot;
}

static void helper_is_idle(struct stand *s)
{
	char c;

	assert_int_equal(recv(s->helper, &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* ADDRESS NULL: not found. */
static void helper_says(struct stand *s, uint32_t slot, const char *address)
{
	struct names_reply r = {.slot = slot, .n = address != NULL};

	snprintf(r.addresses[0], sizeof(r.addresses[0]), "%s", address ? address : "");
	snprintf(r.why, sizeof(r.why), "%s", address ? "" : "no such host");
	assert_int_equal(send(s->helper, &r, sizeof(r), 0), sizeof(r));
	turn(s);
}

static void assert_found(const struct asker *a, const char *address)
{
	assert_int_equal(a->answers, 1);
	assert_int_equal(a->n, 1);
	assert_string_equal(a->first, address);
}

static void assert_not_found(const struct asker *a, const char *why)
{
	assert_int_equal(a->answers, 1);
	assert_int_equal(a->n, 0);
	assert_non_null(strstr(a->why, why));
}

/* --- hosts ----------------------------------------------------------------------------------- */

static void test_numeric(void **state)
{
	static const struct {
		const char *host, *address;
	} cases[] = {
		{"127.0.0.1", "127.0.0.1"},
		{"::1", "::1"},
		{"[::1]", "::1"},
		{"[2001:DB8::0:7]", "2001:db8::7"},
		{"::ffff:10.0.0.1", "::ffff:10.0.0.1"},
	};
	struct stand *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct asker with = {0}, without = {0};

		assert_int_equal(names_ask(s->names, cases[i].host, took, &with), 0);
		assert_found(&with, cases[i].address);
		assert_int_equal(names_ask(NULL, cases[i].host, took, &without), 0);
		assert_found(&without, cases[i].address);
	}
	helper_is_idle(s);
	assert_int_equal(names_waiting(s->names), 0);
}

static void test_without_helper(void **state)
{
	struct asker a = {0};

	(void)state;
	assert_int_equal(names_ask(NULL, "localhost", took, &a), 0);
	assert_not_found(&a, "cannot be looked up");
	names_forget(NULL, &a);
	assert_int_equal(names_waiting(NULL), 0);
	names_free(NULL);
}

static void test_bad_hosts(void **state)
{
	struct stand *s = *state;
	char host[IOCOM_ADDRESS_MAX + 1];

	memset(host, 'a', sizeof(host));
	host[IOCOM_ADDRESS_MAX] = '\0';
	assert_int_equal(ask(s, 0, host), -EINVAL);
	assert_int_equal(ask(s, 0, ""), -EINVAL);
	assert_int_equal(s->askers[0].answers, 0);
	helper_is_idle(s);
	host[IOCOM_ADDRESS_MAX - 1] = '\0'; /* the longest */
	assert_int_equal(ask(s, 0, host), 0);
	helper_says(s, helper_takes(s, host), NULL);
	assert_not_found(&s->askers[0], "no such host");
	assert_int_equal(ask(s, 1, "[]"), 0); /* is no address, and no name either */
	helper_says(s, helper_takes(s, "[]"), NULL);
	assert_not_found(&s->askers[1], "no such host");
}

/* --- who is answered, and when ---------------------------------------------------------------- */

static void test_found(void **state)
{
	struct stand *s = *state;

	assert_int_equal(ask(s, 0, "node1"), 0);
	assert_int_equal(s->askers[0].answers, 0);
	helper_says(s, helper_takes(s, "node1"), "10.0.0.1");
	assert_found(&s->askers[0], "10.0.0.1");
	assert_int_equal(names_waiting(s->names), 0);
	assert_int_equal(s->breaks, 0);
}

/* Asks for one host share a look-up, also those that come while it runs. */
static void test_shared(void **state)
{
	struct stand *s = *state;
	uint32_t slot;

	assert_int_equal(ask(s, 0, "node1"), 0);
	assert_int_equal(ask(s, 1, "node1"), 0);
	slot = helper_takes(s, "node1");
	assert_int_equal(ask(s, 2, "node1"), 0);
	assert_int_equal(ask(s, 0, "node1"), 0); /* waits already */
	assert_int_equal(ask(s, 0, "node2"), -EBUSY);
	helper_is_idle(s);
	helper_says(s, slot, "::2");
	for (int i = 0; i < 3; i++)
		assert_found(&s->askers[i], "::2");
}

/* More hosts than workers: the others wait here, and go in order. */
static void test_order(void **state)
{
	static const char *const hosts[] = {"a", "b", "c", "d", "e", "f", "g"};
	uint32_t slots[NAMES_WORKERS];
	struct stand *s = *state;

	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(ask(s, i, hosts[i]), 0);
	for (unsigned i = 0; i < NAMES_WORKERS; i++)
		slots[i] = helper_takes(s, hosts[i]);
	helper_is_idle(s);
	names_forget(s->names, &s->askers[4]); /* "e" is never looked up */
	helper_says(s, slots[2], "10.0.0.3");
	assert_found(&s->askers[2], "10.0.0.3");
	assert_int_equal(helper_takes(s, "f"), slots[2]);
	helper_is_idle(s);
	helper_says(s, slots[0], NULL);
	assert_not_found(&s->askers[0], "no such host");
	helper_takes(s, "g");
	assert_int_equal(s->askers[4].answers, 0);
	assert_int_equal(names_waiting(s->names), 4);
}

/* Whoever forgets is not called; the worker is busy all the same until it answers. */
static void test_forget(void **state)
{
	struct stand *s = *state;
	uint32_t slot;

	assert_int_equal(ask(s, 0, "node1"), 0);
	slot = helper_takes(s, "node1");
	names_forget(s->names, &s->askers[0]);
	names_forget(s->names, &s->askers[1]); /* has asked nothing */
	assert_int_equal(names_waiting(s->names), 0);
	assert_int_equal(ask(s, 0, "node1"), 0);
	helper_is_idle(s);
	helper_says(s, slot, "10.0.0.1");
	assert_found(&s->askers[0], "10.0.0.1");
	assert_int_equal(ask(s, 2, "node2"), 0);
	slot = helper_takes(s, "node2");
	names_forget(s->names, &s->askers[2]);
	helper_says(s, slot, "10.0.0.2");
	assert_int_equal(s->askers[2].answers, 0);
	assert_int_equal(ask(s, 3, "node3"), 0); /* the last of the queue was dropped */
	helper_says(s, helper_takes(s, "node3"), "10.0.0.3");
	assert_found(&s->askers[3], "10.0.0.3");
}

/* In the answer: asks again, and makes the next one's answer go. */
static void asks_again(struct asker *a)
{
	a->then = NULL;
	assert_int_equal(names_ask(a->stand->names, "node1", took, a), 0);
	names_forget(a->stand->names, &a->stand->askers[1]);
}

static void test_answer_asks(void **state)
{
	struct stand *s = *state;

	s->askers[0].then = asks_again;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ask(s, i, "node1"), 0);
	helper_says(s, helper_takes(s, "node1"), "10.0.0.1");
	assert_int_equal(s->askers[0].answers, 1);
	assert_int_equal(s->askers[1].answers, 0);
	assert_found(&s->askers[2], "10.0.0.1");
	helper_says(s, helper_takes(s, "node1"), "10.0.0.2");
	assert_int_equal(s->askers[0].answers, 2);
	assert_string_equal(s->askers[0].first, "10.0.0.2");
	assert_int_equal(names_waiting(s->names), 0);
}

static void test_bound(void **state)
{
	struct stand *s = *state;
	char host[32];

	for (unsigned i = 0; i < NAMES_ASKS_MAX; i++) {
		snprintf(host, sizeof(host), "node%u", i);
		assert_int_equal(ask(s, i, host), 0);
	}
	assert_int_equal(ask(s, NAMES_ASKS_MAX, "more"), -ENOBUFS);
	assert_int_equal(ask(s, NAMES_ASKS_MAX, "10.0.0.1"), 0); /* needs no place */
	assert_found(&s->askers[NAMES_ASKS_MAX], "10.0.0.1");
	names_forget(s->names, &s->askers[7]);
	assert_int_equal(ask(s, NAMES_ASKS_MAX, "more"), 0);
}

/* --- a helper that is no good ------------------------------------------------------------------
 */

static void assert_broken(struct stand *s, const char *why)
{
	assert_int_equal(s->breaks, 1);
	assert_non_null(strstr(s->why, why));
	for (unsigned i = 0; i < 6; i++)
		assert_not_found(&s->askers[i], why);
	assert_int_equal(names_waiting(s->names), 0);
	assert_int_equal(ask(s, 6, "later"), 0);
	assert_not_found(&s->askers[6], "cannot be looked up");
	assert_int_equal(ask(s, 7, "10.0.0.1"), 0);
	assert_found(&s->askers[7], "10.0.0.1");
	turn(s);
	assert_int_equal(s->breaks, 1);
}

static void six_ask(struct stand *s)
{
	char host[16];

	for (unsigned i = 0; i < 6; i++) {
		snprintf(host, sizeof(host), "node%u", i);
		assert_int_equal(ask(s, i, host), 0);
	}
}

static void test_helper_ends(void **state)
{
	struct stand *s = *state;

	six_ask(s);
	close(s->helper);
	s->helper = -1;
	turn(s);
	assert_broken(s, "has ended");
}

/* The loop has not noticed yet. */
static void test_helper_has_ended(void **state)
{
	struct stand *s = *state;

	close(s->helper);
	s->helper = -1;
	six_ask(s);
	assert_int_equal(s->breaks, 0);
	turn(s);
	assert_broken(s, "has ended");
}

static void test_helper_hangs(void **state)
{
	struct stand *s = *state;
	uint32_t slot;

	six_ask(s);
	slot = helper_takes(s, "node0");
	loop_advance(s->loop, NAMES_HUNG_NS - CLOCK_NS_PER_S);
	helper_says(s, slot, NULL); /* one answer, and it is given time again */
	assert_int_equal(s->askers[0].answers, 1);
	loop_advance(s->loop, NAMES_HUNG_NS - CLOCK_NS_PER_S);
	assert_int_equal(s->breaks, 0);
	assert_int_equal(ask(s, 7, "more"), 0); /* gives it none */
	loop_advance(s->loop, CLOCK_NS_PER_S);
	assert_int_equal(s->breaks, 1);
	assert_non_null(strstr(s->why, "hangs"));
	for (unsigned i = 1; i < 6; i++)
		assert_not_found(&s->askers[i], "hangs");
}

/* While a worker is free, it does not hang, however long a look-up takes. */
static void test_helper_is_slow(void **state)
{
	struct stand *s = *state;
	uint32_t slot;

	assert_int_equal(ask(s, 0, "node0"), 0);
	slot = helper_takes(s, "node0");
	loop_advance(s->loop, 3 * NAMES_HUNG_NS);
	helper_says(s, slot, "10.0.0.1");
	assert_found(&s->askers[0], "10.0.0.1");
}

static void bad_slot(struct names_reply *r)
{
	r->slot = NAMES_WORKERS;
}

static void bad_n(struct names_reply *r)
{
	r->n = NAMES_ADDRESSES_MAX + 1;
}

static void bad_address(struct names_reply *r)
{
	r->n = 1;
	strcpy(r->addresses[0], "evil.example");
}

static void no_address(struct names_reply *r)
{
	r->n = 1;
}

static void endless_address(struct names_reply *r)
{
	r->n = 1;
	memset(r->addresses[0], '1', sizeof(r->addresses[0]));
}

static void endless_why(struct names_reply *r)
{
	memset(r->why, 'x', sizeof(r->why));
}

static void test_nonsense(void **state)
{
	static void (*const spoil[])(struct names_reply *) = {
		bad_slot, bad_n, bad_address, no_address, endless_address, endless_why, NULL, NULL,
	};

	for (size_t i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
		struct names_reply r[2] = {{0}};
		struct stand *s;

		set_up(state);
		s = *state;
		six_ask(s);
		if (spoil[i])
			spoil[i](r);
		/* Without a spoiler: too short, and too long. */
		assert_true(send(s->helper, r, sizeof(r[0]) - (i == 6) + (i == 7), 0) > 0);
		turn(s);
		assert_broken(s, "nonsense");
		tear_down(state);
	}
}

/* An answer that nobody asked for; one was asked before. */
static void test_answered_twice(void **state)
{
	struct stand *s = *state;
	uint32_t slot;

	assert_int_equal(ask(s, 0, "node0"), 0);
	slot = helper_takes(s, "node0");
	helper_says(s, slot, "10.0.0.1");
	assert_int_equal(s->breaks, 0);
	helper_says(s, slot, "10.0.0.1");
	assert_int_equal(s->breaks, 1);
	assert_int_equal(s->askers[0].answers, 1);
}

/* --- the real helper ------------------------------------------------------------------------- */

struct real {
	struct stand stand;
	struct names_helper helper;
};

static int real_set_up(void **state)
{
	struct real *r = calloc(1, sizeof(*r));
	struct names_config config = {.broken = broke, .arg = &r->stand};
	struct iocom_err err = {0};

	assert_non_null(r);
	*state = r;
	if (geteuid() != 0)
		return 0;
	assert_int_equal(loop_new(&r->stand.loop, NULL), 0);
	if (names_start(NOBODY, NOBODY, &r->helper, &err))
		fail_msg("%s", err.text);
	config.loop = r->stand.loop;
	config.fd = r->helper.fd;
	assert_int_equal(names_new(&r->stand.names, &config, NULL), 0);
	return 0;
}

/* It ends because its channel is closed. */
static void real_ends(pid_t pid)
{
	for (int i = 0; i < 500; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fail_msg("the helper does not end");
}

static int real_tear_down(void **state)
{
	struct real *r = *state;

	if (geteuid() == 0) {
		names_free(r->stand.names);
		loop_free(r->stand.loop);
		real_ends(r->helper.pid);
	}
	free(r);
	return 0;
}

static void give_up(void *arg)
{
	(void)arg;
	fail_msg("no answer");
}

static void stop(struct asker *a)
{
	loop_stop(a->stand->loop);
}

static struct asker *real_ask(struct real *r, unsigned i, const char *host)
{
	struct loop_timer limit = {.fire = give_up};
	struct asker *a = &r->stand.askers[i];

	*a = (struct asker){.stand = &r->stand, .then = stop};
	loop_start(r->stand.loop, &limit, LIMIT_NS);
	assert_int_equal(ask(&r->stand, i, host), 0);
	assert_int_equal(a->answers, 0);
	assert_int_equal(loop_run(r->stand.loop), 0);
	loop_cancel(r->stand.loop, &limit);
	return a;
}

static void skip_unless_root(void)
{
	if (geteuid() != 0) {
		print_message("# SKIP needs root\n");
		skip();
	}
}

static void test_real_answers(void **state)
{
	struct real *r = *state;
	struct asker *a;

	skip_unless_root();
	a = real_ask(r, 0, "localhost");
	assert_int_equal(a->answers, 1);
	assert_true(a->n >= 1);
	assert_true(!strcmp(a->first, "127.0.0.1") || !strcmp(a->first, "::1"));
	a = real_ask(r, 1, "nosuchhost.invalid");
	assert_int_equal(a->n, 0);
	assert_true(a->why[0]);
	print_message("nosuchhost.invalid: %s\n", a->why);
	a = real_ask(r, 2, "127.1"); /* an old spelling, which the C library knows */
	assert_found(a, "127.0.0.1");
	a = real_ask(r, 3, "fe80::1%1"); /* cannot be dialled */
	assert_not_found(a, "link-local");
	assert_int_equal(r->stand.breaks, 0);
}

static bool status_says(pid_t pid, const char *line)
{
	char path[64], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	return strstr(text, line) != NULL;
}

static void test_real_is_confined(void **state)
{
	struct real *r = *state;
	char path[64];

	skip_unless_root();
	assert_true(status_says(r->helper.pid, "Name:\tiocom-names\n"));
	assert_true(status_says(r->helper.pid, "Uid:\t65534\t65534\t65534\t65534\n"));
	assert_true(status_says(r->helper.pid, "Gid:\t65534\t65534\t65534\t65534\n"));
	assert_true(status_says(r->helper.pid, "CapPrm:\t0000000000000000\n"));
	assert_true(status_says(r->helper.pid, "CapBnd:\t0000000000000000\n"));
	assert_true(status_says(r->helper.pid, "NoNewPrivs:\t1\n"));
	/* Of the parent's descriptors it has none but those of the log. */
	for (int fd = 4; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", r->helper.pid, fd);
		assert_int_equal(access(path, F_OK), -1);
	}
	kill(r->helper.pid, SIGTERM); /* of a service that is stopped */
	assert_true(real_ask(r, 0, "localhost")->n >= 1);
}

static void test_real_is_killed(void **state)
{
	struct real *r = *state;

	skip_unless_root();
	kill(r->helper.pid, SIGKILL);
	assert_not_found(real_ask(r, 0, "localhost"), "has ended");
	assert_int_equal(r->stand.breaks, 1);
}

/* A question that is none ends it. */
static void test_real_questions(void **state)
{
	struct real *r = *state;

	skip_unless_root();
	assert_int_equal(send(r->helper.fd, "?", 1, 0), 1);
	assert_int_equal(loop_run(r->stand.loop), 0);
	assert_int_equal(r->stand.breaks, 1);
}

static void test_real_refuses_root(void **state)
{
	struct names_helper helper;
	struct iocom_err err = {0};

	(void)state;
	skip_unless_root();
	assert_int_equal(names_start(0, 0, &helper, &err), -EINVAL);
	assert_non_null(strstr(err.text, "user and a group of its own"));
	assert_int_equal(helper.fd, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* The channel stays open in another process. */
static void start_two(int told)
{
	struct names_helper helper;
	pid_t pids[2];

	if (names_start(NOBODY, NOBODY, &helper, NULL))
		_exit(1);
	pids[0] = helper.pid;
	pids[1] = fork();
	alarm(30); /* if the test fails */
	if (pids[1] && write(told, pids, sizeof(pids)) != sizeof(pids))
		_exit(1);
	for (;;)
		pause();
}

static void test_real_dies_with_parent(void **state)
{
	pid_t parent, pids[2];
	int ends[2], status;

	(void)state;
	skip_unless_root();
	assert_int_equal(pipe(ends), 0);
	parent = fork();
	if (parent == 0)
		start_two(ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], pids, sizeof(pids)), sizeof(pids));
	close(ends[0]);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_true(confined_is_killed(pids[0]));
	kill(pids[1], SIGKILL);
	assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

#define REAL(test)   cmocka_unit_test_setup_teardown(test, real_set_up, real_tear_down)
#define PLAYED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAYED(test_numeric),
		cmocka_unit_test(test_without_helper),
		PLAYED(test_bad_hosts),
		PLAYED(test_found),
		PLAYED(test_shared),
		PLAYED(test_order),
		PLAYED(test_forget),
		PLAYED(test_answer_asks),
		PLAYED(test_bound),
		PLAYED(test_helper_ends),
		PLAYED(test_helper_has_ended),
		PLAYED(test_helper_hangs),
		PLAYED(test_helper_is_slow),
		cmocka_unit_test(test_nonsense),
		PLAYED(test_answered_twice),
		REAL(test_real_answers),
		REAL(test_real_is_confined),
		REAL(test_real_is_killed),
		REAL(test_real_questions),
		cmocka_unit_test(test_real_refuses_root),
		cmocka_unit_test(test_real_dies_with_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
