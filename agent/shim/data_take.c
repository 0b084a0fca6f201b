/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The process that takes a job's data before the job begins, as the job's user, in the directory
 * that will be the job's:
 *
 *   the list -> what the cache has -> room -> WANT -> each file, verified while it is written ->
 *   laid out here -> STATS
 *
 * What it cannot do it says on descriptor 2, and ends with 1: then nothing of the job has run.
 */
#include "agent/shim/data_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/shim/data_cache.h"

#define MB		1e6
#define TAKE_BLOCK	4096u /* what a file takes at least, about */
#define TAKE_INCOMPLETE "the client sent no proper list of the job's data"

struct taken {
	struct data_entry entry;
	size_t cached; /* index of its file in the cache */
	bool wanted;
};

struct take {
	const char *node;
	struct data_io io;
	struct data_cache cache;
	struct taken *at;
	size_t count, room;
	uint64_t bytes;
};

static int take_garbage(int rc)
{
	return rc == -EPIPE ? rc : data_io_fail(-EBADMSG, TAKE_INCOMPLETE);
}

static int take_entry(struct take *take, const uint8_t *payload, uint32_t length)
{
	struct taken *more;
	int rc;

	if (take->count == DATA_ENTRIES)
		return data_io_fail(-E2BIG, "a job has at most %d files of data", DATA_ENTRIES);
	if (take->count == take->room) {
		size_t room = take->room ? 2 * take->room : 64;

		more = reallocarray(take->at, room, sizeof(*more));
		if (!more)
			return data_io_fail(-ENOMEM,
					    "out of memory for the list of the job's data");
		take->at = more;
		take->room = room;
	}
	more = &take->at[take->count];
	*more = (struct taken){0};
	rc = data_entry_unpack(&more->entry, payload, length);
	if (rc)
		return take_garbage(rc);
	take->count++;
	if (take->bytes + more->entry.size > DATA_BYTES_MAX)
		return take_garbage(-EBADMSG);
	take->bytes += more->entry.size;
	return 0;
}

static int take_list(struct take *take)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc;

	while (!(rc = data_io_read(&take->io, &type, &payload, &length)) && type == DATA_ENTRY) {
		rc = take_entry(take, payload, length);
		if (rc)
			return rc;
	}
	return rc || type != DATA_LIST || length ? take_garbage(rc) : 0;
}

/* Which files the cache lacks.  Returns the bytes that must come and be kept. */
static uint64_t take_look(struct take *take)
{
	struct data_stats *stats = &take->cache.stats;
	uint64_t missing = 0;

	for (size_t i = 0; i < take->count; i++) {
		struct taken *t = &take->at[i];

		if (t->entry.kind != DATA_KIND_FILE)
			continue;
		t->wanted = !t->entry.hashed || !data_cache_find(&take->cache, t->entry.hash,
								 t->entry.size, &t->cached);
		if (t->wanted) {
			missing += t->entry.size;
			stats->copied_bytes += t->entry.size;
			stats->copied_files++;
		} else {
			stats->found_bytes += t->entry.size;
			stats->found_files++;
		}
	}
	return missing;
}

/* What the directory of the job takes besides, where files are copied for it. */
static uint64_t take_copies(const struct take *take)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < take->count; i++)
		bytes += take->at[i].entry.writable ? take->at[i].entry.size : 0;
	return bytes + TAKE_BLOCK * (uint64_t)take->count;
}

/* Says that there is no room, so that the client may have the job run elsewhere.  Returns RC. */
static int take_full(int rc)
{
	(void)data_io_write(DATA_FULL, NULL, 0);
	return rc;
}

static int take_room(struct take *take, uint64_t missing)
{
	uint64_t pinned = 0, needed = missing + take_copies(take), free_bytes;
	struct statvfs fs;
	int rc = data_cache_room(&take->cache, missing, &pinned);

	if (rc == -EDQUOT)
		return data_io_fail(take_full(rc),
				    "your data cache at node %s has no room: %.1f MB would come, "
				    "of its %.1f MB "
				    "(data_cache_mb) this job and running ones use %.1f MB",
				    take->node, (double)missing / MB,
				    (double)take->cache.quota / MB, (double)pinned / MB);
	if (rc)
		return data_io_fail(rc, "cannot make room in your data cache at node %s: %s",
				    take->node, strerror(-rc));
	if (fstatvfs(take->cache.fd, &fs))
		return 0;
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (needed > free_bytes)
		return data_io_fail(take_full(-ENOSPC),
				    "the disk of node %s is full: the job's data takes %.1f MB, "
				    "%.1f MB are free",
				    take->node, (double)needed / MB, (double)free_bytes / MB);
	return 0;
}

static int take_want(const struct take *take)
{
	uint8_t piece[8192];
	size_t at = 0;
	int rc = 0;

	do {
		uint32_t n = 0;

		while (n < sizeof(piece) && at < take->count)
			piece[n++] = take->at[at++].wanted;
		rc = data_io_write(DATA_WANT, piece, n);
	} while (!rc && at < take->count);
	return rc;
}

static int take_failed_write(const struct take *take, int rc)
{
	if (rc == -ENOSPC || rc == -EDQUOT)
		return data_io_fail(take_full(rc),
				    "the disk of node %s is full: the job's data did not fit",
				    take->node);
	return data_io_fail(rc, "cannot write the job's data at node %s: %s", take->node,
			    strerror(-rc));
}

