/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* ACM: experiments and claims of the journal article, homogeneous clusters (MODEL 6.3). */
#include <math.h>

#include "sim/experiments/acm.h"
#include "sim/experiments/code_claims.h"
#include "sim/experiments/tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "32xacm", "32 nodes with the disk of Table I; the rest as in FC (O-40)"},
	{"workload", "gen:acm-30", "30 % parallel jobs of 2-32 tasks"},
	{"load.jobs", "600",
	 "the trace ends, like theirs: under NLB the busy homes are overloaded"},
	{"load.interarrival_ms", "200",
	 "calibrated, in place of 300: more of the claims of ACM-2 to ACM-8 hold, and GAP-ACM "
	 "counts them under both; with more load, 60 % parallel jobs page under every policy "
	 "(ACM-SENS-LOAD)"},
	{"load.lifetime_mean_ms", "200", "reading 6: one scale of computation for all figures"},
	{"load.lifetime_max_ms", "2000",
	 "bounded: with a heavier tail, intervals would be as wide as the means"},
	{"memory_scale", "10",
	 "O-49: as in FC; under NLB the busy homes run out of memory in the "
	 "memory-intensive studies"},
	{"load.memory_shape", "3",
	 "O-39: Pareto of shape 3, one job in 6,000 larger than a node's memory"},
	{"hom_pm", "1", "3.9: IOCM-PM begins with the IOCM-RE for equal nodes"},
	ACM_READINGS,
	{NULL, NULL, NULL},
};

const struct paper acm_paper = {
	"ACM", "ACM: I/O-aware load balancing, homogeneous clusters", settings,
	"Calibrated, not blind: we chose readings, load, lifetimes and sizes "
	"after seeing outcomes, so that disks are neither idle nor full in ACM-3 "
	"to ACM-8 and ACM-18 has its levels, and the gap between arrivals, 200 in place of 300 "
	"ms, because more of the claims of ACM-2 to ACM-8 hold. Those that led to it are marked "
	"and do not count; GAP-ACM shows all verdicts under both gaps. READ-1 to READ-8, ACM-SENS "
	"and ACM-SENS-LOAD show what other values change."};

/* The real applications differ from the synthetic jobs in everything, so they have a
 * configuration of their own. */
static const struct paper_setting app_settings[] = {
	{"nodes", "64xacm", "64 nodes, as in the figures of the applications"},
	{"workload", "gen:acm-apps", "constant jobs by their I/O share (Figure 11)"},
	{"load.jobs", "200", "each of one application"},
	{"load.lifetime_mean_ms", "2000",
	 "an execution alone takes 2 s; only its ratio to the gap between arrivals matters"},
	{"load.interarrival_ms", "1500",
	 "moderate load for five; LU, four times as long, needs more than the disks can do"},
	{"hom_pm", "1", "3.9: IOCM-PM begins with the IOCM-RE for equal nodes"},
	ACM_READINGS,
	{NULL, NULL, NULL},
};

const struct paper acm_app_paper = {
	"ACM-APP", "ACM: real applications", app_settings,
	"Calibrated, not blind: the gap between arrivals was chosen so that five of the six "
	"applications load the disks moderately (ACM-9, ACM-12); ACM-BOUND-APP has other gaps."};

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
#define IO_VALUES "0.45 0.5 0.6 0.7 0.8"

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

/* --- why some claims do not hold -------------------------------------------------------- */

#define WHY_LEAST                                                                                  \
	"LU alone needs more than all disks can do, so no placement helps much; "                  \
	"with less load it gains as much as the others"
#define WHY_MOST                                                                                   \
	"CPU and MEM leave four running tasks at home, whatever the disk does; "                   \
	"at no load can avoiding that save more than about 70 %"
#define WHY_FLAT                                                                                   \
	"slowdown is relative to the time alone, which rises with the I/O rate "                   \
	"as well: with sequential jobs neither queues at disks at these rates"
#define WHY_BS                                                                                     \
	"with as many tasks per second as in ACM-2, a batch system always has a "                  \
	"free node and is as good; at 1.7 times that load nearly all nodes are "                   \
	"taken and it is several times worse"
