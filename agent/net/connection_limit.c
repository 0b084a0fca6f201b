/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See connection_limit.h.  nng's threads call these functions, so a lock guards the state. */
#include "agent/net/connection_limit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/net/address_budget.h"
#include "agent/net/connection_cut.h"
#include "agent/base/seal_refusal.h"
#include "user/clock.h"

struct guest {
	uint32_t pipe;
	uint64_t number; /* larger means later */
	bool is_sealed;	 /* a message that was sealed well came from it */
	bool is_cut;
	uint8_t address[16]; /* IPv4: its 4 bytes, the rest 0 */
	uint8_t key[ADDRESS_LIMIT_KEY];
	struct connection_ends ends;
};

struct connection_limit {
	pthread_mutex_t lock;
	struct connection_limit_bounds bounds;
	struct address_budget budget;
	unsigned count;
	uint64_t numbers, refused, cut, addresses;
	struct guest list[];
};

static bool guest_take(struct guest *g, nng_pipe pipe)
{
	const struct sockaddr_storage *from = &g->ends.remote;

	*g = (struct guest){.pipe = (uint32_t)nng_pipe_id(pipe)};
	if (connection_ends_of(pipe, &g->ends))
		return false;
	if (from->ss_family == AF_INET6)
		memcpy(g->address, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	else
		memcpy(g->address, &((const struct sockaddr_in *)from)->sin_addr, 4);
	address_limit_key_of((const struct sockaddr *)from, g->key);
	return true;
}

/* The oldest guest that has sent nothing sealed, at G's address or (G NULL) anywhere. */
static struct guest *guest_to_yield(struct connection_limit *guests, const struct guest *g)
{
	struct guest *oldest = NULL;

	for (unsigned i = 0; guests->bounds.yield && i < guests->count; i++) {
		struct guest *old = &guests->list[i];

		if (!old->is_sealed && (!g || !memcmp(old->address, g->address, 16)) &&
		    (!oldest || old->number < oldest->number))
			oldest = old;
	}
	return oldest;
}

/*
 * Returns true if there is room for G.  YIELDS: the connection that is to be cut for it, if its
 * remote family is not 0.
 */
static bool connection_limit_enter(struct connection_limit *guests, const struct guest *g,
				   struct connection_ends *yields)
{
	uint64_t now = clock_boot_ns();
	struct guest *place = &guests->list[guests->count];
	unsigned same = 0;

	if (!address_budget_has(&guests->budget, g->key, now)) {
		guests->addresses++;
		return false;
	}
	for (unsigned i = 0; i < guests->count; i++)
		same += !memcmp(guests->list[i].address, g->address, 16);
	if (same >= guests->bounds.max_of_one)
		place = guest_to_yield(guests, g);
	else if (guests->count == guests->bounds.max)
		place = guest_to_yield(guests, NULL);
	if (!place) {
		guests->refused++;
		return false;
	}
	if (place == &guests->list[guests->count]) {
		guests->count++;
	} else {
		*yields = place->ends;
		address_budget_pay(&guests->budget, place->key, ADDRESS_BUDGET_UNIT_NS, now);
		guests->cut++;
	}
	*place = *g;
	place->number = ++guests->numbers;
	return true;
}

static struct guest *guest_of(struct connection_limit *guests, nng_pipe pipe)
{
	for (unsigned i = 0; i < guests->count; i++)
		if (guests->list[i].pipe == (uint32_t)nng_pipe_id(pipe))
			return &guests->list[i];
	return NULL;
}

static void connection_limit_leave(struct connection_limit *guests, nng_pipe pipe)
{
	struct guest *g = guest_of(guests, pipe);

	if (g)
		*g = guests->list[--guests->count];
}

static void connection_limit_changed(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct connection_limit *guests = arg;
	struct connection_ends yields = {0};
	struct guest g;
	bool welcome = event != NNG_PIPE_EV_ADD_PRE || guest_take(&g, pipe);

	pthread_mutex_lock(&guests->lock);
	if (event != NNG_PIPE_EV_ADD_PRE)
		connection_limit_leave(guests, pipe);
	else if (welcome)
		welcome = connection_limit_enter(guests, &g, &yields);
	pthread_mutex_unlock(&guests->lock);
	if (yields.remote.ss_family)
		connection_cut(&yields);
	if (!welcome)
		nng_pipe_close(pipe); /* it has read nothing yet, see connection_cut.h */
}

int connection_limit_new(struct connection_limit **out, nng_socket socket,
			 const struct connection_limit_bounds *bounds)
{
	struct connection_limit *guests =
		calloc(1, sizeof(*guests) + bounds->max * sizeof(struct guest));
	int e;

	if (!guests)
		return NNG_ENOMEM;
	guests->bounds = *bounds;
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

void connection_limit_count_into(struct connection_limit *guests, struct counters *counters)
{
	pthread_mutex_lock(&guests->lock);
	counters->guests_refused += guests->refused;
	counters->connections_cut += guests->cut;
	counters->addresses_refused += guests->addresses;
	guests->refused = guests->cut = guests->addresses = 0;
	pthread_mutex_unlock(&guests->lock);
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

size_t connection_limit_payers(struct connection_limit *guests)
{
	size_t count;

	if (!guests)
		return 0;
	pthread_mutex_lock(&guests->lock);
	count = address_budget_count(&guests->budget, clock_boot_ns());
	pthread_mutex_unlock(&guests->lock);
	return count;
}

bool connection_limit_is_cut(struct connection_limit *guests, nng_pipe pipe)
{
	const struct guest *g;
	bool is_cut;

	pthread_mutex_lock(&guests->lock);
	g = guest_of(guests, pipe);
	is_cut = !g || g->is_cut; /* one that has left, or has yielded, is as good as cut */
	pthread_mutex_unlock(&guests->lock);
	return is_cut;
}

bool connection_limit_is_proven(struct connection_limit *guests, nng_pipe pipe)
{
	const struct guest *g;
	bool is_proven;

	pthread_mutex_lock(&guests->lock);
	g = guest_of(guests, pipe);
	is_proven = g && g->is_sealed && !g->is_cut;
	pthread_mutex_unlock(&guests->lock);
	return is_proven;
}

/* Returns true if G is to be cut. */
static bool connection_limit_blame(struct connection_limit *guests, struct guest *g, int refusal)
{
	bool junk = refusal == SEAL_E_GARBAGE || refusal == SEAL_E_FORGED;
	uint64_t now = clock_boot_ns();

	if (g->is_cut)
		return false;
	address_budget_pay(&guests->budget, g->key,
			   junk ? ADDRESS_BUDGET_UNIT_NS : ADDRESS_BUDGET_STALE_NS, now);
	/* Whoever repeats what others sealed loses the connection when the budget is spent. */
	g->is_cut = junk || !address_budget_has(&guests->budget, g->key, now);
	guests->cut += g->is_cut;
	return g->is_cut;
}

void connection_limit_judge(struct connection_limit *guests, nng_pipe pipe, int refusal)
{
	struct connection_ends ends;
	bool cut = false;
	struct guest *g;

	pthread_mutex_lock(&guests->lock);
	g = guest_of(guests, pipe);
	if (g && !refusal) {
		g->is_sealed = true;
		address_budget_earn(&guests->budget, g->key, clock_boot_ns());
	} else if (g && refusal > 0) {
		cut = connection_limit_blame(guests, g, refusal);
		ends = g->ends;
	}
	pthread_mutex_unlock(&guests->lock);
	if (cut)
		connection_cut(&ends);
}

void connection_limit_free(struct connection_limit *guests)
{
	if (!guests)
		return;
	pthread_mutex_destroy(&guests->lock);
	free(guests);
}
