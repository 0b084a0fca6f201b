/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* ZAT, chapter 4: how a probe's response depends on the load indices (MODEL 6.5). */
#include <math.h>

#include "sim/experiments/probe_claims.h"
#include "sim/experiments/tables.h"

#define END                                                                                        \
	{                                                                                          \
		NULL, NULL, NULL                                                                   \
	}
static const struct point month[] = {{"a month", NAN, NULL}, {NULL, 0, NULL}};
static const struct series one_cpu[] = {{"CPU", "zatti-binary", "workload=probe:cpu"}, END};
static const struct series one_nroff[] = {{"NROFF", "zatti-binary", "workload=probe:nroff"}, END};
static const struct series one_io[] = {{"IO", "zatti-binary", "workload=probe:io"}, END};
static const struct series cpu_and_io[] = {{"CPU", "zatti-binary", "workload=probe:cpu"},
					   {"IO", "zatti-binary", "workload=probe:io"},
					   END};

/* --- 4.1: spring 1984 ------------------------------------------------------------------ */

static const struct scatter three_ways = {
	PROBE_LOAD, {PROBE_LOCAL_S, PROBE_REMOTE_S, PROBE_PURE_S}, false};
static const struct scatter load_plane = {PROBE_LOAD, {PROBE_R_LOAD}, true};

#define DSH "fixed_cost_ms=16000 load.busy_local_ms=0 load.busy_remote_ms=0"

#define THRESHOLDS(label)                                                                          \
	ORDINAL(CODE, "local is better below a threshold of local load, remote above it",          \
		.a = label, .x = PROBE_LOAD, .y = PROBE_LOCAL_S, .y2 = PROBE_REMOTE_S,             \
		.code = claim_crossing),                                                           \
		ORDINAL(CODE, "above it noticeable gains if a machine is little loaded",           \
			.a = label, .x = PROBE_LOAD, .y = PROBE_LOCAL_S, .y2 = PROBE_REMOTE_S,     \
			.code = claim_gain_at_idle_target),                                        \
		QUANTITATIVE(NOT_TESTED, "dsh takes 16 s on the average",                          \
			     .why = "it is an input of this figure")
static const struct claim f3_claims[] = {THRESHOLDS("CPU"), CLAIMS_END};
static const struct claim f4_claims[] = {THRESHOLDS("NROFF"), CLAIMS_END};

static const struct claim f5_claims[] = {
	ORDINAL(CODE, "balance where local > local threshold and remote < remote threshold",
		.a = "CPU", .x = PROBE_LOAD, .y = PROBE_R_LOAD, .code = claim_rectangle,
		.reading = "the best such area: inside mostly the remote site is faster, outside "
			   "mostly the local site"),
	CLAIMS_END,
};

/* --- 4.2: one machine, controlled backgrounds ------------------------------------------ */

static const struct scatter by_load = {PROBE_LOAD, {PROBE_LOCAL_S}, false};
static const struct scatter by_blocks = {PROBE_BLOCKS, {PROBE_LOCAL_S}, false};
static const struct scatter by_free = {PROBE_FREE, {PROBE_LOCAL_S}, false};
static const struct scatter active_by_load = {PROBE_LOAD, {PROBE_ACTIVE}, false};
static const struct scatter blocks_by_load = {PROBE_LOAD, {PROBE_BLOCKS}, false};

static const struct claim f6_claims[] = {
	ORDINAL(CODE, "response grows roughly linearly with the load average", .a = "CPU",
		.x = PROBE_LOAD, .y = PROBE_LOCAL_S, .printed = 0.8, .code = claim_correlates,
		.reading = "a correlation of 0.8 or more"),
	CLAIMS_END,
};

static const struct claim f7_claims[] = {
	ORDINAL(CODE, "not monotone: response decreases beyond some load", .a = "CPU",
		.x = PROBE_LOAD, .y = PROBE_LOCAL_S, .code = claim_falls_again,
		.why = "a new process keeps its higher priority for its first two seconds of "
		       "computation, whatever the load, and then gets the same share as the "
		       "others",
		.bound = "ZAT-DECAY"),
	CLAIMS_END,
};

static const struct claim f8_claims[] = {
	ORDINAL(CODE, "CPU-bound: almost linear", .a = "CPU", .x = PROBE_LOAD, .y = PROBE_LOCAL_S,
		.printed = 0.8, .code = claim_correlates),
	ORDINAL(CODE, "load average correlates badly with i/o-bound jobs", .a = "CPU", .b = "IO",
		.x = PROBE_LOAD, .y = PROBE_LOCAL_S, .code = claim_correlates_more,
		.reading = "it correlates worse than with CPU-bound jobs"),
	ORDINAL(CODE, "i/o-bound flattens", .a = "CPU", .b = "IO", .x = PROBE_LOAD,
		.y = PROBE_LOCAL_S, .code = claim_grows_more,
		.reading = "it grows less than for CPU-bound jobs"),
	CLAIMS_END,
};

