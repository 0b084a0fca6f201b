/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See sealed.h. */
#include "tests/lib/sealed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "balancer/run/run_stream.h"
#include "user/frame.h"

int sealed_connect(const struct run_target *target, const struct stream_hello *hello,
		   struct records *records, struct iocom_err *err)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)target->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (inet_pton(AF_INET, target->address, &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		rc = iocom_err_set(err, -errno, "cannot connect: %s", strerror(errno));
		close(fd);
		return rc;
	}
	rc = run_handshake(target, fd, hello, run_now_ms() + RUN_CONNECT_MS, records, err);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int sealed_write(int fd, const uint8_t *at, size_t n)
{
	while (n) {
		ssize_t put = write(fd, at, n);

		if (put <= 0)
			return -EPIPE;
		at += put;
		n -= (size_t)put;
	}
	return 0;
}

static int sealed_read(int fd, uint8_t *at, size_t n)
{
	while (n) {
		ssize_t got = read(fd, at, n);

		if (got <= 0)
			return -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

/* Moves one frame to the network. */
static int sealed_out(int net, struct records *records, int in)
{
	static uint8_t frame[FRAME_HEADER + FRAME_PAYLOAD_MAX], sealed[2 * sizeof(frame)];
	struct iovec piece = {frame, FRAME_HEADER};

	if (sealed_read(in, frame, FRAME_HEADER))
		return -EPIPE;
	piece.iov_len += (size_t)frame[5] << 16 | (size_t)frame[6] << 8 | frame[7];
	if (piece.iov_len > sizeof(frame) ||
	    sealed_read(in, frame + FRAME_HEADER, piece.iov_len - FRAME_HEADER) ||
	    records_seal(records, &piece, 1, sealed))
		return -EPIPE;
	return sealed_write(net, sealed, records_size(piece.iov_len));
}

/* Moves one record from the network.  Returns 0; -EPIPE: the end; -EBADMSG. */
static int sealed_in(int net, struct records *records, int out)
{
	static uint8_t message[NOISE_MESSAGE_MAX];
	uint8_t head[RECORD_HEAD];
	size_t length;

	if (sealed_read(net, head, sizeof(head)))
		return -EPIPE;
	if (records_length(head, &length) || sealed_read(net, message, length) ||
	    records_open(records, message, length))
		return -EBADMSG;
	return sealed_write(out, message, length - NOISE_TAG);
}

int sealed_move(int net, struct records *records, int in, int out)
{
	int rc = 0;

	signal(SIGPIPE, SIG_IGN);
	while (!rc) {
		struct pollfd p[2] = {{.fd = in, .events = POLLIN}, {.fd = net, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			return -errno;
		if (p[0].revents && sealed_out(net, records, in)) {
			shutdown(net, SHUT_WR);
			in = -1;
		}
		if (p[1].revents)
			rc = sealed_in(net, records, out);
	}
	return rc == -EPIPE ? 0 : rc;
}

int sealed_serve(int net, const struct records *records)
{
	struct records own = *records;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		abort();
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		_exit(sealed_move(net, &own, ends[1], ends[1]) ? 1 : 0);
	}
	close(net);
	close(ends[1]);
	return ends[0];
}
