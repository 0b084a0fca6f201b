/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Serves the page of metrics; see net_http.h.
 *
 * libmicrohttpd speaks HTTP; we run its thread, because its own timeout counts idle time only: a
 * client that sends a byte a second would stay for ever.  Only this thread uses connections and the
 * current page; a new page is handed over under a lock.  We accept the connections, too:
 * libmicrohttpd tries again without a pause when there is no descriptor left.
 *
 * A connection that waits for the page is suspended: libmicrohttpd looks at it no more until it is
 * resumed, and then calls net_http_handle again.
 *
 * The text is copied and not mapped: root empties the file when it is old.
 */
#include "agent/net/net_http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/acceptor.h"
#include "agent/base/thread.h"

#define PATH	    "/metrics"
#define TEXT_TYPE   "text/plain; version=0.0.4; charset=utf-8"
#define WAKE_MS	    100 /* while there are connections to check */
#define PAUSE_MS    100 /* when no connection can be accepted */
#define STACK_BYTES (512u << 10)

struct connection {
	int fd; /* -1: free */
	enum { NET_HTTP_READING, NET_HTTP_WAITING, NET_HTTP_ANSWERING } phase;
	uint64_t since_ms; /* when the phase began */
	struct MHD_Connection *suspended;
	bool waited, late; /* late: no page came in time */
	bool cut;
};

/* A page on its way to the thread. */
struct delivery {
	bool came;   /* root has answered */
	bool usable; /* the text is there: none if LENGTH is 0 */
	char *text;
	size_t length;
};

struct net_http {
	struct net_http_config config;
	struct MHD_Daemon *daemon;
	int events; /* wakes the thread: a page came, or it is to stop */
	pthread_t thread;
	sem_t began; /* the thread is past the C library's own start */
	bool running;
	struct connection connections[NET_HTTP_CONNECTIONS];
	size_t nconnections;
	uint64_t paused_ms;	   /* no connection is accepted before this time */
	struct MHD_Response *page; /* NULL: there is no reading yet */
	uint64_t came_ms;	   /* when the last page came; 0: none did */
	uint64_t wanted_ms;	   /* since when one is under way; 0: none is */
	pthread_mutex_t lock;	   /* guards `delivery` */
	struct delivery delivery;
	_Atomic bool stopping;
	_Atomic uint64_t answered, refused, cut;
};

static uint64_t net_http_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void net_http_served(struct net_http *h, struct net_http_counts *out)
{
	out->answered = h->answered;
	out->refused = h->refused;
	out->cut = h->cut;
}

/* --- a page comes, in any thread ------------------------------------------------------ */

/* Reads all LENGTH bytes of FD, whose offset others may share. */
static int net_http_read_text(int fd, char *text, size_t length)
{
	for (size_t used = 0; used < length;) {
		ssize_t n = pread(fd, text + used, length - used, (off_t)used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		used += (size_t)n;
	}
	return 0;
}

static int net_http_read_page(int fd, struct delivery *out)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > NET_HTTP_PAGE_MAX)
		return -EFBIG;
	out->length = (size_t)st.st_size;
	out->text = malloc(out->length + 1);
	if (!out->text)
		return -ENOMEM;
	rc = net_http_read_text(fd, out->text, out->length);
	if (rc) {
		free(out->text);
		out->text = NULL;
		return rc;
	}
	out->usable = true;
	return 0;
}

int net_http_show_fd(struct net_http *h, int fd)
{
	struct delivery new = {.came = true};
	char *old = NULL;
	int rc = net_http_read_page(fd, &new);

	if (fd >= 0)
		close(fd);
	pthread_mutex_lock(&h->lock);
	h->delivery.came = true; /* a bad page leaves one that has not been taken yet */
	if (new.usable) {
		old = h->delivery.text;
		h->delivery = new;
	}
	pthread_mutex_unlock(&h->lock);
	free(old);
	eventfd_write(h->events, 1);
	return rc;
}

/* --- answers ------------------------------------------------------------------------- */

/*
 * Each connection serves one request, so that the limits on a request's time bound the connection.
 */
