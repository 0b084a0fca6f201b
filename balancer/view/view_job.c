/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Converts the job of a view between JSON and structures; see view_node.h. */
#include <errno.h>
#include <stdlib.h>

#include "balancer/view/view_node.h"

#define JOB(kind, member) FIELD_OF(kind, rules_request, member)
#define KNOWN(name)                                                                                \
	{                                                                                          \
		name, FIELD_ELSEWHERE, 0, 0                                                        \
	}

#define JOB_FIELDS                                                                                 \
	JOB(FIELD_NUMBER, cpu_ms), JOB(FIELD_NUMBER, io_per_ms), JOB(FIELD_NUMBER, request_kb),    \
		JOB(FIELD_NUMBER, reaccess), JOB(FIELD_NUMBER, memory_mb),                         \
		JOB(FIELD_NUMBER, faults_per_ms), JOB(FIELD_NUMBER, initial_mb),                   \
		JOB(FIELD_NUMBER, written_mb), JOB(FIELD_OPTIONAL, requests),                      \
		JOB(FIELD_COUNT, tasks), JOB(FIELD_COUNT, hops), KNOWN("com_ms"),                  \
		JOB(FIELD_NUMBER, implicit_share), JOB(FIELD_NUMBER, output_mb)

static const struct field job_fields[] = {JOB_FIELDS};
/* Those of the job that the decision is about; a charge brings no corrections. */
static const struct field asked_fields[] = {
	JOB_FIELDS,	 KNOWN("corrections"), KNOWN("correction"), KNOWN("held"),
	KNOWN("shared"), KNOWN("pairs"),       KNOWN("phases"),
};
static const struct field shared_fields[] = {
	FIELD_OF(FIELD_NUMBER, rules_shared, read_mb),
	FIELD_OF(FIELD_NUMBER, rules_shared, written_mb),
	KNOWN("server"),
	KNOWN("cached"),
};

/* Reads one value per task; missing ones are 0. */
static int read_com(struct field_reader *r, const json_t *list, uint32_t tasks, double **out)
{
	size_t mark = field_enter(r, "com_ms", 0), i;
	double *com_ms;
	json_t *value;
	int rc = 0;

	if (!json_is_array(list))
		return field_expected(r, "a list of numbers", list);
	if (json_array_size(list) > tasks)
		return field_fail(r, "expected at most %u numbers, one a task, found %zu", tasks,
				  json_array_size(list));
	com_ms = calloc(tasks, sizeof(*com_ms));
	if (!com_ms)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	json_array_foreach (list, i, value) {
		size_t inner = field_enter(r, NULL, i);

		rc = field_number(r, value, &com_ms[i]);
		if (rc) {
			free(com_ms);
			return rc;
		}
		field_leave(r, inner);
	}
	field_leave(r, mark);
	*out = com_ms;
	return 0;
}

/* --- who talks to whom --------------------------------------------------------- */

#define PHASES_MAX 1e9

static int read_pair(struct field_reader *r, const json_t *value, uint32_t tasks,
		     struct rules_pair *out)
{
	double number[4];

	if (!json_is_array(value) || json_array_size(value) != 4)
		return field_expected(r, "a list [from, to, bytes, messages]", value);
	for (size_t i = 0; i < 4; i++) {
		const json_t *one = json_array_get(value, i);
		size_t mark = field_enter(r, NULL, i);
		int rc = field_number(r, one, &number[i]);

		if (!rc && i < 2 && (!json_is_integer(one) || number[i] >= tasks))
			rc = field_expected(r, "the number of one of the job's tasks, from 0", one);
		if (rc)
			return rc;
		field_leave(r, mark);
	}
	*out = (struct rules_pair){(uint32_t)number[0], (uint32_t)number[1], number[2], number[3]};
	return 0;
}

static int read_job_pairs(struct field_reader *r, const json_t *list, struct rules_request *job,
			  struct view_job_own *own)
{
	size_t mark = field_enter(r, "pairs", 0), i;
	json_t *value;

