/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the client of a gang decides while parts start, run, fail and end, with launchers played
 * here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/run/gang_watch.h"

#define PARTS 3

/* What each part was sent, as letters: G for GO, L to leave, a signal's own letter. */
struct rig {
	struct gang_watch watch;
	struct gang_answer *gang;
	char sent[PARTS][32];
	struct gang_message go;
};

static void hear(void *arg, uint32_t part, const void *data, size_t length)
{
	struct rig *rig = arg;
	const uint8_t *packet = data;
	char letter = 'G';

	if (length == GANG_ORDER && packet[0] == GANG_ORDER_LEAVE)
		letter = 'L';
	else if (length == GANG_ORDER && packet[0] == GANG_ORDER_SIGNAL)
		letter = packet[1] == SIGTERM	? 'T'
			 : packet[1] == SIGKILL ? 'K'
			 : packet[1] == SIGINT	? 'I'
						: '?';
	else
		assert_int_equal(gang_message_unpack(&rig->go, data, length), 0);
	assert_true(strlen(rig->sent[part]) + 1 < sizeof(rig->sent[part]));
	rig->sent[part][strlen(rig->sent[part])] = letter;
}

/* Tasks 0-1 are on n1, 2-3 on n2, 4-5 on n3. */
static struct rig *rig_new(void)
{
	static const uint32_t nodes[] = {0, 0, 1, 1, 2, 2};
	struct rig *rig = calloc(1, sizeof(*rig));
	uint32_t *numbers;

	assert_non_null(rig);
	rig->gang = gang_answer_new(nodes, 6, PARTS, &numbers);
	assert_non_null(rig->gang);
	free(numbers);
	for (uint32_t i = 0; i < PARTS; i++)
		snprintf(rig->gang->parts[i].node, IOCOM_NAME_MAX, "n%u", i + 1);
	assert_int_equal(gang_watch_init(&rig->watch, rig->gang, "10.0.0.1", 1000), 0);
	rig->watch.send = hear;
	rig->watch.arg = rig;
	return rig;
}

static void rig_free(struct rig *rig)
{
	gang_watch_fini(&rig->watch);
	gang_answer_free(rig->gang);
	free(rig);
}

static void say(struct rig *rig, uint32_t part, struct gang_message message, uint64_t now_ms)
{
	uint8_t packed[GANG_MESSAGE_MAX];
	size_t n = gang_message_pack(&message, packed);

	assert_true(n > 0);
	gang_watch_packet(&rig->watch, part, packed, n, now_ms);
}

static void ready(struct rig *rig, uint32_t part)
{
	say(rig, part, (struct gang_message){.type = GANG_READY, .port = (uint16_t)(part + 7000)},
	    1500);
}

static void begun(struct rig *rig)
{
	for (uint32_t i = 0; i < PARTS; i++)
		ready(rig, i);
	for (uint32_t i = 0; i < PARTS; i++)
		say(rig, i, (struct gang_message){.type = GANG_BEGUN}, 1600);
	assert_true(gang_watch_runs(&rig->watch));
	memset(rig->sent, 0, sizeof(rig->sent));
}

static void ended(struct rig *rig, uint32_t part, int status, uint64_t now_ms)
{
	const struct gang_end end = {.status = status, .exited = true, .value = status, .text = ""};

	gang_watch_ended(&rig->watch, part, &end, now_ms);
}

static const char *sentence(const struct rig *rig, const char *word, bool unread)
{
	static char text[512];

	gang_watch_sentence(&rig->watch, word, unread, text, sizeof(text));
	return text;
}

static void sent(const struct rig *rig, const char *first, const char *second, const char *third)
{
	assert_string_equal(rig->sent[0], first);
	assert_string_equal(rig->sent[1], second);
	assert_string_equal(rig->sent[2], third);
}

static void test_go_when_all_are_ready(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	ready(rig, 1);
	ready(rig, 0);
	ready(rig, 0);
	sent(rig, "", "", "");
	assert_int_equal(gang_watch_time(&rig->watch, 2000), GANG_BEGIN_S * 1000 - 1000);
	ready(rig, 2);
	sent(rig, "G", "G", "G");
	assert_int_equal(rig->go.type, GANG_GO);
	assert_int_equal(rig->go.port, 7000);
	assert_string_equal(rig->go.address, "10.0.0.1");
	/* Contact was lost, and the launcher says it again. */
	ready(rig, 1);
	sent(rig, "G", "GG", "G");
	for (uint32_t i = 0; i < PARTS; i++)
		say(rig, i, (struct gang_message){.type = GANG_BEGUN}, 1600);
	assert_true(gang_watch_runs(&rig->watch));
	assert_int_equal(gang_watch_time(&rig->watch, 1u << 30), -1);
	for (uint32_t i = 0; i < PARTS; i++)
		ended(rig, i, 0, 1700);
	assert_int_equal(rig->watch.failure.kind, GANG_FINE);
	assert_int_equal(rig->watch.failure.status, 0);
	assert_string_equal(sentence(rig, "task", false), "");
	rig_free(rig);
}

