/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_report.h. */
#include "agent/jobs/job_report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "user/exchange/exchange.h"
#include "user/pack.h"

#define RUNNING	  "running"
#define REST_MOST 0.25 /* of its time: whoever waits so long has a time of its own */
#define SLOW_MOST 1e6
#define WHOLE_RUN 5 /* numbers of a behaviour that belong to no single phase */

/* "behaviour": [ of the whole run..., [ [cpu, com, disk, wall, dominant]... ] ] */
static void behaviour_pack(const struct behaviour *b, msgpack_packer *pk)
{
	const double whole[] = {b->disk_low_ms, b->disk_high_ms, b->fault_ms, b->disk_wait_ms,
				b->run_wait_ms};

	pack_key(pk, "behaviour");
	msgpack_pack_array(pk, WHOLE_RUN + b->n);
	for (size_t i = 0; i < WHOLE_RUN; i++)
		msgpack_pack_double(pk, whole[i]);
	for (size_t i = 0; i < b->n; i++) {
		const struct behaviour_phase *p = &b->phases[i];

		msgpack_pack_array(pk, BEHAVIOUR_RESOURCES + 2);
		for (int r = 0; r < BEHAVIOUR_RESOURCES; r++)
			msgpack_pack_double(pk, p->ms[r]);
		msgpack_pack_double(pk, p->wall_ms);
		msgpack_pack_double(pk, p->dominant);
	}
}

static int phase_unpack(struct behaviour_phase *p, const msgpack_object *o)
{
	double v[BEHAVIOUR_RESOURCES + 2];

	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != BEHAVIOUR_RESOURCES + 2)
		return -EBADMSG;
	for (size_t i = 0; i < BEHAVIOUR_RESOURCES + 2; i++) {
		if (o->via.array.ptr[i].type != MSGPACK_OBJECT_FLOAT64)
			return -EBADMSG;
		v[i] = o->via.array.ptr[i].via.f64;
	}
	memcpy(p->ms, v, sizeof(p->ms));
	p->wall_ms = v[BEHAVIOUR_RESOURCES];
	if (!(v[BEHAVIOUR_RESOURCES + 1] >= -1 && v[BEHAVIOUR_RESOURCES + 1] < BEHAVIOUR_RESOURCES))
		return -EBADMSG;
	p->dominant = (int)v[BEHAVIOUR_RESOURCES + 1];
	return 0;
}

/* Reads the number KEY, which an older agent's report does not have: then it stays 0. */
static int job_report_number(double *out, const msgpack_object *map, const char *key)
{
	return unpack_get(map, key) && unpack_f64(map, key, out) ? -EBADMSG : 0;
}

/* An older agent's report has no behaviour, which is fine. */
static int behaviour_unpack(struct behaviour *b, const msgpack_object *map)
{
	const msgpack_object *o = unpack_get(map, "behaviour");
	double *const whole[] = {&b->disk_low_ms, &b->disk_high_ms, &b->fault_ms, &b->disk_wait_ms,
				 &b->run_wait_ms};

	if (job_report_number(&b->fault_requests, map, "fault_requests") ||
	    job_report_number(&b->fault_kb, map, "fault_kb"))
		return -EBADMSG;
	if (!o)
		return behaviour_valid(b) ? 0 : -EBADMSG;
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size < WHOLE_RUN ||
	    o->via.array.size > WHOLE_RUN + BEHAVIOUR_PHASES)
		return -EBADMSG;
	for (size_t i = 0; i < WHOLE_RUN; i++) {
		if (o->via.array.ptr[i].type != MSGPACK_OBJECT_FLOAT64)
			return -EBADMSG;
		*whole[i] = o->via.array.ptr[i].via.f64;
	}
	b->n = o->via.array.size - WHOLE_RUN;
	for (size_t i = 0; i < b->n; i++)
		if (phase_unpack(&b->phases[i], &o->via.array.ptr[WHOLE_RUN + i]))
			return -EBADMSG;
	return behaviour_valid(b) ? 0 : -EBADMSG;
}

void job_report_pack_first(const struct job_report *r, size_t more, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, (more ? 22U : 21U) + r->stopped + (r->talk != NULL));
	pack_str(&pk, "job", r->job);
	pack_str(&pk, "state", r->state);
	pack_u64(&pk, "kind", r->kind);
	pack_u64(&pk, "value", r->value);
	pack_u64(&pk, "start_ns", r->start_ns);
	pack_u64(&pk, "end_ns", r->end_ns);
	pack_u64(&pk, "wall_ms", r->wall_ms);
	pack_f64(&pk, "cpu_ms", r->cpu_ms);
	pack_f64(&pk, "requests", r->requests);
	pack_f64(&pk, "request_kb", r->request_kb);
	pack_f64(&pk, "memory_mb", r->memory_mb);
	pack_f64(&pk, "faults_per_ms", r->faults_per_ms);
	pack_f64(&pk, "read_kb", r->read_kb);
	pack_f64(&pk, "written_kb", r->written_kb);
	pack_f64(&pk, "netfs_read_kb", r->netfs_read_kb);
	pack_f64(&pk, "netfs_written_kb", r->netfs_written_kb);
	pack_f64(&pk, "fault_requests", r->behaviour.fault_requests);
	pack_f64(&pk, "fault_kb", r->behaviour.fault_kb);
	pack_f64(&pk, "alone_ms", r->alone_ms);
	pack_bin(&pk, "text", r->text, strlen(r->text));
	behaviour_pack(&r->behaviour, &pk);
	if (r->stopped)
		pack_bool(&pk, "stopped", true);
	if (r->talk)
		pack_bin(&pk, "talk", r->talk, r->talk_length);
	if (more) {
		pack_key(&pk, "more");
		msgpack_pack_array(&pk, more);
	}
}

