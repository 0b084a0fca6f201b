/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* An owner's rules: their words, their contradictions, their hours, their file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/settings/owner/owner.h"
#include "balancer/view/vector_codec.h"

static struct iocom_err err;

/* Applies TEXT, words with '|' between them, to R.  Returns what owner_ask_apply does. */
static int apply(struct owner_rules *r, const char *text)
{
	struct owner_ask ask = {.reason = "maintenance"};
	char copy[600], *state = NULL;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, "|", &state); word; word = strtok_r(NULL, "|", &state))
		snprintf(ask.words[ask.nwords++], OWNER_WORD_MAX, "%s", word);
	err.text[0] = 0;
	return owner_ask_apply(&ask, "anna@n1", 1000, r, &err);
}

static void same(const struct owner_rules *a, const struct owner_rules *b)
{
	char *text = owner_text(a), *other = owner_text(b);

	assert_string_equal(text, other);
	free(text);
	free(other);
}

static void refused(struct owner_rules *r, const char *text, const char *sentence)
{
	struct owner_rules before = *r;

	assert_int_equal(apply(r, text), -EINVAL);
	if (!strstr(err.text, sentence))
		fail_msg("`%s` says: %s", text, err.text);
	same(r, &before);
}

static void changes(struct owner_rules *r, const char *text)
{
	if (apply(r, text) != OWNER_CHANGE)
		fail_msg("`%s` says: %s", text, err.text);
}

static const char *says(const struct owner_rules *r)
{
	static char text[IOCOM_NAME_MAX];
	struct owner_moment moment = {.local = {.tm_wday = 3, .tm_hour = 12}};

	owner_says(r, &moment, text, sizeof(text));
	return text;
}

static void test_state(void **state)
{
	struct owner_rules r;
	char text[IOCOM_NAME_MAX];

	(void)state;
	owner_init(&r);
	assert_string_equal(says(&r), "");
	changes(&r, "close");
	assert_string_equal(says(&r), "closed: maintenance");
	assert_string_equal(r.by, "anna@n1");
	assert_int_equal(r.since_s, 1000);
	changes(&r, "drain");
	assert_string_equal(says(&r), "drained: maintenance");
	assert_false(owner_says(&r, &(struct owner_moment){.guests = 1}, text, sizeof(text)));
	assert_string_equal(text, "draining: maintenance");
	changes(&r, "resume");
	assert_string_equal(says(&r), "");
	changes(&r, "cap|cpu=50%|disk=20MB/s");
	changes(&r, "close|network");
	assert_string_equal(says(&r), "limited: cpu 50%, disk 20MB/s, no network");
	changes(&r, "users|allow|anna");
	assert_non_null(strstr(says(&r), "some users"));
	assert_int_equal(apply(&r, "show"), OWNER_SHOW);
	assert_int_equal(apply(&r, "expel"), OWNER_EXPEL);
	assert_int_equal(apply(&r, "expel|n1-1-1"), OWNER_EXPEL);
}

