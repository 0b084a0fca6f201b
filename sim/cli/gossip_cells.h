/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What `iocom-sim gossip` has calculated: medians and worst values over seeds, tables, goals, JSON.
 */
#ifndef SIM_CLI_GOSSIP_CELLS_H
#define SIM_CLI_GOSSIP_CELLS_H

#include "sim/cli/cli.h"
#include "sim/gossip/gossip_run.h"

/* The runs of all seeds of one scenario under one plan with so many nodes. */
struct gossip_cell {
	uint32_t nodes;
	enum gossip_plans plan;
	enum gossip_scenario scenario;
	struct gossip_result *results; /* by seed */
	struct gossip_result median, worst;
};

struct gossip_cells {
	const struct cli *cli;
	const struct gossip_setup *setup; /* `nodes`, `plan` and `seed` are the cells' */
	uint32_t seeds;
	struct gossip_cell *cells; /* by nodes, then plan, then scenario */
	size_t n;
};

/* Calculates `median` and `worst` of each cell.  Returns 0 or -ENOMEM. */
int gossip_cells_sum_up(struct gossip_cells *all);
/* Prints a table for each number of nodes and plan, what its columns mean, and the goals. */
int gossip_cells_print(const struct gossip_cells *all);
/* NULL: out of memory. */
json_t *gossip_cells_json(const struct gossip_cells *all);

#endif
