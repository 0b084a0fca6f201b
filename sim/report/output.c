/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Files that appear all together or not at all; see output.h. */
#include "sim/report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/view/replace.h"

#define TRIES 16 /* another run may remove the directory when it is done */

struct output {
	char *directory, *hidden, *path;
	bool made;  /* we made the directory */
	bool force; /* replace files */
	char **names;
	size_t n;
};

static int output_fail(struct iocom_err *err, const char *what, const char *path)
{
	int code = -errno;

	return iocom_err_set(err, code, "cannot %s %s: %s", what, path, strerror(-code));
}

/* Like mkdir -p; *MADE: the last directory is new. */
static int output_make_directory(const char *path, bool *made)
{
	char *copy = strdup(path);
	int ret = copy ? 0 : -ENOMEM;

	for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash && !ret;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			ret = -errno;
		*slash = '/';
	}
	free(copy);
	*made = false;
	if (!ret && !mkdir(path, 0777))
		*made = true;
	else if (!ret && errno != EEXIST)
		ret = -errno;
	return ret;
}

struct output *output_open(const char *directory, bool force, struct iocom_err *err)
{
	struct output *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		goto no_memory;
	o->force = force;
	o->directory = strdup(directory);
	if (!o->directory || asprintf(&o->hidden, "%s/.iocom-sim.XXXXXX", directory) < 0)
		goto no_memory;
	for (int tries = 0; tries < TRIES; tries++) {
		ret = output_make_directory(directory, &o->made);
		if (ret) {
			errno = -ret;
			output_fail(err, "make directory", directory);
			goto free_output;
		}
		if (mkdtemp(o->hidden))
			return o;
		if (errno != ENOENT)
			break;
		strcpy(o->hidden + strlen(o->hidden) - 6, "XXXXXX");
	}
	output_fail(err, "write in directory", directory);
	if (o->made)
		rmdir(directory);
	goto free_output;
no_memory:
	iocom_err_set(err, -ENOMEM, "no memory for the outputs");
free_output:
	if (o) {
		free(o->hidden);
		free(o->directory);
	}
	free(o);
	return NULL;
}

const char *output_path(struct output *o, const char *name)
{
	char **grown;

	free(o->path);
	if (asprintf(&o->path, "%s/%s", o->hidden, name) < 0) {
		o->path = NULL;
		return NULL;
	}
	for (size_t i = 0; i < o->n; i++)
		if (!strcmp(o->names[i], name))
			return o->path;
	grown = realloc(o->names, (o->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	o->names = grown;
	o->names[o->n] = strdup(name);
	if (!o->names[o->n])
		return NULL;
	o->n++;
	return o->path;
}

FILE *output_file(struct output *o, const char *name, struct iocom_err *err)
{
	const char *path = output_path(o, name);
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!path)
		iocom_err_set(err, -ENOMEM, "no memory for the outputs");
	else if (!f)
		output_fail(err, "write", path);
	return f;
}

int output_close(struct output *o, FILE *f, struct iocom_err *err)
{
	bool bad = ferror(f);

	if (fclose(f))
		return output_fail(err, "write files in", o->directory);
	return bad ? iocom_err_set(err, -EIO, "cannot write files in %s", o->directory) : 0;
}

static void free_all(struct output *o)
{
	for (size_t i = 0; i < o->n; i++)
		free(o->names[i]);
	free(o->names);
	free(o->path);
	free(o->hidden);
	free(o->directory);
	free(o);
}

int output_may_write(const char *directory, const char *name, bool force, struct iocom_err *err)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return iocom_err_set(err, -ENOMEM, "no memory for the outputs");
	ret = replace_check(path, force, err);
	free(path);
	return ret;
}

/* Finds files that cannot be replaced before the first one is moved. */
static int movable(int to, const char *name, const char *directory, bool force,
		   struct iocom_err *err)
{
	struct stat st;

	if (!fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
		return iocom_err_set(err, -EISDIR, "cannot write %s/%s: it is a directory",
				     directory, name);
	return output_may_write(directory, name, force, err);
}

static int output_move(int from, int to, const char *name, const char *directory,
		       struct iocom_err *err)
{
	if (!renameat(from, name, to, name))
		return 0;
	/* The file was announced but not written; a file of an earlier run under its name must
	 * go. */
	if (errno == ENOENT && (!unlinkat(to, name, 0) || errno == ENOENT))
		return 0;
	return iocom_err_set(err, -errno, "cannot write %s/%s: %s", directory, name,
			     strerror(errno));
}

int output_commit(struct output *o, struct iocom_err *err)
{
	int from = open(o->hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int to = open(o->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;

	if (from < 0 || to < 0)
		ret = output_fail(err, "write in directory", o->directory);
	else
		flock(to, LOCK_EX); /* two runs must not mix their files */
	for (size_t i = 0; i < o->n && !ret; i++)
		ret = movable(to, o->names[i], o->directory, o->force, err);
	for (size_t i = 0; i < o->n && !ret; i++)
		ret = output_move(from, to, o->names[i], o->directory, err);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	if (ret) {
		output_drop(o);
		return ret;
	}
	rmdir(o->hidden);
	free_all(o);
	return 0;
}

void output_drop(struct output *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->n; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", o->hidden, o->names[i]) < 0)
			continue;
		unlink(path);
		free(path);
	}
	rmdir(o->hidden);
	if (o->made)
		rmdir(o->directory);
	free_all(o);
}

int output_try(const char *directory, struct iocom_err *err)
{
	struct output *o = output_open(directory, true, err);

	output_drop(o);
	return o ? 0 : -EIO;
}
