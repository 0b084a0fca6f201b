/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Who records this node; see recorders.h. */
#include "agent/front/recorders.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/gang_name.h"
#include "balancer/view/recording.h"
#include "user/utf8.h"

#define END_ROOM       4096 /* beyond the backlog, for the end line */

#define KIND_SIGNALLED 1
#define KIND_IOCOM     3
#define STATUS_IOCOM   125 /* as `iocom run` says it */

struct recorders {
	struct recorders *next;
	struct front *front;
	struct client *client; /* NULL: gone, freed by reap */
	struct recorder *out;
	uint64_t start_ns;
	double time_ms; /* time of the newest line */
	size_t backlog; /* how much may wait */
	struct machine_time began;
	/* Sums over whole periods, in ms: their lengths, and struct recording_end's shares times
	 * these. */
	double periods_ms, others_cpu_ms, others_disk_ms, crowded_ms;
};

/* --- lines ------------------------------------------------------------------------- */

static int recorders_put(void *arg, const char *line, size_t length)
{
	struct recorders *r = arg;

	if (r->client && client_offer(r->client, line, length, r->backlog))
		return 0;
	return -ENOBUFS;
}

/* Tells what became of a line; a lost one is counted. */
static void wrote(struct recorders *r, int rc)
{
	if (!rc || !r->client)
		return;
	recorder_dropped(r->out, 1);
	r->front->base->counters->record_lines_lost++;
}

/* The time of REAL_NS in the recording, never before that of the line before. */
static double recorders_take_time(struct recorders *r, uint64_t real_ns)
{
	double ms = real_ns > r->start_ns ? (double)(real_ns - r->start_ns) / 1e6 : 0;

	if (ms > r->time_ms)
		r->time_ms = ms;
	return r->time_ms;
}

/* Frees the recorders whose clients are gone, but not while their lines are being made. */
static void recorders_reap(struct front *front)
{
	for (struct recorders **p = &front->recorders; *p;) {
		struct recorders *r = *p;

		if (r->client) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		recorder_abandon(r->out);
		free(r);
	}
}

/* --- nodes ------------------------------------------------------------------------- */

/*
 * Writes NODE as it is and sets *INDEX to its number.  Returns 0, or an error if a line was lost.
 */
static int tell_node(struct recorders *r, const struct view_node *node, uint32_t *index)
{
	int rc;

	if (recorder_find(r->out, node->node.name, index))
		*index = recorder_nodes(r->out);
	rc = recorder_node(r->out, r->time_ms, *index, node, NULL);
	wrote(r, rc);
	return rc;
}

static void tell_vector(struct recorders *r, const struct iocom_vector *v, double age_ms, bool own)
{
	struct view_node node = {0};
	uint32_t index;

	view_node(v, age_ms, &node.node);
	node.node.accepts |= own;
	tell_node(r, &node, &index);
}

static void tell_nodes(struct recorders *r)
{
	const struct front *front = r->front;
	uint64_t now = loop_boot_ns(front->base->loop);

	tell_vector(r, &front->pulse->own, 0, true);
	for (size_t i = 0; i < front->peers->matrix.count; i++) {
		const struct matrix_entry *e = matrix_at(&front->peers->matrix, i);

		if (e->alive)
			tell_vector(r, &e->vector, (double)matrix_age_ns(e, now) / 1e6, false);
	}
}

/* --- what disturbs ------------------------------------------------------------------ */

/* Adds what others took in the period that has just ended; BUSY: no processor was idle in it. */
static void recorders_take_others(struct recorders *r, bool busy)
{
	const struct iocom_vector *own = &r->front->pulse->own;
	const struct vector_period *p = &r->front->pulse->measured.period;
	double cores = own->cores * (own->cpu_burst > 0 ? own->cpu_speed / own->cpu_burst : 1);

	r->periods_ms += p->ms;
	r->others_cpu_ms += p->ms * fmin(1, p->others.cpu / cores);
	r->others_disk_ms += p->ms * p->others.disk;
	r->crowded_ms += busy ? p->ms : 0;
}

