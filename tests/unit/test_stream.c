/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How much of the loop's time strangers at the job port get, on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/cluster/stream.h"
#include "user/clock.h"
#include "user/frame.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)
#define MS	 CLOCK_NS_PER_MS
#define COST_NS	 (5 * MS)
#define SPAN_NS	 (3 * CLOCK_NS_PER_S) /* not longer: each connection uses up a port */
#define CROWD	 8
#define ATTEMPTS 20
#define ANNA	 1000

struct stand {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct loop_share share;
	struct streams *streams;
	uint64_t took_ns;
	uid_t known; /* whose start message it turns out to be */
};

/* A start message that takes COST_NS and is refused. */
static int check(void *arg, const void *payload, uint32_t length, char **credential,
		 struct iocom_err *err)
{
	struct stand *s = arg;
	uid_t before = loop_share_enter(&s->share, s->known);

	(void)payload;
	(void)length;
	*credential = NULL;
	assert_int_equal(before, LOOP_SHARE_STRANGERS);
	loop_spend(s->base.loop, COST_NS);
	s->took_ns += COST_NS;
	loop_share_leave(&s->share, before);
	return iocom_err_set(err, -EACCES, "no");
}

static int renew(void *arg, const void *payload, uint32_t length, uint8_t answer[RENEWAL_ANSWER],
		 struct iocom_err *err)
{
	(void)arg;
	(void)payload;
	(void)length;
	(void)answer;
	return iocom_err_set(err, -EACCES, "no");
}

static uint16_t free_port(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(sa);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	close(fd);
	return ntohs(sa.sin_port);
}

static int begin(void **state)
{
	static struct stand s;
	const struct stream_ports ports = {
		.arg = &s, .start = {.check = check}, .attach = {.check = check}, .renew = renew};
	int rc = -EADDRINUSE;

	s = (struct stand){.base = {.log = &s.log, .counters = &s.counters, .set = &s.set}};
	*state = &s;
	log_init(&s.log, "test");
	alarm(120);		   /* a test that waits in vain ends */
	s.log.level = LOG_L_ERROR; /* each refusal is a warning */
	strcpy(s.set.listen, "127.0.0.1");
	assert_int_equal(loop_new_virtual(&s.base.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	loop_share_init(&s.share, s.base.loop);
	s.base.shares = &s.share;
	s.known = LOOP_SHARE_STRANGERS;
	for (int i = 0; i < ATTEMPTS && rc == -EADDRINUSE; i++) { /* others take ports, too */
		s.set.port = (uint16_t)(free_port() - 2);
		rc = streams_new(&s.streams, &s.base, NULL, NULL, &ports, NULL);
	}
	return rc;
}

static int end(void **state)
{
	struct stand *s = *state;

	streams_free(s->streams);
	loop_free(s->base.loop);
	return 0;
}

/* Connects and sends a start message. */
static int comes(const struct stand *s)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_addr = {htonl(INADDR_LOOPBACK)},
				 .sin_port = htons((uint16_t)(s->set.port + 2))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(frame_write(fd, FRAME_START, "\x80", 1), 0);
	return fd;
}

static bool has_answer(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* A crowd whose members come again as soon as they are refused. */
static uint64_t crowd_comes(struct stand *s)
{
	uint64_t until = loop_boot_ns(s->base.loop) + SPAN_NS;
	int fds[CROWD];

	for (size_t i = 0; i < CROWD; i++)
		fds[i] = comes(s);
	while (loop_boot_ns(s->base.loop) < until) {
		loop_advance(s->base.loop, MS);
		for (size_t i = 0; i < CROWD; i++) {
			if (!has_answer(fds[i]))
				continue;
			close(fds[i]);
			fds[i] = comes(s);
		}
	}
	for (size_t i = 0; i < CROWD; i++)
		close(fds[i]);
	return s->took_ns;
}

static void test_strangers_get_half(void **state)
{
	struct stand *s = *state;
	uint64_t took = crowd_comes(s);

	assert_in_range(took, SPAN_NS / 2, SPAN_NS / 2 + LOOP_SHARE_BURST_NS + CROWD * COST_NS);
	assert_true(s->counters.requests_delayed > 0);
	assert_int_equal(s->counters.streams_accepted, 0);
}

/* A user whose lease was found is charged instead; its jobs do not wait here. */
static void test_known_ones_do_not(void **state)
{
	struct stand *s = *state;

	s->known = ANNA;
	assert_true(crowd_comes(s) > SPAN_NS * 3 / 4);
	assert_true(loop_share_spent(&s->share, ANNA));
	assert_false(loop_share_spent(&s->share, LOOP_SHARE_STRANGERS));
	assert_int_equal(s->counters.requests_delayed, 0);
}

/* One that leaves while it waits is gone when it is its turn, and its place is free. */
static void test_leaves_while_it_waits(void **state)
{
	struct stand *s = *state;
	uid_t before = loop_share_enter(&s->share, LOOP_SHARE_STRANGERS);
	int fd;

	loop_spend(s->base.loop, CLOCK_NS_PER_S);
	loop_share_leave(&s->share, before);
	fd = comes(s);
	while (!s->counters.requests_delayed)
		loop_advance(s->base.loop, MS);
	assert_int_equal(streams_count(s->streams), 1);
	assert_int_equal(s->took_ns, 0);
	close(fd);
	loop_advance(s->base.loop, 2 * CLOCK_NS_PER_S);
	while (streams_count(s->streams))
		loop_advance(s->base.loop, MS);
}

/* Sends up to MOST bytes of junk; returns how many went before the port disconnected. */
static size_t send_junk(struct stand *s, int fd, size_t most)
{
	static const char junk[16 << 10];
	size_t sent = 0;

	while (sent < most) {
		ssize_t n = send(fd, junk, sizeof(junk), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		loop_advance(s->base.loop, 1);
	}
	return sent;
}

/* A refused peer may send the rest of its message and read why; more than that ends its stream. */
static void test_junk_without_end(void **state)
{
	struct stand *s = *state;
	char sentence[256] = "";
	int honest, junk;

	honest = comes(s);
	while (!has_answer(honest))
		loop_advance(s->base.loop, MS);
	assert_true(send_junk(s, honest, FRAME_PAYLOAD_MAX / 2) >= FRAME_PAYLOAD_MAX / 2);
	assert_int_equal(streams_count(s->streams), 1);
	assert_true(recv(honest, sentence, sizeof(sentence) - 1, 0) > 0);
	assert_non_null(memmem(sentence, sizeof(sentence), "no", 2));
	junk = comes(s);
	while (!has_answer(junk))
		loop_advance(s->base.loop, MS);
	/* Besides what the port discards, the kernel's buffers take some. */
	assert_true(send_junk(s, junk, 64 * FRAME_PAYLOAD_MAX) < 16 * FRAME_PAYLOAD_MAX);
	assert_int_equal(streams_count(s->streams), 1);
	close(honest);
	close(junk);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_strangers_get_half),
		CASE(test_known_ones_do_not),
		CASE(test_leaves_while_it_waits),
		CASE(test_junk_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
