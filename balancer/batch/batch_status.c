/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads what `iocom run` reports of a worker: its node, or why no node accepted it. */
#include "balancer/batch/batch_pool.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void batch_status_take_line(struct batch_slot *w, const char *text, size_t length)
{
	json_t *line = json_loadb(text, length, 0, NULL);
	const char *node = json_string_value(json_object_get(line, "node"));
	const char *state = json_string_value(json_object_get(line, "state"));
	const char *why = json_string_value(json_object_get(line, "text"));

	if (node && *node)
		snprintf(w->node, sizeof(w->node), "%s", node);
	if (state && !strcmp(state, "failed") && why && !w->why)
		w->why = strdup(why);
	json_decref(line);
}

/* Returns 1 if there may be more to read. */
static int read_some(struct pool *pool, struct batch_slot *w)
{
	ssize_t n = read(w->status, pool->piece, sizeof(pool->piece));

	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n > 0 && !queue_push(&w->told, pool->piece, (size_t)n))
		return 1;
	close(w->status);
	w->status = -1;
	return 0;
}

void batch_status(struct pool *pool, struct batch_slot *w)
{
	const uint8_t *end;

	while (w->status >= 0 && read_some(pool, w))
		;
	while (w->told.length && (end = memchr(queue_front(&w->told), '\n', w->told.length))) {
		size_t length = (size_t)(end - queue_front(&w->told));

		batch_status_take_line(w, (const char *)queue_front(&w->told), length);
		queue_drop(&w->told, length + 1);
	}
}

void batch_refused(struct pool *pool, struct batch_slot *w)
{
	size_t i = 0;

	while (w->why && i < BATCH_WHYS_MAX && pool->whys[i] && strcmp(pool->whys[i], w->why) != 0)
		i++;
	if (!w->why || i == BATCH_WHYS_MAX || pool->whys[i])
		return;
	pool->whys[i] = w->why;
	w->why = NULL;
	batch_show_clear(pool);
	fprintf(stderr, "iocom batch: %s\n", pool->whys[i]);
}

void batch_refused_free(struct pool *pool)
{
	for (size_t i = 0; i < BATCH_WHYS_MAX; i++)
		free(pool->whys[i]);
}
