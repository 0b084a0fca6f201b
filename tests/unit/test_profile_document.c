/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Profiles as documents: what comes out goes in again, and nonsense changes nothing. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "balancer/profile/profile_document.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))
#define USER	   1000
#define OTHER	   1001

static struct profile_store *store;
static struct iocom_err err;

static int begin(void **state)
{
	(void)state;
	return profile_open(&store, ":memory:", &err);
}

static int finish(void **state)
{
	(void)state;
	profile_close(store);
	return 0;
}

static int take(uid_t uid, const char *text, bool force, bool dry_run, struct profile_import *in)
{
	*in = (struct profile_import){.text = text,
				      .length = strlen(text),
				      .file = "p.json",
				      .force = force,
				      .dry_run = dry_run};
	memset(&err, 0, sizeof(err));
	return profile_import(store, uid, in, &err);
}

/* The document of all classes of UID, or of one. */
static int export(uid_t uid, const char *class_name, json_t **document, size_t *left_out)
{
	struct profile_export x = {.class_name = class_name, .after = ""};
	int rc = profile_export(store, uid, &x, &err);

	assert_string_equal(x.last, "");
	*document = x.document;
	*left_out = x.left_out;
	return rc;
}

static size_t classes(uid_t uid)
{
	json_t *document;
	size_t left_out, n;

	assert_int_equal(export(uid, "", &document, &left_out), 0);
	n = json_array_size(json_object_get(document, "profiles"));
	json_decref(document);
	return n;
}

/* Two classes, one with two kinds of runs and a set need. */
static void fill(void)
{
	struct profile run = {.cpu_ms = 100, .read_mb = 50, .request_mb = 50, .memory_mb = 7};
	struct profile_origin origin = {.input_id = 9, .input_mb = 50, .node = "n1", .end_s = 1000};
	struct need_options set;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(profile_learn_run(store, USER, "sort", &run, &origin, &err), 0);
		run.read_mb = run.request_mb = 1;
		run.cpu_ms += 10.25;
	}
	assert_int_equal(profile_learn(store, USER, "other", &run, &err), 0);
	need_options_init(&set);
	set.value[NEED_MEMORY_MB] = 500;
	assert_int_equal(profile_set(store, USER, "sort", &set, &err), 0);
}

static void test_there_and_back(void **state)
{
	struct profile_next next = {.input_id = 9, .input_mb = 50, .home = "n1", .now_s = 1010};
	struct profile_expected before, after;
	struct profile_import in;
	json_t *document, *again;
	size_t left_out;
	char *text;

	(void)state;
	fill();
	assert_int_equal(profile_learn(store, USER, "\xff\xfe", &(struct profile){0}, &err), 0);
	assert_int_equal(export(USER, "", &document, &left_out), 0);
	assert_int_equal(left_out, 1);
	text = json_dumps(document, 0);
	assert_int_equal(take(OTHER, text, false, true, &in), 0);
	assert_int_equal(classes(OTHER), 0); /* only checked */
	assert_int_equal(take(OTHER, text, false, false, &in), 0);
	assert_int_equal(in.classes, 2);
	assert_int_equal(in.runs, 4);
	assert_int_equal(in.replaced, 0);
	assert_int_equal(export(OTHER, "", &again, &left_out), 0);
	assert_true(json_equal(document, again));
	assert_int_equal(profile_expect(store, USER, "sort", &next, &before, &err), 0);
	assert_int_equal(profile_expect(store, OTHER, "sort", &next, &after, &err), 0);
	assert_true(after.warm);
	NEAR(before.profile.cpu_ms, after.profile.cpu_ms);
	NEAR(after.set.value[NEED_MEMORY_MB], 500);
	json_decref(again);
	/* A class that is known is not replaced by mistake, and then as a whole. */
	assert_int_equal(take(OTHER, text, false, false, &in), -EEXIST);
	assert_non_null(strstr(err.text, "--force"));
	assert_int_equal(take(OTHER, text, true, false, &in), 0);
	assert_int_equal(in.replaced, 2);
	assert_int_equal(export(OTHER, "sort", &again, &left_out), 0);
	assert_int_equal(json_array_size(json_object_get(again, "profiles")), 1);
	json_decref(again);
	assert_int_equal(export(OTHER, "none", &again, &left_out), -ENOENT);
	json_decref(document);
	free(text);
}

