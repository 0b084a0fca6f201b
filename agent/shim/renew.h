/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The shim renews its job's lease with the home node itself (user/renewal.h), so that the job
 * needs no agent on its own node. Each renewal uses one connection and closes it.
 *
 * An answer that home did not sign is ignored: it neither renews nor kills.
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

#define RENEW_PART   4 /* renewals per lease */
#define RENEW_AGAIN  4 /* tries per renewal */
#define RENEW_TRY_MS 5000

struct renew {
	bool able; /* home gave a secret and its address */
	struct sockaddr_storage home;
	socklen_t home_length;
	uint8_t secret[RENEWAL_SECRET];
	const char *job;
	uint32_t lease_ms;
	uint64_t next_ms; /* when the next try begins or this one times out (CLOCK_BOOTTIME) */
	int fd;		  /* connection of the present try; -1: none */
	bool connected;
	uint64_t number, asked_ms;
	uint8_t answer[FRAME_HEADER + RENEWAL_ANSWER];
	size_t have;
};

/* Borrows JOB. If ORDER has no secret of home's, nothing is ever due. */
void renew_init(struct renew *renew, const struct order *order, const char *job, uint64_t now_ms);
void renew_deinit(struct renew *renew);
/* Returns when to call renew_serve even if no descriptor is ready; UINT64_MAX: never. */
uint64_t renew_due(const struct renew *renew);
struct pollfd renew_poll(const struct renew *renew);
/* Continues if REVENTS says so or a step is due. Returns true if home answered; LEASE has the
 * answer. */
bool renew_serve(struct renew *renew, short revents, struct lease *lease, uint64_t now_ms);

#endif
