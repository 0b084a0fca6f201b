/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A SQLite file whose layout has a version (PRAGMA user_version).  Opening it brings an
 * older layout up to this build's:
 *
 *   new       the schema and its version, in one transaction
 *   older     a copy beside the file (FILE.vN-backup, mode 0600), which stays; then all
 *             steps in one transaction: the file has the new layout or the old one
 *   the same  nothing is written
 *   newer     refused with a sentence, and the file is not touched
 *
 * Version 0 is what was written before files had versions.
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
	const char *schema; /* what a new file gets: the newest version */
	/* steps[N] makes version N + 1 of version N, inside the transaction.  0 or negative
	 * errno with the sentence. */
	int (*const *steps)(const struct database *database, struct iocom_err *err);
	int version; /* the newest: how many steps there are */
};

struct database {
	sqlite3 *db;
	const struct database_layout *layout;
	char backup[PATH_MAX]; /* what this opening copied; "": nothing was migrated */
};

/* 0 or negative errno with the sentence, and then nothing is open.  -ENOTSUP: a newer version. */
int database_open(struct database *database, const char *path, const struct database_layout *layout,
		  struct iocom_err *err);
void database_close(struct database *database); /* what is not open is fine */
/* Says that VERB ("read", "write") failed, and what SQLite said.  -ENOSPC or -EIO. */
int database_failed(const struct database *database, const char *verb, struct iocom_err *err);

#endif
