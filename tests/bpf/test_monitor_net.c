/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP against known truth: between two network namespaces (leaves the node) and
 * within one (does not); peeks, splices, sendfile.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch.h"

#define MIB   (1024UL * 1024)
#define BLOCK (64UL * 1024)
#define BYTES (64 * MIB)

enum receive { BY_READ, BY_PEEK_AND_READ, BY_WAITALL, BY_SPLICE };
enum send { BY_WRITE, BY_SENDFILE };

struct end {
	const char *netns; /* NULL: as it is */
	const char *address;
	uint16_t port;
	enum receive receive;
	enum send send;
	size_t bytes;
	uint64_t *calls; /* shared: how many calls returned data */
	int ready[2];
};

static int make_socket(const struct end *end, struct sockaddr_in *to)
{
	if (end->netns && rig_enter_netns(end->netns))
		return -1;
	*to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(end->port)};
	inet_pton(AF_INET, end->address, &to->sin_addr);
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static ssize_t receive_some(int fd, enum receive how, char *buffer, const int *pipes)
{
	ssize_t n;

	switch (how) {
	case BY_PEEK_AND_READ:
		if (recv(fd, buffer, BLOCK, MSG_PEEK) < 0)
			return -1;
		return recv(fd, buffer, BLOCK, 0);
	case BY_WAITALL:
		return recv(fd, buffer, BLOCK, MSG_WAITALL);
	case BY_SPLICE:
		n = splice(fd, NULL, pipes[1], NULL, BLOCK, 0);
		return n > 0 ? read(pipes[0], buffer, (size_t)n) : n;
	default:
		return read(fd, buffer, BLOCK);
	}
}

static int body_receiver(void *argument)
{
	struct end *end = argument;
	char *buffer = malloc(BLOCK);
	struct sockaddr_in at;
	int listener = make_socket(end, &at), one = 1, fd, pipes[2];
	size_t have = 0;
	ssize_t n;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1) ||
	    pipe(pipes) || write(end->ready[1], "", 1) != 1)
		return 1;
	fd = accept(listener, NULL, NULL);
	while ((n = receive_some(fd, end->receive, buffer, pipes)) > 0) {
		have += (size_t)n;
		++*end->calls;
	}
	return have != end->bytes;
}