/*
 * Returns true if the machine that this node is a part of had no processor idle since the last
 * period; false as well if that is not known.
 */
static bool recorders_machine_busy(struct front *front)
{
	struct machine_time before = front->machine, now;

	if (machine_time_read("/proc/stat", &now))
		return false;
	front->machine = now;
	return front->base->set->scoped && before.all && machine_time_crowded(&before, &now);
}

static void recorders_tell_others(struct recorders *r)
{
	struct recording_end end = RECORDING_END_UNKNOWN;
	struct machine_time now;

	if (r->periods_ms > 0) {
		end.others_cpu = r->others_cpu_ms / r->periods_ms;
		end.others_disk = r->others_disk_ms / r->periods_ms;
		end.crowded = r->crowded_ms / r->periods_ms;
	}
	if (r->began.all && !machine_time_read("/proc/stat", &now))
		end.stolen = machine_time_stolen(&r->began, &now);
	recorder_disturbed(r->out, &end);
}

void recorders_period(struct front *front)
{
	bool busy;

	if (!front->recorders)
		return;
	busy = recorders_machine_busy(front);
	for (struct recorders *r = front->recorders; r; r = r->next) {
		recorders_take_time(r, loop_real_ns(front->base->loop));
		recorders_take_others(r, busy);
		tell_nodes(r);
	}
	recorders_reap(front);
}

/* --- decisions --------------------------------------------------------------------- */

static void submitted(struct recorders *r, const struct home_decision *d, uint32_t home)
{
	struct recording_job job = {
		.home = home,
		.tasks = d->request->tasks,
		.cpu_ms = d->request->cpu_ms,
		.io_per_ms = d->request->io_per_ms,
		.request_kb = d->request->request_kb,
		.reaccess = d->request->reaccess,
		.requests = d->request->requests,
		.memory_mb = d->request->memory_mb,
		.implicit_share = d->request->implicit_share,
		.faults_per_ms = d->request->faults_per_ms,
		.initial_mb = d->request->initial_mb,
		.time_ms = r->time_ms,
	};

	snprintf(job.id, sizeof(job.id), "%s", d->order->job);
	utf8_copy(job.class_name, sizeof(job.class_name), d->order->class_name,
		  sizeof(d->order->class_name));
	wrote(r, recorder_submit(r->out, &job, NULL));
}

static void recorders_write_decision(struct recorders *r, const struct home_decision *d,
				     const struct view_file *view, const uint32_t *order)
{
	struct recording_decision out = {
		.time_ms = r->time_ms,
		.home = order[view->home],
		.seed = d->seed,
		.params = &view->params,
		.request = d->request,
		.order = order,
		.norder = view->nnodes,
		.plan = &d->decision->plan,
		.gang = d->decision->is_gang ? &d->decision->gang : NULL,
		.nodes = d->decision->nodes,
		.moves = d->decision->moves,
		.nmoves = d->decision->nmoves,
		.changed = view->nodes,
		.indexes = order,
		.nchanged = view->nnodes,
	};

	if (d->run)
		snprintf(out.job, sizeof(out.job), "%s", d->order->job);
	snprintf(out.policy, sizeof(out.policy), "%s", d->decision->policy.name);
	wrote(r, recorder_decision(r->out, &out, NULL));
}

/*
 * Writes the numbers of the view's nodes to *ORDER. Nodes that were never recorded are recorded
 * now.
 */
static int number_nodes(struct recorders *r, const struct view_file *view, uint32_t *order)
{
	for (uint32_t i = 0; i < view->nnodes; i++) {
		const struct view_node *node = &view->nodes[i];

		if (recorder_find(r->out, node->node.name, &order[i]) &&
		    tell_node(r, node, &order[i]))
			return -ENOBUFS;
	}
	return 0;
}

