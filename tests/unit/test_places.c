/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How users share the places of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "agent/base/places.h"

#define USERS 8

static struct counters counters;
static struct iocom_err err;

struct filled {
	const struct places *places;
	size_t used, of[USERS];
};

/* UID takes places until one is refused, which returns RC.  Returns how many UID has then. */
static size_t fill(struct filled *f, uid_t uid, int rc)
{
	int got;

	while (!(got = places_ask(f->places, uid, f->used, f->of[uid], &counters, &err))) {
		f->used++;
		f->of[uid]++;
	}
	assert_int_equal(got, rc);
	return f->of[uid];
}

static void give_back(struct filled *f, uid_t uid)
{
	f->used -= f->of[uid];
	f->of[uid] = 0;
}

/* 16 places, 2 of them root's: 14 for users. */
static void test_one_after_the_other(void **state)
{
	const struct places places = {
		.what = "dogs here", .limit = "dogs", .one = "dogs", .max = 16, .of_root = 2};
	struct filled f = {.places = &places};

	(void)state;
	counters = (struct counters){0};
	assert_int_equal(fill(&f, 1, -EDQUOT), 7); /* 7 are free */
	assert_string_equal(err.text,
			    "uid 1 has 7 dogs here, and 7 places are free: a user who has "
			    "as many as are free gets no more (dogs)");
	assert_int_equal(fill(&f, 2, -EDQUOT), 4); /* 3 are free */
	assert_int_equal(fill(&f, 1, -EDQUOT), 7);
	assert_int_equal(fill(&f, 3, -EDQUOT), 2); /* 1 is free */
	assert_int_equal(counters.places_refused, 4);
	assert_int_equal(fill(&f, 4, -EDQUOT), 1);
	assert_int_equal(counters.places_refused, 5);
	assert_int_equal(fill(&f, 5, -EAGAIN), 0);
	assert_string_equal(err.text, "no place is free: the limit is 14 dogs here (dogs)");
	assert_int_equal(counters.places_refused, 5);
	assert_int_equal(fill(&f, 0, -EAGAIN), 2);
	assert_string_equal(err.text, "no place is free: the limit is 16 dogs here (dogs)");
	/* What one user gives back, those with fewer places share. */
	give_back(&f, 1);
	assert_int_equal(fill(&f, 2, -EDQUOT), 5); /* 4 are free */
	assert_int_equal(fill(&f, 5, -EDQUOT), 2); /* 2 are free */
	assert_int_equal(fill(&f, 3, -EDQUOT), 2);
	assert_int_equal(fill(&f, 0, -EAGAIN), 6);
	assert_int_equal(f.used, 16);
}

static void test_bound_of_one(void **state)
{
	const struct places places = {.what = "dogs here",
				      .limit = "dogs",
				      .one = "user_dogs_max",
				      .max = 16,
				      .of_root = 2,
				      .of_one = 5};
	struct filled f = {.places = &places};

	(void)state;
	counters = (struct counters){0};
	assert_int_equal(fill(&f, 1, -EDQUOT), 5); /* 9 are free */
	assert_string_equal(err.text, "uid 1 has 5 dogs here, the limit per user (user_dogs_max)");
	assert_int_equal(fill(&f, 2, -EDQUOT), 5); /* 4 are free */
	assert_int_equal(counters.places_refused, 0);
	assert_int_equal(fill(&f, 3, -EDQUOT), 2);
	assert_int_equal(counters.places_refused, 1);
	assert_int_equal(fill(&f, 0, -EAGAIN), 4);
}

/* Root first: it may leave nothing, and users have no place that would be root's. */
static void test_root_first(void **state)
{
	const struct places places = {
		.what = "dogs here", .limit = "dogs", .one = "dogs", .max = 4, .of_root = 3};
	struct filled f = {.places = &places};

	(void)state;
	assert_int_equal(fill(&f, 1, -EDQUOT), 1);
	assert_int_equal(fill(&f, 0, -EAGAIN), 3);
	give_back(&f, 1);
	assert_int_equal(fill(&f, 0, -EAGAIN), 4);
	assert_int_equal(fill(&f, 1, -EAGAIN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_bound_of_one),
		cmocka_unit_test(test_root_first),
	};

	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
