/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control groups of jobs; see cgroup.h.
 *
 * Killing: cgroup.kill also reaches a child that is being forked.  Without it
 * the group is frozen first, so that no fork escapes, and each process gets
 * SIGKILL, which a frozen v2 group delivers.
 *
 * Known race: a v1 group can refuse rmdir for a moment after its last process
 * died; cgroup_remove therefore tries again until its limit.
 *
 * Making and removing: the end of one job removes its user's empty group while
 * another job of the user begins.  The new job's group then finds its parent
 * missing (ENOENT) or dying (ENODEV) and makes both again; once it exists, the
 * kernel keeps its parent.
 */
#include "user/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WHOLE_MACHINE "iocom"
#define DEPTH_MAX     32
#define MAKE_TRIES    1000 /* each failed one means that another process removed a parent */

static bool has_option(const char *options, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = options; (at = strstr(at, name)); at += n)
		if ((at == options || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
			return true;
	return false;
}

static void take_mount(struct cgroup_mounts *mounts, const struct mntent *entry)
{
	if (strlen(entry->mnt_dir) >= sizeof(mounts->v2))
		return;
	if (!strcmp(entry->mnt_type, "cgroup2")) {
		if (!mounts->v2[0])
			strcpy(mounts->v2, entry->mnt_dir);
		return;
	}
	if (strcmp(entry->mnt_type, "cgroup") != 0 || mounts->nv1 == CGROUP_V1_MAX)
		return;
	if (!has_option(entry->mnt_opts, "memory") && !has_option(entry->mnt_opts, "cpu") &&
	    !has_option(entry->mnt_opts, "cpuacct") && !has_option(entry->mnt_opts, "pids")) {
		if (has_option(entry->mnt_opts, "devices"))
			strcpy(mounts->devices, entry->mnt_dir);
		return;
	}
	strcpy(mounts->v1[mounts->nv1++], entry->mnt_dir);
}

int cgroup_mounts_read(const char *table, struct cgroup_mounts *mounts, struct iocom_err *err)
{
	struct mntent entry;
	char line[4096];
	FILE *in = setmntent(table, "re");

	*mounts = (struct cgroup_mounts){0};
	if (!in)
		return iocom_err_set(err, -errno, "cannot read %s: %s", table, strerror(errno));
	while (getmntent_r(in, &entry, line, sizeof(line)))
		take_mount(mounts, &entry);
	endmntent(in);
	if (!mounts->v2[0])
		return iocom_err_set(
			err, -ENOENT,
			"no cgroup2 file system is mounted; mount one (mount -t cgroup2 "
			"none /sys/fs/cgroup/unified)");
	return 0;
}

static bool scope_valid(const char *scope)
{
	if (*scope == '/')
		return false;
	for (const char *at = scope; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && at[0] == '.' && at[1] == '.')
			return false;
		at += n + (at[n] == '/');
	}
	return true;
}

static int cgroup_join(char *out, const char *mount, const char *scope, const char *name)
{
	int n = snprintf(out, CGROUP_PATH_MAX, "%s/%s/%s", mount, *scope ? scope : WHOLE_MACHINE,
			 name);

	return n < 0 || n >= CGROUP_PATH_MAX ? -ENAMETOOLONG : 0;
}

int cgroup_name(const struct cgroup_mounts *mounts, const char *scope, const char *name,
		struct cgroup *group, struct iocom_err *err)
{
	struct stat st;

	*group = (struct cgroup){.depth = 1, .whole = !*scope};
	for (const char *at = name; *at; at++)
		group->depth += *at == '/';
	if (!scope_valid(scope))
		return iocom_err_set(err, -EINVAL,
				     "a scope is a path below the cgroup mount, not '%s'", scope);
	if (cgroup_join(group->v2, mounts->v2, scope, name))
		return iocom_err_set(err, -ENAMETOOLONG, "the cgroup's name is too long: %s",
				     scope);
	for (size_t i = 0; i < mounts->nv1; i++) {
		char *path = group->v1[group->nv1];
		int n = snprintf(path, CGROUP_PATH_MAX, "%s/%s", mounts->v1[i], scope);

		if (n < 0 || n >= CGROUP_PATH_MAX || stat(path, &st))
			continue;
		if (!cgroup_join(path, mounts->v1[i], scope, name))
			group->nv1++;
	}
	return 0;
}