static void test_a_rank_fails(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	begun(rig);
	say(rig, 1,
	    (struct gang_message){
		    .type = GANG_FAILED, .rank = 3, .signalled = true, .value = SIGKILL},
	    5000);
	sent(rig, "T", "", "T");
	/* What follows from it is no news. */
	say(rig, 0,
	    (struct gang_message){
		    .type = GANG_FAILED, .rank = 0, .signalled = true, .value = SIGTERM},
	    5010);
	ended(rig, 0, 143, 5020);
	assert_int_equal(gang_watch_time(&rig->watch, 5100), GANG_KILL_MS - 100);
	assert_int_equal(gang_watch_time(&rig->watch, 5000 + GANG_KILL_MS), GANG_LEAVE_MS);
	sent(rig, "T", "K", "TK");
	assert_false(rig->watch.leave);
	gang_watch_time(&rig->watch, 5000 + GANG_KILL_MS + GANG_LEAVE_MS);
	assert_true(rig->watch.leave);
	assert_int_equal(rig->watch.failure.status, 137);
	assert_string_equal(sentence(rig, "rank", false),
			    "rank 3 on n2 was ended by signal 9 (KILL); the others were ended");
	rig_free(rig);
}

/* Ranks fail by another's crash before that is told; what crashes when told to end is no news. */
static void test_a_crash_is_the_reason(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	begun(rig);
	say(rig, 0, (struct gang_message){.type = GANG_FAILED, .rank = 1, .value = 15}, 5000);
	sent(rig, "", "T", "T");
	say(rig, 2,
	    (struct gang_message){
		    .type = GANG_FAILED, .rank = 4, .signalled = true, .value = SIGSEGV},
	    5010);
	assert_int_equal(rig->watch.failure.status, 15);
	for (uint32_t rank = 2; rank < 4; rank++)
		say(rig, 1,
		    (struct gang_message){.type = GANG_FAILED,
					  .rank = rank,
					  .signalled = true,
					  .crash = true,
					  .value = rank == 2 ? SIGSEGV : SIGKILL},
		    5020);
	ended(rig, 1, 139, 5030);
	assert_int_equal(rig->watch.failure.status, 139);
	assert_false(gang_watch_follows(&rig->watch)); /* home is not asked */
	assert_string_equal(sentence(rig, "rank", false),
			    "rank 2 on n2 was ended by signal 11 (SEGV); the others were ended");
	rig_free(rig);
}

