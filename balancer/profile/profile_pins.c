/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Needs that their user set, which learning does not change; see profile_runs.h. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "balancer/profile/profile_own.h"
#include "balancer/profile/profile_runs.h"

static int pins_write(struct profile_store *s, uid_t uid, const char *class_name,
		      enum need_field field, double value, struct iocom_err *err)
{
	sqlite3_stmt *st = profile_statement(s, "INSERT OR REPLACE INTO pin VALUES(?1,?2,?3,?4)");

	if (!st)
		return profile_failed(s, "write", err);
	sqlite3_bind_text(st, 3, need_name(field), -1, SQLITE_STATIC);
	sqlite3_bind_double(st, 4, value);
	return profile_finish(s, st, uid, class_name, err);
}

int profile_set_write(struct profile_store *s, uid_t uid, const char *class_name,
		      const struct need_options *needs, struct iocom_err *err)
{
	int rc = 0;

	for (enum need_field f = 0; f < NEED_FIELDS && !rc; f++)
		if (needs->value[f] >= 0)
			rc = pins_write(s, uid, class_name, f, needs->value[f], err);
	return rc;
}

/* A class that never ran begins with no run: it is listed, and counts among its user's. */
static int pins_begin_class(struct profile_store *s, uid_t uid, const char *class_name,
			    struct iocom_err *err)
{
	static const struct profile none;
	struct profile known;
	int rc = profile_get(s, uid, class_name, &known, err);

	if (rc != -ENOENT)
		return rc;
	rc = profile_make_room(s, uid, err);
	return rc ? rc : profile_write(s, uid, class_name, &none, err);
}

int profile_set(struct profile_store *s, uid_t uid, const char *class_name,
		const struct need_options *needs, struct iocom_err *err)
{
	int rc = profile_run(s, "BEGIN IMMEDIATE", err);

	if (rc)
		return rc;
	rc = pins_begin_class(s, uid, class_name, err);
	if (!rc)
		rc = profile_set_write(s, uid, class_name, needs, err);
	return profile_end_transaction(s, rc, err);
}

/* A class of which nothing else is known is gone then. */
int profile_unset(struct profile_store *s, uid_t uid, const char *class_name, struct iocom_err *err)
{
	int rc = profile_run(s, "BEGIN IMMEDIATE", err);

	if (rc)
		return rc;
	rc = profile_delete(s, "DELETE FROM profile WHERE uid=?1 AND class=?2 AND runs=0", uid,
			    class_name, err);
	if (!rc)
		rc = profile_delete(s, "DELETE FROM pin WHERE uid=?1 AND class=?2", uid, class_name,
				    err);
	if (!rc && !sqlite3_changes(s->file.db))
		rc = -ENOENT;
	return profile_end_transaction(s, rc, err);
}

/* A row that is not ours sets nothing. */
static void pins_take(sqlite3_stmt *st, struct need_options *out)
{
	const char *name = (const char *)sqlite3_column_text(st, 0);
	double value = sqlite3_column_double(st, 1);

	for (enum need_field f = 0; name && f < NEED_FIELDS; f++)
		if (!strcmp(name, need_name(f)) && need_value_valid(f, value))
			out->value[f] = value;
}

int profile_set_read(struct profile_store *s, uid_t uid, const char *class_name,
		     struct need_options *out, struct iocom_err *err)
{
	sqlite3_stmt *st =
		profile_statement(s, "SELECT need, value FROM pin WHERE uid=?1 AND class=?2");
	int rc;

	need_options_init(out);
	if (!st)
		return profile_failed(s, "read", err);
	profile_bind(st, uid, class_name);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		pins_take(st, out);
	rc = rc == SQLITE_DONE ? 0 : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}
