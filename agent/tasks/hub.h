/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How the launchers of a gang's parts talk to each other: each is connected to that of part 0.
 * Who connects proves that it knows the plan's secret, and so does who listens
 * (user/channel/noise.h); after that all is sealed (user/channel/records.h).
 *
 *   fence   each part gives bytes, and when all have, each gets all of them, in the order of parts
 *   ask     a part wants to know something of a rank, from the part that has it
 *   abort   one part fails, and all others with it
 *   began   a rank has called MPI_Init; one that ends well without fails all then, because the
 *           others would wait for it for ever
 *   done    a part ends as it should; a connection that ends without it is a failure
 *
 * A fence's bytes are collected at part 0, which therefore ends last.  What is on its way is
 * bounded: HUB_MESSAGE_MAX for each message.  A connection that has not proven itself within
 * HUB_PROVE_MS is closed; when there are HUB_UNPROVEN_MAX, the oldest one has to go for the next,
 * but no sooner than after HUB_YOUNG_MS.  Each part connects once, within HUB_JOIN_MS.
 */
#ifndef IOCOM_HUB_H
#define IOCOM_HUB_H

#include <stddef.h>
#include <stdint.h>

#include "agent/tasks/tasks.h"

#define HUB_PROVE_MS	 5000
#define HUB_YOUNG_MS	 500
#define HUB_JOIN_MS	 30000
#define HUB_UNPROVEN_MAX 64
#define HUB_MESSAGE_MAX	 (64u << 20)
#define HUB_PIECE_MAX	 (32u << 10)

struct hub;

/* What a kind of gang does with what comes; all are needed but for `asked` and `told`. */
struct hub_calls {
	/* A fence is complete: the bytes of all parts, one after the other. */
	void (*all)(void *arg, const void *data, size_t length);
	/* Part FROM wants to know of RANK, which is here: hub_tell answers with its ID. */
	void (*asked)(void *arg, uint32_t from, uint32_t id, uint32_t rank);
	/* The answer to hub_ask; STATUS 0 or what hub_tell gave. */
	void (*told)(void *arg, uint32_t id, int32_t status, const void *data, size_t length);
};

/* CALLS and ARG are borrowed.  Returns NULL if there is no memory. */
struct hub *hub_new(struct tasks *tasks, const struct hub_calls *calls, void *arg);
/*
 * This part's tasks have ended well: tells the others.  Returns whether they no longer need this
 * part: what it said is on its way, and to part 0 all others have said the same.
 */
bool hub_done(struct hub *hub);
/* Says "done" to the others, unless the part fails, and closes all.  HUB may be NULL. */
void hub_free(struct hub *hub);
/* In part 0: listens for the others.  PORT gets the port; a gang of one part has none (0). */
int hub_listen(struct hub *hub, uint16_t *port, struct iocom_err *err);
/* Connects to part 0 without waiting for it; in part 0: the others have so long from now on. */
int hub_join(struct hub *hub, const char *address, uint16_t port, struct iocom_err *err);
/*
 * Gives this part's bytes for the next fence.  `all` is called when it is complete, perhaps before
 * this returns.  Returns 0; -E2BIG; -ENOMEM.
 */
int hub_fence(struct hub *hub, const void *data, size_t length);
/* Asks the part that has RANK; the caller chooses ID.  Returns 0; -EINVAL (RANK); -ENOMEM. */
int hub_ask(struct hub *hub, uint32_t id, uint32_t rank);
/* Answers part TO.  Returns 0; -E2BIG; -ENOMEM. */
int hub_tell(struct hub *hub, uint32_t to, uint32_t id, int32_t status, const void *data,
	     size_t length);
/* Makes all parts fail as this one does: RANK ended with STATUS (waitpid's), or TEXT. */
void hub_abort(struct hub *hub, uint32_t rank, int status, const char *text);
/*
 * At the end of this part, which has not failed: part 0 says on stderr if no rank of several has
 * called MPI_Init, because then each was alone.  HINT says what may help.
 */
void hub_say_alone(const struct hub *hub, const char *hint);
/* RANK, which is here, has called MPI_Init, or (BEGAN false) has ended well and never did. */
void hub_began(struct hub *hub, uint32_t rank, bool began);
/* Each turn of the loop: ends what has not come in time.  Returns when it is due again. */
uint64_t hub_turn(struct hub *hub, uint64_t now_ms);
/* The part that has RANK. */
uint32_t hub_part_of(const struct hub *hub, uint32_t rank);

#endif
