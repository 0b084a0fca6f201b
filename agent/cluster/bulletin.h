/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bulletins: each period, and at once on a significant change, an agent publishes its own vector
 * and the freshest others it knows (nng PUB/SUB).
 *
 *   { "v": 3, "from": NAME, "vectors": [ [age_ms, vector], ... ] }   own vector first
 *
 * sealed in a MUNGE credential.  A replayed credential is accepted: several agents may share one
 * munged, and (boot id, sequence) decides what is new.
 */
#ifndef IOCOM_BULLETIN_H
#define IOCOM_BULLETIN_H

#include <msgpack.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "iocom/err.h"
#include "user/log.h"
#include "agent/base/loop.h"
#include "agent/cluster/matrix.h"
#include "agent/cluster/seal.h"
#include "agent/cluster/tls.h"

#define BULLETIN_VERSION     3
#define BULLETIN_DIALED_MAX  256
#define BULLETIN_VECTORS_MAX 256
#define BULLETIN_VALUES_MAX  (64 * BULLETIN_VECTORS_MAX) /* a vector with its age has 42 */
#define BULLETIN_BYTES_MAX   (512u << 10)

/* Positive conditions of bulletin_unpack. */
#define BULLETIN_E_GARBAGE 1
#define BULLETIN_E_VERSION 2

/* One vector of a bulletin; DIRECT: its own node sent it. */
typedef void (*bulletin_each)(void *arg, const struct iocom_vector *v, uint64_t age_ns,
			      bool direct);

void bulletin_pack(msgpack_sbuffer *out, const struct iocom_vector *own, const struct matrix *m,
		   uint64_t now_ns);
/*
 * 0, BULLETIN_E_*.  FROM gets the sender's name.  BAD counts vectors out of range, which are
 * skipped.
 */
int bulletin_unpack(const void *data, size_t length, char from[IOCOM_NAME_MAX], uint64_t *bad,
		    bulletin_each each, void *arg);

struct bulletin;
struct bulletin_config {
	struct loop *loop; /* all members are borrowed */
	struct seal *seal;
	struct logger *log;
	struct counters *counters;
	const char *listen;
	uint16_t port;
	bulletin_each each;
	void *arg;
	const struct tls *tls; /* NULL: no TLS */
	/*
	 * A bulletin of NODE was refused because its clock is AHEAD_S seconds ahead (negative:
	 * behind).
	 */
	void (*skewed)(void *arg, const char *node, int64_t ahead_s);
};

/* Begins to listen.  Returns 0; -EADDRINUSE and others with the reason in ERR. */
int bulletin_new(struct bulletin **b, const struct bulletin_config *config, struct iocom_err *err);
void bulletin_free(struct bulletin *b);
/* Updates the counter of refused connections. */
void bulletin_count(struct bulletin *b);
/* bulletin_dial subscribes to a peer in the background, for good; known addresses are skipped. */
size_t bulletin_guests(const struct bulletin *b); /* subscribers connected to us; B NULL: 0 */
/* Publishers whose bulletins' seals failed (address_budget.h); B NULL: 0. */
size_t bulletin_payers(const struct bulletin *b);
size_t bulletin_dialed(const struct bulletin *b); /* addresses dialed; B NULL: 0 */
void bulletin_dial(struct bulletin *b, const char *address, uint16_t port);
void bulletin_publish(struct bulletin *b, const struct iocom_vector *own, const struct matrix *m,
		      uint64_t now_ns);

#endif
