/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Class profiles in SQLite; see profile.h. */
#include "profile.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>

#define ALPHA 0.5

struct profile_store {
	sqlite3 *db;
};

static int failed(struct profile_store *s, const char *what, struct iocom_err *err)
{
	int code = sqlite3_extended_errcode(s->db) & 0xff;

	return iocom_err_set(err, code == SQLITE_FULL ? -ENOSPC : -EIO,
			     "cannot %s the class profiles %s: %s", what,
			     sqlite3_db_filename(s->db, "main"), sqlite3_errmsg(s->db));
}

int profile_open(struct profile_store **out, const char *path, struct iocom_err *err)
{
	static const char schema[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
		"CREATE TABLE IF NOT EXISTS profile(uid INTEGER, class TEXT, runs INTEGER,"
		" cpu_ms REAL, requests REAL, request_kb REAL, memory_mb REAL, wall_ms REAL,"
		" io_per_ms REAL, faults_per_ms REAL, PRIMARY KEY(uid, class)) WITHOUT ROWID;";
	struct profile_store *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (sqlite3_open(path, &s->db) != SQLITE_OK) {
		rc = iocom_err_set(err, -EIO, "cannot open the class profiles %s: %s", path,
				   s->db ? sqlite3_errmsg(s->db) : "out of memory");
	} else {
		sqlite3_busy_timeout(s->db, 1000);
		if (sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
			rc = failed(s, "set up", err);
	}
	if (rc) {
		profile_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void profile_close(struct profile_store *store)
{
	if (!store)
		return;
	sqlite3_close(store->db);
	free(store);
}

int profile_get(struct profile_store *s, uid_t uid, const char *class_name, struct profile *out,
		struct iocom_err *err)
{
	static const char sql[] =
		"SELECT runs, cpu_ms, requests, request_kb, memory_mb, wall_ms, io_per_ms,"
		" faults_per_ms FROM profile WHERE uid=?1 AND class=?2";
	sqlite3_stmt *st;
	int rc;

	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
		return failed(s, "read", err);
	sqlite3_bind_int64(st, 1, uid);
	sqlite3_bind_text(st, 2, class_name, -1, SQLITE_STATIC);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*out = (struct profile){
			.runs = (uint32_t)sqlite3_column_int64(st, 0),
			.cpu_ms = sqlite3_column_double(st, 1),
			.requests = sqlite3_column_double(st, 2),
			.request_kb = sqlite3_column_double(st, 3),
			.memory_mb = sqlite3_column_double(st, 4),
			.wall_ms = sqlite3_column_double(st, 5),
			.io_per_ms = sqlite3_column_double(st, 6),
			.faults_per_ms = sqlite3_column_double(st, 7),
		};
	sqlite3_finalize(st);
	if (rc == SQLITE_DONE)
		return -ENOENT;
	return rc == SQLITE_ROW ? 0 : failed(s, "read", err);
}

static void toward(double *old, double measured)
{
	*old = ALPHA * measured + (1 - ALPHA) * *old;
}

void profile_merge(struct profile *into, const struct profile *run)
{
	bool same = run->requests <= 2 * into->requests && into->requests <= 2 * run->requests;

	if (!into->runs) {
		*into = *run;
		into->runs = 1;
		return;
	}
	if (!same || run->io_per_ms > into->io_per_ms)
		into->io_per_ms = run->io_per_ms;
	toward(&into->cpu_ms, run->cpu_ms);
	toward(&into->requests, run->requests);
	if (run->request_kb > 0)
		toward(&into->request_kb, run->request_kb);
	toward(&into->memory_mb, run->memory_mb);
	toward(&into->wall_ms, run->wall_ms);
	toward(&into->faults_per_ms, run->faults_per_ms);
	into->runs++;
}

int profile_learn(struct profile_store *s, uid_t uid, const char *class_name,
		  const struct profile *run, struct iocom_err *err)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO profile VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)";
	struct profile p = {0};
	sqlite3_stmt *st;
	int rc = profile_get(s, uid, class_name, &p, err);

	if (rc && rc != -ENOENT)
		return rc;
	profile_merge(&p, run);
	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
		return failed(s, "write", err);
	sqlite3_bind_int64(st, 1, uid);
	sqlite3_bind_text(st, 2, class_name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 3, p.runs);
	sqlite3_bind_double(st, 4, p.cpu_ms);
	sqlite3_bind_double(st, 5, p.requests);
	sqlite3_bind_double(st, 6, p.request_kb);
	sqlite3_bind_double(st, 7, p.memory_mb);
	sqlite3_bind_double(st, 8, p.wall_ms);
	sqlite3_bind_double(st, 9, p.io_per_ms);
	sqlite3_bind_double(st, 10, p.faults_per_ms);
	rc = sqlite3_step(st);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : failed(s, "write", err);
}