static void net_http_describe(struct MHD_Response *response, const char *type)
{
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result net_http_refuse(struct net_http *h, struct MHD_Connection *c,
				       unsigned status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result rc;

	h->refused++;
	if (!response)
		return MHD_NO;
	net_http_describe(response, "text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return rc;
}

/* C waits for the page.  Root is asked for it unless it has been, and may still answer. */
static enum MHD_Result net_http_wait(struct net_http *h, struct MHD_Connection *c,
				     struct connection *connection, uint64_t now)
{
	connection->phase = NET_HTTP_WAITING;
	connection->since_ms = now;
	connection->waited = true;
	connection->suspended = c;
	MHD_suspend_connection(c);
	if (h->wanted_ms && now < h->wanted_ms + NET_HTTP_WAIT_MS)
		return MHD_YES;
	h->wanted_ms = now;
	h->config.want(h->config.arg);
	return MHD_YES;
}

static enum MHD_Result net_http_answer(struct net_http *h, struct MHD_Connection *c,
				       struct connection *connection)
{
	uint64_t now = net_http_now_ms();
	enum MHD_Result rc;

	if (connection->late)
		return net_http_refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE,
				       "the agent gave no page in time; ask again later\n");
	if (!connection->waited && !(h->came_ms && now < h->came_ms + NET_HTTP_FRESH_MS))
		return net_http_wait(h, c, connection, now);
	if (!h->page)
		return net_http_refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE,
				       "there is no reading yet\n");
	rc = MHD_queue_response(c, MHD_HTTP_OK, h->page);
	if (rc == MHD_YES)
		h->answered++;
	return rc;
}

static enum MHD_Result net_http_handle(void *arg, struct MHD_Connection *c, const char *url,
				       const char *method, const char *version, const char *upload,
				       size_t *upload_size, void **request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *connection = info ? info->socket_context : NULL;
	struct net_http *h = arg;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)request;
	if (!connection)
		return MHD_NO;
	connection->phase = NET_HTTP_ANSWERING;
	connection->since_ms = net_http_now_ms();
	if (strcmp(url, PATH))
		return net_http_refuse(h, c, MHD_HTTP_NOT_FOUND, "the metrics are at " PATH "\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return net_http_refuse(h, c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
	return net_http_answer(h, c, connection);
}

/* --- connections --------------------------------------------------------------------- */

static void net_http_notify(void *arg, struct MHD_Connection *c, void **context,
			    enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct net_http *h = arg;
	struct connection *connection = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (connection) {
			/* It left, or libmicrohttpd refused what it sent. */
			if (connection->phase == NET_HTTP_READING && !connection->cut)
				h->refused++;
			*connection = (struct connection){.fd = -1};
			h->nconnections--;
		}
		*context = NULL;
		return;
	}
	for (size_t i = 0; info && i < NET_HTTP_CONNECTIONS; i++) {
		if (h->connections[i].fd >= 0)
			continue;
		h->connections[i] =
			(struct connection){.fd = info->connect_fd, .since_ms = net_http_now_ms()};
		h->nconnections++;
		*context = &h->connections[i];
		return;
	}
}

static uint64_t due_ms(const struct net_http *h, const struct connection *c)
{
	if (c->phase == NET_HTTP_ANSWERING)
		return c->since_ms + NET_HTTP_ANSWER_MS;
	/*
	 * When all connections are in use, the client waited in the listen queue and has already
	 * sent its request.
	 */
	return c->since_ms +
	       (h->nconnections < NET_HTTP_CONNECTIONS ? NET_HTTP_REQUEST_MS : NET_HTTP_CROWDED_MS);
}

/* libmicrohttpd notices the closed socket and ends the connection. */
static void cut_slow(struct net_http *h)
{
	uint64_t now = net_http_now_ms();

	for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++) {
		struct connection *c = &h->connections[i];

		if (c->fd < 0 || c->cut || c->phase == NET_HTTP_WAITING || now < due_ms(h, c))
			continue;
		c->cut = true;
		h->cut++;
		shutdown(c->fd, SHUT_RDWR);
	}
}

/* Those go on that have waited since SINCE_MS or before; LATE: without a new page. */
static void net_http_resume(struct net_http *h, uint64_t since_ms, bool late)
{
	for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++) {
		struct connection *c = &h->connections[i];

		if (c->fd < 0 || c->phase != NET_HTTP_WAITING || c->since_ms > since_ms)
			continue;
		c->phase = NET_HTTP_ANSWERING;
		c->since_ms = net_http_now_ms();
		c->late = late;
		MHD_resume_connection(c->suspended);
	}
}

/* An answer under way keeps the old page until it is sent. */
static void net_http_replace(struct net_http *h, struct delivery *new)
{
	struct MHD_Response *page = NULL;

	if (new->length) {
		page = MHD_create_response_from_buffer(new->length, new->text,
						       MHD_RESPMEM_MUST_FREE);
		if (!page) { /* out of memory: the old one stays */
			free(new->text);
			return;
		}
		net_http_describe(page, TEXT_TYPE);
	} else {
		free(new->text);
	}
	if (h->page)
		MHD_destroy_response(h->page);
	h->page = page;
}

/* Takes the page that root sent, if any, for all that wait. */
static void net_http_take(struct net_http *h)
{
	struct delivery new;

	pthread_mutex_lock(&h->lock);
	new = h->delivery;
	h->delivery = (struct delivery){0};
	pthread_mutex_unlock(&h->lock);
	if (!new.came)
		return;
	if (new.usable)
		net_http_replace(h, &new);
	h->wanted_ms = 0;
	h->came_ms = net_http_now_ms();
	net_http_resume(h, UINT64_MAX, false);
}

