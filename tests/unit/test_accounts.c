/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Users and groups from a name service that answers, hangs, is slow, and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "agent/guest/admission.h"
#include "user/clock.h"

/*
 * --- a name service: uid N below NOBODY is user "uN", also in group N + 1; group staff is 8, group
 * listed has members, and for group broken the service fails -----------------------------------
 */

#define NOBODY 100000

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* holding it stops the service */
static atomic_int asked;

static void service(void)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	asked++;
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *room, size_t size, struct passwd **found)
{
	service();
	*found = NULL;
	if (uid >= NOBODY)
		return 0;
	*entry = (struct passwd){.pw_uid = uid, .pw_gid = uid, .pw_name = room};
	snprintf(room, size, "u%u", (unsigned)uid);
	*found = entry;
	return 0;
}

int getpwnam_r(const char *name, struct passwd *entry, char *room, size_t size,
	       struct passwd **found)
{
	char *end;
	unsigned long uid = strtoul(name + (*name == 'u'), &end, 10);

	if (!strcmp(name, "broken"))
		return EIO;
	if (*name == 'u' && !*end)
		return getpwuid_r((uid_t)uid, entry, room, size, found);
	service();
	*found = NULL;
	return 0;
}

int getgrouplist(const char *name, gid_t group, gid_t *groups, int *count)
{
	(void)name;
	if (*count < 2)
		return -1;
	groups[0] = group;
	groups[1] = group + 1;
	*count = 2;
	return 2;
}

int getgrnam_r(const char *name, struct group *entry, char *room, size_t size, struct group **found)
{
	static char u20[] = "u20", u21[] = "u21", *members[] = {u20, u21, NULL}, *none[] = {NULL};

	(void)room;
	(void)size;
	service();
	*found = NULL;
	if (!strcmp(name, "broken"))
		return EIO;
	*entry = (struct group){.gr_gid = 8, .gr_mem = none};
	if (!strcmp(name, "listed"))
		*entry = (struct group){.gr_gid = 500, .gr_mem = members};
	else if (strcmp(name, "staff") != 0)
		return 0;
	*found = entry;
	return 0;
}

/* Answers get old without waiting. */
static _Atomic time_t later_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long rc = syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_BOOTTIME)
		now->tv_sec += later_s;
	return (int)rc;
}

/* --- the tests ------------------------------------------------------------------------ */

static struct counters counters;

static struct accounts *begin(void)
{
	struct accounts *s = NULL;

