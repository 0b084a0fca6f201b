/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The last bytes of a stream, kept until the other end confirms them. A client that was cut off
 * is sent exactly the bytes it missed. It is a ring of one window, addressed by the stream's own
 * byte offsets.
 */
#ifndef IOCOM_RESEND_BUFFER_H
#define IOCOM_RESEND_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "user/frame.h"

#define RESEND_BYTES FRAME_WINDOW /* a power of two */

struct resend_buffer {
	uint8_t *data;	     /* mapped for the first byte, unmapped when empty */
	uint64_t start, end; /* offsets: the bytes in [start, end) are kept */
};

static inline size_t resend_room(const struct resend_buffer *keep)
{
	return RESEND_BYTES - (size_t)(keep->end - keep->start);
}
/*
 * Returns where to put the next bytes and the contiguous room N (0: full), or NULL if there is no
 * memory.
 */
uint8_t *resend_space(struct resend_buffer *keep, size_t *n);
/* Counts N bytes that the caller put there. */
void resend_added(struct resend_buffer *keep, size_t n);
/* Returns the bytes at OFFSET (start <= OFFSET <= end) and how many are contiguous: N. */
const uint8_t *resend_at(const struct resend_buffer *keep, uint64_t offset, size_t *n);
/* Drops the bytes below OFFSET (<= end). */
void resend_drop(struct resend_buffer *keep, uint64_t offset);
/* Gives the memory back. The offsets stay, but no bytes are kept. */
void resend_free(struct resend_buffer *keep);

#endif
