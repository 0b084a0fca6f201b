/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The client's terminal: the escape among the keys, and modes that are restored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/run/run_tty.h"

struct fed {
	char job[256]; /* the keys that go to the job */
	enum run_tty_request first;
	int requests;
};

/* Feeds KEYS in pieces of PIECE, like a slow typist and a fast one. */
static struct fed feed(int escape, const char *keys, size_t piece)
{
	struct run_tty tty;
	struct fed fed = {.first = RUN_TTY_NONE};
	size_t left = strlen(keys), at = 0;

	run_tty_init(&tty, -1);
	tty.escape = escape;
	while (left) {
		size_t n = piece < left ? piece : left, length, used;
		uint8_t out[64];
		enum run_tty_request request =
			run_tty_keys(&tty, (const uint8_t *)keys, n, out, &length, &used);

		assert_in_range(used, 1, n);
		assert_in_range(length, 0, n + 1);
		memcpy(fed.job + at, out, length);
		at += length;
		if (request != RUN_TTY_NONE && !fed.requests++)
			fed.first = request;
		keys += used;
		left -= used;
	}
	run_tty_deinit(&tty);
	return fed;
}

static void test_escape(void **state)
{
	static const struct {
		int escape;
		const char *keys, *job;
		enum run_tty_request request;
	} cases[] = {
		{'~', "ls\r", "ls\r", RUN_TTY_NONE},
		{'~', "~.", "", RUN_TTY_LEAVE}, /* the very first key */
		{'~', "x\r~.", "x\r", RUN_TTY_LEAVE},
		{'~', "x\n~.", "x\n", RUN_TTY_LEAVE},
		{'~', "x~.", "x~.", RUN_TTY_NONE}, /* inside a line it is an ordinary character */
		{'~', "\r~~.", "\r~.", RUN_TTY_NONE},
		{'~', "\r~x", "\r~x", RUN_TTY_NONE},
		{'~', "\r~x~.", "\r~x~.", RUN_TTY_NONE},
		{'~', "\r~\032", "\r", RUN_TTY_STOP},
		{'~', "\r~?cd ~\r", "\rcd ~\r", RUN_TTY_HELP},
		{'~', "~?~.", "", RUN_TTY_HELP},
		{'~', "~\r~.", "~\r", RUN_TTY_LEAVE},
		{-1, "\r~.\377", "\r~.\377", RUN_TTY_NONE},
		{'%', "\r~.\r%.", "\r~.\r", RUN_TTY_LEAVE},
		{29, "\r\035.", "\r", RUN_TTY_LEAVE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t piece = 1; piece < 8; piece++) {
			struct fed fed = feed(cases[i].escape, cases[i].keys, piece);

			assert_string_equal(fed.job, cases[i].job);
			assert_int_equal(fed.first, cases[i].request);
		}
}

static void test_take_escape(void **state)
{
	static const struct {
		const char *text;
		int escape;
	} good[] = {{"none", -1}, {"%", '%'}, {"^]", 29}, {"^a", 1}, {"^", '^'}};
	static const char *const bad[] = {"", "ab", "^ab", "^\t", "nones"};
	struct iocom_err err;
	int escape;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(run_tty_take_escape(&escape, good[i].text, &err), 0);
		assert_int_equal(escape, good[i].escape);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(run_tty_take_escape(&escape, bad[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "escape"));
	}
}

/* Without a terminal: 80x24, UTF-8 by the locale, and nothing to make raw. */
static void test_no_terminal(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), kept[3];
	struct terminal terminal;
	struct run_tty tty;

	(void)state;
	for (int i = 0; i < 3; i++) {
		kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
		dup2(null, i);
	}
	setenv("TERM", "vt100", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	run_tty_init(&tty, 0);
	run_tty_raw(&tty);
	run_tty_describe(&tty, &terminal);
	for (int i = 0; i < 3; i++) {
		dup2(kept[i], i);
		close(kept[i]);
	}
	close(null);
	assert_int_equal(tty.fd, -1);
	assert_false(tty.raw);
	assert_int_equal(terminal.size.ws_row, 24);
	assert_int_equal(terminal.size.ws_col, 80);
	assert_string_equal(terminal.name, "vt100");
	assert_true(terminal.wanted && terminal.utf8);
	/* A name that cannot be a terminal's is not sent. */
	setenv("TERM", "../vt100", 1);
	setenv("LC_ALL", "C", 1);
	run_tty_describe(&tty, &terminal);
	assert_string_equal(terminal.name, "");
	assert_false(terminal.utf8);
	run_tty_deinit(&tty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_take_escape),
		cmocka_unit_test(test_no_terminal),
	};

	return cmocka_run_group_tests_name("run_tty", tests, NULL, NULL);
}
