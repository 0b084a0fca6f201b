/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How people name jobs, and which ones a short name means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "balancer/job_name.h"

static struct job_name parsed(const char *text)
{
	struct job_name name;

	job_name_parse(text, &name);
	return name;
}

static void is(const char *text, enum job_name_kind kind, const char *home, const char *number)
{
	const struct job_name name = parsed(text);

	if (name.kind != kind || strcmp(name.home, home) != 0 || strcmp(name.number, number) != 0)
		fail_msg("'%s' is of kind %d, home '%s', number '%s'", text, name.kind, name.home,
			 name.number);
}

static void test_kinds(void **state)
{
	(void)state;
	is("last", JOB_NAME_LAST, "", "");
	is("17", JOB_NAME_SHORT, "", "17");
	is("0", JOB_NAME_SHORT, "", "0");
	is("n2-17", JOB_NAME_SHORT, "n2", "17");
	is("n2-4f1c09aa-17", JOB_NAME_WHOLE, "n2", "17");
	is("node-with-dashes.example-4f1c09aa-17", JOB_NAME_WHOLE, "node-with-dashes.example",
	   "17");
	is("node-with-dashes-17", JOB_NAME_SHORT, "node-with-dashes", "17");
	/* seven digits, nine, capitals, and another letter name no start of an agent */
	is("n2-4f1c09a-17", JOB_NAME_SHORT, "n2-4f1c09a", "17");
	is("n2-4f1c09aab-17", JOB_NAME_SHORT, "n2-4f1c09aab", "17");
	is("n2-4F1C09AA-17", JOB_NAME_SHORT, "n2-4F1C09AA", "17");
	is("n2-4f1c09ag-17", JOB_NAME_SHORT, "n2-4f1c09ag", "17");
	is("4f1c09aa-17", JOB_NAME_SHORT, "4f1c09aa", "17");
	/* parts of a gang */
	is("17.3", JOB_NAME_SHORT, "", "17.3");
	is("n2-17.3", JOB_NAME_SHORT, "n2", "17.3");
	is("n2-4f1c09aa-17.1023", JOB_NAME_WHOLE, "n2", "17.1023");
}

static void test_odd(void **state)
{
	static const char *const odd[] = {
		"",
		"-",
		"-17",
		"n2-",
		"n2",
		"n2-17x",
		"17-",
		"1e3",
		"+17",
		" 17",
		"n 2-17",
		"n2/x-17",
		"../x-17",
		".x-17",
		"*-17",
		"n2-*",
		"1234567890123456789",
		"17.",
		"n2-17.",
		".3",
		"n2-.3",
		"17.3.1",
		"17.x",
		"17.10233",
		"Last",
		"lasting",
	};
	char node[70];

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		is(odd[i], JOB_NAME_ODD, parsed(odd[i]).home, "");
	memset(node, 'n', sizeof(node));
	strcpy(node + 64, "-1"); /* one letter more than a node's name may have */
	is(node, JOB_NAME_ODD, "", "");
	strcpy(node + 63, "-1");
	assert_int_equal(parsed(node).kind, JOB_NAME_SHORT);
}

static void fits(const char *text, const char *job, bool does)
{
	const struct job_name name = parsed(text);

	assert_int_equal(name.kind, JOB_NAME_SHORT);
	if (job_name_fits(&name, job) != does)
		fail_msg("'%s' %s mean %s", text, does ? "does not" : "may", job);
}

static void test_what_short_names_mean(void **state)
{
	(void)state;
	fits("17", "n2-4f1c09aa-17", true);
	fits("17", "n2-4f1c09aa-117", false);
	fits("17", "n2-4f1c09aa-017", false);
	fits("17", "17", false);
	fits("17", "n2-17", false);
	fits("n2-17", "n2-4f1c09aa-17", true);
	fits("n2-17", "n2-x-4f1c09aa-17", false);
	fits("n2-17", "n3-4f1c09aa-17", false);
	fits("n2-17", "n2-4f1c09aa-18", false);
	/* A gang's short name does not mean its parts, nor the reverse. */
	fits("17", "n2-4f1c09aa-17.0", false);
	fits("17.0", "n2-4f1c09aa-17", false);
	fits("17.0", "n2-4f1c09aa-17.0", true);
	fits("n2-17.1", "n2-4f1c09aa-17.10", false);
}

static void test_patterns(void **state)
{
	struct job_name name = parsed("17");
	char pattern[SPEC_JOB_MAX];

	(void)state;
	job_name_pattern(&name, pattern, sizeof(pattern));
	assert_string_equal(pattern, "*-17");
	name = parsed("n2-17");
	job_name_pattern(&name, pattern, sizeof(pattern));
	assert_string_equal(pattern, "n2-*-17");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_what_short_names_mean),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
