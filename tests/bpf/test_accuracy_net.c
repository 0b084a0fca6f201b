/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP compared with known truth: each way to send and to receive, what leaves the node and what
 * does not, sockets that change hands, sockets older than the monitor.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/talk.h"
#include "tests/lib/watch.h"

#define MIB	   (1024UL * 1024)
#define BYTES	   (16 * MIB + 17)

#define V6_ADDRESS "fd00:213::2"

struct way {
	const char *name;
	const char *address; /* NULL: the rig's */
	enum talk_send send;
	enum talk_receive receive;
	int protocol;
	bool no_sent_messages, no_received_messages; /* one call may not be one message */
};

static struct iocom_load load_of(const struct watch *watch, pid_t pid)
{
	const struct iocom_task *task = watch_task(watch, pid);

	if (!task)
		fail_msg("process %d is not in the sample", (int)pid);
	return task->load;
}

/* Compares a column that may be missing on this kernel. */
static void compare_sent(const struct watch *watch, const char *name, const char *what,
			 double truth, double measured)
{
	if (watch_known(watch, "sent_bytes"))
		watch_compare_within(name, what, truth, measured, 0);
	else
		watch_degraded(name, what, "no sock_send_length, no function to attach to");
}

static void compare_received(const struct watch *watch, const char *name, const char *what,
			     double truth, double measured)
{
	if (watch_known(watch, "received_messages"))
		watch_compare_within(name, what, truth, measured, 0);
	else
		watch_degraded(name, what, "no sock_recv_length, no function to attach to");
}

/* Talks from one namespace to the other, and takes the loads of both ends. */
static void talk(struct watch *watch, const struct talk *talk, struct iocom_load loads[2],
		 struct talk_end ends[2])
{
	assert_int_equal(talk_run(talk, ends), 0);
	watch_sample(watch);
	for (int i = 0; i < 2; i++)
		loads[i] = load_of(watch, ends[i].pid);
}

static void check_way(struct watch *watch, const struct way *way)
{
	struct talk what = {
		.netns = {watch->rig.netns[0], watch->rig.netns[1]},
		.address = way->address ? way->address : watch->rig.address[1],
		.protocol = way->protocol,
		.send = way->send,
		.receive = way->receive,
		.bytes = BYTES,
	};
	struct iocom_load l[2];
	struct talk_end ends[2];

	talk(watch, &what, l, ends);
	compare_sent(watch, way->name, "sent_bytes", BYTES, l[0].sent_bytes);
	if (!way->no_sent_messages)
		compare_sent(watch, way->name, "sent_messages", ends[0].calls, l[0].sent_messages);
	if (way->protocol)
		compare_received(watch, way->name, "received_bytes", BYTES, l[1].received_bytes);
	else
		watch_compare_within(way->name, "received_bytes", BYTES, l[1].received_bytes, 0);
	if (!way->no_received_messages)
		compare_received(watch, way->name, "received_messages", ends[1].calls,
				 l[1].received_messages);
	watch_compare_within(way->name, "local_bytes", 0, l[0].local_bytes + l[1].local_bytes, 0);
}

