/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Class profiles: what earlier runs of a user's class of jobs measured, which
 * becomes the r.vector of the next one (MODEL 4.5).  One SQLite file; a class
 * belongs to a user.
 *
 * Each run moves a field half-way to what it measured (alpha = 0.5).  Requests and their bytes
 * are averaged as sums, and the size of a request is the quotient of the two averages: an average
 * of sizes times one of numbers would be work that no run did.
 *  - explicit and implicit requests (MODEL 0.1) are kept apart: a reader of mapped files does all
 *    of its disk work by page faults.
 *  - no rate is kept, because it belongs to the machine where it was seen.  profile_rate_per_ms
 *    derives it for the machine that asks.
 *  - memory_mb is the largest resident set of a run, averaged over runs.
 *  - the behaviour (phases) is that of the last run: phases of different runs do
 *    not add up.  Its fault_requests and fault_kb are not kept, the averages are.
 *
 * The last runs are also kept one by one, and placement asks for what is estimated from them
 * (profile_runs.h).  The averages are for classes of which no single run is kept.
 *
 * A class also has how wrong predictions of its response were (agent/home/outcomes.h), at each
 * node and over all: the mean of log( measured / expected ), where the newest job counts 1 / n, and
 * at least 1 / PROFILE_ERROR_JOBS.
 */
#ifndef IOCOM_PROFILE_H
#define IOCOM_PROFILE_H

#include <stdint.h>
#include <sys/types.h>

#include "user/behaviour.h"
#include "iocom/err.h"

#define PROFILE_CLASS_MAX 64
/*
 * A run shorter than this counts as so long in a rate: a load vector describes no less than a
 * period, and 34 requests of a command that took 2 ms are 34 a second, not 17000.
 */
#define PROFILE_RATE_MS 1000.0

struct profile {
	uint32_t runs;			 /* 0: none ended, but its user has set needs */
	double cpu_ms;			 /* at reference speed 1 */
	double requests, request_mb;	 /* explicit disk requests, and their size in all */
	double fault_requests, fault_mb; /* the implicit ones, those of page faults */
	double memory_mb;
	double wall_ms;
	/* of wall_ms, the time without computation, disk work, or waiting for a CPU or the disk */
	double rest_ms;
	double com_ms, disk_ms; /* R_COM, R_Disk (MODEL 5.10) */
	struct behaviour behaviour;
	double read_mb,
		written_mb; /* of request_mb, where it is known; of a run (profile_runs.h) */
	/*
	 * On a shared file system (MODEL 2.11), whichever disk has it; of a run, too.  None of the
	 * numbers above counts it.
	 */
	double shared_read_mb, shared_written_mb;
};

struct profile_store;

/*
 * Opens or creates PATH.  A file of an older layout is copied first and then migrated (database.h).
 * Returns 0 or negative errno with the reason in ERR.
 */
int profile_open(struct profile_store **store, const char *path, struct iocom_err *err);
/*
 * The same, but a file that is damaged or of an unknown layout is set aside, and an empty one begun
 * (profile_aside).  -EBUSY: another program keeps it locked.
 */
int profile_renew(struct profile_store **store, const char *path, struct iocom_err *err);
/*
 * Does that with an open store whose file turned out to be damaged (-EUCLEAN).  If that fails, the
 * store is of no use until it succeeds.
 */
int profile_renew_open(struct profile_store *store, struct iocom_err *err);
/* Returns where the last file was put that was set aside, and WHY; "": none was. */
const char *profile_aside(const struct profile_store *store, const char **why);
/* Returns how many rows profile_renew removed: they had numbers that no run can have. */
unsigned profile_swept(const struct profile_store *store);
/* Returns the copy that this opening made before it migrated the file; "": none. */
const char *profile_backup(const struct profile_store *store);
void profile_close(struct profile_store *store); /* NULL is fine */
/* No need is larger; what is more, in a report or in a file, is not believed. */
#define PROFILE_NEED_MAX 1e12
/* Returns 0; -ENOENT never seen; -EIO. */
int profile_get(struct profile_store *store, uid_t uid, const char *class_name, struct profile *out,
		struct iocom_err *err);
/* So many classes of a user are kept; a new one takes the place of one with the fewest runs. */
#define PROFILE_CLASSES_MAX 1000
/* Fewer classes than this do not say what is typical. */
#define PROFILE_TYPICAL_LEAST 3
/*
 * Gives what jobs of a class that was never seen may need: the medians of cpu_ms, of all disk
 * requests, of their bytes, and of wall_ms over the classes of UID, or over everybody's if UID
 * has too few.  The other fields are 0.  Returns 0; -ENOENT: there are too few; -EIO, -ENOMEM.
 */
int profile_typical(struct profile_store *store, uid_t uid, struct profile *out,
		    struct iocom_err *err);
