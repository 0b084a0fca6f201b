/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two machines whose clocks differ, in both directions: two mungeds with one key, one with a
 * faked clock. A refusal says which clock is behind and by how many seconds.
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
#include <unistd.h>

#include "tests/lib/munged.h"
#include "tests/lib/seals.h"
#include "agent/cluster/seal.h"
#include "agent/cluster/skews.h"
#include "user/spec.h"

#define APART_S	 300
#define WITHIN_S 20 /* a shift that is shorter than the life of a credential */

static struct munged here, behind, near;
static const char *missing;

static int setup(void **state)
{
	(void)state;
	missing = munged_start(&here);
	if (missing)
		return 0;
	missing = munged_start_shifted(&behind, &here, -APART_S);
	if (!missing) {
		missing = munged_start_shifted(&near, &here, -WITHIN_S);
		if (missing)
			munged_stop(&behind);
	}
	if (missing)
		munged_stop(&here);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (missing)
		return 0;
	munged_stop(&near);
	munged_stop(&behind);
	munged_stop(&here);
	return 0;
}

static void need(void)
{
	if (!missing)
		return;
	print_message("%s\n", missing);
	skip();
}

/* Seals a start at FROM and opens it at TO. */
static int start(const struct munged *from, const struct munged *to, struct iocom_err *err)
{
	char *argv[] = {(char *)"true", NULL}, *env[] = {NULL};
	const struct spec spec = {
		.job = "n1-abc-7",
		.node = "n2",
		.nonce = "00",
		.class_name = "true",
		.executable = (char *)"true",
		.cwd = (char *)"/",
		.argv = argv,
		.env = env,
	};
	char *credential = NULL;
	size_t length;
	void *data;
	struct credential who;
	int rc;

	*err = (struct iocom_err){0};
	assert_int_equal(spec_pack(&spec, &data, &length, err), 0);
	assert_int_equal(spec_seal(&spec, data, length, from->socket, &credential, err), 0);
	rc = munged_start_of(to->socket, credential, &spec, data, length, "n2", &who, err);
	free(credential);
	free(data);
	return rc;
}

/* Does the same with a message of an agent. */
static int message(const struct munged *from, const struct munged *to, struct iocom_err *err)
{
	struct seals sender, receiver;
	char *credential = NULL;
	void *data = NULL;
	size_t length;
	int rc;

	*err = (struct iocom_err){0};
	assert_int_equal(seals_new(&sender, from->socket, err), 0);
	assert_int_equal(seals_new(&receiver, to->socket, err), 0);
	assert_int_equal(seals_message(&sender, "load", 4, &credential, err), 0);
	rc = seals_open(&receiver, credential, strlen(credential), &data, &length, err);
	if (!rc) {
		assert_memory_equal(data, "load", 4);
	} else if (rc == SEAL_E_SKEW) { /* the node whose clock is wrong */
		assert_int_equal(length, 4);
		assert_memory_equal(data, "load", 4);
		assert_in_range(llabs(receiver.answer.ahead_s), APART_S - 10, APART_S + 60);
		assert_int_equal(receiver.answer.ahead_s < 0, from == &behind);
	}
	free(data);
	free(credential);
	seals_free(&sender);
	seals_free(&receiver);
	return rc;
}

/* Checks that the sentence has a number of seconds near APART_S right before or after WORDS. */
static void says(const struct iocom_err *err, const char *format)
{
	const char *at = err->text;
	bool found = false;

	for (; *at && !found; at++) {
		int seconds = 0, end = 0;

		sscanf(at, format, &seconds, &end);
		found = end && seconds >= APART_S - 10 && seconds <= APART_S + 60;
	}
	if (!found)
		fail_msg("no '%s' in: %s", format, err->text);
}

static void test_start_from_behind(void **state)
{
	struct iocom_err err;

	(void)state;
	need();
	assert_int_equal(start(&behind, &here, &err), -EACCES);
	says(&err, "the submitting node's clock is about %d s behind this%n");
}

static void test_start_from_ahead(void **state)
{
	struct iocom_err err;

	(void)state;
	need();
	assert_int_equal(start(&here, &behind, &err), -EACCES);
	says(&err, "the submitting node's clock is %d s ahead of this%n");
}

static void test_start_within(void **state)
{
	struct iocom_err err;

	(void)state;
	need();
	assert_int_equal(start(&here, &here, &err), 0);
	assert_int_equal(start(&near, &here, &err), 0);
	assert_int_equal(start(&here, &near, &err), 0);
}

static void test_message_from_behind(void **state)
{
	struct iocom_err err;

	(void)state;
	need();
	assert_int_equal(message(&behind, &here, &err), SEAL_E_SKEW);
	says(&err, "made %d s before this machine's time%n");
}

static void test_message_from_ahead(void **state)
{
	struct iocom_err err;

	(void)state;
	need();
	assert_int_equal(message(&here, &behind, &err), SEAL_E_SKEW);
	says(&err, "made %d s after this machine's time%n");
}

static void test_message_within(void **state)
{
	struct iocom_err err;

	(void)state;
	need();
	assert_int_equal(message(&near, &here, &err), 0);
	assert_int_equal(message(&here, &near, &err), 0);
}

