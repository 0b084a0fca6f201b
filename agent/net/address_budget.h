/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What addresses pay for messages whose seals fail.  Each address has ADDRESS_BUDGET_FREE units,
 * which come back at one a second; while it has spent them all, no new connection of it is let in.
 * A message that is sealed well earns one unit back, so that a node that shares its address with a
 * machine that sends junk is let in, too.
 */
#ifndef IOCOM_ADDRESS_BUDGET_H
#define IOCOM_ADDRESS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/address_limit.h"
#include "agent/gate/net_limits.h"
#include "user/clock.h"

#define ADDRESS_BUDGET_FREE 32
/* A message that root sealed, but not just now: a node's clock differs, or a replay. */
#define ADDRESS_BUDGET_STALE_NS (CLOCK_NS_PER_S / 8)
#define ADDRESS_BUDGET_UNIT_NS	CLOCK_NS_PER_S

struct address_budget {
	struct payer {
		uint8_t key[ADDRESS_LIMIT_KEY];
		uint64_t clear_ns; /* when all is paid; in the past: the place is unused */
	} all[ADDRESS_BUDGETS_MAX];
};

/*
 * Charges COST_NS (the time after which it has come back) at NOW_NS.  If all places are taken by
 * others, the address that will have paid first loses its place.
 */
void address_budget_pay(struct address_budget *budget, const uint8_t key[ADDRESS_LIMIT_KEY],
			uint64_t cost_ns, uint64_t now_ns);
void address_budget_earn(struct address_budget *budget, const uint8_t key[ADDRESS_LIMIT_KEY],
			 uint64_t now_ns);
/* Returns true if the address has a unit of its budget left. */
bool address_budget_has(const struct address_budget *budget, const uint8_t key[ADDRESS_LIMIT_KEY],
			uint64_t now_ns);
/* Returns how many addresses have something to pay. */
size_t address_budget_count(const struct address_budget *budget, uint64_t now_ns);

#endif
