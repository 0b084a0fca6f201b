/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The network part of the agent, as its root part sees it: a process of another user that holds
 * every socket of the network and decodes what comes there first.  It is started with the agent; if
 * it ends, hangs or sends what is no message, it is killed and started anew, at once or after
 * NET_PART_AGAIN_MAX_NS at the latest.  What runs goes on meanwhile: sessions, journal, leases and
 * streams that have begun are root's.
 *
 * Those that use it serve the types that come to them, and watch it come and go.
 */
#ifndef IOCOM_NET_PART_H
#define IOCOM_NET_PART_H

#include "agent/base/base.h"
#include "agent/gate/gate.h"

#define NET_PART_READY_MS     10000 /* it opens its sockets within this */
#define NET_PART_SILENT	      10    /* pings, one a second, without an answer: it hangs */
#define NET_PART_STARVED      60    /* the same, if it waits for a processor all the while */
#define NET_PART_AGAIN_MAX_NS (1000 * 1000000ull)

struct net_part;

struct net_watch {
	void (*up)(void *arg);	 /* it is ready: what it must know is sent now */
	void (*down)(void *arg); /* it is gone, and with it all that it was asked */
	void *arg;
	struct net_watch *next;
};

/* How the network part is started: as a process of its own, or, in tests, in this one. */
struct net_start {
	/*
	 * Starts it with FD, its end of the gate, which stays the caller's.  Returns 0 and a
	 * descriptor of the process in PIDFD (-1: none); negative errno with the reason in ERR.
	 */
	int (*start)(void *arg, int fd, int *pidfd, struct iocom_err *err);
	/*
	 * Returns for how long it has waited for a processor since it was started; 0: that is not
	 * known.  NULL: it never is.
	 */
	uint64_t (*waited_ns)(void *arg);
	void *arg;
};

struct net_part_config {
	const struct base *base; /* borrowed */
	struct gate_setup setup;
	int streams, http; /* listeners, -1: none; borrowed */
	struct net_start start;
};

/* Starts it and waits until it is ready.  Returns 0 or negative errno with the reason in ERR. */
int net_part_new(struct net_part **part, const struct net_part_config *config,
		 struct iocom_err *err);
/* Ends it.  NULL is fine. */
void net_part_free(struct net_part *part);
/*
 * Waits at most LIMIT_MS until it has obeyed all that was sent so far; what comes meanwhile is
 * served.  Not from a handler.
 */
void net_part_drain(struct net_part *part, int limit_ms);
bool net_part_is_up(const struct net_part *part);

/* Messages of TYPE go to HANDLER.  Nothing comes before the loop runs. */
void net_part_serve(struct net_part *part, enum gate_type type, gate_received handler, void *arg);
/* WATCH is the caller's until net_part_unwatch; `up` is called at once if it is up. */
void net_part_watch(struct net_part *part, struct net_watch *watch);
void net_part_unwatch(struct net_part *part, struct net_watch *watch);

/* Returns as gate_send, and -EPIPE while it is down; PART NULL: -EPIPE. */
int net_part_send(struct net_part *part, const struct gate_message *message, const void *tail,
		  size_t n, const int *fds);
/* Sends a message that is only a number. */
int net_part_send_id(struct net_part *part, enum gate_type type, uint64_t id);

/* Bytes that wait for it; PART NULL: 0. */
size_t net_part_queued(const struct net_part *part);
/* What it told last of its tables; PART NULL or never told: zeroes. */
struct gate_counts net_part_counts(const struct net_part *part);

#endif
