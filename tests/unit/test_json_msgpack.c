/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Documents in MessagePack: bytes as in the specification, what is refused, views and
 * recordings. */
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

#include "balancer/view/json_msgpack.h"
#include "balancer/view/json_text.h"
#include "balancer/view/recording.h"
#include "balancer/view/view_json.h"

static int load(const char *bytes, size_t n, char **text, const char **wrong)
{
	json_t *document;
	size_t used;
	int rc = json_msgpack_load(bytes, n, &document, &used, wrong);

	*text = rc ? NULL : json_text_dump(document, NULL);
	if (!rc && used != n)
		fail_msg("%zu of %zu bytes used", used, n);
	json_decref(document);
	return rc;
}

#define BYTES(literal) literal, sizeof(literal) - 1

static const struct {
	const char *bytes;
	size_t n;
	const char *json;
} values[] = {
	{BYTES("\x80"), "{}"},
	{BYTES("\x90"), "[]"},
	{BYTES("\xc0"), "null"},
	{BYTES("\x92\xc2\xc3"), "[false,true]"},
	{BYTES("\x92\x7f\xe0"), "[127,-32]"},
	{BYTES("\x94\xcc\xff\xcd\x01\x00\xce\x00\x01\x00\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x00"),
	 "[255,256,65536,4294967296]"},
	{BYTES("\x94\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\xd3\x80\x00\x00\x00\x00\x00\x00\x00"),
	 "[-128,-32768,-2147483648,-9223372036854775808]"},
	{BYTES("\x92\xca\x3f\x00\x00\x00\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "[0.5,0.1]"},
	{BYTES("\x82\xa1"
	       "a\x01\xd9\x01"
	       "b\xda\x00\x02\xc3\xa9"),
	 "{\"a\":1,\"b\":\"\xc3\xa9\"}"},
	{BYTES("\xdc\x00\x01\xdd\x00\x00\x00\x00"), "[[]]"},
	{BYTES("\xde\x00\x01\xa1"
	       "k\xdf\x00\x00\x00\x00"),
	 "{\"k\":{}}"},
};

static void specification(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const char *wrong;
		char *text;

		assert_int_equal(load(values[i].bytes, values[i].n, &text, &wrong), 0);
		assert_string_equal(text, values[i].json);
		free(text);
	}
}

static const struct {
	const char *bytes;
	size_t n;
	int rc;
	const char *wrong;
} errors[] = {
	{"", 0, -EAGAIN, NULL},
	{BYTES("\x81"), -EAGAIN, NULL},
	{BYTES("\xa3xy"), -EAGAIN, NULL},
	{BYTES("\xcb\x3f\xb9"), -EAGAIN, NULL},
	/* claims of four thousand million entries take no memory */
	{BYTES("\xdd\xff\xff\xff\xff"), -EAGAIN, NULL},
	{BYTES("\xdf\xff\xff\xff\xff"), -EAGAIN, NULL},
	{BYTES("\xdb\xff\xff\xff\xff"), -EAGAIN, NULL},
	{BYTES("\xc1"), -EINVAL, "JSON has"},
	{BYTES("\xc4\x01z"), -EINVAL, "JSON has"},
	{BYTES("\xd4\x01z"), -EINVAL, "JSON has"},
	{BYTES("\x81\x01\x02"), -EINVAL, "a string as key"},
	{BYTES("\x82\xa1"
	       "a\x01\xa1"
	       "a\x02"),
	 -EINVAL, "not there yet"},
	{BYTES("\x81\xa1\x00\x01"), -EINVAL, "without NUL"},
	{BYTES("\xa1\xff"), -EINVAL, "UTF-8"},
	{BYTES("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"), -EINVAL, "finite"},
	{BYTES("\xca\x7f\xc0\x00\x00"), -EINVAL, "finite"},
	{BYTES("\xcf\x80\x00\x00\x00\x00\x00\x00\x00"), -EINVAL, "2^63"},
};

static void refused(void **state)
{
	char deep[JSON_MSGPACK_DEPTH + 1];
	const char *wrong;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		int rc = load(errors[i].bytes, errors[i].n, &text, &wrong);

		if (rc != errors[i].rc || (errors[i].wrong && !strstr(wrong, errors[i].wrong)))
			fail_msg("case %zu: %d, %s", i, rc, wrong ? wrong : "-");
	}
	memset(deep, 0x91, sizeof(deep));
	assert_int_equal(load(deep, sizeof(deep), &text, &wrong), -EINVAL);
	assert_non_null(strstr(wrong, "levels"));
	deep[sizeof(deep) - 2] = (char)0x90;
	assert_int_equal(load(deep, sizeof(deep) - 1, &text, &wrong), 0);
	free(text);
}

static void names(void **state)
{
	(void)state;
	assert_true(json_msgpack_named("v.msgpack"));
	assert_true(json_msgpack_named("d/r.msgpack.gz"));
	assert_false(json_msgpack_named("r.jsonl.gz"));
	assert_false(json_msgpack_named(".msgpack"));
	assert_string_equal(json_msgpack_suffix("r.jsonl.gz"), ".gz");
	assert_string_equal(json_msgpack_suffix("r.json"), "");
}

