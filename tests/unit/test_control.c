/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * When the answer to another agent is sent: after its handler, even if the handler gives it
 * early. If the handler fails (it cannot write to the disk) the answer is never sent.
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

#include "user/clock.h"
#include "agent/cluster/control.h"
#include "agent/base/counters.h"
#include "tests/lib/munged.h"
#include "user/pack.h"
#include "agent/cluster/seal.h"

enum how { AT_ONCE, WITHIN, WITHIN_AND_FAIL, LATER_AND_FAIL, REFUSED, LATER };

struct stand {
	struct loop *loop;
	struct seal *seal;
	struct logger log;
	struct counters counters;
	struct control *asks, *answers;
	struct loop_timer timer;
	enum how how;
	uint64_t ticket;
	bool returned; /* the handler has returned */
	bool answered, early;
	int rc;
	char said[16];
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

static void got(void *arg, int rc, const msgpack_object *body, const char *why)
{
	struct stand *s = arg;

	(void)why;
	s->answered = true;
	s->early = s->how != AT_ONCE && !s->returned;
	s->rc = rc;
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

static struct control *listen_as(struct stand *s, const char *name, uint16_t base)
{
	const struct control_config config = {
		.loop = s->loop,
		.seal = s->seal,
		.log = &s->log,
		.counters = &s->counters,
		.name = name,
		.listen = "127.0.0.1",
		.port = base,
		.handler = handle,
		.arg = s,
	};
	struct iocom_err err = {0};
	struct control *c = NULL;

	if (control_new(&c, &config, &err))
		fail_msg("%s", err.text);
	return c;
}

static void ask(struct stand *s, enum how how)
{
	struct iocom_err err = {0};
	msgpack_sbuffer body;

	if (missing) {
		print_message("%s\n", missing);
		skip();
	}
	*s = (struct stand){.how = how};
	assert_int_equal(loop_new(&s->loop, &err), 0);
	assert_int_equal(seal_new(&s->seal, munged.socket, &err), 0);
	s->answers = listen_as(s, "n1", port);
	s->asks = listen_as(s, "n2", (uint16_t)(port + 5));
	s->timer = (struct loop_timer){.fire = fire, .arg = s};
	loop_start(s->loop, &s->timer, 1000 * CLOCK_NS_PER_MS);
	msgpack_sbuffer_init(&body);
	say(&body, "?");
	assert_int_equal(control_ask(s->asks, "n1", "127.0.0.1", port, "admit", "n2-1-1", &body,
				     got, s, &err),
			 0);
	msgpack_sbuffer_destroy(&body);
	loop_run(s->loop);
	if (!s->answered)
		control_forget(s->asks, s);
	loop_cancel(s->loop, &s->timer);
	control_free(s->asks);
	control_free(s->answers);
	seal_free(s->seal);
	loop_free(s->loop);
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
		cmocka_unit_test(test_at_once),	       cmocka_unit_test(test_within),
		cmocka_unit_test(test_later),	       cmocka_unit_test(test_within_and_fail),
		cmocka_unit_test(test_later_and_fail), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("control", tests, setup, teardown);
}
