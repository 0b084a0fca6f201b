/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Axes of figures; see axis.h. */
#include "sim/report/axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NARROW	     3.0  /* values within this factor need no logarithmic axis */
#define HIDDEN	     0.1  /* a series below this part of the axis cannot be read */
#define CROWDED	     0.07 /* points nearer than this part of the axis cannot be told apart */
#define WIDEST	     2.0  /* times the value: the end of an interval that is still shown */
#define TICS_WANTED  6
#define LETTER_WIDTH 7.4
#define LABEL_GAP    10.0

void axis_values_init(struct axis_values *v)
{
	*v = (struct axis_values){INFINITY, -INFINITY, INFINITY, -INFINITY};
}

static int axis_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void axis_values_add(struct axis_values *v, const double *value, const double *high, size_t n)
{
	double sorted[n + 1];
	size_t finite = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(value[i]))
			continue;
		sorted[finite++] = value[i];
		v->least = fmin(v->least, value[i]);
		v->most = fmax(v->most, value[i]);
		v->reach = fmax(v->reach, value[i]);
		/* An interval that is wider than the values themselves may leave the figure. */
		if (high && isfinite(high[i]))
			v->reach = fmax(v->reach, fmin(high[i], WIDEST * value[i]));
	}
	if (!finite)
		return;
	qsort(sorted, finite, sizeof(*sorted), axis_order);
	v->lowest_middle = fmin(v->lowest_middle, sorted[(finite - 1) / 2]);
}

/* --- linear ------------------------------------------------------------------------ */

static double nice_step(double range, unsigned int steps)
{
	double rough = range / steps, power = pow(10, floor(log10(rough)));

	for (int i = 0; i < 3; i++)
		if (rough <= power * (double[]){1, 2, 5}[i] * (1 + 1e-9))
			return power * (double[]){1, 2, 5}[i];
	return power * 10;
}

void axis_fit_between(struct axis *a, double low, double high, unsigned int tics)
{
	double step;

	if (!isfinite(low) || !isfinite(high))
		low = high = 0;
	if (!(high > low))
		high = low + (fabs(low) > 0 ? fabs(low) : 1);
	step = nice_step(high - low, tics);
	a->log = false;
	a->low = floor(low / step + 1e-9) * step;
	a->high = ceil(high / step - 1e-9) * step;
	a->ntics = 0;
	for (double k = 0; a->low + k * step <= a->high + step / 2 && a->ntics < AXIS_TICS; k++) {
		double tic = a->low + k * step;

		a->tic[a->ntics++] = fabs(tic) < step * 1e-6 ? 0 : tic;
	}
}

/* --- logarithmic ------------------------------------------------------------------- */

/* Writes the numbers MANTISSA x 10^k inside the axis, every STRIDE-th power. */
static void log_tics(struct axis *a, const double *mantissa, size_t n, int stride)
{
	int first = (int)floor(log10(a->low)), last = (int)ceil(log10(a->high));

	a->ntics = 0;
	for (int p = first; p <= last; p++) {
		if (((p % stride) + stride) % stride)
			continue;
		for (size_t i = 0; i < n; i++) {
			double tic = mantissa[i] * pow(10, p);

			if (tic < a->low * (1 - 1e-9) || tic > a->high * (1 + 1e-9))
				continue;
			if (a->ntics == AXIS_TICS)
				return;
			a->tic[a->ntics++] = tic;
		}
	}
}

static void fit_log(struct axis *a, double low, double high)
{
	static const double fine[] = {1, 1.5, 2, 3, 4, 5, 6, 8}, middle[] = {1, 2, 5},
			    coarse[] = {1};
	double decades;

	a->log = true;
	a->low = low;
	a->high = high;
	decades = log10(high / low);
	if (decades <= 1)
		log_tics(a, fine, 8, 1);
	else if (decades <= 2.4)
		log_tics(a, middle, 3, 1);
	else
		log_tics(a, coarse, 1, 1 + (int)(decades / 8));
	if (a->ntics < 2)
		log_tics(a, fine, 8, 1);
}

/* --- all --------------------------------------------------------------------------- */

void axis_fit(struct axis *a, const struct axis_values *v, bool log)
{
	bool hidden, narrow;

	if (!isfinite(v->least) || !isfinite(v->most)) {
		axis_fit_between(a, 0, 1, TICS_WANTED);
		return;
	}
	hidden = v->lowest_middle < HIDDEN * v->reach;
	narrow = v->most < NARROW * v->least;
	if (v->least > 0 && ((log && !narrow) || hidden))
		fit_log(a, v->least / 1.4, v->reach * 1.2);
	else
		axis_fit_between(a, fmin(v->least, 0), fmax(v->reach, 0), TICS_WANTED);
}

void axis_fit_points(struct axis *a, const double *x, size_t n)
{
	double low = INFINITY, high = -INFINITY, gap = INFINITY, room;

	for (size_t i = 0; i < n; i++) {
		low = fmin(low, x[i]);
		high = fmax(high, x[i]);
		for (size_t k = 0; k < i; k++)
			if (x[i] != x[k])
				gap = fmin(gap, fabs(x[i] - x[k]));
	}
	a->ntics = 0;
	a->log = low > 0 && high / low >= 10 && gap < CROWDED * (high - low);
	room = a->log ? pow(high / low, 0.04) : 0.04 * (high - low);
	if (!(high > low))
		room = a->log ? 2 : 1;
	a->low = a->log ? low / room : low - room;
	a->high = a->log ? high * room : high + room;
}

double axis_at(const struct axis *a, double value)
{
	if (a->log)
		return value > 0 ? log(value / a->low) / log(a->high / a->low) : -INFINITY;
	return (value - a->low) / (a->high - a->low);
}

double axis_value(const struct axis *a, double at)
{
	return a->log ? a->low * pow(a->high / a->low, at) : a->low + at * (a->high - a->low);
}

void axis_label(double value, char out[AXIS_LABEL])
{
	double magnitude = fabs(value);

	if (magnitude >= 1e5 || (magnitude > 0 && magnitude < 1e-3)) {
		int power = (int)floor(log10(magnitude) + 1e-9);

		snprintf(out, AXIS_LABEL, "%.3ge%d", value / pow(10, power), power);
	} else {
		snprintf(out, AXIS_LABEL, "%.6g", value);
	}
}

double axis_text_width(const char *text)
{
	size_t letters = 0;

	for (; *text; text++)
		letters += ((unsigned char)*text & 0xc0) != 0x80; /* UTF-8 */
	return LETTER_WIDTH * (double)letters;
}

void axis_labels_fit(const double *at, const char *const *label, size_t n, double length,
		     bool *fits)
{
	double end = -INFINITY, last = 0;

	for (size_t i = 0; i < n; i++)
		fits[i] = false;
	if (n)
		last = at[n - 1] * length - axis_text_width(label[n - 1]) / 2;
	for (size_t i = 0; i < n; i++) {
		double half = axis_text_width(label[i]) / 2, middle = at[i] * length;

		if (i && i + 1 < n && (middle - half < end || middle + half + LABEL_GAP > last))
			continue;
		fits[i] = true;
		end = middle + half + LABEL_GAP;
	}
}
