/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gang_rows.h. */
#include "balancer/gang_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/listing.h"
#include "balancer/run/nodelist.h"
#include "user/gang_name.h"

bool gang_rows_is(const json_t *job)
{
	return listing_number(job, "tasks") >= 1 &&
	       !gang_part_of(listing_string(job, "job"), NULL, NULL);
}

/* Adds PART, unless the row knows it; what the row lacks comes from PART. */
static void gang_rows_add(json_t *gang, json_t *part)
{
	json_t *parts = json_object_get(gang, "parts"), *other;
	size_t i;

	if (!json_is_array(parts)) {
		parts = json_array();
		json_object_set_new(gang, "parts", parts);
	}
	json_array_foreach (parts, i, other) {
		if (strcmp(listing_string(other, "job"), listing_string(part, "job")) != 0)
			continue;
		json_object_update_missing(other, part);
		return;
	}
	json_array_append(parts, part);
}

static uint32_t gang_rows_number(const json_t *part)
{
	uint32_t number = GANG_PARTS_MAX;

	(void)gang_part_of(listing_string(part, "job"), NULL, &number);
	return number;
}

static int gang_rows_before(const void *a, const void *b)
{
	uint32_t i = gang_rows_number(*(json_t *const *)a);
	uint32_t j = gang_rows_number(*(json_t *const *)b);

	return (i > j) - (i < j);
}

static void gang_rows_sort(json_t *gang)
{
	json_t *parts = json_object_get(gang, "parts"), *sorted = json_array();
	size_t n = json_array_size(parts);
	json_t **list = calloc(n + 1, sizeof(json_t *));

	for (size_t i = 0; list && i < n; i++)
		list[i] = json_array_get(parts, i);
	if (list)
		qsort(list, n, sizeof(json_t *), gang_rows_before);
	for (size_t i = 0; list && i < n; i++)
		json_array_append(sorted, list[i]);
	if (json_array_size(sorted) == n && n)
		json_object_set(gang, "parts", sorted);
	json_decref(sorted);
	free(list);
}

/* A gang that runs is stopped if all its parts that run are. */
static void gang_rows_stopped(json_t *gang)
{
	const json_t *part;
	bool stopped = false;
	size_t i;

	if (strcmp(listing_string(gang, "state"), "running") != 0)
		return;
	json_array_foreach (json_object_get(gang, "parts"), i, part) {
		if (!strcmp(listing_string(part, "state"), "running"))
			return;
		stopped |= !strcmp(listing_string(part, "state"), "stopped");
	}
	if (stopped)
		json_object_set_new(gang, "state", json_string("stopped"));
}

json_t *gang_rows_fold(const json_t *jobs)
{
	json_t *gangs = json_object(), *rows = json_array(), *job;
	char of[SPEC_JOB_MAX];
	size_t i;

	json_array_foreach (jobs, i, job)
		if (gang_rows_is(job))
			json_object_set(gangs, listing_string(job, "job"), job);
	json_array_foreach (jobs, i, job) {
		json_t *gang = gang_part_of(listing_string(job, "job"), of, NULL)
				       ? json_object_get(gangs, of)
				       : NULL;

		if (gang)
			gang_rows_add(gang, job);
		else
			json_array_append(rows, job);
	}
	json_array_foreach (rows, i, job)
		if (gang_rows_is(job)) {
			gang_rows_sort(job);
			gang_rows_stopped(job);
		}
	json_decref(gangs);
	return rows;
}

void gang_rows_nodes(const json_t *job, char *out, size_t size)
{
	const json_t *parts = json_object_get(job, "parts"), *part;
	size_t n = json_array_size(parts), i;
	const char **names = gang_rows_is(job) && n ? calloc(n, sizeof(*names)) : NULL;
	char *folded = NULL;

	if (names) {
		json_array_foreach (parts, i, part)
			names[i] = listing_string(part, "node");
		folded = nodelist_fold(names, n);
	}
	snprintf(out, size, "%s", folded ? folded : listing_string(job, "node"));
	free(folded);
	free(names);
}
