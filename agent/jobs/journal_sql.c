/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The journal's database; see journal_sql.h. */
#include "agent/jobs/journal_sql.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int journal_failed(struct journal *j, const char *what, struct iocom_err *err)
{
	return database_failed(&j->file, what, err);
}

int journal_open(struct journal **out, const char *path, struct iocom_err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = database_open(&j->file, path, &journal_layout, err);
	if (rc) {
		free(j);
		return rc;
	}
	journal_sync_open(j);
	*out = j;
	return 0;
}

const char *journal_backup(const struct journal *j)
{
	return j->file.backup;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < JOURNAL_STATEMENTS; i++)
		sqlite3_finalize(j->cache[i].st);
	database_close(&j->file);
	free(j);
}

/* SQL must be a literal: its address is the key of the cache. */
static sqlite3_stmt *journal_sql_statement(struct journal *j, const char *sql)
{
	size_t i = 0;

	while (i < JOURNAL_STATEMENTS && j->cache[i].sql && j->cache[i].sql != sql)
		i++;
	if (i == JOURNAL_STATEMENTS)
		return NULL; /* this file has more statements than the cache holds */
	if (!j->cache[i].sql) {
		if (sqlite3_prepare_v2(j->file.db, sql, -1, &j->cache[i].st, NULL) != SQLITE_OK)
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
	else
		journal_sync_ended(j);
	return rc;
}

bool journal_is_open(const struct journal *j)
{
	return !sqlite3_get_autocommit(j->file.db);
}

int journal_settle(struct journal *j, struct iocom_err *err)
{
	return journal_is_open(j) ? journal_commit(j, err) : 0;
}

/* after some failures SQLite has already done this itself */
void journal_cancel(struct journal *j)
{
	if (!sqlite3_get_autocommit(j->file.db))
		(void)journal_change(j, NULL, "ROLLBACK", "");
	journal_sync_ended(j);
}

void journal_text(sqlite3_stmt *st, int column, char *out, size_t size)
{
	const char *value = (const char *)sqlite3_column_text(st, column);

	out[0] = 0;
	if (value)
		strncat(out, value, size - 1);
}
