/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the text of --workload: "gen:PRESET,key=value,...". */
#include "tests/fuzz/fuzz_workload.h"

#include "sim/workload/spec.h"

#define NODES_MAX 100000 /* larger numbers would only cost time */
#define JOBS	  20

static void try_generator(struct generator_params *p)
{
	struct iocom_err err = {0};
	struct workload *w;

	if (p->nodes > NODES_MAX)
		return;
	p->jobs = JOBS;
	w = generator_new(p, &err);
	check_workload(w, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 5);
	struct generator_params p;
	struct iocom_err err = {0};
	double *weights;

	must(text != NULL);
	memcpy(text, "gen:", 4);
	if (size)
		memcpy(text + 4, data, size);
	text[size + 4] = '\0';
	if (workload_spec_parse(text, NULL, &p, &weights, &err)) {
		must(*err.text);
	} else {
		try_generator(&p);
		free(weights);
	}
	free(text);
	return 0;
}
