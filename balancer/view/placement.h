/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A placement, from the question to the answer, and the one codec of all its forms:
 *
 *   request   MessagePack { "op": "place", "v": 1, field: value, ... }    CLI to agent
 *   answer    JSON: what was decided on what, and where the job runs      agent to CLI
 *   row       the answer without the secrets, and with the load vectors of the examined
 *             nodes only: its size has a bound, however large the cluster is    journal
 *
 * A field of the request is one line of PLACEMENT_ASK: it makes the member of struct
 * placement_ask and its place in the map.  One that is KEPT is in the answer and in the row,
 * too, and read back from them: the agent needs no line of code for it.
 */
#ifndef IOCOM_PLACEMENT_H
#define IOCOM_PLACEMENT_H

#include <jansson.h>
#include <limits.h>
#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/vector.h"
#include "balancer/view/need.h"
#include "balancer/view/plan_json.h"

#define PLACEMENT_JOB_MAX      96 /* SPEC_JOB_MAX */
#define PLACEMENT_RESTARTS_MAX 1000
#define PLACEMENT_POLICY_MAX   64
#define PLACEMENT_CLASS_MAX    64
#define PLACEMENT_COMMAND_MAX  256

/*
 * X(kind, member, key, bound, whether the answer keeps it); what is not given is not packed:
 *
 *   TEXT    char[bound], a string; "": not given
 *   NAME    the same, and one that is packed is not empty
 *   BYTES   TEXT as bytes: names of files need not be UTF-8
 *   LINE    TEXT, but UTF-8 and without control characters
 *   COUNT   int64_t, 0 to bound; below 0: not given
 *   FLAG    bool
 */
#define PLACEMENT_ASK(X)                                                                           \
	X(NAME, policy, "policy", PLACEMENT_POLICY_MAX, ASKED)                                     \
	/* this node and no other */                                                               \
	X(NAME, node, "node", IOCOM_NAME_MAX, ASKED)                                               \
	X(BYTES, class_name, "class", PLACEMENT_CLASS_MAX, ASKED)                                  \
	X(BYTES, cwd, "cwd", PATH_MAX, ASKED)                                                      \
	X(BYTES, executable, "executable", PATH_MAX, ASKED)                                        \
	/* the user's own words about the job, for `iocom explain` */                              \
	X(LINE, comment, "comment", 201, KEPT)                                                     \
	/* for listings */                                                                         \
	X(TEXT, command, "command", PLACEMENT_COMMAND_MAX, ASKED)                                  \
	/* of a restartable job: so often it may be run again */                                   \
	X(COUNT, restarts, "restarts", PLACEMENT_RESTARTS_MAX, ASKED)                              \
	/* ... and its attempt that was lost */                                                    \
	X(NAME, again, "again", PLACEMENT_JOB_MAX, ASKED)                                          \
	/* it is to be run, and not only decided on */                                             \
	X(FLAG, run, "run", 0, ASKED)                                                              \
	/* the answer is to carry the view that was looked at */                                   \
	X(FLAG, view, "view", 0, ASKED)                                                            \
	/* `node` was not named by the user: -N took it */                                         \
	X(FLAG, picked, "picked", 0, KEPT)                                                         \
	/* of iocom batch: never the user's last job */                                            \
	X(FLAG, worker, "worker", 0, ASKED)                                                        \
	/* where the directory is missing at the node, "/" will do */                              \
	X(FLAG, home_dir, "home_dir", 0, ASKED)

#define PLACEMENT_MEMBER_TEXT(member, bound)		   char member[bound];
#define PLACEMENT_MEMBER_NAME(member, bound)		   char member[bound];
#define PLACEMENT_MEMBER_BYTES(member, bound)		   char member[bound];
#define PLACEMENT_MEMBER_LINE(member, bound)		   char member[bound];
#define PLACEMENT_MEMBER_COUNT(member, bound)		   int64_t member;
#define PLACEMENT_MEMBER_FLAG(member, bound)		   bool member;
#define PLACEMENT_MEMBER(kind, member, key, bound, answer) PLACEMENT_MEMBER_##kind(member, bound)

struct placement_ask {
	PLACEMENT_ASK(PLACEMENT_MEMBER)
	struct need_options need;
};

