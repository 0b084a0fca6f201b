/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How root starts its network part, and starts it again when it dies, hangs or sends what is no
 * message.  The network part is played: it says what a test wants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/gate/net_part.h"
#include "agent/gate/net_spawn.h"
#include "user/clock.h"

#define PERIOD_NS (5 * CLOCK_NS_PER_S)

/* How the played part begins. */
enum manner { WELL, REFUSES, SAYS_NOTHING, CANNOT_START, DIES_AT_ONCE };

static struct {
	struct loop *loop;
	struct logger log;
	struct counters counters;
	struct base base;
	enum manner manner;
	bool answers; /* pings */
	bool starves; /* waits for a processor all the while */
	struct gate *gate;
	unsigned starts, ups, downs, handled;
	uint64_t started_ns;
	struct gate_setup setup;
} s;

static void play_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			  const int *fds)
{
	const struct gate_message pong = {.type = GATE_PONG, .id = m->id};

	(void)arg;
	(void)tail;
	(void)n;
	for (size_t i = 0; i < gate_fds_of(m); i++)
		close(fds[i]);
	if (m->type == GATE_SETUP)
		s.setup = m->setup;
	if (m->type == GATE_PING && s.answers)
		(void)gate_send(s.gate, &pong, NULL, 0, NULL);
}