	if (!json_is_array(list))
		return field_expected(r, "a list of lists [from, to, bytes, messages]", list);
	own->pairs = calloc(json_array_size(list) + 1, sizeof(*own->pairs));
	if (!own->pairs)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	json_array_foreach (list, i, value) {
		size_t inner = field_enter(r, NULL, i);
		int rc = read_pair(r, value, job->tasks, &own->pairs[i]);

		if (rc)
			return rc;
		field_leave(r, inner);
	}
	field_leave(r, mark);
	job->pairs = own->pairs;
	job->npairs = json_array_size(list);
	return 0;
}

static int read_phases(struct field_reader *r, const json_t *value, struct rules_request *job)
{
	size_t mark = field_enter(r, "phases", 0);
	double phases;
	int rc = field_number(r, value, &phases);

	if (!rc && (!json_is_integer(value) || phases > PHASES_MAX))
		rc = field_expected(r, "a whole number up to 1e9", value);
	if (rc)
		return rc;
	job->phases = (uint32_t)phases;
	field_leave(r, mark);
	return 0;
}

static json_t *pairs_json(const struct rules_request *job)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < job->npairs; i++) {
		const struct rules_pair *p = &job->pairs[i];

		if (json_array_append_new(list,
					  json_pack("[I,I,f,f]", (json_int_t)p->from,
						    (json_int_t)p->to, p->bytes, p->messages))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* --- corrections ---------------------------------------------------------------- */

static int view_job_factor(struct field_reader *r, const json_t *value, double *out)
{
	int rc = field_number(r, value, out);

	if (!rc && (*out < RULES_CORRECTION_MIN || *out > RULES_CORRECTION_MAX))
		rc = field_expected(r, "a factor from 0.25 to 1024", value);
	return rc;
}

/* Finds the node that the current path names. */
static int correction_node(struct field_reader *r, const struct view_places *places,
			   const char *name, uint32_t *node)
{
	const json_t *number = json_object_get(places->numbers, name);
	uint32_t at = number ? (uint32_t)json_integer_value(number) : VIEW_NOWHERE;

	if (number && places->place)
		at = places->place[at];
	*node = at;
	return at == VIEW_NOWHERE ? field_fail(r, "expected the name of a node of this view") : 0;
}

static int by_node(const void *a, const void *b)
{
	const struct rules_correction *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

/* Reads the value of one node. */
typedef int (*view_job_value)(struct field_reader *r, const json_t *value, double *out);

static int read_each_node(struct field_reader *r, const json_t *object,
			  const struct view_places *places, view_job_value read,
			  struct rules_correction *out)
{
	const char *name;
	json_t *value;
	int rc = 0;

	json_object_foreach ((json_t *)object, name, value) {
		size_t mark = field_enter(r, name, 0);

		rc = correction_node(r, places, name, &out->node);
		if (!rc)
			rc = read(r, value, &out->factor);
		if (rc)
			return rc;
		out++;
		field_leave(r, mark);
	}
	return 0;
}

/* Reads the list KEY of numbers by node, in the order of the nodes. */
static int read_by_node(struct field_reader *r, const char *key, const char *expected,
			const json_t *object, const struct view_places *places, view_job_value read,
			struct rules_correction **out)
{
	size_t mark = field_enter(r, key, 0), n = json_object_size(object);
	struct rules_correction *list;
	int rc;

	if (!json_is_object(object))
		return field_expected(r, expected, object);
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	rc = read_each_node(r, object, places, read, list);
	if (rc) {
		free(list);
		return rc;
	}
	qsort(list, n, sizeof(*list), by_node);
	*out = list;
	field_leave(r, mark);
	return 0;
}

static int read_corrections(struct field_reader *r, const json_t *object,
			    const struct view_places *places, struct rules_request *job,
			    struct view_job_own *own)
{
	int rc = read_by_node(r, "corrections", "an object of factors by the nodes' names", object,
			      places, view_job_factor, &own->corrections);

	job->corrections = own->corrections;
	job->ncorrections = rc ? 0 : json_object_size(object);
	return rc;
}

/* Reads the list KEY of MB by node into OUT, which is the caller's. */
static int read_mb_by_node(struct field_reader *r, const char *key, const json_t *object,
			   const struct view_places *places, struct rules_held **out)
{
	size_t n = json_object_size(object);
	struct rules_correction *list = NULL;
	int rc = read_by_node(r, key, "an object of MB by the nodes' names", object, places,
			      field_number, &list);

	if (!rc) {
		*out = calloc(n + 1, sizeof(**out));
		rc = *out ? 0 : iocom_err_set(r->err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; !rc && i < n; i++)
		(*out)[i] = (struct rules_held){list[i].node, list[i].factor};
	free(list);
	return rc;
}

static int read_held(struct field_reader *r, const json_t *object, const struct view_places *places,
		     struct rules_request *job, struct view_job_own *own)
{
	int rc = read_mb_by_node(r, "held", object, places, &own->held);

	job->held = own->held;
	job->nheld = rc ? 0 : json_object_size(object);
	return rc;
}

/* --- what it does on a shared file system -------------------------------------------- */

static int read_server(struct field_reader *r, const json_t *name, const struct view_places *places,
		       struct rules_shared *shared)
{
	size_t mark = field_enter(r, "server", 0);
	int rc = json_is_string(name)
			 ? correction_node(r, places, json_string_value(name), &shared->server)
			 : field_expected(r, "the name of a node", name);

	shared->served = !rc;
	if (!rc)
		field_leave(r, mark);
	return rc;
}

static int read_shared(struct field_reader *r, const json_t *object,
		       const struct view_places *places, struct rules_shared *shared,
		       struct view_job_own *own)
{
	size_t mark = field_enter(r, "shared", 0);
	const json_t *server, *cached;
	int rc;

	if (!json_is_object(object))
		return field_expected(r, "an object", object);
	rc = field_read(r, object, shared_fields, FIELD_COUNT_OF(shared_fields), shared);
	server = json_object_get(object, "server");
	cached = json_object_get(object, "cached");
	if (!rc && server)
		rc = read_server(r, server, places, shared);
	if (!rc && cached)
		rc = read_mb_by_node(r, "cached", cached, places, &own->cached);
	if (rc)
		return rc;
	shared->cached = own->cached;
	shared->ncached = json_object_size(cached);
	field_leave(r, mark);
	return 0;
}

static int read_correction(struct field_reader *r, const json_t *value, double *out)
{
	size_t mark = field_enter(r, "correction", 0);
	int rc = view_job_factor(r, value, out);

	if (!rc)
		field_leave(r, mark);
	return rc;
}

static int read_corrected(struct field_reader *r, const json_t *object,
			  const struct view_places *places, struct rules_request *job,
			  struct view_job_own *own)
{
	const json_t *nodes = json_object_get(object, "corrections");
	const json_t *others = json_object_get(object, "correction");
	const json_t *held = json_object_get(object, "held");
	const json_t *shared = json_object_get(object, "shared");
	int rc = others ? read_correction(r, others, &job->correction) : 0;

	if (!rc && held)
		rc = read_held(r, held, places, job, own);
	if (!rc && shared)
		rc = read_shared(r, shared, places, &job->shared, own);
	if (!rc && json_object_get(object, "pairs"))
		rc = read_job_pairs(r, json_object_get(object, "pairs"), job, own);
	if (!rc && json_object_get(object, "phases"))
		rc = read_phases(r, json_object_get(object, "phases"), job);
	return rc || !nodes ? rc : read_corrections(r, nodes, places, job, own);
}

typedef const char *view_job_name(const void *arg, uint32_t index);

static json_t *held_json(const struct rules_held *held, size_t n, view_job_name *name,
			 const void *arg)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < n; i++) {
		const char *node = name(arg, held[i].node);

		if (node && field_set(object, node, json_real(held[i].mb))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *shared_json(const struct rules_shared *shared, view_job_name *name, const void *arg)
{
	json_t *object = json_object();
	const char *server = shared->served ? name(arg, shared->server) : NULL;
	int rc = object ? field_write(object, shared_fields, FIELD_COUNT_OF(shared_fields), shared)
			: -ENOMEM;

	if (!rc && server)
		rc = field_set(object, "server", json_string(server));
	if (!rc && shared->ncached)
		rc = field_set(object, "cached",
			       held_json(shared->cached, shared->ncached, name, arg));
	if (!rc)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *corrections_json(const struct rules_request *job,
				const char *(*name)(const void *arg, uint32_t index),
				const void *arg)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < job->ncorrections; i++) {
		const struct rules_correction *c = &job->corrections[i];
		const char *node = name(arg, c->node);

		if (node && field_set(object, node, json_real(c->factor))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

/* --- jobs ----------------------------------------------------------------------- */

static int read_fields(struct field_reader *r, const json_t *object, bool asked,
		       struct rules_request *job)
{
	int rc = asked ? field_read(r, object, asked_fields, FIELD_COUNT_OF(asked_fields), job)
		       : field_read(r, object, job_fields, FIELD_COUNT_OF(job_fields), job);

	if (!rc && (job->tasks < 1 || job->tasks > VIEW_TASKS_MAX)) {
		field_enter(r, "tasks", 0);
		return field_fail(r, "expected a whole number from 1 to %u, found %u",
				  VIEW_TASKS_MAX, job->tasks);
	}
	return rc;
}

int view_job_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		  const struct view_places *places, struct rules_request *job,
		  struct view_job_own *own)
{
	const json_t *list = json_object_get(object, "com_ms");
	int rc;

	*own = (struct view_job_own){0};
	*job = (struct rules_request){
		.request_kb = 250,
		.reaccess = rates == RULES_RATES_WALL ? 0 : 5,
		.requests = -1,
		.tasks = 1,
	};
	rc = read_fields(r, object, places != NULL, job);
	if (!rc && list)
		rc = read_com(r, list, job->tasks, &own->com_ms);
	job->com_ms = own->com_ms;
	if (!rc && places)
		rc = read_corrected(r, object, places, job, own);
	if (rc)
		view_job_free(own);
	return rc;
}

void view_job_free(struct view_job_own *own)
{
	free(own->com_ms);
	free(own->corrections);
	free(own->held);
	free(own->cached);
	free(own->pairs);
	*own = (struct view_job_own){0};
}

static json_t *com_json(const struct rules_request *job)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < job->tasks; i++) {
		if (json_array_append_new(list, json_real(job->com_ms[i]))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *view_job_json(const struct rules_request *job,
		      const char *(*name)(const void *arg, uint32_t index), const void *arg)
{
	json_t *object = json_object();
	int rc =
		object ? field_write(object, job_fields, FIELD_COUNT_OF(job_fields), job) : -ENOMEM;

	if (!rc && job->com_ms)
		rc = field_set(object, "com_ms", com_json(job));
	if (!rc && name && job->ncorrections)
		rc = field_set(object, "corrections", corrections_json(job, name, arg));
	if (!rc && name && job->nheld)
		rc = field_set(object, "held", held_json(job->held, job->nheld, name, arg));
	if (!rc && name && (job->shared.read_mb > 0 || job->shared.written_mb > 0))
		rc = field_set(object, "shared", shared_json(&job->shared, name, arg));
	if (!rc && name && job->npairs)
		rc = field_set(object, "pairs", pairs_json(job));
	if (!rc && name && job->phases)
		rc = field_set(object, "phases", json_integer(job->phases));
	if (!rc && name && job->correction > 0)
		rc = field_set(object, "correction", json_real(job->correction));
	if (!rc)
		return object;
	json_decref(object);
	return NULL;
}

bool view_job_same(const struct rules_request *a, const struct rules_request *b)
{
	return field_same(job_fields, FIELD_COUNT_OF(job_fields), a, b);
}
