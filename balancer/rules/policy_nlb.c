/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* NLB (MODEL 3.1): every task runs on its home node. */
#include "balancer/rules/rules_private.h"

int rules_policy_nlb(struct rules_decision *d)
{
	rules_test_home(d, RULES_C_HOME, 0, 0);
	return 0;
}
