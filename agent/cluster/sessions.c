/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See sessions.h. */
#include "agent/cluster/sessions.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "user/channel/bytes.h"
#include "user/clock.h"

#define WORD_BITS 64

struct session {
	uint64_t id;
	char node[IOCOM_NAME_MAX];
	char url[128];
	uint64_t boot_id;	     /* the peer's */
	uint64_t since_ns, tried_ns; /* tried: a successor was tried for */
	bool confirmed;
	bool doubted; /* the peer may have forgotten it: nothing is sent in it until one opens */
	uint8_t sends[NOISE_KEY], receives[NOISE_KEY];
	uint64_t sent;				   /* the number of the next message */
	uint64_t received;			   /* one more than the greatest number received */
	uint64_t seen[SESSION_WINDOW / WORD_BITS]; /* by number modulo the window */
};

struct sessions {
	const struct greeting_self *self;
	struct counters *counters;
	struct session **list; /* the newest last */
	size_t count, room;
};

struct sessions *sessions_new(const struct greeting_self *self, struct counters *counters)
{
	struct sessions *sessions = calloc(1, sizeof(*sessions));

	if (!sessions)
		return NULL;
	sessions->self = self;
	sessions->counters = counters;
	return sessions;
}

static void sessions_drop_at(struct sessions *sessions, size_t i)
{
	struct session *s = sessions->list[i];

	sessions->count--;
	memmove(&sessions->list[i], &sessions->list[i + 1],
		(sessions->count - i) * sizeof(struct session *));
	sodium_memzero(s, sizeof(*s));
	free(s);
}

void sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return;
	while (sessions->count)
		sessions_drop_at(sessions, sessions->count - 1);
	free(sessions->list);
	free(sessions);
}

size_t sessions_count(const struct sessions *sessions)
{
	return sessions ? sessions->count : 0;
}

const struct greeting_self *sessions_self(const struct sessions *sessions)
{
	return sessions->self;
}

void sessions_drop_until(struct sessions *sessions, const struct session *session)
{
	char node[IOCOM_NAME_MAX];
	bool found = false;

	memcpy(node, session->node, sizeof(node));
	for (size_t i = sessions->count; i-- > 0;) {
		found = found || sessions->list[i] == session;
		if (found && !strcmp(sessions->list[i]->node, node))
			sessions_drop_at(sessions, i);
	}
}

void sessions_doubt_until(struct sessions *sessions, const struct session *session)
{
	bool found = false;

	for (size_t i = sessions->count; i-- > 0;) {
		struct session *s = sessions->list[i];

		found = found || s == session;
		s->doubted |= found && !strcmp(s->node, session->node);
	}
}

uint64_t session_age_ns(const struct session *s, uint64_t now_ns)
{
	return now_ns > s->since_ns ? now_ns - s->since_ns : 0;
}

static bool session_is_void(const struct session *s, uint64_t now_ns)
{
	return session_age_ns(s, now_ns) >= SESSION_LIFE_S * CLOCK_NS_PER_S;
}

bool session_is_stale(const struct session *s, uint64_t now_ns)
{
	return session_age_ns(s, now_ns) >= SESSION_FRESH_S * CLOCK_NS_PER_S;
}

void sessions_expire(struct sessions *sessions, uint64_t now_ns)
{
	for (size_t i = sessions->count; i-- > 0;)
		if (session_is_void(sessions->list[i], now_ns))
			sessions_drop_at(sessions, i);
}

/* Of the sessions of NODE, or of all if it is NULL: the oldest, one that is not used first. */
static size_t sessions_oldest(const struct sessions *sessions, const char *node)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < sessions->count; i++) {
		const struct session *s = sessions->list[i];

		if (node && strcmp(s->node, node) != 0)
			continue;
		if (!s->confirmed || s->doubted)
			return i;
		if (oldest == SIZE_MAX)
			oldest = i;
	}
	return oldest;
}

/* Makes room for one more session of NODE. */
static void sessions_make_room(struct sessions *sessions, const char *node)
{
	size_t same = 0;

	for (size_t i = 0; i < sessions->count; i++)
		same += !strcmp(sessions->list[i]->node, node);
	if (same >= SESSIONS_OF_ONE) {
		sessions_drop_at(sessions, sessions_oldest(sessions, node));
	} else if (sessions->count >= SESSIONS_MAX) {
		sessions_drop_at(sessions, sessions_oldest(sessions, NULL));
		sessions->counters->sessions_replaced++;
	}
}

/* A node that has started again has forgotten what it knew before. */
static void forget_before(struct sessions *sessions, const struct session *now)
{
	for (size_t i = sessions->count; i-- > 0;)
		if (!strcmp(sessions->list[i]->node, now->node) &&
		    sessions->list[i]->boot_id != now->boot_id)
			sessions_drop_at(sessions, i);
}