static void test_caps(void **state)
{
	static const struct {
		const char *word, *text;
	} good[] = {{"cap|memory=4G", "4G"},
		    {"cap|memory=1536M", "1536M"},
		    {"cap|memory=25%", "25%"},
		    {"cap|memory=4096M", "4G"},
		    {"cap|memory=0.5%", "0.5%"}};
	struct owner_rules r;
	char text[32];

	(void)state;
	owner_init(&r);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		changes(&r, good[i].word);
		owner_cap_text(OWNER_MEMORY, &r.caps[OWNER_MEMORY], text, sizeof(text));
		assert_string_equal(text, good[i].text);
	}
	changes(&r, "cap|network=10MB/s");
	assert_true(r.caps[OWNER_NETWORK].unit == OWNER_AMOUNT);
	assert_true(r.caps[OWNER_NETWORK].value == 10);
	changes(&r, "cap|network=none");
	assert_true(r.caps[OWNER_NETWORK].unit == OWNER_NO_CAP);
	refused(&r, "cap", "cap RESOURCE=VALUE");
	refused(&r, "cap|gpu=1", "expected cpu=, memory=, disk= or network=");
	refused(&r, "cap|cpu", "expected cpu=");
	refused(&r, "cap|cpu=150%", "expected a part from 1% to 100% of cpu");
	refused(&r, "cap|cpu=2", "expected a part");
	refused(&r, "cap|cpu=nan%", "expected a part");
	refused(&r, "cap|cpu=-5%", "expected a part");
	refused(&r, "cap|memory=4X", "expected a part");
	refused(&r, "cap|memory=1K", "a size from 16M on");
	refused(&r, "cap|memory=1e30G", "expected a part");
	refused(&r, "cap|disk=20", "or a rate, as 20MB/s");
	/* So little would be no cap at all of a control group, or nothing. */
	refused(&r, "cap|cpu=0.5%", "expected a part from 1% to 100% of cpu");
	refused(&r, "cap|memory=1e-9%", "expected a part from 0.01%");
	refused(&r, "cap|disk=0.0000001MB/s", "from 0.01 on");
	refused(&r, "cap|network=1e-320MB/s", "from 0.01 on");
	changes(&r, "cap|cpu=1%|memory=0.01%|disk=0.01MB/s|network=0.01%");
	changes(&r, "cap|none");
	assert_true(r.caps[OWNER_MEMORY].unit == OWNER_NO_CAP);
}

/* Which of two rules, each words with '|' between them and commands with ';', lets guests do more.
 */
static void narrows(const char *from, const char *to, bool expected)
{
	const char *const texts[2] = {from, to};
	struct owner_rules r[2];

	for (size_t i = 0; i < 2; i++) {
		char copy[300], *state = NULL;

		owner_init(&r[i]);
		snprintf(copy, sizeof(copy), "%s", texts[i]);
		for (char *at = strtok_r(copy, ";", &state); at; at = strtok_r(NULL, ";", &state))
			changes(&r[i], at);
	}
	if (owner_narrows(&r[0], &r[1]) != expected)
		fail_msg("from `%s` to `%s` is%s narrower", from, to, expected ? " not" : "");
}

