/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* COM: experiments and claims of the communication-aware study (MODEL 6.4). */
#include <math.h>

#include "sim/experiments/code_claims.h"
#include "sim/experiments/tables.h"

/*
 * What the mechanism needs (COM-SENS-READ, COM-BOUND-PORT).  A slave sends for R_COM = rate x
 * size / bandwidth = 2.05 ms per ms of computation at 0.5 messages per ms.  If the p - 1 slaves
 * share the master's port, a job of 16 tasks takes 31 times its computation there wherever its
 * tasks run, and no placement relieves the port.  If each slave takes the time R_COM of the
 * paper's own model (3), a job spread over p nodes takes 1 + R_COM and a job with n tasks at home
 * n + R_COM: spreading gains, most if R_COM is little above 1.  Criterion (8) weighs R_COM
 * against the processor's queue and keeps up to 1 + R_COM tasks at home, as the CPU-aware
 * threshold does; only the initial spread of COM section 3 distinguishes the policies.
 *
 * So what is relieved here is the processor of the home, not a port, and most of the
 * gain is that start: with one process a node for all policies (COM-EQUAL-4c) they
 * are alike up to 8 tasks.  Messages free inside a node turn the order at 2 tasks
 * (COM-SENS-LOCAL); the model's own defaults turn it at all (COM-SENS-DEFAULT).
 */
static const struct paper_setting settings[] = {
	{"nodes", "32xcom", "32 nodes, Table 1"},
	{"workload", "gen:com", "parallel jobs, 512 KB messages to the master"},
	{"load.jobs", "80",
	 "11 to 45 times the jobs that run at the same time at 1 Gbps; ten runs "
	 "take less than 20 s on one core"},
	{"load.home_skew", "1", "reading 4, as in ACM"},
	{"load.lifetime_mean_ms", "400", "the process trace's mean"},
	{"load.lifetime_max_ms", "8000",
	 "bounded at 20 times the mean, so that means of ten runs distinguish "
	 "policies"},
	{"load.interarrival_ms", "600",
	 "reading 7: CPUs are a third busy at 16 tasks, two thirds at 32; without "
	 "balancing the busiest home has 2.6 times its capacity at 16 tasks, 0.7 "
	 "at 4"},
	{"load.memory_shape", "3", "O-39: a bounded tail; only COM-9 comes near a node's memory"},
	{"port_contention", "0",
	 "O-38: each process has its own T_COM of (3), and any pair transfers at "
	 "any time (Myrinet); with contention a 16-task job has 31 ms at its "
	 "master's port per ms of computation, wherever its tasks run"},
	{"local_messages_free", "0",
	 "reading 7: T_COM of (3) does not depend on the node; if free, two tasks "
	 "on one node are faster than alone and slowdowns fall below 1"},
	{"com_decision", "2",
	 "O-14: section 3 and Fig. 1a: the job gets the group of nodes with the "
	 "least load, one process per node; under the other policies tasks start "
	 "at home (O-17, default)"},
	{"io_significance", "0.001",
	 "reading 8: 0.01 accesses per second are no I/O load; otherwise the "
	 "I/O-aware policy uses them to count tasks"},
	{"page_fault_at_disk", "0", "reading 2: a delay; at the disk COM-9 collapses or does not"},
	{NULL, NULL, NULL},
};

const struct paper com_paper = {
	"COM", "COM: Communication-aware load balancing", settings,
	"Calibrated, not blind: ports, local messages, the initial spread and the gap between "
	"arrivals were settled after COM-4 had been seen under other values: the model's defaults "
	"turn its order (READ-7, COM-SENS-DEFAULT). The order of COM-4 therefore calibrates and does "
	"not count. com_decision=2 spreads only the COM-aware policy, its rivals start at home: each "
	"claim says what of the gain is that start, and COM-EQUAL-4a to COM-EQUAL-10 show the figures "
	"with equal starts."};

#define SERIES_END                                                                                 \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
#define POINTS_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL                                                                      \
	}

