/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * When the answer to another agent is sent: after its handler, even if the handler gives it
 * early. If the handler fails (it cannot write to the disk) the answer is never sent.  Junk, and a
 * munged that hangs, hold up neither the loop nor other questions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/clock.h"
#include "agent/cluster/control.h"
#include "agent/base/counters.h"
#include "tests/lib/munged.h"
#include "tests/lib/net_here.h"
#include "user/pack.h"
#include "agent/cluster/seal.h"

enum how { AT_ONCE, WITHIN, WITHIN_AND_FAIL, LATER_AND_FAIL, REFUSED, LATER };

struct stand {
	struct loop *loop;
	struct seal *seal;
	struct logger log;
	struct counters counters;
	struct control *asks, *answers;
	struct net_here asks_net, answers_net;
	struct loop_timer timer;
	enum how how;
	uint64_t ticket;
	bool returned; /* the handler has returned */
	bool answered, early;
	int rc, ticks, answers_got;
	char said[16], why[256];
	const char *cluster; /* of what is made next */
	uint64_t boot_id;    /* likewise */
};

static struct munged munged;
static const char *missing;
static uint16_t port;

static void say(msgpack_sbuffer *out, const char *word)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 1);
	pack_str(&pk, "say", word);
}

static void say_later(struct stand *s, const char *word)
{
	msgpack_sbuffer out;

	msgpack_sbuffer_init(&out);
	say(&out, word);
	control_answer_later(s->answers, s->ticket, 0, &out);
	msgpack_sbuffer_destroy(&out);
}

static int handle(void *arg, const struct control_head *head, const msgpack_object *body,
		  msgpack_sbuffer *out)
{
	struct stand *s = arg;

	(void)body;
	assert_string_equal(head->type, "admit");
	if (s->how == AT_ONCE) {
		say(out, "now");
		return 0;
	}
	s->ticket = control_defer(s->answers);
	assert_true(s->ticket != 0);
	if (s->how == WITHIN || s->how == WITHIN_AND_FAIL || s->how == REFUSED)
		say_later(s, "granted");
	if (s->how == REFUSED) {
		control_undefer(s->answers);
		say(out, "refused");
	}
	/* Long enough for an early answer to arrive before the handler ends. */
	usleep(50000);
	s->returned = true;
	return s->how == WITHIN_AND_FAIL || s->how == LATER_AND_FAIL ? -EIO : 0;
}

static void got(void *arg, int rc, const char *from, const msgpack_object *body, const char *why)
{
	struct stand *s = arg;

	snprintf(s->why, sizeof(s->why), "%s", why);
	s->answered = true;
	s->answers_got += rc == 0;
	s->early = s->how != AT_ONCE && !s->returned;
	s->rc = rc;
	if (!rc)
		assert_string_equal(from, "n1");
	if (!rc)
		assert_int_equal(unpack_str(body, "say", s->said, sizeof(s->said)), 0);
	loop_stop(s->loop);
}

static void fire(void *arg)
{
	struct stand *s = arg;

	if (s->how == LATER || s->how == LATER_AND_FAIL)
		say_later(s, "later");
	else
		loop_stop(s->loop);
}

static void no_skew(void *arg, const char *node, int64_t ahead_s)
{
	(void)arg;
	(void)node;
	(void)ahead_s;
	fail();
}

static struct control *listen_as(struct stand *s, struct net_here *net, const char *name,
				 uint16_t at)
{
	const struct base base = {.loop = s->loop, .log = &s->log, .counters = &s->counters};
	const struct gate_setup setup = net_here_setup(name, at);
	struct control_config config = {
		.loop = s->loop,
		.seal = s->seal,
		.log = &s->log,
		.counters = &s->counters,
		.self = {.boot_id = s->boot_id},
		.handler = handle,
		.arg = s,
		.skewed = no_skew,
	};
	struct iocom_err err = {0};
	struct control *c = NULL;

	strcpy(config.self.name, name);
	strcpy(config.self.cluster, s->cluster);
	if (net_here_start(net, &base, &setup, -1, -1, &err))
		fail_msg("%s", err.text);
	config.net = net->part;
	if (control_new(&c, &config, &err))
		fail_msg("%s", err.text);
	return c;
}

