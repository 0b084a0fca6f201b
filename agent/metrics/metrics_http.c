/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Serves the page of metrics; see metrics_http.h.
 *
 * libmicrohttpd speaks HTTP; we run its thread, because its own timeout counts idle time only: a
 * client that sends a byte a second would stay for ever.  Only this thread uses connections and a
 * page's text; only the pointer to the current page is shared with the agent.  We accept the
 * connections, too: libmicrohttpd tries again without a pause when there is no descriptor left.
 */
#include "agent/metrics/metrics_http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/acceptor.h"

#define PATH	     "/metrics"
#define TEXT_TYPE    "text/plain; version=0.0.4; charset=utf-8"
#define BACKLOG	     64
#define WAKE_MS	     100 /* while there are connections to check */
#define PAUSE_MS     100 /* when no connection can be accepted */
#define NUMBER_CHARS 8

/* A page, and its text once a client asked for it. */
struct shown {
	struct metrics_page *page;
	struct MHD_Response *response;
	unsigned references;
};

struct connection {
	int fd;				/* -1: free */
	uint64_t began_ms, answered_ms; /* 0: the request is incomplete */
	bool cut;
};

struct metrics_http {
	struct MHD_Daemon *daemon;
	int listener, events; /* events: wakes the thread to stop it */
	uint16_t port;
	pthread_t thread;
	bool running;
	struct connection connections[METRICS_HTTP_CONNECTIONS];
	size_t nconnections;
	uint64_t paused_ms;   /* no connection is accepted before this time */
	pthread_mutex_t lock; /* guards `current` and all references */
	struct shown *current;
	_Atomic uint64_t answered, refused, cut;
};

static uint64_t metrics_http_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- what is shown ------------------------------------------------------------------ */

static void shown_drop(struct metrics_http *h, struct shown *s)
{
	bool last;

	if (!s)
		return;
	pthread_mutex_lock(&h->lock);
	last = --s->references == 0;
	pthread_mutex_unlock(&h->lock);
	if (!last)
		return;
	if (s->response)
		MHD_destroy_response(s->response);
	metrics_page_free(s->page);
	free(s);
}

static struct shown *shown_take(struct metrics_http *h)
{
	struct shown *s;

	pthread_mutex_lock(&h->lock);
	s = h->current;
	if (s)
		s->references++;
	pthread_mutex_unlock(&h->lock);
	return s;
}

int metrics_http_show(struct metrics_http *h, struct metrics_page *page)
{
	struct shown *s = calloc(1, sizeof(*s)), *old;

	if (!s) {
		metrics_page_free(page);
		return -ENOMEM;
	}
	s->page = page;
	s->references = 1;
	pthread_mutex_lock(&h->lock);
	old = h->current;
	h->current = s;
	pthread_mutex_unlock(&h->lock);
	shown_drop(h, old);
	return 0;
}

void metrics_http_served(struct metrics_http *h, struct metrics_served *out)
{
	out->answered = h->answered;
	out->refused = h->refused;
	out->cut = h->cut;
}

/* --- answers ------------------------------------------------------------------------- */

/*
 * Each connection serves one request, so that the limits on a request's time bound the connection.
 */
static void metrics_http_describe(struct MHD_Response *response, const char *type)
{
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result metrics_http_refuse(struct metrics_http *h, struct MHD_Connection *c,
					   unsigned status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result rc;

	h->refused++;
	if (!response)
		return MHD_NO;
	metrics_http_describe(response, "text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return rc;
}

static int render(struct shown *s)
{
	size_t length;
	char *text;

	if (metrics_page_render(s->page, &text, &length))
		return -ENOMEM;
	s->response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
	if (!s->response) {
		free(text);
		return -ENOMEM;
	}
	metrics_http_describe(s->response, TEXT_TYPE);
	return 0;
}

static enum MHD_Result metrics_http_answer(struct metrics_http *h, struct MHD_Connection *c)
{
	struct shown *s = shown_take(h);
	enum MHD_Result rc;

	if (!s)
		return metrics_http_refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE,
					   "there is no reading yet\n");
	if (!s->response && render(s)) {
		shown_drop(h, s);
		return metrics_http_refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	}
	rc = MHD_queue_response(c, MHD_HTTP_OK, s->response);
	if (rc == MHD_YES)
		h->answered++;
	shown_drop(h, s);
	return rc;
}

static enum MHD_Result metrics_http_handle(void *arg, struct MHD_Connection *c, const char *url,
					   const char *method, const char *version,
					   const char *upload, size_t *upload_size, void **request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *connection = info ? info->socket_context : NULL;
	struct metrics_http *h = arg;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)request;
	if (connection)
		connection->answered_ms = metrics_http_now_ms();
	if (strcmp(url, PATH))
		return metrics_http_refuse(h, c, MHD_HTTP_NOT_FOUND,
					   "the metrics are at " PATH "\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return metrics_http_refuse(h, c, MHD_HTTP_METHOD_NOT_ALLOWED,
					   "GET and HEAD only\n");
	return metrics_http_answer(h, c);
}

