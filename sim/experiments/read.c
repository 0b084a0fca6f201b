/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * READ-1 .. READ-8: how the readings change outcomes.  Each reading is a parameter.  A figure
 * shows one load of the paper's common configuration under each value.  The claims say how many of
 * the paper's own claims hold under each value, and which change ("ACM-3.2" is the second of
 * ACM-3), with at most READING_SEEDS runs per cell.
 */
#include <math.h>

#include "sim/experiments/acm.h"
#include "sim/experiments/code_claims.h"
#include "sim/experiments/tables.h"

const struct paper own_paper = {"OURS", "Ours: readings that decide outcomes, cross-checks",
				(const struct paper_setting[]){{NULL, NULL, NULL}}, NULL};

#define SERIES_END                                                                                 \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
#define POINTS_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL                                                                      \
	}
#define READING(label_, settings_)                                                                 \
	{                                                                                          \
		.label = (label_), .settings = (settings_)                                         \
	}
#define READINGS_END                                                                               \
	{                                                                                          \
		.label = NULL                                                                      \
	}

static const struct series acm_five[] = {{NULL, "nlb", NULL},	  {NULL, "cpu-re", NULL},
					 {NULL, "mem-re", NULL},  {"iocm-re", "iocm-re-hom", NULL},
					 {NULL, "iocm-pm", NULL}, SERIES_END};
static const struct series com_four[] = {{"CPU-aware", "cpu-re", NULL},
					 {"MEM-aware", "mem-re", NULL},
					 {"IO-aware", "iocm-re-hom", NULL},
					 {"COM-aware", "com", NULL},
					 SERIES_END};

/* Claims of PAPER change when the reading is WHERE; ID is the id of this experiment. */
#define TURNS(id, paper_, where)                                                                   \
	ORDINAL(CODE, "(ours) claims of " paper_ " turn: " where, .a = paper_, .at = where,        \
		.printed = 1, .code = claim_reading,                                               \
		.why = "the claims that were judged have the same outcome", .bound = id)

#define ACM_MUCH_IO "workload=gen:acm-30 load.faults_per_ms=0.5 load.io_per_ms=0.7"
#define FC_IDS	    "FC-THR FC-3-DATA FC-4.1 FC-4.2 FC-5.2"
#define COM_IDS	    "COM-4c COM-5c"

/* --- READ-1 ------------------------------------------------------------------------ */

static const struct reading readings_1[] = {
	READING("runnable", NULL), READING("resident", "cpu_load_runnable=0"), READINGS_END};
static const struct point points_1[] = {
	{"runnable", NAN, NULL}, {"resident", NAN, "cpu_load_runnable=0"}, POINTS_END};
static const struct claim claims_1[] = {TURNS("READ-1", "ACM", "resident"),
					TURNS("READ-1", "FC", "resident"), CLAIMS_END};

/* --- READ-2 ------------------------------------------------------------------------ */

static const struct reading readings_2[] = {
	READING("a delay", NULL), READING("at the disk", "page_fault_at_disk=1"), READINGS_END};
static const struct point points_2[] = {
	{"2, delay", NAN, "load.faults_per_ms=2"},
	{"2, disk", NAN, "load.faults_per_ms=2 page_fault_at_disk=1"},
	{"8, delay", NAN, "load.faults_per_ms=8"},
	{"8, disk", NAN, "load.faults_per_ms=8 page_fault_at_disk=1"},
	POINTS_END,
};
static const struct claim claims_2[] = {
	TURNS("READ-2", "ACM", "at the disk"),
	TURNS("READ-2", "FC", "at the disk"),
	ORDINAL(CODE,
		"(ours) without balancing, faults that queue at the disk weigh far more than "
		"a delay",
		.a = "nlb", .at = "8, disk", .printed = 1, .code = claim_point_largest),
	CLAIMS_END,
};

/* --- READ-3 ------------------------------------------------------------------------ */

static const struct reading readings_3[] = {
	READING("all at home", NULL), READING("round-robin", "parallel_start=1"), READINGS_END};
