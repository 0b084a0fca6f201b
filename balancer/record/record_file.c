/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A file of lines that is valid at any time; see record_file.h. */
#include "balancer/record/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "balancer/view/json_msgpack.h"
#include "balancer/view/replace.h"

#define BUFFER (256u * 1024)
#define GZIP   (15 + 16) /* zlib: the largest window, a gzip header */
#define LEVEL  6

struct record_file {
	char *path, *temporary; /* temporary is NULL if we write directly */
	int fd;
	bool force, packed;
	char *text; /* not written to the file yet */
	size_t used, room;
	uint64_t bytes; /* in the file: only whole lines or whole members */
	int failed;
};

/* --- names ------------------------------------------------------------------------- */

static bool packed_name(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && !strcmp(path + n - 3, ".gz");
}

char *record_file_temporary(const char *path)
{
	const char *slash = strrchr(path, '/');
	int head = slash ? (int)(slash - path) + 1 : 0;
	char *name;

	if (asprintf(&name, "%.*s.%s.XXXXXX%s", head, path, path + head,
		     json_msgpack_suffix(path)) < 0)
		return NULL;
	return name;
}

/* --- writing ----------------------------------------------------------------------- */

static int record_file_failed(struct record_file *f, int error, struct iocom_err *err)
{
	f->failed = error;
	return iocom_err_set(err, error, "cannot write %s: %s", f->path, strerror(-error));
}

/* Returns how many of the AT bytes of DATA in the file are whole lines or members. */
static size_t whole_of(const struct record_file *f, const char *data, size_t at)
{
	const char *newline = f->packed ? NULL : memrchr(data, '\n', at);

	return newline ? (size_t)(newline - data) + 1 : 0;
}

/* Writes all of DATA, or truncates the file to whole lines or members again. */
static int record_file_write_whole(struct record_file *f, const void *data, size_t n,
				   struct iocom_err *err)
{
	for (size_t at = 0; at < n;) {
		ssize_t w = write(f->fd, (const char *)data + at, n - at);
		int error = errno;

		if (w > 0) {
			at += (size_t)w;
			continue;
		}
		if (w < 0 && error == EINTR)
			continue;
		f->bytes += whole_of(f, data, at);
		if (f->temporary && ftruncate(f->fd, (off_t)f->bytes))
			error = errno;
		return record_file_failed(f, w < 0 ? -error : -EIO, err);
	}
	f->bytes += n;
	return 0;
}

static int write_packed(struct record_file *f, struct iocom_err *err)
{
	z_stream z = {.next_in = (Bytef *)f->text, .avail_in = (uInt)f->used};
	Bytef *out;
	uLong bound;
	int rc;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return record_file_failed(f, -ENOMEM, err);
	bound = deflateBound(&z, f->used);
	out = malloc(bound);
	z.next_out = out;
	z.avail_out = (uInt)bound;
	rc = out && deflate(&z, Z_FINISH) == Z_STREAM_END
		     ? record_file_write_whole(f, out, bound - z.avail_out, err)
		     : record_file_failed(f, -ENOMEM, err);
	deflateEnd(&z);
	free(out);
	return rc;
}

int record_file_flush(struct record_file *f, struct iocom_err *err)
{
	int rc;

	if (f->failed)
		return record_file_failed(f, f->failed, err);
	if (!f->used)
		return 0;
	rc = f->packed ? write_packed(f, err) : record_file_write_whole(f, f->text, f->used, err);
	f->used = 0;
	return rc;
}

int record_file_add(struct record_file *f, const char *text, size_t n, struct iocom_err *err)
{
	if (f->failed)
		return record_file_failed(f, f->failed, err);
	if (f->used + n > f->room) {
		size_t room = f->used + n > BUFFER ? f->used + n : BUFFER;
		char *grown = realloc(f->text, room);

		if (!grown)
			return iocom_err_set(err, -ENOMEM, "out of memory");
		f->text = grown;
		f->room = room;
	}
	memcpy(f->text + f->used, text, n);
	f->used += n;
	return f->used >= BUFFER ? record_file_flush(f, err) : 0;
}

uint64_t record_file_bytes(const struct record_file *f)
{
	return f->bytes;
}

/* --- opening, closing --------------------------------------------------------------- */

static void record_file_free(struct record_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->text);
	free(f->temporary);
	free(f->path);
	free(f);
}

static int record_file_open_file(struct record_file *f, const char *path)
{
	struct stat st;

	if (!strcmp(path, "-")) {
		f->fd = dup(STDOUT_FILENO);
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		f->fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		f->temporary = record_file_temporary(path);
		f->fd = f->temporary ? mkostemps(f->temporary, packed_name(path) ? 3 : 0, O_CLOEXEC)
				     : -1;
	}
	return f->fd < 0 ? -errno : 0;
}

int record_file_open(const char *path, bool force, struct record_file **out, struct iocom_err *err)
{
	struct record_file *f;
	int rc = replace_check(path, force, err);

	if (!rc && json_msgpack_named(path))
		rc = iocom_err_set(
			err, -EINVAL,
			"%s: a live recording is written as lines; afterwards `iocom record "
			"--merge FILE.msgpack RECORDING` packs it",
			path);
	if (rc)
		return rc;
	f = calloc(1, sizeof(*f));
	if (!f)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	f->force = force;
	f->packed = packed_name(path);
	f->path = strdup(strcmp(path, "-") ? path : "standard output");
	f->fd = -1;
	rc = f->path ? record_file_open_file(f, path) : -ENOMEM;
	if (rc) {
		iocom_err_set(err, rc, "cannot write %s: %s", path, strerror(-rc));
		free(f->temporary); /* it does not exist */
		f->temporary = NULL;
		record_file_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

int record_file_keep(struct record_file *f, struct iocom_err *err)
{
	struct iocom_err named = {0};
	int rc = record_file_flush(f, err), end = 0;

	if (f->temporary) {
		if (!rc && fsync(f->fd))
			rc = record_file_failed(f, -errno, err);
		end = replace_rename(f->temporary, f->path, f->force, &named);
	}
	if (!rc && end)
		iocom_err_set(err, end, "%s", named.text);
	record_file_free(f);
	return rc ? rc : end;
}

void record_file_drop(struct record_file *f)
{
	if (!f)
		return;
	if (f->temporary)
		unlink(f->temporary);
	record_file_free(f);
}
