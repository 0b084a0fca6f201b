/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reading a recording, line by line; see recording.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "json_msgpack.h"
#include "plan_json.h"
#include "recording_state.h"

#define CHUNK (256u * 1024)

struct recording {
	gzFile file;
	char *path;
	bool input; /* standard input: cannot be read again */
	struct recording_header header;
	struct recording_state state;
	bool whole;
	/* the text: bytes [at, used) are read but not yet taken */
	char *bytes;
	size_t at, used, room;
	bool drained, packed;
	/* the current line */
	struct field_reader reader;
	uint64_t number;
	json_t *document;
	struct recording_line line;
	struct rules_params params;
	struct rules_request request;
	double *com_ms;
	struct view_node *changed;
	uint32_t *indexes;
	size_t nchanged;
	uint32_t *order, *place; /* numbers of the view's nodes; a node's place among them */
	size_t norder;
	/* of recording_view: the state with the changed nodes in place */
	struct view_node *seen;
	size_t seen_room;
};

bool recording_recognise(const char *text, size_t length)
{
	static const char record[] = "\"record\"", header[] = "\"header\"";
	static const char packed[] = "\xa6record\xa6header";

	if (json_msgpack_begins(text, length))
		return memmem(text, length, packed, sizeof(packed) - 1);
	return length && text[0] == '{' && memmem(text, length, record, sizeof(record) - 1) &&
	       memmem(text, length, header, sizeof(header) - 1);
}

/* --- lines ------------------------------------------------------------------------ */

static int fail(const struct recording *r, struct iocom_err *err, int rc, const char *what)
{
	return iocom_err_set(err, rc, "%.250s:%llu: %s", r->path, (unsigned long long)r->number + 1,
			     what);
}

/* More text behind what is there.  0, negative errno; `drained` at the end. */
static int more(struct recording *r, struct iocom_err *err)
{
	int n, code;

	if (r->used - r->at > RECORDING_LINE_MAX)
		return fail(r, err, -EINVAL, "the line is longer than 64 MB");
	if (r->at > 0) {
		memmove(r->bytes, r->bytes + r->at, r->used - r->at);
		r->used -= r->at;
		r->at = 0;
	}
	if (r->room - r->used < CHUNK) {
		size_t room = r->room ? 2 * r->room : 2 * (size_t)CHUNK;
		char *grown;

		grown = realloc(r->bytes, room);
		if (!grown)
			return iocom_err_set(err, -ENOMEM, "out of memory");
		r->bytes = grown;
		r->room = room;
	}
	errno = 0;
	n = gzread(r->file, r->bytes + r->used, CHUNK);
	if (n < 0) {
		const char *text = gzerror(r->file, &code);

		if (code == Z_ERRNO)
			return iocom_err_set(err, errno ? -errno : -EIO, "cannot read %s: %s",
					     r->path, strerror(errno ? errno : EIO));
		return fail(r, err, code == Z_MEM_ERROR ? -ENOMEM : -EINVAL,
			    code == Z_BUF_ERROR ? "the packed file is cut off here" : text);
	}
	/* A packed file that ends in the middle of a block reads short, and tells it here. */
	gzerror(r->file, &code);
	if (n == 0 && code == Z_BUF_ERROR)
		return fail(r, err, -EINVAL, "the packed file is cut off here");
	r->used += (size_t)n;
	r->drained = n == 0;
	return 0;
}

static void take(struct recording *r, size_t length, struct iocom_err *err)
{
	r->number++;
	r->reader = (struct field_reader){
		.file = r->path,
		.err = err,
		.text = r->bytes + r->at,
		.text_length = length,
		.line = r->number,
	};
	r->at += length;
}

/* The same of MessagePack, which has no lines: one value after another. */
static int take_value(struct recording *r, struct iocom_err *err)
{
	size_t tried = 0, length = 0;
	const char *wrong;
	json_t *value = NULL;
	int rc;

	/* What goes on is tried again at twice the length: not for every piece of it. */
	do {
		while (!r->drained && r->used - r->at <= 2 * tried) {
			rc = more(r, err);
			if (rc)
				return rc;
		}
		tried = r->used - r->at;
		rc = json_msgpack_load(r->bytes + r->at, tried, &value, &length, &wrong);
		json_decref(value);
	} while (rc == -EAGAIN && !r->drained);
	if (r->at == r->used)
		return 0;
	/* What is wrong in it is found again, and told, where it is parsed. */
	take(r, rc == 0 ? length : r->used - r->at, err);
	return 1;
}

