/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The protected byte stream after a handshake: records of
 *
 *   length u16 big-endian | Noise transport message of that many bytes
 *
 * Each direction numbers its records by the nonce, so that none can be changed, repeated, left out
 * or put elsewhere without notice.  After each record its key is replaced (REKEY), so that the
 * memory of a process tells nothing of what has passed: a job's stream may last for days.  That the
 * stream ends where it should is for the frames inside to say: a connection that closes between
 * records proves nothing.
 */
#ifndef IOCOM_RECORDS_H
#define IOCOM_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "user/channel/noise.h"

#define RECORD_HEAD  2
#define RECORD_LEAST (NOISE_TAG + 1) /* a record carries at least one byte */

struct records {
	struct noise_key sends, receives;
};

/* Returns how many bytes LENGTH bytes of plaintext take as records. */
size_t records_size(size_t length);
/*
 * Seals the N pieces as records of their own into OUT, which has room for records_size of their
 * total.  Returns 0 or -EOVERFLOW.
 */
int records_seal(struct records *records, const struct iovec *pieces, size_t n, uint8_t *out);
/* Reads the length of a record from its head.  Returns 0, or -EBADMSG: no record is that short. */
int records_length(const uint8_t head[RECORD_HEAD], size_t *length);
/*
 * Opens a record's message of LENGTH bytes in place.  Returns 0, and LENGTH - NOISE_TAG bytes are
 * at MESSAGE; -EBADMSG; -EOVERFLOW.
 */
int records_open(struct records *records, uint8_t *message, size_t length);
void records_erase(struct records *records);

/*
 * The keys and counters as bytes, for the process that goes on with the stream; then the first
 * process must not go on.  records_unpack returns 0, or -EBADMSG.
 */
#define RECORDS_PACKED (2 * (NOISE_KEY + 8))
void records_pack(const struct records *records, uint8_t out[RECORDS_PACKED]);
int records_unpack(struct records *records, const void *data, size_t length);

#endif
