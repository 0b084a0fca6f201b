/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The file `tail` of a job's record; see record_tail.h. */
#include "user/record_tail.h"

#include <errno.h>
#include <string.h>

#include "user/channel/bytes.h"
#include "user/record.h"

#define ROOM_MAX (UINT64_C(1) << 40)

static const uint8_t magic[8] = {'i', 'o', 't', 'a', 'i', 'l', 0, 1};

static uint8_t *record_tail_put_u64(uint8_t *at, uint64_t value)
{
	bytes_put_u64(at, value);
	return at + sizeof(value);
}

static uint64_t take_u64(const uint8_t **at)
{
	uint64_t value = bytes_u64(*at);

	*at += sizeof(value);
	return value;
}

void record_tail_put(uint8_t out[RECORD_TAIL_BYTES], const struct record_tail *tail)
{
	memcpy(out, magic, sizeof(magic));
	out += sizeof(magic);
	for (int i = 0; i < 2; i++) {
		const struct record_tail_of *of = &tail->of[i];

		out = record_tail_put_u64(out, of->head);
		out = record_tail_put_u64(out, of->room);
		out = record_tail_put_u64(out, of->from);
		out = record_tail_put_u64(out, of->end);
	}
}

int record_tail_take(struct record_tail *tail, const void *data, size_t length)
{
	const uint8_t *at = data;

	*tail = (struct record_tail){0};
	if (length != RECORD_TAIL_BYTES || memcmp(at, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	at += sizeof(magic);
	for (int i = 0; i < 2; i++) {
		struct record_tail_of *of = &tail->of[i];

		of->head = take_u64(&at);
		of->room = take_u64(&at);
		of->from = take_u64(&at);
		of->end = take_u64(&at);
		if (of->room > ROOM_MAX || of->from < of->head || of->end < of->from ||
		    of->end - of->from > of->room)
			return -EBADMSG;
	}
	return 0;
}

int record_tail_read(int dir, struct record_tail *tail)
{
	uint8_t data[RECORD_TAIL_BYTES + 1];
	ssize_t n = record_slurp(dir, RECORD_TAIL, data, sizeof(data));

	*tail = (struct record_tail){0};
	return n < 0 ? (int)n : record_tail_take(tail, data, (size_t)n);
}