static const struct point points_3[] = {
	{"all at home", NAN, NULL}, {"round-robin", NAN, "parallel_start=1"}, POINTS_END};
static const struct claim claims_3[] = {TURNS("READ-3", "ACM", "round-robin"),
					TURNS("READ-3", "COM", "round-robin"), CLAIMS_END};

/* --- READ-4 ------------------------------------------------------------------------ */

static const struct reading readings_4[] = {
	READING("as the trace", NULL), READING("homes alike", "load.home_weights=1"), READINGS_END};
static const struct point points_4[] = {
	{"homes alike", NAN, "load.home_weights=1"},
	{"2 to 1", NAN, "load.home_weights=2:1"},
	{"8 to 1", NAN, "load.home_weights=8:1"},
	{"as the trace", NAN, NULL},
	POINTS_END,
};
static const struct claim claims_4[] = {
	TURNS("READ-4", "ACM", "homes alike"),
	TURNS("READ-4", "ACM-HET", "homes alike"),
	TURNS("READ-4", "FC", "homes alike"),
	ORDINAL(FLATTER, "(ours) the gain over NLB grows with the inequality of the homes",
		.a = "iocm-re", .b = "nlb"),
	CLAIMS_END,
};

/* --- READ-5 ------------------------------------------------------------------------ */

static const struct reading readings_5[] = {
	READING("a delay", NULL), READING("work for both disks", "transfer_disk_work=1"), READINGS_END};
static const struct point points_5[] = {
	{"A, delay", NAN, "nodes=60xacm-a"},
	{"A, disk work", NAN, "nodes=60xacm-a transfer_disk_work=1"},
	{"E, delay", NAN, "nodes=60xacm-e"},
	{"E, disk work", NAN, "nodes=60xacm-e transfer_disk_work=1"},
	POINTS_END,
};
static const struct claim claims_5[] = {TURNS("READ-5", "ACM-HET", "work for both disks"),
					CLAIMS_END};

/* --- READ-6 ------------------------------------------------------------------------ */

static const struct reading readings_6[] = {READING("common scale", NULL),
					    READING("a quarter of it", "cpu_scale=0.25"),
					    READING("twice it", "cpu_scale=2"),
					    READINGS_END};
static const struct claim claims_6[] = {
	TURNS("READ-6", "ACM", "a quarter of it"), TURNS("READ-6", "ACM", "twice it"),
	TURNS("READ-6", "FC", "a quarter of it"), TURNS("READ-6", "FC", "twice it"), CLAIMS_END};

/* --- READ-7 ------------------------------------------------------------------------ */

static const struct reading readings_7[] = {
	READING("as chosen", NULL),
	READING("local messages free", "local_messages_free=1"),
	READING("ports contend", "port_contention=1"),
	READING("demand at home", "com_decision=0"),
	READING("runnable tasks", "cpu_load_runnable=1"),
	READING("transit not counted", "transit_counts=0"),
	READING("half the arrivals", "load.interarrival_ms=1200"),
	READING("twice the arrivals", "load.interarrival_ms=300"),
	READINGS_END,
};
static const struct point points_7[] = {
	{"as chosen", NAN, NULL},
	{"local messages free", NAN, "local_messages_free=1"},
	{"ports contend", NAN, "port_contention=1"},
	{"demand at home", NAN, "com_decision=0"},
	{"runnable tasks", NAN, "cpu_load_runnable=1"},
	{"transit not counted", NAN, "transit_counts=0"},
	{"half the arrivals", NAN, "load.interarrival_ms=1200"},
	{"twice the arrivals", NAN, "load.interarrival_ms=300"},
	POINTS_END,
};
static const struct claim claims_7[] = {
	TURNS("READ-7", "COM", "local messages free"), TURNS("READ-7", "COM", "ports contend"),
	TURNS("READ-7", "COM", "demand at home"),      TURNS("READ-7", "COM", "runnable tasks"),
	TURNS("READ-7", "COM", "transit not counted"), TURNS("READ-7", "COM", "half the arrivals"),
	TURNS("READ-7", "COM", "twice the arrivals"),  CLAIMS_END,
};

/* --- READ-8 ------------------------------------------------------------------------ */

