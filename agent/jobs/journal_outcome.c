/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What was expected of jobs, and what became of them; see journal.h. */
#include <errno.h>
#include <string.h>

#include "agent/jobs/journal_sql.h"

void journal_take_expectation(sqlite3_stmt *st, int first, struct journal_expectation *out)
{
	*out = (struct journal_expectation){
		.there_ms = sqlite3_column_double(st, first),
		.home_ms = sqlite3_column_double(st, first + 1),
		.there_factor = sqlite3_column_double(st, first + 2),
		.home_factor = sqlite3_column_double(st, first + 3),
		.basis = sqlite3_column_int(st, first + 4),
		.balanced = sqlite3_column_int(st, first + 5),
	};
}

/*
 * A number of the decision that is kept as JSON; NULL: it has none.  The first look, which costs
 * less, spares most decisions the second.
 */
#define JOURNAL_KEPT(key)                                                                          \
	"CASE WHEN instr(place, '\"" key "\"') AND json_valid(place)"                              \
	" THEN json_extract(place, '$." key "') END"

static int64_t journal_kept(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_INTEGER ? sqlite3_column_int64(st, column)
								 : -1;
}

int journal_home_expected(struct journal *j, const char *job, struct journal_expected *out,
			  struct iocom_err *err)
{
	sqlite3_stmt *st = journal_select(
		j,
		"SELECT submit_ns, policy, " JOURNAL_EXPECTATION
		", " JOURNAL_KEPT("input_bytes") ", " JOURNAL_KEPT("input_id") ", " JOURNAL_KEPT(
			"shared_server") " FROM home WHERE job=?1",
		"s", job);
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		out->submit_ns = (uint64_t)sqlite3_column_int64(st, 0);
		journal_text(st, 1, out->policy, sizeof(out->policy));
		journal_take_expectation(st, 2, &out->expectation);
		out->input_bytes = journal_kept(st, 8);
		out->input_id = journal_kept(st, 9);
		journal_text(st, 10, out->shared_server, sizeof(out->shared_server));
	}
	journal_done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : journal_failed(j, "read", err);
}

/* Copies the node that JOB was submitted at: its id is HOME-BOOT-SEQUENCE. */
static void journal_home_of(const char *job, char home[SPEC_JOB_MAX])
{
	uint64_t sequence;
	char *dash = NULL;

	home[0] = 0;
	if (!journal_split(job, home, &sequence))
		dash = strrchr(home, '-');
	if (dash)
		*dash = 0;
}

static void journal_take_outcome(sqlite3_stmt *st, char home[SPEC_JOB_MAX],
				 struct journal_outcome *o)
{
	struct journal_expectation e;

	journal_take_expectation(st, 10, &e);
	*o = (struct journal_outcome){
		.job = (const char *)sqlite3_column_text(st, 0),
		.class_name = (const char *)sqlite3_column_text(st, 1),
		.policy = (const char *)sqlite3_column_text(st, 2),
		.node = (const char *)sqlite3_column_text(st, 3),
		.home = home,
		.uid = (uid_t)sqlite3_column_int64(st, 4),
		.submit_ns = (uint64_t)sqlite3_column_int64(st, 5),
		.end_ns = (uint64_t)sqlite3_column_int64(st, 6),
		.wall_ms = sqlite3_column_double(st, 7),
		.slowdown = sqlite3_column_double(st, 16),
		.exit_kind = sqlite3_column_int(st, 8),
		.exit_value = sqlite3_column_int(st, 9),
		.expected_ms = e.there_ms,
		.expected_home_ms = e.home_ms,
		.there_factor = e.there_factor,
		.home_factor = e.home_factor,
		.basis = e.basis,
		.balanced = e.balanced,
	};
	journal_home_of(o->job, home);
	o->moved = strcmp(o->node, home) != 0;
}

int journal_outcomes_from(struct journal *j, uint64_t since_ns, uid_t uid,
			  const struct journal_mark *from, size_t max,
			  void (*each)(void *arg, const struct journal_outcome *outcome), void *arg)
{
	static const char sql[] =
		"SELECT job, coalesce(class,''), coalesce(policy,''), coalesce(node,''), uid,"
		" submit_ns, end_ns, wall_ms, kind, value, " JOURNAL_EXPECTATION ", slowdown"
		" FROM home WHERE submit_ns>=?1 AND submit_ns<=?4 AND (submit_ns,job)<(?4,?5)"
		" AND (?2<0 OR uid=?2) AND end_ns>0 AND wall_ms>0 AND tasks=0"
		" ORDER BY submit_ns DESC, job DESC LIMIT ?3";
	int64_t since = since_ns > INT64_MAX ? INT64_MAX : (int64_t)since_ns;
	int64_t who = uid == (uid_t)-1 ? -1 : (int64_t)uid;
	int64_t last =
		from->submit_ns && from->submit_ns < INT64_MAX ? I(from->submit_ns) : INT64_MAX;
	sqlite3_stmt *st = journal_select(j, sql, "iiiis", since, who, I(max), last,
					  from->submit_ns ? from->job : "");
	char home[SPEC_JOB_MAX];
	struct journal_outcome o;
	int rc;

	if (!st)
		return -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		journal_take_outcome(st, home, &o);
		each(arg, &o);
	}
	journal_done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

int journal_outcomes(struct journal *j, uint64_t since_ns, uid_t uid,
		     void (*each)(void *arg, const struct journal_outcome *outcome), void *arg)
{
	static const struct journal_mark newest = {0};

	return journal_outcomes_from(j, since_ns, uid, &newest, JOURNAL_OUTCOMES_MAX, each, arg);
}
