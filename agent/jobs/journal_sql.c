/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The journal's database; see journal_sql.h. */
#include "agent/jobs/journal_sql.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
	"CREATE TABLE IF NOT EXISTS home(job TEXT PRIMARY KEY, uid INTEGER, class TEXT,"
	" command TEXT, policy TEXT, node TEXT, state TEXT, submit_ns INTEGER,"
	" start_ns INTEGER DEFAULT 0, end_ns INTEGER DEFAULT 0, kind INTEGER DEFAULT 0,"
	" value INTEGER DEFAULT 0, pid INTEGER DEFAULT 0, place TEXT, text TEXT,"
	" worker INTEGER DEFAULT 0);"
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
	" number INTEGER DEFAULT 0) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS fact(name TEXT PRIMARY KEY, value REAL);";

int journal_failed(struct journal *j, const char *what, struct iocom_err *err)
{
	int code = sqlite3_extended_errcode(j->db) & 0xff;
	bool full = code == SQLITE_FULL;

	return iocom_err_set(err, full ? -ENOSPC : -EIO, "cannot %s the job journal %s: %s%s", what,
			     sqlite3_db_filename(j->db, "main"), sqlite3_errmsg(j->db),
			     full || code == SQLITE_IOERR
				     ? "; free space on its file system, or see that it is writable"
				     : "");
}

/* A journal of an older iocom gets the columns that it has not. */
static int add_columns(struct journal *j)
{
	static const char *const tables[][2] = {
		{"SELECT text FROM home", "ALTER TABLE home ADD COLUMN text TEXT"},
		{"SELECT text FROM target", "ALTER TABLE target ADD COLUMN text TEXT"},
		{"SELECT worker FROM home", "ALTER TABLE home ADD COLUMN worker INTEGER DEFAULT 0"},
		{"SELECT secret FROM lease", "ALTER TABLE lease ADD COLUMN secret BLOB"},
		{"SELECT number FROM lease",
		 "ALTER TABLE lease ADD COLUMN number INTEGER DEFAULT 0"},
	};
	int rc = SQLITE_OK;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && rc == SQLITE_OK; i++) {
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
		if (sqlite3_exec(j->db, schema, NULL, NULL, NULL) != SQLITE_OK || add_columns(j))
			rc = journal_failed(j, "set up", err);
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
	for (size_t i = 0; i < JOURNAL_STATEMENTS; i++)
		sqlite3_finalize(j->cache[i].st);
	sqlite3_close(j->db);
	free(j);
}

/* SQL must be a literal: its address is the key of the cache. */
static sqlite3_stmt *journal_sql_statement(struct journal *j, const char *sql)
{
	size_t i = 0;

	while (i < JOURNAL_STATEMENTS && j->cache[i].sql && j->cache[i].sql != sql)
		i++;
	if (i == JOURNAL_STATEMENTS)
		return NULL; /* more statements in this file than the cache holds */
	if (!j->cache[i].sql) {
		if (sqlite3_prepare_v2(j->db, sql, -1, &j->cache[i].st, NULL) != SQLITE_OK)
			return NULL;
		j->cache[i].sql = sql;
	}
	return j->cache[i].st;
}

static sqlite3_stmt *query(struct journal *j, const char *sql, const char *format, va_list ap)
{
	sqlite3_stmt *st = journal_sql_statement(j, sql);
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

void journal_done(sqlite3_stmt *st)
{
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
}

sqlite3_stmt *journal_select(struct journal *j, const char *sql, const char *format, ...)
{
	sqlite3_stmt *st;
	va_list ap;

	va_start(ap, format);
	st = query(j, sql, format, ap);
	va_end(ap);
	return st;
}

int journal_change(struct journal *j, struct iocom_err *err, const char *sql, const char *format,
		   ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, format);
	st = query(j, sql, format, ap);
	va_end(ap);
	if (!st)
		return journal_failed(j, "write", err);
	rc = sqlite3_step(st) == SQLITE_DONE ? 0 : journal_failed(j, "write", err);
	journal_done(st);
	return rc;
}

int journal_begin(struct journal *j, struct iocom_err *err)
{
	return journal_change(j, err, "BEGIN IMMEDIATE", "");
}

int journal_commit(struct journal *j, struct iocom_err *err)
{
	int rc = journal_change(j, err, "COMMIT", "");

	if (rc)
		journal_cancel(j);
	return rc;
}

/* SQLite has done so itself after some failures. */
void journal_cancel(struct journal *j)
{
	if (!sqlite3_get_autocommit(j->db))
		(void)journal_change(j, NULL, "ROLLBACK", "");
}

void journal_text(sqlite3_stmt *st, int column, char *out, size_t size)
{
	const char *value = (const char *)sqlite3_column_text(st, column);

	out[0] = 0;
	if (value)
		strncat(out, value, size - 1);
}