static int body_sender(void *argument)
{
	struct end *end = argument;
	char *buffer = calloc(1, BLOCK);
	struct sockaddr_in to;
	int fd = make_socket(end, &to), file = memfd_create("source", 0);
	ssize_t n;

	if (fd < 0 || ftruncate(file, (off_t)end->bytes) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return 1;
	for (size_t done = 0; done < end->bytes; done += (size_t)n) {
		size_t want = end->bytes - done < BLOCK ? end->bytes - done : BLOCK;

		if (end->send == BY_SENDFILE)
			n = sendfile(fd, file, NULL, want);
		else
			n = write(fd, buffer, want);
		if (n <= 0)
			return 1;
		++*end->calls;
	}
	return 0;
}

static struct iocom_load load_of(const struct watch *watch, pid_t pid)
{
	const struct iocom_task *task = watch_task(watch, pid);

	if (!task)
		fail_msg("process %d is not in the sample", (int)pid);
	return task->load;
}

/* One connection; the loads of both ends and the calls they made. */
static void transfer(struct watch *watch, bool apart, enum send send, enum receive receive,
		     size_t bytes, struct iocom_load loads[2], uint64_t calls[2])
{
	static uint16_t port = 7651;
	uint64_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct end ends[2];
	pid_t pids[2];
	char byte;

	for (int i = 0; i < 2; i++)
		ends[i] = (struct end){
			.netns = watch->rig.netns[apart ? i : 0],
			.address = apart ? watch->rig.address[1] : "127.0.0.1",
			.port = port,
			.receive = receive,
			.send = send,
			.bytes = bytes,
			.calls = &shared[i],
		};
	port++;
	assert_int_equal(pipe(ends[1].ready), 0);
	pids[1] = rig_start(body_receiver, &ends[1]);
	close(ends[1].ready[1]);
	assert_int_equal(read(ends[1].ready[0], &byte, 1), 1);
	close(ends[1].ready[0]);
	pids[0] = rig_start(body_sender, &ends[0]);
	assert_int_equal(rig_wait(pids[0]), 0);
	assert_int_equal(rig_wait(pids[1]), 0);
	watch_sample(watch);
	for (int i = 0; i < 2; i++) {
		loads[i] = load_of(watch, pids[i]);
		calls[i] = shared[i];
	}
	munmap(shared, 4096);
}

static void test_between_namespaces(void **state)
{
	struct iocom_load l[2];
	uint64_t calls[2];

	transfer(*state, true, BY_WRITE, BY_READ, BYTES, l, calls);
	watch_compare_within("TCP, veth", "sent_bytes", BYTES, l[0].sent_bytes, 0);
	watch_compare_within("TCP, veth", "sent_messages", calls[0], l[0].sent_messages, 0);
	watch_compare_within("TCP, veth", "received_bytes", BYTES, l[1].received_bytes, 1);
	watch_compare_within("TCP, veth", "received_messages", calls[1], l[1].received_messages, 0);
	watch_compare_within("TCP, veth", "local_bytes", 0, l[0].local_bytes + l[1].local_bytes, 0);
}

static void test_loopback(void **state)
{
	struct iocom_load l[2];
	uint64_t calls[2];

	transfer(*state, false, BY_WRITE, BY_READ, BYTES, l, calls);
	watch_compare_within("TCP, loopback, sender", "local_bytes", BYTES, l[0].local_bytes, 0);
	watch_compare_within("TCP, loopback, receiver", "local_bytes", BYTES, l[1].local_bytes, 1);
	watch_compare_within("TCP, loopback", "sent + received", 0,
			     l[0].sent_bytes + l[1].received_bytes, 0);
}

static void test_ways(void **state)
{
	static const struct {
		const char *name;
		enum send send;
		enum receive receive;
	} ways[] = {
		{"MSG_PEEK then read", BY_WRITE, BY_PEEK_AND_READ},
		{"MSG_WAITALL", BY_WRITE, BY_WAITALL},
		{"splice", BY_WRITE, BY_SPLICE},
		{"sendfile", BY_SENDFILE, BY_READ},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct iocom_load l[2];
		uint64_t calls[2];

		transfer(*state, true, ways[i].send, ways[i].receive, 16 * MIB + 17, l, calls);
		watch_compare_within(ways[i].name, "sent_bytes", 16 * MIB + 17, l[0].sent_bytes, 0);
		watch_compare_within(ways[i].name, "received_bytes", 16 * MIB + 17,
				     l[1].received_bytes, 1);
		if (ways[i].receive != BY_SPLICE) /* a splice is no message */
			watch_compare_within(ways[i].name, "received_messages", calls[1],
					     l[1].received_messages, 0);
	}
}

static void test_costs(void **state)
{
	struct watch *watch = *state;

	for (size_t i = 0; i < watch->sample.nprograms; i++)
		if (watch->sample.programs[i].runs > 100)
			printf("# |program %-14s %8lu runs %8.1f ns\n",
			       watch->sample.programs[i].name, watch->sample.programs[i].runs,
			       (double)watch->sample.programs[i].run_ns /
				       (double)watch->sample.programs[i].runs);
	for (size_t i = 0; i < watch->sample.ndrops; i++)
		assert_int_equal(watch->sample.drops[i].count, 0);
}

static int watch_up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	*state = watch;
	watch_rig(watch, 16);
	watch_open(watch, NULL);
	return 0;
}

static int watch_down(void **state)
{
	watch_close(*state);
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_between_namespaces),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_costs),
	};

	return cmocka_run_group_tests_name("monitor_net", tests, watch_up, watch_down);
}
