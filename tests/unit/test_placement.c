/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The placement codec: every field of a request and of an answer comes back unchanged, messages of
 * older builds are understood, secrets stay in the answer, and a row's size is bounded.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balancer/placement_text.h"
#include "balancer/view/placement_table.h"
#include "tests/unit/placement_fixture.h"
#include "user/pack.h"

static struct iocom_err err;

static char *text_of(const json_t *document)
{
	char *text = json_dumps(document, JSON_COMPACT);

	assert_non_null(text);
	return text;
}

/* Writes P as a document of FORM and reads it into BACK; the caller frees both. */
static char *read_as(const struct placement *p, enum placement_form form, struct placement *back)
{
	json_t *document = placement_json(p, form), *again;
	char *text;

	assert_non_null(document);
	text = text_of(document);
	json_decref(document);
	again = json_loads(text, 0, NULL);
	assert_int_equal(placement_read(back, again, "the test", &err), 0);
	json_decref(again);
	return text;
}

/* --- requests ------------------------------------------------------------------------- */

/* A value of field F that no other field has. */
static void give(struct placement_ask *ask, const struct placement_field *f)
{
	void *at = placement_ask_at(ask, f);

	if (f->kind == PLACEMENT_COUNT)
		*(int64_t *)at = (int64_t)f->bound;
	else if (f->kind == PLACEMENT_FLAG)
		*(bool *)at = true;
	else
		snprintf(at, f->bound, "%s", f->key);
}

