/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Admission at the target; see admission.h. */
#include "agent/guest/admission.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/base/accounts.h"

__attribute__((format(printf, 3, 4))) static void
admission_refuse(struct admission_verdict *v, const char *reason, const char *fmt, ...)
{
	va_list ap;

	v->admitted = false;
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

/* Checks mode bits only; if ACLs say otherwise, the job's own exec decides. */
static bool may_execute(const struct stat *st, const struct account *user)
{
	if (user->uid == 0)
		return S_ISDIR(st->st_mode) || (st->st_mode & 0111);
	if (st->st_uid == user->uid)
		return st->st_mode & S_IXUSR;
	if (account_has_group(user, st->st_gid))
		return st->st_mode & S_IXGRP;
	return st->st_mode & S_IXOTH;
}

/*
 * Opens NAME below the directory AT.  IN_MEMORY: only from the kernel's cache, -EAGAIN if that does
 * not suffice.  A network file system (its device has no major number) may ask its server even
 * then.  A descriptor or negative errno.
 */
static int admission_look(int at, const char *name, uint64_t flags, uint64_t resolve,
			  bool in_memory, struct stat *st)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags,
			       .resolve = resolve | (in_memory ? RESOLVE_CACHED : 0)};
	int fd = (int)syscall(SYS_openat2, at, name, &how, sizeof(how)), rc;
	struct statx stx;

	if (fd < 0)
		return -errno;
	rc = statx(fd, "", AT_EMPTY_PATH | (in_memory ? AT_STATX_DONT_SYNC : 0), STATX_BASIC_STATS,
		   &stx);
	if (rc || (in_memory && !stx.stx_dev_major)) {
		rc = rc ? -errno : -EAGAIN;
		close(fd);
		return rc;
	}
	*st = (struct stat){.st_mode = stx.stx_mode, .st_uid = stx.stx_uid, .st_gid = stx.stx_gid};
	return fd;
}

/* Looks at a directory by its ".", which mounts what is mounted on demand. */
static int look_through(int at, const char *name, bool in_memory, struct stat *st)
{
	char inside[NAME_MAX + 3];
	int fd;

	snprintf(inside, sizeof(inside), "%s/.", name);
	fd = admission_look(at, inside, 0, RESOLVE_NO_SYMLINKS, in_memory, st);
	/* With IN_MEMORY, the kernel reports a non-directory as not cached (-EAGAIN). */
	if (fd != -ENOTDIR && fd != -ELOOP && !(in_memory && fd == -EAGAIN))
		return fd;
	fd = admission_look(at, name, O_NOFOLLOW, 0, in_memory, st);
	if (fd < 0 || !S_ISDIR(st->st_mode))
		return fd;
	close(fd);
	return -EAGAIN;
}

/*
 * THEIRS: the link cannot be judged from here.  LINK: root made the link, and its text must be
 * followed.
 */
#define THEIRS	  1
#define LINK	  2
#define LINKS_MAX 40 /* the kernel's limit */

/* Refuses links of /proc, which lead to what the agent has open. */
static int read_link(int fd, char text[PATH_MAX])
{
	struct statfs fs;
	ssize_t n;

	if (fstatfs(fd, &fs) || fs.f_type == PROC_SUPER_MAGIC)
		return THEIRS;
	n = readlinkat(fd, "", text, PATH_MAX - 1);
	if (n <= 0)
		return n ? -errno : -ENOENT;
	text[n] = 0;
	return LINK;
}

/*
 * One step: AT becomes NAME in it, and ST describes it.  Links that root made are followed through
 * their TEXT, and each directory on the way is checked like any other.  Links of other users are
 * not followed with root's eyes, or refusals would reveal what root's directories hold: the job's
 * own exec finds out.
 */
