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

#define NS_PER_S 1000000000ll

void run_fetch_drop(struct run_data *data)
{
	uint8_t unused[DATA_HASH];

	if (data->to >= 0) {
		close(data->to);
		(void)unlinkat(data->beside, data->temporary, 0);
	}
	if (data->beside >= 0)
		close(data->beside);
	if (data->hash)
		data_hash_end(data->hash, unused);
	data->to = data->beside = -1;
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
	if (!*data->gone)
		snprintf(data->gone, sizeof(data->gone),
			 "%.200s was not fetched from node %s: %.200s", path, data->node, why);
}

static int fetch_against(struct run_data *data)
{
	return iocom_err_set(&data->err, -EPROTO,
			     "node %s sent what --bring does not name, or not as it should",
			     data->node);
}

/* A node may send only what was asked for. */
static bool fetch_is_asked(const struct run_data *data, const char *path)
{
	for (size_t i = 0; i < data->set->nbrings; i++)
		if (data_path_below(path, data->set->brings[i]))
			return true;
	return false;
}

/* Opens the directory that PATH is in, below ours, and makes what is missing of it. */
static int fetch_above(const struct run_data *data, const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];
	int fd = data_set_beneath(data->set->directory, ".", O_RDONLY | O_DIRECTORY, 0);

	for (const char *end = slash ? strchr(path, '/') : NULL; fd >= 0 && end;
	     end = end < slash ? strchr(end + 1, '/') : NULL) {
		char parent[PATH_MAX];
		const char *name;
		int at;

		snprintf(above, sizeof(above), "%.*s", (int)(end - path), path);
		close(fd);
		fd = data_set_beneath(data->set->directory, above, O_RDONLY | O_DIRECTORY, 0);
		if (fd != -ENOENT)
			continue;
		name = strrchr(above, '/');
		snprintf(parent, sizeof(parent), "%.*s", name ? (int)(name - above) : 1,
			 name ? above : ".");
		at = data_set_beneath(data->set->directory, parent, O_RDONLY | O_DIRECTORY, 0);
		if (at < 0)
			return at;
		fd = mkdirat(at, name ? name + 1 : above, 0777) && errno != EEXIST ? -errno : 0;
		close(at);
		if (!fd)
			fd = data_set_beneath(data->set->directory, above, O_RDONLY | O_DIRECTORY,
					      0);
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
	int at = fetch_above(data, entry->path);
	struct stat st;

	if (at < 0) {
		fetch_gone(data, entry->path, "%s", strerror(-at));
		return;
	}
	if (mkdirat(at, fetch_name(entry->path), entry->mode | 0700) &&
	    (errno != EEXIST || fstatat(at, fetch_name(entry->path), &st, 0) ||
	     !S_ISDIR(st.st_mode)))
		fetch_gone(data, entry->path, "%s", strerror(errno == EEXIST ? ENOTDIR : errno));
	close(at);
}

static int fetch_temporary(struct run_data *data)
{
	static unsigned number;

	for (int i = 0; i < 100; i++) {
		snprintf(data->temporary, sizeof(data->temporary), ".iocom-bring.%d.%u",
			 (int)getpid(), number++);
		data->to = openat(data->beside, data->temporary,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (data->to >= 0 || errno != EEXIST)
			break;
	}
	return data->to < 0 ? -errno : 0;
}

/* Begins a file.  If it cannot be made, its bytes are dropped. */
static int fetch_begin(struct run_data *data, const uint8_t *payload, uint32_t length)
{
	struct data_entry *entry = &data->getting;
	int rc;

	if (entry->path)
		return fetch_against(data);
	rc = data_entry_unpack(entry, payload, length);
	if (rc || !fetch_is_asked(data, entry->path))
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
		fetch_gone(data, entry->path, "%s", strerror(-rc));
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
			close(data->to);
			(void)unlinkat(data->beside, data->temporary, 0);
			data->to = -1;
			break;
		}
		at += n;
		length -= (uint32_t)n;
	}
	return 0;
}

/* The file is whole: it replaces what has its name. */
static int fetch_keep(struct run_data *data)
{
	const struct data_entry *entry = &data->getting;
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_NOW},
		{.tv_sec = entry->mtime_ns / NS_PER_S, .tv_nsec = entry->mtime_ns % NS_PER_S}};

	if (fchmod(data->to, entry->mode) || futimens(data->to, times) ||
	    renameat(data->beside, data->temporary, data->beside, fetch_name(entry->path)))
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
	for (uint32_t i = 0; i < length; i++)
		if (payload[i] < ' ' && i != path)
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
