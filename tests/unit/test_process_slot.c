/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Lock files for processes: one holder at a time, which can be found and killed; free when it
 * has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/process_slot.h"

static char directory[] = "/tmp/iocom-slot-XXXXXX";
static char path[64], other[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/0", directory);
	snprintf(other, sizeof(other), "%s/link", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return rmdir(directory);
}

static pid_t child_with(int *ready)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		int fd = process_slot_take(path, 4711);

		(void)!write(ends[1], &fd, sizeof(fd));
		if (fd < 0)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ends[0], ready, sizeof(*ready)), sizeof(*ready));
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void test_one_holder(void **state)
{
	int fd, ready, status;
	pid_t child, pid;
	uid_t uid;

	(void)state;
	assert_int_equal(process_slot_holder(path, &pid, &uid),
			 0); /* the file does not even exist */
	assert_int_equal(process_slot_kill(path), -ESRCH);
	child = child_with(&ready);
	assert_true(ready >= 0);
	assert_int_equal(process_slot_take(path, 1), -EWOULDBLOCK);
	assert_int_equal(process_slot_holder(path, &pid, &uid), 1);
	assert_true(pid == child && uid == 4711);
	assert_int_equal(process_slot_kill(path), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	/* The ended holder's entry names no process any more. */
	assert_int_equal(process_slot_holder(path, &pid, &uid), 0);
	assert_int_equal(process_slot_kill(path), -ESRCH);
	fd = process_slot_take(path, 0);
	assert_true(fd >= 0);
	close(fd);
}

/* The number in a file is not killed unless it is the holder's. */
static void test_strange(void **state)
{
	static const char *const lines[] = {"",	      "x",     "1 0\n",
					    "-1 0\n", "0 0\n", "99999999999999 1\n"};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uid_t uid;
	pid_t pid;

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, lines[i], strlen(lines[i]), 0), strlen(lines[i]));
		assert_int_equal(process_slot_holder(path, &pid, &uid), 1);
		assert_true(pid == 0 || pid > 1);
		if (!pid)
			assert_int_equal(process_slot_kill(path), -ESRCH);
	}
	close(fd);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(process_slot_take(other, 0), -ELOOP);
	assert_int_equal(process_slot_holder(other, &pid, &uid), -ELOOP);
	unlink(other);
	assert_int_equal(mkfifo(other, 0600), 0);
	assert_int_equal(process_slot_take(other, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_holder, setup, NULL),
		cmocka_unit_test_setup_teardown(test_strange, NULL, teardown),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
