/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* ACM: experiments and claims on heterogeneous clusters (MODEL 6.3). */
#include <math.h>

#include "code_claims.h"
#include "tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "60xacm-a", "60 nodes; Tables III, IV and VI"},
	{"workload", "gen:acm-trace1", "Table V; sequential jobs"},
	{"load.jobs", "1500", "enough that the load is steady for most of them"},
	{"load.home_skew", "1", "reading 4, as in the homogeneous study"},
	{"load.lifetime_mean_ms", "200", "reading 6: the scale of the homogeneous study"},
	{"load.lifetime_max_ms", "20000", "bounded in the same scale"},
	{"load.interarrival_ms", "300", "moderate load of the cluster's disks"},
	{NULL, NULL, NULL},
};

const struct paper acm_het_paper = {"ACM-HET",
				    "ACM: I/O-aware load balancing, heterogeneous "
				    "clusters",
				    settings};

#define SERIES_END                                                                                 \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
#define POINTS_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL                                                                      \
	}

static const struct point systems[] = {
	{"A", NAN, "nodes=60xacm-a"}, {"B", NAN, "nodes=60xacm-b"}, {"C", NAN, "nodes=60xacm-c"},
	{"D", NAN, "nodes=60xacm-d"}, {"E", NAN, "nodes=60xacm-e"}, POINTS_END,
};

#define TRACE(n, policy)                                                                           \
	{                                                                                          \
		"trace " #n ", " policy, policy, "workload=gen:acm-trace" #n                       \
	}
static const struct series traces_12[] = {
	TRACE(1, "cpu-re"), TRACE(1, "mem-re"),	 TRACE(1, "iocm-re"), TRACE(2, "cpu-re"),
	TRACE(2, "mem-re"), TRACE(2, "iocm-re"), SERIES_END,
};
static const struct series traces_23[] = {
	TRACE(2, "cpu-re"), TRACE(2, "mem-re"),	 TRACE(2, "iocm-re"), TRACE(3, "cpu-re"),
	TRACE(3, "mem-re"), TRACE(3, "iocm-re"), SERIES_END,
};

/* --- ACM-15 ------------------------------------------------------------------------ */

#define GROWS(who, text_, from_to, value, ...)                                                     \
	QUANTITATIVE(GROWTH, text_, .a = who, .at = from_to, .by = RATIO_GAIN, .printed = value,   \
		     __VA_ARGS__)

static const struct claim claims_15[] = {
	QUANTITATIVE(RATIO, "IOCM-RE over CPU-RE up to a factor of 5", .a = "iocm-re",
		     .b = "cpu-re", .by = RATIO_FACTOR, .over = OVER_MAX, .printed = 5),
	QUANTITATIVE(RATIO, "IOCM-RE over MEM-RE up to a factor of 3", .a = "iocm-re",
		     .b = "mem-re", .by = RATIO_FACTOR, .over = OVER_MAX, .printed = 3),
	ORDINAL(TREND, "slowdown of all rises consistently with heterogeneity", .a = "*"),
	GROWS("io-re", "A to B: IO-RE +196.4 %", "A..B", 1.964),
	GROWS("iocm-re", "A to B: IOCM-RE +196.4 %", "A..B", 1.964),
	GROWS("cpu-re", "A to B: CPU-RE +34.7 %", "A..B", 0.347),
	GROWS("mem-re", "A to B: MEM-RE +47.9 %", "A..B", 0.479),
	GROWS("io-re", "D to E: IO-RE about +3 %", "D..E", 0.03),
	GROWS("iocm-re", "D to E: IOCM-RE about +3 %", "D..E", 0.03),
	GROWS("mem-re", "D to E: MEM-RE about +5 %", "D..E", 0.05),
	GROWS("cpu-re", "D to E: CPU-RE nearly +9 %", "D..E", 0.09),
	GROWS("nlb", "D to E: NLB nearly +9 %", "D..E", 0.09),
	ORDINAL(FLATTER, "I/O-aware policies are more sensitive to CPU and memory heterogeneity",
		.a = "cpu-re|mem-re", .b = "io-re|iocm-re", .at = "A..B",
		.reading = "A to B: only CPU and memory change"),
	ORDINAL(FLATTER, "I/O-aware policies are less sensitive to disk heterogeneity",
		.a = "io-re|iocm-re", .b = "cpu-re|mem-re", .at = "B..C",
		.reading = "B to C: only disks change"),
	CLAIMS_END,
};

