/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A file that stays open: what each reading sees, and what happens to one that is gone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/kept_file.h"

#define PATH "/tmp/iocom-kept-file-test"

static void put(const char *text)
{
	int fd = open(PATH, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void test_again(void **state)
{
	struct kept_file file = {0};
	char text[16];
	int first;

	(void)state;
	put("one\n");
	assert_int_equal(kept_file_read(&file, PATH, text, sizeof(text)), 4);
	assert_string_equal(text, "one\n");
	first = file.open;
	assert_true(first > 0);
	put("longer\n");
	assert_int_equal(kept_file_read(&file, PATH, text, sizeof(text)), 7);
	assert_string_equal(text, "longer\n");
	put("");
	assert_int_equal(kept_file_read(&file, PATH, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(file.open, first);
	put("one\n");
	assert_int_equal(kept_file_read(&file, PATH, text, 3), 2);
	assert_string_equal(text, "on");
	kept_file_close(&file);
	kept_file_close(&file);
	assert_int_equal(fcntl(first - 1, F_GETFD), -1);
	unlink(PATH);
}

/* What the kernel makes anew at each reading: this program's name, for example. */
static void test_of_the_kernel(void **state)
{
	struct kept_file file = {0};
	char text[32];

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "before"), 0);
	assert_int_equal(kept_file_read(&file, "/proc/self/comm", text, sizeof(text)), 7);
	assert_string_equal(text, "before\n");
	assert_int_equal(prctl(PR_SET_NAME, "afterwards"), 0);
	assert_int_equal(kept_file_read(&file, "/proc/self/comm", text, sizeof(text)), 11);
	assert_string_equal(text, "afterwards\n");
	kept_file_close(&file);
}

/* Makes FILE's descriptor one whose reading fails, as that of a removed cgroup's file does. */
static void spoil(const struct kept_file *file)
{
	int directory = open("/", O_RDONLY | O_CLOEXEC);

	assert_true(directory >= 0);
	assert_int_equal(dup2(directory, file->open - 1), file->open - 1);
	close(directory);
}

/* One that fails is opened anew, once: what is there now counts. */
static void test_gone(void **state)
{
	struct kept_file file = {0};
	char text[16];

	(void)state;
	put("old");
	assert_int_equal(kept_file_read(&file, PATH, text, sizeof(text)), 3);
	spoil(&file);
	put("new");
	assert_int_equal(kept_file_read(&file, PATH, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	spoil(&file);
	unlink(PATH);
	assert_int_equal(kept_file_read(&file, PATH, text, sizeof(text)), -ENOENT);
	assert_int_equal(file.open, 0);
	assert_int_equal(kept_file_read(&file, "/", text, sizeof(text)), -EISDIR);
	assert_int_equal(file.open, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_of_the_kernel),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