#define WHY_CPU_MEM                                                                                \
	"MEM falls back to CPU if memory suffices, so it equals CPU with small "                   \
	"tasks and is better with large ones; CPU is clearly better at no size"
#define WHY_PM                                                                                     \
	"IOCM-RE spreads the tasks when they arrive, so migration gains a tenth at "               \
	"most under any setting; without remote execution it gains several times"
#define WHY_512                                                                                    \
	"the rate is that of the sequential jobs, which have an eighth of the "                    \
	"tasks; the applications determine the result and do not change: NLB and "                 \
	"IOCM-RE are flat even at 10 per ms"
#define WHY_ESTIMATE                                                                               \
	"the estimates are good enough: IOCM-RE stays better even with "                           \
	"information that is 10 s old"

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
		     .code = claim_least_reduction, .why = WHY_LEAST, .bound = "ACM-BOUND-APP"),
	QUANTITATIVE(RATIO, "... to 88.0 %", .a = "ACM-9/iocm-pm", .b = "ACM-9/cpu-re|ACM-9/mem-re",
		     .by = RATIO_REDUCTION, .either = true, .over = OVER_MAX, .printed = 0.88,
		     .why = WHY_MOST, .bound = "ACM-BOUND-APP"),
	CLAIMS_END,
};

/* --- ACM-1, ACM-2: against a batch system ------------------------------------------------ */

static const struct claim bs_claims[] = {
	ORDINAL(TREND, "both rise with the I/O rate", .a = "*", .why = WHY_FLAT,
		.bound = "ACM-SENS-RATE"),
	ORDINAL(BELOW, "IOCM-RE is significantly better than BS", .a = "iocm-re", .b = "bs",
		.why = WHY_BS, .bound = "ACM-BOUND-BS"),
	CLAIMS_END,
};

static const struct claim bs_parallel_claims[] = {
	ORDINAL(TREND, "both rise with the I/O rate", .a = "*", .calibrates = true),
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
		.code = claim_not_above, .why = WHY_CPU_MEM, .bound = "ACM-BOUND-MEM"),
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
		.b = "nlb|cpu-re|mem-re|iocm-re", .why = WHY_PM, .bound = "ACM-BOUND-PM"),
	ORDINAL(FLATTER, "IOCM-PM is the least sensitive to the I/O access rate", .a = "iocm-pm",
		.b = "nlb|cpu-re|mem-re|iocm-re", .why = WHY_PM, .bound = "ACM-BOUND-PM"),
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
		     .b = "cpu-re|mem-re", .printed = 0.236, .code = claim_least_reduction,
		     .why = WHY_LEAST, .bound = "ACM-BOUND-APP"),
	QUANTITATIVE(RATIO, "... by up to 88.0 %", .a = "iocm-pm", .b = "cpu-re|mem-re",
		     .by = RATIO_REDUCTION, .either = true, .over = OVER_MAX, .printed = 0.88,
		     .why = WHY_MOST, .bound = "ACM-BOUND-APP"),
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
		.b = "nlb|cpu-re|mem-re|iocm-re", .why = WHY_PM, .bound = "ACM-BOUND-PM"),
	ORDINAL(BELOW, "IOCM-RE is second best in most cases", .a = "iocm-re",
		.b = "nlb|cpu-re|mem-re", .most = true),
	ORDINAL(TREND, "all rise with the I/O load", .a = "*", .why = WHY_512,
		.bound = "ACM-BOUND-13R"),
	ORDINAL(FLATTER, "the I/O-aware policies are less sensitive", .a = "iocm-re|iocm-pm",
		.b = "nlb|cpu-re|mem-re", .why = WHY_512, .bound = "ACM-BOUND-13R"),
	QUANTITATIVE(CODE, "at 0.3 accesses per ms IOCM-RE is slightly worse than CPU and MEM",
		     .a = "iocm-re", .b = "cpu-re|mem-re", .at = "0.3", .printed = 1.25,
		     .code = claim_slightly_worse, .reading = "worse by up to 25 %",
		     .why = WHY_ESTIMATE, .bound = "ACM-BOUND-13"),
	CLAIMS_END,
};

