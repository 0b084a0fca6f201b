/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* SLD: experiments and claims of the slides (MODEL 6.2). */
#include <math.h>

#include "sim/experiments/code_claims.h"
#include "sim/experiments/tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "6xfc", "six nodes in the example; machines as in FC (not stated)"},
	{"workload", "gen:sld", "30 % parallel jobs of 2-32 tasks, 256 KB requests"},
	{"load.jobs", "600", "the trace ends"},
	{"load.home_weights", "6337:28:4:1398:704:5338", "reading 4: the example's jobs per home"},
	{"load.lifetime_mean_ms", "200", "reading 6: the scale of ACM"},
	{"load.lifetime_max_ms", "4000", "bounded at 20 times the mean, as in FC"},
	{"load.interarrival_ms", "1500",
	 "with balancing the disks are a fifth to a half busy; the busiest home "
	 "is overloaded"},
	{"memory_scale", "10", "O-49: as in ACM"},
	{"load.memory_shape", "3", "O-39: as in FC"},
	{"hom_pm", "1", "3.9: IOCM-PM begins with the IOCM-RE for equal nodes"},
	{"cpu_load_runnable", "1",
	 "reading 1: 'running' tasks do not include tasks that wait for the disk"},
	{"page_fault_at_disk", "0", "reading 2: as in FC"},
	{"literal_requests", "0", "O-8(c): as in FC"},
	{"information_period_ms", "100", "O-15: as in FC"},
	{NULL, NULL, NULL},
};

const struct paper sld_paper = {
	"SLD", "SLD: Towards load balancing support for I/O-intensive parallel jobs (slides)",
	settings,
	"Calibrated, not blind: readings are those of FC; we chose the load "
	"after seeing slowdowns (SLD-SENS has others)."};

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

/* --- SLD-EX ------------------------------------------------------------------------ */

static const struct point example[] = {{"six nodes", NAN, NULL}, POINTS_END};
static const struct series nlb_iocm[] = {{NULL, "nlb", NULL}, IOCM_RE, SERIES_END};

static const struct claim example_claims[] = {
	QUANTITATIVE(
		VALUE, "average slowdown without balancing is 25.0", .a = "nlb", .printed = 25.0,
		.why = "without balancing the buffer of the busiest home is just large enough: "
		       "slowdown jumps from 1.4 to hundreds between 0.5 and 0.6 accesses per ms "
		       "and passes 25 in between; with balancing nothing queues",
		.bound = "SLD-SENS"),
	QUANTITATIVE(
		VALUE, "average slowdown with I/O-aware balancing is 2.4", .a = "iocm-re",
		.printed = 2.4,
		.why = "without balancing the buffer of the busiest home is just large enough: "
		       "slowdown jumps from 1.4 to hundreds between 0.5 and 0.6 accesses per ms "
		       "and passes 25 in between; with balancing nothing queues",
		.bound = "SLD-SENS"),
	QUANTITATIVE(RATIO, "a factor of more than 10", .a = "iocm-re", .b = "nlb",
		     .by = RATIO_FACTOR, .printed = 10, .at_least = true),
	CLAIMS_END,
};

/* --- SLD-RE, SLD-PM ------------------------------------------------------------------ */

static const struct series re_series[] = {
	{NULL, "cpu-re", NULL}, {NULL, "mem-re", NULL}, IOCM_RE, SERIES_END};
static const struct series pm_series[] = {{NULL, "cpu-re", NULL},
					  {NULL, "mem-re", NULL},
					  IOCM_RE,
					  {NULL, "iocm-pm", NULL},
					  SERIES_END};

#define WHY_PM                                                                                     \
	"new tasks are placed by their requirements and exact loads, which "                       \
	"already balances the disks: migration gains little even if it costs "                     \
	"nothing, and also with old loads"

