/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Filter and order of the rows; see top_rows.h. */
#include "top_rows.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 64

/* A job is of UID when the tasks we see in it are, and there is one. */
static bool job_is_of(const json_t *tasks, const char *job, uid_t uid)
{
	const json_t *task;
	bool any = false;
	size_t i;

	json_array_foreach (tasks, i, task) {
		if (strcmp(top_string(task, "job"), job))
			continue;
		if ((uid_t)top_number(task, "uid") != uid)
			return false;
		any = true;
	}
	return any;
}

static bool is_of(const struct top_row *row, const json_t *tasks, uid_t uid)
{
	if (json_object_get(row->source, "uid"))
		return row->uid == uid;
	return *row->job && job_is_of(tasks, row->job, uid);
}

/* Every word of TEXT, in any case, in one of the row's texts. */
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
		    !strstr(pid, word))
			return false;
		text += n;
	}
	return true;
}

bool top_row_wanted(const struct top_row *row, const json_t *tasks,
		    const struct top_model_options *o)
{
	return (!o->active || !row->idle) && (!o->io || row->io) &&
	       (!o->filter_uid || is_of(row, tasks, o->uid)) &&
	       (!o->text || has_words(row, o->text));
}

static const char *row_text(const struct top_row *row, enum top_key key)
{
	return key == TOP_USER ? row->user : key == TOP_JOB ? row->job : row->command;
}

/* Numbers downwards but for the pid, text upwards; ties in order of share, then pid. */
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
