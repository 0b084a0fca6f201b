/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How wrong the predictions for a class of jobs, and at a node, were; see profile.h. */
#include <errno.h>
#include <math.h>

#include "balancer/profile/profile_own.h"

#define NODES TEXT(PROFILE_NODES_MAX)

/* Moves the mean of NODE and, as node '', that of the class. */
static int profile_error_move(struct profile_store *s, uid_t uid, const char *class_name,
			      const char *node, double log_error, struct iocom_err *err)
{
	static const char sql[] =
		"INSERT INTO error SELECT ?1, ?2, column1, 1, ?4, 1 + coalesce((SELECT used FROM"
		" error WHERE uid=?1 AND class=?2 AND node=''), 0) FROM (VALUES(''),(?3))"
		" WHERE EXISTS(SELECT 1 FROM profile WHERE uid=?1 AND class=?2)"
		" ON CONFLICT(uid, class, node) DO UPDATE SET jobs=jobs+1, used=excluded.used,"
		" mean_log=mean_log+(?4-mean_log)/min(jobs+1, " TEXT(PROFILE_ERROR_JOBS) ")";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	if (!st)
		return profile_failed(s, "write", err);
	sqlite3_bind_text(st, 3, node, -1, SQLITE_STATIC);
	sqlite3_bind_double(st, 4, log_error);
	rc = profile_finish(s, st, uid, class_name, err);
	return rc || sqlite3_changes(s->file.db) ? rc : -ENOENT;
}

/* Begins a transaction that notes LOG_ERROR. */
static int error_begin(struct profile_store *s, double log_error, struct iocom_err *err)
{
	return isfinite(log_error)
		       ? profile_run(s, "BEGIN IMMEDIATE", err)
		       : iocom_err_set(err, -EINVAL, "the error of a prediction is no number");
}

int profile_error_learn(struct profile_store *s, uid_t uid, const char *class_name,
			const char *node, double log_error, struct iocom_err *err)
{
	static const char trim[] =
		"DELETE FROM error WHERE (SELECT count(*) FROM error WHERE uid=?1 AND class=?2)"
		" > 1 + " NODES " AND uid=?1 AND class=?2 AND node<>'' AND node"
		" NOT IN (SELECT node FROM error WHERE uid=?1 AND class=?2 AND node<>''"
		" ORDER BY used DESC LIMIT " NODES ")";
	int rc;

	rc = error_begin(s, log_error, err);
	if (rc)
		return rc;
	rc = profile_error_move(s, uid, class_name, node, log_error, err);
	if (!rc)
		rc = profile_delete(s, trim, uid, class_name, err);
	return profile_end_transaction(s, rc, err);
}

int profile_errors(struct profile_store *s, uid_t uid, const char *class_name,
		   void (*each)(void *arg, const char *node, const struct profile_error *error),
		   void *arg, struct iocom_err *err)
{
	static const char sql[] = "SELECT node, jobs, mean_log FROM error WHERE uid=?1 AND"
				  " class=?2 ORDER BY node";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	if (!st)
		return profile_failed(s, "read", err);
	profile_bind(st, uid, class_name);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *node = (const char *)sqlite3_column_text(st, 0);
		int64_t jobs = sqlite3_column_int64(st, 1);
		struct profile_error e = {.jobs = (uint32_t)jobs,
					  .mean_log = sqlite3_column_double(st, 2)};

		/* A damaged file: what is no error corrects nothing. */
		if (jobs > 0 && jobs <= UINT32_MAX && isfinite(e.mean_log))
			each(arg, node ? node : "", &e);
	}
	rc = rc == SQLITE_DONE ? 0 : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}

/* --- nodes whose word is not believed ----------------------------------------------------- */

static int doubt_move(struct profile_store *s, const char *node, double by, struct iocom_err *err)
{
	static const char sql[] = "INSERT INTO doubt VALUES(?1, max(0, min(?2, " TEXT(
		PROFILE_DOUBT_MAX) ")))"
				   " ON CONFLICT(node) DO UPDATE SET"
				   " doubt=max(0, min(doubt+?2, " TEXT(PROFILE_DOUBT_MAX) "))";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	if (!st)
		return profile_failed(s, "write", err);
	sqlite3_bind_text(st, 1, node, -1, SQLITE_STATIC);
	sqlite3_bind_double(st, 2, by);
	rc = sqlite3_step(st) == SQLITE_DONE ? 0 : profile_failed(s, "write", err);
	profile_done(st);
	return rc;
}

int profile_doubt_learn(struct profile_store *s, const char *node, double log_error,
			struct iocom_err *err)
{
	static const char fade[] = "UPDATE doubt SET doubt=doubt*0.98";
	static const char trim[] = "DELETE FROM doubt WHERE doubt<0.01 OR node NOT IN"
				   " (SELECT node FROM doubt ORDER BY doubt DESC, node LIMIT " TEXT(
					   PROFILE_DOUBTS_MAX) ")";
	int rc;

	rc = error_begin(s, log_error, err);
	if (rc)
		return rc;
	rc = profile_run(s, fade, err);
	if (!rc)
		rc = doubt_move(s, node, log_error * PROFILE_DOUBT_GAIN, err);
	if (!rc)
		rc = profile_run(s, trim, err);
	return profile_end_transaction(s, rc, err);
}

int profile_doubts(struct profile_store *s, void (*each)(void *arg, const char *node, double doubt),
		   void *arg, struct iocom_err *err)
{
	static const char sql[] = "SELECT node, doubt FROM doubt ORDER BY node";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	if (!st)
		return profile_failed(s, "read", err);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *node = (const char *)sqlite3_column_text(st, 0);
		double doubt = sqlite3_column_double(st, 1);

		/* A damaged file: what is no doubt does not count. */
		if (node && doubt > 0 && doubt <= PROFILE_DOUBT_MAX)
			each(arg, node, doubt);
	}
	rc = rc == SQLITE_DONE ? 0 : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}