/* 1: the next line is the reader's text; 0: no more; negative errno. */
static int take_line(struct recording *r, struct iocom_err *err)
{
	char *end = NULL;
	size_t searched = 0;
	int rc;

	if (r->used == r->at && !r->drained) {
		rc = more(r, err);
		if (rc)
			return rc;
	}
	if (!r->number)
		r->packed = json_msgpack_begins(r->bytes, r->used);
	if (r->packed)
		return take_value(r, err);
	while (true) {
		if (r->used - r->at > searched)
			end = memchr(r->bytes + r->at + searched, '\n', r->used - r->at - searched);
		if (end || r->drained)
			break;
		searched = r->used - r->at;
		rc = more(r, err);
		if (rc)
			return rc;
	}
	if (!end && r->at == r->used)
		return 0;
	if (!end)
		return fail(r, err, -EINVAL, "the recording is cut off in this line");
	take(r, (size_t)(end - (r->bytes + r->at)), err);
	r->at++;
	return 1;
}

static void forget_line(struct recording *r)
{
	for (size_t i = 0; i < r->nchanged; i++)
		view_node_fini(&r->changed[i]);
	free(r->changed);
	free(r->indexes);
	free(r->order);
	free(r->place);
	free(r->com_ms);
	json_decref(r->document);
	r->document = NULL;
	r->changed = NULL;
	r->indexes = NULL;
	r->nchanged = 0;
	r->order = r->place = NULL;
	r->norder = 0;
	r->com_ms = NULL;
}

/* --- what a line says ------------------------------------------------------------- */

static int fields(struct recording *r, const json_t *object, enum recording_table table, void *base)
{
	size_t n;
	const struct field *list = recording_fields(table, &n);

	return field_read(&r->reader, object, list, n, base);
}

static int expected(struct recording *r, const char *key, const char *wanted)
{
	field_enter(&r->reader, key, 0);
	return field_expected(&r->reader, wanted, json_object_get(r->document, key));
}

/* OBJECT's "node", which is then taken out: the rest is the node's own. */
static int take_index(struct recording *r, json_t *object, uint64_t most, uint32_t *index)
{
	size_t mark = field_enter(&r->reader, "node", 0);
	uint64_t number;
	int rc = field_large(&r->reader, json_object_get(object, "node"), most, &number);

	if (rc)
		return rc;
	field_leave(&r->reader, mark);
	*index = (uint32_t)number;
	json_object_del(object, "node");
	return 0;
}

static int take_name(struct recording *r, uint32_t index, const char *name)
{
	int rc = recording_state_name(&r->state, index, name);

	if (rc != -EEXIST)
		return rc;
	field_enter(&r->reader, "name", 0);
	return field_fail(&r->reader, "expected a name of its own, found that of another node");
}

static int node_line(struct recording *r)
{
	struct recording_state *s = &r->state;
	struct view_node *node;
	uint32_t index;
	int rc = take_index(r, r->document, s->n < RECORDING_NODES_MAX ? s->n : s->n - 1, &index);
	struct view_node copy;

	if (!rc && index == s->n)
		rc = recording_state_add(s);
	if (rc)
		return rc;
	json_object_del(r->document, "record");
	json_object_del(r->document, "time_ms");
	node = &s->nodes[index];
	copy = *node;
	rc = view_machine_read(&r->reader, r->document, &copy);
	if (!rc)
		rc = take_name(r, index, copy.node.name);
	if (!rc)
		*node = copy; /* its tasks stay its own */
	r->line.kind = RECORDING_NODE;
	r->line.node = index;
	return rc;
}

static int vector_line(struct recording *r)
{
	uint32_t index;
	int rc = r->state.n ? take_index(r, r->document, r->state.n - 1, &index)
			    : expected(r, "node", "a node that was told before");

	if (rc)
		return rc;
	json_object_del(r->document, "record");
	json_object_del(r->document, "time_ms");
	r->line.kind = RECORDING_NODE;
	r->line.node = index;
	return view_load_read(&r->reader, r->document, r->header.params.rates,
			      &r->state.nodes[index]);
}

