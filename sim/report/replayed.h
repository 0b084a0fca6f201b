/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a replay says besides the usual table: who wins and loses, and what to choose. */
#ifndef SIM_REPORT_REPLAYED_H
#define SIM_REPORT_REPLAYED_H

#include "sim/report/report.h"

#define REPLAYED_TEXT	  800
#define REPLAYED_JOBS_MIN 10  /* users with fewer jobs are not told one by one */
#define REPLAYED_CLEARLY  0.1 /* a user wins or loses by more than this share */

/* The answer of one point of a replay. */
struct replayed_advice {
	int policy;		  /* the recommended series; -1: none */
	char text[REPLAYED_TEXT]; /* how the policies compare */
	char verdict[128];	  /* "recommended: ...", "nothing is told apart" */
};

struct replayed_cell {
	size_t point, series;
};

/* How a series treats the users, compared with another. */
struct replayed_users {
	unsigned int users, better, worse;
	struct replayed_user {
		double user; /* negative: there is none */
		double jobs, before, after;
	} gains, loses; /* whose mean bounded slowdown falls and rises by the largest factor */
};

/* The measure that a replay is judged by. */
enum measure replayed_measure(const struct sweep *s);
bool replayed_is_bs(const struct sweep_series *series);
/* Whether any policy lets jobs share processors: all but bs and what was recorded do. */
bool replayed_shares(const struct sweep *s);
/* Number of weeks that the jobs of the sweep arrived in. */
uint32_t replayed_weeks(const struct sweep *s);
/* Says whether the results have intervals, and of what; ends with a newline. */
void replayed_tell_intervals(const struct sweep *s, FILE *f);
void replayed_advise(const struct sweep *s, size_t point, struct replayed_advice *out);
/* What users of BASE get in NEW. */
void replayed_compare_users(const struct sweep *s, struct replayed_cell base,
			    struct replayed_cell new, struct replayed_users *out);
/* Prints classes and users of a replay with one point.  0, -ENOMEM. */
int replayed_effects(const struct sweep *s, FILE *f);
/* Prints the last lines: what to choose at each point, and what the other points bring. */
void replayed_tell_advice(const struct sweep *s, FILE *f);
/* Adds to OUT what only replays have. */
void replayed_json(const struct sweep *s, json_t *out);
/* A row for each week, user and class. */
int replayed_csv(const struct report *r, FILE *f); /* 0, -ENOMEM */

#endif
