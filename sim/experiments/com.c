/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* COM: experiments and claims of the communication-aware study (MODEL 6.4). */
#include <math.h>

#include "code_claims.h"
#include "tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "32xcom", "32 nodes, Table 1"},
	{"workload", "gen:com", "parallel jobs, 512 KB messages to the master"},
	{"load.jobs", "400", "enough that the load is steady for most of them"},
	{"load.home_skew", "1", "reading 4, as in ACM"},
	{"load.lifetime_mean_ms", "400", "the process trace's mean"},
	{"load.lifetime_max_ms", "20000", "bounded"},
	{"load.interarrival_ms", "3000",
	 "reading 7: gains depend on the arrival rate; moderate load of the ports at 16 tasks, 0.5 "
	 "messages a ms"},
	{NULL, NULL, NULL},
};

const struct paper com_paper = {"COM", "COM: Communication-aware load balancing", settings};

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

/* --- COM-4, COM-5: number of tasks, message rate --------------------------------------- */

#define TASKS(n)                                                                                   \
	{                                                                                          \
#n, n, "load.tasks_min=" #n " load.tasks_max=" #n                                  \
	}
static const struct point tasks[] = {TASKS(2),	TASKS(4),  TASKS(8),
				     TASKS(16), TASKS(32), POINTS_END};

#define TREND_AND_BEST(m)                                                                          \
	ORDINAL(TREND, "slowdown and turn-around of all rise with the number of tasks", .a = "*",  \
		.measure = m),                                                                     \
		ORDINAL(BELOW, "COM-aware is best", .a = "COM-aware", .b = OTHERS, .measure = m),  \
		ORDINAL(FLATTER, "its gap to the others grows with the number of tasks",           \
			.a = "COM-aware", .b = OTHERS, .measure = m)

static const struct claim claims_4a[] = {
	TREND_AND_BEST(M_SLOWDOWN),
	QUANTITATIVE(RATIO, "4 tasks: gains as low as 3 %", .a = "COM-aware", .b = OTHERS,
		     .at = "4", .by = RATIO_GAIN, .printed = 0.03, .band = 1,
		     .reading = "mean over the three; the band is as wide as the number"),
	CLAIMS_END,
};
static const struct claim claims_4b[] = {TREND_AND_BEST(M_SLOWDOWN), CLAIMS_END};
static const struct claim claims_4c[] = {
	TREND_AND_BEST(M_SLOWDOWN),
	QUANTITATIVE(RATIO, "16 tasks: over CPU-aware by more than 174 %", .a = "COM-aware",
		     .b = "CPU-aware", .at = "16", .by = RATIO_GAIN, .printed = 1.74,
		     .at_least = true),
	QUANTITATIVE(RATIO, "16 tasks: over MEM-aware by more than 182 %", .a = "COM-aware",
		     .b = "MEM-aware", .at = "16", .by = RATIO_GAIN, .printed = 1.82,
		     .at_least = true),
	QUANTITATIVE(RATIO, "16 tasks: over IO-aware by more than 206 %", .a = "COM-aware",
		     .b = "IO-aware", .at = "16", .by = RATIO_GAIN, .printed = 2.06,
		     .at_least = true),
	CLAIMS_END,
};
static const struct claim claims_5a[] = {
	TREND_AND_BEST(M_TURNAROUND),
	QUANTITATIVE(RATIO, "4 tasks: 4 %", .a = "COM-aware", .b = OTHERS, .at = "4",
		     .measure = M_TURNAROUND, .by = RATIO_GAIN, .printed = 0.04, .band = 1,
		     .reading = "mean over the three; the band is as wide as the number"),
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
		     .by = RATIO_GAIN, .over = OVER_MAX, .printed = 2.06),
	QUANTITATIVE(RATIO, "... by 74 % on average", .a = "COM-aware", .b = OTHERS,
		     .by = RATIO_GAIN, .printed = 0.74),
	QUANTITATIVE(RATIO, "turn-around time improves by up to 235 %", .a = "COM-aware",
		     .b = OTHERS, .measure = M_TURNAROUND, .by = RATIO_GAIN, .over = OVER_MAX,
		     .printed = 2.35),
	QUANTITATIVE(RATIO, "... by 82 % on average", .a = "COM-aware", .b = OTHERS,
		     .measure = M_TURNAROUND, .by = RATIO_GAIN, .printed = 0.82),
	CLAIMS_END,
};

/* --- COM-6: bandwidth -------------------------------------------------------------------- */

#define IMPROVES(value, text_)                                                                     \
	QUANTITATIVE(RATIO, text_, .a = "COM-aware", .b = OTHERS, .measure = M_TURNAROUND,         \
		     .by = RATIO_GAIN, .printed = value)
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
		.reading = "mean over the three, against 512 KB"),
	CLAIMS_END,
};