int cgroup_write(const char *directory, const char *file, const char *text)
{
	char path[CGROUP_PATH_MAX + 64];
	size_t n = strlen(text);
	int fd, rc = 0;

	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != (ssize_t)n)
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

/* Reads a small file. Returns its length or negative errno. */
static ssize_t cgroup_read_file(const char *directory, const char *file, char *out, size_t size)
{
	char path[CGROUP_PATH_MAX + 64];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	if (n < 0)
		n = -errno;
	else
		out[n] = 0;
	close(fd);
	return n;
}

/* Reads a list of controllers with commas between them. Returns 0 or -ENOENT. */
static int read_controllers(const char *directory, const char *file, char *out, size_t size)
{
	if (cgroup_read_file(directory, file, out, size) < 0)
		return -ENOENT;
	for (char *at = out; *at; at++)
		if (*at == ' ' || *at == '\n')
			*at = ',';
	return 0;
}

/*
 * Offers those of the N controllers WANTED that DIRECTORY has to its children: in one write, since
 * each makes the kernel rebuild all groups below. Best effort: the kernel refuses this to a group
 * with processes of its own (EBUSY), and then the job runs without limits.
 */
static void offer_controllers(const char *directory, const char *const *wanted, size_t n)
{
	char have[256], offered[256], text[64] = "";
	size_t length = 0;

	if (read_controllers(directory, "cgroup.controllers", have, sizeof(have)) ||
	    read_controllers(directory, "cgroup.subtree_control", offered, sizeof(offered)))
		return;
	for (size_t i = 0; i < n; i++)
		if (has_option(have, wanted[i]) && !has_option(offered, wanted[i]))
			length += (size_t)snprintf(text + length, sizeof(text) - length, "+%s ",
						   wanted[i]);
	if (!length || !cgroup_write(directory, "cgroup.subtree_control", text))
		return;
	/* One of them is refused; the others may not be. */
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "+%s", wanted[i]);
		if (has_option(have, wanted[i]) && !has_option(offered, wanted[i]))
			cgroup_write(directory, "cgroup.subtree_control", text);
	}
}

static bool cgroup_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
	return slash != NULL;
}

/* Offers controllers from the scope down to the parent of PATH, which is DEPTH levels below. */
static void offer_down(const char *path, unsigned depth, bool whole)
{
	static const char *const wanted[] = {"memory", "pids", "cpu", "io"};
	char parent[CGROUP_PATH_MAX];

	strcpy(parent, path);
	if (!depth || !cgroup_up(parent))
		return;
	offer_down(parent, depth - 1, whole);
	offer_controllers(parent, wanted, 4);
	/* Above the scope "iocom" is the machine's root, whose other groups must keep their share
	 * of the processors and disks: take only what limits need. */
	if (depth == 1 && whole && cgroup_up(parent))
		offer_controllers(parent, wanted, 2);
}

/* Makes PATH and up to PARENTS missing parents: SCOPE may be new, "jobs" often is. */
static int make_path(const char *path, unsigned parents)
{
	char parent[CGROUP_PATH_MAX];
	int rc;

	if (!mkdir(path, 0755) || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !parents)
		return -errno;
	strcpy(parent, path);
	if (!cgroup_up(parent))
		return -ENOENT;
	rc = make_path(parent, parents - 1);
	return rc || !mkdir(path, 0755) || errno == EEXIST ? rc : -errno;
}

static int make_group(const char *path, unsigned parents)
{
	int rc = -ENOENT;

	for (unsigned i = 0; i < MAKE_TRIES && (rc == -ENOENT || rc == -ENODEV); i++)
		rc = make_path(path, parents);
	return rc;
}

/* Returns the id that BPF sees. It is in name_to_handle_at's handle; on 64-bit machines the
 * inode number is the same. */
static uint64_t group_id(const char *path)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + 8];
	} u = {.handle = {.handle_bytes = 8}};
	uint64_t id = 0;
	struct stat st;
	int mount;

	if (!name_to_handle_at(AT_FDCWD, path, &u.handle, &mount, 0)) {
		memcpy(&id, u.room + sizeof(struct file_handle), sizeof(id));
		return id;
	}
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

