/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * GAP-FC, GAP-ACM: the gap between arrivals that a paper's common configuration had before and has
 * now, chosen after seeing outcomes.  The claims say how many of the paper's own hold under both,
 * those that calibrate included, and which change; at most READING_SEEDS runs per cell.
 *
 * Which claims may calibrate.  A paper has one configuration for all its figures.  When a value is
 * chosen by outcomes, a claim whose verdict became better by that choice has led to it, and so has
 * a figure whose levels set a value: they calibrate (struct claim), are shown with their verdicts
 * and count no more.  Claims that became worse go on counting.
 */
#include <math.h>

#include "sim/experiments/acm.h"
#include "sim/experiments/code_claims.h"
#include "sim/experiments/tables.h"

#define TURNS(id, paper_, where)                                                                   \
	ORDINAL(CODE, "(ours) claims of " paper_ " turn: " where, .a = paper_, .at = where,        \
		.printed = 1, .code = claim_reading,                                               \
		.why = "the claims that were judged have the same outcome", .bound = id)

static const struct reading fc_gaps[] = {
	{.label = "160 ms"},
	{.label = "130 ms, as before", .settings = "load.interarrival_ms=130"},
	{.label = NULL},
};
static const struct claim fc_claims[] = {TURNS("GAP-FC", "FC", "130 ms, as before"), CLAIMS_END};

/* ACM-1 keeps as many tasks per second as the others. */
static const struct reading acm_gaps[] = {
	{.label = "200 ms"},
	{.label = "300 ms, as before",
	 .settings = "load.interarrival_ms=300",
	 .other = "ACM-1",
	 .other_settings = "load.interarrival_ms=51.7"},
	{.label = NULL},
};
static const struct claim acm_claims[] = {TURNS("GAP-ACM", "ACM", "300 ms, as before"), CLAIMS_END};

const struct experiment gap_experiments[] = {
	{.id = "GAP-FC",
	 .paper = "OURS",
	 .config = "FC",
	 .title = "the gap between arrivals of FC: 130 ms before, 160 ms now",
	 .settings = "load.io_per_ms=2.8 load.faults_per_ms=2",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "130 160",
	 .policies = "nlb cm io wal wal-fc",
	 .log_y = true,
	 .claims = fc_claims,
	 .readings = fc_gaps,
	 .judged = "FC-ABS FC-3-DATA FC-THR FC-4.1 FC-4.2 FC-5.1 FC-5.2 FC-5.3 FC-5.4 FC-5.5 "
		   "FC-CONC"},
	{.id = "GAP-ACM",
	 .paper = "OURS",
	 .config = "ACM",
	 .title = "the gap between arrivals of ACM: 300 ms before, 200 ms now",
	 .settings = "workload=gen:acm-30 load.faults_per_ms=0.5 load.io_per_ms=0.7",
	 .x_name = "mean gap between arrivals (ms)",
	 .axis = "load.interarrival_ms",
	 .values = "200 300",
	 .policies = "nlb cpu-re mem-re iocm-re-hom iocm-pm",
	 .log_y = true,
	 .claims = acm_claims,
	 .readings = acm_gaps,
	 .judged = "ACM-ABS ACM-1 ACM-2 ACM-3 ACM-4 ACM-5 ACM-6 ACM-7 ACM-8"},
	{.id = NULL},
};
