/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Supervisors that a test plays: a launcher (agent/guest/launcher.h) without processes.  A leash
 * is a socket pair, of which the test has the shim's end.  All is traced.
 */
#ifndef TEST_GUEST_SHIMS_H
#define TEST_GUEST_SHIMS_H

#include "agent/guest/launcher.h"

#define SHIMS_MAX 256

struct shim_played {
	char job[SPEC_JOB_MAX];
	int leash; /* the agent's number of it */
	int end;   /* the shim's; -1: it is gone */
};

/* What is found of a job by an agent that looks. */
struct shim_record {
	struct launch_found found;
	bool lives; /* it can be asked: FOUND gets a leash */
};

struct shims_played {
	struct shim_played all[SHIMS_MAX];
	size_t n;
	struct shim_record records[SHIMS_MAX];
	size_t nrecords;
	struct shim_played signals[SHIMS_MAX]; /* that wait: END is the shim's */
	size_t nsignals;
	struct shim_played replays[SHIMS_MAX];
	size_t nreplays;
	int launch_rc, lease_rc, signal_rc, attach_rc, replay_rc;
	bool deaf_leash; /* leashes cannot be watched */
	int64_t forget;	 /* what is kept of each job that is forgotten; -EBUSY: its shim stays */
	unsigned spares, dropped;
	bool quiet; /* records that are forgotten are not traced */
};

extern struct shims_played shims;
extern const struct launcher launcher_played;

void shims_up(void);
void shims_down(void); /* closes all ends */

/* JOB's shim says that it began; that it ended; what comes as RC of launch_read. */
void shim_started(const char *job, pid_t pid);
void shim_says(const char *job, const struct launch_event *event);
/* It holds a lease until then (CLOCK_BOOTTIME in ms), and renews it itself or does not. */
void shim_holds(const char *job, pid_t pid, uint64_t until_ms, bool renews);
void shim_exited(const char *job, uint8_t kind, uint32_t value);
void shim_says_rc(const char *job, int rc);
/* It is gone: its leash is closed. */
void shim_gone(const char *job);
/* The record of JOB, a new one where there is none: a shim that is dead and said nothing. */
struct shim_record *shim_record(const char *job);
/* The answer to the first signal for JOB that waits. */
void shim_signalled(const char *job, int rc);

#endif