/* Learns from one finished RUN (its `runs` is ignored).  Returns 0 or negative errno. */
int profile_learn(struct profile_store *store, uid_t uid, const char *class_name,
		  const struct profile *run, struct iocom_err *err);
typedef void profile_each(void *arg, uid_t uid, const char *class_name,
			  const struct profile *profile);
/*
 * Calls EACH for each class of UID ((uid_t)-1: of all), in order of user and name.  Returns 0 or
 * negative errno.
 */
int profile_list(struct profile_store *store, uid_t uid, profile_each *each, void *arg,
		 struct iocom_err *err);
struct profile_part {
	uid_t uid;		/* (uid_t)-1: of all users */
	const char *class_name; /* "": all */
	size_t skip, most;	/* so many come first, so many are visited; MOST 0: all */
};
/* The same for a part of the list. */
int profile_list_part(struct profile_store *store, const struct profile_part *part,
		      profile_each *each, void *arg, struct iocom_err *err);
/* How wrong the predictions of a class's response were. */
struct profile_error {
	uint32_t jobs;
	double mean_log; /* of measured over expected, natural logarithm */
};
#define PROFILE_ERROR_JOBS 16
/* So many nodes of a class are kept; a new one takes the place of the one used longest ago. */
#define PROFILE_NODES_MAX 64
/*
 * Notes LOG_ERROR of one job of the class at NODE.  Returns 0; -ENOENT: the class is not known
 * (any more); -EINVAL: no finite number; -EIO, -ENOSPC.
 */
int profile_error_learn(struct profile_store *store, uid_t uid, const char *class_name,
			const char *node, double log_error, struct iocom_err *err);
/*
 * Calls EACH for the class over all its nodes (NODE "") first, then for each node in order of name;
 * not at all if nothing was noted.  Returns 0 or negative errno.
 */
int profile_errors(struct profile_store *store, uid_t uid, const char *class_name,
		   void (*each)(void *arg, const char *node, const struct profile_error *error),
		   void *arg, struct iocom_err *err);
/*
 * How little a node's word is believed: jobs there take longer than is expected of them after all
 * corrections.  A doubt is the logarithm of the factor that is missing.  Each job at NODE moves its
 * doubt by PROFILE_DOUBT_GAIN of LOG_ERROR (of measured over expected), within 0 and
 * PROFILE_DOUBT_MAX; each job at any node makes all doubts 2 % smaller, so a node that nobody used
 * for long is tried again.
 */
#define PROFILE_DOUBT_GAIN 0.2
#define PROFILE_DOUBT_MAX  5.545177444479562 /* log 256 */
/* So many nodes are kept, those with the greatest doubts. */
#define PROFILE_DOUBTS_MAX 64
/* Returns 0; -EINVAL: no finite number; -EIO, -ENOSPC. */
int profile_doubt_learn(struct profile_store *store, const char *node, double log_error,
			struct iocom_err *err);
/* Calls EACH for each node of which there is a doubt.  Returns 0 or negative errno. */
int profile_doubts(struct profile_store *store,
		   void (*each)(void *arg, const char *node, double doubt), void *arg,
		   struct iocom_err *err);
/* Forgets a class and its errors.  Returns 0; -ENOENT never seen; -EIO. */
int profile_forget(struct profile_store *store, uid_t uid, const char *class_name,
		   struct iocom_err *err);
/* All its disk requests, explicit and implicit. */
double profile_requests(const struct profile *profile);
/* The mean size of these in KB; 0: it has none, or their size is not known. */
double profile_request_kb(const struct profile *profile);
/* Page faults per ms of computation (MODEL 1.3); 0: it had none, or did not compute. */
double profile_faults_per_ms(const struct profile *profile);

/* The machine for which a rate is wanted. */
struct profile_machine {
	double cpu_speed;		     /* 1: the reference; 0: not known, as the reference */
	double disk_fixed_ms, disk_mb_per_s; /* of the disk; 0 MB/s: not known, as measured */
};

/*
 * The disk requests per ms of elapsed time that a job of the class makes alone on MACHINE: their
 * number over the time that it would take there,
 *
 *   T = max( D, f (cpu_ms / cpu_speed + D) + rest_ms, PROFILE_RATE_MS )
 *   D = requests * (disk_fixed_ms + request_kb / disk_mb_per_s)
 *   f = min( 1, wall_ms / (cpu_ms + disk_ms) )
 *
 * f below 1: the runs computed and waited for the disk at the same time, in several threads or by
 * reading ahead.
 */
double profile_rate_per_ms(const struct profile *profile, const struct profile_machine *machine);
/* The formula of profile_learn. */
void profile_merge(struct profile *into, const struct profile *run);

#endif
