/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Moves of jobs; see journal.h. */
#include <errno.h>
#include <string.h>

#include "agent/jobs/journal_sql.h"

#define MOVE_COLUMNS                                                                               \
	"number, source, target, state, asked_ns, decided_ns, frozen_ms, dump_ms, bytes, text,"    \
	" cause, here_ms, there_ms, cost_ms"

int journal_move_ask(struct journal *j, const char *job, struct journal_move *move,
		     struct iocom_err *err)
{
	struct journal_move last;
	int rc = journal_move_get(j, job, 0, &last, err);

	if (rc && rc != -ENOENT)
		return rc;
	move->number = rc ? 1 : last.number + 1;
	return journal_change(
		j, err,
		"INSERT INTO move(job,number,source,target,state,asked_ns,cause,"
		"here_ms,there_ms,cost_ms) VALUES(?1,?2,?3,?4,'asked',?5,?6,?7,?8,?9)",
		"sissisrrr", job, I(move->number), move->source, move->target, I(move->asked_ns),
		move->cause, move->here_ms, move->there_ms, move->cost_ms);
}

int journal_move_turn(struct journal *j, const char *job, const struct journal_move *move,
		      struct iocom_err *err)
{
	return journal_change(
		j, err, "UPDATE move SET target=?3 WHERE job=?1 AND number=?2 AND state='asked'",
		"sis", job, I(move->number), move->target);
}

/* Moves JOB's row at home to NODE. */
static int move_home(struct journal *j, const char *job, const char *node, struct iocom_err *err)
{
	return journal_change(j, err,
			      "UPDATE home SET node=?2 WHERE job=?1 AND state IN"
			      " ('starting','running')",
			      "ss", job, node);
}

/* Changes the state of M, which must be FROM. */
static int move_change(struct journal *j, const char *job, const struct journal_move *m,
		       const char *from, struct iocom_err *err)
{
	int rc = journal_change(j, err,
				"UPDATE move SET state=?3, decided_ns=?4, frozen_ms=?5, dump_ms=?6,"
				" bytes=?7, text=?8 WHERE job=?1 AND number=?2 AND state=?9",
				"sisiiiiss", job, I(m->number), m->state, I(m->decided_ns),
				I(m->frozen_ms), I(m->dump_ms), I(m->bytes), m->text, from);

	if (rc)
		return rc;
	if (!sqlite3_changes(j->file.db))
		return iocom_err_set(err, -EALREADY, "the move was decided before");
	if (!strcmp(m->state, "resumed"))
		return move_home(j, job, m->target, err);
	return strcmp(from, "resumed") ? 0 : move_home(j, job, m->source, err);
}

/* All changes or none, also within the transaction of a message that is being answered. */
static int move_change_whole(struct journal *j, const char *job, const struct journal_move *move,
			     const char *from, struct iocom_err *err)
{
	int rc = journal_change(j, err, "SAVEPOINT move", "");

	if (rc)
		return rc;
	rc = move_change(j, job, move, from, err);
	if (rc)
		(void)journal_change(j, NULL, "ROLLBACK TO move", "");
	if (journal_change(j, rc ? NULL : err, "RELEASE move", "") && !rc)
		rc = -EIO;
	return rc;
}

int journal_move_decide(struct journal *j, const char *job, const struct journal_move *move,
			struct iocom_err *err)
{
	return move_change_whole(j, job, move, "asked", err);
}

int journal_move_undo(struct journal *j, const char *job, const struct journal_move *move,
		      struct iocom_err *err)
{
	return move_change_whole(j, job, move, "resumed", err);
}

static void move_take(sqlite3_stmt *st, struct journal_move *m)
{
	*m = (struct journal_move){
		.number = (uint64_t)sqlite3_column_int64(st, 0),
		.asked_ns = (uint64_t)sqlite3_column_int64(st, 4),
		.decided_ns = (uint64_t)sqlite3_column_int64(st, 5),
		.frozen_ms = (uint64_t)sqlite3_column_int64(st, 6),
		.dump_ms = (uint64_t)sqlite3_column_int64(st, 7),
		.bytes = (uint64_t)sqlite3_column_int64(st, 8),
		.here_ms = sqlite3_column_double(st, 11),
		.there_ms = sqlite3_column_double(st, 12),
		.cost_ms = sqlite3_column_double(st, 13),
	};
	journal_text(st, 1, m->source, sizeof(m->source));
	journal_text(st, 2, m->target, sizeof(m->target));
	journal_text(st, 3, m->state, sizeof(m->state));
	journal_text(st, 9, m->text, sizeof(m->text));
	journal_text(st, 10, m->cause, sizeof(m->cause));
}

int journal_move_get(struct journal *j, const char *job, uint64_t number, struct journal_move *move,
		     struct iocom_err *err)
{
	sqlite3_stmt *st = journal_select(j,
					  "SELECT " MOVE_COLUMNS " FROM move WHERE job=?1 AND"
					  " (number=?2 OR ?2=0) ORDER BY number DESC LIMIT 1",
					  "si", job, I(number));
	int rc;

	if (!st)
		return journal_failed(j, "read", err);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		move_take(st, move);
	journal_done(st);
	return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : journal_failed(j, "read", err);
}

int journal_moves(struct journal *j, const char *job,
		  void (*each)(void *arg, const struct journal_move *move), void *arg)
{
	sqlite3_stmt *st = journal_select(
		j, "SELECT " MOVE_COLUMNS " FROM move WHERE job=?1 ORDER BY number", "s", job);
	struct journal_move move;
	int rc;

	if (!st)
		return -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		move_take(st, &move);
		each(arg, &move);
	}
	journal_done(st);
	return rc == SQLITE_DONE ? 0 : -EIO;
}

int journal_left(struct journal *j, const char *job, uint64_t end_ns, const char *text,
		 struct iocom_err *err)
{
	return journal_change(j, err,
			      "UPDATE target SET state='moved', end_ns=?2, report_due=0,"
			      " report=NULL, text=?3 WHERE job=?1",
			      "sis", job, I(end_ns), text);
}

bool journal_has_left(struct journal *j, const char *job, uid_t uid)
{
	sqlite3_stmt *st = journal_select(
		j, "SELECT 1 FROM target WHERE job=?1 AND state='moved' AND (?2=0 OR uid=?2)", "si",
		job, I(uid));
	bool left = st && sqlite3_step(st) == SQLITE_ROW;

	if (st)
		journal_done(st);
	return left;
}

int journal_arrive(struct journal *j, const struct journal_job *job, const void *order,
		   size_t length, struct iocom_err *err)
{
	int rc = journal_change(
		j, err,
		"INSERT INTO target(job,home,node,uid,class,command,policy,state,submit_ns,"
		"orders) VALUES(?1,?2,?3,?4,?5,?6,?7,'starting',?8,?9) ON CONFLICT(job) DO UPDATE"
		" SET state='starting', start_ns=0, end_ns=0, kind=0, value=0, pid=0,"
		" cgroup_id=0, report_due=0, report=NULL, text=NULL, orders=excluded.orders"
		" WHERE target.state IN ('moved','stayed')"
		" OR (target.state='lost' AND target.home=excluded.home)",
		"sssisssib", job->job, job->home, job->node, I(job->uid), job->class_name,
		job->command, job->policy, I(job->submit_ns), order, length);

	if (!rc && sqlite3_changes(j->file.db) == 0)
		return iocom_err_set(err, JOURNAL_E_SEEN, "job %s was here before", job->job);
	return rc;
}
