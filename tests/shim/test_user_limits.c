/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Limits of all jobs of one user together: a job that forks, or takes memory, without end harms
 * only that user's jobs.  The program is its own misbehaving job; what it tries is bounded, so that
 * a limit that does not hold cannot hurt the machine.
 */
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/user_group.h"
#include "tests/lib/stage.h"

#define NOBODY	   65534
#define DAEMON	   1 /* another user of every Debian */
#define TASKS	   50
#define TRIES	   300
#define MIB	   (UINT64_C(1) << 20)
#define LIMIT_MIB  64
#define HOG_MIB	   200
#define RACERS	   3
#define RACE_TURNS 100

/* --- the job: bomb fork|memory|hold DIRECTORY --- */

/* The file appears whole. */
static void job_says(const char *directory, const char *name, const char *text)
{
	char path[256], whole[256];
	int fd;

	snprintf(path, sizeof(path), "%s/.%s", directory, name);
	snprintf(whole, sizeof(whole), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || rename(path, whole))
		_exit(99);
	close(fd);
}

static void job_waits(const char *directory, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	for (int i = 0; i < 6000 && access(path, F_OK); i++)
		usleep(10000);
}

static int bomb_fork(const char *directory)
{
	pid_t children[TRIES];
	int made = 0, refused = 0;
	char text[64];

	for (int i = 0; i < TRIES; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		if (pid > 0)
			children[made++] = pid;
		else
			refused += errno == EAGAIN;
	}
	snprintf(text, sizeof(text), "made %d refused %d", made, refused);
	job_says(directory, "forked", text);
	job_waits(directory, "go");
	for (int i = 0; i < made; i++)
		kill(children[i], SIGKILL);
	return 0;
}

static int bomb_memory(const char *directory, size_t mib)
{
	for (size_t i = 0; i < mib; i++) {
		char *piece = malloc(MIB);

		if (!piece)
			return 3;
		memset(piece, (int)i + 1, MIB);
	}
	job_says(directory, mib == HOG_MIB ? "hogged" : "held", "x");
	if (mib != HOG_MIB)
		job_waits(directory, "go");
	return 0;
}

static int misbehave(const char *how, const char *directory)
{
	if (!strcmp(how, "fork"))
		return bomb_fork(directory);
	return bomb_memory(directory, !strcmp(how, "hold") ? LIMIT_MIB / 4 : HOG_MIB);
}

/* --- the stage --- */

static char program[128], play[96]; /* a copy that other users may run; where jobs write */

static int setup(void **state)
{
	struct stage *stage;
	char command[512];

	if (stage_setup(state))
		return -1;
	stage = *state;
	snprintf(program, sizeof(program), "%s/bomb", stage->dir);
	snprintf(play, sizeof(play), "%s/play", stage->dir);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && chmod 755 %s", (int)getpid(),
		 program, program);
	return system(command);
}

static int fresh(void **state)
{
	char command[512];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s && mkdir -m 1777 %s", play, play);
	return system(command);
}

static const char *played(const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", play, name);
	for (int i = 0; i < 6000 && access(path, F_OK); i++)
		usleep(10000);
	return stage_read(path);
}

static struct want bomb(const char *how, uid_t uid)
{
	return (struct want){.argv = {program, how, play},
			     .uid = uid,
			     .gid = uid,
			     .detach = true,
			     .user_limits = {.tasks = TASKS,
					     .memory_bytes = LIMIT_MIB * MIB,
					     .swap_bytes = MIB}};
}

static struct want shell(const char *script, uid_t uid)
{
	struct want want = bomb("", uid);

	want.argv[0] = "/bin/sh";
	want.argv[1] = "-c";
	want.argv[2] = script;
	want.detach = false;
	return want;
}

/* Starts a job that needs no client. */
static struct job begun(struct stage *stage, const struct want *want)
{
	struct job job = stage_start(stage, want);

	assert_int_equal(job.rc, 0);
	close(job.client);
	return job;
}

static struct launch_event ended(struct job *job)
{
	struct launch_event event = {0};
	int rc = 0;

	for (int i = 0; i < 12 && event.type != LAUNCH_EXITED && (!rc || rc == -EAGAIN); i++)
		rc = stage_event(job->leash, &event);
	assert_int_equal(event.type, LAUNCH_EXITED);
	assert_int_equal(stage_reap(job), 0);
	close(job->leash);
	return event;
}

