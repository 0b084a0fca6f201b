/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A placement from the request to the answer, and the one codec for all its forms:
 *
 *   request   MessagePack { "op": "place", "v": 1, field: value, ... }    CLI to agent
 *   answer    JSON: the decision, its inputs, and where the job runs       agent to CLI
 *   begun     JSON: only where the job runs, for a client that starts its job with the request
 *   row       the answer without secrets and view, and with the load vectors of the examined
 *             nodes only: its size is bounded in a cluster of any size           journal
 *
 * One line of PLACEMENT_ASK makes a field of the request: the member of struct placement_ask
 * and the entry of the map.  A KEPT field is also written to the answer and to the row and read
 * back from them, so the agent needs no code for it.
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
#include "balancer/view/gang_answer.h"
#include "balancer/view/need.h"
#include "balancer/view/plan_json.h"

#define PLACEMENT_JOB_MAX      96 /* SPEC_JOB_MAX */
#define PLACEMENT_RESTARTS_MAX 1000
#define PLACEMENT_POLICY_MAX   64
#define PLACEMENT_CLASS_MAX    64
#define PLACEMENT_COMMAND_MAX  256
#define PLACEMENT_BYTES_MAX    (1ull << 60)
#define PLACEMENT_INPUT_ID_MAX ((1ull << 53) - 1)
#define PLACEMENT_HELD_MAX     2048
#define PLACEMENT_ONLY_MAX     8192
#define PLACEMENT_SHARED_MAX   512	   /* SHARED_FS_MAX */
#define PLACEMENT_SPEC_MAX     (64u << 10) /* a longer spec has a message of its own */

/*
 * X(kind, member, key, bound, whether the answer keeps it).  A field that is not given is not
 * packed:
 *
 *   TEXT    char[bound], packed as a string; "": not given
 *   NAME    like TEXT, but an empty one in a request is refused
 *   BYTES   like TEXT, but packed as bytes: file names need not be UTF-8
 *   LINE    like TEXT, but UTF-8 without control characters
 *   COUNT   int64_t, 0 to bound; below 0: not given
 *   FLAG    bool
 */
#define PLACEMENT_ASK(X)                                                                           \
	X(NAME, policy, "policy", PLACEMENT_POLICY_MAX, ASKED)                                     \
	/* the only node that may run the job */                                                   \
	X(NAME, node, "node", IOCOM_NAME_MAX, ASKED)                                               \
	X(BYTES, class_name, "class", PLACEMENT_CLASS_MAX, ASKED)                                  \
	X(BYTES, cwd, "cwd", PATH_MAX, ASKED)                                                      \
	X(BYTES, executable, "executable", PATH_MAX, ASKED)                                        \
	/* the user's own words about the job, for `iocom explain` */                              \
	X(LINE, comment, "comment", 201, KEPT)                                                     \
	/* one line that listings show */                                                          \
	X(TEXT, command, "command", PLACEMENT_COMMAND_MAX, ASKED)                                  \
	/* how often a restartable job may run again */                                            \
	X(COUNT, restarts, "restarts", PLACEMENT_RESTARTS_MAX, ASKED)                              \
	/* the job's lost attempt, which must run again */                                         \
	X(NAME, again, "again", PLACEMENT_JOB_MAX, ASKED)                                          \
	/* false: the agent only decides */                                                        \
	X(FLAG, run, "run", 0, ASKED)                                                              \
	/* true: the answer contains the view that the decision used */                            \
	X(FLAG, view, "view", 0, ASKED)                                                            \
	/* true: the answer has only those load vectors of which its sentences tell */             \
	X(FLAG, brief, "brief", 0, ASKED)                                                          \
	/* `node` is the choice of -N, not of the user */                                          \
	X(FLAG, picked, "picked", 0, KEPT)                                                         \
	/* a worker of iocom batch, which is never the user's last job */                          \
	X(FLAG, worker, "worker", 0, ASKED)                                                        \
	/* the job goes on without its client, and so must what is known of it */                  \
	X(FLAG, detach, "detach", 0, ASKED)                                                        \
	/* the client tells others the job's name before the job begins */                         \
	X(FLAG, named, "named", 0, ASKED)                                                          \
	/* a login: if the node lacks the directory, the job begins in "/" */                      \
	X(FLAG, home_dir, "home_dir", 0, ASKED)                                                    \
	/* the bytes of the files that its command names, and what tells command and files from    \
	   others (balancer/job_input.h); they inform its own user's profiles only */              \
	X(COUNT, input_bytes, "input_bytes", PLACEMENT_BYTES_MAX, KEPT)                            \
	X(COUNT, input_id, "input_id", PLACEMENT_INPUT_ID_MAX, KEPT)                               \
	/* the job's data goes along: elsewhere it runs in a directory of its own */               \
	X(FLAG, data, "data", 0, KEPT)                                                             \
	/* the shared file system that its directory is on (user/shared_fs.h): nothing is copied   \
	   where the same one is at that place */                                                  \
	X(BYTES, shared, "shared", PLACEMENT_SHARED_MAX, KEPT)                                     \
	/* who serves the file system of its directory: an address, or SHARED_FS_HERE; in an       \
	   answer the node that has it, if one has */                                              \
	X(BYTES, shared_server, "shared_server", IOCOM_NAME_MAX, KEPT)                             \
	/* in an answer: which nodes' page caches have how much of what it reads there */          \
	X(TEXT, shared_cached, "shared_cached", PLACEMENT_HELD_MAX, KEPT)                          \
	/* which nodes have how much of it, "NODE=BYTES,..." */                                    \
	X(TEXT, data_held, "data_held", PLACEMENT_HELD_MAX, KEPT)                                  \
	/* the bytes that come home afterwards, and how many earlier runs of the class say so; 0   \
	   runs: what is there at home now */                                                      \
	X(COUNT, bring_bytes, "bring_bytes", PLACEMENT_BYTES_MAX, KEPT)                            \
	X(COUNT, bring_runs, "bring_runs", PLACEMENT_BYTES_MAX, KEPT)                              \
	/* a gang of so many tasks, at most so many on one node; 0 tasks is refused */             \
	X(COUNT, tasks, "tasks", GANG_ANSWER_TASKS_MAX, KEPT)                                      \
	X(COUNT, per_node, "per_node", GANG_ANSWER_TASKS_MAX, KEPT)                                \
	/* the nodes' slots do not bind */                                                         \
	X(FLAG, oversubscribe, "oversubscribe", 0, KEPT)                                           \
	/* a task that fails does not end the others */                                            \
	X(FLAG, keep_going, "keep_going", 0, KEPT)                                                 \
	/* the names, joined by commas, of the nodes that may be used; "": any */                  \
	X(TEXT, only, "only", PLACEMENT_ONLY_MAX, KEPT)

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
	/*
	 * The job's packed spec (user/spec.h), without job, node and nonce: if the job runs at
	 * home, the agent starts it with this, and the connection of the request becomes its
	 * stream. Borrowed, from the message that was unpacked; NULL: the client starts the job
	 * itself.
	 */
	const void *spec;
	uint32_t spec_length; /* at most PLACEMENT_SPEC_MAX */
};

