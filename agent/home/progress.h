/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What jobs that still run have done so far, as their nodes report it (peer_message.h: progress).
 * The class of a long job is known before its end by that: to the jobs of a class never seen, and
 * to those of one whose job now does more than any before it.
 *
 * A job that did W is expected to do W once more: what ran long runs long (vector.h).  So a running
 * job says that jobs of its class need 2 W.  It reports again when it is twice as old; if it does
 * not, its node or the job is lost, and what it said is forgotten.
 */
#ifndef IOCOM_PROGRESS_H
#define IOCOM_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/jobs/job_report.h"

#define PROGRESS_LATE_NS (60 * 1000000000ull) /* so late the next report may be */
#define PROGRESS_MAX	 1024 /* jobs; a new one takes the place of that reported on longest ago */

struct counters;
struct progress;

/* COUNTERS: progress_replaced.  Returns 0 or -ENOMEM. */
int progress_new(struct progress **progress, struct counters *counters);
void progress_free(struct progress *progress); /* NULL is fine */
/* Notes REPORT of a running job of UID's class; NOW on CLOCK_BOOTTIME.  Returns 0 or -ENOMEM. */
int progress_note(struct progress *progress, uid_t uid, const char *class_name,
		  const struct job_report *report, uint64_t now_ns);
/* Returns whether the last report on the job said that it is stopped. */
bool progress_stopped(const struct progress *progress, const char *job);
/* The job has ended, or will never say more. */
void progress_forget(struct progress *progress, const char *job);
size_t progress_count(const struct progress *progress);
/*
 * Gives what jobs of UID's class need by the running one that did most.  Returns false if none is
 * known.
 */
bool progress_guess(const struct progress *progress, uid_t uid, const char *class_name,
		    uint64_t now_ns, struct profile *out);
/*
 * Corrects PROFILE of the class, upwards only: if a running job did more of the work (computation
 * and requests) than the class needs, it counts as if it had ended now.  Returns whether it did.
 */
bool progress_correct(const struct progress *progress, uid_t uid, const char *class_name,
		      uint64_t now_ns, struct profile *profile);

#endif