/* --- ACM-16, ACM-17, ACM-18 ---------------------------------------------------------- */

static const struct claim claims_16[] = {
	ORDINAL(BELOW, "IOCM-RE is best, trace 1", .a = "trace 1, iocm-re",
		.b = "trace 1, cpu-re|trace 1, mem-re"),
	ORDINAL(BELOW, "IOCM-RE is best, trace 2", .a = "trace 2, iocm-re",
		.b = "trace 2, cpu-re|trace 2, mem-re"),
	ORDINAL(EQUAL, "CPU-RE is the same for both traces", .a = "trace 1, cpu-re",
		.b = "trace 2, cpu-re"),
	ORDINAL(BELOW, "MEM-RE is noticeably lower for trace 2", .a = "trace 2, mem-re",
		.b = "trace 1, mem-re"),
	ORDINAL(BELOW, "IOCM-RE is noticeably lower for trace 2", .a = "trace 2, iocm-re",
		.b = "trace 1, iocm-re"),
	CLAIMS_END,
};

static const struct claim claims_17[] = {
	ORDINAL(BELOW, "trace 2 is below trace 3: CPU-RE", .a = "trace 2, cpu-re",
		.b = "trace 3, cpu-re"),
	ORDINAL(BELOW, "trace 2 is below trace 3: MEM-RE", .a = "trace 2, mem-re",
		.b = "trace 3, mem-re"),
	ORDINAL(BELOW, "trace 2 is below trace 3: IOCM-RE", .a = "trace 2, iocm-re",
		.b = "trace 3, iocm-re"),
	QUANTITATIVE(RATIO, "trace 3, system B: IOCM-RE better than CPU-RE by 93.4 %",
		     .a = "trace 3, iocm-re", .b = "trace 3, cpu-re", .at = "B",
		     .by = RATIO_REDUCTION, .either = true, .printed = 0.934),
	QUANTITATIVE(RATIO, "trace 3, system B: IOCM-RE better than MEM-RE by 33.2 %",
		     .a = "trace 3, iocm-re", .b = "trace 3, mem-re", .at = "B",
		     .by = RATIO_REDUCTION, .either = true, .printed = 0.332),
	CLAIMS_END,
};

static const struct claim claims_18[] = {
	ORDINAL(TREND, "slowdown of all rises with the I/O access rate", .a = "*"),
	ORDINAL(FLATTER, "CPU-RE and MEM-RE grow faster than IOCM-RE", .a = "iocm-re",
		.b = "cpu-re|mem-re"),
	CLAIMS_END,
};

/* --- ACM-19: hit rates ------------------------------------------------------------------ */

static const struct claim claims_19[] = {
	ORDINAL(BELOW, "IOCM-RE has the highest hit rate, trace 2",
		.a = "trace 2, cpu-re|trace 2, mem-re", .b = "trace 2, iocm-re",
		.measure = M_HIT_RATE),
	ORDINAL(BELOW, "IOCM-RE has the highest hit rate, trace 3",
		.a = "trace 3, cpu-re|trace 3, mem-re", .b = "trace 3, iocm-re",
		.measure = M_HIT_RATE),
	QUANTITATIVE(RATIO, "trace 3, system B: hit rate 28 % above CPU-RE", .a = "trace 3, cpu-re",
		     .b = "trace 3, iocm-re", .at = "B", .measure = M_HIT_RATE, .by = RATIO_GAIN,
		     .printed = 0.28),
	QUANTITATIVE(RATIO, "trace 3, system B: hit rate 7 % above MEM-RE", .a = "trace 3, mem-re",
		     .b = "trace 3, iocm-re", .at = "B", .measure = M_HIT_RATE, .by = RATIO_GAIN,
		     .printed = 0.07),
	ORDINAL(TREND, "heterogeneity slightly reduces the hit rate", .a = "*", .down = true,
		.measure = M_HIT_RATE),
	ORDINAL(CODE, "larger requests: lower hit rate",
		.a = "trace 2, cpu-re|trace 2, mem-re|trace 2, iocm-re",
		.b = "trace 3, cpu-re|trace 3, mem-re|trace 3, iocm-re", .measure = M_HIT_RATE,
		.code = claim_each_above),
	CLAIMS_END,
};

