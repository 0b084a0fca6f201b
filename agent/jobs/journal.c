/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The job journal; see journal.h. */
#include "agent/jobs/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs/journal_sql.h"
#include "user/clock.h"
#include "user/gang_name.h"

int journal_submit(struct journal *j, const struct journal_job *job, struct iocom_err *err)
{
	return journal_change(j, err,
			      "INSERT INTO home(job,uid,class,command,policy,node,state,submit_ns,"
			      "worker,tasks,gang) VALUES(?,?,?,?,?,?,'starting',?,?,?,?)",
			      "sissssiiis", job->job, I(job->uid), job->class_name, job->command,
			      job->policy, job->node, I(job->submit_ns), I(job->worker),
			      I(job->tasks), job->gang ? job->gang : "");
}

int journal_placed(struct journal *j, const char *job, const char *node, const char *place,
		   const struct journal_expectation *expected, struct iocom_err *err)
{
	static const struct journal_expectation nothing;
	const struct journal_expectation *e = expected ? expected : &nothing;

	return journal_change(j, err,
			      "UPDATE home SET node=?2, place=?3, expected_ms=?4,"
			      " expected_home_ms=?5, there_factor=?6, home_factor=?7, basis=?8,"
			      " balanced=?9 WHERE job=?1",
			      "sssrrrrii", job, node, place, e->there_ms, e->home_ms,
			      e->there_factor, e->home_factor, I(e->basis), I(e->balanced));
}

int journal_home_state(struct journal *j, const char *job, const char *state, uint64_t start_ns,
		       pid_t pid, struct iocom_err *err)
{
	return journal_change(
		j, err,
		"UPDATE home SET state=?2, pid=?4, start_ns=CASE start_ns WHEN 0 THEN ?3 ELSE"
		" start_ns END WHERE job=?1 AND end_ns=0",
		"ssii", job, state, I(start_ns), I(pid));
}

int journal_home_unbegun(struct journal *j, const char *node, uint64_t end_ns,
			 struct iocom_err *err)
{
	int rc = journal_change(
		j, err,
		"UPDATE home SET state='failed', kind=3, value=125, end_ns=?2,"
		" text='it never began: its agent ended first' WHERE state='starting'"
		" AND node IN ('', ?1) AND NOT (tasks>0 AND gang='') AND NOT EXISTS(SELECT 1 FROM "
		"target WHERE"
		" target.job=home.job)",
		"si", node, I(end_ns));

	return rc ? rc : sqlite3_changes(j->file.db);
}

/* The data of a job that takes it along may be on its way for long: it has a day. */
int journal_home_stale(struct journal *j, uint64_t before_ns)
{
	uint64_t day_ns = 86400 * CLOCK_NS_PER_S;
	int rc = journal_change(
		j, NULL,
		"UPDATE home SET state='failed', kind=3, text='it never started: its client"
		" or its node went away' WHERE state='starting' AND submit_ns<?1 AND"
		" NOT (tasks>0 AND gang='') AND"
		" (submit_ns<?2 OR instr(coalesce(place,''), '\"data\":true')=0)",
		"ii", I(before_ns), I(before_ns > day_ns ? before_ns - day_ns : 0));

	return rc ? rc : sqlite3_changes(j->file.db);
}

/* Not ended: the job's end is not known, and a late report decides it. */
static int lose(struct journal *j, const char *job)
{
	return journal_change(
		j, NULL,
		"UPDATE home SET state='lost', kind=3, value=255, text='its node has not been"
		" heard of since; how it ended is unknown' WHERE job=?1",
		"s", job);
}

int journal_home_lost(struct journal *j, uint64_t before_ns,
		      bool (*gone)(void *arg, const char *node), void *arg)
{
	sqlite3_stmt *st = journal_select(
		j, "SELECT job, node FROM home WHERE state='running' AND node<>'' AND submit_ns<?1",
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
	journal_done(st);
	return rc ? rc : n;
}

int journal_home_end(struct journal *j, const struct journal_job *job, struct iocom_err *err)
{
	return journal_change(
		j, err,
		/* Where a job has moved to it began later than at its first node. */
		"UPDATE home SET state=?2, start_ns=CASE WHEN start_ns>0 AND start_ns<?3 AND EXISTS"
		"(SELECT 1 FROM move WHERE move.job=?1 AND move.state='resumed') THEN start_ns"
		" ELSE ?3 END, end_ns=?4, kind=?5, value=?6, text=?7, wall_ms=?8, slowdown=?9"
		" WHERE job=?1",
		"ssiiiisrr", job->job, job->state, I(job->start_ns), I(job->end_ns),
		I(job->exit_kind), I(job->exit_value), job->text, job->wall_ms, job->slowdown);
}

/* Copies a text column, cut to SIZE. */
int journal_home_get(struct journal *j, const char *job, char node[IOCOM_NAME_MAX], uid_t *uid,
		     char class_name[64], bool *ended, struct iocom_err *err)
{
	sqlite3_stmt *st = journal_select(
		j, "SELECT node, uid, class, end_ns FROM home WHERE job=?1", "s", job);
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		journal_text(st, 0, node, IOCOM_NAME_MAX);
		*uid = (uid_t)sqlite3_column_int64(st, 1);
		journal_text(st, 2, class_name, 64);
		*ended = sqlite3_column_int64(st, 3) != 0;
	}
	journal_done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : journal_failed(j, "read", err);
}

