/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The kept runs; see profile_runs.h.  A row whose numbers can be no needs says nothing. */
#include "balancer/profile/profile_runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balancer/profile/profile_own.h"

#define RUNS_MOST  (2 * PROFILE_RUNS_KEPT)
#define FIRST_NEED 5 /* the column of the first need, when runs are read */

#define NEED(member)                                                                               \
	{                                                                                          \
#member, offsetof(struct profile, member)                                          \
	}
static const struct {
	const char *name;
	size_t offset;
} profile_needs[PROFILE_NEEDS] = {
	[PROFILE_CPU_MS] = NEED(cpu_ms),
	[PROFILE_REQUESTS] = NEED(requests),
	[PROFILE_REQUEST_MB] = NEED(request_mb),
	[PROFILE_READ_MB] = NEED(read_mb),
	[PROFILE_WRITTEN_MB] = NEED(written_mb),
	[PROFILE_FAULT_REQUESTS] = NEED(fault_requests),
	[PROFILE_FAULT_MB] = NEED(fault_mb),
	[PROFILE_MEMORY_MB] = NEED(memory_mb),
	[PROFILE_COM_MS] = NEED(com_ms),
	[PROFILE_DISK_MS] = NEED(disk_ms),
	[PROFILE_WALL_MS] = NEED(wall_ms),
	[PROFILE_REST_MS] = NEED(rest_ms),
	[PROFILE_SHARED_READ_MB] = NEED(shared_read_mb),
	[PROFILE_SHARED_WRITTEN_MB] = NEED(shared_written_mb),
};

const char *profile_need_name(enum profile_need need)
{
	return profile_needs[need].name;
}

double profile_need_of(const struct profile *p, enum profile_need need)
{
	return *(const double *)((const char *)p + profile_needs[need].offset);
}

void profile_need_put(struct profile *p, enum profile_need need, double value)
{
	*(double *)((char *)p + profile_needs[need].offset) = value;
}

static bool profile_need_valid(double value)
{
	return value >= 0 && value <= PROFILE_NEED_MAX;
}

/* --- reading ------------------------------------------------------------------------------ */

static bool runs_take(sqlite3_stmt *st, struct profile_one *out)
{
	const char *node = (const char *)sqlite3_column_text(st, 3);

	*out = (struct profile_one){
		.warm = sqlite3_column_int(st, 0) != 0,
		.input_id = (uint64_t)sqlite3_column_int64(st, 1),
		.input_mb = sqlite3_column_double(st, 2),
		.end_s = (uint64_t)sqlite3_column_int64(st, 4),
	};
	snprintf(out->node, sizeof(out->node), "%s", node ? node : "");
	if (!profile_need_valid(out->input_mb))
		out->input_mb = -1;
	for (int f = 0; f < PROFILE_NEEDS; f++) {
		out->need[f] = sqlite3_column_double(st, FIRST_NEED + f);
		if (!profile_need_valid(out->need[f]))
			return false;
	}
	return true;
}

int profile_runs_read(struct profile_store *s, uid_t uid, const char *class_name,
		      struct profile_one *out, size_t *n, struct iocom_err *err)
{
	static const char sql[] =
		"SELECT warm, input_id, input_mb, node, end_s,"
		" " PROFILE_NEED_COLUMNS " FROM run WHERE uid=?1 AND class=?2 ORDER BY number DESC";
	sqlite3_stmt *st = profile_statement(s, sql);
	int rc;

	*n = 0;
	if (!st)
		return profile_failed(s, "read", err);
	profile_bind(st, uid, class_name);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && *n < RUNS_MOST)
		*n += runs_take(st, &out[*n]);
	rc = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : profile_failed(s, "read", err);
	profile_done(st);
	return rc;
}

/* --- learning ----------------------------------------------------------------------------- */

