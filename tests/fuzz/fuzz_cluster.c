/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fuzzes the text of --nodes: an accepted text is written in a form that reads back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void check(const struct sim_cluster *c)
{
	struct sim_cluster again;
	struct iocom_err err = {0};
	char *text = sim_cluster_format(c);

	must(text && sim_cluster_parse(&again, text, &err) == 0);
	must(again.n == c->n);
	must(!memcmp(again.machines, c->machines, c->n * sizeof(*c->machines)));
	sim_cluster_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_cluster c;
	struct iocom_err err = {0};
	char *text;

	/* "@FILE" would read files of this machine, and large numbers of nodes only cost time. */
	if (size && (memchr(data, '@', size) || size > 200))
		return 0;
	text = malloc(size + 1);
	must(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (sim_cluster_parse(&c, text, &err)) {
		must(*err.text);
	} else {
		if (c.n <= 1000)
			check(&c);
		sim_cluster_free(&c);
	}
	free(text);
	return 0;
}
