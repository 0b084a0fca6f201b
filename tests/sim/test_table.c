/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The output for people: tables that fit a screen, paragraphs, the progress bar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/progress.h"
#include "sim/report/table.h"

static char *printed(const struct table *t)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	table_print(t, f);
	fclose(f);
	return text;
}

static void columns(void **state)
{
	struct table t;
	char *text;

	(void)state;
	assert_int_equal(table_init(&t, 3, 3), 0);
	table_set(&t, 0, 0, "policy");
	table_set(&t, 0, 2, "moved");
	table_set(&t, 1, 0, "nlb");
	table_set(&t, 1, 1, "%d.%d", 1, 5);
	table_set(&t, 1, 2, "0");
	table_set(&t, 2, 0, "iocm-re");
	table_set(&t, 2, 1, "10.25");
	table_set(&t, 2, 2, "123456");
	text = printed(&t);
	assert_string_equal(text, "policy           moved\n"
				  "nlb        1.5       0\n"
				  "iocm-re  10.25  123456\n");
	free(text);
	table_free(&t);
}

/* Whatever the table contains, no line is wider than the screen and nothing is left out. */
static void screen(void **state)
{
	struct table t;

	(void)state;
	for (size_t n = 2; n < 40; n++) {
		unsigned int seen = 0, firsts = 0;
		char *text, *line, *save = NULL;

		assert_int_equal(table_init(&t, 2, n), 0);
		for (size_t c = 0; c < n; c++)
			table_set(&t, 1, c, "%s%zu", c ? "c" : "first", c * 1000003);
		text = printed(&t);
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
			assert_true(strlen(line) <= TABLE_WIDTH);
			firsts += !strncmp(line, "first", 5);
			for (char *c = line; (c = strstr(c, " c")); c++)
				seen++;
		}
		assert_int_equal(seen, n - 1);
		assert_true(firsts >= 1 && (n < 9 || firsts > 1));
		free(text);
		table_free(&t);
	}
}

static void long_texts_are_cut(void **state)
{
	char longest[3 * TABLE_CELL], *text;
	struct table t;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(table_init(&t, 1, 2), 0);
	table_set(&t, 0, 0, "%s", longest);
	table_set(&t, 0, 1, "%s", longest);
	text = printed(&t);
	assert_int_equal(strlen(text), 2 * (TABLE_CELL - 1) + 2 + 1);
	free(text);
	table_free(&t);
}

static void paragraph(void **state)
{
	char *text, words[2000] = "", back[2000] = "", *save = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < 120; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%sw%d",
			 i ? " " : "", i * i);
	fputs("    why: ", f);
	table_paragraph(f, 9, 6, words);
	fclose(f);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_true(strlen(line) <= TABLE_WIDTH);
		if (*back) {
			assert_memory_equal(line, "      w", 7);
			strcat(back, " ");
		}
		strcat(back, line + (*back ? 6 : 9));
	}
	assert_string_equal(back, words);
	free(text);
}

static void bar(void **state)
{
	char line[160];

	(void)state;
	progress_line(line, sizeof(line), "replay", 0, 3, 5);
	assert_string_equal(line, "replay [                        ]   0 %  0/3 runs");
	/* When only half of the first run is known, this gives the bar and the time left. */
	progress_line(line, sizeof(line), "replay", 0.5, 1, 90);
	assert_string_equal(line,
			    "replay [############            ]  50 %  0/1 runs, 1 min 30 s left");
	progress_line(line, sizeof(line), "replay", 1.25, 2, 50);
	assert_string_equal(line, "replay [###############         ]  62 %  1/2 runs, 30 s left");
	progress_line(line, sizeof(line), "replay", 2, 2, 50);
	assert_string_equal(line, "replay [########################] 100 %  2/2 runs");
	progress_line(line, sizeof(line), "replay", 0, 0, 0);
	assert_string_equal(line, "replay [########################] 100 %  0/0 runs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns),
		cmocka_unit_test(screen),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(paragraph),
		cmocka_unit_test(bar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
