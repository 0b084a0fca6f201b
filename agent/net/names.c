/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The side of the network part; see names.h.  A slot is a question that the helper has; asks whose
 * host is in no slot wait here, in order, until one is free: so what is forgotten costs nothing,
 * and the channel never fills.
 */
#include "agent/net/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/net/names_packet.h"

struct names_wait {
	struct names_wait *next;
	names_found found;
	void *arg;
	char host[IOCOM_ADDRESS_MAX];
	bool answered; /* the answer that is being given is its */
};

struct names {
	struct names_config config;
	struct loop_fd entry;
	struct loop_timer hung;
	bool broken;
	char slots[NAMES_WORKERS][IOCOM_ADDRESS_MAX]; /* what the helper looks up; "": free */
	struct names_wait *first, **last;
	size_t waiting;
};

/* --- numeric hosts ------------------------------------------------------------------------- */

static bool names_canonical(const char *text, char out[INET6_ADDRSTRLEN])
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, text, &four) == 1)
		return inet_ntop(AF_INET, &four, out, INET6_ADDRSTRLEN);
	return inet_pton(AF_INET6, text, &six) == 1 &&
	       inet_ntop(AF_INET6, &six, out, INET6_ADDRSTRLEN);
}

static bool names_is_numeric(const char *host, struct names_answer *answer)
{
	size_t n = strlen(host);
	bool brackets = n > 2 && host[0] == '[' && host[n - 1] == ']';
	char plain[IOCOM_ADDRESS_MAX];

	*answer = (struct names_answer){.n = 1};
	snprintf(plain, sizeof(plain), "%.*s", (int)(n - 2 * brackets), host + brackets);
	return names_canonical(plain, answer->addresses[0]);
}

/* --- answers -------------------------------------------------------------------------------- */

/* Unlinks and frees *P. */
static void names_drop(struct names *names, struct names_wait **p)
{
	struct names_wait *wait = *p;

	*p = wait->next;
	if (!wait->next)
		names->last = p;
	names->waiting--;
	free(wait);
}

static struct names_wait **names_find_answered(struct names *names)
{
	struct names_wait **p = &names->first;

	while (*p && !(*p)->answered)
		p = &(*p)->next;
	return p;
}

/*
 * Gives ANSWER to all that wait for HOST; NULL: for any.  Those that they ask meanwhile are not
 * meant, and those that they forget get none.
 */
static void names_give(struct names *names, const char *host, const struct names_answer *answer)
{
	struct names_wait **p;

	for (struct names_wait *w = names->first; w; w = w->next)
		w->answered = !host || !strcmp(w->host, host);
	while (*(p = names_find_answered(names))) {
		struct names_wait gone = **p;

		names_drop(names, p);
		gone.found(gone.arg, answer);
	}
}

static void names_break(struct names *names, const char *why)
{
	const struct names_answer none = {.why = why};

	if (names->broken)
		return;
	names->broken = true;
	loop_remove(names->config.loop, &names->entry);
	loop_cancel(names->config.loop, &names->hung);
	names_give(names, NULL, &none);
	names->config.broken(names->config.arg, why);
}

static void names_hang(void *arg)
{
	names_break(arg, "the process that looks up names hangs");
}

/* --- questions ------------------------------------------------------------------------------- */

static bool names_is_asked(const struct names *names, const char *host)
{
	for (size_t i = 0; i < NAMES_WORKERS; i++)
		if (!strcmp(names->slots[i], host))
			return true;
	return false;
}

static size_t names_free_slot(const struct names *names)
{
	size_t i = 0;

	while (i < NAMES_WORKERS && names->slots[i][0])
		i++;
	return i;
}

