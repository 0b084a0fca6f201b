/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See profile_talk.h. */
#include "balancer/profile/profile_talk.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/profile/profile_own.h"

#define PAIR_BYTES 20 /* of a packed pair: from, to, bytes, messages */
#define SEEN	   0x8000
#define LEAST	   0.5 /* bytes: a pair with less has ended */

/* Returns whether CLASS_NAME is of runs with one number of tasks: only of these is anything kept.
 */
static bool has_tasks(const char *class_name)
{
	return strchr(class_name, '@') != NULL;
}

int profile_talk_class(const char *class_name, uint32_t tasks, char out[PROFILE_CLASS_MAX])
{
	int n = has_tasks(class_name)
			? snprintf(out, PROFILE_CLASS_MAX, "%s", class_name)
			: snprintf(out, PROFILE_CLASS_MAX, "%s@%u", class_name, tasks);

	return n < PROFILE_CLASS_MAX ? 0 : -ENAMETOOLONG;
}

void profile_talk_fini(struct profile_talk *t)
{
	free(t->pairs);
	*t = (struct profile_talk){0};
}

/* --- what a run adds -------------------------------------------------------------------- */

/* A square of pairs while they are merged; seen: 0 no, 1 earlier, 2 in this run. */
struct merging {
	uint32_t tasks;
	const struct join *join;
	bool inside; /* this run saw pairs on one node, too */
	double *bytes, *messages;
	uint8_t *seen;
};

static size_t at(const struct merging *m, uint32_t from, uint32_t to)
{
	return (size_t)from * m->tasks + to;
}

static bool could_see(const struct merging *m, uint32_t a, uint32_t b)
{
	int32_t part = m->join->ranks[a].part;

	return part >= 0 && m->join->ranks[b].part >= 0 &&
	       (m->inside || part != m->join->ranks[b].part);
}

static void merge_last(struct merging *m, const struct profile_talk *last)
{
	for (size_t i = 0; last && last->tasks == m->tasks && i < last->n; i++) {
		const struct profile_pair *p = &last->pairs[i];
		double keeps = could_see(m, p->from, p->to) ? 0.5 : 1;

		if (!p->seen)
			continue;
		m->bytes[at(m, p->from, p->to)] = keeps * p->bytes;
		m->messages[at(m, p->from, p->to)] = keeps * p->messages;
		m->seen[at(m, p->from, p->to)] = 1;
	}
}

/* The first run that sees a pair says all of it; if others saw it, or saw that it is idle, half. */
static void merge_run(struct merging *m, bool first)
{
	for (size_t i = 0; i < m->join->ncells; i++) {
		const struct pattern_cell *c = &m->join->cells[i];
		double weight;
		size_t k;

		if (c->from == c->to || c->from >= m->tasks || c->to >= m->tasks)
			continue;
		k = at(m, c->from, c->to);
		weight = first || !m->seen[k] ? 1 : 0.5;
		m->bytes[k] += weight * (double)c->bytes;
		m->messages[k] += weight * (double)c->messages;
		m->seen[k] = 2;
	}
}

/* Pairs that are alike have one number. */
static uint32_t likeness(const struct merging *m, uint32_t from, uint32_t to)
{
	if (m->join->pattern.kind == PATTERN_MASTER)
		return from == m->join->pattern.master;
	return (to + m->tasks - from) % m->tasks;
}

static int merge_unseen(struct merging *m)
{
	const struct pattern *p = &m->join->pattern;
	double *sums = calloc(3 * (size_t)m->tasks + 3, sizeof(*sums));
	double *bytes = sums, *messages = sums + m->tasks + 1, *pairs = messages + m->tasks + 1;

	if (!sums)
		return -ENOMEM;
	for (uint32_t a = 0; a < m->tasks; a++)
		for (uint32_t b = 0; b < m->tasks; b++) {
			uint32_t like = likeness(m, a, b);

			if (a == b || !m->seen[at(m, a, b)] || !pattern_pair(p, m->tasks, a, b))
				continue;
			bytes[like] += m->bytes[at(m, a, b)];
			messages[like] += m->messages[at(m, a, b)];
			pairs[like]++;
		}
	for (uint32_t a = 0; a < m->tasks; a++)
		for (uint32_t b = 0; b < m->tasks; b++) {
			uint32_t like = likeness(m, a, b);
			size_t k = at(m, a, b);

			if (a == b || m->seen[k] || could_see(m, a, b) || pairs[like] < 1 ||
			    !pattern_pair(p, m->tasks, a, b))
				continue;
			m->bytes[k] = bytes[like] / pairs[like];
			m->messages[k] = messages[like] / pairs[like];
		}
	free(sums);
	return 0;
}