/* --- COM-8, COM-9: mixtures --------------------------------------------------------------------
 */

#define SHARES "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"

#define IO_CLAIMS(m)                                                                               \
	ORDINAL(BELOW, "COM-aware is best in all cases", .a = "COM-aware", .b = OTHERS,            \
		.measure = m),                                                                     \
		ORDINAL(BELOW, "COM-aware and IO-aware are noticeably better when I/O dominates",  \
			.a = "COM-aware|IO-aware", .b = "CPU-aware|MEM-aware", .at = "0..0.2",     \
			.measure = m),                                                             \
		ORDINAL(EQUAL, "COM-aware is about as IO-aware there", .a = "COM-aware",           \
			.b = "IO-aware", .at = "0..0.2", .measure = m),                            \
		ORDINAL(CODE, "IO-aware's advantage over CPU- and MEM-aware falls with the share", \
			.a = "IO-aware", .b = "CPU-aware|MEM-aware", .measure = m,                 \
			.code = claim_advantage_falls),                                            \
		ORDINAL(CODE, "COM-aware is not sensitive to the share", .a = "COM-aware",         \
			.measure = m, .printed = 1.5, .code = claim_flat,                          \
			.reading = "largest over smallest mean at most 1.5")

static const struct claim claims_8a[] = {IO_CLAIMS(M_SLOWDOWN), CLAIMS_END};
static const struct claim claims_8b[] = {IO_CLAIMS(M_TURNAROUND), CLAIMS_END};

#define MEMORY_CLAIMS(m)                                                                           \
	ORDINAL(BELOW, "COM-aware is best in all cases", .a = "COM-aware", .b = OTHERS,            \
		.measure = m),                                                                     \
		ORDINAL(EQUAL, "at the memory-intensive end COM-aware is about as MEM-aware",      \
			.a = "COM-aware", .b = "MEM-aware", .at = "0", .measure = m),              \
		QUANTITATIVE(BELOW, "MEM-aware is better than CPU- and IO-aware below 40 %",       \
			     .a = "MEM-aware", .b = "CPU-aware|IO-aware", .at = "0..0.3",          \
			     .measure = m),                                                        \
		QUANTITATIVE(BELOW, "MEM-aware is worse than CPU- and COM-aware above 40 %",       \
			     .a = "CPU-aware|COM-aware", .b = "MEM-aware", .at = "0.5..1",         \
			     .measure = m)

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
		     .printed = 0.759),
	QUANTITATIVE(RATIO, "... by 42.2 % on average", .a = "COM-aware", .b = OTHERS,
		     .at = "Render..Vortex", .by = RATIO_REDUCTION, .printed = 0.422),
	CLAIMS_END,
};

#define TASKS_EXPERIMENT(id_, title_, settings_, y_, claims_, needs_)                              \
	{                                                                                          \
		.id = id_, .paper = "COM", .title = title_, .settings = settings_,                 \
		.x_name = "tasks per job", .points = tasks, .series = four, .y = y_,               \
		.log_y = true, .claims = claims_, .needs = needs_                                  \
	}

const struct experiment com_experiments[] = {
	{.id = "COM-ABS",
	 .paper = "COM",
	 .title = "all message rates and numbers of tasks",
	 .x_name = "messages a ms, tasks",
	 .points = grid,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = abs_claims},
	TASKS_EXPERIMENT("COM-4a", "slowdown, 0.1 messages a ms", "load.messages_per_ms=0.1",
			 M_SLOWDOWN, claims_4a, NULL),
	TASKS_EXPERIMENT("COM-4b", "slowdown, 0.3 messages a ms", "load.messages_per_ms=0.3",
			 M_SLOWDOWN, claims_4b, NULL),
	TASKS_EXPERIMENT("COM-4c", "slowdown, 0.5 messages a ms", "load.messages_per_ms=0.5",
			 M_SLOWDOWN, claims_4c, NULL),
	TASKS_EXPERIMENT("COM-5a", "turn-around, 0.1 messages a ms", "load.messages_per_ms=0.1",
			 M_TURNAROUND, claims_5a, NULL),
	TASKS_EXPERIMENT("COM-5b", "turn-around, 0.3 messages a ms", "load.messages_per_ms=0.3",
			 M_TURNAROUND, claims_5bc, NULL),
	TASKS_EXPERIMENT("COM-5c", "turn-around, 0.5 messages a ms", "load.messages_per_ms=0.5",
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
	 .claims = claims_9b},
	{.id = "COM-10a",
	 .paper = "COM",
	 .title = "five applications",
	 .points = applications,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_10a},
	{.id = "COM-10b",
	 .paper = "COM",
	 .title = "five applications: improvement",
	 .points = applications,
	 .series = four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_10b},
	{.id = NULL},
};
