/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The owner's part of an agent: who gets in, who may change that, what survives a restart, and how
 * guests are expelled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/guest/guest_own.h"
#include "agent/owner/owner_own.h"
#include "balancer/settings/settings_live.h"
#include "tests/lib/guest_stage.h"
#include "tests/lib/logged.h"
#include "tests/unit/guest_accounts.h"
#include "user/clock.h"
#include "user/record.h"

static struct owner_part *part;

/* --- a disk that fails, and what a power cut would leave --- */

static int sync_fails; /* errno of the next syncs of a directory; 0: they are done */
static unsigned renames_watched, without_rules;
static char rules_path[160];

int sync_name(const char *path)
{
	(void)path;
	return -sync_fails;
}

int rename(const char *from, const char *to)
{
	int rc = renameat(AT_FDCWD, from, AT_FDCWD, to);

	if (*rules_path) {
		renames_watched++;
		without_rules += faccessat(AT_FDCWD, rules_path, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
	}
	return rc;
}

static char devices[96];
static struct iocom_err err;
static char told[IOCOM_NAME_MAX];
static bool told_open;

static bool admits(void *arg, const struct guest_asking *asking, char *why, size_t size)
{
	(void)arg;
	return owner_part_admit(part, asking, why, size);
}

static void own_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = gstage.own;
}

static void take_says(void *arg, bool accepts, const char *says)
{
	(void)arg;
	told_open = accepts;
	snprintf(told, sizeof(told), "%s", says);
}

static void begin(void)
{
	const struct owner_config config = {.base = &gstage.base,
					    .devices = devices,
					    .ports = {.own_vector = own_vector, .says = take_says}};

	assert_int_equal(owner_part_new(&part, &config, &err), 0);
	gstage.guest->config.ports.owner = admits;
	part->guest = gstage.guest;
	/* No control groups of the machine in this test. */
	owner_part_tell(part);
}

static void begin_again(void)
{
	owner_part_free(part);
	begin();
}

static int setup(void **state)
{
	char pts[128];

	if (gstage_setup(state) || logged_begin(&gstage.log))
		return -1;
	/* A scope that no cgroup can have: caps are by admission only. */
	strcpy(gstage.set.scope_cgroup, "../none");
	sync_fails = 0;
	*rules_path = 0;
	gstage.own.cores = 4;
	gstage.own.cpu_speed = gstage.own.cpu_burst = 1;
	gstage.own.disk_mb_per_s = 100;
	gstage.own.network_mb_per_s = 100;
	snprintf(devices, sizeof(devices), "%s/dev", gstage.dir);
	snprintf(pts, sizeof(pts), "%s/pts", devices);
	if (mkdir(devices, 0700) || mkdir(pts, 0700))
		return -1;
	begin();
	return 0;
}

static int teardown(void **state)
{
	owner_part_free(part);
	logged_end();
	return gstage_teardown(state);
}

/* What UID at node FROM ("": this one) gets for words with '|' between them. */
static int ask(uid_t uid, const char *from, const char *words)
{
	struct owner_ask a = {.reason = "backup"};
	char copy[400], *rest = NULL;
	json_t *answer = NULL;
	int rc;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
		snprintf(a.words[a.nwords++], OWNER_WORD_MAX, "%s", word);
	err.text[0] = 0;
	rc = owner_part_obey(part, &a, uid, from, &answer, &err);
	json_decref(answer);
	return rc;
}

static void obeys(const char *words)
{
	if (ask(0, "", words))
		fail_msg("`%s`: %s", words, err.text);
}

/* What a job of this need gets: "" it is let in, else the text of the refusal. */
static const char *refusal(const char *job, uid_t uid, const struct need *need)
{
	static char text[PEER_TEXT_MAX];
	struct job_order order = gstage_order(job);
	const struct peer_grant *g;

	order.uid = uid;
	strcpy(order.class_name, "scan");
	if (need)
		order.need = *need;
	g = gstage_admit(&order);
	if (!g->granted)
		assert_string_equal(g->reason, "owner");
	snprintf(text, sizeof(text), "%s", g->text);
	return text;
}

static struct need need_of(enum need_field field, double value)
{
	struct need need;

	need_init(&need);
	need_set(&need, field, value, NEED_OPTION);
	return need;
}

static void test_state_counts_at_once(void **state)
{
	(void)state;
	assert_string_equal(refusal("n2-1-1", 1000, NULL), "");
	obeys("close");
	assert_string_equal(told, "closed: backup");
	assert_false(told_open);
	assert_string_equal(refusal("n2-1-2", 1000, NULL), "closed: backup");
	obeys("drain");
	assert_string_equal(refusal("n2-1-3", 1000, NULL), "draining: backup");
	/* A job of this node itself always gets its place. */
	assert_string_equal(refusal("n1-1-4", 1000, NULL), "");
	obeys("resume");
	assert_true(told_open);
	assert_string_equal(refusal("n2-1-5", 1000, NULL), "");
	assert_int_equal(gstage.counters.owner_changes, 3);
}

