/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One end of a job stream for an event loop: frames in and out of a
 * non-blocking socket.  Shim and CLI are the two ends.
 *
 * What bounds memory: data frames are only sent while nothing waits to be sent
 * (wire_idle), and received data is bounded by the credit that was given.
 */
#ifndef IOCOM_WIRE_H
#define IOCOM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/frame.h"

/* Bytes that wait, first in first out; the memory is given back when empty. */
struct queue {
	uint8_t *data;
	size_t head, length, size;
};

int queue_push(struct queue *queue, const void *data, size_t length); /* 0 or -ENOMEM */
static inline const uint8_t *queue_front(const struct queue *queue)
{
	return queue->data + queue->head;
}
void queue_drop(struct queue *queue, size_t length);
void queue_free(struct queue *queue);

#define WIRE_BUFFER (2 * (FRAME_DATA_MAX + 64))

/*
 * A TCP peer whose machine answers nothing for so long counts as gone: an idle connection
 * is probed by the kernels (keep-alive), which also answer for a process that is stopped
 * or slow.
 */
#define WIRE_SILENCE_S 10
#define WIRE_LOOK_MS   5000 /* how often wire_silent is asked */
#define WIRE_DOUBT_MS  1000 /* ... while something was sent twice */

struct wire {
	int fd; /* owned */
	unsigned silence_s;
	uint64_t looked_ms; /* CLOCK_BOOTTIME */
	bool doubtful;
	uint8_t *in;
	size_t in_head, in_length;
	struct queue out;
};

/* Takes FD: non-blocking, and for TCP no delay and WIRE_SILENCE_S.  0 or -ENOMEM (FD stays the
 * caller's). */
int wire_init(struct wire *wire, int fd);
void wire_deinit(struct wire *wire); /* closes */
static inline bool wire_idle(const struct wire *wire)
{
	return wire->out.length == 0;
}
/*
 * Sends a frame of two pieces; what the socket does not take now waits.
 * 0; negative errno: the peer is gone (-EPIPE, -ECONNRESET ...), -ENOBUFS: it
 * does not read what it makes us send.
 */
int wire_send(struct wire *wire, uint8_t type, const void *head, size_t head_length,
	      const void *data, size_t length);
/* Sends what waits.  0 or negative errno. */
int wire_flush(struct wire *wire);
/* Receives what is there.  1 something; 0 nothing now; -EPIPE closed; negative errno. */
int wire_fill(struct wire *wire);
/*
 * The next whole frame: PAYLOAD is valid until the next wire_fill.
 * 0, or FRAME_E_MORE, FRAME_E_GARBAGE, FRAME_E_VERSION.
 */
int wire_next(struct wire *wire, uint8_t *type, const uint8_t **payload, uint32_t *length);

/* Another bound on a silent peer's time than WIRE_SILENCE_S. */
void wire_patience(struct wire *wire, unsigned silence_s);
/* The same for a TCP socket that is no wire: idle ones; for wire_silent it takes a wire. */
void wire_watch(int fd, unsigned silence_s);
/*
 * Whether a TCP peer stopped answering: data or window probes are being sent again and
 * again and nothing has been acknowledged for too long (an idle one is probed by
 * keep-alive and shows as an error).  To be called whenever a loop comes by, and at least
 * each wire_look_ms: it looks no more often than each second.
 */
bool wire_silent(struct wire *wire);
static inline int wire_look_ms(const struct wire *wire)
{
	return wire->doubtful ? WIRE_DOUBT_MS : WIRE_LOOK_MS;
}

/* The small frames.  Results as wire_send. */
int wire_data(struct wire *wire, uint8_t stream, uint64_t offset, const void *data, size_t length);
int wire_credit(struct wire *wire, uint8_t stream, uint64_t limit);
int wire_end(struct wire *wire, uint8_t stream, uint64_t offset);
int wire_signal(struct wire *wire, uint8_t signal);
int wire_exit(struct wire *wire, uint8_t kind, uint32_t value, const char *text);
int wire_known(struct wire *wire); /* the CLI's FRAME_EXIT */
int wire_error(struct wire *wire, const char *text);
uint32_t wire_u32(const uint8_t *at); /* big-endian, both */
uint64_t wire_u64(const uint8_t *at);

#endif
