/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A SQLite file whose layout has a version (PRAGMA user_version).  database_open treats a
 *
 *   new file        it gets the schema and its version in one transaction
 *   file of before  it is copied to FILE.vN-backup (mode 0600), which stays; then all steps
 *                   run in one transaction: the file has the new layout, or the old one
 *   file of today   nothing is written
 *   newer file      it is refused with a sentence and not touched
 *
 * Version 0 is the layout of all files from before there were versions.
 *
 * database_renew is for a file that can be learned again: one that is damaged, or whose layout is
 * not known, is renamed to FILE.aside-DATE-TIME with its log of changes, and a new one is begun.
 */
#ifndef IOCOM_DATABASE_H
#define IOCOM_DATABASE_H

#include <limits.h>
#include <sqlite3.h>

#include "iocom/err.h"

struct database;

struct database_layout {
	const char *what;   /* for sentences: "the job journal" */
	const char *advice; /* after "cannot open ...: why"; "" */
	const char *schema; /* the tables of a new file, in the newest version */
	/*
	 * steps[N] turns version N into version N + 1, inside the transaction.  It returns 0 or
	 * negative errno with the reason in ERR.
	 */
	int (*const *steps)(const struct database *database, struct iocom_err *err);
	int version; /* the newest version, which is the number of steps */
	/* SQL that fails if tables or columns of the newest version are missing; NULL: none */
	const char *probe;
	int busy_ms; /* how long an open file is waited for if it is locked; 0: a second */
};

struct database {
	sqlite3 *db;
	const struct database_layout *layout;
	char backup[PATH_MAX]; /* the copy that this opening made; "": it migrated nothing */
	char aside[PATH_MAX];  /* where database_renew put the file that was there; "": nowhere */
	struct iocom_err why;  /* and why */
};

/*
 * Returns 0, or negative errno with the reason in ERR (-ENOTSUP: a newer version); nothing is open
 * then.
 */
int database_open(struct database *database, const char *path, const struct database_layout *layout,
		  struct iocom_err *err);
/*
 * Opens PATH as database_open.  A file that is damaged or of an unknown layout is set aside and a
 * new one opened.  Returns as database_open, which also fails if the file is locked (-EBUSY).
 */
int database_renew(struct database *database, const char *path,
		   const struct database_layout *layout, struct iocom_err *err);
void database_close(struct database *database); /* Call it also for a database that is not open. */
/*
 * Writes a sentence: VERB ("read", "write") failed, and SQLite's reason.  Returns -ENOSPC; -EBUSY:
 * another program has locked it; -EUCLEAN: the file is damaged; -EIO.
 */
int database_failed(const struct database *database, const char *verb, struct iocom_err *err);

#endif
