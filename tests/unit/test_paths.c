/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job's paths on a file system that does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "user/clock.h"
#include "agent/base/loop.h"
#include "agent/guest/paths.h"

#define WHY_MAX 256

struct world {
	struct loop *loop;
	struct paths *paths;
	struct loop_timer limit;
	char dir[64], hung[96];
	int fuse;
};

struct told {
	struct world *world;
	unsigned count, wanted;
	struct admission_verdict verdict;
};

static void stop(void *arg)
{
	loop_stop(((struct world *)arg)->loop);
}

static void told(void *arg, const struct job_order *order, const struct admission_verdict *v)
{
	struct told *t = arg;

	assert_true(order->cwd[0] == '/');
	t->verdict = *v;
	if (++t->count >= t->wanted)
		loop_stop(t->world->loop);
}

static void wait_for(struct world *w)
{
	loop_start(w->loop, &w->limit, 20 * CLOCK_NS_PER_S);
	assert_int_equal(loop_run(w->loop), 0);
	loop_cancel(w->loop, &w->limit);
}

static struct iocom_err why_not;
static struct counters counters;

static int ask_as(struct told *t, uid_t uid, const char *cwd, const char *executable)
{
	struct job_order order = {0};
	struct account user = {.uid = uid, .gid = uid};

	snprintf(order.cwd, sizeof(order.cwd), "%s", cwd);
	snprintf(order.executable, sizeof(order.executable), "%s", executable);
	return paths_ask(t->world->paths, &order, &user, told, t, &why_not);
}

static int ask(struct told *t, const char *cwd, const char *executable)
{
	return ask_as(t, 0, cwd, executable);
}

static struct admission_verdict judge(struct world *w, const char *cwd, const char *executable)
{
	struct told t = {.world = w, .wanted = 1};

	assert_int_equal(ask(&t, cwd, executable), 0);
	wait_for(w);
	assert_int_equal(t.count, 1);
	return t.verdict;
}

static void test_paths_that_answer(void **state)
{
	struct world *w = *state;
	struct admission_verdict v = judge(w, "/", "/bin/sh");

	assert_true(v.admitted);
	v = judge(w, "/", "sh"); /* found by name when exec runs */
	assert_true(v.admitted);
	v = judge(w, "/no/such", "/bin/sh");
	assert_false(v.admitted);
	assert_string_equal(v.reason, "path-missing");
	assert_non_null(strstr(v.text, "/no/such"));
	v = judge(w, "/", "/no/such/program");
	assert_string_equal(v.reason, "path-missing");
	assert_non_null(strstr(v.text, "executable /no/such/program"));
}

/* Returns the refusal that user nobody gets for PATH; "": PATH is accepted. */
static const char *told_nobody(const char *path, char text[WHY_MAX])
{
	struct account user = {.uid = 65534, .gid = 65534};
	struct job_order order = {0};
	struct admission_verdict v;
	const char *why;
	atomic_int at;

	strcpy(order.cwd, "/");
	snprintf(order.executable, sizeof(order.executable), "%s", path);
	if (admission_paths_in_memory(&order, &user))
		assert_true(admission_paths(&order, &user, &at, &v));
	if (admission_paths(&order, &user, &at, &v))
		return "";
	why = strrchr(v.text, ':');
	snprintf(text, WHY_MAX, "%s", why ? why + 2 : v.text);
	return text;
}

/* Root's links may lead through directories that are not open to everybody. */
static void test_root_links_into_private(void **state)
{
	struct world *w = *state;
	char private[128], open_one[160], file[200], door[128], path[200], text[WHY_MAX];
	const char *const forms[] = {"private/open", "", "hop"}; /* "": with the whole path */
	int fd;

	assert_int_equal(chmod(w->dir, 0755), 0);
	snprintf(private, sizeof(private), "%s/private", w->dir);
	snprintf(open_one, sizeof(open_one), "%s/open", private);
	snprintf(file, sizeof(file), "%s/there", open_one);
	assert_int_equal(mkdir(private, 0700) | mkdir(open_one, 0755), 0);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/hop", w->dir);
	assert_int_equal(symlink("private/open", path), 0);
	snprintf(door, sizeof(door), "%s/door", w->dir);
	for (int i = 0; i < 3; i++) {
		char to[200];

		if (*forms[i])
			snprintf(to, sizeof(to), "%s", forms[i]);
		else
			snprintf(to, sizeof(to), "%s", open_one);
		assert_int_equal(symlink(to, door), 0);
		/* The refusal is the same whether the file exists or not. */
		snprintf(path, sizeof(path), "%s/there", door);
		assert_string_equal(told_nobody(path, text), "Permission denied");
		snprintf(path, sizeof(path), "%s/not", door);
		assert_string_equal(told_nobody(path, text), "Permission denied");
		/* A user who may enter the directory is told the true reason. */
		assert_int_equal(chmod(private, 0711), 0);
		assert_string_equal(told_nobody(path, text), "No such file or directory");
		snprintf(path, sizeof(path), "%s/there", door);
		assert_string_equal(told_nobody(path, text), "");
		assert_int_equal(chmod(private, 0700), 0);
		unlink(door);
	}
	assert_int_equal(symlink("door", door), 0);
	assert_string_equal(told_nobody(door, text), "Too many levels of symbolic links");
	unlink(door);
	/* Links of /proc depend on the agent itself, so the agent tells nothing. */
	assert_string_equal(told_nobody("/proc/self/no", text), "");
	snprintf(path, sizeof(path), "%s/hop", w->dir);
	unlink(path);
	unlink(file);
	rmdir(open_one);
	rmdir(private);
}