static const struct series four[] = {{"CPU-aware", "cpu-re", NULL},
				     {"MEM-aware", "mem-re", NULL},
				     {"IO-aware", "iocm-re-hom", NULL},
				     {"COM-aware", "com", NULL},
				     SERIES_END};
#define OTHERS "CPU-aware|MEM-aware|IO-aware"

/* --- why claims fail ------------------------------------------------------------------- */

#define WHY_CLASS                                                                                  \
	.why = "a slave has 0.41 ms of messages per ms of computation, so the job is "             \
	       "not communication-intensive (O-29) and COM-aware places it as CPU-aware "          \
	       "does, task for task",                                                              \
	.bound = "COM-SENS-RATE"
#define WHY_LOAD                                                                                   \
	.why = "a task takes 1 + R_COM where the others take 4 + R_COM (4 is the CPU "             \
	       "threshold): 98 % at 0.5 messages per ms, minus the cost of moving; more "          \
	       "load does not increase this, because then all tasks queue",                        \
	.bound = "COM-BOUND-LOAD"
#define WHY_MOST                                                                                   \
	.why = "the largest gain is at 32 tasks, where the cluster is fullest; it is "             \
	       "below the printed gain at every arrival rate",                                     \
	.bound = "COM-BOUND-LOAD-32"
#define WHY_MEAN                                                                                   \
	.why = "a third of the cells, those with 0.1 messages per ms, gain nothing "               \
	       "(O-29), and the others gain at most 3 / (1 + R_COM) until the cluster "            \
	       "fills",                                                                            \
	.bound = "COM-SENS-RATE"
#define WHY_BANDWIDTH                                                                              \
	.why = "spreading saves the wait for the computation of up to three other "                \
	       "tasks, but nothing of R_COM: the gain is at most 3 / (1 + R_COM), 1 % "            \
	       "at 10 Mbps and 14 % at 100 Mbps until the cluster fills",                          \
	.bound = "COM-BOUND-BANDWIDTH"
#define WHY_SIZE                                                                                   \
	.why = "only size / bandwidth counts, so 5 MB at 1 Gbps equals 512 KB at 100 "             \
	       "Mbps; the gain cannot grow both with the bandwidth (COM-6, holds) and "            \
	       "with the size",                                                                    \
	.bound = "COM-BOUND-BANDWIDTH"

#define WHY_IO                                                                                     \
	.why = "COM-aware places I/O jobs as IO-aware does and, at 0.1 messages per ms, "          \
	       "the others as CPU-aware does (O-29): it equals the better of the two; "            \
	       "at 0.5 messages it is better",                                                     \
	.bound = "COM-SENS-MIX"
#define WHY_MEMORY                                                                                 \
	.why = "with enough memory MEM-aware is CPU-aware (3.3) and IO-aware has the "             \
	       "same memory step (3.7), so neither is better by its rules; which jobs "            \
	       "page is random: intervals are wide whatever the jobs' memory",                     \
	.bound = "COM-SENS-MEMORY"
#define WHY_APPLICATIONS                                                                           \
	.why = "the reduction is at most 3 / (4 + R_COM) until the cluster fills: 57 % "           \
	       "for the application with the fewest messages, since "                              \
	       "communication-intensive means R_COM > 1",                                          \
	.bound = "COM-BOUND-BANDWIDTH"

/* --- COM-4, COM-5: number of tasks, message rate --------------------------------------- */

#define TASKS(n)                                                                                   \
	{                                                                                          \
#n, n, "load.tasks_min=" #n " load.tasks_max=" #n                                  \
	}
static const struct point tasks[] = {TASKS(2),	TASKS(4),  TASKS(8),
				     TASKS(16), TASKS(32), POINTS_END};

#define TREND_AND_BEST(m, ...)                                                                     \
	ORDINAL(TREND, "slowdown and turn-around of all rise with the number of tasks", .a = "*",  \
		.measure = m),                                                                     \
		ORDINAL(BELOW, "COM-aware is best", .a = "COM-aware", .b = OTHERS,                 \
			.measure = m __VA_OPT__(, ) __VA_ARGS__),                                  \
		ORDINAL(FLATTER, "its gap to the others grows with the number of tasks",           \
			.a = "COM-aware", .b = OTHERS, .measure = m __VA_OPT__(, ) __VA_ARGS__)