/* --- ACM-20: memory-intensive -------------------------------------------------------------- */

static const struct claim claims_20[] = {
	ORDINAL(EQUAL, "IOCM-RE degrades gracefully to MEM-RE", .a = "iocm-re", .b = "mem-re"),
	QUANTITATIVE(GROWTH, "CPU-RE: slowdown on E is more than 223 times that on A",
		     .a = "cpu-re", .at = "A..E", .by = RATIO_FACTOR, .printed = 223,
		     .at_least = true),
	QUANTITATIVE(GROWTH, "IOCM-RE: slowdown on E is about 29 times that on A", .a = "iocm-re",
		     .at = "A..E", .by = RATIO_FACTOR, .printed = 29),
	ORDINAL(FLATTER, "MEM-RE and IOCM-RE are less sensitive", .a = "mem-re|iocm-re",
		.b = "nlb|cpu-re"),
	CLAIMS_END,
};

/* --- ACM-21, ACM-22: one slow disk, applications ---------------------------------------------- */

#define AGE(n)                                                                                     \
	{                                                                                          \
#n, n, "nodes=5xacm-age1+1xacm-age" #n                                             \
	}
static const struct point ages[] = {AGE(1), AGE(2), AGE(3), AGE(4), AGE(5), AGE(6), POINTS_END};

#define APP(name, preset)                                                                          \
	{name ", cpu-re", "cpu-re", "workload=gen:" preset},                                       \
		{name ", mem-re", "mem-re", "workload=gen:" preset},                               \
	{                                                                                          \
		name ", iocm-re", "iocm-re", "workload=gen:" preset                                \
	}
static const struct series aged_apps[] = {
	APP("Dmine", "dmine"),	     APP("Pgrep", "pgrep"), APP("LU", "lu"), APP("Titan", "titan"),
	APP("Cholesky", "cholesky"), APP("DB2", "db2"),	    SERIES_END,
};

#define ALL_CPU "Dmine, cpu-re|Pgrep, cpu-re|LU, cpu-re|Titan, cpu-re|Cholesky, cpu-re|DB2, cpu-re"
#define ALL_MEM "Dmine, mem-re|Pgrep, mem-re|LU, mem-re|Titan, mem-re|Cholesky, mem-re|DB2, mem-re"
#define ALL_IOCM                                                                                   \
	"Dmine, iocm-re|Pgrep, iocm-re|LU, iocm-re|Titan, iocm-re|Cholesky, iocm-re|DB2, iocm-re"

static const struct claim claims_21[] = {
	ORDINAL(TREND, "slowdown of all applications rises with the age, CPU-RE and MEM-RE",
		.a = ALL_CPU "|Dmine, mem-re|LU, mem-re|DB2, mem-re"),
	ORDINAL(TREND, "slowdown of all applications rises with the age, IOCM-RE", .a = ALL_IOCM),
	QUANTITATIVE(GROWTH, "DB2, age 1 to 5: CPU-RE +70 %", .a = "DB2, cpu-re", .at = "1..5",
		     .by = RATIO_GAIN, .printed = 0.70),
	QUANTITATIVE(GROWTH, "DB2, age 1 to 5: MEM-RE +70 %", .a = "DB2, mem-re", .at = "1..5",
		     .by = RATIO_GAIN, .printed = 0.70),
	QUANTITATIVE(GROWTH, "DB2, age 1 to 5: IOCM-RE about +26 %", .a = "DB2, iocm-re",
		     .at = "1..5", .by = RATIO_GAIN, .printed = 0.26),
	ORDINAL(FLATTER, "IOCM-RE is the least sensitive (DB2)", .a = "DB2, iocm-re",
		.b = "DB2, cpu-re|DB2, mem-re"),
	ORDINAL(FLATTER, "Dmine, DB2, LU are more sensitive than Pgrep, Titan, Cholesky",
		.a = "Pgrep, cpu-re|Titan, cpu-re|Cholesky, cpu-re",
		.b = "Dmine, cpu-re|LU, cpu-re|DB2, cpu-re", .reading = "under CPU-RE"),
	CLAIMS_END,
};

