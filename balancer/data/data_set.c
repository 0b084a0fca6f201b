/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_set.h. */
#include "balancer/data/data_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/utf8.h"

#define NS_PER_S 1000000000ll

int data_names_bring(struct data_names *names, const char *path, struct iocom_err *err)
{
	if (names->nbrings == DATA_PATHS)
		return iocom_err_set(err, -EINVAL, "--bring can name at most %d paths", DATA_PATHS);
	names->brings[names->nbrings++] = path;
	return 0;
}

int data_names_check(const struct data_names *names, const char *other, struct iocom_err *err)
{
	if (names->nbrings && other)
		return iocom_err_set(
			err, -EINVAL,
			"--bring does not go with %s: it fetches when the job is over, for "
			"one job whose client waits",
			other);
	return 0;
}

int data_set_beneath(int at, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOCTTY),
			       .mode = flags & O_CREAT ? mode : 0,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd;

	/* The kernel gives up with EAGAIN when somebody renames things meanwhile. */
	for (int i = 0; i < 100; i++) {
		fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int set_unreadable(const char *option, const char *path, int rc, struct iocom_err *err)
{
	if (rc == -EXDEV)
		return iocom_err_set(err, rc,
				     "%s %s is or has a link that leads out of the working "
				     "directory: only what is below it can go along",
				     option, path);
	return iocom_err_set(err, rc, "%s %s: %s", option, path, strerror(-rc));
}

/* --- names ---------------------------------------------------------------------------- */

/*
 * Makes NAME relative to the working directory, without "." and double slashes; "." is the whole
 * directory.  Returns a malloc'ed name or NULL with the reason in ERR.
 */
static char *set_name(const struct data_set *set, const char *option, const char *name,
		      struct iocom_err *err)
{
	size_t root = strlen(set->root);
	char *out = strdup(name), *to = out;
	const char *from = name;

	if (!out)
		return iocom_err_set(err, -ENOMEM, "out of memory"), NULL;
	if (*name == '/') {
		if (strncmp(name, set->root, root) != 0 || (name[root] && name[root] != '/'))
			goto outside;
		from = name + root;
	}
	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.')
			goto outside;
		if (n && !(n == 1 && *from == '.')) {
			if (to != out)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n + (from[n] == '/');
	}
	*to = 0;
	if (!*out)
		return strcpy(out, *name ? "." : ""), out;
	if (data_path_valid(out))
		return out;
	iocom_err_set(err, -ENAMETOOLONG,
		      "%s: this name is too long or has more than %d directories", option,
		      DATA_DEPTH);
	free(out);
	return NULL;
outside:
	iocom_err_set(
		err, -EINVAL,
		"%s %s is outside the working directory %s: only what is below it can go along",
		option, name, set->root);
	free(out);
	return NULL;
}

/* --- looking -------------------------------------------------------------------------- */

static bool set_is_writable(const struct data_set *set, const char *path)
{
	for (size_t i = 0; i < set->nbrings; i++)
		if (data_path_below(path, set->brings[i]))
			return true;
	return false;
}

static int set_add(struct data_set *set, const char *path, const struct stat *st,
		   struct iocom_err *err)
{
	struct data_item *item;
	bool directory = S_ISDIR(st->st_mode);

	if (set->count == DATA_ENTRIES)
		return iocom_err_set(
			err, -E2BIG,
			"more than %d files and directories cannot go along with a job",
			DATA_ENTRIES);
	if (set->count == set->room) {
		size_t room = set->room ? 2 * set->room : 64;

		item = reallocarray(set->at, room, sizeof(*item));
		if (!item)
			return iocom_err_set(err, -ENOMEM, "out of memory for the job's data");
		set->at = item;
		set->room = room;
	}
	item = &set->at[set->count];
	*item = (struct data_item){
		.entry = {.path = strdup(path),
			  .kind = directory ? DATA_KIND_DIRECTORY : DATA_KIND_FILE,
			  .mode = st->st_mode & 0777,
			  .writable = !directory && set_is_writable(set, path),
			  .size = directory ? 0 : (uint64_t)st->st_size,
			  .mtime_ns = st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec},
		.device = st->st_dev,
		.inode = st->st_ino,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
	if (!item->entry.path)
		return iocom_err_set(err, -ENOMEM, "out of memory for the job's data");
	set->count++;
	set->bytes += item->entry.size;
	return set->bytes <= DATA_BYTES_MAX
		       ? 0
		       : iocom_err_set(err, -EFBIG, "the job's data is too large: more than 1 PiB");
}

static int set_look(struct data_set *set, const char *option, const char *path, bool named,
		    struct iocom_err *err);

/* Takes FD. */
static int set_look_in(struct data_set *set, const char *option, const char *path, int fd,
		       struct iocom_err *err)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	char below[PATH_MAX];
	int rc = 0;

	if (!dir) {
		rc = -errno;
		close(fd);
		return set_unreadable(option, path, rc, err);
	}
	while (!rc && (errno = 0, entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(below, sizeof(below), "%s%s%s", strcmp(path, ".") ? path : "",
			     strcmp(path, ".") ? "/" : "", entry->d_name) >= (int)sizeof(below) ||
		    !data_path_valid(below))
			rc = iocom_err_set(
				err, -ENAMETOOLONG,
				"%s %s: a name in it is too long, or it has more than %d "
				"directories in each other",
				option, path, DATA_DEPTH);
		else
			rc = set_look(set, option, below, false, err);
	}
	if (!rc && errno)
		rc = set_unreadable(option, path, -errno, err);
	closedir(dir);
	return rc;
}

/* A link to a directory may lead in a circle, so it counts only where it is named. */
static int set_look(struct data_set *set, const char *option, const char *path, bool named,
		    struct iocom_err *err)
{
	int fd = data_set_beneath(set->directory, path, O_RDONLY | O_NONBLOCK, 0), rc = 0;
	struct stat st, link;

	if (fd < 0)
		return set_unreadable(option, path, fd, err);
	if (fstat(fd, &st) || fstatat(set->directory, path, &link, AT_SYMLINK_NOFOLLOW))
		rc = set_unreadable(option, path, -errno, err);
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		rc = iocom_err_set(err, -EINVAL, "%s %s is no file and no directory", option, path);
	else if (S_ISDIR(st.st_mode) && S_ISLNK(link.st_mode) && !named)
		rc = iocom_err_set(err, -ELOOP,
				   "%s %s is a link to a directory: name that directory instead",
				   option, path);
	else if (strcmp(path, ".") != 0)
		rc = set_add(set, path, &st, err);
	if (!rc && S_ISDIR(st.st_mode))
		return set_look_in(set, option, path, fd, err);
	close(fd);
	return rc;
}

/* The directories in which the outputs will be are there for the job as they are at home. */
static int set_look_above(struct data_set *set, const char *path, struct iocom_err *err)
{
	char above[PATH_MAX];
	size_t n = strcspn(path, "/");
	int rc = 0;

	for (;;) {
		struct stat st;
		int fd;

		snprintf(above, sizeof(above), "%.*s", (int)n, path);
		fd = data_set_beneath(set->directory, above, O_RDONLY | O_NONBLOCK, 0);
		if (fd == -EXDEV)
			return set_unreadable("--bring", path, fd, err);
		if (fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode))
			rc = set_add(set, above, &st, err);
		if (fd >= 0)
			close(fd);
		if (rc || !path[n])
			return rc;
		n += 1 + strcspn(path + n + 1, "/");
	}
}