/* The figures with equal starts: what is left of the order. */
static const struct claim equal_claims[] = {
	ORDINAL(BELOW, "(ours) COM-aware is still best if all policies start alike",
		.a = "COM-aware", .b = OTHERS,
		.why = "with one process a node for all, the policies differ only where criterion "
		       "(8) moves one",
		.bound = "COM-SENS-READ"),
	CLAIMS_END,
};

/* The order of COM-4 led to the ports, the local messages, the spread and the gap. */
#define LED .calibrates = true

static const struct claim claims_4a[] = {
	TREND_AND_BEST(M_SLOWDOWN, LED, WHY_CLASS),
	QUANTITATIVE(RATIO, "4 tasks: gains as low as 3 %", .a = "COM-aware", .b = OTHERS,
		     .at = "4", .by = RATIO_GAIN, .printed = 0.03, .band = 0.9,
		     .reading = "mean over the three, above 0; the band is wide", WHY_CLASS),
	CLAIMS_END,
};
static const struct claim claims_4b[] = {TREND_AND_BEST(M_SLOWDOWN, LED), CLAIMS_END};
static const struct claim claims_4c[] = {
	TREND_AND_BEST(M_SLOWDOWN, LED),
	QUANTITATIVE(RATIO, "16 tasks: over CPU-aware by more than 174 %", .a = "COM-aware",
		     .b = "CPU-aware", .at = "16", .by = RATIO_GAIN, .printed = 1.74,
		     .at_least = true, WHY_LOAD),
	QUANTITATIVE(RATIO, "16 tasks: over MEM-aware by more than 182 %", .a = "COM-aware",
		     .b = "MEM-aware", .at = "16", .by = RATIO_GAIN, .printed = 1.82,
		     .at_least = true, WHY_LOAD),
	QUANTITATIVE(RATIO, "16 tasks: over IO-aware by more than 206 %", .a = "COM-aware",
		     .b = "IO-aware", .at = "16", .by = RATIO_GAIN, .printed = 2.06,
		     .at_least = true, WHY_LOAD),
	CLAIMS_END,
};
static const struct claim claims_5a[] = {
	TREND_AND_BEST(M_TURNAROUND, WHY_CLASS),
	QUANTITATIVE(RATIO, "4 tasks: 4 %", .a = "COM-aware", .b = OTHERS, .at = "4",
		     .measure = M_TURNAROUND, .by = RATIO_GAIN, .printed = 0.04, .band = 0.9,
		     .reading = "mean over the three, above 0; the band is wide", WHY_CLASS),
	CLAIMS_END,
};
static const struct claim claims_5bc[] = {TREND_AND_BEST(M_TURNAROUND), CLAIMS_END};

/* --- COM-ABS --------------------------------------------------------------------------- */

#define CELL(rate, n)                                                                              \
	{                                                                                          \
		rate ", " #n, NAN,                                                                 \
			"load.messages_per_ms=" rate " load.tasks_min=" #n " load.tasks_max=" #n   \
	}
static const struct point grid[] = {
	CELL("0.1", 2),	 CELL("0.1", 4),  CELL("0.1", 8),  CELL("0.1", 16),
	CELL("0.1", 32), CELL("0.3", 2),  CELL("0.3", 4),  CELL("0.3", 8),
	CELL("0.3", 16), CELL("0.3", 32), CELL("0.5", 2),  CELL("0.5", 4),
	CELL("0.5", 8),	 CELL("0.5", 16), CELL("0.5", 32), POINTS_END,
};

