/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The view file: all that one decision uses, as one JSON document.
 *
 *   { "version": 1, "time_ms", "home", "seed", "network_mb_per_s",
 *     "reference_mips", "rates", "params": { parameter: value },
 *     "nodes": [ { machine, "tasks": [], "measured": {}, "advertised": {},
 *                  "sharers": {}, "zatti": {}, "owner": {}, "age_ms", "charged": [] } ],
 *     "job": { } }
 *
 * Units are those of iocom/rules.h.  A missing field has a default:
 *
 *   version 1, time_ms 0, home 0, seed 1, rates "computation", network_mb_per_s
 *   125, reference_mips the home node's cpu_mips, params the rules' defaults
 *   of these rates, name "n1", "n2" ... by position
 *   machine     ram_mb 640, buffer_mb ram_mb / 4 (wall: 0), cpu_mips 800, burst_mips 0 (no
 *               cap), cores 1, disk_fixed_ms 8, disk_mb_per_s 40, disk_parallel 0 (1),
 *               request_kb 250, request_sd_kb 50, network_mb_per_s the view's: FC's machine
 *   task, job   request_kb 250, reaccess 5 (wall: 0), requests null, tasks 1,
 *               com_ms a list of zeros, corrections {}, correction 1, held {}, no shared; every
 * other amount 0 measured    missing: the disk and CPU state follow from the tasks.  In parts:
 *               disk_utilisation = arrivals * service, and the other way round;
 *               service_ms the disk's own, service_ms2 its square, cpu_queue the
 *               CPU load, io_tasks those that the tasks show
 *   advertised  missing, wholly or in part: follows from the tasks
 *   sharers     missing: follows from the tasks, else from the measured state.  In parts: an error
 *   zatti       missing: follows from the rest.  In parts: run_queue the CPU queue,
 *               cpu_idle_percent 100 (1 - run_queue / cores), blocks_per_s 1000
 *               L_IO, free_mb the memory that nobody requested
 *   owner       accepts true
 *
 * Beyond the published fields, a node may have "cores", "measured" may have "io_tasks", a task
 * "pinned", and a node "charged": requests in the form of "job" that home has placed there, in
 * that order, since the node's last vector (MODEL 3.0).  "job" may have "corrections", factors by
 * the nodes' names, and "correction", that of the other nodes (MODEL 2.1), and "held", MB by the
 * nodes' names (MODEL 2.3), and "pairs", [from, to, bytes, messages] of its tasks,
 * with "phases"; a node may have "port", {busy_mb_per_s, round_trip_ms, slots} (MODEL 3.18).
 */
#ifndef IOCOM_VIEW_JSON_H
#define IOCOM_VIEW_JSON_H

#include <jansson.h>

#include "iocom/err.h"
#include "iocom/rules.h"

/* the most bytes of a file: 100,000 nodes of 1,250 bytes */
#define VIEW_BYTES_MAX (128u * 1000 * 1000)
#define VIEW_TASKS_MAX 1000000u			 /* of a job */
#define VIEW_SEED_MAX  ((UINT64_C(1) << 53) - 1) /* every JSON reader keeps such numbers exactly */

/* A node with what it owns; node.tasks equals tasks. */
struct view_node {
	struct rules_node node;
	struct rules_task *tasks;
	struct rules_request *charged; /* tasks is 1, without com_ms and corrections */
	size_t ncharged;
};

struct view_file {
	double time_ms;
	uint32_t home;
	uint64_t seed;
	struct rules_params params; /* rates, reference_mips, network_mb_per_s included */
	struct view_node *nodes;
	uint32_t nnodes, room;
	struct rules_request job; /* its lists are the next three, or borrowed */
	double *com_ms;		  /* job.tasks values, or NULL */
	struct rules_correction *corrections;
	struct rules_held *held, *cached;
	struct rules_pair *pairs;
};

/* Makes an empty view with the defaults of RATES. */
void view_file_init(struct view_file *view, enum rules_rates rates);
void view_file_fini(struct view_file *view);

/*
 * Reads PATH ("-": standard input).  Returns 0; -EINVAL with "FILE: path of the field: what was
 * expected, what was found" (wrong types, NaN, negative values, unknown fields, duplicate keys
 * and names, an index out of range, too deep, over VIEW_BYTES_MAX); -ENOMEM; errno of the file.
 * Free VIEW only after 0.
 */
int view_file_read(const char *path, struct view_file *view, struct iocom_err *err);
/* Reads TEXT in the same way; NAME stands for the file in messages. */
int view_file_decode(const char *name, const char *text, size_t length, struct view_file *view,
		     struct iocom_err *err);
/*
 * Makes the document with every field; decoding it gives the same view, bit for bit.  Returns NULL
 * if there is no memory.
 */
json_t *view_file_json(const struct view_file *view);

/* Adds a copy of NODE with its tasks and without charges.  Returns 0 or -ENOMEM. */
int view_file_add(struct view_file *view, const struct rules_node *node);
/*
 * Removes node INDEX, charges and correction included; the later ones move up by one.  Without home
 * the first node is home.
 */
void view_file_remove(struct view_file *view, uint32_t index);
/* Adds a placement to node INDEX.  Returns 0; -EINVAL: there is no such node; -ENOMEM. */
int view_file_charge(struct view_file *view, uint32_t index, const struct rules_request *request);

void view_node_fini(struct view_node *node);
int view_node_copy(struct view_node *to, const struct view_node *from); /* 0, -ENOMEM */
/* Returns whether both describe the same state, bit for bit, apart from the age. */
bool view_node_same(const struct view_node *a, const struct view_node *b);

#endif