static void net_http_give_up(struct net_http *h)
{
	uint64_t now = net_http_now_ms();

	if (now >= NET_HTTP_WAIT_MS)
		net_http_resume(h, now - NET_HTTP_WAIT_MS, true);
}

/* True if ERROR of accept() is over: none waits, or one left before we took it. */
static bool net_http_passes(int error)
{
	return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

/* Accepts as many connections as there is room for; others wait in the listen queue. */
static void net_http_accept(struct net_http *h)
{
	for (size_t n = h->nconnections; n < NET_HTTP_CONNECTIONS; n++) {
		struct sockaddr_storage from = {0};
		socklen_t length = sizeof(from);
		int fd = accept4(h->config.listener, (struct sockaddr *)&from, &length,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (!net_http_passes(errno))
				h->paused_ms = net_http_now_ms() + PAUSE_MS;
			return;
		}
		if (descriptors_scarce(fd)) {
			h->refused++;
			close(fd);
		} else if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&from, length) !=
			   MHD_YES) {
			return; /* it has closed the descriptor: out of memory */
		}
	}
}

/* Returns how long to wait; -1: until an event. */
static int patience(struct net_http *h, uint64_t now_ms)
{
	MHD_UNSIGNED_LONG_LONG wanted;
	int most = h->nconnections ? WAKE_MS : -1;

	if (now_ms < h->paused_ms)
		most = PAUSE_MS;
	if (MHD_get_timeout(h->daemon, &wanted) == MHD_YES && wanted < WAKE_MS)
		return (int)wanted;
	return most;
}

static void *net_http_serve(void *arg)
{
	struct net_http *h = arg;
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd p[3] = {{.fd = h->events, .events = POLLIN},
			      {.fd = info->epoll_fd, .events = POLLIN},
			      {.events = POLLIN}};
	eventfd_t count;

	sem_post(&h->began);
	for (;;) {
		uint64_t now = net_http_now_ms();
		bool room = h->nconnections < NET_HTTP_CONNECTIONS && now >= h->paused_ms;

		p[2].fd = room ? h->config.listener : -1; /* poll skips negative ones */
		poll(p, 3, patience(h, now));
		eventfd_read(h->events, &count);
		if (h->stopping)
			return NULL;
		net_http_take(h);
		net_http_give_up(h);
		if (room && p[2].revents)
			net_http_accept(h);
		MHD_run(h->daemon);
		cut_slow(h);
	}
}

/* --- beginning and end ------------------------------------------------------------------ */

static int net_http_start(struct net_http *h, struct iocom_err *err)
{
	int rc;

	h->events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->events < 0)
		return iocom_err_set(err, -errno, "metrics: cannot make an eventfd: %s",
				     strerror(errno));
	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		net_http_handle, h, MHD_OPTION_CONNECTION_LIMIT, (unsigned)NET_HTTP_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)NET_HTTP_REQUEST_MAX,
		MHD_OPTION_NOTIFY_CONNECTION, net_http_notify, h, MHD_OPTION_END);
	if (!h->daemon)
		return iocom_err_set(err, -EIO, "metrics: cannot start the HTTP server");
	rc = thread_start(&h->thread, STACK_BYTES, net_http_serve, h);
	if (rc)
		return iocom_err_set(err, rc, "metrics: cannot start a thread: %s", strerror(-rc));
	h->running = true;
	while (sem_wait(&h->began) && errno == EINTR)
		;
	return 0;
}

int net_http_new(struct net_http **out, const struct net_http_config *config, struct iocom_err *err)
{
	struct net_http *h = calloc(1, sizeof(*h));
	int rc;

	*out = NULL;
	if (!h) {
		close(config->listener);
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	}
	h->config = *config;
	h->events = -1;
	for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++)
		h->connections[i].fd = -1;
	pthread_mutex_init(&h->lock, NULL);
	sem_init(&h->began, 0, 0);
	rc = net_http_start(h, err);
	if (rc) {
		net_http_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

void net_http_free(struct net_http *h)
{
	int saved = errno;

	if (!h)
		return;
	if (h->running) {
		h->stopping = true;
		eventfd_write(h->events, 1);
		pthread_join(h->thread, NULL);
		net_http_resume(h, UINT64_MAX, true); /* libmicrohttpd aborts if one is suspended */
	}
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	if (h->page)
		MHD_destroy_response(h->page);
	free(h->delivery.text);
	if (h->events >= 0)
		close(h->events);
	close(h->config.listener);
	sem_destroy(&h->began);
	pthread_mutex_destroy(&h->lock);
	free(h);
	errno = saved;
}
