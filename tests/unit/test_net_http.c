/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The server of /metrics, through its socket: methods, paths, slow, huge and many requests, and
 * pages that come late, never, or in a bad file.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/exposition.h"
#include "agent/metrics/metrics_listen.h"
#include "agent/metrics/metrics_page.h"
#include "agent/net/net_http.h"

#define PATIENCE_MS 20000 /* far above every limit of the server */
#define GET	    "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

struct fixture {
	struct net_http *http;
	struct metrics_jobs *jobs;
	uint16_t port;
	/* The part of root: it answers each want with the newest text, unless it is SILENT. */
	pthread_mutex_t lock;
	char *text;
	size_t length;
	_Atomic bool silent;
	_Atomic unsigned wants;
};

/* A file as root sends it. */
static int file_of(const char *text, size_t length)
{
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (write(fd, text, length) != (ssize_t)length ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK))
		abort(); /* not in cmocka's thread, perhaps */
	return fd;
}

static void page_wanted(void *arg)
{
	struct fixture *f = arg;

	f->wants++;
	if (f->silent)
		return;
	pthread_mutex_lock(&f->lock);
	if (net_http_show_fd(f->http, file_of(f->text, f->length)))
		abort();
	pthread_mutex_unlock(&f->lock);
}

/* TEXT, malloc'ed, is the newest page from now on. */
static void show_text(struct fixture *f, char *text, size_t length)
{
	pthread_mutex_lock(&f->lock);
	free(f->text);
	f->text = text;
	f->length = length;
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(net_http_show_fd(f->http, file_of(text, length)), 0);
}

static void show(struct fixture *f, uint64_t time_ns, unsigned long disks)
{
	struct iocom_disk *list = calloc(disks + 1, sizeof(*list));
	struct monitor_sample sample = {.time_ns = time_ns, .disks = list, .ndisks = disks};
	struct metrics_page *page;
	size_t length;
	char *text;

	for (unsigned long i = 0; i < disks; i++)
		snprintf(list[i].name, sizeof(list[i].name), "disk%lu", i);
	page = metrics_page_new(&sample, f->jobs);
	free(list);
	assert_non_null(page);
	strcpy(page->vector.name, "n1");
	assert_int_equal(metrics_page_render(page, &text, &length), 0);
	metrics_page_free(page);
	show_text(f, text, length);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct net_http_config config = {.want = page_wanted, .arg = f};
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	struct iocom_err err = {0};

	signal(SIGPIPE, SIG_IGN);
	f->jobs = metrics_jobs_new(4);
	f->text = calloc(1, 1);
	pthread_mutex_init(&f->lock, NULL);
	*state = f;
	if (metrics_listen(&config.listener, "127.0.0.1", 0, &err) ||
	    getsockname(config.listener, (struct sockaddr *)&own, &length))
		return -1;
	f->port = ntohs(own.sin_port);
	return net_http_new(&f->http, &config, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	net_http_free(f->http);
	metrics_jobs_free(f->jobs);
	pthread_mutex_destroy(&f->lock);
	free(f->text);
	free(f);
	return 0;
}

static int dial(const struct fixture *f)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(f->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void pause_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000l};

	nanosleep(&t, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Returns everything until the server closes, malloc'ed, and closes this end. */
static char *drain(int fd)
{
	size_t used = 0, room = 1 << 16;
	char *text = malloc(room);

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) != 1)
			fail_msg("the server keeps silent after %zu bytes", used);
		n = read(fd, text + used, room - used - 1);
		if (n <= 0)
			break;
		used += (size_t)n;
		if (room - used < 4096) {
			char *more = realloc(text, room *= 2);

			assert_non_null(more);
			text = more;
		}
	}
	text[used] = 0;
	close(fd);
	return text;
}

static char *ask(const struct fixture *f, const char *request)
{
	int fd = dial(f);

	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	return drain(fd);
}

static void assert_status(char *answer, const char *status)
{
	if (strncmp(answer, status, strlen(status)))
		fail_msg("expected %s, got %.60s", status, answer);
	free(answer);
}

static struct net_http_counts served(const struct fixture *f)
{
	struct net_http_counts s;

