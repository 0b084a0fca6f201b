/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The last bytes of a stream, kept until its other end has them: what a client
 * that was cut off did not get is sent again, exactly.  A ring of one window,
 * spoken of by the stream's own byte offsets.
 */
#ifndef IOCOM_RESEND_BUFFER_H
#define IOCOM_RESEND_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "user/frame.h"

#define RESEND_BYTES FRAME_WINDOW /* a power of two */

struct resend_buffer {
	uint8_t *data;	     /* mapped with the first byte, given back with the last */
	uint64_t start, end; /* offsets: kept are [start, end) */
};

static inline size_t resend_room(const struct resend_buffer *keep)
{
	return RESEND_BYTES - (size_t)(keep->end - keep->start);
}
/* Where the next bytes go: N of them in one piece, 0 when full.  NULL: no memory. */
uint8_t *resend_space(struct resend_buffer *keep, size_t *n);
/* N bytes were put there. */
void resend_added(struct resend_buffer *keep, size_t n);
/* The bytes from OFFSET (start <= OFFSET <= end) that lie in one piece: N. */
const uint8_t *resend_at(const struct resend_buffer *keep, uint64_t offset, size_t *n);
/* Those below OFFSET (<= end) are not needed any more. */
void resend_drop(struct resend_buffer *keep, uint64_t offset);
/* Gives the memory back; the offsets stay where they are, and nothing is kept. */
void resend_free(struct resend_buffer *keep);

#endif
