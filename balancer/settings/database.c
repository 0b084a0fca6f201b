/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Databases with a version; see database.h. */
#include "balancer/settings/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/sync_name.h"

#define BUSY_MS 1000

/* What a person can do, and what a caller can. */
struct database_trouble {
	int sqlite, rc;
	const char *advice;
};

int database_failed(const struct database *d, const char *verb, struct iocom_err *err)
{
	static const char disk[] = "; free space on its file system, or see that it is writable";
	static const struct database_trouble troubles[] = {
		{SQLITE_FULL, -ENOSPC, disk},
		{SQLITE_IOERR, -EIO, disk},
		{SQLITE_BUSY, -EBUSY, "; end the other program that uses it"},
		{SQLITE_CORRUPT, -EUCLEAN, ""},
		{SQLITE_NOTADB, -EUCLEAN, ""},
	};
	int code = sqlite3_extended_errcode(d->db) & 0xff;
	struct database_trouble t = {.rc = -EIO, .advice = ""};

	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++)
		if (troubles[i].sqlite == code)
			t = troubles[i];
	return iocom_err_set(err, t.rc, "cannot %s %s %s: %s%s", verb, d->layout->what,
			     sqlite3_db_filename(d->db, "main"), sqlite3_errmsg(d->db), t.advice);
}

/* Runs SQL without results.  Returns 0 or negative errno with the reason in ERR. */
static int database_run(const struct database *d, const char *sql, const char *verb,
			struct iocom_err *err)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : database_failed(d, verb, err);
}