/* VIEW is what D looked at; NULL: there is no memory for it. */
static void recorders_tell_decision(struct recorders *r, const struct home_decision *d,
				    const struct view_file *view)
{
	uint32_t *order = view ? calloc(view->nnodes, sizeof(*order)) : NULL;

	recorders_take_time(r, d->order->submit_ns);
	if (!order || number_nodes(r, view, order)) {
		wrote(r, -ENOBUFS);
	} else {
		if (d->run)
			submitted(r, d, order[view->home]);
		recorders_write_decision(r, d, view, order);
	}
	free(order);
}

/* What a gang's decision knew of the ways to the nodes, besides the view. */
static void recorders_take_ports(struct view_file *view, const struct rules_port *ports)
{
	for (uint32_t i = 0; i < view->nnodes; i++) {
		struct rules_node *n = &view->nodes[i].node;

		if (!(n->network_mb_per_s > 0))
			n->network_mb_per_s = ports[i].mb_per_s;
		n->has_port = true;
		n->port.busy_mb_per_s = ports[i].busy_mb_per_s;
		n->port.round_trip_ms = ports[i].round_trip_ms;
		n->port.slots = ports[i].slots;
	}
}

void recorders_decided(struct front *front, const struct home_decision *d)
{
	struct view_file view;
	int rc;

	if (!front->recorders)
		return;
	rc = cluster_view_file(d->view, loop_boot_ns(front->base->loop), &view);
	if (!rc && d->ports)
		recorders_take_ports(&view, d->ports);
	for (struct recorders *r = front->recorders; r; r = r->next)
		recorders_tell_decision(r, d, rc ? NULL : &view);
	if (!rc)
		view_file_fini(&view);
	recorders_reap(front);
}

/* --- ends -------------------------------------------------------------------------- */

static struct recording_measured measured_of(const struct job_report *report)
{
	double wall = (double)report->wall_ms, faults = report->behaviour.fault_requests;

	/* Only the two ends are known of a job whose shim died. */
	if (wall == 0 && report->cpu_ms > 0 && report->end_ns > report->start_ns)
		wall = (double)(report->end_ns - report->start_ns) / 1e6;
	return (struct recording_measured){
		.wall_ms = wall,
		.cpu_ms = report->cpu_ms,
		.requests = report->requests,
		.request_mb = report->requests * report->request_kb / 1e3,
		.page_faults = faults > 0 ? faults : report->faults_per_ms * report->cpu_ms,
		.page_fault_mb = report->behaviour.fault_kb / 1e3,
		.memory_mb = report->memory_mb,
		.io_per_ms = wall > 0 ? report->requests / wall : 0,
	};
}

static int32_t recorders_status_of(const struct job_report *report)
{
	if (report->kind == KIND_IOCOM)
		return STATUS_IOCOM;
	return report->kind == KIND_SIGNALLED ? -(int32_t)report->value : (int32_t)report->value;
}

static void finished(struct recorders *r, const char *from, const struct job_report *report)
{
	struct recording_finish f = {
		.time_ms = recorders_take_time(r, loop_real_ns(r->front->base->loop)),
		.moves = strcmp(r->front->base->set->name, from) != 0,
		.exit = recorders_status_of(report),
		.has_measured = true,
		.measured = measured_of(report),
	};
	int rc = recorder_find(r->out, from, &f.node);

	snprintf(f.id, sizeof(f.id), "%s", report->job);
	f.start_ms = f.time_ms;
	if (report->start_ns)
		f.start_ms = report->start_ns > r->start_ns
				     ? (double)(report->start_ns - r->start_ns) / 1e6
				     : 0;
	wrote(r, rc ? rc : recorder_finish(r->out, &f, NULL));
}

