/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_cache.h. */
#include "agent/shim/data_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "agent/shim/data_io.h"
#include "agent/shim/scratch.h"
#include "user/clock.h"

#define DATA_CACHE_TMP "tmp."
#define NS_PER_S       1000000000ll
#define BLOCK	       512u	  /* of st_blocks */
#define CACHE_SLACK    (1u << 20) /* that a file system may allocate ahead */

static int64_t time_ns(const struct timespec *t)
{
	return t->tv_sec * NS_PER_S + t->tv_nsec;
}

static mode_t cached_mode(mode_t mode)
{
	return mode & 0111 ? 0555 : 0444;
}

static void cache_tmp_name(char name[32])
{
	snprintf(name, 32, DATA_CACHE_TMP "%d", (int)getpid());
}

static void cached_name(char name[DATA_CACHE_NAME], const uint8_t hash[DATA_HASH],
			const struct stat *st)
{
	char text[DATA_HASH_TEXT];

	data_hash_text(text, hash);
	snprintf(name, DATA_CACHE_NAME, "%s.%" PRId64 ".%o", text, time_ns(&st->st_mtim),
		 (unsigned)st->st_mode & 0777);
}

/* Takes NAME apart.  Returns whether it is a name as cached_name makes it. */
static bool cached_parse(const char *name, int64_t *mtime_ns, unsigned *mode)
{
	size_t n = strspn(name, "0123456789abcdef");
	int end = 0;

	return n == DATA_HASH_TEXT - 1 &&
	       sscanf(name + n, ".%" SCNd64 ".%o%n", mtime_ns, mode, &end) == 2 &&
	       !name[n + (size_t)end] && strlen(name) < DATA_CACHE_NAME;
}

static int64_t boot_ns(void)
{
	struct timespec real, boot;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return time_ns(&real) - time_ns(&boot);
}

/* Reads FD and returns whether its content has the hash that NAME begins with. */
static bool cached_verify(int fd, const char *name)
{
	struct data_hash *hash = data_hash_new();
	uint8_t piece[65536], found[DATA_HASH];
	char text[DATA_HASH_TEXT];
	ssize_t n;

	if (!hash)
		return false;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		data_hash_add(hash, piece, (size_t)n);
	data_hash_end(hash, found);
	data_hash_text(text, found);
	return n == 0 && !strncmp(name, text, DATA_HASH_TEXT - 1);
}

