/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See connection_limit.h.  nng's threads call these functions, so a lock guards the state. */
#include "agent/cluster/connection_limit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct guest {
	uint32_t pipe;
	uint8_t address[16]; /* IPv4: its 4 bytes, the rest 0 */
};

struct connection_limit {
	pthread_mutex_t lock;
	unsigned max, max_of_one, count;
	uint64_t refused;
	struct guest list[];
};

static bool find_address(nng_pipe pipe, uint8_t out[16])
{
	nng_sockaddr sa;

	memset(out, 0, 16);
	if (nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &sa))
		return false;
	if (sa.s_family == NNG_AF_INET6)
		memcpy(out, sa.s_in6.sa_addr, 16);
	else if (sa.s_family == NNG_AF_INET)
		memcpy(out, &sa.s_in.sa_addr, 4);
	else
		return false;
	return true;
}

/* Returns true if there is room for ADDRESS, and PIPE has its place. */
static bool connection_limit_enter(struct connection_limit *guests, nng_pipe pipe,
				   const uint8_t address[16])
{
	unsigned same = 0;

	for (unsigned i = 0; i < guests->count; i++)
		same += !memcmp(guests->list[i].address, address, 16);
	if (guests->count == guests->max || same >= guests->max_of_one) {
		guests->refused++;
		return false;
	}
	guests->list[guests->count].pipe = (uint32_t)nng_pipe_id(pipe);
	memcpy(guests->list[guests->count].address, address, 16);
	guests->count++;
	return true;
}

static void connection_limit_leave(struct connection_limit *guests, nng_pipe pipe)
{
	for (unsigned i = 0; i < guests->count; i++)
		if (guests->list[i].pipe == (uint32_t)nng_pipe_id(pipe)) {
			guests->list[i] = guests->list[--guests->count];
			return;
		}
}

static void connection_limit_changed(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct connection_limit *guests = arg;
	uint8_t address[16];
	bool welcome = true;

	pthread_mutex_lock(&guests->lock);
	if (event == NNG_PIPE_EV_ADD_PRE)
		welcome = find_address(pipe, address) &&
			  connection_limit_enter(guests, pipe, address);
	else
		connection_limit_leave(guests, pipe);
	pthread_mutex_unlock(&guests->lock);
	if (!welcome)
		nng_pipe_close(pipe);
}

int connection_limit_new(struct connection_limit **out, nng_socket socket, unsigned max,
			 unsigned max_of_one)
{
	struct connection_limit *guests = calloc(1, sizeof(*guests) + max * sizeof(struct guest));
	int e;

	if (!guests)
		return NNG_ENOMEM;
	guests->max = max;
	guests->max_of_one = max_of_one;
	pthread_mutex_init(&guests->lock, NULL);
	e = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_PRE, connection_limit_changed, guests);
	if (!e)
		e = nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, connection_limit_changed, guests);
	if (e) {
		connection_limit_free(guests);
		return e;
	}
	*out = guests;
	return 0;
}

uint64_t connection_limit_refused(struct connection_limit *guests)
{
	uint64_t refused;

	pthread_mutex_lock(&guests->lock);
	refused = guests->refused;
	guests->refused = 0;
	pthread_mutex_unlock(&guests->lock);
	return refused;
}

size_t connection_limit_count(struct connection_limit *guests)
{
	size_t count;

	if (!guests)
		return 0;
	pthread_mutex_lock(&guests->lock);
	count = guests->count;
	pthread_mutex_unlock(&guests->lock);
	return count;
}

void connection_limit_free(struct connection_limit *guests)
{
	if (!guests)
		return;
	pthread_mutex_destroy(&guests->lock);
	free(guests);
}
