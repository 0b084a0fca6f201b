/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Turns the document of `iocom top` into rows; see top_model.h. */
#include "balancer/top/top_model.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/top/top_index.h"
#include "balancer/top/top_rows.h"
#include "user/utf8.h"

#define USER_NAME_MAX 33
#define JOB_BIT	      (1ULL << 63)
#define KEY_FIELDS    3
#define SESSION	      "session:"

struct user {
	struct top_entry entry; /* id: the uid */
	char name[USER_NAME_MAX];
	char session[sizeof(SESSION) + USER_NAME_MAX]; /* what the user's sessions are called */
};

struct top_model {
	json_t *document, *previous;
	struct top_row *rows;
	size_t nrows, room;
	struct top_index users; /* names already looked up */
};

/* How to compute the number of a key: the sum of up to three fields, times SCALE. */
static const struct {
	const char *name;
	bool text;
	const char *field[KEY_FIELDS];
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

/*
 * Returns whether an element of degraded[] (the name of a field or column, or an object with one)
 * means KEY.
 */
static bool names_key(const json_t *element, enum top_key key)
{
	static const char *const members[] = {"column", "field", "name"};
	const char *name = json_string_value(element);

	for (size_t i = 0; !name && i < sizeof(members) / sizeof(members[0]); i++)
		name = json_string_value(json_object_get(element, members[i]));
	if (!name)
		return false;
	for (unsigned f = 0; f < KEY_FIELDS && keys[key].field[f]; f++)
		if (!strncmp(keys[key].field[f], name, strlen(name)) &&
		    (!keys[key].field[f][strlen(name)] ||
		     !strcmp(keys[key].field[f] + strlen(name), "_per_s")))
			return true;
	return !strcmp(name, keys[key].name);
}

bool top_key_degraded(const json_t *document, enum top_key key)
{
	const json_t *element;
	size_t i;

	json_array_foreach (json_object_get(document, "degraded"), i, element)
		if (names_key(element, key))
			return true;
	return false;
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
	json_decref(model->previous);
	top_index_clear(&model->users);
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
				"the agent's answer has no %s[]; it may be of another version",
				arrays[i]);
		json_array_foreach (array, at, element)
			if (!json_is_object(element))
				return iocom_err_set(err, -EPROTO,
						     "the agent's %s[] holds no objects",
						     arrays[i]);
	}
	json_decref(model->previous);
	model->previous = model->document;
	model->document = json_incref(document);
	model->nrows = 0;
	return 0;
}

/* The duration of counting in ns. */
static double top_model_span_of(const json_t *document)
{
	return top_number(document, "time_ns") - top_number(document, "since_ns");
}

const json_t *top_model_previous(const struct top_model *model)
{
	/*
	 * A shorter duration means that counting began again.  The calendar may jump, so it
	 * cannot tell.
	 */
	return model->previous && top_model_span_of(model->document) >=
					  top_model_span_of(model->previous)
		       ? model->previous
		       : NULL;
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
	user->entry.id = uid;
	if (!getpwuid_r(uid, &pw, buffer, sizeof(buffer), &found) && found)
		utf8_copy(user->name, sizeof(user->name), pw.pw_name, USER_NAME_MAX);
	else
		snprintf(user->name, sizeof(user->name), "%u", uid);
	snprintf(user->session, sizeof(user->session), SESSION "%s", user->name);
	return user;
}

static const struct user *top_model_user(struct top_model *model, uid_t uid)
{
	static const struct user unknown = {.name = "?", .session = SESSION "?"};
	struct user *user = top_index_find(&model->users, uid);

	if (user)
		return user;
	user = user_ask(uid);
	if (!user)
		return &unknown;
	if (top_index_add(&model->users, &user->entry)) {
		free(user);
		return &unknown;
	}
	return user;
}

/*
 * What people call the row's job. An agent knows only the users in its machine's own file, so a
 * session may have a number that a directory service has a name for.
 */
static const char *top_model_label(struct top_model *model, const json_t *source)
{
	const char *name = top_string(source, "name"), *number = name + strlen(SESSION);
	unsigned long uid;
	char *end;

	if (!*name)
		return top_string(source, "job");
	if (strncmp(name, SESSION, strlen(SESSION)) != 0 || *number < '0' || *number > '9')
		return name;
	uid = strtoul(number, &end, 10);
	return *end || uid >= UINT32_MAX ? name : top_model_user(model, (uid_t)uid)->session;
}

uint64_t top_row_id(const json_t *element)
{
	const json_t *pid = json_object_get(element, "pid");
	const json_t *cgroup = json_object_get(element, "cgroup_id");

	return pid ? (uint64_t)json_integer_value(pid)
		   : (uint64_t)json_integer_value(cgroup) | JOB_BIT;
}

static bool any(const struct top_row *row, const enum top_key *which, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (row->value[which[i]] > 0)
			return true;
	return false;
}

