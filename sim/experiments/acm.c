/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* ACM: experiments and claims of the journal article, homogeneous clusters (MODEL 6.3). */
#include <math.h>

#include "code_claims.h"
#include "tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "32xacm", "32 nodes, disk of Table I; the rest as FC (O-40)"},
	{"workload", "gen:acm-30", "30 % parallel jobs of 2-32 tasks"},
	{"load.jobs", "1000", "enough that the load is steady for most of them"},
	{"load.home_skew", "1",
	 "reading 4: homes as unequal as the process trace's hosts; Zipf, exponent 1"},
	{"load.lifetime_mean_ms", "200", "reading 6: one scale of computation for all figures"},
	{"load.lifetime_max_ms", "20000", "bounded in the same scale"},
	{"load.interarrival_ms", "600", "moderate load of the cluster's disks"},
	{NULL, NULL, NULL},
};

const struct paper acm_paper = {"ACM", "ACM: I/O-aware load balancing, homogeneous clusters",
				settings};

/* The real applications differ from the synthetic jobs in everything: a configuration apart. */
static const struct paper_setting app_settings[] = {
	{"nodes", "64xacm", "64 nodes, as the figures of the applications"},
	{"workload", "gen:acm-apps", "constant jobs by their I/O share (Figure 11)"},
	{"load.jobs", "400", "of one application each"},
	{"load.home_skew", "1", "as the synthetic jobs"},
	{"load.lifetime_mean_ms", "2000",
	 "an application alone takes 2 s: only ratios to the gap between arrivals matter"},
	{"load.interarrival_ms", "1500", "moderate load"},
	{NULL, NULL, NULL},
};

const struct paper acm_app_paper = {"ACM-APP", "ACM: real applications", app_settings};

#define IOCM_RE                                                                                    \
	{                                                                                          \
		"iocm-re", "iocm-re-hom", NULL                                                     \
	}
#define SERIES_END                                                                                 \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
#define POINTS_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL                                                                      \
	}
#define IO_X	  "mean I/O access rate (1/ms)"
#define IO_VALUES "0.45 0.5 0.55 0.6 0.65 0.7 0.75 0.8"

static const struct series bs_series[] = {IOCM_RE, {NULL, "bs", NULL}, SERIES_END};
static const struct series four[] = {
	{NULL, "nlb", NULL}, {NULL, "cpu-re", NULL}, {NULL, "mem-re", NULL}, IOCM_RE, SERIES_END};
static const struct series five[] = {{NULL, "nlb", NULL},     {NULL, "cpu-re", NULL},
				     {NULL, "mem-re", NULL},  IOCM_RE,
				     {NULL, "iocm-pm", NULL}, SERIES_END};
static const struct series app_series[] = {{NULL, "cpu-re", NULL},
					   {NULL, "mem-re", NULL},
					   IOCM_RE,
					   {NULL, "iocm-pm", NULL},
					   SERIES_END};
static const struct series three[] = {
	{NULL, "cpu-re", NULL}, {NULL, "mem-re", NULL}, IOCM_RE, SERIES_END};

const struct point acm_applications[] = {
	{"Dmine", NAN, "workload=gen:dmine"},
	{"Pgrep", NAN, "workload=gen:pgrep"},
	{"LU", NAN, "workload=gen:lu"},
	{"Titan", NAN, "workload=gen:titan"},
	{"Cholesky", NAN, "workload=gen:cholesky"},
	{"DB2", NAN, "workload=gen:db2"},
	POINTS_END,
};

/* --- ACM-ABS -------------------------------------------------------------------------- */

static const struct point abs_points[] = {
	{"0.05", 0.05, "load.io_per_ms=0.05"},
	{"0.3", 0.3, "load.io_per_ms=0.3"},
	{"0.55", 0.55, "load.io_per_ms=0.55"},
	{"0.8", 0.8, "load.io_per_ms=0.8"},
	POINTS_END,
};