static int submit_line(struct recording *r)
{
	struct recording_job *j = &r->line.job;
	int rc;

	r->line.kind = RECORDING_SUBMIT;
	*j = (struct recording_job){.tasks = 1, .requests = -1, .request_kb = 250};
	rc = fields(r, r->document, RECORDING_T_JOB, j);
	if (!rc && !j->id[0])
		rc = expected(r, "job", "the job's id");
	if (!rc && j->home >= r->state.n)
		rc = expected(r, "home", "the number of a node that was told before");
	if (!rc && (j->tasks < 1 || j->tasks > VIEW_TASKS_MAX))
		rc = expected(r, "tasks", "a whole number from 1 to 1000000");
	return rc;
}

static int finish_line(struct recording *r)
{
	struct recording_finish *f = &r->line.finish;
	const json_t *measured = json_object_get(r->document, "measured");
	int rc;

	r->line.kind = RECORDING_FINISH;
	*f = (struct recording_finish){.has_measured = measured != NULL};
	rc = fields(r, r->document, RECORDING_T_FINISH, f);
	if (!rc && !f->id[0])
		rc = expected(r, "job", "the job's id");
	if (!rc && f->node >= r->state.n)
		rc = expected(r, "node", "the number of a node that was told before");
	if (!rc && measured) {
		field_enter(&r->reader, "measured", 0);
		rc = fields(r, measured, RECORDING_T_MEASURED, &f->measured);
	}
	return rc;
}

static int changed_node(struct recording *r, json_t *object)
{
	size_t n = r->nchanged;
	int rc;

	if (!json_is_object(object))
		return field_expected(&r->reader, "a node", object);
	rc = r->state.n ? take_index(r, object, r->state.n - 1, &r->indexes[n])
			: field_fail(&r->reader, "no node was told before");
	if (rc)
		return rc;
	view_node_init(&r->changed[n], r->indexes[n]);
	r->nchanged++;
	return view_node_read(&r->reader, object, r->header.params.rates, &r->changed[n]);
}

static int decision_changed(struct recording *r)
{
	const json_t *list = json_object_get(r->document, "changed");
	size_t mark, i;
	json_t *object;
	int rc = 0;

	if (!list)
		return 0;
	if (!json_is_array(list))
		return expected(r, "changed", "a list of nodes");
	r->changed = calloc(json_array_size(list) + 1, sizeof(*r->changed));
	r->indexes = calloc(json_array_size(list) + 1, sizeof(*r->indexes));
	if (!r->changed || !r->indexes)
		return -ENOMEM;
	mark = field_enter(&r->reader, "changed", 0);
	json_array_foreach (list, i, object) {
		size_t inner = field_enter(&r->reader, NULL, i);

		rc = changed_node(r, object);
		if (rc)
			return rc;
		field_leave(&r->reader, inner);
	}
	field_leave(&r->reader, mark);
	return 0;
}

#define NOWHERE UINT32_MAX

static int ordered_node(struct recording *r, const json_t *value)
{
	uint64_t number;
	int rc = field_large(&r->reader, value, r->state.n - 1, &number);

	if (rc)
		return rc;
	if (r->place[number] != NOWHERE)
		return field_fail(&r->reader, "node %u is there twice", (unsigned int)number);
	r->place[number] = (uint32_t)r->norder;
	r->order[r->norder++] = (uint32_t)number;
	return 0;
}

static int decision_order(struct recording *r)
{
	const json_t *list = json_object_get(r->document, "nodes");
	const json_t *value;
	size_t mark, i;

	if (!list)
		return 0;
	if (!json_is_array(list) || !r->state.n)
		return expected(r, "nodes", "a list of the numbers of nodes that were told before");
	r->order = calloc(r->state.n, sizeof(*r->order));
	r->place = calloc(r->state.n, sizeof(*r->place));
	if (!r->order || !r->place)
		return -ENOMEM;
	for (uint32_t k = 0; k < r->state.n; k++)
		r->place[k] = NOWHERE;
	mark = field_enter(&r->reader, "nodes", 0);
	json_array_foreach ((json_t *)list, i, value) {
		size_t inner = field_enter(&r->reader, NULL, i);
		int rc = ordered_node(r, value);

		if (rc)
			return rc;
		field_leave(&r->reader, inner);
	}
	field_leave(&r->reader, mark);
	if (r->place[r->line.decision.home] == NOWHERE)
		return expected(r, "home", "one of \"nodes\"");
	return 0;
}

