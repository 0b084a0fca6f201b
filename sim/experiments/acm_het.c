/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* ACM: experiments and claims on heterogeneous clusters (MODEL 6.3). */
#include <math.h>

#include "sim/experiments/acm.h"
#include "sim/experiments/code_claims.h"
#include "sim/experiments/tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "60xacm-a", "60 nodes; Tables III, IV and VI"},
	{"workload", "gen:acm-trace1", "Table V; sequential jobs"},
	{"load.jobs", "1500", "the trace ends, like theirs"},
	{"load.interarrival_ms", "80",
	 "the axis of ACM-18 goes from 0 to 18: here CPU-RE, the worst, is near "
	 "14 at its last point"},
	{"load.lifetime_mean_ms", "200", "reading 6: the scale of the homogeneous study"},
	{"load.lifetime_max_ms", "2000", "bounded, as in the homogeneous study"},
	{"memory_scale", "10", "O-49: as in the homogeneous study"},
	{"load.memory_shape", "3", "O-39: as in the homogeneous study"},
	ACM_READINGS,
	{NULL, NULL, NULL},
};

const struct paper acm_het_paper = {
	"ACM-HET",
	"ACM: I/O-aware load balancing, heterogeneous "
	"clusters",
	settings,
	"Calibrated, not blind: readings, lifetimes and sizes are those of the "
	"homogeneous study; we chose the gap between arrivals to match the axis "
	"of ACM-18, whose level is therefore no evidence. ACM-BOUND-15 to "
	"ACM-BOUND-21 have other loads."};

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

/* --- why some claims do not hold -------------------------------------------------------- */

#define WHY_CPU_BLIND                                                                              \
	"CPU-RE ignores disks (reading 1) and the gain grows with the load: it "                   \
	"is 5 at a quarter of this load"
#define WHY_A_B                                                                                    \
	"disks limit the jobs and are the same in A and B; CPU and memory, a "                     \
	"tenth busy, can change little. Neither fewer nor more arrivals, nor "                     \
	"jobs that hardly read, nor larger tasks raise the slowdown by more than "                 \
	"a quarter"
#define WHY_D_E                                                                                    \
	"the slowest disks of E are less than half as fast as those of D, and "                    \
	"disks limit the jobs: growth is as small as printed only if slowdown is "                 \
	"near 1, under IOCM-RE with a twelfth of the arrivals; under CPU-RE and "                  \
	"MEM-RE it never is"
#define WHY_TRACE3                                                                                 \
	"with 1 MB requests the disks are overloaded under every policy, which "                   \
	"leaves less to gain: the gain is 33 % with two thirds of the arrivals "                   \
	"and 93 % with a third; no load gives both"
#define WHY_HITS                                                                                   \
	"hit rates depend on the tasks that share a buffer: the advantage is as "                  \
	"printed over MEM-RE only with twice the load, over CPU-RE only with a "                   \
	"tenth of it"
#define WHY_HITS_FALL                                                                              \
	"they fall by a fifth under CPU-RE but only by 1 to 3 % under the "                        \
	"others, hardly more than ten seeds can show"
#define WHY_PAGING                                                                                 \
	"A has 1.6 times the memory of E's smallest nodes: for any size of tasks "                 \
	"CPU-RE is at most 8 times slower on E, with faults at the disk or not; "                  \
	"IOCM-RE pages on neither"
#define WHY_TITAN                                                                                  \
	"turn-around rises; slowdown divides it by the time alone at home, which "                 \
	"the aged disk increases as well"
#define WHY_AGE                                                                                    \
	"growth depends on the load: nearly as printed for all three policies with half "          \
	"of the arrivals"
#define WHY_LU                                                                                     \
	"LU needs more than the disks can do even at age 1, so it grows by less "                  \
	"from there; with half of the arrivals it grows by more than DB2"
#define WHY_GAIN                                                                                   \
	"the gain depends on the load: that of DB2, the largest here, is 90 % with half "          \
	"of the arrivals and grows with more"

/* --- ACM-15 ------------------------------------------------------------------------ */

#define GROWS(who, text_, from_to, value, ...)                                                     \
	QUANTITATIVE(GROWTH, text_, .a = who, .at = from_to, .by = RATIO_GAIN, .printed = value,   \
		     __VA_ARGS__)

