/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The last runs of a class one by one, and what the next one needs, as estimated from them
 * (estimate.h).
 *
 * Cold and warm runs are told apart, because a run whose files the page cache has needs almost no
 * disk.  A run is warm if it read (by requests of its own or by page faults) less than
 * PROFILE_WARM_PART of what it would have to read cold, if that is PROFILE_WARM_LEAST_MB or more:
 * the largest of the size of its input and of what a kept run of the same command on the same files
 * has read.  All others are cold.
 *
 * The next run is expected to be cold, unless the newest run of the same command on the same files
 * ended at home, where placement asks, at most PROFILE_WARM_S ago, and warm runs are kept.  If no
 * run of the expected kind is kept, those of the other are used.
 *
 * Of a shared file system every node's page cache may have the files, so what is read there is
 * always expected cold, and the caches are told beside it: a node has, of the files of the next
 * run, if its newest run of the same command on the same files ended at most PROFILE_WARM_S ago,
 *
 *   what that run read                            if it was the first one there in that time
 *   max( 0, what the class reads cold - that )    else: what had stayed since the run before
 */
#ifndef IOCOM_PROFILE_RUNS_H
#define IOCOM_PROFILE_RUNS_H

#include "iocom/vector.h"
#include "balancer/profile/estimate.h"
#include "balancer/profile/profile.h"
#include "balancer/view/need.h"

#define PROFILE_RUNS_KEPT     16 /* of a class, and of each kind */
#define PROFILE_WARM_PART     0.5
#define PROFILE_WARM_LEAST_MB 1.0
#define PROFILE_WARM_S	      600

enum profile_need {
	PROFILE_CPU_MS,
	PROFILE_REQUESTS,
	PROFILE_REQUEST_MB,
	PROFILE_READ_MB,
	PROFILE_WRITTEN_MB,
	PROFILE_FAULT_REQUESTS,
	PROFILE_FAULT_MB,
	PROFILE_MEMORY_MB,
	PROFILE_COM_MS,
	PROFILE_DISK_MS,
	PROFILE_WALL_MS,
	PROFILE_REST_MS,
	PROFILE_SHARED_READ_MB,
	PROFILE_SHARED_WRITTEN_MB,
	PROFILE_NEEDS
};

/* "cpu_ms"; the names of the members of struct profile. */
const char *profile_need_name(enum profile_need need);
double profile_need_of(const struct profile *p, enum profile_need need);
void profile_need_put(struct profile *p, enum profile_need need, double value);

/* Where a run came from. */
struct profile_origin {
	uint64_t input_id; /* of the command and of the files that it names; 0: unknown */
	double input_mb;   /* the size of these files; below 0: unknown */
	const char *node;  /* where it ran; "": unknown */
	uint64_t end_s;	   /* when it ended, since 1970; 0: unknown */
};

struct profile_one {
	double need[PROFILE_NEEDS];
	bool warm;
	uint64_t input_id;
	double input_mb;
	char node[IOCOM_NAME_MAX];
	uint64_t end_s;
};

/* Learns from one finished RUN, as profile_learn, and where it came from. */
int profile_learn_run(struct profile_store *store, uid_t uid, const char *class_name,
		      const struct profile *run, const struct profile_origin *origin,
		      struct iocom_err *err);
/*
 * Reads the kept runs into OUT, which has room for 2 * PROFILE_RUNS_KEPT, the newest first.  N is
 * their number.  Returns 0 or -EIO.
 */
int profile_runs_read(struct profile_store *store, uid_t uid, const char *class_name,
		      struct profile_one *out, size_t *n, struct iocom_err *err);

/* The next run. */
struct profile_next {
	uint64_t input_id;
	double input_mb;
	const char *home;
	uint64_t now_s;
};

struct profile_expected {
	struct profile profile; /* `runs` is of the class; the phases are the last run's */
	struct estimate of[PROFILE_NEEDS];
	unsigned used;		       /* kept runs that it is made from; 0: the averages */
	bool warm;		       /* these were warm */
	unsigned cold_runs, warm_runs; /* that are kept */
	bool by_input;		       /* some need follows the size of the input */
	double input_mb;	       /* of the next run; below 0: unknown */
	struct need_options set;       /* what the user set */
	struct profile_cached {
		char node[IOCOM_NAME_MAX];
		double mb;
	} cached[2 * PROFILE_RUNS_KEPT]; /* of profile.shared_read_mb, in the nodes' caches */
	size_t ncached;
};

/*
 * Estimates what the NEXT run needs.  Returns 0; -ENOENT: nothing is known of the class; -EIO,
 * -ENOMEM.
 */
int profile_expect(struct profile_store *store, uid_t uid, const char *class_name,
		   const struct profile_next *next, struct profile_expected *out,
		   struct iocom_err *err);

/* --- profile_pins.c: needs that their user set ------------------------------------------- */

/*
 * Sets the given needs of a class: learning does not change them.  A need that is set already and
 * not given stays.  Returns 0 or negative errno.
 */
int profile_set(struct profile_store *store, uid_t uid, const char *class_name,
		const struct need_options *needs, struct iocom_err *err);
/* Lets all needs be as they are learned.  Returns 0; -ENOENT: none was set; -EIO. */
int profile_unset(struct profile_store *store, uid_t uid, const char *class_name,
		  struct iocom_err *err);
/* Reads what is set.  Returns 0 or -EIO. */
int profile_set_read(struct profile_store *store, uid_t uid, const char *class_name,
		     struct need_options *out, struct iocom_err *err);

/* --- inside a transaction ------------------------------------------------------------------- */

int profile_runs_learn(struct profile_store *store, uid_t uid, const char *class_name,
		       const struct profile *run, const struct profile_origin *origin,
		       struct iocom_err *err);
/* Adds ONE as the newest run. */
int profile_runs_add(struct profile_store *store, uid_t uid, const char *class_name,
		     const struct profile_one *one, struct iocom_err *err);
int profile_set_write(struct profile_store *store, uid_t uid, const char *class_name,
		      const struct need_options *needs, struct iocom_err *err);

#endif