	counters = (struct counters){0};
	asked = 0;
	assert_int_equal(accounts_new(&s, &counters, NULL), 0);
	return s;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void test_answers(void **state)
{
	struct accounts *s = begin();
	struct account one;
	char name[64];
	bool stale;

	(void)state;
	assert_int_equal(accounts_find(s, 7, &one), 0);
	assert_string_equal(one.name, "u7");
	assert_int_equal(one.ngroups, 2);
	assert_true(account_has_group(&one, 8));
	assert_false(account_has_group(&one, 9));
	account_free(&one);
	/* this name came with the answer to the first question */
	accounts_say(s, 7, name, sizeof(name));
	assert_string_equal(name, "u7");
	accounts_say(s, 9, name, sizeof(name));
	assert_string_equal(name, "u9");
	assert_int_equal(accounts_find(s, 9, &one), 0); /* the groups are looked up separately */
	assert_int_equal(one.ngroups, 2);
	account_free(&one);
	assert_int_equal(accounts_count(s), 2);
	accounts_say(s, NOBODY, name, sizeof(name));
	assert_string_equal(name, "100000");
	assert_int_equal(accounts_find(s, NOBODY, &one), -ENOENT);
	assert_null(one.name);
	assert_int_equal(accounts_find(s, 7, &one), 0);
	assert_int_equal(accounts_member(s, "staff", &one, &stale), 1);
	assert_int_equal(accounts_member(s, "listed", &one, &stale), 0);
	assert_int_equal(accounts_member(s, "none", &one, &stale), -ENOENT);
	assert_int_equal(accounts_member(s, "broken", &one, &stale), -EIO);
	account_free(&one);
	assert_int_equal(accounts_find(s, 20, &one), 0);
	assert_int_equal(accounts_member(s, "staff", &one, &stale), 0);
	assert_int_equal(accounts_member(s, "listed", &one, &stale), 1);
	assert_false(one.stale || stale);
	account_free(&one);
	assert_int_equal(counters.names_failures, 0);
	accounts_free(s);
}

/* "No such user" is not kept for users who run jobs: the user may be added at any moment. */
static void test_exist(void **state)
{
	struct accounts *s = begin();

	(void)state;
	assert_int_equal(accounts_exist(s, "u7"), 1);
	assert_int_equal(accounts_exist(s, "7"), 1);
	assert_int_equal(accounts_exist(s, "7up"), 0);
	assert_int_equal(accounts_exist(s, "nosuch"), 0);
	assert_int_equal(accounts_exist(s, "u100000"), 0);
	assert_int_equal(accounts_exist(s, "100000"), 0);
	assert_int_equal(accounts_exist(s, "4294967303"), 0); /* no uid, though 7 in 32 bits */
	assert_int_equal(accounts_exist(s, "broken"), -EIO);
	assert_int_equal(accounts_exist(s, "@staff"), 1);
	assert_int_equal(accounts_exist(s, "@u7"), 0);
	assert_int_equal(accounts_exist(s, "staff"), 0);
	assert_int_equal(accounts_exist(s, "@broken"), -EIO);
	accounts_free(s);
}

static void test_kept(void **state)
{
	struct accounts *s = begin();
	struct account one;
	uint64_t begun = clock_boot_ns();
	char name[64];

	(void)state;
	for (int i = 0; i < 50; i++)
		accounts_say(s, 7, name, sizeof(name));
	/*
	 * The service is asked once per ACCOUNTS_FRESH_S; more often only if the machine delayed
	 * the test that long.
	 */
	assert_true(asked <= 1 + (int)((clock_boot_ns() - begun) / CLOCK_NS_PER_S));
	asked = 0;
	for (int i = 0; i < 5; i++)
		assert_int_equal(accounts_find(s, NOBODY, &one), -ENOENT);
	assert_int_equal(asked, 5);
	/* The number of kept answers is bounded. */
	for (uid_t uid = 1; uid <= 2 * ACCOUNTS_MAX; uid++) {
		assert_int_equal(accounts_find(s, uid, &one), 0);
		account_free(&one);
	}
	assert_int_equal(accounts_count(s), ACCOUNTS_MAX);
	accounts_free(s);
	accounts_free(NULL);
}

static void test_hangs(void **state)
{
	static const struct users_policy open = {.allow = "", .deny = ""};
	const struct job_order order = {.uid = 11};
	struct accounts *s = begin();
	struct users_policy denies = {
		.allow = "", .deny = "@staff", .member = accounts_member, .arg = s};
	struct admission_verdict v;
	struct account one;
	char name[64], why[256];
	bool stale;
	int rc;

	(void)state;
	assert_int_equal(accounts_find(s, 7, &one), 0);
	assert_true(users_may(
		&(struct users_policy){
			.allow = "", .deny = "@listed", .member = accounts_member, .arg = s},
		&one, why, sizeof(why)));
	account_free(&one);
	pthread_mutex_lock(&gate);
	assert_false(admission_user(&order, true, s, &open, &one, &v));
	assert_string_equal(v.reason, "user-slow");
	assert_non_null(strstr(v.text, "name service"));
	assert_int_equal(counters.names_failures, 1);
	accounts_say(s, 12, name, sizeof(name));
	assert_string_equal(name, "12");
	/* This user was asked for just now, but the groups are unknown: the user is refused. */
	assert_int_equal(accounts_find(s, 7, &one), 0);
	assert_int_equal(accounts_member(s, "staff", &one, &stale), -EHOSTDOWN);
	assert_int_equal(counters.names_failures, 3);
	assert_false(users_may(&denies, &one, why, sizeof(why)));
	assert_non_null(strstr(why, "deny_users"));
	account_free(&one);
	pthread_mutex_unlock(&gate);
	/* The late answer is kept for the next question. */
	for (int i = 0; i < 1000 && accounts_count(s) < 3; i++, nap())
		accounts_say(s, 7, name, sizeof(name));
	assert_int_equal(accounts_count(s), 3);
	assert_true(admission_user(&order, true, s, &open, &one, &v));
	account_free(&one);
	assert_int_equal(accounts_find(s, 7, &one), 0);
	while ((rc = accounts_member(s, "staff", &one, &stale)) == -EHOSTDOWN)
		nap();
	assert_int_equal(rc, 1);
	account_free(&one);
	accounts_free(s);
}

/* Returns why a job of user N is refused; "": it is not. */
static const char *refusal_of(struct accounts *s, uid_t uid, const char *allow, const char *deny)
{
	const struct users_policy policy = {
		.allow = allow, .deny = deny, .member = accounts_member, .arg = s};
	const struct job_order order = {.uid = uid};
	static struct admission_verdict v;
	struct account one;

	if (admission_user(&order, true, s, &policy, &one, &v))
		account_free(&one);
	return v.text;
}

#define IN_DOUBT "nobody is let in while deny_users has the group "

static void test_deny_in_doubt(void **state)
{
	struct accounts *s = begin();

	(void)state;
	assert_string_equal(refusal_of(s, 7, "", "@staff"), "user u7 is not let in (deny_users)");
	assert_string_equal(refusal_of(s, 20, "", "@staff"), "");
	/* Only the group's own list has this member. */
	assert_string_equal(refusal_of(s, 20, "", "@listed"),
			    "user u20 is not let in (deny_users)");
	assert_string_equal(refusal_of(s, 22, "", "@listed"), "");
	assert_string_equal(refusal_of(s, 20, "@listed", ""), "");
	assert_string_equal(refusal_of(s, 22, "", "@none"),
			    IN_DOUBT "none: this node knows no group of that name");
	assert_string_equal(refusal_of(s, 22, "", "@listed @broken"),
			    IN_DOUBT "broken: the name service fails to say who is in it");
	assert_string_equal(refusal_of(s, 22, "@none @broken", ""),
			    "user u22 is not among those let in (allow_users)");
	accounts_free(s);
}

/* Answers that were asked for before the service stopped: good for 5 s, then in doubt. */
static void test_deny_stale(void **state)
{
	struct accounts *s = begin();
	struct account one;

	(void)state;
	assert_string_equal(refusal_of(s, 22, "", "@listed"), "");
	assert_string_equal(refusal_of(s, 20, "@listed", ""), "");
	pthread_mutex_lock(&gate);
	later_s += ACCOUNTS_FRESH_S + 1;
	assert_string_equal(refusal_of(s, 22, "", "@listed"),
			    IN_DOUBT "listed: the name service does not answer, and who is in it "
				     "may have changed");
	assert_string_equal(refusal_of(s, 20, "", "@listed"),
			    "user u20 is not let in (deny_users)");
	assert_string_equal(refusal_of(s, 22, "", "u7"), "");
	/* An older answer lets in whom it names. */
	assert_string_equal(refusal_of(s, 20, "@listed", ""), "");
	assert_string_equal(refusal_of(s, 22, "@listed", ""),
			    "user u22 is not among those let in (allow_users)");
	assert_string_equal(refusal_of(s, 22, "", "@staff"),
			    IN_DOUBT "staff: the name service does not answer who is in it");
	assert_int_equal(accounts_find(s, 22, &one), 0);
	assert_true(one.stale);
	account_free(&one);
	pthread_mutex_unlock(&gate);
	/* The service is back. */
	for (int i = 0; i < 1000 && *refusal_of(s, 22, "", "@listed"); i++)
		nap();
	assert_string_equal(refusal_of(s, 22, "", "@listed"), "");
	accounts_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	      cmocka_unit_test(test_exist),
		cmocka_unit_test(test_kept),	      cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_deny_in_doubt), cmocka_unit_test(test_deny_stale),
	};

	return cmocka_run_group_tests_name("accounts", tests, NULL, NULL);
}