static void test_narrower(void **state)
{
	static const struct {
		const char *wide, *narrow;
		bool equal;
	} cases[] = {
		{"open", "open", true},
		{"open", "close", false},
		{"open", "drain", false},
		{"drain", "close", true},
		{"open", "close|disk", false},
		{"open", "cap|cpu=50%", false},
		{"cap|cpu=50%", "cap|cpu=20%", false},
		{"cap|memory=4G", "cap|memory=1G", false},
		{"open", "users|allow|a", false},
		{"users|allow|a,b", "users|allow|b", false},
		{"open", "users|deny|a", false},
		{"users|deny|a", "users|deny|b,a", false},
		{"classes|allow|a,b", "classes|allow|b", false},
		{"classes|deny|a", "classes|deny|b,a", false},
		{"open", "hours|mon 10:00-11:00", false},
		{"hours|mon-fri 20:00-08:00", "hours|mon 21:00-08:00", false},
		{"hours|sun 23:59-00:02", "hours|sun 23:59-00:01", false},
		{"open", "presence|on", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		narrows(cases[i].wide, cases[i].narrow, true);
		narrows(cases[i].narrow, cases[i].wide, cases[i].equal);
	}
	/* One narrower rule is no excuse for a wider one, and what cannot be compared is wider. */
	narrows("close|disk", "close", false);
	narrows("cap|cpu=50%", "close;cap|cpu=60%", false);
	narrows("cap|memory=50%", "cap|memory=1G", false);
	narrows("cap|memory=1G", "cap|memory=1%", false);
	narrows("hours|mon 10:00-11:00", "hours|mon 10:30-11:01", false);
	narrows("users|allow|a", "users|allow|b", false);
	narrows("users|deny|a", "users|deny|b", false);
}

static void test_contradictions(void **state)
{
	struct owner_rules r;

	(void)state;
	owner_init(&r);
	changes(&r, "users|allow|anna,@staff");
	refused(&r, "users|deny|bert, anna", "`users allow anna` contradicts `users deny anna`");
	refused(&r, "users|deny|@staff", "`users allow @staff` contradicts `users deny @staff`");
	changes(&r, "users|deny|bert");
	changes(&r, "users|allow|all");
	changes(&r, "users|deny|bert,anna");
	changes(&r, "classes|deny|scan");
	refused(&r, "classes|allow|make,scan", "`classes allow scan` contradicts");
	changes(&r, "close|disk");
	refused(&r, "cap|disk=20MB/s", "`cap disk=20MB/s` contradicts `close disk`");
	changes(&r, "open|disk");
	changes(&r, "cap|disk=20MB/s");
	refused(&r, "close|disk", "`cap disk=20MB/s` contradicts `close disk`");
	refused(&r, "cap|disk=0%", "contradicts that disk is open: say `close disk`");
	refused(&r, "cap|cpu=0%", "contradicts that cpu is open: say `close`");
	refused(&r, "cap|memory=0M", "contradicts that memory is open: say `close`");
	refused(&r, "cap|cpu=10%|cpu=20%", "two caps of cpu in one command contradict");
	refused(&r, "hours|mon 08:00-08:00", "the same minute contradict");
	refused(&r, "close|cpu", "every job needs cpu and memory");
	refused(&r, "users|deny", "expected allow LIST");
	refused(&r, "users|deny|a;b", "expected names");
	refused(&r, "presence|perhaps", "expected presence on");
	refused(&r, "format|c:", "expected open, close, drain");
	refused(&r, "drain|now", "expected open, close, drain");
}

static void test_no_contradiction_of_options(void **state)
{
	struct owner_ask ask = {.nwords = 2, .words = {"presence", "off"}, .idle_s = 60};
	struct owner_rules r;

	(void)state;
	owner_init(&r);
	assert_int_equal(owner_ask_apply(&ask, "", 0, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "`presence off` and --idle contradict"));
	strcpy(ask.words[1], "on");
	assert_int_equal(owner_ask_apply(&ask, "", 0, &r, &err), OWNER_CHANGE);
	assert_true(r.presence);
	assert_int_equal(r.idle_s, 60);
	ask.idle_s = 1;
	assert_int_equal(owner_ask_apply(&ask, "", 0, &r, &err), -EINVAL);
}

static bool open_at(const struct owner_rules *r, int wday, int hour, int minute)
{
	const struct tm local = {.tm_wday = wday, .tm_hour = hour, .tm_min = minute};

	return owner_hours_open(r, &local);
}

static void test_hours(void **state)
{
	struct owner_rules r;
	char text[2 * OWNER_LIST_MAX];

	(void)state;
	owner_init(&r);
	assert_true(open_at(&r, 3, 12, 0));
	changes(&r, "hours|mon-fri 20:00-08:00,|sat+sun|00:00-24:00");
	owner_hours_text(&r, text, sizeof(text));
	assert_string_equal(text, "mon-fri 20:00-08:00, sat-sun 00:00-24:00");
	assert_true(open_at(&r, 1, 20, 0)); /* Monday evening */
	assert_false(open_at(&r, 1, 19, 59));
	assert_false(open_at(&r, 1, 7, 59)); /* Sunday has no night */
	assert_true(open_at(&r, 2, 7, 59));
	assert_false(open_at(&r, 2, 8, 0));
	assert_true(open_at(&r, 6, 7, 0)); /* Friday's night, and Saturday */
	assert_true(open_at(&r, 0, 23, 59));
	assert_string_equal(says(&r), "closed: open mon-fri 20:00-08:00, sat-sun 00:00-24:00");
	changes(&r, "hours|fri-mon 22:00-23:00");
	owner_hours_text(&r, text, sizeof(text));
	assert_string_equal(text, "mon+fri-sun 22:00-23:00");
	changes(&r, "hours|daily|00:30-01:00");
	assert_true(open_at(&r, 4, 0, 45));
	changes(&r, "hours|always");
	assert_int_equal(r.nhours, 0);
	refused(&r, "hours",
		"`hours (maintenance)`: expected hours SPANS, such as hours 'mon-fri 20:00-08:00, "
		"sat+sun 00:00-24:00', or hours always");
	refused(&r, "hours|mon", "expected hours as");
	refused(&r, "hours|mon 25:00-26:00", "expected hours as");
	refused(&r, "hours|mon 24:00-01:00", "expected hours as");
	refused(&r, "hours|mon 10:60-12:00", "expected hours as");
	refused(&r, "hours|mon-xyz 10:00-12:00", "expected hours as");
	refused(&r, "hours|mon 10:00-12:00 extra", "expected hours as");
	refused(&r, "hours|mon 1:00-02:00", "expected hours as");
	refused(&r,
		"hours|mon 01:00-02:00,tue 01:00-02:00,wed 01:00-02:00,thu 01:00-02:00,fri "
		"01:00-02:00,sat 01:00-02:00,sun 01:00-02:00",
		"at most 6 spans");
}

static void test_presence(void **state)
{
	struct owner_moment moment = {.present = true};
	struct owner_rules r;
	char text[IOCOM_NAME_MAX];

	(void)state;
	owner_init(&r);
	assert_true(owner_says(&r, &moment, text, sizeof(text)));
	changes(&r, "presence|on");
	assert_int_equal(r.idle_s, OWNER_IDLE_S);
	assert_false(owner_says(&r, &moment, text, sizeof(text)));
	assert_string_equal(text, "closed: somebody works there");
	moment.present = false;
	assert_true(owner_says(&r, &moment, text, sizeof(text)));
}

/* --- the file --- */

static char file[64];

static void write_file(const char *text)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void test_file(void **state)
{
	struct owner_rules r, again;
	char *text, name[OWNER_LIST_MAX];

	(void)state;
	owner_init(&r);
	changes(&r, "drain");
	changes(&r, "cap|cpu=33.5%|memory=3G|network=1.5MB/s");
	changes(&r, "close|disk");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	memcpy(r.users_allow, name, sizeof(name)); /* the longest line */
	memcpy(r.classes_allow, name, sizeof(name));
	changes(&r, "hours|mon+wed+fri+sun 20:00-08:00,tue+thu+sat+mon 01:00-02:00");
	changes(&r, "presence|on");
	text = owner_text(&r);
	assert_non_null(text);
	write_file(text);
	err.text[0] = 0;
	if (owner_read(file, &again, &err))
		fail_msg("%s", err.text);
	same(&again, &r);
	/* Each shorter file is refused, at whatever byte it was cut. */
	for (size_t cut = strlen(text) - 1; cut > 0; cut--) {
		text[cut - 1] = 0;
		write_file(text);
		if (!owner_read(file, &again, &err))
			fail_msg("a file cut at byte %zu is taken", cut - 1);
	}
	free(text);
}

static void can_be_read_again(const struct owner_rules *r)
{
	char *text = owner_text(r);
	struct owner_rules again;

	assert_non_null(text);
	write_file(text);
	free(text);
	if (owner_read(file, &again, &err))
		fail_msg("%s", err.text);
	same(&again, r);
}

/* Whatever is obeyed can be read again at the next start, or the node's rules would be lost. */
static void test_longest_hours(void **state)
{
	struct owner_rules r;
	char ask[400] = "hours|", written[2 * OWNER_LIST_MAX];
	size_t longest = 0;

	(void)state;
	owner_init(&r);
	/* Short words, long text: sun-tue+thu-fri is mon-tue+thu-fri+sun. */
	refused(&r,
		"hours|sun-tue+thu-fri 00:00-24:00,sun-tue+thu-fri 00:00-24:00,"
		"sun-tue+thu-fri 00:00-24:00,sun-tue+thu-fri 00:00-24:00,"
		"sun-tue+thu-fri 00:00-24:00,fri-tue 00:00-24:00",
		"the hours have more than 190 characters");
	for (size_t i = 0; i < OWNER_SPANS_MAX; i++) {
		size_t n = strlen(ask);

		snprintf(ask + n, sizeof(ask) - n, "%s%s", i ? ",|" : "",
			 i % 2 ? "sat-tue+thu 01:00-02:00" : "fri-tue 01:00-02:00");
		changes(&r, ask);
		can_be_read_again(&r);
		owner_hours_text(&r, written, sizeof(written));
		longest = strlen(written);
	}
	assert_in_range(longest, 160, OWNER_HOURS_MAX);
}

/* A name that is cut inside of a character, and one with what begins a comment. */
static void test_who(void **state)
{
	static const char *const who[] = {"j\xc3@n1", "a ;b@n1", "\xff\xfe\x1b[31m", " ; ",
					  "\xe6\x97\xa5"};
	struct owner_ask ask = {.nwords = 1, .words = {"close"}};
	struct owner_rules r;

	(void)state;
	for (size_t i = 0; i < sizeof(who) / sizeof(*who); i++) {
		owner_init(&r);
		assert_int_equal(owner_ask_apply(&ask, who[i], 5, &r, &err), OWNER_CHANGE);
		can_be_read_again(&r);
	}
	assert_string_equal(r.by, "\xe6\x97\xa5");
}

static void test_bad_file(void **state)
{
	static const struct {
		const char *text, *sentence;
	} bad[] = {
		{"", "the file is cut"},
		{"nonsense\n", "malformed line"},
		{"[owner]\nformat = 2\n", "expected a number from 1 to 1"},
		{"[owner]\nstate = ajar\nformat = 1\n", "expected open, closed or draining"},
		{"[owner]\ncap_cpu = 200%\nformat = 1\n", "expected a part"},
		{"[owner]\nfuture = 1\nformat = 1\n", "unknown key"},
		{"[owner]\nusers_allow = a\nusers_deny = a\nformat = 1\n",
		 "`users allow a` contradicts `users deny a`"},
		{"[owner]\ncap_disk = 10%\nclose_disk = yes\nformat = 1\n", "contradicts"},
		{"[owner]\nhours = never\nformat = 1\n", "expected hours"},
		/* What a disk made of it could not even be shown. */
		{"[owner]\nreason = bad \xff\xfe\nformat = 1\n", "bytes that are no text"},
		{"[owner]\nby = \x1b[31m\nformat = 1\n", "bytes that are no text"},
		{"[owner]\nusers_deny = an\xee"
		 "a\nformat = 1\n",
		 "bytes that are no text"},
	};
	struct owner_rules r;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		write_file(bad[i].text);
		assert_true(owner_read(file, &r, &err) < 0);
		if (!strstr(err.text, bad[i].sentence) || !strstr(err.text, file))
			fail_msg("'%s' says: %s", bad[i].text, err.text);
	}
	unlink(file);
	assert_int_equal(owner_read(file, &r, &err), -ENOENT);
}