static void test_forced_jobs_ask_too(void **state)
{
	struct job_order order = gstage_order("n2-1-1");

	(void)state;
	order.forced = true;
	obeys("close");
	assert_string_equal(gstage_admit(&order)->text, "closed: backup");
}

static void test_users_and_classes(void **state)
{
	(void)state;
	obeys("users|deny|anna");
	assert_string_equal(refusal("n2-1-1", 1000, NULL), "denies user anna (users deny anna)");
	assert_string_equal(refusal("n2-1-2", 1001, NULL), "");
	obeys("users|deny|@silent");
	assert_non_null(strstr(refusal("n2-1-3", 1001, NULL), "denies everybody while"));
	obeys("users|deny|none");
	obeys("users|allow|bert");
	assert_string_equal(refusal("n2-1-4", 1000, NULL),
			    "allows only some users (users allow bert)");
	obeys("users|allow|@users");
	assert_string_equal(refusal("n2-1-5", 1000, NULL), "");
	obeys("users|allow|all");
	obeys("classes|deny|make,scan");
	assert_string_equal(refusal("n2-1-6", 1000, NULL), "denies jobs of class scan");
	obeys("classes|deny|none");
	obeys("classes|allow|make");
	assert_string_equal(refusal("n2-1-7", 1000, NULL),
			    "allows only some classes (classes allow make)");
}

static void test_faucets(void **state)
{
	struct need disk = need_of(NEED_IO_PER_S, 200), network = need_of(NEED_COM_MS, 2000);

	(void)state;
	obeys("close|disk");
	assert_string_equal(refusal("n2-1-1", 1000, &disk),
			    "has closed the disk, the job needs 200 requests/s of it");
	assert_string_equal(refusal("n2-1-2", 1000, &network), "");
	assert_string_equal(refusal("n2-1-3", 1000, NULL), "");
	assert_true(told_open);
	obeys("close|network");
	assert_string_equal(refusal("n2-1-4", 1000, &network),
			    "has closed the network, the job needs 2 s of it");
	obeys("open|disk|network");
	assert_string_equal(refusal("n2-1-5", 1001, &disk), "");
}

static void test_caps_by_admission(void **state)
{
	struct need need = need_of(NEED_MEMORY_MB, 300);

	(void)state;
	obeys("cap|memory=50%");
	assert_string_equal(refusal("n2-1-1", 1000, &need), "");
	assert_string_equal(refusal("n3-1-2", 1001, &need),
			    "caps memory: guests need 300 MB and the job 300 MB, 500 MB are for "
			    "guests");
	obeys("cap|none");
	obeys("cap|cpu=50%");
	need = need_of(NEED_MEMORY_MB, 1);
	assert_string_equal(refusal("n3-1-3", 1001, &need), "");
	assert_string_equal(refusal("n3-1-4", 1001, &need),
			    "caps cpu: 2 guests are there, 2 cores are for guests");
	obeys("cap|none");
	obeys("cap|disk=20MB/s");
	need = need_of(NEED_IO_PER_S, 100);
	need_set(&need, NEED_IO_SIZE_KB, 150, NEED_OPTION);
	assert_string_equal(refusal("n3-1-5", 1001, &need), "");
	assert_string_equal(refusal("n3-1-6", 1001, &need),
			    "caps the disk: guests need 15 MB/s and the job 15 MB/s, 20 MB/s are "
			    "for guests");
	obeys("cap|none");
	obeys("cap|network=10%");
	gstage.own.sent_mb_per_s = 8;
	gstage.own.received_mb_per_s = 8;
	assert_non_null(strstr(refusal("n3-1-7", 1001, NULL), "caps the network: 16 MB/s go"));
	gstage.own.sent_mb_per_s = 0;
	assert_string_equal(refusal("n3-1-8", 1001, NULL), "");
}

/* The warnings in the answer to WORDS, with " | " between them. */
static const char *warnings(const char *words)
{
	static char all[2000];
	struct owner_ask a = {0};
	char copy[400], *rest = NULL;
	json_t *answer = NULL, *text;
	size_t i;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
		snprintf(a.words[a.nwords++], OWNER_WORD_MAX, "%s", word);
	assert_int_equal(owner_part_obey(part, &a, 0, "", &answer, &err), 0);
	*all = 0;
	json_array_foreach (json_object_get(answer, "warnings"), i, text)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " | " : "",
			 json_string_value(text));
	json_decref(answer);
	return all;
}

