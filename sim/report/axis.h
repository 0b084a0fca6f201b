/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Axes of figures, pure: which scale shows all series, which range holds all values, and which
 * labels fit.  Every axis gets two labels at least.
 */
#ifndef SIM_REPORT_AXIS_H
#define SIM_REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#define AXIS_TICS  12
#define AXIS_LABEL 16 /* bytes of a number at an axis */

struct axis {
	bool log;
	double low, high; /* low < high; low > 0 if logarithmic */
	double tic[AXIS_TICS];
	size_t ntics; /* at least 2 */
};

/* What the values of a figure ask of an axis. */
struct axis_values {
	double least, most;   /* of all values */
	double lowest_middle; /* of each series' median, the least */
	double reach;	      /* the highest end of an interval that should be seen */
};

void axis_values_init(struct axis_values *v);
/* Adds the values of one series (not finite ones are left out) and the ends of their intervals. */
void axis_values_add(struct axis_values *v, const double *value, const double *high, size_t n);

/*
 * Fits an axis.  It is logarithmic if LOG asks for it and the values differ by more than a factor
 * of three, and also if else half of a series would lie in the lowest tenth; never with values <=
 * 0. Without values it goes from 0 to 1.
 */
void axis_fit(struct axis *a, const struct axis_values *v, bool log);
/* Fits a linear axis that need not begin at 0, with about TICS labels. */
void axis_fit_between(struct axis *a, double least, double most, unsigned int tics);
/* Fits an axis to points that are named at it: logarithmic if they crowd at one end. */
void axis_fit_points(struct axis *a, const double *x, size_t n);
/* Where VALUE is on the axis: 0 at its low end, 1 at its high end. */
double axis_at(const struct axis *a, double value);
/* The value at AT; the inverse of axis_at. */
double axis_value(const struct axis *a, double at);
void axis_label(double value, char out[AXIS_LABEL]);
/*
 * Chooses which of N labels, in ascending order of AT, fit on LENGTH pixels; sets FITS.  The first
 * and the last always do.
 */
void axis_labels_fit(const double *at, const char *const *label, size_t n, double length,
		     bool *fits);
/* Estimated width of TEXT in pixels at a font size of 13. */
double axis_text_width(const char *text);

#endif
