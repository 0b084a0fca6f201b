/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a job has made comes home; see run_data.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/run/run_data.h"
#include "user/utf8.h"

#define NS_PER_S 1000000000ll

/* Closes the file that is not whole, and removes its name, if it has one. */
static void fetch_drop_file(struct run_data *data)
{
	if (data->to < 0)
		return;
	close(data->to);
	if (*data->temporary)
		(void)unlinkat(data->beside, data->temporary, 0);
	data->to = -1;
}

void run_fetch_drop(struct run_data *data)
{
	uint8_t unused[DATA_HASH];

	fetch_drop_file(data);
	if (data->beside >= 0)
		close(data->beside);
	if (data->hash)
		data_hash_end(data->hash, unused);
	data->beside = -1;
	data->hash = NULL;
	data_entry_free(&data->getting);
}

/* Notes what cannot be had; the others are fetched all the same. */
__attribute__((format(printf, 3, 4))) static void fetch_gone(struct run_data *data,
							     const char *path, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (*data->gone)
		return;
	snprintf(data->gone, sizeof(data->gone), "%.200s was not fetched from node %s: %.200s",
		 path, data->node, why);
	utf8_plain(data->gone); /* the names are the job's, and the sentence may be the node's */
}

/* Says why PATH cannot be made here. */
static void fetch_unmade(struct run_data *data, const char *path, int rc)
{
	if (rc == -ENOTDIR || rc == -ELOOP)
		fetch_gone(data, path,
			   "what is here in place of a directory above it is a link or "
			   "a file");
	else
		fetch_gone(data, path, "%s", strerror(-rc));
}

static int fetch_against(struct run_data *data)
{
	return iocom_err_set(&data->err, -EPROTO,
			     "node %s sent what --bring does not name, or not as it should",
			     data->node);
}

/* A node may send only what was asked for: the longest path of --bring that has PATH, or NULL. */
static const char *fetch_top(const struct run_data *data, const char *path)
{
	const char *top = NULL;

	for (size_t i = 0; i < data->set->nbrings; i++) {
		const char *bring = data->set->brings[i];

		if (data_path_below(path, bring) && (!top || strlen(bring) > strlen(top)))
			top = bring;
	}
	return top;
}

/* Opens the directory PATH below ours, and makes what is missing of it.  Takes ABOVE, where it is.
 */
static int fetch_open(const struct run_data *data, int above, const char *path)
{
	const char *name = strrchr(path, '/');
	int fd = data_set_beneath(data->set->directory, path, O_RDONLY | O_DIRECTORY, 0);

	name = name ? name + 1 : path;
	if (fd == -ENOENT)
		fd = mkdirat(above, name, 0777) && errno != EEXIST
			     ? -errno
			     : data_set_beneath(data->set->directory, path, O_RDONLY | O_DIRECTORY,
						0);
	close(above);
	return fd;
}

/* The same for NAME in ABOVE, where no link is followed. */
static int fetch_open_below(int above, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(above, name, flags);

	if (fd < 0 && errno == ENOENT && (!mkdirat(above, name, 0777) || errno == EEXIST))
		fd = openat(above, name, flags);
	fd = fd < 0 ? -errno : fd;
	close(above);
	return fd;
}

/*
 * Opens the directory that PATH is in, below ours, and makes what is missing of it.  Links are
 * followed in what --bring names, and not below that: they could lead where it does not.
 */
static int fetch_above(const struct run_data *data, const char *path)
{
	int fd = data_set_beneath(data->set->directory, ".", O_RDONLY | O_DIRECTORY, 0);
	size_t named = strlen(fetch_top(data, path));

	for (const char *end = strchr(path, '/'); fd >= 0 && end; end = strchr(end + 1, '/')) {
		char above[PATH_MAX];
		const char *name;

		snprintf(above, sizeof(above), "%.*s", (int)(end - path), path);
		name = strrchr(above, '/');
		fd = (size_t)(end - path) <= named ? fetch_open(data, fd, above)
						   : fetch_open_below(fd, name ? name + 1 : above);
	}
	return fd;
}

static const char *fetch_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void fetch_directory(struct run_data *data, const struct data_entry *entry)
{
	bool named = !strcmp(fetch_top(data, entry->path), entry->path);
	int at = fetch_above(data, entry->path);
	struct stat st;

	if (at < 0) {
		fetch_unmade(data, entry->path, at);
		return;
	}
	if (mkdirat(at, fetch_name(entry->path), entry->mode | 0700) &&
	    (errno != EEXIST ||
	     fstatat(at, fetch_name(entry->path), &st, named ? 0 : AT_SYMLINK_NOFOLLOW) ||
	     !S_ISDIR(st.st_mode)))
		fetch_unmade(data, entry->path, errno == EEXIST ? -ENOTDIR : -errno);
	close(at);
}

/* Gives DATA a temporary name that nobody has. */
static void fetch_name_temporary(struct run_data *data)
{
	static unsigned number;

	snprintf(data->temporary, sizeof(data->temporary), ".iocom-bring.%d.%u", (int)getpid(),
		 number++);
}