static int cgroup_cannot_make(const char *path, int rc, struct iocom_err *err)
{
	return iocom_err_set(err, rc, "cannot make the cgroup %s: %s", path, strerror(-rc));
}

int cgroup_create(struct cgroup *group, struct iocom_err *err)
{
	int rc = make_group(group->v2, group->depth);

	if (rc)
		return cgroup_cannot_make(group->v2, rc, err);
	offer_down(group->v2, group->depth, group->whole);
	if (cgroup_populated(group) == 1)
		return iocom_err_set(err, -EBUSY, "the cgroup %s already has processes", group->v2);
	for (size_t i = 0; i < group->nv1; i++) {
		rc = make_group(group->v1[i], group->depth);
		if (rc)
			return cgroup_cannot_make(group->v1[i], rc, err);
	}
	group->id = group_id(group->v2);
	return 0;
}

int cgroup_enter(const struct cgroup *group, bool v2)
{
	int rc = v2 ? cgroup_write(group->v2, "cgroup.procs", "0") : 0;

	for (size_t i = 0; i < group->nv1 && !rc; i++)
		rc = cgroup_write(group->v1[i], "cgroup.procs", "0");
	return rc;
}

/* Returns true if a line of /proc/self/cgroup, "ID:CONTROLLERS:PATH", names a service's devices. */
static bool cgroup_is_service_devices(char *line)
{
	static const char service[] = ".service";
	char *controllers = strchr(line, ':'), *path;
	size_t n;

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return false;
	*path++ = 0;
	n = strlen(path);
	return has_option(controllers + 1, "devices") && n >= sizeof(service) - 1 &&
	       !strcmp(path + n - (sizeof(service) - 1), service);
}

int cgroup_leave_devices(const struct cgroup_mounts *mounts)
{
	char text[4096], *rest = text, *line;
	ssize_t n;

	if (!mounts->devices[0])
		return 0;
	n = cgroup_read_file("/proc/self", "cgroup", text, sizeof(text));
	if (n < 0)
		return (int)n;
	while ((line = strsep(&rest, "\n")))
		if (cgroup_is_service_devices(line))
			return cgroup_write(mounts->devices, "cgroup.procs", "0");
	return 0;
}

