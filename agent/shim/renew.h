/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shim that renews its job's lease with the home node itself (user/renewal.h), so that
 * the job needs no agent at its own node: one connection a renewal, closed after it.
 *
 * An answer that is not home's is none, whoever sent it: it neither renews nor kills.
 */
#ifndef IOCOM_SHIM_RENEW_H
#define IOCOM_SHIM_RENEW_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "user/frame.h"
#include "agent/shim/lease.h"
#include "agent/shim/order.h"
#include "user/renewal.h"

#define RENEW_PART   4 /* so many renewals fit in a lease */
#define RENEW_AGAIN  4 /* ... and so many tries in the time between two */
#define RENEW_TRY_MS 5000

struct renew {
	bool able; /* home gave a secret, and says where it is */
	struct sockaddr_storage home;
	socklen_t home_length;
	uint8_t secret[RENEWAL_SECRET];
	const char *job;
	uint32_t lease_ms;
	uint64_t next_ms; /* the next try begins, or this one is over: CLOCK_BOOTTIME */
	int fd;		  /* of the one that is under way; -1 */
	bool connected;
	uint64_t number, asked_ms;
	uint8_t answer[FRAME_HEADER + RENEWAL_ANSWER];
	size_t have;
};

/* JOB is borrowed.  Where ORDER has no secret of home's nothing is ever due. */
void renew_init(struct renew *renew, const struct order *order, const char *job, uint64_t now_ms);
void renew_deinit(struct renew *renew);
/* When renew_serve is to be called though nothing stirs; UINT64_MAX never. */
uint64_t renew_due(const struct renew *renew);
struct pollfd renew_poll(const struct renew *renew);
/* Goes on where it is due or REVENTS says so.  True: home said something, LEASE has it. */
bool renew_serve(struct renew *renew, short revents, struct lease *lease, uint64_t now_ms);

#endif
