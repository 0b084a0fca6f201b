/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#ifndef FUZZ_SAMPLE_SPEC_H
#define FUZZ_SAMPLE_SPEC_H

#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/spec.h"

/* A job as `iocom run` would send it. */
static inline void sample_spec(struct spec *spec)
{
	static char *argv[] = {(char *)"sh", (char *)"-c", (char *)"true", NULL};
	static char *env[] = {(char *)"PATH=/bin", (char *)"HOME=/root", NULL};

	*spec = (struct spec){
		.job = "a-0f-7",
		.node = "b",
		.nonce = "00112233445566778899aabbccddeeff",
		.class_name = "sh",
		.executable = (char *)"/bin/sh",
		.cwd = (char *)"/tmp",
		.argv = argv,
		.env = env,
		.umask = 022,
		.limits = {{RLIMIT_NOFILE, 1024, 4096},
			   {RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY}},
		.nlimits = 2,
		.grace_ms = 30000,
	};
}

/* The same, packed; the caller frees it. */
static inline void *sample_spec_packed(size_t *length)
{
	struct iocom_err err = {0};
	struct spec spec;
	void *packed;

	sample_spec(&spec);
	must(spec_pack(&spec, &packed, length, &err) == 0);
	return packed;
}

#endif
