/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whether root's privilege is proven to be lost: each case changes a process of its own, as root,
 * well or with one thing left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/privilege.h"

#define SOME 64990 /* a user, and a group */

static const gid_t groups[] = {64995, 64992, 64994};

static int drop(const gid_t *list, size_t n, gid_t gid, uid_t uid)
{
	return setgroups(n, list) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ? -1 : 0;
}

static int dropped(void)
{
	return drop(groups, 3, SOME, SOME);
}

static int other_order(void)
{
	const gid_t same[] = {64992, 64994, 64995};

	return drop(same, 3, SOME, SOME);
}

static int group_more(void)
{
	const gid_t more[] = {64995, 64992, 64994, 0};

	return drop(more, 4, SOME, SOME);
}

static int group_less(void)
{
	return drop(groups, 2, SOME, SOME);
}

static int group_other(void)
{
	const gid_t other[] = {64995, 64992, 0};

	return drop(other, 3, SOME, SOME);
}

static int gid_other(void)
{
	return drop(groups, 3, SOME + 1, SOME);
}

static int uid_other(void)
{
	return drop(groups, 3, SOME, SOME + 1);
}

static int nothing(void)
{
	return setgroups(3, groups);
}

static int saved_uid(void)
{
	return setgroups(3, groups) || setresgid(SOME, SOME, SOME) || setresuid(SOME, SOME, 0);
}

static int real_uid(void)
{
	return setgroups(3, groups) || setresgid(SOME, SOME, SOME) || setresuid(0, SOME, SOME);
}

static int saved_gid(void)
{
	return setgroups(3, groups) || setresgid(SOME, SOME, 0) || setresuid(SOME, SOME, SOME);
}

/* Capabilities that stay permitted when the user changes. */
static int kept(void)
{
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || dropped();
}

static int kept_one(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct one[2] = {{.permitted = 1u << CAP_NET_BIND_SERVICE}};

	return kept() || syscall(SYS_capset, &header, one);
}

static int inheritable(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct one[2] = {{.inheritable = 1u << CAP_NET_BIND_SERVICE}};

	return kept() || syscall(SYS_capset, &header, one);
}

static int run_changed(int (*change)(void), uid_t uid, gid_t gid)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (change())
			_exit(255);
		_exit(-privilege_prove_dropped(uid, gid, groups, 3));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
	return -WEXITSTATUS(status);
}

static void test_lost(void **state)
{
	(void)state;
	assert_int_equal(run_changed(dropped, SOME, SOME), 0);
	assert_int_equal(run_changed(other_order, SOME, SOME), 0);
}

static void test_left(void **state)
{
	static int (*const changes[])(void) = {
		group_more, group_less, group_other, gid_other, uid_other, nothing,
		saved_uid,  real_uid,	saved_gid,   kept,	kept_one,  inheritable,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (run_changed(changes[i], SOME, SOME) != -EPERM)
			fail_msg("case %zu", i);
}

static void test_root(void **state)
{
	(void)state;
	assert_int_equal(run_changed(nothing, 0, 0), 0);
	assert_int_equal(run_changed(dropped, 0, 0), -EPERM);
}

static void test_no_groups(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(drop(NULL, 0, SOME, SOME) ||
		      privilege_prove_dropped(SOME, SOME, NULL, 0) != 0 ||
		      privilege_prove_dropped(SOME, SOME, groups, 1) != -EPERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_no_groups),
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
