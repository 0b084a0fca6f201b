/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See scratch.h. */
#include "agent/shim/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/data_usage.h"

#define CACHE	      "cache"
#define SCRATCH_DEPTH 32 /* what is deeper is moved up, so that few descriptors suffice */

void scratch_init(struct scratch *scratch)
{
	*scratch = (struct scratch){.user = -1, .job = -1};
}

/* --- removing ------------------------------------------------------------------------- */

/* A tree that is being removed. */
struct removal {
	int top; /* the directory that has the tree's top */
	dev_t device;
	uid_t owner;
	unsigned moved;
};

/*
 * Returns true if the directory may be removed with all that is in it: it is on this file system,
 * and the tree's owner's, or one that only root can have put there.  Users may move directories of
 * others here, in which they could not remove everything themselves.
 */
static bool removal_may(const struct removal *r, const struct stat *st)
{
	return st->st_dev == r->device &&
	       (st->st_uid == r->owner || (st->st_uid == geteuid() && !(st->st_mode & 0022)));
}

static int scratch_open(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Its owner may have closed the directory FD to himself; root's rights may not suffice on every
 * file system. */
static DIR *removal_list(int fd)
{
	DIR *dir;

	(void)fchmod(fd, 0700);
	dir = fdopendir(fd);
	if (!dir)
		close(fd);
	return dir;
}

static int removal_one(struct removal *r, int at, const char *name, unsigned depth);

/* Removes what is in the directory FD, which is closed. */
static int removal_empty(struct removal *r, int fd, unsigned depth)
{
	DIR *dir = removal_list(fd);
	const struct dirent *entry;
	int rc = 0, one;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		one = removal_one(r, dirfd(dir), entry->d_name, depth + 1);
		rc = rc ? rc : one;
	}
	closedir(dir);
	return rc;
}

static int removal_one(struct removal *r, int at, const char *name, unsigned depth)
{
	char deep[32];
	struct stat st;
	int fd, rc;

	if (!unlinkat(at, name, 0))
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno == ENOENT ? 0 : -errno;
	if (!unlinkat(at, name, AT_REMOVEDIR))
		return 0;
	if (depth > SCRATCH_DEPTH) {
		/* Below the tree's top, where the next round finds it. */
		snprintf(deep, sizeof(deep), "deep-%u", r->moved++);
		return renameat(at, name, r->top, deep) ? -errno : 0;
	}
	fd = scratch_open(at, name);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !removal_may(r, &st)) {
		close(fd);
		return -EXDEV; /* something is mounted there, or it is another user's */
	}
	rc = removal_empty(r, fd, depth);
	return unlinkat(at, name, AT_REMOVEDIR) && errno != ENOENT ? rc ? rc : -errno : rc;
}

int scratch_remove_tree(int at, const char *name)
{
	struct removal r = {.top = scratch_open(at, name)};
	struct stat st;
	unsigned moved;
	int rc = 0, fd;

	if (r.top < 0)
		return r.top == -ENOENT ? 0 : r.top;
	if (fstat(r.top, &st)) {
		rc = -errno;
		close(r.top);
		return rc;
	}
	r.device = st.st_dev;
	r.owner = st.st_uid;
	do {
		moved = r.moved;
		fd = scratch_open(r.top, ".");
		rc = fd < 0 ? fd : removal_empty(&r, fd, 0);
	} while (moved != r.moved);
	close(r.top);
	return unlinkat(at, name, AT_REMOVEDIR) && errno != ENOENT ? rc ? rc : -errno : 0;
}

/* Removes the directory of a job whose shim is gone: nobody has it locked. */
static void sweep_one(int user, const char *name)
{
	int fd = scratch_open(user, name);

	if (fd < 0) {
		if (fd == -ENOTDIR || fd == -ELOOP)
			return; /* root's own file */
		(void)unlinkat(user, name, AT_REMOVEDIR);
		return;
	}
	if (!flock(fd, LOCK_EX | LOCK_NB))
		(void)scratch_remove_tree(user, name);
	close(fd);
}

/* The directory USER is locked. */
static void sweep_user(int user)
{
	int fd = scratch_open(user, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)) != NULL)
		if (spec_job_valid(entry->d_name) && strcmp(entry->d_name, CACHE) != 0)
			sweep_one(user, entry->d_name);
	if (dir)
		closedir(dir);
}