void recorders_finished(struct front *front, const char *from, const struct job_report *report)
{
	if (!front->recorders || gang_part_of(report->job, NULL, NULL))
		return; /* what a part did is in the end of its gang */
	for (struct recorders *r = front->recorders; r; r = r->next)
		finished(r, from, report);
	recorders_reap(front);
}

/* --- who records --------------------------------------------------------------------- */

static int recorders_open_recorder(struct recorders *r, struct iocom_err *err)
{
	struct front *front = r->front;
	struct recording_header h = {.live = true, .seed = 1, .start_ns = r->start_ns};
	struct rules_params *p = &h.params;

	snprintf(h.program, sizeof(h.program), "iocomd %s", IOCOM_VERSION);
	snprintf(h.cluster, sizeof(h.cluster), "%zu nodes", front->peers->matrix.count + 1);
	snprintf(h.policy, sizeof(h.policy), "%s", front->base->set->policy);
	snprintf(h.node, sizeof(h.node), "%s", front->base->set->name);
	h.period_ms = front->base->set->period_s * 1e3;
	h.notice_ms = PULSE_NOTICE_MS;
	view_params(p);
	settings_rules_apply(&front->base->set->rules, p);
	return recorder_open_to(recorders_put, r, &h, &r->out, err);
}

size_t recorders_count(const struct front *front)
{
	size_t n = 0;

	for (const struct recorders *r = front->recorders; r; r = r->next)
		n++;
	return n;
}

static int recorders_add(struct front *front, struct client *client, struct iocom_err *err)
{
	struct recorders *r;
	int rc;

	for (r = front->recorders; r; r = r->next)
		if (r->client == client)
			return iocom_err_set(err, -EBUSY, "this connection records already");
	front->base->counters->recorders_refused += recorders_count(front) >= RECORDERS_MAX;
	if (recorders_count(front) >= RECORDERS_MAX)
		return iocom_err_set(err, -EBUSY, "%d recorders are at work here already",
				     RECORDERS_MAX);
	r = calloc(1, sizeof(*r));
	if (!r)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	*r = (struct recorders){
		.next = front->recorders,
		.front = front,
		.client = client,
		.start_ns = loop_real_ns(front->base->loop),
		.backlog = RECORDERS_BACKLOG,
	};
	rc = recorders_open_recorder(r, err);
	if (rc) {
		free(r);
		return rc;
	}
	client_streams(client);
	if (machine_time_read("/proc/stat", &r->began))
		r->began.all = 0;
	if (!front->recorders)
		front->machine = r->began;
	front->recorders = r;
	tell_nodes(r);
	return 0;
}

/* Root and the agent's own user may record: a recording shows the jobs of all users. */
void record_request(struct front *front, struct client *client, const msgpack_object *request)
{
	uid_t uid = client_who(client)->uid;
	struct iocom_err err = {0};

	(void)request;
	if (uid != 0 && uid != geteuid())
		client_error(client,
			     "only root may record node %s: a recording shows the jobs of "
			     "all users",
			     front->base->set->name);
	else if (recorders_add(front, client, &err))
		client_error(client, "%s", err.text);
	recorders_reap(front);
}

static void recorders_close_one(struct recorders *r)
{
	recorders_take_time(r, loop_real_ns(r->front->base->loop));
	r->backlog += END_ROOM;
	recorders_tell_others(r);
	recorder_close(r->out, NULL);
	r->out = NULL;
	r->client = NULL;
}

void recorders_end(struct front *front, const struct client *client)
{
	for (struct recorders *r = front->recorders; r; r = r->next)
		if (r->client == client)
			recorders_close_one(r);
	recorders_reap(front);
}

void recorders_forget(struct front *front, const struct client *client)
{
	for (struct recorders *r = front->recorders; r; r = r->next)
		if (r->client == client)
			r->client = NULL;
}

void recorders_stop(struct front *front)
{
	for (struct recorders *r = front->recorders; r; r = r->next)
		if (r->client)
			recorders_close_one(r);
	recorders_reap(front);
}
