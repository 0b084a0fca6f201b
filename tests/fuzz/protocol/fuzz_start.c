/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the first frame of a job stream, from any machine that can reach the port. */
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/pack.h"
#include "tests/fuzz/protocol/sample_spec.h"
#include "agent/guest/start_message.h"

bool sample(int n, FILE *out)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	size_t length;
	void *packed = sample_spec_packed(&length);

	pack_begin(&pk, &buffer, n ? 1 : 2);
	if (!n)
		pack_str(&pk, "cred", "MUNGE:AwQDAAA=:");
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
	struct start_message m;
	char *job;

	if (start_message_unpack(&m, data, (uint32_t)size, &err)) {
		must(*err.text && !m.credential && !m.packed && !m.spec.argv);
		return 0;
	}
	must(m.packed && m.length <= size && memmem(data, size, m.packed, m.length));
	must(!m.credential || strlen(m.credential) < size);
	must(spec_job_valid(m.spec.job) && !m.spec.argv);
	job = strdup(m.spec.job);
	/* The whole spec is that of the names that its lease was found by. */
	if (start_message_open(&m, &err))
		must(*err.text && !m.spec.argv);
	else
		must(!strcmp(m.spec.job, job) && m.spec.argv[0] && m.spec.cwd[0] == '/');
	free(job);
	start_message_free(&m);
	return 0;
}
