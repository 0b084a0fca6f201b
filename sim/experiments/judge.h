/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * From comparisons over seeds to a verdict.
 *
 * A claim is a conjunction of groups.  A group says that at least NEED of its N comparisons are
 * true; a comparison is true if the mean of a quantity lies within bounds.  Its interval decides:
 * inside is true, outside is false, else it is undecided.
 *
 *   true   a group is when NEED comparisons are true, each at the level alpha / (N - NEED + 1)
 *   false  a group is when N - NEED + 1 comparisons are false, each at alpha / NEED, and
 *          with more than two groups, which are bounded on one side, at two groups-ths of it
 *
 * These are the corrections of Bonferroni for the conjunction of some of N hypotheses: "all of
 * them" needs none to hold (an intersection) and all N to be contradicted by one, "one of them"
 * the reverse.  So a wrong verdict has a probability of at most alpha (5 %), however many
 * comparisons a claim makes; the claims of a paper are not corrected for each other.
 *
 * Ratios are judged as logarithms, with Student's quantiles.
 */
#ifndef SIM_EXPERIMENTS_JUDGE_H
#define SIM_EXPERIMENTS_JUDGE_H

#include <math.h>

#include "sim/experiments/experiment.h"

/* One comparison. */
struct judge_term {
	struct interval i;
	double low, high; /* the bounds, in the unit of I; infinite: open */
	int a, b;	  /* for the sentence about it: numbers of rows */
	size_t from, to;  /* and of points */
	unsigned int group;
	enum {
		JUDGE_COUNTS,
		JUDGE_VETO, /* it can only contradict: undecided counts as true */
		JUDGE_LEANS /* a mean inside is enough to hold */
	} kind;
	bool beyond; /* above HIGH the claim is exceeded rather than contradicted */
};

#define JUDGE_GROUPS 260

/* For a bound that itself is outside. */
#define JUDGE_ABOVE(bound) nextafter(bound, INFINITY)
#define JUDGE_BELOW(bound) nextafter(bound, -INFINITY)

struct judge {
	double alpha;
	struct judge_term *terms; /* owned */
	size_t n, room;
	size_t need[JUDGE_GROUPS]; /* 0: all */
	unsigned int groups;
	bool no_memory;
};

/* Begins a judgement with one group that needs all. */
void judge_begin(struct judge *j, const struct claim_context *context);
/* Adds another group of which NEED comparisons must be true (0: all); returns its number. */
unsigned int judge_group(struct judge *j, size_t need);
/* Adds I, to lie between LOW and HIGH, to group 0; the result may be changed until the next call.
 * Never NULL. */
struct judge_term *judge_add(struct judge *j, struct interval i, double low, double high);

/*
 * Judges, fills OUT but for `measured` and `unit`, and frees J.  *SHOWN becomes the term that
 * decides or is nearest to failing, at the level that decided it.  Returns false if nothing can be
 * told: a term has fewer than two values; OUT says so.
 */
bool judge_end(struct judge *j, struct judgement *out, struct judge_term *shown);
/* Joins the verdicts A and B on two readings of a claim of which one suffices; OUT may be A. */
void judge_either(struct judgement *out, const struct judgement *a, const struct judgement *b);
/* Converts the interval and the bounds of OUT, which are of a factor, to another measure of it. */
void judge_by(struct judgement *out, enum ratio by);

struct claim_bounds {
	double low, high;
};

/* The largest (or least) of several ratios, wherever it is. */
struct judge_extreme {
	struct judge j;
	bool largest;
	/* where it was measured */
	int row;
	size_t point;
};

void judge_extreme_begin(struct judge_extreme *e, const struct claim_context *context,
			 bool largest);
void judge_extreme_add(struct judge_extreme *e, struct interval factor, int row, size_t point);
/*
 * Judges whether the extreme lies within BOUNDS; BEYOND: above them is exceeded.  The interval
 * reaches to where the extreme of the true means may lie.  Fills OUT but for `measured`; false as
 * judge_end.
 */
bool judge_extreme_end(struct judge_extreme *e, struct claim_bounds bounds, bool beyond,
		       struct judgement *out);

#endif
