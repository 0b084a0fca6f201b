/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Job streams from other machines, in root: what the network part may offer, how a stream begins,
 * and how much of the loop's time strangers get, on a virtual clock.
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
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/cluster/stream.h"
#include "tests/lib/net_fake.h"
#include "user/channel/version.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/renewal.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)
#define MS	 CLOCK_NS_PER_MS
#define COST_NS	 (5 * MS)
#define SPAN_NS	 (3 * CLOCK_NS_PER_S) /* not longer: each connection uses up a port */
#define CROWD	 8
#define ANNA	 1000
#define JOB	 "n2-1-7"

struct stand {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct loop_share share;
	struct net_fake net;
	struct streams *streams;
	int listener;
	struct sockaddr_in at;
	uint64_t took_ns;
	uid_t known; /* whose start message it turns out to be */
	unsigned checked, renewed;
	bool renews;
	struct rlimit limit;
};

static const uint8_t job_key[SECRET_KEY] = {1, 2, 3};

/* A stranger's handshake takes COST_NS, too. */
static int find_key(void *arg, const struct stream_hello *hello, uint8_t key[SECRET_KEY])
{
	struct stand *s = arg;

	if (s->known == LOOP_SHARE_STRANGERS) {
		loop_spend(s->base.loop, COST_NS);
		s->took_ns += COST_NS;
		return -ENOENT;
	}
	if (strcmp(hello->job, JOB) != 0 || strcmp(hello->node, s->set.name) != 0)
		return -ENOENT;
	memcpy(key, job_key, SECRET_KEY);
	return 0;
}

/* A start message that takes COST_NS and is refused. */
static int check(void *arg, const struct stream_hello *hello, const void *payload, uint32_t length,
		 char **credential, struct iocom_err *err)
{
	struct stand *s = arg;
	uid_t before = loop_share_enter(&s->share, s->known);

	assert_string_equal(hello->job, JOB);
	assert_int_equal(length, strlen("true"));
	assert_memory_equal(payload, "true", length);
	s->checked++;
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
	struct stand *s = arg;

	s->renewed++;
	assert_int_equal(length, 3);
	assert_memory_equal(payload, "abc", 3);
	memset(answer, 7, RENEWAL_ANSWER);
	if (s->renews)
		return 0;
	return iocom_err_set(err, -EACCES, "no\nsuch %.*s", 700, (char[701]){[0 ... 699] = 'x'});
}

/* Both ends of connections of the tests: PORT is the network part's. */
static void listens(struct stand *s)
{
	socklen_t n = sizeof(s->at);

	s->at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&s->at, sizeof(s->at)), 0);
	assert_int_equal(listen(s->listener, 64), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&s->at, &n), 0);
}

