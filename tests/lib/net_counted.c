/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_counted.h. */
#include "tests/lib/net_counted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "user/clock.h"

static size_t net_counted_at(const struct net_counted *net, const char *address, uint16_t port)
{
	size_t i = 0;

	while (i < net->nhears &&
	       (net->hears[i].port != port || strcmp(net->hears[i].address, address) != 0))
		i++;
	return i;
}

bool net_counted_hears(const struct net_counted *net, const char *address, uint16_t port)
{
	return net_counted_at(net, address, port) < net->nhears;
}

static void net_counted_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
				 const int *fds)
{
	struct net_counted *net = arg;
	size_t at = net_counted_at(net, m->place.address, m->place.port);

	(void)tail;
	(void)n;
	(void)fds;
	net->got[m->type]++;
	net->last = *m;
	if (m->type == GATE_DIAL) {
		assert_int_equal(at, net->nhears); /* none is dialled twice */
		assert_in_range(net->nhears, 0, 2 * BULLETIN_DIALED_MAX - 1);
		net->hears[net->nhears++] = m->place;
	} else if (m->type == GATE_UNDIAL) {
		assert_in_range(at + 1, 1, net->nhears); /* nor given up that was not */
		net->hears[at] = net->hears[--net->nhears];
	}
}

static void net_counted_broken(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static int net_counted_start(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	const struct gate_message ready = {.type = GATE_READY};
	struct net_counted *net = arg;
	const struct gate_config config = {.loop = net->loop,
					   .side = GATE_TO_NET,
					   .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
					   .received = net_counted_received,
					   .broken = net_counted_broken,
					   .arg = net};

	*pidfd = -1;
	net->starts++;
	net->nhears = 0;
	gate_free(net->gate);
	net->gate = NULL;
	assert_int_equal(gate_new(&net->gate, &config, err), 0);
	return gate_send(net->gate, &ready, NULL, 0, NULL);
}

void net_counted_run(struct net_counted *net, uint64_t ns)
{
	for (uint64_t i = 0; i < 20; i++)
		loop_advance(net->loop, ns / 20);
}

int net_counted_begin(struct net_counted *net, struct base *base)
{
	const struct net_part_config config = {.base = base,
					       .setup = {.name = "here", .log_level = LOG_L_INFO},
					       .streams = -1,
					       .http = -1,
					       .start = {.start = net_counted_start, .arg = net}};
	int rc = loop_new_virtual(&base->loop, 3600 * CLOCK_NS_PER_S, 1700000000 * CLOCK_NS_PER_S,
				  NULL);

	memset(net, 0, sizeof(*net));
	net->loop = base->loop;
	return rc ? rc : net_part_new(&net->part, &config, NULL);
}

void net_counted_end(struct net_counted *net, struct base *base)
{
	net_part_free(net->part);
	gate_free(net->gate);
	loop_free(base->loop);
}

void net_counted_another(struct net_counted *net)
{
	unsigned starts = net->starts;

	gate_free(net->gate);
	net->gate = NULL;
	memset(net->got, 0, sizeof(net->got));
	net_counted_run(net, CLOCK_NS_PER_S);
	assert_int_equal(net->starts, starts + 1);
}