struct placement_node {
	struct iocom_vector vector;
	double age_ms;
	bool self;    /* home */
	double doubt; /* jobs there took so many times what its word let expect; 0 or 1: believed */
};

/* A node that did not take the job. */
struct placement_refusal {
	const char *node, *reason, *text;
};

/* A need that the user stated and that no known node, home included, can meet. */
struct placement_unmet {
	char need[24];		   /* its name in requests and answers: "memory_mb" */
	double wanted, most;	   /* in its unit; the largest that any node offers */
	char node[IOCOM_NAME_MAX]; /* which offers that; "": none offers anything */
};
#define PLACEMENT_UNMET_MAX 4

/* The answer about a lost attempt that is not placed again, or not yet. */
struct placement_lost {
	uint64_t wait_ms;   /* the client asks again after this time; 0: see `state` */
	const char *silent; /* the only node that may run the job is silent; "": the lease lasts */
	uint64_t lease_ms;  /* with `silent`: how long the client waits for it at most */
	const char *state;  /* how the attempt had ended; "": it has not */
	uint64_t kind, value;
};

/*
 * The texts are never NULL.  They belong to the caller; after placement_read they belong to
 * `document`.
 */
struct placement {
	struct placement_ask ask; /* after placement_read: the KEPT fields */
	struct placement_lost lost;

	/* The decision. */
	const char *policy, *home;
	const char *node;    /* the chosen node */
	bool forced;	     /* the request named the node */
	const char *learned; /* what is known of the job's class, as a sentence; "": nothing */
	const char *light;   /* why it is too light to go anywhere, as a clause; "": it is not */
	bool failed;	     /* no node took the job */
	uint64_t seed;
	struct need need;
	uint32_t need_given; /* the known fields of `need`: bits by enum need_field */
	struct plan_record plan;
	json_t *refusals; /* the list that owns the texts of `refused`; NULL: no agent was asked */
	struct placement_refusal *refused;
	size_t nrefused;
	struct placement_node *nodes; /* home first */
	size_t nnodes;
	size_t known;	     /* how many nodes the decision used; 0: just `nodes` */
	bool room_elsewhere; /* a node that is not in `nodes` has room in memory */
	struct placement_unmet unmet[PLACEMENT_UNMET_MAX];
	size_t nunmet;
	json_t *view; /* the view that the decision used, or NULL */
	/* at `node`, which need not be the plan's; not known: the document has none */
	struct rules_expectation expectation;

