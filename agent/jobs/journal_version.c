/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The journal's tables and their versions; see journal.h.
 *
 *   0  files without a version; the first ones lack some columns, and a decision that is
 *      kept has the load vectors of all nodes
 *   1  every column is there; a decision has the vectors of the examined nodes (placement.h)
 *   2  a job of the home table has what was expected of it, and how long it took
 *   3  and how many times longer that was than alone
 *   4  and what its ranks sent and received
 *   5  a job may be a gang or one of its parts
 *   6  the moves of jobs that were submitted here
 *   7  and why each was asked for, and what was expected of it
 *
 * The schema makes the tables of the newest version.  A change of the layout changes the schema
 * and adds a step; the older steps that used the schema then need a copy of the old one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs/journal_sql.h"
#include "balancer/view/placement.h"

#define TALK_TABLE                                                                                 \
	"CREATE TABLE IF NOT EXISTS talk(job TEXT PRIMARY KEY, report BLOB) WITHOUT ROWID;"

#define MOVE_TABLE                                                                                 \
	"CREATE TABLE IF NOT EXISTS move(job TEXT, number INTEGER, source TEXT, target TEXT,"      \
	" state TEXT, asked_ns INTEGER, decided_ns INTEGER DEFAULT 0,"                             \
	" frozen_ms INTEGER DEFAULT 0, dump_ms INTEGER DEFAULT 0, bytes INTEGER DEFAULT 0,"        \
	" text TEXT DEFAULT '', cause TEXT DEFAULT '', here_ms REAL DEFAULT 0,"                    \
	" there_ms REAL DEFAULT 0, cost_ms REAL DEFAULT 0,"                                        \
	" PRIMARY KEY(job, number)) WITHOUT ROWID;"

static const char journal_schema[] =
	"CREATE TABLE IF NOT EXISTS home(job TEXT PRIMARY KEY, uid INTEGER, class TEXT,"
	" command TEXT, policy TEXT, node TEXT, state TEXT, submit_ns INTEGER,"
	" start_ns INTEGER DEFAULT 0, end_ns INTEGER DEFAULT 0, kind INTEGER DEFAULT 0,"
	" value INTEGER DEFAULT 0, pid INTEGER DEFAULT 0, place TEXT, text TEXT,"
	" worker INTEGER DEFAULT 0, wall_ms REAL DEFAULT 0, expected_ms REAL DEFAULT 0,"
	" expected_home_ms REAL DEFAULT 0, there_factor REAL DEFAULT 0,"
	" home_factor REAL DEFAULT 0, basis INTEGER DEFAULT 0, balanced INTEGER DEFAULT 0,"
	" slowdown REAL DEFAULT 0, tasks INTEGER DEFAULT 0, gang TEXT DEFAULT '');"
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
	" restarts INTEGER, lease_ms INTEGER, next TEXT DEFAULT '', secret BLOB,"
	" number INTEGER DEFAULT 0) WITHOUT ROWID;" TALK_TABLE MOVE_TABLE
	"CREATE TABLE IF NOT EXISTS fact(name TEXT PRIMARY KEY, value REAL);";

struct journal_column {
	const char *probe, *add; /* PROBE fails where the column is missing */
};

/* Adds those of the N COLUMNS that the file lacks. */
static int journal_add_columns(const struct database *d, const struct journal_column *columns,
			       size_t n, struct iocom_err *err)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
		sqlite3_stmt *st = NULL;

		if (sqlite3_prepare_v2(d->db, columns[i].probe, -1, &st, NULL) != SQLITE_OK)
			rc = sqlite3_exec(d->db, columns[i].add, NULL, NULL, NULL);
		sqlite3_finalize(st);
	}
	return rc == SQLITE_OK ? 0 : database_failed(d, "migrate", err);
}

/* Returns the row of the decision TEXT, malloc'ed; NULL: TEXT is no decision, or no memory. */
static char *journal_shrink(const char *text)
{
	json_t *document = json_loads(text, 0, NULL), *row = NULL;
	struct iocom_err ignored;
	struct placement p;
	char *out;

	if (!placement_read(&p, document, "the decision", &ignored))
		row = placement_json(&p, PLACEMENT_ROW);
	out = row ? json_dumps(row, JSON_COMPACT) : NULL;
	json_decref(row);
	placement_fini(&p);
	json_decref(document);
	return out;
}

/*
 * Shrinks the row at which GET stands.  A row whose decision cannot be read stays as it is:
 * `iocom explain` says so.  Returns 0; else SQLite has failed.
 */
static int journal_shrink_row(sqlite3_stmt *get, sqlite3_stmt *set)
{
	const char *text = (const char *)sqlite3_column_text(get, 1);
	char *row = text ? journal_shrink(text) : NULL;
	int rc = 0;

	if (row && strlen(row) < strlen(text)) {
		sqlite3_bind_int64(set, 1, sqlite3_column_int64(get, 0));
		sqlite3_bind_text(set, 2, row, -1, SQLITE_STATIC);
		rc = sqlite3_step(set) == SQLITE_DONE ? sqlite3_reset(set) : -EIO;
	}
	free(row);
	return rc;
}

