/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Converts nodes of a view between JSON and structures; see view_node.h. */
#include "balancer/view/view_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE(kind, member) FIELD_OF(kind, rules_node, member)
#define TASK(kind, member) FIELD_OF(kind, rules_task, member)
#define IN(group, member)                                                                          \
	{                                                                                          \
#member, FIELD_NUMBER, offsetof(struct rules_node, group.member), sizeof(double)   \
	}
#define KNOWN(name)                                                                                \
	{                                                                                          \
		name, FIELD_ELSEWHERE, 0, 0                                                        \
	}

#define MACHINE_FIELDS                                                                             \
	NODE(FIELD_TEXT, name), NODE(FIELD_NUMBER, ram_mb), NODE(FIELD_NUMBER, buffer_mb),         \
		NODE(FIELD_POSITIVE, cpu_mips), NODE(FIELD_NUMBER, burst_mips),                    \
		NODE(FIELD_NUMBER, cores), NODE(FIELD_NUMBER, disk_fixed_ms),                      \
		NODE(FIELD_NUMBER, disk_mb_per_s), NODE(FIELD_NUMBER, disk_parallel),              \
		NODE(FIELD_NUMBER, request_kb), NODE(FIELD_NUMBER, request_sd_kb),                 \
		NODE(FIELD_NUMBER, network_mb_per_s)
#define LOAD_FIELDS                                                                                \
	NODE(FIELD_NUMBER, age_ms), KNOWN("tasks"), KNOWN("measured"), KNOWN("advertised"),        \
		KNOWN("sharers"), KNOWN("zatti"), KNOWN("port"), KNOWN("owner"), KNOWN("charged")

static const struct field machine_fields[] = {MACHINE_FIELDS};
static const struct field load_fields[] = {LOAD_FIELDS};
static const struct field node_fields[] = {MACHINE_FIELDS, LOAD_FIELDS};

static const struct field task_fields[] = {
	TASK(FIELD_NUMBER, cpu_ms),	   TASK(FIELD_NUMBER, age_ms),
	TASK(FIELD_NUMBER, io_per_ms),	   TASK(FIELD_NUMBER, request_kb),
	TASK(FIELD_NUMBER, reaccess),	   TASK(FIELD_NUMBER, memory_mb),
	TASK(FIELD_NUMBER, faults_per_ms), TASK(FIELD_NUMBER, initial_mb),
	TASK(FIELD_NUMBER, written_mb),	   TASK(FIELD_NUMBER, com_ms),
	TASK(FIELD_BOOL, pinned),
};

static const struct field measured_fields[] = {
	IN(measured, disk_arrivals_per_ms),
	IN(measured, disk_utilisation),
	IN(measured, service_ms),
	IN(measured, service_ms2),
	IN(measured, cpu_queue),
	IN(measured, io_tasks),
};

static const struct field advertised_fields[] = {
	IN(advertised, io_per_ms), IN(advertised, explicit_per_ms), IN(advertised, memory_mb),
	IN(advertised, cpu),	   IN(advertised, com_ms),
};

static const struct field sharers_fields[] = {
	IN(sharers, cpu),
	IN(sharers, disk),
	IN(sharers, cpu_left_ms),
	IN(sharers, disk_left_ms),
};

static const struct field zatti_fields[] = {
	IN(zatti, cpu_idle_percent),
	IN(zatti, run_queue),
	IN(zatti, blocks_per_s),
	IN(zatti, free_mb),
};

static const struct field port_fields[] = {
	IN(port, busy_mb_per_s),
	IN(port, round_trip_ms),
	{"slots", FIELD_OPTIONAL, offsetof(struct rules_node, port.slots), sizeof(double)},
};

static const struct field owner_fields[] = {NODE(FIELD_BOOL, accepts)};

#define TABLE(t) t, FIELD_COUNT_OF(t)

static bool has(const json_t *object, const char *key)
{
	return json_object_get(object, key) != NULL;
}

static double view_node_least(double a, double b)
{
	return a < b ? a : b;
}

/* --- memory -------------------------------------------------------------------- */