/*
 * At a node that the user named, exec reports it with a status; a bad directory is still
 * refused.
 */
static void test_forced(void **state)
{
	struct job_order order = {.forced = true};
	struct admission_verdict v;
	struct account user;
	atomic_int at;

	(void)state;
	assert_int_equal(account_find(0, &user), 0);
	strcpy(order.cwd, "/");
	strcpy(order.executable, "/no/such/program");
	assert_true(admission_paths(&order, &user, &at, &v));
	strcpy(order.cwd, "/no/such");
	assert_false(admission_paths(&order, &user, &at, &v));
	assert_string_equal(v.reason, "path-missing");
	account_free(&user);
}

/* Only the user may find out where the user's link leads: root does not look for others. */
static void test_links(void **state)
{
	struct world *w = *state;
	char secret[128], theirs[2][128], ours[128], text[2][256];
	struct admission_verdict v;
	int fd;

	snprintf(secret, sizeof(secret), "%s/secret", w->dir);
	assert_int_equal(mkdir(secret, 0700), 0);
	snprintf(ours, sizeof(ours), "%s/secret/there", w->dir);
	fd = open(ours, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	close(fd);
	for (int i = 0; i < 2; i++) {
		snprintf(theirs[i], sizeof(theirs[i]), "%s/link%d", w->dir, i);
		snprintf(text[i], sizeof(text[i]), "%s/secret/%s", w->dir, i ? "not" : "there");
		assert_int_equal(symlink(text[i], theirs[i]), 0);
		assert_int_equal(lchown(theirs[i], 65534, 65534), 0);
		v = judge(w, "/", theirs[i]);
		/* the user gets the same answer whether the path exists or not */
		assert_true(v.admitted);
		v = judge(w, theirs[i], "sh");
		assert_true(v.admitted);
		assert_int_equal(lchown(theirs[i], 0, 0), 0);
	}
	v = judge(w, "/", "/proc/self/root/no/such");
	assert_true(v.admitted);
	/* Root's own links are followed. */
	v = judge(w, "/", theirs[0]);
	assert_true(v.admitted);
	v = judge(w, "/", theirs[1]);
	assert_string_equal(v.reason, "path-missing");
	v = judge(w, theirs[0], "sh");
	assert_non_null(strstr(v.text, strerror(ENOTDIR)));
	for (int i = 0; i < 2; i++)
		unlink(theirs[i]);
	unlink(ours);
	rmdir(secret);
}

static bool in_memory(const char *cwd, const char *executable, uid_t uid)
{
	struct job_order order = {0};
	struct account user = {.uid = uid, .gid = uid};

	snprintf(order.cwd, sizeof(order.cwd), "%s", cwd);
	snprintf(order.executable, sizeof(order.executable), "%s", executable);
	return admission_paths_in_memory(&order, &user);
}

/* Paths in the kernel's memory need no thread; all others do. */
static void test_paths_in_memory(void **state)
{
	struct world *w = *state;
	char closed[96], program[128];
	struct stat st;

	snprintf(closed, sizeof(closed), "%s/closed", w->dir);
	snprintf(program, sizeof(program), "%s/program", w->hung);
	assert_int_equal(mkdir(closed, 0700), 0);
	assert_int_equal(chmod(w->dir, 0755), 0);
	assert_int_equal(stat(closed, &st), 0);
	/* If it is on a disk, each path needs the thread. */
	if (stat("/bin/sh", &st) == 0 && major(st.st_dev)) {
		assert_true(in_memory("/", "/bin/sh", 0));
		assert_true(in_memory("/", "sh", 0));
	}
	if (stat(closed, &st) == 0 && major(st.st_dev)) {
		assert_true(in_memory(closed, "sh", 0));
		assert_true(in_memory(w->dir, "sh", 12345));
	}
	assert_false(in_memory(closed, "sh", 12345));
	assert_false(in_memory("/no/such", "sh", 0));
	assert_false(in_memory("/bin/sh", "sh", 0));
	assert_false(in_memory("/", "/no/such/program", 0));
	assert_false(in_memory("/proc", "sh", 0)); /* /proc is on no disk */
	assert_false(in_memory(w->hung, "sh", 0));
	assert_false(in_memory("/", program, 0));
	assert_int_equal(rmdir(closed), 0);
}

static void tick(void *arg)
{
	++*(unsigned *)arg;
}

static void test_paths_that_hang(void **state)
{
	struct world *w = *state;
	struct told t = {.world = w, .wanted = 1};
	unsigned ticks = 0;
	struct loop_timer timer = {.fire = tick, .arg = &ticks};
	uint64_t before = clock_boot_ns();

	assert_int_equal(ask(&t, w->hung, "/bin/sh"), 0);
	loop_start(w->loop, &timer, 10 * CLOCK_NS_PER_MS);
	wait_for(w);
	assert_int_equal(t.count, 1);
	assert_int_equal(ticks, 1); /* the loop served others meanwhile */
	assert_true(clock_boot_ns() - before >= PATHS_LIMIT_MS * CLOCK_NS_PER_MS);
	assert_false(t.verdict.admitted);
	assert_string_equal(t.verdict.reason, "path-slow");
	assert_non_null(strstr(t.verdict.text, "working directory"));
	assert_non_null(strstr(t.verdict.text, w->hung));
}

static void test_executable_that_hangs(void **state)
{
	struct world *w = *state;
	char program[128];
	struct admission_verdict v;

	snprintf(program, sizeof(program), "%s/program", w->hung);
	v = judge(w, "/", program);
	assert_string_equal(v.reason, "path-slow");
	assert_non_null(strstr(v.text, "executable"));
	assert_non_null(strstr(v.text, program));
}

static size_t that_hang(const struct world *w)
{
	size_t late;

	paths_count(w->paths, &late);
	return late;
}

/*
 * A burst of jobs is not mistaken for a file system that hangs.  16 of the 256 places are root's,
 * and 2 checks of earlier tests hang: 238 are left.  A user gets 64, or as many as are free then.
 */
static void test_many_at_once(void **state)
{
	static const unsigned gets[] = {64, 64, 55, 28, 14, 7, 3, 2, 1};
	const unsigned users = sizeof(gets) / sizeof(*gets);
	struct world *w = *state;
	struct told t = {.world = w, .wanted = PATHS_MAX - 2};

	assert_int_equal(that_hang(w), 2);
	counters.places_refused = 0;
	for (unsigned u = 0; u < users; u++) {
		for (unsigned i = 0; i < gets[u]; i++)
			assert_int_equal(ask_as(&t, 1 + u, "/", "/bin/sh"), 0);
		assert_int_equal(ask_as(&t, 1 + u, "/", "/bin/sh"), -EDQUOT);
	}
	assert_string_equal(why_not.text, "uid 9 has 1 path checks there, and 0 places are free: a "
					  "user who has as many as are free gets no more "
					  "(paths_looked_at)");
	assert_int_equal(counters.places_refused, users - 2);
	assert_int_equal(ask_as(&t, 1, "/", "/bin/sh"), -EDQUOT);
	assert_string_equal(why_not.text,
			    "uid 1 has 64 path checks there, the limit per user (paths_looked_at)");
	assert_int_equal(ask_as(&t, 1000, "/", "/bin/sh"), -EAGAIN);
	assert_string_equal(
		why_not.text,
		"no place is free: the limit is 240 path checks there (paths_looked_at)");
	for (unsigned i = 0; i < PATHS_OF_ROOT; i++)
		assert_int_equal(ask(&t, "/", "/bin/sh"), 0);
	assert_int_equal(ask(&t, "/", "/bin/sh"), -EAGAIN);
	wait_for(w);
	assert_int_equal(t.count, t.wanted);
	assert_true(t.verdict.admitted);
}

/* A user's own file system: the user asks for as much as allowed, and nothing answers. */
static void test_one_user_fills_it(void **state)
{
	struct world *w = *state;
	struct told t = {.world = w, .wanted = PATHS_OF_USER};
	size_t before = that_hang(w); /* root's, left by the earlier tests */

	for (int i = 0; i < PATHS_OF_USER; i++)
		assert_int_equal(ask_as(&t, 1000, w->hung, "/bin/sh"), 0);
	wait_for(w);
	assert_int_equal(t.count, PATHS_OF_USER);
	assert_int_equal(that_hang(w), before + PATHS_OF_USER);
	assert_true(that_hang(w) > PATHS_LATE_MAX);
	assert_int_equal(ask_as(&t, 1000, "/", "/bin/sh"), -EDQUOT);
	t.wanted = t.count + 1;
	assert_int_equal(ask_as(&t, 1001, "/", "/bin/sh"), 0);
	wait_for(w);
	assert_int_equal(t.count, t.wanted);
	assert_true(t.verdict.admitted);
}

static void test_no_more_than_some(void **state)
{
	struct world *w = *state;
	const int users = PATHS_LATE_MAX / PATHS_LATE_OF_USER - 2;
	struct told t = {.world = w, .wanted = (unsigned)users * PATHS_LATE_OF_USER};

	/* Those of root and one user from the earlier tests still hang. */
	for (int i = 0; i < users * PATHS_LATE_OF_USER; i++)
		assert_int_equal(ask_as(&t, 2000 + (uid_t)i % users, w->hung, "/bin/sh"), 0);
	wait_for(w);
	assert_int_equal(t.count, t.wanted);
	assert_int_equal(ask_as(&t, 2000, "/", "/bin/sh"), -EDQUOT);
	assert_int_equal(ask_as(&t, 3000, "/", "/bin/sh"), -EAGAIN);
	/* The server is back, or was given up: there is room again. */
	close(w->fuse);
	w->fuse = -1;
	for (int i = 0; i < 200 && ask_as(&t, 3000, "/", "/bin/sh") == -EAGAIN; i++) {
		loop_start(w->loop, &w->limit, 20 * CLOCK_NS_PER_MS);
		loop_run(w->loop);
	}
	t.wanted = t.count + 1;
	wait_for(w);
	assert_true(t.verdict.admitted);
}

static int mount_hung(struct world *w)
{
	char options[128];

	w->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 w->fuse);
	return w->fuse < 0 ? -1 : mount("hang", w->hung, "fuse.hang", MS_NOSUID, options);
}