/* --- the wire --- */

static void test_wire(void **state)
{
	struct owner_ask ask = {.words = {"cap", "cpu=50%"},
				.nwords = 2,
				.reason = "mine",
				.idle_s = 7,
				.grace_s = 8},
			 got;
	msgpack_sbuffer packed;
	char text[100];

	(void)state;
	owner_ask_pack(&ask, &packed);
	assert_int_equal(owner_ask_unpack(&got, packed.data, packed.size), 0);
	assert_memory_equal(&got, &ask, sizeof(ask));
	owner_ask_text(&got, text, sizeof(text));
	assert_string_equal(text, "cap cpu=50% (mine)");
	for (size_t n = 0; n < packed.size; n++)
		assert_int_equal(owner_ask_unpack(&got, packed.data, n), -EBADMSG);
	msgpack_sbuffer_destroy(&packed);
	strcpy(ask.words[1], "a\x1b[2J");
	owner_ask_pack(&ask, &packed);
	assert_int_equal(owner_ask_unpack(&got, packed.data, packed.size), -EBADMSG);
	msgpack_sbuffer_destroy(&packed);
	ask.nwords = 0;
	owner_ask_pack(&ask, &packed);
	assert_int_equal(owner_ask_unpack(&got, packed.data, packed.size), -EBADMSG);
	msgpack_sbuffer_destroy(&packed);
}