static void test_caps_beyond_the_node(void **state)
{
	(void)state;
	assert_string_equal(warnings("cap|memory=4G"),
			    "`cap memory=4G` is no cap here: node n1 has only 953.7 M");
	assert_string_equal(warnings("show"),
			    "`cap memory=4G` is no cap here: node n1 has only 953.7 M");
	assert_string_equal(warnings("cap|memory=500M|disk=99MB/s|cpu=100%"), "");
	assert_string_equal(warnings("cap|disk=200MB/s|network=300MB/s"),
			    "`cap disk=200MB/s` is no cap here: node n1 has only 100 MB/s | "
			    "`cap network=300MB/s` is no cap here: node n1 has only 100 MB/s");
	gstage.own.disk_mb_per_s = gstage.own.network_mb_per_s = 0; /* nobody knows */
	assert_string_equal(warnings("show"), "");
}

static void test_unknown_names(void **state)
{
	(void)state;
	assert_string_equal(warnings("users|allow|anna,@users"), "");
	assert_string_equal(
		warnings("users|allow|anna,nosuch,@none"),
		"`users allow nosuch`: node n1 knows no user nosuch; the entry is without "
		"effect until there is one | `users allow @none`: node n1 knows no group "
		"none; the entry is without effect until there is one");
	assert_string_equal(warnings("users|allow|all"), "");
	assert_string_equal(warnings("users|deny|@none"),
			    "`users deny @none`: node n1 knows no group none; everybody is denied "
			    "until there is one");
	assert_string_equal(warnings("users|deny|@silent,nosuch"), ""); /* nobody can say */
	strcpy(gstage.set.owners, "anna, nosuch");
	strcpy(gstage.set.administrators, "other");
	owner_part_reload(part);
	assert_int_equal(logged("`owners = nosuch`: node n1 knows no user nosuch;"), 1);
	assert_int_equal(logged("`administrators = other`: node n1 knows no user other;"), 1);
	assert_int_equal(logged("knows no"), 2);
}

static void test_how_caps_are_held(void **state)
{
	char held[256];

	(void)state;
	obeys("cap|cpu=50%|network=10%");
	owner_caps_held(part, OWNER_CPU, held, sizeof(held));
	assert_non_null(strstr(held, "by admission only: a scope is a path"));
	owner_caps_held(part, OWNER_NETWORK, held, sizeof(held));
	assert_string_equal(held, "by admission only: control groups do not cap networks");
}

static void test_rights(void **state)
{
	(void)state;
	assert_int_equal(ask(1000, "", "close"), -EPERM);
	assert_non_null(strstr(err.text, "user anna may not change the owner's rules of node n1"));
	assert_int_equal(ask(0, "n2", "close"), -EPERM); /* root of another node */
	assert_non_null(strstr(err.text, "root of node n2 is not root of node n1, "));
	assert_non_null(
		strstr(err.text, "if the setting administrators (or owners) of n1 named root"));
	assert_int_equal(ask(ACCOUNTS_SILENT, "", "close"), -EPERM);
	assert_int_equal(ask(1000, "", "nonsense"), -EPERM);
	assert_int_equal(ask(1000, "", "expel"), -EPERM);
	assert_int_equal(ask(1000, "", "show"), 0);
	assert_int_equal(gstage.counters.owner_refused, 5);
	assert_int_equal(logged("owner: refused 1000@n1 (uid 1000)"), 3);
	strcpy(gstage.set.owners, "anna");
	assert_int_equal(ask(1000, "", "close"), 0);
	assert_int_equal(ask(1000, "n2", "drain"), 0);
	assert_int_equal(ask(1001, "n2", "open"), -EPERM);
	strcpy(gstage.set.administrators, "root");
	assert_int_equal(ask(0, "n2", "drain"), 0);
	strcpy(gstage.set.administrators, "@users");
	assert_int_equal(ask(1001, "n2", "resume"), 0);
	assert_string_equal(part->rules.by, "1001@n2");
	assert_int_equal(logged("owner: 1001@n2 (uid 1001): resume (backup): done"), 1);
}