static void play_broken(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static void play_ready(int rc, const char *why)
{
	const struct gate_message m = {.type = GATE_READY, .ready = {.rc = rc}};

	assert_int_equal(gate_send(s.gate, &m, why, strlen(why), NULL), 0);
}

static void play_end(void)
{
	gate_free(s.gate);
	s.gate = NULL;
}

static int play_start(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	const struct gate_config config = {.loop = s.loop,
					   .side = GATE_TO_NET,
					   .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
					   .received = play_received,
					   .broken = play_broken};

	(void)arg;
	*pidfd = -1;
	s.starts++;
	s.started_ns = loop_boot_ns(s.loop);
	play_end();
	if (s.manner == CANNOT_START) {
		close(config.fd);
		return iocom_err_set(err, -ENOENT, "there is no such program");
	}
	assert_int_equal(gate_new(&s.gate, &config, err), 0);
	assert_int_equal(gate_wait(s.gate, 1000), 0);
	if (s.manner == WELL)
		play_ready(0, "");
	else if (s.manner == REFUSES)
		play_ready(-EADDRINUSE, "the port is in use");
	else if (s.manner == DIES_AT_ONCE)
		play_end();
	return 0;
}

static uint64_t play_waited(void *arg)
{
	(void)arg;
	return s.starves ? loop_boot_ns(s.loop) : CLOCK_NS_PER_MS;
}

static void watch_up(void *arg)
{
	(void)arg;
	s.ups++;
}

static void watch_down(void *arg)
{
	(void)arg;
	s.downs++;
}

static int part_new(struct net_part **part, struct iocom_err *err)
{
	const struct net_part_config config = {
		.base = &s.base,
		.setup = {.name = "n1", .port = 7700},
		.streams = -1,
		.http = -1,
		.start = {.start = play_start, .waited_ns = play_waited}};

	return net_part_new(part, &config, err);
}

static struct net_part *part_up(struct net_watch *watch)
{
	struct iocom_err err = {0};
	struct net_part *part;

	*watch = (struct net_watch){.up = watch_up, .down = watch_down};
	if (part_new(&part, &err))
		fail_msg("%s", err.text);
	net_part_watch(part, watch);
	return part;
}

static int setup(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	s.answers = true;
	s.base = (struct base){.log = &s.log, .counters = &s.counters};
	if (loop_new_virtual(&s.loop, CLOCK_NS_PER_S, CLOCK_NS_PER_S, NULL))
		return -1;
	s.base.loop = s.loop;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	play_end();
	loop_free(s.loop);
	return 0;
}

static void test_begins(void **state)
{
	struct net_watch watch;
	struct net_part *part = part_up(&watch);

	(void)state;
	assert_true(net_part_is_up(part));
	assert_string_equal(s.setup.name, "n1");
	assert_int_equal(s.ups, 1);
	loop_advance(s.loop, 100 * CLOCK_NS_PER_S);
	assert_int_equal(s.starts, 1);
	assert_int_equal(s.counters.network_restarts, 0);
	net_part_free(part);
	loop_advance(s.loop, PERIOD_NS);
	assert_int_equal(s.starts, 1);
}

static void cannot_begin(enum manner manner, int rc, const char *why)
{
	struct iocom_err err = {0};
	struct net_part *part;

	s.manner = manner;
	assert_int_equal(part_new(&part, &err), rc);
	assert_null(part);
	assert_non_null(strstr(err.text, why));
	loop_advance(s.loop, PERIOD_NS);
	assert_int_equal(s.starts, 1); /* whoever started the agent is told, and it is over */
}

static void test_refuses(void **state)
{
	(void)state;
	cannot_begin(REFUSES, -EADDRINUSE, "the port is in use");
}

static void test_cannot_start(void **state)
{
	(void)state;
	cannot_begin(CANNOT_START, -ENOENT, "there is no such program");
}

static void test_dies_before_it_is_ready(void **state)
{
	(void)state;
	cannot_begin(DIES_AT_ONCE, -EPIPE, "ended before it was ready");
}

/* It worked: so it comes back at once, and who uses it is told. */
static void test_dies(void **state)
{
	struct net_watch watch;
	struct net_part *part = part_up(&watch);
	uint64_t died;

	(void)state;
	loop_advance(s.loop, PERIOD_NS);
	died = loop_boot_ns(s.loop);
	play_end();
	loop_advance(s.loop, PERIOD_NS);
	assert_int_equal(s.starts, 2);
	assert_true(s.started_ns - died <= 50 * CLOCK_NS_PER_MS);
	assert_int_equal(s.downs, 1);
	assert_int_equal(s.ups, 2);
	assert_true(net_part_is_up(part));
	assert_int_equal(s.counters.network_restarts, 1);
	net_part_free(part);
}

/* It dies again and again: the waits grow, but not beyond a second. */
static void test_dies_again(void **state)
{
	struct net_watch watch;
	struct net_part *part = part_up(&watch);
	uint64_t longest = 0, before;

	(void)state;
	s.manner = DIES_AT_ONCE;
	before = s.started_ns;
	play_end();
	for (int i = 0; i < 60000; i++) {
		loop_advance(s.loop, CLOCK_NS_PER_MS);
		if (s.started_ns == before)
			continue;
		if (s.started_ns - before > longest)
			longest = s.started_ns - before;
		before = s.started_ns;
	}
	assert_in_range(longest, NET_PART_AGAIN_MAX_NS / 2,
			NET_PART_AGAIN_MAX_NS + 20 * CLOCK_NS_PER_MS);
	assert_in_range(s.starts, 50, 80);
	assert_false(net_part_is_up(part));
	assert_int_equal(net_part_send_id(part, GATE_FORGET, 1), -EPIPE);
	s.manner = WELL;
	loop_advance(s.loop, NET_PART_AGAIN_MAX_NS + CLOCK_NS_PER_S / 10);
	assert_true(net_part_is_up(part));
	net_part_free(part);
}

/* It cannot be started again, or refuses: that is tried again, too. */
static void test_cannot_come_back(void **state)
{
	static const enum manner manners[] = {CANNOT_START, REFUSES, SAYS_NOTHING};
	struct net_watch watch;
	struct net_part *part = part_up(&watch);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		s.manner = manners[i];
		play_end();
		loop_advance(s.loop, PERIOD_NS);
		assert_false(net_part_is_up(part));
		s.manner = WELL;
		loop_advance(s.loop, 20 * CLOCK_NS_PER_S);
		assert_true(net_part_is_up(part));
	}
	net_part_free(part);
}

static void test_hangs(void **state)
{
	struct net_watch watch;
	struct net_part *part = part_up(&watch);

	(void)state;
	s.answers = false;
	loop_advance(s.loop, (NET_PART_SILENT - 1) * CLOCK_NS_PER_S);
	assert_int_equal(s.starts, 1);
	for (int i = 0; i < 3000 && !s.counters.network_restarts; i++)
		loop_advance(s.loop, CLOCK_NS_PER_MS);
	play_end(); /* it was killed: root notices that before it starts the next one */
	loop_advance(s.loop, CLOCK_NS_PER_S);
	assert_int_equal(s.starts, 2);
	assert_int_equal(s.counters.network_restarts, 1);
	net_part_free(part);
}

