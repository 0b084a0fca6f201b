/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What was typed at a terminal is taken and put into another one: who then reads there reads what
 * he would have read at the first, and is shown nothing again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "agent/shim/move/typed.h"
#include "agent/shim/tty.h"

struct line {
	struct tty tty;
	int slave; /* non-blocking */
};

static struct line line_new(void)
{
	const struct terminal wanted = {.wanted = true, .size = {24, 80, 0, 0}};
	struct line line;

	assert_int_equal(tty_open(&line.tty, &wanted, 0, 0), 0);
	line.slave = tty_peer(line.tty.in);
	assert_true(line.slave >= 0);
	return line;
}

static void line_free(struct line *line)
{
	close(line->slave);
	tty_close(&line->tty);
}

static void set(const struct line *line, tcflag_t off, tcflag_t on)
{
	struct termios modes;

	assert_int_equal(tcgetattr(line->slave, &modes), 0);
	modes.c_lflag &= ~off;
	modes.c_lflag |= on;
	assert_int_equal(tcsetattr(line->slave, TCSANOW, &modes), 0);
}

static void type(const struct line *line, const char *text, size_t n)
{
	assert_int_equal(write(line->tty.in, text, n), (ssize_t)n);
}

/* Reads until nothing more comes, as "<first read><second read>". */
static void read_all(const struct line *line, char *out, size_t size)
{
	size_t at = 0;

	for (;;) {
		ssize_t n;

		assert_true(at + 3 < size);
		n = read(line->slave, out + at + 1, size - at - 3);
		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			break;
		}
		out[at] = '<';
		out[at + 1 + (size_t)n] = '>';
		at += (size_t)n + 2;
	}
	out[at] = 0;
}

static size_t shown(const struct line *line, char *out, size_t size)
{
	struct pollfd p = {.fd = line->tty.out, .events = POLLIN};
	size_t at = 0;
	ssize_t n;

	while (poll(&p, 1, 50) == 1 && (n = read(p.fd, out + at, size - at)) > 0)
		at += (size_t)n;
	return at;
}

/* Moves what waits at FROM to a new terminal. */
static struct line moved(struct line *from, bool lines)
{
	struct termios before, after;
	struct typed typed;
	struct line to = line_new();
	char text[64];

	assert_int_equal(tcgetattr(from->slave, &before), 0);
	assert_int_equal(typed_take(&typed, from->slave), 0);
	assert_int_equal(tcgetattr(from->slave, &after), 0);
	assert_memory_equal(&before, &after, offsetof(struct termios, c_cc) + NCCS);
	assert_true(typed_valid(&typed, lines));
	assert_int_equal(typed_put(&typed, to.slave, lines), typed.length);
	typed_free(&typed);
	/* As criu does when it restores the job. */
	assert_int_equal(tcsetattr(to.slave, TCSANOW, &before), 0);
	assert_int_equal(shown(&to, text, sizeof(text)), 0);
	/* Nothing is left. */
	assert_int_equal(typed_take(&typed, from->slave), 0);
	assert_int_equal(typed.length, 0);
	typed_free(&typed);
	line_free(from);
	return to;
}

static void test_lines(void **state)
{
	static const char text[] = "one\ntwo\x7fO\n\x04"
				   "three\x04"
				   "\x16\x04\x16\x16\x16\x03\x16\n!\n\x16\x04\x04"
				   "begun";
	struct line line = line_new();
	char got[256];

	(void)state;
	type(&line, text, sizeof(text) - 1);
	for (int i = 0; i < 3; i++)
		line = moved(&line, true);
	read_all(&line, got, sizeof(got));
	assert_string_equal(got, "<one\n><twO\n><><three><\x04\x16\x03\n!\n><\x04>");
	/* The line that is begun can be corrected, and goes on. */
	type(&line, "\x7fN\n", 3);
	read_all(&line, got, sizeof(got));
	assert_string_equal(got, "<beguN\n>");
	line_free(&line);
}