static int decision_line(struct recording *r)
{
	struct recording_decision *d = &r->line.decision;
	size_t mark;
	int rc;

	r->line.kind = RECORDING_DECISION;
	*d = (struct recording_decision){.seed = r->header.seed};
	memcpy(d->policy, r->header.policy, sizeof(d->policy));
	rc = fields(r, r->document, RECORDING_T_DECISION, d);
	if (!rc && d->home >= r->state.n)
		rc = expected(r, "home", "the number of a node that was told before");
	r->params = r->header.params;
	if (!rc)
		rc = view_params_read(&r->reader, r->document, &r->params);
	if (!rc)
		rc = decision_order(r);
	if (!rc)
		rc = decision_changed(r);
	if (rc)
		return rc;
	mark = field_enter(&r->reader, "request", 0);
	rc = view_job_read(&r->reader, json_object_get(r->document, "request"), r->params.rates,
			   &r->request, &r->com_ms);
	if (rc)
		return rc;
	field_leave(&r->reader, mark);
	d->answer = json_object_get(r->document, "plan");
	if (!json_is_object(d->answer))
		return expected(r, "plan", "an object");
	d->params = &r->params;
	d->request = &r->request;
	d->changed = r->changed;
	d->indexes = r->indexes;
	d->nchanged = r->nchanged;
	d->order = r->order;
	d->norder = r->norder;
	return 0;
}

static int end_line(struct recording *r)
{
	r->line.kind = RECORDING_END;
	r->line.dropped = 0;
	r->whole = true;
	return fields(r, r->document, RECORDING_T_END, &r->line.dropped);
}

static int header_line(struct recording *r)
{
	struct recording_header *h = &r->header;
	const json_t *version = json_object_get(r->document, "version");
	enum rules_rates rates;
	int rc;

	*h = (struct recording_header){.seed = 1};
	if (json_integer_value(version) != RECORDING_VERSION)
		return expected(r, "version", "1, the version that this program reads");
	rc = fields(r, r->document, RECORDING_T_HEADER, h);
	if (!rc)
		rc = view_rates_read(&r->reader, r->document, &rates);
	if (rc)
		return rc;
	rules_params_default(&h->params, rates);
	return view_params_read(&r->reader, r->document, &h->params);
}

/* --- the stream ------------------------------------------------------------------- */

static int dispatch(struct recording *r, const char *record)
{
	static const struct {
		const char *record;
		int (*read)(struct recording *r);
	} kinds[] = {
		{"node", node_line},	 {"vector", vector_line},     {"submit", submit_line},
		{"finish", finish_line}, {"decision", decision_line}, {"end", end_line},
	};
	const json_t *time = json_object_get(r->document, "time_ms");
	double before = r->line.time_ms;

	if (!json_is_number(time) || json_number_value(time) < before)
		return expected(r, "time_ms", "a time not before that of the line before");
	r->line = (struct recording_line){.time_ms = json_number_value(time), .number = r->number};
	for (size_t i = 0; i < FIELD_COUNT_OF(kinds); i++)
		if (!strcmp(record, kinds[i].record))
			return kinds[i].read(r);
	return expected(r, "record",
			"\"node\", \"vector\", \"submit\", \"decision\", \"finish\" or \"end\"");
}

/* Parses the next line.  1, 0, negative errno. */
static int parse_line(struct recording *r, const char **record, struct iocom_err *err)
{
	int rc;

	forget_line(r);
	rc = take_line(r, err);
	if (rc <= 0)
		return rc;
	if (r->whole)
		return field_fail(&r->reader, "nothing may follow the \"end\" line");
	rc = field_parse(&r->reader, &r->document);
	if (rc)
		return rc;
	if (!json_is_object(r->document))
		return field_expected(&r->reader, "an object", r->document);
	*record = json_string_value(json_object_get(r->document, "record"));
	return *record ? 1 : expected(r, "record", "what the line is");
}

int recording_next(struct recording *r, const struct recording_line **line, struct iocom_err *err)
{
	const char *record;
	int rc = parse_line(r, &record, err);

	if (rc <= 0)
		return rc;
	rc = dispatch(r, record);
	if (rc == -ENOMEM)
		iocom_err_set(err, rc, "out of memory");
	*line = &r->line;
	return rc ? rc : 1;
}

static int read_header(struct recording *r, struct iocom_err *err)
{
	const char *record;
	int rc = parse_line(r, &record, err);

	if (rc == 0)
		return iocom_err_set(err, -EINVAL, "%.250s: is empty; expected a recording",
				     r->path);
	if (rc < 0)
		return rc;
	return strcmp(record, "header") ? expected(r, "record", "\"header\"") : header_line(r);
}

