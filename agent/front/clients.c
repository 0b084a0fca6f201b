/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Local connections; see clients.h.  A dropped client is freed when the loop comes
 * round, so that whoever is answering it can go on using the pointer. */
#include "agent/front/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/guest/guest_attach.h"
#include "user/pack.h"
#include "agent/front/recorders.h"
#include "user/monitor/sample_window.h"
#include "agent/cluster/tunnel.h"

#define SWEEP_NS CLOCK_NS_PER_S
#define IDLE_NS	 (60 * CLOCK_NS_PER_S)
#define FRESH_NS (20 * CLOCK_NS_PER_MS)

size_t clients_count(const struct clients *clients)
{
	return clients ? clients->count : 0;
}

const struct ucred *client_who(const struct client *client)
{
	return &client->who;
}

void client_drop(struct client *c)
{
	struct agent *a = c->clients->agent;

	if (c->dead)
		return;
	c->dead = true;
	place_forget(a, c);
	ops_forget(a, c);
	loop_cancel(a->loop, &c->line);
	loop_remove(a->loop, &c->entry);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->clients->count--;
	if (!c->clients->reap.active)
		loop_start(a->loop, &c->clients->reap, 0);
}

int client_fd(const struct client *c)
{
	return c->fd;
}

void client_hand_over(struct client *c)
{
	client_drop(c);
}

static void client_free(struct client *c)
{
	sample_window_free(c->window);
	free(c->in);
	free(c->out);
	free(c);
}

static void clients_reap(void *arg)
{
	struct clients *clients = arg;

	for (struct client **p = &clients->first; *p;) {
		struct client *c = *p;

		if (!c->dead) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		client_free(c);
	}
}

/* --- what a user costs --------------------------------------------------------- */

static bool may_ask(struct client *c)
{
	return request_limit_take(&c->clients->rates, c->who.uid,
				  c->clients->agent->set.user_requests_per_s, clock_boot_ns());
}

static void charge(struct client *c, uint64_t cost_ns)
{
	request_limit_charge(&c->clients->rates, c->who.uid,
			     c->clients->agent->set.user_requests_per_s, cost_ns, clock_boot_ns());
}

/* --- watching readings --------------------------------------------------------- */

static void clients_line(void *arg)
{
	struct client *c = arg;
	struct agent *a = c->clients->agent;
	const struct iocom_disk *before;
	struct monitor_sample sample;
	uint64_t before_ns = clock_cpu_ns();
	size_t nbefore;

	loop_start(a->loop, &c->line, c->interval_ns);
	if (c->out_end > c->out_start || !may_ask(c)) {
		a->counters.top_lines_delayed++;
		return;
	}
	if (clock_boot_ns() - a->sampled_ns > FRESH_NS)
		tick_sample(a);
	if (c->dead || sample_window_take(c->window, &sample, &before, &nbefore))
		return;
	client_json(c, ops_top(a, &sample, before, nbefore, c->who.uid));
	charge(c, clock_cpu_ns() - before_ns);
}

void client_watch(struct client *c, unsigned interval_ms)
{
	struct agent *a = c->clients->agent;
	const struct iocom_disk *before;
	struct monitor_sample past;
	size_t nbefore;

	c->busy = false;
	loop_cancel(a->loop, &c->line); /* of an earlier request on this connection */
	sample_window_free(c->window);
	c->window = sample_window_new();
	if (!c->window) {
		client_error(c, "out of memory");
		return;
	}
	/* The first line begins now: what was before is only what rates start from.  However
	 * often somebody asks, tasks are read no more often than lines may need. */
	if (!a->has_last || clock_boot_ns() - a->sampled_ns > FRESH_NS)
		tick_sample(a);
	else if (sample_window_add(c->window, &a->last))
		client_drop(c);
	if (c->dead || sample_window_take(c->window, &past, &before, &nbefore) == -ENOMEM)
		return;
	c->interval_ns = interval_ms * CLOCK_NS_PER_MS;
	c->line = (struct loop_timer){.fire = clients_line, .arg = c};
	loop_start(a->loop, &c->line, c->interval_ns);
	client_events(c);
}