#define HEAD   "{\"iocom_profiles\": 1, \"profiles\": ["
#define A      "{\"class\": \"a\", \"runs\": 1, \"needs\": {\"cpu_ms\": 5}}"
#define ONE(x) HEAD A ", {\"class\": \"b\", \"runs\": 3, " x "}]}"
#define NEEDS  "\"needs\": {}"

/* Each is refused with what is wrong and where, and A, which comes first, is not taken either. */
static void test_nonsense(void **state)
{
	static const struct {
		const char *text, *says;
		int rc;
	} wrong[] = {
		{"", "p.json:1:1", -EINVAL},
		{"{\"iocom_profiles\": 1, \"profiles\": [", "p.json:1:", -EINVAL},
		{"[1, 2]", "no document of `iocom profile export`", -EINVAL},
		{"{\"profiles\": []}", "no \"iocom_profiles\"", -EINVAL},
		{"{\"iocom_profiles\": \"1\", \"profiles\": []}", "no whole number", -EINVAL},
		{"{\"iocom_profiles\": 2, \"profiles\": []}", "version 2", -EINVAL},
		{"{\"iocom_profiles\": 1}", "a list of classes", -EINVAL},
		{"{\"iocom_profiles\": 1, \"profiles\": {}}", "a list of classes", -EINVAL},
		{"{\"iocom_profiles\": 1, \"profiles\": [], \"x\": 1}", "x: unknown field",
		 -EINVAL},
		{HEAD A ", 7]}", "profiles[1]: expected an object", -EINVAL},
		{HEAD A ", {\"runs\": 1, " NEEDS "}]}", "\"class\" is missing", -EINVAL},
		{HEAD A ", {\"class\": \"\", \"runs\": 1, " NEEDS "}]}", "\"class\" is missing",
		 -EINVAL},
		{HEAD A ", " A "]}", "class 'a' is there twice", -EINVAL},
		{HEAD A ", {\"class\": \"a\\u001bb\", " NEEDS "}]}", "control characters", -EINVAL},
		{ONE("\"funs\": 3"), "profiles[1].funs: unknown field", -EINVAL},
		{ONE("\"set\": {}"), "profiles[1].needs: expected an object", -EINVAL},
		{ONE("\"needs\": {\"cpu_ms\": -1}"), "profiles[1].needs.cpu_ms: expected", -EINVAL},
		{ONE("\"needs\": {\"cpu_ms\": NaN}"), "p.json:1:", -EINVAL},
		{ONE("\"needs\": {\"cpu_ms\": 1e999}"), "p.json:1:", -EINVAL},
		{ONE("\"needs\": {\"cpu_ms\": 1e13}"), "needs.cpu_ms: expected a number up to 1e12",
		 -EINVAL},
		{ONE("\"needs\": {\"cpu_ms\": \"5\"}"), "needs.cpu_ms: expected a number", -EINVAL},
		{ONE("\"needs\": {\"cpus\": 5}"), "needs.cpus: unknown need", -EINVAL},
		{ONE(NEEDS ", \"set\": {\"cpu_s\": -1}"), "set.cpu_s: expected", -EINVAL},
		{ONE(NEEDS ", \"set\": {\"implicit_share\": 2}"),
		 "implicit_share: the number is too", -EINVAL},
		{ONE(NEEDS ", \"set\": {\"memory\": 2}"), "set.memory: unknown need", -EINVAL},
		{ONE(NEEDS ", \"set\": []"), "set: expected an object", -EINVAL},
		{ONE(NEEDS ", \"recent\": {}"), "recent: expected a list", -EINVAL},
		{ONE(NEEDS ", \"recent\": [{\"warm\": 1, " NEEDS "}]"),
		 "recent[0].warm: expected true", -EINVAL},
		{ONE(NEEDS ", \"recent\": [{\"warm\": true}]"), "recent[0].needs: expected",
		 -EINVAL},
		{ONE(NEEDS ", \"recent\": [{" NEEDS ", \"input_mb\": 1e300}]"), "input_mb",
		 -EINVAL},
		{ONE(NEEDS ", \"recent\": [{" NEEDS ", \"input_id\": -4}]"), "input_id", -EINVAL},
		{ONE(NEEDS ", \"recent\": [{" NEEDS ", \"node\": 4}]"), "node: expected a text",
		 -EINVAL},
		{ONE(NEEDS ", \"recent\": [{" NEEDS "},{" NEEDS "},{" NEEDS "},{" NEEDS "}]"),
		 "4 recent runs of 3", -EINVAL},
		{HEAD A ", {\"class\": \"b\", \"runs\": -3, " NEEDS "}]}", "runs: expected",
		 -EINVAL},
		{HEAD A ", {\"class\": \"b\", \"runs\": 3, \"runs\": 4, " NEEDS "}]}", "duplicate",
		 -EINVAL},
	};
	struct profile_import in;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		int rc = take(USER, wrong[i].text, true, false, &in);

		if (rc != wrong[i].rc || !strstr(err.text, wrong[i].says))
			fail_msg("%s\ngave %d: %s\nnot: %s", wrong[i].text, rc, err.text,
				 wrong[i].says);
		assert_int_equal(classes(USER), 0);
	}
	assert_int_equal(take(USER, ONE(NEEDS), false, false, &in), 0);
	assert_int_equal(classes(USER), 2);
}

