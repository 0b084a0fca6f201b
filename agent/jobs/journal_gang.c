/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Gangs and their parts in the journal; see journal.h.  The parts of gang "n1-4f2a-57" are rows
 * whose names lie between "n1-4f2a-57." and "n1-4f2a-57/", as '/' follows '.': the primary key
 * finds them.
 */
#include <errno.h>

#include "agent/jobs/journal_sql.h"

int journal_gang_parts(struct journal *j, const char *gang,
		       void (*each)(void *arg, const struct journal_job *job), void *arg)
{
	static const char sql[] =
		"SELECT " JOURNAL_AT_HOME " FROM home WHERE job>?1||'.' AND job<?1||'/' AND gang=?1"
		" ORDER BY length(job), job";

	return journal_list_rows(journal_select(j, sql, "s", gang), each, arg);
}

int journal_gangs(struct journal *j, void (*each)(void *arg, const struct journal_job *job),
		  void *arg)
{
	static const char sql[] =
		"SELECT " JOURNAL_AT_HOME " FROM home WHERE tasks>0 AND gang='' AND"
		" (state IN ('starting','running') OR job IN (SELECT gang FROM home WHERE state IN"
		" ('starting','running')))";

	return journal_list_rows(journal_select(j, sql, ""), each, arg);
}

int journal_gang_fails(struct journal *j, const char *gang, int kind, int value, const char *text,
		       struct iocom_err *err)
{
	return journal_change(
		j, err, "UPDATE home SET kind=?2, value=?3, text=?4 WHERE job=?1 AND end_ns=0",
		"siis", gang, I(kind), I(value), text);
}
