/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Answers that say what the journal has: they leave when the disk has it, too.  One that depends on
 * nothing newer leaves at once.
 */
#include <stdlib.h>

#include "agent/front/front.h"

/* An answer that waits; a client waits for one at a time. */
struct told {
	struct told *next;
	struct front *front;
	struct client *client;
	json_t *answer;
	struct journal_wait wait;
};

static void told_free(struct told *told)
{
	for (struct told **p = &told->front->told; *p; p = &(*p)->next) {
		if (*p != told)
			continue;
		*p = told->next;
		break;
	}
	journal_forget(told->front->journal, &told->wait);
	json_decref(told->answer);
	free(told);
}

static void told_durable(void *arg, int rc)
{
	struct told *told = arg;
	struct front *front = told->front;
	struct client *client = told->client;
	json_t *answer = told->answer;

	told->answer = NULL;
	told_free(told);
	if (!rc) {
		client_json(client, answer);
		return;
	}
	json_decref(answer);
	client_error(client,
		     "the job journal in %s cannot be synced: what it says could be lost by a "
		     "power cut; its agent's log says more",
		     front->base->set->state_dir);
}

void told_answer(struct front *front, struct client *client, json_t *answer)
{
	struct told *told;

	if (journal_is_durable(front->journal, journal_position(front->journal))) {
		client_json(client, answer);
		return;
	}
	told = calloc(1, sizeof(*told));
	if (!told) {
		json_decref(answer);
		client_error(client, "out of memory");
		return;
	}
	*told = (struct told){.next = front->told,
			      .front = front,
			      .client = client,
			      .answer = answer,
			      .wait = {.done = told_durable, .arg = told}};
	front->told = told;
	(void)journal_when_durable(front->journal, &told->wait);
}

void told_forget(struct front *front, const struct client *client)
{
	for (struct told *told = front->told, *next; told; told = next) {
		next = told->next;
		if (told->client == client)
			told_free(told);
	}
}
