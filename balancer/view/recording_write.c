/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Writes a recording; see recording.h.  The recorder keeps the state that its lines tell, so
 * that it writes only changes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "balancer/view/json_msgpack.h"
#include "balancer/view/json_text.h"
#include "balancer/view/plan_json.h"
#include "balancer/view/recording_state.h"

#define BUFFER (256u * 1024)

struct recorder {
	gzFile file; /* NULL: lines go to WRITE */
	recorder_write *write;
	void *arg;
	char *path;
	struct recording_header header;
	struct recording_state state;
	double time_ms;
	uint64_t lines;
	struct recording_end end;
	int failed; /* errno of the file; every later call returns it */
};

static int file_failed(struct recorder *r, struct iocom_err *err)
{
	int code;
	const char *text = gzerror(r->file, &code);

	/* The library only says that the system failed; errno has the reason. */
	if (!r->failed)
		r->failed = code == Z_MEM_ERROR ? -ENOMEM : errno ? -errno : -EIO;
	if (code == Z_ERRNO || code == Z_OK || !*text)
		text = strerror(-r->failed);
	return iocom_err_set(err, r->failed, "cannot write %s: %s", r->path, text);
}

static int recording_write_line(struct recorder *r, const char *text, size_t n,
				struct iocom_err *err)
{
	int rc;

	if (r->write) {
		rc = r->write(r->arg, text, n);
		return rc ? iocom_err_set(err, rc, "a line of %s was lost: %s", r->path,
					  strerror(-rc))
			  : 0;
	}
	errno = 0;
	return gzwrite(r->file, text, (unsigned int)n) == (int)n ? 0 : file_failed(r, err);
}

/* Writes OBJECT as a line and frees it; RC is an earlier error, if any. */
static int recording_write_put(struct recorder *r, json_t *object, int rc, struct iocom_err *err)
{
	bool packed = !r->write && json_msgpack_named(r->path);
	size_t n = 0;
	char *text = rc	      ? NULL
		     : packed ? json_msgpack_dump(object, &n)
			      : json_text_dump(object, &n);

	json_decref(object);
	if (!text)
		return iocom_err_set(err, rc ? rc : -ENOMEM, "cannot record into %s: %s", r->path,
				     strerror(rc ? -rc : ENOMEM));
	if (!packed)
		text[n++] = '\n'; /* replaces the NUL */
	rc = recording_write_line(r, text, n, err);
	free(text);
	r->lines += rc == 0;
	return rc;
}

static int recording_write_refuse(struct recorder *r, struct iocom_err *err, const char *what)
{
	return iocom_err_set(err, -EINVAL, "cannot record into %s: %s", r->path, what);
}

/* Makes the checks that every line needs. */
static int recording_write_begin(struct recorder *r, double time_ms, struct iocom_err *err)
{
	if (r->failed)
		return file_failed(r, err);
	if (!isfinite(time_ms) || time_ms < r->time_ms)
		return recording_write_refuse(r, err, "time goes back");
	r->time_ms = time_ms;
	return 0;
}

static json_t *view_recording_write_line(const char *record)
{
	return json_pack("{s:s}", "record", record);
}

static int recording_write_fill(json_t *object, enum recording_table table, const void *base)
{
	size_t n;
	const struct field *fields = recording_fields(table, &n);

	return object ? field_write(object, fields, n, base) : -ENOMEM;
}

/* --- opening, closing ------------------------------------------------------------- */

static int put_header(struct recorder *r, struct iocom_err *err)
{
	const struct rules_params *p = &r->header.params;
	json_t *o = view_recording_write_line("header");
	int rc = o ? field_set(o, "version", json_integer(RECORDING_VERSION)) : -ENOMEM;

	if (!rc)
		rc = recording_write_fill(o, RECORDING_T_HEADER, &r->header);
	if (!rc)
		rc = field_set(o, "rates", json_string(view_rates_name(p->rates)));
	if (!rc)
		rc = field_set(o, "reference_mips", json_real(p->reference_mips));
	if (!rc)
		rc = field_set(o, "network_mb_per_s", json_real(p->network_mb_per_s));
	if (!rc)
		rc = field_set(o, "units",
			       json_pack("{s:s,s:s,s:s,s:s,s:s}", "time", "ms", "rate", "1/ms",
					 "memory", "MB", "request", "KB", "bandwidth", "MB/s"));
	if (!rc)
		rc = view_params_write(o, p, NULL);
	return recording_write_put(r, o, rc, err);
}