static const struct claim abs_claims[] = {
	QUANTITATIVE(RATIO, "slowdown improves by up to 206 %", .a = "COM-aware", .b = OTHERS,
		     .by = RATIO_GAIN, .over = OVER_MAX, .printed = 2.06, WHY_MOST),
	QUANTITATIVE(RATIO, "... by 74 % on average", .a = "COM-aware", .b = OTHERS,
		     .by = RATIO_GAIN, .printed = 0.74, WHY_MEAN),
	QUANTITATIVE(RATIO, "turn-around time improves by up to 235 %", .a = "COM-aware",
		     .b = OTHERS, .measure = M_TURNAROUND, .by = RATIO_GAIN, .over = OVER_MAX,
		     .printed = 2.35, WHY_MOST),
	QUANTITATIVE(RATIO, "... by 82 % on average", .a = "COM-aware", .b = OTHERS,
		     .measure = M_TURNAROUND, .by = RATIO_GAIN, .printed = 0.82, WHY_MEAN),
	CLAIMS_END,
};

/* --- COM-6: bandwidth -------------------------------------------------------------------- */

#define IMPROVES(value, text_)                                                                     \
	QUANTITATIVE(RATIO, text_, .a = "COM-aware", .b = OTHERS, .measure = M_TURNAROUND,         \
		     .by = RATIO_GAIN, .printed = value, WHY_BANDWIDTH)
static const struct claim claims_6a[] = {
	IMPROVES(0.614, "average improvement over the three at 10 Mbps: 61.4 %"), CLAIMS_END};
static const struct claim claims_6b[] = {
	IMPROVES(1.161, "average improvement over the three at 100 Mbps: 116.1 %"),
	ORDINAL(BELOW, "turn-around falls with the bandwidth: 100 Mbps below 10 Mbps",
		.a = "COM-aware", .b = "COM-6a/COM-aware", .measure = M_TURNAROUND),
	ORDINAL(CODE, "the improvement is more pronounced than at 10 Mbps", .a = "COM-aware",
		.b = OTHERS, .measure = M_TURNAROUND, .code = claim_more_than_a,
		.reading = "mean over the three"),
	CLAIMS_END,
};
static const struct claim claims_6c[] = {
	IMPROVES(1.829, "average improvement over the three at 1 Gbps: 182.9 %"),
	ORDINAL(BELOW, "turn-around falls with the bandwidth: 1 Gbps below 100 Mbps",
		.a = "COM-aware", .b = "COM-6b/COM-aware", .measure = M_TURNAROUND),
	ORDINAL(CODE, "the improvement is more pronounced than at 10 Mbps", .a = "COM-aware",
		.b = OTHERS, .measure = M_TURNAROUND, .code = claim_more_than_a,
		.reading = "mean over the three"),
	CLAIMS_END,
};

/* --- COM-7: message size -------------------------------------------------------------------- */

static const struct claim claims_7a[] = {
	ORDINAL(BELOW, "COM-aware is best", .a = "COM-aware", .b = OTHERS, .measure = M_TURNAROUND),
	CLAIMS_END,
};
static const struct claim claims_7bc[] = {
	ORDINAL(BELOW, "turn-around rises with the message size", .a = "COM-7a/COM-aware",
		.b = "COM-aware", .measure = M_TURNAROUND),
	ORDINAL(CODE, "the benefit of COM-aware grows with the message size", .a = "COM-aware",
		.b = OTHERS, .measure = M_TURNAROUND, .code = claim_more_than_a,
		.reading = "mean over the three, against 512 KB", WHY_SIZE),
	CLAIMS_END,
};

/* --- COM-8, COM-9: mixtures --------------------------------------------------------------------
 */

#define SHARES "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"

#define IO_CLAIMS(m)                                                                               \
	ORDINAL(BELOW, "COM-aware is best in all cases", .a = "COM-aware", .b = OTHERS,            \
		.measure = m, WHY_IO),                                                             \
		ORDINAL(BELOW, "COM-aware and IO-aware are noticeably better when I/O dominates",  \
			.a = "COM-aware|IO-aware", .b = "CPU-aware|MEM-aware", .at = "0..0.2",     \
			.measure = m, WHY_IO),                                                     \
		ORDINAL(EQUAL, "COM-aware is about as IO-aware there", .a = "COM-aware",           \
			.b = "IO-aware", .at = "0..0.2", .measure = m),                            \
		ORDINAL(CODE, "IO-aware's advantage over CPU- and MEM-aware falls with the share", \
			.a = "IO-aware", .b = "CPU-aware|MEM-aware", .measure = m,                 \
			.code = claim_advantage_falls, WHY_IO),                                    \
		ORDINAL(CODE, "COM-aware is not sensitive to the share", .a = "COM-aware",         \
			.measure = m, .printed = 1.5, .code = claim_flat,                          \
			.reading = "largest over smallest mean at most 1.5")