static int more_bytes_first(const void *a, const void *b)
{
	const struct profile_pair *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int merge_result(const struct merging *m, struct profile_talk *out)
{
	size_t n = 0;

	for (size_t i = 0; i < (size_t)m->tasks * m->tasks; i++)
		n += m->bytes[i] >= LEAST;
	out->pairs = calloc(n + 1, sizeof(*out->pairs));
	if (!out->pairs)
		return -ENOMEM;
	for (uint32_t a = 0; a < m->tasks; a++)
		for (uint32_t b = 0; b < m->tasks; b++)
			if (m->bytes[at(m, a, b)] >= LEAST)
				out->pairs[out->n++] = (struct profile_pair){
					.from = (uint16_t)a,
					.to = (uint16_t)b,
					.seen = m->seen[at(m, a, b)],
					.bytes = m->bytes[at(m, a, b)],
					.messages = m->messages[at(m, a, b)],
				};
	qsort(out->pairs, out->n, sizeof(*out->pairs), more_bytes_first);
	if (out->n > PROFILE_PAIRS_MAX)
		out->n = PROFILE_PAIRS_MAX;
	return out->n ? 0 : -ENODATA;
}

int profile_talk_merge(struct profile_talk *t, const struct join *join,
		       const struct profile_talk *last)
{
	struct merging m = {.tasks = join->tasks, .join = join};
	size_t square = (size_t)join->tasks * join->tasks + 1;
	int rc = -ENOMEM;

	*t = (struct profile_talk){
		.runs = last && last->tasks == join->tasks ? last->runs + 1 : 1,
		.tasks = join->tasks,
		.pattern = join->pattern.kind,
		.master = join->pattern.kind == PATTERN_MASTER ? join->pattern.master : 0,
	};
	if (join->tasks > PROFILE_TALK_TASKS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < join->ncells; i++)
		m.inside |= join->cells[i].inside;
	m.bytes = calloc(square, sizeof(*m.bytes));
	m.messages = calloc(square, sizeof(*m.messages));
	m.seen = calloc(square, sizeof(*m.seen));
	if (m.bytes && m.messages && m.seen) {
		merge_last(&m, last);
		merge_run(&m, t->runs == 1);
		rc = merge_unseen(&m);
	}
	if (!rc)
		rc = merge_result(&m, t);
	free(m.bytes);
	free(m.messages);
	free(m.seen);
	if (rc)
		profile_talk_fini(t);
	return rc;
}

double profile_talk_com_ms(const struct profile_talk *t, uint32_t rank, double mb_per_s,
			   double message_ms)
{
	double ms = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->pairs[i].from == rank || t->pairs[i].to == rank)
			ms += t->pairs[i].bytes / (mb_per_s * 1e3) +
			      t->pairs[i].messages * message_ms;
	return ms;
}

/* --- the store -------------------------------------------------------------------------- */

static void talk_put_number(uint8_t *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t talk_get_number(const uint8_t *in, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)in[i] << 8 * i;
	return value;
}

static int profile_talk_write(struct profile_store *s, uid_t uid, const char *class_name,
			      const struct profile_talk *t, struct iocom_err *err)
{
	/* Only of a class that is known: that bounds their number. */
	static const char sql[] =
		"INSERT OR REPLACE INTO talk SELECT ?1,?2,?3,?4,?5,?6,?7 WHERE EXISTS"
		"(SELECT 1 FROM profile WHERE uid=?1 AND class=?2)";
	uint8_t *packed = malloc(t->n * PAIR_BYTES + 1);
	sqlite3_stmt *st = packed ? profile_statement(s, sql) : NULL;
	int rc;

	if (!st) {
		free(packed);
		return packed ? profile_failed(s, "write", err)
			      : iocom_err_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct profile_pair *p = &t->pairs[i];
		uint8_t *at = packed + i * PAIR_BYTES;

		talk_put_number(at, p->from | (p->seen ? SEEN : 0), 2);
		talk_put_number(at + 2, p->to, 2);
		talk_put_number(at + 4, (uint64_t)llround(p->bytes), 8);
		talk_put_number(at + 12, (uint64_t)llround(p->messages), 8);
	}
	sqlite3_bind_int64(st, 3, t->tasks);
	sqlite3_bind_int64(st, 4, t->runs);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)t->pattern);
	sqlite3_bind_int64(st, 6, t->master);
	sqlite3_bind_blob(st, 7, packed, (int)(t->n * PAIR_BYTES), SQLITE_STATIC);
	rc = profile_finish(s, st, uid, class_name, err);
	free(packed);
	return rc;
}