static gzFile recording_write_open_file(const char *path)
{
	size_t n = strlen(path);
	bool packed = n > 3 && !strcmp(path + n - 3, ".gz");
	gzFile file;
	int fd;

	errno = 0;
	if (strcmp(path, "-") != 0)
		return gzopen(path, packed ? "wb6e" : "wbTe");
	fd = dup(STDOUT_FILENO);
	if (fd < 0)
		return NULL;
	file = gzdopen(fd, "wbT");
	if (!file)
		close(fd);
	return file;
}

static struct recorder *recorder_new(const char *name, const struct recording_header *header,
				     struct iocom_err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (r) {
		r->header = *header;
		r->end = RECORDING_END_UNKNOWN;
		r->path = strdup(name);
	}
	if (r && r->path && !recording_state_init(&r->state))
		return r;
	iocom_err_set(err, -ENOMEM, "out of memory");
	recorder_abandon(r);
	return NULL;
}

/* Writes the header.  The caller owns R only after 0. */
static int recording_write_open_recorder(struct recorder *r, struct recorder **out,
					 struct iocom_err *err)
{
	int rc = r->header.seed > VIEW_SEED_MAX || r->header.start_ns > INT64_MAX
			 ? recording_write_refuse(r, err, "its seed is above 2^53 - 1")
			 : put_header(r, err);

	if (rc)
		recorder_abandon(r);
	else
		*out = r;
	return rc;
}

int recorder_open(const char *path, const struct recording_header *header, struct recorder **out,
		  struct iocom_err *err)
{
	struct recorder *r =
		recorder_new(strcmp(path, "-") ? path : "standard output", header, err);
	int rc;

	if (!r)
		return -ENOMEM;
	r->file = recording_write_open_file(path);
	if (!r->file) {
		rc = errno ? -errno : -ENOMEM;
		iocom_err_set(err, rc, "cannot write %s: %s", r->path, strerror(-rc));
		recorder_abandon(r);
		return rc;
	}
	gzbuffer(r->file, BUFFER);
	return recording_write_open_recorder(r, out, err);
}

int recorder_open_to(recorder_write *write, void *arg, const struct recording_header *header,
		     struct recorder **out, struct iocom_err *err)
{
	struct recorder *r = recorder_new("the recording", header, err);

	if (!r)
		return -ENOMEM;
	r->write = write;
	r->arg = arg;
	return recording_write_open_recorder(r, out, err);
}

int recorder_find(const struct recorder *r, const char *name, uint32_t *index)
{
	const json_t *number = json_object_get(r->state.names, name);

	if (!number)
		return -ENOENT;
	*index = (uint32_t)json_integer_value(number);
	return 0;
}

uint32_t recorder_nodes(const struct recorder *r)
{
	return r->state.n;
}

void recorder_abandon(struct recorder *r)
{
	if (!r)
		return;
	if (r->file)
		gzclose(r->file);
	recording_state_fini(&r->state);
	free(r->path);
	free(r);
}

int recorder_flush(struct recorder *r, struct iocom_err *err)
{
	if (r->write)
		return 0;
	errno = 0;
	return r->failed || gzflush(r->file, Z_SYNC_FLUSH) != Z_OK ? file_failed(r, err) : 0;
}

void recorder_dropped(struct recorder *r, uint64_t n)
{
	r->end.dropped += n;
}

void recorder_disturbed(struct recorder *r, const struct recording_end *by)
{
	r->end.others_cpu = fmax(r->end.others_cpu, by->others_cpu);
	r->end.others_disk = fmax(r->end.others_disk, by->others_disk);
	r->end.stolen = fmax(r->end.stolen, by->stolen);
	r->end.crowded = fmax(r->end.crowded, by->crowded);
}

int recorder_close(struct recorder *r, struct iocom_err *err)
{
	json_t *o = view_recording_write_line("end");
	int rc = o ? field_set(o, "time_ms", json_real(r->time_ms)) : -ENOMEM;

	if (!rc)
		rc = field_set(o, "lines", json_integer((json_int_t)r->lines + 1));
	if (!rc)
		rc = recording_write_fill(o, RECORDING_T_END, &r->end);
	if (!r->failed) {
		rc = recording_write_put(r, o, rc, err);
	} else {
		json_decref(o);
		rc = file_failed(r, err);
	}
	if (!rc && r->file) {
		errno = 0;
		if (gzclose(r->file) != Z_OK) {
			rc = errno ? -errno : -EIO;
			iocom_err_set(err, rc, "cannot write %s: %s", r->path, strerror(-rc));
		}
		r->file = NULL;
	}
	recorder_abandon(r);
	return rc;
}

/* --- lines ------------------------------------------------------------------------ */