/* A file from before this boot counts when its content is right; its new change time says so. */
static bool cached_after_boot(const struct data_cache *cache, const char *name,
			      const struct stat *st)
{
	bool good;
	int fd;

	if (time_ns(&st->st_ctim) >= boot_ns())
		return true;
	fd = openat(cache->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	good = fd >= 0 && cached_verify(fd, name) && !fchmod(fd, st->st_mode & 0777);
	if (fd >= 0)
		close(fd);
	return good;
}

/* Returns whether the file is as it was when it became whole. */
static bool cached_is_whole(const struct data_cache *cache, const char *name, const struct stat *st)
{
	int64_t mtime_ns;
	unsigned mode;

	return cached_parse(name, &mtime_ns, &mode) && S_ISREG(st->st_mode) &&
	       st->st_uid == geteuid() && (st->st_mode & 07777) == mode &&
	       time_ns(&st->st_mtim) == mtime_ns && cached_after_boot(cache, name, st);
}

static uint64_t cached_takes(const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, blocks = (uint64_t)st->st_blocks * BLOCK;

	return blocks > size + CACHE_SLACK ? blocks : size;
}

static struct data_cached *cache_add(struct data_cache *cache, const char *name,
				     const struct stat *st)
{
	struct data_cached *more;

	if (cache->count == cache->room) {
		size_t room = cache->room ? 2 * cache->room : 256;

		more = reallocarray(cache->at, room, sizeof(*more));
		if (!more)
			return NULL;
		cache->at = more;
		cache->room = room;
	}
	more = &cache->at[cache->count++];
	*more = (struct data_cached){
		.size = (uint64_t)st->st_size,
		.takes = cached_takes(st),
		.used_ns = time_ns(&st->st_atim),
		.mtime_ns = time_ns(&st->st_mtim),
		.pinned = st->st_nlink > 1,
	};
	snprintf(more->name, sizeof(more->name), "%s", name);
	cache->bytes += more->takes;
	return more;
}

/* What is not whole goes; directories are nobody's but the user's own. */
static int cache_scan_one(struct data_cache *cache, const char *name)
{
	struct stat st;

	if (fstatat(cache->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (cached_is_whole(cache, name, &st))
		return cache_add(cache, name, &st) ? 0 : -ENOMEM;
	if (S_ISDIR(st.st_mode))
		return scratch_remove_tree(cache->fd, name);
	return unlinkat(cache->fd, name, 0) && errno != ENOENT ? -errno : 0;
}

static int cached_compare(const void *a, const void *b)
{
	const struct data_cached *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int cache_scan(struct data_cache *cache)
{
	int fd = openat(cache->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (errno = 0, entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = cache_scan_one(cache, entry->d_name);
	if (!rc && errno)
		rc = -errno;
	closedir(dir);
	if (!rc && cache->count)
		qsort(cache->at, cache->count, sizeof(*cache->at), cached_compare);
	cache->sorted = cache->count;
	return rc;
}

int data_cache_open(struct data_cache *cache, const char *path, uint64_t quota)
{
	*cache = (struct data_cache){.quota = quota};
	cache->stats.quota_bytes = quota;
	cache->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cache->fd < 0)
		return -errno;
	while (flock(cache->fd, LOCK_EX))
		if (errno != EINTR)
			return -errno;
	return cache_scan(cache);
}

void data_cache_close(struct data_cache *cache)
{
	if (cache->fd >= 0)
		close(cache->fd);
	free(cache->at);
	*cache = (struct data_cache){.fd = -1};
}

/* The first of the sorted files whose name is not before TEXT. */
static size_t cache_lower(const struct data_cache *cache, const char *text)
{
	size_t low = 0, high = cache->sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(cache->at[middle].name, text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool data_cache_find(struct data_cache *cache, const uint8_t hash[DATA_HASH], uint64_t size,
		     size_t *index)
{
	const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	char text[DATA_HASH_TEXT];
	size_t i;

	data_hash_text(text, hash);
	for (i = cache_lower(cache, text); i < cache->sorted; i++) {
		struct data_cached *c = &cache->at[i];

		if (strncmp(c->name, text, sizeof(text) - 1) != 0)
			return false;
		if (c->size != size)
			continue;
		c->pinned = true;
		(void)utimensat(cache->fd, c->name, now, AT_SYMLINK_NOFOLLOW);
		*index = i;
		return true;
	}
	return false;
}

static struct data_cached *cache_oldest(struct data_cache *cache)
{
	struct data_cached *oldest = NULL;

	for (size_t i = 0; i < cache->count; i++) {
		struct data_cached *c = &cache->at[i];

		if (!c->gone && !c->pinned && (!oldest || c->used_ns < oldest->used_ns))
			oldest = c;
	}
	return oldest;
}

static uint64_t cache_pinned(const struct data_cache *cache)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < cache->count; i++)
		if (cache->at[i].pinned && !cache->at[i].gone)
			bytes += cache->at[i].takes;
	return bytes;
}

int data_cache_room(struct data_cache *cache, uint64_t bytes, uint64_t *pinned)
{
	*pinned = cache_pinned(cache);
	if (bytes > cache->quota || *pinned > cache->quota - bytes)
		return -EDQUOT;
	while (cache->bytes > cache->quota - bytes) {
		struct data_cached *c = cache_oldest(cache);

		if (!c)
			return -EDQUOT;
		if (unlinkat(cache->fd, c->name, 0) && errno != ENOENT)
			return -errno;
		c->gone = true;
		cache->bytes -= c->takes;
		cache->stats.evicted_bytes += c->takes;
		cache->stats.evicted_files++;
	}
	return 0;
}

int data_cache_begin(struct data_cache *cache)
{
	char name[32];
	int fd;

	cache_tmp_name(name);
	(void)unlinkat(cache->fd, name, 0);
	fd = openat(cache->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

void data_cache_drop(struct data_cache *cache, int fd)
{
	char name[32];

	cache_tmp_name(name);
	(void)unlinkat(cache->fd, name, 0);
	close(fd);
}

/* The name has the time that the file system keeps, which may be coarser than at home. */
int data_cache_commit(struct data_cache *cache, int fd, const struct data_entry *entry,
		      size_t *index)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_NOW},
		{.tv_sec = entry->mtime_ns / NS_PER_S, .tv_nsec = entry->mtime_ns % NS_PER_S}};
	char tmp[32], name[DATA_CACHE_NAME];
	struct data_cached *c;
	struct stat st;
	int rc = 0;

	cache_tmp_name(tmp);
	if (fchmod(fd, cached_mode(entry->mode)) || futimens(fd, times) || fstat(fd, &st))
		rc = -errno;
	if (!rc) {
		cached_name(name, entry->hash, &st);
		rc = renameat(cache->fd, tmp, cache->fd, name) ? -errno : 0;
	}
	if (rc) {
		data_cache_drop(cache, fd);
		return rc;
	}
	close(fd);
	c = cache_add(cache, name, &st);
	if (!c)
		return -ENOMEM;
	c->pinned = true;
	*index = cache->count - 1;
	return 0;
}

/* Copies all of FROM, by reference where the file system can.  Returns 0 or negative errno. */
static int cache_copy(int from, int to, uint64_t size)
{
	uint8_t piece[65536];
	ssize_t n = 1;

	if (!ioctl(to, FICLONE, from))
		return 0;
	while (size && (n = copy_file_range(from, NULL, to, NULL, size, 0)) > 0)
		size -= (uint64_t)n;
	if (!size)
		return 0;
	if (n < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return -errno;
	while ((n = read(from, piece, sizeof(piece))) > 0) {
		int rc = data_io_put(to, piece, (size_t)n);

		if (rc)
			return rc;
	}
	return n ? -errno : 0;
}

/* A copy of the job's own, with its mode and time at home. */
static int cache_give_copy(const struct data_cache *cache, const struct data_cached *file, int at,
			   const struct data_entry *entry)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_NOW},
		{.tv_sec = entry->mtime_ns / NS_PER_S, .tv_nsec = entry->mtime_ns % NS_PER_S}};
	int from = openat(cache->fd, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to, rc;

	if (from < 0)
		return -errno;
	to = openat(at, entry->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = to < 0 ? -errno : cache_copy(from, to, file->size);
	if (!rc && (fchmod(to, entry->writable ? entry->mode : cached_mode(entry->mode)) ||
		    futimens(to, times)))
		rc = -errno;
	if (to >= 0)
		close(to);
	close(from);
	return rc;
}

int data_cache_give(const struct data_cache *cache, size_t index, int at,
		    const struct data_entry *entry)
{
	const struct data_cached *file = &cache->at[index];
	unsigned mode = 0;
	int64_t mtime_ns = 0;

	if (!entry->writable && cached_parse(file->name, &mtime_ns, &mode) &&
	    mtime_ns == entry->mtime_ns && mode == (unsigned)cached_mode(entry->mode)) {
		if (!linkat(cache->fd, file->name, at, entry->path, 0))
			return 0;
		if (errno != EMLINK && errno != EXDEV && errno != EPERM)
			return -errno;
	}
	return cache_give_copy(cache, file, at, entry);
}
