/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Messages between batch and worker: kind, sequence, length, data; see batch.h. */
#include "balancer/batch/batch.h"

#include <errno.h>
#include <string.h>

#define END_BYTES 12

static void batch_wire_put_u32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

int batch_put(struct queue *queue, enum batch_kind kind, uint32_t sequence, const void *data,
	      size_t length)
{
	uint8_t head[BATCH_HEADER] = {(uint8_t)kind};
	int rc;

	batch_wire_put_u32(head + 1, sequence);
	batch_wire_put_u32(head + 5, (uint32_t)length);
	rc = queue_push(queue, head, sizeof(head));
	return rc ? rc : queue_push(queue, data, length);
}

int batch_put_end(struct queue *queue, uint32_t sequence, int status, uint64_t wall_ns)
{
	uint8_t data[END_BYTES];

	batch_wire_put_u32(data, (uint32_t)status);
	batch_wire_put_u32(data + 4, (uint32_t)(wall_ns >> 32));
	batch_wire_put_u32(data + 8, (uint32_t)wall_ns);
	return batch_put(queue, BATCH_END, sequence, data, sizeof(data));
}

/* The largest payload of a message of this kind; -1: there is no such kind. */
static int64_t batch_wire_limit(uint8_t kind)
{
	switch (kind) {
	case BATCH_COMMAND:
		return BATCH_LINE_MAX;
	case BATCH_OUT:
	case BATCH_ERR:
		return BATCH_PIECE_MAX;
	case BATCH_END:
		return END_BYTES;
	case BATCH_BACK:
		return 0;
	default:
		return -1;
	}
}

ssize_t batch_take(const uint8_t *data, size_t have, struct batch_message *message)
{
	uint32_t length;

	if (have && batch_wire_limit(data[0]) < 0)
		return -EPROTO;
	if (have < BATCH_HEADER)
		return 0;
	length = wire_u32(data + 5);
	if (length > batch_wire_limit(data[0]))
		return -EPROTO;
	if (have < BATCH_HEADER + length)
		return 0;
	*message = (struct batch_message){
		.kind = (enum batch_kind)data[0],
		.sequence = wire_u32(data + 1),
		.data = data + BATCH_HEADER,
		.length = length,
	};
	return (ssize_t)(BATCH_HEADER + length);
}

int batch_take_end(const struct batch_message *message, int *status, uint64_t *wall_ns)
{
	if (message->kind != BATCH_END || message->length != END_BYTES)
		return -EPROTO;
	*status = (int)wire_u32(message->data);
	*wall_ns = (uint64_t)wire_u32(message->data + 4) << 32 | wire_u32(message->data + 8);
	return 0;
}
