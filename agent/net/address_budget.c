/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See address_budget.h. */
#include "agent/net/address_budget.h"

#include <string.h>

static struct payer *payer_find(const struct address_budget *budget,
				const uint8_t key[ADDRESS_LIMIT_KEY], uint64_t now_ns)
{
	for (int i = 0; i < ADDRESS_BUDGETS_MAX; i++) {
		const struct payer *p = &budget->all[i];

		if (p->clear_ns > now_ns && !memcmp(p->key, key, ADDRESS_LIMIT_KEY))
			return (struct payer *)p;
	}
	return NULL;
}

void address_budget_pay(struct address_budget *budget, const uint8_t key[ADDRESS_LIMIT_KEY],
			uint64_t cost_ns, uint64_t now_ns)
{
	const uint64_t most_ns = now_ns + ADDRESS_BUDGET_FREE * ADDRESS_BUDGET_UNIT_NS;
	struct payer *p = payer_find(budget, key, now_ns);

	if (!p) { /* an unused place, or else the one with least to pay */
		p = &budget->all[0];
		for (int i = 1; i < ADDRESS_BUDGETS_MAX; i++)
			if (budget->all[i].clear_ns < p->clear_ns)
				p = &budget->all[i];
		memcpy(p->key, key, ADDRESS_LIMIT_KEY);
		p->clear_ns = now_ns;
	}
	p->clear_ns += cost_ns;
	if (p->clear_ns > most_ns)
		p->clear_ns = most_ns;
}

void address_budget_earn(struct address_budget *budget, const uint8_t key[ADDRESS_LIMIT_KEY],
			 uint64_t now_ns)
{
	struct payer *p = payer_find(budget, key, now_ns);

	if (p && p->clear_ns - now_ns > ADDRESS_BUDGET_UNIT_NS)
		p->clear_ns -= ADDRESS_BUDGET_UNIT_NS;
	else if (p)
		p->clear_ns = now_ns;
}

bool address_budget_has(const struct address_budget *budget, const uint8_t key[ADDRESS_LIMIT_KEY],
			uint64_t now_ns)
{
	const struct payer *p = payer_find(budget, key, now_ns);

	return !p || p->clear_ns - now_ns <= (ADDRESS_BUDGET_FREE - 1) * ADDRESS_BUDGET_UNIT_NS;
}

size_t address_budget_count(const struct address_budget *budget, uint64_t now_ns)
{
	size_t n = 0;

	for (int i = 0; i < ADDRESS_BUDGETS_MAX; i++)
		n += budget->all[i].clear_ns > now_ns;
	return n;
}
