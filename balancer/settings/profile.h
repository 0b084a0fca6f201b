/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Class profiles: what earlier runs of a user's class of jobs measured, which
 * becomes the r.vector of the next one (MODEL 4.5).  One SQLite file; a class
 * belongs to a user.
 *
 * Each run moves a field half-way to what it measured (alpha = 0.5), but:
 *  - the alone-rate io_per_ms = requests / wall_ms is at most what the job does
 *    alone, never more, because other jobs only slow it down.  So the highest
 *    rate seen is kept, until a run's number of requests is more than a
 *    factor of 2 off: then the class has changed and the new rate stands.
 *    A run shorter than PROFILE_RATE_MS counts as that long: 34 requests of a
 *    command that took 2 ms are 34 a second, not 17000.
 *  - memory_mb is the largest resident set of a run, averaged over runs.
 *  - the behaviour (phases) is that of the last run: phases of different runs do
 *    not add up.
 */
#ifndef IOCOM_PROFILE_H
#define IOCOM_PROFILE_H

#include <stdint.h>
#include <sys/types.h>

#include "user/behaviour.h"
#include "iocom/err.h"

#define PROFILE_CLASS_MAX 64
#define PROFILE_RATE_MS	  1000.0

struct profile {
	uint32_t runs;
	double cpu_ms; /* at reference speed 1 */
	double requests;
	double request_kb;
	double memory_mb;
	double wall_ms;
	double io_per_ms;	/* alone-rate: the highest seen */
	double faults_per_ms;	/* implicit requests per ms of computation */
	double com_ms, disk_ms; /* R_COM, R_Disk (MODEL 5.10) */
	struct behaviour behaviour;
};

struct profile_store;

/*
 * Opens or creates PATH.  A file of an older layout is copied first and then migrated (database.h).
 * Returns 0 or negative errno with the reason in ERR.
 */
int profile_open(struct profile_store **store, const char *path, struct iocom_err *err);
/* Returns the copy that this opening made before it migrated the file; "": none. */
const char *profile_backup(const struct profile_store *store);
void profile_close(struct profile_store *store); /* NULL is fine */
/* Returns 0; -ENOENT never seen; -EIO. */
int profile_get(struct profile_store *store, uid_t uid, const char *class_name, struct profile *out,
		struct iocom_err *err);
/* So many classes of a user are kept; a new one takes the place of one with the fewest runs. */
#define PROFILE_CLASSES_MAX 1000
/* Learns from one finished RUN (its `runs` is ignored).  Returns 0 or negative errno. */
int profile_learn(struct profile_store *store, uid_t uid, const char *class_name,
		  const struct profile *run, struct iocom_err *err);
/*
 * Calls EACH for each class of UID ((uid_t)-1: of all), in order of name.  Returns 0 or negative
 * errno.
 */
int profile_list(struct profile_store *store, uid_t uid,
		 void (*each)(void *arg, uid_t uid, const char *class_name,
			      const struct profile *profile),
		 void *arg, struct iocom_err *err);
/* Forgets a class.  Returns 0; -ENOENT never seen; -EIO. */
int profile_forget(struct profile_store *store, uid_t uid, const char *class_name,
		   struct iocom_err *err);
/* The formula of profile_learn. */
void profile_merge(struct profile *into, const struct profile *run);

#endif