/* Reads the one number that SQL gives. */
static int database_number(const struct database *d, const char *sql, int *out,
			   struct iocom_err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(d->db, sql, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : database_failed(d, "read", err);
}

static int database_version(const struct database *d, int *version, bool *empty,
			    struct iocom_err *err)
{
	int tables = 0;
	int rc = database_number(d, "PRAGMA user_version", version, err);

	if (!rc)
		rc = database_number(d, "SELECT count(*) FROM sqlite_master", &tables, err);
	*empty = !rc && tables == 0;
	return rc;
}

static int database_newer(const struct database *d, const char *path, int version,
			  struct iocom_err *err)
{
	char backup[PATH_MAX], advice[PATH_MAX + 64] = "move it away to begin with an empty one";
	int n = snprintf(backup, sizeof(backup), "%s.v%d-backup", path, d->layout->version);

	if (n > 0 && (size_t)n < sizeof(backup) && !access(backup, F_OK))
		snprintf(advice, sizeof(advice), "put %s in its place", backup);
	return iocom_err_set(err, -ENOTSUP,
			     "%s %s has layout version %d, and this iocom knows versions up to %d: "
			     "a newer iocom has written it; install that one again, or %s",
			     d->layout->what, path, version, d->layout->version, advice);
}

/* --- the backup ---------------------------------------------------- */

/* Copies all pages to PATH, an empty file. */
static int database_copy(const struct database *d, const char *path, struct iocom_err *err)
{
	struct database copy = {.layout = d->layout};
	sqlite3_backup *pages;
	int rc = 0;

	if (sqlite3_open_v2(path, &copy.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		rc = iocom_err_set(err, -EIO, "cannot write a copy of %s to %s: %s",
				   d->layout->what, path,
				   copy.db ? sqlite3_errmsg(copy.db) : "out of memory");
	if (!rc) {
		pages = sqlite3_backup_init(copy.db, "main", d->db, "main");
		if (pages)
			sqlite3_backup_step(pages, -1);
		/* The function returns the error of the step, too. */
		if (!pages || sqlite3_backup_finish(pages) != SQLITE_OK)
			rc = database_failed(&copy, "write a copy of", err);
	}
	sqlite3_close(copy.db);
	return rc;
}

/* Makes the backup under another name first: only a whole one gets its own name. */
static int database_back_up(struct database *d, const char *path, int version,
			    struct iocom_err *err)
{
	char part[PATH_MAX];
	int n = snprintf(d->backup, sizeof(d->backup), "%s.v%d-backup", path, version), fd, rc;

	if (n < 0 || (size_t)n + sizeof(".part") > sizeof(part))
		return iocom_err_set(err, -ENAMETOOLONG, "the name of %s is too long: %s",
				     d->layout->what, path);
	snprintf(part, sizeof(part), "%.*s.part", n, d->backup);
	unlink(part);
	fd = open(part, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return iocom_err_set(err, -errno, "cannot write a copy of %s to %s: %s",
				     d->layout->what, part, strerror(errno));
	close(fd);
	rc = database_copy(d, part, err);
	if (!rc) {
		rc = rename(part, d->backup) ? -errno : sync_name(d->backup);
		if (rc)
			iocom_err_set(err, rc, "cannot write a copy of %s to %s: %s",
				      d->layout->what, d->backup, strerror(-rc));
	}
	if (rc)
		unlink(part);
	return rc;
}

/* --- from one version to the next ------------------------------------------------------ */

/* Runs inside the transaction.  If another process was faster, nothing is left to do. */
static int database_steps(const struct database *d, struct iocom_err *err)
{
	char stamp[64];
	bool empty;
	int from, rc = database_version(d, &from, &empty, err);

	if (rc || from >= d->layout->version)
		return rc;
	if (empty)
		rc = database_run(d, d->layout->schema, "set up", err);
	for (int i = from; i < d->layout->version && !empty && !rc; i++)
		rc = d->layout->steps[i](d, err);
	snprintf(stamp, sizeof(stamp), "PRAGMA user_version=%d", d->layout->version);
	return rc ? rc : database_run(d, stamp, "set up", err);
}

static int database_bring(const struct database *d, struct iocom_err *err)
{
	int rc = database_run(d, "BEGIN IMMEDIATE", "set up", err);

	if (rc)
		return rc;
	rc = database_steps(d, err);
	/* The file has not what its version says. */
	if (rc == -EIO && sqlite3_errcode(d->db) == SQLITE_ERROR)
		rc = -EUCLEAN;
	if (!rc)
		rc = database_run(d, "COMMIT", "set up", err);
	if (rc && !sqlite3_get_autocommit(d->db))
		sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

static int database_set_up(struct database *d, const char *path, struct iocom_err *err)
{
	static const char modes[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;";
	bool empty;
	int version, rc = database_version(d, &version, &empty, err);

	if (rc)
		return rc;
	if (version > d->layout->version || version < 0)
		return database_newer(d, path, version, err);
	if (version < d->layout->version && !empty)
		rc = database_back_up(d, path, version, err);
	if (!rc)
		rc = database_run(d, modes, "set up", err);
	return rc || version == d->layout->version ? rc : database_bring(d, err);
}

int database_open(struct database *d, const char *path, const struct database_layout *layout,
		  struct iocom_err *err)
{
	int rc;

	*d = (struct database){.layout = layout};
	if (sqlite3_open(path, &d->db) != SQLITE_OK) {
		rc = iocom_err_set(err, -EIO, "cannot open %s %s: %s%s", layout->what, path,
				   d->db ? sqlite3_errmsg(d->db) : "out of memory", layout->advice);
	} else {
		sqlite3_busy_timeout(d->db, BUSY_MS);
		rc = database_set_up(d, path, err);
		if (!rc && layout->busy_ms)
			sqlite3_busy_timeout(d->db, layout->busy_ms);
	}
	if (rc)
		database_close(d);
	return rc;
}

/* --- another in its place ----------------------------------------------------------- */

/* Returns 0; -EUCLEAN: the file is damaged, or lacks what its version has; -EBUSY, -EIO. */
static int database_check(const struct database *d, struct iocom_err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(d->db, "PRAGMA quick_check(1)", -1, &st, NULL);
	const char *word = NULL;

	if (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		word = (const char *)sqlite3_column_text(st, 0);
	if (!word)
		rc = database_failed(d, "check", err);
	else if (strcmp(word, "ok") != 0)
		rc = iocom_err_set(err, -EUCLEAN, "%s %s are damaged: %.200s", d->layout->what,
				   sqlite3_db_filename(d->db, "main"), word);
	sqlite3_finalize(st);
	if (rc || !d->layout->probe ||
	    sqlite3_exec(d->db, d->layout->probe, NULL, NULL, NULL) == SQLITE_OK)
		return rc;
	rc = database_failed(d, "read", err);
	return rc == -EBUSY ? rc : -EUCLEAN;
}

/* Renames PATH to NAME, which must not exist.  Returns 0, -EEXIST, or another negative errno. */
static int database_move(const char *path, const char *name)
{
	return renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_NOREPLACE) ? -errno : 0;
}

/* SQLite would take a log of changes that stays behind for the new file's. */
static int database_move_log(const char *path, const char *name)
{
	char from[PATH_MAX + 8], to[PATH_MAX + 8];
	int rc;

	snprintf(from, sizeof(from), "%s-wal", path);
	snprintf(to, sizeof(to), "%s-wal", name);
	rc = database_move(from, to);
	if (rc == -ENOENT)
		rc = 0;
	snprintf(from, sizeof(from), "%s-shm", path);
	if (!rc && unlink(from) && errno != ENOENT)
		rc = -errno;
	return rc;
}

static int database_set_aside(struct database *d, const char *path,
			      const struct database_layout *layout, struct iocom_err *err)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;
	int rc = -EEXIST;

	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	for (int i = 0; rc == -EEXIST && i < 100; i++) {
		int n = snprintf(d->aside, sizeof(d->aside), i ? "%s.aside-%s-%d" : "%s.aside-%s",
				 path, when, i);

		rc = n < 0 || (size_t)n >= sizeof(d->aside) ? -ENAMETOOLONG
							    : database_move_log(path, d->aside);
		if (!rc)
			rc = database_move(path, d->aside);
	}
	if (rc)
		iocom_err_set(err, rc, "cannot set %s %s aside: %s", layout->what, path,
			      strerror(-rc));
	return rc ? rc : sync_name(d->aside);
}

int database_renew(struct database *d, const char *path, const struct database_layout *layout,
		   struct iocom_err *err)
{
	char aside[PATH_MAX];
	struct iocom_err why;
	int rc = database_open(d, path, layout, err);

	if (!rc) {
		rc = database_check(d, err);
		if (rc)
			database_close(d);
	}
	if (rc != -EUCLEAN && rc != -ENOTSUP)
		return rc;
	why = err ? *err : (struct iocom_err){""};
	rc = database_set_aside(d, path, layout, err);
	if (rc)
		return rc;
	memcpy(aside, d->aside, sizeof(aside));
	rc = database_open(d, path, layout, err);
	memcpy(d->aside, aside, sizeof(aside));
	d->why = why;
	return rc;
}

void database_close(struct database *d)
{
	sqlite3_close(d->db);
	d->db = NULL;
}
