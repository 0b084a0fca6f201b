/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One end of a job stream; see wire.h. */
#include "user/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "iocom/array.h"
#include "user/channel/bytes.h"

#define OUT_MAX	   (2u << 20) /* far more than one data frame and all credits of a window */

#define FRAME_MOST (FRAME_HEADER + FRAME_DATA_HEAD + FRAME_DATA_MAX)
/* Such a frame as records, of which two may be needed. */
#define OWN_ROOM (FRAME_MOST + 2 * (RECORD_HEAD + NOISE_TAG))

/* While a frame is incomplete there is room for a whole record behind its bytes. */
_Static_assert(WIRE_BUFFER >= FRAME_MOST + RECORD_HEAD + NOISE_MESSAGE_MAX, "a record has room");
_Static_assert(FRAME_MOST <= 2 * NOISE_PLAINTEXT_MAX, "two records suffice");

#define PROBES_MAX 20 /* unanswered probes after which the kernel gives up */
#define SENT_AGAIN 3  /* retransmissions that one lost segment cannot explain */

int queue_push(struct queue *queue, const void *data, size_t length)
{
	if (queue->head && queue->head + queue->length + length > queue->size) {
		memmove(queue->data, queue->data + queue->head, queue->length);
		queue->head = 0;
	}
	if (array_reserve(queue->data, queue->size, queue->length + length, 4096))
		return -ENOMEM;
	if (length)
		memcpy(queue->data + queue->head + queue->length, data, length);
	queue->length += length;
	return 0;
}

void queue_drop(struct queue *queue, size_t length)
{
	queue->head += length;
	queue->length -= length;
	if (!queue->length)
		queue_free(queue);
}

void queue_free(struct queue *queue)
{
	free(queue->data);
	*queue = (struct queue){0};
}

