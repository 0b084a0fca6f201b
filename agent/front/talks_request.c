/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "talks": who of a parallel job sent how much to whom.  Its "jobs" are joined as if they
 * were parts of one job: mpirun over `iocom rsh` has a job a node.  A gang's name stands for all
 * its parts.
 *
 * What is answered is bounded: the pairs with most bytes, the others as one sum.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/front/front.h"
#include "iocom/array.h"
#include "user/exchange/join.h"
#include "user/gang_name.h"
#include "user/monitor/job_times.h"
#include "user/pack.h"

#define TALKS_JOBS_MAX	64   /* that are named in one request */
#define TALKS_PAIRS_MAX 3000 /* in an answer, which another node's user may have asked for */
#define TALKS_RANKS_MAX 400

struct talks_part {
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
	bool ended;
	struct exchange said;
	bool has;
};

struct talks {
	struct front *front;
	struct client *client;
	uid_t uid;
	char class_name[64];
	struct talks_part *parts;
	size_t n, room;
	uint64_t unreadable;
	char job[SPEC_JOB_MAX]; /* the first that was asked for */
	uint32_t tasks;		/* of the gangs, by their plans; 0: of none */
};

static void talks_fini(struct talks *t)
{
	for (size_t i = 0; i < t->n; i++)
		exchange_fini(&t->parts[i].said);
	free(t->parts);
}

static void talks_read(struct talks *t, struct talks_part *part)
{
	struct iocom_err err = {0};
	void *report = NULL;
	size_t length = 0;

	if (journal_talk_get(t->front->journal, part->job, &report, &length, &err))
		return;
	part->has = !exchange_unpack(&part->said, report, length);
	t->unreadable += !part->has;
	free(report);
}

/* Adds the job NAME, if it was submitted here by the user.  Returns 0; -ENOENT; -ENOMEM; -EIO. */
static int talks_add(struct talks *t, const char *name)
{
	struct talks_part *part;
	struct iocom_err err = {0};
	char class_name[64];
	uid_t owner;
	int rc;

	if (t->n == JOIN_PARTS_MAX)
		return -ENOMEM;
	if (array_reserve(t->parts, t->room, t->n + 1, 8))
		return -ENOMEM;
	part = &t->parts[t->n];
	*part = (struct talks_part){0};
	rc = journal_home_get(t->front->journal, name, part->node, &owner, class_name, &part->ended,
			      &err);
	if (rc)
		return rc;
	if (t->uid != 0 && owner != t->uid) {
		client_log_foreign(t->client, "talks", name);
		return -ENOENT;
	}
	snprintf(part->job, sizeof(part->job), "%s", name);
	if (!t->n)
		memcpy(t->class_name, class_name, sizeof(class_name));
	talks_read(t, part);
	t->n++;
	return 0;
}

static void talks_count(void *arg, const struct journal_job *part)
{
	struct talks *t = arg;

	t->tasks += part->tasks;
}

/* Adds the job or gang NAME. */
static int talks_add_all(struct talks *t, const char *name)
{
	char part[SPEC_JOB_MAX];
	size_t before = t->n;
	int rc = 0;

	if (!before)
		snprintf(t->job, sizeof(t->job), "%s", name);
	for (uint32_t k = 0; k < GANG_PARTS_MAX && !rc; k++) {
		if (gang_part_name(name, k, part))
			break;
		rc = talks_add(t, part);
	}
	if (t->n == before)
		return talks_add(t, name);
	if (rc && rc != -ENOENT)
		return rc;
	return journal_gang_parts(t->front->journal, name, talks_count, t);
}

/* --- the answer ----------------------------------------------------------------------------- */

static json_t *talks_sum(const struct exchange_sum *s)
{
	return json_pack("{s:I,s:I,s:I,s:I}", "sent_bytes", (json_int_t)s->sent_bytes,
			 "received_bytes", (json_int_t)s->received_bytes, "sent_messages",
			 (json_int_t)s->sent_messages, "received_messages",
			 (json_int_t)s->received_messages);
}