static const struct claim abs_claims[] = {
	ORDINAL(EQUAL, "at low I/O load I/O-aware balancing performs as the others", .a = "iocm-re",
		.b = "cpu-re|mem-re", .at = "0.05"),
	ORDINAL(FLATTER, "its advantage is the more pronounced the more I/O-intensive the load",
		.a = "iocm-re", .b = "cpu-re|mem-re"),
	QUANTITATIVE(CODE, "improvements for the applications are from 23.6 %",
		     .a = "ACM-9/iocm-pm", .b = "ACM-9/cpu-re|ACM-9/mem-re", .printed = 0.236,
		     .code = claim_least_reduction),
	QUANTITATIVE(RATIO, "... to 88.0 %", .a = "ACM-9/iocm-pm", .b = "ACM-9/cpu-re|ACM-9/mem-re",
		     .by = RATIO_REDUCTION, .either = true, .over = OVER_MAX, .printed = 0.88),
	CLAIMS_END,
};

/* --- ACM-1, ACM-2: against a batch system ------------------------------------------------ */

static const struct claim bs_claims[] = {
	ORDINAL(TREND, "both rise with the I/O rate", .a = "*"),
	ORDINAL(BELOW, "IOCM-RE is significantly better than BS", .a = "iocm-re", .b = "bs"),
	CLAIMS_END,
};

static const struct claim bs_parallel_claims[] = {
	ORDINAL(TREND, "both rise with the I/O rate", .a = "*"),
	ORDINAL(BELOW, "IOCM-RE is significantly better than BS", .a = "iocm-re", .b = "bs"),
	ORDINAL(BELOW, "BS drops considerably with waiting parallel jobs", .a = "ACM-1/bs",
		.b = "bs"),
	CLAIMS_END,
};

/* --- ACM-3 .. ACM-6 ----------------------------------------------------------------------- */

static const struct claim claims_3[] = {
	ORDINAL(BELOW, "IOCM-RE is significantly better than CPU and MEM", .a = "iocm-re",
		.b = "cpu-re|mem-re"),
	ORDINAL(BELOW, "in most cases MEM is better than CPU", .a = "mem-re", .b = "cpu-re",
		.most = true),
	CLAIMS_END,
};

static const struct claim claims_4[] = {
	ORDINAL(CODE, "all four are worse than with 30 % parallel jobs", .a = "*", .b = "ACM-3/*",
		.code = claim_each_above),
	ORDINAL(CODE, "CPU is better than or equal to MEM", .a = "cpu-re", .b = "mem-re",
		.code = claim_not_above),
	ORDINAL(BELOW, "IOCM-RE is best", .a = "iocm-re", .b = "nlb|cpu-re|mem-re"),
	CLAIMS_END,
};

static const struct claim memory_claims[] = {
	ORDINAL(EQUAL, "IOCM-RE is about as MEM", .a = "iocm-re", .b = "mem-re"),
	ORDINAL(BELOW, "IOCM-RE and MEM are considerably better than CPU and NLB",
		.a = "iocm-re|mem-re", .b = "cpu-re|nlb"),
	CLAIMS_END,
};

static const struct claim cpu_claims[] = {
	ORDINAL(EQUAL, "IOCM-RE and MEM degrade to CPU", .a = "iocm-re|mem-re", .b = "cpu-re"),
	CLAIMS_END,
};

/* --- ACM-7, ACM-8 --------------------------------------------------------------------------- */

static const struct claim pm_claims[] = {
	ORDINAL(BELOW, "IOCM-PM is best everywhere", .a = "iocm-pm",
		.b = "nlb|cpu-re|mem-re|iocm-re"),
	ORDINAL(FLATTER, "IOCM-PM is the least sensitive to the I/O access rate", .a = "iocm-pm",
		.b = "nlb|cpu-re|mem-re|iocm-re"),
	CLAIMS_END,
};

/* --- ACM-9 .. ACM-12: applications ------------------------------------------------------------ */

static const struct claim claims_9[] = {
	ORDINAL(BELOW, "all six benefit from I/O-aware balancing", .a = "iocm-re|iocm-pm",
		.b = "cpu-re|mem-re"),
	ORDINAL(EQUAL, "IOCM-RE and IOCM-PM are about equal", .a = "iocm-re", .b = "iocm-pm"),
	ORDINAL(CODE, "LU has the highest slowdown under all policies", .a = "*", .at = "LU",
		.printed = 1, .code = claim_point_largest),
	QUANTITATIVE(CODE, "mean slowdown improves by at least 23.6 %", .a = "iocm-pm",
		     .b = "cpu-re|mem-re", .printed = 0.236, .code = claim_least_reduction),
	QUANTITATIVE(RATIO, "... by up to 88.0 %", .a = "iocm-pm", .b = "cpu-re|mem-re",
		     .by = RATIO_REDUCTION, .either = true, .over = OVER_MAX, .printed = 0.88),
	CLAIMS_END,
};