static void test_ways(void **state)
{
	static const struct way ways[] = {
		{.name = "TCP, veth"},
		{.name = "TCP, IPv6", .address = V6_ADDRESS},
		{.name = "TCP, MSG_PEEK then recv", .receive = TALK_PEEK},
		{.name = "TCP, MSG_WAITALL", .receive = TALK_WAITALL},
		{.name = "TCP, MSG_TRUNC", .receive = TALK_TRUNC},
		{.name = "TCP, non-blocking, EAGAIN",
		 .send = TALK_SEND_NONBLOCK,
		 .receive = TALK_RECEIVE_NONBLOCK},
		{.name = "TCP, splice", .receive = TALK_SPLICE, .no_received_messages = true},
		{.name = "TCP, sendfile", .send = TALK_SENDFILE, .no_sent_messages = true},
		{.name = "TCP, MSG_ZEROCOPY", .send = TALK_ZEROCOPY},
		{.name = "TCP, io_uring", .send = TALK_SEND_URING, .receive = TALK_RECEIVE_URING},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		check_way(*state, &ways[i]);
}

static void test_v4_mapped(void **state)
{
	struct watch *watch = *state;
	char address[64];
	struct way way = {.name = "TCP, IPv4 mapped in IPv6", .address = address};

	snprintf(address, sizeof(address), "::ffff:%s", watch->rig.address[1]);
	check_way(watch, &way);
}

static void test_mptcp(void **state)
{
	static const struct way ways[] = {
		{.name = "MPTCP", .protocol = IPPROTO_MPTCP},
		{.name = "MPTCP, MSG_PEEK then recv",
		 .protocol = IPPROTO_MPTCP,
		 .receive = TALK_PEEK},
		{.name = "MPTCP, sendfile",
		 .protocol = IPPROTO_MPTCP,
		 .send = TALK_SENDFILE,
		 .no_sent_messages = true},
	};
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);

	if (fd < 0) {
		watch_degraded("MPTCP", "all", "this kernel has none");
		return;
	}
	close(fd);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		check_way(*state, &ways[i]);
}

/* Within one namespace nothing leaves the node, whatever addresses are used. */
static void test_local(void **state)
{
	static const struct {
		const char *name, *address, *from;
		int protocol;
	} cases[] = {
		{"local: 127.0.0.1", "127.0.0.1", NULL, 0},
		{"local: ::1", "::1", NULL, 0},
		{"local: 127/8 mapped", "::ffff:127.0.0.1", NULL, 0},
		{"local: its own address", "10.213.7.1", NULL, 0},
		{"local: between addresses", "10.213.7.1", "10.213.7.11", 0},
		{"local: between IPv6 addresses", "fd00:213::1", "fd00:213::11", 0},
		{"local: MPTCP between addresses", "10.213.7.1", "10.213.7.11", IPPROTO_MPTCP},
	};
	struct watch *watch = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct talk what = {
			.netns = {watch->rig.netns[0], watch->rig.netns[0]},
			.address = cases[i].address,
			.from = cases[i].from,
			.protocol = cases[i].protocol,
			.bytes = BYTES,
		};
		int fd = socket(AF_INET, SOCK_STREAM, cases[i].protocol);
		struct iocom_load l[2];
		struct talk_end ends[2];

		if (fd < 0) {
			watch_degraded(cases[i].name, "all", "this kernel has no MPTCP");
			continue;
		}
		close(fd);
		talk(watch, &what, l, ends);
		compare_sent(watch, cases[i].name, "local_bytes, sender", BYTES, l[0].local_bytes);
		if (cases[i].protocol)
			compare_received(watch, cases[i].name, "local_bytes, receiver", BYTES,
					 l[1].local_bytes);
		else
			watch_compare_within(cases[i].name, "local_bytes, receiver", BYTES,
					     l[1].local_bytes, 0);
		watch_compare_within(cases[i].name, "sent + received", 0,
				     l[0].sent_bytes + l[1].received_bytes, 0);
	}
}

/* Sockets that change hands: the process that makes the call is charged. */
struct hands {
	const struct watch *watch;
	uint16_t port;
	int ready[2], carrier[2];
	bool sends; /* true: the examined process sends, else it receives */
	bool by_message;
};

#define MINE   (2 * MIB + 3)
#define THEIRS (3 * MIB + 5)

static int body_peer(void *argument)
{
	struct hands *hands = argument;
	int listener, fd;

	close(hands->watch->rig.guard_fd); /* lets the rig go down while this process lives */
	if (rig_enter_netns(hands->watch->rig.netns[1]))
		return 1;
	listener = talk_listen(hands->watch->rig.address[1], hands->port, 0);
	if (listener < 0 || write(hands->ready[1], "", 1) != 1)
		return 1;
	fd = accept(listener, NULL, NULL);
	return hands->sends ? talk_take(fd, MINE + THEIRS) : talk_give(fd, MINE + THEIRS);
}

static int pass_socket(int carrier, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	return sendmsg(carrier, &message, 0) == 1 ? 0 : -1;
}

