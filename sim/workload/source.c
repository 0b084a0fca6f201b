/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads bytes with zlib's gzread, which passes data through that is not gzip; see source.h. */
#include "sim/workload/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "iocom/array.h"

#define GZ_BUFFER (128 * 1024)
#define HELD_PATH "/proc/self/fd/" /* makes a copy of one-time input readable by path */

struct source {
	char *name;
	bool regular; /* NAME is a regular file */
	int fd;	      /* the descriptor of FILE or of a copy of the memory, or -1 */
	gzFile file;  /* NULL: the bytes are in memory */
	char *data;
	size_t size, at;
};

const char *source_name(const struct source *s)
{
	return s->name;
}

void source_free(struct source *s)
{
	if (!s)
		return;
	if (s->file)
		gzclose(s->file);
	else if (s->fd >= 0)
		close(s->fd);
	free(s->data);
	free(s->name);
	free(s);
}

static struct source *source_new(const char *name)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = -1;
	s->name = strdup(name);
	if (!s->name) {
		free(s);
		return NULL;
	}
	return s;
}

struct source *source_memory(const void *data, size_t n, const char *name)
{
	struct source *s = source_new(name);

	if (!s)
		return NULL;
	s->data = malloc(n ? n : 1);
	if (!s->data) {
		source_free(s);
		return NULL;
	}
	if (n)
		memcpy(s->data, data, n);
	s->size = n;
	return s;
}

static int read_gz(struct source *s, void *buffer, size_t n, size_t *got, const char **trouble,
		   const char **found)
{
	int rc = gzread(s->file, buffer, n > INT_MAX ? INT_MAX : (unsigned)n);
	int state;

	*got = rc > 0 ? (size_t)rc : 0;
	*found = gzerror(s->file, &state);
	if (rc >= 0 && (size_t)rc == n)
		return 0;
	switch (state) {
	case Z_OK:
	case Z_STREAM_END:
		return 0;
	case Z_BUF_ERROR:
		*trouble = "the rest of the gzip data";
		*found = "end of file";
		return -EBADMSG;
	case Z_DATA_ERROR:
		*trouble = "intact gzip data";
		/* Zlib writes the path before its message. */
		if (!strncmp(*found, "<fd:", 4) && strstr(*found, ": "))
			*found = strstr(*found, ": ") + 2;
		return -EBADMSG;
	default:
		return -EIO;
	}
}

int source_read(struct source *s, void *buffer, size_t n, size_t *got, const char **trouble,
		const char **found)
{
	if (s->file)
		return read_gz(s, buffer, n, got, trouble, found);
	*got = n < s->size - s->at ? n : s->size - s->at;
	memcpy(buffer, s->data + s->at, *got);
	s->at += *got;
	return 0;
}

int source_rewind(struct source *s)
{
	s->at = 0;
	return s->file && gzrewind(s->file) ? -EIO : 0;
}

/* Reads one-time input into memory; the gzip layer then reads from there. */
static int take_pipe(struct source *s, int fd, struct iocom_err *err)
{
	size_t room = 0;

	for (;;) {
		ssize_t n;

		if (s->size >= SOURCE_PIPE_MAX)
			return iocom_err_set(err, -EFBIG,
					     "%s: a pipe may hold %zu MB at most; "
					     "save it to a file",
					     s->name, SOURCE_PIPE_MAX >> 20);
		if (array_reserve(s->data, room, s->size + 1, GZ_BUFFER))
			return iocom_err_set(err, -ENOMEM, "%s: out of memory", s->name);
		n = read(fd, s->data + s->size, room - s->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return iocom_err_set(err, -errno, "cannot read %s: %s", s->name,
					     strerror(errno));
		if (!n)
			return 0;
		s->size += (size_t)n;
	}
}

/* Makes an unnamed file from the bytes in memory, so that packed bytes are unpacked the
 * same way. */
static int file_of_memory(struct source *s)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	size_t at = 0;

	while (fd >= 0 && at < s->size) {
		ssize_t n = write(fd, s->data + at, s->size - at);

		if (n < 0 && errno != EINTR) {
			close(fd);
			return -1;
		}
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

int source_path(struct source *s, char *path, size_t size)
{
	int n;

	if (s->fd < 0)
		s->fd = file_of_memory(s);
	if (s->fd < 0)
		return -ENOMEM;
	n = s->regular ? snprintf(path, size, "%s", s->name)
		       : snprintf(path, size, HELD_PATH "%d", s->fd);
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

static int open_fd(struct source *s, const char *path, struct iocom_err *err)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				   : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st)) {
		rc = iocom_err_set(err, -errno, "cannot open %s: %s", s->name, strerror(errno));
		goto fail;
	}
	if (S_ISDIR(st.st_mode)) {
		rc = iocom_err_set(err, -EISDIR, "cannot read %s: it is a directory", s->name);
		goto fail;
	}
	s->regular = S_ISREG(st.st_mode) && !strcmp(path, s->name);
	if (!S_ISREG(st.st_mode)) {
		rc = take_pipe(s, fd, err);
		if (rc)
			goto fail;
		close(fd);
		fd = file_of_memory(s);
		free(s->data);
		s->data = NULL;
		if (fd < 0)
			return iocom_err_set(err, -ENOMEM, "%s: out of memory", s->name);
	}
	return fd;
fail:
	if (fd >= 0)
		close(fd);
	return rc;
}

struct source *source_open(const char *path, struct iocom_err *err)
{
	struct source *s = source_new(!strcmp(path, "-") ? "standard input"
				      : !strncmp(path, HELD_PATH, strlen(HELD_PATH)) ? "pipe"
										     : path);
	int fd;

	if (!s) {
		iocom_err_set(err, -ENOMEM, "%s: out of memory", path);
		return NULL;
	}
	fd = open_fd(s, path, err);
	if (fd < 0) {
		source_free(s);
		return NULL;
	}
	s->file = gzdopen(fd, "rb");
	if (!s->file) {
		close(fd);
		source_free(s);
		iocom_err_set(err, -ENOMEM, "%s: out of memory", path);
		return NULL;
	}
	s->fd = fd;
	gzbuffer(s->file, GZ_BUFFER);
	return s;
}
