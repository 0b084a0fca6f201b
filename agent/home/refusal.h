/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A node that did not take a job: what is kept of it, and what its user reads. */
#ifndef IOCOM_REFUSAL_H
#define IOCOM_REFUSAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define REFUSAL_NO_ANSWER "no-answer" /* TEXT says what the node did: "did not answer ..." */
#define REFUSAL_SILENT	  "silent"    /* the same */
#define REFUSAL_PATH	  "path-missing"

/* {node, reason, text} for the decision that is kept; the caller's; NULL: no memory. */
json_t *refusal_json(const char *node, const char *reason, const char *text);
/* One sentence of at most SIZE - 1 bytes. */
void refusal_sentence(const char *node, const char *reason, const char *text, char *out,
		      size_t size);
/* TEXT of a node that was asked in vain; it was last heard AGE_NS ago. */
void refusal_unanswered(uint64_t age_ns, char *out, size_t size);

#endif