/* Where the file system can, the file has no name until it is whole: nothing is left if we die. */
static int fetch_temporary(struct run_data *data)
{
	data->temporary[0] = 0;
	data->to = openat(data->beside, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	for (int i = 0; i < 100 && data->to < 0; i++) {
		fetch_name_temporary(data);
		data->to = openat(data->beside, data->temporary,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (data->to < 0 && errno != EEXIST)
			break;
	}
	return data->to < 0 ? -errno : 0;
}

/* Names a file that has no name yet. */
static int fetch_link(struct run_data *data)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", data->to);
	for (int i = 0; i < 100 && !*data->temporary; i++) {
		fetch_name_temporary(data);
		if (!linkat(AT_FDCWD, self, data->beside, data->temporary, AT_SYMLINK_FOLLOW))
			return 0;
		data->temporary[0] = 0;
		if (errno != EEXIST)
			return -errno;
	}
	return *data->temporary ? 0 : -EEXIST;
}

/* Begins a file.  If it cannot be made, its bytes are dropped. */
static int fetch_begin(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	struct data_entry *entry = &data->getting;
	int rc;

	if (entry->path)
		return fetch_against(data);
	rc = data_entry_unpack(entry, payload, length);
	if (rc || !fetch_top(data, entry->path) || data->entries++ == DATA_ENTRIES)
		return fetch_against(data);
	if (entry->kind == DATA_KIND_DIRECTORY) {
		fetch_directory(data, entry);
		data_entry_free(entry);
		return 0;
	}
	data->got = 0;
	data->hash = data_hash_new();
	if (!data->hash)
		return iocom_err_set(&data->err, -ENOMEM, "out of memory");
	data->beside = fetch_above(data, entry->path);
	rc = data->beside < 0 ? data->beside : fetch_temporary(data);
	if (rc)
		fetch_unmade(data, entry->path, rc);
	return 0;
}

static int fetch_bytes(struct run_data *data, const uint8_t *at, uint32_t length)
{
	if (!data->getting.path || length > data->getting.size - data->got)
		return fetch_against(data);
	data->got += length;
	data_hash_add(data->hash, at, length);
	while (length && data->to >= 0) {
		ssize_t n = write(data->to, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fetch_gone(data, data->getting.path, "it cannot be written here: %s",
				   strerror(errno));
			fetch_drop_file(data);
			break;
		}
		at += n;
		length -= (uint32_t)n;
	}
	return 0;
}

/* So many bytes of the file are 0, and take no room here, either. */
static int fetch_hole(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < length && i < DATA_HOLE_SIZE; i++)
		bytes = bytes << 8 | payload[i];
	if (!data->getting.path || length != DATA_HOLE_SIZE ||
	    bytes > data->getting.size - data->got)
		return fetch_against(data);
	data->got += bytes;
	data_hash_add(data->hash, payload, length);
	if (data->to < 0 || lseek(data->to, (off_t)bytes, SEEK_CUR) >= 0)
		return 0;
	fetch_gone(data, data->getting.path, "it cannot be written here: %s", strerror(errno));
	fetch_drop_file(data);
	return 0;
}

/* The file is whole: it replaces what has its name. */
static int fetch_keep(struct run_data *data)
{
	const struct data_entry *entry = &data->getting;
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_NOW},
		{.tv_sec = entry->mtime_ns / NS_PER_S, .tv_nsec = entry->mtime_ns % NS_PER_S}};

	int rc;

	if (ftruncate(data->to, (off_t)entry->size) || fchmod(data->to, entry->mode) ||
	    futimens(data->to, times))
		return -errno;
	rc = fetch_link(data);
	if (rc)
		return rc;
	if (renameat(data->beside, data->temporary, data->beside, fetch_name(entry->path)))
		return -errno;
	close(data->to);
	data->to = -1;
	data->fetched_bytes += entry->size;
	data->fetched_files++;
	return 0;
}

static int fetch_end(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	const struct data_entry *entry = &data->getting;
	uint8_t have[DATA_HASH];
	int rc = 0;

	if (!entry->path || length != DATA_HASH)
		return fetch_against(data);
	data_hash_end(data->hash, have);
	data->hash = NULL;
	if (data->got != entry->size || memcmp(have, payload, DATA_HASH) != 0)
		fetch_gone(data, entry->path, "it has changed while it was fetched");
	else if (data->to >= 0)
		rc = fetch_keep(data);
	if (rc)
		fetch_gone(data, entry->path, "%s", strerror(-rc));
	run_fetch_drop(data);
	return 0;
}

static int fetch_missing(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	size_t path = strnlen((const char *)payload, length);

	if (path == length)
		return fetch_against(data);
	fetch_gone(data, (const char *)payload, "%.*s", (int)(length - path - 1),
		   payload + path + 1);
	return 0;
}

int run_fetch_take(struct run_data *data, uint8_t type, const uint8_t *payload, uint32_t length)
{
	if (data->state != RUN_DATA_FETCHING)
		return fetch_against(data);
	switch (type) {
	case DATA_ENTRY:
		return fetch_begin(data, payload, length);
	case DATA_DATA:
		return fetch_bytes(data, payload, length);
	case DATA_HOLE:
		return fetch_hole(data, payload, length);
	case DATA_FILE:
		return fetch_end(data, payload, length);
	case DATA_GONE:
		return fetch_missing(data, payload, length);
	case DATA_DONE:
		if (data->getting.path)
			return fetch_against(data);
		data->state = RUN_DATA_DONE;
		return 0;
	default:
		return fetch_against(data);
	}
}