static int admission_step(int *at, const char *name, bool in_memory, struct stat *st,
			  char text[PATH_MAX])
{
	struct stat next;
	int fd = look_through(*at, name, in_memory, &next), rc = 0;

	if (fd < 0)
		return fd;
	if (S_ISLNK(next.st_mode)) {
		rc = next.st_uid != 0 ? THEIRS : read_link(fd, text);
		close(fd);
		return rc;
	}
	close(*at);
	*at = fd;
	*st = next;
	return 0;
}

struct way {
	int at;
	char rest[2 * PATH_MAX], *next; /* the path still to be walked */
	unsigned links;
};

static int from_root(struct way *way, bool in_memory, struct stat *st)
{
	int root = admission_look(AT_FDCWD, "/", 0, 0, in_memory, st);

	if (root < 0)
		return root;
	if (way->at >= 0)
		close(way->at);
	way->at = root;
	return 0;
}

/* Puts TEXT before the path still to be walked. */
static int admission_turn(struct way *way, const char *text, bool in_memory, struct stat *st)
{
	char rest[sizeof(way->rest)];

	if (++way->links > LINKS_MAX)
		return -ELOOP;
	if (snprintf(rest, sizeof(rest), "%s%s%s", text, *way->next ? "/" : "", way->next) >=
	    (int)sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(way->rest, rest);
	way->next = way->rest;
	return *text == '/' ? from_root(way, in_memory, st) : 0;
}

static int go(struct way *way, const struct account *user, bool in_memory, struct stat *st)
{
	char name[NAME_MAX + 1], text[PATH_MAX];
	size_t n = strcspn(way->next, "/");
	int rc;

	if (!S_ISDIR(st->st_mode))
		return -ENOTDIR;
	if (!may_execute(st, user))
		return -EACCES;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, way->next, n);
	name[n] = 0;
	way->next += n;
	rc = admission_step(&way->at, name, in_memory, st, text);
	return rc == LINK ? admission_turn(way, text, in_memory, st) : rc;
}

/* Checks every directory on the way, then PATH itself.  Returns 0, THEIRS or negative errno. */
static int admission_walk(const char *path, const struct account *user, bool in_memory,
			  struct stat *st)
{
	struct way way = {.at = -1};
	int rc;

	if (*path != '/')
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(way.rest, path);
	way.next = way.rest;
	rc = from_root(&way, in_memory, st);
	for (way.next += strspn(way.next, "/"); *way.next && !rc; way.next += strspn(way.next, "/"))
		rc = go(&way, user, in_memory, st);
	if (way.at >= 0)
		close(way.at);
	return rc;
}

/* A program below the working directory goes along with a job that brings its data. */
static bool brings_program(const struct job_order *o)
{
	size_t n = strlen(o->cwd);

	return o->data && !strncmp(o->executable, o->cwd, n) && o->executable[n] == '/';
}