static const struct claim claims_15[] = {
	QUANTITATIVE(RATIO, "IOCM-RE over CPU-RE up to a factor of 5", .a = "iocm-re",
		     .b = "cpu-re", .by = RATIO_FACTOR, .over = OVER_MAX, .printed = 5,
		     .why = WHY_CPU_BLIND, .bound = "ACM-BOUND-15"),
	QUANTITATIVE(RATIO, "IOCM-RE over MEM-RE up to a factor of 3", .a = "iocm-re",
		     .b = "mem-re", .by = RATIO_FACTOR, .over = OVER_MAX, .printed = 3),
	ORDINAL(TREND, "slowdown of all rises consistently with heterogeneity", .a = "*"),
	GROWS("io-re", "A to B: IO-RE +196.4 %", "A..B", 1.964, .why = WHY_A_B,
	      .bound = "ACM-BOUND-15"),
	GROWS("iocm-re", "A to B: IOCM-RE +196.4 %", "A..B", 1.964, .why = WHY_A_B,
	      .bound = "ACM-BOUND-15"),
	GROWS("cpu-re", "A to B: CPU-RE +34.7 %", "A..B", 0.347, .why = WHY_A_B,
	      .bound = "ACM-BOUND-15"),
	GROWS("mem-re", "A to B: MEM-RE +47.9 %", "A..B", 0.479, .why = WHY_A_B,
	      .bound = "ACM-BOUND-15"),
	GROWS("io-re", "D to E: IO-RE about +3 %", "D..E", 0.03, .why = WHY_D_E,
	      .bound = "ACM-BOUND-15"),
	GROWS("iocm-re", "D to E: IOCM-RE about +3 %", "D..E", 0.03, .why = WHY_D_E,
	      .bound = "ACM-BOUND-15"),
	GROWS("mem-re", "D to E: MEM-RE about +5 %", "D..E", 0.05, .why = WHY_D_E,
	      .bound = "ACM-BOUND-15"),
	GROWS("cpu-re", "D to E: CPU-RE nearly +9 %", "D..E", 0.09, .why = WHY_D_E,
	      .bound = "ACM-BOUND-15"),
	GROWS("nlb", "D to E: NLB nearly +9 %", "D..E", 0.09, .why = WHY_D_E,
	      .bound = "ACM-BOUND-15"),
	ORDINAL(FLATTER, "I/O-aware policies are more sensitive to CPU and memory heterogeneity",
		.a = "cpu-re|mem-re", .b = "io-re|iocm-re", .at = "A..B",
		.reading = "only CPU and memory change from A to B", .why = WHY_A_B,
		.bound = "ACM-BOUND-15"),
	ORDINAL(FLATTER, "I/O-aware policies are less sensitive to disk heterogeneity",
		.a = "io-re|iocm-re", .b = "cpu-re|mem-re", .at = "B..C",
		.reading = "only disks change from B to C"),
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
		     .by = RATIO_REDUCTION, .either = true, .printed = 0.934, .why = WHY_TRACE3,
		     .bound = "ACM-BOUND-17"),
	QUANTITATIVE(RATIO, "trace 3, system B: IOCM-RE better than MEM-RE by 33.2 %",
		     .a = "trace 3, iocm-re", .b = "trace 3, mem-re", .at = "B",
		     .by = RATIO_REDUCTION, .either = true, .printed = 0.332, .why = WHY_TRACE3,
		     .bound = "ACM-BOUND-17"),
	CLAIMS_END,
};

static const struct claim claims_18[] = {
	ORDINAL(TREND, "slowdown of all rises with the I/O access rate", .a = "*",
		.why = "IOCM-RE finds a disk with a short queue at each of these rates: its "
		       "slowdown, 1.1, "
		       "rises, but by less than the 5 % that a trend needs",
		.bound = "ACM-18"),
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
		     .printed = 0.28, .why = WHY_HITS, .bound = "ACM-BOUND-19"),
	QUANTITATIVE(RATIO, "trace 3, system B: hit rate 7 % above MEM-RE", .a = "trace 3, mem-re",
		     .b = "trace 3, iocm-re", .at = "B", .measure = M_HIT_RATE, .by = RATIO_GAIN,
		     .printed = 0.07, .why = WHY_HITS, .bound = "ACM-BOUND-19"),
	ORDINAL(TREND, "heterogeneity slightly reduces the hit rate", .a = "*", .down = true,
		.measure = M_HIT_RATE, .why = WHY_HITS_FALL, .bound = "ACM-SENS-19"),
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
		     .at_least = true, .why = WHY_PAGING, .bound = "ACM-BOUND-20"),
	QUANTITATIVE(GROWTH, "IOCM-RE: slowdown on E is about 29 times that on A", .a = "iocm-re",
		     .at = "A..E", .by = RATIO_FACTOR, .printed = 29, .why = WHY_PAGING,
		     .bound = "ACM-BOUND-20"),
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
		.a = ALL_CPU "|Dmine, mem-re|LU, mem-re|DB2, mem-re", .why = WHY_TITAN,
		.bound = "ACM-SENS-21"),
	ORDINAL(TREND, "slowdown of all applications rises with the age, IOCM-RE", .a = ALL_IOCM),
	QUANTITATIVE(GROWTH, "DB2, age 1 to 5: CPU-RE +70 %", .a = "DB2, cpu-re", .at = "1..5",
		     .by = RATIO_GAIN, .printed = 0.70, .why = WHY_AGE, .bound = "ACM-BOUND-21"),
	QUANTITATIVE(GROWTH, "DB2, age 1 to 5: MEM-RE +70 %", .a = "DB2, mem-re", .at = "1..5",
		     .by = RATIO_GAIN, .printed = 0.70, .why = WHY_AGE, .bound = "ACM-BOUND-21"),
	QUANTITATIVE(GROWTH, "DB2, age 1 to 5: IOCM-RE about +26 %", .a = "DB2, iocm-re",
		     .at = "1..5", .by = RATIO_GAIN, .printed = 0.26, .why = WHY_AGE,
		     .bound = "ACM-BOUND-21"),
	ORDINAL(FLATTER, "IOCM-RE is the least sensitive (DB2)", .a = "DB2, iocm-re",
		.b = "DB2, cpu-re|DB2, mem-re"),
	ORDINAL(FLATTER, "Dmine, DB2, LU are more sensitive than Pgrep, Titan, Cholesky",
		.a = "Pgrep, cpu-re|Titan, cpu-re|Cholesky, cpu-re",
		.b = "Dmine, cpu-re|LU, cpu-re|DB2, cpu-re", .reading = "under CPU-RE",
		.why = WHY_LU, .bound = "ACM-BOUND-21"),
	CLAIMS_END,
};

