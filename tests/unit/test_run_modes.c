/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The modes that a job's output leaves in a terminal, and what undoes exactly those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/run/run_modes.h"

#define NOTHING ""

static void test_undo(void **state)
{
	static const struct {
		const char *output, *undo;
	} cases[] = {
		{"plain text\r\n", NOTHING},
		{"\033[?1049h", "\033[?1049l"},
		{"\033[?1049h\033[?1049l", NOTHING},
		{"\033[?25l", "\033[?25h"},
		{"\033[?12l\033[?25h", NOTHING},
		{"\033[?1l", NOTHING}, /* it was not set: nothing is undone */
		{"\033[?1000;1006h", "\033[?1000l\033[?1006l"},
		/* as vim begins: keys, screen, paste, cursor; the screen comes back before the
		   cursor */
		{"\033[?1049h\033[22;0;0t\033[>4;2m\033[?1h\033=\033[?2004h\033[?1004h\033[?25l",
		 "\033[>4m\033>\033[?1004l\033[?2004l\033[?1l\033[?1049l\033[?25h"},
		{"\033=", "\033>"},
		{"\033=\033>", NOTHING},
		{"\033[1;31m", "\033[m"},
		{"\033[1;31m\033[m", NOTHING},
		{"\033[1;31m\033[0m", NOTHING},
		{"\033[38;5;0m", "\033[m"}, /* that 0 is a colour */
		{"\033[38;2;0;0;0m", "\033[m"},
		{"\033[0;38;5;0;0m", NOTHING},
		{"\033[2;20r", "\0337\033[r\0338"},
		{"\033[2;20r\033[r", NOTHING},
		{"\033[>1u\033[>5u", "\033[<2u"},
		{"\033[>1u\033[<u", NOTHING},
		{"\033[<9u", NOTHING},
		{"\033[5 q", "\033[0 q"},
		{"\033[5 q\033[0 q", NOTHING},
		{"\033(0\016", "\017\033(B"},
		{"\033(0\033(B", NOTHING},
		{"\033[?1049h\033c", NOTHING}, /* a full reset */
		{"\033[?25l\033[?1000h\033=\033[!p", "\033[?1000l"},
		{"\033[?31337h\033[?65535h", NOTHING}, /* not known */
		{"\033[?99999991049h", NOTHING},
		/* what only looks like a sequence */
		{"\033]0;title \033[?1049h\007", "\033[?1049l"}, /* an ESC ends the title */
		{"\033]0;[?1049h\007", NOTHING},
		{"\033P?1049h\033\\", NOTHING},
		{"\033[?10\03049h", NOTHING}, /* cancelled */
		{"\033[?10\r49h", "\033[?1049l"},
		{"\033%G", NOTHING},
		{"\302\233?1049h", NOTHING}, /* C1 is not used with UTF-8 */
		/* cut off in the middle: cancelled first */
		{"\033[?25l\033[?104", "\030\033[?25h"},
		{"\033[?25l\033]0;half a ti", "\030\033[?25h"},
		/* more parameters than are kept */
		{"\033[?1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;25;1000;1006h", "\033[?1l"},
	};
	char text[RUN_MODES_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t piece = 1; piece < 9; piece++) {
			struct run_modes modes = {0};
			const char *at = cases[i].output;
			size_t left = strlen(at);

			while (left) {
				size_t n = piece < left ? piece : left;

				run_modes_take(&modes, at, n);
				at += n;
				left -= n;
			}
			assert_int_equal(run_modes_undo(&modes, text), strlen(cases[i].undo));
			assert_string_equal(text, cases[i].undo);
		}
}

/* What undoes the modes leaves nothing to undo; what sets them again is undone by the same. */
static void test_there_and_back(void **state)
{
	static const char output[] =
		"\033[?1049h\033[?1000;1002;1006;2004h\033[?25;7l\033=\033[>4;2m"
		"\033[>1u";
	char undo[RUN_MODES_TEXT], redo[RUN_MODES_TEXT], again[RUN_MODES_TEXT];
	struct run_modes modes = {0}, fresh = {0};

	(void)state;
	run_modes_take(&modes, output, sizeof(output) - 1);
	run_modes_undo(&modes, undo);
	run_modes_redo(&modes, redo);
	run_modes_take(&modes, undo, strlen(undo));
	assert_int_equal(run_modes_undo(&modes, again), 0);
	assert_int_equal(run_modes_redo(&modes, again), 0);
	run_modes_take(&fresh, redo, strlen(redo));
	run_modes_undo(&fresh, again);
	assert_string_equal(again, undo);
}

/* Whatever a job writes: the text fits, and undoing once is enough. */
static void test_any_bytes(void **state)
{
	static const char likely[] = "\033\033\033[[[??;;;0123456789hlmru=>c(pqB! ]P\\\007\030\016";
	char undo[RUN_MODES_TEXT], redo[RUN_MODES_TEXT];

	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct run_modes modes = {0};

		srandom(seed);
		for (int i = 0; i < 3000; i++) {
			uint8_t byte =
				(uint8_t)(random() % 8 ? likely[random() % (sizeof(likely) - 1)]
						       : random() % 256);

			run_modes_take(&modes, &byte, 1);
			assert_in_range(modes.nparams, 0, RUN_MODES_PARAMS + 1);
		}
		assert_in_range(run_modes_undo(&modes, undo), 0, RUN_MODES_TEXT - 1);
		assert_in_range(run_modes_redo(&modes, redo), 0, RUN_MODES_TEXT - 1);
		run_modes_take(&modes, undo, strlen(undo));
		if (run_modes_undo(&modes, redo))
			fail_msg("seed %u: something is left to undo", seed);
	}
}

/* Every mode at once is undone: no text is cut. */
static void test_all_at_once(void **state)
{
	static const char rest[] = "\033[?7;8;25l\033=\033[1m\033[2;3r\033[>1u\033[>4;2m\033[5 q"
				   "\033(0\016\033[";
	char undo[RUN_MODES_TEXT], text[16];
	struct run_modes modes = {0};

	(void)state;
	for (int number = 0; number < 3000; number++) {
		snprintf(text, sizeof(text), "\033[?%d%c", number, 'h');
		run_modes_take(&modes, text, strlen(text));
	}
	run_modes_take(&modes, rest, sizeof(rest) - 1);
	assert_in_range(run_modes_undo(&modes, undo), 200, RUN_MODES_TEXT - 2);
	run_modes_take(&modes, undo, strlen(undo));
	assert_int_equal(run_modes_undo(&modes, undo), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_all_at_once),
	};

	return cmocka_run_group_tests_name("run_modes", tests, NULL, NULL);
}