static json_t *recording_write_node_line(const char *record, double time_ms, uint32_t index)
{
	return json_pack("{s:s,s:f,s:I}", "record", record, "time_ms", time_ms, "node",
			 (json_int_t)index);
}

static int put_machine(struct recorder *r, double time_ms, uint32_t index,
		       const struct view_node *node, struct iocom_err *err)
{
	json_t *o = recording_write_node_line("node", time_ms, index);
	int rc = o ? view_machine_write(o, node) : -ENOMEM;

	if (!rc)
		rc = recording_state_name(&r->state, index, node->node.name);
	return recording_write_put(r, o, rc, err);
}

static int recording_write_put_load(struct recorder *r, double time_ms, uint32_t index,
				    const struct view_node *node, struct iocom_err *err)
{
	json_t *o = recording_write_node_line("vector", time_ms, index);
	int rc = o ? view_load_write(o, node) : -ENOMEM;

	return recording_write_put(r, o, rc, err);
}

/*
 * Stores that the machine part of NODE was written; its load is not yet, and its line may get
 * lost.
 */
static void told_machine(struct view_node *old, const struct view_node *node)
{
	struct rules_node told = node->node;
	const struct rules_node *load = &old->node;

	told.tasks = load->tasks;
	told.ntasks = load->ntasks;
	told.has_measured = load->has_measured;
	told.measured = load->measured;
	told.has_advertised = load->has_advertised;
	told.advertised = load->advertised;
	told.has_sharers = load->has_sharers;
	told.sharers = load->sharers;
	told.has_zatti = load->has_zatti;
	told.zatti = load->zatti;
	told.has_port = load->has_port;
	told.port = load->port;
	told.accepts = load->accepts;
	told.age_ms = load->age_ms;
	old->node = told;
}

/* Writes what differs between NODE and OLD; FRESH: the node is new. */
static int recording_write_put_node(struct recorder *r, double time_ms, uint32_t index, bool fresh,
				    const struct view_node *node, struct iocom_err *err)
{
	struct view_node *old = &r->state.nodes[index], copy;
	bool machine = fresh || !view_machine_same(old, node), load = !view_load_same(old, node);
	int rc = 0;

	if (!machine && !load)
		return 0;
	if (machine)
		rc = put_machine(r, time_ms, index, node, err);
	if (rc && fresh)
		recording_state_pop(&r->state, node->node.name);
	else if (machine && !rc)
		told_machine(old, node);
	if (!rc && load)
		rc = recording_write_put_load(r, time_ms, index, node, err);
	if (!rc && view_node_copy(&copy, node))
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	if (rc)
		return rc;
	view_node_fini(old);
	*old = copy;
	return 0;
}

int recorder_node(struct recorder *r, double time_ms, uint32_t index, const struct view_node *node,
		  struct iocom_err *err)
{
	const json_t *owner = json_object_get(r->state.names, node->node.name);
	bool fresh = index == r->state.n;
	int rc = recording_write_begin(r, time_ms, err);

	if (rc)
		return rc;
	if (index > r->state.n || index >= RECORDING_NODES_MAX)
		return recording_write_refuse(
			r, err,
			"there is a gap in the nodes' numbers, or there are too many nodes");
	if (!node->node.name[0] || (owner && json_integer_value(owner) != index))
		return recording_write_refuse(r, err,
					      "a node has no name, or that of another node");
	if (fresh && recording_state_add(&r->state))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return recording_write_put_node(r, time_ms, index, fresh, node, err);
}

int recorder_submit(struct recorder *r, const struct recording_job *job, struct iocom_err *err)
{
	json_t *o;
	int rc = recording_write_begin(r, job->time_ms, err);

	if (rc)
		return rc;
	if (job->home >= r->state.n || job->tasks < 1)
		return recording_write_refuse(
			r, err, "a job's home is not a recorded node, or the job has no task");
	o = view_recording_write_line("submit");
	return recording_write_put(r, o, recording_write_fill(o, RECORDING_T_JOB, job), err);
}

int recorder_finish(struct recorder *r, const struct recording_finish *finish,
		    struct iocom_err *err)
{
	json_t *o, *measured;
	int rc = recording_write_begin(r, finish->time_ms, err);

	if (rc)
		return rc;
	if (finish->node >= r->state.n)
		return recording_write_refuse(r, err, "a job ended on a node that is not recorded");
	o = view_recording_write_line("finish");
	rc = recording_write_fill(o, RECORDING_T_FINISH, finish);
	if (!rc && finish->has_measured) {
		measured = json_object();
		rc = recording_write_fill(measured, RECORDING_T_MEASURED, &finish->measured);
		if (rc)
			json_decref(measured);
		else
			rc = field_set(o, "measured", measured);
	}
	return recording_write_put(r, o, rc, err);
}