/* Takes the bytes of one file into FD.  Returns 0, with the hash that they have and the one sent.
 */
static int take_content(struct take *take, const struct data_entry *entry, int fd,
			struct data_hash *hash, uint8_t sent[DATA_HASH])
{
	uint64_t got = 0;
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc;

	while (!(rc = data_io_read(&take->io, &type, &payload, &length)) && type == DATA_DATA) {
		got += length;
		if (got > entry->size)
			return data_io_fail(-EBADMSG, "%s has grown while it was copied",
					    entry->path);
		data_hash_add(hash, payload, length);
		rc = data_io_put(fd, payload, length);
		if (rc)
			return take_failed_write(take, rc);
	}
	if (rc || type != DATA_FILE || length != DATA_HASH)
		return take_garbage(rc);
	if (got != entry->size)
		return data_io_fail(-EBADMSG, "%s has shrunk while it was copied", entry->path);
	memcpy(sent, payload, DATA_HASH);
	return 0;
}

static int take_file(struct take *take, struct taken *t)
{
	struct data_hash *hash = data_hash_new();
	int fd = data_cache_begin(&take->cache), rc = fd < 0 ? take_failed_write(take, fd) : 0;
	struct data_entry *entry = &t->entry;
	uint8_t have[DATA_HASH], sent[DATA_HASH];

	if (!rc && !hash)
		rc = data_io_fail(-ENOMEM, "out of memory for the job's data");
	if (!rc)
		rc = take_content(take, entry, fd, hash, sent);
	if (hash)
		data_hash_end(hash, have);
	if (!rc && (memcmp(have, sent, DATA_HASH) != 0 ||
		    (entry->hashed && memcmp(have, entry->hash, DATA_HASH) != 0)))
		rc = data_io_fail(-EBADMSG, "%s has changed while it was copied", entry->path);
	if (rc) {
		if (fd >= 0)
			data_cache_drop(&take->cache, fd);
		return rc;
	}
	memcpy(entry->hash, have, DATA_HASH);
	rc = data_cache_commit(&take->cache, fd, entry, &t->cached);
	return rc ? take_failed_write(take, rc) : 0;
}

static int take_files(struct take *take)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = 0;

	for (size_t i = 0; i < take->count && !rc; i++)
		if (take->at[i].wanted)
			rc = take_file(take, &take->at[i]);
	if (rc)
		return rc;
	rc = data_io_read(&take->io, &type, &payload, &length);
	return rc || type != DATA_DONE ? take_garbage(rc) : 0;
}

/* Makes the directories above PATH, below the current one.  Nothing else is there yet. */
static int lay_above(const char *path)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (mkdir(above, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int lay_one(struct take *take, const struct taken *t)
{
	const struct data_entry *entry = &t->entry;
	int rc = lay_above(entry->path);

	if (rc)
		return rc;
	if (entry->kind == DATA_KIND_DIRECTORY)
		return mkdir(entry->path, 0700) && errno != EEXIST ? -errno : 0;
	return data_cache_give(&take->cache, t->cached, AT_FDCWD, entry);
}

/* Directories get their modes at the end, but stay open to their owner. */
static int take_lay(struct take *take)
{
	int rc = 0;

	for (size_t i = 0; i < take->count && !rc; i++) {
		rc = lay_one(take, &take->at[i]);
		if (rc == -ENOSPC || rc == -EDQUOT)
			return take_failed_write(take, rc);
		if (rc)
			return data_io_fail(rc, "cannot make %s at node %s: %s",
					    take->at[i].entry.path, take->node, strerror(-rc));
	}
	for (size_t i = take->count; i-- > 0;)
		if (take->at[i].entry.kind == DATA_KIND_DIRECTORY)
			(void)chmod(take->at[i].entry.path, take->at[i].entry.mode | 0700);
	return 0;
}

static int take_stats(struct take *take)
{
	struct data_stats *stats = &take->cache.stats;
	uint8_t packed[1024];
	int n;

	stats->cache_bytes = take->cache.bytes;
	for (size_t i = 0; i < take->cache.count; i++)
		stats->cache_files += !take->cache.at[i].gone;
	n = data_stats_pack(stats, packed, sizeof(packed));
	return n < 0 ? n : data_io_write(DATA_STATS, packed, (uint32_t)n);
}

static int take_all(struct take *take, const char *path, uint64_t quota)
{
	int rc = take_list(take);

	if (rc)
		return rc;
	rc = data_cache_open(&take->cache, path, quota);
	if (rc)
		return data_io_fail(rc, "cannot use your data cache %s at node %s: %s", path,
				    take->node, strerror(-rc));
	rc = take_room(take, take_look(take));
	if (!rc)
		rc = take_want(take);
	if (!rc)
		rc = take_files(take);
	if (!rc)
		rc = take_lay(take);
	return rc ? rc : take_stats(take);
}

int data_take_main(int argc, char **words)
{
	struct take *take = argc == 3 ? calloc(1, sizeof(*take)) : NULL;
	int rc;

	if (!take)
		return 2;
	take->cache.fd = -1;
	take->node = words[1];
	rc = take_all(take, words[0], strtoull(words[2], NULL, 10));
	data_cache_close(&take->cache);
	for (size_t i = 0; i < take->count; i++)
		data_entry_free(&take->at[i].entry);
	free(take->at);
	free(take);
	return rc == -EDQUOT || rc == -ENOSPC ? DATA_NO_ROOM : rc ? 1 : 0;
}
