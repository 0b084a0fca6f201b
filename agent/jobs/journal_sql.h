/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the parts of the journal (journal*.c) share: its database and their questions to it. */
#ifndef IOCOM_JOURNAL_SQL_H
#define IOCOM_JOURNAL_SQL_H

#include <sqlite3.h>

#include "agent/jobs/journal.h"
#include "balancer/settings/database.h"

#define JOURNAL_STATEMENTS 64 /* the most statements of all parts together */

struct journal {
	struct database file;
	int64_t pending_after; /* row of the last report that was offered: the next ones follow */
	struct journal_sync {  /* journal_sync.c */
		struct journal_disk disk; /* begin NULL: nobody syncs */
		/* commits by number: the newest, the last on the disk, the last in the sync under
		 * way */
		uint64_t position, durable, under_way;
		uint64_t changes; /* as of the newest commit */
		bool syncing, repair;
		struct journal_wait *first;  /* they wait, in the order of their positions */
		struct journal_wait *served; /* they are being called */
	} sync;
	struct {
		const char *sql; /* the literal's address is the key */
		sqlite3_stmt *st;
	} cache[JOURNAL_STATEMENTS];
};

#define I(x) ((int64_t)(x))

/* journal_outcome.c: the columns of an expectation, and how they are read from column FIRST on. */
#define JOURNAL_EXPECTATION "expected_ms,expected_home_ms,there_factor,home_factor,basis,balanced"
void journal_take_expectation(sqlite3_stmt *st, int first, struct journal_expectation *out);

/* journal.c: the columns that journal_listed takes. */
#define JOURNAL_AT_HOME                                                                            \
	"job,uid,class,command,policy,'',node,state,submit_ns,start_ns,end_ns,kind,value,pid,1,"   \
	"text,wall_ms," JOURNAL_EXPECTATION ",slowdown,tasks,gang"
#define JOURNAL_AT_TARGET                                                                          \
	"job,uid,class,command,policy,home,node,state,submit_ns,start_ns,end_ns,kind,value,pid,0," \
	"text,0,0,0,0,0,0,0,0,0,''"
void journal_listed(sqlite3_stmt *st, struct journal_job *job);
/* Calls EACH for all rows of ST, a list of jobs (NULL: -EIO), and ends ST.  Returns 0 or -EIO. */
int journal_list_rows(sqlite3_stmt *st, void (*each)(void *arg, const struct journal_job *job),
		      void *arg);

/* journal_sync.c: begins to count commits; what an earlier agent wrote may not be on the disk. */
void journal_sync_open(struct journal *j);
/* journal_sync.c: a transaction has ended, or was given up. */
void journal_sync_ended(struct journal *j);

/* journal_version.c: the tables, and what older ones become. */
extern const struct database_layout journal_layout;

/* Puts SQLite's own message into ERR.  Returns -ENOSPC or -EIO. */
int journal_failed(struct journal *j, const char *what, struct iocom_err *err);
/*
 * A question; SQL must be a literal.  FORMAT, a letter for each that follows: s text (NULL:
 * null), i int64_t, r double, b const void * and size_t; they stay until journal_done.
 * NULL: it cannot be asked.
 */
sqlite3_stmt *journal_select(struct journal *j, const char *sql, const char *format, ...);
void journal_done(sqlite3_stmt *st);
/* Copies a text of the row, cut to SIZE; "" if there is none. */
void journal_text(sqlite3_stmt *st, int column, char *out, size_t size);
/* Runs a statement without rows.  Returns 0 or negative errno. */
int journal_change(struct journal *j, struct iocom_err *err, const char *sql, const char *format,
		   ...);

#endif