static int open_file(struct recording *r, const char *path, struct iocom_err *err)
{
	int fd, rc;

	errno = 0;
	if (r->input) {
		fd = dup(STDIN_FILENO);
		r->file = fd < 0 ? NULL : gzdopen(fd, "rb");
		if (!r->file && fd >= 0)
			close(fd);
	} else {
		r->file = gzopen(path, "rbe");
	}
	if (r->file) {
		gzbuffer(r->file, CHUNK);
		return 0;
	}
	rc = errno ? -errno : -ENOMEM;
	return iocom_err_set(err, rc, "cannot read %s: %s", r->path, strerror(-rc));
}

int recording_open(const char *path, struct recording **out, struct iocom_err *err)
{
	struct recording *r = calloc(1, sizeof(*r));
	int rc;

	if (r) {
		r->input = !strcmp(path, "-");
		r->path = strdup(r->input ? "standard input" : path);
	}
	if (!r || !r->path || recording_state_init(&r->state))
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	else
		rc = open_file(r, path, err);
	if (!rc)
		rc = read_header(r, err);
	if (rc)
		recording_close(r);
	else
		*out = r;
	return rc;
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	forget_line(r);
	if (r->file)
		gzclose(r->file);
	if (r->state.names)
		recording_state_fini(&r->state);
	free(r->seen);
	free(r->bytes);
	free(r->path);
	free(r);
}

int recording_rewind(struct recording *r, struct iocom_err *err)
{
	if (r->input || gzrewind(r->file) != 0)
		return iocom_err_set(err, -ESPIPE, "%s cannot be read a second time", r->path);
	recording_state_clear(&r->state);
	r->at = r->used = 0;
	r->drained = r->whole = false;
	r->number = 0;
	r->line = (struct recording_line){0};
	return read_header(r, err);
}

const struct recording_header *recording_header(const struct recording *r)
{
	return &r->header;
}

const struct view_node *recording_nodes(const struct recording *r, uint32_t *n)
{
	*n = r->state.n;
	return r->state.nodes;
}

bool recording_complete(const struct recording *r)
{
	return r->whole;
}

/* --- decisions -------------------------------------------------------------------- */

int recording_view(struct recording *r, struct view_file *view)
{
	const struct recording_decision *d = &r->line.decision;
	uint32_t n = r->state.n;

	if (r->line.kind != RECORDING_DECISION || !r->document)
		return -EINVAL;
	if (r->seen_room < n) {
		void *grown = realloc(r->seen, n * sizeof(*r->seen));

		if (!grown)
			return -ENOMEM;
		r->seen = grown;
		r->seen_room = n;
	}
	for (uint32_t i = 0; i < n && !r->order; i++)
		r->seen[i] = r->state.nodes[i];
	for (size_t i = 0; i < r->norder; i++)
		r->seen[i] = r->state.nodes[r->order[i]];
	for (size_t i = 0; i < d->nchanged; i++) {
		uint32_t place = r->place ? r->place[d->indexes[i]] : d->indexes[i];

		if (place != NOWHERE)
			r->seen[place] = d->changed[i];
	}
	if (r->order)
		n = (uint32_t)r->norder;
	*view = (struct view_file){
		.time_ms = d->time_ms,
		.home = r->place ? r->place[d->home] : d->home,
		.seed = d->seed,
		.params = *d->params,
		.nodes = r->seen,
		.nnodes = n,
		.room = n,
		.job = *d->request,
		.com_ms = r->com_ms,
	};
	return 0;
}

int recording_decide(struct recording *r, double tolerance, struct view_decision *decision,
		     struct iocom_err *err)
{
	const struct recording_decision *d = &r->line.decision;
	struct view_policy policy;
	struct view_file view;
	json_t *answer;
	int rc = recording_view(r, &view);

	if (rc)
		return iocom_err_set(err, rc, "no decision was read last");
	rc = view_policy_parse(d->policy, &policy, err);
	if (!rc)
		rc = view_decide(&view, &policy, decision, err);
	if (rc) {
		iocom_err_prefix(err, "%.200s:%llu", r->path, (unsigned long long)r->number);
		return rc;
	}
	answer = plan_json(decision, false);
	if (!answer) {
		view_decision_fini(decision);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	rc = plan_json_same(answer, d->answer, tolerance);
	json_decref(answer);
	return rc;
}
