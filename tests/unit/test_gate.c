/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The socket pair between the parts of the agent: what one end sends the other gets, or nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/gate/gate.h"
#include "user/clock.h"

#define TURN_NS (10 * CLOCK_NS_PER_MS)

struct side {
	struct gate *gate;
	struct gate_message last;
	char tail[64];
	size_t n, received, broken;
	int fd;
	char why[64];
};

static struct loop *loop;
static struct side net, root;
static int ends[2];
static size_t open_before;

static size_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void take(void *arg, const struct gate_message *m, uint8_t *tail, size_t n, const int *fds)
{
	struct side *side = arg;

	side->last = *m;
	side->received++;
	side->n = n;
	memcpy(side->tail, tail, n < sizeof(side->tail) ? n : sizeof(side->tail));
	for (size_t i = 0; i < gate_fds_of(m); i++) {
		if (fds[i] < 0)
			continue;
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		if (side->fd >= 0)
			close(fds[i]);
		else
			side->fd = fds[i];
	}
}

static void went(void *arg, const char *why)
{
	struct side *side = arg;

	side->broken++;
	snprintf(side->why, sizeof(side->why), "%s", why);
}

static void side_up(struct side *side, enum gate_side of, int fd)
{
	const struct gate_config config = {
		.loop = loop, .side = of, .fd = fd, .received = take, .broken = went, .arg = side};

	*side = (struct side){.fd = -1};
	assert_int_equal(gate_new(&side->gate, &config, NULL), 0);
}