static void test_what_failures_say(void **state)
{
	static const struct {
		struct gang_message message;
		int status;
		const char *sentence;
	} cases[] = {
		{{.rank = 5, .value = 3},
		 3,
		 "task 5 on n3 ended with status 3; the others were ended"},
		{{.rank = 4, .value = 126, .text = "n3: cannot execute it"},
		 126,
		 "n3: cannot execute it; the others were ended"},
		/* A launcher is the user's, and may say anything. */
		{{.rank = 4, .value = 0},
		 125,
		 "task 4 on n3 ended with status 0; the others were ended"},
		{{.rank = 4, .signalled = true, .value = 200},
		 125,
		 "task 4 on n3 was ended by signal 200 (?); the others were ended"},
		{{.rank = 4, .value = 1, .text = "\033[2Jx"}, 1, "?[2Jx; the others were ended"},
		/* It may tell of another part's, which it heard of first. */
		{{.rank = 0, .value = 1},
		 1,
		 "task 0 on n1 ended with status 1; the others were ended"},
		{{.rank = 6, .value = 1},
		 125,
		 "what starts the tasks on n3 is of another version of iocom, or not iocom's; the "
		 "others were ended"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_new();
		struct gang_message message = cases[i].message;

		message.type = GANG_FAILED;
		begun(rig);
		say(rig, 2, message, 5000);
		assert_int_equal(rig->watch.failure.status, cases[i].status);
		assert_string_equal(sentence(rig, "task", false), cases[i].sentence);
		rig_free(rig);
	}
}

static void test_garbage(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	gang_watch_packet(&rig->watch, 1, "garbage", 7, 1200);
	sent(rig, "T", "T", "T");
	assert_int_equal(rig->watch.failure.status, 125);
	ready(rig, 0);
	ready(rig, 1);
	ready(rig, 2);
	sent(rig, "T", "T", "T");
	rig_free(rig);
}

static void test_a_part_never_begins(void **state)
{
	static const struct {
		struct gang_end end;
		int status;
		const char *sentence;
	} cases[] = {
		{{.status = 125, .text = "node n2 refused the job (memory): too little"},
		 125,
		 "node n2 refused the job (memory): too little; the others were ended"},
		{{.status = 127, .text = "prog: command not found"},
		 127,
		 "n2: prog: command not found; the others were ended"},
		{{.status = 255, .lost = true, .text = ""},
		 255,
		 "contact with n2 was lost; the others were ended"},
		{{.status = 137, .signalled = true, .value = 9, .text = ""},
		 137,
		 "what starts the tasks on n2 was ended by signal 9 (KILL); the others were ended"},
		{{.status = 125, .exited = true, .value = 125, .text = ""},
		 125,
		 "what starts the tasks on n2 ended with status 125 before they began; the others "
		 "were ended"},
		{{.status = 0, .exited = true, .text = ""},
		 125,
		 "what starts the tasks on n2 ended with status 0 before they began; the others "
		 "were "
		 "ended"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_new();

		ready(rig, 0);
		gang_watch_ended(&rig->watch, 1, &cases[i].end, 1700);
		sent(rig, "T", "", "T");
		ready(rig, 2); /* too late: it gets no GO */
		sent(rig, "T", "", "T");
		assert_int_equal(rig->watch.failure.status, cases[i].status);
		assert_string_equal(sentence(rig, "task", false), cases[i].sentence);
		rig_free(rig);
	}
}

static void test_late(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	ready(rig, 1);
	assert_int_equal(gang_watch_time(&rig->watch, 1000 + GANG_BEGIN_S * 1000), GANG_KILL_MS);
	sent(rig, "T", "T", "T");
	assert_int_equal(rig->watch.failure.status, 125);
	assert_string_equal(sentence(rig, "task", false),
			    "n1, n3 did not begin within 60 s; the others were ended");
	rig_free(rig);

	rig = rig_new();
	for (uint32_t i = 0; i < PARTS; i++)
		ready(rig, i);
	say(rig, 0, (struct gang_message){.type = GANG_BEGUN}, 1600);
	say(rig, 2, (struct gang_message){.type = GANG_BEGUN}, 1600);
	gang_watch_time(&rig->watch, 1500 + GANG_BEGIN_S * 1000);
	assert_string_equal(sentence(rig, "task", false),
			    "n2 did not begin within 60 s; the others were ended");
	rig_free(rig);
}

static void test_signals(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	/* Before all run: everything ends. */
	ready(rig, 0);
	gang_watch_signal(&rig->watch, SIGINT, 1600);
	sent(rig, "T", "T", "T");
	assert_int_equal(rig->watch.failure.status, 130);
	assert_string_equal(sentence(rig, "task", false), "");
	rig_free(rig);

	/* Then it is the tasks', and the second one ends those that go on. */
	rig = rig_new();
	begun(rig);
	gang_watch_signal(&rig->watch, SIGINT, 2000);
	sent(rig, "I", "I", "I");
	assert_int_equal(gang_watch_time(&rig->watch, 2000), -1);
	gang_watch_signal(&rig->watch, SIGINT, 3000);
	sent(rig, "IT", "IT", "IT");
	assert_int_equal(rig->watch.failure.status, 130);
	rig_free(rig);

	/* A rank that our signal ended needs no sentence. */
	rig = rig_new();
	begun(rig);
	gang_watch_signal(&rig->watch, SIGINT, 2000);
	say(rig, 0, (struct gang_message){.type = GANG_FAILED, .signalled = true, .value = SIGINT},
	    2010);
	assert_int_equal(rig->watch.failure.status, 130);
	assert_string_equal(sentence(rig, "task", false), "");
	rig_free(rig);

	/* Nor does one whose output nobody reads. */
	rig = rig_new();
	begun(rig);
	say(rig, 0, (struct gang_message){.type = GANG_FAILED, .signalled = true, .value = SIGPIPE},
	    2010);
	assert_string_equal(sentence(rig, "task", true), "");
	assert_string_equal(sentence(rig, "task", false),
			    "task 0 on n1 was ended by signal 13 (PIPE); the others were ended");
	rig_free(rig);
}

static void test_keep_going(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	rig->watch.keep_going = true;
	begun(rig);
	say(rig, 1, (struct gang_message){.type = GANG_FAILED, .rank = 2, .value = 4}, 2000);
	ended(rig, 1, 4, 2100);
	ended(rig, 0, 9, 2200);
	sent(rig, "", "", "");
	assert_int_equal(rig->watch.failure.status, 4);
	assert_string_equal(sentence(rig, "task", false),
			    "task 2 on n2 ended with status 4; the others went on");
	/* Two signals end it in any case. */
	gang_watch_signal(&rig->watch, SIGINT, 3000);
	gang_watch_signal(&rig->watch, SIGINT, 3100);
	sent(rig, "", "", "IT");
	assert_int_equal(rig->watch.failure.status, 4);
	rig_free(rig);

	/* A task may fail before another part has said that its own run. */
	rig = rig_new();
	rig->watch.keep_going = true;
	for (uint32_t i = 0; i < PARTS; i++)
		ready(rig, i);
	say(rig, 0, (struct gang_message){.type = GANG_BEGUN}, 1600);
	say(rig, 0, (struct gang_message){.type = GANG_FAILED, .rank = 1, .value = 4}, 1601);
	assert_true(rig->watch.failure.began);
	for (uint32_t i = 1; i < PARTS; i++)
		say(rig, i, (struct gang_message){.type = GANG_BEGUN}, 1602);
	assert_true(gang_watch_runs(&rig->watch));
	sent(rig, "G", "G", "G");
	rig_free(rig);

	/* All or nothing holds for the start. */
	rig = rig_new();
	rig->watch.keep_going = true;
	ready(rig, 0);
	ended(rig, 1, 125, 1700);
	sent(rig, "T", "", "T");
	rig_free(rig);
}

static void test_a_part_ends_without_a_word(void **state)
{
	const struct gang_end killed = {.status = 137, .signalled = true, .value = 9, .text = ""};
	struct rig *rig = rig_new();

	(void)state;
	/* Another one, which failed, is heard later. */
	begun(rig);
	ended(rig, 0, 125, 2000);
	assert_int_equal(gang_watch_time(&rig->watch, 2000), GANG_QUIET_MS);
	sent(rig, "", "", "");
	gang_watch_ended(&rig->watch, 2, &killed, 2100);
	sent(rig, "", "T", "");
	assert_int_equal(rig->watch.failure.status, 137);
	assert_string_equal(
		sentence(rig, "rank", false),
		"what starts the tasks on n3 was ended by signal 9 (KILL); the others were ended");
	rig_free(rig);

	/* Home heard of it before us. */
	rig = rig_new();
	begun(rig);
	say(rig, 0, (struct gang_message){.type = GANG_FAILED, .signalled = true, .value = SIGTERM},
	    2000);
	ended(rig, 0, 143, 2001);
	sent(rig, "", "", "");
	say(rig, 2, (struct gang_message){.type = GANG_FAILED, .rank = 5, .value = 7}, 2002);
	sent(rig, "", "T", "");
	assert_int_equal(rig->watch.failure.status, 7);
	rig_free(rig);

	/* Nobody has anything to say. */
	rig = rig_new();
	begun(rig);
	ended(rig, 0, 3, 2000);
	gang_watch_time(&rig->watch, 2000 + GANG_QUIET_MS);
	sent(rig, "", "T", "T");
	assert_int_equal(rig->watch.failure.status, 3);
	assert_string_equal(sentence(rig, "rank", false),
			    "a task on n1 ended with status 3; the others were ended");
	rig_free(rig);

	rig = rig_new();
	begun(rig);
	for (uint32_t i = 0; i < PARTS; i++)
		ended(rig, i, 3 + (int)i, 2000);
	gang_watch_time(&rig->watch, 2000);
	assert_int_equal(rig->watch.failure.status, 3);
	rig_free(rig);
}

static void test_another_client_takes_it(void **state)
{
	const struct gang_end end = {
		.status = 255, .lost = true, .taken = true, .text = "it was attached to"};
	struct rig *rig = rig_new();

	(void)state;
	begun(rig);
	gang_watch_ended(&rig->watch, 1, &end, 2000);
	gang_watch_ended(&rig->watch, 0, &end, 2001);
	sent(rig, "L", "", "L");
	assert_int_equal(gang_watch_time(&rig->watch, 1u << 30), -1);
	assert_int_equal(rig->watch.failure.status, 255);
	assert_string_equal(sentence(rig, "task", false), "it was attached to");
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_go_when_all_are_ready),
		cmocka_unit_test(test_a_rank_fails),
		cmocka_unit_test(test_a_crash_is_the_reason),
		cmocka_unit_test(test_what_failures_say),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_a_part_never_begins),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_keep_going),
		cmocka_unit_test(test_another_client_takes_it),
		cmocka_unit_test(test_a_part_ends_without_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
