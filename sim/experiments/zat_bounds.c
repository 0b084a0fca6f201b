/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Our own experiments on ZAT: one threshold or reading at a time; they support the
 * claims that fail.
 */
#include <math.h>

#include "sim/experiments/probe_claims.h"
#include "sim/experiments/tables.h"

#define END                                                                                        \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
#define POINTS_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL                                                                      \
	}
#define ALL_PROBES                                                                                 \
	{"CPU", "zatti-binary", "workload=probe:cpu"},                                             \
		{"IO", "zatti-binary", "workload=probe:io"},                                       \
		{"CC", "zatti-binary", "workload=probe:cc"},                                       \
	{                                                                                          \
		"NROFF", "zatti-binary", "workload=probe:nroff"                                    \
	}
#define DELTAS(label, probe)                                                                       \
	{label ", delta 0", "zatti-binary", "workload=probe:" probe " zatti_queue_delta=0"},       \
		{label ", delta 1", "zatti-binary",                                                \
		 "workload=probe:" probe " zatti_queue_delta=1"},                                  \
	{                                                                                          \
		label ", delta 3", "zatti-binary", "workload=probe:" probe " zatti_queue_delta=3"  \
	}

static const struct series all_probes[] = {ALL_PROBES, END};
static const struct series deltas[] = {DELTAS("CPU", "cpu"), DELTAS("CC", "cc"),
				       DELTAS("NROFF", "nroff"), END};
static const struct series cpu_and_io[] = {{"CPU", "zatti-binary", "workload=probe:cpu"},
					   {"IO", "zatti-binary", "workload=probe:io"},
					   END};
static const struct series io_and_cc[] = {{"IO", "zatti-binary", "workload=probe:io"},
					  {"CC", "zatti-binary", "workload=probe:cc"},
					  END};
static const struct series cc_alone[] = {{"CC", "zatti-binary", "workload=probe:cc"}, END};
static const struct series idle_forms[] = {
	{"CPU, binary", "zatti-binary", "workload=probe:cpu zatti_idle=1"},
	{"CPU, real", "zatti-real", "workload=probe:cpu zatti_idle=1"},
	{"CC, binary", "zatti-binary", "workload=probe:cc zatti_idle=1"},
	{"CC, real", "zatti-real", "workload=probe:cc zatti_idle=1"},
	END,
};
#define SCHEDULERS(label, probe)                                                                   \
	{label ", priority decay", "zatti-binary", "workload=probe:" probe},                       \
	{                                                                                          \
		label ", equal shares", "zatti-binary",                                            \
			"workload=probe:" probe " priority_decay=0"                                \
	}
static const struct series schedulers[] = {SCHEDULERS("CPU", "cpu"), SCHEDULERS("IO", "io"),
					   SCHEDULERS("CC", "cc"), END};
static const struct series targets[] = {
	{"CPU", "zatti-binary", "workload=probe:cpu"},
	{"IO", "zatti-binary", "workload=probe:io"},
	{"IO, real of 40", "zatti-real", "workload=probe:io zatti_blocks_per_s=40"},
	END,
};
static const struct claim scheduler_claims[] = {
	ORDINAL(TREND, "(ours) response rises with the load under either scheduler", .a = "*",
		.measure = M_LOCAL_S),
	ORDINAL(BELOW, "(ours) a CPU probe gains from the decay of others' priority",
		.a = "CPU, priority decay", .b = "CPU, equal shares", .measure = M_LOCAL_S),
	CLAIMS_END,
};

/* --- clouds under other backgrounds ----------------------------------------------------- */

static const struct point month[] = {{"a month", NAN, NULL}, POINTS_END};
static const struct scatter blocks_by_load = {PROBE_LOAD, {PROBE_BLOCKS}, false};
static const struct scatter remote_by_blocks = {PROBE_BLOCKS, {PROBE_REMOTE_S}, false};
static const struct scatter by_blocks = {PROBE_BLOCKS, {PROBE_LOCAL_S}, false};

static const struct series levels[] = {
	{"day, night and moods", "zatti-binary", NULL},
	{"one level", "zatti-binary", "load.swing=0 load.mood_sd=0"},
	END,
};
static const struct claim level_claims[] = {
	ORDINAL(CODE, "(ours) no correlation where the mean load does not change", .a = "one level",
		.x = PROBE_LOAD, .y = PROBE_BLOCKS, .printed = 0.3, .code = claim_uncorrelated),
	CLAIMS_END,
};

static const struct series idle_targets[] = {
	{"remote 1.5", "zatti-binary", NULL},
	{"remote 0.5", "zatti-binary", "load.remote=0.5"},
	END,
};
static const struct claim target_claims[] = {
	ORDINAL(CODE,
		"(ours) with half a loop on the remote machine, the response there is "
		"nearly constant",
		.a = "remote 0.5", .x = PROBE_BLOCKS, .y = PROBE_REMOTE_S, .printed = 0.25,
		.code = claim_nearly_constant),
	CLAIMS_END,
};

