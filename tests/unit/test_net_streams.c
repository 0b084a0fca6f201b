/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Connections to the job port, in the network part: what comes in clear, who is let in, and what
 * root gets, which is played here, on a virtual clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/acceptor.h"
#include "agent/base/loop_share.h"
#include "agent/net/net_streams.h"
#include "user/channel/version.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/renewal.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)
#define MS	 CLOCK_NS_PER_MS
#define JOB	 "n2-1-7"
#define HEARD	 1024

/* What came to root. */
struct heard {
	struct gate_message message;
	uint8_t tail[STREAM_HELLO_MAX];
	size_t length;
	int fd; /* -1: none, or closed */
};

struct stand {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct loop_share share;
	struct gate *net, *root;
	struct net_streams *streams;
	struct sockaddr_in at;
	struct rlimit limit;
	struct heard heard[HEARD];
	size_t count; /* of those */
	bool broken;
};

/* As the network part's main file does. */
static void net_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			 const int *fds)
{
	struct stand *s = arg;

	(void)fds;
	if (m->type == GATE_STREAM_OVER)
		net_streams_over(s->streams, &m->stream_over, tail, n);
	else if (m->type == GATE_RENEWED)
		net_streams_renewed(s->streams, &m->renewed, tail, n);
}

static void root_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			  const int *fds)
{
	struct stand *s = arg;
	struct heard *h = &s->heard[s->count];

	assert_true(s->count < HEARD);
	assert_true(n <= sizeof(h->tail));
	h->message = *m;
	memcpy(h->tail, tail, n);
	h->length = n;
	h->fd = gate_fds_of(m) ? fds[0] : -1;
	s->count++;
}

static void is_broken(void *arg, const char *why)
{
	struct stand *s = arg;

	(void)why;
	s->broken = true;
}

static int listens(struct stand *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t n = sizeof(s->at);

	s->at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
	assert_int_equal(bind(fd, (struct sockaddr *)&s->at, sizeof(s->at)), 0);
	assert_int_equal(listen(fd, 256), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&s->at, &n), 0);
	return fd;
}

