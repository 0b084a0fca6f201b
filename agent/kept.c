/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is kept of jobs that are over; see kept.h. */
#include "kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"
#include "record.h"

struct entry {
	char job[SPEC_JOB_MAX];
	uint64_t ended_ns, bytes;
};

struct list {
	struct entry *entries;
	size_t n, room;
};

static int add(struct list *list, const char *job, const struct stat *end, uint64_t bytes)
{
	struct entry *e;

	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct entry *grown = realloc(list->entries, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->entries = grown;
		list->room = room;
	}
	e = &list->entries[list->n++];
	snprintf(e->job, sizeof(e->job), "%.95s", job);
	e->ended_ns = (uint64_t)end->st_mtim.tv_sec * 1000000000u + (uint64_t)end->st_mtim.tv_nsec;
	e->bytes = bytes;
	return 0;
}

/* One record; a job without output leaves none once its shim has gone. */
static int look(struct list *list, int all, const char *jobs_dir, const char *run_dir,
		const char *job)
{
	int dir = openat(all, job, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int64_t bytes;
	struct stat end;
	int rc = 0;

	if (dir < 0)
		return 0;
	bytes = record_spool_bytes(dir);
	/* Where the shim was killed, there is no exit. */
	if (bytes < 0 || (fstatat(dir, "exit", &end, AT_SYMLINK_NOFOLLOW) && fstat(dir, &end))) {
		close(dir);
		launch_forget(jobs_dir, run_dir, job);
		return 0;
	}
	rc = record_lock(dir) ? 0 : add(list, job, &end, (uint64_t)bytes);
	close(dir);
	return rc;
}

static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->ended_ns < y->ended_ns ? 1 : x->ended_ns > y->ended_ns ? -1 : 0;
}

int kept_prune(const char *jobs_dir, const char *run_dir, const struct kept_limits *limits,
	       bool (*live)(void *arg, const char *job), void *arg, struct kept_sum *sum)
{
	const struct dirent *entry;
	DIR *all = opendir(jobs_dir);
	struct list list = {0};
	int rc = 0;

	*sum = (struct kept_sum){0};
	if (!all)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (entry = readdir(all)))
		if (spec_job_valid(entry->d_name) && !live(arg, entry->d_name))
			rc = look(&list, dirfd(all), jobs_dir, run_dir, entry->d_name);
	closedir(all);
	if (list.n)
		qsort(list.entries, list.n, sizeof(*list.entries), newest_first);
	for (size_t i = 0; i < list.n; i++) {
		const struct entry *e = &list.entries[i];

		if (i < limits->jobs && e->ended_ns >= limits->oldest_ns &&
		    sum->bytes + e->bytes <= limits->bytes) {
			sum->jobs++;
			sum->bytes += e->bytes;
			continue;
		}
		sum->removed_jobs++;
		sum->removed_bytes += e->bytes;
		record_remove(jobs_dir, e->job);
	}
	free(list.entries);
	return rc;
}