static int item_compare(const void *a, const void *b)
{
	const struct data_item *x = a, *y = b;

	return strcmp(x->entry.path, y->entry.path);
}

/* Several names may have led to one file. */
static void set_unique(struct data_set *set)
{
	size_t kept = 0;

	if (set->count)
		qsort(set->at, set->count, sizeof(*set->at), item_compare);
	for (size_t i = 0; i < set->count; i++) {
		if (kept && !strcmp(set->at[kept - 1].entry.path, set->at[i].entry.path)) {
			set->bytes -= set->at[i].entry.size;
			data_entry_free(&set->at[i].entry);
			continue;
		}
		set->at[kept++] = set->at[i];
	}
	set->count = kept;
}

static int set_begin(struct data_set *set, struct iocom_err *err)
{
	*set = (struct data_set){.directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (set->directory < 0)
		return iocom_err_set(err, -errno, "cannot open the working directory: %s",
				     strerror(errno));
	set->root = getcwd(NULL, 0);
	if (!set->root || set->root[0] != '/')
		return iocom_err_set(err, -ENOENT, "cannot read the working directory's name");
	return 0;
}

static int set_look_brings(struct data_set *set, const struct data_names *names,
			   struct iocom_err *err)
{
	for (size_t i = 0; i < names->nbrings; i++) {
		char *name = set_name(set, "--bring", names->brings[i], err);

		if (!name)
			return -EINVAL;
		set->brings[set->nbrings++] = name;
		if (!strcmp(name, ".") || !*name)
			return iocom_err_set(err, -EINVAL,
					     "--bring names files or directories below the working "
					     "directory, not '%s'",
					     names->brings[i]);
		if (set_look_above(set, name, err))
			return -EINVAL;
	}
	return 0;
}

/* The program goes along if it is below the directory: it may not be there elsewhere. */
static int set_look_program(struct data_set *set, const char *executable, struct iocom_err *err)
{
	size_t root = strlen(set->root);
	char *name;

	if (*executable != '/' || strncmp(executable, set->root, root) != 0 ||
	    executable[root] != '/')
		return 0;
	name = set_name(set, "the program", executable, err);
	if (!name)
		return -EINVAL;
	set->program = name;
	return set_look(set, "the program", name, true, err);
}

int data_set_look(struct data_set *set, const struct data_names *names, const char *executable,
		  struct iocom_err *err)
{
	int rc = set_begin(set, err);

	if (!rc)
		rc = set_look_brings(set, names, err);
	for (size_t i = 0; i < names->ndata && !rc; i++) {
		char *name = set_name(set, "--data", names->data[i], err);

		rc = name ? set_look(set, "--data", name, true, err) : -EINVAL;
		free(name);
	}
	if (!rc)
		rc = set_look_program(set, executable, err);
	set_unique(set);
	if (rc)
		utf8_plain(err->text); /* it names files, whose names may hold anything */
	return rc;
}

/* --- what is to be brought, here ------------------------------------------------------- */

static uint64_t brought_bytes(const struct data_set *set, const char *path, size_t *left);

/* Takes FD, the directory PATH. */
static uint64_t brought_in(const struct data_set *set, const char *path, int fd, size_t *left)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	char below[PATH_MAX];
	uint64_t bytes = 0;

	if (!dir) {
		close(fd);
		return 0;
	}
	while (*left && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
			    (int)sizeof(below) &&
		    data_path_valid(below))
			bytes += brought_bytes(set, below, left);
	closedir(dir);
	return bytes;
}

