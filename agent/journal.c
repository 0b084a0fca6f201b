/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The job journal; see journal.h. */
#include "journal.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS  48

#define SOURCES_MAX "10000" /* homes' starts whose marks are kept */

struct journal {
	sqlite3 *db;
	int64_t pending_after; /* row of the last report offered: the next ones get their turn */
	struct {
		const char *sql; /* the literal's address is the key */
		sqlite3_stmt *st;
	} cache[STATEMENTS];
};

static const char schema[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
	"CREATE TABLE IF NOT EXISTS home(job TEXT PRIMARY KEY, uid INTEGER, class TEXT,"
	" command TEXT, policy TEXT, node TEXT, state TEXT, submit_ns INTEGER,"
	" start_ns INTEGER DEFAULT 0, end_ns INTEGER DEFAULT 0, kind INTEGER DEFAULT 0,"
	" value INTEGER DEFAULT 0, pid INTEGER DEFAULT 0, place TEXT, text TEXT);"
	"CREATE INDEX IF NOT EXISTS home_submit ON home(submit_ns);"
	"CREATE INDEX IF NOT EXISTS home_state ON home(state);"
	"CREATE TABLE IF NOT EXISTS target(job TEXT PRIMARY KEY, home TEXT, node TEXT, uid INTEGER,"
	" class TEXT, command TEXT, policy TEXT, state TEXT, submit_ns INTEGER,"
	" start_ns INTEGER DEFAULT 0, end_ns INTEGER DEFAULT 0, kind INTEGER DEFAULT 0,"
	" value INTEGER DEFAULT 0, pid INTEGER DEFAULT 0, cgroup_id INTEGER DEFAULT 0,"
	" report_due INTEGER DEFAULT 0, orders BLOB, report BLOB, text TEXT);"
	"CREATE INDEX IF NOT EXISTS target_submit ON target(submit_ns);"
	"CREATE INDEX IF NOT EXISTS target_due ON target(report_due);"
	"CREATE INDEX IF NOT EXISTS target_state ON target(state);"
	"CREATE TABLE IF NOT EXISTS mark(source TEXT PRIMARY KEY, high INTEGER);"
	"CREATE TABLE IF NOT EXISTS nonce(sender TEXT, id INTEGER, until_s INTEGER,"
	" PRIMARY KEY(sender, id)) WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS nonce_until ON nonce(until_s);"
	"CREATE TABLE IF NOT EXISTS lease(job TEXT PRIMARY KEY, first TEXT, attempt INTEGER,"
	" restarts INTEGER, lease_ms INTEGER, next TEXT DEFAULT '') WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS fact(name TEXT PRIMARY KEY, value REAL);";

static int failed(struct journal *j, const char *what, struct iocom_err *err)
{
	int code = sqlite3_extended_errcode(j->db) & 0xff;
	bool full = code == SQLITE_FULL;

	return iocom_err_set(err, full ? -ENOSPC : -EIO, "cannot %s the job journal %s: %s%s", what,
			     sqlite3_db_filename(j->db, "main"), sqlite3_errmsg(j->db),
			     full || code == SQLITE_IOERR
				     ? "; free space on its file system, or see that it is writable"
				     : "");
}

/* A journal of an older iocom has no reasons: it gets their columns. */
static int add_reasons(struct journal *j)
{
	static const char *const tables[][2] = {
		{"SELECT text FROM home", "ALTER TABLE home ADD COLUMN text TEXT"},
		{"SELECT text FROM target", "ALTER TABLE target ADD COLUMN text TEXT"},
	};
	int rc = SQLITE_OK;

	for (size_t i = 0; i < 2 && rc == SQLITE_OK; i++) {
		sqlite3_stmt *st = NULL;

		if (sqlite3_prepare_v2(j->db, tables[i][0], -1, &st, NULL) != SQLITE_OK)
			rc = sqlite3_exec(j->db, tables[i][1], NULL, NULL, NULL);
		sqlite3_finalize(st);
	}
	return rc;
}

int journal_open(struct journal **out, const char *path, struct iocom_err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc = 0;

	if (!j)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (sqlite3_open(path, &j->db) != SQLITE_OK) {
		rc = iocom_err_set(err, -EIO,
				   "cannot open the job journal %s: %s; see that the directory "
				   "exists and is writable (--state-dir)",
				   path, j->db ? sqlite3_errmsg(j->db) : "out of memory");
	} else {
		sqlite3_busy_timeout(j->db, 1000);
		if (sqlite3_exec(j->db, schema, NULL, NULL, NULL) != SQLITE_OK || add_reasons(j))
			rc = failed(j, "set up", err);
	}
	if (rc) {
		journal_close(j);
		return rc;
	}
	*out = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(j->cache[i].st);
	sqlite3_close(j->db);
	free(j);
}

/* SQL must be a literal: its address is the key of the cache. */
static sqlite3_stmt *statement(struct journal *j, const char *sql)
{
	size_t i = 0;

	while (i < STATEMENTS && j->cache[i].sql && j->cache[i].sql != sql)
		i++;
	if (i == STATEMENTS)
		return NULL; /* more statements in this file than the cache holds */
	if (!j->cache[i].sql) {
		if (sqlite3_prepare_v2(j->db, sql, -1, &j->cache[i].st, NULL) != SQLITE_OK)
			return NULL;
		j->cache[i].sql = sql;
	}
	return j->cache[i].st;
}

/* FORMAT: s text (NULL: null), i uint64/int64, r double, b const void *, size_t. */
static sqlite3_stmt *query(struct journal *j, const char *sql, const char *format, va_list ap)
{
	sqlite3_stmt *st = statement(j, sql);
	const void *blob;

	if (!st)
		return NULL;
	for (int n = 1; *format; format++, n++) {
		switch (*format) {
		case 's':
			sqlite3_bind_text(st, n, va_arg(ap, const char *), -1, SQLITE_STATIC);
			break;
		case 'i':
			sqlite3_bind_int64(st, n, va_arg(ap, int64_t));
			break;
		case 'r':
			sqlite3_bind_double(st, n, va_arg(ap, double));
			break;
		case 'b':
			blob = va_arg(ap, const void *);
			sqlite3_bind_blob64(st, n, blob, va_arg(ap, size_t), SQLITE_STATIC);
			break;
		}
	}
	return st;
}

static void done(sqlite3_stmt *st)
{
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
}

static sqlite3_stmt *select_rows(struct journal *j, const char *sql, const char *format, ...)
{
	sqlite3_stmt *st;
	va_list ap;

	va_start(ap, format);
	st = query(j, sql, format, ap);
	va_end(ap);
	return st;
}

/* Runs a statement without rows.  0 or negative errno. */
static int change(struct journal *j, struct iocom_err *err, const char *sql, const char *format,
		  ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, format);
	st = query(j, sql, format, ap);
	va_end(ap);
	if (!st)
		return failed(j, "write", err);
	rc = sqlite3_step(st) == SQLITE_DONE ? 0 : failed(j, "write", err);
	done(st);
	return rc;
}

