/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See captured.h: floods of messages, each of which the gate lets through. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/captured.h"

struct iocom_vector captured_vector(const char *name, uint64_t sequence)
{
	struct iocom_vector v = {
		.port = CAPTURED_PORT,
		.boot_id = 77,
		.sequence = sequence,
		.time_ns = UINT64_MAX / 2,
		.period_ms = 1000,
		.cores = 64,
		.cpu_speed = 100,
		.cpu_burst = 100,
		.memory_mb = 1e6,
		.memory_available_mb = 1e6,
		.network_mb_per_s = 1000,
		.bits = IOCOM_BIT_IO | IOCOM_BIT_CPU,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	snprintf(v.address, sizeof(v.address), "%s", CAPTURED_ADDRESS);
	return v;
}

/* --- what each kind is ------------------------------------------------------------------- */

static void flood_vectors(struct gate_message *m, uint64_t i)
{
	char name[IOCOM_NAME_MAX];

	snprintf(name, sizeof(name), CAPTURED_NODE "%llu", (unsigned long long)i);
	m->vector.vector = captured_vector(name, i + 1);
	m->vector.direct = i & 1;
}

static void flood_keys(struct gate_message *m, uint64_t i)
{
	snprintf(m->place.address, sizeof(m->place.address), "127.%u.%u.%u",
		 (unsigned)(i >> 16 & 63) + 2, (unsigned)(i >> 8 & 255), (unsigned)(i & 255));
	m->place.port = CAPTURED_PORT;
}

static void flood_clocks(struct gate_message *m, uint64_t i)
{
	snprintf(m->skewed.node, sizeof(m->skewed.node), CAPTURED_NODE "%llu",
		 (unsigned long long)i);
	m->skewed.ahead_s = i & 1 ? INT64_MAX : INT64_MIN + 1;
}

static void flood_counts(struct gate_message *m, uint64_t i)
{
	memset(&m->counts, i & 1 ? 0xff : 0, sizeof(m->counts));
}

static void flood_streams(struct gate_message *m, uint64_t i)
{
	m->stream.id = CAPTURED_ID(i);
	snprintf(m->stream.from, sizeof(m->stream.from), "%s", CAPTURED_ADDRESS);
	snprintf(m->stream.hello.job, sizeof(m->stream.hello.job), "alpha-0-%llu",
		 (unsigned long long)i);
}

/* --- anything ------------------------------------------------------------------------------ */

static void flood_text(char *out, size_t size, unsigned *seed)
{
	size_t n = (size_t)rand_r(seed) % size;

	for (size_t i = 0; i < n; i++)
		out[i] = (char)('!' + rand_r(seed) % ('~' - '!'));
	memset(out + n, 0, size - n);
}

static void flood_bytes(void *out, size_t size, unsigned *seed)
{
	uint8_t *at = out;
	int bits = rand_r(seed) % 3; /* zeroes, ones, or anything */

	for (size_t i = 0; i < size; i++)
		at[i] = bits == 0 ? 0 : bits == 1 ? 0xff : (uint8_t)rand_r(seed);
}

/* Makes what gate_message_read lets through of random bytes. */
static void flood_mend(struct gate_message *m, size_t n, unsigned *seed)
{
	bool flag = rand_r(seed) & 1;
	char name[IOCOM_NAME_MAX];

	switch (m->type) {
	case GATE_READY:
		m->ready.rc = -(rand_r(seed) % 200);
		break;
	case GATE_VECTOR:
		flood_text(name, sizeof(name), seed);
		m->vector.vector = captured_vector(name, (uint64_t)rand_r(seed));
		flood_bytes(&m->vector.age_ns, sizeof(m->vector.age_ns), seed);
		memcpy(&m->vector.direct, &flag, sizeof(flag));
		break;
	case GATE_ASK_KEY:
		flood_text(m->place.address, sizeof(m->place.address), seed);
		break;
	case GATE_SKEWED:
		flood_text(m->skewed.node, sizeof(m->skewed.node), seed);
		break;
	case GATE_ANSWERED:
		m->answered.rc = flag ? 0 : -(rand_r(seed) % 200);
		m->answered.id = (uint64_t)rand_r(seed) % 64;
		break;
	case GATE_HELLO:
		m->hello.ticket = CAPTURED_ID(rand_r(seed));
		m->hello.credential = n ? (uint32_t)rand_r(seed) % (uint32_t)n : 0;
		m->hello.credential_length = (uint32_t)n - m->hello.credential;
		break;
	case GATE_QUESTION:
		m->question.ticket = CAPTURED_ID(rand_r(seed));
		memcpy(&m->question.proven, &flag, sizeof(flag));
		break;
	case GATE_STREAM:
		flood_text(m->stream.from, sizeof(m->stream.from), seed);
		flood_text(m->stream.hello.job, sizeof(m->stream.hello.job), seed);
		flood_text(m->stream.hello.node, sizeof(m->stream.hello.node), seed);
		flood_text(m->stream.hello.ticket, sizeof(m->stream.hello.ticket), seed);
		m->stream.id = CAPTURED_ID(rand_r(seed));
		m->stream.hello.kind = flag ? STREAM_KIND_START : STREAM_KIND_ATTACH;
		break;
	case GATE_RENEW:
		flood_text(m->renew.from, sizeof(m->renew.from), seed);
		m->renew.id = CAPTURED_ID(rand_r(seed));
		break;
	default:
		break;
	}
}

static size_t flood_random(struct gate_message *m, uint8_t *tail, unsigned *seed)
{
	static const size_t lengths[] = {0, 1, 16, 100, 500, 4000, GATE_CONTROL_MAX};
	size_t n = lengths[(size_t)rand_r(seed) % (sizeof(lengths) / sizeof(*lengths))];

	m->type = (enum gate_type)(GATE_READY + rand_r(seed) % (GATE_TYPES - GATE_READY));
	flood_bytes(&m->setup, gate_body_size(m->type), seed);
	flood_bytes(tail, n, seed);
	if (m->type == GATE_QUESTION && n)
		tail[0] = (uint8_t)(rand_r(seed) % 8);
	flood_mend(m, n, seed);
	return n;
}

/* --- one of them ------------------------------------------------------------------------------ */

static const struct {
	const char *kind;
	enum gate_type type;
	void (*make)(struct gate_message *m, uint64_t i);
	size_t tail;
} floods[] = {
	{"vectors", GATE_VECTOR, flood_vectors, 0},
	{"keys", GATE_ASK_KEY, flood_keys, 0},
	{"clocks", GATE_SKEWED, flood_clocks, 0},
	{"pages", GATE_WANT_PAGE, NULL, 0},
	{"counts", GATE_COUNTS, flood_counts, 0},
	{"pongs", GATE_PONG, NULL, 0},
	{"ready", GATE_READY, NULL, 0},
	{"answers", GATE_ANSWERED, NULL, 100},
	{"questions", GATE_QUESTION, NULL, 300},
	{"large questions", GATE_QUESTION, NULL, GATE_CONTROL_MAX},
	{"greetings", GATE_HELLO, NULL, 300},
	{"renewals", GATE_RENEW, NULL, 100},
	{"streams", GATE_STREAM, flood_streams, 100},
};

static void flood_id(struct gate_message *m, uint64_t i)
{
	if (m->type == GATE_QUESTION)
		m->question.ticket = CAPTURED_ID(i);
	else if (m->type == GATE_HELLO)
		m->hello = (struct gate_hello){
			.ticket = CAPTURED_ID(i), .least = 1, .most = 1, .credential_length = 300};
	else if (m->type == GATE_RENEW)
		m->renew.id = CAPTURED_ID(i);
	else if (m->type == GATE_ANSWERED)
		m->answered.id = CAPTURED_ID(i);
	else if (m->type == GATE_PONG)
		m->id.id = i;
}

int captured_flood(struct captured_packet *p, const char *kind, uint64_t i, int fd, unsigned *seed)
{
	static uint8_t tail[GATE_CONTROL_MAX];
	const char *why;
	const uint8_t *at;
	struct gate_message m, read;
	size_t n = 0, known = sizeof(floods) / sizeof(*floods), k = 0;
	int rc;

	do {
		memset(&m, 0, sizeof(m));
		while (k < known && strcmp(floods[k].kind, kind) != 0)
			k++;
		if (k < known) {
			m.type = floods[k].type;
			n = floods[k].tail;
			flood_id(&m, i);
			if (floods[k].make)
				floods[k].make(&m, i);
			if (n) /* a sealed message, as far as its kind tells */
				tail[0] = 4;
		} else if (!strcmp(kind, "random")) {
			n = flood_random(&m, tail, seed);
		} else {
			return -EINVAL;
		}
		captured_pack(p, &m, tail, n);
		p->nfds = gate_fds_of(&m);
		p->fds[0] = fd;
		rc = gate_message_read(&read, GATE_TO_ROOT, p->bytes, p->length, p->nfds, &at, &n,
				       &why);
	} while (rc && k == known);
	return rc;
}
