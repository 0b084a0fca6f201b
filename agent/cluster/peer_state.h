/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is known of each configured peer, for people: whether it is heard, and if not, why.  No I/O
 * and no clock of its own; peers.c tells it what happens.
 *
 *   never --a vector of it--> heard --none for 3 of its periods--> silent, or left if it said so
 *   not heard --what went wrong last--> refused, timed out, name unknown, key differs, ...
 *
 * What is sure (a refused connection, a credential that does not open) holds against what may have
 * several reasons (no answer in time) for PEER_STATE_SURE_NS.  Nothing here has authority: who is
 * heard decides the matrix, and a lie of the network part only misleads a reader.
 */
#ifndef IOCOM_PEER_STATE_H
#define IOCOM_PEER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/matrix.h"
#include "agent/base/peer_cause.h"
#include "agent/gate/gate_message.h"
#include "balancer/settings/settings.h"

#define PEER_STATE_WHY	   256
#define PEER_STATE_SURE_NS (300ull * 1000000000ull)

struct peer_state {
	struct gate_place at;
	/* What went wrong last, since when, and when it was told last (CLOCK_BOOTTIME). */
	enum peer_cause cause;
	bool sure;
	uint64_t since_ns, told_ns;
	int64_t ahead_s; /* PEER_C_CLOCK; 0: only the sentence says it */
	char why[PEER_STATE_WHY];
	/* Who is there: it has proven its name in a session, or a vector of it came. */
	char node[IOCOM_NAME_MAX];
	uint64_t boot_id, boot_since_ns; /* of its last vector, and when the first of it came */
	uint64_t heard_ns, heard_since_ns;
	uint32_t period_ms;
	uint64_t twin_ns; /* another peer used its name at the same time; 0: never */
	size_t twin;
};

struct peer_states {
	size_t count;
	struct peer_state all[SETTINGS_PEERS_MAX];
};

/* What went wrong at a peer. */
struct peer_trouble {
	enum peer_cause cause;
	bool sure;
	int64_t ahead_s;
	const char *why; /* a sentence without its end */
};

/* The state as it is shown. */
struct peer_status {
	const char *state; /* "heard", "refused", "timed out" ... */
	bool heard;	   /* or it is this node itself: nothing is wrong */
	uint64_t since_ns; /* CLOCK_BOOTTIME; 0: since the agent began */
	char why[2 * PEER_STATE_WHY];
	char advice[128]; /* what to do; "" */
};

/* Takes the configured peers, but for this node itself. */
void peer_states_init(struct peer_states *states, const struct settings *set);
struct peer_state *peer_states_at(struct peer_states *states, const struct gate_place *at);
/* The only peer with this numeric ADDRESS; NULL: none, or several. */
struct peer_state *peer_states_from(struct peer_states *states, const char *address);

/* Returns true if this is news: another cause than before. */
bool peer_state_trouble(struct peer_state *p, const struct peer_trouble *trouble, uint64_t now_ns);
/* There is a session with NODE there. */
void peer_state_session(struct peer_state *p, const char *node);
/*
 * A vector came from there.  Returns the other peer that uses the same name now, or NULL.
 */
const struct peer_state *peer_states_heard(struct peer_states *states, struct peer_state *p,
					   const struct iocom_vector *v, uint64_t now_ns);
void peer_state_status(const struct peer_states *states, const struct peer_state *p,
		       const struct matrix *matrix, uint64_t now_ns, struct peer_status *status);

#endif