/* --- connections --------------------------------------------------------------------- */

static void notify(void *arg, struct MHD_Connection *c, void **context,
		   enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct metrics_http *h = arg;
	struct connection *connection = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (connection) {
			connection->fd = -1;
			h->nconnections--;
		}
		*context = NULL;
		return;
	}
	for (size_t i = 0; info && i < METRICS_HTTP_CONNECTIONS; i++) {
		if (h->connections[i].fd >= 0)
			continue;
		h->connections[i] =
			(struct connection){info->connect_fd, metrics_http_now_ms(), 0, false};
		h->nconnections++;
		*context = &h->connections[i];
		return;
	}
}

/* libmicrohttpd notices the closed socket and ends the connection. */
static void cut_slow(struct metrics_http *h)
{
	uint64_t now = metrics_http_now_ms();
	/*
	 * When all connections are in use, the client waited in the listen queue and has already
	 * sent its request.
	 */
	uint64_t request_ms = h->nconnections < METRICS_HTTP_CONNECTIONS ? METRICS_HTTP_REQUEST_MS
									 : METRICS_HTTP_CROWDED_MS;

	for (size_t i = 0; i < METRICS_HTTP_CONNECTIONS; i++) {
		struct connection *c = &h->connections[i];
		uint64_t due = c->answered_ms ? c->answered_ms + METRICS_HTTP_ANSWER_MS
					      : c->began_ms + request_ms;

		if (c->fd < 0 || c->cut || now < due)
			continue;
		c->cut = true;
		h->cut++;
		shutdown(c->fd, SHUT_RDWR);
	}
}

/* Accepts as many connections as there is room for; others wait in the listen queue. */
static void metrics_http_accept(struct metrics_http *h)
{
	while (h->nconnections < METRICS_HTTP_CONNECTIONS) {
		struct sockaddr_storage from = {0};
		socklen_t n = sizeof(from);
		int fd = accept4(h->listener, (struct sockaddr *)&from, &n,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (acceptor_must_wait(errno))
				h->paused_ms = metrics_http_now_ms() + PAUSE_MS;
			return;
		}
		if (descriptors_scarce(fd)) {
			h->refused++;
			close(fd);
		} else if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&from, n) !=
			   MHD_YES) {
			return; /* it has closed the descriptor: out of memory */
		}
	}
}

/* Returns how long to wait; -1: until an event. */
static int patience(struct metrics_http *h, uint64_t now_ms)
{
	MHD_UNSIGNED_LONG_LONG wanted;
	int most = h->nconnections ? WAKE_MS : -1;

	if (now_ms < h->paused_ms)
		most = PAUSE_MS;
	if (MHD_get_timeout(h->daemon, &wanted) == MHD_YES && wanted < WAKE_MS)
		return (int)wanted;
	return most;
}

static void *metrics_http_serve(void *arg)
{
	struct metrics_http *h = arg;
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd p[3] = {{.fd = h->events, .events = POLLIN},
			      {.fd = info->epoll_fd, .events = POLLIN},
			      {.events = POLLIN}};

	for (;;) {
		uint64_t now = metrics_http_now_ms();
		bool room = h->nconnections < METRICS_HTTP_CONNECTIONS && now >= h->paused_ms;

		p[2].fd = room ? h->listener : -1; /* poll skips negative ones */
		poll(p, 3, patience(h, now));
		if (p[0].revents)
			return NULL;
		if (room && p[2].revents)
			metrics_http_accept(h);
		MHD_run(h->daemon);
		cut_slow(h);
	}
}

