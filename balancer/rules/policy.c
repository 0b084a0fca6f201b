/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The policies, one row each.  A new policy needs a row here and a policy_*.c.  The migrating
 * policies place new jobs as their row says; then migrate*.c moves running tasks.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "balancer/rules/rules_private.h"

struct policy {
	const char *name;
	rules_policy_fn *place;
	bool migrates;
	const char *summary;
};

/* Section 3.9 begins with the form for this kind of cluster. */
static int place_iocm_pm(struct rules_decision *d)
{
	return d->params->hom_pm ? rules_policy_iocm_re_hom(d) : rules_policy_iocm_re(d);
}

static const struct policy policies[RULES_POLICIES] = {
	[RULES_NLB] = {"nlb", rules_policy_nlb, false,
		       "no load balancing: every job runs on its home node"},
	[RULES_CPU_RE] = {"cpu-re", rules_policy_cpu_re, false,
			  "looks at the number of tasks; moves a new job when home runs too many"},
	[RULES_MEM_RE] =
		{"mem-re", rules_policy_mem_re, false,
		 "looks at memory, then tasks; moves a new job when home's memory is short "
		 "or its tasks are too many"},
	[RULES_CM] = {"cm", rules_policy_cm, false,
		      "looks at memory, then tasks; moves a new job when home is above the others"},
	[RULES_IO] = {"io", rules_policy_io, false,
		      "looks at what tasks ask of the disks; always takes the lightest disk"},
	[RULES_IO_RE] = {"io-re", rules_policy_io_re, false,
			 "looks at disk load against each disk's fair share; moves a new job when "
			 "home is above it"},
	[RULES_IOCM_RE] = {"iocm-re", rules_policy_iocm_re, false,
			   "looks at disk load, else memory, else tasks; for unequal nodes"},
	[RULES_IOCM_RE_HOM] = {"iocm-re-hom", rules_policy_iocm_re_hom, false,
			       "looks at disk load, else memory, else tasks; for equal nodes"},
	[RULES_IOCM_PM] = {"iocm-pm", place_iocm_pm, true,
			   "places as iocm-re; moves running tasks while home is still overloaded"},
	[RULES_WAL] = {"wal", rules_policy_wal, false,
		       "looks at a weighted mean of tasks and disk load; moves a new job when home "
		       "is the highest and far above the mean"},
	[RULES_WAL_FC] = {"wal-fc", rules_policy_wal, false,
			  "as wal; feedback of the jobs' slowdown sets the weights and the buffer"},
	[RULES_COM] = {"com", rules_policy_com, false,
		       "looks at the network first where it is the bottleneck, else at memory, "
		       "disk, tasks; spreads the tasks of a parallel job"},
	[RULES_BS] = {"bs", rules_policy_bs, false,
		      "batch system: each task gets a node of its own; a job waits until enough "
		      "nodes are free"},
	[RULES_ZATTI_BINARY] = {"zatti-binary", rules_policy_zatti_binary, false,
				"looks at thresholds of CPU, disk and memory; takes the first node "
				"that has what the job needs"},
	[RULES_ZATTI_REAL] = {"zatti-real", rules_policy_zatti_real, false,
			      "as zatti-binary, with intervals of CPU and disk load in place of "
			      "thresholds"},
	[RULES_RANDOM] = {"random", rules_policy_random, false,
			  "moves a new job to any node, blind to load, when home is busy"},
	[RULES_THRESHOLD] = {"threshold", rules_policy_threshold, false,
			     "asks a few nodes at random; takes the first that is not busy"},
	[RULES_SHORTEST] = {"shortest", rules_policy_shortest, false,
			    "asks a few nodes at random; takes the one with the fewest tasks"},
	[RULES_CPU_PM] = {"cpu-pm", rules_policy_cpu_re, true,
			  "places as cpu-re; moves running tasks while home runs too many"},
	[RULES_MEM_PM] = {"mem-pm", rules_policy_mem_re, true,
			  "places as mem-re; moves running tasks while home's memory is short"},
	[RULES_IO_PM] = {"io-pm", rules_policy_io_re, true,
			 "places as io-re; moves running tasks while home's disk is overloaded"},
	[RULES_WAL_PM] = {"wal-pm", rules_policy_wal, true,
			  "places as wal; moves running tasks while home's weighted load is "
			  "highest"},
	[RULES_LEAST_DELAY] = {"least-delay", rules_policy_least_delay, false,
			       "looks at the work that tasks have left; takes the node where the "
			       "job and those that it joins are delayed least"},
};

