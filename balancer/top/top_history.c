/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Rings of numbers of the last documents; see top_history.h. */
#include "balancer/top/top_history.h"

#include <stdlib.h>
#include <string.h>

#include "balancer/top/top_index.h"
#include "balancer/top/top_model.h"

#define DISK_BIT (1ULL << 62)

struct past {
	struct top_entry entry;
	char name[16]; /* name of a task, because another task may get its pid */
	uint64_t turn; /* turn of the newest value */
	float value[TOP_SERIES][TOP_HISTORY_TURNS];
};

struct top_history {
	struct top_index pasts;
	uint64_t turn;
};

struct top_history *top_history_new(void)
{
	return calloc(1, sizeof(struct top_history));
}

void top_history_free(struct top_history *history)
{
	if (!history)
		return;
	top_index_clear(&history->pasts);
	free(history);
}

uint64_t top_history_disk(const char *name)
{
	uint64_t hash = 14695981039346656037ULL; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
	return (hash & (DISK_BIT - 1)) | DISK_BIT;
}

static bool recent(const struct top_entry *entry, void *arg)
{
	const struct past *past = (const struct past *)entry;
	const struct top_history *history = arg;

	return past->turn + TOP_HISTORY_TURNS > history->turn;
}

static struct past *past_of(struct top_history *history, uint64_t id, const char *name)
{
	struct past *past = top_index_find(&history->pasts, id);

	if (past && strncmp(past->name, name, sizeof(past->name) - 1)) {
		memset(past->value, 0, sizeof(past->value));
		past->turn = history->turn;
	} else if (!past) {
		if (history->pasts.n >= TOP_HISTORY_THINGS)
			return NULL;
		past = calloc(1, sizeof(*past));
		if (!past)
			return NULL;
		past->entry.id = id;
		past->turn = history->turn;
		if (top_index_add(&history->pasts, &past->entry)) {
			free(past);
			return NULL;
		}
	}
	strncpy(past->name, name, sizeof(past->name) - 1);
	return past;
}

static void top_history_add_point(struct top_history *history, uint64_t id, const char *name,
				  double cpu, double disk, double network)
{
	struct past *past;

	if (!(cpu > 0 || disk > 0 || network > 0) && !top_index_find(&history->pasts, id))
		return;
	past = past_of(history, id, name);
	if (!past)
		return;
	if (history->turn - past->turn >= TOP_HISTORY_TURNS) {
		memset(past->value, 0, sizeof(past->value));
		past->turn = history->turn;
	}
	/* A task that a document did not name did nothing in that document. */
	for (; past->turn < history->turn; past->turn++)
		for (unsigned s = 0; s < TOP_SERIES; s++)
			past->value[s][(past->turn + 1) % TOP_HISTORY_TURNS] = 0;
	past->value[TOP_SERIES_CPU][history->turn % TOP_HISTORY_TURNS] = (float)cpu;
	past->value[TOP_SERIES_DISK][history->turn % TOP_HISTORY_TURNS] = (float)disk;
	past->value[TOP_SERIES_NETWORK][history->turn % TOP_HISTORY_TURNS] = (float)network;
}

static double disk_rate(const json_t *load)
{
	return top_number(load, "explicit_read_bytes_per_s") +
	       top_number(load, "explicit_write_bytes_per_s") +
	       top_number(load, "implicit_bytes_per_s");
}

static double network_rate(const json_t *load)
{
	return top_number(load, "sent_bytes_per_s") + top_number(load, "received_bytes_per_s") +
	       top_number(load, "local_bytes_per_s");
}

static void add_rows(struct top_history *history, const json_t *array)
{
	const json_t *element;
	size_t i;

	json_array_foreach (array, i, element)
		top_history_add_point(history, top_row_id(element), top_string(element, "comm"),
				      top_number(element, "cpu_ms_per_s") / 1e3, disk_rate(element),
				      network_rate(element));
}

void top_history_add(struct top_history *history, const json_t *document)
{
	const json_t *totals = json_object_get(document, "totals"), *disk;
	double cores = top_number(totals, "cores"), busiest = 0;
	size_t i;

	history->turn++;
	top_index_sweep(&history->pasts, recent, history);
	json_array_foreach (json_object_get(document, "disks"), i, disk) {
		double busy = top_number(disk, "utilisation");

		top_history_add_point(history, top_history_disk(top_string(disk, "name")), "", 0,
				      busy, 0);
		busiest = busy > busiest ? busy : busiest;
	}
	top_history_add_point(history, 0, "",
			      top_number(totals, "cpu_ms_per_s") / 1e3 / (cores >= 1 ? cores : 1),
			      busiest, network_rate(totals));
	add_rows(history, json_object_get(document, "jobs"));
	add_rows(history, json_object_get(document, "tasks"));
}

void top_history_get(const struct top_history *history, uint64_t id, enum top_series series,
		     float *out, size_t n)
{
	const struct past *past = top_index_find(&history->pasts, id);

	for (size_t i = 0; i < n; i++) {
		uint64_t back = n - 1 - i; /* turns ago */
		bool known = past && back < TOP_HISTORY_TURNS && back < history->turn &&
			     history->turn - back <= past->turn &&
			     past->turn - (history->turn - back) < TOP_HISTORY_TURNS;

		out[i] =
			known ? past->value[series][(history->turn - back) % TOP_HISTORY_TURNS] : 0;
	}
}