/* --- beginning and end ------------------------------------------------------------------ */

static int metrics_http_resolve(const char *address, uint16_t port, struct addrinfo **out)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				 .ai_socktype = SOCK_STREAM};
	char number[NUMBER_CHARS], plain[64];
	size_t n = strlen(address);
	bool brackets = n > 2 && address[0] == '[' && address[n - 1] == ']';

	if (!n || n >= sizeof(plain))
		return -EINVAL;
	snprintf(plain, sizeof(plain), "%.*s", (int)(n - 2 * brackets), address + brackets);
	snprintf(number, sizeof(number), "%u", port);
	return getaddrinfo(plain, number, &hints, out) ? -EINVAL : 0;
}

static int bind_to(struct metrics_http *h, const struct addrinfo *to)
{
	struct sockaddr_storage own = {0};
	socklen_t length = sizeof(own);
	char number[NUMBER_CHARS];
	int one = 1;

	h->listener = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->listener < 0)
		return -errno;
	(void)setsockopt(h->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(h->listener, to->ai_addr, to->ai_addrlen) || listen(h->listener, BACKLOG) ||
	    getsockname(h->listener, (struct sockaddr *)&own, &length))
		return -errno;
	if (getnameinfo((struct sockaddr *)&own, length, NULL, 0, number, sizeof(number),
			NI_NUMERICSERV))
		return -EINVAL;
	h->port = (uint16_t)atoi(number);
	return 0;
}

static int metrics_http_listen_at(struct metrics_http *h, const char *address, uint16_t port,
				  struct iocom_err *err)
{
	struct addrinfo *found;
	int rc = metrics_http_resolve(address, port, &found);

	if (rc)
		return iocom_err_set(err, rc, "metrics: '%.80s' is no numeric address", address);
	rc = bind_to(h, found);
	freeaddrinfo(found);
	if (rc == -EADDRINUSE)
		return iocom_err_set(err, rc,
				     "metrics: port %u at %s is in use; choose another with "
				     "--metrics-listen",
				     port, address);
	if (rc)
		return iocom_err_set(err, rc, "metrics: cannot listen at %s port %u: %s", address,
				     port, strerror(-rc));
	return 0;
}

static int metrics_http_start(struct metrics_http *h, struct iocom_err *err)
{
	int rc;

	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, metrics_http_handle, h,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)METRICS_HTTP_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)METRICS_HTTP_REQUEST_MAX,
		MHD_OPTION_NOTIFY_CONNECTION, notify, h, MHD_OPTION_END);
	if (!h->daemon)
		return iocom_err_set(err, -EIO, "metrics: cannot start the HTTP server");
	rc = -pthread_create(&h->thread, NULL, metrics_http_serve, h);
	if (rc)
		return iocom_err_set(err, rc, "metrics: cannot start a thread: %s", strerror(-rc));
	h->running = true;
	return 0;
}

int metrics_http_new(struct metrics_http **out, const char *address, uint16_t port,
		     struct iocom_err *err)
{
	struct metrics_http *h = calloc(1, sizeof(*h));
	int rc = 0;

	*out = NULL;
	if (!h)
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	for (size_t i = 0; i < METRICS_HTTP_CONNECTIONS; i++)
		h->connections[i].fd = -1;
	pthread_mutex_init(&h->lock, NULL);
	h->listener = -1;
	h->events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->events < 0)
		rc = iocom_err_set(err, -errno, "metrics: cannot make an eventfd: %s",
				   strerror(errno));
	if (!rc)
		rc = metrics_http_listen_at(h, address, port, err);
	if (!rc)
		rc = metrics_http_start(h, err);
	if (rc) {
		metrics_http_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

uint16_t metrics_http_port(const struct metrics_http *h)
{
	return h->port;
}

void metrics_http_free(struct metrics_http *h)
{
	int saved = errno;

	if (!h)
		return;
	if (h->running) {
		eventfd_write(h->events, 1);
		pthread_join(h->thread, NULL);
	}
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	shown_drop(h, h->current);
	if (h->listener >= 0)
		close(h->listener);
	if (h->events >= 0)
		close(h->events);
	pthread_mutex_destroy(&h->lock);
	free(h);
	errno = saved;
}
