/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* An opened bulletin: an agent could have sent each vector that is accepted. */
#include <math.h>

#include "agent/net/net_bulletin.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "tests/fuzz/protocol/sample_vector.h"
#include "balancer/view/vector_codec.h"

static void pack(const struct iocom_vector *v, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_sbuffer_init(out);
	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	vector_pack(&pk, v);
}

static bool nobody(void *arg, const struct bulletin_sender *sender)
{
	(void)arg;
	(void)sender;
	return false;
}

static void each(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	struct iocom_vector again, bound = *v;
	msgpack_sbuffer first, second;
	msgpack_unpacked message;
	uint64_t *taken = arg;

	(void)direct;
	++*taken;
	must(age_ns <= UINT32_MAX * 1000000ull);
	must_end(v->name, sizeof(v->name));
	must_end(v->address, sizeof(v->address));
	must(v->name[0] && isfinite(v->cpu_speed));
	must(isfinite(v->cpu_burst) && v->cpu_burst > 0);
	must(isfinite(v->cpu_sharers + v->disk_sharers + v->cpu_left_ms + v->disk_left_ms));
	pack(v, &first);
	msgpack_unpacked_init(&message);
	must(msgpack_unpack_next(&message, first.data, first.size, NULL) == MSGPACK_UNPACK_SUCCESS);
	must(vector_unpack(&message.data, &again) == 0);
	pack(&again, &second);
	must(first.size == second.size && !memcmp(first.data, second.data, first.size));
	msgpack_sbuffer_destroy(&second);
	/* Values in range stay unchanged. */
	vector_bound(&bound);
	pack(&bound, &second);
	must(first.size == second.size && !memcmp(first.data, second.data, first.size));
	msgpack_sbuffer_destroy(&second);
	msgpack_sbuffer_destroy(&first);
	msgpack_unpacked_destroy(&message);
}

bool sample(int n, FILE *out)
{
	struct iocom_vector own = {
		SAMPLE_VECTOR("a"),
		.memory_mb = 100,
	};
	struct bulletin_sender sender;
	uint64_t bad = 0, taken = 0;
	static struct matrix none;
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	bulletin_pack(&buffer, &own, &none, 0, 1795000000123);
	must(!bulletin_unpack(buffer.data, buffer.size, &sender, &bad, NULL, each, &taken) &&
	     taken == 1);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return !n;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bulletin_sender sender, alone;
	uint64_t bad = 0, taken = 0;
	int rc = bulletin_unpack(data, size, &sender, &bad, NULL, each, &taken);

	must(rc == 0 || rc == BULLETIN_E_GARBAGE || rc == BULLETIN_E_VERSION);
	must_end(sender.from, sizeof(sender.from));
	must(rc || sender.at_ms <= INT64_MAX);
	/* Who sent it is the same to whoever asks for that only. */
	must(!bulletin_unpack(data, size, &alone, &bad, nobody, each, &taken) || rc);
	must(!strcmp(alone.from, sender.from) && alone.at_ms == sender.at_ms);
	must(taken + bad <= BULLETIN_VECTORS_MAX);
	return 0;
}