static void test_presence(void **state)
{
	char path[160];
	time_t now = (time_t)(loop_real_ns(gstage.base.loop) / CLOCK_NS_PER_S);
	struct timespec used[2] = {{.tv_sec = now - 5}, {.tv_sec = now - 5}};
	const unsigned skip[] = {3};
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/pts/3", devices);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, used), 0);
	close(fd);
	assert_int_equal(owner_presence_newest(devices, NULL, 0), now - 5);
	assert_int_equal(owner_presence_newest(devices, skip, 1), 0); /* a job's */
	assert_int_equal(owner_presence_newest("/nowhere", NULL, 0), 0);
	obeys("presence|on");
	assert_string_equal(told, "closed: somebody works there");
	assert_string_equal(refusal("n2-1-1", 1000, NULL), "closed: somebody works there");
	gstage_pass(594 * 1000);
	assert_string_equal(refusal("n2-1-2", 1000, NULL), "closed: somebody works there");
	gstage_pass(2 * 1000);
	assert_string_equal(refusal("n2-1-3", 1000, NULL), "");
	/* A key is pressed at the console. */
	now = (time_t)(loop_real_ns(gstage.base.loop) / CLOCK_NS_PER_S);
	snprintf(path, sizeof(path), "%s/tty1", devices);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	used[0].tv_sec = used[1].tv_sec = now;
	assert_int_equal(futimens(fd, used), 0);
	close(fd);
	gstage_pass(2 * 1000);
	assert_string_equal(refusal("n2-1-4", 1000, NULL), "closed: somebody works there");
	/* The names of other terminals do not count. */
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/tty0", devices);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(futimens(fd, used), 0);
	close(fd);
	gstage_pass(2 * 1000);
	assert_string_equal(refusal("n2-1-5", 1000, NULL), "");
	obeys("presence|off");
}

/* --- windows --- */

static void put(const char *name, const char *text, mode_t mode)
{
	char path[200];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", devices, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(path, mode), 0);
}

#define SESSION(active, class, type)                                                               \
	"# This is private data. Do not parse.\nUID=1000\nACTIVE=" active                          \
	"\nSTATE=active\nTYPE=" type "\nCLASS=" class "\nVTNR=2\n"

static void test_graphical_sessions(void **state)
{
	char ids[OWNER_SESSIONS][OWNER_SESSION_ID], path[200];

	(void)state;
	assert_int_equal(owner_sessions_find("/nowhere", ids), 0);
	put("1", SESSION("1", "user", "tty"), 0644);
	put("2", SESSION("0", "user", "x11"), 0644);
	put("c3", SESSION("1", "greeter", "wayland"), 0644);
	put("4", SESSION("1", "user-early", "x11"), 0644);
	put("5", "", 0644);
	put("6 -H host", SESSION("1", "user", "x11"), 0644);
	put("aVeryLongNameThatNoSessionEverHadYet", SESSION("1", "user", "x11"), 0644);
	put("7", SESSION("1", "user", "x11vnc"), 0644);
	snprintf(path, sizeof(path), "%s/8", devices);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/9", devices);
	assert_int_equal(symlink("c10", path), 0);
	assert_int_equal(owner_sessions_find(devices, ids), 0);
	put("c10", SESSION("1", "user", "wayland"), 0644);
	assert_int_equal(owner_sessions_find(devices, ids), 1);
	assert_string_equal(ids[0], "c10");
	for (int i = 100; i < 200; i++) {
		snprintf(path, sizeof(path), "%d", i);
		put(path, SESSION("1", "user", "x11"), 0644);
	}
	assert_int_equal(owner_sessions_find(devices, ids), OWNER_SESSIONS);
}

static uint64_t used(const char *text)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", text);
	return owner_sessions_read(copy, 1000);
}

static void test_what_loginctl_says(void **state)
{
	(void)state;
	assert_int_equal(used("IdleHint=no\nIdleSinceHint=0\nLockedHint=no\n"), 1000);
	assert_int_equal(used("IdleHint=no\nIdleSinceHint=0\nLockedHint=yes\n"), 0);
	assert_int_equal(used("IdleHint=yes\nIdleSinceHint=700999999\nLockedHint=no\n"), 700);
	assert_int_equal(used("LockedHint=yes\nIdleSinceHint=800000000\nIdleHint=yes"), 800);
	assert_int_equal(used("IdleHint=yes\nIdleSinceHint=2000000000\n"), 0); /* not yet */
	assert_int_equal(used("IdleHint=yes\nIdleSinceHint=700000000\n\nIdleHint=no\n"), 1000);
	assert_int_equal(used("IdleHint=yes\nIdleSinceHint=5000000\n\n"
			      "IdleHint=yes\nIdleSinceHint=9000000\n\n"
			      "IdleHint=yes\nIdleSinceHint=7000000\n"),
			 9);
	/* Nobody knows. */
	assert_int_equal(used("Failed to connect to bus\n"), 1000);
	assert_int_equal(used("IdleHint=perhaps\nIdleHint"), 1000);
}

static void loginctl_ends(void)
{
	for (int i = 0; i < 500 && part->sessions.entry.fd >= 0; i++) {
		usleep(10000);
		gstage_pass(0);
	}
	assert_int_equal(part->sessions.entry.fd, -1);
}

