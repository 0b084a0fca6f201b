/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which files a command names, and what tells it from others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "balancer/job_input.h"

#define COMMAND(...) ((char *[]){__VA_ARGS__, NULL})

static char dir[] = "/tmp/iocom-test-input-XXXXXX";

static void make(const char *name, long bytes)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), bytes), 0);
	fclose(file);
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || chdir(dir))
		return -1;
	make("a", 1000);
	make("b", 200);
	make("with space", 30);
	make("empty", 0);
	return mkdir("directory", 0755);
}

static int finish(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return chdir("/") || system(command);
}

static void test_words(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/b", dir);
	assert_int_equal(job_input(COMMAND("sort", "a")).bytes, 1000);
	assert_int_equal(job_input(COMMAND("sort", "-o", "none", "a", path)).bytes, 1200);
	assert_int_equal(job_input(COMMAND("sort", "a", "./a", "a")).bytes, 1000); /* once */
	assert_int_equal(job_input(COMMAND("a", "b")).bytes, 200); /* not the command itself */
	assert_int_equal(job_input(COMMAND("cat", "with space")).bytes, 30);
	assert_int_equal(job_input(COMMAND("cat", "empty")).bytes, 0);
	assert_int_equal(job_input(COMMAND("cat")).bytes, -1);
	assert_int_equal(job_input(COMMAND("cat", "none", "", "directory", "/dev/null")).bytes, -1);
	assert_int_equal(job_input(COMMAND("dd", "if=a", "of=b", "bs=1M")).bytes, 1000);
	assert_int_equal(job_input(COMMAND("x", "--input=b")).bytes, 200);
}

static void test_shell(void **state)
{
	(void)state;
	assert_int_equal(job_input(COMMAND("sh", "-c", "sort a >b")).bytes, 1000);
	assert_int_equal(job_input(COMMAND("sh", "-c", "sort a > b 2>&1")).bytes, 1000);
	assert_int_equal(job_input(COMMAND("sh", "-c", "sort <a; cat 'b'|wc")).bytes, 1200);
	assert_int_equal(job_input(COMMAND("sh", "-c", "cat a>>\"b\";cat b")).bytes, 1200);
	assert_int_equal(job_input(COMMAND("sh", "-c", "echo > >")).bytes, -1);
}

/* Files and words are bounded, and a name of any length does no harm. */
static void test_bounds(void **state)
{
	static char name[JOB_INPUT_FILES + 8][16], text[20000];
	char *command[JOB_INPUT_FILES + 10] = {"cat"};

	(void)state;
	for (int i = 0; i < JOB_INPUT_FILES + 8; i++) {
		snprintf(name[i], sizeof(name[i]), "many%d", i);
		make(name[i], 10);
		command[i + 1] = name[i];
	}
	assert_int_equal(job_input(command).bytes, 10 * JOB_INPUT_FILES);
	for (size_t i = 0; i + 1 < sizeof(text); i++)
		text[i] = i < 9000 ? 'x' : i % 2 ? ' ' : 'b';
	assert_int_equal(job_input(COMMAND("sh", "-c", text)).bytes, 200);
}

static void test_id(void **state)
{
	int64_t first = job_input(COMMAND("sort", "a")).id;

	(void)state;
	assert_true(first >= 0 && first < 1ll << 53);
	assert_int_equal(job_input(COMMAND("sort", "a")).id, first);
	assert_int_not_equal(job_input(COMMAND("sort", "b")).id, first);
	assert_int_not_equal(job_input(COMMAND("sort", "-r", "a")).id, first);
	assert_int_not_equal(job_input(COMMAND("sor", "ta")).id,
			     job_input(COMMAND("sort", "a")).id);
	make("a", 1001); /* another file than before */
	assert_int_not_equal(job_input(COMMAND("sort", "a")).id, first);
	assert_true(job_input(COMMAND("true")).id >= 0);
	/* without files: the words alone */
	assert_int_equal(job_input_words(COMMAND("sort", "a")).bytes, -1);
	assert_int_equal(job_input_words(COMMAND("sort", "none")).id,
			 job_input(COMMAND("sort", "none")).id);
	assert_int_not_equal(job_input_words(COMMAND("sort", "a")).id,
			     job_input_words(COMMAND("sort", "b")).id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_shell),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_id),
	};

	return cmocka_run_group_tests(tests, begin, finish);
}