static void load_fini(struct view_node *node)
{
	free(node->tasks);
	free(node->charged);
	node->tasks = NULL;
	node->charged = NULL;
	node->ncharged = 0;
	node->node.tasks = NULL;
	node->node.ntasks = 0;
}

void view_node_fini(struct view_node *node)
{
	load_fini(node);
	*node = (struct view_node){0};
}

void view_node_init(struct view_node *node, uint32_t index)
{
	*node = (struct view_node){.node = {
					   .ram_mb = 640,
					   .buffer_mb = 160,
					   .cpu_mips = 800,
					   .cores = 1,
					   .disk_fixed_ms = 8,
					   .disk_mb_per_s = 40,
					   .request_kb = 250,
					   .request_sd_kb = 50,
					   .accepts = true,
				   }};
	snprintf(node->node.name, sizeof(node->node.name), "n%lu", (unsigned long)index + 1);
}

int view_node_copy(struct view_node *to, const struct view_node *from)
{
	size_t ntasks = from->node.ntasks;
	struct view_node copy = {.node = from->node, .ncharged = from->ncharged};

	/* Allocate one more, as NULL for an empty list would look like a failure. */
	copy.tasks = calloc(ntasks + 1, sizeof(*copy.tasks));
	copy.charged = calloc(from->ncharged + 1, sizeof(*copy.charged));
	if (!copy.tasks || !copy.charged) {
		view_node_fini(&copy);
		return -ENOMEM;
	}
	if (ntasks)
		memcpy(copy.tasks, from->node.tasks, ntasks * sizeof(*copy.tasks));
	if (from->ncharged)
		memcpy(copy.charged, from->charged, from->ncharged * sizeof(*copy.charged));
	copy.node.tasks = copy.tasks;
	*to = copy;
	return 0;
}

/* --- reading -------------------------------------------------------------------- */

static int view_node_wrong(struct field_reader *r, const json_t *object, const char *key,
			   const char *wanted)
{
	field_enter(r, key, 0);
	return field_expected(r, wanted, json_object_get(object, key));
}

static int check_machine(struct field_reader *r, const json_t *object, const struct rules_node *n)
{
	if (!n->name[0])
		return view_node_wrong(r, object, "name", "a name that is not empty");
	if (n->cores < 1)
		return view_node_wrong(r, object, "cores", "a number from 1");
	if (n->burst_mips > 0 && n->burst_mips < n->cpu_mips)
		return view_node_wrong(r, object, "burst_mips", "0, or a number from cpu_mips");
	if (n->disk_parallel > 0 && n->disk_parallel < 1)
		return view_node_wrong(r, object, "disk_parallel", "0, or a number from 1");
	if (n->ram_mb > 0 && n->buffer_mb >= n->ram_mb)
		return view_node_wrong(r, object, "buffer_mb", "less than ram_mb");
	return 0;
}

static int read_tasks(struct field_reader *r, const json_t *list, enum rules_rates rates,
		      struct view_node *node)
{
	size_t mark = field_enter(r, "tasks", 0), i, n = json_array_size(list);
	json_t *object;
	int rc = 0;

	if (!json_is_array(list))
		return field_expected(r, "a list of tasks", list);
	node->tasks = calloc(n + 1, sizeof(*node->tasks));
	if (!node->tasks)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	json_array_foreach (list, i, object) {
		size_t inner = field_enter(r, NULL, i);

		node->tasks[i].request_kb = 250;
		node->tasks[i].reaccess = rates == RULES_RATES_WALL ? 0 : 5;
		rc = field_read(r, object, TABLE(task_fields), &node->tasks[i]);
		if (rc)
			return rc;
		field_leave(r, inner);
	}
	node->node.tasks = node->tasks;
	node->node.ntasks = n;
	field_leave(r, mark);
	return 0;
}

static int read_charged(struct field_reader *r, const json_t *list, enum rules_rates rates,
			struct view_node *node)
{
	size_t mark = field_enter(r, "charged", 0), i;
	json_t *object;