static const struct series alone[] = {{"alone", "nlb", NULL}, SERIES_END};

static const struct claim claims_10[] = {
	ORDINAL(CODE, "LU takes considerably longest", .a = "*", .at = "LU",
		.measure = M_TURNAROUND, .printed = 2, .code = claim_point_largest,
		.reading = "at least twice as long as any other"),
	CLAIMS_END,
};

#define SHARE(app, share)                                                                          \
	QUANTITATIVE(VALUE, app " spends " #share " of its time on I/O", .a = "alone", .at = app,  \
		     .measure = M_IO_SHARE, .printed = share, .band = 0.05)
static const struct claim claims_11[] = {
	ORDINAL(CODE, "LU is dominated by I/O", .a = "alone", .at = "LU", .measure = M_IO_SHARE,
		.printed = 1, .code = claim_point_largest),
	SHARE("Dmine", 0.74),
	SHARE("DB2", 0.82),
	SHARE("LU", 0.99),
	SHARE("Pgrep", 0.36),
	SHARE("Titan", 0.24),
	SHARE("Cholesky", 0.40),
	CLAIMS_END,
};

#define IMPROVED(app)                                                                              \
	QUANTITATIVE(RATIO, app " improves by more than 53 %", .a = "iocm-pm",                     \
		     .b = "cpu-re|mem-re", .at = app, .by = RATIO_REDUCTION, .either = true,       \
		     .printed = 0.53, .at_least = true)
static const struct claim claims_12[] = {
	IMPROVED("Cholesky"),
	IMPROVED("Titan"),
	IMPROVED("Pgrep"),
	IMPROVED("DB2"),
	IMPROVED("Dmine"),
	QUANTITATIVE(RATIO, "LU improves by 23.6 %", .a = "iocm-pm", .b = "cpu-re|mem-re",
		     .at = "LU", .by = RATIO_REDUCTION, .either = true, .printed = 0.236),
	CLAIMS_END,
};

/* --- ACM-13, ACM-14: 512 nodes ------------------------------------------------------------------
 */

static const struct claim claims_13[] = {
	ORDINAL(BELOW, "IOCM-PM is substantially best", .a = "iocm-pm",
		.b = "nlb|cpu-re|mem-re|iocm-re"),
	ORDINAL(BELOW, "IOCM-RE is second best in most cases", .a = "iocm-re",
		.b = "nlb|cpu-re|mem-re", .most = true),
	ORDINAL(TREND, "all rise with the I/O load", .a = "*"),
	ORDINAL(FLATTER, "the I/O-aware policies are less sensitive", .a = "iocm-re|iocm-pm",
		.b = "nlb|cpu-re|mem-re"),
	QUANTITATIVE(CODE, "at 0.3 accesses a ms IOCM-RE is slightly worse than CPU and MEM",
		     .a = "iocm-re", .b = "cpu-re|mem-re", .at = "0.3", .printed = 1.25,
		     .code = claim_slightly_worse, .reading = "worse by up to 25 %"),
	CLAIMS_END,
};

static const struct claim claims_14[] = {
	ORDINAL(CODE, "slowdown is higher than with 30 % parallel jobs", .a = "*", .b = "ACM-13/*",
		.code = claim_each_above),
	ORDINAL(BELOW, "IOCM-PM is best", .a = "iocm-pm", .b = "nlb|cpu-re|mem-re|iocm-re"),
	CLAIMS_END,
};

#define FAULTS_VALUES "1 2.5 4 5.5 7 8.5 10"
#define SEQUENTIAL    "workload=gen:acm-sequential "
#define PARALLEL_30   "workload=gen:acm-30 "
#define PARALLEL_60   "workload=gen:acm-60 "
#define BIG	      "nodes=512xacm load.jobs=3000 load.interarrival_ms=40 workload=gen:acm-apps-mix "