static json_t *talks_ranks(const struct join *j)
{
	json_t *list = json_array();

	for (uint32_t r = 0; r < j->tasks && r < TALKS_RANKS_MAX; r++) {
		const struct join_rank *k = &j->ranks[r];
		double bursts = (double)k->bursts;

		json_array_append_new(
			list,
			json_pack("{s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:I,s:f}", "rank",
				  (int)r, "part", (int)k->part, "link_sent",
				  (json_int_t)k->link.sent_bytes, "link_received",
				  (json_int_t)k->link.received_bytes, "inside_sent",
				  (json_int_t)k->inside.sent_bytes, "inside_received",
				  (json_int_t)k->inside.received_bytes, "outside_sent",
				  (json_int_t)(k->outside.sent_bytes + k->unranked.sent_bytes),
				  "outside_received",
				  (json_int_t)(k->outside.received_bytes +
					       k->unranked.received_bytes),
				  "com_ms", k->com_ms, "l_com_ms", k->l_com_ms, "cpu_ms",
				  (double)k->cpu_us / 1e3, "bursts", (json_int_t)k->bursts,
				  "burst_ms", bursts > 0 ? (double)k->burst_us / 1e3 : 0));
	}
	return list;
}

static int talks_most_first(const void *a, const void *b)
{
	const struct pattern_cell *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* [ from, to, bytes, messages, on one node ] */
static json_t *talks_pairs(struct join *j, struct pattern_cell *others)
{
	json_t *list = json_array();

	if (j->ncells > TALKS_PAIRS_MAX)
		qsort(j->cells, j->ncells, sizeof(*j->cells), talks_most_first);
	for (size_t i = 0; i < j->ncells; i++) {
		const struct pattern_cell *c = &j->cells[i];

		if (i < TALKS_PAIRS_MAX) {
			json_array_append_new(list, json_pack("[i,i,I,I,b]", (int)c->from,
							      (int)c->to, (json_int_t)c->bytes,
							      (json_int_t)c->messages, c->inside));
			continue;
		}
		others->bytes = exchange_add(others->bytes, c->bytes);
		others->messages = exchange_add(others->messages, c->messages);
		others->from++;
	}
	return list;
}

static json_t *talks_pattern(const struct join *j)
{
	const struct pattern *p = &j->pattern;
	json_t *out = json_pack("{s:s,s:f,s:f}", "name", pattern_name(p->kind), "share", p->share,
				"coverage", p->coverage);

	if (p->kind == PATTERN_MASTER)
		json_object_set_new(out, "master", json_integer(p->master));
	if (p->kind == PATTERN_GRID) {
		json_object_set_new(out, "rows", json_integer(p->rows));
		json_object_set_new(out, "columns", json_integer(p->columns));
	}
	return out;
}

static json_t *talks_parts(const struct talks *t, const struct join *j)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n; i++) {
		const struct talks_part *p = &t->parts[i];

		json_array_append_new(
			list, json_pack("{s:s,s:s,s:b,s:b,s:b,s:f}", "job", p->job, "node", p->node,
					"ended", p->ended, "reported", p->has, "late",
					p->has && p->said.late, "l_com_ms", j->part_com_ms[i]));
	}
	return list;
}

static json_t *talks_phases(const struct join *j)
{
	const struct join_phases *p = &j->phases;

	return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f}", "number", p->number, "cpu_ms", p->cpu_ms,
			 "com_ms", p->com_ms, "disk_ms", p->disk_ms, "slowest_ms", p->slowest_ms,
			 "burst_ms", p->burst_ms);
}

/* What is of no pair of ranks. */
static json_t *talks_rest(const struct talks *t, const struct join *j)
{
	struct exchange_sum outside = {0}, unranked = {0};

	for (uint32_t r = 0; r < j->tasks; r++) {
		exchange_sum_add(&outside, &j->ranks[r].outside);
		exchange_sum_add(&unranked, &j->ranks[r].unranked);
	}
	return json_pack("{s:o,s:o,s:o,s:o,s:I,s:o,s:I,s:I}", "outside", talks_sum(&outside),
			 "unranked", talks_sum(&unranked), "no_rank", talks_sum(&j->no_rank),
			 "rest", talks_sum(&j->rest), "rest_connections", (json_int_t)j->rest_rows,
			 "refused", talks_sum(&j->refused), "refused_rows",
			 (json_int_t)j->refused_rows, "unreadable", (json_int_t)t->unreadable);
}