int cgroup_open(const struct cgroup *group)
{
	int fd = open(group->v2, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int cgroup_populated(const struct cgroup *group)
{
	char text[256];
	ssize_t n = cgroup_read_file(group->v2, "cgroup.events", text, sizeof(text));

	if (n < 0)
		return (int)n;
	return strstr(text, "populated 1") ? 1 : 0;
}

uint64_t cgroup_cpu_us(const struct cgroup *group)
{
	unsigned long long us = 0;
	char text[1024];
	const char *at;

	if (cgroup_read_file(group->v2, "cpu.stat", text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "usage_usec ");
	return at && sscanf(at, "usage_usec %llu", &us) == 1 ? us : 0;
}

/* Sends SIGNAL to each process of one directory. Returns how many got it, or negative errno. */
static int signal_directory(const char *directory, int signal)
{
	char path[CGROUP_PATH_MAX + 64];
	int pid, count = 0;
	FILE *in;

	if (snprintf(path, sizeof(path), "%s/cgroup.procs", directory) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	in = fopen(path, "re");
	if (!in)
		return -errno;
	while (fscanf(in, "%d", &pid) == 1)
		if (pid > 0) /* 0: a process of another pid namespace, which we cannot reach */
			count += !kill(pid, signal);
	fclose(in);
	return count;
}

typedef int (*directory_fn)(const char *directory, int arg);

/* Calls FN for the groups below DIRECTORY (children first), then for DIRECTORY. */
static int cgroup_walk(const char *directory, unsigned depth, directory_fn fn, int arg)
{
	DIR *dir = depth < DEPTH_MAX ? opendir(directory) : NULL;
	char path[CGROUP_PATH_MAX];
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) <
		    (int)sizeof(path))
			cgroup_walk(path, depth + 1, fn, arg);
	}
	if (dir)
		closedir(dir);
	return fn(directory, arg);
}

int cgroup_signal(const struct cgroup *group, int signal)
{
	int rc = cgroup_walk(group->v2, 0, signal_directory, signal);

	return rc < 0 ? rc : 0;
}

int cgroup_kill(const struct cgroup *group)
{
	int rc = cgroup_write(group->v2, "cgroup.kill", "1");

	if (rc != -ENOENT || access(group->v2, F_OK))
		return rc;
	cgroup_write(group->v2, "cgroup.freeze", "1");
	for (unsigned round = 0; round < 100 && cgroup_populated(group) == 1; round++) {
		rc = cgroup_signal(group, SIGKILL);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	cgroup_write(group->v2, "cgroup.freeze", "0");
	return rc == -ENOENT ? 0 : rc;
}

static int remove_directory(const char *directory, int arg)
{
	(void)arg;
	return rmdir(directory) && errno != ENOENT ? -errno : 0;
}

/* Tries rmdir first, because most groups have no children. */
static int remove_tree(const char *directory)
{
	return remove_directory(directory, 0) ? cgroup_walk(directory, 0, remove_directory, 0) : 0;
}

static int remove_once(const struct cgroup *group)
{
	int rc = remove_tree(group->v2);

	for (size_t i = 0; i < group->nv1 && !rc; i++)
		rc = remove_tree(group->v1[i]);
	return rc;
}

int cgroup_remove(const struct cgroup *group, unsigned limit_ms)
{
	unsigned waited = 0, pause_ms = 1;
	int rc = remove_once(group);

	while (rc == -EBUSY && waited < limit_ms) {
		cgroup_kill(group);
		nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000L}, NULL);
		waited += pause_ms;
		if (pause_ms < 16)
			pause_ms *= 2;
		rc = remove_once(group);
	}
	return rc;
}

/* Removes the groups, or their parents with PARENT. Returns false if one is in use and stays. */
static bool remove_empty(struct cgroup *group, bool parent)
{
	bool gone = true;

	for (size_t i = 0; i <= group->nv1; i++) {
		char *path = i < group->nv1 ? group->v1[i] : group->v2;

		if (parent)
			*strrchr(path, '/') = 0;
		if (rmdir(path) && errno == EBUSY)
			gone = false;
	}
	return gone;
}

/*
 * Removes the users' groups below PATH that are empty. A shim that begins a job in one makes it
 * again.
 */
static void remove_users(const char *path)
{
	char user[CGROUP_PATH_MAX];
	const struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && strchr(entry->d_name, '@') &&
		    snprintf(user, sizeof(user), "%s/%s", path, entry->d_name) < (int)sizeof(user))
			(void)rmdir(user);
	if (dir)
		closedir(dir);
}

/* Waits for shims whose jobs have ended: they leave the group within moments. */
static void remove_when_left(struct cgroup *group, unsigned limit_ms)
{
	for (unsigned waited = 0; !remove_empty(group, false) && waited < limit_ms; waited += 5)
		nanosleep(&(struct timespec){.tv_nsec = 5000000L}, NULL);
}

void cgroup_tidy(const char *scope, unsigned limit_ms)
{
	struct cgroup_mounts mounts;
	struct cgroup jobs, guests, shims;

	if (cgroup_mounts_read("/proc/self/mounts", &mounts, NULL) ||
	    cgroup_name(&mounts, scope, "jobs", &jobs, NULL) ||
	    cgroup_name(&mounts, scope, "guests", &guests, NULL) ||
	    cgroup_name(&mounts, scope, "shims", &shims, NULL))
		return;
	for (size_t i = 0; i <= jobs.nv1; i++) {
		remove_users(i < jobs.nv1 ? jobs.v1[i] : jobs.v2);
		remove_users(i < guests.nv1 ? guests.v1[i] : guests.v2);
	}
	/* A running job's shim stays in the group, so waiting is useless. */
	if (!remove_empty(&jobs, false) || !remove_empty(&guests, false))
		limit_ms = 0;
	remove_when_left(&shims, limit_ms);
	if (!*scope)
		(void)remove_empty(&jobs, true);
}