static int begin(void **state)
{
	static struct stand s;
	struct gate_config net = {.side = GATE_TO_NET, .received = net_received},
			   root = {.side = GATE_TO_ROOT, .received = root_received};
	int ends[2];

	s = (struct stand){.base = {.log = &s.log, .counters = &s.counters, .set = &s.set}};
	*state = &s;
	log_init(&s.log, "test");
	alarm(120);		   /* a test that waits in vain ends */
	s.log.level = LOG_L_ERROR; /* each refusal is a warning */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &s.limit), 0);
	assert_int_equal(loop_new_virtual(&s.base.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	loop_share_init(&s.share, s.base.loop);
	s.base.shares = &s.share;
	assert_int_equal(gate_pair(ends, NULL), 0);
	net.fd = ends[0];
	root.fd = ends[1];
	net.loop = root.loop = s.base.loop;
	net.broken = root.broken = is_broken;
	net.arg = root.arg = &s;
	assert_int_equal(gate_new(&s.net, &net, NULL), 0);
	assert_int_equal(gate_new(&s.root, &root, NULL), 0);
	return net_streams_new(&s.streams, &s.base, s.net, listens(&s), NULL);
}

static int end(void **state)
{
	struct stand *s = *state;

	setrlimit(RLIMIT_NOFILE, &s->limit);
	net_streams_free(s->streams);
	gate_free(s->net);
	gate_free(s->root);
	loop_free(s->base.loop);
	for (size_t i = 0; i < s->count; i++)
		if (s->heard[i].fd >= 0)
			close(s->heard[i].fd);
	assert_false(s->broken);
	return 0;
}

/* --- clients ---------------------------------------------------------------------------- */

/* Connects from 127.0.0.HOST. */
static int connects_from(const struct stand *s, unsigned host)
{
	const struct timeval limit = {.tv_sec = 10};
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr = {htonl(INADDR_LOOPBACK - 1 + host)}},
			   to = s->at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static int connects(const struct stand *s)
{
	return connects_from(s, 1);
}

static bool has_answer(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void await(struct stand *s, int fd)
{
	for (unsigned turns = 0; !has_answer(fd);)
		loop_advance(s->base.loop, ++turns < 1000 ? 1 : MS);
}

static size_t makes_hello(uint8_t out[STREAM_HELLO_MAX], uint64_t least, uint64_t most)
{
	struct stream_hello hello;
	struct noise noise;
	size_t length;

	stream_hello_fill(&hello, STREAM_KIND_ATTACH, JOB, "n1", "");
	hello.least = least;
	hello.most = most;
	assert_int_equal(
		stream_hello_pack(&noise, &hello, (uint8_t[SECRET_KEY]){1}, NULL, out, &length), 0);
	return length;
}

static void says_hello(int fd)
{
	uint8_t out[STREAM_HELLO_MAX];
	size_t n = makes_hello(out, CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX);

	assert_int_equal(frame_write(fd, FRAME_HELLO, out, (uint32_t)n), 0);
}

/* Waits until root has heard COUNT messages in all; returns the last. */
static struct heard *root_hears(struct stand *s, size_t count)
{
	for (unsigned turns = 0; s->count < count;)
		loop_advance(s->base.loop, ++turns < 1000 ? 1 : MS);
	assert_int_equal(s->count, count);
	return &s->heard[count - 1];
}

static void root_takes(struct stand *s, const struct heard *h)
{
	struct gate_message m = {.type = GATE_STREAM_OVER,
				 .stream_over = {.id = h->message.stream.id, .taken = true}};

	assert_int_equal(gate_send(s->root, &m, NULL, 0, NULL), 0);
	loop_advance(s->base.loop, 1);
}

static void root_refuses(struct stand *s, const struct heard *h, const char *why)
{
	struct gate_message m = {.type = GATE_STREAM_OVER,
				 .stream_over = {.id = h->message.stream.id}};

	assert_int_equal(gate_send(s->root, &m, why, strlen(why), NULL), 0);
	loop_advance(s->base.loop, 1);
}

/* The sentence of the FRAME_ERROR that comes, and then the end. */
static void is_refused(struct stand *s, int fd, const char *words)
{
	struct frame frame;
	char rest;

	await(s, fd);
	assert_int_equal(frame_read(fd, &frame, GATE_SENTENCE_MAX, NULL), 0);
	assert_int_equal(frame.type, FRAME_ERROR);
	if (!strstr((char *)frame.payload, words))
		fail_msg("'%s' is not in '%s'", words, (char *)frame.payload);
	frame_free(&frame);
	await(s, fd);
	assert_int_equal(recv(fd, &rest, 1, 0), 0);
	close(fd);
}

/* Waits until no connection is left. */
static void all_leave(struct stand *s)
{
	while (net_streams_count(s->streams))
		loop_advance(s->base.loop, MS);
}

/* --- the first message ------------------------------------------------------------------ */

static void test_hello_goes_to_root(void **state)
{
	struct stand *s = *state;
	uint8_t out[STREAM_HELLO_MAX], byte = 7;
	size_t n = makes_hello(out, CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX);
	const struct gate_stream *said;
	struct heard *h;
	int fd = connects(s);

	assert_int_equal(frame_write(fd, FRAME_HELLO, out, (uint32_t)n), 0);
	assert_int_equal(send(fd, &byte, 1, 0), 1); /* for root */
	h = root_hears(s, 1);
	said = &h->message.stream;
	assert_int_equal(h->message.type, GATE_STREAM);
	assert_string_equal(said->from, "127.0.0.1");
	assert_string_equal(said->hello.job, JOB);
	assert_string_equal(said->hello.node, "n1");
	assert_string_equal(said->hello.ticket, "");
	assert_int_equal(said->hello.kind, STREAM_KIND_ATTACH);
	assert_int_equal(said->hello.most, CHANNEL_VERSION_MAX);
	assert_int_equal(h->length, n);
	assert_memory_equal(h->tail, out, n);
	assert_int_equal(net_streams_count(s->streams), 1);
	loop_advance(s->base.loop, 60 * CLOCK_NS_PER_S); /* root keeps the time */
	assert_int_equal(net_streams_count(s->streams), 1);
	root_takes(s, h);
	assert_int_equal(net_streams_count(s->streams), 0);
	assert_int_equal(s->counters.streams_refused, 0);
	byte = 0;
	assert_int_equal(recv(h->fd, &byte, 1, 0), 1); /* nobody else has read it */
	assert_int_equal(byte, 7);
	close(fd);
}

static void test_root_refuses(void **state)
{
	struct stand *s = *state;
	struct heard *h;
	int fd = connects(s);

	says_hello(fd);
	h = root_hears(s, 1);
	close(h->fd);
	h->fd = -1;
	root_refuses(s, h, "no such job");
	is_refused(s, fd, "no such job");
	assert_int_equal(s->counters.streams_refused, 1);
	root_refuses(s, h, "again");				 /* of an offer that is over */
	root_takes(s, &(struct heard){.message.stream.id = 77}); /* that never was */
	all_leave(s);
	assert_int_equal(s->counters.streams_refused, 1);
}

/* A message may come in pieces. */
static void test_pieces(void **state)
{
	struct stand *s = *state;
	uint8_t out[FRAME_HEADER + STREAM_HELLO_MAX];
	size_t n = makes_hello(out + FRAME_HEADER, CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX);
	int fd = connects(s);

	frame_header(out, FRAME_HELLO, (uint32_t)n);
	for (size_t i = 0; i < FRAME_HEADER + n; i++) {
		assert_int_equal(s->count, 0);
		assert_int_equal(send(fd, out + i, 1, 0), 1);
		loop_advance(s->base.loop, 1);
	}
	root_takes(s, root_hears(s, 1));
	close(fd);
}

static void test_renewals(void **state)
{
	struct stand *s = *state;
	struct gate_message m = {.type = GATE_RENEWED};
	uint8_t ask[RENEWAL_ASK_MAX] = {1, 2, 3}, answer[RENEWAL_ANSWER] = {4, 5};
	struct frame frame;
	struct heard *h;
	int fd = connects(s);

	assert_int_equal(frame_write(fd, FRAME_RENEW, ask, sizeof(ask)), 0);
	h = root_hears(s, 1);
	assert_int_equal(h->message.type, GATE_RENEW);
	assert_string_equal(h->message.renew.from, "127.0.0.1");
	assert_int_equal(h->length, sizeof(ask));
	assert_memory_equal(h->tail, ask, sizeof(ask));
	m.renewed = (struct gate_renewed){.id = h->message.renew.id, .answered = true};
	assert_int_equal(gate_send(s->root, &m, answer, sizeof(answer), NULL), 0);
	await(s, fd);
	assert_int_equal(frame_read(fd, &frame, 1000, NULL), 0);
	assert_int_equal(frame.type, FRAME_RENEWED);
	assert_int_equal(frame.length, sizeof(answer));
	assert_memory_equal(frame.payload, answer, sizeof(answer));
	frame_free(&frame);
	assert_int_equal(net_streams_count(s->streams), 0);
	assert_int_equal(s->counters.streams_refused, 0);
	close(fd);
	fd = connects(s);
	assert_int_equal(frame_write(fd, FRAME_RENEW, ask, sizeof(ask)), 0);
	h = root_hears(s, 2);
	m.renewed = (struct gate_renewed){.id = h->message.renew.id};
	assert_int_equal(gate_send(s->root, &m, "no such lease", 13, NULL), 0);
	is_refused(s, fd, "no such lease");
	assert_int_equal(s->counters.streams_refused, 1);
}

/* A peer that only looks whether the port is there. */
static void test_probe(void **state)
{
	struct stand *s = *state;
	int fd = connects(s);
	char rest;

	assert_int_equal(frame_write(fd, FRAME_REQUEST, "", 0), 0);
	await(s, fd);
	assert_int_equal(recv(fd, &rest, 1, 0), 0);
	assert_int_equal(net_streams_count(s->streams), 0);
	assert_int_equal(s->count, 0);
	assert_int_equal(s->counters.streams_refused, 0);
	close(fd);
}

/* Older clients send all in clear, and are told so; nothing else comes in clear either. */
static void test_in_clear(void **state)
{
	static const struct {
		uint8_t type;
		uint32_t length;
		const char *words;
	} all[] = {
		{FRAME_START, 1000, "older version of iocom"},
		{FRAME_START, FRAME_PAYLOAD_MAX, "older version of iocom"},
		{FRAME_ATTACH, 200, "older version of iocom"},
		{FRAME_REQUEST, 1, "takes job streams only"},
		{FRAME_DATA, 20, "begins with a handshake"},
		{FRAME_WELCOME, 20, "begins with a handshake"},
		{FRAME_ERROR, 20, "begins with a handshake"},
		{FRAME_HELLO, STREAM_HELLO_MAX + 1, "too long"},
		{FRAME_RENEW, RENEWAL_ASK_MAX + 1, "too long"},
		{FRAME_RENEW, 0, "renewal"},
		{FRAME_HELLO, 0, "malformed"},
	};
	struct stand *s = *state;
	uint8_t other[FRAME_HEADER];
	int fd;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		uint8_t header[FRAME_HEADER];

		fd = connects(s);
		frame_header(header, all[i].type, all[i].length);
		assert_int_equal(send(fd, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
		is_refused(s, fd, all[i].words);
	}
	assert_int_equal(s->counters.streams_refused, sizeof(all) / sizeof(*all));
	fd = connects(s);
	assert_int_equal(send(fd, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
	is_refused(s, fd, "takes iocom's job streams only");
	fd = connects(s);
	frame_header(other, FRAME_HELLO, 100);
	other[2] ^= 0x40;
	assert_int_equal(send(fd, other, sizeof(other), MSG_NOSIGNAL), sizeof(other));
	is_refused(s, fd, "another version of iocom");
	assert_int_equal(s->count, 0);
}

/* Of each changed hello root gets what could be decoded, and nothing else. */
static void test_changed_hello(void **state)
{
	struct stand *s = *state;
	uint8_t out[STREAM_HELLO_MAX];
	size_t n = makes_hello(out, CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX);

	for (size_t i = 0; i < n; i++) {
		struct stream_hello hello;
		size_t before = s->count;
		int fd = connects(s);

		out[i] ^= 1;
		assert_int_equal(frame_write(fd, FRAME_HELLO, out, (uint32_t)n), 0);
		for (unsigned turns = 0; s->count == before && !has_answer(fd); turns++)
			loop_advance(s->base.loop, turns < 1000 ? 1 : MS);
		if (s->count > before) {
			assert_int_equal(stream_hello_unpack(&hello, out, n), 0);
			assert_string_equal(s->heard[before].message.stream.hello.job, hello.job);
			root_takes(s, &s->heard[before]);
		}
		out[i] ^= 1;
		close(fd);
		all_leave(s);
	}
	assert_true(s->count > 0);
}

static void test_versions(void **state)
{
	static const struct {
		uint64_t least, most;
		bool good;
	} all[] = {
		{CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX, true},
		{CHANNEL_VERSION_MAX, CHANNEL_VERSION_MAX + 7, true},
		{0, UINT64_MAX, true},
		{CHANNEL_VERSION_MAX + 1, CHANNEL_VERSION_MAX + 2, false},
		{0, 0, false},
	};
	struct stand *s = *state;
	size_t good = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		uint8_t out[STREAM_HELLO_MAX];
		size_t n = makes_hello(out, all[i].least, all[i].most);
		int fd = connects(s);

		assert_int_equal(frame_write(fd, FRAME_HELLO, out, (uint32_t)n), 0);
		if (!all[i].good) {
			is_refused(s, fd, "of the secure channel");
			continue;
		}
		root_takes(s, root_hears(s, ++good));
		close(fd);
	}
	assert_int_equal(s->count, good);
}

/* --- time ------------------------------------------------------------------------------- */

static void test_silent_ones(void **state)
{
	struct stand *s = *state;
	int silent = connects(s), half = connects(s);

	assert_int_equal(send(half, "ic", 2, 0), 2);
	loop_advance(s->base.loop, NET_STREAM_START_NS + MS);
	is_refused(s, silent, "did not come within 5 s");
	is_refused(s, half, "did not come within 5 s");
	all_leave(s);
	assert_int_equal(s->counters.streams_refused, 2);
}

/* One that was told why has so long to read it, and is not there longer. */
static void test_lingers(void **state)
{
	struct stand *s = *state;
	int fd = connects(s);

	assert_int_equal(send(fd, "what", 4, 0), 4);
	await(s, fd);
	loop_advance(s->base.loop, NET_STREAM_LINGER_NS - 100 * MS);
	assert_int_equal(net_streams_count(s->streams), 1);
	loop_advance(s->base.loop, 200 * MS);
	assert_int_equal(net_streams_count(s->streams), 0);
	is_refused(s, fd, "job streams only");
}

/* A refused peer may send the rest of its message; more than that ends its stream. */
static void test_junk_without_end(void **state)
{
	static const char junk[16 << 10] = "junk";
	struct stand *s = *state;
	int fd = connects(s);
	size_t sent = 0;

	for (size_t i = 0; i < 64 * (NET_STREAM_DISCARD_MAX / sizeof(junk)); i++) {
		ssize_t n = send(fd, junk, sizeof(junk), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		loop_advance(s->base.loop, 1);
		if (sent < NET_STREAM_DISCARD_MAX / 2)
			assert_int_equal(net_streams_count(s->streams), 1);
	}
	/* Besides what the port discards, the kernel's buffers take some. */
	assert_in_range(sent, NET_STREAM_DISCARD_MAX, 16 * NET_STREAM_DISCARD_MAX);
	assert_int_equal(net_streams_count(s->streams), 0);
	close(fd);
}

/* --- the loop's time --------------------------------------------------------------------- */

static void strangers_spend(struct stand *s)
{
	uid_t before = loop_share_enter(&s->share, LOOP_SHARE_STRANGERS);

	loop_spend(s->base.loop, CLOCK_NS_PER_S);
	loop_share_leave(&s->share, before);
}

static void test_strangers_wait(void **state)
{
	struct stand *s = *state;
	int fd = connects(s), leaves = connects(s);

	while (net_streams_count(s->streams) < 2)
		loop_advance(s->base.loop, 1);
	strangers_spend(s);
	says_hello(fd);
	says_hello(leaves);
	loop_advance(s->base.loop, 10 * MS);
	assert_int_equal(s->counters.requests_delayed, 2);
	assert_int_equal(s->count, 0);
	close(leaves);
	loop_advance(s->base.loop, 2 * CLOCK_NS_PER_S);
	assert_in_range(s->count, 1, 2);
	for (size_t i = 0; i < s->count; i++)
		root_takes(s, &s->heard[i]);
	assert_int_equal(net_streams_count(s->streams), 0);
	close(fd);
}

/* --- places ------------------------------------------------------------------------------ */

#define OFFERS 50

/* So many are with root at a time; the others wait their turn, which comes in their order. */
static void test_many_at_root(void **state)
{
	struct stand *s = *state;
	int all[OFFERS];

	for (size_t i = 0; i < OFFERS; i++) {
		all[i] = connects(s);
		says_hello(all[i]);
		loop_advance(s->base.loop, 1);
	}
	loop_advance(s->base.loop, 10 * MS);
	assert_int_equal(s->count, GATE_STREAMS_MAX);
	for (size_t i = 0; i < OFFERS; i++) {
		struct sockaddr_in own, theirs;
		socklen_t n = sizeof(own);

		root_takes(s, &s->heard[i]);
		assert_int_equal(s->count, i + 1 + GATE_STREAMS_MAX < OFFERS
						   ? i + 1 + GATE_STREAMS_MAX
						   : OFFERS);
		assert_int_equal(getsockname(all[i], (struct sockaddr *)&own, &n), 0);
		assert_int_equal(getpeername(s->heard[i].fd, (struct sockaddr *)&theirs, &n), 0);
		assert_int_equal(own.sin_port, theirs.sin_port);
		close(all[i]);
	}
	assert_int_equal(net_streams_count(s->streams), 0);
}

/* One that waits for root and leaves frees its place at once. */
static void test_leaves_while_root_is_busy(void **state)
{
	struct stand *s = *state;
	int all[GATE_STREAMS_MAX + 2];

	for (size_t i = 0; i < GATE_STREAMS_MAX + 2; i++) {
		all[i] = connects(s);
		says_hello(all[i]);
		loop_advance(s->base.loop, 1);
	}
	loop_advance(s->base.loop, 10 * MS);
	assert_int_equal(net_streams_count(s->streams), GATE_STREAMS_MAX + 2);
	setsockopt(all[GATE_STREAMS_MAX], SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
		   sizeof(struct linger));
	close(all[GATE_STREAMS_MAX]); /* a reset */
	while (net_streams_count(s->streams) > GATE_STREAMS_MAX + 1)
		loop_advance(s->base.loop, MS);
	root_takes(s, &s->heard[0]);
	(void)root_hears(s, GATE_STREAMS_MAX + 1);
	for (size_t i = 0; i < GATE_STREAMS_MAX + 2; i++)
		if (i != GATE_STREAMS_MAX)
			close(all[i]);
}

static void lifts_limit(const struct stand *s)
{
	struct rlimit most = {s->limit.rlim_max, s->limit.rlim_max};

	setrlimit(RLIMIT_NOFILE, &most);
}

/* The address with most loses its oldest; another's, older still, stays. */
static void test_places(void **state)
{
	static int all[NET_STREAMS_MAX + 1];
	struct stand *s = *state;

	lifts_limit(s);
	all[0] = connects_from(s, 2);
	for (size_t i = 1; i <= NET_STREAMS_MAX; i++) {
		all[i] = connects(s);
		loop_advance(s->base.loop, 1);
	}
	assert_int_equal(net_streams_count(s->streams), NET_STREAMS_MAX);
	assert_false(has_answer(all[0]));
	is_refused(s, all[1], "too many connections");
	says_hello(all[0]);
	root_takes(s, root_hears(s, 1));
	close(all[0]);
	for (size_t i = 2; i <= NET_STREAMS_MAX; i++)
		close(all[i]);
	all_leave(s);
}

/* When each address has one, the oldest goes, though root has it; root's answer then is late. */
static void test_places_of_many(void **state)
{
	static int all[NET_STREAMS_MAX];
	struct stand *s = *state;
	struct heard *h;
	int fd;

	lifts_limit(s);
	fd = connects_from(s, NET_STREAMS_MAX + 10);
	says_hello(fd);
	h = root_hears(s, 1);
	close(h->fd); /* or the connection would stay */
	h->fd = -1;
	for (size_t i = 0; i < NET_STREAMS_MAX; i++) {
		all[i] = connects_from(s, 2 + (unsigned)i);
		loop_advance(s->base.loop, 1);
	}
	assert_int_equal(net_streams_count(s->streams), NET_STREAMS_MAX);
	is_refused(s, fd, "too many connections");
	root_refuses(s, h, "late");
	assert_int_equal(net_streams_count(s->streams), NET_STREAMS_MAX);
	for (size_t i = 0; i < NET_STREAMS_MAX; i++)
		close(all[i]);
	all_leave(s);
}

static void test_few_descriptors(void **state)
{
	struct stand *s = *state;
	int fd = connects(s);
	struct rlimit few = {(rlim_t)fd + 20, s->limit.rlim_max};
	char byte;

	setrlimit(RLIMIT_NOFILE, &few);
	await(s, fd);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	assert_int_equal(s->counters.descriptors_refused, 1);
	assert_int_equal(s->counters.streams_refused, 1);
	assert_int_equal(net_streams_count(s->streams), 0);
	setrlimit(RLIMIT_NOFILE, &s->limit);
	close(fd);
	fd = connects(s);
	says_hello(fd);
	root_takes(s, root_hears(s, 1));
	close(fd);
}

/* The end with all that still waits: the sanitizers see what is left. */
static void test_ends_with_all(void **state)
{
	struct stand *s = *state;
	int silent = connects(s), half = connects(s), at_root = connects(s), refused = connects(s);

	says_hello(at_root);
	assert_int_equal(send(half, "ic", 2, 0), 2);
	assert_int_equal(send(refused, "what", 4, 0), 4);
	(void)root_hears(s, 1);
	await(s, refused);
	assert_int_equal(net_streams_count(s->streams), 4);
	close(silent);
	close(half);
	close(at_root);
	close(refused);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_hello_goes_to_root),
		CASE(test_root_refuses),
		CASE(test_pieces),
		CASE(test_renewals),
		CASE(test_probe),
		CASE(test_in_clear),
		CASE(test_changed_hello),
		CASE(test_versions),
		CASE(test_silent_ones),
		CASE(test_lingers),
		CASE(test_junk_without_end),
		CASE(test_strangers_wait),
		CASE(test_many_at_root),
		CASE(test_leaves_while_root_is_busy),
		CASE(test_places),
		CASE(test_places_of_many),
		CASE(test_few_descriptors),
		CASE(test_ends_with_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
