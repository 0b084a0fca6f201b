/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A workload: a source's functions and the facts about it; and jobs held in memory. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "sim/workload.h"
#include "sim/workload/hash.h"

struct workload {
	const struct workload_ops *ops;
	void *state;
	struct workload_info info;
	char *synthetic; /* the memory of info.synthetic */
};

struct workload *workload_new(const struct workload_ops *ops, void *state,
			      const struct workload_info *info)
{
	struct workload *w = calloc(1, sizeof(*w));

	if (w) {
		w->ops = ops;
		w->state = state;
		w->info = *info;
		w->synthetic = strdup(info->synthetic ? info->synthetic : "");
		w->info.synthetic = w->synthetic;
	}
	if (!w || !w->synthetic) {
		ops->free(state);
		free(w);
		return NULL;
	}
	return w;
}

int workload_next(struct workload *w, struct sim_job *job, struct iocom_err *err)
{
	return w->ops->next(w->state, job, err);
}

int workload_rewind(struct workload *w, struct iocom_err *err)
{
	return w->ops->rewind(w->state, err);
}

const struct workload_info *workload_info(const struct workload *w)
{
	return &w->info;
}

void workload_free(struct workload *w)
{
	if (!w)
		return;
	w->ops->free(w->state);
	free(w->synthetic);
	free(w);
}

/* --- in memory ---------------------------------------------------------------- */

struct held {
	struct sim_job *jobs;
	size_t n, at;
};

static int held_next(void *state, struct sim_job *job, struct iocom_err *err)
{
	struct held *h = state;

	(void)err;
	if (h->at == h->n)
		return 0;
	*job = h->jobs[h->at++];
	return 1;
}

static int held_rewind(void *state, struct iocom_err *err)
{
	struct held *h = state;

	(void)err;
	h->at = 0;
	return 0;
}

static void held_free(void *state)
{
	struct held *h = state;

	free(h->jobs);
	free(h);
}

static const struct workload_ops held_ops = {held_next, held_rewind, held_free};

static int held_add(struct held *h, size_t *room, const struct sim_job *job)
{
	if (array_reserve(h->jobs, *room, h->n + 1, 1024))
		return -ENOMEM;
	h->jobs[h->n++] = *job;
	return 0;
}

struct workload *workload_in_memory(struct workload *source, struct iocom_err *err)
{
	struct held *h = calloc(1, sizeof(*h));
	struct workload_info info = source->info;
	struct workload *w = NULL;
	struct sim_job job;
	size_t room = 0;
	int rc = h ? workload_rewind(source, err) : -ENOMEM;

	while (!rc) {
		rc = workload_next(source, &job, err);
		if (rc <= 0)
			break;
		if (job.home >= info.nodes)
			info.nodes = job.home + 1;
		rc = held_add(h, &room, &job);
	}
	if (!rc) {
		info.jobs = h->n;
		w = workload_new(&held_ops, h, &info);
		h = NULL;
	}
	if (!w && (!rc || rc == -ENOMEM))
		iocom_err_set(err, -ENOMEM, "%s: out of memory", info.source);
	if (h)
		held_free(h);
	workload_free(source);
	return w;
}

/* Hashes the values as text, so that padding in the struct does not count. */
static int hash_job(struct hash *hash, const struct sim_job *j)
{
	char text[400];
	int n = snprintf(text, sizeof(text), "%a %u %u %u %a %a %a %a %a %a %a %a %a %a %a %a %a\n",
			 j->arrival_ms, j->home, j->tasks, j->kind, j->cpu_ms, j->io_per_ms,
			 j->request_kb, j->request_sd_kb, j->reaccess, j->requests, j->memory_mb,
			 j->faults_per_ms, j->initial_mb, j->write_fraction, j->barrier_ms,
			 j->messages_per_ms, j->message_kb);

	return hash_add(hash, text, (size_t)n);
}

static int describe_jobs(const struct sim_job *jobs, size_t n, struct workload_info *info)
{
	struct hash hash;
	int rc = hash_begin(&hash);

	info->kinds = 1;
	for (size_t i = 0; i < n && !rc; i++) {
		rc = jobs[i].kind < SIM_KINDS_MAX ? hash_job(&hash, &jobs[i]) : -EINVAL;
		if (jobs[i].home >= info->nodes)
			info->nodes = jobs[i].home + 1;
		if (jobs[i].kind >= info->kinds)
			info->kinds = jobs[i].kind + 1;
	}
	if (rc)
		return rc;
	snprintf(info->kind[0], sizeof(info->kind[0]), "job");
	for (uint32_t i = 0; i < info->kinds && info->kinds > 1; i++)
		snprintf(info->kind[i], sizeof(info->kind[i]), "kind %u", i);
	return hash_end(&hash, info->hash);
}

struct workload *workload_from_jobs(const struct sim_job *jobs, size_t n, const char *name)
{
	struct workload_info info = {.jobs = n, .synthetic = ""};
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	snprintf(info.source, sizeof(info.source), "%s", name);
	h->jobs = reallocarray(NULL, n ? n : 1, sizeof(*jobs));
	h->n = n;
	if (!h->jobs || describe_jobs(jobs, n, &info)) {
		held_free(h);
		return NULL;
	}
	if (n)
		memcpy(h->jobs, jobs, n * sizeof(*jobs));
	return workload_new(&held_ops, h, &info);
}
