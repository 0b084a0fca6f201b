/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the ranks of jobs sent and received; see journal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs/journal_sql.h"

int journal_talk_put(struct journal *j, const char *job, const void *report, size_t length,
		     struct iocom_err *err)
{
	return journal_change(j, err, "INSERT OR REPLACE INTO talk VALUES(?1,?2)", "sb", job,
			      report, length);
}

int journal_talk_get(struct journal *j, const char *job, void **report, size_t *length,
		     struct iocom_err *err)
{
	sqlite3_stmt *st = journal_select(j, "SELECT report FROM talk WHERE job=?1", "s", job);
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*length = (size_t)sqlite3_column_bytes(st, 0);
		*report = malloc(*length + 1);
		if (*report && *length)
			memcpy(*report, sqlite3_column_blob(st, 0), *length);
	}
	journal_done(st);
	if (rc == SQLITE_ROW)
		return *report ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
	return rc == SQLITE_DONE ? -ENOENT : journal_failed(j, "read", err);
}
