/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_fake.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/net_fake.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void net_fake_keep(struct net_fake *fake, const struct gate_message *m, const uint8_t *tail,
			  size_t n)
{
	struct net_fake_answer *a = &fake->answers[fake->count % NET_FAKE_ANSWERS];

	*a = (struct net_fake_answer){.type = m->type, .length = n};
	a->id = m->type == GATE_RENEWED ? m->renewed.id : m->stream_over.id;
	a->good = m->type == GATE_RENEWED ? m->renewed.answered : m->stream_over.taken;
	memcpy(a->text, tail, n);
	fake->count++;
}

static void net_fake_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			      const int *fds)
{
	struct net_fake *fake = arg;
	struct gate_message pong = {.type = GATE_PONG, .id = m->id};

	for (size_t i = 0; i < gate_fds_of(m); i++)
		close(fds[i]);
	if (m->type == GATE_PING)
		(void)gate_send(fake->gate, &pong, NULL, 0, NULL);
	if (m->type == GATE_STREAM_OVER || m->type == GATE_RENEWED)
		net_fake_keep(fake, m, tail, n);
}

static void net_fake_broken(void *arg, const char *why)
{
	struct net_fake *fake = arg;

	(void)why;
	fake->broken++;
}

static int net_fake_start(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	struct net_fake *fake = arg;
	const struct gate_config config = {.loop = fake->loop,
					   .side = GATE_TO_NET,
					   .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
					   .received = net_fake_received,
					   .broken = net_fake_broken,
					   .arg = fake};
	const struct gate_message ready = {.type = GATE_READY};

	*pidfd = -1;
	fake->starts++;
	gate_free(fake->gate);
	assert_int_equal(gate_new(&fake->gate, &config, err), 0);
	return gate_send(fake->gate, &ready, NULL, 0, NULL);
}

void net_fake_begin(struct net_fake *fake, const struct base *base)
{
	const struct net_part_config config = {
		.base = base,
		.setup = {.name = "n1", .listen = "127.0.0.1"},
		.streams = -1,
		.http = -1,
		.start = {.start = net_fake_start, .arg = fake},
	};

	fake->loop = base->loop;
	assert_int_equal(net_part_new(&fake->part, &config, NULL), 0);
}

void net_fake_end(struct net_fake *fake)
{
	net_part_free(fake->part);
	gate_free(fake->gate);
	fake->part = NULL;
	fake->gate = NULL;
}

void net_fake_die(struct net_fake *fake)
{
	gate_free(fake->gate);
	fake->gate = NULL;
}

uint64_t net_fake_offer(struct net_fake *fake, uint64_t id, int fd,
			const struct stream_hello *hello, const void *first, size_t n)
{
	struct gate_message m = {.type = GATE_STREAM,
				 .stream = {.id = id ? id : ++fake->ids, .hello = *hello}};

	strcpy(m.stream.from, "192.0.2.7");
	assert_int_equal(gate_send(fake->gate, &m, first, n, &fd), 0);
	return m.stream.id;
}

uint64_t net_fake_renew(struct net_fake *fake, const void *payload, size_t n)
{
	struct gate_message m = {.type = GATE_RENEW, .renew = {.id = ++fake->ids}};

	strcpy(m.renew.from, "192.0.2.7");
	assert_int_equal(gate_send(fake->gate, &m, payload, n, NULL), 0);
	return m.renew.id;
}

size_t net_fake_answered(const struct net_fake *fake, uint64_t id,
			 const struct net_fake_answer **answer)
{
	size_t first = fake->count > NET_FAKE_ANSWERS ? fake->count - NET_FAKE_ANSWERS : 0, n = 0;

	for (size_t i = first; i < fake->count; i++) {
		const struct net_fake_answer *a = &fake->answers[i % NET_FAKE_ANSWERS];

		if (a->id != id)
			continue;
		n++;
		if (answer)
			*answer = a;
	}
	return n;
}