void clients_sampled(struct clients *clients, const struct monitor_sample *sample)
{
	for (struct client *c = clients->first; c; c = c->next)
		if (!c->dead && c->window && sample_window_add(c->window, sample))
			client_drop(c);
}

/* --- input --------------------------------------------------------------------- */

static void garbage(struct client *c, const char *why)
{
	c->clients->agent->counters.clients_dropped++;
	log_provoked(&c->clients->agent->log, LOG_L_WARNING, "dropped a client of uid %u: %s",
		     (unsigned)c->who.uid, why);
	client_send_frame(c, FRAME_ERROR, why);
	client_drop(c);
}

/* A job of this machine: its stream is this very connection. */
static void start_job(struct client *c, uint8_t type)
{
	struct agent *a = c->clients->agent;
	struct iocom_err err = {0};
	int rc;

	/* Out of the loop first: on success the shim owns the descriptor. */
	loop_remove(a->loop, &c->entry);
	if (type == FRAME_START)
		rc = target_start(a, c->fd, c->in, c->in_length, &c->who, &err);
	else
		rc = target_attach(a, c->fd, c->in, c->in_length, &c->who, &err);
	if (rc == 0) {
		a->counters.streams_accepted++;
		c->fd = -1;
		client_drop(c);
		return;
	}
	a->counters.streams_refused++;
	log_provoked(&a->log, LOG_L_WARNING, "refused a local job of uid %u: %s",
		     (unsigned)c->who.uid, err.text);
	if (loop_add(a->loop, &c->entry, EPOLLIN | EPOLLRDHUP))
		client_drop(c);
	else
		client_error(c, "%s", err.text);
}

static bool in_time(struct client *c)
{
	struct agent *a = c->clients->agent;

	if (may_ask(c))
		return true;
	a->counters.requests_refused_rate++;
	client_error(c,
		     "you ask the agent more than %u times a second, or too often for long lists: "
		     "the limit of a user here (user_requests_per_s); ask more slowly",
		     a->set.user_requests_per_s);
	return false;
}

static void clients_obey(struct client *c, uint8_t type)
{
	struct agent *a = c->clients->agent;
	msgpack_unpacked map;
	char op[32];

	if ((type == FRAME_START || type == FRAME_ATTACH) && !c->started) {
		start_job(c, type);
		return;
	}
	c->started = true;
	if (type != FRAME_REQUEST || unpack_map(&map, c->in, c->in_length)) {
		garbage(c, "the agent expects a request: a MessagePack map with \"op\"");
		return;
	}
	c->busy = true;
	if (unpack_str(&map.data, "op", op, sizeof(op)))
		client_error(c, "the request names no \"op\"");
	else if (!strcmp(op, "place"))
		place_request(a, c, &map.data);
	else if (!strcmp(op, "tunnel"))
		tunnel_request(a, c, &map.data);
	else
		ops_request(a, c, &map.data);
	msgpack_unpacked_destroy(&map);
	if (!c->dead)
		client_events(c);
}

static void dispatch(struct client *c, uint8_t type)
{
	uint64_t before_ns = clock_cpu_ns();

	if (!in_time(c))
		return;
	clients_obey(c, type);
	charge(c, clock_cpu_ns() - before_ns);
}