/* Lines that end with other characters, also with those that mean something while they are put. */
static void test_ends(void **state)
{
	static const uint8_t ends[] = {';', 0x16, 0x04, 0xff};
	char text[32], wanted[64], got[64];

	(void)state;
	for (size_t i = 0; i < sizeof(ends); i++) {
		struct line line = line_new();
		struct termios modes;

		assert_int_equal(tcgetattr(line.slave, &modes), 0);
		memset(modes.c_cc, _POSIX_VDISABLE, sizeof(modes.c_cc));
		modes.c_cc[i % 2 ? VEOL2 : VEOL] = ends[i];
		assert_int_equal(tcsetattr(line.slave, TCSANOW, &modes), 0);
		type(&line, text,
		     (size_t)snprintf(text, sizeof(text), "a%cb\nc%cd", ends[i], ends[i]));
		line = moved(&line, true);
		read_all(&line, got, sizeof(got));
		snprintf(wanted, sizeof(wanted), "<a%c><b\n><c%c>", ends[i], ends[i]);
		assert_string_equal(got, wanted);
		type(&line, "\n", 1);
		read_all(&line, got, sizeof(got));
		assert_string_equal(got, "<d\n>");
		line_free(&line);
	}
}

static void test_keys(void **state)
{
	char all[256], got[300];
	struct line line = line_new();
	struct termios modes;

	(void)state;
	assert_int_equal(tcgetattr(line.slave, &modes), 0);
	cfmakeraw(&modes);
	modes.c_cc[VMIN] = 7; /* fewer wait than are read at once */
	assert_int_equal(tcsetattr(line.slave, TCSANOW, &modes), 0);
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	type(&line, all, sizeof(all));
	for (int i = 0; i < 2; i++)
		line = moved(&line, false);
	assert_int_equal(read(line.slave, got, sizeof(got)), sizeof(all));
	assert_memory_equal(got, all, sizeof(all));
	type(&line, "abc", 3);
	line = moved(&line, false);
	type(&line, "defg", 4);
	usleep(10000);
	assert_int_equal(read(line.slave, got, sizeof(got)), 7);
	assert_memory_equal(got, "abcdefg", 7);
	line_free(&line);
}

/* As much as is taken is put again; more stays where it is. */
static void test_much(void **state)
{
	static char bytes[TYPED_TAKE + 2], got[TYPED_TAKE + 200];
	struct line line = line_new();
	struct typed typed;

	(void)state;
	set(&line, ECHO, 0);
	for (size_t i = 0; i < TYPED_TAKE; i++)
		bytes[i] = (char)(i % 100 == 99 ? '\n' : 'a' + i % 26);
	type(&line, bytes, TYPED_TAKE);
	usleep(20000);
	line = moved(&line, true);
	for (size_t at = 0; at < TYPED_TAKE; at += 100) {
		assert_int_equal(read(line.slave, got, sizeof(got)), 100);
		assert_memory_equal(got, bytes + at, 100);
	}
	bytes[TYPED_TAKE] = '\n';
	type(&line, bytes, TYPED_TAKE + 1);
	usleep(20000);
	assert_int_equal(typed_take(&typed, line.slave), -EMSGSIZE);
	assert_int_equal(typed.length, 0);
	read_all(&line, got, sizeof(got));
	line_free(&line);
}

static void test_valid(void **state)
{
	uint8_t bytes[] = {TYPED_LINE, 'x', TYPED_CHARACTER, 'y'};
	struct typed typed = {bytes, sizeof(bytes)};

	(void)state;
	assert_true(typed_valid(&typed, true));
	assert_false(typed_valid(&typed, false));
	bytes[0] = TYPED_KINDS;
	assert_false(typed_valid(&typed, true));
	bytes[0] = TYPED_END;
	typed.length = 3;
	assert_false(typed_valid(&typed, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_keys),  cmocka_unit_test(test_much),
		cmocka_unit_test(test_valid),
	};

	if (!typed_works()) {
		print_message("the kernel does not let this user type for others\n");
		return 0;
	}
	return cmocka_run_group_tests_name("typed", tests, NULL, NULL);
}
