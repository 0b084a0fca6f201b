/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The jobs of a recording in order of arrival; see recording.h.
 *
 *   waiting: [ first .. next )   a ring in order of arrival; each job waits for its end
 *
 * The first job leaves when its end was read, or as it was submitted when the recording is over
 * or too many wait.  A hash table with chains through the ring finds jobs by id.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/recording.h"

#define WAITING_MAX (UINT32_C(1) << 18)
#define NOBODY	    UINT32_MAX

struct waiting {
	struct recording_job job;
	struct recording_finish finish;
	bool ended;
	uint32_t chain; /* slot of the next job with the same hash, or NOBODY */
};

struct recording_jobs {
	struct recording *source;
	struct waiting *ring;
	uint32_t *heads;
	uint32_t room;	      /* number of slots and of heads, a power of two */
	uint64_t first, next; /* numbers of arrival; the slot is the number mod room */
	bool over;
	struct waiting last; /* the job returned last */
};

bool recording_never_ran(const struct recording_finish *finish)
{
	const struct recording_measured *m = &finish->measured;

	return finish->has_measured && m->wall_ms == 0 && m->cpu_ms == 0 && m->requests == 0 &&
	       m->page_faults == 0;
}

double recording_turnaround_ms(const struct recording_job *submitted,
			       const struct recording_finish *finish)
{
	double waited;

	if (!finish || recording_never_ran(finish))
		return -1;
	if (!finish->has_measured || !(finish->measured.wall_ms > 0))
		return finish->time_ms - submitted->time_ms;
	/* Another node's clock gave the start, and it may be behind. */
	waited = finish->start_ms - submitted->time_ms;
	return (waited > 0 ? waited : 0) + finish->measured.wall_ms;
}

void recording_to_job(const struct recording_job *submitted, const struct recording_finish *finish,
		      struct recording_job *out)
{
	const struct recording_measured *m;
	double tasks = submitted->tasks, requests, mb;
	bool mapped;

	*out = *submitted;
	if (!finish || !finish->has_measured)
		return;
	m = &finish->measured;
	mapped = m->page_fault_mb > 0 && !finish->memory_short;
	requests = m->requests + (mapped ? m->page_faults : 0);
	mb = m->request_mb + (mapped ? m->page_fault_mb : 0);
	out->cpu_ms = m->cpu_ms / tasks;
	out->requests = requests / tasks;
	if (requests > 0 && mb > 0)
		out->request_kb = mb * 1e3 / requests;
	if (m->memory_mb > 0)
		out->memory_mb = m->memory_mb / tasks;
	/* A job that never paged does not tell how often it would when memory is short. */
	if (m->page_faults > 0 && m->cpu_ms > 0 && !mapped)
		out->faults_per_ms = m->page_faults / m->cpu_ms;
	if (out->io_per_ms == 0)
		out->io_per_ms = mapped && m->wall_ms > 0 ? requests / m->wall_ms : m->io_per_ms;
}

/* --- the waiting jobs --------------------------------------------------------------- */

static uint32_t recording_jobs_hash(const struct recording_jobs *jobs, const char *id)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 0x100000001b3u;
	return (uint32_t)(h ^ (h >> 32)) & (jobs->room - 1);
}

static uint32_t slot(const struct recording_jobs *jobs, uint64_t number)
{
	return (uint32_t)(number & (jobs->room - 1));
}

static void link_up(struct recording_jobs *jobs, uint32_t at)
{
	uint32_t *head = &jobs->heads[recording_jobs_hash(jobs, jobs->ring[at].job.id)];

	jobs->ring[at].chain = *head;
	*head = at;
}

static void take_out(struct recording_jobs *jobs, uint32_t at)
{
	uint32_t *link = &jobs->heads[recording_jobs_hash(jobs, jobs->ring[at].job.id)];

	while (*link != at)
		link = &jobs->ring[*link].chain;
	*link = jobs->ring[at].chain;
}

static struct waiting *recording_jobs_find(const struct recording_jobs *jobs, const char *id)
{
	uint32_t at = jobs->room ? jobs->heads[recording_jobs_hash(jobs, id)] : NOBODY;

	while (at != NOBODY && (jobs->ring[at].ended || strcmp(jobs->ring[at].job.id, id) != 0))
		at = jobs->ring[at].chain;
	return at == NOBODY ? NULL : &jobs->ring[at];
}