static void unlisten(struct control **c, struct net_here *net)
{
	control_free(*c);
	*c = NULL;
	net_here_stop(net);
}

static void stand_up(struct stand *s, enum how how)
{
	struct iocom_err err = {0};

	if (missing) {
		print_message("%s\n", missing);
		skip();
	}
	*s = (struct stand){.how = how, .cluster = "", .boot_id = 7};
	assert_int_equal(loop_new(&s->loop, &err), 0);
	assert_int_equal(seal_new(&s->seal, s->loop, &s->counters, munged.socket, &err), 0);
	s->answers = listen_as(s, &s->answers_net, "n1", port);
	s->asks = listen_as(s, &s->asks_net, "n2", (uint16_t)(port + 5));
}

static void stand_down(struct stand *s)
{
	loop_cancel(s->loop, &s->timer);
	unlisten(&s->asks, &s->asks_net);
	unlisten(&s->answers, &s->answers_net);
	seal_free(s->seal);
	loop_free(s->loop);
}

static int stand_ask(struct stand *s)
{
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	int rc;

	msgpack_sbuffer_init(&body);
	say(&body, "?");
	rc = control_ask(s->asks, "n1", "127.0.0.1", port, "admit", "n2-1-1", &body, got, s, &err);
	msgpack_sbuffer_destroy(&body);
	return rc;
}

static void ask(struct stand *s, enum how how)
{
	stand_up(s, how);
	s->timer = (struct loop_timer){.fire = fire, .arg = s};
	loop_start(s->loop, &s->timer, 1000 * CLOCK_NS_PER_MS);
	assert_int_equal(stand_ask(s), 0);
	loop_run(s->loop);
	if (!s->answered)
		control_forget(s->asks, s);
	stand_down(s);
}

static void test_at_once(void **state)
{
	struct stand s;

	(void)state;
	ask(&s, AT_ONCE);
	assert_true(s.answered);
	assert_string_equal(s.said, "now");
}

static void test_within(void **state)
{
	struct stand s;

	(void)state;
	ask(&s, WITHIN);
	assert_true(s.answered);
	assert_false(s.early);
	assert_string_equal(s.said, "granted");
}

static void test_later(void **state)
{
	struct stand s;

	(void)state;
	ask(&s, LATER);
	assert_string_equal(s.said, "later");
}

/* An answer given early must not reach anybody if the handler then fails. */
static void test_within_and_fail(void **state)
{
	struct stand s;

	(void)state;
	ask(&s, WITHIN_AND_FAIL);
	assert_true(s.returned);
	assert_false(s.answered);
	assert_string_equal(s.said, "");
}

static void test_later_and_fail(void **state)
{
	struct stand s;

	(void)state;
	ask(&s, LATER_AND_FAIL);
	assert_true(s.answered);
	assert_int_equal(s.rc, -ETIMEDOUT);
}

static void test_refused(void **state)
{
	struct stand s;

	(void)state;
	ask(&s, REFUSED);
	assert_true(s.answered);
	assert_string_equal(s.said, "refused");
}

/* --- what comes of nobody, and a munged that hangs ---------------------------------------- */

static void fire_again(void *arg)
{
	struct stand *s = arg;

	s->ticks++;
	loop_stop(s->loop);
	loop_start(s->loop, &s->timer, 5 * CLOCK_NS_PER_MS);
}

static void tick(struct stand *s)
{
	s->timer = (struct loop_timer){.fire = fire_again, .arg = s};
	loop_start(s->loop, &s->timer, 0);
}

/* Lets the loop run, whose timer stops it all the time, until there is an answer. */
static void until_answered(struct stand *s)
{
	for (int i = 0; i < 8000 && !s->answered; i++)
		loop_run(s->loop);
	assert_true(s->answered);
}