/* --- decisions -------------------------------------------------------------------- */

static json_t *recording_write_changed_node(uint32_t index, const struct view_node *node)
{
	json_t *o = json_pack("{s:I}", "node", (json_int_t)index);

	if (!o || view_machine_write(o, node) || view_load_write(o, node)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static int put_changed(const struct recorder *r, json_t *o, const struct recording_decision *d)
{
	json_t *list = json_array();
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < d->nchanged && !rc; i++) {
		uint32_t index = d->indexes ? d->indexes[i] : (uint32_t)i;

		if (index >= r->state.n)
			rc = -EINVAL;
		else if (!view_node_same(&r->state.nodes[index], &d->changed[i]) &&
			 json_array_append_new(list,
					       recording_write_changed_node(index, &d->changed[i])))
			rc = -ENOMEM;
	}
	if (!rc)
		return field_set(o, "changed", list);
	json_decref(list);
	return rc;
}

/* The view of a decision: its nodes' names by place. */
struct seen {
	const struct recording_state *state;
	const struct recording_decision *decision;
};

static const char *seen_name(const void *arg, uint32_t place)
{
	const struct seen *seen = arg;
	const struct recording_decision *d = seen->decision;

	if (d->order)
		place = place < d->norder ? d->order[place] : UINT32_MAX;
	return place < seen->state->n ? seen->state->nodes[place].node.name : NULL;
}

/* Finds HOME's place among the nodes of the view; d->norder: it is not there. */
static uint32_t recorder_home_place(const struct recording_decision *d)
{
	uint32_t place = 0;

	if (!d->order)
		return d->home;
	while (place < d->norder && d->order[place] != d->home)
		place++;
	return place;
}

static json_t *plan_of(const struct recorder *r, const struct recording_decision *d)
{
	const struct seen seen = {&r->state, d};
	const struct plan_answer answer = {
		.policy = d->policy,
		.home = recorder_home_place(d),
		.plan = d->plan,
		.gang = d->gang,
		.nodes = d->nodes ? d->nodes : &d->plan->node,
		.ntasks = d->plan->queued ? 0 : d->request->tasks,
		.moves = d->moves,
		.nmoves = d->nmoves,
		.rates = r->header.params.rates,
		.name = seen_name,
		.arg = &seen,
	};

	return plan_answer_json(&answer, false);
}

/* Writes the numbers of the view's nodes, unless they are all nodes in order of number. */
static int put_order(const struct recorder *r, json_t *o, const struct recording_decision *d)
{
	bool all = d->norder == r->state.n;
	json_t *list;
	int rc;

	for (size_t i = 0; i < d->norder && d->order; i++) {
		if (d->order[i] >= r->state.n)
			return -EINVAL;
		all = all && d->order[i] == i;
	}
	if (!d->order || all)
		return 0;
	list = json_array();
	rc = list ? 0 : -ENOMEM;
	for (size_t i = 0; i < d->norder && !rc; i++)
		if (json_array_append_new(list, json_integer(d->order[i])))
			rc = -ENOMEM;
	if (!rc)
		return field_set(o, "nodes", list);
	json_decref(list);
	return rc;
}

int recorder_decision(struct recorder *r, const struct recording_decision *d, struct iocom_err *err)
{
	json_t *o;
	int rc = recording_write_begin(r, d->time_ms, err);

	if (rc)
		return rc;
	if (d->home >= r->state.n || d->seed > VIEW_SEED_MAX ||
	    d->params->rates != r->header.params.rates ||
	    (d->order && recorder_home_place(d) == d->norder) || (!d->answer && !d->plan) ||
	    (d->request->tasks != 1 && !d->nodes && !d->answer))
		return recording_write_refuse(
			r, err, "a decision's home, seed, rates or nodes are out of range");
	o = view_recording_write_line("decision");
	rc = recording_write_fill(o, RECORDING_T_DECISION, d);
	if (!rc)
		rc = view_params_write(o, d->params, &r->header.params);
	if (!rc)
		rc = put_order(r, o, d);
	if (!rc)
		rc = put_changed(r, o, d);
	if (!rc)
		rc = field_set(
			o, "request",
			view_job_json(d->request, seen_name, &(const struct seen){&r->state, d}));
	if (!rc)
		rc = field_set(o, "plan", d->answer ? json_incref(d->answer) : plan_of(r, d));
	return recording_write_put(r, o, rc, err);
}