static int recording_jobs_grow(struct recording_jobs *jobs)
{
	uint32_t room = jobs->room ? 2 * jobs->room : 64;
	struct waiting *ring = calloc(room, sizeof(*ring));
	uint32_t *heads = malloc(room * sizeof(*heads));

	if (!ring || !heads) {
		free(ring);
		free(heads);
		return -ENOMEM;
	}
	for (uint64_t i = jobs->first; i < jobs->next; i++)
		ring[i & (room - 1)] = jobs->ring[slot(jobs, i)];
	free(jobs->ring);
	free(jobs->heads);
	jobs->ring = ring;
	jobs->heads = heads;
	jobs->room = room;
	memset(heads, 0xff, room * sizeof(*heads)); /* NOBODY */
	for (uint64_t i = jobs->first; i < jobs->next; i++)
		link_up(jobs, slot(jobs, i));
	return 0;
}

static int recording_jobs_arrive(struct recording_jobs *jobs, const struct recording_job *job)
{
	struct waiting *w;

	if (jobs->next - jobs->first == jobs->room) {
		int rc = recording_jobs_grow(jobs);

		if (rc)
			return rc;
	}
	w = &jobs->ring[slot(jobs, jobs->next)];
	*w = (struct waiting){.job = *job};
	link_up(jobs, slot(jobs, jobs->next++));
	return 0;
}

/* --- the stream --------------------------------------------------------------------- */

int recording_jobs_open(const char *path, struct recording_jobs **out, struct iocom_err *err)
{
	struct recording_jobs *jobs = calloc(1, sizeof(*jobs));
	int rc = jobs ? recording_open(path, &jobs->source, err)
		      : iocom_err_set(err, -ENOMEM, "out of memory");

	if (rc)
		free(jobs);
	else
		*out = jobs;
	return rc;
}

struct recording *recording_jobs_source(struct recording_jobs *jobs)
{
	return jobs->source;
}

/* Returns whether the oldest job may leave. */
static bool recording_jobs_ready(const struct recording_jobs *jobs)
{
	uint64_t waiting = jobs->next - jobs->first;

	if (!waiting)
		return false;
	return jobs->over || waiting >= WAITING_MAX || !recording_header(jobs->source)->live ||
	       jobs->ring[slot(jobs, jobs->first)].ended;
}

/* Returns whether NODE needs more memory than it has, by the load that it told last. */
static bool recording_jobs_short(const struct recording_jobs *jobs, uint32_t node)
{
	const struct view_node *nodes;
	const struct rules_node *told;
	uint32_t n;

	nodes = recording_nodes(jobs->source, &n);
	if (node >= n)
		return false;
	told = &nodes[node].node;
	return told->has_advertised && told->ram_mb > 0 &&
	       told->advertised.memory_mb > told->ram_mb - told->buffer_mb;
}

static int read_on(struct recording_jobs *jobs, struct iocom_err *err)
{
	const struct recording_line *line;
	struct waiting *w;
	int rc = recording_next(jobs->source, &line, err);

	if (rc <= 0) {
		jobs->over = rc == 0;
		return rc;
	}
	if (line->kind == RECORDING_SUBMIT && recording_jobs_arrive(jobs, &line->job))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (line->kind != RECORDING_FINISH)
		return 0;
	w = recording_jobs_find(jobs, line->finish.id);
	if (w) {
		w->finish = line->finish;
		w->finish.memory_short = recording_jobs_short(jobs, line->finish.node);
		w->ended = true;
	}
	return 0;
}

int recording_jobs_next(struct recording_jobs *jobs, struct recording_job *job,
			struct iocom_err *err)
{
	const struct waiting *w;

	while (!recording_jobs_ready(jobs)) {
		int rc = jobs->over ? 0 : read_on(jobs, err);

		if (rc || (jobs->over && jobs->next == jobs->first))
			return rc;
	}
	w = &jobs->ring[slot(jobs, jobs->first)];
	jobs->last = *w;
	recording_to_job(&w->job, w->ended ? &w->finish : NULL, job);
	take_out(jobs, slot(jobs, jobs->first++));
	return 1;
}

const struct recording_job *recording_jobs_submitted(const struct recording_jobs *jobs)
{
	return &jobs->last.job;
}

const struct recording_finish *recording_jobs_finish(const struct recording_jobs *jobs)
{
	return jobs->last.ended ? &jobs->last.finish : NULL;
}

int recording_jobs_rewind(struct recording_jobs *jobs, struct iocom_err *err)
{
	jobs->first = jobs->next = 0;
	jobs->over = false;
	if (jobs->room)
		memset(jobs->heads, 0xff, jobs->room * sizeof(*jobs->heads));
	return recording_rewind(jobs->source, err);
}

void recording_jobs_free(struct recording_jobs *jobs)
{
	if (!jobs)
		return;
	recording_close(jobs->source);
	free(jobs->ring);
	free(jobs->heads);
	free(jobs);
}