/* It is down while munged does not answer, and up when munged answers again, with the same seal. */
static void test_munged_comes_back(void **state)
{
	struct iocom_err err = {0};
	struct munged again = {0};
	char *credential = NULL;
	struct seals seals;
	char moved[160];

	(void)state;
	need();
	assert_null(munged_start(&again));
	assert_int_equal(seals_new(&seals, again.socket, &err), 0);
	assert_false(seal_down(seals.seal));
	snprintf(moved, sizeof(moved), "%s.away", again.socket);
	assert_int_equal(rename(again.socket, moved), 0);
	assert_int_equal(seals_message(&seals, "x", 1, &credential, &err), -EHOSTDOWN);
	assert_non_null(strstr(err.text, "munged"));
	assert_true(seal_down(seals.seal));
	assert_int_equal(seals.counters.seal_failures, 1);
	assert_int_equal(rename(moved, again.socket), 0);
	assert_int_equal(seals_message(&seals, "x", 1, &credential, &err), 0);
	assert_false(seal_down(seals.seal));
	free(credential);
	seals_free(&seals);
	munged_stop(&again);
}

/*
 * Munged is stopped, not dead: its socket accepts questions, and libmunge would wait for most of
 * a minute.
 */
static void test_munged_hangs(void **state)
{
	struct iocom_err err = {0};
	char *credential = NULL, *before = NULL;
	struct munged again = {0};
	struct credential who;
	struct seals seals;
	size_t length;
	void *data;
	int rc = -1;

	(void)state;
	need();
	assert_null(munged_start(&again));
	assert_int_equal(seals_new(&seals, again.socket, &err), 0);
	assert_int_equal(seals_message(&seals, "x", 1, &before, &err), 0);
	assert_int_equal(kill(again.pid, SIGSTOP), 0);
	assert_int_equal(seals_message(&seals, "x", 1, &credential, &err), -EHOSTDOWN);
	assert_non_null(strstr(err.text, "munged does not answer at "));
	assert_non_null(strstr(err.text, "it hangs or is stopped"));
	assert_true(seal_down(seals.seal));
	assert_null(credential);
	assert_int_equal(seals_open(&seals, before, strlen(before), &data, &length, &err),
			 -EHOSTDOWN);
	assert_null(data);
	assert_int_equal(seals_credential(&seals, &who, before, &err), -EHOSTDOWN);
	assert_null(who.bound);
	assert_int_equal(seals.counters.seal_failures, 3);
	assert_int_equal(kill(again.pid, SIGCONT), 0);
	for (int i = 0; i < 600 && rc; i++) {
		rc = seals_message(&seals, "x", 1, &credential, &err);
		if (rc)
			usleep(50000);
	}
	assert_int_equal(rc, 0);
	assert_false(seal_down(seals.seal));
	rc = -1;
	for (int i = 0; i < 600 && rc; i++) { /* the other lane hung, too */
		free(credential);
		rc = seals_message(&seals, "x", 1, &credential, &err);
		if (!rc)
			rc = seals_credential(&seals, &who, credential, &err);
		if (rc)
			usleep(50000);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(who.uid, 0);
	assert_int_equal(who.length, 1);
	assert_memory_equal(who.bound, "x", 1);
	credential_free(&who);
	free(credential);
	free(before);
	/* An agent may end while munged hangs. */
	assert_int_equal(kill(again.pid, SIGSTOP), 0);
	assert_int_equal(seals_message(&seals, "x", 1, &credential, &err), -EHOSTDOWN);
	seals_free(&seals);
	assert_int_equal(kill(again.pid, SIGCONT), 0);
	munged_stop(&again);
}

static void test_skews_are_said(void **state)
{
	const uint64_t now = SKEWS_FRESH_NS * 2;
	static struct skews skews;
	char text[256] = "x";

	(void)state;
	assert_false(skews_say(&skews, "n1", now, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_false(skews_say(&skews, "", now, text, sizeof(text)));
	skews_note(&skews, "n1", -300, now);
	skews_note(&skews, "n2", 90, now);
	assert_true(skews_say(&skews, "n1", now, text, sizeof(text)));
	assert_non_null(strstr(text, "300 s before this machine's"));
	assert_true(skews_say(&skews, "n2", now + SKEWS_FRESH_NS, text, sizeof(text)));
	assert_non_null(strstr(text, "90 s after this machine's"));
	assert_false(skews_say(&skews, "n2", now + SKEWS_FRESH_NS + 1, text, sizeof(text)));
	assert_false(skews_say(&skews, "n", now, text, sizeof(text)));
	skews_note(&skews, "n1", 61, now);
	assert_true(skews_say(&skews, "n1", now, text, sizeof(text)));
	assert_non_null(strstr(text, "61 s after"));
	skews_forget(&skews, "n1");
	skews_forget(&skews, "n1");
	assert_false(skews_say(&skews, "n1", now, text, sizeof(text)));
	assert_true(skews_say(&skews, "n2", now, text, sizeof(text)));
}

/* Many names take no more room: the oldest is removed. */
static void test_skews_are_bounded(void **state)
{
	static struct skews skews;
	char name[IOCOM_NAME_MAX], text[256];

	(void)state;
	for (unsigned i = 0; i <= SKEWS_MAX; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		skews_note(&skews, name, 100, 1000 + i);
	}
	assert_false(skews_say(&skews, "m0", 2000, text, sizeof(text)));
	assert_true(skews_say(&skews, "m1", 2000, text, sizeof(text)));
	assert_true(skews_say(&skews, name, 2000, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_from_behind),
		cmocka_unit_test(test_start_from_ahead),
		cmocka_unit_test(test_start_within),
		cmocka_unit_test(test_message_from_behind),
		cmocka_unit_test(test_message_from_ahead),
		cmocka_unit_test(test_message_within),
		cmocka_unit_test(test_munged_comes_back),
		cmocka_unit_test(test_munged_hangs),
		cmocka_unit_test(test_skews_are_said),
		cmocka_unit_test(test_skews_are_bounded),
	};

	return cmocka_run_group_tests_name("skew", tests, setup, teardown);
}
