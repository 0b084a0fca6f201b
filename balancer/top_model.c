/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The document of `iocom top` as rows; see top_model.h. */
#include "top_model.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_NAME_MAX 33

struct user {
	uid_t uid;
	char name[USER_NAME_MAX];
};

struct top_model {
	json_t *document;
	struct top_row *rows;
	size_t nrows, room;
	struct user **users; /* names asked for once, in order of uid */
	size_t nusers;
};

/* The number of a key: the sum of up to three fields, times SCALE. */
static const struct {
	const char *name;
	bool text;
	const char *field[3];
	double scale;
} keys[TOP_KEYS] = {
	[TOP_PID] = {"pid", false, {"pid"}, 1},
	[TOP_USER] = {"user", true, {NULL}, 0},
	[TOP_COMMAND] = {"command", true, {NULL}, 0},
	[TOP_TASKS] = {"tasks", false, {"tasks"}, 1},
	[TOP_JOB] = {"job", true, {NULL}, 0},
	[TOP_READ] = {"read", false, {"explicit_read_bytes_per_s"}, 1},
	[TOP_WRITE] = {"write", false, {"explicit_write_bytes_per_s"}, 1},
	[TOP_IMPLICIT] = {"implicit", false, {"implicit_bytes_per_s"}, 1},
	[TOP_OPS] = {"ops", false, {"explicit_ops_per_s", "implicit_ops_per_s"}, 1},
	[TOP_SENT] = {"sent", false, {"sent_bytes_per_s"}, 1},
	[TOP_RECEIVED] = {"received", false, {"received_bytes_per_s"}, 1},
	[TOP_LOCAL] = {"local", false, {"local_bytes_per_s"}, 1},
	[TOP_MESSAGES] = {"messages", false, {"sent_messages_per_s", "received_messages_per_s"}, 1},
	[TOP_FAULTS] = {"faults", false, {"major_faults_per_s", "minor_faults_per_s"}, 1},
	[TOP_CPU] = {"cpu", false, {"cpu_ms_per_s"}, 1e-3},
	[TOP_RSS] = {"rss", false, {"rss_bytes"}, 1},
	[TOP_SHARE] = {"share", false, {"share"}, 1},
};

const char *top_key_name(enum top_key key)
{
	return (unsigned)key < TOP_KEYS ? keys[key].name : NULL;
}

int top_key_parse(const char *name, enum top_key *key)
{
	for (unsigned i = 0; i < TOP_KEYS; i++) {
		if (!strcasecmp(name, keys[i].name)) {
			*key = i;
			return 0;
		}
	}
	return -EINVAL;
}

bool top_key_is_text(enum top_key key)
{
	return keys[key].text;
}

double top_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

const char *top_string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

struct top_model *top_model_new(void)
{
	return calloc(1, sizeof(struct top_model));
}

void top_model_free(struct top_model *model)
{
	if (!model)
		return;
	json_decref(model->document);
	for (size_t i = 0; i < model->nusers; i++)
		free(model->users[i]);
	free(model->users);
	free(model->rows);
	free(model);
}

int top_model_set(struct top_model *model, json_t *document, struct iocom_err *err)
{
	static const char *const arrays[] = {"tasks", "jobs", "disks"};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		const json_t *array = json_object_get(document, arrays[i]);
		const json_t *element;
		size_t at;

		if (!json_is_array(array))
			return iocom_err_set(
				err, -EPROTO,
				"the agent's answer has no %s[]; is it of this version?",
				arrays[i]);
		json_array_foreach (array, at, element)
			if (!json_is_object(element))
				return iocom_err_set(err, -EPROTO,
						     "the agent's %s[] holds no objects",
						     arrays[i]);
	}
	json_decref(model->document);
	model->document = json_incref(document);
	model->nrows = 0;
	return 0;
}

const json_t *top_model_document(const struct top_model *model)
{
	return model->document;
}

static struct user *user_ask(uid_t uid)
{
	struct user *user = calloc(1, sizeof(*user));
	struct passwd pw, *found = NULL;
	char buffer[4096];

	if (!user)
		return NULL;
	user->uid = uid;
	if (!getpwuid_r(uid, &pw, buffer, sizeof(buffer), &found) && found)
		snprintf(user->name, sizeof(user->name), "%.32s", pw.pw_name);
	else
		snprintf(user->name, sizeof(user->name), "%u", uid);
	return user;
}

