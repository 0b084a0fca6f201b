/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A user's cache of job data at one node: files named by what they contain.
 *
 *   HASH.MTIME.MODE   a whole file: its bytes have that hash, and it has that time (ns) and mode
 *                     (444 or 555), for as long as nobody has written to it
 *   tmp.PID           one that is not whole yet
 *
 * A file becomes whole by one rename, after its hash was verified; so whatever is killed leaves no
 * half file that counts.  A file with another time, size, mode or owner than it began with was
 * changed, and is dropped.  One that is older than this boot is read once before it counts: a power
 * cut may have lost its bytes.
 *
 * A running job has links to what it uses: a file with several names is not evicted.  The others
 * go in the order of their last use, which is their access time, set by us.
 *
 * The cache is the user's own, so he can write into it by himself.  What is not of this form,
 * directories too, goes with the next job whose data comes, before anything is copied; what is
 * counts, as the disk does.  So nobody has more than his quota for longer than until his next job,
 * and others' caches are never looked at.
 *
 * One process at a time works in a cache (a lock on its directory).
 */
#ifndef IOCOM_SHIM_DATA_CACHE_H
#define IOCOM_SHIM_DATA_CACHE_H

#include <sys/stat.h>

#include "user/data_stage.h"

#define DATA_CACHE_NAME (DATA_HASH_TEXT + 32)

struct data_cached {
	char name[DATA_CACHE_NAME];
	uint64_t size;
	uint64_t takes; /* of the quota: more than its size if its user had it allocate more */
	int64_t used_ns, mtime_ns;
	bool pinned; /* this job needs it, or another job uses it */
	bool gone;
};

struct data_cache {
	int fd;
	uint64_t quota, bytes;
	struct data_cached *at;
	size_t count, room, sorted; /* the first ones, by name; then new ones */
	struct data_stats stats;
};

/* Opens and locks the cache at PATH, and drops what is not whole.  Returns 0 or negative errno. */
int data_cache_open(struct data_cache *cache, const char *path, uint64_t quota);
void data_cache_close(struct data_cache *cache);
/* Finds a file with the content HASH of SIZE bytes, and pins it; false: there is none. */
bool data_cache_find(struct data_cache *cache, const uint8_t hash[DATA_HASH], uint64_t size,
		     size_t *index);
/*
 * Makes room for BYTES more.  Returns 0; -EDQUOT: not even without all that no job uses; PINNED
 * gets how much is used.
 */
int data_cache_room(struct data_cache *cache, uint64_t bytes, uint64_t *pinned);
/* Opens a new file that is not whole.  Returns a descriptor or negative errno. */
int data_cache_begin(struct data_cache *cache);
/* FD, which is closed, is whole and has the content and time of ENTRY.  Returns 0 or -errno. */
int data_cache_commit(struct data_cache *cache, int fd, const struct data_entry *entry,
		      size_t *index);
/* FD, which is closed, will not be whole. */
void data_cache_drop(struct data_cache *cache, int fd);
/*
 * Gives the job the file INDEX as ENTRY's path below the directory AT: the cached file itself, or
 * a copy if the job may change it or the times differ.  Returns 0 or negative errno.
 */
int data_cache_give(const struct data_cache *cache, size_t index, int at,
		    const struct data_entry *entry);

#endif
