/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Any bytes on a leash, at the shim and at the agent: each read ends, and so does the loop; a
 * lease only gets longer, or ends for good.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/frame.h"
#include "user/pack.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "agent/guest/launch.h"
#include "agent/shim/leash.h"

#define BYTES_MAX 8192

static void put(const msgpack_sbuffer *buffer, FILE *out)
{
	uint8_t header[FRAME_HEADER];

	frame_header(header, FRAME_REQUEST, (uint32_t)buffer->size);
	fwrite(header, 1, sizeof(header), out);
	fwrite(buffer->data, 1, buffer->size, out);
}

bool sample(int n, FILE *out)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 4);
	pack_str(&pk, "event", "started");
	pack_str(&pk, "job", "a-0f-7");
	pack_u64(&pk, "pid", 77);
	pack_u64(&pk, "cgroup_id", 99);
	put(&buffer, out);
	msgpack_sbuffer_destroy(&buffer);
	pack_begin(&pk, &buffer, 9);
	pack_str(&pk, "event", "exited");
	pack_str(&pk, "job", "a-0f-7");
	pack_u64(&pk, "pid", 77);
	pack_u64(&pk, "kind", 0);
	pack_u64(&pk, "value", 3);
	pack_u64(&pk, "end_ns", 1);
	pack_u64(&pk, "wall_ms", 2);
	pack_u64(&pk, "max_rss_kb", 3);
	pack_str(&pk, "text", "");
	put(&buffer, out);
	msgpack_sbuffer_destroy(&buffer);
	pack_begin(&pk, &buffer, 3);
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "op", "lease");
	pack_u64(&pk, "until_ms", 5000);
	put(&buffer, out);
	msgpack_sbuffer_destroy(&buffer);
	pack_begin(&pk, &buffer, 3);
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "event", "ready");
	pack_str(&pk, "job", "a-0f-7");
	put(&buffer, out);
	msgpack_sbuffer_destroy(&buffer);
	pack_begin(&pk, &buffer, 7);
	pack_str(&pk, "event", "moved");
	pack_str(&pk, "job", "a-0f-7");
	pack_bool(&pk, "failed", true);
	pack_u64(&pk, "frozen_ms", 150);
	pack_u64(&pk, "dump_ms", 40);
	pack_u64(&pk, "bytes", 4096);
	pack_str(&pk, "why", "it uses a device");
	put(&buffer, out);
	msgpack_sbuffer_destroy(&buffer);
	pack_begin(&pk, &buffer, 2);
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "op", "go");
	put(&buffer, out);
	msgpack_sbuffer_destroy(&buffer);
	return !n;
}

FUZZ_SAMPLES

static void as_shim(const uint8_t *data, size_t size)
{
	struct lease lease = {.until_ms = 1000}, none = {0};
	struct leash leash;
	int ends[2];

	for (int i = 0; i < 2; i++) {
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
		must(send(ends[1], data, size, 0) == (ssize_t)size);
		leash_init(&leash, ends[0], "a-0f-7");
		leash_hear(&leash, i ? &none : &lease);
		must(leash.word <= LEASH_ABORT);
		leash_deinit(&leash);
		close(ends[1]);
	}
	must(lease.until_ms >= 1000 || lease.until_ms == 1);
	must(!none.until_ms && !lease_over(&none, UINT64_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct launch_event e;
	int ends[2], rc = 0;

	if (!size || size > BYTES_MAX)
		return 0;
	as_shim(data, size);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	must(send(ends[1], data, size, 0) == (ssize_t)size);
	for (size_t i = 0; !rc; i++) {
		must(i <= size);
		rc = launch_read(ends[0], &e);
		must(rc == 0 || rc == -EAGAIN || rc == -EBADMSG || rc == -EPROTONOSUPPORT);
		if (rc)
			continue;
		must(e.type == LAUNCH_STARTED || e.type == LAUNCH_EXITED ||
		     e.type == LAUNCH_READY || e.type == LAUNCH_MOVED);
		must_end(e.job, sizeof(e.job));
		must_end(e.text, sizeof(e.text));
	}
	close(ends[1]);
	close(ends[0]);
	return 0;
}
