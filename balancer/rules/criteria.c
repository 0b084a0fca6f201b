/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The criteria as people see them: name, source, unit, relation, one sentence.  A reason's
 * `holds` reports the test `left RELATION right`, so that test is here, too.
 */
#include "balancer/rules/rules_private.h"

enum relation {
	ALWAYS, /* there is nothing to compare */
	MORE,
	AT_LEAST,
	LESS,
	AT_MOST,
};

static const char *const relations[] = {
	[ALWAYS] = "", [MORE] = ">", [AT_LEAST] = ">=", [LESS] = "<", [AT_MOST] = "<=",
};

struct criterion {
	const char *name, *source, *unit;
	enum relation relation;
	const char *text;
};

static const struct criterion criteria[RULES_CRITERIA] = {
	[RULES_C_HOME] =
		{"home", "FC, ACM (NLB)", "", ALWAYS,
		 "This policy never sends a job elsewhere: it runs where it was submitted."},
	[RULES_C_IO_PRESENT] = {"io-present", "ACM 4.2 (IOCM-RE, first stage)", "requests/ms", MORE,
				"Tasks on the home node use its disk enough that disk load is what "
				"should be balanced."},
	[RULES_C_IMPLICIT_PRESENT] =
		{"implicit-present", "ACM 4.2 (IOCM-RE, second stage)", "requests/ms", MORE,
		 "The home node reads and writes its disk because its memory is "
		 "short (page faults)."},
	[RULES_C_IO_OVERLOADED] = {"io-overloaded", "ACM eq. 16, IO-RE step 3", "requests/ms",
				   AT_LEAST,
				   "With this job the home node's disk carries at least its fair "
				   "share of the cluster's disk load."},
	[RULES_C_IO_UNDERLOADED] = {"io-underloaded", "ACM eq. 16, IO-RE condition 1",
				    "requests/ms", AT_MOST,
				    "This node's disk carries no more than its fair share of the "
				    "cluster's disk load."},
	[RULES_C_IO_DISCREPANCY] = {"io-discrepancy", "SLD criterion 1", "requests/ms", MORE,
				    "The home node's disk is busier than this node's by more than "
				    "what the job itself would add."},
	[RULES_C_RESPONSE] = {"response", "FC (4.6), SLD criterion 2", "ms", MORE,
			      "Running here, the time to move the job and its data included, is "
			      "expected to take less time than running at home."},
	[RULES_C_MEM_OVERLOADED] = {"mem-overloaded", "ACM, memory load", "MB", MORE,
				    "With this job the home node's tasks want more memory than it "
				    "has."},
	[RULES_C_MEM_RATIO] = {"mem-ratio", "iocom, for ACM's MEM", "load/memory", MORE,
			       "With this job this node's memory would be less full than the home "
			       "node's."},
	[RULES_C_CPU_OVERLOADED] =
		{"cpu-overloaded", "ACM Table III", "tasks", MORE,
		 "With this job the home node runs more tasks than its processors "
		 "should carry."},
	[RULES_C_CPU_DISCREPANCY] = {"cpu-discrepancy", "iocom, for ACM's CPU", "tasks", MORE,
				     "Even with this job this node would run fewer tasks than the "
				     "home node."},
	[RULES_C_ACCEPTS] = {"accepts", "owner", "", AT_LEAST,
			     "The owner of this node lets jobs in."},
	[RULES_C_HAS_DISK] = {"has-disk", "iocom", "MB/s", MORE,
			      "The job uses a disk and this node has one."},
	[RULES_C_MEM_FITS] = {"mem-fits", "iocom", "MB", AT_MOST,
			      "This node can hold the job in memory without paging."},
	[RULES_C_MEM_IMBALANCED] = {"mem-imbalanced", "FC (CM)", "load/mean", MORE,
				    "With this job the home node's tasks want far more memory than "
				    "those of an average node."},
	[RULES_C_CPU_IMBALANCED] = {"cpu-imbalanced", "FC (CM)", "load/mean", MORE,
				    "With this job the home node runs far more tasks than an "
				    "average node."},
	[RULES_C_EXPLICIT_DISCREPANCY] =
		{"explicit-discrepancy", "FC section 3 (IO)", "requests/ms", MORE,
		 "The tasks of the home node ask more of its disk than those of this node, by more "
		 "than what the job itself would ask."},
	[RULES_C_LOAD_HIGHEST] =
		{"load-highest", "FC 4.1 step 2", "weighted load", AT_LEAST,
		 "With this job the home node carries the highest weighted load of "
		 "all nodes."},
	[RULES_C_LOAD_RATIO] = {"load-ratio", "FC 4.1 step 2", "load/mean", MORE,
				"With this job the home node's weighted load is far above the mean "
				"of all nodes."},
	[RULES_C_LOAD_DISCREPANCY] =
		{"load-discrepancy", "FC section 3 (WAL)", "weighted load", MORE,
		 "The home node's weighted load exceeds this node's by more than what the job "
		 "itself would add."},
	[RULES_C_COM_FIRST] = {"com-first", "COM Fig. 3", "ms", AT_LEAST,
			       "The tasks of the home node need the network at least as long as "
			       "its processor or its disk."},
	[RULES_C_JOB_COM] = {"job-com", "COM Fig. 3, eq. 2", "ms", MORE,
			     "The job communicates longer than it computes or uses a disk."},
	[RULES_C_JOB_IO] = {"job-io", "COM Fig. 3, eq. 2", "ms", AT_LEAST,
			    "The job uses a disk at least as long as it computes."},
	[RULES_C_DISK_FIRST] = {"disk-first", "COM 4", "ms", AT_LEAST,
				"The tasks of the home node need its disk at least as long as its "
				"processor."},
	[RULES_C_MASTER] = {"master", "COM 4", "", ALWAYS,
			    "The first task of a job talks to all others: it stays where the job "
			    "was submitted."},
	[RULES_C_NO_SIBLING] = {"no-sibling", "COM Fig. 1a", "tasks", AT_MOST,
				"This node runs no other task of the job yet."},
	[RULES_C_COM_DISCREPANCY] =
		{"com-discrepancy", "COM (7)", "ms", MORE,
		 "The home node's network port is busier than this node's by more than what the "
		 "task itself would add."},
	[RULES_C_COM_RESPONSE] =
		{"com-response", "COM (8)", "ms", MORE,
		 "Running here, communication and the move included, is expected to take less "
		 "time than running at home."},
	[RULES_C_FREE_NODES] = {"free-nodes", "ACM 3.3.1 (BS)", "nodes", AT_LEAST,
				"There are enough nodes without any job for all tasks of this "
				"one."},
	[RULES_C_IDLE] = {"idle", "ACM 3.3.1 (BS)", "tasks", AT_MOST, "Nothing runs on this node."},
	[RULES_C_HOPS] = {"hops", "ZAT 5 (hop count)", "hops", LESS,
			  "The job has not yet been passed on as often as it may be."},
	[RULES_C_LOCAL_CPU] = {"local-cpu", "ZAT 9.3, local threshold", "CPU load", MORE,
			       "The home node's processor is too busy for the job."},
	[RULES_C_LOCAL_IO] = {"local-io", "ZAT 9.3, local threshold", "blocks/s", MORE,
			      "The home node's disks are too busy for the job."},
	[RULES_C_LOCAL_MEMORY] = {"local-memory", "ZAT 9.3", "MB", MORE,
				  "The job needs more memory than the home node has free."},
	[RULES_C_REMOTE_CPU] = {"remote-cpu", "ZAT 4.1, remote threshold", "CPU load", AT_MOST,
				"This node's processor is idle enough to be worth the way."},
	[RULES_C_REMOTE_IO] = {"remote-io", "ZAT 4.1, remote threshold", "blocks/s", AT_MOST,
			       "This node's disks are idle enough to be worth the way."},
	[RULES_C_REMOTE_MEMORY] = {"remote-memory", "ZAT 6 (matching)", "MB", AT_LEAST,
				   "This node has as much memory free as the job needs."},
	[RULES_C_NEEDS] = {"needs", "ZAT 9.2 (light jobs)", "key", MORE,
			   "The job needs processor or disk enough to be worth sending."},
	[RULES_C_SENT] = {"sent", "ZAT 6 (after placement)", "jobs", AT_MOST,
			  "No job with the same needs was sent to this node since it last told of "
			  "itself."},
	[RULES_C_DELTA_CPU] = {"delta-cpu", "ZAT 9.4.1, delta threshold", "CPU load", LESS,
			       "This node's processor is less busy than the home node's by more "
			       "than the cost of running there."},
	[RULES_C_DELTA_IO] = {"delta-io", "ZAT 9.4.2, delta threshold", "blocks/s", LESS,
			      "This node's disks are less busy than the home node's by more than "
			      "the cost of running there."},
	[RULES_C_AT_RANDOM] = {"at-random", "Eager et al. (random)", "", ALWAYS,
			       "This policy draws the node at random, blind to load."},
	[RULES_C_QUEUE_BELOW] = {"queue-below", "Eager et al. (threshold)", "tasks", LESS,
				 "This node runs fewer tasks than the threshold."},
	[RULES_C_QUEUE_SHORTER] = {"queue-shorter", "Eager et al. (shortest)", "tasks", LESS,
				   "This node runs fewer tasks than the home node."},
	[RULES_C_ROUND_ROBIN] = {"round-robin", "COM Fig. 1a", "", ALWAYS,
				 "The tasks of a parallel job start on one node after the other, "
				 "blind to load."},
	[RULES_C_STILL_OVERLOADED] = {"still-overloaded", "ACM 3.1.2 (IOCM-PM)", "load", MORE,
				      "The home node still carries more than it should: a running "
				      "task should leave it."},
	[RULES_C_MIGRANT] = {"migrant", "SLD, ACM 3.1.2", "ms", MORE,
			     "What is left of this task, the move included, is expected to take "
			     "less time on the other node."},
	[RULES_C_MIGRANT_AGE] =
		{"migrant-age", "Harchol-Balter and Downey", "ms", MORE,
		 "This task has run so long that what it has still to run is worth the move."},
	[RULES_C_DELAY_HOME] = {"delay-home", "iocom (least-delay)", "ms", ALWAYS,
				"At home the job is expected to take the left time, and to delay "
				"the tasks there by the right one in all."},
	[RULES_C_DELAY] = {"delay", "iocom (least-delay)", "ms", MORE,
			   "Running here, the way included, delays the job and those already here "
			   "by less in all (right) than running at home does, with delay_margin "
			   "taken off (left)."},
};

