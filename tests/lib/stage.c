/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Agent and client around a real shim; see stage.h. */
#include "tests/lib/stage.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/order.h"
#include "user/clock.h"
#include "user/cgroup.h"

#define NOBODY 65534

static void remove_tree(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf -- %s", path);
	if (system(command))
		fprintf(stderr, "cannot remove %s\n", path);
}

/* Finds BUILD/iocom-shim: from the environment, else beside this program BUILD/tests/shim/X. */
static void find_shim(struct stage *stage)
{
	const char *build = getenv("IOCOM_BUILD");
	ssize_t n;

	if (build) {
		snprintf(stage->shim, sizeof(stage->shim), "%s/iocom-shim", build);
		return;
	}
	n = readlink("/proc/self/exe", stage->shim, sizeof(stage->shim) - 32);
	stage->shim[n > 0 ? n : 0] = 0;
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(stage->shim, '/');

		if (slash)
			*slash = 0;
	}
	strcat(stage->shim, "/iocom-shim");
}

int stage_up(struct stage *stage)
{
	static unsigned ups; /* a second stage is another node */
	struct cgroup_mounts mounts;
	char path[512];

	*stage = (struct stage){.dir = "/tmp/iocom-stage-XXXXXX"};
	if (!mkdtemp(stage->dir) || chmod(stage->dir, 0755) ||
	    cgroup_mounts_read("/proc/self/mounts", &mounts, NULL))
		return -1;
	find_shim(stage);
	snprintf(stage->jobs, sizeof(stage->jobs), "%s/state/jobs", stage->dir);
	snprintf(stage->run, sizeof(stage->run), "%s/run/jobs", stage->dir);
	snprintf(stage->out, sizeof(stage->out), "%s/out", stage->dir);
	snprintf(stage->err, sizeof(stage->err), "%s/err", stage->dir);
	snprintf(stage->scope, sizeof(stage->scope), "iocom-stage-%d%s", getpid(),
		 ups++ ? "b" : "");
	snprintf(stage->v2, sizeof(stage->v2), "%s", mounts.v2);
	/* The scope exists in v1 too, as a testbed's does. */
	for (size_t i = 0; i < mounts.nv1; i++) {
		snprintf(path, sizeof(path), "%s/%s", mounts.v1[i], stage->scope);
		mkdir(path, 0755);
	}
	return 0;
}

/* Removes the groups NAME/..., with what a failed test left running. */
static void remove_below(const struct stage *stage, const struct cgroup_mounts *mounts,
			 const char *name)
{
	const struct dirent *entry;
	struct cgroup group;
	char path[512];
	DIR *groups;

	snprintf(path, sizeof(path), "%s/%s/%s", mounts->v2, stage->scope, name);
	groups = opendir(path);
	while (groups && (entry = readdir(groups))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.200s", name, entry->d_name);
		if (strchr(entry->d_name, '@'))
			remove_below(stage, mounts, path);
		if (!cgroup_name(mounts, stage->scope, path, &group, NULL))
			cgroup_remove(&group, 2000);
	}
	if (groups)
		closedir(groups);
}

static void remove_jobs(const struct stage *stage, const struct cgroup_mounts *mounts)
{
	struct cgroup group;

	if (!cgroup_name(mounts, stage->scope, "shims", &group, NULL))
		cgroup_remove(&group, 2000);
	remove_below(stage, mounts, "jobs");
}

void stage_down(struct stage *stage)
{
	static const char *const groups[] = {"/jobs", "/shims", ""};
	struct cgroup_mounts mounts;
	char path[512];

	remove_tree(stage->dir);
	cgroup_mounts_read("/proc/self/mounts", &mounts, NULL);
	remove_jobs(stage, &mounts);
	for (size_t g = 0; g < 3; g++) {
		snprintf(path, sizeof(path), "%s/%s%s", mounts.v2, stage->scope, groups[g]);
		for (int i = 0; i < 100 && rmdir(path) && errno == EBUSY; i++)
			usleep(20000);
		for (size_t i = 0; i < mounts.nv1; i++) {
			snprintf(path, sizeof(path), "%s/%s%s", mounts.v1[i], stage->scope,
				 groups[g]);
			rmdir(path);
		}
	}
}

void stage_keys(struct records *shim, struct records *client)
{
	*shim = (struct records){0};
	secret_new(shim->sends.key);
	secret_new(shim->receives.key);
	shim->receives.n = 1; /* the agent has opened the start message */
	*client = (struct records){.sends = shim->receives, .receives = shim->sends};
}

void stage_pair(int fd[2])
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) || listen(l, 1) ||
	    getsockname(l, (struct sockaddr *)&sa, &length) ||
	    connect(fd[0], (struct sockaddr *)&sa, sizeof(sa)))
		abort();
	fd[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	close(l);
}

static void fill_spec(struct stage *stage, const struct want *want, struct spec *spec)
{
	static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	static char *env[] = {path, NULL};

	*spec = (struct spec){
		.node = "here",
		.nonce = "0",
		.class_name = "test",
		.executable = (char *)want->argv[0],
		.cwd = (char *)(want->cwd ? want->cwd : "/"),
		.argv = (char **)want->argv,
		.env = want->env ? want->env : env,
		.umask = want->umask,
		.closed = want->closed,
		.grace_ms = want->grace_ms,
		.tty = want->tty,
		.detach = want->detach,
		.spool_bytes = want->spool_bytes,
		.migratable = want->migratable || (!want->gang && getenv("STAGE_MIGRATABLE")),
		.gang = want->gang,
		.gang_length = want->gang_length,
	};
	if (want->name)
		snprintf(spec->job, sizeof(spec->job), "%s", want->name);
	else
		snprintf(spec->job, sizeof(spec->job), "stage-%d-%u", getpid(), ++stage->sequence);
	if (want->limit.soft)
		spec->limits[spec->nlimits++] = want->limit;
	for (size_t i = 0; i < want->nlimits; i++)
		spec->limits[spec->nlimits++] = want->limits[i];
}

