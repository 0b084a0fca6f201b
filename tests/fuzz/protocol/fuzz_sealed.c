/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the order that an agent gives its shim, in a memory file. */
#include <sys/mman.h>
#include <unistd.h>

#include "user/pack.h"
#include "user/utf8.h"
#include "tests/fuzz/protocol/sample_spec.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "agent/shim/order.h"

bool sample(int n, FILE *out)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	const gid_t groups[] = {1000, 27};
	size_t length;
	void *packed = sample_spec_packed(&length);

	pack_begin(&pk, &buffer, n ? 18 : 12);
	pack_u64(&pk, "v", SHIM_VERSION);
	pack_u64(&pk, "uid", 1000);
	pack_u64(&pk, "gid", 1000);
	pack_bool(&pk, "allow_root", false);
	pack_str(&pk, "jobs_dir", "/var/lib/iocom/jobs");
	pack_str(&pk, "run_dir", "/run/iocom/jobs");
	pack_str(&pk, "scope", "");
	pack_str(&pk, "pam", "");
	pack_u64(&pk, "spool_max", 65536);
	pack_str(&pk, "user", "someone");
	pack_bin(&pk, "groups", groups, sizeof(groups));
	if (n) {
		pack_u64(&pk, "spill_max", 65536);
		pack_u64(&pk, "lease_until_ms", 5000);
		pack_bin(&pk, "renew_secret", "01234567890123456789012345678901", 32);
		pack_str(&pk, "renew_address", "[fd00::1]");
		pack_u64(&pk, "renew_port", 7702);
		pack_u64(&pk, "renew_lease_ms", 5000);
	}
	pack_bin(&pk, "spec", packed, length);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	free(packed);
	return n < 2;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iocom_err err = {0};
	char command[64];
	struct order order;
	uint32_t c;
	int fd = memfd_create("order", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (order_read(fd, &order, &err)) {
		must(*err.text);
	} else {
		must(spec_job_valid(order.replay ? order.ask.job : order.spec.job));
		must_end(order.jobs_dir, sizeof(order.jobs_dir));
		must_end(order.run_dir, sizeof(order.run_dir));
		must_end(order.scope, sizeof(order.scope));
		must(!order.account.name == !order.account.ngroups);
		must_end(order.renew.address, sizeof(order.renew.address));
		must(order.user_limits.memory_bytes + order.user_limits.swap_bytes <= INT64_MAX);
		must(order.by_user || !order.user_limits.tasks);
		must(!order.renew.wanted || (order.renew.lease_ms && order.lease_until_ms));
		order_command(&order, command, sizeof(command));
		for (const char *at = command; *at; at += utf8_next(at, &c))
			must(utf8_next(at, &c) && utf8_printable(c));
	}
	order_deinit(&order);
	close(fd);
	return 0;
}
