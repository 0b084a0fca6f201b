/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * READ-1 .. READ-8: what the readings decide.  Each is a parameter; the figures show what
 * changes with it, the claims whether the order of the policies does.
 */
#include <math.h>

#include "code_claims.h"
#include "tables.h"

const struct paper own_paper = {"OURS", "Ours: readings that decide outcomes, cross-checks",
				(const struct paper_setting[]){{NULL, NULL, NULL}}};

#define SERIES_END                                                                                 \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
#define POINTS_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL                                                                      \
	}

static const struct series acm_five[] = {{NULL, "nlb", NULL},	  {NULL, "cpu-re", NULL},
					 {NULL, "mem-re", NULL},  {"iocm-re", "iocm-re-hom", NULL},
					 {NULL, "iocm-pm", NULL}, SERIES_END};
static const struct series com_four[] = {{"CPU-aware", "cpu-re", NULL},
					 {"MEM-aware", "mem-re", NULL},
					 {"IO-aware", "iocm-re-hom", NULL},
					 {"COM-aware", "com", NULL},
					 SERIES_END};

#define SAME_ORDER(a_, b_, where)                                                                  \
	ORDINAL(BELOW, "(ours) " a_ " stays below " b_ ": " where, .a = a_, .b = b_, .at = where)

/* --- READ-1 ------------------------------------------------------------------------ */

static const struct point cpu_load[] = {
	{"resident", NAN, "cpu_load_runnable=0"},
	{"runnable", NAN, "cpu_load_runnable=1"},
	POINTS_END,
};
static const struct claim claims_1[] = {
	SAME_ORDER("iocm-re", "cpu-re", "resident"),
	SAME_ORDER("iocm-re", "cpu-re", "runnable"),
	SAME_ORDER("iocm-re", "mem-re", "resident"),
	SAME_ORDER("iocm-re", "mem-re", "runnable"),
	CLAIMS_END,
};

/* --- READ-2 ------------------------------------------------------------------------ */

static const struct point fault_points[] = {
	{"2, disk", NAN, "load.faults_per_ms=2 page_fault_at_disk=1"},
	{"2, delay", NAN, "load.faults_per_ms=2 page_fault_at_disk=0"},
	{"5, disk", NAN, "load.faults_per_ms=5 page_fault_at_disk=1"},
	{"5, delay", NAN, "load.faults_per_ms=5 page_fault_at_disk=0"},
	{"8, disk", NAN, "load.faults_per_ms=8 page_fault_at_disk=1"},
	{"8, delay", NAN, "load.faults_per_ms=8 page_fault_at_disk=0"},
	POINTS_END,
};
static const struct claim claims_2[] = {
	SAME_ORDER("wal", "nlb", "8, disk"),
	SAME_ORDER("wal", "nlb", "8, delay"),
	ORDINAL(CODE,
		"(ours) without balancing, faults that queue at the disk weigh far more than "
		"a delay",
		.a = "nlb", .at = "8, disk", .printed = 1, .code = claim_point_largest),
	CLAIMS_END,
};

/* --- READ-3 ------------------------------------------------------------------------ */

static const struct point starts[] = {
	{"all at home", NAN, "parallel_start=0"},
	{"round-robin", NAN, "parallel_start=1"},
	POINTS_END,
};
static const struct claim claims_3[] = {
	SAME_ORDER("iocm-re", "cpu-re", "all at home"),
	SAME_ORDER("iocm-re", "cpu-re", "round-robin"),
	SAME_ORDER("iocm-re", "nlb", "all at home"),
	SAME_ORDER("iocm-re", "nlb", "round-robin"),
	CLAIMS_END,
};

/* --- READ-4 ------------------------------------------------------------------------ */

static const struct claim claims_4[] = {
	SAME_ORDER("iocm-re", "nlb", "0"),
	SAME_ORDER("iocm-re", "nlb", "2"),
	ORDINAL(FLATTER, "(ours) the gain over NLB grows with the inequality of the homes",
		.a = "iocm-re", .b = "nlb"),
	CLAIMS_END,
};

/* --- READ-5 ------------------------------------------------------------------------ */

static const struct point transfers[] = {
	{"A, delay", NAN, "nodes=60xacm-a transfer_disk_work=0"},
	{"A, disk work", NAN, "nodes=60xacm-a transfer_disk_work=1"},
	{"E, delay", NAN, "nodes=60xacm-e transfer_disk_work=0"},
	{"E, disk work", NAN, "nodes=60xacm-e transfer_disk_work=1"},
	POINTS_END,
};
static const struct claim claims_5[] = {
	SAME_ORDER("iocm-re", "cpu-re", "A, delay"),
	SAME_ORDER("iocm-re", "cpu-re", "A, disk work"),
	SAME_ORDER("iocm-re", "cpu-re", "E, delay"),
	SAME_ORDER("iocm-re", "cpu-re", "E, disk work"),
	CLAIMS_END,
};

