/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What gain.c (who counts, and the tables) and gain_interval.c (the bootstrap) share. */
#ifndef IOCOM_GAIN_PRIVATE_H
#define IOCOM_GAIN_PRIVATE_H

#include "balancer/report/gain.h"

/* Neighbours in the errors: those of one class, or all. */
struct gain_class {
	size_t begin, n;
	size_t draws; /* how many to draw: the effective number (gain.h) */
};

/* The errors of the jobs that stayed, class after class. */
struct gain_errors {
	double *all;	 /* as measured */
	double *weights; /* expected times; their sum up to and with each one in `upto` */
	double *upto;
	double *pool, *own; /* drawn ones: of all, and within each class from its begin on */
	size_t n;
	struct gain_class whole, *classes;
	size_t nclasses;
};

/* A job that left and is judged. */
struct gain_item {
	double wall_ms, expected_ms; /* expected at home */
	double home_ms;		     /* what it would have taken there, on average over errors */
	const double *errors;	     /* the drawn ones, in `pool` or `own` */
	size_t nerrors;
};

/* The judged jobs of a row; the row says how many they are. */
struct gain_part {
	struct gain_row *row;
	const struct gain_item **items;
	double *sums;	/* gains, a round each */
	uint64_t state; /* of its random numbers */
};

double gain_at_home(const struct gain_item *item, double error);
/* The quantile Q of N sorted VALUES, between the closest ranks; N is not 0. */
double gain_quantile(const double *values, size_t n, double q);
void gain_sort(double *values, size_t n);
/* Sets low_ms and high_ms of the rows of PARTS. */
void gain_intervals(struct gain_errors *errors, struct gain_part *parts, size_t nparts);

#endif
