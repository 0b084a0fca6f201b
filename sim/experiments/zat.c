/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* ZAT: experiments and claims of the 1985 thesis (MODEL 6.5). */
#include <math.h>

#include "code_claims.h"
#include "tables.h"

static const struct paper_setting settings[] = {
	{"nodes", "2xvax", "one local and one remote machine; disk limit 40 blocks/s"},
	{"fixed_cost_ms", "5600", "ZAT-9.1: rsh, local machine loaded"},
	{"priority_decay", "1", "O-50: the measured scheduler lowers the priority of CPU hogs"},
	{NULL, NULL, NULL},
};

const struct paper zat_paper = {
	"ZAT", "ZAT: A multivariable information scheme to balance the load", settings};

const struct experiment zat_experiments[] = {
	{.id = NULL},
};