static const struct claim re_claims[] = {
	ORDINAL(TREND, "slowdown rises with the I/O load", .a = "*"),
	ORDINAL(BELOW, "IOCM-RE is best", .a = "iocm-re", .b = "cpu-re|mem-re"),
	QUANTITATIVE(RATIO, "IOCM-RE improves by 24.5 % on average", .a = "iocm-re",
		     .b = "cpu-re|mem-re", .by = RATIO_REDUCTION, .either = true, .printed = 0.245,
		     .reading = "over the mean of CPU and MEM: the slides name no baseline",
		     .why = "the gain grows with the load from 10 to 90 %: the slides do not say "
			    "theirs",
		     .bound = "SLD-RE"),
	QUANTITATIVE(RATIO, "... by 30.7 % at most", .a = "iocm-re", .b = "cpu-re|mem-re",
		     .by = RATIO_REDUCTION, .either = true, .over = OVER_MAX, .printed = 0.307,
		     .why = "the gain grows with the load from 10 to 90 %: the slides do not say "
			    "theirs",
		     .bound = "SLD-RE"),
	CLAIMS_END,
};

static const struct claim pm_claims[] = {
	ORDINAL(BELOW, "IOCM-PM is best", .a = "iocm-pm", .b = "cpu-re|mem-re|iocm-re",
		.why = WHY_PM, .bound = "SLD-SENS-PM"),
	ORDINAL(BELOW, "SLD-CONC: preemptive migration is better than remote execution",
		.a = "iocm-pm", .b = "iocm-re", .why = WHY_PM, .bound = "SLD-SENS-PM"),
	QUANTITATIVE(RATIO, "IOCM-PM improves by 56.6 % on average over IOCM-RE", .a = "iocm-pm",
		     .b = "iocm-re", .by = RATIO_REDUCTION, .either = true, .printed = 0.566,
		     .reading = "E-14: printed \"IOPM-RE\"", .why = WHY_PM, .bound = "SLD-SENS-PM"),
	CLAIMS_END,
};

/* Our own settings in which migration could gain more. */
static const struct series sens_pm_series[] = {IOCM_RE, {NULL, "iocm-pm", NULL}, SERIES_END};

static const struct point sens_pm_points[] = {
	{"common", NAN, NULL},
	{"no fixed cost", NAN, "migration_fixed_ms=0"},
	{"loads 10 s old", NAN, "information_period_ms=10000"},
	{"loads 100 s old", NAN, "information_period_ms=100000"},
	{"100 s, no cost", NAN, "information_period_ms=100000 migration_fixed_ms=0"},
	{"arrivals 1 s", NAN, "load.interarrival_ms=1000"},
	{"no parallel jobs", NAN, "load.parallel=0 load.interarrival_ms=250"},
	POINTS_END,
};

static const struct claim sens_pm_claims[] = {
	QUANTITATIVE(RATIO, "(ours) in one of these settings migration gains the 56.6 %",
		     .a = "iocm-pm", .b = "iocm-re", .by = RATIO_REDUCTION, .over = OVER_MAX,
		     .either = true, .at_least = true, .printed = 0.566, .why = WHY_PM,
		     .bound = "SLD-SENS-PM"),
	CLAIMS_END,
};

/* --- SLD-CMP -------------------------------------------------------------------------- */

static const struct point kinds[] = {
	{"CPU", NAN,
	 "load.io_per_ms=0 load.faults_per_ms=0 load.lifetime_mean_ms=2000 "
	 "load.lifetime_max_ms=40000"},
	{"memory", NAN, "load.io_per_ms=0.01 load.faults_per_ms=8"},
	{"I/O", NAN, "load.io_per_ms=0.6 load.faults_per_ms=0.5"},
	POINTS_END,
};

static const struct series kind_series[] = {
	{NULL, "nlb", NULL},	 {NULL, "cpu-re", NULL},
	{NULL, "cpu-pm", NULL},	 {NULL, "mem-re", NULL},
	{NULL, "mem-pm", NULL},	 IOCM_RE,
	{NULL, "iocm-pm", NULL}, SERIES_END,
};

