/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How long the journal keeps what is over; see journal.h. */
#include <errno.h>

#include "agent/jobs/journal_sql.h"

#define TEXT(number)  #number
#define VALUE(number) TEXT(number)

/* Raises the high-water marks to those of the target's jobs that are about to be removed. */
static int raise_marks(struct journal *j, int64_t limit_ns)
{
	sqlite3_stmt *st = journal_select(j,
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
		rc = journal_change(j, NULL,
				    "INSERT INTO mark VALUES(?1,?2) ON CONFLICT(source) DO UPDATE"
				    " SET high=max(high, excluded.high)",
				    "si", source, I(sequence));
	}
	journal_done(st);
	return rc;
}

/* The submission time below which ended jobs of TABLE's query go. */
static int64_t limit_of(struct journal *j, const char *sql, uint32_t keep, int64_t oldest_ns)
{
	sqlite3_stmt *st = journal_select(j, sql, "i", I(keep));
	int64_t limit = oldest_ns;

	if (!st)
		return limit;
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0) >= limit)
		limit = sqlite3_column_int64(st, 0) + 1;
	journal_done(st);
	return limit;
}

int journal_prune(struct journal *j, uint32_t keep, uint64_t oldest_ns, struct iocom_err *err)
{
	int64_t home, target;
	int rc = journal_change(j, err,
				"UPDATE target SET report_due=0 WHERE report_due=1 AND end_ns<?1",
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
	rc = journal_change(
		j, err,
		"DELETE FROM home WHERE state NOT IN ('starting','running') AND submit_ns<?1 AND"
		" NOT EXISTS(SELECT 1 FROM home AS whole WHERE whole.job=home.gang AND"
		" whole.state IN ('starting','running'))",
		"i", home);
	if (!rc)
		rc = journal_change(
			j, err, "DELETE FROM lease WHERE job NOT IN (SELECT job FROM home)", "");
	if (!rc)
		rc = journal_change(j, err,
				    "DELETE FROM talk WHERE job NOT IN (SELECT job FROM home)", "");
	if (!rc)
		rc = journal_change(j, err,
				    "DELETE FROM move WHERE job NOT IN (SELECT job FROM home)", "");
	if (!rc)
		rc = raise_marks(j, target);
	if (!rc)
		rc = journal_change(
			j, err,
			"DELETE FROM target WHERE end_ns>0 AND report_due=0 AND submit_ns<?1", "i",
			target);
	/* A home makes a new source with every start. */
	if (!rc)
		rc = journal_change(
			j, err,
			"DELETE FROM mark WHERE rowid<=(SELECT max(rowid) FROM mark)-" VALUE(
				JOURNAL_MARKS_MAX),
			"");
	return rc;
}

static uint64_t journal_prune_count(struct journal *j, const char *sql)
{
	sqlite3_stmt *st = journal_select(j, sql, "");
	uint64_t n = 0;

	if (st && sqlite3_step(st) == SQLITE_ROW)
		n = (uint64_t)sqlite3_column_int64(st, 0);
	if (st)
		journal_done(st);
	return n;
}

void journal_rows(struct journal *j, struct journal_rows *rows)
{
	/* journal_select finds a statement by the address of its literal. */
	*rows = (struct journal_rows){
		.home = journal_prune_count(j, "SELECT count(*) FROM home"),
		.target = journal_prune_count(j, "SELECT count(*) FROM target"),
		.marks = journal_prune_count(j, "SELECT count(*) FROM mark"),
		.nonces = journal_prune_count(j, "SELECT count(*) FROM nonce"),
	};
}