static const struct claim claims_22[] = {
	QUANTITATIVE(
		CODE, "IOCM-RE improves on CPU-RE and MEM-RE by 40 % at least", .a = ALL_IOCM,
		.b = ALL_CPU, .at = "5", .printed = 0.40, .code = claim_least_pair_gain,
		.reading = "gains over CPU-RE, disk of 5 years",
		.why = "Titan spends a quarter of its time on I/O, the least of all, and gains "
		       "least by avoiding the aged disk",
		.bound = "ACM-11"),
	QUANTITATIVE(CODE, "... by 129 % at most", .a = ALL_IOCM, .b = ALL_CPU, .at = "5",
		     .printed = 1.29, .code = claim_most_pair_gain,
		     .reading = "gains over CPU-RE, disk of 5 years", .why = WHY_GAIN,
		     .bound = "ACM-BOUND-21"),
	CLAIMS_END,
};

/* --- what settings can reach --------------------------------------------------------------- */

static const struct point sens_points[] = {
	ACM_OTHER_READINGS,
	{"moved data at the disks", NAN, "transfer_disk_work=1"},
	POINTS_END,
};

#define ON(letter, low, policy)                                                                    \
	{                                                                                          \
		policy ", " letter, policy, "nodes=60xacm-" low                                    \
	}
static const struct series growth_series[] = {
	ON("A", "a", "cpu-re"),
	ON("B", "b", "cpu-re"),
	ON("D", "d", "cpu-re"),
	ON("E", "e", "cpu-re"),
	ON("A", "a", "mem-re"),
	ON("B", "b", "mem-re"),
	ON("D", "d", "mem-re"),
	ON("E", "e", "mem-re"),
	ON("A", "a", "iocm-re"),
	ON("B", "b", "iocm-re"),
	ON("D", "d", "iocm-re"),
	ON("E", "e", "iocm-re"),
	SERIES_END,
};
static const struct point growth_points[] = {
	{"as chosen", NAN, NULL},
	{"arrivals x2", NAN, "load.interarrival_ms=40"},
	{"arrivals / 4", NAN, "load.interarrival_ms=320"},
	{"arrivals / 12", NAN, "load.interarrival_ms=1000"},
	{"I/O / 7, arrivals x4", NAN, "load.io_per_ms=0.2 load.interarrival_ms=20"},
	{"I/O / 70, arrivals x8", NAN, "load.io_per_ms=0.02 load.interarrival_ms=10"},
	{"tasks x4", NAN, "memory_scale=40"},
	{"x4, faults at the disk", NAN, "memory_scale=40 page_fault_at_disk=1"},
	{"resident tasks", NAN, "cpu_load_runnable=0"},
	POINTS_END,
};
static const struct series hit_series[] = {
	{"as chosen, cpu-re", "cpu-re", "workload=gen:acm-trace2"},
	{"as chosen, mem-re", "mem-re", "workload=gen:acm-trace2"},
	{"as chosen, iocm-re", "iocm-re", "workload=gen:acm-trace2"},
	{"half the arrivals, cpu-re", "cpu-re", "workload=gen:acm-trace2 load.interarrival_ms=160"},
	{"half the arrivals, mem-re", "mem-re", "workload=gen:acm-trace2 load.interarrival_ms=160"},
	{"half the arrivals, iocm-re", "iocm-re",
	 "workload=gen:acm-trace2 load.interarrival_ms=160"},
	{"twice the jobs, cpu-re", "cpu-re", "workload=gen:acm-trace2 load.jobs=3000"},
	{"twice the jobs, mem-re", "mem-re", "workload=gen:acm-trace2 load.jobs=3000"},
	{"twice the jobs, iocm-re", "iocm-re", "workload=gen:acm-trace2 load.jobs=3000"},
	SERIES_END,
};
#define PAGING(letter, low, policy)                                                                \
	{policy ", " letter, policy, "nodes=60xacm-" low},                                         \
	{                                                                                          \
		policy " at the disk, " letter, policy,                                            \
			"nodes=60xacm-" low " page_fault_at_disk=1"                                \
	}