static const struct claim claims_8a[] = {IO_CLAIMS(M_SLOWDOWN), CLAIMS_END};
static const struct claim claims_8b[] = {IO_CLAIMS(M_TURNAROUND), CLAIMS_END};

#define MEMORY_CLAIMS(m)                                                                           \
	ORDINAL(BELOW, "COM-aware is best in all cases", .a = "COM-aware", .b = OTHERS,            \
		.measure = m, WHY_MEMORY),                                                         \
		ORDINAL(EQUAL, "at the memory-intensive end COM-aware is about as MEM-aware",      \
			.a = "COM-aware", .b = "MEM-aware", .at = "0", .measure = m),              \
		QUANTITATIVE(BELOW, "MEM-aware is better than CPU- and IO-aware below 40 %",       \
			     .a = "MEM-aware", .b = "CPU-aware|IO-aware", .at = "0..0.3",          \
			     .measure = m, WHY_MEMORY),                                            \
		QUANTITATIVE(BELOW, "MEM-aware is worse than CPU- and COM-aware above 40 %",       \
			     .a = "CPU-aware|COM-aware", .b = "MEM-aware", .at = "0.5..1",         \
			     .measure = m, WHY_MEMORY)

static const struct claim claims_9a[] = {MEMORY_CLAIMS(M_SLOWDOWN), CLAIMS_END};
static const struct claim claims_9b[] = {MEMORY_CLAIMS(M_TURNAROUND), CLAIMS_END};

/* --- COM-10: applications
 * -------------------------------------------------------------------------- */

static const struct point applications[] = {
	{"Render", NAN, "workload=gen:render"},
	{"Molecular", NAN, "workload=gen:molecular"},
	{"Semi", NAN, "workload=gen:semi"},
	{"React", NAN, "workload=gen:react"},
	{"Vortex", NAN, "workload=gen:vortex"},
	{"All", NAN, "workload=gen:com-all"},
	POINTS_END,
};

static const struct claim claims_10a[] = {
	ORDINAL(BELOW, "COM-aware works well for all applications", .a = "COM-aware", .b = OTHERS),
	CLAIMS_END,
};

static const struct claim claims_10b[] = {
	QUANTITATIVE(RATIO, "a single application improves by up to 75.9 %", .a = "COM-aware",
		     .b = OTHERS, .at = "Render..Vortex", .by = RATIO_REDUCTION, .over = OVER_MAX,
		     .printed = 0.759,
		     .reading = "we chose the messages of the five, the paper gives no number",
		     WHY_APPLICATIONS),
	QUANTITATIVE(RATIO, "... by 42.2 % on average", .a = "COM-aware", .b = OTHERS,
		     .at = "Render..Vortex", .by = RATIO_REDUCTION, .printed = 0.422,
		     .reading = "we chose the messages of the five, the paper gives no number",
		     WHY_APPLICATIONS),
	CLAIMS_END,
};

/* --- what any setting could reach, and what the readings decide ------------------------- */

static const struct point readings[] = {
	{"common setting", NAN, NULL},
	{"ports contend", NAN, "port_contention=1"},
	{"local messages free", NAN, "local_messages_free=1"},
	{"demand at home (7), (8)", NAN, "com_decision=0"},
	{"literal (5)", NAN, "com_decision=1"},
	{"all start round-robin", NAN, "parallel_start=1"},
	{"the same, (7), (8)", NAN, "parallel_start=1 com_decision=0"},
	{"runnable tasks", NAN, "cpu_load_runnable=1"},
	{"any I/O counts", NAN, "io_significance=0"},
	{"equal homes", NAN, "load.home_skew=0"},
	{"transit not counted", NAN, "transit_counts=0"},
	POINTS_END,
};
static const struct series ports[] = {
	{"NLB", "nlb", NULL},
	{"CPU-aware", "cpu-re", NULL},
	{"COM-aware, spread", "com", NULL},
	{"COM-aware, (7) and (8)", "com", "com_decision=0"},
	{"COM-aware, (8) with ports", "com", "com_decision=0 com_port_contention=1"},
	SERIES_END};