/* Shrinks each row.  For each one GET starts anew, so that it never reads what SET has written. */
static int journal_shrink_each(sqlite3_stmt *get, sqlite3_stmt *set)
{
	sqlite3_int64 last = INT64_MIN;
	int rc;

	for (;;) {
		sqlite3_bind_int64(get, 1, last);
		rc = sqlite3_step(get);
		if (rc != SQLITE_ROW)
			return rc == SQLITE_DONE ? 0 : -EIO;
		last = sqlite3_column_int64(get, 0);
		if (journal_shrink_row(get, set))
			return -EIO;
		sqlite3_reset(get);
	}
}

static int journal_shrink_rows(const struct database *d, struct iocom_err *err)
{
	static const char next[] = "SELECT rowid, place FROM home WHERE rowid>?1 AND place IS NOT"
				   " NULL ORDER BY rowid LIMIT 1";
	static const char shrink[] = "UPDATE home SET place=?2 WHERE rowid=?1";
	sqlite3_stmt *get = NULL, *set = NULL;
	int rc = 0;

	if (sqlite3_prepare_v2(d->db, next, -1, &get, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(d->db, shrink, -1, &set, NULL) != SQLITE_OK ||
	    journal_shrink_each(get, set))
		rc = database_failed(d, "migrate", err);
	sqlite3_finalize(get);
	sqlite3_finalize(set);
	return rc;
}

static int journal_version_1(const struct database *d, struct iocom_err *err)
{
	static const struct journal_column late[] = {
		{"SELECT text FROM home", "ALTER TABLE home ADD COLUMN text TEXT"},
		{"SELECT text FROM target", "ALTER TABLE target ADD COLUMN text TEXT"},
		{"SELECT worker FROM home", "ALTER TABLE home ADD COLUMN worker INTEGER DEFAULT 0"},
		{"SELECT secret FROM lease", "ALTER TABLE lease ADD COLUMN secret BLOB"},
		{"SELECT number FROM lease",
		 "ALTER TABLE lease ADD COLUMN number INTEGER DEFAULT 0"},
	};
	int rc = sqlite3_exec(d->db, journal_schema, NULL, NULL, NULL) == SQLITE_OK
			 ? 0
			 : database_failed(d, "migrate", err);

	if (!rc)
		rc = journal_add_columns(d, late, sizeof(late) / sizeof(*late), err);
	return rc ? rc : journal_shrink_rows(d, err);
}

#define HOME_COLUMN(name, type)                                                                    \
	{                                                                                          \
		"SELECT " name " FROM home",                                                       \
			"ALTER TABLE home ADD COLUMN " name " " type " DEFAULT 0"                  \
	}

/* Nothing was expected of older jobs.  Step 1 may have made the tables, then with all columns. */
static int journal_version_2(const struct database *d, struct iocom_err *err)
{
	static const struct journal_column late[] = {
		HOME_COLUMN("wall_ms", "REAL"),		 HOME_COLUMN("expected_ms", "REAL"),
		HOME_COLUMN("expected_home_ms", "REAL"), HOME_COLUMN("there_factor", "REAL"),
		HOME_COLUMN("home_factor", "REAL"),	 HOME_COLUMN("basis", "INTEGER"),
		HOME_COLUMN("balanced", "INTEGER"),
	};

	return journal_add_columns(d, late, sizeof(late) / sizeof(*late), err);
}

/* The slowdown of older jobs is not known. */
static int journal_version_3(const struct database *d, struct iocom_err *err)
{
	static const struct journal_column late[] = {HOME_COLUMN("slowdown", "REAL")};

	return journal_add_columns(d, late, sizeof(late) / sizeof(*late), err);
}

static int journal_version_4(const struct database *d, struct iocom_err *err)
{
	return sqlite3_exec(d->db, TALK_TABLE, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : database_failed(d, "migrate", err);
}

/* All older jobs are ordinary ones. */
static int journal_version_5(const struct database *d, struct iocom_err *err)
{
	static const struct journal_column late[] = {
		HOME_COLUMN("tasks", "INTEGER"),
		{"SELECT gang FROM home", "ALTER TABLE home ADD COLUMN gang TEXT DEFAULT ''"},
	};

	return journal_add_columns(d, late, sizeof(late) / sizeof(*late), err);
}

static int journal_version_6(const struct database *d, struct iocom_err *err)
{
	return sqlite3_exec(d->db, MOVE_TABLE, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : database_failed(d, "migrate", err);
}

#define MOVE_COLUMN(name, type)                                                                    \
	{                                                                                          \
		"SELECT " name " FROM move", "ALTER TABLE move ADD COLUMN " name " " type          \
	}

/* Users had asked for all earlier moves. */
static int journal_version_7(const struct database *d, struct iocom_err *err)
{
	static const struct journal_column late[] = {
		MOVE_COLUMN("cause", "TEXT DEFAULT ''"),
		MOVE_COLUMN("here_ms", "REAL DEFAULT 0"),
		MOVE_COLUMN("there_ms", "REAL DEFAULT 0"),
		MOVE_COLUMN("cost_ms", "REAL DEFAULT 0"),
	};

	return journal_add_columns(d, late, sizeof(late) / sizeof(*late), err);
}

static int (*const journal_steps[])(const struct database *d, struct iocom_err *err) = {
	journal_version_1, journal_version_2, journal_version_3, journal_version_4,
	journal_version_5, journal_version_6, journal_version_7,
};

const struct database_layout journal_layout = {
	.what = "the job journal",
	.advice = "; see that the directory exists and is writable (--state-dir)",
	.schema = journal_schema,
	.steps = journal_steps,
	.version = sizeof(journal_steps) / sizeof(*journal_steps),
};
