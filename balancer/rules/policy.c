/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The policies: one row each.  A new policy is a row here and a policy_*.c. */
#include <errno.h>
#include <strings.h>

#include "rules_private.h"

struct policy {
	const char *name;
	rules_policy_fn *place;
};

static const struct policy policies[RULES_POLICIES] = {
	[RULES_NLB] = {"nlb", rules_policy_nlb},
	[RULES_CPU_RE] = {"cpu-re", rules_policy_cpu_re},
	[RULES_MEM_RE] = {"mem-re", rules_policy_mem_re},
	[RULES_IO_RE] = {"io-re", rules_policy_io_re},
	[RULES_IOCM_RE] = {"iocm-re", rules_policy_iocm_re},
};

const char *rules_policy_name(enum rules_policy policy)
{
	return (unsigned int)policy < RULES_POLICIES ? policies[policy].name : NULL;
}

int rules_policy_parse(const char *name, enum rules_policy *policy)
{
	for (int p = 0; p < RULES_POLICIES; p++) {
		if (strcasecmp(policies[p].name, name) == 0) {
			*policy = p;
			return 0;
		}
	}
	return -EINVAL;
}

rules_policy_fn *rules_policy_function(enum rules_policy policy)
{
	return policies[policy].place;
}