/* --- READ-6 ------------------------------------------------------------------------ */

static const struct claim claims_6[] = {
	SAME_ORDER("iocm-re", "cpu-re", "0.25"),
	SAME_ORDER("iocm-re", "cpu-re", "1"),
	SAME_ORDER("iocm-re", "cpu-re", "4"),
	ORDINAL(FLATTER, "(ours) with long computation all policies become alike", .a = "nlb",
		.b = "iocm-re", .at = "1..4",
		.reading = "from scale 1 to 4 IOCM-RE grows more than NLB"),
	CLAIMS_END,
};

/* --- READ-7 ------------------------------------------------------------------------ */

static const struct point messages[] = {
	{"default", NAN, NULL},
	{"local messages cost", NAN, "local_messages_free=0"},
	{"port contention", NAN, "port_contention=1"},
	{"demand at home (O-14)", NAN, "com_decision=0"},
	{"transit not counted", NAN, "transit_counts=0"},
	{"half the arrivals", NAN, "load.interarrival_ms=1000"},
	{"twice the arrivals", NAN, "load.interarrival_ms=250"},
	POINTS_END,
};
static const struct claim claims_7[] = {
	SAME_ORDER("COM-aware", "CPU-aware", "default"),
	SAME_ORDER("COM-aware", "CPU-aware", "local messages cost"),
	SAME_ORDER("COM-aware", "CPU-aware", "port contention"),
	SAME_ORDER("COM-aware", "CPU-aware", "demand at home (O-14)"),
	SAME_ORDER("COM-aware", "CPU-aware", "transit not counted"),
	SAME_ORDER("COM-aware", "CPU-aware", "half the arrivals"),
	SAME_ORDER("COM-aware", "CPU-aware", "twice the arrivals"),
	CLAIMS_END,
};

/* --- READ-8 ------------------------------------------------------------------------ */

static const struct claim claims_8[] = {
	ORDINAL(EQUAL, "(ours) without a threshold of significance IOCM-RE is not MEM-RE",
		.a = "iocm-re", .b = "mem-re", .at = "0"),
	ORDINAL(EQUAL, "(ours) with one above the tiny I/O rate of all jobs it is", .a = "iocm-re",
		.b = "mem-re", .at = "1"),
	CLAIMS_END,
};

#define ACM_30 "workload=gen:acm-30 load.io_per_ms=0.6 load.faults_per_ms=0.5"

const struct experiment read_experiments[] = {
	{.id = "READ-1",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "CPU load: resident or runnable tasks",
	 .settings = ACM_30,
	 .points = cpu_load,
	 .series = acm_five,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_1},
	{.id = "READ-2",
	 .paper = "OURS",
	 .config = "FC",
	 .title = "page faults: at the disk or a delay",
	 .settings = "load.io_per_ms=1.5",
	 .x_name = "page faults a ms, where",
	 .points = fault_points,
	 .policies = "nlb cm io wal wal-fc",
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_2},
	{.id = "READ-3",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "where the tasks of parallel jobs start",
	 .settings = ACM_30,
	 .points = starts,
	 .series = acm_five,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_3},
	{.id = "READ-4",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "how unequal the homes are",
	 .settings = ACM_30,
	 .x_name = "skew: node i has weight 1 / (1 + i)^skew",
	 .axis = "load.home_skew",
	 .values = "0 0.5 1 1.5 2",
	 .series = acm_five,
	 .log_y = true,
	 .claims = claims_4},
	{.id = "READ-5",
	 .paper = "OURS",
	 .config = "ACM-HET",
	 .title = "moved data: a delay or work for both disks",
	 .x_name = "system, transfers",
	 .points = transfers,
	 .policies = "nlb cpu-re mem-re io-re iocm-re",
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_5},
	{.id = "READ-6",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "scale of computation (arrivals unchanged)",
	 .settings = ACM_30,
	 .x_name = "times the computation",
	 .axis = "cpu_scale",
	 .values = "0.25 0.5 1 2 4",
	 .series = acm_five,
	 .log_y = true,
	 .claims = claims_6},
	{.id = "READ-7",
	 .paper = "OURS",
	 .config = "COM",
	 .title = "readings of the communication study",
	 .settings = "load.messages_per_ms=0.5 load.tasks_min=16 load.tasks_max=16",
	 .points = messages,
	 .series = com_four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_7},
	{.id = "READ-8",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "a threshold of significance for I/O",
	 .settings = "workload=gen:acm-30 load.io_per_ms=0.01 load.faults_per_ms=5",
	 .x_name = "io_significance (1/ms)",
	 .axis = "io_significance",
	 .values = "0 0.01 0.1 1",
	 .policies = "mem-re iocm-re",
	 .claims = claims_8},
	{.id = NULL},
};
