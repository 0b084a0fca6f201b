/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The mark of how long an earlier agent counted, as the next agent reads it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/measure/uptime_mark.h"

static int setup(void **state)
{
	*state = strdup("/tmp/iocom-counting-XXXXXX");
	return mkdtemp(*state) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/counting", (char *)*state);
	unlink(path);
	rmdir(*state);
	free(*state);
	return 0;
}

static uint64_t until(const char *directory, uint64_t note)
{
	struct iocom_err err = {""};
	uint64_t ns = 99;
	int fd;

	assert_int_equal(uptime_mark_open(&fd, directory, &ns, &err), 0);
	if (note)
		uptime_mark_note(fd, note);
	close(fd);
	return ns;
}

static void write_line(const char *directory, const char *line)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/counting", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(line, file);
	fclose(file);
}

static void test_notes(void **state)
{
	assert_int_equal(until(*state, 123456789012ULL), 0); /* the first agent ever */
	assert_int_equal(until(*state, 5), 123456789012ULL);
	assert_int_equal(until(*state, 0), 5); /* nothing is left of the longer number */
}

static void test_other_boot(void **state)
{
	write_line(*state, "00000000-1111-2222-3333-444444444444 00000000000777\n");
	assert_int_equal(until(*state, 0), 1);
}

static void test_garbage(void **state)
{
	static const char *const lines[] = {
		"", "\n", "x", "a-boot-id and words", "no-number -", "\xff\xfe\xfd"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		write_line(*state, lines[i]);
		assert_int_equal(until(*state, 0), 0);
	}
}

static void test_errors(void **state)
{
	struct iocom_err err = {""};
	uint64_t ns;
	int fd;

	(void)state;
	assert_int_equal(uptime_mark_open(&fd, "/no/such/directory", &ns, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/directory/counting"));
	uptime_mark_note(-1, 5); /* this must not crash */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_boot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("counting", tests, NULL, NULL);
}
