/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Turns a monitor reading into the document that `iocom top --json` prints: time_ns, since_ns,
 * node, tasks[], jobs[], disks[], unattributed, drops, degraded[], cost. A counter that this
 * kernel does not tell is null. Agent and CLI use the same code, so they print the same bytes.
 */
#ifndef IOCOM_SAMPLE_JSON_H
#define IOCOM_SAMPLE_JSON_H

#include <jansson.h>
#include <sys/types.h>

#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"

/*
 * How to dump the document: on one line, without the meaningless digits of reals, and with names
 * in ASCII, so that a task's name cannot control a terminal.
 */
#define SAMPLE_JSON_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENSURE_ASCII)

/* Returns a job's name by cgroup id, or NULL if the cgroup is no job of iocom. */
typedef const char *(*sample_job_name)(void *arg, uint64_t cgroup_id);
/*
 * Finds the owner of the job with this cgroup. Returns 0 and UID, or -ENOENT if it is no job of
 * iocom.
 */
typedef int (*sample_job_uid)(void *arg, uint64_t cgroup_id, uid_t *uid);

struct sample_json_options {
	const char *node;
	sample_job_name job_name; /* NULL: name jobs by their cgroup path */
	sample_job_uid job_uid; /* for own_only; NULL or -ENOENT: a cgroup is UID's if all its tasks
				   in this reading are, or by its name (sample_job_shown) */
	void *job_name_arg;	/* argument for both functions */
	const char *cgroup_root;    /* directory to look up cgroup paths; NULL: no look-up */
	struct sample_names *names; /* borrowed; remembers paths between documents. NULL: look them
				       up again below cgroup_root */
	bool own_only;		    /* show only tasks and jobs of UID; disks and totals stay */
	uid_t uid;
	unsigned cores;				/* for the share of CPU */
	double disk_mb_per_s, network_mb_per_s; /* for the shares of disk and network; 0: unknown,
						   use the disk's measured speed and 125 MB/s */
	/*
	 * The disks at the previous document, to compute the disks' rates. Without them rates
	 * are null, unless the reading covers all time since counting began.
	 */
	const struct iocom_disk *disks_before;
	size_t ndisks_before;
};

/* Returns a new document that the caller owns; NULL if there is no memory. */
json_t *sample_json(const struct monitor_sample *sample, const struct sample_json_options *options);

#endif
