/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One end of the socket pair between the root part of the agent and its network part: sends and
 * receives the messages of gate_message.h on the loop.  What the other end does not take at once
 * waits in a queue of GATE_QUEUE_MAX bytes.
 */
#ifndef IOCOM_GATE_H
#define IOCOM_GATE_H

#include "agent/base/loop.h"
#include "agent/gate/gate_message.h"
#include "iocom/err.h"

#define GATE_QUEUE_MAX (16u << 20)

struct gate;

/*
 * Gets MESSAGE with its TAIL of N bytes, borrowed (it may be changed), and as many descriptors as
 * gate_fds_of says, which are the callee's; -1 stands for one that this process has no place for.
 */
typedef void (*gate_received)(void *arg, const struct gate_message *message, uint8_t *tail,
			      size_t n, const int *fds);

struct gate_config {
	struct loop *loop;   /* borrowed */
	enum gate_side side; /* whom the messages that come here are for */
	int fd;		     /* taken, also when gate_new fails */
	/* Both are called from the loop, and must not free the gate. */
	gate_received received;
	/* The other end is gone, or has sent what is no message.  Called once; nothing is received
	 * or sent afterwards. */
	void (*broken)(void *arg, const char *why);
	void *arg;
};

/* Makes the two ends, with buffers for the longest message.  Returns 0 or negative errno. */
int gate_pair(int fds[2], struct iocom_err *err);
/* Returns 0 or negative errno with the reason in ERR. */
int gate_new(struct gate **gate, const struct gate_config *config, struct iocom_err *err);
void gate_free(struct gate *gate); /* NULL is fine */

/*
 * Copies MESSAGE, TAIL of N bytes and the descriptors (gate_fds_of; they stay the caller's).
 * Returns 0; -ENOBUFS: the queue is full; -EPIPE: the gate is broken; -EMSGSIZE; -ENOMEM.
 */
int gate_send(struct gate *gate, const struct gate_message *message, const void *tail, size_t n,
	      const int *fds);
/* Waits LIMIT_MS for one message and hands it to `received`.  Returns 0; -ETIMEDOUT; -EPIPE. */
int gate_wait(struct gate *gate, int limit_ms);
/* Receives nothing until it is called again with false; what is sent goes on. */
void gate_pause(struct gate *gate, bool paused);
/* Bytes that wait for the other end. */
size_t gate_queued(const struct gate *gate);
/* Messages that found no place in the queue, since the gate was made. */
uint64_t gate_refused(const struct gate *gate);

#endif
