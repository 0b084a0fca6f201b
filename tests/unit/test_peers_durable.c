/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two agents' peers, on the loopback and with a munged: what one tells the other of its journal
 * leaves when the disk has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/cluster/peer_requests.h"
#include "agent/cluster/seal.h"
#include "agent/jobs/journal.h"
#include "tests/lib/munged.h"
#include "tests/lib/net_here.h"
#include "tests/lib/slow_disk.h"
#include "user/clock.h"

#define JOB	 "n1-0f-1"
#define WAIT_S	 20
#define LOOK_MS	 5
#define PATIENCE (WAIT_S * 1000 / LOOK_MS)

/* n1 answers, n2 asks. */
struct node {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct journal *journal;
	struct net_here net;
	struct peers peers;
};

static struct munged munged;
static const char *missing;
static struct node nodes[2];
static struct loop *loop;
static struct slow_disk disk;
static bool writes; /* n1's handler does */
static unsigned handled, answered;
static int answered_rc;

static int on_question(void *arg, const struct peer_request *r, uint64_t ticket,
		       struct peer_answer *answer)
{
	struct node *node = arg;

	(void)r;
	(void)ticket;
	handled++;
	answer->ok = true;
	answer->taken = 1;
	return writes ? journal_set_fact(node->journal, "handled", handled) : 0;
}

static void on_answer(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	(void)arg;
	(void)why;
	answered++;
	answered_rc = rc;
	assert_true(rc || answer->ok);
}

static void node_up(unsigned i, uint16_t port)
{
	struct node *node = &nodes[i];
	struct iocom_err err = {0};
	struct gate_setup setup;
	struct seal *seal;

	*node = (struct node){0};
	snprintf(node->set.name, sizeof(node->set.name), "n%u", i + 1);
	strcpy(node->set.listen, "127.0.0.1");
	strcpy(node->set.address, "127.0.0.1");
	node->set.port = port;
	node->set.period_s = 1;
	node->base = (struct base){.loop = loop,
				   .log = &node->log,
				   .counters = &node->counters,
				   .set = &node->set,
				   .boot_id = i + 1};
	assert_int_equal(journal_open(&node->journal, ":memory:", &err), 0);
	assert_int_equal(seal_new(&seal, loop, &node->counters, munged.socket, &err), 0);
	setup = net_here_setup(node->set.name, port);
	if (net_here_start(&node->net, &node->base, &setup, -1, -1, &err) ||
	    peers_start(&node->peers, &node->base, node->journal, seal, node->net.part, &err))
		fail_msg("%s", err.text);
	for (int type = 0; type < PEER_TYPES; type++)
		peers_serve(&node->peers, (enum peer_type)type, on_question, node);
}

static int setup(void **state)
{
	const uint16_t port = (uint16_t)(20000 + getpid() % 1000 * 10);

	(void)state;
	if (missing)
		return 0;
	handled = answered = 0;
	writes = false;
	if (loop_new(&loop, NULL))
		return -1;
	node_up(0, port);
	node_up(1, (uint16_t)(port + 5));
	slow_disk_use(&disk, nodes[0].journal);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (missing)
		return 0;
	/* Who asks goes first: nng 1.5.2 may hang when it closes a socket that a peer still uses.
	 */
	for (size_t i = 2; i-- > 0;) {
		peers_stop(&nodes[i].peers);
		net_here_stop(&nodes[i].net);
		peers_free(&nodes[i].peers);
		journal_close(nodes[i].journal);
	}
	loop_free(loop);
	return 0;
}

/* --- waiting for what happens ------------------------------------------------------- */

static struct loop_timer looks;
static unsigned left;
static bool (*wanted)(void);

static void look(void *arg)
{
	(void)arg;
	if (wanted() || !--left)
		loop_stop(loop);
	else
		loop_start(loop, &looks, LOOK_MS * CLOCK_NS_PER_MS);
}

static void until(bool (*true_)(void))
{
	wanted = true_;
	left = PATIENCE;
	looks = (struct loop_timer){.fire = look};
	loop_start(loop, &looks, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_true(wanted());
}

static bool is_held(void)
{
	return nodes[0].peers.held != NULL;
}

static bool none_is_held(void)
{
	return !nodes[0].peers.held;
}

static bool is_answered(void)
{
	return answered != 0;
}

static void ask(enum peer_type type)
{
	const struct job_report report = {.job = JOB, .state = "exited"};
	struct peer_request request = {.type = type, .job = JOB};
	struct iocom_err err = {0};

	if (missing) {
		print_message("%s\n", missing);
		skip();
	}
	if (type == PEER_DONE) {
		request.done.reports = &report;
		request.done.count = 1;
	}
	assert_int_equal(peers_ask(&nodes[1].peers, "n1", "127.0.0.1", (uint16_t)nodes[0].set.port,
				   &request, on_answer, NULL, &err),
			 0);
}

/* --- answers ---------------------------------------------------------------------------- */

static bool is_held_or_answered(void)
{
	return is_held() || is_answered();
}

/*
 * Asks until the answer comes in time, which on a busy machine may take some times.  Returns
 * whether it waited for the disk, which has it then.
 */
static bool waited(enum peer_type type)
{
	bool held = false;

	for (int i = 0; i < 10; i++) {
		answered = 0;
		ask(type);
		until(is_held_or_answered);
		held = is_held();
		assert_false(held && is_answered() && !answered_rc);
		if (disk.syncing)
			slow_disk_end(&disk, 0);
		assert_null(nodes[0].peers.held);
		until(is_answered);
		if (!answered_rc)
			break;
		assert_int_equal(answered_rc, -ETIMEDOUT);
	}
	assert_int_equal(answered_rc, 0);
	return held;
}

static void test_waits_for_the_disk(void **state)
{
	(void)state;
	writes = true;
	assert_true(waited(PEER_DONE));
	assert_true(waited(PEER_KILL)); /* whatever the type, if the handler wrote */
}

/* Told once more, nothing is written; but what was written may not be on the disk. */
static void test_nothing_new(void **state)
{
	(void)state;
	assert_true(waited(PEER_DONE));
	assert_true(waited(PEER_STARTED));
}

/* An answer that tells nothing of the journal waits for no disk, whatever its number's row does. */
static void test_tells_nothing(void **state)
{
	(void)state;
	assert_false(waited(PEER_KILL));
	assert_int_equal(disk.begun, 0);
}

/* Without an answer the other node asks again. */
static void test_disk_fails(void **state)
{
	(void)state;
	writes = true;
	ask(PEER_DONE);
	until(is_held);
	slow_disk_end(&disk, -EIO);
	assert_null(nodes[0].peers.held);
	until(is_answered);
	assert_int_equal(answered_rc, -ETIMEDOUT);
}

/* A disk that hangs keeps no place of those for questions. */
static void test_disk_hangs(void **state)
{
	(void)state;
	writes = true;
	ask(PEER_DONE);
	until(is_held);
	until(none_is_held);
	until(is_answered);
	assert_int_equal(answered_rc, -ETIMEDOUT);
	slow_disk_end(&disk, 0);
	answered = 0;
	ask(PEER_DONE); /* the agent ends while the answer waits */
	until(is_held);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_waits_for_the_disk), CASE(test_nothing_new), CASE(test_tells_nothing),
		CASE(test_disk_fails),	       CASE(test_disk_hangs),
	};
	int rc;

	missing = geteuid() ? "a seal needs root" : munged_start(&munged);
	rc = cmocka_run_group_tests_name("peers_durable", tests, NULL, NULL);
	if (!missing)
		munged_stop(&munged);
	return rc;
}