static const struct claim kind_claims[] = {
	ORDINAL(BELOW,
		"CPU-intensive: preemptive migration gains more (+++) than remote execution (+)",
		.a = "cpu-pm", .b = "cpu-re", .at = "CPU",
		.why = "migration adds little to remote execution that knows what each task needs",
		.bound = "CSD-PM"),
	ORDINAL(BELOW,
		"memory-intensive: remote execution gains more (+++) than preemptive migration (+)",
		.a = "mem-re", .b = "mem-pm", .at = "memory",
		.why = "migration adds little to remote execution that knows what each task needs",
		.bound = "CSD-PM"),
	ORDINAL(NOT_TESTED, "I/O-intensive: ? and ?",
		.why = "the slides ask the question and answer it in SLD-PM"),
	CLAIMS_END,
};

/* --- SLD-APP -------------------------------------------------------------------------- */

static const struct claim app_claims[] = {
	ORDINAL(BELOW, "IOCM-RE and IOCM-PM improve all applications", .a = "iocm-re|iocm-pm",
		.b = "cpu-re|mem-re"),
	ORDINAL(EQUAL, "IOCM-RE and IOCM-PM are about equal", .a = "iocm-re", .b = "iocm-pm"),
	CLAIMS_END,
};

const struct experiment sld_experiments[] = {
	{.id = "SLD-MET",
	 .paper = "SLD",
	 .title = "slowdown of an example",
	 .none = "it is a worked example, 45 s / 10 s = 4.5, which a unit test covers"},
	{.id = "SLD-EX",
	 .paper = "SLD",
	 .title = "six nodes with 13,809 I/O-intensive jobs",
	 .settings = "workload=gen:sld-ex load.jobs=13809 load.interarrival_ms=261 "
		     "load.io_per_ms=0.6 load.faults_per_ms=0.5",
	 .points = example,
	 .series = nlb_iocm,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .reading = "the jobs arrive in one hour; 0.6 accesses per ms is in the middle of "
		    "SLD-RE",
	 .claims = example_claims},
	{.id = "SLD-SENS",
	 .paper = "SLD",
	 .title = "(ours) the example by its I/O access rate",
	 .settings = "workload=gen:sld-ex load.jobs=13809 load.interarrival_ms=261 "
		     "load.faults_per_ms=0.5",
	 .x_name = "mean I/O access rate (1/ms)",
	 .axis = "load.io_per_ms",
	 .values = "0.4 0.45 0.5 0.55 0.6 0.65",
	 .series = nlb_iocm,
	 .log_y = true},
	{.id = "SLD-RE",
	 .paper = "SLD",
	 .title = "remote execution, sequential and parallel jobs",
	 .x_name = "mean I/O access rate (1/ms)",
	 .axis = "load.io_per_ms",
	 .values = "0.45 0.55 0.65 0.75 0.85",
	 .series = re_series,
	 .claims = re_claims},
	{.id = "SLD-CMP",
	 .paper = "SLD",
	 .title = "remote execution and preemptive migration by kind of load",
	 .points = kinds,
	 .series = kind_series,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = kind_claims},
	{.id = "SLD-PM",
	 .paper = "SLD",
	 .title = "preemptive migration",
	 .x_name = "mean I/O access rate (1/ms)",
	 .axis = "load.io_per_ms",
	 .values = "0.45 0.55 0.65 0.75 0.85",
	 .series = pm_series,
	 .claims = pm_claims},
	{.id = "SLD-SENS-PM",
	 .paper = "SLD",
	 .title = "(ours) preemptive migration, one setting changed at a time",
	 .settings = "load.io_per_ms=0.75",
	 .points = sens_pm_points,
	 .series = sens_pm_series,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = sens_pm_claims},
	{.id = "SLD-APP",
	 .paper = "SLD",
	 .config = "ACM-APP",
	 .title = "real I/O-intensive applications",
	 .points = acm_applications,
	 .series = pm_series,
	 .plot = PLOT_BARS,
	 .claims = app_claims},
	{.id = "SLD-CONC",
	 .paper = "SLD",
	 .title = "preemptive migration is better than remote execution",
	 .none = "it is the conclusion from SLD-PM and judged there"},
	{.id = NULL},
};