/* Reads at most WANT more bytes; 1 some, 0 none now, -1 the client is gone. */
static int clients_take(struct client *c, uint8_t *at, size_t want, size_t *have)
{
	ssize_t n = recv(c->fd, at, want, MSG_DONTWAIT);

	if (n > 0) {
		*have += (size_t)n;
		c->active_ns = clock_boot_ns();
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	client_drop(c);
	return -1;
}

static int clients_take_header(struct client *c)
{
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;
	int rc = clients_take(c, c->header + c->header_have, FRAME_HEADER - c->header_have,
			      &c->header_have);

	if (rc <= 0)
		return rc;
	rc = frame_parse(c->header, c->header_have, FRAME_PAYLOAD_MAX, &type, &payload, &length,
			 &consumed);
	if (rc == FRAME_E_VERSION)
		garbage(c, "the agent speaks another version of the protocol: install the same "
			   "version of iocom and iocomd");
	else if (rc == FRAME_E_GARBAGE)
		garbage(c, "the agent does not understand this message");
	if (c->dead)
		return -1;
	if (c->header_have < FRAME_HEADER)
		return 1;
	c->in_length = (uint32_t)c->header[4] << 24 | (uint32_t)c->header[5] << 16 |
		       (uint32_t)c->header[6] << 8 | c->header[7];
	c->in_have = 0;
	if (c->header[3] != FRAME_START && c->in_length > CLIENT_REQUEST_MAX) {
		garbage(c, "the request is too long");
		return -1;
	}
	return 1;
}

/* A long request is not held while its connection is open. */
static void forget_input(struct client *c)
{
	if (c->in_room <= CLIENT_REQUEST_MAX / 16)
		return;
	free(c->in);
	c->in = NULL;
	c->in_room = 0;
}

/* Grows with what arrives, not with what is announced. */
static int clients_take_payload(struct client *c)
{
	size_t want = c->in_length - c->in_have;

	if (c->in_have == c->in_room || !c->in) {
		size_t room = c->in_room ? 2 * c->in_room : CLIENT_FIRST_BUFFER;
		uint8_t *grown;

		if (!client_may_hold(c, room - c->in_room)) {
			client_crowded_out(c);
			return -1;
		}
		grown = realloc(c->in, room);
		if (!grown) {
			garbage(c, "out of memory");
			return -1;
		}
		c->in = grown;
		c->in_room = room;
	}
	if (want > c->in_room - c->in_have)
		want = c->in_room - c->in_have;
	return clients_take(c, c->in + c->in_have, want, &c->in_have);
}

static void clients_ready(void *arg, uint32_t what)
{
	struct client *c = arg;
	int rc = 1;

	if (what & (EPOLLERR | EPOLLHUP)) {
		client_drop(c);
		return;
	}
	if (what & EPOLLOUT)
		client_flush(c);
	/* A half-closed client still reads the answer it waits for. */
	if (!c->dead && (what & EPOLLRDHUP) && !c->half) {
		c->half = true;
		if (c->streams)
			recorders_end(c->clients->agent, c);
		if (!c->dead)
			client_events(c);
	}
	while (!c->dead && !c->busy && rc > 0 && (what & EPOLLIN)) {
		if (c->header_have < FRAME_HEADER) {
			rc = clients_take_header(c);
			if (rc <= 0 || c->header_have < FRAME_HEADER)
				continue;
		}
		if (c->in_have < c->in_length) {
			rc = clients_take_payload(c);
			if (rc <= 0 || c->in_have < c->in_length)
				continue;
		}
		c->header_have = 0;
		dispatch(c, c->header[3]);
		forget_input(c);
		break; /* one at a time: others have their turn before its next */
	}
}

/* --- the listener ----------------------------------------------------------------- */

/* No user may keep the others out, nor all of them root. */
static bool clients_has_room(const struct clients *clients, uid_t uid)
{
	size_t own = 0;

	for (const struct client *c = clients->first; c; c = c->next)
		own += !c->dead && c->who.uid == uid;
	return uid == 0 || (own < CLIENTS_OF_ONE && clients->count < CLIENTS_MAX - CLIENTS_OF_ROOT);
}

static void log_crowded(struct clients *clients, uid_t uid)
{
	if (!clients_is_time(&clients->crowded_ns))
		return;
	log_write(&clients->agent->log, LOG_L_WARNING,
		  "no room for a connection of uid %d: %zu are open, %d at most, of one user %d",
		  (int)uid, clients->count, CLIENTS_MAX, CLIENTS_OF_ONE);
}

static void clients_accept_one(struct clients *clients, int fd)
{
	struct agent *a = clients->agent;
	struct client *c = clients->count < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	socklen_t n = sizeof(c->who);

	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->who, &n) ||
	    !clients_has_room(clients, c->who.uid)) {
		a->counters.clients_refused++;
		log_crowded(clients, c ? c->who.uid : (uid_t)-1);
		frame_write(fd, FRAME_ERROR, "the agent has too many connections; try again", 45);
		free(c);
		close(fd);
		return;
	}
	c->clients = clients;
	c->fd = fd;
	c->active_ns = clock_boot_ns();
	c->entry = (struct loop_fd){.fd = fd, .ready = clients_ready, .arg = c};
	if (loop_add(a->loop, &c->entry, EPOLLIN | EPOLLRDHUP)) {
		free(c);
		close(fd);
		return;
	}
	c->next = clients->first;
	clients->first = c;
	clients->count++;
}