#define I(x) ((int64_t)(x))

int journal_begin(struct journal *j, struct iocom_err *err)
{
	return change(j, err, "BEGIN IMMEDIATE", "");
}

int journal_commit(struct journal *j, struct iocom_err *err)
{
	int rc = change(j, err, "COMMIT", "");

	if (rc && !sqlite3_get_autocommit(j->db))
		(void)change(j, NULL, "ROLLBACK", "");
	return rc;
}

int journal_submit(struct journal *j, const struct journal_job *job, struct iocom_err *err)
{
	return change(j, err,
		      "INSERT INTO home(job,uid,class,command,policy,node,state,submit_ns)"
		      " VALUES(?,?,?,?,?,?,'starting',?)",
		      "sissssi", job->job, I(job->uid), job->class_name, job->command, job->policy,
		      job->node, I(job->submit_ns));
}

int journal_placed(struct journal *j, const char *job, const char *node, const char *place,
		   struct iocom_err *err)
{
	return change(j, err, "UPDATE home SET node=?2, place=?3 WHERE job=?1", "sss", job, node,
		      place);
}

int journal_home_state(struct journal *j, const char *job, const char *state, uint64_t start_ns,
		       pid_t pid, struct iocom_err *err)
{
	return change(j, err,
		      "UPDATE home SET state=?2, start_ns=?3, pid=?4 WHERE job=?1 AND end_ns=0",
		      "ssii", job, state, I(start_ns), I(pid));
}

