/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Converts the job of a view between JSON and structures; see view_node.h. */
#include <errno.h>
#include <stdlib.h>

#include "balancer/view/view_node.h"

#define JOB(kind, member) FIELD_OF(kind, rules_request, member)

static const struct field job_fields[] = {
	JOB(FIELD_NUMBER, cpu_ms),     JOB(FIELD_NUMBER, io_per_ms),
	JOB(FIELD_NUMBER, request_kb), JOB(FIELD_NUMBER, reaccess),
	JOB(FIELD_NUMBER, memory_mb),  JOB(FIELD_NUMBER, faults_per_ms),
	JOB(FIELD_NUMBER, initial_mb), JOB(FIELD_NUMBER, written_mb),
	JOB(FIELD_OPTIONAL, requests), JOB(FIELD_COUNT, tasks),
	JOB(FIELD_COUNT, hops),	       {"com_ms", FIELD_ELSEWHERE, 0, 0},
};

/* Reads one value per task; missing ones are 0. */
static int read_com(struct field_reader *r, const json_t *list, uint32_t tasks, double **out)
{
	size_t mark = field_enter(r, "com_ms", 0), i;
	double *com_ms;
	json_t *value;
	int rc = 0;

	if (!json_is_array(list))
		return field_expected(r, "a list of numbers", list);
	if (json_array_size(list) > tasks)
		return field_fail(r, "expected at most %u numbers, one a task, found %zu", tasks,
				  json_array_size(list));
	com_ms = calloc(tasks, sizeof(*com_ms));
	if (!com_ms)
		return iocom_err_set(r->err, -ENOMEM, "out of memory");
	json_array_foreach (list, i, value) {
		size_t inner = field_enter(r, NULL, i);

		rc = field_number(r, value, &com_ms[i]);
		if (rc) {
			free(com_ms);
			return rc;
		}
		field_leave(r, inner);
	}
	field_leave(r, mark);
	*out = com_ms;
	return 0;
}

int view_job_read(struct field_reader *r, const json_t *object, enum rules_rates rates,
		  struct rules_request *job, double **com_ms)
{
	const json_t *list = json_object_get(object, "com_ms");
	int rc;

	*com_ms = NULL;
	*job = (struct rules_request){
		.request_kb = 250,
		.reaccess = rates == RULES_RATES_WALL ? 0 : 5,
		.requests = -1,
		.tasks = 1,
	};
	rc = field_read(r, object, job_fields, FIELD_COUNT_OF(job_fields), job);
	if (!rc && (job->tasks < 1 || job->tasks > VIEW_TASKS_MAX)) {
		field_enter(r, "tasks", 0);
		return field_fail(r, "expected a whole number from 1 to %u, found %u",
				  VIEW_TASKS_MAX, job->tasks);
	}
	if (!rc && list)
		rc = read_com(r, list, job->tasks, com_ms);
	job->com_ms = *com_ms;
	return rc;
}

json_t *view_job_json(const struct rules_request *job)
{
	json_t *object = json_object(), *list = job->com_ms ? json_array() : NULL;
	int rc = object && (list || !job->com_ms) ? 0 : -ENOMEM;

	if (!rc)
		rc = field_write(object, job_fields, FIELD_COUNT_OF(job_fields), job);
	for (uint32_t i = 0; job->com_ms && i < job->tasks && !rc; i++)
		if (json_array_append_new(list, json_real(job->com_ms[i])))
			rc = -ENOMEM;
	if (!rc && list) {
		rc = field_set(object, "com_ms", list);
		list = NULL;
	}
	if (rc) {
		json_decref(object);
		json_decref(list);
		return NULL;
	}
	return object;
}

bool view_job_same(const struct rules_request *a, const struct rules_request *b)
{
	return field_same(job_fields, FIELD_COUNT_OF(job_fields), a, b);
}