static const struct claim f9_claims[] = {
	QUANTITATIVE(NOT_TESTED, "maximum throughput is about 18 blocks/s",
		     .why = "it is an input of this figure"),
	ORDINAL(CODE,
		"at full load the i/o job's response grows very fast, the CPU job's more "
		"slowly",
		.a = "IO", .b = "CPU", .x = PROBE_BLOCKS, .y = PROBE_LOCAL_S,
		.code = claim_grows_more),
	CLAIMS_END,
};

static const struct claim f10_claims[] = {
	QUANTITATIVE(CODE, "correlation of the free list with response -0.6", .a = "CPU",
		     .x = PROBE_FREE, .y = PROBE_LOCAL_S, .printed = -0.6,
		     .code = claim_correlation),
	QUANTITATIVE(CODE, "correlation of the active list with response 0.7", .a = "CPU",
		     .x = PROBE_ACTIVE, .y = PROBE_LOCAL_S, .printed = 0.7,
		     .code = claim_correlation),
	ORDINAL(CODE, "most good responses are at a long free list", .a = "CPU", .x = PROBE_FREE,
		.y = PROBE_LOCAL_S, .printed = -0.3, .code = claim_correlates,
		.reading = "the memory of each loop is drawn at random, which is an input"),
	QUANTITATIVE(NOT_TESTED, "thrashing is expected below 500 free pages",
		     .why = "the thesis never observed it either; the probes here do not page"),
	CLAIMS_END,
};

static const struct claim f11_claims[] = {
	QUANTITATIVE(CODE, "correlation of the active list with the load average 0.74", .a = "CPU",
		     .x = PROBE_LOAD, .y = PROBE_ACTIVE, .printed = 0.74,
		     .code = claim_correlation),
	CLAIMS_END,
};

static const struct claim f12_claims[] = {
	ORDINAL(CODE, "no correlation of i/o traffic with the load average", .a = "IO",
		.x = PROBE_LOAD, .y = PROBE_BLOCKS, .printed = 0.3, .code = claim_uncorrelated,
		.reading = "weaker than 0.3",
		.why = "the mean number of all loops changes with day and mood, and with it the "
		       "number of i/o-bound loops; at a constant level there is no correlation",
		.bound = "ZAT-LEVEL"),
	ORDINAL(CODE, "the i/o system is at its full rate even with few processes", .a = "IO",
		.x = PROBE_LOAD, .y = PROBE_BLOCKS, .printed = 0.9, .code = claim_full_at_few),
	CLAIMS_END,
};

#define CHAPTER_4(id_) .id = "ZAT-4." id_, .paper = "ZAT", .points = month
#define CLOUD	       .plot = PLOT_SCATTER, .y = M_LOCAL_S

const struct experiment zat_index_experiments[] = {
	{CHAPTER_4("1-F3"), .title = "CPU probe in three ways, by local load", .settings = DSH,
	 .series = one_cpu, CLOUD, .scatter = &three_ways,
	 .reading = "the text does not say which probes F3 and F4 show", .claims = f3_claims},
	{CHAPTER_4("1-F4"), .title = "NROFF probe in three ways, by local load", .settings = DSH,
	 .series = one_nroff, CLOUD, .scatter = &three_ways,
	 .reading = "the text does not say which probes F3 and F4 show", .claims = f4_claims},
	{CHAPTER_4("1-F5"), .title = "the faster site by local and remote load", .settings = DSH,
	 .series = one_cpu, CLOUD, .scatter = &load_plane, .claims = f5_claims},
	{CHAPTER_4("2-F6"), .title = "CPU probe, CPU-bound background",
	 .settings = "load.io_share=0", .series = one_cpu, CLOUD, .scatter = &by_load,
	 .claims = f6_claims},
	{CHAPTER_4("2-F7"), .title = "CPU probe, long-running background",
	 .settings = "load.io_share=0 load.short_share=0", .series = one_cpu, CLOUD,
	 .scatter = &by_load,
	 .reading = "another background: all loops are long-running, as in the explanation",
	 .claims = f7_claims},
	{CHAPTER_4("2-F8"), .title = "CPU and IO probe, balanced background",
	 .settings = "load.io_share=0.5", .series = cpu_and_io, CLOUD, .scatter = &by_load,
	 .claims = f8_claims},
	{CHAPTER_4("2-F9"), .title = "IO and CPU probe by i/o traffic, 18 blocks/s at most",
	 .settings = "load.io_share=0.5 nodes.disk_fixed_ms=54.5", .series = cpu_and_io, CLOUD,
	 .scatter = &by_blocks, .reading = "two drives as one queue of 18 blocks/s",
	 .claims = f9_claims},
	{CHAPTER_4("2-F10"), .title = "CPU probe by the free list", .series = one_cpu, CLOUD,
	 .scatter = &by_free, .claims = f10_claims},
	{CHAPTER_4("2-F11"), .title = "active list by load average", .series = one_cpu, CLOUD,
	 .scatter = &active_by_load, .claims = f11_claims},
	{CHAPTER_4("2-F12"), .title = "i/o traffic by load average, 40 blocks/s at most",
	 .series = one_io, CLOUD, .scatter = &blocks_by_load, .claims = f12_claims},
	{.id = NULL},
};