static int scratch_lock(int fd)
{
	while (flock(fd, LOCK_EX))
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Opens NAME below AT, which must be root's and no one else's to change. */
static int scratch_open_own(int at, const char *name)
{
	int fd = scratch_open(at, name);
	struct stat st;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 0022))
		return fd;
	close(fd);
	return -EPERM;
}

void scratch_sweep(const char *data_dir)
{
	int top = scratch_open_own(AT_FDCWD, data_dir), user;
	DIR *dir = top < 0 ? NULL : fdopendir(top);
	const struct dirent *entry;

	if (!dir && top >= 0)
		close(top);
	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[strspn(entry->d_name, "0123456789")])
			continue;
		user = scratch_open_own(dirfd(dir), entry->d_name);
		if (user < 0)
			continue;
		if (!scratch_lock(user))
			sweep_user(user);
		close(user);
	}
	if (dir)
		closedir(dir);
}

/* --- making --------------------------------------------------------------------------- */

/*
 * Makes the user's directory NAME, or checks the one that is there.  Returns a descriptor.  A fresh
 * one is locked before it is the user's, who could lock it first, for good.
 */
static int scratch_make_for(int user, const char *name, uid_t uid, gid_t gid, bool fresh)
{
	struct stat st;
	int fd, made = mkdirat(user, name, 0700);

	if (made && (errno != EEXIST || fresh))
		return -errno;
	fd = scratch_open(user, name);
	if (fd < 0)
		return fd;
	if (fresh && flock(fd, LOCK_EX | LOCK_NB))
		goto failed;
	if (!made && fchown(fd, uid, gid))
		goto failed;
	if (fstat(fd, &st))
		goto failed;
	if (st.st_uid == uid)
		return fd;
	errno = EPERM;
failed:
	made = -errno;
	close(fd);
	return made;
}

static int scratch_make_in(struct scratch *s, uid_t uid, gid_t gid)
{
	int fd, rc = scratch_lock(s->user);

	if (rc)
		return rc;
	sweep_user(s->user);
	fd = scratch_make_for(s->user, CACHE, uid, gid, false);
	if (fd < 0)
		return fd;
	close(fd);
	s->job = scratch_make_for(s->user, s->name, uid, gid, true);
	rc = s->job < 0 ? s->job : 0;
	flock(s->user, LOCK_UN);
	return rc;
}

int scratch_make(struct scratch *s, const char *data_dir, uid_t uid, gid_t gid, const char *job,
		 struct iocom_err *err)
{
	int top = *data_dir ? scratch_open_own(AT_FDCWD, data_dir) : -ENOENT, rc = top;
	char name[16];

	scratch_init(s);
	snprintf(s->name, sizeof(s->name), "%s", job);
	snprintf(name, sizeof(name), "%u", (unsigned)uid);
	snprintf(s->path, sizeof(s->path), "%s/%s/%s", data_dir, name, job);
	snprintf(s->cache, sizeof(s->cache), "%s/%s/" CACHE, data_dir, name);
	if (top >= 0) {
		rc = mkdirat(top, name, 0711) && errno != EEXIST ? -errno : 0;
		if (!rc)
			s->user = scratch_open_own(top, name);
		if (!rc && s->user < 0)
			rc = s->user;
		if (!rc && fchmod(s->user, 0711)) /* whatever the umask was */
			rc = -errno;
		close(top);
	}
	if (rc >= 0)
		rc = scratch_make_in(s, uid, gid);
	return rc < 0 ? iocom_err_set(err, rc,
				      "cannot make a directory for the job's data in %s: %s",
				      *data_dir ? data_dir : "data_dir", strerror(-rc))
		      : 0;
}

void scratch_note(const struct scratch *s, const struct data_stats *stats)
{
	if (scratch_lock(s->user))
		return;
	(void)data_usage_add(s->user, stats);
	flock(s->user, LOCK_UN);
}

void scratch_note_refused(const struct scratch *s)
{
	if (scratch_lock(s->user))
		return;
	(void)data_usage_refuse(s->user);
	flock(s->user, LOCK_UN);
}

void scratch_remove(struct scratch *s)
{
	if (s->user >= 0) {
		if (s->job >= 0 && !scratch_lock(s->user))
			(void)scratch_remove_tree(s->user, s->name);
		close(s->user);
	}
	if (s->job >= 0)
		close(s->job);
	scratch_init(s);
}
