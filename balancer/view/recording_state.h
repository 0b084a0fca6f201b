/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the reader and the writer of recordings share: tables of fields and the nodes' state. */
#ifndef IOCOM_RECORDING_STATE_H
#define IOCOM_RECORDING_STATE_H

#include "balancer/view/json_field.h"
#include "balancer/view/recording.h"
#include "balancer/view/view_node.h"

/* The nodes according to the lines so far. */
struct recording_state {
	struct view_node *nodes;
	uint32_t n, room;
	json_t *names; /* name -> number: names are unique */
};

int recording_state_init(struct recording_state *s); /* 0, -ENOMEM */
void recording_state_fini(struct recording_state *s);
void recording_state_clear(struct recording_state *s);
/* Adds a node with the next number and all defaults.  Returns 0 or -ENOMEM. */
int recording_state_add(struct recording_state *s);
/* Removes the newest node, whose name is NAME or not set yet. */
void recording_state_pop(struct recording_state *s, const char *name);
/* Names node INDEX.  Returns 0; -EEXIST: another node has the name; -ENOMEM. */
int recording_state_name(struct recording_state *s, uint32_t index, const char *name);

enum recording_table {
	RECORDING_T_HEADER,
	RECORDING_T_JOB,
	RECORDING_T_DECISION,
	RECORDING_T_FINISH,
	RECORDING_T_MEASURED,
	RECORDING_T_END,
};

/* The fields of one kind of line, which are those of its structure in recording.h. */
const struct field *recording_fields(enum recording_table table, size_t *n);

#endif
