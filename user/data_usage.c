/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_usage.h. */
#include "user/data_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USAGE_FILE "usage"
#define USAGE_NEW  "usage.new"
#define USAGE_FORM                                                                                 \
	"jobs %" NUMBER "\ncopied_bytes %" NUMBER "\ncopied_files %" NUMBER                        \
	"\nfound_bytes %" NUMBER "\nfound_files %" NUMBER "\nevicted_bytes %" NUMBER               \
	"\nevicted_files %" NUMBER "\ncache_bytes %" NUMBER "\ncache_files %" NUMBER               \
	"\nquota_bytes %" NUMBER "\n"
#define USAGE_FIELDS 10

int data_usage_read(int at, struct data_usage *u)
{
	struct data_stats *s = &u->sum;
	int fd = openat(at, USAGE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), got;
	FILE *file;

	*u = (struct data_usage){0};
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
#define NUMBER SCNu64
	got = fscanf(file, USAGE_FORM, &u->jobs, &s->copied_bytes, &s->copied_files,
		     &s->found_bytes, &s->found_files, &s->evicted_bytes, &s->evicted_files,
		     &s->cache_bytes, &s->cache_files, &s->quota_bytes);
#undef NUMBER
	fclose(file);
	if (got == USAGE_FIELDS)
		return 0;
	*u = (struct data_usage){0};
	return -EBADMSG;
}

static int usage_write(int fd, const struct data_usage *u)
{
	const struct data_stats *s = &u->sum;
	int rc;

#define NUMBER PRIu64
	rc = dprintf(fd, USAGE_FORM, u->jobs, s->copied_bytes, s->copied_files, s->found_bytes,
		     s->found_files, s->evicted_bytes, s->evicted_files, s->cache_bytes,
		     s->cache_files, s->quota_bytes);
#undef NUMBER
	if (rc < 0 || fchmod(fd, 0600))
		rc = -errno;
	close(fd);
	return rc < 0 ? rc : 0;
}

int data_usage_add(int at, const struct data_stats *stats)
{
	struct data_usage u;
	int fd, rc;

	(void)data_usage_read(at, &u); /* one that cannot be read begins anew */
	u.jobs++;
	u.sum.copied_bytes += stats->copied_bytes;
	u.sum.copied_files += stats->copied_files;
	u.sum.found_bytes += stats->found_bytes;
	u.sum.found_files += stats->found_files;
	u.sum.evicted_bytes += stats->evicted_bytes;
	u.sum.evicted_files += stats->evicted_files;
	u.sum.cache_bytes = stats->cache_bytes;
	u.sum.cache_files = stats->cache_files;
	u.sum.quota_bytes = stats->quota_bytes;
	(void)unlinkat(at, USAGE_NEW, 0);
	fd = openat(at, USAGE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : usage_write(fd, &u);
	return !rc && renameat(at, USAGE_NEW, at, USAGE_FILE) ? -errno : rc;
}