/* Lets the network part tell its counts, which it does once a second. */
static void until_counted(struct stand *s)
{
	for (int i = 0; i < 8000 && !s->counters.connections_cut; i++)
		loop_run(s->loop);
}

/* Connects to n1's control port and shakes hands as a requester does. */
static int connect_raw(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)(port + 1)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[8];

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(send(fd, "\0SP\0\0\x30\0\0", 8, MSG_NOSIGNAL), 8);
	assert_int_equal(recv(fd, answer, 8, MSG_WAITALL), 8);
	return fd;
}

static atomic_bool cut_off;

/* Streams messages of 16 bytes without an end, until the agent cuts the connection. */
static void *stream_junk(void *arg)
{
	static const uint8_t one[8 + 4 + 16] = {[7] = 20, [8] = 0x80, [11] = 1, [12] = 'j'};
	uint8_t bytes[64 * sizeof(one)];
	int fd = *(int *)arg;

	for (size_t i = 0; i < 64; i++)
		memcpy(bytes + i * sizeof(one), one, sizeof(one));
	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	cut_off = true;
	return NULL;
}

/* Asks without an end what has an answer for strangers, and never reads. */
static void *stream_unread(void *arg)
{
	enum { SEALED = 64 };
	static const uint8_t one[8 + 4 + SEALED] = {
		[7] = 4 + SEALED, [8] = 0x80, [11] = 1, [12] = SESSION_SEALED};
	uint8_t bytes[64 * sizeof(one)];
	int fd = *(int *)arg;

	for (size_t i = 0; i < 64; i++)
		memcpy(bytes + i * sizeof(one), one, sizeof(one));
	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	cut_off = true;
	return NULL;
}