struct placement_node {
	struct iocom_vector vector;
	double age_ms;
	bool self; /* home */
};

/* A node that did not take the job. */
struct placement_refusal {
	const char *node, *reason, *text;
};

/* The answer about an attempt that was lost, where it is not a placement. */
struct placement_lost {
	uint64_t wait_ms;   /* ask again then; 0: see `state` */
	const char *silent; /* the one node that may run it; "": wait for the lease's end */
	uint64_t lease_ms;  /* with `silent` */
	const char *state;  /* how it had ended; "": not */
	uint64_t kind, value;
};

/* All texts are the caller's, or, of one that was read, its document's; none is NULL. */
struct placement {
	struct placement_ask ask; /* of one that was read: what is KEPT */
	struct placement_lost lost;

	/* The decision. */
	const char *policy, *home;
	const char *node; /* where it runs, or would */
	bool forced;	  /* the user named the node */
	bool failed;	  /* nobody took it */
	uint64_t seed;
	struct need need;
	uint32_t need_given; /* bits by enum need_field */
	struct plan_record plan;
	json_t *refusals; /* a list; it owns the texts of `refused` */
	struct placement_refusal *refused;
	size_t nrefused;
	struct placement_node *nodes; /* home first */
	size_t nnodes;
	size_t known;	     /* of a row: so many nodes were looked at; 0: these */
	bool room_elsewhere; /* a row: one of those that it leaves out has room in memory */
	json_t *view;	     /* what was looked at, as a view file, or NULL */

	/* Where the job runs. */
	bool placed;
	const char *job, *address; /* address "": this machine */
	uint64_t port;
	bool tls;
	const char *directory; /* of a login; "": as asked */
	uint64_t attempt;      /* of a restartable job; else 0 */
	uint64_t restarts, lease_ms;
	const char *first;		  /* attempt */
	const char *nonce, *munge_socket; /* the client's alone */

	json_t *document; /* of one that was read */
};

/* Nothing is known, asked or given yet. */
void placement_init(struct placement *placement);
void placement_fini(struct placement *placement);

/* --- placement_ask.c: the request ----------------------------------------------------- */

void placement_ask_init(struct placement_ask *ask);
/* OUT is initialised here and the caller's to destroy. */
void placement_ask_pack(const struct placement_ask *ask, msgpack_sbuffer *out);
/* What no field has as its key is skipped: a newer CLI's.  0; -EINVAL with the sentence. */
int placement_ask_unpack(struct placement_ask *ask, const msgpack_object *map,
			 struct iocom_err *err);
/* Whether TEXT is UTF-8 without control characters, as a LINE has to be. */
bool placement_line_valid(const char *text);

/* --- placement.c: the answer and the row ---------------------------------------------- */

/* A node refused: TEXT is UTF-8.  0 or -ENOMEM. */
int placement_refuse(struct placement *placement, const char *node, const char *reason,
		     const char *text);

enum placement_form { PLACEMENT_ANSWER, PLACEMENT_ROW };

/* A row of so many nodes has them all. */
#define PLACEMENT_ROW_WHOLE 8

/* A new document; NULL: no memory. */
json_t *placement_json(const struct placement *placement, enum placement_form form);
/* The answer instead of a placement.  NULL: no memory. */
json_t *placement_lost_json(const struct placement_lost *lost);
/*
 * Reads an answer or a row, and holds DOCUMENT as long as it is needed.  0; -EPROTO with the
 * sentence, SOURCE being "the agent's answer"; -ENOMEM.  To be freed in any case.
 */
int placement_read(struct placement *placement, json_t *document, const char *source,
		   struct iocom_err *err);
/* The document that was read, without what is the client's alone; NULL: no memory. */
json_t *placement_public(const struct placement *placement);
/* The view leaves the document that was read: the caller's; NULL: it has none. */
json_t *placement_take_view(struct placement *placement);

/* How many nodes were looked at. */
size_t placement_known(const struct placement *placement);
/* The memory that the job needs; 0: not told. */
double placement_wanted_mb(const struct placement *placement);
bool placement_has_room(const struct placement *placement, const struct iocom_vector *node);
/* Whether a node besides home has room for the job's memory. */
bool placement_room_elsewhere(const struct placement *placement);

#endif
