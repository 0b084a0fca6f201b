/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Filters and orders the rows; see top_rows.h. */
#include "balancer/top/top_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX   64
#define FOLDED_BIT (1ULL << 61)

/* Returns whether root has processes in jobs of this kind that look after a user's. */
static bool top_row_helped(const struct top_row *row)
{
	static const char *const kinds[] = {"slurm:", "htcondor:", "session:"};

	for (size_t i = 0; row->label != row->job && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(row->label, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

/* A job belongs to UID if it has visible tasks and all of them, but root's helpers, are UID's. */
static bool job_is_of(const json_t *tasks, const struct top_row *row, uid_t uid)
{
	bool helped = top_row_helped(row), any = false;
	const json_t *task;
	size_t i;

	json_array_foreach (tasks, i, task) {
		uid_t of = (uid_t)top_number(task, "uid");

		if (strcmp(top_string(task, "job"), row->job) != 0)
			continue;
		if (of != uid && (of || !helped))
			return false;
		any |= of == uid;
	}
	return any;
}

static bool is_of(const struct top_row *row, const json_t *tasks, uid_t uid)
{
	if (json_object_get(row->source, "uid"))
		return row->uid == uid;
	return *row->job && job_is_of(tasks, row, uid);
}

/* Returns whether each word of TEXT is in one of the row's texts, in upper or lower case. */
static bool has_words(const struct top_row *row, const char *text)
{
	char pid[24] = "", word[WORD_MAX];

	if (!row->is_job)
		snprintf(pid, sizeof(pid), "%.0f", row->value[TOP_PID]);
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t n = strcspn(text, " ");

		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (!strcasestr(row->comm, word) && !strcasestr(row->command, word) &&
		    !strcasestr(row->user, word) && !strcasestr(row->job, word) &&
		    !strcasestr(row->label, word) && !strstr(pid, word))
			return false;
		text += n;
	}
	return true;
}

bool top_row_wanted(const struct top_row *row, const json_t *tasks,
		    const struct top_model_options *o)
{
	bool asked = o->text && *o->text;

	if (o->busy_jobs && !asked && row->is_job && row->idle && !(row->value[TOP_TASKS] > 0))
		return false;
	return (!o->active || !row->idle) && (!o->io || row->io) &&
	       (!o->filter_uid || is_of(row, tasks, o->uid)) &&
	       (!o->text || has_words(row, o->text));
}

static const char *row_text(const struct top_row *row, enum top_key key)
{
	return key == TOP_USER ? row->user : key == TOP_JOB ? row->label : row->command;
}

/* Numbers descend except the pid, text ascends; ties are ordered by share, then pid. */
int top_row_order(const void *a, const void *b, void *arg)
{
	const struct top_row *x = a, *y = b;
	const struct top_model_options *o = arg;
	int c;

	if (top_key_is_text(o->key))
		c = strcmp(row_text(x, o->key), row_text(y, o->key));
	else
		c = (x->weight < y->weight) - (x->weight > y->weight);
	if (o->key == TOP_PID)
		c = -c;
	if (o->reverse)
		c = -c;
	if (!c)
		c = (x->value[TOP_SHARE] < y->value[TOP_SHARE]) -
		    (x->value[TOP_SHARE] > y->value[TOP_SHARE]);
	if (!c)
		c = (x->value[TOP_PID] > y->value[TOP_PID]) -
		    (x->value[TOP_PID] < y->value[TOP_PID]);
	return c ? c : strcmp(x->job, y->job);
}

/* Orders ended tasks so that those which fold into one row are neighbours. */
static int fold_order(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int c = x->exited - y->exited;

	c = c ? c : x->context - y->context;
	c = c ? c : strcmp(x->comm, y->comm);
	c = c ? c : (x->uid > y->uid) - (x->uid < y->uid);
	return c ? c : strcmp(x->job, y->job);
}

static void fold_into(struct top_row *into, const struct top_row *row)
{
	/* Unlike the pids, this id stays the same from reading to reading. */
	uint64_t id = 14695981039346656037ULL ^ row->uid;

	if (!into->folded) {
		into->folded = 1;
		for (const char *c = row->comm; *c; c++)
			id = (id ^ (unsigned char)*c) * 1099511628211ULL;
		for (const char *c = row->job; *c; c++)
			id = (id ^ (unsigned char)*c) * 1099511628211ULL;
		into->id = (id & (FOLDED_BIT - 1)) | FOLDED_BIT;
		into->command = into->comm;
	}
	if (row->value[TOP_SHARE] > into->value[TOP_SHARE] / into->folded)
		into->resource = row->resource;
	for (unsigned k = 0; k < TOP_KEYS; k++)
		if (k != TOP_PID)
			into->value[k] += row->value[k];
	into->io |= row->io;
	into->folded++;
}

size_t top_rows_fold(struct top_row *rows, size_t n, const struct top_model_options *options)
{
	size_t kept = 0;

	if (n)
		qsort(rows, n, sizeof(*rows), fold_order);
	for (size_t i = 0; i < n; i++) {
		struct top_row *last = kept ? &rows[kept - 1] : NULL;

		if (last && rows[i].exited && !rows[i].is_job && !last->is_job &&
		    !fold_order(last, &rows[i]))
			fold_into(last, &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	for (size_t i = 0; i < kept; i++)
		rows[i].weight = rows[i].value[options->key];
	return kept;
}