static void wire_set_option(int fd, int level, int option, int value)
{
	/* This fails on a unix socket, which needs none of these options. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

void wire_watch(int fd, unsigned silence_s)
{
	int idle = (int)silence_s * 2 / 5 > 0 ? (int)silence_s * 2 / 5 : 1;
	int left = (int)silence_s > idle ? (int)silence_s - idle : 1;
	int each = (left + PROBES_MAX - 1) / PROBES_MAX;

	wire_set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	wire_set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
	wire_set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, each);
	wire_set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, (left + each - 1) / each);
}

void wire_patience(struct wire *wire, unsigned silence_s)
{
	wire->silence_s = silence_s;
	wire_watch(wire->fd, silence_s);
}

int wire_init(struct wire *wire, int fd, const struct records *records)
{
	int flags = fcntl(fd, F_GETFL);

	*wire = (struct wire){.fd = -1};
	wire->in = malloc(WIRE_BUFFER);
	if (records)
		wire->own = malloc(OWN_ROOM);
	if (!wire->in || (records && (!wire->own || sodium_init() < 0))) {
		wire_deinit(wire);
		return -ENOMEM;
	}
	wire->fd = fd;
	if (records) {
		wire->secure = true;
		wire->records = *records;
	}
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	wire_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	wire_patience(wire, WIRE_SILENCE_S);
	return 0;
}

void wire_close(int fd)
{
	const struct linger never = {0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &never, sizeof(never));
	close(fd);
}

void wire_deinit(struct wire *wire)
{
	if (wire->fd >= 0)
		wire_close(wire->fd);
	free(wire->in);
	free(wire->own);
	queue_free(&wire->out);
	records_erase(&wire->records);
	*wire = (struct wire){.fd = -1};
}

/* Queues what sendmsg did not take of the pieces. */
static int wire_keep(struct wire *wire, const struct iovec *iov, size_t niov, size_t sent)
{
	for (size_t i = 0; i < niov; i++) {
		size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;
		int rc;

		sent -= skip;
		if (skip == iov[i].iov_len)
			continue;
		rc = queue_push(&wire->out, (const uint8_t *)iov[i].iov_base + skip,
				iov[i].iov_len - skip);
		if (rc)
			return rc;
	}
	return 0;
}

/* Sends N pieces, and queues what the socket does not take. Returns as wire_send. */
static int wire_put(struct wire *wire, struct iovec *iov, size_t n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
	ssize_t sent = 0;

	if (wire_idle(wire)) {
		do
			sent = sendmsg(wire->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		while (sent < 0 && errno == EINTR);
		if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			return -errno;
	}
	return wire_keep(wire, iov, n, sent < 0 ? 0 : (size_t)sent);
}

/* Seals the pieces of one frame and sends that. */
static int wire_put_sealed(struct wire *wire, const struct iovec iov[3])
{
	size_t length = iov[0].iov_len + iov[1].iov_len + iov[2].iov_len;
	struct iovec sealed = {wire->own, records_size(length)};
	int rc = length > FRAME_MOST ? -EMSGSIZE : records_seal(&wire->records, iov, 3, wire->own);

	return rc ? rc : wire_put(wire, &sealed, 1);
}

int wire_send(struct wire *wire, uint8_t type, const void *head, size_t head_length,
	      const void *data, size_t length)
{
	uint8_t header[FRAME_HEADER];
	struct iovec iov[3] = {
		{header, sizeof(header)},
		{(void *)head, head_length},
		{(void *)data, length},
	};

	frame_header(header, type, (uint32_t)(head_length + length));
	if (wire->out.length > OUT_MAX)
		return -ENOBUFS;
	return wire->secure ? wire_put_sealed(wire, iov) : wire_put(wire, iov, 3);
}

int wire_flush(struct wire *wire)
{
	while (wire->out.length) {
		ssize_t sent = send(wire->fd, queue_front(&wire->out), wire->out.length,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		queue_drop(&wire->out, (size_t)sent);
	}
	return 0;
}

/* Opens the whole records behind the bytes for frames, and joins what was in them to those. */
static int wire_open(struct wire *wire)
{
	uint8_t *end = wire->in + wire->in_length, *at = end;
	size_t length;

	while (wire->sealed >= RECORD_HEAD) {
		if (records_length(at, &length))
			return -EBADMSG;
		if (wire->sealed < RECORD_HEAD + length)
			break;
		if (records_open(&wire->records, at + RECORD_HEAD, length))
			return -EBADMSG;
		memmove(end, at + RECORD_HEAD, length - NOISE_TAG);
		end += length - NOISE_TAG;
		at += RECORD_HEAD + length;
		wire->sealed -= RECORD_HEAD + length;
	}
	memmove(end, at, wire->sealed);
	wire->in_length = (size_t)(end - wire->in);
	return 0;
}

int wire_fill(struct wire *wire)
{
	size_t have = wire->in_length + wire->sealed;
	ssize_t got;

	if (wire->in_head) {
		memmove(wire->in, wire->in + wire->in_head, have);
		wire->in_head = 0;
	}
	if (have == WIRE_BUFFER)
		return 1; /* complete frames wait to be taken */
	do
		got = recv(wire->fd, wire->in + have, WIRE_BUFFER - have, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got == 0)
		return -EPIPE;
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	if (!wire->secure) {
		wire->in_length += (size_t)got;
		return 1;
	}
	wire->sealed += (size_t)got;
	return wire_open(wire) ? -EBADMSG : 1;
}

int wire_next(struct wire *wire, uint8_t *type, const uint8_t **payload, uint32_t *length)
{
	size_t consumed = 0;
	int rc = frame_parse(wire->in + wire->in_head, wire->in_length,
			     FRAME_DATA_MAX + FRAME_DATA_HEAD, type, payload, length, &consumed);

	if (rc)
		return rc;
	wire->in_head += consumed;
	wire->in_length -= consumed;
	return 0;
}

bool wire_silent(struct wire *wire)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);
	struct timespec now;
	uint64_t now_ms;

	clock_gettime(CLOCK_BOOTTIME, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (now_ms < wire->looked_ms + WIRE_DOUBT_MS)
		return false;
	wire->looked_ms = now_ms;
	if (getsockopt(wire->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return false;
	wire->doubtful = info.tcpi_retransmits || info.tcpi_probes;
	return (info.tcpi_retransmits >= SENT_AGAIN || info.tcpi_probes >= SENT_AGAIN) &&
	       info.tcpi_last_ack_recv > wire->silence_s * 1000;
}

uint32_t wire_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint64_t wire_u64(const uint8_t *at)
{
	return (uint64_t)wire_u32(at) << 32 | wire_u32(at + 4);
}

/* Writes a stream and an offset: the head of DATA, or all of CREDIT. */
static void put_place(uint8_t at[FRAME_DATA_HEAD], uint8_t stream, uint64_t offset)
{
	at[0] = stream;
	bytes_put_u32(at + 1, (uint32_t)(offset >> 32));
	bytes_put_u32(at + 5, (uint32_t)offset);
}

int wire_data(struct wire *wire, uint8_t stream, uint64_t offset, const void *data, size_t length)
{
	uint8_t head[FRAME_DATA_HEAD];

	put_place(head, stream, offset);
	return wire_send(wire, FRAME_DATA, head, sizeof(head), data, length);
}

int wire_credit(struct wire *wire, uint8_t stream, uint64_t limit)
{
	uint8_t payload[FRAME_DATA_HEAD];

	put_place(payload, stream, limit);
	return wire_send(wire, FRAME_CREDIT, payload, sizeof(payload), NULL, 0);
}

int wire_end(struct wire *wire, uint8_t stream, uint64_t offset)
{
	return wire_data(wire, stream, offset, NULL, 0);
}

int wire_known(struct wire *wire)
{
	return wire_send(wire, FRAME_EXIT, NULL, 0, NULL, 0);
}

int wire_error(struct wire *wire, const char *text)
{
	return wire_send(wire, FRAME_ERROR, NULL, 0, text, strlen(text));
}

int wire_signal(struct wire *wire, uint8_t signal)
{
	return wire_send(wire, FRAME_SIGNAL, &signal, 1, NULL, 0);
}

int wire_exit(struct wire *wire, uint8_t kind, uint32_t value, const char *text)
{
	uint8_t payload[5] = {kind};

	bytes_put_u32(payload + 1, value);
	return wire_send(wire, FRAME_EXIT, payload, sizeof(payload), text, strlen(text));
}
