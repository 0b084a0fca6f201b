/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A file of /proc, /sys or a cgroup that is read again and again: it stays open, because to open it
 * costs several times as much as to read it.  Each reading sees the file as it is then.
 */
#ifndef IOCOM_KEPT_FILE_H
#define IOCOM_KEPT_FILE_H

#include <stddef.h>
#include <sys/types.h>

struct kept_file {
	int open; /* the descriptor plus 1; 0: it is closed, so that {0} is a file never read */
};

/*
 * Reads PATH, which is the same in each call, from its start into OUT, as a string: at most SIZE -
 * 1 bytes.  A file that is gone (a cgroup that was removed) is opened anew, once.  Returns the
 * number of bytes, or negative errno; then the file is closed.
 */
ssize_t kept_file_read(struct kept_file *file, const char *path, char *out, size_t size);
/* The next reading opens the file anew.  A closed file stays closed. */
void kept_file_close(struct kept_file *file);

#endif
