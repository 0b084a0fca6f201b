/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Request "top" of a user of another node: each question gets the reading since the last one with
 * the same token.  The first begins to count.
 *
 *   { "token", "interval_ms" }  -->  { "began": true }, or the document of `iocom top`
 *
 * Whoever does not ask for LOOK_KEEP_NS, or three intervals, is forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/places.h"
#include "agent/front/front.h"
#include "user/clock.h"
#include "user/monitor/sample_window.h"
#include "user/pack.h"

#define LOOK_KEEP_NS	  (15 * CLOCK_NS_PER_S)
#define LOOK_LEAST_MS	  100
#define LOOK_MOST_MS	  60000
#define LOOK_DOCUMENT_MAX (PEER_DOCUMENT_MAX - 4096)

struct look {
	struct look *next;
	uid_t uid;
	char token[33];
	struct sample_window *window;
	uint64_t until_ns; /* CLOCK_BOOTTIME */
};

size_t looks_count(const struct front *front)
{
	size_t n = 0;

	for (const struct look *l = front->looks; l; l = l->next)
		n++;
	return n;
}

static void look_free(struct front *front, struct look *look)
{
	for (struct look **p = &front->looks; *p; p = &(*p)->next)
		if (*p == look) {
			*p = look->next;
			break;
		}
	sample_window_free(look->window);
	free(look);
}

void looks_sampled(struct front *front, const struct monitor_sample *sample)
{
	struct look *next;

	for (struct look *l = front->looks; l; l = next) {
		next = l->next;
		if (sample && sample_window_add(l->window, sample))
			look_free(front, l);
	}
}

void looks_chores(struct front *front)
{
	uint64_t now = loop_boot_ns(front->base->loop);
	struct look *next;

	for (struct look *l = front->looks; l; l = next) {
		next = l->next;
		if (now > l->until_ns)
			look_free(front, l);
	}
}

void looks_stop(struct front *front)
{
	while (front->looks)
		look_free(front, front->looks);
}

static struct look *look_find(const struct front *front, uid_t uid, const char *token)
{
	for (struct look *l = front->looks; l; l = l->next)
		if (l->uid == uid && !strcmp(l->token, token))
			return l;
	return NULL;
}

static struct look *look_new(struct front *front, uid_t uid, const char *token,
			     struct iocom_err *err)
{
	static const struct places places = {
		.what = "watchers from other nodes",
		.limit = "looks",
		.one = "looks",
		.max = LOOKS_MAX,
		.of_root = LOOKS_OF_ROOT,
		.of_one = LOOKS_OF_ONE,
	};
	struct look *look;
	size_t own = 0;

	for (const struct look *l = front->looks; l; l = l->next)
		own += l->uid == uid;
	if (places_ask(&places, uid, looks_count(front), own, front->base->counters, err)) {
		front->base->counters->looks_refused++;
		return NULL;
	}
	look = calloc(1, sizeof(*look));
	if (look)
		look->window = sample_window_new();
	if (!look || !look->window) {
		free(look);
		iocom_err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	look->uid = uid;
	snprintf(look->token, sizeof(look->token), "%s", token);
	look->next = front->looks;
	front->looks = look;
	return look;
}

static int look_compare(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	double i = json_number_value(json_object_get(x, "rss_bytes"));
	double j = json_number_value(json_object_get(y, "rss_bytes"));

	return (i < j) - (i > j);
}

/* Leaves the KEEP largest tasks, and says how many it left out. */
static int look_keep(json_t *document, size_t keep)
{
	json_t *tasks = json_object_get(document, "tasks"), *kept = json_array();
	size_t n = json_array_size(tasks);
	json_t **list = calloc(n ? n : 1, sizeof(json_t *));
	int rc = list && kept ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++)
		list[i] = json_array_get(tasks, i);
	if (!rc)
		qsort(list, n, sizeof(*list), look_compare);
	for (size_t i = 0; i < keep && i < n && !rc; i++)
		rc = json_array_append(kept, list[i]);
	free(list);
	if (rc) {
		json_decref(kept);
		return rc;
	}
	rc = json_object_set_new(document, "left_out",
				 json_integer((json_int_t)(n > keep ? n - keep : 0)));
	return json_object_set_new(document, "tasks", kept) | rc;
}

/* Makes DOCUMENT, which may tell of very many tasks, fit into an answer. */
static int look_cut(json_t *document)
{
	size_t keep = json_array_size(json_object_get(document, "tasks"));
	size_t size = json_dumpb(document, NULL, 0, JSON_COMPACT);

	while (size > LOOK_DOCUMENT_MAX && keep) {
		keep = keep * LOOK_DOCUMENT_MAX / size * 9 / 10;
		if (look_keep(document, keep))
			return -ENOMEM;
		size = json_dumpb(document, NULL, 0, JSON_COMPACT);
	}
	return size && size <= LOOK_DOCUMENT_MAX ? 0 : -EMSGSIZE;
}

/* Answers with what LOOK's window has. */
static void look_answer(struct front *front, struct client *client, struct look *look)
{
	const struct iocom_disk *before;
	struct monitor_sample sample;
	json_t *document;
	size_t nbefore;
	int rc = sample_window_take(look->window, &sample, &before, &nbefore);

	if (rc == -ENODATA) {
		client_json(client, json_pack("{s:b}", "began", 1));
		return;
	}
	document = rc ? NULL : top_json(front, &sample, before, nbefore, look->uid);
	if (!document || look_cut(document)) {
		json_decref(document);
		client_error(client, "the reading does not fit into an answer");
		return;
	}
	client_json(client, document);
}

static void look_drain(struct look *look)
{
	const struct iocom_disk *before;
	struct monitor_sample sample;
	size_t nbefore;

	(void)sample_window_take(look->window, &sample, &before, &nbefore);
}

void look_request(struct front *front, struct client *client, const msgpack_object *request)
{
	uid_t uid = client_who(client)->uid;
	uint64_t interval_ms = 1000;
	struct iocom_err err = {0};
	struct look *look;
	bool began;
	char token[33];

	unpack_u64(request, "interval_ms", &interval_ms);
	if (unpack_str(request, "token", token, sizeof(token)) || strlen(token) != 32 ||
	    interval_ms < LOOK_LEAST_MS || interval_ms > LOOK_MOST_MS) {
		client_error(client, "from another node the interval must be from %d to %d ms",
			     LOOK_LEAST_MS, LOOK_MOST_MS);
		return;
	}
	look = look_find(front, uid, token);
	began = !look;
	if (began && !look_new(front, uid, token, &err)) {
		client_error(client, "%s", err.text);
		return;
	}
	top_fresh(front);
	look = look_find(front, uid, token); /* a reading that had no memory ended it */
	if (!look) {
		client_error(client, "out of memory");
		return;
	}
	look->until_ns =
		loop_boot_ns(front->base->loop) + LOOK_KEEP_NS + 3 * interval_ms * CLOCK_NS_PER_MS;
	if (!began) {
		look_answer(front, client, look);
		return;
	}
	/* What was read until now only serves as the base of rates. */
	if (front->pulse->has_last && sample_window_add(look->window, &front->pulse->last) == 0)
		look_drain(look);
	client_json(client, json_pack("{s:b}", "began", 1));
}