static const char *user_name(struct top_model *model, uid_t uid)
{
	size_t low = 0, high = model->nusers;
	struct user **grown, *user;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (model->users[middle]->uid == uid)
			return model->users[middle]->name;
		if (model->users[middle]->uid < uid)
			low = middle + 1;
		else
			high = middle;
	}
	grown = reallocarray(model->users, model->nusers + 1, sizeof(struct user *));
	if (!grown)
		return "?";
	model->users = grown;
	user = user_ask(uid);
	if (!user)
		return "?";
	memmove(grown + low + 1, grown + low, (model->nusers - low) * sizeof(struct user *));
	grown[low] = user;
	model->nusers++;
	return user->name;
}

static bool row_idle(const struct top_row *row)
{
	static const enum top_key rates[] = {TOP_READ,	   TOP_WRITE, TOP_IMPLICIT, TOP_SENT,
					     TOP_RECEIVED, TOP_LOCAL, TOP_CPU,	    TOP_FAULTS,
					     TOP_MESSAGES, TOP_OPS};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (row->value[rates[i]] > 0)
			return false;
	return !row->exited;
}

static void row_fill(struct top_model *model, struct top_row *row, json_t *source)
{
	const json_t *uid = json_object_get(source, "uid");

	*row = (struct top_row){.source = source};
	row->comm = top_string(source, "comm");
	row->job = top_string(source, "job");
	row->resource = top_string(source, "share_of");
	row->uid = (uid_t)json_integer_value(uid);
	row->user = uid ? user_name(model, row->uid) : "";
	row->exited = json_is_true(json_object_get(source, "exited"));
	for (unsigned i = 0; i < TOP_KEYS; i++)
		for (unsigned f = 0; f < 3 && keys[i].field[f]; f++)
			row->value[i] += top_number(source, keys[i].field[f]) * keys[i].scale;
	row->idle = row_idle(row);
}

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

static bool shown(const struct top_model *model, const json_t *element,
		  const struct top_model_options *o)
{
	const json_t *uid = json_object_get(element, "uid");

	if (!o->filter_uid)
		return true;
	if (uid)
		return (uid_t)json_integer_value(uid) == o->uid;
	return *top_string(element, "job") && job_is_of(json_object_get(model->document, "tasks"),
							top_string(element, "job"), o->uid);
}

static const char *row_text(const struct top_row *row, enum top_key key)
{
	return key == TOP_USER ? row->user : key == TOP_JOB ? row->job : row->comm;
}

/* Numbers downwards but for the pid, text upwards; ties in order of share, then pid. */
static int row_order(const void *a, const void *b, void *arg)
{
	const struct top_row *x = a, *y = b;
	const struct top_model_options *o = arg;
	int c;

	if (top_key_is_text(o->key))
		c = strcmp(row_text(x, o->key), row_text(y, o->key));
	else
		c = (x->value[o->key] < y->value[o->key]) - (x->value[o->key] > y->value[o->key]);
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

int top_model_arrange(struct top_model *model, const struct top_model_options *options)
{
	json_t *array = json_object_get(model->document, options->jobs ? "jobs" : "tasks");
	struct top_model_options o = *options;
	json_t *element;
	size_t n = json_array_size(array), i;

	model->nrows = 0;
	if (n > model->room) {
		struct top_row *grown = reallocarray(model->rows, n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		model->rows = grown;
		model->room = n;
	}
	json_array_foreach (array, i, element)
		if (shown(model, element, &o))
			row_fill(model, &model->rows[model->nrows++], element);
	if (model->nrows)
		qsort_r(model->rows, model->nrows, sizeof(*model->rows), row_order, &o);
	return 0;
}

const struct top_row *top_model_rows(const struct top_model *model, size_t *n)
{
	*n = model->nrows;
	return model->rows;
}

/* One array of the document, filtered, and sorted if asked to. */
static json_t *filtered_array(struct top_model *model, const struct top_model_options *options,
			      bool jobs, bool sorted)
{
	struct top_model_options o = *options;
	json_t *array = json_object_get(model->document, jobs ? "jobs" : "tasks");
	json_t *out = json_array(), *element;
	size_t i;
	int rc = out ? 0 : -ENOMEM;

	o.jobs = jobs;
	if (sorted && !rc)
		rc = top_model_arrange(model, &o);
	for (i = 0; sorted && !rc && i < model->nrows; i++)
		rc = json_array_append(out, model->rows[i].source);
	if (!sorted && !rc)
		json_array_foreach (array, i, element)
			if (shown(model, element, &o))
				rc |= json_array_append(out, element);
	if (rc) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *top_model_filtered(struct top_model *model, const struct top_model_options *options,
			   bool sorted)
{
	json_t *copy = json_copy(model->document);

	if (copy &&
	    (json_object_set_new(copy, "tasks", filtered_array(model, options, false, sorted)) ||
	     json_object_set_new(copy, "jobs", filtered_array(model, options, true, sorted)))) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}
