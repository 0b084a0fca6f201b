/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a shim sends to the shim of another node when its job moves there, in frames FRAME_MOVE: a
 * byte that says what it is, then
 *
 *   ROOM 'm'     u64 BE: bytes of all files
 *   FILE 'f'     u64 BE: the file's bytes; its name
 *   BYTES 'b'    the next of them
 *   PACKED 'z'   the next of them, at most TRANSFER_PIECE, as zstd packs them (squeeze.h)
 *   END 'e'      there are no more files
 *
 * and back:
 *
 *   BEGIN 'g'    the target's shim is there and has a criu: before that nothing needs to be frozen
 *   UNPACKS 'Z'  after ROOM: PACKED may come
 *   READY 'r'    all is restored and waits
 *   REFUSED 'n'  a sentence: nothing is left of it
 *
 * Names with TRANSFER_RECORD before them are of files in the job's record, and the rest is how they
 * are called there: "out" or "err".  Other names are criu's: letters, digits, '-', '.', '_'; a file
 * comes once.
 */
#ifndef IOCOM_SHIM_MOVE_TRANSFER_H
#define IOCOM_SHIM_MOVE_TRANSFER_H

#include <stdint.h>

#include "agent/shim/move/images.h"
#include "iocom/err.h"
#include "user/wire.h"

#define TRANSFER_RECORD "record-"
#define TRANSFER_PIECE	FRAME_DATA_MAX

/*
 * Sends all files of IMAGES, and the output on disk in RECORD (-1: there is none), until UNTIL_MS
 * (CLOCK_BOOTTIME).  Returns 0; -ETIMEDOUT; -EPIPE and
 * others: the peer is gone.
 */
int transfer_send(struct wire *wire, const struct images *images, int record, uint64_t until_ms,
		  struct iocom_err *err);
/* Where to put what comes. */
struct transfer_into {
	struct images *images; /* which it makes */
	uint64_t most_bytes;   /* of images that are taken */
	int record;	       /* directory of the job's record; -1: no output may come */
	uint64_t record_bytes; /* of output that are taken */
};
/*
 * Receives them.  Returns 0 or
 * negative errno, with nothing to free: -ENOSPC, -EBADMSG, -ETIMEDOUT, -EPIPE.
 */
int transfer_receive(struct wire *wire, const struct transfer_into *into, uint64_t until_ms,
		     struct iocom_err *err);
/* Says BEGIN, or READY.  They return as wire_send. */
int transfer_begin(struct wire *wire, uint64_t until_ms);
int transfer_ready(struct wire *wire, uint64_t until_ms);
/* Sends FRAME_SIGNAL.  Returns as wire_send, when all is sent. */
int transfer_signal(struct wire *wire, uint8_t signal, uint64_t until_ms);
/*
 * Says REFUSED with TEXT, and takes no more.  What the peer still sends is read until it closes: to
 * close before would reset the connection and could destroy the sentence.
 */
void transfer_refuse(struct wire *wire, const char *text, uint64_t until_ms);
/* Waits for that answer, past BEGIN.  Returns 0; -ECONNREFUSED: ERR has the peer's sentence; as
 * above. */
int transfer_await(struct wire *wire, uint64_t until_ms, struct iocom_err *err);

#endif