static char *document_of(size_t n, const char *format)
{
	char *text = malloc(n * 96 + 128);
	size_t at = (size_t)sprintf(text, HEAD);

	for (size_t i = 0; i < n; i++) {
		if (i)
			text[at++] = ',';
		at += (size_t)sprintf(text + at, format, (int)i);
	}
	strcpy(text + at, "]}");
	return text;
}

/* A document of as many classes as a user may have takes the places of others; more are refused. */
static void test_many(void **state)
{
	struct profile_import in;
	char *text = document_of(PROFILE_CLASSES_MAX + 1,
				 "{\"class\": \"c%d\", \"runs\": 2, \"needs\": {}}");

	(void)state;
	assert_int_equal(take(USER, text, false, false, &in), -E2BIG);
	assert_int_equal(classes(USER), 0);
	free(text);
	fill();
	text = document_of(PROFILE_CLASSES_MAX, "{\"class\": \"c%d\", \"runs\": 9, \"needs\": {}}");
	assert_int_equal(take(USER, text, false, false, &in), 0);
	assert_int_equal(classes(USER), PROFILE_CLASSES_MAX);
	free(text);
}

/* Parts have each class once, and say whether there are more. */
static void test_parts(void **state)
{
	struct profile_import in;
	struct profile_export x = {.class_name = "", .after = "", .most = 4};
	struct profile none = {.runs = 1};
	char *text = document_of(10, "{\"class\": \"c%d\", \"runs\": 9, \"needs\": {}}");
	char after[PROFILE_CLASS_MAX] = "", names[200] = "";
	size_t left_out = 0, parts = 0;

	(void)state;
	assert_int_equal(take(USER, text, false, false, &in), 0);
	assert_int_equal(take(OTHER, text, false, false, &in), 0);
	free(text);
	/* JSON cannot hold these: behind a whole part, and at the end. */
	assert_int_equal(profile_learn(store, USER, "c3\xff", &none, &err), 0);
	assert_int_equal(profile_learn(store, USER, "c9\n", &none, &err), 0);
	do {
		json_t *one;
		size_t i;

		x.after = after;
		assert_int_equal(profile_export(store, USER, &x, &err), 0);
		json_array_foreach (json_object_get(x.document, "profiles"), i, one) {
			assert_true(i < 4);
			strcat(names, json_string_value(json_object_get(one, "class")));
		}
		json_decref(x.document);
		strcpy(after, x.last);
		left_out += x.left_out;
		x.left_out = 0;
		parts++;
	} while (*after);
	assert_string_equal(names, "c0c1c2c3c4c5c6c7c8c9");
	assert_int_equal(left_out, 2);
	assert_int_equal(parts, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, begin, finish),
		cmocka_unit_test_setup_teardown(test_nonsense, begin, finish),
		cmocka_unit_test_setup_teardown(test_many, begin, finish),
		cmocka_unit_test_setup_teardown(test_parts, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
