/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The class of a job whose user names none (job_class.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "balancer/job_class.h"

#define WORDS_MAX 12

struct example {
	const char *command[WORDS_MAX];
	const char *class_name;
};

static const struct example examples[] = {
	{{"/usr/bin/grep", "-c", "x", "file"}, "grep"},
	{{"./align.py", "in"}, "align.py"},
	/* wrappers */
	{{"nice", "make", "-j4"}, "make"},
	{{"nice", "-n", "5", "make"}, "make"},
	{{"nice", "-n5", "make"}, "make"},
	{{"ionice", "-c", "3", "nice", "tar", "czf", "x"}, "tar"},
	{{"env", "-i", "-u", "HOME", "A=b", "/bin/gzip", "-c"}, "gzip"},
	{{"timeout", "-k", "2", "60", "xz", "a"}, "xz"},
	{{"timeout", "--signal=KILL", "60", "xz", "a"}, "xz"},
	{{"taskset", "0x3", "blender", "-b"}, "blender"},
	{{"taskset", "-c", "0-3", "blender", "-b"}, "blender"},
	{{"time", "-p", "nohup", "setsid", "stdbuf", "-o", "L", "cp", "a", "b"}, "cp"},
	{{"nice"}, "nice"},
	{{"timeout", "5"}, "timeout"},
	{{"env", "A=b"}, "env"},
	/* interpreters */
	{{"python3", "/home/ann/align.py", "--fast"}, "align.py"},
	{{"/usr/bin/python3.11", "-u", "-W", "ignore", "align.py"}, "align.py"},
	{{"python3", "-m", "pip", "install"}, "pip"},
	{{"python3", "-c", "print(1)"}, "python3"},
	{{"python3", "-uc", "print(1)"}, "python3"},
	{{"python3"}, "python3"},
	{{"perl", "-w", "count.pl"}, "count.pl"},
	{{"perl", "-ne", "print"}, "perl"},
	{{"Rscript", "--vanilla", "fit.R"}, "fit.R"},
	{{"java", "-Xmx2g", "-cp", "a:b", "org.example.Main"}, "org.example.Main"},
	{{"java", "-Xmx2g", "-jar", "/opt/picard.jar", "Sort"}, "picard.jar"},
	{{"pythonic", "x"}, "pythonic"},
	{{"node", "--max-old-space-size=99", "server.js"}, "server.js"},
	/* shells */
	{{"bash", "run.sh", "x"}, "run.sh"},
	{{"bash", "-e", "-o", "pipefail", "./run.sh"}, "run.sh"},
	{{"bash", "+x", "--norc", "run.sh"}, "run.sh"},
	{{"sh", "-c", "gzip -c a >b"}, "gzip"},
	{{"sh", "-ec", "gzip -c a >b"}, "gzip"},
	{{"sh", "-c", "exec nice -n 3 gzip -c a"}, "gzip"},
	{{"sh", "-c", "cd /data && export A=1; B=2 zcat x 2>/dev/null | sort | sort -u > y"},
	 "zcat+sort"},
	{{"sh", "-c", "make && make test || make clean & wait"}, "make"},
	{{"sh", "-c", "a\nb # c; d\n"}, "a+b"},
	{{"sh", "-c", "'/opt/my tool/run' \"a;b\" c\\ d"}, "run"},
	{{"sh", "-c", "grep \"$1\" \"$2\"", "sh", "x"}, "grep"},
	{{"sh", "-c", "bash -c 'python3 fit.py'"}, "fit.py"},
	{{"sh", "-c", "echo hello"}, "sh"},
	{{"sh", "-c", ""}, "sh"},
	{{"sh", "-c"}, "sh"},
	{{"bash", "-c", "for f in *; do gzip $f; done"}, "bash"},
	{{"bash", "-c", "if true; then a; fi"}, "bash"},
	{{"bash", "-c", "$TOOL x"}, "bash"},
	{{"bash", "-c", "nice `which x` y"}, "bash"},
	{{"bash", "-c", "(a; b)"}, "bash"},
	{{"bash", "-c", "a <<E\nx\nE"}, "bash"},
	{{"bash", "-c", "a 'b"}, "bash"},
	{{"bash", "-c", "diff <(sort a) b"}, "bash"},
};

static void test_examples(void **state)
{
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		job_class((char *const *)examples[i].command, out, sizeof(out));
		assert_string_equal(out, examples[i].class_name);
	}
}

static void test_text(void **state)
{
	char out[64];

	(void)state;
	job_class_text("rsync --server . /x", out, sizeof(out));
	assert_string_equal(out, "rsync");
	job_class_text("for i in 1; do true; done", out, sizeof(out));
	assert_string_equal(out, "");
}

/* Whatever the words are: it ends, and writes no more than there is room for. */
static void test_bounds(void **state)
{
	char *many[1002], *text = malloc(100001), out[8 + 1];

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < 1001; i++)
		many[i] = (char *)"nice";
	many[1001] = NULL;
	out[8] = 'x';
	job_class(many, out, 8);
	assert_string_equal(out, "nice");
	for (size_t i = 0; i < 100000; i++)
		text[i] = i % 2 ? ' ' : 'a';
	text[100000] = 0;
	job_class((char *const[]){(char *)"sh", (char *)"-c", text, NULL}, out, 8);
	assert_string_equal(out, "sh");
	text[4000] = 0;
	job_class_text(text, out, 8);
	assert_string_equal(out, "a");
	for (size_t i = 0; i < 1000; i++)
		text[i] = (char)("abc;"[i % 4]);
	text[1000] = 0;
	job_class_text(text, out, 8);
	assert_string_equal(out, "abc");
	job_class_text("alpha|beta|gamma", out, 8);
	assert_string_equal(out, "alpha+b");
	job_class((char *const[]){(char *)"a-long-program", NULL}, out, 8);
	assert_string_equal(out, "a-long-");
	assert_int_equal(out[8], 'x');
	free(text);
}

static void test_command(void **state)
{
	char *const words[] = {(char *)"env",	  (char *)"A=1", (char *)"taskset", (char *)"0x3",
			       (char *)"timeout", (char *)"-k",	 (char *)"1",	    (char *)"5",
			       (char *)"./ring",  (char *)"-n",	 (char *)"2",	    NULL};
	char *const plain[] = {(char *)"./ring", NULL}, *const nothing[] = {(char *)"nice", NULL};
	char *const text[] = {(char *)"sh", (char *)"-c", (char *)"./ring", NULL};

	(void)state;
	assert_ptr_equal(job_class_command(words), &words[8]);
	assert_ptr_equal(job_class_command(plain), plain);
	assert_ptr_equal(job_class_command(text), text);
	assert_null(job_class_command(nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