int journal_home_stale(struct journal *j, uint64_t before_ns)
{
	int rc = change(j, NULL,
			"UPDATE home SET state='failed', kind=3, text='it never started: its client"
			" or its node went away' WHERE state='starting' AND submit_ns<?1",
			"i", I(before_ns));

	return rc ? rc : sqlite3_changes(j->db);
}

/* Not ended: the end is not known, and a late report has the last word. */
static int lose(struct journal *j, const char *job)
{
	return change(j, NULL,
		      "UPDATE home SET state='lost', kind=3, value=255, text='its node has not been"
		      " heard of since; how it ended is unknown' WHERE job=?1",
		      "s", job);
}

int journal_home_lost(struct journal *j, uint64_t before_ns,
		      bool (*gone)(void *arg, const char *node), void *arg)
{
	sqlite3_stmt *st =
		select_rows(j, "SELECT job, node FROM home WHERE state='running' AND submit_ns<?1",
			    "i", I(before_ns));
	int rc = 0, n = 0;

	if (!st)
		return -EIO;
	while (!rc && sqlite3_step(st) == SQLITE_ROW) {
		if (!gone(arg, (const char *)sqlite3_column_text(st, 1)))
			continue;
		rc = lose(j, (const char *)sqlite3_column_text(st, 0));
		n++;
	}
	done(st);
	return rc ? rc : n;
}

int journal_home_end(struct journal *j, const struct journal_job *job, struct iocom_err *err)
{
	return change(j, err,
		      "UPDATE home SET state=?2, start_ns=?3, end_ns=?4, kind=?5, value=?6, text=?7"
		      " WHERE job=?1",
		      "ssiiiis", job->job, job->state, I(job->start_ns), I(job->end_ns),
		      I(job->exit_kind), I(job->exit_value), job->text);
}

/* Copies a text column, cut to SIZE. */
static void text(sqlite3_stmt *st, int column, char *out, size_t size)
{
	const char *value = (const char *)sqlite3_column_text(st, column);

	out[0] = 0;
	if (value)
		strncat(out, value, size - 1);
}

int journal_home_get(struct journal *j, const char *job, char node[IOCOM_NAME_MAX], uid_t *uid,
		     char class_name[64], bool *ended, struct iocom_err *err)
{
	sqlite3_stmt *st =
		select_rows(j, "SELECT node, uid, class, end_ns FROM home WHERE job=?1", "s", job);
	int rc;

	if (!st)
		return failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		text(st, 0, node, IOCOM_NAME_MAX);
		*uid = (uid_t)sqlite3_column_int64(st, 1);
		text(st, 2, class_name, 64);
		*ended = sqlite3_column_int64(st, 3) != 0;
	}
	done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : failed(j, "read", err);
}

int journal_place(struct journal *j, const char *job, uid_t uid, char **out, uid_t *owner,
		  struct iocom_err *err)
{
	bool last = !strcmp(job, "last");
	sqlite3_stmt *st =
		last ? select_rows(j,
				   "SELECT place, uid FROM home WHERE uid=?1 AND place IS NOT NULL"
				   " ORDER BY submit_ns DESC LIMIT 1",
				   "i", I(uid))
		     : select_rows(j, "SELECT place, uid FROM home WHERE job=?1", "s", job);
	const char *value;
	int rc;