static json_t *talks_json(const struct talks *t, struct join *j, double mb_per_s)
{
	struct pattern_cell others = {0};
	json_t *pairs = talks_pairs(j, &others);
	json_t *out = json_pack("{s:s,s:i,s:f,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "job", t->job, "tasks",
				(int)j->tasks, "network_mb_per_s", mb_per_s, "master",
				(int)j->master, "parts", talks_parts(t, j), "ranks", talks_ranks(j),
				"pairs", pairs, "pattern", talks_pattern(j), "phases",
				talks_phases(j), "rest", talks_rest(t, j));

	if (out && *t->class_name)
		json_object_set_new(out, "class", json_string(t->class_name));
	if (out && others.from)
		json_object_set_new(out, "more_pairs",
				    json_pack("{s:i,s:I,s:I}", "pairs", (int)others.from, "bytes",
					      (json_int_t)others.bytes, "messages",
					      (json_int_t)others.messages));
	return out;
}

static void talks_answer(struct talks *t)
{
	double mb_per_s = job_times_mb_per_s(t->front->base->set->network_mb_per_s);
	struct join_part *parts = calloc(t->n + 1, sizeof(*parts));
	struct join join = {0};
	json_t *out = NULL;

	for (size_t i = 0; parts && i < t->n; i++)
		parts[i].said = t->parts[i].has ? &t->parts[i].said : NULL;
	if (parts && !join_parts(&join, parts, t->n, t->tasks, NULL, mb_per_s))
		out = talks_json(t, &join, mb_per_s);
	join_fini(&join);
	free(parts);
	if (out)
		client_json(t->client, out);
	else
		client_error(t->client, "out of memory");
}

static int talks_take(struct talks *t, const msgpack_object *o, char name[SPEC_JOB_MAX])
{
	if (o->type != MSGPACK_OBJECT_STR || o->via.str.size >= SPEC_JOB_MAX ||
	    memchr(o->via.str.ptr, 0, o->via.str.size))
		return -EBADMSG;
	memcpy(name, o->via.str.ptr, o->via.str.size);
	name[o->via.str.size] = 0;
	return journal_last(t->front->journal, t->uid, name) ? -EIO : talks_add_all(t, name);
}

void talks_request(struct front *front, struct client *c, const msgpack_object *request)
{
	struct talks t = {.front = front, .client = c, .uid = client_who(c)->uid};
	const msgpack_object *jobs = unpack_get(request, "jobs");
	char name[SPEC_JOB_MAX] = "";
	int rc = 0;

	if (!jobs || jobs->type != MSGPACK_OBJECT_ARRAY || !jobs->via.array.size ||
	    jobs->via.array.size > TALKS_JOBS_MAX) {
		client_error(c, "the request names no \"jobs\", or more than %d", TALKS_JOBS_MAX);
		return;
	}
	guest_settle(front->guest);
	for (size_t i = 0; i < jobs->via.array.size && !rc; i++)
		rc = talks_take(&t, &jobs->via.array.ptr[i], name);
	if (rc == -EBADMSG)
		client_error(c, "one of \"jobs\" is not the name of a job");
	else if (rc == -ENOENT)
		client_error(c,
			     "no job of yours named %s was submitted at node %s; `iocom jobs "
			     "--all` lists them",
			     name, front->base->set->name);
	else if (rc)
		client_error(c, "cannot read the job journal in %s", front->base->set->state_dir);
	else {
		/* Jobs that are joined as one number their ranks themselves. */
		if (jobs->via.array.size > 1)
			t.tasks = 0;
		talks_answer(&t);
	}
	talks_fini(&t);
}