/* Takes the row at which ST stands; what a damaged file has is not believed.  Returns as _get. */
static int profile_talk_take(struct profile_talk *t, sqlite3_stmt *st)
{
	const uint8_t *packed = sqlite3_column_blob(st, 4);
	size_t n = (size_t)sqlite3_column_bytes(st, 4) / PAIR_BYTES;
	int64_t tasks = sqlite3_column_int64(st, 0), runs = sqlite3_column_int64(st, 1);
	int64_t pattern = sqlite3_column_int64(st, 2), master = sqlite3_column_int64(st, 3);

	if (tasks < 1 || tasks > PROFILE_TALK_TASKS_MAX || runs < 1 || runs > UINT32_MAX ||
	    pattern < 0 || pattern >= PATTERNS || master < 0 || master >= tasks || !n ||
	    n > PROFILE_PAIRS_MAX)
		return -ENOENT;
	*t = (struct profile_talk){.runs = (uint32_t)runs,
				   .tasks = (uint32_t)tasks,
				   .pattern = (enum pattern_kind)pattern,
				   .master = (uint32_t)master};
	t->pairs = calloc(n, sizeof(*t->pairs));
	if (!t->pairs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *in = packed + i * PAIR_BYTES;
		uint64_t from = talk_get_number(in, 2), bytes = talk_get_number(in + 4, 8);
		struct profile_pair p = {.from = (uint16_t)(from & ~(uint64_t)SEEN),
					 .to = (uint16_t)talk_get_number(in + 2, 2),
					 .seen = from & SEEN,
					 .bytes = (double)bytes,
					 .messages = (double)talk_get_number(in + 12, 8)};

		if (p.from < tasks && p.to < tasks && p.from != p.to)
			t->pairs[t->n++] = p;
	}
	return 0;
}

int profile_talk_get(struct profile_store *s, uid_t uid, const char *class_name,
		     struct profile_talk *t, struct iocom_err *err)
{
	static const char sql[] = "SELECT tasks, runs, pattern, master, pairs FROM talk WHERE"
				  " uid=?1 AND class=?2";
	sqlite3_stmt *st;
	int rc;

	*t = (struct profile_talk){0};
	if (!has_tasks(class_name)) /* a list of all classes asks for each */
		return -ENOENT;
	st = profile_statement(s, sql);
	if (!st)
		return profile_failed(s, "read", err);
	profile_bind(st, uid, class_name);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		rc = profile_talk_take(t, st);
	else
		rc = rc == SQLITE_DONE ? -ENOENT : profile_failed(s, "read", err);
	profile_done(st);
	return rc == -ENOMEM ? iocom_err_set(err, rc, "out of memory") : rc;
}

int profile_talk_learn(struct profile_store *s, uid_t uid, const char *class_name,
		       const struct join *join, struct iocom_err *err)
{
	struct profile_talk last, merged;
	int rc = profile_talk_get(s, uid, class_name, &last, err);
	bool known = !rc;

	if (rc && rc != -ENOENT)
		return rc;
	rc = profile_talk_merge(&merged, join, known ? &last : NULL);
	profile_talk_fini(&last);
	if (rc == -ENODATA || rc == -E2BIG)
		return 0; /* nothing to learn */
	if (rc)
		return iocom_err_set(err, rc, "out of memory");
	rc = profile_run(s, "BEGIN IMMEDIATE", err);
	if (!rc) {
		rc = profile_talk_write(s, uid, class_name, &merged, err);
		rc = profile_end_transaction(s, rc, err);
	}
	profile_talk_fini(&merged);
	return rc;
}
