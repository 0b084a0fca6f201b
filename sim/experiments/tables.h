/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The tables of experiments, one file per paper; each table ends with a NULL id. */
#ifndef SIM_EXPERIMENTS_TABLES_H
#define SIM_EXPERIMENTS_TABLES_H

#include "sim/experiments/experiment.h"

/* A claim: ORDINAL(BELOW, "what the paper says", .a = "wal", .b = "nlb"). */
#define ORDINAL(kind_, text_, ...)                                                                 \
	{                                                                                          \
		.type = CLAIM_ORDINAL, .kind = CLAIM_##kind_, .text = (text_), __VA_ARGS__         \
	}
#define QUANTITATIVE(kind_, text_, ...)                                                            \
	{                                                                                          \
		.type = CLAIM_QUANTITATIVE, .kind = CLAIM_##kind_, .text = (text_), __VA_ARGS__    \
	}
#define CLAIMS_END                                                                                 \
	{                                                                                          \
		.text = NULL                                                                       \
	}

extern const struct paper fc_paper, sld_paper, acm_paper, acm_app_paper, acm_het_paper, com_paper,
	zat_paper, csd_paper, own_paper;

extern const struct point acm_applications[]; /* the six applications, each with its workload */

extern const struct experiment fc_experiments[];
extern const struct experiment fc_control_experiments[]; /* ours: bounds and controllers */
extern const struct experiment sld_experiments[];
extern const struct experiment acm_experiments[];     /* homogeneous clusters */
extern const struct experiment acm_het_experiments[]; /* heterogeneous clusters */
extern const struct experiment com_experiments[];
extern const struct experiment zat_experiments[];	/* win rates */
extern const struct experiment zat_bound_experiments[]; /* ours: what determines them */
extern const struct experiment zat_index_experiments[]; /* responses by load index */
extern const struct experiment extra_experiments[];	/* ours: bounds, controller, cross-checks */
extern const struct experiment read_experiments[];	/* READ-1 .. READ-8: the readings */
extern const struct experiment gap_experiments[];	/* ours: gaps chosen by outcomes */

#endif