static void test_end_while_one_hangs(void **state)
{
	struct world *w = *state;
	struct told t = {.world = w, .wanted = 1};

	umount2(w->hung, MNT_DETACH);
	assert_int_equal(mount_hung(w), 0);
	assert_int_equal(ask(&t, w->hung, "/bin/sh"), 0);
	usleep(50000);
	paths_free(w->paths);
	w->paths = NULL;
	assert_int_equal(t.count, 1);
	assert_false(t.verdict.admitted);
	/* Its thread wakes up and frees its own memory. */
	close(w->fuse);
	w->fuse = -1;
	usleep(100000);
}

static int setup(void **state)
{
	static struct world w;

	w.fuse = -1;
	snprintf(w.dir, sizeof(w.dir), "/tmp/iocom-paths-XXXXXX");
	if (!mkdtemp(w.dir) || loop_new(&w.loop, NULL) || paths_new(&w.paths, w.loop, &counters))
		return -1;
	w.limit = (struct loop_timer){.fire = stop, .arg = &w};
	snprintf(w.hung, sizeof(w.hung), "%s/hung", w.dir);
	mkdir(w.hung, 0755);
	*state = &w;
	/* In a mount namespace of its own, so that nothing stays behind. */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	return mount_hung(&w);
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->fuse >= 0)
		close(w->fuse);
	umount2(w->hung, MNT_DETACH);
	rmdir(w->hung);
	rmdir(w->dir);
	paths_free(w->paths);
	loop_free(w->loop);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_that_answer),
		cmocka_unit_test(test_forced),
		cmocka_unit_test(test_paths_in_memory),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_root_links_into_private),
		cmocka_unit_test(test_paths_that_hang),
		cmocka_unit_test(test_executable_that_hangs),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_one_user_fills_it),
		cmocka_unit_test(test_no_more_than_some),
		cmocka_unit_test(test_end_while_one_hangs),
	};

	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK)) {
		printf("1..0 # SKIP needs root and /dev/fuse\n");
		return 0;
	}
	return cmocka_run_group_tests_name("paths", tests, setup, teardown);
}