	if (!st)
		return failed(j, "read", err);
	rc = sqlite3_step(st);
	value = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	*out = value ? strdup(value) : NULL;
	*owner = rc == SQLITE_ROW ? (uid_t)sqlite3_column_int64(st, 1) : 0;
	done(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return failed(j, "read", err);
	return *out ? 0 : value ? -ENOMEM : -ENOENT;
}

int journal_split(const char *job, char source[SPEC_JOB_MAX], uint64_t *sequence)
{
	const char *dash = strrchr(job, '-');
	char *end;

	if (!dash || dash == job || strlen(job) >= SPEC_JOB_MAX || dash[1] < '0' || dash[1] > '9')
		return -EINVAL;
	errno = 0;
	*sequence = strtoull(dash + 1, &end, 10);
	if (*end || errno || *sequence > INT64_MAX)
		return -EINVAL;
	memcpy(source, job, (size_t)(dash - job));
	source[dash - job] = 0;
	return 0;
}

/* True when pruning has already removed jobs up to this one's sequence. */
static bool below_mark(struct journal *j, const char *job)
{
	char source[SPEC_JOB_MAX];
	uint64_t sequence;
	sqlite3_stmt *st;
	bool below = false;

	if (journal_split(job, source, &sequence))
		return false;
	st = select_rows(j, "SELECT high FROM mark WHERE source=?1", "s", source);
	if (!st)
		return false;
	if (sqlite3_step(st) == SQLITE_ROW)
		below = (int64_t)sequence <= sqlite3_column_int64(st, 0);
	done(st);
	return below;
}

int journal_accept(struct journal *j, const struct journal_job *job, const void *order,
		   size_t length, struct iocom_err *err)
{
	int rc;

	if (below_mark(j, job->job))
		return iocom_err_set(err, JOURNAL_E_SEEN, "job %s was accepted before", job->job);
	rc = change(j, err,
		    "INSERT INTO target(job,home,node,uid,class,command,policy,state,submit_ns,"
		    "orders) VALUES(?,?,?,?,?,?,?,'starting',?,?) ON CONFLICT DO NOTHING",
		    "sssisssib", job->job, job->home, job->node, I(job->uid), job->class_name,
		    job->command, job->policy, I(job->submit_ns), order, length);
	if (!rc && sqlite3_changes(j->db) == 0)
		return iocom_err_set(err, JOURNAL_E_SEEN, "job %s was accepted before", job->job);
	return rc;
}

int journal_started(struct journal *j, const char *job, uint64_t start_ns, pid_t pid,
		    uint64_t cgroup_id, struct iocom_err *err)
{
	return change(j, err,
		      "UPDATE target SET state='running', start_ns=?2, pid=?3, cgroup_id=?4"
		      " WHERE job=?1",
		      "siii", job, I(start_ns), I(pid), I(cgroup_id));
}

int journal_end(struct journal *j, const struct journal_job *job, const void *report, size_t length,
		struct iocom_err *err)
{
	return change(j, err,
		      "UPDATE target SET state=?2, start_ns=?3, end_ns=?4, kind=?5, value=?6,"
		      " report=?7, report_due=1, text=?8 WHERE job=?1",
		      "ssiiiibs", job->job, job->state, I(job->start_ns), I(job->end_ns),
		      I(job->exit_kind), I(job->exit_value), report, length, job->text);
}

int journal_acked(struct journal *j, const char *job, struct iocom_err *err)
{
	return change(j, err, "UPDATE target SET report_due=0 WHERE job=?1", "s", job);
}

int journal_pending(struct journal *j, size_t max,
		    void (*each)(void *arg, const char *job, const char *home, const void *order,
				 size_t order_length, const void *report, size_t length),
		    void *arg)
{
	sqlite3_stmt *st = select_rows(j,
				       "SELECT job, home, orders, report, rowid FROM target"
				       " WHERE report_due=1 AND rowid>?2 ORDER BY rowid LIMIT ?1",
				       "ii", I(max), I(j->pending_after));
	size_t n = 0;
	int rc;

	if (!st)
		return -EIO;
	j->pending_after = 0;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (++n == max)
			j->pending_after = sqlite3_column_int64(st, 4);
		each(arg, (const char *)sqlite3_column_text(st, 0),
		     (const char *)sqlite3_column_text(st, 1), sqlite3_column_blob(st, 2),
		     (size_t)sqlite3_column_bytes(st, 2), sqlite3_column_blob(st, 3),
		     (size_t)sqlite3_column_bytes(st, 3));
	}
	done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

int journal_unfinished(struct journal *j,
		       void (*each)(void *arg, const char *job, uint64_t start_ns,
				    uint64_t cgroup_id, const void *order, size_t length),
		       void *arg)
{
	sqlite3_stmt *st = select_rows(j,
				       "SELECT job, start_ns, cgroup_id, orders FROM target"
				       " WHERE state IN ('starting','running')",
				       "");
	int rc;

	if (!st)
		return -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		each(arg, (const char *)sqlite3_column_text(st, 0),
		     (uint64_t)sqlite3_column_int64(st, 1), (uint64_t)sqlite3_column_int64(st, 2),
		     sqlite3_column_blob(st, 3), (size_t)sqlite3_column_bytes(st, 3));
	done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

static void listed(sqlite3_stmt *st, struct journal_job *job)
{
	*job = (struct journal_job){
		.job = (const char *)sqlite3_column_text(st, 0),
		.uid = (uid_t)sqlite3_column_int64(st, 1),
		.class_name = (const char *)sqlite3_column_text(st, 2),
		.command = (const char *)sqlite3_column_text(st, 3),
		.policy = (const char *)sqlite3_column_text(st, 4),
		.home = (const char *)sqlite3_column_text(st, 5),
		.node = (const char *)sqlite3_column_text(st, 6),
		.state = (const char *)sqlite3_column_text(st, 7),
		.submit_ns = (uint64_t)sqlite3_column_int64(st, 8),
		.start_ns = (uint64_t)sqlite3_column_int64(st, 9),
		.end_ns = (uint64_t)sqlite3_column_int64(st, 10),
		.exit_kind = sqlite3_column_int(st, 11),
		.exit_value = sqlite3_column_int(st, 12),
		.pid = sqlite3_column_int(st, 13),
		.at_home = sqlite3_column_int(st, 14),
		.text = (const char *)sqlite3_column_text(st, 15),
	};
}

int journal_list(struct journal *j, uid_t uid, bool ended_too, size_t max,
		 void (*each)(void *arg, const struct journal_job *job), void *arg)
{
	static const char sql[] =
		"SELECT job,uid,class,command,policy,'',node,state,submit_ns,start_ns,end_ns,kind,"
		"value,pid,1,text FROM home WHERE (?1<0 OR uid=?1)"
		" AND (?2 OR state IN ('starting','running')) UNION ALL "
		"SELECT "
		"job,uid,class,command,policy,home,node,state,submit_ns,start_ns,end_ns,kind,"
		"value,pid,0,text FROM target WHERE (?1<0 OR uid=?1)"
		" AND (?2 OR state IN ('starting','running'))"
		" AND NOT EXISTS(SELECT 1 FROM home WHERE home.job=target.job)"
		" ORDER BY 9 DESC LIMIT ?3";
	int64_t who = uid == (uid_t)-1 ? -1 : (int64_t)uid;
	sqlite3_stmt *st = select_rows(j, sql, "iii", who, I(ended_too), I(max));
	struct journal_job job;
	int rc;

	if (!st)
		return -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		listed(st, &job);
		each(arg, &job);
	}
	done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

int journal_find(struct journal *j, const char *job, uid_t uid,
		 void (*each)(void *arg, const struct journal_job *job), void *arg)
{
	sqlite3_stmt *st = select_rows(
		j,
		"SELECT job,uid,class,command,policy,'',node,state,submit_ns,start_ns,end_ns,kind,"
		"value,pid,1 FROM home WHERE job=?1 OR (?1='last' AND job=(SELECT job FROM home"
		" WHERE uid=?2 ORDER BY submit_ns DESC LIMIT 1))",
		"si", job, I(uid));
	struct journal_job found;
	int rc = st ? sqlite3_step(st) : SQLITE_ERROR;

	if (st && rc == SQLITE_DONE) {
		done(st);
		st = select_rows(j,
				 "SELECT job,uid,class,command,policy,home,node,state,submit_ns,"
				 "start_ns,end_ns,kind,value,pid,0 FROM target WHERE job=?1",
				 "s", job);
		rc = st ? sqlite3_step(st) : SQLITE_ERROR;
	}
	if (rc == SQLITE_ROW) {
		listed(st, &found);
		each(arg, &found);
	}
	if (st)
		done(st);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -EIO;
}

int journal_nonce(struct journal *j, const char *from, uint64_t id, uint64_t now_s, uint64_t keep_s,
		  struct iocom_err *err)
{
	int rc = change(j, err, "INSERT INTO nonce VALUES(?1,?2,?3) ON CONFLICT DO NOTHING", "sii",
			from, I(id), I(now_s + keep_s));

	if (!rc && sqlite3_changes(j->db) == 0)
		return iocom_err_set(err, JOURNAL_E_SEEN, "message %llu of node %s was here before",
				     (unsigned long long)id, from);
	/* Those that are over go; most of the time there are none. */
	return rc ? rc : change(j, err, "DELETE FROM nonce WHERE until_s<?1", "i", I(now_s));
}

int journal_lease_begin(struct journal *j, const char *job, const char *first, uint32_t attempt,
			uint32_t restarts, uint32_t lease_ms, struct iocom_err *err)
{
	return change(j, err,
		      "INSERT INTO lease(job,first,attempt,restarts,lease_ms) VALUES(?,?,?,?,?)",
		      "ssiii", job, first, I(attempt), I(restarts), I(lease_ms));
}

int journal_lease_fence(struct journal *j, const char *job, const char *next, uint64_t now_ns,
			struct iocom_err *err)
{
	int rc = change(j, err, "UPDATE lease SET next=?2 WHERE job=?1 AND next=''", "ss", job,
			next);

	if (!rc && sqlite3_changes(j->db) == 0)
		return iocom_err_set(err, -ESTALE, "job %s was run again already", job);
	return rc ? rc
		  : change(j, err,
			   "UPDATE home SET state='lost', end_ns=?2, kind=3, value=255,"
			   " text='given up: it is run again as '||?3"
			   " WHERE job=?1 AND end_ns=0",
			   "sis", job, I(now_ns), next);
}

int journal_lease_get(struct journal *j, const char *job, struct journal_lease *out,
		      struct iocom_err *err)
{
	sqlite3_stmt *st = select_rows(
		j,
		"SELECT first, attempt, restarts, lease_ms, next, uid, node, state, kind, value,"
		" end_ns FROM lease JOIN home USING(job) WHERE job=?1",
		"s", job);
	int rc;

	*out = (struct journal_lease){0};
	if (!st)
		return failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		text(st, 0, out->first, sizeof(out->first));
		out->attempt = (uint32_t)sqlite3_column_int64(st, 1);
		out->restarts = (uint32_t)sqlite3_column_int64(st, 2);
		out->lease_ms = (uint32_t)sqlite3_column_int64(st, 3);
		text(st, 4, out->next, sizeof(out->next));
		out->uid = (uid_t)sqlite3_column_int64(st, 5);
		text(st, 6, out->node, sizeof(out->node));
		text(st, 7, out->state, sizeof(out->state));
		out->exit_kind = sqlite3_column_int(st, 8);
		out->exit_value = sqlite3_column_int(st, 9);
		out->ended = sqlite3_column_int64(st, 10) != 0;
	}
	done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : failed(j, "read", err);
}

int journal_leases(struct journal *j, const char *own,
		   void (*each)(void *arg, const char *job, uint32_t lease_ms), void *arg,
		   struct iocom_err *err)
{
	sqlite3_stmt *st = select_rows(j,
				       "SELECT job, lease_ms FROM lease JOIN home USING(job)"
				       " WHERE next='' AND end_ns=0 AND node NOT IN ('',?1)",
				       "s", own);
	int rc;