	if (!json_is_array(list))
		return field_expected(r, "a list of jobs", list);
	node->charged = calloc(json_array_size(list) + 1, sizeof(*node->charged));
	if (!node->charged)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	json_array_foreach (list, i, object) {
		struct rules_request *job = &node->charged[i];
		size_t inner = field_enter(r, NULL, i);
		struct view_job_own own;
		int rc = view_job_read(r, object, rates, NULL, job, &own);

		if (rc)
			return rc;
		view_job_free(&own);
		job->com_ms = NULL;
		if (job->tasks != 1)
			return view_node_wrong(r, object, "tasks", "1");
		field_leave(r, inner);
	}
	node->ncharged = json_array_size(list);
	field_leave(r, mark);
	return 0;
}

/* Reads a group of fields of the node itself; *PRESENT tells whether it is there. */
static int read_group(struct field_reader *r, const json_t *object, const char *key,
		      const struct field *table, size_t n, struct rules_node *node, bool *present)
{
	const json_t *group = json_object_get(object, key);
	size_t mark;
	int rc;

	*present = group != NULL;
	if (!group)
		return 0;
	mark = field_enter(r, key, 0);
	rc = field_read(r, group, table, n, node);
	if (!rc)
		field_leave(r, mark);
	return rc;
}

/* Computes loads that were not advertised from the tasks. */
static int complete_advertised(struct field_reader *r, const json_t *group, enum rules_rates rates,
			       struct rules_node *n)
{
	struct rules_node own = *n;
	double implicit;

	own.has_measured = own.has_zatti = false;
	if (rules_node_loads(&own, rates))
		return field_fail(r, "expected loads whose sums do not overflow");
	implicit = own.advertised.io_per_ms - own.advertised.explicit_per_ms;
	if (!has(group, "memory_mb"))
		n->advertised.memory_mb = own.advertised.memory_mb;
	if (!has(group, "cpu"))
		n->advertised.cpu = own.advertised.cpu;
	if (!has(group, "com_ms"))
		n->advertised.com_ms = own.advertised.com_ms;
	if (!has(group, "io_per_ms"))
		n->advertised.io_per_ms = has(group, "explicit_per_ms")
						  ? n->advertised.explicit_per_ms + implicit
						  : own.advertised.io_per_ms;
	if (!has(group, "explicit_per_ms"))
		n->advertised.explicit_per_ms =
			!has(group, "io_per_ms")	     ? own.advertised.explicit_per_ms
			: n->advertised.io_per_ms > implicit ? n->advertised.io_per_ms - implicit
							     : 0;
	return 0;
}

static void complete_measured(const json_t *group, struct rules_node *n)
{
	double service = n->measured.service_ms;

	if (!has(group, "service_ms2"))
		n->measured.service_ms2 = service * service;
	if (!has(group, "disk_utilisation"))
		n->measured.disk_utilisation =
			view_node_least(1, n->measured.disk_arrivals_per_ms * service);
	if (!has(group, "disk_arrivals_per_ms") && service > 0)
		n->measured.disk_arrivals_per_ms = n->measured.disk_utilisation / service;
	if (!has(group, "cpu_queue"))
		n->measured.cpu_queue = n->has_advertised ? n->advertised.cpu : (double)n->ntasks;
}

/* Returns whether GROUP has fewer fields than TABLE. */
static bool partial(const json_t *group, const struct field *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!has(group, table[i].name))
			return true;
	return false;
}

static int complete_zatti(struct field_reader *r, const json_t *group, enum rules_rates rates,
			  struct rules_node *n)
{
	struct rules_node own = *n;
	double queue, n_mem = n->ram_mb - n->buffer_mb;

	own.has_zatti = false;
	if (!own.has_advertised && rules_node_loads(&own, rates))
		return field_fail(r, "expected loads whose sums do not overflow");
	if (!has(group, "run_queue"))
		n->zatti.run_queue = n->has_measured ? n->measured.cpu_queue : own.advertised.cpu;
	queue = n->zatti.run_queue;
	if (!has(group, "cpu_idle_percent"))
		n->zatti.cpu_idle_percent = queue < n->cores ? 100 * (1 - queue / n->cores) : 0;
	if (!has(group, "blocks_per_s"))
		n->zatti.blocks_per_s = 1000 * own.advertised.io_per_ms;
	if (!has(group, "free_mb"))
		n->zatti.free_mb =
			n_mem > own.advertised.memory_mb ? n_mem - own.advertised.memory_mb : 0;
	return 0;
}

