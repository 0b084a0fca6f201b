/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files that make the document of a reading share: sample_json.c (the
 * document), sample_load.c (counters, rates, shares), sample_collect.c (whose job
 * a cgroup is, order), sample_disks.c, sample_times.c, sample_remotes.c,
 * sample_cost.c.
 *
 * json_t results are new references, NULL when memory is out; the sample_put
 * functions return 0, or -1 when memory is out.
 */
#ifndef IOCOM_SAMPLE_BUILD_H
#define IOCOM_SAMPLE_BUILD_H

#include "user/monitor/sample_json.h"

struct share {
	double value;
	const char *resource; /* "cpu", "disk", "network" */
};

struct task_ref {
	const struct iocom_task *task;
	struct share share;
	uint64_t owner; /* id of the cgroup that names its job */
};

struct job_ref {
	struct iocom_job_load sum; /* nested cgroups of a job folded in */
	struct share share;
	uint32_t mine, others; /* tasks of this reading, by user */
};

struct build {
	const struct monitor_sample *sample;
	const struct sample_json_options *opt;
	struct sample_names *names;
	double seconds;
	double disk_bytes_per_s, network_bytes_per_s;
	struct task_ref *tasks;
	struct job_ref *jobs;
	size_t njobs;
	uint64_t unknown; /* counters that this kernel does not tell: bits, as sample_load.c has
			     them */
	struct monitor_remote *remotes; /* cgroup_id is the owner's; in its order */
	size_t nremotes;
};

/* Sets a member; takes VALUE, which may be NULL (-1 then). */
int sample_put(json_t *object, const char *key, json_t *value);
json_t *sample_integer(uint64_t value);
/* Thousandths are enough for every unit here, and print short. */
json_t *sample_real(double value);
/* Cut to valid UTF-8. */
json_t *sample_text(const char *s);
/* OBJECT, or NULL and OBJECT freed when RC tells of a failure. */
json_t *sample_finish(json_t *object, int rc);

/* Which counters the reading calls unknown, for `unknown`. */
uint64_t sample_unknown(const struct monitor_sample *sample);
/* All counters and their rates (LOAD, DELTA may be NULL: without); null where this kernel does not
 * tell. */
int sample_put_load(const struct build *b, json_t *object, const struct iocom_load *load,
		    const struct iocom_load *delta);
/* What no job could be given: its counters, all 0 where nothing was lost. */
json_t *sample_lost(const struct build *b);
/* Times of each resource in the interval, and their parts of the sum. */
int sample_put_times(const struct build *b, json_t *object, const struct iocom_job_load *job);
int sample_put_share(json_t *object, const struct share *share);
/* What a load moved on disks, and on the network. */
double sample_disk_bytes(const struct iocom_load *load);
double sample_network_bytes(const struct iocom_load *load);
struct share sample_share(const struct build *b, const struct iocom_load *delta);
/* Bytes per second of the disk that worked most. */
double sample_disk_speed(const struct monitor_sample *sample);

/* The job's name, the cgroup's path, or null for the root and the nameless kernel. */
json_t *sample_job_text(struct build *b, uint64_t owner);
/* The nearest cgroup at or above ID that is a job of iocom, else ID itself. */
uint64_t sample_job_owner(struct build *b, uint64_t id);
/* Fills jobs and tasks of B, nested cgroups folded, ordered by share. */
void sample_collect(struct build *b);
/* The options let the caller see JOB. */
bool sample_job_shown(const struct build *b, const struct job_ref *job);

/* Fills the remotes of B, after sample_collect. */
void sample_collect_remotes(struct build *b);
/* The rows of the job that the cgroup OWNER names. */
json_t *sample_remotes(const struct build *b, uint64_t owner);

json_t *sample_disks(const struct build *b);
json_t *sample_unattributed(const struct monitor_sample *s);
json_t *sample_identity(const struct monitor_sample *s);
/* With HELP: the sentences of those drops that happened. */
json_t *sample_drops(const struct monitor_sample *s, bool help);
json_t *sample_degraded(const struct monitor_sample *s);
json_t *sample_cost(const struct monitor_sample *s);

#endif
