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
	int leash; /* the agent's number of this descriptor */
	int end;   /* the shim's end; -1: the shim is gone */
};

/* What an agent finds when it looks for a job's shim. */
struct shim_record {
	struct launch_found found;
	bool lives; /* the shim can be asked: FOUND gets a leash */
	bool old;   /* an older version wrote it: it has no secret */
};

struct shims_played {
	struct shim_played all[SHIMS_MAX];
	size_t n;
	struct shim_record records[SHIMS_MAX];
	size_t nrecords;
	struct shim_played signals[SHIMS_MAX]; /* the signals that wait; END is the shim's end */
	size_t nsignals;
	struct shim_played replays[SHIMS_MAX];
	size_t nreplays;
	int launch_rc, lease_rc, signal_rc, attach_rc, replay_rc;
	uint64_t spill_max; /* what the client of the newest job may leave */
	bool deaf_leash;    /* the agent cannot watch leashes */
	int64_t forget;	    /* bytes that stay of each forgotten job; -EBUSY: its shim stays */
	unsigned spares, dropped;
	bool quiet; /* the trace does not show which records are forgotten */
	/* Of the newest job or client: its stream has keys; what the shim got. */
	bool secure;
	uint8_t secret[SECRET_BYTES], renews_with[SECRET_KEY];
};

extern struct shims_played shims;
extern const struct launcher launcher_played;

void shims_up(void);
void shims_down(void); /* closes all ends */

/*
 * These play JOB's shim, which reports that the job began or ended; shim_says_rc makes launch_read
 * return RC.
 */
void shim_started(const char *job, pid_t pid);
void shim_says(const char *job, const struct launch_event *event);
/* The shim holds a lease until UNTIL_MS (CLOCK_BOOTTIME); RENEWS: it renews the lease itself. */
void shim_holds(const char *job, pid_t pid, uint64_t until_ms, bool renews);
void shim_exited(const char *job, uint8_t kind, uint32_t value);
void shim_says_rc(const char *job, int rc);
/* Ends the shim: its leash is closed. */
void shim_gone(const char *job);
/* Returns the record of JOB; a new one is of a shim that died without a report. */
struct shim_record *shim_record(const char *job);
/* The answer to the first signal for JOB that waits. */
void shim_signalled(const char *job, int rc);

#endif