static int take_socket(int carrier)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(carrier, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int move(const struct hands *hands, int fd, size_t bytes)
{
	return hands->sends ? talk_give(fd, bytes) : talk_take(fd, bytes);
}

static int body_heir(void *argument)
{
	struct hands *hands = argument;
	int fd = take_socket(hands->carrier[0]);

	return fd < 0 || move(hands, fd, THEIRS);
}

/*
 * Makes the connection and moves its part; a child, or the process that takes the socket, moves
 * the rest.
 */
static int body_first(void *argument)
{
	struct hands *hands = argument;
	pid_t child;
	int fd;

	close(hands->watch->rig.guard_fd);
	if (rig_enter_netns(hands->watch->rig.netns[0]))
		return 1;
	fd = talk_connect(hands->watch->rig.address[1], hands->port, NULL, 0);
	if (fd < 0 || move(hands, fd, MINE))
		return 1;
	if (hands->by_message)
		return pass_socket(hands->carrier[1], fd);
	child = fork();
	if (!child)
		_exit(move(hands, fd, THEIRS) ? 1 : 0);
	/* The process's pid, for the test. */
	return write(hands->carrier[1], &child, sizeof(child)) != sizeof(child) || rig_wait(child);
}

static void check_hands(struct watch *watch, bool sends, bool by_message)
{
	struct hands hands = {
		.watch = watch, .port = talk_port(), .sends = sends, .by_message = by_message};
	const char *name = by_message ? "TCP, passed by SCM_RIGHTS" : "TCP, inherited over fork";
	const char *what = sends ? "sent_bytes" : "received_bytes";
	pid_t peer, first, heir = 0;
	struct iocom_load l[2];
	char byte;

	assert_int_equal(pipe(hands.ready), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, hands.carrier), 0);
	peer = rig_start(body_peer, &hands);
	assert_int_equal(read(hands.ready[0], &byte, 1), 1);
	first = rig_start(body_first, &hands);
	if (by_message)
		heir = rig_start(body_heir, &hands);
	else
		assert_int_equal(read(hands.carrier[0], &heir, sizeof(heir)), sizeof(heir));
	assert_int_equal(rig_wait(first), 0);
	if (by_message)
		assert_int_equal(rig_wait(heir), 0);
	assert_int_equal(rig_wait(peer), 0);
	for (int i = 0; i < 2; i++) {
		close(hands.ready[i]);
		close(hands.carrier[i]);
	}
	watch_sample(watch);
	l[0] = load_of(watch, first);
	l[1] = load_of(watch, heir);
	if (sends) {
		compare_sent(watch, name, what, MINE, l[0].sent_bytes);
		compare_sent(watch, name, what, THEIRS, l[1].sent_bytes);
		return;
	}
	watch_compare_within(name, what, MINE, l[0].received_bytes, 0);
	watch_compare_within(name, what, THEIRS, l[1].received_bytes, 0);
}

static void test_hands(void **state)
{
	for (int i = 0; i < 4; i++)
		check_hands(*state, i & 1, i & 2);
}

/* Two connections of this kind exist when counting begins, and are half used. */
struct old {
	const struct watch *watch;
	uint16_t port;
	int ready[2], go[2];
	bool sends;
};

static int body_old(void *argument)
{
	struct old *old = argument;
	char byte;
	int fd;

	close(old->watch->rig.guard_fd);
	if (rig_enter_netns(old->watch->rig.netns[old->sends ? 0 : 1]))
		return 1;
	if (old->sends) {
		fd = talk_connect(old->watch->rig.address[1], old->port, NULL, 0);
	} else {
		int listener = talk_listen(old->watch->rig.address[1], old->port, 0);

		if (listener < 0 || write(old->ready[1], "", 1) != 1)
			return 1;
		fd = accept(listener, NULL, NULL);
	}
	if (fd < 0 || (old->sends ? talk_give(fd, MINE) : talk_take(fd, MINE)) ||
	    write(old->ready[1], "", 1) != 1 || read(old->go[0], &byte, 1) != 1)
		return 1;
	return old->sends ? talk_give(fd, THEIRS) : talk_take(fd, THEIRS);
}