int journal_place(struct journal *j, const char *job, uid_t uid, char **out, uid_t *owner,
		  struct iocom_err *err)
{
	bool last = !strcmp(job, "last");
	sqlite3_stmt *st =
		last ? journal_select(
			       j,
			       "SELECT place, uid FROM home WHERE uid=?1 AND place IS NOT NULL"
			       " AND NOT worker ORDER BY submit_ns DESC LIMIT 1",
			       "i", I(uid))
		     : journal_select(j, "SELECT place, uid FROM home WHERE job=?1", "s", job);
	const char *value;
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	value = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	*out = value ? strdup(value) : NULL;
	*owner = rc == SQLITE_ROW ? (uid_t)sqlite3_column_int64(st, 1) : 0;
	journal_done(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return journal_failed(j, "read", err);
	return *out ? 0 : value ? -ENOMEM : -ENOENT;
}

int journal_split(const char *job, char source[SPEC_JOB_MAX], uint64_t *sequence)
{
	char gang[SPEC_JOB_MAX];
	const char *dash;
	char *end;

	if (gang_part_of(job, gang, NULL))
		job = gang; /* whose parts have its number */
	dash = strrchr(job, '-');
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
	st = journal_select(j, "SELECT high FROM mark WHERE source=?1", "s", source);
	if (!st)
		return false;
	if (sqlite3_step(st) == SQLITE_ROW)
		below = (int64_t)sequence <= sqlite3_column_int64(st, 0);
	journal_done(st);
	return below;
}

int journal_accept(struct journal *j, const struct journal_job *job, const void *order,
		   size_t length, struct iocom_err *err)
{
	int rc;

	if (below_mark(j, job->job))
		return iocom_err_set(err, JOURNAL_E_SEEN, "job %s was accepted before", job->job);
	rc = journal_change(
		j, err,
		"INSERT INTO target(job,home,node,uid,class,command,policy,state,submit_ns,"
		"orders) VALUES(?,?,?,?,?,?,?,'starting',?,?) ON CONFLICT DO NOTHING",
		"sssisssib", job->job, job->home, job->node, I(job->uid), job->class_name,
		job->command, job->policy, I(job->submit_ns), order, length);
	if (!rc && sqlite3_changes(j->file.db) == 0)
		return iocom_err_set(err, JOURNAL_E_SEEN, "job %s was accepted before", job->job);
	return rc;
}

int journal_started(struct journal *j, const char *job, uint64_t start_ns, pid_t pid,
		    uint64_t cgroup_id, struct iocom_err *err)
{
	return journal_change(j, err,
			      "UPDATE target SET state='running', start_ns=?2, pid=?3, cgroup_id=?4"
			      " WHERE job=?1",
			      "siii", job, I(start_ns), I(pid), I(cgroup_id));
}

int journal_end(struct journal *j, const struct journal_job *job, const void *report, size_t length,
		struct iocom_err *err)
{
	return journal_change(
		j, err,
		"UPDATE target SET state=?2, start_ns=?3, end_ns=?4, kind=?5, value=?6,"
		" report=?7, report_due=1, text=?8 WHERE job=?1",
		"ssiiiibs", job->job, job->state, I(job->start_ns), I(job->end_ns),
		I(job->exit_kind), I(job->exit_value), report, length, job->text);
}

int journal_acked(struct journal *j, const char *job, struct iocom_err *err)
{
	return journal_change(j, err, "UPDATE target SET report_due=0 WHERE job=?1", "s", job);
}

int journal_pending(struct journal *j, size_t max,
		    void (*each)(void *arg, const char *job, const char *home, const void *order,
				 size_t order_length, const void *report, size_t length),
		    void *arg)
{
	sqlite3_stmt *st =
		journal_select(j,
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
	journal_done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

int journal_unfinished(struct journal *j,
		       void (*each)(void *arg, const char *job, uint64_t start_ns,
				    uint64_t cgroup_id, const void *order, size_t length),
		       void *arg)
{
	sqlite3_stmt *st = journal_select(j,
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
	journal_done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

void journal_listed(sqlite3_stmt *st, struct journal_job *job)
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
		.wall_ms = sqlite3_column_double(st, 16),
	};
	journal_take_expectation(st, 17, &job->expectation);
	job->slowdown = sqlite3_column_double(st, 23);
	job->tasks = (uint32_t)sqlite3_column_int64(st, 24);
	job->gang = (const char *)sqlite3_column_text(st, 25);
}

int journal_list_rows(sqlite3_stmt *st, void (*each)(void *arg, const struct journal_job *job),
		      void *arg)
{
	struct journal_job job;
	int rc;

	if (!st)
		return -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		journal_listed(st, &job);
		each(arg, &job);
	}
	journal_done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

static int64_t user_or_all(uid_t uid)
{
	return uid == (uid_t)-1 ? -1 : (int64_t)uid;
}

int journal_named(struct journal *j, uid_t uid, const char *pattern, size_t max,
		  void (*each)(void *arg, const struct journal_job *job), void *arg)
{
	static const char sql[] =
		"SELECT " JOURNAL_AT_HOME " FROM home WHERE (?1<0 OR uid=?1) AND job GLOB ?2"
		" UNION ALL SELECT " JOURNAL_AT_TARGET " FROM target WHERE (?1<0 OR uid=?1)"
		" AND job GLOB ?2 AND NOT EXISTS(SELECT 1 FROM home WHERE home.job=target.job)"
		" ORDER BY 9 DESC LIMIT ?3";

	return journal_list_rows(journal_select(j, sql, "isi", user_or_all(uid), pattern, I(max)),
				 each, arg);
}

int journal_list(struct journal *j, uid_t uid, bool ended_too, size_t max,
		 void (*each)(void *arg, const struct journal_job *job), void *arg)
{
	static const char sql[] =
		"SELECT " JOURNAL_AT_HOME " FROM home WHERE (?1<0 OR uid=?1)"
		" AND gang='' AND (?2 OR state IN ('starting','running')) UNION ALL "
		"SELECT " JOURNAL_AT_TARGET " FROM target WHERE (?1<0 OR uid=?1)"
		" AND (?2 OR state IN ('starting','running'))"
		" AND NOT EXISTS(SELECT 1 FROM home WHERE home.job=target.job)"
		" ORDER BY 9 DESC LIMIT ?3";

	return journal_list_rows(
		journal_select(j, sql, "iii", user_or_all(uid), I(ended_too), I(max)), each, arg);
}

int journal_find(struct journal *j, const char *job, uid_t uid,
		 void (*each)(void *arg, const struct journal_job *job), void *arg)
{
	sqlite3_stmt *st =
		journal_select(j,
			       "SELECT " JOURNAL_AT_HOME
			       " FROM home WHERE job=?1 OR (?1='last' AND job=(SELECT job FROM "
			       "home"
			       " WHERE uid=?2 AND NOT worker"
			       " ORDER BY submit_ns DESC, gang<>'' LIMIT 1))",
			       "si", job, I(uid));
	struct journal_job found;
	int rc = st ? sqlite3_step(st) : SQLITE_ERROR;

	if (st && rc == SQLITE_DONE) {
		journal_done(st);
		st = journal_select(j, "SELECT " JOURNAL_AT_TARGET " FROM target WHERE job=?1", "s",
				    job);
		rc = st ? sqlite3_step(st) : SQLITE_ERROR;
	}
	if (rc == SQLITE_ROW) {
		journal_listed(st, &found);
		each(arg, &found);
	}
	if (st)
		journal_done(st);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -EIO;
}

static void journal_take_name(void *arg, const struct journal_job *job)
{
	snprintf(arg, SPEC_JOB_MAX, "%s", job->job);
}

int journal_last(struct journal *j, uid_t uid, char job[SPEC_JOB_MAX])
{
	return strcmp(job, "last") ? 0 : journal_find(j, job, uid, journal_take_name, job);
}

int journal_nonce(struct journal *j, const char *from, uint64_t id, uint64_t now_s, uint64_t keep_s,
		  struct iocom_err *err)
{
	int rc = journal_change(j, err, "INSERT INTO nonce VALUES(?1,?2,?3) ON CONFLICT DO NOTHING",
				"sii", from, I(id), I(now_s + keep_s));

	if (!rc && sqlite3_changes(j->file.db) == 0)
		return iocom_err_set(err, JOURNAL_E_SEEN, "message %llu of node %s was here before",
				     (unsigned long long)id, from);
	/* Removes numbers that have expired; most of the time there are none. */
	return rc ? rc
		  : journal_change(j, err, "DELETE FROM nonce WHERE until_s<?1", "i", I(now_s));
}

double journal_fact(struct journal *j, const char *name)
{
	sqlite3_stmt *st = journal_select(j, "SELECT value FROM fact WHERE name=?1", "s", name);
	double value = 0;

	if (!st)
		return 0;
	if (sqlite3_step(st) == SQLITE_ROW)
		value = sqlite3_column_double(st, 0);
	journal_done(st);
	return value;
}

int journal_set_fact(struct journal *j, const char *name, double value)
{
	return journal_change(j, NULL, "INSERT OR REPLACE INTO fact VALUES(?,?)", "sr", name,
			      value);
}
