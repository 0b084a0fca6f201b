/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which users' jobs of other nodes are accepted; every rule with a counterexample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "balancer/settings/settings.h"
#include "agent/guest/users.h"

static gid_t groups[] = {1001, 1}; /* uid 1 is daemon, a user of every Debian */

struct question {
	const char *what;
	bool allow_root;
	uid_t min_uid;
	const char *allow, *deny;
	uid_t uid;
	const char *name;
	const char *refused_by; /* NULL: the user is accepted */
};

static const struct question questions[] = {
	{"a user", false, 1000, "", "", 1001, "alice", NULL},
	{"a service", false, 1000, "", "", 999, "www", "(min_uid)"},
	{"the first user", false, 1000, "", "", 1000, "bob", NULL},
	{"a service, no bound", false, 0, "", "", 33, "www", NULL},
	{"root", false, 0, "", "", 0, "root", "(allow_root)"},
	{"root, named", false, 0, "root", "", 0, "root", "(allow_root)"},
	{"root, let in", true, 1000, "", "", 0, "root", NULL},
	{"denied by name", false, 1000, "", "alice", 1001, "alice", "(deny_users)"},
	{"denied by uid", false, 1000, "", "7,1001", 1001, "alice", "(deny_users)"},
	{"denied by group", false, 1000, "", "@daemon", 1001, "alice", "(deny_users)"},
	{"another is denied", false, 1000, "", "alic,lice,10010", 1001, "alice", NULL},
	{"allowed by name", false, 1000, "bob, alice", "", 1001, "alice", NULL},
	{"allowed by group", false, 1000, "bob\t@daemon", "", 1001, "alice", NULL},
	{"another is allowed", false, 1000, "bob", "", 1001, "alice", "(allow_users)"},
	{"a group nobody has", false, 1000, "@no-such-group", "", 1001, "alice", "(allow_users)"},
	{"allowed in spite of doubt", false, 1000, "@no-such-group,alice", "", 1001, "alice", NULL},
	{"a denied group nobody has", false, 1000, "", "@no-such-group", 1001, "alice",
	 "nobody is let in while deny_users has the group no-such-group: this node knows no group"},
	{"denied in spite of doubt", false, 1000, "", "@no-such-group,alice", 1001, "alice",
	 "user alice is not let in (deny_users)"},
	{"root, and doubt", true, 1000, "", "@no-such-group", 0, "root", NULL},
	{"allowed and denied", false, 1000, "alice", "alice", 1001, "alice", "(deny_users)"},
	{"a service, allowed", false, 1000, "www", "", 33, "www", NULL},
	{"blanks allow all", false, 1000, " , ", "", 1001, "alice", NULL},
};

static void test_questions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		const struct question *q = &questions[i];
		struct users_policy policy = {q->allow_root, q->min_uid, q->allow,
					      q->deny,	     NULL,	 NULL};
		struct account one = {q->uid, 1001, (char *)q->name, groups, 2, false};
		char why[256];
		bool may = users_may(&policy, &one, why, sizeof(why));

		if (may != !q->refused_by || (!may && !strstr(why, q->refused_by)))
			fail_msg("%s: %s, \"%s\"", q->what, may ? "let in" : "refused", why);
	}
}

static void test_short_room(void **state)
{
	struct users_policy policy = {.allow = "", .deny = "alice", .min_uid = 0};
	struct account one = {1001, 1001, (char *)"alice", groups, 2, false};
	char why[8];

	(void)state;
	assert_false(users_may(&policy, &one, why, sizeof(why)));
	assert_true(strlen(why) < sizeof(why));
}

static int load(const char *flag, const char *value, struct settings *s, struct iocom_err *err)
{
	char *argv[] = {(char *)"iocomd", (char *)flag, (char *)value, NULL};

	memset(s, 0, sizeof(*s));
	return config_load(&settings_program, 3, argv, s, err);
}

static void test_settings(void **state)
{
	static const char *const bad[] = {"alice;bob", "@", "alice, @", "a b\nc", "*"};
	struct iocom_err err = {0};
	struct settings s;

	(void)state;
	assert_int_equal(load("--deny-users", "alice, 33 @wheel,DOM\\\\bob", &s, &err), 0);
	assert_string_equal(s.deny_users, "alice, 33 @wheel,DOM\\\\bob");
	assert_int_equal(s.min_uid, 1000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		err.text[0] = 0;
		assert_int_equal(load("--allow-users", bad[i], &s, &err), CONFIG_E_USAGE);
		assert_non_null(strstr(err.text, "allow-users"));
	}
	assert_int_equal(load("--min-uid", "-1", &s, &err), CONFIG_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_short_room),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests_name("users", tests, NULL, NULL);
}
