/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the root part of the agent (iocomd) and its network part (iocom-net) say to each other: each
 * message is a structure of fixed size and at most one run of bytes, the tail, in one packet of a
 * socket pair.  Both programs are of one build, and the structures cross as they are in memory.
 *
 *   type u32 | tail length u32 | body, a structure below | tail
 *
 * Root believes the network part nothing: gate_message_read bounds every length, string and number
 * before anything looks at them, and what a message may bring about is what a stranger at the
 * network could, too: no message names a uid, a path or a cgroup.  What has authority (a session's
 * message, a stream, a renewal) comes as the bytes that the network had, and root opens them with
 * keys that the network part does not have.
 */
#ifndef IOCOM_GATE_MESSAGE_H
#define IOCOM_GATE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "iocom/vector.h"
#include "user/channel/bulletin_seal.h"
#include "user/channel/stream_hello.h"

#define GATE_SENTENCE_MAX 512 /* tails that are text */
#define GATE_CONTROL_MAX  (256u << 10)
#define GATE_HEAD	  8
#define GATE_FDS_MAX	  2
#define GATE_VECTORS	  64 /* in one message */
/* Of what comes from the network, so much may wait for root at a time. */
#define GATE_QUESTIONS_MAX 16
#define GATE_STREAMS_MAX   32

enum gate_type {
	/* --- to the network part ---------------------------------------------------- */
	GATE_SETUP = 1,	    /* the first message; descriptors: job streams' listener, HTTP's */
	GATE_PEER,	    /* a configured peer: probe it while it is silent */
	GATE_DIAL,	    /* subscribe to the node there */
	GATE_UNDIAL,	    /* and no longer */
	GATE_EPOCH,	    /* the key of this node's bulletins from now on */
	GATE_PUBLISH,	    /* this node's vector: send a bulletin with it */
	GATE_PUBLISHER_KEY, /* the key of a publisher's bulletins */
	GATE_ASK,	    /* tail: a question to another agent */
	GATE_FORGET,	    /* nobody waits for the answer to a question any more */
	GATE_REPLY,	    /* what became of a question of another agent; tail: the answer */
	GATE_STREAM_OVER,   /* root has the stream, or refuses it; tail: the sentence */
	GATE_RENEWED,	    /* tail: the answer to a renewal, or the sentence that refuses it */
	GATE_PAGE,	    /* descriptor: the page of metrics, a file that is only read */
	GATE_PING,

	/* --- to root ---------------------------------------------------------------- */
	GATE_READY = 64, /* the sockets are open, or the reason why not is in the tail */
	GATE_VECTOR,	 /* heard of another node; tail: more of them, struct gate_vector each */
	GATE_ASK_KEY,	 /* ask that publisher for its key */
	GATE_SKEWED,	 /* a node's bulletin shows that its clock differs */
	GATE_TROUBLE,	 /* why a peer is not heard; tail: the sentence */
	GATE_ANSWERED,	 /* tail: the answer to a question, or why there is none */
	GATE_HELLO,	 /* tail: a greeting (greeting.h) */
	GATE_QUESTION,	 /* tail: a sealed question of another agent (sessions.h) */
	GATE_STREAM,	 /* descriptor: a job stream; tail: its first message */
	GATE_RENEW,	 /* tail: a shim's renewal of its lease (user/renewal.h) */
	GATE_WANT_PAGE,	 /* somebody asks for the page of metrics */
	GATE_COUNTS,
	GATE_PONG,
	GATE_TYPES
};

struct gate_setup {
	char name[IOCOM_NAME_MAX];
	char listen[IOCOM_ADDRESS_MAX]; /* numeric; IPv6 in brackets */
	uint16_t port;			/* the base port */
	uint8_t log_level;		/* enum log_level */
	bool systemd;			/* log lines for journald */
	bool networked, streams, http;	/* which parts serve; streams and http have a descriptor */
	uint64_t boot_id;
};

/* Where a node is. */
struct gate_place {
	char address[IOCOM_ADDRESS_MAX]; /* a name, or numeric */
	uint16_t port;			 /* the base port */
};

struct gate_publisher {
	struct gate_place at;
	char node[IOCOM_NAME_MAX];
	bool given; /* it has given its key */
	struct bulletin_key key;
};

struct gate_ask {
	uint64_t id;
	struct gate_place at;
	/* Not over a connection that was lost after this (CLOCK_BOOTTIME); 0: over any. */
	uint64_t since_ns;
	uint32_t limit_ms;
};

struct gate_reply {
	uint64_t ticket;  /* of a GATE_HELLO or GATE_QUESTION */
	int32_t verdict;  /* 0, enum seal_refusal, or -1: no fault of who sent it */
	bool judged;	  /* the verdict was told before */
	bool last;	  /* the question is over; else only the verdict is told */
	uint32_t wait_ms; /* how long who asked may take to read the answer */
};

struct gate_id {
	uint64_t id;
};

struct gate_stream_over {
	uint64_t id;
	bool taken; /* root has it; else it is refused */
};

struct gate_renewed {
	uint64_t id;
	bool answered; /* the tail is the answer; else a sentence */
};

struct gate_ready {
	int32_t rc; /* 0 or negative errno */
};

