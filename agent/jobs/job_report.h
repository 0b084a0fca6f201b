/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The report that a target sends home when a job is over, and what home learns from it.  Of a job
 * that runs, it says what the job has done so far.
 */
#ifndef IOCOM_JOB_REPORT_H
#define IOCOM_JOB_REPORT_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "user/behaviour.h"
#include "balancer/profile/profile.h"
#include "user/spec.h"

/* How a job ended, or that it runs, and what it used. */
struct job_report {
	char job[SPEC_JOB_MAX];
	char state[16]; /* exited, killed, failed, lost; running */
	uint64_t kind, value;
	uint64_t start_ns, end_ns, wall_ms;
	double cpu_ms; /* at reference speed 1 */
	double requests, request_kb, memory_mb, faults_per_ms;
	double read_kb, written_kb; /* of the explicit requests; an older agent does not tell: 0 */
	/* on network file systems; an older agent does not tell: 0 */
	double netfs_read_kb, netfs_written_kb;
	/*
	 * What it would have taken alone at this node: its CPU time there, and the time that its
	 * disk requests were served, without any wait.  0: not known, or an older agent's report.
	 */
	double alone_ms;
	struct behaviour behaviour; /* its CPU times are at reference speed 1, too */
	bool stopped;		    /* running, but stopped by a signal */
	char text[256];
	/* What its ranks sent and received (user/exchange/exchange.h); borrowed; NULL: nothing. */
	const void *talk;
	size_t talk_length;
};

/* Reports that one message may carry. */
#define JOB_REPORTS_MAX 32

void job_report_pack(const struct job_report *report, msgpack_sbuffer *out);
/* Packs REPORT with room for MORE others, which follow by job_report_pack. */
void job_report_pack_first(const struct job_report *report, size_t more, msgpack_sbuffer *out);
/*
 * Finds the other reports in MAP: 0, and OTHERS is their array, NULL if there are none; -EBADMSG,
 * also if one of them is no report.
 */
int job_report_others(const msgpack_object *map, const msgpack_object_array **others);
int job_report_unpack(struct job_report *report, const msgpack_object *map);
bool job_report_running(const struct job_report *report);
/* Returns whether the job mostly waited for neither a processor nor the disk. */
bool job_report_rests(const struct job_report *report);
/*
 * The slowdown of a job that took RESPONSE_MS: how many times longer it took than alone (MODEL 0).
 * 0: it is not known, or the job rests.
 */
double job_report_slowdown(const struct job_report *report, double response_ms);
/* What the class profile learns from the report. */
void job_report_profile(const struct job_report *report, struct profile *run);

#endif