/* Asks loginctl, which is SCRIPT, and returns what others are told then. */
static const char *windows(const char *script)
{
	unlink(part->config.loginctl);
	put("loginctl", script, 0755);
	gstage_pass(5000);
	owner_part_chores(part);
	loginctl_ends();
	owner_part_chores(part);
	return told;
}

static void test_presence_in_windows(void **state)
{
	static char program[160];
	char hang[170];

	(void)state;
	snprintf(program, sizeof(program), "%s/loginctl", devices);
	part->config.loginctl = program;
	part->config.sessions = devices;
	obeys("presence|on");
	/* Nobody is asked where there are no windows. */
	put("1", SESSION("1", "user", "tty"), 0644);
	assert_string_equal(windows("#!/bin/sh\necho IdleHint=no\n"), "");
	put("c2", SESSION("1", "user", "wayland"), 0644);
	assert_string_equal(windows("#!/bin/sh\n"
				    "[ \"$*\" = 'show-session --property=IdleHint "
				    "--property=IdleSinceHint --property=LockedHint -- c2' ] && "
				    "echo IdleHint=no\n"),
			    "closed: somebody works there");
	assert_string_equal(refusal("n2-1-1", 1000, NULL), "closed: somebody works there");
	/* Idle from now on, and after ten minutes guests get in. */
	assert_string_equal(windows("#!/bin/sh\necho IdleHint=yes\n"),
			    "closed: somebody works there");
	gstage_pass(600 * 1000);
	assert_string_equal(windows("#!/bin/sh\necho IdleHint=yes\n"), "");
	assert_int_equal(logged("cannot learn"), 0);
	/* What cannot be learned is taken for granted, and said once. */
	assert_string_equal(windows("#!/bin/sh\nexit 1\n"), "closed: somebody works there");
	assert_string_equal(windows("#!/bin/sh\nexit 1\n"), "closed: somebody works there");
	assert_int_equal(logged("graphical sessions here (loginctl says nothing)"), 1);
	part->config.loginctl = "/nowhere/loginctl";
	part->sessions.complained = false;
	gstage_pass(5000);
	owner_part_chores(part);
	assert_int_equal(logged("graphical sessions here (No such file or directory)"), 1);
	part->config.loginctl = program;
	/* One that hangs is not asked again, nor waited for; much text is cut. */
	put("loginctl",
	    "#!/bin/sh\nwhile [ -p \"$0.hang\" ]; do sleep 0.01; done\n"
	    "head -c 100000 /dev/zero\n",
	    0755);
	put("c2", SESSION("1", "user", "x11"), 0644);
	snprintf(hang, sizeof(hang), "%s.hang", program);
	assert_int_equal(mkfifo(hang, 0600), 0);
	part->sessions.complained = false;
	for (int i = 0; i < 4; i++) {
		gstage_pass(5000);
		owner_part_chores(part);
	}
	assert_int_equal(logged("graphical sessions here (logind does not answer)"), 1);
	assert_true(part->sessions.entry.fd >= 0);
	unlink(hang);
	loginctl_ends();
	assert_int_equal(part->sessions.length, sizeof(part->sessions.text) - 1);
	obeys("presence|off");
	assert_string_equal(told, "");
}

static void test_restart(void **state)
{
	char path[160];
	FILE *out;

	(void)state;
	if (geteuid())
		skip(); /* the file must be root's */
	obeys("close");
	obeys("cap|cpu=50%");
	begin_again();
	assert_string_equal(told, "closed: backup");
	assert_int_equal(part->rules.caps[OWNER_CPU].unit, OWNER_PERCENT);
	/* A damaged file is set aside, and the node closed, also after the next start. */
	snprintf(path, sizeof(path), "%s/owner.rules", gstage.dir);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs("[owner]\nstate = open\nusers_allow = a\nusers_deny = a\nformat = 1\n", out);
	fclose(out);
	strcpy(rules_path, path);
	renames_watched = without_rules = 0;
	begin_again();
	*rules_path = 0;
	assert_string_equal(told, "closed: owner's rules unreadable");
	/* A power cut between any two steps leaves a file: without one the node would be open. */
	assert_true(renames_watched > 0);
	assert_int_equal(without_rules, 0);
	assert_int_equal(logged("`users allow a` contradicts `users deny a`"), 1);
	assert_int_equal(logged("owner.rules.damaged-"), 1);
	begin_again();
	assert_string_equal(told, "closed: owner's rules unreadable");
	assert_string_equal(refusal("n2-1-1", 1000, NULL), "closed: owner's rules unreadable");
	obeys("open");
	begin_again();
	assert_true(told_open);
	/* Somebody else could have written this one. */
	assert_int_equal(chmod(path, 0666), 0);
	begin_again();
	assert_string_equal(told, "closed: owner's rules unreadable");
}

/*
 * No rules can be written: what was damaged stays, so that the node does not open at the start
 * after the next one.
 */