const char *rules_policy_name(enum rules_policy policy)
{
	return (unsigned int)policy < RULES_POLICIES ? policies[policy].name : NULL;
}

const char *rules_policy_summary(enum rules_policy policy)
{
	return (unsigned int)policy < RULES_POLICIES ? policies[policy].summary : NULL;
}

bool rules_policy_migrates(enum rules_policy policy)
{
	return (unsigned int)policy < RULES_POLICIES && policies[policy].migrates;
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

int rules_policy_parse_feedback(const char *name, enum rules_policy *policy, bool *feedback)
{
	static const char prefix[] = "feedback+";
	size_t n = sizeof(prefix) - 1;
	bool attached = strncasecmp(name, prefix, n) == 0;
	int ret = rules_policy_parse(attached ? name + n : name, policy);

	if (ret == 0)
		*feedback = attached || *policy == RULES_WAL_FC;
	return ret;
}

uint32_t rules_policy_indexes(enum rules_policy policy, const struct rules_params *p)
{
	uint32_t tasks = p->cpu_speed_weighted ? RULES_ORDER_CPU_WEIGHTED : RULES_ORDER_CPU;
	uint32_t memory = p->mem_order_free ? RULES_ORDER_MEM_FREE : RULES_ORDER_MEM;
	uint32_t mem_re = RULES_KEEP(memory) | RULES_KEEP(tasks), order;

	switch (policy) {
	case RULES_NLB:
	case RULES_RANDOM:
	case RULES_ZATTI_BINARY:
	case RULES_ZATTI_REAL:
	case RULES_LEAST_DELAY:
		return 0;
	case RULES_CPU_RE:
	case RULES_CPU_PM:
		return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(tasks);
	case RULES_MEM_RE:
	case RULES_MEM_PM:
		return RULES_KEEP(RULES_INDEX_BOUNDS) | mem_re;
	case RULES_CM:
		order = p->cpu_speed_weighted ? tasks : RULES_ORDER_TASKS;
		return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(memory) | RULES_KEEP(order);
	case RULES_IO:
		return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(RULES_ORDER_EXPLICIT);
	case RULES_WAL:
	case RULES_WAL_FC:
	case RULES_WAL_PM:
		return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(RULES_INDEX_CORNERS);
	case RULES_BS:
		return RULES_KEEP(RULES_ORDER_TASKS);
	case RULES_THRESHOLD:
	case RULES_SHORTEST:
		return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(RULES_ORDER_TASKS);
	case RULES_IO_RE:
	case RULES_IO_PM:
	default:
		break;
	}
	order = p->io_order_share ? RULES_ORDER_IO_SHARE : RULES_ORDER_IO;
	if (policy == RULES_IO_RE || policy == RULES_IO_PM)
		return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(order);
	if (policy == RULES_IOCM_RE_HOM)
		order = RULES_ORDER_IO;
	return RULES_KEEP(RULES_INDEX_BOUNDS) | RULES_KEEP(order) | mem_re |
	       (policy == RULES_COM ? RULES_KEEP(RULES_ORDER_COM) | RULES_KEEP(RULES_ORDER_IO)
				    : 0) |
	       (policy == RULES_IOCM_PM && p->hom_pm ? RULES_KEEP(RULES_ORDER_IO) : 0);
}

rules_policy_fn *rules_policy_function(enum rules_policy policy)
{
	return policies[policy].place;
}