static const struct reading readings_8[] = {
	READING("a threshold", NULL), READING("none", "io_significance=0"), READINGS_END};
static const struct claim claims_8[] = {
	TURNS("READ-8", "ACM", "none"),
	TURNS("READ-8", "ACM-HET", "none"),
	TURNS("READ-8", "COM", "none"),
	ORDINAL(EQUAL,
		"(ours) with a threshold above the jobs' tiny I/O rate IOCM-RE equals "
		"MEM-RE",
		.a = "iocm-re", .b = "mem-re", .at = "0.015"),
	CLAIMS_END,
};

const struct experiment read_experiments[] = {
	{.id = "READ-1",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "CPU load: resident or runnable tasks",
	 .settings = ACM_MUCH_IO,
	 .points = points_1,
	 .series = acm_five,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_1,
	 .readings = readings_1,
	 .judged = "ACM-1 ACM-2 ACM-3 ACM-5 ACM-7 " FC_IDS},
	{.id = "READ-2",
	 .paper = "OURS",
	 .config = "FC",
	 .title = "page faults: a delay or at the disk",
	 .settings = "load.io_per_ms=1.5",
	 .x_name = "page faults per ms, and where",
	 .points = points_2,
	 .policies = "nlb cm io wal wal-fc",
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_2,
	 .readings = readings_2,
	 .judged = "ACM-1 ACM-2 ACM-3 ACM-5 ACM-7 " FC_IDS},
	{.id = "READ-3",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "where the tasks of parallel jobs start",
	 .settings = ACM_MUCH_IO,
	 .points = points_3,
	 .series = acm_five,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_3,
	 .readings = readings_3,
	 .judged = "ACM-2 ACM-3 ACM-4 ACM-5 ACM-7 ACM-8 " COM_IDS},
	{.id = "READ-4",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "how unequal the homes are",
	 .settings = ACM_MUCH_IO,
	 .x_name = "arrivals at the homes",
	 .points = points_4,
	 .series = acm_five,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_4,
	 .readings = readings_4,
	 .judged = "ACM-1 ACM-2 ACM-3 ACM-5 ACM-7 ACM-15 ACM-16 " FC_IDS},
	{.id = "READ-5",
	 .paper = "OURS",
	 .config = "ACM-HET",
	 .title = "moved data: a delay or work for both disks",
	 .x_name = "system, transfers",
	 .points = points_5,
	 .policies = "nlb cpu-re mem-re io-re iocm-re",
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_5,
	 .readings = readings_5,
	 .judged = "ACM-15 ACM-16 ACM-17 ACM-18 ACM-19 ACM-20"},
	{.id = "READ-6",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "scale of computation (arrivals unchanged)",
	 .settings = ACM_MUCH_IO,
	 .x_name = "factor of the computation",
	 .axis = "cpu_scale",
	 .values = "0.25 0.5 1 2",
	 .series = acm_five,
	 .log_y = true,
	 .claims = claims_6,
	 .readings = readings_6,
	 .judged = "ACM-1 ACM-3 ACM-7 FC-4.1 FC-4.2 FC-5.2"},
	{.id = "READ-7",
	 .paper = "OURS",
	 .config = "COM",
	 .title = "readings of the communication study: 16 tasks, 0.5 messages per ms",
	 .settings = "load.messages_per_ms=0.5 load.tasks_min=16 load.tasks_max=16",
	 .points = points_7,
	 .series = com_four,
	 .plot = PLOT_BARS,
	 .log_y = true,
	 .claims = claims_7,
	 .readings = readings_7,
	 .judged = COM_IDS},
	{.id = "READ-8",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "a threshold of significance for I/O",
	 .settings = "workload=gen:acm-30 load.io_per_ms=0.01 load.faults_per_ms=5",
	 .x_name = "io_significance (1/ms)",
	 .axis = "io_significance",
	 .values = "0 0.005 0.015 0.1",
	 .series = acm_five,
	 .claims = claims_8,
	 .readings = readings_8,
	 .judged = "ACM-5 ACM-6 ACM-20 " COM_IDS},
	{.id = NULL},
};