static void test_damaged_on_a_full_disk(void **state)
{
	char path[160], beside[160];

	(void)state;
	if (geteuid())
		skip(); /* the file must be root's */
	snprintf(path, sizeof(path), "%s/owner.rules", gstage.dir);
	snprintf(beside, sizeof(beside), "%s/owner.rules.new", gstage.dir);
	assert_int_equal(mkdir(beside, 0700), 0);
	/* And a link to a file that is not there is damage, not a node without rules. */
	assert_int_equal(symlink("/nonexistent/owner.rules", path), 0);
	for (int start = 1; start <= 3; start++) {
		begin_again();
		assert_string_equal(told, "closed: owner's rules unreadable");
		assert_int_equal(logged("the damaged file stays in its place"), start);
	}
	assert_int_equal(rmdir(beside), 0);
	begin_again();
	assert_string_equal(told, "closed: owner's rules unreadable");
	obeys("open");
	begin_again();
	assert_true(told_open);
}

static void test_disk_fails(void **state)
{
	(void)state;
	snprintf(part->path, sizeof(part->path), "%s/nowhere/owner.rules", gstage.dir);
	obeys("cap|cpu=50%");
	/* Closing holds at once, and opening is refused. */
	obeys("close");
	assert_string_equal(told, "closed: backup");
	assert_string_equal(refusal("n2-1-1", 1000, NULL), "closed: backup");
	assert_non_null(strstr(part->unwritten.text,
			       "holds until this agent ends, because it cannot be written: cannot "
			       "write the owner's rules"));
	assert_int_equal(logged("owner: this holds until this agent ends"), 2);
	assert_true(ask(0, "", "open") < 0);
	assert_non_null(strstr(err.text, "cannot write the owner's rules"));
	assert_non_null(strstr(err.text, "; nothing is changed"));
	assert_true(ask(0, "", "cap|cpu=60%") < 0);
	assert_true(ask(0, "", "cap|none") < 0);
	obeys("drain");
	obeys("presence|on");
	obeys("cap|cpu=10%|memory=20%");
	assert_true(ask(0, "", "presence|off") < 0);
	assert_string_equal(told, "drained: backup");
}

/* As soon as the disk takes them the rules are written. */
static void test_disk_recovers(void **state)
{
	char beside[160];

	(void)state;
	if (geteuid())
		skip(); /* the file must be root's */
	snprintf(beside, sizeof(beside), "%s/owner.rules.new", gstage.dir);
	assert_int_equal(mkdir(beside, 0700), 0);
	obeys("close");
	gstage_pass(4000);
	owner_part_chores(part);
	assert_int_equal(rmdir(beside), 0);
	owner_part_chores(part);
	assert_true(part->unwritten.text[0]); /* it is not tried all the time */
	gstage_pass(1000);
	owner_part_chores(part);
	assert_string_equal(part->unwritten.text, "");
	assert_int_equal(logged("owner: the rules in force are written now"), 1);
	begin_again();
	assert_string_equal(told, "closed: backup");
	/* The last moment to do so is the agent's end. */
	assert_int_equal(mkdir(beside, 0700), 0);
	obeys("drain");
	assert_int_equal(rmdir(beside), 0);
	begin_again();
	assert_int_equal(part->rules.state, OWNER_DRAINING);
	assert_int_equal(mkdir(beside, 0700), 0);
	obeys("cap|cpu=5%");
	begin_again();
	assert_int_equal(logged("may be lost with this agent: holds until"), 1);
	assert_int_equal(part->rules.caps[OWNER_CPU].unit, OWNER_NO_CAP);
	assert_int_equal(rmdir(beside), 0);
}

/* The file is the new one, but its directory cannot be synced: that is what is said. */
static void test_sync_fails(void **state)
{
	(void)state;
	if (geteuid())
		skip(); /* the file must be root's */
	obeys("close");
	sync_fails = EIO;
	obeys("open");
	assert_true(told_open);
	assert_non_null(strstr(part->unwritten.text, "is written, but a power cut may bring the "
						     "former rules back: cannot sync"));
	gstage_pass(5000);
	owner_part_chores(part);
	assert_true(part->unwritten.text[0]);
	begin_again();
	assert_true(told_open); /* as it was said */
	sync_fails = EIO;
	obeys("drain");
	sync_fails = 0;
	gstage_pass(5000);
	owner_part_chores(part);
	assert_string_equal(part->unwritten.text, "");
}