void job_report_pack(const struct job_report *r, msgpack_sbuffer *out)
{
	job_report_pack_first(r, 0, out);
}

int job_report_others(const msgpack_object *map, const msgpack_object_array **others)
{
	const msgpack_object *more = unpack_get(map, "more");
	struct job_report r;

	*others = NULL;
	if (!more)
		return 0;
	if (more->type != MSGPACK_OBJECT_ARRAY || more->via.array.size >= JOB_REPORTS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < more->via.array.size; i++)
		if (job_report_unpack(&r, &more->via.array.ptr[i]))
			return -EBADMSG;
	*others = &more->via.array;
	return 0;
}

/* What it is about is judged by whoever reads it. */
static int job_report_talk(struct job_report *r, const msgpack_object *map)
{
	const msgpack_object *o = unpack_get(map, "talk");

	if (!o)
		return 0;
	if (o->type != MSGPACK_OBJECT_BIN || !o->via.bin.size ||
	    o->via.bin.size > EXCHANGE_PACKED_MAX)
		return -EBADMSG;
	r->talk = o->via.bin.ptr;
	r->talk_length = o->via.bin.size;
	return 0;
}

int job_report_unpack(struct job_report *r, const msgpack_object *map)
{
	static const char *const states[] = {"exited", "killed", "failed", "lost", RUNNING};

	*r = (struct job_report){0};
	if (unpack_str(map, "job", r->job, sizeof(r->job)) ||
	    unpack_str(map, "state", r->state, sizeof(r->state)) ||
	    unpack_u64(map, "kind", &r->kind) || unpack_u64(map, "value", &r->value) ||
	    unpack_u64(map, "start_ns", &r->start_ns) || unpack_u64(map, "end_ns", &r->end_ns) ||
	    unpack_u64(map, "wall_ms", &r->wall_ms) || unpack_f64(map, "cpu_ms", &r->cpu_ms) ||
	    unpack_f64(map, "requests", &r->requests) ||
	    unpack_f64(map, "request_kb", &r->request_kb) ||
	    unpack_f64(map, "memory_mb", &r->memory_mb) ||
	    unpack_f64(map, "faults_per_ms", &r->faults_per_ms) ||
	    unpack_str(map, "text", r->text, sizeof(r->text)) || r->cpu_ms < 0 || r->requests < 0 ||
	    r->request_kb < 0 || r->memory_mb < 0 || r->faults_per_ms < 0 ||
	    job_report_number(&r->read_kb, map, "read_kb") ||
	    job_report_number(&r->written_kb, map, "written_kb") || r->read_kb < 0 ||
	    r->written_kb < 0 || behaviour_unpack(&r->behaviour, map))
		return -EBADMSG;
	if (job_report_number(&r->netfs_read_kb, map, "netfs_read_kb") || r->netfs_read_kb < 0 ||
	    job_report_number(&r->netfs_written_kb, map, "netfs_written_kb") ||
	    r->netfs_written_kb < 0)
		return -EBADMSG;
	if (job_report_number(&r->alone_ms, map, "alone_ms") || r->alone_ms < 0)
		return -EBADMSG;
	if (unpack_get(map, "stopped") && unpack_bool(map, "stopped", &r->stopped))
		return -EBADMSG;
	if (job_report_talk(r, map))
		return -EBADMSG;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (!strcmp(r->state, states[i]))
			return 0;
	return -EBADMSG;
}

bool job_report_running(const struct job_report *r)
{
	return !strcmp(r->state, RUNNING);
}

void job_report_profile(const struct job_report *r, struct profile *run)
{
	const struct behaviour *b = &r->behaviour;
	double wall = r->wall_ms > 1 ? (double)r->wall_ms : 1;
	double total[BEHAVIOUR_RESOURCES], busy;

	behaviour_sum(b, total);
	busy = r->cpu_ms + total[BEHAVIOUR_DISK] + b->disk_wait_ms + b->run_wait_ms;
	*run = (struct profile){
		.cpu_ms = r->cpu_ms,
		.requests = r->requests,
		.request_mb = r->requests * r->request_kb / 1e3,
		.fault_requests = b->fault_requests,
		.fault_mb = b->fault_kb / 1e3,
		.memory_mb = r->memory_mb,
		.wall_ms = wall,
		.rest_ms = fmax(0, wall - busy),
		.com_ms = total[BEHAVIOUR_COM],
		.disk_ms = total[BEHAVIOUR_DISK],
		.read_mb = r->read_kb / 1e3,
		.written_mb = r->written_kb / 1e3,
		.shared_read_mb = r->netfs_read_kb / 1e3,
		.shared_written_mb = r->netfs_written_kb / 1e3,
		.behaviour = *b,
	};
}

bool job_report_rests(const struct job_report *r)
{
	struct profile run;

	job_report_profile(r, &run);
	return run.rest_ms > REST_MOST * run.wall_ms;
}

double job_report_slowdown(const struct job_report *r, double response_ms)
{
	double slowdown;

	if (!(r->alone_ms > 0) || !isfinite(r->alone_ms) || !(response_ms > 0) ||
	    job_report_rests(r))
		return 0;
	slowdown = response_ms / r->alone_ms;
	return slowdown < SLOW_MOST ? slowdown : 0;
}
