/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Kept output of jobs that are over; see spool_quota.h. */
#include "agent/guest/spool_quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/guest/launch.h"
#include "iocom/array.h"
#include "user/record.h"

struct entry {
	char job[SPEC_JOB_MAX];
	uid_t uid;
	uint64_t ended_ns, bytes;
};

struct list {
	struct entry *entries;
	size_t n, room;
};

void spool_quota_users_add(struct spool_quota_users *users, uid_t uid, uint64_t bytes)
{
	struct kept_user *grown;

	for (size_t i = 0; i < users->n; i++)
		if (users->list[i].uid == uid) {
			users->list[i].bytes += bytes;
			return;
		}
	grown = realloc(users->list, (users->n + 1) * sizeof(*grown));
	if (!grown)
		return;
	users->list = grown;
	users->list[users->n++] = (struct kept_user){uid, bytes};
}

uint64_t spool_quota_users_of(const struct spool_quota_users *users, uid_t uid)
{
	for (size_t i = 0; i < users->n; i++)
		if (users->list[i].uid == uid)
			return users->list[i].bytes;
	return 0;
}

void spool_quota_users_free(struct spool_quota_users *users)
{
	free(users->list);
	*users = (struct spool_quota_users){0};
}

static int spool_quota_add(struct list *list, const char *job, const struct stat *end, uid_t uid,
			   uint64_t bytes)
{
	struct entry *e;

	if (array_reserve(list->entries, list->room, list->n + 1, 64))
		return -ENOMEM;
	e = &list->entries[list->n++];
	snprintf(e->job, sizeof(e->job), "%.95s", job);
	e->ended_ns = (uint64_t)end->st_mtim.tv_sec * 1000000000u + (uint64_t)end->st_mtim.tv_nsec;
	e->uid = uid;
	e->bytes = bytes;
	return 0;
}

/* Looks at one record; a job without output leaves none once its shim is gone. */
static int spool_quota_look(struct list *list, int all, const char *jobs_dir, const char *run_dir,
			    const char *job)
{
	int dir = openat(all, job, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct record_start start;
	int64_t bytes;
	struct stat end;
	int rc = 0;

	if (dir < 0)
		return 0;
	bytes = record_spool_bytes(dir);
	/* A killed shim leaves no exit record. */
	if (bytes < 0 || (fstatat(dir, "exit", &end, AT_SYMLINK_NOFOLLOW) && fstat(dir, &end))) {
		close(dir);
		launch_forget(jobs_dir, run_dir, job);
		return 0;
	}
	/* A damaged record's user is unknown: count it for root, who has no share. */
	if (record_read_start(dir, &start))
		start.uid = 0;
	rc = record_lock(dir) ? 0 : spool_quota_add(list, job, &end, start.uid, (uint64_t)bytes);
	close(dir);
	return rc;
}

static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->ended_ns < y->ended_ns ? 1 : x->ended_ns > y->ended_ns ? -1 : 0;
}

static uint64_t share_of(const struct spool_quota_limits *limits, uid_t uid)
{
	if (uid == 0)
		return UINT64_MAX;
	return limits->uid == uid && limits->of_uid < limits->of_one ? limits->of_uid
								     : limits->of_one;
}

int spool_quota_prune(const char *jobs_dir, const char *run_dir,
		      const struct spool_quota_limits *limits,
		      bool (*live)(void *arg, const char *job), void *arg,
		      struct spool_quota_sum *sum, struct spool_quota_users *users)
{
	const struct dirent *entry;
	DIR *all = opendir(jobs_dir);
	struct spool_quota_users mine = {0}, *of = users ? users : &mine;
	struct list list = {0};
	int rc = 0;

	*sum = (struct spool_quota_sum){0};
	if (users)
		spool_quota_users_free(users);
	if (!all)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (entry = readdir(all)))
		if (spec_job_valid(entry->d_name) && !live(arg, entry->d_name))
			rc = spool_quota_look(&list, dirfd(all), jobs_dir, run_dir, entry->d_name);
	closedir(all);
	if (list.n)
		qsort(list.entries, list.n, sizeof(*list.entries), newest_first);
	for (size_t i = 0; i < list.n; i++) {
		const struct entry *e = &list.entries[i];
		bool others = i < limits->jobs && e->ended_ns >= limits->oldest_ns &&
			      sum->bytes + e->bytes <= limits->bytes;

		if (others &&
		    spool_quota_users_of(of, e->uid) + e->bytes <= share_of(limits, e->uid)) {
			sum->jobs++;
			sum->bytes += e->bytes;
			spool_quota_users_add(of, e->uid, e->bytes);
			continue;
		}
		sum->removed_jobs++;
		sum->removed_share += others;
		sum->removed_bytes += e->bytes;
		record_remove(jobs_dir, e->job);
	}
	spool_quota_users_free(&mine);
	free(list.entries);
	return rc;
}
