/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The process that gives the client what it fetches when the job is over, as the job's user, in
 * the job's directory.  Links are followed while they stay in this directory.
 */
#include "agent/shim/data_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_S   1000000000ll
#define HOLE_LEAST (1u << 20) /* smaller ones are read as 0 */

struct give {
	struct data_io io;
	char *paths[DATA_PATHS];
	size_t npaths, entries;
};

/* Opens PATH below the directory where we are.  Returns a descriptor or negative errno. */
static int give_open(const char *path, uint64_t flags)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int give_gone(const char *path, const char *why)
{
	char text[PATH_MAX + 200];
	int n = snprintf(text, sizeof(text), "%s%c%s", path, 0, why);

	return data_io_write(DATA_GONE, text, (uint32_t)n);
}

static int give_head(struct give *give, const char *path, const struct stat *st)
{
	uint8_t packed[PATH_MAX + 256];
	struct data_entry entry = {
		.path = (char *)path,
		.kind = S_ISDIR(st->st_mode) ? DATA_KIND_DIRECTORY : DATA_KIND_FILE,
		.mode = st->st_mode & 0777,
		.size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
		.mtime_ns = st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec,
	};
	int n = data_entry_pack(&entry, packed, sizeof(packed));

	give->entries++;
	return n < 0 ? n : data_io_write(DATA_ENTRY, packed, (uint32_t)n);
}

/* Where behind AT the next bytes are that were written, at most SIZE: what is before them is 0. */
static uint64_t give_next(int fd, uint64_t at, uint64_t size)
{
	off_t next = lseek(fd, (off_t)at, SEEK_DATA);

	if (next < 0 && errno == ENXIO && lseek(fd, 0, SEEK_END) >= (off_t)size)
		return size;
	if (next < (off_t)at)
		return at;
	return (uint64_t)next < size ? (uint64_t)next : size;
}

static int give_hole(struct data_hash *hash, uint64_t bytes)
{
	uint8_t payload[DATA_HOLE_SIZE];

	for (int i = 0; i < DATA_HOLE_SIZE; i++)
		payload[i] = (uint8_t)(bytes >> (56 - 8 * i));
	data_hash_add(hash, payload, sizeof(payload));
	return data_io_write(DATA_HOLE, payload, sizeof(payload));
}

/* Sends a piece of FD from *AT on, which ends at SIZE at the latest.  Returns 1: FD ends before. */
static int give_piece(struct data_hash *hash, int fd, uint64_t *at, uint64_t size)
{
	static uint8_t piece[DATA_PIECE];
	uint64_t left = size - *at;
	ssize_t n;

	do
		n = pread(fd, piece, left < sizeof(piece) ? left : sizeof(piece), (off_t)*at);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 1;
	*at += (uint64_t)n;
	data_hash_add(hash, piece, (size_t)n);
	return data_io_write(DATA_DATA, piece, (uint32_t)n);
}

/* Sends at most SIZE bytes of FD: what comes behind them was written meanwhile. */
static int give_bytes(int fd, uint64_t size, uint8_t have[DATA_HASH])
{
	struct data_hash *hash = data_hash_new();
	uint64_t at = 0, next = 0;
	int rc = hash ? 0 : -ENOMEM;

	while (!rc && at < size) {
		off_t hole;

		next = give_next(fd, at, size);
		if (next - at >= HOLE_LEAST) {
			rc = give_hole(hash, next - at);
			at = next;
			continue;
		}
		hole = lseek(fd, (off_t)next, SEEK_HOLE);
		next = hole > (off_t)next && (uint64_t)hole < size ? (uint64_t)hole : size;
		while (!rc && at < next)
			rc = give_piece(hash, fd, &at, next);
	}
	if (hash)
		data_hash_end(hash, have);
	return rc < 0 ? rc : 0; /* the client sees that it is shorter */
}

static int give_file(struct give *give, const char *path, int fd, const struct stat *st)
{
	uint8_t have[DATA_HASH];
	int rc = give_head(give, path, st);

	if (!rc)
		rc = give_bytes(fd, (uint64_t)st->st_size, have);
	return rc ? rc : data_io_write(DATA_FILE, have, sizeof(have));
}

static int give_path(struct give *give, const char *path, bool named);

/* Takes FD. */
static int give_directory(struct give *give, const char *path, int fd)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	char below[PATH_MAX];
	int rc = 0;

	if (!dir) {
		close(fd);
		return -errno;
	}
	while (!rc && (entry = readdir(dir)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >=
			    (int)sizeof(below) ||
		    !data_path_valid(below))
			rc = give_gone(path, "its names are too long or its directories too deep");
		else
			rc = give_path(give, below, false);
	}
	closedir(dir);
	return rc;
}

/* A link to a directory is one only where it was named: else it could lead in a circle. */
static int give_path(struct give *give, const char *path, bool named)
{
	int fd = give_open(path, 0), rc;
	struct stat st, link;

	if (fd == -EXDEV)
		return give_gone(path, "is a link that leads out of the job's directory");
	if (fd < 0)
		return give_gone(path, fd == -ENOENT ? "the job has not made it" : strerror(-fd));
	if (give->entries >= DATA_ENTRIES || fstat(fd, &st)) {
		close(fd);
		return give_gone(path, "there are too many files");
	}
	if (S_ISDIR(st.st_mode) &&
	    (named ||
	     (!fstatat(AT_FDCWD, path, &link, AT_SYMLINK_NOFOLLOW) && S_ISDIR(link.st_mode)))) {
		rc = give_head(give, path, &st);
		if (!rc)
			return give_directory(give, path, fd);
	} else if (S_ISREG(st.st_mode)) {
		rc = give_file(give, path, fd, &st);
	} else {
		rc = give_gone(path, S_ISDIR(st.st_mode) ? "is a link to a directory"
							 : "is no file and no directory");
	}
	close(fd);
	return rc;
}

static int give_ask(struct give *give)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc;

	while (!(rc = data_io_read(&give->io, &type, &payload, &length)) && type == DATA_PATH) {
		char *path = strndup((const char *)payload, length);

		if (!path)
			return -ENOMEM;
		if (give->npaths == DATA_PATHS || strlen(path) != length ||
		    !data_path_valid(path)) {
			free(path);
			return -EBADMSG;
		}
		give->paths[give->npaths++] = path;
	}
	return rc ? rc : type == DATA_DONE ? 0 : -EBADMSG;
}

int data_give_main(void)
{
	struct give *give = calloc(1, sizeof(*give));
	int rc = give ? give_ask(give) : -ENOMEM;

	for (size_t i = 0; give && i < give->npaths && !rc; i++)
		rc = give_path(give, give->paths[i], true);
	if (!rc)
		rc = data_io_write(DATA_DONE, NULL, 0);
	for (size_t i = 0; give && i < give->npaths; i++)
		free(give->paths[i]);
	free(give);
	return rc ? 1 : 0;
}
