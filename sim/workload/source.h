/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The unpacked bytes of a trace, which can be read again from the start: a file, gzip or not, or
 * a piece of memory.  Input that can be read only once (a pipe, "-" for standard input) is copied
 * to memory first.
 */
#ifndef SIM_WORKLOAD_SOURCE_H
#define SIM_WORKLOAD_SOURCE_H

#include <iocom/err.h>
#include <stddef.h>

#define SOURCE_PIPE_MAX ((size_t)1 << 30) /* most bytes taken from a pipe */

struct source;

/* NULL with ERR set: there is no such file, it is a directory, or there is no memory. */
struct source *source_open(const char *path, struct iocom_err *err);
/* Makes a source from a copy of the N bytes of DATA. */
struct source *source_memory(const void *data, size_t n, const char *name);
const char *source_name(const struct source *s);
/* Writes a path that opens the bytes again while S exists.  Returns 0 or -errno. */
int source_path(struct source *s, char *path, size_t size);
/*
 * Reads up to N bytes; *GOT 0: the end.  Returns 0; -EIO: cannot read; -EBADMSG: the gzip data is
 * cut off or damaged (bytes read before may still come first).  *TROUBLE then says what was
 * expected and *FOUND what was found instead.
 */
int source_read(struct source *s, void *buffer, size_t n, size_t *got, const char **trouble,
		const char **found);
int source_rewind(struct source *s); /* 0 or -EIO */
void source_free(struct source *s);

#endif
