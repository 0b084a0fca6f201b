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
	uint64_t owner; /* id of the cgroup that the job is named after */
};

struct job_ref {
	struct iocom_job_load sum; /* with the job's nested cgroups */
	struct share share;
	uint32_t mine, others, roots; /* tasks in this reading: the user's, other users', root's */
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
	uint64_t unknown; /* counters that this kernel does not tell, as bits of sample_load.c */
	struct monitor_remote *remotes; /* cgroup_id is the owner's; sorted by it */
	size_t nremotes;
};

/* Sets a member and takes VALUE; returns -1 if VALUE is NULL. */
int sample_put(json_t *object, const char *key, json_t *value);
json_t *sample_integer(uint64_t value);
/* Rounds to thousandths, which are enough for every unit here. */
json_t *sample_real(double value);
/* Makes a string, cut to valid UTF-8. */
json_t *sample_text(const char *s);
/* Returns OBJECT, or frees it and returns NULL if RC is a failure. */
json_t *sample_finish(json_t *object, int rc);

/* Returns which counters the reading calls unknown, for `unknown`. */
uint64_t sample_unknown(const struct monitor_sample *sample);
/* Puts all counters and their rates (LOAD or DELTA may be NULL: left out); null if this kernel
 * does not tell them. */
int sample_put_load(const struct build *b, json_t *object, const struct iocom_load *load,
		    const struct iocom_load *delta);
/* Returns the counters that found no job; all 0 if nothing was lost. */
json_t *sample_lost(const struct build *b);
/* Puts the time of each resource in the interval, and its part of the sum. */
int sample_put_times(const struct build *b, json_t *object, const struct iocom_job_load *job);
int sample_put_share(json_t *object, const struct share *share);
/* Return the bytes that a load moved on disks and on the network. */
double sample_disk_bytes(const struct iocom_load *load);
double sample_network_bytes(const struct iocom_load *load);
struct share sample_share(const struct build *b, const struct iocom_load *delta);
/* Returns the bytes per second of the disk that worked most. */
double sample_disk_speed(const struct monitor_sample *sample);

/*
 * Puts "job": the name of iocom's job, the cgroup's path, or null for the root and the nameless
 * kernel; and "name" if people have a name for the path.
 */
int sample_put_job(struct build *b, json_t *object, uint64_t owner);
/*
 * Returns the nearest cgroup at or above ID that is a job of iocom, else the one that people name
 * (sample_names_owner).
 */
uint64_t sample_job_owner(struct build *b, uint64_t id);
/* Fills jobs and tasks of B, with nested cgroups folded, sorted by share. */
void sample_collect(struct build *b);
/* Returns true if the options let the caller see JOB. */
bool sample_job_shown(const struct build *b, const struct job_ref *job);

/* Fills the remotes of B, after sample_collect. */
void sample_collect_remotes(struct build *b);
/* Returns the rows of the job that the cgroup OWNER names. */
json_t *sample_remotes(const struct build *b, uint64_t owner);

json_t *sample_disks(const struct build *b);
json_t *sample_unattributed(const struct monitor_sample *s);
json_t *sample_identity(const struct monitor_sample *s);
/* With HELP adds a sentence for each kind of drop that happened. */
json_t *sample_drops(const struct monitor_sample *s, bool help);
json_t *sample_degraded(const struct monitor_sample *s);
json_t *sample_cost(const struct monitor_sample *s);

#endif
