/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See pmix_events.h. */
#include "agent/pmix/pmix_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int pmix_events_init(struct pmix_events *events)
{
	events->first = NULL;
	events->last = &events->first;
	events->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (events->wake < 0)
		return -errno;
	return -pthread_mutex_init(&events->lock, NULL);
}

void pmix_event_free(struct pmix_event *event)
{
	free(event->data);
	free(event);
}

struct pmix_event *pmix_events_take(struct pmix_events *events)
{
	struct pmix_event *first;
	uint64_t count;

	pthread_mutex_lock(&events->lock);
	(void)!read(events->wake, &count, sizeof(count));
	first = events->first;
	events->first = NULL;
	events->last = &events->first;
	pthread_mutex_unlock(&events->lock);
	return first;
}

void pmix_events_deinit(struct pmix_events *events)
{
	struct pmix_event *event = pmix_events_take(events), *next;

	for (; event; event = next) {
		next = event->next;
		pmix_event_free(event);
	}
	close(events->wake);
	pthread_mutex_destroy(&events->lock);
}

int pmix_events_add(struct pmix_events *events, const struct pmix_event *event)
{
	struct pmix_event *copy = malloc(sizeof(*copy));
	const uint64_t one = 1;

	if (!copy)
		return -ENOMEM;
	*copy = *event;
	copy->next = NULL;
	copy->data = malloc(event->length + 1);
	if (!copy->data) {
		free(copy);
		return -ENOMEM;
	}
	if (event->length)
		memcpy(copy->data, event->data, event->length);
	((char *)copy->data)[event->length] = 0;
	pthread_mutex_lock(&events->lock);
	*events->last = copy;
	events->last = &copy->next;
	(void)!write(events->wake, &one, sizeof(one));
	pthread_mutex_unlock(&events->lock);
	return 0;
}
