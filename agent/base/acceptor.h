/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Takes connections from a listening socket of the loop.  When there is no descriptor left (EMFILE,
 * ENFILE) or no memory, a waiting connection stays readable and the loop would do nothing but fail
 * to accept it: so the socket leaves the loop for ACCEPTOR_PAUSE_NS.
 *
 * The last DESCRIPTORS_RESERVED descriptors are for the agent's own work (journal, supervisors,
 * munged) and for root: an acceptor's owner refuses others when descriptors_scarce.
 */
#ifndef IOCOM_ACCEPTOR_H
#define IOCOM_ACCEPTOR_H

#include <stdbool.h>
#include <sys/socket.h>

#include "agent/base/base.h"

#define ACCEPTOR_PAUSE_NS    (100 * 1000000ull)
#define DESCRIPTORS_RESERVED 64

struct acceptor {
	const struct base *base;
	struct loop_fd entry;
	struct loop_timer again;
	uint64_t said_ns; /* when it was logged last that no descriptor is left */
	/* Takes FD, a new connection from FROM, whose address has LENGTH bytes. */
	void (*came)(void *arg, int fd, const struct sockaddr *from, socklen_t length);
	void *arg;
};

/*
 * Begins to accept at LISTENER, which stays the caller's, as BASE does.  CAME and ARG are set in
 * ACCEPTOR.  Returns 0 or negative errno.
 */
int acceptor_start(struct acceptor *acceptor, const struct base *base, int listener);
/* Takes no connection for a millisecond: those that come are of a user that must wait. */
void acceptor_rest(struct acceptor *acceptor);
/* Ends it; a zeroed acceptor is fine. */
void acceptor_stop(struct acceptor *acceptor);
/* True if ERROR of accept() will not go away by itself at once. */
bool acceptor_must_wait(int error);

/*
 * Returns true if the process has fewer than DESCRIPTORS_RESERVED descriptors left.  NEWEST is one
 * that was just opened, and so was the lowest free one: kernels before 6.2 do not tell how many are
 * open, and its number stands for that.
 */
bool descriptors_scarce(int newest);
/*
 * How many are open (UINT64_MAX: the kernel does not tell), and at how many others than root are
 * refused (0: without a limit).
 */
void descriptors_count(uint64_t *open, uint64_t *max);

#endif