/* Finds the file NAME of the group of UID in the hierarchy that has it, else returns "". */
static const char *setting_of(const struct stage *stage, uid_t uid, const char *name)
{
	struct cgroup_mounts mounts;
	static char path[CGROUP_PATH_MAX + 64];

	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	for (size_t i = 0; i <= mounts.nv1; i++) {
		snprintf(path, sizeof(path), "%s/%s/jobs/user@%u/%s",
			 i < mounts.nv1 ? mounts.v1[i] : mounts.v2, stage->scope, (unsigned)uid,
			 name);
		if (!access(path, F_OK))
			return stage_read(path);
	}
	return "";
}

static bool any_group_of(const struct stage *stage, uid_t uid)
{
	struct cgroup_mounts mounts;
	char path[CGROUP_PATH_MAX];
	bool any = false;

	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	for (size_t i = 0; i <= mounts.nv1; i++) {
		snprintf(path, sizeof(path), "%s/%s/jobs/user@%u",
			 i < mounts.nv1 ? mounts.v1[i] : mounts.v2, stage->scope, (unsigned)uid);
		any |= !access(path, F_OK);
	}
	return any;
}

/* --- tasks --- */

static void test_fork_bomb(void **state)
{
	struct stage *stage = *state;
	const struct want want = bomb("fork", NOBODY);
	const struct want other = shell("for i in 1 2 3 4 5; do sh -c : || exit 4; done", DAEMON);
	const struct want same = shell("sh -c : ; exit 5", NOBODY);
	struct launch_event end;
	struct run_result result;
	struct job job = begun(stage, &want);
	char text[64];

	/* Exactly: the first process is one of the tasks. */
	snprintf(text, sizeof(text), "made %d refused %d", TASKS - 1, TRIES - TASKS + 1);
	assert_string_equal(played("forked"), text);
	snprintf(text, sizeof(text), "%d\n", TASKS);
	assert_string_equal(setting_of(stage, NOBODY, "pids.max"), text);
	/* Another user has tasks of its own. */
	assert_int_equal(stage_run(stage, &other, &result), 0);
	assert_string_equal(result.text, "");
	/* The same user's other job begins, but shares the limit. */
	assert_int_not_equal(stage_run(stage, &same, &result), 5);
	assert_non_null(strstr(result.text, "node here refused"));
	job_says(play, "go", "");
	end = ended(&job);
	assert_int_equal(end.kind, 0);
	assert_int_equal(end.value, 0);
	assert_in_range(end.forks_refused, TRIES - TASKS + 1, TRIES + 10);
	assert_int_equal(end.oom_kills, 0);
	assert_non_null(strstr(end.text, "node here refused"));
	assert_non_null(strstr(end.text, "; your jobs there may have 50 tasks together "
					 "(user_tasks_max)"));
	assert_false(any_group_of(stage, NOBODY));
	assert_false(any_group_of(stage, DAEMON));
}

/* --- memory --- */

static void test_memory_hog(void **state)
{
	struct stage *stage = *state;
	const struct want holds = bomb("hold", DAEMON), want = bomb("memory", NOBODY);
	struct job other = begun(stage, &holds), job;
	struct launch_event end;
	char go[128];

	assert_string_equal(played("held"), "x");
	job = begun(stage, &want);
	end = ended(&job);
	assert_int_equal(end.kind, 1);
	assert_int_equal(end.value, SIGKILL);
	assert_int_equal(end.oom_kills, 1);
	assert_int_equal(end.forks_refused, 0);
	assert_string_equal(end.text,
			    "out of memory on node here: the kernel killed 1 process of the job; "
			    "your jobs there may use 64 MiB together (user_memory_mb)");
	snprintf(go, sizeof(go), "%s/hogged", play);
	assert_int_equal(access(go, F_OK), -1);
	job_says(play, "go", "");
	end = ended(&other);
	assert_int_equal(end.kind, 0);
	assert_int_equal(end.value, 0);
	assert_int_equal(end.oom_kills, 0);
	assert_string_equal(end.text, "");
}

/* The kernel kills a part of a job, which goes on: its owner must know. */
static void test_part_killed(void **state)
{
	struct stage *stage = *state;
	char script[256];
	struct want want;
	struct run_result result;

	snprintf(script, sizeof(script), "%s memory %s; echo $?", program, play);
	want = shell(script, NOBODY);
	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "137\n");
	assert_non_null(strstr(result.text, "out of memory on node here: the kernel killed 1 "));
}

/* --- who has limits --- */

