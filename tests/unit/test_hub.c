// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// The launchers of a gang among themselves: four in one process, and strangers who would be one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/tasks/hub.h"
#include "agent/tasks/hub_line.h"
#include "agent/tasks/tasks_own.h"
#include "user/clock.h"

#define PARTS 4
#define TURNS 20000

struct part {
	struct tasks tasks;
	struct hub *hub;
	uint8_t *all;
	size_t length;
	unsigned fences;
	uint32_t asked_by, asked_rank, told_id;
	int32_t told_status;
	char told[64];
};

static struct part parts[PARTS];
static struct gang_node nodes[PARTS];
static uint32_t ranks[2 * PARTS];
static uint16_t port;

static void take_all(void *arg, const void *data, size_t length)
{
	struct part *p = arg;

	free(p->all);
	p->all = malloc(length + 1);
	memcpy(p->all, data, length);
	p->length = length;
	p->fences++;
}

static void take_question(void *arg, uint32_t from, uint32_t id, uint32_t rank)
{
	struct part *p = arg;
	char text[32];

	p->asked_by = from;
	p->asked_rank = rank;
	snprintf(text, sizeof(text), "of rank %u", rank);
	assert_int_equal(hub_tell(p->hub, from, id, -7, text, strlen(text) + 1), 0);
}

static void take_answer(void *arg, uint32_t id, int32_t status, const void *data, size_t length)
{
	struct part *p = arg;

	p->told_id = id;
	p->told_status = status;
	assert_true(length < sizeof(p->told));
	memcpy(p->told, data, length);
}

static const struct hub_calls calls = {
	.all = take_all, .asked = take_question, .told = take_answer};

static struct gang_plan plan_of(uint32_t part)
{
	struct gang_plan plan = {.gang = "n1-4f2a-57",
				 .launch = GANG_LAUNCH_PMI1,
				 .tasks = 2 * PARTS,
				 .part = part,
				 .nnodes = PARTS,
				 .nodes = nodes,
				 .ranks = ranks,
				 .secret = {7, 7, 7}};
	return plan;
}

