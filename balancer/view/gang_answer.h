/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where the parts of a placed gang are: the member "gang" of a placement's answer and row
 *
 *   { "job": ID, "tasks": N, "parts": [ part, ... ], "why": {} }
 *   part   { "job": "ID.K", "node", "address", "port", "nonce", "key", "ranks": "0-3,8" }
 *
 * Part K is entry K.  Each task is in exactly one part.  "why" is as gang_json.h has it; a row has
 * neither nonce nor key.
 */
#ifndef IOCOM_GANG_ANSWER_H
#define IOCOM_GANG_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/vector.h"

#define GANG_ANSWER_JOB_MAX   96   /* SPEC_JOB_MAX */
#define GANG_ANSWER_NONCE_MAX 40   /* SPEC_NONCE_MAX */
#define GANG_ANSWER_KEY_MAX   65   /* a stream's key in hex, with NUL */
#define GANG_ANSWER_PARTS_MAX 1024 /* GANG_PARTS_MAX */
#define GANG_ANSWER_TASKS_MAX 4096 /* GANG_TASKS_MAX */

struct gang_part {
	char job[GANG_ANSWER_JOB_MAX];
	char node[IOCOM_NAME_MAX];
	char address[IOCOM_ADDRESS_MAX]; /* "": this machine */
	uint16_t port;			 /* of job streams; 0: this machine */
	/* Secrets: only the client gets them.  KEY is "" on this machine. */
	char nonce[GANG_ANSWER_NONCE_MAX], key[GANG_ANSWER_KEY_MAX];
	uint32_t first, tasks; /* its tasks are `ranks` from FIRST on, ascending; at least one */
};

struct gang_answer {
	char job[GANG_ANSWER_JOB_MAX];
	uint32_t tasks, nparts;
	struct gang_part *parts; /* malloc'ed */
	uint32_t *ranks;	 /* malloc'ed: the tasks of part 0, then those of part 1, ... */
	json_t *why;		 /* NULL: not known */
};

/*
 * Returns a gang without names whose task I runs on NODES[I], a number below COUNT: a part for each
 * node that has a task, in the order of nodes, whose numbers in NODES go to PART_NODES (malloc'ed,
 * nparts entries).  NULL: no memory.  The caller frees it by gang_answer_free.
 */
struct gang_answer *gang_answer_new(const uint32_t *nodes, uint32_t tasks, uint32_t count,
				    uint32_t **part_nodes);
void gang_answer_free(struct gang_answer *gang); /* erases the secrets; GANG may be NULL */
/* Returns a new document; NULL: no memory, or a text that is not UTF-8. */
json_t *gang_answer_json(const struct gang_answer *gang, bool secrets);
/*
 * Reads a document into *GANG (malloc'ed).  Returns 0; -EPROTO with the reason in ERR, also if a
 * task is missing or occurs twice; -ENOMEM.
 */
int gang_answer_read(struct gang_answer **gang, const json_t *document, struct iocom_err *err);

/*
 * Writes COUNT ascending numbers as "0-3,8".  Returns the text's length without NUL; at least SIZE:
 * it was cut.
 */
size_t gang_ranks_text(const uint32_t *ranks, uint32_t count, char *out, size_t size);
/* The numbers as text (malloc'ed); NULL: no memory. */
char *gang_ranks_new_text(const uint32_t *ranks, uint32_t count);
/*
 * Reads such a text of numbers below LIMIT, which must ascend, into RANKS, which has room for
 * LIMIT. Returns 0 or -EINVAL.
 */
int gang_ranks_parse(const char *text, uint32_t limit, uint32_t *ranks, uint32_t *count);

#endif