static void clients_accept_ready(void *arg, uint32_t what)
{
	struct clients *clients = arg;

	(void)what;
	for (int i = 0; i < 16; i++) {
		int fd = accept4(clients->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return; /* none, or none to be had: the next round tries again */
		clients_accept_one(clients, fd);
	}
}

static void sweep(void *arg)
{
	struct clients *clients = arg;
	uint64_t now = clock_boot_ns();

	for (struct client *c = clients->first; c; c = c->next) {
		uint64_t quiet = now - c->active_ns;
		bool stuck = c->out_end > c->out_start || c->header_have;

		if (c->dead || c->streams || (c->busy && !stuck) || (c->window && !stuck))
			continue;
		if (quiet < (stuck ? CLIENT_STUCK_NS : IDLE_NS))
			continue;
		clients->agent->counters.clients_dropped++;
		client_drop(c);
	}
	loop_start(clients->agent->loop, &clients->sweep, SWEEP_NS);
}

static int clients_listen_at(struct clients *clients, struct iocom_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (strlen(clients->path) >= sizeof(sa.sun_path))
		return iocom_err_set(err, -ENAMETOOLONG,
				     "the socket's path %s is longer than %zu bytes; choose a "
				     "shorter --run-dir",
				     clients->path, sizeof(sa.sun_path) - 1);
	strcpy(sa.sun_path, clients->path);
	unlink(clients->path); /* the lock says that its agent is gone */
	clients->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (clients->fd < 0 || bind(clients->fd, (struct sockaddr *)&sa, sizeof(sa)) ||
	    chmod(clients->path, 0666) || listen(clients->fd, 128))
		return iocom_err_set(err, -errno, "cannot listen at %s: %s", clients->path,
				     strerror(errno));
	return 0;
}

int clients_new(struct clients **out, struct agent *a, struct iocom_err *err)
{
	struct clients *clients = calloc(1, sizeof(*clients));
	int rc;

	if (!clients)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	clients->agent = a;
	clients->fd = -1;
	snprintf(clients->path, sizeof(clients->path), "%s/iocom.sock", a->set.run_dir);
	clients->sweep = (struct loop_timer){.fire = sweep, .arg = clients};
	clients->reap = (struct loop_timer){.fire = clients_reap, .arg = clients};
	rc = clients_listen_at(clients, err);
	if (!rc) {
		clients->entry = (struct loop_fd){
			.fd = clients->fd, .ready = clients_accept_ready, .arg = clients};
		rc = loop_add(a->loop, &clients->entry, EPOLLIN);
	}
	if (rc) {
		clients_free(clients);
		return rc;
	}
	loop_start(a->loop, &clients->sweep, SWEEP_NS);
	*out = clients;
	return 0;
}

void clients_free(struct clients *clients)
{
	if (!clients)
		return;
	for (struct client *c = clients->first; c; c = c->next)
		client_drop(c);
	loop_cancel(clients->agent->loop, &clients->sweep);
	loop_cancel(clients->agent->loop, &clients->reap);
	clients_reap(clients);
	loop_remove(clients->agent->loop, &clients->entry);
	if (clients->fd >= 0) {
		close(clients->fd);
		unlink(clients->path);
	}
	free(clients);
}
