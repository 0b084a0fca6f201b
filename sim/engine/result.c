/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Frees the result of a run. */
#include <stdlib.h>
#include <string.h>

#include "sim/result.h"

void sim_result_free(struct sim_result *r)
{
	if (!r)
		return;
	free(r->nodes);
	free(r->samples);
	memset(r, 0, sizeof(*r));
}