static int setup(void **state)
{
	struct iocom_err err;

	(void)state;
	memset(parts, 0, sizeof(parts));
	for (uint32_t k = 0; k < PARTS; k++) {
		struct part *p = &parts[k];

		snprintf(nodes[k].name, sizeof(nodes[k].name), "n%u", k + 1);
		nodes[k].first = 2 * k;
		nodes[k].tasks = 2;
		ranks[2 * k] = k; // ranks k and k + PARTS are there
		ranks[2 * k + 1] = k + PARTS;
		p->tasks.plan = plan_of(k);
		p->tasks.control = -1;
		p->hub = hub_new(&p->tasks, &calls, p);
		assert_non_null(p->hub);
	}
	assert_int_equal(hub_listen(parts[0].hub, &port, &err), 0);
	assert_true(port > 0);
	for (uint32_t k = 1; k < PARTS; k++)
		assert_int_equal(hub_join(parts[k].hub, "127.0.0.1", port, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < PARTS; k++) {
		hub_free(parts[k].hub);
		free(parts[k].all);
		free(parts[k].tasks.watches);
		free(parts[k].tasks.entries);
	}
	return 0;
}

// Lets all parts live until IS or the end of patience.
static bool live_until(bool (*is)(void))
{
	for (int i = 0; i < TURNS && !is(); i++) {
		for (uint32_t k = 0; k < PARTS; k++)
			if (parts[k].hub) {
				hub_turn(parts[k].hub, clock_boot_ms());
				tasks_turn(&parts[k].tasks, 0);
			}
		usleep(200);
	}
	return is();
}

static bool all_done(void)
{
	bool done = true;

	for (uint32_t k = 0; k < PARTS; k++)
		done &= !parts[k].hub || hub_done(parts[k].hub);
	return done;
}

static uint32_t again;
static bool one_done(void)
{
	return hub_done(parts[again].hub);
}

static bool part_1_fails(void)
{
	return parts[1].tasks.failing;
}

static unsigned fences;
static bool fenced(void)
{
	for (uint32_t k = 0; k < PARTS; k++)
		if (parts[k].hub && parts[k].fences < fences)
			return false;
	return true;
}

static bool told(void)
{
	return parts[1].told_id == 42;
}

static bool both_told(void)
{
	return told() && parts[0].told_id == 41;
}

static bool all_failing(void)
{
	for (uint32_t k = 0; k < PARTS; k++)
		if (parts[k].hub && !parts[k].tasks.failing)
			return false;
	return true;
}

// The gang goes on as if nobody had come.
static void expect_well(void)
{
	for (uint32_t k = 0; k < PARTS; k++)
		hub_fence(parts[k].hub, "x", 1);
	fences = parts[0].fences + 1;
	assert_true(live_until(fenced));
	assert_false(parts[0].tasks.failing);
}

static void test_fences(void **state)
{
	static const size_t sizes[] = {0, 5, 1 << 20, 3};

	(void)state;
	for (fences = 1; fences <= 3; fences++) {
		for (uint32_t k = 0; k < PARTS; k++) {
			uint8_t *data = malloc(sizes[k] + 1);

			memset(data, (int)(16 * fences + k), sizes[k]);
			assert_int_equal(hub_fence(parts[k].hub, data, sizes[k]), 0);
			free(data);
		}
		assert_true(live_until(fenced));
		for (uint32_t k = 0; k < PARTS; k++) {
			size_t at = 0;

			assert_int_equal(parts[k].length, 8 + (1 << 20));
			for (uint32_t from = 0; from < PARTS; from++)
				for (size_t i = 0; i < sizes[from]; i++)
					if (parts[k].all[at++] != 16 * fences + from)
						fail_msg("part %u got byte %zu wrong", k, at);
		}
	}
}

// A question goes from part 1 to part 3 by way of part 0, and its answer back.
static void test_questions(void **state)
{
	(void)state;
	expect_well();
	assert_int_equal(hub_part_of(parts[1].hub, 7), 3);
	assert_int_equal(hub_ask(parts[1].hub, 42, 7), 0);
	assert_true(live_until(told));
	assert_int_equal(parts[3].asked_by, 1);
	assert_int_equal(parts[3].asked_rank, 7);
	assert_int_equal(parts[1].told_status, -7);
	assert_string_equal(parts[1].told, "of rank 7");
	parts[1].told_id = 0;
	assert_int_equal(hub_ask(parts[1].hub, 42, 0), 0); // of part 0 itself
	assert_true(live_until(told));
	assert_string_equal(parts[1].told, "of rank 0");
	assert_int_equal(hub_ask(parts[1].hub, 42, 2 * PARTS), -EINVAL);
}

// One that is asked before it has connected answers when it has.
static void test_early_question(void **state)
{
	(void)state;
	assert_int_equal(hub_ask(parts[0].hub, 41, 7), 0); // of part 3
	assert_int_equal(hub_ask(parts[1].hub, 42, 7), 0);
	assert_true(live_until(both_told));
	assert_string_equal(parts[1].told, "of rank 7");
	assert_string_equal(parts[0].told, "of rank 7");
	assert_int_equal(parts[0].told_status, -7);
}

static void test_abort(void **state)
{
	(void)state;
	fences = 1;
	for (uint32_t k = 0; k < PARTS; k++)
		hub_fence(parts[k].hub, "", 0);
	assert_true(live_until(fenced));
	hub_abort(parts[2].hub, 6, tasks_exited(3), NULL);
	tasks_fail(&parts[2].tasks, 6, tasks_exited(3), NULL);
	assert_true(live_until(all_failing));
	for (uint32_t k = 0; k < PARTS; k++)
		assert_int_equal(parts[k].tasks.status, k == 2 ? 3 : 143);
}

// A launcher that ends without a word fails all; one that says so fails nobody.
static void test_ends(void **state)
{
	(void)state;
	fences = 1;
	for (uint32_t k = 0; k < PARTS; k++)
		hub_fence(parts[k].hub, "", 0);
	assert_true(live_until(fenced));
	hub_free(parts[3].hub);
	parts[3].hub = NULL;
	for (int i = 0; i < 50; i++) {
		for (uint32_t k = 0; k < PARTS - 1; k++)
			tasks_turn(&parts[k].tasks, 0);
		usleep(200);
	}
	for (uint32_t k = 0; k < PARTS - 1; k++)
		assert_false(parts[k].tasks.failing);
	// Its descriptors close as when it was killed.
	for (size_t i = 0; i < parts[1].tasks.nwatches; i++)
		shutdown(parts[1].tasks.watches[i].fd, SHUT_RDWR);
	assert_true(live_until(all_failing));
	assert_int_equal(parts[0].tasks.status, 143); // by part 1
}

// --- strangers ---------------------------------------------------------------------------

static int stranger(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int watched;
static bool closed(void)
{
	char byte;
	ssize_t n = recv(watched, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	return n == 0 || (n < 0 && errno != EAGAIN);
}

static void expect_closed(int fd)
{
	watched = fd;
	assert_true(live_until(closed));
	close(fd);
}

static void expect_open(int fd)
{
	for (int i = 0; i < 20; i++)
		tasks_turn(&parts[0].tasks, 0);
	watched = fd;
	assert_false(closed());
}

static void say_hello(int fd, struct noise *noise, const char *gang, uint8_t secret, uint32_t part)
{
	uint8_t number[4] = {0, 0, 0, (uint8_t)part}, frame[FRAME_HEADER + NOISE_HANDSHAKE + 4];
	uint8_t psk[NOISE_KEY] = {secret, 7, 7};
	char prologue[64] = "iocom gang";
	size_t n = sizeof("iocom gang");

	n += (size_t)snprintf(prologue + n, sizeof(prologue) - n, "%s", gang) + 1;
	noise_begin(noise, true, psk, prologue, n);
	assert_int_equal(noise_write(noise, number, 4, frame + FRAME_HEADER), 0);
	frame_header(frame, FRAME_HELLO, NOISE_HANDSHAKE + 4);
	assert_int_equal(send(fd, frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
}

static void test_strangers(void **state)
{
	static const uint8_t huge[] = {'i', 'c', 2, FRAME_HELLO, 255, 255, 255, 255, 0, 0};
	struct noise noise;
	char garbage[4096];
	int fd;

	(void)state;
	expect_well();
	memset(garbage, 'g', sizeof(garbage));
	fd = stranger();
	assert_true(send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL) > 0);
	expect_closed(fd);
	fd = stranger();
	assert_true(send(fd, huge, sizeof(huge), MSG_NOSIGNAL) > 0);
	assert_true(send(fd, garbage, 200, MSG_NOSIGNAL) > 0);
	expect_closed(fd);
	fd = stranger(); // another secret
	say_hello(fd, &noise, "n1-4f2a-57", 8, 1);
	expect_closed(fd);
	fd = stranger(); // another gang with this secret
	say_hello(fd, &noise, "n1-4f2a-58", 7, 1);
	expect_closed(fd);
	fd = stranger(); // part 0 itself, and one that is not
	say_hello(fd, &noise, "n1-4f2a-57", 7, 0);
	expect_closed(fd);
	fd = stranger();
	say_hello(fd, &noise, "n1-4f2a-57", 7, PARTS);
	expect_closed(fd);
	expect_well();
}

// One that only repeats part 1's first message gets an answer and can do nothing with it; one that
// knows the secret comes second for part 1.
static void test_second(void **state)
{
	uint8_t welcome[FRAME_HEADER + NOISE_HANDSHAKE], nothing[1];
	struct records records;
	struct noise noise;
	struct wire wire;
	int fd = stranger();

	(void)state;
	expect_well();
	say_hello(fd, &noise, "n1-4f2a-57", 7, 1);
	for (int i = 0; i < TURNS && recv(fd, welcome, sizeof(welcome), MSG_PEEK | MSG_DONTWAIT) !=
					     sizeof(welcome);
	     i++) {
		tasks_turn(&parts[0].tasks, 0);
		usleep(200);
	}
	assert_int_equal(recv(fd, welcome, sizeof(welcome), 0), sizeof(welcome));
	expect_well(); // it has proven nothing yet
	assert_int_equal(noise_read(&noise, welcome + FRAME_HEADER, NOISE_HANDSHAKE, nothing), 0);
	noise_split(&noise, &records.sends, &records.receives, NULL);
	assert_int_equal(wire_init(&wire, dup(fd), &records), 0);
	{
		uint8_t head[25] = {HUB_FENCE};

		assert_int_equal(wire_send(&wire, FRAME_GANG, NULL, 0, head, sizeof(head)), 0);
	}
	expect_closed(fd);
	wire_deinit(&wire);
	expect_well();
}

static void test_silence(void **state)
{
	int fds[HUB_UNPROVEN_MAX], late;

	(void)state;
	expect_well();
	for (int i = 0; i < HUB_UNPROVEN_MAX; i++) {
		fds[i] = stranger();
		tasks_turn(&parts[0].tasks, 0);
	}
	late = stranger(); // waits until the oldest one is no longer young, and then takes its
			   // place
	tasks_turn(&parts[0].tasks, 0);
	expect_closed(fds[0]);
	expect_open(fds[1]);
	expect_open(late);
	hub_turn(parts[0].hub, clock_boot_ms() + HUB_PROVE_MS + 1);
	for (int i = 1; i < HUB_UNPROVEN_MAX; i++)
		expect_closed(fds[i]);
	expect_closed(late);
	expect_well();
}

// No descriptor is free for a connection: the listener rests instead of trying all the time.
static void test_no_descriptors(void **state)
{
	struct rlimit before, none;
	size_t resting = 0;
	int fd, next;

	(void)state;
	expect_well();
	fd = stranger();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	next = dup(fd);
	close(next);
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	tasks_turn(&parts[0].tasks, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < parts[0].tasks.nwatches; i++)
		resting += parts[0].tasks.watches[i].fd >= 0 && !parts[0].tasks.watches[i].events;
	assert_int_equal(resting, 1);
	assert_true(hub_turn(parts[0].hub, clock_boot_ms()) < UINT64_MAX);
	hub_turn(parts[0].hub, clock_boot_ms() + 1000);
	assert_true(send(fd, "garbage of a stranger, more than a head", 40, MSG_NOSIGNAL) > 0);
	shutdown(fd, SHUT_WR);
	expect_closed(fd);
	expect_well();
}

// All of them have nothing to say, and end at once: part 0 waits for those that have not come yet.
static void test_short(void **state)
{
	(void)state;
	assert_false(hub_done(parts[0].hub));
	assert_true(live_until(all_done));
	assert_false(parts[0].tasks.failing);
	for (uint32_t k = PARTS; k-- > 0;) {
		hub_free(parts[k].hub);
		parts[k].hub = NULL;
	}
}

// One that has ended does not come again, even if it knows the secret.
static void test_again(void **state)
{
	struct iocom_err err;

	(void)state;
	expect_well();
	again = 1;
	assert_true(live_until(one_done));
	assert_false(hub_done(parts[0].hub));
	hub_free(parts[1].hub);
	parts[1].hub = hub_new(&parts[1].tasks, &calls, &parts[1]);
	assert_int_equal(hub_join(parts[1].hub, "127.0.0.1", port, &err), 0);
	assert_true(live_until(part_1_fails));
	for (uint32_t k = 0; k < PARTS; k++)
		assert_true(k == 1 || !parts[k].tasks.failing);
	parts[1].tasks.failing = false;
	hub_free(parts[1].hub);
	parts[1].hub = NULL;
	assert_true(live_until(all_done));
}

// Ranks that never call MPI_Init harm nobody, until another has called it: it would wait for ever.
static void test_without(void **state)
{
	(void)state;
	hub_began(parts[2].hub, 6, false);
	hub_began(parts[0].hub, 0, false);
	expect_well(); // which only says that all connections are there
	hub_began(parts[3].hub, 3, true);
	assert_true(live_until(all_failing));
	// The one that has the rank, and those that were told.
	for (uint32_t k = 0; k < PARTS; k++)
		assert_int_equal(parts[k].tasks.status, k ? 143 : 1);
}

// The other way round: it ends after others have begun.
static void test_began(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < PARTS; k++)
		hub_began(parts[k].hub, k, true);
	expect_well();
	hub_began(parts[1].hub, 1 + PARTS, false);
	assert_true(live_until(all_failing));
}

// A part that does not come in time fails the others.
static void test_missing(void **state)
{
	uint64_t now_ms = clock_boot_ms();
	struct iocom_err err;

	(void)state;
	hub_free(parts[2].hub); // before it was connected
	parts[2].hub = NULL;
	assert_int_equal(hub_join(parts[0].hub, "", 0, &err), 0);
	assert_true(hub_turn(parts[0].hub, now_ms) <= now_ms + HUB_JOIN_MS + 1000);
	for (int i = 0; i < 200; i++) {
		for (uint32_t k = 0; k < PARTS; k++)
			tasks_turn(&parts[k].tasks, 0);
		usleep(200);
	}
	assert_false(parts[0].tasks.failing);
	hub_turn(parts[0].hub, now_ms + HUB_JOIN_MS + 1000);
	assert_true(parts[0].tasks.failing);
	assert_true(live_until(all_failing));
	assert_int_equal(parts[0].tasks.status, 125);
	assert_int_equal(parts[3].tasks.status, 143);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fences, setup, teardown),
		cmocka_unit_test_setup_teardown(test_questions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_early_question, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without, setup, teardown),
		cmocka_unit_test_setup_teardown(test_began, setup, teardown),
	};

	setpgid(0, 0); // tasks that fail end their process group
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("hub", tests, NULL, NULL);
}
