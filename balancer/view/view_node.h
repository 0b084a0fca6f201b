/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Nodes and jobs between JSON and structures: what the view file and the recording
 * have in common.  Fields and their defaults: view_json.h.
 */
#ifndef IOCOM_VIEW_NODE_H
#define IOCOM_VIEW_NODE_H

#include "balancer/view/json_field.h"
#include "balancer/view/view_json.h"

/* A machine with every default, no load, open to jobs; INDEX gives its name. */
void view_node_init(struct view_node *node, uint32_t index);

/*
 * Each 0, -EINVAL with the sentence, or -ENOMEM; NODE is to be freed in any case.
 * view_node_read: all of a node.  view_machine_read: the machine's fields only,
 * those left out stay.  view_load_read: the rest, what was before goes.
 */
int view_node_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		   struct view_node *node);
int view_machine_read(struct field_reader *r, const json_t *object, struct view_node *node);
int view_load_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		   struct view_node *node);

/* Adds the fields to OBJECT.  0 or -ENOMEM. */
int view_machine_write(json_t *object, const struct view_node *node);
int view_load_write(json_t *object, const struct view_node *node);
bool view_machine_same(const struct view_node *a, const struct view_node *b);
bool view_load_same(const struct view_node *a, const struct view_node *b);

/*
 * A job: JOB and *COM_MS (malloc'ed or NULL).  Nothing is to be freed after a
 * failure.
 */
int view_job_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		  struct rules_request *job, double **com_ms);
/* New object; NULL: no memory. */
json_t *view_job_json(const struct rules_request *job);
/* All fields but com_ms. */
bool view_job_same(const struct rules_request *a, const struct rules_request *b);

/*
 * "params" and, beside it, "network_mb_per_s" and "reference_mips" of OBJECT over
 * what PARAMS says.  "rates" of OBJECT.  0 or -EINVAL with the sentence.
 */
int view_params_read(struct field_reader *r, const json_t *object, struct rules_params *params);
int view_rates_read(struct field_reader *r, const json_t *object, enum rules_rates *rates);
const char *view_rates_name(enum rules_rates rates);
/*
 * Adds "params" to OBJECT: with BASE those that differ from it, with none all but the
 * two that stand beside it.  0 or -ENOMEM.
 */
int view_params_write(json_t *object, const struct rules_params *params,
		      const struct rules_params *base);

#endif
