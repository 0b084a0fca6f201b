/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets of any bytes at the gate between the root part of the agent and its network part: what is
 * taken is in range in every field that somebody reads, and its tail is where the packet is.
 *
 *   side, descriptors, type: a byte each | body and tail
 *
 * The lengths are made right by half of the inputs, so that the fields are reached.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "agent/base/peer_cause.h"
#include "agent/base/seal_refusal.h"
#include "agent/gate/gate_message.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "tests/fuzz/protocol/sample_vector.h"

static void check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	must(n < room);
	for (size_t i = 0; i < n; i++)
		must((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void check_vector(const struct iocom_vector *v)
{
	check_text(v->name, sizeof(v->name));
	check_text(v->address, sizeof(v->address));
	must(v->name[0]);
	must(isfinite(v->cpu_speed) && v->cpu_speed >= 0);
	must(isfinite(v->memory_mb) && v->memory_mb >= 0);
	must(isfinite(v->explicit_per_ms) && v->explicit_per_ms >= 0);
}

static void check_to_root(const struct gate_message *m, size_t n)
{
	switch (m->type) {
	case GATE_VECTOR:
		check_vector(&m->vector.vector);
		check_text(m->vector.at.address, sizeof(m->vector.at.address));
		break;
	case GATE_ASK_KEY:
		check_text(m->place.address, sizeof(m->place.address));
		break;
	case GATE_SKEWED:
		check_text(m->skewed.node, sizeof(m->skewed.node));
		break;
	case GATE_TROUBLE:
		check_text(m->trouble.at.address, sizeof(m->trouble.at.address));
		must(m->trouble.at.address[0] && m->trouble.cause < PEER_CAUSES);
		must(n <= GATE_SENTENCE_MAX);
		break;
	case GATE_ANSWERED:
		must(m->answered.rc <= 0 && (m->answered.rc || n));
		break;
	case GATE_HELLO:
		check_text(m->hello.from, sizeof(m->hello.from));
		must((uint64_t)m->hello.credential + m->hello.credential_length <= n);
		break;
	case GATE_STREAM:
		must(n && n <= STREAM_HELLO_MAX);
		check_text(m->stream.from, sizeof(m->stream.from));
		check_text(m->stream.hello.job, sizeof(m->stream.hello.job));
		check_text(m->stream.hello.node, sizeof(m->stream.hello.node));
		check_text(m->stream.hello.ticket, sizeof(m->stream.hello.ticket));
		break;
	case GATE_RENEW:
		check_text(m->renew.from, sizeof(m->renew.from));
		break;
	default:
		break;
	}
}

/* One message of each type, with lengths that are to be made right. */
bool sample(int n, FILE *out)
{
	static const struct iocom_vector vector = {SAMPLE_VECTOR("n1")};
	struct gate_message m = {0};
	unsigned type;

	for (type = 1; type < GATE_TYPES; type++)
		if (gate_body_size((enum gate_type)type) && !n--)
			break;
	if (type == GATE_TYPES)
		return false;
	m.type = (enum gate_type)type;
	if (type == GATE_VECTOR)
		m.vector.vector = vector;
	else if (type == GATE_PUBLISH)
		m.publish = vector;
	else if (type == GATE_SKEWED)
		m.skewed.node[0] = 'n';
	else if (type == GATE_TROUBLE)
		m.trouble.at.address[0] = 'n';
	else if (type == GATE_SETUP)
		m.setup.streams = true;
	putc(2 | (type >= GATE_READY), out);
	putc((int)gate_fds_of(&m), out);
	putc((int)type, out);
	fwrite(&m.setup, gate_body_size(m.type), 1, out);
	putc('x', out);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t packet[GATE_PACKET_MAX + 1];
	uint32_t type, tail_length;
	struct gate_message m;
	const uint8_t *tail;
	const char *why = NULL;
	enum gate_side side;
	size_t n, nfds, body, length;

	if (size < 3 || size > 4096)
		return 0;
	side = data[0] & 1 ? GATE_TO_ROOT : GATE_TO_NET;
	nfds = data[1] & 3;
	type = data[2];
	body = gate_body_size((enum gate_type)type);
	tail_length = size - 3 > body ? (uint32_t)(size - 3 - body) : 0;
	if (data[0] & 2) {
		memcpy(packet, &type, sizeof(type));
		memcpy(packet + sizeof(type), &tail_length, sizeof(tail_length));
		memset(packet + GATE_HEAD, 0, body);
		memcpy(packet + GATE_HEAD, data + 3, size - 3);
		length = GATE_HEAD + body + tail_length;
	} else {
		memcpy(packet, data + 3, size - 3);
		length = size - 3;
	}
	if (gate_message_read(&m, side, packet, length, nfds, &tail, &n, &why)) {
		must(why && *why);
		return 0;
	}
	must(tail >= packet && tail + n == packet + length);
	must(gate_fds_of(&m) == nfds && nfds <= GATE_FDS_MAX);
	if (side == GATE_TO_ROOT)
		check_to_root(&m, n);
	return 0;
}

FUZZ_SAMPLES