const struct session *sessions_add(struct sessions *sessions, struct greeting *g, const char *url,
				   uint64_t now_ns)
{
	struct session *s = calloc(1, sizeof(*s));
	struct noise_key sends, receives;
	uint8_t hash[NOISE_HASH];

	sessions_make_room(sessions, g->node);
	if (!s || array_reserve(sessions->list, sessions->room, sessions->count + 1, 16)) {
		free(s);
		greeting_end(g);
		return NULL;
	}
	noise_split(&g->noise, &sends, &receives, hash);
	memcpy(&s->id, hash, sizeof(s->id));
	memcpy(s->sends, sends.key, sizeof(s->sends));
	memcpy(s->receives, receives.key, sizeof(s->receives));
	sodium_memzero(&sends, sizeof(sends));
	sodium_memzero(&receives, sizeof(receives));
	memcpy(s->node, g->node, sizeof(s->node));
	snprintf(s->url, sizeof(s->url), "%s", url);
	s->boot_id = g->boot_id;
	s->since_ns = now_ns;
	s->confirmed = *url != 0; /* the WELCOME has proven the peer */
	if (s->confirmed)
		forget_before(sessions, s);
	sessions->list[sessions->count++] = s;
	sessions->counters->sessions_begun++;
	greeting_end(g);
	return s;
}

const struct session *sessions_find(const struct sessions *sessions, const char *node,
				    const char *url, uint64_t now_ns)
{
	for (size_t i = sessions->count; i-- > 0;) {
		const struct session *s = sessions->list[i];

		if (s->confirmed && !s->doubted && !session_is_void(s, now_ns) &&
		    (*node ? !strcmp(s->node, node) : *url && !strcmp(s->url, url)))
			return s;
	}
	return NULL;
}

const struct session *sessions_named(const struct sessions *sessions, const void *message,
				     size_t length, uint64_t now_ns)
{
	uint64_t id;

	if (length < SESSION_UNKNOWN_LEN)
		return NULL;
	memcpy(&id, (const uint8_t *)message + 1, sizeof(id));
	for (size_t i = sessions->count; i-- > 0;)
		if (sessions->list[i]->id == id)
			return session_is_void(sessions->list[i], now_ns) ? NULL
									  : sessions->list[i];
	return NULL;
}

uint64_t session_id(const struct session *session)
{
	return session->id;
}

const char *session_node(const struct session *session)
{
	return session->node;
}

bool session_is_confirmed(const struct session *session)
{
	return session->confirmed;
}

static struct session *session_own(struct sessions *sessions, const struct session *session)
{
	for (size_t i = sessions->count; i-- > 0;)
		if (sessions->list[i] == session)
			return sessions->list[i];
	abort(); /* the caller names a session that was dropped */
}

void session_seal(struct sessions *sessions, const struct session *session, const void *data,
		  size_t length, uint8_t *out)
{
	struct session *s = session_own(sessions, session);
	uint64_t n = s->sent++; /* two hours do not suffice for 2^64 */

	out[0] = SESSION_SEALED;
	memcpy(out + 1, &s->id, sizeof(s->id));
	bytes_put_u64(out + 9, n);
	noise_seal_at(s->sends, n, out, SESSION_HEAD, data, length, out + SESSION_HEAD);
}

bool session_may_greet(struct sessions *sessions, const struct session *session, uint64_t now_ns)
{
	struct session *s = session_own(sessions, session);

	if (s->tried_ns && now_ns - s->tried_ns < SESSION_RETRY_S * CLOCK_NS_PER_S)
		return false;
	s->tried_ns = now_ns;
	return true;
}

static bool session_is_seen(const struct session *s, uint64_t n)
{
	size_t at = (size_t)(n % SESSION_WINDOW);

	if (n >= s->received)
		return false;
	return s->received - n >= SESSION_WINDOW || s->seen[at / WORD_BITS] >> (at % WORD_BITS) & 1;
}

/* Marks N, and forgets the numbers that leave the window for it. */
static void session_see(struct session *s, uint64_t n)
{
	size_t at = (size_t)(n % SESSION_WINDOW);

	if (n >= s->received) {
		if (n - s->received >= SESSION_WINDOW)
			memset(s->seen, 0, sizeof(s->seen));
		else
			for (uint64_t i = s->received; i <= n; i++)
				s->seen[i % SESSION_WINDOW / WORD_BITS] &=
					~(1ull << (i % WORD_BITS));
		s->received = n + 1;
	}
	s->seen[at / WORD_BITS] |= 1ull << (at % WORD_BITS);
}

int session_open(struct sessions *sessions, const struct session *session, uint8_t *message,
		 size_t length, const uint8_t **data, size_t *n)
{
	struct session *s = session_own(sessions, session);
	uint64_t number;

	if (length < SESSION_OVERHEAD || message[0] != SESSION_SEALED)
		return -EBADMSG;
	number = bytes_u64(message + 9);
	if (number == UINT64_MAX ||
	    noise_open_at(s->receives, number, message, SESSION_HEAD, message + SESSION_HEAD,
			  length - SESSION_HEAD, message + SESSION_HEAD))
		return -EBADMSG;
	if (session_is_seen(s, number))
		return -EALREADY;
	session_see(s, number);
	s->doubted = false;
	if (!s->confirmed) {
		s->confirmed = true;
		forget_before(sessions, s);
	}
	*data = message + SESSION_HEAD;
	*n = length - SESSION_OVERHEAD;
	return 0;
}

void session_unknown(const void *message, uint8_t out[SESSION_UNKNOWN_LEN])
{
	memcpy(out, message, SESSION_UNKNOWN_LEN);
	out[0] = SESSION_UNKNOWN;
}