static const struct point port_points[] = {
	{"4 tasks", NAN, "load.tasks_min=4 load.tasks_max=4 local_messages_free=0"},
	{"16 tasks", NAN, "load.tasks_min=16 load.tasks_max=16 local_messages_free=0"},
	{"16, equal homes", NAN,
	 "load.tasks_min=16 load.tasks_max=16 local_messages_free=0 load.home_skew=0"},
	{"4, local free", NAN, "load.tasks_min=4 load.tasks_max=4 local_messages_free=1"},
	{"16, local free", NAN, "load.tasks_min=16 load.tasks_max=16 local_messages_free=1"},
	POINTS_END,
};
static const struct point lengths[] = {
	{"512 KB, 10 Mbps", NAN, "nodes.network_mb_per_s=1.25"},
	{"512 KB, 100 Mbps", NAN, "nodes.network_mb_per_s=12.5"},
	{"5 MB, 1 Gbps", NAN, "load.message_kb=5000"},
	{"2 MB, 1 Gbps", NAN, "load.message_kb=2000"},
	{"512 KB, 1 Gbps", NAN, NULL},
	{"512 KB, 2 Gbps", NAN, "nodes.network_mb_per_s=250"},
	{"512 KB, 4 Gbps", NAN, "nodes.network_mb_per_s=500"},
	POINTS_END,
};
#define SIXTEEN "load.messages_per_ms=0.5 load.tasks_min=16 load.tasks_max=16"

#define TASKS_EXPERIMENT(id_, title_, settings_, y_, claims_, needs_)                              \
	{                                                                                          \
		.id = id_, .paper = "COM", .title = title_, .settings = settings_,                 \
		.x_name = "tasks per job", .points = tasks, .series = four, .y = y_,               \
		.log_y = true, .claims = claims_, .needs = needs_, .spread_series = "COM-aware"    \
	}
#define OUR_TASKS(id_, title_, settings_, claims_)                                                 \
	{                                                                                          \
		.id = id_, .paper = "COM", .title = title_, .settings = settings_,                 \
		.x_name = "tasks per job", .points = tasks, .series = four, .log_y = true,         \
		.claims = claims_                                                                  \
	}