/* One that has not had its turn on a crowded machine is given more time, but not for ever. */
static void test_starves(void **state)
{
	struct net_watch watch;
	struct net_part *part = part_up(&watch);

	(void)state;
	s.starves = true;
	for (int i = 0; i < 3; i++) { /* answered at last, it begins anew */
		s.answers = false;
		loop_advance(s.loop, (NET_PART_STARVED - 2) * CLOCK_NS_PER_S);
		s.answers = true;
		loop_advance(s.loop, 2 * CLOCK_NS_PER_S);
		assert_int_equal(s.counters.network_restarts, 0);
	}
	s.answers = false;
	loop_advance(s.loop, (NET_PART_SILENT + 3) * CLOCK_NS_PER_S);
	assert_int_equal(s.counters.network_restarts, 0);
	loop_advance(s.loop, (NET_PART_STARVED - NET_PART_SILENT) * CLOCK_NS_PER_S);
	assert_int_equal(s.counters.network_restarts, 1);
	net_part_free(part);
}

/* How long a process has waited for a processor is what the kernel says. */
static void test_waited(void **state)
{
	struct net_spawn spawn = {.pid = fork()};

	(void)state;
	if (!spawn.pid) {
		cpu_set_t one;

		/* Of two on one processor one waits while the other runs. */
		CPU_ZERO(&one);
		CPU_SET(sched_getcpu(), &one);
		(void)sched_setaffinity(0, sizeof(one), &one);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!fork();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	assert_true(spawn.pid > 0);
	for (int i = 0; i < 1000 && net_spawn_waited_ns(&spawn) < 20 * CLOCK_NS_PER_MS; i++)
		usleep(10000);
	assert_true(net_spawn_waited_ns(&spawn) >= 20 * CLOCK_NS_PER_MS);
	kill(spawn.pid, SIGKILL);
	waitpid(spawn.pid, NULL, 0);
	assert_int_equal(net_spawn_waited_ns(&spawn), 0); /* it is gone */
}

/* Nonsense ends it, also half of a message. */
static void test_nonsense(void **state)
{
	struct net_watch watch;
	struct net_part *part = part_up(&watch);
	const struct gate_message ping = {.type = GATE_PING}; /* that is root's to send */

	(void)state;
	loop_advance(s.loop, PERIOD_NS);
	assert_int_equal(gate_send(s.gate, &ping, NULL, 0, NULL), 0);
	loop_advance(s.loop, CLOCK_NS_PER_S);
	assert_int_equal(s.starts, 2);
	assert_true(net_part_is_up(part));
	net_part_free(part);
}

static void handle(void *arg, const struct gate_message *m, uint8_t *tail, size_t n, const int *fds)
{
	(void)arg;
	(void)tail;
	(void)n;
	s.handled++;
	for (size_t i = 0; i < gate_fds_of(m); i++)
		close(fds[i]);
}

/* Nothing of a part that has not said that it is ready is obeyed, nor what nobody serves. */
static void test_serves(void **state)
{
	const struct gate_message stream = {.type = GATE_STREAM}, want = {.type = GATE_WANT_PAGE};
	struct net_watch watch;
	struct net_part *part = part_up(&watch);

	(void)state;
	net_part_serve(part, GATE_STREAM, handle, NULL);
	assert_int_equal(gate_send(s.gate, &stream, "x", 1, &(int){STDERR_FILENO}), 0);
	assert_int_equal(gate_send(s.gate, &want, NULL, 0, NULL), 0);
	loop_advance(s.loop, CLOCK_NS_PER_S);
	assert_int_equal(s.handled, 1);
	s.manner = SAYS_NOTHING;
	play_end();
	loop_advance(s.loop, CLOCK_NS_PER_S);
	assert_int_equal(s.starts, 2);
	assert_int_equal(gate_send(s.gate, &stream, "x", 1, &(int){STDERR_FILENO}), 0);
	loop_advance(s.loop, CLOCK_NS_PER_S / 2);
	assert_int_equal(s.handled, 1);
	net_part_free(part);
}

/* Counts that it tells are added; what goes back, or is from an earlier start, changes nothing. */
static void test_counts(void **state)
{
	struct gate_message counts = {.type = GATE_COUNTS};
	struct net_watch watch;
	struct net_part *part = part_up(&watch);

	(void)state;
	counts.counts.counters.controls_received = 5;
	counts.counts.counters.jobs_started = 99; /* not the network part's to count */
	counts.counts.control_guests = 3;
	assert_int_equal(gate_send(s.gate, &counts, NULL, 0, NULL), 0);
	loop_advance(s.loop, CLOCK_NS_PER_MS);
	assert_int_equal(s.counters.controls_received, 5);
	assert_int_equal(s.counters.jobs_started, 0);
	assert_int_equal(net_part_counts(part).control_guests, 3);
	counts.counts.counters.controls_received = 2;
	assert_int_equal(gate_send(s.gate, &counts, NULL, 0, NULL), 0);
	loop_advance(s.loop, CLOCK_NS_PER_MS);
	assert_int_equal(s.counters.controls_received, 5);
	play_end();
	loop_advance(s.loop, CLOCK_NS_PER_S);
	assert_int_equal(net_part_counts(part).control_guests, 0);
	counts.counts.counters.controls_received = 1;
	assert_int_equal(gate_send(s.gate, &counts, NULL, 0, NULL), 0);
	loop_advance(s.loop, CLOCK_NS_PER_MS);
	assert_int_equal(s.counters.controls_received, 6);
	net_part_free(part);
	assert_int_equal(net_part_counts(NULL).control_guests, 0);
}

static void handle_long(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			const int *fds)
{
	handle(arg, m, tail, n, fds);
	loop_spend(s.loop, 10 * CLOCK_NS_PER_MS);
}

/* However much it sends, handling that takes half of the loop's time, and it is not given up. */
static void test_share(void **state)
{
	const struct gate_message want = {.type = GATE_WANT_PAGE};
	struct net_watch watch;
	struct loop_share shares;
	struct net_part *part;

	(void)state;
	loop_share_init(&shares, s.loop);
	s.base.shares = &shares;
	part = part_up(&watch);
	net_part_serve(part, GATE_WANT_PAGE, handle_long, NULL);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(gate_send(s.gate, &want, NULL, 0, NULL), 0);
	loop_advance(s.loop, 20 * CLOCK_NS_PER_S);
	assert_in_range(s.handled, 900, 1200); /* of 2,000 that 20 s would have room for */
	assert_true(s.counters.requests_delayed > 5);
	assert_int_equal(s.starts, 1);
	net_part_free(part);
	s.base.shares = NULL;
}

/* Root does not wait for ever for the last words of a part that is silent, or not there. */
static void test_drain(void **state)
{
	struct net_watch watch;
	struct net_part *part;

	(void)state;
	net_part_drain(NULL, 60000);
	part = part_up(&watch);
	s.answers = false;
	net_part_drain(part, 30);
	assert_true(net_part_is_up(part));
	loop_advance(s.loop, 2 * CLOCK_NS_PER_S); /* it is served meanwhile, and afterwards */
	assert_true(net_part_is_up(part));
	assert_int_equal(s.starts, 1);
	play_end(); /* it is gone: there is nothing to wait for */
	net_part_drain(part, 60000);
	net_part_free(part);
}

#define with(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with(test_begins),
		with(test_refuses),
		with(test_cannot_start),
		with(test_dies_before_it_is_ready),
		with(test_dies),
		with(test_dies_again),
		with(test_cannot_come_back),
		with(test_hangs),
		with(test_starves),
		cmocka_unit_test(test_waited),
		with(test_nonsense),
		with(test_serves),
		with(test_counts),
		with(test_share),
		with(test_drain),
	};

	return cmocka_run_group_tests_name("net_part", tests, NULL, NULL);
}
