/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the parts of the placement codec share: the tables of its fields. */
#ifndef IOCOM_PLACEMENT_TABLE_H
#define IOCOM_PLACEMENT_TABLE_H

#include "balancer/view/placement.h"

enum placement_kind {
	PLACEMENT_TEXT,
	PLACEMENT_NAME,
	PLACEMENT_BYTES,
	PLACEMENT_LINE,
	PLACEMENT_COUNT,
	PLACEMENT_FLAG
};

enum placement_answer { PLACEMENT_ASKED, PLACEMENT_KEPT };

struct placement_field {
	const char *key;
	enum placement_kind kind;
	enum placement_answer answer;
	size_t offset, bound;
};

#define PLACEMENT_ONE(kind, member, key, bound, answer) +1
#define PLACEMENT_ASK_COUNT				(0 PLACEMENT_ASK(PLACEMENT_ONE))

extern const struct placement_field placement_ask_fields[];

static inline void *placement_ask_at(struct placement_ask *ask, const struct placement_field *f)
{
	return (char *)ask + f->offset;
}

bool placement_given(const struct placement_ask *ask, const struct placement_field *f);

/* When a document has a member. */
enum placement_when {
	PLACEMENT_ALWAYS,
	PLACEMENT_GIVEN,  /* if it is not "", not 0 and not false */
	PLACEMENT_PLACED, /* if the job has a place */
	PLACEMENT_LEASED, /* if the job has a place and is restartable */
	PLACEMENT_SECRET, /* a member that only an answer has */
};

enum placement_shape { PLACEMENT_STRING, PLACEMENT_NUMBER, PLACEMENT_BOOLEAN };

struct placement_member {
	const char *key;
	enum placement_shape shape;
	enum placement_when when;
	size_t offset;
};

struct placement_part {
	const struct placement_member *rows;
	size_t count;
};

/*
 * A document has, in this order: `decided`; unmet; need, plan, refused, expected, nodes; `drawn`;
 * the KEPT fields of the request; the view; `running`.
 */
extern const struct placement_part placement_decided, placement_drawn, placement_running;
/* The answer about a lost attempt has one of these instead; `ended` is inside "ended". */
extern const struct placement_part placement_waiting, placement_ended;

#endif
