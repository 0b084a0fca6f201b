/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where the end of a job's output is kept, once its beginning has filled its room: the
 * file `tail` of its record.  `out` and `err` hold the beginning, and behind it a ring,
 * whose bytes this says the offsets of.  It is rewritten in place with every piece, and
 * always true: before bytes are overwritten it no longer names them, and it names new ones
 * only once they are there.
 */
#ifndef IOCOM_RECORD_TAIL_H
#define IOCOM_RECORD_TAIL_H

#include <stddef.h>
#include <stdint.h>

#define RECORD_TAIL	  "tail"
#define RECORD_TAIL_BYTES 72

/* Of `out` and `err`: [0] and [1].  Offsets in the job's output. */
struct record_tail {
	struct record_tail_of {
		uint64_t head; /* behind the last byte of the beginning */
		uint64_t room; /* bytes of the ring; 0: there is none */
		uint64_t from; /* the first byte in the ring; HEAD or later */
		uint64_t end;  /* behind the last one */
	} of[2];
};

void record_tail_put(uint8_t out[RECORD_TAIL_BYTES], const struct record_tail *tail);
/* 0; -EBADMSG it is damaged: no byte has two places, no ring more bytes than its room. */
int record_tail_take(struct record_tail *tail, const void *data, size_t length);
/* In DIR, a job's record.  0 or negative errno; -ENOENT there is none. */
int record_tail_read(int dir, struct record_tail *tail);

#endif
