/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a shim sends to the shim of another node when its job moves there, in frames FRAME_MOVE: a
 * byte that says what it is, then
 *
 *   ROOM 'm'     u64 BE: bytes of all files
 *   FILE 'f'     u64 BE: the file's bytes; its name
 *   BYTES 'b'    the next of them
 *   PACKED 'z'   the next of them, at most TRANSFER_PIECE, as zstd packs them (squeeze.h)
 *   ROUND 'R'    the files that follow are memory of a job that still runs: the first, the second
 *                ... of such rounds
 *   LAST 'L'     after rounds: what follows is the rest
 *   END 'e'      there are no more files
 *
 * and back:
 *
 *   BEGIN 'g'    the target's shim is there and has a criu: before that nothing needs to be frozen
 *   UNPACKS 'Z'  after ROOM: PACKED may come
 *   BEGIN 'g'    again, after ROOM: ROUND may come: TRANSFER_ROUNDS_BYTES in rounds, and as many as
 *                ROOM says after LAST.  Older shims send and expect no second BEGIN, and pass over
 * it READY 'r'    all is restored and waits REFUSED 'n'  a sentence: nothing is left of it
 *
 * Names with TRANSFER_RECORD before them are of files in the job's record, and the rest is how they
 * are called there: "out" or "err".  Other names are criu's: letters, digits, '-', '.', '_'; a file
 * comes once in a round.  Those of a round are put into a directory of their own, from which criu's
 * link leads to the round before; and from the rest of them to the last round.
 */
#ifndef IOCOM_SHIM_MOVE_TRANSFER_H
#define IOCOM_SHIM_MOVE_TRANSFER_H

#include <stdbool.h>
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

#define TRANSFER_ROUNDS_MAX 8
/* Most bytes of all rounds together where ROOM bytes were announced. */
#define TRANSFER_ROUNDS_BYTES(room) ((room) + (room) / 2)
#define TRANSFER_ROUND_NAME	    16
/* Puts the name of the directory of round NUMBER, from 1 on, into NAME. */
void transfer_round_name(char name[TRANSFER_ROUND_NAME], unsigned number);
/*
 * The same in parts.  The first announces BYTES, of what comes after all rounds, and waits at most
 * LIMIT_MS for whether the peer takes rounds, which the second returns. The third sends the files
 * of the next round, which are in the directory of its name; the fourth the rest.  They return as
 * transfer_send; who refuses meanwhile is heard at the end of a round.
 */
struct sending;
int transfer_open(struct sending **sending, struct wire *wire, uint64_t bytes, unsigned limit_ms,
		  uint64_t until_ms, struct iocom_err *err);
bool transfer_takes_rounds(const struct sending *s);
int transfer_round(struct sending *s, const struct images *images, struct iocom_err *err);
int transfer_rest(struct sending *s, const struct images *images, int record,
		  struct iocom_err *err);
void transfer_close(struct sending *s);

/* Where to put what comes. */
struct transfer_into {
	struct images *images; /* which it makes */
	uint64_t most_bytes;   /* of images that are taken */
	bool rounds;	       /* which may come in rounds, if there is memory for them, too */
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