static int through(const struct placement_ask *ask, struct placement_ask *back)
{
	msgpack_sbuffer b;
	msgpack_unpacked map;
	int rc;

	placement_ask_pack(ask, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	rc = placement_ask_unpack(back, &map.data, &err);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	return rc;
}

static void test_request(void **state)
{
	static struct placement_ask ask, back;

	(void)state;
	placement_ask_init(&ask);
	assert_int_equal(through(&ask, &back), 0);
	assert_memory_equal(&back, &ask, sizeof(ask));
	assert_int_equal(back.restarts, -1);
	/* each field alone, then together with all fields before it */
	for (size_t i = 0; i < PLACEMENT_ASK_COUNT; i++) {
		struct placement_ask one;

		placement_ask_init(&one);
		give(&one, &placement_ask_fields[i]);
		give(&ask, &placement_ask_fields[i]);
		assert_int_equal(through(&one, &back), 0);
		assert_memory_equal(&back, &one, sizeof(one));
		assert_int_equal(through(&ask, &back), 0);
		assert_memory_equal(&back, &ask, sizeof(ask));
	}
	ask.need.value[NEED_CPU_S] = 0;
	ask.need.value[NEED_DATA_MB] = 2.5;
	strcpy(ask.cwd, "/tmp/\xff");
	assert_int_equal(through(&ask, &back), 0);
	assert_memory_equal(&back, &ask, sizeof(ask));
}

/* Packs { KEY: value of PACK } and unpacks it into BACK. */
#define UNPACK(key, pack)                                                                          \
	({                                                                                         \
		msgpack_unpacked map;                                                              \
		msgpack_sbuffer b;                                                                 \
		msgpack_packer pk;                                                                 \
		int rc;                                                                            \
                                                                                                   \
		pack_begin(&pk, &b, 1);                                                            \
		pack_key(&pk, key);                                                                \
		pack;                                                                              \
		assert_int_equal(unpack_map(&map, b.data, b.size), 0);                             \
		rc = placement_ask_unpack(&back, &map.data, &err);                                 \
		msgpack_unpacked_destroy(&map);                                                    \
		msgpack_sbuffer_destroy(&b);                                                       \
		rc;                                                                                \
	})
#define UNPACK_TEXT(key, text) UNPACK(key, pack_key(&pk, text))

static void test_bounds(void **state)
{
	static struct placement_ask back;
	char text[100];

	(void)state;
	memset(text, 'n', sizeof(text));
	text[63] = 0;
	assert_int_equal(UNPACK_TEXT("node", text), 0);
	assert_string_equal(back.node, text);
	text[63] = 'n';
	text[64] = 0;
	assert_int_equal(UNPACK_TEXT("node", text), -EINVAL);
	assert_string_equal(err.text, "\"node\" is not a name of 1 to 63 bytes");
	assert_int_equal(UNPACK_TEXT("node", ""), -EINVAL); /* an empty name never means any node */
	assert_int_equal(UNPACK_TEXT("class", ""), 0);
	assert_int_equal(UNPACK("node", msgpack_pack_nil(&pk)), 0);
	assert_string_equal(back.node, "");
	assert_int_equal(UNPACK("node", msgpack_pack_true(&pk)), -EINVAL);
	assert_int_equal(UNPACK("class", msgpack_pack_uint8(&pk, 1)), -EINVAL);
	assert_string_equal(err.text, "\"class\" is not a text of at most 63 bytes");
	assert_int_equal(
		UNPACK("command", (msgpack_pack_str(&pk, 2), msgpack_pack_str_body(&pk, "a\0", 2))),
		-EINVAL);
	assert_int_equal(UNPACK("restarts", msgpack_pack_uint64(&pk, 1000)), 0);
	assert_int_equal(back.restarts, 1000);
	assert_int_equal(UNPACK("restarts", msgpack_pack_uint64(&pk, 1001)), -EINVAL);
	assert_string_equal(err.text, "\"restarts\" is not a number from 0 to 1000");
	assert_int_equal(UNPACK("restarts", msgpack_pack_int64(&pk, -1)), -EINVAL);
	assert_int_equal(UNPACK("restarts", msgpack_pack_uint64(&pk, UINT64_MAX)), -EINVAL);
	assert_int_equal(UNPACK("run", msgpack_pack_uint8(&pk, 1)), -EINVAL);
	assert_string_equal(err.text, "\"run\" is neither true nor false");
	assert_int_equal(UNPACK("need", msgpack_pack_true(&pk)), -EINVAL);
	assert_int_equal(UNPACK_TEXT("of a newer CLI", "!"), 0); /* is skipped */
	assert_int_equal(UNPACK("need", (msgpack_pack_map(&pk, 1), pack_f64(&pk, "colour", 1))),
			 -EINVAL);
	assert_string_equal(err.text, "unknown requirement 'colour'");
}

/* The user's comment: one line without terminal controls, which is kept with the decision. */
static void test_comment(void **state)
{
	static struct placement_ask back;
	struct placement p, answer;
	char text[202], *row, *says = NULL;
	size_t size;
	FILE *out;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[200] = 0;
	assert_int_equal(UNPACK_TEXT("comment", text), 0);
	text[200] = 'x';
	text[201] = 0;
	assert_int_equal(UNPACK_TEXT("comment", text), -EINVAL);
	assert_string_equal(err.text, "\"comment\" is not a line of at most 200 bytes");
	assert_int_equal(UNPACK_TEXT("comment", "a\nb"), -EINVAL);
	assert_int_equal(UNPACK_TEXT("comment", "\xc2\x9b"), -EINVAL);
	assert_int_equal(UNPACK_TEXT("comment", "\xff"), -EINVAL);
	assert_int_equal(UNPACK_TEXT("comment", "nightly \xc3\xa4"), 0);
	fixture_decide(&p, "wal", 2, 0);
	fixture_place(&p);
	p.ask = back;
	row = read_as(&p, PLACEMENT_ROW, &answer);
	assert_string_equal(answer.ask.comment, "nightly \xc3\xa4");
	out = open_memstream(&says, &size);
	placement_text_print(&answer, NULL, out);
	fclose(out);
	assert_non_null(strstr(says, "Job n1-0badcafe-17\nComment: nightly \xc3\xa4\n"));
	free(says);
	free(row);
	placement_fini(&answer);
	placement_fini(&p);
}

/* The request that the CLI of 0.1.0 packs: nil for each value that is not given, and every flag. */
static void test_older_request(void **state)
{
	static struct placement_ask back;
	msgpack_unpacked map;
	msgpack_sbuffer b;
	msgpack_packer pk;

	(void)state;
	pack_begin(&pk, &b, 12);
	pack_u64(&pk, "restarts", 3);
	pack_str(&pk, "op", "place");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "policy", NULL);
	pack_str(&pk, "node", "n2");
	pack_bin(&pk, "class", "sort", 4);
	pack_bin(&pk, "cwd", "/home", 5);
	pack_bin(&pk, "executable", "/usr/bin/sort", 13);
	pack_str(&pk, "command", "sort -n");
	pack_key(&pk, "need");
	msgpack_pack_map(&pk, 1);
	pack_f64(&pk, "memory_mb", 1500);
	pack_bool(&pk, "run", true);
	pack_bool(&pk, "view", false);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(placement_ask_unpack(&back, &map.data, &err), 0);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	assert_string_equal(back.policy, "");
	assert_string_equal(back.node, "n2");
	assert_string_equal(back.class_name, "sort");
	assert_string_equal(back.cwd, "/home");
	assert_string_equal(back.executable, "/usr/bin/sort");
	assert_string_equal(back.command, "sort -n");
	assert_int_equal(back.restarts, 3);
	assert_true(back.run && !back.view && !back.picked);
	assert_true(back.need.value[NEED_MEMORY_MB] == 1500 && back.need.value[NEED_CPU_S] == -1);
}

