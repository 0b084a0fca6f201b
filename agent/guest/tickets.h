/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tickets of clients that attach from other nodes.  One is good for one FRAME_ATTACH, of the user
 * to whom it was given and about the job it was given for, within TICKET_NS.  They are in memory
 * only: after a restart of this agent the client asks for another.
 */
#ifndef IOCOM_TICKETS_H
#define IOCOM_TICKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/counters.h"
#include "iocom/err.h"
#include "user/channel/secret.h"
#include "user/spec.h"

#define TICKETS_MAX	256
#define TICKETS_OF_ROOT 8
#define TICKET_NS	(30ull * 1000000000ull)

struct tickets {
	struct ticket {
		char name[SECRET_TICKET_MAX]; /* "": a free entry */
		char job[SPEC_JOB_MAX];
		uid_t uid;
		uint64_t until_ns;
		uint8_t key[SECRET_KEY];
	} all[TICKETS_MAX];
};

/*
 * Makes a ticket for UID and JOB with a new name, whose key the caller fills in.  Returns it, valid
 * until the next call; NULL with the reason in ERR: the table is full (places.h).
 */
struct ticket *tickets_new(struct tickets *tickets, const char *job, uid_t uid, uint64_t now_ns,
			   struct counters *counters, struct iocom_err *err);
/* Returns the ticket NAME of JOB if it is still good; NULL: there is none. */
const struct ticket *tickets_find(struct tickets *tickets, const char *name, const char *job,
				  uint64_t now_ns);
/*
 * Uses up the ticket NAME of JOB for UID.  Returns 0, or -EACCES with the reason in ERR: it was
 * used, is too old, or is another user's.
 */
int tickets_use(struct tickets *tickets, const char *name, const char *job, uid_t uid,
		uint64_t now_ns, struct iocom_err *err);
size_t tickets_count(struct tickets *tickets, uint64_t now_ns);
void tickets_erase(struct tickets *tickets);

#endif