static void row_fill(struct top_model *model, struct top_row *row, json_t *source, bool is_job,
		     const struct top_model_options *o)
{
	static const enum top_key io[] = {TOP_READ, TOP_WRITE,	  TOP_IMPLICIT, TOP_OPS,
					  TOP_SENT, TOP_RECEIVED, TOP_LOCAL,	TOP_MESSAGES};
	static const enum top_key work[] = {TOP_CPU, TOP_FAULTS};
	const json_t *uid = json_object_get(source, "uid");

	*row = (struct top_row){.source = source, .is_job = is_job, .id = top_row_id(source)};
	row->comm = top_string(source, "comm");
	row->command = row->comm;
	row->job = top_string(source, "job");
	row->label = top_model_label(model, source);
	row->resource = top_string(source, "share_of");
	row->uid = (uid_t)json_integer_value(uid);
	row->user = uid ? top_model_user(model, row->uid)->name : "";
	row->exited = json_is_true(json_object_get(source, "exited"));
	for (unsigned i = 0; i < TOP_KEYS; i++)
		for (unsigned f = 0; f < KEY_FIELDS && keys[i].field[f]; f++)
			row->value[i] += top_number(source, keys[i].field[f]) * keys[i].scale;
	row->io = any(row, io, sizeof(io) / sizeof(io[0]));
	row->idle = !row->io && !row->exited && !any(row, work, sizeof(work) / sizeof(work[0]));
	row->weight = row->value[o->key];
	if (o->commands && o->proc && !is_job) {
		const char *line = top_proc_command(o->proc, (pid_t)row->value[TOP_PID], row->comm);

		row->command = line ? line : row->comm;
	}
}

static int top_model_reserve(struct top_model *model, size_t n)
{
	struct top_row *grown;

	if (n <= model->room)
		return 0;
	grown = reallocarray(model->rows, n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	model->rows = grown;
	model->room = n;
	return 0;
}

/* Makes the rows of one array; unwanted rows are included only if a tree may need them. */
static void top_model_fill(struct top_model *model, json_t *array, bool is_job,
			   const struct top_model_options *o)
{
	const json_t *tasks = json_object_get(model->document, "tasks");
	json_t *element;
	size_t i;

	json_array_foreach (array, i, element) {
		struct top_row *row = &model->rows[model->nrows];

		row_fill(model, row, element, is_job, o);
		row->context = !top_row_wanted(row, tasks, o);
		if (!row->context || o->tree)
			model->nrows++;
	}
}

int top_model_arrange(struct top_model *model, const struct top_model_options *options)
{
	json_t *tasks = json_object_get(model->document, "tasks");
	json_t *jobs = json_object_get(model->document, "jobs");
	struct top_model_options o = *options;
	bool both = o.jobs && o.tree;
	int rc;

	model->nrows = 0;
	rc = top_model_reserve(model, json_array_size(tasks) + json_array_size(jobs));
	if (rc)
		return rc;
	if (o.jobs)
		top_model_fill(model, jobs, true, &o);
	if (!o.jobs || both)
		top_model_fill(model, tasks, false, &o);
	if (o.fold)
		model->nrows = top_rows_fold(model->rows, model->nrows, &o);
	if (o.tree)
		return top_tree_arrange(model->rows, &model->nrows, &o);
	if (model->nrows)
		qsort_r(model->rows, model->nrows, sizeof(*model->rows), top_row_order, &o);
	return 0;
}

int top_model_find(struct top_model *model, uint64_t id, const struct top_model_options *options,
		   struct top_row *row)
{
	bool is_job = id & JOB_BIT;
	json_t *array = json_object_get(model->document, is_job ? "jobs" : "tasks");
	json_t *element;
	size_t i;

	json_array_foreach (array, i, element) {
		if (top_row_id(element) == id) {
			row_fill(model, row, element, is_job, options);
			return 0;
		}
	}
	return -ENOENT;
}

const struct top_row *top_model_rows(const struct top_model *model, size_t *n)
{
	*n = model->nrows;
	return model->rows;
}

/* Returns one array of the document, filtered, and sorted if SORTED. */
static json_t *filtered_array(struct top_model *model, const struct top_model_options *options,
			      bool jobs, bool sorted)
{
	struct top_model_options o = *options;
	json_t *array = json_object_get(model->document, jobs ? "jobs" : "tasks");
	json_t *out = json_array();
	int rc = out ? top_model_reserve(model, json_array_size(array)) : -ENOMEM;

	o.jobs = jobs;
	o.tree = false;
	model->nrows = 0;
	if (!rc)
		top_model_fill(model, array, jobs, &o);
	if (sorted && model->nrows)
		qsort_r(model->rows, model->nrows, sizeof(*model->rows), top_row_order, &o);
	for (size_t i = 0; !rc && i < model->nrows; i++)
		rc = json_array_append(out, model->rows[i].source);
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
