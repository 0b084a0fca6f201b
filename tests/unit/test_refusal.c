/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a user reads about nodes that did not take a job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/home/refusal.h"

static void test_sentences(void **state)
{
	char text[200], why[300];

	(void)state;
	refusal_sentence("n2", "user", "uid 5 is below 1000 (min_uid)", why, sizeof(why));
	assert_string_equal(why, "node n2 refused the job (user): uid 5 is below 1000 (min_uid)");
	refusal_unanswered(12300000000u, text, sizeof(text));
	refusal_sentence("n2", REFUSAL_NO_ANSWER, text, why, sizeof(why));
	assert_string_equal(why, "node n2 did not answer within 2 s (is iocomd running there? "
				 "last heard 12.3 s ago)");
	refusal_sentence("n2", REFUSAL_SILENT, "is not heard any more", why, sizeof(why));
	assert_string_equal(why, "node n2 is not heard any more");
	refusal_sentence("n2", "user", "long", why, 10);
	assert_string_equal(why, "node n2 r");
}

/* File names need not be UTF-8, but what is kept must be. */
static void test_kept(void **state)
{
	struct placement p;

	(void)state;
	placement_init(&p);
	assert_int_equal(refusal_keep(&p, "n2", REFUSAL_PATH, "working directory /\xff: missing"),
			 0);
	assert_int_equal(refusal_keep(&p, "n3", REFUSAL_SILENT, ""), 0);
	assert_int_equal(p.nrefused, 2);
	assert_string_equal(p.refused[0].node, "n2");
	assert_string_equal(p.refused[0].reason, "path-missing");
	assert_string_equal(p.refused[0].text, "working directory /\xef\xbf\xbd: missing");
	placement_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