/* What the rules say travels in the load vector; agents without rules send no such value. */
static void test_vector(void **state)
{
	struct iocom_vector v = {.name = "n1",
				 .port = 7700,
				 .period_ms = 1000,
				 .cores = 1,
				 .cpu_speed = 1,
				 .cpu_burst = 1,
				 .accepts_jobs = true,
				 .owner = "limited: cpu 50%, no disk"},
			    got;
	msgpack_unpacked map;
	msgpack_sbuffer packed;
	msgpack_packer pk;
	json_t *json = json_object();

	(void)state;
	msgpack_sbuffer_init(&packed);
	msgpack_packer_init(&pk, &packed, msgpack_sbuffer_write);
	vector_pack(&pk, &v);
	msgpack_unpacked_init(&map);
	assert_int_equal(msgpack_unpack_next(&map, packed.data, packed.size, NULL),
			 MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(vector_unpack(&map.data, &got), 0);
	assert_string_equal(got.owner, v.owner);
	map.data.via.array.size--;
	assert_int_equal(vector_unpack(&map.data, &got), 0);
	assert_string_equal(got.owner, "");
	assert_true(got.accepts_jobs);
	map.data.via.array.size--;
	assert_int_equal(vector_unpack(&map.data, &got), -EBADMSG);
	map.data.via.array.size += 2;
	((char *)(uintptr_t)map.data.via.array.ptr[map.data.via.array.size - 1].via.str.ptr)[3] =
		27;
	assert_int_equal(vector_unpack(&map.data, &got), -EBADMSG);
	assert_true(vector_is_good(&v));
	assert_int_equal(vector_json(&v, json), 0);
	assert_int_equal(vector_json_read(json, &got), 0);
	assert_string_equal(got.owner, v.owner);
	v.owner[2] = '\n';
	assert_false(vector_is_good(&v));
	json_decref(json);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&packed);
}