static void names_send(struct names *names, size_t slot, const char *host)
{
	struct names_question q = {.slot = (uint32_t)slot};

	strcpy(q.host, host);
	strcpy(names->slots[slot], host);
	/* If it cannot be sent, the loop learns from the channel's end that the helper is lost. */
	if (send(names->config.fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		shutdown(names->config.fd, SHUT_RDWR);
}

/* Hands the helper what waits, as far as it has workers. */
static void names_go_on(struct names *names)
{
	for (const struct names_wait *w = names->first; w; w = w->next) {
		size_t slot = names_free_slot(names);

		if (slot == NAMES_WORKERS)
			break;
		if (!names_is_asked(names, w->host))
			names_send(names, slot, w->host);
	}
	if (names_free_slot(names) == NAMES_WORKERS && !names->hung.active)
		loop_start(names->config.loop, &names->hung, NAMES_HUNG_NS);
}

/* Returns true if REPLY answers a question that was asked, and holds what can be dialled. */
static bool names_read(const struct names *names, const struct names_reply *reply, ssize_t length,
		       struct names_answer *answer)
{
	*answer = (struct names_answer){0};
	if (length != sizeof(*reply) || reply->slot >= NAMES_WORKERS ||
	    !names->slots[reply->slot][0] || reply->n > NAMES_ADDRESSES_MAX ||
	    !memchr(reply->why, '\0', sizeof(reply->why)))
		return false;
	for (; answer->n < reply->n; answer->n++)
		if (!memchr(reply->addresses[answer->n], '\0', INET6_ADDRSTRLEN) ||
		    !names_canonical(reply->addresses[answer->n], answer->addresses[answer->n]))
			return false;
	answer->why = answer->n ? NULL : reply->why;
	return true;
}

static void names_ready(void *arg, uint32_t events)
{
	struct names *names = arg;
	struct names_reply reply;
	struct names_answer answer;
	char host[IOCOM_ADDRESS_MAX];
	ssize_t n = recv(names->config.fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_TRUNC);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		names_break(names, "the process that looks up names has ended");
		return;
	}
	if (!names_read(names, &reply, n, &answer)) {
		names_break(names, "the process that looks up names answers nonsense");
		return;
	}
	strcpy(host, names->slots[reply.slot]);
	names->slots[reply.slot][0] = '\0';
	loop_cancel(names->config.loop, &names->hung);
	names_give(names, host, &answer);
	names_go_on(names);
}

static struct names_wait **names_find(struct names *names, const void *arg)
{
	struct names_wait **p = &names->first;

	while (*p && (*p)->arg != arg)
		p = &(*p)->next;
	return p;
}

static int names_queue(struct names *names, const char *host, names_found found, void *arg)
{
	const struct names_wait *before = *names_find(names, arg);
	struct names_wait *wait;

	if (before)
		return strcmp(before->host, host) ? -EBUSY : 0;
	if (names->waiting == NAMES_ASKS_MAX)
		return -ENOBUFS;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	wait->found = found;
	wait->arg = arg;
	strcpy(wait->host, host);
	*names->last = wait;
	names->last = &wait->next;
	names->waiting++;
	names_go_on(names);
	return 0;
}

int names_ask(struct names *names, const char *host, names_found found, void *arg)
{
	const struct names_answer none = {.why = "names of hosts cannot be looked up here"};
	struct names_answer numeric;

	if (!*host || strlen(host) >= IOCOM_ADDRESS_MAX)
		return -EINVAL;
	if (names_is_numeric(host, &numeric))
		found(arg, &numeric);
	else if (!names || names->broken)
		found(arg, &none);
	else
		return names_queue(names, host, found, arg);
	return 0;
}

void names_forget(struct names *names, const void *arg)
{
	struct names_wait **p = names ? names_find(names, arg) : NULL;

	if (p && *p)
		names_drop(names, p);
}

size_t names_waiting(const struct names *names)
{
	return names ? names->waiting : 0;
}

int names_new(struct names **out, const struct names_config *config, struct iocom_err *err)
{
	struct names *names = calloc(1, sizeof(*names));
	int rc = names ? 0 : -ENOMEM;

	*out = NULL;
	if (!rc) {
		names->config = *config;
		names->last = &names->first;
		names->entry =
			(struct loop_fd){.fd = config->fd, .ready = names_ready, .arg = names};
		names->hung = (struct loop_timer){.fire = names_hang, .arg = names};
		rc = loop_add(config->loop, &names->entry, EPOLLIN);
	}
	if (rc) {
		close(config->fd);
		free(names);
		return iocom_err_set(err, rc, "cannot ask for names: %s", strerror(-rc));
	}
	*out = names;
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	while (names->first)
		names_drop(names, &names->first);
	loop_cancel(names->config.loop, &names->hung);
	loop_remove(names->config.loop, &names->entry);
	close(names->config.fd);
	free(names);
}