/* A view gives the same in both forms, bit for bit, and its errors name the field. */
static void view(void **state)
{
	struct view_file v, back;
	struct iocom_err err = {0};
	char *text, *again, *bytes, *hit;
	size_t n, m;
	json_t *document;

	(void)state;
	assert_int_equal(view_file_read("tests/unit/data/view_example.json", &v, &err), 0);
	document = view_file_json(&v);
	text = json_text_dump(document, &n);
	bytes = json_msgpack_dump(document, &m);
	json_decref(document);
	view_file_fini(&v);
	assert_true(m < n);
	assert_int_equal(view_file_decode("v.msgpack", bytes, m, &back, &err), 0);
	document = view_file_json(&back);
	again = json_text_dump(document, NULL);
	json_decref(document);
	view_file_fini(&back);
	assert_string_equal(again, text);
	assert_int_equal(view_file_decode("v.msgpack", bytes, m - 1, &back, &err), -EINVAL);
	assert_non_null(strstr(err.text, "v.msgpack:1: MessagePack, byte "));
	assert_non_null(strstr(err.text, "cut off"));
	hit = memmem(bytes, m, "\xa6ram_mb", 7);
	assert_non_null(hit);
	hit[6] = 'c';
	assert_int_equal(view_file_decode("v.msgpack", bytes, m, &back, &err), -EINVAL);
	assert_non_null(strstr(err.text, "v.msgpack:1: nodes[0].ram_mc: unknown field"));
	free(again);
	free(bytes);
	free(text);
}

/* Writes the recording FROM to TO, line by line. */
static void convert(const char *from, const char *to)
{
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	char *line = NULL, *bytes;
	size_t room = 0, n;
	ssize_t length;

	assert_non_null(in);
	assert_non_null(out);
	while ((length = getline(&line, &room, in)) > 0) {
		json_t *object = json_loadb(line, (size_t)length, 0, NULL);

		bytes = json_msgpack_dump(object, &n);
		assert_int_equal(fwrite(bytes, 1, n, out), n);
		free(bytes);
		json_decref(object);
	}
	free(line);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* Both forms read alike, line by line. */
static void recording(void **state)
{
	const char *from = "tests/sim/data/recording.jsonl";
	const struct recording_line *a, *b;
	struct recording *one, *other;
	struct iocom_err err = {0};
	char path[] = "/tmp/iocom-msgpack-XXXXXX";
	unsigned int lines = 0;
	int rc, rc2;

	(void)state;
	close(mkstemp(path));
	convert(from, path);
	for (int pass = 0; pass < 2; pass++) {
		if (pass == 0) {
			assert_int_equal(recording_open(from, &one, &err), 0);
			assert_int_equal(recording_open(path, &other, &err), 0);
		} else {
			assert_int_equal(recording_rewind(one, &err), 0);
			assert_int_equal(recording_rewind(other, &err), 0);
		}
		do {
			rc = recording_next(one, &a, &err);
			rc2 = recording_next(other, &b, &err);
			assert_int_equal(rc, rc2);
			if (rc > 0) {
				assert_int_equal(a->kind, b->kind);
				assert_true(a->time_ms == b->time_ms);
				assert_int_equal(a->number, b->number);
				lines++;
			}
		} while (rc > 0);
		assert_int_equal(rc, 0);
		assert_int_equal(recording_complete(other), recording_complete(one));
	}
	assert_true(lines > 4);
	recording_close(one);
	recording_close(other);
	unlink(path);
}

/* The recorder chooses the form by the file's name, and a reader can read it. */
static void recorder(void **state)
{
	static const char *const suffixes[] = {".msgpack", ".msgpack.gz"};
	struct recording_header header = {.policy = "nlb", .program = "test", .seed = 7};
	struct iocom_err err = {0};

	(void)state;
	rules_params_default(&header.params, RULES_RATES_COMPUTATION);
	for (size_t i = 0; i < 2; i++) {
		char base[] = "/tmp/iocom-msgpack-XXXXXX", path[64], head[2];
		struct recorder *r;
		struct recording *back;
		FILE *f;

		close(mkstemp(base));
		snprintf(path, sizeof(path), "%s%s", base, suffixes[i]);
		assert_int_equal(recorder_open(path, &header, &r, &err), 0);
		assert_int_equal(recorder_close(r, &err), 0);
		f = fopen(path, "r");
		assert_int_equal(fread(head, 1, 2, f), 2);
		fclose(f);
		assert_int_equal(json_msgpack_begins(head, 2), i == 0);
		assert_int_equal(recording_open(path, &back, &err), 0);
		assert_string_equal(recording_header(back)->policy, "nlb");
		assert_int_equal(recording_header(back)->seed, 7);
		recording_close(back);
		unlink(path);
		unlink(base);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specification), cmocka_unit_test(refused),
		cmocka_unit_test(names),	 cmocka_unit_test(view),
		cmocka_unit_test(recording),	 cmocka_unit_test(recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