	/* Where the job runs. */
	bool placed;
	const char *job, *address; /* address "": this machine */
	uint64_t port;
	const char *directory; /* where a login begins; "": as requested */
	uint64_t attempt;      /* the number of a restartable job's attempt; else 0 */
	uint64_t restarts, lease_ms;
	const char *first; /* the job's name at its first attempt */
	/* Secrets: only the client gets them.  The key, in hex, is that of its streams to another
	 * node; "": this machine. */
	const char *nonce, *key, *munge_socket;
	/* Where the parts of a gang run; NULL: it is none.  placement_fini frees it. */
	struct gang_answer *gang;
	bool begun; /* the agent has started the job: the connection is its stream now */

	json_t *document; /* what placement_read has read, or NULL */
};

/* Makes PLACEMENT empty: no field is given, no text is NULL. */
void placement_init(struct placement *placement);
void placement_fini(struct placement *placement);

/* --- placement_ask.c: the request ----------------------------------------------------- */

void placement_ask_init(struct placement_ask *ask);
/* Initialises OUT, which the caller destroys. */
void placement_ask_pack(const struct placement_ask *ask, msgpack_sbuffer *out);
/* Skips unknown keys: a newer CLI may send them.  Returns 0 or -EINVAL with the reason in ERR. */
int placement_ask_unpack(struct placement_ask *ask, const msgpack_object *map,
			 struct iocom_err *err);
/*
 * Takes the next node of a text as in `data_held`, and MB that it has.  Returns false at the end,
 * and where the text is not as it should be.
 */
bool placement_held_next(const char **text, char node[IOCOM_NAME_MAX], double *mb);
/* Returns whether TEXT may be a LINE: UTF-8 without control characters. */
bool placement_line_valid(const char *text);

/* --- placement.c, placement_read.c: the answer and the row ------------------------------ */

/* Adds a refusal; TEXT must be UTF-8.  Returns 0 or -ENOMEM. */
int placement_refuse(struct placement *placement, const char *node, const char *reason,
		     const char *text);

enum placement_form { PLACEMENT_ANSWER, PLACEMENT_BEGUN, PLACEMENT_ROW };

/* A row keeps the vectors of all nodes in a cluster of at most this many nodes. */
#define PLACEMENT_ROW_WHOLE 8

/* Returns a new document; NULL: no memory. */
json_t *placement_json(const struct placement *placement, enum placement_form form);
/* Returns the answer that takes the place of a placement; NULL: no memory. */
json_t *placement_lost_json(const struct placement_lost *lost);
/*
 * Reads an answer or a row and keeps a reference to DOCUMENT.  Fields that it lacks stay empty.
 * Returns 0; -EPROTO with a sentence that begins with SOURCE ("the agent's answer"); -ENOMEM.
 * The caller frees PLACEMENT in any case.
 */
int placement_read(struct placement *placement, json_t *document, const char *source,
		   struct iocom_err *err);
/* Returns a copy of the document that was read, without the secrets; NULL: no memory. */
json_t *placement_public(const struct placement *placement);
/* Removes the view from PLACEMENT and its document and returns it; NULL: there is none. */
json_t *placement_take_view(struct placement *placement);

/* --- placement_unmet.c ------------------------------------------------------------------ */

/*
 * Finds what no node can meet: begin with the stated needs of P, look at each known node, end.
 */
void placement_unmet_begin(struct placement *p);
void placement_unmet_node(struct placement *p, const struct iocom_vector *node, bool home);
/* Keeps only those needs that no node met. */
void placement_unmet_end(struct placement *p);
/* The list "unmet" of a document; it has none if every need can be met.  0, -ENOMEM, -EPROTO. */
int placement_unmet_write(const struct placement *p, json_t *document);
int placement_unmet_read(struct placement *p, const json_t *document);
/* One sentence on unmet need I: which, the largest that a node offers, and where the job goes. */
void placement_unmet_text(const struct placement *p, size_t i, char *out, size_t size);

/* Returns how many nodes the decision used. */
size_t placement_known(const struct placement *placement);
/* Returns the memory that the job needs; 0: unknown. */
double placement_wanted_mb(const struct placement *placement);
bool placement_has_room(const struct placement *placement, const struct iocom_vector *node);
/* Returns whether a node other than home has room for the job's memory. */
bool placement_room_elsewhere(const struct placement *placement);

#endif
