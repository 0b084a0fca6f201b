/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The machines of a simulated cluster. */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include <iocom/err.h>
#include <stdint.h>

struct sim_machine {
	double cpu_mips, cores;
	double ram_mb, buffer_mb;	  /* memory for jobs = ram - buffer; ram 0: memory is never
					   * short */
	double disk_fixed_ms;		  /* seek + rotation */
	double disk_mb_per_s;		  /* > 0 */
	double request_kb, request_sd_kb; /* the request size that E(s), E(s^2) are stated for */
	double network_mb_per_s;	  /* bandwidth of each port, in each direction */
};

struct sim_cluster {
	uint32_t n;
	struct sim_machine *machines; /* N machines, owned */
};

/*
 * Reads a cluster from text.  Items are joined by "+"; each is a count (default 1), a machine's
 * name and perhaps changes to its fields: "6xfc", "30xfc+2xfc:disk=20,cpu=400".
 * Fields: cpu (MIPS), cores, ram, buffer (MB), fixed (ms), disk (MB/s), request, sd (KB), net
 * (MB/s), or the member names of struct sim_machine.  A name may stand for a system of 60
 * machines in six groups: "acm-b" is all 60, "60xacm-b" the same, "12xacm-b" two of each group
 * (a count must be a multiple of six); changes apply to every machine.  "@FILE" reads a file
 * with such a text per row, where "#" starts a comment.
 * Returns 0; -EINVAL with the place and what was expected; -ENOMEM; the file's own errno.
 */
int sim_cluster_parse(struct sim_cluster *c, const char *text, struct iocom_err *err);
/*
 * Writes the cluster as one line that sim_cluster_parse reads.  The caller frees it;
 * NULL: no memory.
 */
char *sim_cluster_format(const struct sim_cluster *c);
int sim_cluster_copy(struct sim_cluster *to, const struct sim_cluster *from); /* 0, -ENOMEM */
void sim_cluster_free(struct sim_cluster *c);
/* Name of known machine I (0 ..); NULL at the end. */
const char *sim_machine_name(unsigned int i);
int sim_machine_by_name(const char *name, struct sim_machine *m); /* Returns 0 or -ENOENT */
/* The same for systems, which consist of SIM_GROUPS groups of machines. */
#define SIM_GROUPS	 6
#define SIM_SYSTEM_NODES 60
const char *sim_system_name(unsigned int i);
int sim_system_by_name(const char *name, struct sim_machine groups[SIM_GROUPS]);
/* Says what is wrong with the machine's values; NULL: nothing is. */
const char *sim_machine_check(const struct sim_machine *m);

#endif
