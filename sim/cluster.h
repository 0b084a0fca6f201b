/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The machines of a simulated cluster. */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include <iocom/err.h>
#include <stdint.h>

struct sim_machine {
	double cpu_mips, cores;
	double ram_mb, buffer_mb;	  /* memory for jobs = ram - buffer; ram 0: never short */
	double disk_fixed_ms;		  /* seek + rotation */
	double disk_mb_per_s;		  /* > 0 */
	double request_kb, request_sd_kb; /* what the node's E(s), E(s^2) are stated for */
	double network_mb_per_s;	  /* each port, each direction */
};

struct sim_cluster {
	uint32_t n;
	struct sim_machine *machines; /* n of them, owned */
};

/*
 * From a text: items joined by "+", each a count and a machine by name, perhaps
 * with changes to its fields: "6xfc", "30xfc+2xfc:disk=20,cpu=400"; without a count
 * one.  Fields: cpu (MIPS), cores, ram, buffer (MB), fixed (ms), disk (MB/s), request,
 * sd (KB), net (MB/s), or as in struct sim_machine.  A name may stand for a system of 60 machines
 * in six groups: "acm-b" is all 60, "60xacm-b" the same, "12xacm-b" two of each group (a count must
 * be a multiple of six); changes apply to every machine.  "@FILE": such a text a row; "#" starts a
 * comment. 0; -EINVAL with the place and what was expected; -ENOMEM; a file's own errno.
 */
int sim_cluster_parse(struct sim_cluster *c, const char *text, struct iocom_err *err);
/* As one line that sim_cluster_parse reads; caller frees; NULL: no memory. */
char *sim_cluster_format(const struct sim_cluster *c);
int sim_cluster_copy(struct sim_cluster *to, const struct sim_cluster *from); /* 0, -ENOMEM */
void sim_cluster_free(struct sim_cluster *c);
/* The machines known by name, one after another: NULL at the end. */
const char *sim_machine_name(unsigned int i);
int sim_machine_by_name(const char *name, struct sim_machine *m); /* 0 or -ENOENT */
/* The systems of SIM_GROUPS groups of machines, likewise. */
#define SIM_GROUPS	 6
#define SIM_SYSTEM_NODES 60
const char *sim_system_name(unsigned int i);
int sim_system_by_name(const char *name, struct sim_machine groups[SIM_GROUPS]);
/* What is wrong with the machine's values, in words; NULL: nothing. */
const char *sim_machine_check(const struct sim_machine *m);

#endif
