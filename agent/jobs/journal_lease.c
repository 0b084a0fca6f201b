/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The journal of leases: restartable jobs that were submitted here; see journal.h. */
#include <errno.h>
#include <string.h>

#include "agent/jobs/journal_sql.h"

#define ATTEMPTS_AT_MOST 1000

int journal_lease_begin(struct journal *j, const char *job, const char *first, uint32_t attempt,
			uint32_t restarts, uint32_t lease_ms, const uint8_t secret[RENEWAL_SECRET],
			struct iocom_err *err)
{
	return journal_change(j, err,
			      "INSERT INTO lease(job,first,attempt,restarts,lease_ms,secret)"
			      " VALUES(?,?,?,?,?,?)",
			      "ssiiib", job, first, I(attempt), I(restarts), I(lease_ms), secret,
			      (size_t)RENEWAL_SECRET);
}

int journal_lease_hand_on(struct journal *j, const char *job, const uint8_t secret[RENEWAL_SECRET],
			  struct iocom_err *err)
{
	return journal_change(j, err, "UPDATE lease SET secret=?2, number=0 WHERE job=?1", "sb",
			      job, secret, (size_t)RENEWAL_SECRET);
}

int journal_lease_fence(struct journal *j, const char *job, const char *next, uint64_t now_ns,
			struct iocom_err *err)
{
	int rc = journal_change(j, err, "UPDATE lease SET next=?2 WHERE job=?1 AND next=''", "ss",
				job, next);

	if (!rc && sqlite3_changes(j->file.db) == 0)
		return iocom_err_set(err, -ESTALE, "job %s was run again already", job);
	return rc ? rc
		  : journal_change(j, err,
				   "UPDATE home SET state='lost', end_ns=?2, kind=3, value=255,"
				   " text='given up: it is run again as '||?3"
				   " WHERE job=?1 AND end_ns=0",
				   "sis", job, I(now_ns), next);
}

int journal_lease_get(struct journal *j, const char *job, struct journal_lease *out,
		      struct iocom_err *err)
{
	sqlite3_stmt *st = journal_select(
		j,
		"SELECT first, attempt, restarts, lease_ms, next, uid, node, state, kind, value,"
		" end_ns FROM lease JOIN home USING(job) WHERE job=?1",
		"s", job);
	int rc;

	*out = (struct journal_lease){0};
	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		journal_text(st, 0, out->first, sizeof(out->first));
		out->attempt = (uint32_t)sqlite3_column_int64(st, 1);
		out->restarts = (uint32_t)sqlite3_column_int64(st, 2);
		out->lease_ms = (uint32_t)sqlite3_column_int64(st, 3);
		journal_text(st, 4, out->next, sizeof(out->next));
		out->uid = (uid_t)sqlite3_column_int64(st, 5);
		journal_text(st, 6, out->node, sizeof(out->node));
		journal_text(st, 7, out->state, sizeof(out->state));
		out->exit_kind = sqlite3_column_int(st, 8);
		out->exit_value = sqlite3_column_int(st, 9);
		out->end_ns = (uint64_t)sqlite3_column_int64(st, 10);
		out->ended = out->end_ns != 0;
	}
	journal_done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : journal_failed(j, "read", err);
}

/* The text is valid until the statement goes on; NULL: there is none. */
static const uint8_t *secret_of(sqlite3_stmt *st, int column)
{
	return sqlite3_column_bytes(st, column) == RENEWAL_SECRET ? sqlite3_column_blob(st, column)
								  : NULL;
}

int journal_lease_secret(struct journal *j, const char *job, uint8_t secret[RENEWAL_SECRET],
			 struct iocom_err *err)
{
	sqlite3_stmt *st = journal_select(j, "SELECT secret FROM lease WHERE job=?1", "s", job);
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW && !secret_of(st, 0))
		rc = SQLITE_DONE;
	if (rc == SQLITE_ROW)
		memcpy(secret, secret_of(st, 0), RENEWAL_SECRET);
	journal_done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : journal_failed(j, "read", err);
}

int journal_lease_last(struct journal *j, char job[SPEC_JOB_MAX], struct iocom_err *err)
{
	char next[SPEC_JOB_MAX] = "";
	int n = 0, rc;

	for (;; n++) {
		sqlite3_stmt *st =
			journal_select(j, "SELECT next FROM lease WHERE job=?1", "s", job);

		if (!st)
			return journal_failed(j, "read", err);
		rc = sqlite3_step(st);
		next[0] = 0;
		if (rc == SQLITE_ROW)
			journal_text(st, 0, next, sizeof(next));
		journal_done(st);
		if (rc != SQLITE_ROW && rc != SQLITE_DONE)
			return journal_failed(j, "read", err);
		/*
		 * Each attempt was made after the one before, so this ends, unless somebody changed
		 * the file by hand.
		 */
		if (!next[0] || n > ATTEMPTS_AT_MOST)
			return n;
		memcpy(job, next, sizeof(next));
	}
}

int journal_lease_number(struct journal *j, const char *job, uint64_t number, struct iocom_err *err)
{
	int rc = journal_change(j, err, "UPDATE lease SET number=?2 WHERE job=?1 AND number<?2",
				"si", job, I(number));

	return rc ? rc : sqlite3_changes(j->file.db) ? 0 : -EALREADY;
}

int journal_leases(struct journal *j, const char *own,
		   void (*each)(void *arg, const char *job, uid_t uid, uint32_t lease_ms,
				const uint8_t *secret),
		   void *arg, struct iocom_err *err)
{
	sqlite3_stmt *st =
		journal_select(j,
			       "SELECT job, lease_ms, secret, uid FROM lease JOIN home USING(job)"
			       " WHERE next='' AND end_ns=0 AND node NOT IN ('',?1)",
			       "s", own);
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		each(arg, (const char *)sqlite3_column_text(st, 0),
		     (uid_t)sqlite3_column_int64(st, 3), (uint32_t)sqlite3_column_int64(st, 1),
		     secret_of(st, 2));
	journal_done(st);
	return rc == SQLITE_DONE ? 0 : journal_failed(j, "read", err);
}