	if (!st)
		return failed(j, "read", err);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		each(arg, (const char *)sqlite3_column_text(st, 0),
		     (uint32_t)sqlite3_column_int64(st, 1));
	done(st);
	return rc == SQLITE_DONE ? 0 : failed(j, "read", err);
}

double journal_fact(struct journal *j, const char *name)
{
	sqlite3_stmt *st = select_rows(j, "SELECT value FROM fact WHERE name=?1", "s", name);
	double value = 0;

	if (!st)
		return 0;
	if (sqlite3_step(st) == SQLITE_ROW)
		value = sqlite3_column_double(st, 0);
	done(st);
	return value;
}

int journal_set_fact(struct journal *j, const char *name, double value)
{
	return change(j, NULL, "INSERT OR REPLACE INTO fact VALUES(?,?)", "sr", name, value);
}

/* Raises the marks over the target's jobs that are about to go. */
static int raise_marks(struct journal *j, int64_t limit_ns)
{
	sqlite3_stmt *st = select_rows(j,
				       "SELECT job FROM target WHERE end_ns>0 AND report_due=0"
				       " AND submit_ns<?1",
				       "i", limit_ns);
	int rc = 0;

	if (!st)
		return -EIO;
	while (!rc && sqlite3_step(st) == SQLITE_ROW) {
		char source[SPEC_JOB_MAX];
		uint64_t sequence;

		if (journal_split((const char *)sqlite3_column_text(st, 0), source, &sequence))
			continue;
		rc = change(j, NULL,
			    "INSERT INTO mark VALUES(?1,?2) ON CONFLICT(source) DO UPDATE"
			    " SET high=max(high, excluded.high)",
			    "si", source, I(sequence));
	}
	done(st);
	return rc;
}

/* The submission time below which ended jobs of TABLE's query go. */
static int64_t limit_of(struct journal *j, const char *sql, uint32_t keep, int64_t oldest_ns)
{
	sqlite3_stmt *st = select_rows(j, sql, "i", I(keep));
	int64_t limit = oldest_ns;

	if (!st)
		return limit;
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0) >= limit)
		limit = sqlite3_column_int64(st, 0) + 1;
	done(st);
	return limit;
}