/* The limits are set anew by each job, and taken away if the settings say none. */
static void test_changed_limits(void **state)
{
	struct stage *stage = *state;
	const struct want first = bomb("hold", NOBODY);
	struct want second = bomb("hold", NOBODY);
	struct job a = begun(stage, &first), b;
	char text[128];

	assert_string_equal(played("held"), "x");
	assert_string_equal(setting_of(stage, NOBODY, "pids.max"), "50\n");
	second.user_limits = (struct cgroup_limits){0};
	snprintf(text, sizeof(text), "%s/held", play);
	unlink(text);
	b = begun(stage, &second);
	assert_string_equal(played("held"), "x");
	assert_string_equal(setting_of(stage, NOBODY, "pids.max"), "max\n");
	job_says(play, "go", "");
	assert_int_equal(ended(&a).value, 0);
	assert_int_equal(ended(&b).value, 0);
	assert_false(any_group_of(stage, NOBODY));
}

/* --- an older agent's layout --- */

static void test_older_layout(void **state)
{
	struct stage *stage = *state;
	struct want want = bomb("hold", NOBODY);
	struct launch_found found;
	struct job job;
	char path[512];

	for (int flat = 0; flat < 2; flat++) {
		fresh(state);
		want.flat = flat;
		job = begun(stage, &want);
		assert_string_equal(played("held"), "x");
		snprintf(path, sizeof(path), "%s/%s/jobs/%s", stage->v2, stage->scope, job.name);
		assert_int_equal(access(path, F_OK), flat ? 0 : -1);
		assert_true(stage_group_exists(stage, job.name));
		kill(job.shim, SIGKILL);
		stage_reap(&job);
		close(job.leash);
		/* The agent buries what the dead shim left, wherever that is. */
		assert_int_equal(launch_outcome(stage->jobs, stage->run, job.name, &found), 0);
		assert_int_equal(found.last.value, 255);
		assert_false(stage_group_exists(stage, job.name));
		assert_false(any_group_of(stage, NOBODY));
	}
}

static void test_kill_without_shim(void **state)
{
	struct stage *stage = *state;
	struct want want = bomb("hold", NOBODY);
	struct launch_event end;
	struct job job;

	for (int flat = 0; flat < 2; flat++) {
		fresh(state);
		want.flat = flat;
		job = begun(stage, &want);
		assert_string_equal(played("held"), "x");
		launch_kill(stage->scope, NOBODY, job.name);
		end = ended(&job);
		assert_int_equal(end.kind, 1);
		assert_int_equal(end.value, SIGKILL);
		assert_int_equal(end.oom_kills, 0);
	}
}

/* --- jobs that begin and end at once --- */

static const char *race_turn(const struct cgroup_mounts *mounts, const char *scope, int racer)
{
	static const struct cgroup_limits limits = {.tasks = 77};
	struct cgroup group;
	char name[64], job[16];

	snprintf(job, sizeof(job), "racer-%d", racer);
	cgroup_user_job(name, sizeof(name), 7, job);
	if (cgroup_name(mounts, scope, name, &group, NULL))
		return "no name";
	if (cgroup_create(&group, NULL))
		return "not made";
	/* Its user's group stays as long as it has one: the limit is set. */
	if (cgroup_user_limit(&group, &limits) & CGROUP_TASKS)
		return "not limited";
	if (cgroup_remove(&group, 1000))
		return "not removed";
	cgroup_user_leave(&group);
	return NULL;
}

static void test_race(void **state)
{
	struct stage *stage = *state;
	struct cgroup_mounts mounts;
	pid_t pids[RACERS];
	int status;

	assert_int_equal(cgroup_mounts_read("/proc/self/mounts", &mounts, NULL), 0);
	for (int r = 0; r < RACERS; r++) {
		pids[r] = fork();
		if (pids[r])
			continue;
		for (int i = 0; i < RACE_TURNS; i++) {
			const char *wrong = race_turn(&mounts, stage->scope, r);

			if (wrong) {
				fprintf(stderr, "racer %d, turn %d: %s\n", r, i, wrong);
				_exit(1);
			}
		}
		_exit(0);
	}
	for (int r = 0; r < RACERS; r++) {
		assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
		assert_int_equal(status, 0);
	}
	assert_false(any_group_of(stage, 7));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fork_bomb, fresh),
		cmocka_unit_test_setup(test_memory_hog, fresh),
		cmocka_unit_test_setup(test_part_killed, fresh),
		cmocka_unit_test_setup(test_changed_limits, fresh),
		cmocka_unit_test_setup(test_older_layout, fresh),
		cmocka_unit_test_setup(test_kill_without_shim, fresh),
		cmocka_unit_test(test_race),
	};

	if (argc == 3) /* a sanitizer is not asked what this job keeps until its end */
		_exit(misbehave(argv[1], argv[2]));
	if (geteuid() != 0) {
		printf("1..0 # SKIP needs root (cgroups, other users)\n");
		return 0;
	}
	return cmocka_run_group_tests_name("users", tests, setup, stage_teardown);
}
