/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds the paths of cgroups by id; see sample_names.h.
 *
 * On a 64-bit machine the inode number of a cgroup2 directory is the cgroup's id. readdir()
 * returns it, so a walk needs one open and one readdir per cgroup and no stat.
 */
#include "user/monitor/sample_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "iocom/array.h"
#include "user/utf8.h"

#define DEPTH_MAX 64

struct entry {
	uint64_t id;
	uint64_t parent;
	char *path;	/* NULL: looked for and not found */
	uint64_t owner; /* the cgroup that people name, with this one below it; 0: not looked for */
	struct group_name *group; /* of the owner's entry: what people call it; NULL: its path */
};

struct sample_names {
	char *root;
	struct entry *entries; /* the first `sorted` are sorted by id */
	size_t n, sorted, room;
	bool walked; /* a walk was done since sample_names_begin */
};

struct sample_names *sample_names_new(const char *root)
{
	struct sample_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->root = strdup(root);
	if (!names->root) {
		free(names);
		return NULL;
	}
	return names;
}

void sample_names_free(struct sample_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n; i++) {
		free(names->entries[i].path);
		free(names->entries[i].group);
	}
	free(names->entries);
	free(names->root);
	free(names);
}

void sample_names_begin(struct sample_names *names)
{
	names->walked = false;
}

static int sample_names_by_id(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static struct entry *sample_names_find(struct sample_names *names, uint64_t id)
{
	struct entry key = {.id = id};

	if (!names->sorted)
		return NULL;
	return bsearch(&key, names->entries, names->sorted, sizeof(key), sample_names_by_id);
}

/* Takes PATH, which is NULL only for an id that was not found. */
static int sample_names_append(struct sample_names *names, uint64_t id, uint64_t parent, char *path)
{
	if (array_reserve(names->entries, names->room, names->n + 1, 64)) {
		free(path);
		return -ENOMEM;
	}
	names->entries[names->n++] = (struct entry){.id = id, .parent = parent, .path = path};
	return 0;
}

static int sample_names_note(struct sample_names *names, uint64_t id, uint64_t parent,
			     const char *path)
{
	struct entry *known = sample_names_find(names, id);
	char *copy;

	if (known && known->path)
		return 0;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	if (!known)
		return sample_names_append(names, id, parent, copy);
	known->path = copy;
	known->owner = 0; /* the path may tell it now */
	known->parent = parent;
	return 0;
}

static int sample_names_walk(struct sample_names *names, int fd, uint64_t id, char *path,
			     size_t length, unsigned depth);

static int walk_child(struct sample_names *names, DIR *dir, uint64_t id, const char *name,
		      uint64_t child_id, char *path, size_t length, unsigned depth)
{
	int n = snprintf(path + length, PATH_MAX - length, "/%s", name);
	int rc, fd;

	if (n < 0 || (size_t)n >= PATH_MAX - length)
		return 0;
	rc = sample_names_note(names, child_id, id, path);
	if (rc || depth >= DEPTH_MAX)
		return rc;
	fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0; /* the directory was removed meanwhile, or we may not read it */
	return sample_names_walk(names, fd, child_id, path, length + (size_t)n, depth + 1);
}

/* Notes all directories below FD (taken), whose path is PATH[0..LENGTH). */
static int sample_names_walk(struct sample_names *names, int fd, uint64_t id, char *path,
			     size_t length, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;
	int rc = 0;

	if (!dir) {
		rc = -errno;
		close(fd);
		return rc;
	}
	while (!rc && (d = readdir(dir))) {
		if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		rc = walk_child(names, dir, id, d->d_name, d->d_ino, path, length, depth);
	}
	path[length] = 0;
	closedir(dir);
	return rc;
}

static void refresh(struct sample_names *names)
{
	char path[PATH_MAX] = "";
	struct stat st;
	int fd = open(names->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	names->walked = true;
	if (fd < 0)
		return;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return;
	}
	/* Without memory the noted names stay, and the rest is shown by number. */
	if (sample_names_note(names, st.st_ino, 0, "/"))
		close(fd);
	else
		sample_names_walk(names, fd, st.st_ino, path, 0, 0);
	if (names->n)
		qsort(names->entries, names->n, sizeof(*names->entries), sample_names_by_id);
	names->sorted = names->n;
}

const char *sample_names_path(struct sample_names *names, uint64_t id, uint64_t *parent)
{
	struct entry *e = sample_names_find(names, id);

	if (!e && !names->walked) {
		refresh(names);
		e = sample_names_find(names, id);
	}
	if (!e && !sample_names_append(names, id, 0, NULL)) {
		qsort(names->entries, names->n, sizeof(*names->entries), sample_names_by_id);
		names->sorted = names->n;
		e = sample_names_find(names, id);
	}
	if (parent)
		*parent = e ? e->parent : 0;
	return e ? e->path : NULL;
}

/*
 * Puts the login name of a session's user into TEXT. Only the machine's own file of users is read:
 * a directory service may keep its callers waiting, and the agent must not wait.
 */
static void sample_names_login(struct group_name *group)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd pw, *found = NULL;
	char buffer[4096];

	if (!f)
		return;
	while (!fgetpwent_r(f, &pw, buffer, sizeof(buffer), &found)) {
		if (pw.pw_uid != group->uid)
			continue;
		snprintf(group->text, sizeof(group->text), "session:%s", pw.pw_name);
		utf8_plain(group->text);
		break;
	}
	fclose(f);
}

/* Returns the cgroup at or above E whose path has LENGTH bytes; NULL: it is not known. */
static struct entry *sample_names_above(struct sample_names *names, struct entry *e, size_t length)
{
	for (unsigned depth = 0; e && e->path && depth <= DEPTH_MAX; depth++) {
		size_t n = strlen(e->path);

		if (n <= length)
			return n == length ? e : NULL;
		e = sample_names_find(names, e->parent);
	}
	return NULL;
}

/* Notes which cgroup E belongs to, and that one's name. Without memory its path is its name. */
static void sample_names_resolve(struct sample_names *names, struct entry *e)
{
	struct group_name group;
	struct entry *owner;

	e->owner = e->id;
	if (!e->path || group_name_find(e->path, &group))
		return;
	owner = sample_names_above(names, e, group.length);
	if (!owner)
		return;
	e->owner = owner->owner = owner->id;
	if (owner->group)
		return;
	if (group.kind == GROUP_SESSION)
		sample_names_login(&group);
	owner->group = malloc(sizeof(group));
	if (owner->group)
		*owner->group = group;
}

uint64_t sample_names_owner(struct sample_names *names, uint64_t id,
			    const struct group_name **group)
{
	struct entry *e;

	if (group)
		*group = NULL;
	sample_names_path(names, id, NULL);
	e = sample_names_find(names, id);
	if (!e)
		return id;
	if (!e->owner)
		sample_names_resolve(names, e);
	if (group)
		*group = sample_names_find(names, e->owner)->group;
	return e->owner;
}

int sample_names_mount(const char *mounts, char *out, size_t size)
{
	FILE *f = setmntent(mounts, "re");
	char buffer[4 * PATH_MAX];
	struct mntent m;
	int rc = -ENOENT;

	if (!f)
		return -errno;
	while (rc == -ENOENT && getmntent_r(f, &m, buffer, sizeof(buffer))) {
		int n;

		if (strcmp(m.mnt_type, "cgroup2"))
			continue;
		n = snprintf(out, size, "%s", m.mnt_dir);
		rc = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
	}
	endmntent(f);
	return rc;
}
