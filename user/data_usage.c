/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_usage.h. */
#include "user/data_usage.h"

#include <dirent.h>
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
	"\nquota_bytes %" NUMBER "\nrefused %" NUMBER "\n"
#define USAGE_FIELDS 11
#define USAGE_LEAST  (USAGE_FIELDS - 1) /* in the file of an older build */

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
		     &s->cache_bytes, &s->cache_files, &s->quota_bytes, &u->refused);
#undef NUMBER
	fclose(file);
	if (got >= USAGE_LEAST)
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
		     s->cache_files, s->quota_bytes, u->refused);
#undef NUMBER
	if (rc < 0 || fchmod(fd, 0600))
		rc = -errno;
	close(fd);
	return rc < 0 ? rc : 0;
}

static int usage_replace(int at, const struct data_usage *u)
{
	int fd, rc;

	(void)unlinkat(at, USAGE_NEW, 0);
	fd = openat(at, USAGE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : usage_write(fd, u);
	return !rc && renameat(at, USAGE_NEW, at, USAGE_FILE) ? -errno : rc;
}

int data_usage_add(int at, const struct data_stats *stats)
{
	struct data_usage u;

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
	return usage_replace(at, &u);
}

int data_usage_refuse(int at)
{
	struct data_usage u;

	(void)data_usage_read(at, &u);
	u.refused++;
	return usage_replace(at, &u);
}

/* --- of all users ----------------------------------------------------------------------- */

static void usage_sum(struct data_usage_all *all, const struct data_usage *one)
{
	struct data_stats *s = &all->sum.sum;

	all->users++;
	all->sum.jobs += one->jobs;
	all->sum.refused += one->refused;
	s->copied_bytes += one->sum.copied_bytes;
	s->copied_files += one->sum.copied_files;
	s->found_bytes += one->sum.found_bytes;
	s->found_files += one->sum.found_files;
	s->evicted_bytes += one->sum.evicted_bytes;
	s->evicted_files += one->sum.evicted_files;
	s->cache_bytes += one->sum.cache_bytes;
	s->cache_files += one->sum.cache_files;
	if (s->quota_bytes < one->sum.quota_bytes)
		s->quota_bytes = one->sum.quota_bytes;
	all->full += one->sum.cache_bytes > one->sum.quota_bytes / 10 * 9;
}

int data_usage_all(const char *data_dir, struct data_usage_all *all)
{
	DIR *dir = opendir(data_dir);
	const struct dirent *entry;

	*all = (struct data_usage_all){0};
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		struct data_usage one;
		int at;

		if (entry->d_name[strspn(entry->d_name, "0123456789")])
			continue;
		at = openat(dirfd(dir), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (at >= 0 && !data_usage_read(at, &one))
			usage_sum(all, &one);
		if (at >= 0)
			close(at);
	}
	closedir(dir);
	return 0;
}
