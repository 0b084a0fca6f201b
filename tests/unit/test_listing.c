/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is for people: names cut in their middle, lines of at most 80 columns, tables that fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "balancer/listing.h"

static void named(const char *name, unsigned width, const char *wanted)
{
	char out[256];

	listing_name(out, sizeof(out), name, width);
	assert_string_equal(out, wanted);
}

static void test_names(void **state)
{
	(void)state;
	named("n1", 9, "n1");
	named("node-0017", 9, "node-0017");
	named("node-00017", 9, "nod...017");
	named("rack3-node-00017.example", 12, "rack3...mple");
	named("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4", 9,
	      "\xc3\xa4\xc3\xb6\xc3\xbc...\xc3\xb6\xc3\xbc\xc3\xa4"); /* characters, not bytes */
}

static char *wrapped(const char *text, unsigned indent)
{
	char *out = NULL;
	size_t size;
	FILE *memory = open_memstream(&out, &size);

	listing_wrap(memory, text, indent);
	fclose(memory);
	return out;
}

static void wraps(const char *text, unsigned indent, const char *wanted)
{
	char *out = wrapped(text, indent);

	assert_string_equal(out, wanted);
	free(out);
}

#define NINE  "nine-long "
#define LINE  NINE NINE NINE NINE NINE NINE NINE /* 70 columns */
#define LINE_ "nine-long nine-long nine-long nine-long nine-long nine-long nine-long"

static void test_wrap(void **state)
{
	(void)state;
	wraps("", 0, "\n");
	wraps("a b", 4, "a b\n");
	wraps(LINE "0123456789", 0, LINE "0123456789\n"); /* just 80 */
	wraps(LINE "01234567890", 2, LINE_ "\n  01234567890\n");
	wraps("  " LINE "01234567890", 4, "  " LINE_ "\n    01234567890\n");
	/* a number keeps its unit, and what is longer than a line has one of its own */
	wraps(LINE "took 51 s.", 0, LINE "took 51 s.\n");
	wraps(LINE "took 5.10 s.", 0, LINE "took\n5.10 s.\n");
}

static void test_long_words(void **state)
{
	char text[300], *out;

	(void)state;
	memset(text, 'x', 200);
	strcpy(text + 200, " end");
	out = wrapped(text, 0);
	assert_string_equal(out + 200, "\nend\n");
	free(out);
}

static unsigned widest(const char *text)
{
	unsigned most = 0;

	while (*text) {
		unsigned n = (unsigned)strcspn(text, "\n");

		most = n > most ? n : most;
		text += n + (text[n] == '\n');
	}
	return most;
}

/* A table of one row with NAME and a second column of WIDTH. */
static char *table(const char *name, int width, unsigned limit)
{
	static const struct listing_column columns[] = {{"NODE", false}, {"REST", true}};
	struct listing *l = listing_new(columns, 2);
	char *out = NULL;
	size_t size;
	FILE *memory = open_memstream(&out, &size);

	if (limit)
		listing_limit(l, limit);
	listing_cell(l, "%s", name);
	listing_cell(l, "%*d", width, 7);
	assert_int_equal(listing_print(l, memory), 0);
	fclose(memory);
	listing_free(l);
	return out;
}

static void test_tables(void **state)
{
	static const char name[] =
		"a-node-whose-name-is-as-long-as-names-may-be-0123456789-0123456";
	char *out;

	(void)state;
	out = table(name, 40, 0);
	assert_int_equal(widest(out), 63 + 2 + 40);
	free(out);
	out = table(name, 40, 80);
	assert_int_equal(widest(out), 80);
	assert_non_null(strstr(out, "a-node-whose-name-..."));
	free(out);
	out = table("n1", 40, 80); /* what fits is not padded */
	assert_int_equal(widest(out), 4 + 2 + 40);
	free(out);
	out = table(name, 78, 80); /* a name stays recognisable, whatever the rest needs */
	assert_int_equal(widest(out), LISTING_NAME_MIN + 2 + 78);
	free(out);
}

/* The titles of a table of 10, 10, 10 and many columns; standard output is a terminal of WIDTH. */
static char *titles(unsigned short width)
{
	static const struct listing_column columns[] = {
		{"JOB", false}, {"USER", false}, {"POLICY", false}, {"COMMAND", false}};
	static const unsigned char spare[] = {2, 1};
	struct winsize size = {.ws_row = 24, .ws_col = width};
	struct listing *l = listing_new(columns, 4);
	char *out = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&out, &bytes);
	int master, slave, own;

	fflush(stdout);
	own = dup(STDOUT_FILENO);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	assert_true(dup2(slave, STDOUT_FILENO) >= 0);
	for (int i = 0; i < 3; i++)
		listing_cell(l, "0123456789");
	listing_cell(l, "a command of very many words, which are cut where the terminal ends");
	listing_cut(l);
	listing_spare(l, spare, sizeof(spare));
	listing_print(l, memory);
	dup2(own, STDOUT_FILENO);
	close(own);
	close(slave);
	close(master);
	listing_free(l);
	fclose(memory);
	assert_true(widest(out) <= width);
	out[strcspn(out, "\n")] = 0;
	return out;
}

static void test_spare_columns(void **state)
{
	static const struct {
		unsigned short width;
		const char *shown;
	} rows[] = {
		{80, "JOB         USER        POLICY      COMMAND"},
		{52, "JOB         USER        POLICY      COMMAND"}, /* 16 for the command */
		{51, "JOB         USER        COMMAND"},
		{40, "JOB         USER        COMMAND"},
		{39, "JOB         COMMAND"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *out = titles(rows[i].width);

		assert_string_equal(out, rows[i].shown);
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	      cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_long_words),    cmocka_unit_test(test_tables),
		cmocka_unit_test(test_spare_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