static void test_expel(void **state)
{
	const struct job *job;

	(void)state;
	gstage_run("n2-1-1", 100);
	gstage_run("n2-1-2", 101);
	assert_int_equal(guest_expel(gstage.guest, "n2-1-9", "expelled", 5), 0);
	assert_int_equal(guest_expel(gstage.guest, "n2-1-1", "expelled: mine", 5), 1);
	job = jobs_find(&gstage.guest->jobs, "n2-1-1");
	assert_true(job->expelled.asked && !job->expelled.killed);
	job = jobs_find(&gstage.guest->jobs, "n2-1-2");
	assert_false(job->expelled.asked);
	gstage_chores(4);
	job = jobs_find(&gstage.guest->jobs, "n2-1-1");
	assert_false(job->expelled.killed);
	gstage_chores(2);
	job = jobs_find(&gstage.guest->jobs, "n2-1-1");
	assert_true(job->expelled.killed);
	assert_int_equal(gstage.counters.jobs_expelled, 1);
	/* One that is not there is an error, but no reason to keep the others. */
	assert_int_equal(ask(0, "", "expel|n2-1-9|n1-5-5"), -ENOENT);
	assert_string_equal(err.text, "node n1 has no guest n2-1-9, n1-5-5 (a job's whole name, as "
				      "`iocom jobs` shows it); expelled: 0");
	assert_int_equal(logged("expel n2-1-9 n1-5-5 (backup): node n1 has no guest"), 1);
	assert_int_equal(ask(0, "", "expel|n2-1-9|n2-1-1"), -ENOENT);
	assert_non_null(strstr(
		err.text,
		"no guest n2-1-9 (a job's whole name, as `iocom jobs` shows it); expelled: 1"));
	/* The rest; a second wish only shortens the grace. */
	obeys("expel");
	assert_int_equal(gstage.counters.jobs_expelled, 2);
	obeys("expel");
	assert_int_equal(gstage.counters.jobs_expelled, 2);
	assert_int_equal(logged("expelled by the owner of node n1: backup"), 1);
}

static int record_of(const char *name)
{
	char path[160];
	int dir;

	snprintf(path, sizeof(path), "%s/%s", gstage.jobs_dir, name);
	assert_true(!mkdir(path, 0700) || errno == EEXIST);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(dir >= 0);
	return dir;
}

static const struct job *after_restart(const char *name)
{
	gstage_restart();
	shim_started("n2-1-1", 100);
	shim_started("n2-1-2", 101);
	gstage_pass(20);
	return jobs_find(&gstage.guest->jobs, name);
}

/* The agent is killed within the grace: the next one goes on with it. */
static void test_expel_goes_on(void **state)
{
	const struct job *job;
	struct record_expelled kept;
	int dir = record_of("n2-1-1"), fd;

	(void)state;
	gstage_run("n2-1-1", 100);
	gstage_run("n2-1-2", 101); /* without a record */
	shim_record("n2-1-1")->lives = true;
	shim_record("n2-1-2")->lives = true;
	assert_int_equal(record_read_expelled(dir, &kept), -ENOENT);
	assert_int_equal(guest_expel(gstage.guest, "", "expelled: mine", 5), 2);
	assert_int_equal(record_read_expelled(dir, &kept), 0);
	assert_string_equal(kept.why, "expelled: mine");
	assert_true(kept.asked);
	job = after_restart("n2-1-1");
	gstage_chores(4);
	assert_string_equal(job->expelled.why, "expelled: mine");
	assert_true(job->expelled.asked && !job->expelled.killed);
	assert_string_equal(jobs_find(&gstage.guest->jobs, "n2-1-2")->expelled.why, "");
	gstage_chores(2);
	assert_true(job->expelled.killed);
	assert_int_equal(logged("from n2: still expelled: mine"), 1);
	/* A grace beyond all bounds is one of a day, and what is no record says nothing. */
	kept.due_ns = UINT64_MAX;
	assert_int_equal(record_write_expelled(dir, &kept), 0);
	job = after_restart("n2-1-1");
	assert_true(job->expelled.due_ns <=
		    loop_boot_ns(gstage.base.loop) + 86400 * CLOCK_NS_PER_S);
	fd = openat(dir, "expelled", O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "junk", 4), 4);
	close(fd);
	assert_string_equal(after_restart("n2-1-1")->expelled.why, "");
	assert_int_equal(logged("job n2-1-1 may have been expelled: its record cannot be read"), 1);
	/* It goes with the job's other files. */
	close(dir);
	record_remove(gstage.jobs_dir, "n2-1-1");
	dir = record_of("n2-1-1");
	assert_int_equal(record_read_expelled(dir, &kept), -ENOENT);
	close(dir);
}

/* --- control groups --- */

static void make_file(const char *directory, const char *name)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void has(const char *directory, const char *name, const char *expected)
{
	char path[200], text[128] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_true(fread(text, 1, sizeof(text) - 1, in) > 0 || !*expected);
	fclose(in);
	assert_string_equal(text, expected);
}