static const struct criterion *criteria_find(enum rules_criterion c)
{
	return (unsigned int)c < RULES_CRITERIA ? &criteria[c] : NULL;
}

bool rules_criterion_holds(enum rules_criterion c, double left, double right)
{
	switch (criteria[c].relation) {
	case MORE:
		return left > right;
	case AT_LEAST:
		return left >= right;
	case LESS:
		return left < right;
	case AT_MOST:
		return left <= right;
	default:
		return true;
	}
}

const char *rules_criterion_name(enum rules_criterion c)
{
	return criteria_find(c) ? criteria_find(c)->name : NULL;
}

const char *rules_criterion_source(enum rules_criterion c)
{
	return criteria_find(c) ? criteria_find(c)->source : NULL;
}

const char *rules_criterion_unit(enum rules_criterion c, enum rules_rates rates)
{
	if (rates == RULES_RATES_WALL && (c == RULES_C_IO_PRESENT || c == RULES_C_IMPLICIT_PRESENT))
		return "disk utilisation";
	return criteria_find(c) ? criteria_find(c)->unit : NULL;
}

const char *rules_criterion_relation(enum rules_criterion c)
{
	return criteria_find(c) ? relations[criteria_find(c)->relation] : NULL;
}

const char *rules_criterion_text(enum rules_criterion c)
{
	return criteria_find(c) ? criteria_find(c)->text : NULL;
}
