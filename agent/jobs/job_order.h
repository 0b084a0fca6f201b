/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A job as home sends it to a target: its user, command and needs. */
#ifndef IOCOM_JOB_ORDER_H
#define IOCOM_JOB_ORDER_H

#include <limits.h>
#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/vector.h"
#include "balancer/view/need.h"
#include "user/channel/secret.h"
#include "user/processor.h"
#include "user/shared_fs.h"
#include "user/spec.h"

/* Home's order to a target; the target keeps it for a restart. */
struct job_order {
	char job[SPEC_JOB_MAX];
	char home[IOCOM_NAME_MAX];
	char home_address[IOCOM_ADDRESS_MAX]; /* "" = this machine */
	uint16_t home_port;
	uid_t uid;
	uint32_t hops;
	bool forced; /* the user named this node, or it is home: only what cannot run is refused */
	char class_name[64];
	char command[256];
	char policy[32];
	char cwd[PATH_MAX], executable[PATH_MAX];
	uint64_t submit_ns;
	struct need need;
	uint32_t lease_ms; /* the lease of a restartable job at another node (leases.h); else 0 */
	bool durable;	   /* it begins when the target's disk has it: its start is told */
	bool renews;	   /* its shim renews the lease itself */
	bool migratable;   /* it can move; set where it begins, from what its client sends */
	bool data;	   /* its data goes along: it needs no directory there */
	char shared[SHARED_FS_MAX]; /* what its directory must be there, too; "": anything */
	bool keyed;		    /* it has the secret of this attempt (user/channel/secret.h) */
	uint8_t secret[SECRET_BYTES];
	uint32_t gang_tasks; /* it is a gang's part with so many tasks; 0: an ordinary job */
	bool oversubscribe;  /* the target's slots do not bind it */
	/* It runs already and moves here: the number of the move at its home; 0: it begins here. */
	uint64_t move;
	/* What it had done before it came: computation at the reference speed, and disk requests.
	 */
	double done_cpu_ms, done_requests;
	processor_set processor; /* what it may use of the one where it runs; 0: not known */
	double home_io;		 /* L_IO of home with the job, if that decided; else 0 */
	double home_cpu;	 /* L_CPU of home with the job, if that decided; else 0 */
};

void job_order_pack(const struct job_order *order, msgpack_sbuffer *out);
/* Erases the secret of ORDER, which has none from here on, and renews nothing. */
void job_order_forget(struct job_order *order);
/* Returns 0 or -EBADMSG. */
int job_order_unpack(struct job_order *order, const msgpack_object *map);

#endif