int journal_prune(struct journal *j, uint32_t keep, uint64_t oldest_ns, struct iocom_err *err)
{
	int64_t home, target;
	int rc = change(j, err, "UPDATE target SET report_due=0 WHERE report_due=1 AND end_ns<?1",
			"i", I(oldest_ns));

	if (rc)
		return rc;
	home = limit_of(j,
			"SELECT submit_ns FROM home WHERE state NOT IN ('starting','running')"
			" ORDER BY submit_ns DESC LIMIT 1 OFFSET ?1",
			keep, I(oldest_ns));
	target = limit_of(j,
			  "SELECT submit_ns FROM target WHERE end_ns>0 AND report_due=0"
			  " ORDER BY submit_ns DESC LIMIT 1 OFFSET ?1",
			  keep, I(oldest_ns));
	rc = change(j, err,
		    "DELETE FROM home WHERE state NOT IN ('starting','running') AND submit_ns<?1",
		    "i", home);
	if (!rc)
		rc = change(j, err, "DELETE FROM lease WHERE job NOT IN (SELECT job FROM home)",
			    "");
	if (!rc)
		rc = raise_marks(j, target);
	if (!rc)
		rc = change(j, err,
			    "DELETE FROM target WHERE end_ns>0 AND report_due=0 AND submit_ns<?1",
			    "i", target);
	/* A home makes a new source with every start. */
	if (!rc)
		rc = change(
			j, err,
			"DELETE FROM mark WHERE rowid<=(SELECT max(rowid) FROM mark)-" SOURCES_MAX,
			"");
	return rc;
}
