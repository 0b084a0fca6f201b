/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Why a peer is not heard, as the network part, a greeting or the peer itself tells it.  The
 * numbers cross in refused greetings (greeting.h): they stay as they are.
 */
#ifndef IOCOM_PEER_CAUSE_H
#define IOCOM_PEER_CAUSE_H

enum peer_cause {
	PEER_C_NONE,	    /* no cause */
	PEER_C_REFUSED,	    /* nothing listens there */
	PEER_C_TIMED_OUT,   /* no connection in time: a packet filter, or no such machine */
	PEER_C_UNREACHABLE, /* no way there, or the connection broke */
	PEER_C_NAME,	    /* the name service does not know it */
	PEER_C_KEY,	    /* munged cannot open the credential: another key */
	PEER_C_CLOCK,	    /* made too early or too late */
	PEER_C_SAME_NAME,   /* it calls itself as this node, or as another peer, does */
	PEER_C_CLUSTER,	    /* it belongs to another cluster */
	PEER_C_VERSION,	    /* no version of the protocol in common */
	PEER_C_MUTE,	    /* connected, but it does not answer */
	PEER_C_SELF,	    /* it is this agent */
	PEER_C_OWN,	    /* this node cannot ask: its munged does not answer, or no memory */
	PEER_CAUSES
};

#endif