/* Nothing that is left follows from the rest, so each field must be there. */
static int read_sharers(struct field_reader *r, const json_t *object, struct rules_node *n)
{
	const json_t *group = json_object_get(object, "sharers");
	int rc = read_group(r, object, "sharers", TABLE(sharers_fields), n, &n->has_sharers);

	for (size_t i = 0; i < FIELD_COUNT_OF(sharers_fields) && !rc && group; i++) {
		const char *key = sharers_fields[i].name;

		if (has(group, key))
			continue;
		field_enter(r, "sharers", 0);
		rc = view_node_wrong(r, group, key, "a number that is not negative");
	}
	return rc;
}

static int read_loads(struct field_reader *r, const json_t *object, enum rules_rates rates,
		      struct rules_node *n)
{
	const json_t *advertised = json_object_get(object, "advertised");
	const json_t *zatti = json_object_get(object, "zatti");
	int rc = read_group(r, object, "advertised", TABLE(advertised_fields), n,
			    &n->has_advertised);

	if (!rc && n->has_advertised && partial(advertised, TABLE(advertised_fields)))
		rc = complete_advertised(r, advertised, rates, n);
	if (!rc)
		rc = read_group(r, object, "measured", TABLE(measured_fields), n, &n->has_measured);
	if (!rc && n->has_measured)
		complete_measured(json_object_get(object, "measured"), n);
	if (!rc)
		rc = read_sharers(r, object, n);
	if (!rc)
		rc = read_group(r, object, "zatti", TABLE(zatti_fields), n, &n->has_zatti);
	n->port.slots = -1;
	if (!rc)
		rc = read_group(r, object, "port", TABLE(port_fields), n, &n->has_port);
	if (!rc && n->has_zatti && partial(zatti, TABLE(zatti_fields)))
		rc = complete_zatti(r, zatti, rates, n);
	if (!rc && n->has_zatti && n->zatti.cpu_idle_percent > 100) {
		field_enter(r, "zatti", 0);
		rc = view_node_wrong(r, zatti, "cpu_idle_percent", "a number from 0 to 100");
	}
	return rc;
}

static int read_parts(struct field_reader *r, const json_t *object, enum rules_rates rates,
		      struct view_node *node)
{
	const json_t *tasks = json_object_get(object, "tasks");
	const json_t *charged = json_object_get(object, "charged");
	bool owned;
	int rc = tasks ? read_tasks(r, tasks, rates, node) : 0;

	if (!rc)
		rc = read_loads(r, object, rates, &node->node);
	if (!rc)
		rc = read_group(r, object, "owner", TABLE(owner_fields), &node->node, &owned);
	if (!rc && charged)
		rc = read_charged(r, charged, rates, node);
	return rc;
}

int view_node_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		   struct view_node *node)
{
	int rc = field_read(r, object, TABLE(node_fields), &node->node);

	if (!rc && !has(object, "buffer_mb"))
		node->node.buffer_mb = rates == RULES_RATES_WALL ? 0 : node->node.ram_mb / 4;
	if (!rc)
		rc = check_machine(r, object, &node->node);
	return rc ? rc : read_parts(r, object, rates, node);
}

int view_machine_read(struct field_reader *r, const json_t *object, struct view_node *node)
{
	int rc = field_read(r, object, TABLE(machine_fields), &node->node);

	return rc ? rc : check_machine(r, object, &node->node);
}

int view_load_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		   struct view_node *node)
{
	struct view_node fresh;
	int rc;

	load_fini(node);
	view_node_init(&fresh, 0);
	for (size_t i = 0; i < FIELD_COUNT_OF(machine_fields); i++)
		memcpy((char *)&fresh.node + machine_fields[i].offset,
		       (char *)&node->node + machine_fields[i].offset, machine_fields[i].size);
	*node = fresh;
	rc = field_read(r, object, TABLE(load_fields), &node->node);
	return rc ? rc : read_parts(r, object, rates, node);
}

