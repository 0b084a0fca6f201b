/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A monitor reading as the document that `iocom top --json` prints: time_ns,
 * since_ns, node, tasks[], jobs[], disks[], unattributed, drops, degraded[], cost.
 * A counter that this kernel does not tell is null.  Agent and CLI print the same
 * bytes from the same code.
 */
#ifndef IOCOM_SAMPLE_JSON_H
#define IOCOM_SAMPLE_JSON_H

#include <jansson.h>
#include <sys/types.h>

#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"

/*
 * How to dump the document: one line, reals without the digits that are noise, names in
 * ASCII: a task's name cannot give a terminal orders.
 */
#define SAMPLE_JSON_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENSURE_ASCII)

/* Names of jobs by cgroup id; returns NULL when the cgroup is no job of iocom. */
typedef const char *(*sample_job_name)(void *arg, uint64_t cgroup_id);
/* Whose job a cgroup is: 0 and UID, or -ENOENT when it is no job of iocom. */
typedef int (*sample_job_uid)(void *arg, uint64_t cgroup_id, uid_t *uid);

struct sample_json_options {
	const char *node;
	sample_job_name job_name;   /* NULL: jobs are named by their cgroup path */
	sample_job_uid job_uid;	    /* for own_only; NULL or -ENOENT: a cgroup is UID's when all its
				     * tasks of this reading are */
	void *job_name_arg;	    /* for both */
	const char *cgroup_root;    /* where to look up cgroup paths; NULL: skip */
	struct sample_names *names; /* borrowed: remembers paths between documents.  NULL: looks
				     * them up afresh below cgroup_root */
	bool own_only;		    /* only tasks and jobs of UID; disks and totals stay */
	uid_t uid;
	unsigned cores;				/* for the share of CPU when sorting */
	double disk_mb_per_s, network_mb_per_s; /* for the shares of disk and network; 0 = unknown:
						 * the disk's measured speed, 125 MB/s */
	/*
	 * The disks at the previous document: gives disks their rates.  None:
	 * rates are null unless the reading covers all time since counting began.
	 */
	const struct iocom_disk *disks_before;
	size_t ndisks_before;
};

/* New document, the caller's; NULL when memory is out. */
json_t *sample_json(const struct monitor_sample *sample, const struct sample_json_options *options);

#endif