static const struct series mixes[] = {
	{"30 % i-o-bound", "zatti-binary", NULL},
	{"all i-o-bound", "zatti-binary", "load.io_share=1"},
	{"30 %, at a tenth of the rate", "zatti-binary", "load.loop_io_per_ms=0.01336"},
	END,
};
static const struct claim mix_claims[] = {
	ORDINAL(CODE, "(ours) without CPU-bound loops traffic correlates clearly with response",
		.a = "all i-o-bound", .x = PROBE_BLOCKS, .y = PROBE_LOCAL_S, .printed = 0.5,
		.code = claim_correlates),
	CLAIMS_END,
};

/* For curves of many points, a third of the executions in the same number of days is enough. */
#define A_THIRD		  "load.jobs=97"
#define OURS(id_, title_) .id = "ZAT-" id_, .paper = "ZAT", .title = "(ours) " title_
#define WINS		  .y = M_WIN
#define CLOUD		  .points = month, .plot = PLOT_SCATTER, .y = M_LOCAL_S

const struct experiment zat_bound_experiments[] = {
	{OURS("QUEUE", "win rate by the local threshold of the run queue and the delta"), WINS,
	 .x_name = "zatti_queue (processes)", .axis = "zatti_queue", .values = "0.5 1 2 3 4 5 6 8",
	 .series = deltas, .facets = true},
	{OURS("IDLE", "win rate by the threshold of cpu_idle, binary"), WINS,
	 .settings = "zatti_idle=1", .x_name = "zatti_idle_percent", .axis = "zatti_idle_percent",
	 .values = "1 5 10 20 30 40 50", .series = all_probes},
	{OURS("SYSTEM", "win rate with cpu_idle by the share that the system's own work takes"),
	 WINS, .settings = A_THIRD, .x_name = "share of the processor", .axis = "load.system",
	 .values = "0 0.2 0.4 0.43 0.45 0.5", .series = idle_forms, .facets = true},
	{OURS("BLOCKS", "win rate by the threshold of i/o traffic"), WINS,
	 .x_name = "zatti_blocks_per_s", .axis = "zatti_blocks_per_s",
	 .values = "2 5 10 15 20 25 30 35 40", .series = io_and_cc},
	{OURS("IO-FIELD", "win rate where the i/o field alone decided"), .y = M_WIN_IO,
	 .x_name = "zatti_blocks_per_s", .axis = "zatti_blocks_per_s",
	 .values = "2 5 10 15 20 25 30", .series = cc_alone},
	{OURS("MIX", "win rate by the share of i/o-bound loops"), WINS, .settings = A_THIRD,
	 .x_name = "load.io_share", .axis = "load.io_share", .values = "0.1 0.3 0.5 0.7 0.9 1",
	 .series = cpu_and_io},
	{OURS("LOAD", "win rate by how busy the local machine is"), WINS, .settings = A_THIRD,
	 .x_name = "loops present at the local machine", .axis = "load.local",
	 .values = "1 1.5 2 3 4 6", .series = cpu_and_io},
	{OURS("REMOTE", "win rate by how busy the remote machine is"), WINS, .settings = A_THIRD,
	 .x_name = "loops present at the remote machine", .axis = "load.remote",
	 .values = "0 0.5 1 1.5 2 4 6", .series = targets},
	{OURS("STAY", "win rate by how long loops stay"), WINS,
	 .settings = A_THIRD " load.short_share=0", .x_name = "mean stay of a loop (s)",
	 .axis = "load.long_s", .values = "30 100 300 1000 3000", .series = cpu_and_io},
	{OURS("DECAY", "local response by load, with and without priority decay"),
	 .settings = A_THIRD " load.io_share=0 load.short_share=0 load.long_s=100000 load.swing=0 "
			     "load.mood_sd=0",
	 .y = M_LOCAL_S, .x_name = "CPU-bound loops present", .axis = "load.local",
	 .values = "0.5 1 2 4 8", .series = schedulers, .facets = true, .claims = scheduler_claims},
	{OURS("LEVEL", "i/o traffic by load average, with and without changes of the mean load"),
	 CLOUD, .settings = "workload=probe:io", .series = levels, .scatter = &blocks_by_load,
	 .claims = level_claims},
	{OURS("TRAFFIC", "IO probe by i/o traffic, other loops"), CLOUD,
	 .settings = "workload=probe:io", .series = mixes, .claims = mix_claims,
	 .scatter = &by_blocks},
	{OURS("TARGET", "IO probe, remote, by how busy the remote machine is"), CLOUD,
	 .settings = "workload=probe:io", .series = idle_targets, .scatter = &remote_by_blocks,
	 .claims = target_claims},
	{OURS("LOOP-IO", "win rate by the disk demand of an i/o-bound loop"), WINS,
	 .settings = A_THIRD, .x_name = "accesses per ms of a loop's computation",
	 .axis = "load.loop_io_per_ms", .values = "0.005 0.01 0.02 0.05 0.1336 0.3",
	 .series = cpu_and_io},
	{.id = NULL},
};