static void test_files_of_groups(void **state)
{
	const struct cgroup_caps caps = {.cores = 1.5,
					 .memory_bytes = 1 << 30,
					 .disk_bytes_per_s = 20000000,
					 .disks = {"8:0"},
					 .ndisks = 1};
	const struct cgroup_held none = {NULL, -ENOENT};
	struct cgroup_caps_held held = {none, none, none};

	(void)state;
	cgroup_guests_write(devices, &caps, &held);
	assert_null(held.cpu.file);
	assert_int_equal(held.disk.rc, -ENOENT);
	make_file(devices, "cpu.max");
	make_file(devices, "memory.max");
	make_file(devices, "io.max");
	cgroup_guests_write(devices, &caps, &held);
	has(devices, "cpu.max", "150000 100000");
	has(devices, "memory.max", "1073741824");
	has(devices, "io.max", "8:0 rbps=20000000 wbps=20000000");
	assert_string_equal(held.cpu.file, "cpu.max");
	assert_string_equal(held.memory.file, "memory.max");
	assert_string_equal(held.disk.file, "io.max");
	cgroup_guests_write(devices, &(struct cgroup_caps){.disks = {"8:0"}, .ndisks = 1}, &held);
	has(devices, "cpu.max", "max 100000");
	has(devices, "memory.max", "max");
	has(devices, "io.max", "8:0 rbps=max wbps=max");
}

static void test_files_of_v1(void **state)
{
	const struct cgroup_caps caps = {.cores = 0.001, .memory_bytes = 1 << 24};
	const struct cgroup_held none = {NULL, -ENOENT};
	struct cgroup_caps_held held = {none, none, none};

	(void)state;
	make_file(devices, "cpu.cfs_quota_us");
	make_file(devices, "cpu.cfs_period_us");
	make_file(devices, "memory.limit_in_bytes");
	cgroup_guests_write(devices, &caps, &held);
	has(devices, "cpu.cfs_quota_us", "1000"); /* the least */
	has(devices, "cpu.cfs_period_us", "100000");
	has(devices, "memory.limit_in_bytes", "16777216");
	assert_string_equal(held.cpu.file, "cpu.cfs_quota_us");
	cgroup_guests_write(devices, &(struct cgroup_caps){0}, &held);
	has(devices, "cpu.cfs_quota_us", "-1");
	has(devices, "memory.limit_in_bytes", "-1");
}

/* --- settings that are read again --- */

static void test_live_settings(void **state)
{
	struct settings *set = calloc(1, sizeof(*set)), *next = calloc(1, sizeof(*next));
	struct settings_changes changes;

	(void)state;
	assert_true(set && next);
	for (size_t i = 0; i < settings_program.nkeys; i++)
		if (settings_live(settings_program.keys[i].name) < 0)
			fail_msg("no row says whether --%s holds from a reload on",
				 settings_program.keys[i].name);
	assert_int_equal(settings_live("no-such-key"), -ENOENT);
	*next = *set;
	assert_int_equal(settings_take(set, next, &changes), 0);
	assert_string_equal(changes.live, "");
	assert_string_equal(changes.waiting, "");
	next->accept_jobs = true;
	strcpy(next->administrators, "anna");
	strcpy(next->name, "n9");
	next->user_tasks_max = 17;
	assert_int_equal(settings_take(set, next, &changes), 0);
	assert_string_equal(changes.live, "accept_jobs, administrators, user_tasks_max");
	assert_string_equal(changes.waiting, "name");
	assert_true(set->accept_jobs);
	assert_string_equal(set->administrators, "anna");
	assert_int_equal(set->user_tasks_max, 17);
	assert_string_equal(set->name, "");
	free(set);
	free(next);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(test_state_counts_at_once),
		ON_STAGE(test_forced_jobs_ask_too),
		ON_STAGE(test_users_and_classes),
		ON_STAGE(test_faucets),
		ON_STAGE(test_caps_by_admission),
		ON_STAGE(test_caps_beyond_the_node),
		ON_STAGE(test_unknown_names),
		ON_STAGE(test_how_caps_are_held),
		ON_STAGE(test_rights),
		ON_STAGE(test_presence),
		ON_STAGE(test_graphical_sessions),
		ON_STAGE(test_what_loginctl_says),
		ON_STAGE(test_presence_in_windows),
		ON_STAGE(test_restart),
		ON_STAGE(test_disk_fails),
		ON_STAGE(test_disk_recovers),
		ON_STAGE(test_sync_fails),
		ON_STAGE(test_damaged_on_a_full_disk),
		ON_STAGE(test_expel),
		ON_STAGE(test_expel_goes_on),
		ON_STAGE(test_files_of_groups),
		ON_STAGE(test_files_of_v1),
		cmocka_unit_test(test_live_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
