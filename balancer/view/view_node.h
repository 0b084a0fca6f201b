/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Converts nodes and jobs between JSON and structures, for view files and recordings.
 * view_json.h lists the fields and their defaults.
 */
#ifndef IOCOM_VIEW_NODE_H
#define IOCOM_VIEW_NODE_H

#include "balancer/view/json_field.h"
#include "balancer/view/view_json.h"

/* Makes a machine with every default, no load, open to jobs; INDEX gives its name. */
void view_node_init(struct view_node *node, uint32_t index);

/*
 * These return 0, -EINVAL with a sentence that says why, or -ENOMEM; free NODE in any case.
 * view_node_read reads a whole node.  view_machine_read reads the machine's fields; missing ones
 * keep their value. view_load_read reads the rest and replaces the old load.
 */
int view_node_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		   struct view_node *node);
int view_machine_read(struct field_reader *r, const json_t *object, struct view_node *node);
int view_load_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		   struct view_node *node);

/* These add the fields to OBJECT.  They return 0 or -ENOMEM. */
int view_machine_write(json_t *object, const struct view_node *node);
int view_load_write(json_t *object, const struct view_node *node);
bool view_machine_same(const struct view_node *a, const struct view_node *b);
bool view_load_same(const struct view_node *a, const struct view_node *b);

/* Which index of the view a node's name stands for. */
struct view_places {
	const json_t *numbers; /* { name: number } */
	const uint32_t *place; /* the index of each number, or VIEW_NOWHERE; NULL: the same */
};
#define VIEW_NOWHERE UINT32_MAX

/* What a job owns: malloc'ed or NULL. */
struct view_job_own {
	double *com_ms;
	struct rules_correction *corrections;
	struct rules_held *held, *cached;
	struct rules_pair *pairs;
};

/*
 * Reads a job into JOB, whose lists OWN owns.  Without PLACES it may have neither corrections nor
 * held nor shared.  After a failure nothing needs freeing.
 */
int view_job_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		  const struct view_places *places, struct rules_request *job,
		  struct view_job_own *own);
void view_job_free(struct view_job_own *own);
/*
 * Returns a new object; NULL: out of memory.  NAME (NULL: the job has neither corrections nor held
 * nor shared) tells the name of a node of the view, or NULL.
 */
json_t *view_job_json(const struct rules_request *job,
		      const char *(*name)(const void *arg, uint32_t index), const void *arg);
/* Compares all fields but com_ms, the corrections, held and shared. */
bool view_job_same(const struct rules_request *a, const struct rules_request *b);

/*
 * view_params_read changes PARAMS by "params" of OBJECT and by "network_mb_per_s" and
 * "reference_mips" beside it; view_rates_read reads "rates".  They return 0 or -EINVAL with a
 * sentence that says why.
 */
int view_params_read(struct field_reader *r, const json_t *object, struct rules_params *params);
int view_rates_read(struct field_reader *r, const json_t *object, enum rules_rates *rates);
const char *view_rates_name(enum rules_rates rates);
/*
 * Adds "params" to OBJECT: the parameters that differ from BASE. Without BASE it adds all but the
 * two that stand beside "params".  Returns 0 or -ENOMEM.
 */
int view_params_write(json_t *object, const struct rules_params *params,
		      const struct rules_params *base);

#endif
