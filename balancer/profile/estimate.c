/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See estimate.h. */
#include "balancer/profile/estimate.h"

#include <math.h>

#define FAIR 0.6
#define HIGH 0.8

/* A line through the runs whose sizes are known. */
struct line {
	size_t n;
	double mean_x, mean_y, sxx, base, per_mb;
	double most_x, most_y;
};

static double estimate_confidence(double spread, double value, size_t n, double counting)
{
	double seen = value > 0 ? spread / value : 0;
	double v2 = ((double)(n - 1) * seen * seen + 2 * 0.5 * 0.5) / (double)(n + 1);

	return 1 / (1 + 2 * sqrt(v2 / counting));
}

static void estimate_mean(const double *need, size_t n, struct estimate *out)
{
	double weight = 1, total = 0, squares = 0, sum = 0, off = 0, counting;

	for (size_t i = 0; i < n; i++, weight *= ESTIMATE_DECAY) {
		total += weight;
		squares += weight * weight;
		sum += weight * need[i];
	}
	counting = total * total / squares;
	out->value = sum / total;
	weight = 1;
	for (size_t i = 0; i < n; i++, weight *= ESTIMATE_DECAY)
		off += weight * (need[i] - out->value) * (need[i] - out->value);
	out->spread = n > 1 ? sqrt(off / total * counting / (counting - 1)) : 0;
	out->runs = (unsigned)n;
	out->confidence = estimate_confidence(out->spread, out->value, n, counting);
}

/* Returns how many different sizes there are, up to ESTIMATE_LEAST. */
static unsigned estimate_sizes(const double *size_mb, size_t n)
{
	double seen[ESTIMATE_LEAST];
	unsigned different = 0;

	for (size_t i = 0; i < n && different < ESTIMATE_LEAST; i++) {
		unsigned j = 0;

		while (j < different && seen[j] != size_mb[i])
			j++;
		if (j == different && size_mb[i] >= 0)
			seen[different++] = size_mb[i];
	}
	return different;
}

static bool line_fit(const double *need, const double *size_mb, size_t n, struct line *l)
{
	double sxy = 0;

	*l = (struct line){0};
	for (size_t i = 0; i < n; i++) {
		if (size_mb[i] < 0)
			continue;
		l->n++;
		l->mean_x += size_mb[i];
		l->mean_y += need[i];
		l->most_x = fmax(l->most_x, size_mb[i]);
		l->most_y = fmax(l->most_y, need[i]);
	}
	l->mean_x /= (double)l->n;
	l->mean_y /= (double)l->n;
	for (size_t i = 0; i < n; i++) {
		if (size_mb[i] < 0)
			continue;
		l->sxx += (size_mb[i] - l->mean_x) * (size_mb[i] - l->mean_x);
		sxy += (size_mb[i] - l->mean_x) * (need[i] - l->mean_y);
	}
	if (!(l->sxx > 0))
		return false;
	l->per_mb = sxy / l->sxx;
	l->base = l->mean_y - l->per_mb * l->mean_x;
	return isfinite(l->base) && l->per_mb > 0;
}

/* Sums the squares of the errors of line and mean at runs left out; a negative LINE: unknown. */
static void line_errors(const struct line *l, const double *need, const double *size_mb, size_t n,
			double *line, double *mean)
{
	double k = (double)l->n;

	*line = *mean = 0;
	for (size_t i = 0; i < n; i++) {
		double dx = size_mb[i] - l->mean_x, left = 1 - 1 / k - dx * dx / l->sxx;
		double e = need[i] - l->base - l->per_mb * size_mb[i];

		if (size_mb[i] < 0)
			continue;
		/* The only run of its size far from all others says nothing of the line. */
		if (left < 1e-9) {
			*line = -1;
			return;
		}
		*line += e / left * (e / left);
		e = k / (k - 1) * (need[i] - l->mean_y);
		*mean += e * e;
	}
}

static void estimate_line(const double *need, const double *size_mb, size_t n, double wanted_mb,
			  struct estimate *out)
{
	double line, mean, size;
	struct line l;

	if (wanted_mb < 0 || estimate_sizes(size_mb, n) < ESTIMATE_LEAST ||
	    !line_fit(need, size_mb, n, &l))
		return;
	line_errors(&l, need, size_mb, n, &line, &mean);
	if (!(line >= 0 && line < ESTIMATE_CLEAR * mean))
		return;
	size = fmin(wanted_mb, ESTIMATE_BEYOND * l.most_x);
	*out = (struct estimate){
		.value = fmin(fmax(0, l.base + l.per_mb * size), ESTIMATE_BEYOND * l.most_y),
		.spread = sqrt(line / (double)l.n),
		.runs = (unsigned)l.n,
		.line = true,
		.base = l.base,
		.per_mb = l.per_mb,
	};
	out->confidence = estimate_confidence(out->spread, out->value, l.n, (double)l.n);
}

void estimate_make(const double *need, const double *size_mb, size_t n, double wanted_mb,
		   struct estimate *out)
{
	*out = (struct estimate){0};
	if (!n)
		return;
	estimate_mean(need, n, out);
	estimate_line(need, size_mb, n, wanted_mb, out);
}

const char *estimate_confidence_word(double confidence)
{
	if (confidence <= 0)
		return "none";
	return confidence < FAIR ? "low" : confidence < HIGH ? "fair" : "high";
}