	net_http_served(f->http, &s);
	return s;
}

static void test_page(void **state)
{
	struct fixture *f = *state;
	char *answer, *body, why[EXPOSITION_WHY];

	assert_status(ask(f, GET), "HTTP/1.1 503"); /* the server refused before it read anything */
	show(f, 1000000000, 1);
	answer = ask(f, GET);
	assert_non_null(strstr(answer, "HTTP/1.1 200"));
	assert_non_null(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
	body = strstr(answer, "\r\n\r\n") + 4;
	if (exposition_check(body, why) < 50)
		fail_msg("%s", why);
	assert_true(exposition_value(body, "iocom_reading_time_seconds{node=\"n1\"}") == 1);
	free(answer);
	show(f, 2000000000, 1);
	answer = ask(f, GET);
	assert_non_null(strstr(answer, "iocom_reading_time_seconds{node=\"n1\"} 2.000000000\n"));
	free(answer);
	assert_int_equal(served(f).answered, 2);
}

static void test_methods_and_paths(void **state)
{
	struct fixture *f = *state;
	char *answer;

	show(f, 1, 1);
	answer = ask(f, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_non_null(strstr(answer, "HTTP/1.1 200"));
	assert_non_null(strstr(answer, "Content-Length: "));
	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n"); /* the answer has no body */
	free(answer);
	assert_status(ask(f, "GET /metrics?x=y HTTP/1.0\r\n\r\n"), "HTTP/1.1 200");
	assert_status(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
	assert_status(ask(f, "GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
	assert_status(ask(f, "GET /../metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
	answer = ask(f, "DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_non_null(strstr(answer, "Allow: GET, HEAD"));
	assert_status(answer, "HTTP/1.1 405");
	/* A request with a body, of which the server reads nothing. */
	assert_status(ask(f, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
		      "HTTP/1.1 405");
	assert_int_equal(served(f).refused, 5);
	assert_int_equal(served(f).answered, 2);
}

static void test_huge_and_garbage(void **state)
{
	struct fixture *f = *state;
	static const char head[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: ";
	size_t size = 256 * 1024;
	char *huge = malloc(size + 1), *answer;

	show(f, 1, 1);
	memset(huge, 'a', size);
	huge[size] = 0;
	memcpy(huge, head, sizeof(head) - 1);
	for (int kind = 0; kind < 2; kind++) {
		int fd = dial(f);

		if (kind) /* the request line itself is too long */
			memset(huge + 5, 'a', sizeof(head));
		/* The server may close while we still write. */
		(void)!write(fd, huge, size);
		answer = drain(fd);
		assert_null(strstr(answer, " 200 "));
		free(answer);
	}
	free(huge);
	answer = ask(f, "\x16\x03\x01\x02\r\n\r\n");
	assert_null(strstr(answer, " 200 "));
	free(answer);
	assert_status(ask(f, GET), "HTTP/1.1 200");
}

/* A byte now and then is not idle, but the request takes too long: it is cut. */
static void test_slow_request(void **state)
{
	struct fixture *f = *state;
	const char *text = GET;
	struct timespec pause = {.tv_nsec = 200000000};
	int fd = dial(f), sent = 0;
	char *answer;

	show(f, 1, 1);
	for (; text[sent + 1]; sent++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 0) == 1)
			break;
		(void)!write(fd, text + sent, 1);
		nanosleep(&pause, NULL);
	}
	assert_true(text[sent + 1] !=
		    0); /* the request cannot become complete: 37 bytes take 7 s */
	assert_true(sent > 3);
	answer = drain(fd);
	assert_string_equal(answer, "");
	free(answer);
	assert_int_equal(served(f).cut, 1);
	assert_int_equal(served(f).answered, 0);
	assert_status(ask(f, GET), "HTTP/1.1 200");
}

/* The client does not take its answer: others are served meanwhile, then it is cut. */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	struct timespec pause = {.tv_nsec = 100000000};
	int fd, small = 4096;

	show(f, 1, 8000); /* some 5 MB: more than sockets hold */
	fd = dial(f);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(write(fd, GET, strlen(GET)), strlen(GET));
	for (int i = 0; i < 200 && served(f).answered < 1; i++)
		nanosleep(&pause, NULL);
	show(f, 2, 1); /* the page being sent does not change */
	assert_status(ask(f, GET), "HTTP/1.1 200");
	assert_int_equal(served(f).cut, 0);
	for (int i = 0; i < PATIENCE_MS / 100 && served(f).cut < 1; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(served(f).cut, 1);
	close(fd);
}

/* All allowed connections are silent, and more clients wait: all that ask are served. */
static void test_many(void **state)
{
	struct fixture *f = *state;
	int silent[NET_HTTP_CONNECTIONS], asking[3 * NET_HTTP_CONNECTIONS];

	show(f, 1, 1);
	for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++)
		silent[i] = dial(f);
	for (size_t i = 0; i < 3 * NET_HTTP_CONNECTIONS; i++) {
		asking[i] = dial(f);
		assert_int_equal(write(asking[i], GET, strlen(GET)), strlen(GET));
	}
	for (size_t i = 0; i < 3 * NET_HTTP_CONNECTIONS; i++)
		assert_status(drain(asking[i]), "HTTP/1.1 200");
	for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++)
		free(drain(silent[i]));
	assert_int_equal(served(f).answered, 3 * NET_HTTP_CONNECTIONS);
	assert_int_equal(served(f).cut, NET_HTTP_CONNECTIONS);
}

/* Many silent clients are ahead in the queue: a client that asks is served before it gives up. */
static void test_crowd_of_silent(void **state)
{
	struct fixture *f = *state;
	int silent[4 * NET_HTTP_CONNECTIONS];
	struct timespec began, ended;

	show(f, 1, 1);
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		silent[i] = dial(f);
	clock_gettime(CLOCK_MONOTONIC, &began);
	assert_status(ask(f, GET), "HTTP/1.1 200");
	clock_gettime(CLOCK_MONOTONIC, &ended);
	/* All ahead of us cut after the limit of a request, 16 at a time, would be 8 s on any
	 * machine; Prometheus waits 10. */
	assert_true((ended.tv_sec - began.tv_sec) * 1000 +
			    (ended.tv_nsec - began.tv_nsec) / 1000000 <
		    (long)(sizeof(silent) / sizeof(silent[0]) / NET_HTTP_CONNECTIONS) *
			    NET_HTTP_REQUEST_MS);
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		close(silent[i]);
}

/* The server ends while clients are connected, and in the middle of an answer. */
static void test_end_with_clients(void **state)
{
	struct fixture *f = *state;
	int idle, busy;

	show(f, 1, 8000);
	idle = dial(f);
	busy = dial(f);
	assert_int_equal(write(busy, GET, strlen(GET)), strlen(GET));
	for (int i = 0; i < 200 && served(f).answered < 1; i++)
		usleep(50000);
	assert_int_equal(served(f).answered, 1);
	net_http_free(f->http);
	f->http = NULL;
	free(drain(idle));
	free(drain(busy));
}

/* Starts N requests, which are here when this returns: an answer to a later one proves it. */
static void begin_requests(const struct fixture *f, int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fds[i] = dial(f);
		assert_int_equal(write(fds[i], GET, strlen(GET)), strlen(GET));
	}
	assert_status(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
}

static void until_wanted(struct fixture *f, unsigned wants)
{
	for (int i = 0; i < PATIENCE_MS / 10 && f->wants < wants; i++)
		pause_ms(10);
	assert_int_equal(f->wants, wants);
}

/* Many clients wait for the page, which is wanted once; all get the one that comes. */
static void test_one_want_for_many(void **state)
{
	struct fixture *f = *state;
	int asking[NET_HTTP_CONNECTIONS - 1];
	size_t n = sizeof(asking) / sizeof(asking[0]);

	f->silent = true;
	begin_requests(f, asking, n);
	until_wanted(f, 1);
	for (size_t i = 0; i < n; i++) {
		struct pollfd p = {.fd = asking[i], .events = POLLIN};

		assert_int_equal(poll(&p, 1, 0), 0);
	}
	show(f, 3000000000, 1);
	for (size_t i = 0; i < n; i++) {
		char *answer = drain(asking[i]);

		assert_non_null(strstr(answer, "reading_time_seconds{node=\"n1\"} 3.000000000\n"));
		free(answer);
	}
	assert_int_equal(f->wants, 1);
	assert_int_equal(served(f).answered, n);
}

/* HEAD and HTTP/1.0 wait, too, and so does one with a body that nobody reads. */
static void test_all_kinds_wait(void **state)
{
	static const char *const requests[] = {
		"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics?x=y HTTP/1.0\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc"};
	struct fixture *f = *state;
	int asking[3];

	f->silent = true;
	for (size_t i = 0; i < 3; i++) {
		asking[i] = dial(f);
		assert_int_equal(write(asking[i], requests[i], strlen(requests[i])),
				 strlen(requests[i]));
	}
	until_wanted(f, 1);
	assert_status(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
	show(f, 1, 1);
	for (size_t i = 0; i < 3; i++)
		assert_status(drain(asking[i]), "HTTP/1.1 200");
}

/* A fresh page serves all who ask; an old one is asked for anew. */
static void test_fresh_page(void **state)
{
	struct fixture *f = *state;
	uint64_t began, took;

	show(f, 1, 1);
	began = now_ms();
	for (int i = 0; i < 100; i++)
		assert_status(ask(f, GET), "HTTP/1.1 200");
	took = now_ms() - began;
	assert_true(f->wants <= 1 + took / NET_HTTP_FRESH_MS);
	for (unsigned i = 0; i < 3; i++) {
		unsigned wants = f->wants;

		pause_ms(NET_HTTP_FRESH_MS + 10);
		assert_status(ask(f, GET), "HTTP/1.1 200");
		assert_int_equal(f->wants, wants + 1);
	}
}

/* Root keeps silent: a client is told so, even if there is an old page; the next one asks again. */
static void test_no_page_in_time(void **state)
{
	struct fixture *f = *state;

	show(f, 1, 1);
	assert_status(ask(f, GET), "HTTP/1.1 200");
	f->silent = true;
	f->wants = 0;
	pause_ms(NET_HTTP_FRESH_MS + 10);
	for (unsigned i = 1; i <= 2; i++) {
		uint64_t began = now_ms();
		char *answer = ask(f, GET);

		assert_true(now_ms() - began >= NET_HTTP_WAIT_MS);
		assert_non_null(strstr(answer, "HTTP/1.1 503"));
		assert_non_null(strstr(answer, "no page in time"));
		free(answer);
		assert_int_equal(f->wants, i);
	}
	assert_int_equal(served(f).refused, 2);
	assert_int_equal(served(f).cut, 0);
	f->silent = false;
	assert_status(ask(f, GET), "HTTP/1.1 200");
}

/* Whatever the descriptor is, it is closed, and the old page answers who waits for a new one. */
static void bad_page(struct fixture *f, int fd, int expected)
{
	int asking;

	f->silent = true;
	f->wants = 0;
	pause_ms(NET_HTTP_FRESH_MS + 10);
	begin_requests(f, &asking, 1);
	until_wanted(f, 1);
	assert_int_equal(net_http_show_fd(f->http, fd), expected);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_status(drain(asking), "HTTP/1.1 200");
}

static void test_bad_page(void **state)
{
	struct fixture *f = *state;
	int ends[2], large = memfd_create("large", MFD_CLOEXEC);

	show(f, 1, 1);
	bad_page(f, -1, -EBADF);
	assert_int_equal(pipe(ends), 0);
	bad_page(f, ends[0], -EINVAL);
	close(ends[1]);
	bad_page(f, open("/", O_RDONLY | O_DIRECTORY), -EINVAL);
	bad_page(f, open("/dev/zero", O_RDONLY), -EINVAL);
	assert_int_equal(ftruncate(large, NET_HTTP_PAGE_MAX + 1), 0);
	bad_page(f, large, -EFBIG);
	/* A file that says it is longer than it is. */
	bad_page(f, open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY), -EIO);
	/* A good page and then a bad one, before the server has looked: the good one counts. */
	show(f, 2000000000, 1);
	assert_int_equal(net_http_show_fd(f->http, -1), -EBADF);
	f->silent = false;
	{
		char *answer = ask(f, GET);

		assert_non_null(strstr(answer, "reading_time_seconds{node=\"n1\"} 2.000000000\n"));
		free(answer);
	}
}

/* What is sent does not change while a slow client reads it, whatever comes meanwhile. */
static void test_page_replaced(void **state)
{
	struct fixture *f = *state;
	char *answer, *body, *expected;
	size_t length;
	int fd;

	show(f, 1, 8000);
	fd = dial(f);
	length = f->length;
	expected = malloc(length);
	memcpy(expected, f->text, length);
	assert_int_equal(write(fd, GET, strlen(GET)), strlen(GET));
	for (int i = 0; i < 200 && served(f).answered < 1; i++)
		pause_ms(50);
	for (uint64_t i = 2; i < 6; i++) {
		show(f, i * 1000000000, i);
		assert_status(ask(f, GET), "HTTP/1.1 200");
	}
	answer = drain(fd);
	body = strstr(answer, "\r\n\r\n") + 4;
	assert_int_equal(strlen(body), length);
	assert_memory_equal(body, expected, length);
	free(answer);
	free(expected);
	assert_int_equal(served(f).cut, 0);
}

/* What libmicrohttpd refuses by itself, and who leaves without a request, is counted, too. */
static void test_no_request(void **state)
{
	struct fixture *f = *state;

	close(dial(f));
	free(ask(f, "\x16\x03\x01\x02\r\n\r\n"));
	for (int i = 0; i < PATIENCE_MS / 10 && served(f).refused < 2; i++)
		pause_ms(10);
	assert_int_equal(served(f).refused, 2);
	assert_int_equal(served(f).cut, 0);
	assert_int_equal(f->wants, 0);
}

/* Many clients leave while they wait: their places are free when the page comes or is late. */
static void test_waiting_leave(void **state)
{
	struct fixture *f = *state;
	int asking[NET_HTTP_CONNECTIONS];

	f->silent = true;
	for (unsigned round = 1; round <= 2; round++) {
		for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++) {
			asking[i] = dial(f);
			assert_int_equal(write(asking[i], GET, strlen(GET)), strlen(GET));
		}
		until_wanted(f, round);
		for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++)
			close(asking[i]);
		/* It finds a place only when those of the others are free. */
		assert_status(ask(f, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
	}
	f->silent = false;
	show(f, 1, 1);
	assert_status(ask(f, GET), "HTTP/1.1 200");
}

static void *show_many(void *arg)
{
	struct fixture *f = arg;
	static const char *const texts[] = {"a 1\n", "b 2\nb 2\n"};

	for (int i = 0; i < 500; i++) {
		const char *text = texts[i % 2];

		if (net_http_show_fd(f->http, file_of(text, strlen(text))))
			abort();
		if (i % 50 == 0 && net_http_show_fd(f->http, -1) != -EBADF)
			abort();
	}
	return NULL;
}

/* Pages come from several threads while clients ask: each answer is a whole page. */
static void test_many_pages(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[2];

	pthread_mutex_lock(&f->lock);
	free(f->text);
	f->text = strdup("c 3\n");
	f->length = 4;
	pthread_mutex_unlock(&f->lock);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, show_many, f), 0);
	for (int i = 0; i < 200; i++) {
		char *answer = ask(f, GET), *body = strstr(answer, "\r\n\r\n");

		assert_non_null(body);
		if (strcmp(body + 4, "a 1\n") && strcmp(body + 4, "b 2\nb 2\n") &&
		    strcmp(body + 4, "c 3\n"))
			fail_msg("got %s", answer);
		free(answer);
	}
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* --- with a filter of system calls, as in the network part -------------------------------- */

/*
 * All that the server needs when it has been started; the C library's malloc wants
 * sched_getaffinity.  Anything else ends the process.
 */
static const long filter_allows[] = {SYS_accept4,
				     SYS_brk,
				     SYS_clock_gettime,
				     SYS_close,
				     SYS_dup,
				     SYS_epoll_ctl,
				     SYS_epoll_pwait,
				     SYS_epoll_wait,
				     SYS_exit,
				     SYS_exit_group,
				     SYS_fcntl,
				     SYS_fstat,
				     SYS_futex,
				     SYS_getpid,
				     SYS_madvise,
				     SYS_mmap,
				     SYS_mprotect,
				     SYS_mremap,
				     SYS_munmap,
				     SYS_poll,
				     SYS_pread64,
				     SYS_prlimit64,
				     SYS_read,
				     SYS_recvfrom,
				     SYS_rt_sigprocmask,
				     SYS_sched_getaffinity,
				     SYS_sendfile,
				     SYS_sendmsg,
				     SYS_sendto,
				     SYS_setsockopt,
				     SYS_shutdown,
				     SYS_write,
				     SYS_writev};

/* `stat` of a path is refused, as in the network part; only that of a descriptor is not. */
static int filter_set(void)
{
	struct sock_filter code[2 * sizeof(filter_allows) / sizeof(filter_allows[0]) + 8];
	struct sock_fprog program = {.filter = code};
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(filter_allows) / sizeof(filter_allows[0]); i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)filter_allows[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 4);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, args[3]));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AT_EMPTY_PATH, 0, 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			    &program);
}

/* A copy of the file in *ARG is the page. */
struct filtered {
	struct net_http *http;
	int page;
};

static void filtered_wanted(void *arg)
{
	struct filtered *c = arg;

	if (net_http_show_fd(c->http, dup(c->page)))
		_exit(3);
}

/* The child: serves until the other end of STOP is closed.  READY: the filter is set. */
static void serve_filtered(int listener, int page, int ready, int stop)
{
	struct filtered c = {.page = page};
	struct net_http_config config = {.listener = listener, .want = filtered_wanted, .arg = &c};
	struct iocom_err err = {0};
	char byte = 1;

	if (net_http_new(&c.http, &config, &err))
		_exit(1);
	if (filter_set())
		_exit(2);
	if (write(ready, &byte, 1) != 1)
		_exit(4);
	(void)!read(stop, &byte, 1);
	net_http_free(c.http);
	_exit(0);
}

static void test_filtered(void **state)
{
	struct fixture other = {0};
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	int ready[2], stop[2], listener, status, fds[NET_HTTP_CONNECTIONS];
	struct iocom_err err = {0};
	static char large[1 << 20];
	char byte;
	pid_t child;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("# a sanitizer needs system calls of its own\n");
	skip();
#endif
	memset(large, 'x', sizeof(large));
	assert_int_equal(metrics_listen(&listener, "127.0.0.1", 0, &err), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &length), 0);
	other.port = ntohs(own.sin_port);
	assert_int_equal(pipe(ready) | pipe(stop), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(stop[1]);
		serve_filtered(listener, file_of(large, sizeof(large)), ready[1], stop[0]);
	}
	close(listener);
	close(stop[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++) {
			fds[i] = dial(&other);
			if (i % 4 != 3) /* some stay silent and are cut */
				assert_int_equal(write(fds[i], GET, strlen(GET)), strlen(GET));
		}
		for (size_t i = 0; i < NET_HTTP_CONNECTIONS; i++) {
			char *answer = drain(fds[i]);

			if (i % 4 != 3 && strlen(answer) <= sizeof(large))
				fail_msg("round %d: got %zu bytes: %.100s", round, strlen(answer),
					 answer);
			free(answer);
		}
		assert_status(ask(&other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404");
		free(ask(&other, "\x16\x03\x01\x02\r\n\r\n"));
	}
	fds[0] = dial(&other); /* it is there at the end */
	close(stop[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("a system call that the filter forbids: signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(fds[0]);
	close(ready[0]);
}

/* The server ends while clients wait for a page, and one is on its way. */
static void test_end_with_waiting(void **state)
{
	struct fixture *f = *state;
	int asking[4];

	f->silent = true;
	begin_requests(f, asking, 4);
	until_wanted(f, 1);
	net_http_free(f->http);
	f->http = NULL;
	for (size_t i = 0; i < 4; i++)
		free(drain(asking[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_methods_and_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_huge_and_garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crowd_of_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_with_clients, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_want_for_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_kinds_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fresh_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_page_in_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_page_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_request, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_pages, setup, teardown),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test_setup_teardown(test_end_with_waiting, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
