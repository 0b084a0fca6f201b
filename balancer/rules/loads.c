/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The loads that a node would advertise, computed from its tasks alone (MODEL 1). */
#include <errno.h>

#include "balancer/rules/rules_private.h"

int rules_node_loads(struct rules_node *node, enum rules_rates rates)
{
	struct rules_cell c;
	int ret;

	node->has_advertised = false;
	ret = rules_cell_init(&c, node, &(struct rules_reading){.rates = rates});
	if (ret < 0)
		return ret;
	node->has_advertised = true;
	node->advertised.io_per_ms = c.io;
	node->advertised.explicit_per_ms = c.explicit_io;
	node->advertised.memory_mb = c.memory;
	node->advertised.cpu = c.cpu;
	node->advertised.com_ms = c.com;
	return 0;
}
