/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What libpmix's own thread has been asked and the launcher's loop must do.  Only these functions
 * are called in both.
 */
#ifndef IOCOM_PMIX_EVENTS_H
#define IOCOM_PMIX_EVENTS_H

#include <pmix_server.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum pmix_event_type {
	PMIX_EVENT_CONNECTED, /* RANK has called PMIx_Init */
	PMIX_EVENT_FINALIZED, /* and PMIx_Finalize */
	PMIX_EVENT_FENCE,     /* the ranks here have given DATA; MODEX waits for all of them */
	PMIX_EVENT_WANTED,    /* a rank here wants to know of RANK elsewhere; MODEX waits */
	PMIX_EVENT_KNOWN,     /* DATA is what part PART has asked by ID; STATUS */
	PMIX_EVENT_ABORT,     /* RANK wants all to end with STATUS; DATA is a text, or NULL */
};

struct pmix_event {
	struct pmix_event *next;
	enum pmix_event_type type;
	uint32_t rank, part, id;
	int status;
	void *data; /* malloc'ed */
	size_t length;
	pmix_modex_cbfunc_t modex;
	void *modex_arg;
};

struct pmix_events {
	pthread_mutex_t lock;
	struct pmix_event *first, **last;
	int wake; /* an eventfd: readable while there is one */
};

/* Returns 0 or negative errno. */
int pmix_events_init(struct pmix_events *events);
void pmix_events_deinit(struct pmix_events *events);
/* Adds a copy of EVENT with a copy of its data.  Returns 0 or -ENOMEM. */
int pmix_events_add(struct pmix_events *events, const struct pmix_event *event);
/* Takes all, oldest first; the caller frees each by pmix_event_free.  NULL: none. */
struct pmix_event *pmix_events_take(struct pmix_events *events);
void pmix_event_free(struct pmix_event *event);

#endif
