/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The remotes of a job: one row per address, with the job's nested cgroups folded in, those with
 * most traffic first; the row without an address is last.
 */
#include "user/monitor/sample_build.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void sample_remotes_counts_add(struct monitor_remote_counts *into,
				      const struct monitor_remote_counts *from)
{
	into->sent_bytes += from->sent_bytes;
	into->received_bytes += from->received_bytes;
	into->sent_messages += from->sent_messages;
	into->received_messages += from->received_messages;
}

static int sample_remotes_by_key(const void *a, const void *b)
{
	const struct monitor_remote *x = a, *y = b;

	if (x->cgroup_id != y->cgroup_id)
		return x->cgroup_id < y->cgroup_id ? -1 : 1;
	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	return memcmp(x->address, y->address, sizeof(x->address));
}

static int by_traffic(const void *a, const void *b)
{
	const struct monitor_remote *x = a, *y = b;
	uint64_t now[2] = {x->delta.sent_bytes + x->delta.received_bytes,
			   y->delta.sent_bytes + y->delta.received_bytes};
	uint64_t all[2] = {x->counts.sent_bytes + x->counts.received_bytes,
			   y->counts.sent_bytes + y->counts.received_bytes};

	if (x->cgroup_id != y->cgroup_id)
		return x->cgroup_id < y->cgroup_id ? -1 : 1;
	if (!x->family != !y->family)
		return !x->family ? 1 : -1;
	if (now[0] != now[1])
		return now[0] > now[1] ? -1 : 1;
	if (all[0] != all[1])
		return all[0] > all[1] ? -1 : 1;
	return sample_remotes_by_key(a, b);
}

void sample_collect_remotes(struct build *b)
{
	const struct monitor_sample *s = b->sample;
	struct monitor_remote *rows = b->remotes;
	size_t n = 0;

	for (size_t i = 0; i < s->nremotes; i++) {
		rows[i] = s->remotes[i];
		rows[i].cgroup_id = sample_job_owner(b, rows[i].cgroup_id);
	}
	if (s->nremotes)
		qsort(rows, s->nremotes, sizeof(*rows), sample_remotes_by_key);
	for (size_t i = 0; i < s->nremotes; i++) {
		if (!n || sample_remotes_by_key(&rows[n - 1], &rows[i]) != 0) {
			rows[n++] = rows[i];
			continue;
		}
		sample_remotes_counts_add(&rows[n - 1].counts, &rows[i].counts);
		sample_remotes_counts_add(&rows[n - 1].delta, &rows[i].delta);
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_traffic);
	b->nremotes = n;
}

static json_t *address_text(const struct monitor_remote *row)
{
	char text[INET6_ADDRSTRLEN];

	if (row->family != AF_INET && row->family != AF_INET6)
		return json_null();
	if (!inet_ntop(row->family, row->address, text, sizeof(text)))
		return NULL;
	return json_string(text);
}

struct column {
	const char *name, *rate;
	size_t offset;
};

#define COLUMN(f)                                                                                  \
	{                                                                                          \
#f, #f "_per_s", offsetof(struct monitor_remote_counts, f)                         \
	}
static const struct column columns[] = {COLUMN(sent_bytes), COLUMN(received_bytes),
					COLUMN(sent_messages), COLUMN(received_messages)};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static bool is_unknown(const struct monitor_sample *s, const char *column)
{
	for (size_t i = 0; i < s->ndegraded; i++)
		if (s->degraded[i].unknown && !strcmp(s->degraded[i].column, column))
			return true;
	return false;
}

static uint64_t sample_remotes_value_of(const struct monitor_remote_counts *counts,
					const struct column *column)
{
	uint64_t value;

	memcpy(&value, (const char *)counts + column->offset, sizeof(value));
	return value;
}

static json_t *row_json(const struct build *b, const struct monitor_remote *row,
			const bool *unknown)
{
	double per = b->seconds > 0 ? 1 / b->seconds : 0;
	json_t *object = json_object();
	int rc = sample_put(object, "address", address_text(row));

	for (size_t i = 0; i < COLUMNS; i++) {
		uint64_t value = sample_remotes_value_of(&row->counts, &columns[i]);
		double rate = (double)sample_remotes_value_of(&row->delta, &columns[i]) * per;

		rc |= sample_put(object, columns[i].name,
				 unknown[i] ? json_null() : sample_integer(value));
		rc |= sample_put(object, columns[i].rate,
				 unknown[i] ? json_null() : sample_real(rate));
	}
	return sample_finish(object, rc);
}

json_t *sample_remotes(const struct build *b, uint64_t owner)
{
	size_t low = 0, high = b->nremotes;
	json_t *array = json_array();
	bool unknown[COLUMNS];

	for (size_t i = 0; i < COLUMNS; i++)
		unknown[i] = is_unknown(b->sample, columns[i].name);

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->remotes[mid].cgroup_id < owner)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < b->nremotes && b->remotes[low].cgroup_id == owner; low++)
		if (json_array_append_new(array, row_json(b, &b->remotes[low], unknown)))
			return sample_finish(array, -1);
	return array;
}