const struct experiment com_experiments[] = {
	{.id = "COM-ABS",
	 .paper = "COM",
	 .title = "all message rates and numbers of tasks",
	 .x_name = "messages per ms, tasks",
	 .points = grid,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = abs_claims},
	TASKS_EXPERIMENT("COM-4a", "slowdown, 0.1 messages per ms", "load.messages_per_ms=0.1",
			 M_SLOWDOWN, claims_4a, NULL),
	TASKS_EXPERIMENT("COM-4b", "slowdown, 0.3 messages per ms", "load.messages_per_ms=0.3",
			 M_SLOWDOWN, claims_4b, NULL),
	TASKS_EXPERIMENT("COM-4c", "slowdown, 0.5 messages per ms", "load.messages_per_ms=0.5",
			 M_SLOWDOWN, claims_4c, NULL),
	TASKS_EXPERIMENT("COM-5a", "turn-around, 0.1 messages per ms", "load.messages_per_ms=0.1",
			 M_TURNAROUND, claims_5a, NULL),
	TASKS_EXPERIMENT("COM-5b", "turn-around, 0.3 messages per ms", "load.messages_per_ms=0.3",
			 M_TURNAROUND, claims_5bc, NULL),
	TASKS_EXPERIMENT("COM-5c", "turn-around, 0.5 messages per ms", "load.messages_per_ms=0.5",
			 M_TURNAROUND, claims_5bc, NULL),
	TASKS_EXPERIMENT("COM-6a", "turn-around, 10 Mbps",
			 "load.messages_per_ms=0.5 nodes.network_mb_per_s=1.25", M_TURNAROUND,
			 claims_6a, NULL),
	TASKS_EXPERIMENT("COM-6b", "turn-around, 100 Mbps",
			 "load.messages_per_ms=0.5 nodes.network_mb_per_s=12.5", M_TURNAROUND,
			 claims_6b, "COM-6a"),
	TASKS_EXPERIMENT("COM-6c", "turn-around, 1 Gbps",
			 "load.messages_per_ms=0.5 nodes.network_mb_per_s=125", M_TURNAROUND,
			 claims_6c, "COM-6a COM-6b"),
	TASKS_EXPERIMENT("COM-7a", "turn-around, messages of 512 KB",
			 "load.messages_per_ms=0.5 load.message_kb=512", M_TURNAROUND, claims_7a,
			 NULL),
	TASKS_EXPERIMENT("COM-7b", "turn-around, messages of 2 MB",
			 "load.messages_per_ms=0.5 load.message_kb=2000", M_TURNAROUND, claims_7bc,
			 "COM-7a"),
	TASKS_EXPERIMENT("COM-7c", "turn-around, messages of 5 MB",
			 "load.messages_per_ms=0.5 load.message_kb=5000", M_TURNAROUND, claims_7bc,
			 "COM-7a"),
	{.id = "COM-8a",
	 .paper = "COM",
	 .title = "I/O and communication: slowdown",
	 .settings = "workload=gen:com-io load.messages_per_ms=0.1",
	 .x_name = "share of communication-intensive jobs",
	 .axis = "load.share",
	 .values = SHARES,
	 .series = four,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = claims_8a},
	{.id = "COM-8b",
	 .paper = "COM",
	 .title = "I/O and communication: turn-around",
	 .settings = "workload=gen:com-io load.messages_per_ms=0.1",
	 .x_name = "share of communication-intensive jobs",
	 .axis = "load.share",
	 .values = SHARES,
	 .series = four,
	 .y = M_TURNAROUND,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = claims_8b},
	{.id = "COM-9a",
	 .paper = "COM",
	 .title = "memory and communication: slowdown",
	 .settings = "workload=gen:com-memory load.messages_per_ms=0.1",
	 .x_name = "share of communication-intensive jobs",
	 .axis = "load.share",
	 .values = SHARES,
	 .series = four,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = claims_9a},
	{.id = "COM-9b",
	 .paper = "COM",
	 .title = "memory and communication: turn-around",
	 .settings = "workload=gen:com-memory load.messages_per_ms=0.1",
	 .x_name = "share of communication-intensive jobs",
	 .axis = "load.share",
	 .values = SHARES,
	 .series = four,
	 .y = M_TURNAROUND,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = claims_9b},
	{.id = "COM-10a",
	 .paper = "COM",
	 .title = "five applications",
	 .points = applications,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = claims_10a},
	{.id = "COM-10b",
	 .paper = "COM",
	 .title = "five applications: improvement",
	 .points = applications,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .spread_series = "COM-aware",
	 .claims = claims_10b},
	{.id = "COM-SENS-READ",
	 .paper = "COM",
	 .title = "effect of the readings: 16 tasks, 0.5 messages per ms",
	 .settings = SIXTEEN,
	 .points = readings,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true},
	OUR_TASKS("COM-SENS-LOCAL", "messages inside a node are free: slowdown, 0.5 per ms",
		  "load.messages_per_ms=0.5 local_messages_free=1", NULL),
	OUR_TASKS("COM-EQUAL-4a", "(ours) COM-4a with equal starts: slowdown, 0.1 messages per ms",
		  "load.messages_per_ms=0.1 " EQUAL_START, equal_claims),
	OUR_TASKS("COM-EQUAL-4b", "(ours) COM-4b with equal starts: slowdown, 0.3 messages per ms",
		  "load.messages_per_ms=0.3 " EQUAL_START, equal_claims),
	OUR_TASKS("COM-EQUAL-4c", "(ours) COM-4c with equal starts: slowdown, 0.5 messages per ms",
		  "load.messages_per_ms=0.5 " EQUAL_START, equal_claims),
	{.id = "COM-EQUAL-10",
	 .paper = "COM",
	 .title = "(ours) COM-10 with equal starts: five applications",
	 .settings = EQUAL_START,
	 .points = applications,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = equal_claims},
	OUR_TASKS("COM-SENS-DEFAULT",
		  "contending ports, free local messages, (7) and (8): slowdown, 0.5 per ms",
		  "load.messages_per_ms=0.5 port_contention=1 local_messages_free=1 "
		  "com_decision=0",
		  NULL),
	{.id = "COM-SENS-RATE",
	 .paper = "COM",
	 .title = "COM-aware is CPU-aware until a slave communicates longer than it "
		  "computes (0.24 per ms)",
	 .settings = "load.tasks_min=16 load.tasks_max=16",
	 .x_name = "messages a ms",
	 .axis = "load.messages_per_ms",
	 .values = "0.05 0.1 0.2 0.25 0.3 0.4 0.5",
	 .series = four},
	{.id = "COM-SENS-MIX",
	 .paper = "COM",
	 .title = "I/O and communication: slowdown, 0.5 messages per ms",
	 .settings = "workload=gen:com-io load.messages_per_ms=0.5",
	 .x_name = "share of communication-intensive jobs",
	 .axis = "load.share",
	 .values = "0 0.2 0.4 0.6 0.8 1",
	 .series = four,
	 .log_y = true},
	{.id = "COM-SENS-IO",
	 .paper = "COM",
	 .title = "nine of ten jobs with I/O: its rate",
	 .settings = "workload=gen:com-io load.messages_per_ms=0.1 load.share=0.1",
	 .x_name = "accesses per ms",
	 .axis = "load.io_per_ms",
	 .values = "0.25 0.5 1 2 2.8",
	 .series = four,
	 .log_y = true},
	{.id = "COM-SENS-MEMORY",
	 .paper = "COM",
	 .title = "eight of ten jobs memory-intensive: their memory",
	 .settings = "workload=gen:com-memory load.messages_per_ms=0.1 load.share=0.2",
	 .x_name = "MB per task",
	 .axis = "load.memory_mb",
	 .values = "4 30 60 90 120 200",
	 .series = four,
	 .log_y = true},
	{.id = "COM-BOUND-PORT",
	 .paper = "COM",
	 .title = "messages share the master's port: no placement relieves it",
	 .settings = "load.messages_per_ms=0.5 port_contention=1",
	 .points = port_points,
	 .series = ports,
	 .plot = PLOT_BARS,
	 .log_y = true},
	{.id = "COM-BOUND-LOAD",
	 .paper = "COM",
	 .title = "any arrival rate: 16 tasks, 0.5 messages per ms",
	 .settings = SIXTEEN,
	 .x_name = "ms between two jobs",
	 .axis = "load.interarrival_ms",
	 .values = "200 250 300 400 600 1200 3000",
	 .series = four,
	 .log_y = true},
	{.id = "COM-BOUND-LOAD-32",
	 .paper = "COM",
	 .title = "any arrival rate: 32 tasks, 0.3 messages per ms",
	 .settings = "load.messages_per_ms=0.3 load.tasks_min=32 load.tasks_max=32",
	 .x_name = "ms between two jobs",
	 .axis = "load.interarrival_ms",
	 .values = "200 300 400 500 600 1200 3000",
	 .series = four,
	 .log_y = true},
	{.id = "COM-BOUND-BANDWIDTH",
	 .paper = "COM",
	 .title = "bandwidth and message size are equivalent: 16 tasks, 0.5 messages per ms",
	 .settings = SIXTEEN,
	 .points = lengths,
	 .series = four,
	 .plot = PLOT_BARS,
	 .y = M_TURNAROUND,
	 .log_y = true},
	{.id = NULL},
};