static uint64_t brought_bytes(const struct data_set *set, const char *path, size_t *left)
{
	int fd = data_set_beneath(set->directory, path, O_RDONLY | O_NONBLOCK, 0);
	uint64_t bytes = 0;
	struct stat st;

	if (fd < 0)
		return 0;
	*left -= *left > 0;
	if (!fstat(fd, &st)) {
		if (S_ISDIR(st.st_mode))
			return brought_in(set, path, fd, left);
		bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	}
	close(fd);
	return bytes;
}

uint64_t data_set_brought(const struct data_set *set)
{
	size_t left = DATA_ENTRIES;
	uint64_t bytes = 0;

	for (size_t i = 0; i < set->nbrings; i++)
		bytes += brought_bytes(set, set->brings[i], &left);
	return bytes < DATA_BYTES_MAX ? bytes : DATA_BYTES_MAX;
}

void data_set_free(struct data_set *set)
{
	if (set->directory >= 0)
		close(set->directory);
	for (size_t i = 0; i < set->count; i++)
		data_entry_free(&set->at[i].entry);
	for (size_t i = 0; i < set->nbrings; i++)
		free(set->brings[i]);
	free(set->at);
	free(set->root);
	free(set->program);
	*set = (struct data_set){.directory = -1};
}

/* --- while it is sent ----------------------------------------------------------------- */

static bool time_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int data_set_same(const struct data_set *set, size_t i, int fd, struct iocom_err *err)
{
	const struct data_item *item = &set->at[i];
	struct stat st;

	if (!fstat(fd, &st) && st.st_dev == item->device && st.st_ino == item->inode &&
	    (uint64_t)st.st_size == item->entry.size && time_same(&st.st_mtim, &item->mtime) &&
	    time_same(&st.st_ctim, &item->ctime))
		return 0;
	return iocom_err_set(
		err, -ESTALE,
		"%s has changed while the job's data was copied: nothing of the job has "
		"run",
		item->entry.path);
}

int data_set_open(const struct data_set *set, size_t i, struct iocom_err *err)
{
	const char *path = set->at[i].entry.path;
	int fd = data_set_beneath(set->directory, path, O_RDONLY | O_NONBLOCK, 0), rc;

	if (fd < 0)
		return iocom_err_set(err, fd,
				     "%s cannot be read any more (%s): nothing of the job has run",
				     path, strerror(-fd));
	rc = data_set_same(set, i, fd, err);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}
