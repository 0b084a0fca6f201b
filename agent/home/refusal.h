/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A node that did not take a job: what is kept of the refusal, and what its user reads. */
#ifndef IOCOM_REFUSAL_H
#define IOCOM_REFUSAL_H

#include <stddef.h>
#include <stdint.h>

#include "balancer/view/placement.h"

#define REFUSAL_NO_ANSWER "no-answer" /* TEXT says what the node did: "did not answer ..." */
#define REFUSAL_SILENT	  "silent"    /* the same */
#define REFUSAL_PATH	  "path-missing"

/* PLACEMENT keeps it; TEXT need not be UTF-8.  Returns 0 or -ENOMEM. */
int refusal_keep(struct placement *placement, const char *node, const char *reason,
		 const char *text);
/* Writes one sentence of at most SIZE - 1 bytes. */
void refusal_sentence(const char *node, const char *reason, const char *text, char *out,
		      size_t size);
/* Writes TEXT for a node that did not answer; it was last heard AGE_NS ago. */
void refusal_unanswered(uint64_t age_ns, char *out, size_t size);

#endif
