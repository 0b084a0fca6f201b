/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Names from users: what is kept of them, what is not printed, and how wide they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/listing.h"
#include "user/utf8.h"

static void test_line(void **state)
{
	static const struct {
		char *words[4];
		const char *line;
	} cases[] = {
		{{"ls", "-l"}, "ls -l"},
		{{"./größe", "日本", "😀"}, "./größe 日本 😀"},
		{{"a\nb\tc", "\033[2J", "\177"}, "a?b?c ?[2J ?"},
		{{"\xc2\x9b"
		  "1m"},
		 "?1m"},			   /* C1 */
		{{"x\u202egpj.exe"}, "x?gpj.exe"}, /* right to left from here */
		{{"a\u2066b\u2069\u200fc"}, "a?b??c"},
		{{"a\u200bb\ufeff"}, "a?b?"},  /* invisible */
		{{"one\u2028two"}, "one?two"}, /* a line of its own */
		{{"\xff\xfe", "\xc3", "\xed\xa0\x80"}, "?? ? ???"},
		{{"\xf0\x9f\x98"}, "???"},
		{{"", ""}, " "},
		{{NULL}, ""},
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		utf8_line(cases[i].words, out, sizeof(out));
		assert_string_equal(out, cases[i].line);
	}
}

/* A full line ends between characters. */
static void test_line_full(void **state)
{
	char *words[] = {"ää", "日本", NULL}, out[16];
	static const char *const at[] = {"",	"",    "ä",	"ä",	 "ää",	  "ää ",
					 "ää ", "ää ", "ää 日", "ää 日", "ää 日", "ää 日本"};

	(void)state;
	for (size_t size = 1; size <= 12; size++) {
		memset(out, 'x', sizeof(out));
		utf8_line(words, out, size);
		assert_string_equal(out, at[size - 1]);
	}
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(utf8_width(""), 0);
	assert_int_equal(utf8_width("abc"), 3);
	assert_int_equal(utf8_width("größe"), 5);
	assert_int_equal(utf8_width("日本"), 4);
	assert_int_equal(utf8_width("e\u0301"), 1); /* an accent on the e */
	assert_int_equal(utf8_width("😀"), 2);
	assert_int_equal(utf8_width("\xff\xfe"), 2);
}

/* Whatever the bytes: what is kept is valid, and nothing is printed that controls a terminal. */
static void test_any_bytes(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 2000; seed++) {
		char in[40], out[128], plain[40];
		char *words[] = {in, NULL};
		uint32_t c;
		size_t n;

		srandom(seed);
		for (size_t i = 0; i < sizeof(in) - 1; i++)
			in[i] = (char)(random() % 3 ? 0x80 + random() % 0x80 : 1 + random() % 255);
		in[sizeof(in) - 1] = 0;
		strcpy(plain, in);
		utf8_plain(plain);
		utf8_line(words, out, sizeof(out));
		for (const char *at = out; (n = utf8_next(at, &c)); at += n)
			assert_true(utf8_printable(c));
		assert_int_equal(strlen(plain), strlen(in));
		for (const char *at = plain; (n = utf8_next(at, &c)); at += n)
			assert_true(utf8_printable(c));
	}
}

/* Columns are aligned by what a terminal shows, not by bytes. */
static void test_listing(void **state)
{
	static const struct listing_column columns[] = {{"NAME", false}, {"N", true}, {"X", false}};
	struct listing *l = listing_new(columns, 3);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	listing_cell(l, "größe");
	listing_cell(l, "1");
	listing_cell(l, "a");
	listing_cell(l, "日本");
	listing_cell(l, "22");
	listing_cell(l, "x\u202ey");
	listing_cell(l, "plain");
	listing_cell(l, "ü");
	listing_cell(l, "c");
	assert_int_equal(listing_print(l, out), 0);
	listing_text(out, "größe\n\x9b日\n");
	fclose(out);
	assert_string_equal(text, "NAME    N  X\n"
				  "größe   1  a\n"
				  "日本   22  x???y\n"
				  "plain   ü  c\n"
				  "größe??日?");
	free(text);
	listing_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	cmocka_unit_test(test_line_full),
		cmocka_unit_test(test_width),	cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_listing),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
