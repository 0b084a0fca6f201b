/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The criteria as people see them: name, source, unit, relation, one sentence.
 * `left RELATION right` is the test that a reason's `holds` reports.
 */
#include "rules_private.h"

struct criterion {
	const char *name, *source, *unit, *relation, *text;
};

static const struct criterion criteria[RULES_CRITERIA] = {
	[RULES_C_HOME] =
		{"home", "FC, ACM (NLB)", "", "",
		 "This policy never sends a job elsewhere: it runs where it was submitted."},
	[RULES_C_IO_PRESENT] = {"io-present", "ACM 4.2 (IOCM-RE, first stage)", "requests/ms", ">",
				"Tasks on the home node use its disk enough that disk load is what "
				"should be balanced."},
	[RULES_C_IMPLICIT_PRESENT] =
		{"implicit-present", "ACM 4.2 (IOCM-RE, second stage)", "requests/ms", ">",
		 "The home node reads and writes its disk because its memory is "
		 "short (page faults)."},
	[RULES_C_IO_OVERLOADED] = {"io-overloaded", "ACM eq. 16, IO-RE step 3", "requests/ms", ">=",
				   "With this job the home node's disk carries at least its fair "
				   "share of the cluster's disk load."},
	[RULES_C_IO_UNDERLOADED] = {"io-underloaded", "ACM eq. 16, IO-RE condition 1",
				    "requests/ms", "<=",
				    "This node's disk carries no more than its fair share of the "
				    "cluster's disk load."},
	[RULES_C_IO_DISCREPANCY] = {"io-discrepancy", "SLD criterion 1", "requests/ms", ">",
				    "The home node's disk is busier than this node's by more than "
				    "what the job itself would add."},
	[RULES_C_RESPONSE] = {"response", "FC (4.6), SLD criterion 2", "ms", ">",
			      "Running here, the time to move the job and its data included, is "
			      "expected to take less time than running at home."},
	[RULES_C_MEM_OVERLOADED] = {"mem-overloaded", "ACM, memory load", "MB", ">",
				    "With this job the home node's tasks want more memory than it "
				    "has."},
	[RULES_C_MEM_RATIO] = {"mem-ratio", "iocom, for ACM's MEM", "load/memory", ">",
			       "With this job this node's memory would be less full than the home "
			       "node's."},
	[RULES_C_CPU_OVERLOADED] =
		{"cpu-overloaded", "ACM Table III", "tasks", ">",
		 "With this job the home node runs more tasks than its processors "
		 "should carry."},
	[RULES_C_CPU_DISCREPANCY] = {"cpu-discrepancy", "iocom, for ACM's CPU", "tasks", ">",
				     "Even with this job this node would run fewer tasks than the "
				     "home node."},
	[RULES_C_ACCEPTS] = {"accepts", "owner", "", ">=", "The owner of this node lets jobs in."},
	[RULES_C_HAS_DISK] = {"has-disk", "iocom", "MB/s", ">",
			      "The job uses a disk and this node has one."},
	[RULES_C_MEM_FITS] = {"mem-fits", "iocom", "MB",
			      "<=", "This node can hold the job in memory without paging."},
};

static const struct criterion *find(enum rules_criterion c)
{
	return (unsigned int)c < RULES_CRITERIA ? &criteria[c] : NULL;
}

const char *rules_criterion_name(enum rules_criterion c)
{
	return find(c) ? find(c)->name : NULL;
}

const char *rules_criterion_source(enum rules_criterion c)
{
	return find(c) ? find(c)->source : NULL;
}

const char *rules_criterion_unit(enum rules_criterion c, enum rules_rates rates)
{
	if (rates == RULES_RATES_WALL && (c == RULES_C_IO_PRESENT || c == RULES_C_IMPLICIT_PRESENT))
		return "disk utilisation";
	return find(c) ? find(c)->unit : NULL;
}

const char *rules_criterion_relation(enum rules_criterion c)
{
	return find(c) ? find(c)->relation : NULL;
}

const char *rules_criterion_text(enum rules_criterion c)
{
	return find(c) ? find(c)->text : NULL;
}
