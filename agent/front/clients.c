/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Local connections; see clients.h. */
#include "agent/front/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/places.h"
#include "agent/guest/guest.h"
#include "balancer/view/json_text.h"
#include "iocom/array.h"
#include "user/pack.h"

#define SWEEP_NS CLOCK_NS_PER_S
#define IDLE_NS	 (60 * CLOCK_NS_PER_S)

size_t clients_count(const struct clients *clients)
{
	return clients ? clients->count : 0;
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

/* --- input --------------------------------------------------------------------- */

static void garbage(struct client *c, const char *why)
{
	c->clients->config.base->counters->clients_dropped++;
	log_provoked(c->clients->config.base->log, LOG_L_WARNING, "dropped a client of uid %u: %s",
		     (unsigned)c->who.uid, why);
	client_send_frame(c, FRAME_ERROR, why);
	client_drop(c);
}

/* The guest has C's connection, or RC says that no job began on it. */
static void start_ended(struct client *c, int rc, const struct iocom_err *err)
{
	const struct base *base = c->clients->config.base;

	if (rc == 0) {
		base->counters->streams_accepted++;
		c->fd = -1;
		client_drop(c);
		return;
	}
	base->counters->streams_refused++;
	log_provoked(base->log, LOG_L_WARNING, "refused a local job of uid %u: %s",
		     (unsigned)c->who.uid, err->text);
	if (loop_add(base->loop, &c->entry, EPOLLIN | EPOLLRDHUP))
		client_drop(c);
	else
		client_error(c, "%s", err->text);
}

/* Starts a job of this machine: this connection becomes its stream. */
static void start_job(struct client *c, uint8_t type)
{
	const struct clients_config *config = &c->clients->config;
	const struct base *base = config->base;
	struct iocom_err err = {0};
	int rc;

	/* Remove it from the loop first: on success the shim owns the descriptor. */
	loop_remove(base->loop, &c->entry);
	if (type == FRAME_START)
		rc = config->start(config->stream_arg, c->fd, c->in, c->in_length, &c->who, &err);
	else
		rc = config->attach(config->stream_arg, c->fd, c->in, c->in_length, &c->who, &err);
	start_ended(c, rc, &err);
}

int client_keep_spec(struct client *c, const void *spec, uint32_t length)
{
	free(c->spec);
	c->spec = NULL;
	c->spec_length = 0;
	if (!length)
		return 0;
	c->spec = client_may_hold(c, length) ? malloc(length) : NULL;
	if (!c->spec)
		return -ENOMEM;
	memcpy(c->spec, spec, length);
	c->spec_length = length;
	return 0;
}

bool client_has_spec(const struct client *c)
{
	return c->spec && !c->dead;
}

/* Makes the frame that the job's stream begins with: ANSWER.  Returns NULL: out of memory. */
static uint8_t *begin_lead(json_t *answer, size_t *length)
{
	char *text = json_object_set_new(answer, "begun", json_true())
			     ? NULL
			     : json_text_dump(answer, NULL);
	size_t n = text ? strlen(text) : 0;
	uint8_t *lead = text ? malloc(FRAME_HEADER + n) : NULL;

	if (lead) {
		frame_header(lead, FRAME_JSON, (uint32_t)n);
		memcpy(lead + FRAME_HEADER, text, n);
	}
	free(text);
	*length = FRAME_HEADER + n;
	return lead;
}

void client_begin(struct client *c, json_t *answer)
{
	const struct clients_config *config = &c->clients->config;
	struct guest_placed placed = {
		.job = json_string_value(json_object_get(answer, "job")),
		.node = json_string_value(json_object_get(answer, "node")),
		.nonce = json_string_value(json_object_get(answer, "nonce")),
		.spec = c->spec,
		.length = c->spec_length,
	};
	struct iocom_err err = {0};
	uint8_t *lead = begin_lead(answer, &placed.lead_length);
	int rc = 0;

	loop_remove(config->base->loop, &c->entry);
	placed.lead = lead;
	if (!lead)
		rc = iocom_err_set(&err, -ENOMEM, "out of memory");
	else if (client_has_output(c))
		rc = iocom_err_set(&err, -EAGAIN,
				   "the job does not begin: its client has earlier answers to read "
				   "first");
	if (!rc)
		rc = config->begin(config->stream_arg, c->fd, &placed, &c->who, &err);
	free(lead);
	json_decref(answer);
	start_ended(c, rc, &err);
}

static bool in_time(struct client *c)
{
	const struct base *base = c->clients->config.base;

	if (client_may_ask(c))
		return true;
	base->counters->requests_refused_rate++;
	client_error(c,
		     "you ask the agent more than %u times a second, or too often for long lists, "
		     "which is the limit per user here (user_requests_per_s); ask more slowly",
		     base->set->user_requests_per_s);
	return false;
}

static void clients_obey(struct client *c, uint8_t type)
{
	const struct clients_config *config = &c->clients->config;
	msgpack_unpacked map;
	int rc;

	if ((type == FRAME_START || type == FRAME_ATTACH) && !c->started) {
		start_job(c, type);
		return;
	}
	c->started = true;
	rc = type != FRAME_REQUEST ? -EBADMSG : unpack_map(&map, c->in, c->in_length);
	if (rc) {
		garbage(c, rc == -E2BIG
				   ? "the request has too many values"
				   : "the agent expects a request: a MessagePack map with \"op\"");
		return;
	}
	c->busy = true;
	config->request(config->request_arg, c, &map.data);
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
	client_charge(c, clock_cpu_ns() - before_ns);
}

/* Reads at most WANT more bytes.  Returns 1: some; 0: none now; -1: the client is gone. */
static int clients_take(struct client *c, uint8_t *at, size_t want, size_t *have)
{
	ssize_t n = recv(c->fd, at, want, MSG_DONTWAIT);

	if (n > 0) {
		*have += (size_t)n;
		c->active_ns = loop_boot_ns(c->clients->config.base->loop);
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

/* Frees a long request instead of holding it while its connection is open. */
static void forget_input(struct client *c)
{
	if (c->in_room <= CLIENT_REQUEST_MAX / 16)
		return;
	free(c->in);
	c->in = NULL;
	c->in_room = 0;
}

/* The buffer grows with the bytes received, not with the announced length. */
static int clients_take_payload(struct client *c)
{
	size_t want = c->in_length - c->in_have;

	if (c->in_have == c->in_room || !c->in) {
		size_t more =
			array_room(c->in_room, c->in_have + 1, CLIENT_FIRST_BUFFER) - c->in_room;

		if (!client_may_hold(c, more)) {
			client_crowded_out(c);
			return -1;
		}
		if (array_reserve(c->in, c->in_room, c->in_have + 1, CLIENT_FIRST_BUFFER)) {
			garbage(c, "out of memory");
			return -1;
		}
	}
	if (want > c->in_room - c->in_have)
		want = c->in_room - c->in_have;
	return clients_take(c, c->in + c->in_have, want, &c->in_have);
}

/* --- users that take too much of the loop's time --------------------------------------- */

/* Reads nothing more of C until its user may have some of the loop's time again. */
static void clients_park(struct client *c)
{
	struct clients *clients = c->clients;
	const struct base *base = clients->config.base;
	uint64_t wait_ns = loop_share_wait_ns(base->shares, c->who.uid);

	c->parked = true;
	base->counters->requests_delayed++;
	client_events(c);
	if (!clients->unpark.active || clients->unpark.due_ns > loop_boot_ns(base->loop) + wait_ns)
		loop_start(base->loop, &clients->unpark, wait_ns);
}

static void clients_unpark(void *arg)
{
	struct clients *clients = arg;
	const struct base *base = clients->config.base;
	uint64_t least_ns = UINT64_MAX;

	for (struct client *c = clients->first; c; c = c->next) {
		uint64_t wait_ns;
		uid_t before;

		if (c->dead || !c->parked)
			continue;
		before = client_enter(c);
		wait_ns = loop_share_wait_ns(base->shares, c->who.uid);
		if (!wait_ns) {
			c->parked = false;
			c->active_ns = loop_boot_ns(base->loop);
			client_events(c);
		} else if (wait_ns < least_ns) {
			least_ns = wait_ns;
		}
		client_leave(base, before);
	}
	if (least_ns != UINT64_MAX)
		loop_start(base->loop, &clients->unpark, least_ns);
}

static void clients_serve(struct client *c, uint32_t what);

/* All that is done here for a user is charged, from the first byte on. */
static void clients_ready(void *arg, uint32_t what)
{
	struct client *c = arg;
	const struct base *base = c->clients->config.base;
	uid_t before = client_enter(c);

	if (what & (EPOLLERR | EPOLLHUP))
		client_drop(c);
	else if (loop_share_spent(base->shares, c->who.uid))
		clients_park(c);
	else
		clients_serve(c, what);
	client_leave(base, before);
}

static void clients_serve(struct client *c, uint32_t what)
{
	int rc = 1;

	if (what & EPOLLOUT)
		client_flush(c);
	/* A half-closed client still reads the answer it waits for. */
	if (!c->dead && (what & EPOLLRDHUP) && !c->half) {
		c->half = true;
		if (c->streams)
			for (const struct clients_watch *w = c->clients->watches; w; w = w->next)
				if (w->half)
					w->half(w->arg, c);
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
		break; /* one request at a time: other clients get their turn first */
	}
}

/* --- the listener ----------------------------------------------------------------- */

static int clients_room(const struct clients *clients, uid_t uid, struct iocom_err *err)
{
	static const struct places places = {
		.what = "connections to the agent",
		.limit = "clients",
		.one = "clients",
		.max = CLIENTS_MAX,
		.of_root = CLIENTS_OF_ROOT,
		.of_one = CLIENTS_OF_ONE,
	};
	size_t own = 0;

	for (const struct client *c = clients->first; c; c = c->next)
		own += !c->dead && c->who.uid == uid;
	return places_ask(&places, uid, clients->count, own, clients->config.base->counters, err);
}

static void log_crowded(struct clients *clients, uid_t uid)
{
	if (!clients_is_time(clients, &clients->crowded_ns))
		return;
	log_write(clients->config.base->log, LOG_L_WARNING,
		  "no room for a connection of uid %d: %zu are open; the limits are %d in all and "
		  "%d per user",
		  (int)uid, clients->count, CLIENTS_MAX, CLIENTS_OF_ONE);
}

struct client *clients_adopt(struct clients *clients, int fd, const struct ucred *who)
{
	const struct base *base = clients->config.base;
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->clients = clients;
	c->fd = fd;
	c->who = *who;
	c->active_ns = loop_boot_ns(base->loop);
	c->entry = (struct loop_fd){.fd = fd, .ready = clients_ready, .arg = c};
	if (loop_add(base->loop, &c->entry, EPOLLIN | EPOLLRDHUP)) {
		free(c);
		return NULL;
	}
	c->next = clients->first;
	clients->first = c;
	clients->count++;
	return c;
}

struct client *clients_remote(struct clients *clients, uid_t uid, gid_t gid, clients_told *told,
			      void *arg)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->clients = clients;
	c->fd = -1;
	c->who = (struct ucred){.uid = uid, .gid = gid};
	c->active_ns = loop_boot_ns(clients->config.base->loop);
	c->busy = c->started = true;
	c->told = told;
	c->told_arg = arg;
	c->next = clients->first;
	clients->first = c;
	clients->count++;
	return c;
}

static void refuse_connection(int fd, const char *why)
{
	frame_write(fd, FRAME_ERROR, why, (uint32_t)strlen(why));
	close(fd);
}

static void clients_came(void *arg, int fd, const struct sockaddr *from, socklen_t length)
{
	struct clients *clients = arg;
	const struct base *base = clients->config.base;
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t n = sizeof(who);
	struct iocom_err err = {0};
	int rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n);
	uid_t before = loop_share_enter(base->shares, who.uid);

	(void)from;
	(void)length;
	if (rc || clients_room(clients, who.uid, &err)) {
		base->counters->clients_refused++;
		log_crowded(clients, who.uid);
		refuse_connection(fd, rc ? "the kernel does not tell who connects" : err.text);
	} else if (who.uid != 0 && descriptors_scarce(fd)) {
		base->counters->descriptors_refused++;
		if (clients_is_time(clients, &clients->scarce_ns))
			log_write(base->log, LOG_L_WARNING,
				  "no connection for uid %u: the last %d descriptors are for root "
				  "and the agent; raise its limit of open files",
				  (unsigned)who.uid, DESCRIPTORS_RESERVED);
		refuse_connection(fd, "the agent has no descriptor left for you; try again");
	} else if (!clients_adopt(clients, fd, &who)) {
		close(fd);
	}
	if (loop_share_spent(base->shares, who.uid))
		acceptor_rest(&clients->acceptor);
	loop_share_leave(base->shares, before);
}

static void sweep(void *arg)
{
	struct clients *clients = arg;
	uint64_t now = loop_boot_ns(clients->config.base->loop);

	for (struct client *c = clients->first; c; c = c->next) {
		uint64_t quiet = now - c->active_ns;
		bool stuck = c->out_end > c->out_start || c->header_have;

		if (c->dead || c->streams || c->parked || c->told || (c->busy && !stuck) ||
		    (c->watches && !stuck))
			continue;
		if (quiet < (stuck ? CLIENT_STUCK_NS : IDLE_NS))
			continue;
		clients->config.base->counters->clients_dropped++;
		client_drop(c);
	}
	loop_start(clients->config.base->loop, &clients->sweep, SWEEP_NS);
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
	unlink(clients->path); /* the lock proves that its agent is gone */
	clients->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (clients->fd < 0 || bind(clients->fd, (struct sockaddr *)&sa, sizeof(sa)) ||
	    chmod(clients->path, 0666) || listen(clients->fd, 128))
		return iocom_err_set(err, -errno, "cannot listen at %s: %s", clients->path,
				     strerror(errno));
	return 0;
}

int clients_new(struct clients **out, const struct clients_config *config, struct iocom_err *err)
{
	const struct base *base = config->base;
	struct clients *clients = calloc(1, sizeof(*clients));
	int rc;

	if (!clients)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	clients->config = *config;
	clients->fd = -1;
	snprintf(clients->path, sizeof(clients->path), "%s/iocom.sock", base->set->run_dir);
	clients->sweep = (struct loop_timer){.fire = sweep, .arg = clients, .lax_ns = SWEEP_NS / 4};
	clients->reap = (struct loop_timer){.fire = clients_reap, .arg = clients};
	clients->unpark = (struct loop_timer){.fire = clients_unpark, .arg = clients};
	rc = clients_listen_at(clients, err);
	if (!rc) {
		clients->acceptor = (struct acceptor){.came = clients_came, .arg = clients};
		rc = acceptor_start(&clients->acceptor, base, clients->fd);
	}
	if (rc) {
		clients_free(clients);
		return rc;
	}
	loop_start(base->loop, &clients->sweep, SWEEP_NS);
	*out = clients;
	return 0;
}

void clients_watch(struct clients *clients, struct clients_watch *watch)
{
	watch->next = clients->watches;
	clients->watches = watch;
}

void clients_free(struct clients *clients)
{
	if (!clients)
		return;
	for (struct client *c = clients->first; c; c = c->next)
		client_drop(c);
	loop_cancel(clients->config.base->loop, &clients->sweep);
	loop_cancel(clients->config.base->loop, &clients->reap);
	loop_cancel(clients->config.base->loop, &clients->unpark);
	clients_reap(clients);
	acceptor_stop(&clients->acceptor);
	if (clients->fd >= 0) {
		close(clients->fd);
		unlink(clients->path);
	}
	free(clients);
}
