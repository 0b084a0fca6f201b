/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Syncs the journal in a thread; see journal_thread.h.
 *
 * In WAL mode with synchronous=NORMAL, SQLite syncs at checkpoints only: first the log, then the
 * database, before it uses the log anew.  So a commit is on the disk as soon as the log's file was
 * synced after it, however often SQLite has begun that file anew meanwhile.  SQLite keeps its locks
 * on the other two files, so closing our descriptor of the log drops none of them.
 */
#include "agent/jobs/journal_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/sync_name.h"

#define REPAIR_BUSY_MS 1000

struct journal_thread {
	const struct base *base;
	struct journal *journal;
	char path[PATH_MAX]; /* of the database */
	int log;	     /* the thread's descriptor of the log; -1: not open */
	bool failing;	     /* the last sync failed, which was logged */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool work, repair, stop; /* under the mutex, and so is RC */
	int rc;
	struct loop_post post;
};

/* --- in the thread --------------------------------------------------------------- */

static int journal_thread_open_log(struct journal_thread *t)
{
	char name[PATH_MAX];
	int n = snprintf(name, sizeof(name), "%s-wal", t->path), rc;

	if (n < 0 || (size_t)n >= sizeof(name))
		return -ENAMETOOLONG;
	t->log = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (t->log < 0)
		return -errno;
	rc = sync_name(t->path); /* the name of the log, too, which is beside it */
	if (rc) {
		close(t->log);
		t->log = -1;
	}
	return rc;
}

/*
 * Copies all commits into the database and empties the log.  What the disk refused is written once
 * more this way, from the kernel's memory.
 */
static int journal_thread_repair(const struct journal_thread *t)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(t->path, &db, SQLITE_OPEN_READWRITE, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(db, REPAIR_BUSY_MS);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_close(db);
	return rc == SQLITE_OK ? 0 : rc == SQLITE_BUSY ? -EBUSY : -EIO;
}

static int journal_thread_sync(struct journal_thread *t, bool repair)
{
	int rc = repair ? journal_thread_repair(t) : 0;

	if (!rc && t->log < 0)
		rc = journal_thread_open_log(t);
	if (!rc && fdatasync(t->log))
		rc = -errno;
	return rc;
}

static void *journal_thread_run(void *arg)
{
	struct journal_thread *t = arg;

	pthread_mutex_lock(&t->mutex);
	for (;;) {
		bool repair;
		int rc;

		while (!t->work && !t->stop)
			pthread_cond_wait(&t->changed, &t->mutex);
		if (!t->work)
			break;
		repair = t->repair;
		pthread_mutex_unlock(&t->mutex);
		rc = journal_thread_sync(t, repair);
		pthread_mutex_lock(&t->mutex);
		t->work = false;
		t->rc = rc;
		loop_post(t->base->loop, &t->post);
	}
	pthread_mutex_unlock(&t->mutex);
	return NULL;
}

/* --- in the loop ------------------------------------------------------------------- */

static void journal_thread_begin(void *arg, bool repair)
{
	struct journal_thread *t = arg;

	pthread_mutex_lock(&t->mutex);
	t->work = true;
	t->repair = repair;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->mutex);
}

static void journal_thread_tell(struct journal_thread *t, int rc)
{
	if (rc) {
		t->base->counters->journal_sync_failures++;
		if (!t->failing)
			log_write(t->base->log, LOG_L_ERROR,
				  "cannot sync the job journal %s: %s; until that works, nobody is "
				  "told what a power cut could undo; see to its disk",
				  t->path, strerror(-rc));
	} else if (t->failing) {
		log_write(t->base->log, LOG_L_INFO, "the job journal %s is synced again", t->path);
	}
	t->failing = rc != 0;
	journal_synced(t->journal, rc);
}

static void journal_thread_ended(void *arg)
{
	struct journal_thread *t = arg;
	int rc;

	pthread_mutex_lock(&t->mutex);
	rc = t->rc;
	pthread_mutex_unlock(&t->mutex);
	journal_thread_tell(t, rc);
}

int journal_thread_new(struct journal_thread **out, const struct base *base,
		       struct journal *journal, const char *path, struct iocom_err *err)
{
	struct journal_thread *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	t->base = base;
	t->journal = journal;
	t->log = -1;
	t->post = (struct loop_post){.run = journal_thread_ended, .arg = t};
	snprintf(t->path, sizeof(t->path), "%s", path);
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->changed, NULL);
	rc = pthread_create(&t->thread, NULL, journal_thread_run, t);
	if (rc) {
		pthread_cond_destroy(&t->changed);
		pthread_mutex_destroy(&t->mutex);
		free(t);
		return iocom_err_set(err, -rc, "cannot start the journal's thread: %s",
				     strerror(rc));
	}
	journal_set_disk(journal, &(struct journal_disk){.begin = journal_thread_begin, .arg = t});
	*out = t;
	return 0;
}

void journal_thread_free(struct journal_thread *t)
{
	bool ended;

	if (!t)
		return;
	pthread_mutex_lock(&t->mutex);
	t->stop = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->mutex);
	pthread_join(t->thread, NULL);
	/* A sync that ended, but whose post the loop did not run any more. */
	ended = t->post.queued;
	loop_unpost(t->base->loop, &t->post);
	if (ended)
		journal_thread_tell(t, t->rc);
	/* The answers to the last sync may have let others wait; and begun one more. */
	if (t->work)
		journal_thread_tell(t, journal_thread_sync(t, t->repair));
	journal_set_disk(t->journal, NULL);
	if (t->log >= 0)
		close(t->log);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->mutex);
	free(t);
}
