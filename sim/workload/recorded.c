/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The jobs of an iocom recording (recording.h), of a live cluster or a simulated run.  The decoder
 * reads, checks and joins its lines; a job's kind is its class.  Live rates are accesses per ms of
 * wall-clock time.  If the number of accesses is known too, the rate per ms of computation is that
 * number over the computation.  Jobs that never ran are left out.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/view/recording.h"

#include "sim/workload/reader.h"

struct recorded {
	struct recording_jobs *jobs;
	bool wall;
	uint64_t by_wall; /* jobs whose rate could not be converted to one of computation */
};

/* Hashes the content here, because the decoder does its own reading. */
static int hash_all(struct reader *r, struct iocom_err *err)
{
	const char *trouble, *found = "";
	char buffer[64 * 1024];
	size_t got;
	int rc;

	if (source_rewind(r->source))
		return iocom_err_set(err, -EIO, "cannot read %s", source_name(r->source));
	do {
		rc = source_read(r->source, buffer, sizeof(buffer), &got, &trouble, &found);
		if (rc)
			return iocom_err_set(err, rc == -EBADMSG ? -EINVAL : rc,
					     "cannot read %s: %s", source_name(r->source), found);
		if (hash_add(r->lines.hash, buffer, got))
			return iocom_err_set(err, -EIO, "cannot compute SHA-256");
	} while (got);
	return 0;
}

static int open_jobs(struct reader *r, struct iocom_err *err)
{
	struct recorded *d = r->state;
	const struct recording_header *header;
	char path[PATH_MAX];
	int rc = source_path(r->source, path, sizeof(path));

	if (rc)
		return iocom_err_set(err, rc, "%s: %s", source_name(r->source), strerror(-rc));
	rc = recording_jobs_open(path, &d->jobs, err);
	if (rc) {
		d->jobs = NULL;
		return rc;
	}
	header = recording_header(recording_jobs_source(d->jobs));
	d->wall = header->params.rates == RULES_RATES_WALL;
	return 0;
}

static int recorded_begin(struct reader *r, struct iocom_err *err)
{
	struct recorded *d = r->state;
	int rc = d->jobs ? recording_jobs_rewind(d->jobs, err) : open_jobs(r, err);

	d->by_wall = 0;
	if (!rc && r->scanning)
		rc = hash_all(r, err);
	return rc;
}

/* The job runs by what was measured, but decisions about it use what was requested. */
static void take_asked(const struct recording_job *submitted, const struct recording_finish *finish,
		       struct sim_job *job)
{
	job->has_asked = true;
	job->asked = (struct sim_asked){
		.cpu_ms = submitted->cpu_ms,
		.io_per_ms = submitted->io_per_ms,
		.requests = submitted->requests,
		.implicit_share = submitted->implicit_share,
		.request_kb = submitted->request_kb,
		.memory_mb = submitted->memory_mb,
		.faults_per_ms = submitted->faults_per_ms,
		.node = finish ? finish->node : UINT32_MAX,
	};
}

static void rates(struct recorded *d, struct sim_job *job)
{
	if (job->requests >= 0 && job->cpu_ms > 0)
		job->io_per_ms = job->requests / job->cpu_ms;
	else
		d->by_wall++;
}

static int recorded_next(struct reader *r, struct record *record, struct iocom_err *err)
{
	struct recorded *d = r->state;
	struct sim_job *job = &record->job;
	const struct recording_finish *finish;
	struct recording_job from;
	int rc = recording_jobs_next(d->jobs, &from, err);

	if (rc <= 0)
		return rc;
	finish = recording_jobs_finish(d->jobs);
	if (finish && recording_never_ran(finish))
		return 2;
	if (from.home >= reader_hosts(r))
		return iocom_err_set(
			err, -EINVAL, "%s: job %s: expected a home from 0 to %u, found \"%u\"",
			source_name(r->source), from.id, reader_hosts(r) - 1, from.home);
	if (from.write_fraction > 1)
		return iocom_err_set(
			err, -EINVAL,
			"%s: job %s: expected a write_fraction from 0 to 1, found \"%g\"",
			source_name(r->source), from.id, from.write_fraction);
	record->arrival_ms = from.time_ms;
	record->holds = HOLDS_ALL;
	*job = (struct sim_job){
		.home = from.home,
		.tasks = from.tasks,
		.kind = reader_kind(r, from.class_name, strlen(from.class_name)),
		.cpu_ms = from.cpu_ms,
		.io_per_ms = from.io_per_ms,
		.request_kb = from.request_kb,
		.request_sd_kb = from.request_sd_kb,
		.reaccess = from.reaccess,
		.requests = from.requests >= 0 ? round(from.requests) : from.requests,
		.memory_mb = from.memory_mb,
		.faults_per_ms = from.faults_per_ms,
		.initial_mb = from.initial_mb,
		.write_fraction = from.write_fraction,
		.barrier_ms = from.barrier_ms,
		.messages_per_ms = from.messages_per_ms,
		.message_kb = from.message_kb,
	};
	if (d->wall) {
		rates(d, job);
		take_asked(recording_jobs_submitted(d->jobs), finish, job);
	}
	return 1;
}

static void recorded_describe(struct reader *r)
{
	const struct recorded *d = r->state;
	const struct recording *recording = recording_jobs_source(d->jobs);
	size_t at = 0;

	if (!recording_complete(recording))
		at = (size_t)snprintf(r->info.note, sizeof(r->info.note),
				      "the recording was cut off: it has no end line");
	if (d->by_wall)
		snprintf(r->info.note + at, sizeof(r->info.note) - at,
			 "%sthe rates of %llu jobs refer to wall-clock time", at ? "; " : "",
			 (unsigned long long)d->by_wall);
	snprintf(r->info.source, sizeof(r->info.source), "recording %.80s%s%.120s",
		 reader_base_name(r), *recording_header(recording)->source ? " of " : "",
		 recording_header(recording)->source);
}

static void recorded_end(struct reader *r)
{
	struct recorded *d = r->state;

	if (d->jobs)
		recording_jobs_free(d->jobs);
}

const struct format format_recording = {
	.name = "recording",
	.state = sizeof(struct recorded),
	.begin = recorded_begin,
	.next = recorded_next,
	.describe = recorded_describe,
	.end = recorded_end,
};