/* The types in which an older agent expects the fields of a request. */
static void test_request_for_older(void **state)
{
	static struct placement_ask ask;
	static char cwd[PATH_MAX];
	msgpack_unpacked map;
	msgpack_sbuffer b;
	char text[64];
	uint64_t n;
	bool flag;

	(void)state;
	placement_ask_init(&ask);
	strcpy(ask.policy, "wal");
	strcpy(ask.cwd, "/tmp/\xff");
	ask.run = true;
	ask.restarts = 0;
	placement_ask_pack(&ask, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	assert_int_equal(unpack_str(&map.data, "op", text, sizeof(text)), 0);
	assert_string_equal(text, "place");
	assert_int_equal(unpack_u64(&map.data, "v", &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(unpack_get(&map.data, "policy")->type, MSGPACK_OBJECT_STR);
	assert_int_equal(unpack_get(&map.data, "cwd")->type, MSGPACK_OBJECT_BIN);
	assert_int_equal(unpack_str(&map.data, "cwd", cwd, sizeof(cwd)), 0);
	assert_string_equal(cwd, "/tmp/\xff");
	assert_int_equal(unpack_u64(&map.data, "restarts", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(unpack_bool(&map.data, "run", &flag), 0);
	assert_int_equal(unpack_str(&map.data, "node", text, sizeof(text)), -ENOENT);
	assert_int_equal(unpack_get(&map.data, "need")->type, MSGPACK_OBJECT_MAP);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
}

/* --- answers ---------------------------------------------------------------------------- */

static void assert_same_text(const struct placement *p, enum placement_form form, const char *text)
{
	json_t *document = placement_json(p, form);
	char *other = text_of(document);

	assert_string_equal(other, text);
	free(other);
	json_decref(document);
}

static void test_answer(void **state)
{
	struct placement p, back;
	char *text;

	(void)state;
	fixture_decide(&p, "iocm-re", 5, 9);
	fixture_place(&p);
	p.forced = true;
	p.ask.picked = true;
	p.directory = "/";
	p.attempt = 2;
	p.restarts = 3;
	p.first = "n1-0badcafe-9";
	p.lease_ms = 30000;
	p.expectation = (struct rules_expectation){4400.5, 9000.25, 1.3, 0.9, true};
	assert_int_equal(placement_refuse(&p, "n4", "memory", "no room for 50 MB"), 0);
	p.view = json_pack("{s:i}", "version", 1);
	text = read_as(&p, PLACEMENT_ANSWER, &back);
	assert_same_text(&back, PLACEMENT_ANSWER, text);
	assert_string_equal(back.nonce, p.nonce);
	assert_string_equal(back.munge_socket, p.munge_socket);
	assert_string_equal(back.job, p.job);
	assert_string_equal(back.address, p.address);
	assert_string_equal(back.directory, "/");
	assert_string_equal(back.first, p.first);
	assert_int_equal(back.port, 7702);
	assert_int_equal(back.attempt, 2);
	assert_int_equal(back.restarts, 3);
	assert_int_equal(back.lease_ms, 30000);
	assert_true(back.placed && back.forced && back.ask.picked && !back.failed);
	assert_int_equal(back.nnodes, 5);
	assert_int_equal(placement_known(&back), 5);
	assert_memory_equal(&back.nodes[3].vector, &p.nodes[3].vector, sizeof(struct iocom_vector));
	assert_true(back.nodes[3].age_ms == p.nodes[3].age_ms && !back.nodes[3].self);
	assert_true(back.nodes[0].self);
	assert_int_equal(back.need_given, NEED_ALL);
	assert_memory_equal(&back.need, &p.need, sizeof(p.need));
	assert_int_equal(back.plan.nreasons, p.plan.nreasons);
	assert_string_equal(back.refused[0].text, "no room for 50 MB");
	assert_true(back.expectation.known && back.expectation.there_ms == 4400.5 &&
		    back.expectation.home_ms == 9000.25 && back.expectation.there_factor == 1.3 &&
		    back.expectation.home_factor == 0.9);
	assert_int_equal(json_integer_value(json_object_get(back.view, "version")), 1);
	free(text);
	placement_fini(&back);
	placement_fini(&p);
}

/* A row tells neither the nonce nor the view, and --status-fd no secret. */
static void test_secrets(void **state)
{
	struct placement p, back;
	json_t *public;
	char *text;

	(void)state;
	fixture_decide(&p, "wal", 3, 9);
	fixture_place(&p);
	p.view = json_pack("{s:s}", "a", "looked at");
	text = read_as(&p, PLACEMENT_ROW, &back);
	assert_null(strstr(text, p.nonce));
	assert_null(strstr(text, "munge"));
	assert_null(strstr(text, "looked at"));
	assert_string_equal(back.nonce, "");
	assert_string_equal(back.job, p.job);
	free(text);
	placement_fini(&back);
	text = read_as(&p, PLACEMENT_ANSWER, &back);
	json_object_set_new(back.document, "of a newer agent", json_true());
	free(text);
	public = placement_public(&back);
	text = text_of(public);
	assert_null(strstr(text, p.nonce));
	assert_null(strstr(text, "munge"));
	assert_non_null(strstr(text, "of a newer agent"));
	json_decref(public);
	free(text);
	public = placement_take_view(&back);
	text = text_of(back.document);
	assert_null(strstr(text, "looked at"));
	assert_string_equal(json_string_value(json_object_get(public, "a")), "looked at");
	assert_null(placement_take_view(&back));
	json_decref(public);
	free(text);
	placement_fini(&back);
	placement_fini(&p);
}

/* The decision of an agent of 0.1.0, byte for byte as its journal had it. */
static const char older[] =
	"{\"policy\":\"wal\",\"home\":\"solo\",\"forced\":false,\"need\":{\"io_per_s\":{\"value\":"
	"0.0,"
	"\"source\":\"default\"},\"io_size_kb\":{\"value\":128.0,\"source\":\"default\"},"
	"\"requests\":{"
	"\"value\":0.0,\"source\":\"default\"},\"memory_mb\":{\"value\":50.0,\"source\":"
	"\"default\"},"
	"\"cpu_s\":{\"value\":1.0,\"source\":\"default\"},\"data_mb\":{\"value\":0.0,\"source\":"
	"\"default\"},\"faults_per_ms\":{\"value\":1.0,\"source\":\"default\"},\"com_ms\":{"
	"\"value\":"
	"0.0,\"source\":\"default\"}},\"plan\":{\"policy\":\"wal\",\"home\":\"solo\",\"node\":"
	"\"solo\","
	"\"nodes\":[\"solo\"],\"tied\":[\"solo\"],\"migrate\":[],\"candidates\":[],\"refused_"
	"counts\":"
	"{},\"reasons\":[{\"criterion\":\"load-ratio\",\"source\":\"FC 4.1 step "
	"2\",\"node\":\"solo\","
	"\"left\":1.0,\"right\":1.25,\"unit\":\"load/mean\",\"relation\":\">\",\"holds\":false,"
	"\"text\":\"With this job the home node's weighted load is far above the mean of all "
	"nodes.\"}]},\"refused\":[],\"nodes\":[{\"name\":\"solo\",\"address\":\"\",\"port\":7965,"
	"\"boot_id\":\"8dd15bd32301eb2b\",\"sequence\":4,\"time_ns\":1795400780109214085,"
	"\"period_ms\":1000,\"cores\":2,\"cpu_speed\":1.0,\"run_queue\":5.375,\"tasks\":63,"
	"\"jobs\":0,"
	"\"memory_mb\":25276.5,\"memory_available_mb\":24391.0,\"memory_requested_mb\":885.5,"
	"\"explicit_per_ms\":0.5,\"implicit_per_ms\":0.25,\"explicit_mb_per_s\":0.125,"
	"\"implicit_mb_per_s\":0.5,\"io_tasks\":0,\"disks\":5,\"disk_arrivals_per_ms\":0.5,"
	"\"disk_service_ms\":6.5,\"disk_service_ms2\":71.25,\"disk_utilisation\":0.75,"
	"\"disk_mb_per_s\":49.5,\"disk_fixed_ms\":8.0,\"sent_mb_per_s\":0.0,\"received_mb_per_s\":"
	"0.0,"
	"\"messages_per_s\":26.5,\"network_mb_per_s\":125.0,\"bits\":0,\"accepts_jobs\":true,"
	"\"self\":true,\"age_ms\":0.0}],\"seed\":4886036987636521,\"job\":\"solo-2301eb2b-2\","
	"\"node\":\"solo\",\"address\":\"\",\"port\":0,\"attempt\":1,\"restarts\":3,"
	"\"first\":\"solo-2301eb2b-2\",\"lease_ms\":0}";

static void test_older_answer(void **state)
{
	json_t *document = json_loads(older, 0, NULL);
	struct placement p;

	(void)state;
	assert_non_null(document);
	assert_int_equal(placement_read(&p, document, "it", &err), 0);
	json_decref(document);
	assert_same_text(&p, PLACEMENT_ANSWER, older);
	assert_same_text(&p, PLACEMENT_ROW, older);
	assert_string_equal(p.plan.reasons[0].unit, "load/mean");
	assert_true(p.placed && p.nodes[0].vector.boot_id == 0x8dd15bd32301eb2b);
	placement_fini(&p);
	/*
	 * A missing field gets its default; a field of another type is refused, and the error names
	 * it.
	 */
	document = json_object();
	assert_int_equal(placement_read(&p, document, "it", &err), 0);
	assert_string_equal(p.policy, "");
	assert_true(!p.placed && !p.need_given && !p.nnodes && p.need.value[NEED_MEMORY_MB] == 50);
	assert_true(!p.expectation.known && p.expectation.there_ms == 0);
	placement_fini(&p);
	json_decref(document);
}

#define EXPECTED(there_ms, factor)                                                                 \
	"{\"expected\":{\"there_ms\":" there_ms ",\"home_ms\":1,\"there_factor\":" factor          \
	",\"home_factor\":1}}"

static void test_wrong_answers(void **state)
{
	static const char *const wrong[][2] = {
		{"{\"policy\":1}", "policy"},
		{"{\"forced\":\"yes\"}", "forced"},
		{"{\"seed\":-1}", "seed"},
		{"{\"seed\":1.5}", "seed"},
		{"{\"port\":\"22\"}", "port"},
		{"{\"nonce\":\"a\\u0000b\"}", "nonce"},
		{"{\"picked\":1}", "picked"},
		{"{\"need\":[]}", "need"},
		{"{\"need\":{\"cpu_s\":1}}", "need"},
		{"{\"need\":{\"cpu_s\":{\"value\":1,\"source\":\"heaven\"}}}", "need"},
		{"{\"plan\":7}", "plan"},
		{"{\"plan\":{\"reasons\":[{\"left\":\"much\"}]}}", "plan"},
		{"{\"plan\":{\"tied\":[1]}}", "plan"},
		{"{\"refused\":[{\"node\":\"n1\"}]}", "refused"},
		{"{\"nodes\":{}}", "nodes"},
		{"{\"nodes\":[{\"name\":1}]}", "nodes"},
		{"{\"nodes\":[{\"boot_id\":\"7\"}]}", "nodes"},
		{"{\"nodes\":[{\"port\":65536}]}", "nodes"},
		{"{\"nodes\":[\"n1\"]}", "nodes"},
		{"{\"ended\":{\"kind\":\"one\"}}", "kind"},
		{"{\"wait_ms\":\"long\"}", "wait_ms"},
		{"{\"expected\":[]}", "expected"},
		{"{\"expected\":{}}", "expected"},
		{EXPECTED("-1", "1"), "expected"},
		{EXPECTED("\"soon\"", "1"), "expected"},
		{EXPECTED("1", "0.2"), "expected"},
		{EXPECTED("1", "1025"), "expected"},
		{EXPECTED("1", "null"), "expected"},
	};
	struct placement p;
	char sentence[80];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		json_t *document = json_loads(wrong[i][0], JSON_ALLOW_NUL, NULL);

		assert_non_null(document);
		assert_int_equal(placement_read(&p, document, "the answer", &err), -EPROTO);
		snprintf(sentence, sizeof(sentence), "the answer has no usable '%s'", wrong[i][1]);
		assert_string_equal(err.text, sentence);
		placement_fini(&p);
		json_decref(document);
	}
	assert_int_equal(placement_read(&p, NULL, "the answer", &err), -EPROTO);
	placement_fini(&p);
}

static void test_lost(void **state)
{
	struct placement_lost lost = {.wait_ms = 1000, .silent = "", .state = ""};
	json_t *document = placement_lost_json(&lost);
	struct placement p;
	char *text = text_of(document);

	(void)state;
	assert_string_equal(text, "{\"wait_ms\":1000}");
	free(text);
	json_decref(document);
	lost.silent = "n2";
	lost.lease_ms = 30000;
	document = placement_lost_json(&lost);
	assert_int_equal(placement_read(&p, document, "it", &err), 0);
	json_decref(document);
	assert_int_equal(p.lost.wait_ms, 1000);
	assert_int_equal(p.lost.lease_ms, 30000);
	assert_string_equal(p.lost.silent, "n2");
	assert_string_equal(p.lost.state, "");
	placement_fini(&p);
	lost = (struct placement_lost){.silent = "", .state = "killed", .kind = 1, .value = 9};
	document = placement_lost_json(&lost);
	text = text_of(document);
	assert_string_equal(text, "{\"ended\":{\"state\":\"killed\",\"kind\":1,\"value\":9}}");
	free(text);
	assert_int_equal(placement_read(&p, document, "it", &err), 0);
	assert_int_equal(p.lost.wait_ms, 0);
	assert_int_equal(p.lost.value, 9);
	assert_string_equal(p.lost.state, "killed");
	placement_fini(&p);
	json_decref(document);
}

/* --- rows --------------------------------------------------------------------------------- */

static char *explained(const struct placement *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	placement_text_print(p, NULL, out);
	placement_text_line(p, out);
	fclose(out);
	return text;
}

static void must_say(const struct placement *p, const char *sentence, bool says)
{
	char *text = explained(p);

	if ((strstr(text, sentence) != NULL) != says)
		fail_msg("'%s'%s in:\n%s", sentence, says ? " is not" : "", text);
	free(text);
}

/* `place`, `explain` and `run -v` tell what is expected where the job goes, and at home. */
static void test_expected_in_words(void **state)
{
	struct placement p;

	(void)state;
	fixture_decide(&p, "iocm-re", 5, 9);
	p.node = "n3";
	p.expectation = (struct rules_expectation){4400, 9000, 1, 1, true};
	must_say(&p, "\nExpected: 4.4 s there, 9.0 s at home.\n", true); /* all of it */
	must_say(&p, ". Expected: 4.4 s there, 9.0 s at home.\n", true); /* one line */
	p.expectation.there_factor = 1.3;
	p.expectation.home_factor = 0.9;
	must_say(&p, "at home (corrected by a factor of 1.3 there, 0.9 at home).\n", true);
	p.node = "n1";
	p.expectation.there_ms = 9000;
	p.expectation.there_factor = p.expectation.home_factor = 1;
	must_say(&p, "\nExpected: 9.0 s at home.\n", true);
	p.expectation.there_factor = p.expectation.home_factor = 0.25;
	must_say(&p, "\nExpected: 9.0 s at home (corrected by a factor of 0.25).\n", true);
	p.expectation.there_factor = p.expectation.home_factor = 1.004; /* as good as none */
	must_say(&p, "\nExpected: 9.0 s at home.\n", true);
	p.expectation.known = false;
	must_say(&p, ". Expected:", false);
	must_say(&p, "\nExpected: nothing, because nothing is known of what the job needs.\n",
		 true);
	p.plan.queued = true;
	must_say(&p, "Expected:", false);
	p.plan.queued = false;
	p.failed = true;
	must_say(&p, "Expected:", false);
	placement_fini(&p);
}

/* Lines are wrapped, so only parts of them are looked for. */
static void test_shared_in_words(void **state)
{
	struct placement p;

	(void)state;
	fixture_decide(&p, "least-delay", 5, 9);
	must_say(&p, "Shared file system", false);
	p.need_given |= 1u << NEED_SHARED_READ_MB | 1u << NEED_SHARED_WRITTEN_MB;
	p.need.value[NEED_SHARED_READ_MB] = 21;
	p.need.value[NEED_SHARED_WRITTEN_MB] = 0.5;
	must_say(&p, "Shared file system: it reads 21.0 MB and writes 0.5 MB there; nobody", true);
	must_say(&p, "nothing that is", true);
	strcpy(p.ask.shared_server, "192.0.2.9");
	must_say(&p, "192.0.2.9", true);
	must_say(&p, "no node of", true);
	strcpy(p.ask.shared_server, p.nodes[1].vector.name);
	strcpy(p.ask.shared_cached, "n3=20500000,x\tx=1000000");
	must_say(&p, "n2 serves", true);
	must_say(&p, "20.5 MB at n3", true);
	must_say(&p, "1.0 MB at x?x", true); /* nothing that a terminal would obey */
	placement_fini(&p);
}

static void must_tell(const struct placement *p, const char *line)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	placement_text_print(p, "it took 5.1 s", out);
	fclose(out);
	if (!strstr(text, line))
		fail_msg("'%s' is not in:\n%s", line, text);
	free(text);
}

/* `explain` tells in the same line what the job took. */
static void test_taken_in_words(void **state)
{
	struct placement p;

	(void)state;
	fixture_decide(&p, "iocm-re", 5, 9);
	p.node = "n3";
	p.expectation = (struct rules_expectation){4400, 9000, 1, 1, true};
	must_tell(&p, "\nExpected: 4.4 s there, 9.0 s at home; it took 5.1 s.\n");
	p.expectation.known = false;
	must_tell(&p, "\nExpected: nothing, because nothing was known of what the job needs; "
		      "it took\n5.1 s.\n");
	placement_fini(&p);
}

/* Returns true if the row BACK of P has NAME's vector. */
static bool has(const struct placement *back, const char *name)
{
	for (size_t i = 0; i < back->nnodes; i++)
		if (!strcmp(back->nodes[i].vector.name, name))
			return true;
	return false;
}

/*
 * Checks that the row has the nodes that the decision names, with all numbers, gives the same
 * explanation, and that its own row is the same row.
 */
static size_t check_row(const struct placement *p)
{
	struct placement back, answer;
	char *text = read_as(p, PLACEMENT_ROW, &back),
	     *whole = read_as(p, PLACEMENT_ANSWER, &answer);
	char *row_says = explained(&back), *answer_says = explained(&answer);
	size_t length = strlen(text);

	assert_string_equal(row_says, answer_says);
	assert_int_equal(placement_known(&back), p->nnodes);
	assert_true(p->nnodes > PLACEMENT_ROW_WHOLE || back.nnodes == p->nnodes);
	assert_true(has(&back, p->home) && has(&back, p->node) && has(&back, p->plan.node));
	for (size_t i = 0; i < p->plan.nreasons; i++)
		assert_true(has(&back, p->plan.reasons[i].node));
	for (size_t i = 0; i < p->nrefused; i++)
		assert_true(has(&back, p->refused[i].node));
	assert_same_text(&back, PLACEMENT_ROW, text);
	free(text);
	free(whole);
	free(row_says);
	free(answer_says);
	placement_fini(&back);
	placement_fini(&answer);
	return length;
}

static void test_rows_tell_the_same(void **state)
{
	static const char *const policies[] = {"iocm-re", "wal",    "mem-re",	  "cpu-re",
					       "nlb",	  "io-re",  "zatti-real", "random",
					       "cm",	  "wal-fc", "bs",	  "least-delay"};
	static const size_t sizes[] = {1, 2, 8, 9, 40, 300};
	char refuses[32];

	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++) {
			struct placement p;

			for (int load = 0; load < 2; load++) {
				fixture_decide(&p, policies[i], sizes[j], load ? 9 : 0);
				fixture_place(&p);
				snprintf(refuses, sizeof(refuses), "n%zu", sizes[j]);
				if (load)
					placement_refuse(&p, refuses, "memory", "full");
				check_row(&p);
				placement_fini(&p);
			}
		}
	}
}

/* Why LEAST-DELAY keeps a job is that no other node is better, not that home has little to do. */
static void test_least_delay_keeps(void **state)
{
	struct placement p;
	char *says;

	(void)state;
	fixture_decide(&p, "least-delay", 4, 0);
	assert_string_equal(p.plan.node, "n1");
	says = explained(&p);
	assert_non_null(strstr(says,
			       "least-delay keeps it at home, on n1: no other node is clearly "
			       "better"));
	free(says);
	for (uint32_t i = 0; i < p.plan.nreasons; i++)
		if (!strcmp(p.plan.reasons[i].criterion, "delay"))
			p.plan.reasons[i].criterion = "accepts"; /* as if nobody took jobs */
	says = explained(&p);
	assert_non_null(strstr(says, "on n1: no other node may take it"));
	free(says);
	placement_fini(&p);
}

/* If a job fits nowhere, the row tells the memory of the other nodes without their vectors. */
static void test_row_without_room(void **state)
{
	for (int room = 0; room < 2; room++) {
		struct placement p, back;
		char *text, *says;

		(void)state;
		fixture_decide(&p, "mem-re", 30, 9);
		for (size_t i = 1; i < p.nnodes; i++)
			p.nodes[i].vector.memory_requested_mb = 999;
		for (size_t i = 0; i < p.plan.nreasons; i++)
			/* as if the decision had looked at no other node */
			p.plan.reasons[i].node = "n1";
		p.plan.ncandidates = p.plan.ntied = 0;
		p.plan.node = p.node = "n1";
		p.plan.nodes[0] = "n1";
		if (room)
			p.nodes[17].vector.memory_requested_mb = 10;
		assert_true(placement_room_elsewhere(&p) == (room == 1));
		text = read_as(&p, PLACEMENT_ROW, &back);
		assert_true(placement_room_elsewhere(&back) == (room == 1));
		says = explained(&back);
		assert_int_equal(strstr(says, "no other node has room") == NULL, room);
		free(says);
		free(text);
		placement_fini(&back);
		placement_fini(&p);
	}
}

/* The size of a row does not follow the cluster's. */
static void test_row_size(void **state)
{
	size_t busy[3], idle[3], answer[3];

	(void)state;
	for (size_t i = 0, nodes = 10; i < 3; i++, nodes *= 10) {
		struct placement p;
		json_t *document;
		char *text;

		fixture_decide(&p, "iocm-re", nodes, 9);
		fixture_place(&p);
		busy[i] = check_row(&p);
		document = placement_json(&p, PLACEMENT_ANSWER);
		text = text_of(document);
		answer[i] = strlen(text);
		free(text);
		json_decref(document);
		placement_fini(&p);
		fixture_decide(&p, "iocm-re", nodes, 0);
		fixture_place(&p);
		idle[i] = check_row(&p);
		placement_fini(&p);
		printf("# |row of a decision on %4zu nodes: %6zu bytes (home idle: %5zu); with all "
		       "vectors %zu\n",
		       nodes, busy[i], idle[i], answer[i]);
	}
	assert_true(answer[2] > 40 * answer[0] && answer[2] > 7 * answer[1]);
	/*
	 * At most 32 nodes are examined, so rows for 100 and for 1,000 nodes differ only in
	 * numbers.
	 */
	assert_true(busy[2] < busy[1] + 200);
	assert_true(idle[2] < idle[0] + 200);
	assert_true(busy[2] < 80000 && idle[2] < 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),		  cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_comment),		  cmocka_unit_test(test_older_request),
		cmocka_unit_test(test_request_for_older), cmocka_unit_test(test_answer),
		cmocka_unit_test(test_secrets),		  cmocka_unit_test(test_older_answer),
		cmocka_unit_test(test_wrong_answers),	  cmocka_unit_test(test_lost),
		cmocka_unit_test(test_expected_in_words), cmocka_unit_test(test_shared_in_words),
		cmocka_unit_test(test_taken_in_words),	  cmocka_unit_test(test_rows_tell_the_same),
		cmocka_unit_test(test_least_delay_keeps), cmocka_unit_test(test_row_without_room),
		cmocka_unit_test(test_row_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