static int walk_cwd(const struct job_order *o, const struct account *user, bool in_memory)
{
	struct stat st;
	int rc = admission_walk(o->cwd, user, in_memory, &st);

	if (!rc && !S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	return rc || may_execute(&st, user) ? rc : -EACCES;
}

/* The job's data is at home on a shared file system: here its directory must be the same one. */
static void check_shared(const struct job_order *o, struct admission_verdict *v)
{
	bool of_home = !strncmp(o->shared, SHARED_FS_HERE ":", sizeof(SHARED_FS_HERE));
	char here[SHARED_FS_MAX], server[IOCOM_ADDRESS_MAX];
	int rc = shared_fs_name(SHARED_FS_TABLE, o->cwd, here, sizeof(here));

	/* One of the two nodes may be the server, where the directory is on a disk. */
	if (of_home && !rc && shared_fs_is_export(here, o->cwd) &&
	    !shared_fs_server(SHARED_FS_TABLE, o->cwd, server, sizeof(server)) &&
	    !strcmp(server, o->home_address))
		return;
	if (rc == -ENOENT && !of_home && shared_fs_is_export(o->shared, o->cwd) &&
	    shared_fs_is_own(o->shared) && shared_fs_exported(SHARED_FS_EXPORTS, o->cwd))
		return;
	if (rc)
		admission_refuse(
			v, "path-missing",
			"working directory %.80s is not on a shared file system here, but on "
			"%.80s at home",
			o->cwd, of_home ? o->shared + sizeof(SHARED_FS_HERE) : o->shared);
	else if (strcmp(here, o->shared) != 0)
		admission_refuse(v, "path-missing",
				 "working directory %.60s is %.70s here, but %.70s at home", o->cwd,
				 here, of_home ? o->shared + sizeof(SHARED_FS_HERE) : o->shared);
}

bool admission_paths_in_memory(const struct job_order *o, const struct account *user)
{
	struct stat st;

	return !*o->shared && (o->data || walk_cwd(o, user, true) >= 0) &&
	       (o->executable[0] != '/' || brings_program(o) ||
		admission_walk(o->executable, user, true, &st) >= 0);
}

bool admission_paths(const struct job_order *o, const struct account *user, atomic_int *at,
		     struct admission_verdict *v)
{
	struct stat st;
	int rc;

	*v = (struct admission_verdict){.admitted = true};
	atomic_store(at, ADMISSION_AT_CWD);
	rc = o->data ? 0 : walk_cwd(o, user, false);
	if (rc < 0)
		admission_refuse(v, "path-missing", "working directory %.120s: %s", o->cwd,
				 strerror(-rc));
	if (rc >= 0 && *o->shared)
		check_shared(o, v);
	if (!v->admitted || o->executable[0] != '/' || brings_program(o))
		return v->admitted;
	atomic_store(at, ADMISSION_AT_EXECUTABLE);
	rc = admission_walk(o->executable, user, false, &st);
	/*
	 * An executable that exists but cannot be executed fails as at home: exec reports status
	 * 126.  At a node that the user named, a missing one fails so too, with 127, because no
	 * other node must be tried.
	 */
	if (rc < 0 && !o->forced)
		admission_refuse(v, "path-missing", "executable %.120s: %s", o->executable,
				 strerror(-rc));
	return v->admitted;
}

bool admission_loads(const struct job_order *o, const struct iocom_vector *own,
		     struct admission_verdict *v)
{
	double memory = o->need.value[NEED_MEMORY_MB];
	double io =
		own->explicit_per_ms + own->implicit_per_ms + o->need.value[NEED_IO_PER_S] / 1e3;

	*v = (struct admission_verdict){.admitted = true};
	if (o->forced)
		return true;
	if (own->memory_available_mb < memory)
		admission_refuse(v, "memory", "%.0f MB available, the job needs %.0f MB",
				 own->memory_available_mb, memory);
	else if (o->home_io > 0 && io > o->home_io)
		admission_refuse(
			v, "overloaded",
			"with the job this node would have %.3g disk requests/ms, home %.3g", io,
			o->home_io);
	else if (o->home_cpu > 0 && own->run_queue + 1 > o->home_cpu)
		admission_refuse(v, "overloaded",
				 "with the job this node would have %.1f runnable tasks, home %.1f",
				 own->run_queue + 1, o->home_cpu);
	return v->admitted;
}

bool admission_user(const struct job_order *o, bool accepts_jobs, struct accounts *accounts,
		    const struct users_policy *users, struct account *user,
		    struct admission_verdict *v)
{
	char why[sizeof(v->text)];
	int rc;

	*v = (struct admission_verdict){.admitted = true};
	if (!accepts_jobs) {
		admission_refuse(v, "owner", "its owner lets no jobs in");
		return false;
	}
	rc = accounts_find(accounts, o->uid, user);
	if (rc == -EHOSTDOWN) {
		admission_refuse(v, "user-slow",
				 "the name service there does not answer who uid %u is",
				 (unsigned)o->uid);
	} else if (rc) {
		admission_refuse(v, "no-user", "uid %u is unknown there", (unsigned)o->uid);
	} else if (!users_may(users, user, why, sizeof(why))) {
		admission_refuse(v, "user", "%s", why);
		account_free(user);
	}
	return v->admitted;
}
