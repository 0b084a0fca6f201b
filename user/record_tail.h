/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The file `tail` of a job's record. `out` and `err` hold the beginning of the output and behind
 * it a ring; once the beginning has filled its room, `tail` gives the offsets of the ring's
 * bytes. It is rewritten in place with every piece and is always true: it stops naming bytes
 * before they are overwritten, and names new ones only after they are written.
 */
#ifndef IOCOM_RECORD_TAIL_H
#define IOCOM_RECORD_TAIL_H

#include <stddef.h>
#include <stdint.h>

#define RECORD_TAIL	  "tail"
#define RECORD_TAIL_BYTES 72

/* Values of `out` ([0]) and `err` ([1]). Offsets count in the job's output. */
struct record_tail {
	struct record_tail_of {
		uint64_t head; /* end of the beginning */
		uint64_t room; /* size of the ring; 0: no ring */
		uint64_t from; /* the first byte in the ring; HEAD or later */
		uint64_t end;  /* end of the last byte in the ring */
	} of[2];
};

void record_tail_put(uint8_t out[RECORD_TAIL_BYTES], const struct record_tail *tail);
/*
 * Decodes the file. Returns 0; -EBADMSG: damaged, because a byte has two places or a ring holds
 * more than its room.
 */
int record_tail_take(struct record_tail *tail, const void *data, size_t length);
/* Reads the file of the job's record DIR. Returns 0 or negative errno; -ENOENT: no such file. */
int record_tail_read(int dir, struct record_tail *tail);

#endif