static int begin(void **state)
{
	static struct stand s;
	const struct stream_ports ports = {
		.arg = &s,
		.key = find_key,
		.start = {.check = check},
		.attach = {.check = check},
		.renew = renew,
	};

	s = (struct stand){.base = {.log = &s.log, .counters = &s.counters, .set = &s.set}};
	*state = &s;
	log_init(&s.log, "test");
	alarm(120);		   /* a test that waits in vain ends, and an agent that waits */
	s.log.level = LOG_L_ERROR; /* each refusal is a warning */
	strcpy(s.set.name, "n1");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &s.limit), 0);
	assert_int_equal(loop_new_virtual(&s.base.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	loop_share_init(&s.share, s.base.loop);
	s.base.shares = &s.share;
	s.known = LOOP_SHARE_STRANGERS;
	listens(&s);
	net_fake_begin(&s.net, &s.base);
	return streams_new(&s.streams, &s.base, s.net.part, NULL, &ports, NULL);
}

static int end(void **state)
{
	struct stand *s = *state;

	setrlimit(RLIMIT_NOFILE, &s->limit);
	streams_free(s->streams);
	net_fake_end(&s->net);
	loop_free(s->base.loop);
	close(s->listener);
	return 0;
}

/* Returns the client's end; *THEIRS is the network part's. */
static int connects(const struct stand *s, int *theirs)
{
	const struct timeval limit = {.tv_sec = 10};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&s->at, sizeof(s->at)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	*theirs = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(*theirs >= 0);
	return fd;
}

static bool has_answer(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Time passes slowly while all that may come at once comes. */
static void goes_on(struct stand *s, unsigned *turns)
{
	loop_advance(s->base.loop, ++*turns < 1000 ? 1 : MS);
}

static void await(struct stand *s, int fd)
{
	for (unsigned turns = 0; !has_answer(fd);)
		goes_on(s, &turns);
}

/* A client of this test, and what the network part has of it. */
struct client {
	int fd, theirs; /* THEIRS -1: it has closed it */
	uint64_t id;
	struct stream_hello hello;
	struct noise noise;
	struct records records;
};

static struct client greets(const struct stand *s)
{
	struct client c = {0};

	c.fd = connects(s, &c.theirs);
	stream_hello_fill(&c.hello, STREAM_KIND_START, JOB, "n1", "");
	return c;
}

/* The network part offers the client's stream with these bytes, and keeps its copy. */
static void offers(struct stand *s, struct client *c, const uint8_t *first, size_t length)
{
	c->id = net_fake_offer(&s->net, 0, c->theirs, &c->hello, first, length);
}

static void says_hello(struct stand *s, struct client *c, const uint8_t key[SECRET_KEY])
{
	uint8_t out[STREAM_HELLO_MAX];
	size_t length;

	assert_int_equal(stream_hello_pack(&c->noise, &c->hello, key, NULL, out, &length), 0);
	offers(s, c, out, length);
}

static void leaves(struct client *c)
{
	close(c->fd);
	close(c->theirs);
}

/* Root's answer to the network part. */
static const struct net_fake_answer *answer_to(struct stand *s, const struct client *c)
{
	const struct net_fake_answer *a = NULL;

	for (unsigned turns = 0; !net_fake_answered(&s->net, c->id, &a);)
		goes_on(s, &turns);
	return a;
}

/* Root refuses the handshake; returns the sentence. */
static const char *is_not_taken(struct stand *s, struct client *c)
{
	const struct net_fake_answer *a = answer_to(s, c);

	assert_int_equal(a->type, GATE_STREAM_OVER);
	assert_false(a->good);
	assert_true(a->length > 0);
	assert_false(has_answer(c->fd)); /* that is the network part's to say */
	leaves(c);
	return a->text;
}

static void is_welcome(struct stand *s, struct client *c)
{
	struct stream_welcome welcome;
	struct frame frame;

	await(s, c->fd);
	assert_true(answer_to(s, c)->good);
	assert_int_equal(frame_read(c->fd, &frame, STREAM_WELCOME_MAX, NULL), 0);
	assert_int_equal(frame.type, FRAME_WELCOME);
	assert_int_equal(stream_welcome_unpack(&c->noise, &c->hello, frame.payload, frame.length,
					       &welcome, &c->records),
			 0);
	assert_int_equal(welcome.version, CHANNEL_VERSION_MAX);
	assert_int_equal(welcome.boot_id, s->base.boot_id);
	frame_free(&frame);
}

/* Sends BYTES as records of at most AT_MOST bytes each. */
static void sends_pieces(struct client *c, const void *bytes, size_t length, size_t at_most)
{
	static uint8_t sealed[2 * NOISE_MESSAGE_MAX];
	const uint8_t *at = bytes;

	while (length) {
		size_t n = length < at_most ? length : at_most;
		const struct iovec piece = {(void *)at, n};

		assert_int_equal(records_seal(&c->records, &piece, 1, sealed), 0);
		if (send(c->fd, sealed, records_size(n), MSG_NOSIGNAL) < 0)
			return; /* refused already */
		at += n;
		length -= n;
	}
}

/* Makes the frame TYPE with PAYLOAD of LENGTH bytes; returns its bytes. */
static size_t make_frame(uint8_t *out, uint8_t type, const void *payload, size_t length)
{
	frame_header(out, type, (uint32_t)length);
	memcpy(out + FRAME_HEADER, payload, length);
	return FRAME_HEADER + length;
}

static void sends_start(struct client *c)
{
	uint8_t frame[64];

	sends_pieces(c, frame, make_frame(frame, FRAME_START, "true", 4), NOISE_PLAINTEXT_MAX);
}

/* Connects, and sends a start message if it is not a stranger's. */
static struct client comes(struct stand *s)
{
	struct client c = greets(s);

	says_hello(s, &c, job_key);
	if (s->known == LOOP_SHARE_STRANGERS)
		return c;
	is_welcome(s, &c);
	sends_start(&c);
	return c;
}

static bool is_over(const struct stand *s, const struct client *c)
{
	if (s->known != LOOP_SHARE_STRANGERS)
		return has_answer(c->fd);
	return net_fake_answered(&s->net, c->id, NULL) > 0;
}

/* A crowd whose members come again as soon as they are refused. */
static uint64_t crowd_comes(struct stand *s)
{
	uint64_t until = loop_boot_ns(s->base.loop) + SPAN_NS;
	struct client all[CROWD];

	for (size_t i = 0; i < CROWD; i++)
		all[i] = comes(s);
	while (loop_boot_ns(s->base.loop) < until) {
		loop_advance(s->base.loop, MS);
		for (size_t i = 0; i < CROWD; i++) {
			if (!is_over(s, &all[i]))
				continue;
			leaves(&all[i]);
			all[i] = comes(s);
		}
	}
	for (size_t i = 0; i < CROWD; i++)
		leaves(&all[i]);
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

/* Strangers have used up their part of the loop's time for a while. */
static void strangers_spend(struct stand *s)
{
	uid_t before = loop_share_enter(&s->share, LOOP_SHARE_STRANGERS);

	loop_spend(s->base.loop, CLOCK_NS_PER_S);
	loop_share_leave(&s->share, before);
}

/* One that leaves while it waits is gone when it is its turn, and its place is free. */
static void test_leaves_while_it_waits(void **state)
{
	struct stand *s = *state;
	struct client c;

	s->known = ANNA;
	strangers_spend(s);
	c = greets(s);
	says_hello(s, &c, job_key);
	while (!s->counters.requests_delayed)
		loop_advance(s->base.loop, MS);
	assert_int_equal(net_fake_answered(&s->net, c.id, NULL), 0);
	leaves(&c);
	loop_advance(s->base.loop, 2 * CLOCK_NS_PER_S);
	(void)answer_to(s, &c);
	while (streams_count(s->streams))
		loop_advance(s->base.loop, MS);
	assert_int_equal(s->checked, 0);
}

/* A stream that has begun waits as long, and then goes on, though offers wait, too. */
static void test_begun_ones_wait_too(void **state)
{
	struct stand *s = *state;
	struct client c = {0}, all[CROWD];

	s->known = ANNA;
	c = greets(s);
	says_hello(s, &c, job_key);
	is_welcome(s, &c);
	strangers_spend(s);
	sends_start(&c);
	for (size_t i = 0; i < CROWD; i++) {
		all[i] = greets(s);
		says_hello(s, &all[i], job_key);
	}
	loop_advance(s->base.loop, 0);
	assert_int_equal(s->counters.requests_delayed, 1 + CROWD);
	assert_int_equal(s->checked, 0);
	for (size_t i = 0; i < CROWD; i++)
		is_welcome(s, &all[i]);
	assert_int_equal(s->checked, 1);
	for (size_t i = 0; i < CROWD; i++)
		leaves(&all[i]);
	leaves(&c);
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
	struct client honest, junk;
	uint8_t sentence[256] = "";

	s->known = ANNA;
	honest = comes(s);
	while (!has_answer(honest.fd))
		loop_advance(s->base.loop, MS);
	assert_true(send_junk(s, honest.fd, FRAME_PAYLOAD_MAX / 2) >= FRAME_PAYLOAD_MAX / 2);
	assert_int_equal(streams_count(s->streams), 1);
	assert_true(recv(honest.fd, sentence, sizeof(sentence), 0) > 0);
	junk = comes(s);
	close(junk.theirs);
	junk.theirs = -1;
	while (!has_answer(junk.fd))
		loop_advance(s->base.loop, MS);
	/* Besides what the port discards, the kernel's buffers take some. */
	assert_true(send_junk(s, junk.fd, 64 * FRAME_PAYLOAD_MAX) < 16 * FRAME_PAYLOAD_MAX);
	assert_int_equal(streams_count(s->streams), 1);
	leaves(&honest);
	close(junk.fd);
}

/* --- how a stream begins ------------------------------------------------------------- */

/* The sentence of the sealed FRAME_ERROR that comes, and then the end. */
static const char *hears_refusal(struct stand *s, struct client *c)
{
	static char text[512];
	uint8_t bytes[1024], *at = bytes, type;
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	ssize_t n;

	await(s, c->fd);
	n = recv(c->fd, bytes, sizeof(bytes), 0);
	assert_true(n > FRAME_HEADER);
	at += RECORD_HEAD;
	n -= RECORD_HEAD;
	assert_int_equal(records_open(&c->records, at, (size_t)n), 0);
	n -= NOISE_TAG;
	assert_int_equal(
		frame_parse(at, (size_t)n, sizeof(text), &type, &payload, &length, &consumed), 0);
	assert_int_equal(type, FRAME_ERROR);
	assert_int_equal(consumed, n);
	snprintf(text, sizeof(text), "%.*s", (int)length, payload);
	await(s, c->fd);
	assert_int_equal(recv(c->fd, bytes, sizeof(bytes), 0), 0);
	leaves(c);
	return text;
}

/* Root refuses it after the handshake, and counts that. */
static void is_refused(struct stand *s, struct client *c, const char *words)
{
	const char *text = hears_refusal(s, c);

	if (!strstr(text, words))
		fail_msg("'%s' is not in '%s'", words, text);
	assert_true(s->counters.streams_refused > 0);
	assert_int_equal(s->counters.streams_accepted, 0);
}

/* A client that comes until the port's welcome. */
static struct client welcomed(struct stand *s)
{
	struct client c;

	s->known = ANNA;
	c = greets(s);
	says_hello(s, &c, job_key);
	is_welcome(s, &c);
	return c;
}

static void test_begins(void **state)
{
	struct stand *s = *state;
	struct client c = welcomed(s);

	sends_start(&c);
	is_refused(s, &c, "no");
	assert_int_equal(s->checked, 1);
	assert_int_equal(s->counters.streams_refused, 1);
}

/* Who does not know the key learns nothing about which jobs there are. */
static void test_no_key(void **state)
{
	static const uint8_t wrong[SECRET_KEY] = {1, 2, 4};
	struct stand *s = *state;
	struct client c = greets(s);
	char text[512];

	s->known = ANNA;
	says_hello(s, &c, wrong);
	snprintf(text, sizeof(text), "%s", is_not_taken(s, &c));
	assert_non_null(strstr(text, "this node has no job for that key"));
	c = greets(s);
	strcpy(c.hello.job, "n2-1-9");
	says_hello(s, &c, job_key);
	assert_string_equal(is_not_taken(s, &c), text);
	c = greets(s);
	strcpy(c.hello.node, "n9");
	says_hello(s, &c, job_key);
	assert_string_equal(is_not_taken(s, &c), text);
	assert_int_equal(s->counters.streams_refused, 0); /* the network part counts those */
	assert_int_equal(s->checked, 0);
	assert_int_equal(streams_count(s->streams), 0);
}

/* A key that is right for one question is not for another: the head is part of the handshake. */
static void test_changed_hello(void **state)
{
	struct stand *s = *state;
	uint8_t out[STREAM_HELLO_MAX];
	size_t length;

	s->known = ANNA;
	for (size_t i = 0; i < STREAM_HELLO_MAX; i++) {
		struct client one = greets(s);

		assert_int_equal(
			stream_hello_pack(&one.noise, &one.hello, job_key, NULL, out, &length), 0);
		if (i >= length) {
			leaves(&one);
			break;
		}
		out[i] ^= 1;
		offers(s, &one, out, length);
		(void)is_not_taken(s, &one);
	}
	assert_int_equal(s->checked, 0);
	assert_int_equal(s->counters.streams_accepted, 0);
	assert_int_equal(streams_count(s->streams), 0);
}

/*
 * What the network part says of a hello must be what the bytes say, which the key proves: also
 * where another value leads to the same key.
 */
static void test_hello_disagrees(void **state)
{
	struct stand *s = *state;
	struct client c;

	s->known = ANNA;
	for (int i = 0; i < 7; i++) {
		uint8_t out[STREAM_HELLO_MAX];
		size_t length;

		c = greets(s);
		assert_int_equal(stream_hello_pack(&c.noise, &c.hello, job_key, NULL, out, &length),
				 0);
		if (i == 1)
			c.hello.kind = STREAM_KIND_ATTACH;
		else if (i == 2)
			c.hello.most++;
		else if (i == 3)
			c.hello.least = 0;
		else if (i == 4)
			strcpy(c.hello.ticket, "0");
		else if (i == 5)
			strcpy(c.hello.job, "n2-1-8");
		else if (i == 6)
			strcpy(c.hello.node, "n2");
		offers(s, &c, out, length);
		if (i) {
			assert_non_null(strstr(is_not_taken(s, &c), "no job for that key"));
			continue;
		}
		is_welcome(s, &c); /* as it was said */
		leaves(&c);
	}
	assert_int_equal(s->checked, 0);
}

/* Bytes that are no hello at all, and those of another client. */
static void test_no_hello(void **state)
{
	struct stand *s = *state;
	uint8_t out[STREAM_HELLO_MAX] = {0};
	size_t length;
	struct client c, other;

	s->known = ANNA;
	for (size_t n = 1; n <= STREAM_HELLO_MAX; n += n < 130 ? 1 : 447) {
		c = greets(s);
		offers(s, &c, out, n);
		(void)is_not_taken(s, &c);
	}
	other = greets(s); /* of a job whose key this node does not have */
	strcpy(other.hello.job, "n2-1-8");
	assert_int_equal(stream_hello_pack(&other.noise, &other.hello, (uint8_t[SECRET_KEY]){9},
					   NULL, out, &length),
			 0);
	leaves(&other);
	c = greets(s);
	offers(s, &c, out, length);
	(void)is_not_taken(s, &c);
	assert_int_equal(s->checked, 0);
	assert_int_equal(streams_count(s->streams), 0);
}

static void test_versions(void **state)
{
	static const struct {
		uint64_t least, most;
		bool welcome;
	} all[] = {
		{CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX, true},
		{CHANNEL_VERSION_MAX, CHANNEL_VERSION_MAX + 7, true},
		{0, UINT64_MAX, true},
		{CHANNEL_VERSION_MAX + 1, CHANNEL_VERSION_MAX + 2, false},
		{0, 0, false},
	};
	struct stand *s = *state;

	s->known = ANNA;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct client c = greets(s);

		c.hello.least = all[i].least;
		c.hello.most = all[i].most;
		says_hello(s, &c, job_key);
		if (all[i].welcome) {
			is_welcome(s, &c);
			leaves(&c);
		} else {
			(void)is_not_taken(s, &c);
		}
	}
}

static void test_silent_ones(void **state)
{
	struct stand *s = *state;
	struct client one = welcomed(s), later = welcomed(s);

	loop_advance(s->base.loop, STREAM_START_NS);
	is_refused(s, &one, "did not come within 5 s");
	is_refused(s, &later, "did not come within 5 s");
}

/* What is not exactly one message of the handshake's kind, in full records. */
static void test_bad_records(void **state)
{
	static uint8_t frame[3 * NOISE_MESSAGE_MAX], payload[2 * NOISE_MESSAGE_MAX];
	struct stand *s = *state;
	struct client c = welcomed(s);
	size_t n = make_frame(frame, FRAME_START, "true", 4);

	sends_pieces(&c, frame, n + 1, NOISE_PLAINTEXT_MAX);
	is_refused(s, &c, "bytes follow");
	c = welcomed(s);
	sends_pieces(&c, frame, n, 9); /* in small pieces */
	is_refused(s, &c, "small pieces");
	c = welcomed(s);
	sends_pieces(&c, frame, n, 4); /* without its header */
	is_refused(s, &c, "small pieces");
	c = welcomed(s);
	sends_pieces(&c, frame, make_frame(frame, FRAME_ATTACH, "true", 4), NOISE_PLAINTEXT_MAX);
	is_refused(s, &c, "begins with a start message");
	c = welcomed(s);
	frame_header(frame, FRAME_START, FRAME_PAYLOAD_MAX + 1);
	sends_pieces(&c, frame, FRAME_HEADER, NOISE_PLAINTEXT_MAX);
	is_refused(s, &c, "malformed");
	c = welcomed(s);
	n = make_frame(frame, FRAME_START, payload, sizeof(payload));
	sends_pieces(&c, frame, n + 100, NOISE_PLAINTEXT_MAX); /* the last one is too long */
	is_refused(s, &c, "bytes follow");
	assert_int_equal(s->checked, 0);
}

/* After the handshake nothing in clear counts, and no byte may change. */
static void test_damaged(void **state)
{
	struct stand *s = *state;
	struct client c = welcomed(s);
	uint8_t frame[64], sealed[128], hello[STREAM_HELLO_MAX];
	size_t n = make_frame(frame, FRAME_START, "true", 4);
	const struct iovec piece = {frame, n};

	/* Their first bytes look like the length of a long record. */
	assert_int_equal(frame_write(c.fd, FRAME_START, "true", 4), 0);
	loop_advance(s->base.loop, STREAM_START_NS);
	is_refused(s, &c, "did not come");
	c = welcomed(s);
	assert_int_equal(records_seal(&c.records, &piece, 1, sealed), 0);
	sealed[RECORD_HEAD + 3] ^= 1;
	assert_int_equal(send(c.fd, sealed, records_size(n), 0), records_size(n));
	is_refused(s, &c, "damaged");
	c = welcomed(s);
	assert_int_equal(stream_hello_pack(&c.noise, &c.hello, job_key, NULL, hello, &n), 0);
	assert_int_equal(frame_write(c.fd, FRAME_HELLO, hello, (uint32_t)n), 0); /* twice */
	loop_advance(s->base.loop, STREAM_START_NS);
	is_refused(s, &c, "did not come");
	c = welcomed(s);
	memset(sealed, 0, 2); /* no record is that short */
	assert_int_equal(send(c.fd, sealed, 2, 0), 2);
	is_refused(s, &c, "damaged");
	assert_int_equal(s->checked, 0);
	assert_int_equal(s->counters.streams_accepted, 0);
}

/* A recorded handshake opens, but leads to other keys: its records are worth nothing. */
static void test_replayed(void **state)
{
	struct stand *s = *state;
	struct client c = greets(s), again = greets(s);
	uint8_t out[STREAM_HELLO_MAX], frame[64], sealed[128];
	size_t length, n = make_frame(frame, FRAME_START, "true", 4);
	const struct iovec piece = {frame, n};
	struct frame welcome;

	s->known = ANNA;
	assert_int_equal(stream_hello_pack(&c.noise, &c.hello, job_key, NULL, out, &length), 0);
	offers(s, &c, out, length);
	is_welcome(s, &c);
	assert_int_equal(records_seal(&c.records, &piece, 1, sealed), 0);
	leaves(&c);
	offers(s, &again, out, length);
	await(s, again.fd);
	assert_int_equal(frame_read(again.fd, &welcome, STREAM_WELCOME_MAX, NULL), 0);
	assert_int_equal(welcome.type, FRAME_WELCOME);
	frame_free(&welcome);
	assert_int_equal(send(again.fd, sealed, records_size(n), 0), records_size(n));
	await(s, again.fd);
	leaves(&again);
	assert_int_equal(s->checked, 0);
}

/* --- what the network part may hand over ---------------------------------------------- */

/* Offers FD, which the test has no use for, with a hello that is good. */
static const char *is_no_stream(struct stand *s, int fd)
{
	const struct net_fake_answer *a = NULL;
	uint8_t out[STREAM_HELLO_MAX];
	struct client c = {0};
	size_t length;

	assert_true(fd >= 0);
	stream_hello_fill(&c.hello, STREAM_KIND_START, JOB, "n1", "");
	assert_int_equal(stream_hello_pack(&c.noise, &c.hello, job_key, NULL, out, &length), 0);
	c.id = net_fake_offer(&s->net, 0, fd, &c.hello, out, length);
	close(fd);
	a = answer_to(s, &c);
	assert_false(a->good);
	assert_int_equal(streams_count(s->streams), 0);
	return a->text;
}

static void test_wrong_descriptors(void **state)
{
	struct stand *s = *state;
	int pair[2], server, client;

	s->known = ANNA;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_non_null(strstr(is_no_stream(s, pair[0]), "no connection over TCP"));
	assert_non_null(strstr(is_no_stream(s, pair[1]), "no connection over TCP"));
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_non_null(strstr(is_no_stream(s, pair[0]), "no connection over TCP"));
	assert_non_null(strstr(is_no_stream(s, pair[1]), "no connection over TCP"));
	assert_non_null(strstr(is_no_stream(s, open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
			       "no connection over TCP"));
	assert_non_null(
		strstr(is_no_stream(s, open("/", O_PATH | O_CLOEXEC)), "no connection over TCP"));
	assert_non_null(strstr(is_no_stream(s, fcntl(s->listener, F_DUPFD_CLOEXEC, 3)),
			       "no connection over TCP"));
	server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(server, (struct sockaddr *)&s->at, sizeof(s->at)), 0);
	assert_non_null(strstr(is_no_stream(s, server), "no connection over TCP"));
	assert_non_null(strstr(is_no_stream(s, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
			       "has ended"));
	client = connects(s, &server);
	assert_int_equal(connect(server, &(struct sockaddr){.sa_family = AF_UNSPEC},
				 sizeof(struct sockaddr)),
			 0);
	assert_non_null(strstr(is_no_stream(s, server), "has ended"));
	close(client);
#ifdef IPPROTO_MPTCP
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
	if (server >= 0)
		assert_non_null(strstr(is_no_stream(s, server), "no connection over TCP"));
#endif
	assert_int_equal(s->checked, 0);
	assert_int_equal(s->net.starts, 1);
}

/* A number of stdio's, if those are closed, is not used. */
static void test_descriptor_of_stdio(void **state)
{
	struct stand *s = *state;
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
	struct client c = greets(s);

	s->known = ANNA;
	close(0);
	says_hello(s, &c, job_key);
	is_welcome(s, &c);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (saved >= 0) {
		dup2(saved, 0);
		close(saved);
	}
	sends_start(&c);
	is_refused(s, &c, "no");
}

/* Whoever shares the open file may clear its flags: root waits for nothing. */
static void test_flags_cleared(void **state)
{
	struct stand *s = *state;
	struct client c = greets(s);
	uint8_t half[RECORD_HEAD + 10] = {1, 0};

	s->known = ANNA;
	says_hello(s, &c, job_key);
	is_welcome(s, &c);
	assert_int_equal(fcntl(c.theirs, F_SETFL, 0), 0);
	assert_int_equal(send(c.fd, half, sizeof(half), 0), sizeof(half));
	loop_advance(s->base.loop, MS); /* would hang */
	assert_int_equal(fcntl(c.theirs, F_GETFL) & O_NONBLOCK, 0);
	loop_advance(s->base.loop, STREAM_START_NS);
	is_refused(s, &c, "did not come");
}

/* Fills what the peer takes and what the kernel keeps. */
static void fills(int fd)
{
	static const char bytes[64 << 10];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	while (send(fd, bytes, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

/* It cannot be told; and closing the last copy of a socket that lingers would wait. */
static void test_lingers(void **state)
{
	const struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	struct stand *s = *state;

	s->known = ANNA;
	for (int i = 0; i < 2; i++) {
		struct client c = greets(s);

		if (i) {
			says_hello(s, &c, job_key);
			is_welcome(s, &c);
		}
		assert_int_equal(setsockopt(c.theirs, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)),
				 0);
		assert_int_equal(fcntl(c.theirs, F_SETFL, 0), 0);
		fills(c.theirs);
		if (!i)
			says_hello(s, &c, job_key);
		close(c.theirs);
		if (!i)
			assert_false(answer_to(s, &c)->good); /* no room for the welcome */
		loop_advance(s->base.loop, STREAM_START_NS);
		assert_int_equal(streams_count(s->streams), 0);
		close(c.fd);
	}
}

/* The network part reads what was for root, or closes what root reads. */
static void test_shared(void **state)
{
	struct stand *s = *state;
	struct client c = welcomed(s);
	char byte;

	sends_start(&c);
	assert_int_equal(recv(c.theirs, &byte, 1, 0), 1); /* before root does */
	loop_advance(s->base.loop, STREAM_START_NS);
	is_refused(s, &c, "");
	c = welcomed(s);
	assert_int_equal(shutdown(c.theirs, SHUT_RDWR), 0);
	loop_advance(s->base.loop, MS);
	assert_int_equal(streams_count(s->streams), 0);
	leaves(&c);
	c = welcomed(s);
	assert_int_equal(connect(c.theirs, &(struct sockaddr){.sa_family = AF_UNSPEC},
				 sizeof(struct sockaddr)),
			 0);
	loop_advance(s->base.loop, MS);
	assert_int_equal(streams_count(s->streams), 0);
	leaves(&c);
	assert_int_equal(s->checked, 0);
}

/* Nothing is kept by the number of an offer, nor by the socket behind it. */
static void test_same_number(void **state)
{
	struct stand *s = *state;
	struct client c = welcomed(s), other = greets(s);
	uint8_t out[STREAM_HELLO_MAX];
	size_t length;

	assert_int_equal(stream_hello_pack(&other.noise, &other.hello, job_key, NULL, out, &length),
			 0);
	other.id = net_fake_offer(&s->net, c.id, other.theirs, &other.hello, out, length);
	is_welcome(s, &other);
	assert_int_equal(net_fake_answered(&s->net, c.id, NULL), 2);
	net_fake_offer(&s->net, c.id, c.theirs, &other.hello, out, length); /* the same stream */
	loop_advance(s->base.loop, MS);
	assert_int_equal(net_fake_answered(&s->net, c.id, NULL), 3);
	assert_int_equal(streams_count(s->streams), 3);
	sends_start(&other);
	is_refused(s, &other, "no");
	leaves(&c);
	assert_int_equal(s->checked, 1);
}

/* --- places -------------------------------------------------------------------------- */

#define OFFERS 100

/* So many wait at most, and the others hear that at once. */
static void test_many_offers(void **state)
{
	struct stand *s = *state;
	struct client all[OFFERS];
	size_t refused = 0, taken = 0;

	s->known = ANNA;
	strangers_spend(s);
	for (size_t i = 0; i < OFFERS; i++) {
		all[i] = greets(s);
		says_hello(s, &all[i], job_key);
	}
	loop_advance(s->base.loop, 0);
	assert_int_equal(s->net.count, OFFERS - GATE_STREAMS_MAX);
	for (size_t i = GATE_STREAMS_MAX; i < OFFERS; i++)
		assert_non_null(strstr(answer_to(s, &all[i])->text, "too many job streams wait"));
	loop_advance(s->base.loop, 2 * CLOCK_NS_PER_S);
	assert_int_equal(s->net.count, OFFERS);
	for (size_t i = 0; i < OFFERS; i++) {
		const struct net_fake_answer *a = answer_to(s, &all[i]);

		taken += a->good;
		refused += !a->good;
		leaves(&all[i]);
	}
	assert_int_equal(taken, GATE_STREAMS_MAX);
	assert_int_equal(refused, OFFERS - GATE_STREAMS_MAX);
	assert_int_equal(s->counters.requests_delayed, GATE_STREAMS_MAX);
}

/* Strangers without a key take no place of others; of those with one the oldest is dropped. */
static void test_places(void **state)
{
	static struct client all[STREAMS_MAX + 1];
	struct stand *s = *state;
	struct rlimit most = {s->limit.rlim_max, s->limit.rlim_max};
	struct client stranger;

	setrlimit(RLIMIT_NOFILE, &most);
	for (size_t i = 0; i < STREAMS_MAX; i++)
		all[i] = welcomed(s);
	assert_int_equal(streams_count(s->streams), STREAMS_MAX);
	stranger = greets(s);
	says_hello(s, &stranger, (uint8_t[SECRET_KEY]){9});
	(void)is_not_taken(s, &stranger);
	assert_int_equal(streams_count(s->streams), STREAMS_MAX);
	assert_int_equal(s->counters.streams_refused, 0);
	all[STREAMS_MAX] = welcomed(s);
	assert_int_equal(streams_count(s->streams), STREAMS_MAX);
	close(all[0].theirs); /* or the connection would stay */
	all[0].theirs = -1;
	is_refused(s, &all[0], "too many connections");
	assert_int_equal(s->counters.streams_refused, 1);
	sends_start(&all[1]);
	is_refused(s, &all[1], "no");
	for (size_t i = 2; i <= STREAMS_MAX; i++)
		leaves(&all[i]);
}

static void test_few_descriptors(void **state)
{
	struct stand *s = *state;
	struct client c = greets(s);
	struct rlimit few = {(rlim_t)c.theirs + 20, s->limit.rlim_max};

	s->known = ANNA;
	setrlimit(RLIMIT_NOFILE, &few);
	says_hello(s, &c, job_key);
	assert_non_null(strstr(is_not_taken(s, &c), "too few descriptors"));
	assert_int_equal(s->counters.descriptors_refused, 1);
	setrlimit(RLIMIT_NOFILE, &s->limit);
	c = welcomed(s);
	leaves(&c);
}

/* --- renewals, and the network part's end --------------------------------------------- */

static const struct net_fake_answer *renewed(struct stand *s)
{
	struct client c = {.id = net_fake_renew(&s->net, "abc", 3)};
	const struct net_fake_answer *a = answer_to(s, &c);

	assert_int_equal(a->type, GATE_RENEWED);
	return a;
}

static void test_renewals(void **state)
{
	struct stand *s = *state;
	const struct net_fake_answer *a;
	uint8_t answer[RENEWAL_ANSWER];

	s->renews = true;
	a = renewed(s);
	memset(answer, 7, sizeof(answer));
	assert_true(a->good);
	assert_int_equal(a->length, sizeof(answer));
	assert_memory_equal(a->text, answer, sizeof(answer));
	s->renews = false;
	a = renewed(s); /* what it quotes is cleaned: the gate would not let it through */
	assert_false(a->good);
	assert_int_equal(a->length, GATE_SENTENCE_MAX);
	assert_memory_equal(a->text, "no?such xxx", 11);
	strangers_spend(s);
	assert_false(renewed(s)->good);
	assert_int_equal(s->counters.requests_delayed, 1);
	assert_int_equal(s->renewed, 3);
	assert_int_equal(s->net.broken, 0);
}

/* Offers end with the network part that made them; streams that were taken go on. */
static void test_network_part_ends(void **state)
{
	struct stand *s = *state;
	struct client c = welcomed(s), waits = greets(s);
	size_t before;

	strangers_spend(s);
	says_hello(s, &waits, job_key);
	while (!s->counters.requests_delayed)
		loop_advance(s->base.loop, 1);
	before = s->net.count;
	net_fake_die(&s->net);
	close(c.theirs);
	close(waits.theirs);
	loop_advance(s->base.loop, 2 * CLOCK_NS_PER_S);
	assert_int_equal(s->net.starts, 2);
	assert_int_equal(s->net.count, before); /* the new one hears nothing of the old one's */
	assert_int_equal(streams_count(s->streams), 1);
	await(s, waits.fd); /* its connection is closed */
	assert_true(recv(waits.fd, &before, 1, 0) <= 0);
	close(waits.fd);
	c.theirs = -1;
	sends_start(&c);
	is_refused(s, &c, "no");
	assert_int_equal(s->checked, 1);
	c = welcomed(s); /* by the new one */
	leaves(&c);
}

/* The end with all that still waits: the sanitizers see what is left. */
static void test_ends_with_offers(void **state)
{
	struct stand *s = *state;
	struct client c = welcomed(s), waits = greets(s);

	strangers_spend(s);
	says_hello(s, &waits, job_key);
	(void)net_fake_renew(&s->net, "abc", 3);
	while (s->counters.requests_delayed < 2)
		loop_advance(s->base.loop, 1);
	leaves(&c);
	leaves(&waits);
	assert_int_equal(s->renewed, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_strangers_get_half),
		CASE(test_known_ones_do_not),
		CASE(test_leaves_while_it_waits),
		CASE(test_begun_ones_wait_too),
		CASE(test_junk_without_end),
		CASE(test_begins),
		CASE(test_no_key),
		CASE(test_changed_hello),
		CASE(test_hello_disagrees),
		CASE(test_no_hello),
		CASE(test_versions),
		CASE(test_silent_ones),
		CASE(test_bad_records),
		CASE(test_damaged),
		CASE(test_replayed),
		CASE(test_wrong_descriptors),
		CASE(test_descriptor_of_stdio),
		CASE(test_flags_cleared),
		CASE(test_lingers),
		CASE(test_shared),
		CASE(test_same_number),
		CASE(test_many_offers),
		CASE(test_places),
		CASE(test_few_descriptors),
		CASE(test_renewals),
		CASE(test_network_part_ends),
		CASE(test_ends_with_offers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