static int setup(void **state)
{
	(void)state;
	open_before = count_descriptors();
	assert_int_equal(loop_new_virtual(&loop, CLOCK_NS_PER_S, CLOCK_NS_PER_S, NULL), 0);
	assert_int_equal(gate_pair(ends, NULL), 0);
	side_up(&root, GATE_TO_ROOT, ends[0]);
	side_up(&net, GATE_TO_NET, ends[1]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gate_free(root.gate);
	gate_free(net.gate);
	if (root.fd >= 0)
		close(root.fd);
	if (net.fd >= 0)
		close(net.fd);
	loop_free(loop);
	assert_int_equal(count_descriptors(), open_before);
	return 0;
}

static int send_id(struct side *side, enum gate_type type, uint64_t id)
{
	const struct gate_message m = {.type = type, .id = {.id = id}};

	return gate_send(side->gate, &m, NULL, 0, NULL);
}

static void test_both_ways(void **state)
{
	const struct gate_message question = {.type = GATE_QUESTION, .question = {.ticket = 9}};

	(void)state;
	assert_int_equal(send_id(&root, GATE_PING, 5), 0);
	assert_int_equal(gate_send(net.gate, &question, "sealed", 6, NULL), 0);
	loop_advance(loop, TURN_NS);
	assert_int_equal(net.received, 1);
	assert_int_equal(net.last.id.id, 5);
	assert_int_equal(root.received, 1);
	assert_int_equal(root.last.question.ticket, 9);
	assert_int_equal(root.n, 6);
	assert_memory_equal(root.tail, "sealed", 6);
}

static void test_descriptors(void **state)
{
	struct gate_message m = {.type = GATE_STREAM};
	int pipes[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(gate_send(net.gate, &m, "hello", 5, &pipes[0]), 0);
	loop_advance(loop, TURN_NS);
	assert_true(root.fd >= 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_int_equal(read(root.fd, &byte, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
}

/* What the other end does not take waits, in order, and with its descriptors; then no more fits. */
static void test_queue(void **state)
{
	static char tail[GATE_CONTROL_MAX];
	const struct gate_message big = {.type = GATE_QUESTION};
	struct gate_message stream = {.type = GATE_STREAM};
	size_t sent = 0;
	int rc, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	while (!(rc = gate_send(net.gate, &big, tail, sizeof(tail), NULL)))
		sent++;
	assert_int_equal(rc, -ENOBUFS);
	assert_true(gate_queued(net.gate) > 0 && gate_queued(net.gate) <= GATE_QUEUE_MAX);
	assert_int_equal(gate_send(net.gate, &stream, "s", 1, &null), 0); /* a small one fits */
	close(null);
	for (int i = 0; i < 1000 && root.received < sent + 1; i++)
		loop_advance(loop, TURN_NS);
	assert_int_equal(root.received, sent + 1);
	assert_int_equal(root.last.type, GATE_STREAM);
	assert_true(root.fd >= 0);
	assert_int_equal(gate_queued(net.gate), 0);
	assert_int_equal(net.broken + root.broken, 0);
}

/* One who fills the socket without an end does not keep others from their turn. */
static void test_turns(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(send_id(&net, GATE_PONG, 1), 0);
	assert_int_equal(gate_wait(root.gate, 0), 0);
	assert_int_equal(root.received, 1);
}

static void test_other_end_goes(void **state)
{
	(void)state;
	gate_free(net.gate);
	net.gate = NULL;
	loop_advance(loop, TURN_NS);
	assert_int_equal(root.broken, 1);
	assert_int_equal(send_id(&root, GATE_PING, 1), -EPIPE);
	assert_int_equal(gate_wait(root.gate, 0), -EPIPE);
	loop_advance(loop, TURN_NS);
	assert_int_equal(root.broken, 1);
}

static void refused(const char *bytes, size_t n, const int *fds, size_t nfds, const char *why)
{
	char space[CMSG_SPACE(sizeof(int) * 64)] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (nfds) {
		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	assert_int_equal(sendmsg(ends[1], &msg, 0), (ssize_t)n);
	loop_advance(loop, TURN_NS);
	assert_int_equal(root.received, 0);
	assert_int_equal(root.broken, 1);
	assert_non_null(strstr(root.why, why));
}

static void test_no_message(void **state)
{
	(void)state;
	refused("nonsense, which is longer than a head", 37, NULL, 0, "type");
}

/* What comes after it is not taken either. */
static void test_wrong_side(void **state)
{
	static char ping[GATE_HEAD + sizeof(struct gate_id)] = {GATE_PING};

	(void)state;
	assert_int_equal(send_id(&net, GATE_PING, 1), 0);
	assert_int_equal(send_id(&net, GATE_PONG, 1), 0);
	refused(ping, sizeof(ping), NULL, 0, "type");
}

static void test_too_long(void **state)
{
	static char longest[GATE_PACKET_MAX + 1] = {GATE_PONG};

	(void)state;
	refused(longest, sizeof(longest), NULL, 0, "length");
}

/* Descriptors that nobody asked for are closed, also when there are more than fit. */
static void test_many_descriptors(void **state)
{
	static char pong[GATE_HEAD + sizeof(struct gate_id)] = {GATE_PONG};
	int fds[64];

	(void)state;
	for (size_t i = 0; i < 64; i++)
		fds[i] = STDERR_FILENO;
	refused(pong, sizeof(pong), fds, 64, "descriptors");
}

static void test_one_descriptor(void **state)
{
	static char pong[GATE_HEAD + sizeof(struct gate_id)] = {GATE_PONG};
	const int fd = STDERR_FILENO;

	(void)state;
	refused(pong, sizeof(pong), &fd, 1, "descriptors");
}

/* A process without descriptors gets the message all the same. */
static void test_no_descriptor_left(void **state)
{
	const struct gate_message m = {.type = GATE_STREAM};
	struct rlimit limit, few;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(gate_send(net.gate, &m, "s", 1, &null), 0);
	close(null);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 4;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	loop_advance(loop, TURN_NS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(root.received, 1);
	assert_int_equal(root.broken, 0);
	assert_int_equal(root.fd, -1);
}

static void test_wait(void **state)
{
	(void)state;
	assert_int_equal(gate_wait(root.gate, 0), -ETIMEDOUT);
	assert_int_equal(send_id(&net, GATE_PONG, 3), 0);
	assert_int_equal(gate_wait(root.gate, 1000), 0);
	assert_int_equal(root.last.id.id, 3);
}

static void test_bounds(void **state)
{
	static char tail[GATE_CONTROL_MAX + 1];
	const struct gate_message m = {.type = GATE_QUESTION};

	(void)state;
	assert_int_equal(gate_send(net.gate, &m, tail, sizeof(tail), NULL), -EMSGSIZE);
}

#define with(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with(test_both_ways),
		with(test_descriptors),
		with(test_queue),
		with(test_turns),
		with(test_other_end_goes),
		with(test_no_message),
		with(test_wrong_side),
		with(test_too_long),
		with(test_many_descriptors),
		with(test_one_descriptor),
		with(test_wait),
		with(test_bounds),
		with(test_no_descriptor_left),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
