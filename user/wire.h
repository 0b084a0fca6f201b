/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One end of a job stream for an event loop: it sends and receives frames on a non-blocking
 * socket. Shim and CLI are the two ends.
 *
 * Memory is bounded because data frames are sent only while nothing is queued (wire_idle), and
 * received data only up to the credit given.
 *
 * A wire with keys (user/channel/records.h) carries the same bytes inside records, and nothing in
 * clear. What does not open breaks the connection: wire_fill returns -EBADMSG then.
 */
#ifndef IOCOM_WIRE_H
#define IOCOM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/channel/records.h"
#include "user/frame.h"

/* A queue of bytes. It frees its memory when it is empty. */
struct queue {
	uint8_t *data;
	size_t head, length, size;
};

int queue_push(struct queue *queue, const void *data, size_t length); /* returns 0 or -ENOMEM */
static inline const uint8_t *queue_front(const struct queue *queue)
{
	return queue->data + queue->head;
}
void queue_drop(struct queue *queue, size_t length);
void queue_free(struct queue *queue);

#define WIRE_BUFFER (2 * (FRAME_DATA_MAX + 64))

/*
 * A TCP peer counts as gone if its machine answers nothing for so long. The kernels probe an
 * idle connection (keep-alive), and they also answer for a stopped or slow process.
 */
#define WIRE_SILENCE_S 10
#define WIRE_LOOK_MS   5000 /* interval between calls of wire_silent */
#define WIRE_DOUBT_MS  1000 /* interval while data is being retransmitted */

struct wire {
	int fd; /* owned */
	unsigned silence_s;
	uint64_t looked_ms; /* CLOCK_BOOTTIME */
	bool doubtful;
	uint8_t *in;
	size_t in_head, in_length;
	struct queue out;
	/* With keys. Behind the bytes of `in` that frames are taken from, SEALED bytes are the
	 * beginning of a record. OWN has room to seal one frame. */
	bool secure;
	struct records records;
	size_t sealed;
	uint8_t *own;
};

/*
 * Takes FD and makes it non-blocking; for TCP it also sets no delay and WIRE_SILENCE_S. RECORDS
 * are the keys of the stream and its counters, which are copied: from here on only this wire may
 * use them. NULL: the stream is in clear, for a socket of this machine. Returns 0, or -ENOMEM (FD
 * stays the caller's).
 */
int wire_init(struct wire *wire, int fd, const struct records *records);
void wire_deinit(struct wire *wire); /* closes FD and erases the keys */
/*
 * Closes a stream's descriptor, which others may have, too. Whoever has it may have set SO_LINGER,
 * and then close() of the last one would wait for what its peer does not take.
 */
void wire_close(int fd);
/* Returns the keys and counters for another wire that goes on with this one's stream; NULL: it is
 * in clear. */
static inline const struct records *wire_records(const struct wire *wire)
{
	return wire->secure ? &wire->records : NULL;
}
static inline bool wire_idle(const struct wire *wire)
{
	return wire->out.length == 0;
}
/*
 * Sends a frame of two pieces, and queues what the socket does not take. Returns 0; negative
 * errno: the peer is gone (-EPIPE or -ECONNRESET, for instance); -ENOBUFS: the peer makes us
 * send but does not read; -EMSGSIZE: with keys, a frame is at most as long as a data frame.
 */
int wire_send(struct wire *wire, uint8_t type, const void *head, size_t head_length,
	      const void *data, size_t length);
/* Sends what is queued. Returns 0 or negative errno. */
int wire_flush(struct wire *wire);
/* Receives what has arrived. Returns 1: some bytes; 0: nothing now; -EPIPE: closed; -EBADMSG: the
 * peer does not know the keys, or somebody changed the stream; negative errno. */
int wire_fill(struct wire *wire);
/*
 * Gets the next whole frame; PAYLOAD is valid until the next wire_fill. Returns 0, or
 * FRAME_E_MORE, FRAME_E_GARBAGE or FRAME_E_VERSION.
 */
int wire_next(struct wire *wire, uint8_t *type, const uint8_t **payload, uint32_t *length);
/* Drops what has arrived. */
static inline void wire_discard(struct wire *wire)
{
	wire->in_head += wire->in_length;
	wire->in_length = 0;
}

/* Sets another limit for a silent peer than WIRE_SILENCE_S. */
void wire_patience(struct wire *wire, unsigned silence_s);
/* Sets the same limit for a TCP socket without a wire. This covers idle connections only;
 * wire_silent needs a wire. */
void wire_watch(int fd, unsigned silence_s);
/*
 * Returns true if a TCP peer stopped answering: data or window probes are sent repeatedly, and
 * nothing was acknowledged for too long. (Keep-alive probes an idle peer, and the socket then
 * reports an error.) Call it in every turn of a loop and at least every wire_look_ms; it checks
 * at most once a second.
 */
bool wire_silent(struct wire *wire);
static inline int wire_look_ms(const struct wire *wire)
{
	return wire->doubtful ? WIRE_DOUBT_MS : WIRE_LOOK_MS;
}

/* Send the small frames. They return as wire_send. */
int wire_data(struct wire *wire, uint8_t stream, uint64_t offset, const void *data, size_t length);
int wire_credit(struct wire *wire, uint8_t stream, uint64_t limit);
int wire_end(struct wire *wire, uint8_t stream, uint64_t offset);
int wire_signal(struct wire *wire, uint8_t signal);
int wire_exit(struct wire *wire, uint8_t kind, uint32_t value, const char *text);
int wire_known(struct wire *wire); /* the CLI's FRAME_EXIT */
int wire_error(struct wire *wire, const char *text);
uint32_t wire_u32(const uint8_t *at); /* both numbers are big-endian */
uint64_t wire_u64(const uint8_t *at);

#endif