const struct experiment acm_experiments[] = {
	{.id = "ACM-ABS",
	 .paper = "ACM",
	 .title = "the more I/O, the more I/O-aware balancing matters",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .points = abs_points,
	 .series = four,
	 .claims = abs_claims,
	 .needs = "ACM-9"},
	{.id = "ACM-1",
	 .paper = "ACM",
	 .title = "against a batch system, sequential jobs",
	 .settings = SEQUENTIAL "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = bs_series,
	 .log_y = true,
	 .claims = bs_claims},
	{.id = "ACM-2",
	 .paper = "ACM",
	 .title = "against a batch system, 30 % parallel jobs",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = bs_series,
	 .log_y = true,
	 .claims = bs_parallel_claims,
	 .needs = "ACM-1"},
	{.id = "ACM-3",
	 .paper = "ACM",
	 .title = "much I/O, 30 % parallel jobs",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = four,
	 .claims = claims_3},
	{.id = "ACM-4",
	 .paper = "ACM",
	 .title = "much I/O, 60 % parallel jobs",
	 .settings = PARALLEL_60 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = four,
	 .claims = claims_4,
	 .needs = "ACM-3"},
	{.id = "ACM-5",
	 .paper = "ACM",
	 .title = "much paging, 30 % parallel jobs",
	 .settings = PARALLEL_30 "load.io_per_ms=0.01",
	 .x_name = "page-fault rate (1/ms)",
	 .axis = "load.faults_per_ms",
	 .values = FAULTS_VALUES,
	 .series = four,
	 .claims = memory_claims},
	{.id = "ACM-6",
	 .paper = "ACM",
	 .title = "much paging, 60 % parallel jobs",
	 .settings = PARALLEL_60 "load.io_per_ms=0.01",
	 .x_name = "page-fault rate (1/ms)",
	 .axis = "load.faults_per_ms",
	 .values = FAULTS_VALUES,
	 .series = four,
	 .claims = memory_claims},
	{.id = "ACM-CPU",
	 .paper = "ACM",
	 .title = "computation only",
	 .settings = PARALLEL_30 "load.faults_per_ms=0 load.io_per_ms=0",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "100 150 200 300",
	 .series = three,
	 .reading = "described in the text, not shown",
	 .claims = cpu_claims},
	{.id = "ACM-7",
	 .paper = "ACM",
	 .title = "preemptive migration, 30 % parallel jobs",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = five,
	 .reading = "rates not legible: those of ACM-3",
	 .claims = pm_claims},
	{.id = "ACM-8",
	 .paper = "ACM",
	 .title = "preemptive migration, 60 % parallel jobs",
	 .settings = PARALLEL_60 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = five,
	 .reading = "rates not legible: those of ACM-3",
	 .claims = pm_claims},
	{.id = "ACM-9",
	 .paper = "ACM",
	 .config = "ACM-APP",
	 .title = "six real applications",
	 .points = acm_applications,
	 .series = app_series,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_9},
	{.id = "ACM-10",
	 .paper = "ACM",
	 .config = "ACM-APP",
	 .title = "execution time of the applications alone",
	 .settings = "nodes=1xacm load.jobs=5 load.parallel=0 load.interarrival_ms=1e9",
	 .points = acm_applications,
	 .series = alone,
	 .plot = PLOT_BARS,
	 .y = M_TURNAROUND,
	 .claims = claims_10},
	{.id = "ACM-11",
	 .paper = "ACM",
	 .config = "ACM-APP",
	 .title = "I/O share of the applications alone",
	 .settings = "nodes=1xacm load.jobs=5 load.parallel=0 load.interarrival_ms=1e9",
	 .points = acm_applications,
	 .series = alone,
	 .plot = PLOT_BARS,
	 .y = M_IO_SHARE,
	 .reading = "the shares are what the generator makes the applications from: a check, "
		    "no discovery",
	 .claims = claims_11},
	{.id = "ACM-12",
	 .paper = "ACM",
	 .config = "ACM-APP",
	 .title = "improvement of the applications",
	 .points = acm_applications,
	 .series = app_series,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_12},
	{.id = "ACM-13",
	 .paper = "ACM",
	 .title = "512 nodes, sequential jobs and 30 % applications",
	 .settings = BIG "load.parallel=0.3 load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = "0.3 0.45 0.6 0.75",
	 .series = five,
	 .claims = claims_13},
	{.id = "ACM-14",
	 .paper = "ACM",
	 .title = "512 nodes, sequential jobs and 60 % applications",
	 .settings = BIG "load.parallel=0.6 load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = "0.3 0.45 0.6 0.75",
	 .series = five,
	 .claims = claims_14,
	 .needs = "ACM-13"},
	{.id = NULL},
};
