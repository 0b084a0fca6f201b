/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Admission at the target; see admission.h. */
#include "admission.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static void refuse(struct admission_verdict *v,
							 const char *reason, const char *fmt, ...)
{
	va_list ap;

	v->admitted = false;
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

/* By mode bits alone; where ACLs say otherwise, the job's own exec decides. */
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

static int look(const char *path, struct stat *st)
{
	return stat(path, st) ? -errno : 0;
}

/*
 * The same from what the kernel has in memory, -EAGAIN where that is not all.  A network's
 * file system (its device has no major number) may ask its server even then.
 */
static int look_in_memory(const char *path, struct stat *st)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct statx stx;
	int rc;

	if (fd < 0)
		return -EAGAIN;
	rc = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &stx);
	close(fd);
	if (rc || !stx.stx_dev_major)
		return -EAGAIN;
	*st = (struct stat){.st_mode = stx.stx_mode, .st_uid = stx.stx_uid, .st_gid = stx.stx_gid};
	return 0;
}

typedef int (*looker)(const char *path, struct stat *st);

/* Every directory on the way, then PATH itself.  0 or negative errno. */
static int walk(const char *path, const struct account *user, looker see, struct stat *st)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	int rc;

	if (*path != '/' || n >= sizeof(part))
		return -ENOENT;
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		rc = see(part, st);
		if (rc)
			return rc;
		if (i < n && S_ISDIR(st->st_mode) && !may_execute(st, user))
			return -EACCES;
	}
	return 0;
}

static int walk_cwd(const struct job_order *o, const struct account *user, looker see)
{
	struct stat st;
	int rc = walk(o->cwd, user, see, &st);

	if (!rc && !S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	return rc || may_execute(&st, user) ? rc : -EACCES;
}

bool admission_paths_in_memory(const struct job_order *o, const struct account *user)
{
	struct stat st;

	return !walk_cwd(o, user, look_in_memory) &&
	       (o->executable[0] != '/' || !walk(o->executable, user, look_in_memory, &st));
}

bool admission_paths(const struct job_order *o, const struct account *user, atomic_int *at,
		     struct admission_verdict *v)
{
	struct stat st;
	int rc;

	*v = (struct admission_verdict){.admitted = true};
	atomic_store(at, ADMISSION_AT_CWD);
	rc = walk_cwd(o, user, look);
	if (rc)
		refuse(v, "path-missing", "working directory %.120s: %s", o->cwd, strerror(-rc));
	if (rc || o->executable[0] != '/')
		return v->admitted;
	atomic_store(at, ADMISSION_AT_EXECUTABLE);
	rc = walk(o->executable, user, look, &st);
	/*
	 * One that is there but not executable fails as at home: exec says so, 126.  So does
	 * one that is missing at a node that the user named, 127: no other is to be tried.
	 */
	if (rc && !o->forced)
		refuse(v, "path-missing", "executable %.120s: %s", o->executable, strerror(-rc));
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
		refuse(v, "memory", "%.0f MB available, the job needs %.0f MB",
		       own->memory_available_mb, memory);
	else if (o->home_io > 0 && io > o->home_io)
		refuse(v, "overloaded",
		       "with the job %.3g disk requests/ms here, at home they are %.3g", io,
		       o->home_io);
	else if (o->home_cpu > 0 && own->run_queue + 1 > o->home_cpu)
		refuse(v, "overloaded", "with the job %.1f runnable tasks here, at home %.1f",
		       own->run_queue + 1, o->home_cpu);
	return v->admitted;
}

bool admission_user(const struct job_order *o, bool accepts_jobs, const struct users_policy *users,
		    struct account *user, struct admission_verdict *v)
{
	char why[sizeof(v->text)];

	*v = (struct admission_verdict){.admitted = true};
	if (!accepts_jobs) {
		refuse(v, "owner", "its owner lets no jobs in");
	} else if (account_find(o->uid, user)) {
		refuse(v, "no-user", "uid %u is unknown there", (unsigned)o->uid);
	} else if (!users_may(users, user, why, sizeof(why))) {
		refuse(v, "user", "%s", why);
		account_free(user);
	}
	return v->admitted;
}