static const struct series paging_series[] = {
	PAGING("A", "a", "cpu-re"),
	PAGING("E", "e", "cpu-re"),
	PAGING("A", "a", "iocm-re"),
	PAGING("E", "e", "iocm-re"),
	SERIES_END,
};
#define AGED(app, preset, policy)                                                                  \
	{app ", " policy ", 1 year", policy, "nodes=6xacm-age1 workload=gen:" preset},             \
	{                                                                                          \
		app ", " policy ", 5 years", policy,                                               \
			"nodes=5xacm-age1+1xacm-age5 workload=gen:" preset                         \
	}
static const struct series aged_series[] = {
	AGED("DB2", "db2", "cpu-re"),
	AGED("DB2", "db2", "iocm-re"),
	AGED("LU", "lu", "cpu-re"),
	AGED("LU", "lu", "iocm-re"),
	SERIES_END,
};
static const struct series titan_series[] = {APP("Titan", "titan"), SERIES_END};

/* The same arrivals per node as with 64 nodes. */
#define SIX "nodes=6xacm-age1 load.jobs=80 load.interarrival_ms=16000 "

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
	 .title = "six nodes, one of their disks aged",
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
	{.id = "ACM-SENS-HET",
	 .paper = "ACM-HET",
	 .title = "(ours) one reading changed at a time, system B, trace 1",
	 .settings = "nodes=60xacm-b",
	 .points = sens_points,
	 .policies = "cpu-re mem-re io-re iocm-re",
	 .plot = PLOT_BARS,
	 .log_y = true},
	{.id = "ACM-BOUND-15",
	 .paper = "ACM-HET",
	 .title = "(ours) growth from system to system, one setting changed, trace 1",
	 .points = growth_points,
	 .series = growth_series,
	 .plot = PLOT_BARS,
	 .facets = true,
	 .log_y = true},
	{.id = "ACM-BOUND-17",
	 .paper = "ACM-HET",
	 .title = "(ours) gains by load, system B, trace 3",
	 .settings = "nodes=60xacm-b workload=gen:acm-trace3",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "40 80 160 320 640 1280",
	 .policies = "cpu-re mem-re iocm-re",
	 .log_y = true},
	{.id = "ACM-BOUND-19",
	 .paper = "ACM-HET",
	 .title = "(ours) hit rate by load, system B, trace 3",
	 .settings = "nodes=60xacm-b workload=gen:acm-trace3",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "40 80 160 320 640 1280",
	 .policies = "cpu-re mem-re iocm-re",
	 .y = M_HIT_RATE},
	{.id = "ACM-BOUND-20",
	 .paper = "ACM-HET",
	 .title = "(ours) paging by the size of tasks, systems A and E, trace 4",
	 .settings = "workload=gen:acm-trace4",
	 .x_name = "memory scale",
	 .axis = "memory_scale",
	 .values = "2 5 10 20 30",
	 .series = paging_series,
	 .facets = true,
	 .log_y = true},
	{.id = "ACM-BOUND-21",
	 .paper = "ACM-HET",
	 .config = "ACM-APP",
	 .title = "(ours) effect of an aged disk by load",
	 .settings = SIX,
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "8000 16000 32000 64000 128000",
	 .series = aged_series,
	 .facets = true,
	 .log_y = true},
	{.id = "ACM-SENS-19",
	 .paper = "ACM-HET",
	 .title = "(ours) buffer hit rate by load, trace 2",
	 .x_name = "system",
	 .points = systems,
	 .series = hit_series,
	 .plot = PLOT_BARS,
	 .facets = true,
	 .y = M_HIT_RATE},
	{.id = "ACM-SENS-21",
	 .paper = "ACM-HET",
	 .config = "ACM-APP",
	 .title = "(ours) six nodes, one disk aged: turn-around of Titan",
	 .settings = SIX,
	 .x_name = "age of the disk (years)",
	 .points = ages,
	 .series = titan_series,
	 .y = M_TURNAROUND},
	{.id = NULL},
};
