/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Files that appear all together or not at all; see output.h. */
#include "output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
	char *directory, *hidden, *path;
	bool made; /* the directory is ours */
	char **names;
	size_t n;
};

static int fail(struct iocom_err *err, const char *what, const char *path)
{
	int code = -errno;

	return iocom_err_set(err, code, "cannot %s %s: %s", what, path, strerror(-code));
}

/* As mkdir -p; *MADE: the last one is new. */
static int make_directory(const char *path, bool *made)
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

struct output *output_open(const char *directory, struct iocom_err *err)
{
	struct output *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		goto no_memory;
	o->directory = strdup(directory);
	if (!o->directory || asprintf(&o->hidden, "%s/.iocom-sim.XXXXXX", directory) < 0)
		goto no_memory;
	ret = make_directory(directory, &o->made);
	if (ret) {
		errno = -ret;
		fail(err, "make directory", directory);
		goto free_output;
	}
	if (mkdtemp(o->hidden))
		return o;
	fail(err, "write in directory", directory);
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
		fail(err, "write", path);
	return f;
}

int output_close(struct output *o, FILE *f, struct iocom_err *err)
{
	bool bad = ferror(f);

	if (fclose(f))
		return fail(err, "write files in", o->directory);
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

static int move(const struct output *o, const char *name, struct iocom_err *err)
{
	char *from = NULL, *to = NULL;
	int ret = 0;

	if (asprintf(&from, "%s/%s", o->hidden, name) < 0)
		from = NULL;
	if (asprintf(&to, "%s/%s", o->directory, name) < 0)
		to = NULL;
	if (!from || !to)
		ret = iocom_err_set(err, -ENOMEM, "no memory for the outputs");
	else if (rename(from, to) && errno != ENOENT)
		ret = fail(err, "write", to);
	free(from);
	free(to);
	return ret;
}

int output_commit(struct output *o, struct iocom_err *err)
{
	for (size_t i = 0; i < o->n; i++) {
		int ret = move(o, o->names[i], err);

		if (ret) {
			output_drop(o);
			return ret;
		}
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