static int runs_insert(struct profile_store *s, uid_t uid, const char *class_name,
		       const struct profile_one *one, struct iocom_err *err)
{
	static const char sql[] =
		"INSERT INTO run(uid, class, number, warm, input_id, input_mb, node, end_s,"
		" " PROFILE_NEED_COLUMNS
		") VALUES(?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM run"
		" WHERE uid=?1 AND class=?2), ?3, ?4, ?5, ?6, ?7,"
		" ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
	sqlite3_stmt *st = profile_statement(s, sql);

	if (!st)
		return profile_failed(s, "write", err);
	sqlite3_bind_int(st, 3, one->warm);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)one->input_id);
	sqlite3_bind_double(st, 5, one->input_mb);
	sqlite3_bind_text(st, 6, one->node, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 7, (sqlite3_int64)one->end_s);
	for (int f = 0; f < PROFILE_NEEDS; f++)
		sqlite3_bind_double(st, 8 + f, one->need[f]);
	return profile_finish(s, st, uid, class_name, err);
}

int profile_runs_add(struct profile_store *s, uid_t uid, const char *class_name,
		     const struct profile_one *one, struct iocom_err *err)
{
	static const char cold[] =
		"DELETE FROM run WHERE uid=?1 AND class=?2 AND NOT warm AND number NOT IN"
		" (SELECT number FROM run WHERE uid=?1 AND class=?2 AND NOT warm"
		" ORDER BY number DESC LIMIT " TEXT(PROFILE_RUNS_KEPT) ")";
	static const char warm[] =
		"DELETE FROM run WHERE uid=?1 AND class=?2 AND warm AND number NOT IN"
		" (SELECT number FROM run WHERE uid=?1 AND class=?2 AND warm"
		" ORDER BY number DESC LIMIT " TEXT(PROFILE_RUNS_KEPT) ")";
	int rc = runs_insert(s, uid, class_name, one, err);

	return rc ? rc : profile_delete(s, one->warm ? warm : cold, uid, class_name, err);
}

static double runs_read_mb(const double need[PROFILE_NEEDS])
{
	return need[PROFILE_READ_MB] + need[PROFILE_FAULT_MB] + need[PROFILE_SHARED_READ_MB];
}

/* Returns whether the page cache had the files of ONE, given the runs before. */
static bool runs_is_warm(const struct profile_one *one, const struct profile_one *before, size_t n)
{
	double cold_mb = one->input_mb;

	for (size_t i = 0; i < n; i++)
		if (one->input_id && before[i].input_id == one->input_id)
			cold_mb = fmax(cold_mb, runs_read_mb(before[i].need));
	return cold_mb >= PROFILE_WARM_LEAST_MB &&
	       runs_read_mb(one->need) < PROFILE_WARM_PART * cold_mb;
}

int profile_runs_learn(struct profile_store *s, uid_t uid, const char *class_name,
		       const struct profile *run, const struct profile_origin *origin,
		       struct iocom_err *err)
{
	struct profile_one before[RUNS_MOST], one = {
						      .input_id = origin->input_id,
						      .input_mb = origin->input_mb,
						      .end_s = origin->end_s,
					      };
	size_t n;
	int rc = profile_runs_read(s, uid, class_name, before, &n, err);

	if (rc)
		return rc;
	snprintf(one.node, sizeof(one.node), "%s", origin->node);
	for (enum profile_need i = 0; i < PROFILE_NEEDS; i++) {
		one.need[i] = profile_need_of(run, i);
		if (!profile_need_valid(one.need[i]))
			return 0; /* a node that lies teaches nothing here */
	}
	one.warm = runs_is_warm(&one, before, n);
	return profile_runs_add(s, uid, class_name, &one, err);
}

/* --- what the next run needs ---------------------------------------------------------------- */

/* Returns whether the page cache of home has the files of the next run. */
static bool expect_warm(const struct profile_next *next, const struct profile_one *runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (next->input_id && runs[i].input_id == next->input_id)
			return !strcmp(runs[i].node, next->home) && runs[i].end_s &&
			       next->now_s <= runs[i].end_s + PROFILE_WARM_S;
	return false;
}

/* Moves the runs of one kind to the front.  Returns their number. */
static size_t expect_choose(struct profile_expected *out, const struct profile_next *next,
			    struct profile_one *runs, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		runs[i].warm ? out->warm_runs++ : out->cold_runs++;
	out->warm = (out->warm_runs && expect_warm(next, runs, n)) || !out->cold_runs;
	for (size_t i = 0; i < n; i++)
		if (runs[i].warm == out->warm)
			runs[kept++] = runs[i];
	return kept;
}