static void test_reason(void **state)
{
	char reason[OWNER_REASON_MAX];

	(void)state;
	owner_reason_set(reason, "  a ; b\n\x1b[2J  ");
	assert_string_equal(reason, "a , b??[2J");
	owner_reason_set(reason, "0123456789012345678901234567890123456789012345678901234567890");
	assert_int_equal(strlen(reason), OWNER_REASON_MAX - 1);
}

static void test_seconds(void **state)
{
	uint32_t s;

	(void)state;
	assert_int_equal(owner_seconds_parse("10m", 10, 86400, &s, &err), 0);
	assert_int_equal(s, 600);
	assert_int_equal(owner_seconds_parse("2h", 10, 86400, &s, &err), 0);
	assert_int_equal(s, 7200);
	assert_int_equal(owner_seconds_parse("9", 10, 86400, &s, &err), -EINVAL);
	assert_int_equal(owner_seconds_parse("-1s", 0, 86400, &s, &err), -EINVAL);
	assert_int_equal(owner_seconds_parse("10x", 0, 86400, &s, &err), -EINVAL);
	assert_int_equal(owner_seconds_parse("99999999999h", 0, 86400, &s, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_narrower),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_no_contradiction_of_options),
		cmocka_unit_test(test_hours),
		cmocka_unit_test(test_presence),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_longest_hours),
		cmocka_unit_test(test_who),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_reason),
		cmocka_unit_test(test_seconds),
	};
	int rc;

	snprintf(file, sizeof(file), "/tmp/iocom-owner-%d", (int)getpid());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(file);
	return rc;
}