struct gate_vector {
	struct iocom_vector vector;
	uint64_t age_ns;
	bool direct;	      /* its own node sent it */
	struct gate_place at; /* direct: where it was dialled; else "" */
};

struct gate_skewed {
	char node[IOCOM_NAME_MAX];
	int64_t ahead_s;
};

struct gate_trouble {
	struct gate_place at; /* port 0: a connection from there told it */
	uint32_t cause;	      /* enum peer_cause; PEER_C_NONE: it takes connections */
};

struct gate_answered {
	uint64_t id;
	bool connected; /* without an answer: there was a connection all the same, ... */
	bool cut;	/* ... which the other side closed when it was asked */
	/* 0: the tail is the answer; negative errno: why; -ESTALE: the connection was lost. */
	int32_t rc;
};

struct gate_hello {
	uint64_t ticket;
	uint64_t least, most; /* the versions that it speaks */
	/* Where its credential is in the tail. */
	uint32_t credential, credential_length;
	char from[IOCOM_ADDRESS_MAX]; /* numeric; "": not known */
};

struct gate_question {
	uint64_t ticket;
	bool proven; /* something well sealed has come on the connection before */
	char from[IOCOM_ADDRESS_MAX];
};

struct gate_stream {
	uint64_t id;
	char from[IOCOM_ADDRESS_MAX]; /* numeric, for the log */
	struct stream_hello hello;
};

struct gate_renew {
	uint64_t id;
	char from[IOCOM_ADDRESS_MAX];
};

/* How full the network part's tables are, and what it has counted since it began. */
struct gate_counts {
	struct counters counters; /* of which root takes those that GATE_COUNTERS names */
	uint32_t bulletin_guests, bulletin_payers, dialed;
	uint32_t control_guests, control_payers, control_peers;
	uint32_t streams, hosts;
	uint64_t log_suppressed;
	uint64_t pages_answered, pages_refused, pages_cut;
};

/* X(name): the counters that the network part counts. */
#define GATE_COUNTERS(X)                                                                           \
	X(bulletins_sent)                                                                          \
	X(bulletins_received)                                                                      \
	X(bulletins_refused_garbage)                                                               \
	X(bulletins_refused_forged)                                                                \
	X(bulletins_refused_skew)                                                                  \
	X(bulletins_refused_version)                                                               \
	X(bulletins_refused_key)                                                                   \
	X(vectors_refused_garbage)                                                                 \
	X(vectors_refused_old)                                                                     \
	X(vectors_refused_full)                                                                    \
	X(controls_received)                                                                       \
	X(controls_refused)                                                                        \
	X(controls_unanswered)                                                                     \
	X(guests_refused)                                                                          \
	X(connections_cut)                                                                         \
	X(addresses_refused)                                                                       \
	X(network_refused)                                                                         \
	X(hosts_unresolved)                                                                        \
	X(complaints_replaced)                                                                     \
	X(control_peers_full)                                                                      \
	X(peers_refused)                                                                           \
	X(streams_refused)                                                                         \
	X(descriptors_refused)                                                                     \
	X(accepts_paused)                                                                          \
	X(requests_delayed)

struct gate_message {
	enum gate_type type;
	union {
		struct gate_setup setup;
		struct gate_place place; /* GATE_PEER, GATE_DIAL, GATE_UNDIAL, GATE_ASK_KEY */
		struct bulletin_key epoch;
		struct iocom_vector publish;
		struct gate_publisher publisher;
		struct gate_ask ask;
		struct gate_id
			id; /* GATE_FORGET, GATE_PING, GATE_PONG, GATE_WANT_PAGE, GATE_PAGE */
		struct gate_reply reply;
		struct gate_stream_over stream_over;
		struct gate_renewed renewed;
		struct gate_ready ready;
		struct gate_vector vector;
		struct gate_skewed skewed;
		struct gate_trouble trouble;
		struct gate_answered answered;
		struct gate_hello hello;
		struct gate_question question;
		struct gate_stream stream;
		struct gate_renew renew;
		struct gate_counts counts;
	};
};

#define GATE_PACKET_MAX (GATE_HEAD + sizeof(struct gate_message) + GATE_CONTROL_MAX)

/* Whom a message is for. */
enum gate_side { GATE_TO_NET, GATE_TO_ROOT };

/* Returns true if PLACE has this ADDRESS, to the letter, and this PORT. */
bool gate_place_is(const struct gate_place *place, const char *address, uint16_t port);
/* Returns the bytes of TYPE's body; 0: there is no such type. */
size_t gate_body_size(enum gate_type type);
/* Returns how many descriptors come with MESSAGE. */
size_t gate_fds_of(const struct gate_message *message);
/* The type's name, for the log. */
const char *gate_type_name(uint32_t type);
/*
 * Decodes PACKET of LENGTH bytes with NFDS descriptors, which came for SIDE.  Returns 0: MESSAGE is
 * complete and in range, and *TAIL, of *N bytes, is in PACKET; -EBADMSG with the reason in *WHY.
 */
int gate_message_read(struct gate_message *message, enum gate_side side, const void *packet,
		      size_t length, size_t nfds, const uint8_t **tail, size_t *n,
		      const char **why);

#endif