static void expect_needs(struct profile_expected *out, const struct profile_next *next,
			 const struct profile_one *runs, size_t n)
{
	double need[RUNS_MOST], size_mb[RUNS_MOST];

	for (size_t i = 0; i < n; i++)
		size_mb[i] = runs[i].input_mb;
	for (enum profile_need f = 0; f < PROFILE_NEEDS; f++) {
		for (size_t i = 0; i < n; i++)
			need[i] = runs[i].need[f];
		estimate_make(need, size_mb, n, next->input_mb, &out->of[f]);
		profile_need_put(&out->profile, f, out->of[f].value);
		out->by_input = out->by_input || out->of[f].line;
	}
	out->used = (unsigned)n;
}

/* Returns the next run of the files of NEXT at NODE, from AT on; N: there is none. */
static size_t shared_next(const struct profile_next *next, const struct profile_one *runs,
			  size_t at, size_t n, const char *node)
{
	while (at < n && (runs[at].input_id != next->input_id || strcmp(runs[at].node, node) != 0))
		at++;
	return at;
}

/* What the page cache of the node of run AT, its newest of these files, has of COLD_MB. */
static double shared_cached(const struct profile_next *next, const struct profile_one *runs,
			    size_t at, size_t n, double cold_mb)
{
	double read = runs[at].need[PROFILE_SHARED_READ_MB];
	size_t before = shared_next(next, runs, at + 1, n, runs[at].node);

	if (before < n && runs[before].end_s + PROFILE_WARM_S >= runs[at].end_s)
		return fmax(0, cold_mb - read);
	return fmin(read, cold_mb);
}

static void expect_cached(struct profile_expected *out, const struct profile_next *next,
			  const struct profile_one *runs, size_t n)
{
	double cold_mb = out->profile.shared_read_mb;

	for (size_t i = 0; next->input_id && i < n; i++) {
		struct profile_cached *c = &out->cached[out->ncached];

		if (!runs[i].end_s || next->now_s > runs[i].end_s + PROFILE_WARM_S ||
		    !*runs[i].node || shared_next(next, runs, 0, n, runs[i].node) != i)
			continue;
		c->mb = shared_cached(next, runs, i, n, cold_mb);
		snprintf(c->node, sizeof(c->node), "%s", runs[i].node);
		out->ncached += c->mb > 0;
	}
}

/* What the next run reads of a shared file system if no cache has it, and which caches have it. */
static void expect_shared(struct profile_expected *out, const struct profile_next *next,
			  const struct profile_one *runs, size_t n)
{
	double need[RUNS_MOST], size_mb[RUNS_MOST];
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (out->cold_runs && runs[i].warm)
			continue;
		size_mb[kept] = runs[i].input_mb;
		need[kept++] = runs[i].need[PROFILE_SHARED_READ_MB];
	}
	estimate_make(need, size_mb, kept, next->input_mb, &out->of[PROFILE_SHARED_READ_MB]);
	out->profile.shared_read_mb = out->of[PROFILE_SHARED_READ_MB].value;
	expect_cached(out, next, runs, n);
}

/* The averages know no spread. */
static void expect_averages(struct profile_expected *out)
{
	for (enum profile_need f = 0; f < PROFILE_NEEDS; f++)
		out->of[f] = (struct estimate){
			.value = profile_need_of(&out->profile, f),
			.runs = out->profile.runs,
		};
}

int profile_expect(struct profile_store *s, uid_t uid, const char *class_name,
		   const struct profile_next *next, struct profile_expected *out,
		   struct iocom_err *err)
{
	struct profile_one runs[RUNS_MOST], kept[RUNS_MOST];
	size_t n;
	int rc;

	*out = (struct profile_expected){.input_mb = next->input_mb};
	need_options_init(&out->set);
	rc = profile_get(s, uid, class_name, &out->profile, err);
	if (!rc)
		rc = profile_set_read(s, uid, class_name, &out->set, err);
	if (!rc)
		rc = profile_runs_read(s, uid, class_name, runs, &n, err);
	if (rc)
		return rc;
	if (!n) {
		expect_averages(out);
		return 0;
	}
	memcpy(kept, runs, n * sizeof(*runs));
	expect_needs(out, next, kept, expect_choose(out, next, kept, n));
	expect_shared(out, next, runs, n);
	return 0;
}
