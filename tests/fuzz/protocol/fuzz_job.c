/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the spec of a job, as a client sends it and the shim obeys it. */
#include "tests/fuzz/protocol/sample_spec.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/spec.h"

static void check(const struct spec *spec)
{
	must(spec_job_valid(spec->job));
	must_end(spec->node, sizeof(spec->node));
	must_end(spec->nonce, sizeof(spec->nonce));
	must_end(spec->class_name, sizeof(spec->class_name));
	must(spec->argv && spec->argv[0] && spec->env && spec->executable && spec->cwd);
	must_end(spec->tty.name, sizeof(spec->tty.name));
	must(!*spec->tty.name || terminal_name_valid(spec->tty.name));
	for (size_t i = 0; i < spec->nlimits; i++)
		must(spec->limits[i].resource >= 0 && spec->limits[i].resource < RLIM_NLIMITS &&
		     spec->limits[i].soft <= spec->limits[i].hard);
	must(!spec->gang || (spec->gang_length && spec->gang_length <= SPEC_GANG_MAX));
	must(spec->cwd[0] == '/' && spec->nlimits <= RLIM_NLIMITS && !(spec->closed & ~7u));
}

bool sample(int n, FILE *out)
{
	struct iocom_err err = {0};
	struct spec spec;
	size_t length;
	void *packed;

	sample_spec(&spec);
	if (n == 2) {
		spec.gang = (void *)"a packed plan";
		spec.gang_length = 13;
	}
	if (n == 1)
		spec.tty =
			(struct terminal){true, true, {24, 80, 0, 0}, "xterm-256color", true, "\3"};
	must(spec_pack(&spec, &packed, &length, &err) == 0);
	fwrite(packed, 1, length, out);
	free(packed);
	return n <= 2;
}

FUZZ_SAMPLES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iocom_err err = {0};
	struct spec spec = {0}, again = {0};
	void *packed[2] = {NULL, NULL};
	size_t length[2];

	if (spec_unpack(&spec, data, size, &err)) {
		must(*err.text);
		return 0;
	}
	check(&spec);
	must(spec_pack(&spec, &packed[0], &length[0], &err) == 0);
	must(spec_unpack(&again, packed[0], length[0], &err) == 0);
	must(spec_pack(&again, &packed[1], &length[1], &err) == 0);
	must(length[0] == length[1] && !memcmp(packed[0], packed[1], length[0]));
	spec_free(&spec);
	spec_free(&again);
	free(packed[0]);
	free(packed[1]);
	return 0;
}