/* Who sends messages of unknown sessions pays for it, and is cut in the end. */
static void test_unread(void **state)
{
	uint64_t until = clock_boot_ns() + 60 * CLOCK_NS_PER_S;
	unsigned asked = 0;
	pthread_t thread;
	struct stand s;
	int fd;

	(void)state;
	cut_off = false;
	stand_up(&s, AT_ONCE);
	tick(&s);
	assert_int_equal(stand_ask(&s), 0); /* a connection of the same address is there before */
	until_answered(&s);
	fd = connect_raw();
	assert_int_equal(pthread_create(&thread, NULL, stream_unread, &fd), 0);
	for (int i = 0; i < 20 || (!cut_off && clock_boot_ns() < until); i++) {
		asked++;
		s.answered = false;
		assert_int_equal(stand_ask(&s), 0);
		until_answered(&s);
		assert_int_equal(s.rc, 0);
	}
	shutdown(fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(fd);
	/* Of 32 units eight messages each; each answered question earns its address one more. */
	assert_true(s.counters.sessions_unknown >= 200);
	assert_true(s.counters.sessions_unknown < 8 * (60 + asked));
	until_counted(&s);
	assert_int_equal(s.counters.connections_cut, 1);
	stand_down(&s);
}

/* A stream of junk is cut; meanwhile questions are answered. */
static void test_junk(void **state)
{
	uint64_t until = clock_boot_ns() + 60 * CLOCK_NS_PER_S;
	pthread_t thread;
	struct stand s;
	int fd;

	(void)state;
	cut_off = false;
	stand_up(&s, AT_ONCE);
	tick(&s);
	fd = connect_raw();
	assert_int_equal(pthread_create(&thread, NULL, stream_junk, &fd), 0);
	/* The sender, whose window is closed, learns it from its next probe of the window. */
	for (int i = 0; i < 20 || (!cut_off && clock_boot_ns() < until); i++) {
		s.answered = false;
		assert_int_equal(stand_ask(&s), 0);
		until_answered(&s);
		assert_int_equal(s.rc, 0);
	}
	assert_true(cut_off);
	pthread_join(thread, NULL);
	close(fd);
	until_counted(&s);
	assert_int_equal(s.counters.connections_cut, 1);
	assert_int_equal(s.counters.credentials_refused_form, 0);
	assert_true(s.counters.controls_refused >= 1);
	assert_int_equal(s.counters.seal_failures, 0);
	stand_down(&s);
}

/* Munged hangs: a question ends for that reason, and the loop goes on; later all is well again. */
static void test_munged_hangs(void **state)
{
	struct stand s;
	int ticks, rc;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	assert_int_equal(kill(munged.pid, SIGSTOP), 0);
	assert_int_equal(stand_ask(&s), 0);
	ticks = s.ticks;
	until_answered(&s);
	assert_int_equal(s.rc, -EHOSTDOWN);
	assert_true(s.ticks - ticks > 3);
	assert_true(seal_down(s.seal));
	assert_int_equal(stand_ask(&s), -EHOSTDOWN); /* at once */
	assert_int_equal(kill(munged.pid, SIGCONT), 0);
	for (int i = 0; i < 1000; i++) {
		s.answered = false;
		rc = stand_ask(&s);
		if (!rc)
			until_answered(&s);
		if (!rc && !s.rc)
			break;
		loop_run(s.loop);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(s.rc, 0);
	assert_string_equal(s.said, "now");
	/* With a session nobody needs munged. */
	s.answered = false;
	assert_int_equal(kill(munged.pid, SIGSTOP), 0);
	assert_int_equal(stand_ask(&s), 0);
	until_answered(&s);
	assert_int_equal(s.rc, 0);
	assert_int_equal(kill(munged.pid, SIGCONT), 0);
	stand_down(&s);
	/* It may end while munged is asked for a greeting's seal. */
	stand_up(&s, AT_ONCE);
	assert_int_equal(kill(munged.pid, SIGSTOP), 0);
	assert_int_equal(stand_ask(&s), 0);
	stand_down(&s);
	assert_int_equal(kill(munged.pid, SIGCONT), 0);
	assert_true(s.answered);
	assert_int_equal(s.rc, -ECANCELED);
}

/* --- sessions ----------------------------------------------------------------------- */

/* Asks node NAME at n1's address, and waits for the answer. */
static void ask_name(struct stand *s, const char *name)
{
	struct iocom_err err = {0};
	msgpack_sbuffer body;

	msgpack_sbuffer_init(&body);
	say(&body, "?");
	s->answered = false;
	assert_int_equal(control_ask(s->asks, name, "127.0.0.1", port, "admit", "n2-1-1", &body,
				     got, s, &err),
			 0);
	msgpack_sbuffer_destroy(&body);
	until_answered(s);
}

/* One greeting serves all questions of both nodes. */
static void test_one_session(void **state)
{
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	for (int i = 0; i < 20; i++)
		ask_name(&s, "n1");
	assert_int_equal(s.counters.sessions_begun, 2); /* one, at both ends */
	assert_int_equal(control_sessions(s.asks), 1);
	assert_int_equal(control_sessions(s.answers), 1);
	/* The other way the same session serves; `got` wants an answer of n1, which n2 is not. */
	msgpack_sbuffer_init(&body);
	assert_int_equal(control_ask(s.answers, "n2", "127.0.0.1", (uint16_t)(port + 5), "admit",
				     "n2-1-1", &body, NULL, NULL, &err),
			 0);
	msgpack_sbuffer_destroy(&body);
	for (int i = 0; i < 100; i++)
		loop_run(s.loop);
	assert_int_equal(s.counters.sessions_begun, 2);
	stand_down(&s);
}

/* Questions that come while a greeting is under way wait for it. */
static void test_many_at_once(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	for (int i = 0; i < 10; i++)
		assert_int_equal(stand_ask(&s), 0);
	for (int i = 0; i < 8000 && s.answers_got < 10; i++)
		loop_run(s.loop);
	assert_int_equal(s.answers_got, 10);
	assert_int_equal(s.counters.sessions_begun, 2);
	stand_down(&s);
}

/* The name of who is at an address need not be known; a wrong one is noticed. */
static void test_names(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	ask_name(&s, "");
	assert_int_equal(s.rc, 0);
	ask_name(&s, "n3");
	assert_int_not_equal(s.rc, 0);
	assert_non_null(strstr(s.why, "it is for node 'n3', this is node 'n1'"));
	ask_name(&s, "n1");
	assert_int_equal(s.rc, 0);
	stand_down(&s);
	/* A node that reaches itself says so. */
	stand_up(&s, AT_ONCE);
	tick(&s);
	unlisten(&s.asks, &s.asks_net);
	s.asks = listen_as(&s, &s.asks_net, "n1", (uint16_t)(port + 5));
	ask_name(&s, "");
	assert_int_not_equal(s.rc, 0);
	assert_non_null(strstr(s.why, "two nodes call themselves n1"));
	stand_down(&s);
}

static void test_clusters(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	unlisten(&s.asks, &s.asks_net);
	s.cluster = "blue";
	s.asks = listen_as(&s, &s.asks_net, "n2", (uint16_t)(port + 5));
	ask_name(&s, "n1");
	assert_int_equal(s.rc, -EPROTO);
	assert_non_null(strstr(s.why, "belongs to the cluster blue"));
	assert_int_equal(s.counters.sessions_failed, 1);
	stand_down(&s);
}

/* The answerer has started again: the asker greets anew and asks once more. */
static void test_forgotten(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	ask_name(&s, "n1");
	for (int i = 0; i < 3; i++) {
		unlisten(&s.answers, &s.answers_net);
		s.boot_id++;
		s.answers = listen_as(&s, &s.answers_net, "n1", port);
		for (int k = 0; k < 200; k++) /* nng connects again */
			loop_run(s.loop);
		ask_name(&s, "n1");
		assert_int_equal(s.rc, 0);
	}
	assert_int_equal(s.counters.sessions_unknown, 0); /* the lost connection said it all */
	assert_int_equal(s.counters.sessions_begun, 8);
	assert_int_equal(control_sessions(s.asks), 1);
	stand_down(&s);
}

/*
 * Both nodes have greeted, so there are two sessions.  The answerer has started again and knows
 * neither: the asker does not try the second one in vain.
 */
static void test_forgotten_both(void **state)
{
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	msgpack_sbuffer_init(&body);
	say(&body, "?");
	assert_int_equal(stand_ask(&s), 0);
	assert_int_equal(control_ask(s.answers, "n2", "127.0.0.1", (uint16_t)(port + 5), "admit",
				     "n2-1-1", &body, NULL, NULL, &err),
			 0);
	msgpack_sbuffer_destroy(&body);
	for (int i = 0; i < 500; i++)
		loop_run(s.loop);
	assert_int_equal(control_sessions(s.asks), 2);
	unlisten(&s.answers, &s.answers_net);
	s.boot_id++;
	s.answers = listen_as(&s, &s.answers_net, "n1", port);
	for (int i = 0; i < 200; i++) /* nng connects again */
		loop_run(s.loop);
	ask_name(&s, "n1");
	assert_string_equal(s.why, "");
	assert_int_equal(s.rc, 0);
	assert_int_equal(control_sessions(s.asks), 1);
	stand_down(&s);
}

/* What is asked while the network part starts again waits for it, and needs no new session. */
static void test_net_part_begins_anew(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	ask_name(&s, "n1");
	for (int i = 0; i < 3; i++) {
		net_here_kill(&s.asks_net);
		ask_name(&s, "n1");
		assert_string_equal(s.why, "");
		assert_int_equal(s.rc, 0);
	}
	assert_int_equal(s.asks_net.starts, 4);
	assert_int_equal(s.counters.sessions_begun, 2);
	/* It knows already that the part is away; two questions wait, and one is forgotten. */
	s.asks_net.away = true;
	net_here_kill(&s.asks_net);
	for (int i = 0; i < 100; i++)
		loop_run(s.loop);
	assert_false(net_part_is_up(s.asks_net.part));
	s.answers_got = 0;
	assert_int_equal(stand_ask(&s), 0);
	control_forget(s.asks, &s);
	assert_int_equal(stand_ask(&s), 0);
	s.asks_net.away = false;
	for (int i = 0; i < 8000 && !s.answers_got; i++)
		loop_run(s.loop);
	assert_int_equal(s.answers_got, 1);
	assert_int_equal(s.rc, 0);
	stand_down(&s);
}

static void ask_back(struct stand *s)
{
	struct iocom_err err = {0};
	msgpack_sbuffer body;

	msgpack_sbuffer_init(&body);
	say(&body, "?");
	assert_int_equal(control_ask(s->answers, "n2", "127.0.0.1", (uint16_t)(port + 5), "admit",
				     "n2-1-1", &body, NULL, NULL, &err),
			 0);
	msgpack_sbuffer_destroy(&body);
	for (int i = 0; i < 300; i++)
		loop_run(s->loop);
}

/*
 * A network part begins anew, and the other node, whose connection was lost, greets anew: but the
 * node goes on in the session that it had.
 */
static void test_goes_on_in_its_session(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	ask_name(&s, "n1");
	ask_back(&s);
	net_here_kill(&s.asks_net);
	for (int i = 0; i < 300; i++) /* nng connects again */
		loop_run(s.loop);
	ask_back(&s);
	assert_int_equal(s.counters.sessions_begun, 4);
	ask_name(&s, "");
	assert_string_equal(s.why, "");
	assert_int_equal(s.counters.sessions_unknown, 0);
	stand_down(&s);
}

/*
 * The answerer has forgotten the session and says nothing, and has begun another one meanwhile,
 * which a question to its address alone would not find.
 */
static void test_silence_ends(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	ask_name(&s, "");
	unlisten(&s.answers, &s.answers_net);
	s.answers = listen_as(&s, &s.answers_net, "n1", port); /* as if it were the same */
	net_here_kill(&s.asks_net);			       /* it knows of no lost connection */
	ask_back(&s);
	ask_name(&s, "");
	assert_int_equal(s.rc, -ETIMEDOUT);
	for (int i = 0; i < 300; i++)
		loop_run(s.loop);
	ask_name(&s, "");
	assert_string_equal(s.why, "");
	assert_int_equal(s.rc, 0);
	stand_down(&s);
}

/* It does not come back: whoever asks is told, and the end of the agent finds nothing left. */
static void test_net_part_stays_away(void **state)
{
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	ask_name(&s, "n1");
	s.asks_net.away = true;
	net_here_kill(&s.asks_net);
	ask_name(&s, "n1");
	assert_int_equal(s.rc, -ECONNRESET);
	assert_string_equal(s.why, "the network part starts again just now");
	assert_int_equal(stand_ask(&s), 0);
	stand_down(&s);
}

/* --- seals -------------------------------------------------------------------------- */

static void nothing(void *arg, struct seal_answer *answer)
{
	*(int *)arg += answer->rc == 0;
}

/* The lane of others is full: what this node sends is sealed nevertheless. */
static void test_lanes(void **state)
{
	struct seal_question *questions[SEAL_QUESTIONS_MAX + 1];
	char text[64] = "MUNGE:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:";
	struct iocom_err err = {0};
	int opened = 0, sealed = 0;
	struct stand s;

	(void)state;
	stand_up(&s, AT_ONCE);
	tick(&s);
	assert_int_equal(kill(munged.pid, SIGSTOP), 0);
	for (int i = 0; i < SEAL_QUESTIONS_MAX; i++)
		assert_int_equal(seal_open_message(s.seal, SEAL_FOREIGN, text, strlen(text),
						   nothing, &opened, &questions[i], &err),
				 0);
	assert_int_equal(seal_waiting(s.seal), SEAL_QUESTIONS_MAX);
	assert_int_equal(seal_open_message(s.seal, SEAL_FOREIGN, text, strlen(text), nothing,
					   &opened, &questions[0], &err),
			 -EAGAIN);
	assert_int_equal(s.counters.seal_questions_refused, 1);
	assert_int_equal(seal_message(s.seal, "x", 1, nothing, &sealed,
				      &questions[SEAL_QUESTIONS_MAX], &err),
			 0);
	assert_int_equal(kill(munged.pid, SIGCONT), 0);
	for (int i = 0; i < 8000 && !sealed && !s.counters.seal_failures; i++)
		loop_run(s.loop);
	/* On a machine that was busy for half a second it was given up. */
	assert_true(sealed || s.counters.seal_failures);
	assert_int_equal(opened, 0);
	stand_down(&s);
}

static void refused_form(struct stand *s, const char *text, size_t length)
{
	uint64_t before = s->counters.credentials_refused_form;
	struct seal_question *question;
	struct iocom_err err = {0};
	int never = 0;

	assert_false(seal_may_be(text, length));
	assert_int_equal(seal_open_message(s->seal, SEAL_FOREIGN, text, length, nothing, &never,
					   &question, &err),
			 SEAL_E_GARBAGE);
	assert_string_equal(err.text, "not a MUNGE credential");
	assert_int_equal(s->counters.credentials_refused_form, before + 1);
}

/* What has not the form of a credential is refused without munged, which is stopped here. */
static void test_form(void **state)
{
	static const char good[] = "MUNGE:AbYz09+/AbYz09+/AbYz09+/AbYz09==:";
	char text[sizeof(good)], longest[20000];
	struct seal_question *question;
	struct iocom_err err = {0};
	struct stand s;
	int never = 0;

	(void)state;
	stand_up(&s, AT_ONCE);
	assert_int_equal(kill(munged.pid, SIGSTOP), 0);
	assert_true(seal_may_be(good, strlen(good)));
	refused_form(&s, "", 0);
	refused_form(&s, "MUNGE::", 7);
	refused_form(&s, good, strlen(good) - 1);
	refused_form(&s, good + 1, strlen(good) - 1);
	refused_form(&s, good, sizeof(good)); /* with its NUL */
	for (size_t i = 0; i < strlen(good); i++) {
		memcpy(text, good, sizeof(text));
		text[i] = i % 3 == 0 ? '\0' : i % 3 == 1 ? '-' : '\n';
		refused_form(&s, text, strlen(good));
	}
	memcpy(text, good, sizeof(text));
	text[20] = '='; /* only at the end */
	refused_form(&s, text, strlen(good));
	/* A job's credential is short. */
	memset(longest, 'A', sizeof(longest));
	memcpy(longest, "MUNGE:", 6);
	strcpy(longest + sizeof(longest) - 2, ":");
	assert_true(seal_may_be(longest, strlen(longest)));
	assert_int_equal(seal_open_credential(s.seal, SEAL_STARTS, longest, nothing, &never,
					      &question, &err),
			 -EACCES);
	assert_int_equal(seal_open_credential(s.seal, SEAL_STARTS, "nonsense", nothing, &never,
					      &question, &err),
			 -EACCES);
	assert_non_null(strstr(err.text, "MUNGE refuses the credential"));
	assert_int_equal(seal_waiting(s.seal), 0);
	assert_int_equal(kill(munged.pid, SIGCONT), 0);
	stand_down(&s);
}

static int setup(void **state)
{
	(void)state;
	port = (uint16_t)(30000 + getpid() % 1000 * 10);
	missing = geteuid() ? "a seal needs root" : munged_start(&munged);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (!missing)
		munged_stop(&munged);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_within_and_fail),
		cmocka_unit_test(test_later_and_fail),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_junk),
		cmocka_unit_test(test_unread),
		cmocka_unit_test(test_munged_hangs),
		cmocka_unit_test(test_one_session),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_forgotten_both),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_net_part_begins_anew),
		cmocka_unit_test(test_net_part_stays_away),
		cmocka_unit_test(test_goes_on_in_its_session),
		cmocka_unit_test(test_silence_ends),
	};

	return cmocka_run_group_tests_name("control", tests, setup, teardown);
}
