/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The load matrix (a.matrix, MODEL 4.4): the newest vector of every other node
 * this one has heard of, and when.  Ages are counted from the local receipt
 * (plus the age a relaying node tells), never from remote clocks.
 *
 *   unknown --put--> alive --silent for 3 of its own periods--> dropped
 *                    alive --its last vector (IOCOM_BIT_LEAVES)--> dropped, and has left
 *   dropped --newer vector--> alive;  dropped --an hour--> forgotten
 *
 * Each entry has its own memory, 0.5 KB, and one pointer in the order of the names: a node
 * that joins moves pointers only, and a watcher may hold the entry while it is alive.
 *
 * A dropped node is remembered so that an old vector, relayed late, cannot
 * bring it back.  Within one boot id the higher sequence wins; another boot id
 * wins when its vector's time (the same node's clock) is newer, or when the
 * node had been dropped.
 *
 * Others may lie about a node (its load, that it leaves, a number that its own next vectors do not
 * reach), so
 *   - a node that is heard directly is believed about itself, and nobody else is;
 *   - where a node is not heard directly, and nothing newer than the highest number came for
 *     MATRIX_SILENT_PERIODS, lower numbers win that go up themselves;
 *   - each node may tell of MATRIX_TOLD_NEW nodes in an hour that nobody has told of before.
 */
#ifndef IOCOM_MATRIX_H
#define IOCOM_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "balancer/gossip/gossip.h"
#include "iocom/vector.h"

#define MATRIX_NODES_MAX      16384
#define MATRIX_SILENT_PERIODS 3
#define MATRIX_FORGET_NS      (3600ull * 1000000000ull)
#define MATRIX_DOUBT_NS	      (30ull * 1000000000ull)
#define MATRIX_DIRECT_PERIODS 2	   /* so long after its own word others' does not count */
#define MATRIX_TOLD_NEW	      1024 /* a node of 16,384 keeps 130 */

struct matrix_entry {
	struct iocom_vector vector;
	uint64_t heard_ns;   /* CLOCK_BOOTTIME at which its newest vector was heard */
	uint64_t count;	     /* vectors accepted */
	uint32_t view_index; /* for the watcher: the node's index in its view; 0: none */
	bool alive;
	bool left;	    /* its last vector said that its agent stops */
	bool doubted;	    /* who told of it is not believed any more */
	bool relayed;	    /* its newest vector is what another node told */
	uint64_t direct_ns; /* CLOCK_BOOTTIME at which the node itself was heard; 0: never */
	/* The newest vector that was refused, because a higher number had been told. */
	uint64_t rival_boot_id, rival_sequence;
	uint64_t told_new_ns; /* when its account of new nodes to tell of is full again */
	uint64_t turned_ns;   /* CLOCK_BOOTTIME when it was there, for the first time or again, or
				 left */
	/* Whether it is heard directly; for whom plans that, who may change `tie`. */
	struct gossip_place place;
	struct gossip_tie tie;
};

/*
 * Called for each entry that has a newer vector and for each that is dropped (no longer alive). It
 * may set view_index and nothing else, and must not change the matrix.
 */
typedef void matrix_changed(void *arg, struct matrix_entry *entry);

struct matrix {
	char self[IOCOM_NAME_MAX];
	struct gossip_place place;     /* of this node */
	struct matrix_entry **entries; /* sorted by name; an entry stays where it is */
	size_t count, room;
	uint64_t generation; /* grows when a node joins, leaves or sends something new */
	matrix_changed *changed;
	void *arg;
};

/* Positive conditions of matrix_put. */
#define MATRIX_E_OWN	1 /* it is about this node */
#define MATRIX_E_OLD	2 /* not newer than what is known */
#define MATRIX_E_FULL	3 /* no room for another node */
#define MATRIX_E_SILENT 4 /* older than a node may be silent */
#define MATRIX_E_LEFT	5 /* the node's last vector: it is dropped now */

void matrix_init(struct matrix *m, const char *self);
void matrix_fini(struct matrix *m);
/* Calls CHANGED for every later change; NULL: for none. */
void matrix_watch(struct matrix *m, matrix_changed *changed, void *arg);
/*
 * AGE_NS: how old the vector was when it was sent to us; DIRECT: its own node sent it.  Returns 0,
 * MATRIX_E_*, -ENOMEM.
 */
int matrix_hear(struct matrix *m, const struct iocom_vector *v, uint64_t age_ns, bool direct,
		uint64_t now_ns);
/* The same for what another node told. */
int matrix_put(struct matrix *m, const struct iocom_vector *v, uint64_t age_ns, uint64_t now_ns);
/* Returns false if TELLER, another node, has told of too many new ones, and NAME would be one. */
bool matrix_may_tell(struct matrix *m, const char *teller, const char *name, uint64_t now_ns);
/*
 * Who told of the nodes may have lied: each node's next vector counts, whatever its number is, and
 * those that none comes of are dropped after MATRIX_DOUBT_NS, however long they said their period
 * was, and forgotten: thousands that never were must leave room for others.
 */
void matrix_doubt(struct matrix *m);
/* Drops silent nodes and forgets those dropped long ago. Returns how many were dropped now. */
size_t matrix_expire(struct matrix *m, uint64_t now_ns);
/* When the next node will have been silent for too long, if it is not heard; UINT64_MAX: none. */
uint64_t matrix_due_ns(const struct matrix *m);
/*
 * Returns NULL if NAME was never heard of or is forgotten. The entry is valid until an expire
 * forgets it.
 */
const struct matrix_entry *matrix_find(const struct matrix *m, const char *name);
/* The same, for whom changes its tie. */
struct matrix_entry *matrix_entry_of(const struct matrix *m, const char *name);
/*
 * Fills OUT with up to MAX entries that this node's bulletins tell of, and returns how many: the
 * freshest of those that it keeps (balancer/gossip/gossip.h), and what is news.  0: no memory, too.
 */
size_t matrix_told(const struct matrix *m, uint64_t now_ns, const struct matrix_entry **out,
		   size_t max);

/* The entries by name, AT from 0 to count - 1. */
static inline const struct matrix_entry *matrix_at(const struct matrix *m, size_t at)
{
	return m->entries[at];
}

static inline uint64_t matrix_age_ns(const struct matrix_entry *e, uint64_t now_ns)
{
	return now_ns > e->heard_ns ? now_ns - e->heard_ns : 0;
}

#endif