struct job stage_start(struct stage *stage, const struct want *want)
{
	struct job job = {.leash = -1, .shim = -1};
	struct launch_order order = {
		.shim_path = stage->shim,
		.jobs_dir = want->jobs ? want->jobs : stage->jobs,
		.run_dir = stage->run,
		.scope_cgroup = stage->scope,
		.uid = want->uid || want->root ? want->uid : NOBODY,
		.gid = want->uid || want->root ? want->gid : NOBODY,
		.allow_root = want->allow_root,
		.pam = want->pam,
		.begin_ms = want->begin_ms,
		.lease_until_ms = want->lease_is_over ? 2
				  : want->lease_ms
					  ? clock_boot_ns() / CLOCK_NS_PER_MS + want->lease_ms
					  : 0,
		.renew = want->renew,
		.spool_max = 1u << 20,
		.spill_max = SHIM_SPILL_MAX - want->spill_less,
		.spare = want->spare,
		.criu = want->criu,
		.account = want->account,
		.user_limits = want->flat ? NULL : &want->user_limits,
	};
	struct records records;
	struct spec spec;
	size_t length;
	void *packed;
	int fd[2];

	if (stage->secure) {
		stage_keys(&records, &job.records);
		order.records = &records;
		order.secret = (const uint8_t *)"a secret of just 32 bytes, is it";
		job.secure = true;
	}
	fill_spec(stage, want, &spec);
	strcpy(job.name, spec.job);
	if (spec_pack(&spec, &packed, &length, &job.err))
		abort();
	order.spec = packed;
	order.spec_length = (uint32_t)length;
	stage_pair(fd);
	job.client = fd[0];
	job.rc = launch_shim(&order, fd[1], &job.shim, &job.leash, &job.err);
	if (job.rc)
		close(fd[1]);
	free(packed);
	return job;
}

int stage_run(struct stage *stage, const struct want *want, struct run_result *result)
{
	struct run_stream_options options = {
		.stdio = {open(want->in ? want->in : "/dev/null", O_RDONLY | O_CLOEXEC),
			  open(stage->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
			  open(stage->err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)},
	};
	struct job job = stage_start(stage, want);
	int status = -1;

	if (job.rc) {
		fprintf(stderr, "launch_shim: %s\n", job.err.text);
		close(job.client);
	} else {
		options.records = stage_records(&job);
		status = run_stream(&options, job.client, result);
		stage_reap(&job);
		close(job.leash);
	}
	for (int i = 0; i < 3; i++)
		close(options.stdio[i]);
	return status;
}

const char *stage_read(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

int stage_event(int leash, struct launch_event *event)
{
	struct pollfd p = {.fd = leash, .events = POLLIN};
	int rc = -EAGAIN;

	for (int i = 0; i < 100 && rc == -EAGAIN; i++) {
		poll(&p, 1, 100);
		rc = launch_read(leash, event);
	}
	return rc;
}

int stage_signal(const struct stage *stage, const char *job, int signal)
{
	return stage_expel(stage, job, signal, NULL);
}

int stage_expel(const struct stage *stage, const char *job, int signal, const char *why)
{
	int fd = launch_expel_ask(stage->run, job, signal, why), rc;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return fd;
	do
		rc = poll(&p, 1, 10000) == 1 ? launch_signal_answer(fd) : -ETIMEDOUT;
	while (rc == -EAGAIN);
	close(fd);
	return rc;
}

int stage_reap(struct job *job)
{
	int status;

	if (waitpid(job->shim, &status, 0) != job->shim || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

bool stage_group_exists(const struct stage *stage, const char *job)
{
	char pattern[512];
	glob_t found;
	bool any;

	/* below any user */
	snprintf(pattern, sizeof(pattern), "%s/%s/jobs/*/%s", stage->v2, stage->scope, job);
	any = !glob(pattern, 0, NULL, &found);
	globfree(&found);
	snprintf(pattern, sizeof(pattern), "%s/%s/jobs/%s", stage->v2, stage->scope, job);
	return any || !access(pattern, F_OK);
}

int stage_count(const char *first, const char *second)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	char path[300], line[4096], text[128];
	/* A NUL separates the words, as in the file. */
	size_t length = (size_t)snprintf(text, sizeof(text), "%s %s", first, second);
	int count = 0;

	text[strlen(first)] = 0;
	while (proc && (entry = readdir(proc))) {
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, line, sizeof(line));
		if (fd >= 0)
			close(fd);
		count += n > 0 && memmem(line, (size_t)n, text, length) != NULL;
	}
	if (proc)
		closedir(proc);
	return count;
}

int stage_setup(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	*state = stage;
	return stage ? stage_up(stage) : -1;
}

int stage_setup_secure(void **state)
{
	int rc = stage_setup(state);

	if (!rc)
		((struct stage *)*state)->secure = true;
	return rc;
}

int stage_teardown(void **state)
{
	stage_down(*state);
	free(*state);
	return 0;
}

long stage_private_kb(pid_t pid)
{
	char path[64], line[256];
	long total = 0, kb;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "Private_Dirty: %ld", &kb) == 1)
			total += kb;
	if (in)
		fclose(in);
	return total;
}

int stage_take_found(void *recovered, const struct launch_found *found)
{
	struct stage_recovered *r = recovered;

	r->count++;
	r->found = *found;
	return 0;
}