static const struct claim claims_22[] = {
	QUANTITATIVE(CODE, "IOCM-RE improves on CPU-RE and MEM-RE by 40 % at least", .a = ALL_IOCM,
		     .b = ALL_CPU, .at = "5", .printed = 0.40, .code = claim_least_pair_gain,
		     .reading = "gains over CPU-RE, disk of 5 years"),
	QUANTITATIVE(CODE, "... by 129 % at most", .a = ALL_IOCM, .b = ALL_CPU, .at = "5",
		     .printed = 1.29, .code = claim_most_pair_gain,
		     .reading = "gains over CPU-RE, disk of 5 years"),
	CLAIMS_END,
};

#define SIX "nodes=6xacm-age1 load.jobs=150 load.interarrival_ms=20000 load.home_skew=0 "

const struct experiment acm_het_experiments[] = {
	{.id = "ACM-15",
	 .paper = "ACM-HET",
	 .title = "five systems, trace 1 (50 MB initial data)",
	 .x_name = "system",
	 .points = systems,
	 .policies = "nlb cpu-re mem-re io-re iocm-re",
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_15},
	{.id = "ACM-16",
	 .paper = "ACM-HET",
	 .title = "five systems, traces 1 and 2 (data replicated)",
	 .x_name = "system",
	 .points = systems,
	 .series = traces_12,
	 .plot = PLOT_BARS,
	 .facets = true,
	 .claims = claims_16},
	{.id = "ACM-17",
	 .paper = "ACM-HET",
	 .title = "five systems, traces 2 and 3 (1 MB requests)",
	 .x_name = "system",
	 .points = systems,
	 .series = traces_23,
	 .plot = PLOT_BARS,
	 .facets = true,
	 .claims = claims_17},
	{.id = "ACM-18",
	 .paper = "ACM-HET",
	 .title = "I/O access rate, system A, trace 2",
	 .settings = "workload=gen:acm-trace2",
	 .x_name = "mean I/O access rate (1/ms)",
	 .axis = "load.io_per_ms",
	 .values = "1.4 1.5 1.6 1.7 1.8 1.9 2.0",
	 .policies = "cpu-re mem-re iocm-re",
	 .claims = claims_18},
	{.id = "ACM-19",
	 .paper = "ACM-HET",
	 .title = "buffer hit rate, traces 2 and 3",
	 .x_name = "system",
	 .points = systems,
	 .series = traces_23,
	 .plot = PLOT_BARS,
	 .facets = true,
	 .y = M_HIT_RATE,
	 .claims = claims_19},
	{.id = "ACM-20",
	 .paper = "ACM-HET",
	 .title = "five systems, trace 4 (memory-intensive)",
	 .settings = "workload=gen:acm-trace4",
	 .x_name = "system",
	 .points = systems,
	 .policies = "nlb cpu-re mem-re io-re iocm-re",
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_20},
	{.id = "ACM-21",
	 .paper = "ACM-HET",
	 .config = "ACM-APP",
	 .title = "six nodes, one disk of them aged",
	 .settings = SIX,
	 .x_name = "age of the disk (years)",
	 .points = ages,
	 .series = aged_apps,
	 .facets = true,
	 .claims = claims_21},
	{.id = "ACM-22",
	 .paper = "ACM-HET",
	 .config = "ACM-APP",
	 .title = "six nodes, one disk aged: improvement",
	 .settings = SIX,
	 .x_name = "age of the disk (years)",
	 .points = ages,
	 .series = aged_apps,
	 .facets = true,
	 .claims = claims_22},
	{.id = NULL},
};
