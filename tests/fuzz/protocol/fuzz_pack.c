/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The scan before every decoding: what it lets through has no more values than asked for, and a
 * peek finds what the decoded map has.
 */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include <errno.h>

#include "user/pack.h"

#define VALUES 24

bool sample(int n, FILE *out)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 4);
	pack_str(&pk, "k", "text");
	pack_bin(&pk, "b", "\0\1", 2);
	pack_f64(&pk, "f", 0.5);
	pack_key(&pk, "a");
	msgpack_pack_array(&pk, (size_t)n);
	for (int i = 0; i < n; i++)
		msgpack_pack_map(&pk, 0);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	return n < 3;
}

FUZZ_SAMPLES

static size_t values_in(const msgpack_object *o, unsigned depth)
{
	size_t n = 1;

	must(depth <= UNPACK_DEPTH_MAX ||
	     (o->type != MSGPACK_OBJECT_MAP && o->type != MSGPACK_OBJECT_ARRAY));
	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (uint32_t i = 0; i < o->via.array.size; i++)
			n += values_in(&o->via.array.ptr[i], depth + 1);
	if (o->type == MSGPACK_OBJECT_MAP)
		for (uint32_t i = 0; i < o->via.map.size; i++)
			n += values_in(&o->via.map.ptr[i].key, depth + 1) +
			     values_in(&o->via.map.ptr[i].val, depth + 1);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char peeked[16], text[16];
	msgpack_unpacked map;
	const msgpack_object *k;
	size_t n;
	int rc;

	if (unpack_map_of(&map, data, size, VALUES))
		return 0;
	n = values_in(&map.data, 1);
	must(n <= VALUES);
	must(!unpack_scan(data, size, n) && unpack_scan(data, size, n - 1));
	rc = unpack_peek(data, size, VALUES, "k", peeked, sizeof(peeked));
	k = unpack_get(&map.data, "k");
	must((rc == -ENOENT) == !k);
	if (k && k->type == MSGPACK_OBJECT_STR) {
		must(unpack_str(&map.data, "k", text, sizeof(text)) == rc);
		must(rc || !strcmp(text, peeked));
	} else {
		must(rc);
	}
	msgpack_unpacked_destroy(&map);
	return 0;
}