/* --- writing -------------------------------------------------------------------- */

static int write_tasks(json_t *object, const struct rules_node *n)
{
	json_t *list = json_array();
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < n->ntasks && !rc; i++) {
		json_t *task = json_object();

		rc = task ? field_write(task, TABLE(task_fields), &n->tasks[i]) : -ENOMEM;
		if (rc)
			json_decref(task);
		else if (json_array_append_new(list, task))
			rc = -ENOMEM;
	}
	if (!rc)
		return field_set(object, "tasks", list);
	json_decref(list);
	return rc;
}

static int write_charged(json_t *object, const struct view_node *node)
{
	json_t *list = json_array();
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < node->ncharged && !rc; i++)
		if (json_array_append_new(list, view_job_json(&node->charged[i], NULL, NULL)))
			rc = -ENOMEM;
	if (!rc)
		return field_set(object, "charged", list);
	json_decref(list);
	return rc;
}

static int write_group(json_t *object, const char *key, const struct field *table, size_t n,
		       const struct rules_node *node)
{
	json_t *group = json_object();
	int rc = group ? field_write(group, table, n, node) : -ENOMEM;

	if (!rc)
		return field_set(object, key, group);
	json_decref(group);
	return rc;
}

int view_machine_write(json_t *object, const struct view_node *node)
{
	return field_write(object, TABLE(machine_fields), &node->node);
}

int view_load_write(json_t *object, const struct view_node *node)
{
	const struct rules_node *n = &node->node;
	int rc = write_tasks(object, n);

	if (!rc && n->has_measured)
		rc = write_group(object, "measured", TABLE(measured_fields), n);
	if (!rc && n->has_advertised)
		rc = write_group(object, "advertised", TABLE(advertised_fields), n);
	if (!rc && n->has_sharers)
		rc = write_group(object, "sharers", TABLE(sharers_fields), n);
	if (!rc && n->has_zatti)
		rc = write_group(object, "zatti", TABLE(zatti_fields), n);
	if (!rc && n->has_port)
		rc = write_group(object, "port", TABLE(port_fields), n);
	if (!rc)
		rc = write_group(object, "owner", TABLE(owner_fields), n);
	if (!rc)
		rc = field_set(object, "age_ms", json_real(n->age_ms));
	if (!rc && node->ncharged)
		rc = write_charged(object, node);
	return rc;
}

/* --- comparing ------------------------------------------------------------------ */

static bool group_same(bool in_a, bool in_b, const struct field *table, size_t n,
		       const struct rules_node *a, const struct rules_node *b)
{
	return in_a == in_b && (!in_a || field_same(table, n, a, b));
}

bool view_machine_same(const struct view_node *a, const struct view_node *b)
{
	return field_same(TABLE(machine_fields), &a->node, &b->node);
}

bool view_load_same(const struct view_node *a, const struct view_node *b)
{
	const struct rules_node *x = &a->node, *y = &b->node;

	if (x->ntasks != y->ntasks || a->ncharged != b->ncharged || x->accepts != y->accepts)
		return false;
	if (!group_same(x->has_measured, y->has_measured, TABLE(measured_fields), x, y) ||
	    !group_same(x->has_advertised, y->has_advertised, TABLE(advertised_fields), x, y) ||
	    !group_same(x->has_sharers, y->has_sharers, TABLE(sharers_fields), x, y) ||
	    !group_same(x->has_zatti, y->has_zatti, TABLE(zatti_fields), x, y) ||
	    !group_same(x->has_port, y->has_port, TABLE(port_fields), x, y))
		return false;
	for (size_t i = 0; i < x->ntasks; i++)
		if (!field_same(TABLE(task_fields), &x->tasks[i], &y->tasks[i]))
			return false;
	for (size_t i = 0; i < a->ncharged; i++)
		if (!view_job_same(&a->charged[i], &b->charged[i]))
			return false;
	return true;
}

bool view_node_same(const struct view_node *a, const struct view_node *b)
{
	return view_machine_same(a, b) && view_load_same(a, b);
}
