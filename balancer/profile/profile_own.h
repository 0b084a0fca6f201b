/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the class profiles share. */
#ifndef IOCOM_PROFILE_OWN_H
#define IOCOM_PROFILE_OWN_H

#include <sqlite3.h>

#include "balancer/settings/database.h"
#include "balancer/profile/profile.h"

#define TEXT(x)	   TEXT_(x)
#define TEXT_(x)   #x

#define STATEMENTS 64

/* The columns of a kept run's needs, in the order of enum profile_need. */
#define PROFILE_NEED_COLUMNS                                                                       \
	"cpu_ms, requests, request_mb, read_mb, written_mb, fault_requests, fault_mb, memory_mb,"  \
	" com_ms, disk_ms, wall_ms, rest_ms, shared_read_mb, shared_written_mb"

struct profile_store {
	struct database file;
	char path[PATH_MAX];
	unsigned swept; /* profile_swept */
	struct {
		const char *sql; /* the literal's address is the key */
		sqlite3_stmt *st;
	} cache[STATEMENTS];
};

/* Says that WHAT failed, and why.  Returns -EIO or another negative errno. */
int profile_failed(struct profile_store *store, const char *what, struct iocom_err *err);
/* Prepared once: that costs more than running it.  SQL is a literal.  NULL: SQLite failed. */
sqlite3_stmt *profile_statement(struct profile_store *store, const char *sql);
/* Makes a statement ready for its next use. */
void profile_done(sqlite3_stmt *st);
/* Binds uid and class as ?1 and ?2. */
void profile_bind(sqlite3_stmt *st, uid_t uid, const char *class_name);
/* Does that, and runs the statement to its end. */
int profile_finish(struct profile_store *store, sqlite3_stmt *st, uid_t uid, const char *class_name,
		   struct iocom_err *err);
/* Runs SQL, a literal that deletes rows of uid ?1 and perhaps class ?2. */
int profile_delete(struct profile_store *store, const char *sql, uid_t uid, const char *class_name,
		   struct iocom_err *err);
/* Writes the averages and the phases of a class as they are in P, inside a transaction. */
int profile_write(struct profile_store *store, uid_t uid, const char *class_name,
		  const struct profile *p, struct iocom_err *err);
/* Makes room for a new class of UID, inside a transaction. */
int profile_make_room(struct profile_store *store, uid_t uid, struct iocom_err *err);
/* Deletes all that is known of a class, inside a transaction.  Returns 0; -ENOENT; -EIO. */
int profile_erase(struct profile_store *store, uid_t uid, const char *class_name,
		  struct iocom_err *err);
/* Runs SQL, a literal without parameters. */
int profile_run(struct profile_store *store, const char *sql, struct iocom_err *err);
/* RC of the steps so far: commits when 0, else takes all back. */
int profile_end_transaction(struct profile_store *store, int rc, struct iocom_err *err);

#endif