static const struct claim claims_14[] = {
	ORDINAL(CODE, "slowdown is higher than with 30 % parallel jobs", .a = "*", .b = "ACM-13/*",
		.code = claim_each_above),
	ORDINAL(BELOW, "IOCM-PM is best", .a = "iocm-pm", .b = "nlb|cpu-re|mem-re|iocm-re",
		.why = WHY_PM, .bound = "ACM-BOUND-PM"),
	CLAIMS_END,
};

#define FAULTS_VALUES "1 2 4 6 8 10"
/* The same number of tasks per second as with 30 % parallel jobs. */
#define SEQUENTIAL  "workload=gen:acm-sequential load.interarrival_ms=34.5 load.jobs=3500 "
#define PARALLEL_30 "workload=gen:acm-30 "
#define PARALLEL_60 "workload=gen:acm-60 "
#define BIG	    "nodes=512xacm load.jobs=1500 load.interarrival_ms=12.5 workload=gen:acm-apps-mix "

/* --- what settings can reach --------------------------------------------------------------- */

static const struct point sens_points[] = {
	ACM_OTHER_READINGS,
	{"tasks round-robin", NAN, "parallel_start=1"},
	POINTS_END,
};

static const struct point pm_points[] = {
	{"as chosen", NAN, NULL},
	{"migration for nothing", NAN, "migration_fixed_ms=0"},
	{"remote execution x4", NAN, "fixed_cost_ms=400"},
	{"nothing but migration", NAN, "fixed_cost_ms=1e6 migration_fixed_ms=0"},
	{"period 0", NAN, "information_period_ms=0"},
	{"period 1 s", NAN, "information_period_ms=1000"},
	{"barrier a second", NAN, "load.barrier_ms=1000"},
	{"lifetimes to 20 s", NAN, "load.lifetime_max_ms=20000"},
	{"one migration", NAN, "migrations_max=1"},
	{"3.8 first", NAN, "hom_pm=0"},
	POINTS_END,
};
static const struct series pm_series[] = {IOCM_RE, {NULL, "iocm-pm", NULL}, SERIES_END};
static const struct series cpu_mem[] = {{NULL, "cpu-re", NULL}, {NULL, "mem-re", NULL}, SERIES_END};
static const struct series bound_apps[] = {
	{"DB2, cpu-re", "cpu-re", "workload=gen:db2"},
	{"DB2, iocm-re", "iocm-re-hom", "workload=gen:db2"},
	{"DB2, iocm-pm", "iocm-pm", "workload=gen:db2"},
	{"LU, cpu-re", "cpu-re", "workload=gen:lu"},
	{"LU, iocm-re", "iocm-re-hom", "workload=gen:lu"},
	{"LU, iocm-pm", "iocm-pm", "workload=gen:lu"},
	SERIES_END,
};

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
	 .reading = "the paper describes it without a figure",
	 .claims = cpu_claims},
	{.id = "ACM-7",
	 .paper = "ACM",
	 .title = "preemptive migration, 30 % parallel jobs",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = five,
	 .reading = "the rates are not legible; we use those of ACM-3",
	 .claims = pm_claims},
	{.id = "ACM-8",
	 .paper = "ACM",
	 .title = "preemptive migration, 60 % parallel jobs",
	 .settings = PARALLEL_60 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = IO_VALUES,
	 .series = five,
	 .reading = "the rates are not legible; we use those of ACM-3",
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
	 .title = "execution time of each application alone",
	 .settings = "nodes=1xacm load.jobs=5 load.parallel=0 load.home_weights=1 "
		     "load.interarrival_ms=1e9",
	 .points = acm_applications,
	 .series = alone,
	 .plot = PLOT_BARS,
	 .y = M_TURNAROUND,
	 .claims = claims_10},
	{.id = "ACM-11",
	 .paper = "ACM",
	 .config = "ACM-APP",
	 .title = "I/O share of each application alone",
	 .settings = "nodes=1xacm load.jobs=5 load.parallel=0 load.home_weights=1 "
		     "load.interarrival_ms=1e9",
	 .points = acm_applications,
	 .series = alone,
	 .plot = PLOT_BARS,
	 .y = M_IO_SHARE,
	 .reading = "the generator makes the applications from these shares: this is a "
		    "check, not a discovery",
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
	 .log_y = true,
	 .claims = claims_13},
	{.id = "ACM-14",
	 .paper = "ACM",
	 .title = "512 nodes, sequential jobs and 60 % applications",
	 .settings = BIG "load.parallel=0.6 load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = "0.3 0.45 0.6 0.75",
	 .series = five,
	 .log_y = true,
	 .claims = claims_14,
	 .needs = "ACM-13"},
	{.id = "ACM-SENS",
	 .paper = "ACM",
	 .title = "(ours) one reading changed at a time, much I/O",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5 load.io_per_ms=0.7",
	 .points = sens_points,
	 .series = five,
	 .plot = PLOT_BARS,
	 .log_y = true},
	{.id = "ACM-SENS-RATE",
	 .paper = "ACM",
	 .title = "(ours) I/O rates far beyond the paper's, 30 % parallel jobs",
	 .settings = PARALLEL_30 "load.faults_per_ms=0.5",
	 .x_name = IO_X,
	 .axis = "load.io_per_ms",
	 .values = "0.2 0.4 0.8 1.6 3.2",
	 .policies = "cpu-re mem-re iocm-re-hom iocm-pm",
	 .log_y = true},
	{.id = "ACM-SENS-LOAD",
	 .paper = "ACM",
	 .title = "(ours) load, 60 % parallel jobs",
	 .settings = PARALLEL_60 "load.faults_per_ms=0.5 load.io_per_ms=0.7 load.jobs=400",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "150 200 300 450 700",
	 .policies = "cpu-re mem-re iocm-re-hom iocm-pm",
	 .log_y = true},
	{.id = "ACM-BOUND-BS",
	 .paper = "ACM",
	 .title = "(ours) load at which a batch system falls behind, sequential jobs",
	 .settings = SEQUENTIAL "load.faults_per_ms=0.5 load.io_per_ms=0.6",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "14 17 20 25 34.5 51.7",
	 .series = bs_series,
	 .log_y = true},
	{.id = "ACM-BOUND-MEM",
	 .paper = "ACM",
	 .title = "(ours) CPU and MEM by the size of tasks, 60 % parallel jobs",
	 .settings = PARALLEL_60 "load.faults_per_ms=0.5 load.io_per_ms=0.6 load.jobs=400",
	 .x_name = "memory scale",
	 .axis = "memory_scale",
	 .values = "1 3 10 20 40",
	 .series = cpu_mem,
	 .log_y = true},
	{.id = "ACM-BOUND-PM",
	 .paper = "ACM",
	 .title = "(ours) gain of preemptive migration, one setting changed at a time",
	 .settings = PARALLEL_60 "load.faults_per_ms=0.5 load.io_per_ms=0.6 load.jobs=400",
	 .points = pm_points,
	 .series = pm_series,
	 .plot = PLOT_BARS},
	{.id = "ACM-BOUND-APP",
	 .paper = "ACM",
	 .config = "ACM-APP",
	 .title = "(ours) gains for the applications by load",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "600 1000 1500 2500 4000",
	 .series = bound_apps,
	 .facets = true,
	 .log_y = true},
	{.id = "ACM-BOUND-13",
	 .paper = "ACM",
	 .title = "(ours) 512 nodes: age of information, 0.3 accesses per ms",
	 .settings = BIG "load.parallel=0.3 load.faults_per_ms=0.5 load.io_per_ms=0.3",
	 .x_name = "information period (ms)",
	 .axis = "information_period_ms",
	 .values = "100 300 1000 3000 10000",
	 .series = three,
	 .log_y = true},
	{.id = "ACM-BOUND-13R",
	 .paper = "ACM",
	 .title = "(ours) 512 nodes: I/O rates far beyond the paper's",
	 .settings = BIG "load.parallel=0.3 load.faults_per_ms=0.5",
	 .x_name = "mean I/O access rate of sequential jobs (1/ms)",
	 .axis = "load.io_per_ms",
	 .values = "0.3 1 3 10",
	 .series = five,
	 .log_y = true},
	{.id = NULL},
};