static void test_old_sockets(void **state)
{
	struct watch *watch = *state;
	struct old ends[2] = {{.watch = watch, .port = talk_port(), .sends = true}};
	struct iocom_load l[2];
	pid_t pids[2];
	char bytes[3];

	ends[1] = ends[0];
	ends[1].sends = false;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(ends[i].ready), 0);
		assert_int_equal(pipe(ends[i].go), 0);
	}
	monitor_free(watch->monitor);
	watch->monitor = NULL;
	pids[1] = rig_start(body_old, &ends[1]);
	assert_int_equal(read(ends[1].ready[0], bytes, 1), 1);
	pids[0] = rig_start(body_old, &ends[0]);
	assert_int_equal(read(ends[0].ready[0], bytes, 1), 1);
	assert_int_equal(read(ends[1].ready[0], bytes, 1), 1);
	watch_open(watch, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(ends[i].go[1], "", 1), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_wait(pids[i]), 0);
	watch_sample(watch);
	for (int i = 0; i < 2; i++) {
		l[i] = load_of(watch, pids[i]);
		for (int j = 0; j < 2; j++) {
			close(ends[i].ready[j]);
			close(ends[i].go[j]);
		}
	}
	compare_sent(watch, "TCP, older than the monitor", "sent_bytes", THEIRS, l[0].sent_bytes);
	watch_compare_within("TCP, older than the monitor", "received_bytes", THEIRS,
			     l[1].received_bytes, 0);
}

/* A kernel without the tracepoints: functions replace them, or the monitor says what it lacks. */
static void test_standins(void **state)
{
	static const struct monitor_config config = {.no_socket_tracepoints = true};
	struct watch *watch = *state;

	monitor_free(watch->monitor);
	watch->monitor = NULL;
	watch_open(watch, &config);
	if (watch_known(watch, "sent_bytes") && watch_known(watch, "received_messages")) {
		static const struct way ways[] = {
			{.name = "stand-ins"},
			{.name = "stand-ins, IPv6", .address = V6_ADDRESS},
			{.name = "stand-ins, MSG_PEEK", .receive = TALK_PEEK},
			{.name = "stand-ins, splice",
			 .receive = TALK_SPLICE,
			 .no_received_messages = true},
			{.name = "stand-ins, sendfile",
			 .send = TALK_SENDFILE,
			 .no_sent_messages = true},
		};

		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			check_way(watch, &ways[i]);
	} else {
		struct talk what = {
			.netns = {watch->rig.netns[0], watch->rig.netns[1]},
			.address = watch->rig.address[1],
			.bytes = BYTES,
		};
		struct iocom_load l[2];
		struct talk_end ends[2];

		talk(watch, &what, l, ends);
		watch_degraded("stand-ins", "sent_bytes", "programs may not attach to functions");
		watch_compare_within("no stand-ins", "sent_bytes", 0, l[0].sent_bytes, 0);
		watch_compare_within("no stand-ins", "received_bytes", BYTES, l[1].received_bytes,
				     0);
		watch_compare_within("no stand-ins", "received_messages", 0, l[1].received_messages,
				     0);
	}
	monitor_free(watch->monitor);
	watch->monitor = NULL;
	watch_open(watch, NULL);
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
	for (int i = 0; i < 2; i++)
		if (rig_shell("ip -n %s addr add fd00:213::%d/64 dev rig0 nodad && "
			      "ip -n %s addr add fd00:213::%d1/64 dev rig0 nodad && "
			      "ip -n %s addr add 10.213.7.%d1/24 dev rig0",
			      watch->rig.netns[i], i + 1, watch->rig.netns[i], i + 1,
			      watch->rig.netns[i], i + 1))
			return -1;
	watch_open(watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),	    cmocka_unit_test(test_v4_mapped),
		cmocka_unit_test(test_mptcp),	    cmocka_unit_test(test_local),
		cmocka_unit_test(test_hands),	    cmocka_unit_test(test_costs),
		cmocka_unit_test(test_old_sockets), cmocka_unit_test(test_standins),
	};

	return cmocka_run_group_tests_name("accuracy_net", tests, watch_up, watch_down);
}
