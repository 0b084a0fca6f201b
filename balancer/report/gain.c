/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gain.h: which jobs count, the errors, the tables. */
#include "balancer/report/gain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "balancer/report/gain_private.h"

struct gain {
	const struct gain_job *jobs;
	size_t n;
	const struct gain_filter *filter;
	struct gain_report *report;
	const struct gain_job **sorted; /* room for n */
	struct gain_errors errors;
	struct gain_item *items;	/* of each job; wall_ms 0: it is not judged */
	const struct gain_item **lists; /* the judged ones of every row of every table */
	size_t nlists;
	double *sums;
	struct gain_part parts[GAIN_TABLES * GAIN_ROWS];
	size_t nparts;
};

/* --- which jobs count --------------------------------------------------------------------- */

static bool gain_is_asked(const struct gain *g, const struct gain_job *job)
{
	const struct gain_filter *f = g->filter;

	return (!f->policy || !strcasecmp(f->policy, job->policy)) &&
	       (!f->node || !strcmp(f->node, job->node));
}

static bool gain_is_time(double ms)
{
	return isfinite(ms) && ms > 0;
}

/* Why JOB is not judged; GAIN_LEFT_OUT: it is, with EXPECTED_MS. */
static enum gain_left_out gain_why_not(const struct gain_job *job, double expected_ms)
{
	if (!job->balanced)
		return GAIN_NAMED;
	if (!job->well)
		return GAIN_FAILED;
	if (!job->known || expected_ms == 0)
		return GAIN_UNKNOWN;
	return gain_is_time(job->wall_ms) && gain_is_time(expected_ms) ? GAIN_LEFT_OUT
								       : GAIN_ABSURD;
}

static bool gain_is_judged(const struct gain_job *job)
{
	return gain_why_not(job, job->expected_home_ms) == GAIN_LEFT_OUT;
}

static bool gain_stayed(const struct gain_job *job)
{
	return !job->moved && gain_is_judged(job);
}

/* --- the errors ------------------------------------------------------------------------------ */

/* Classes of different users are different classes. */
static int gain_class_order(const struct gain_job *a, const struct gain_job *b)
{
	int order = strcmp(a->user, b->user);

	return order ? order : strcmp(a->class_name, b->class_name);
}

static int gain_by_class(const void *left, const void *right)
{
	return gain_class_order(*(const struct gain_job *const *)left,
				*(const struct gain_job *const *)right);
}

static double gain_error(const struct gain_job *job)
{
	return fmin(job->wall_ms / job->expected_home_ms, GAIN_ERROR);
}

/*
 * Effective number: as many equal weights would give the mean the same variance.  One less is
 * drawn, because a sample varies less than what it is taken from.
 */
static void gain_end_class(const struct gain_errors *e, struct gain_class *class)
{
	double sum = 0, squares = 0;

	for (size_t i = class->begin; i < class->begin + class->n; i++) {
		double part = e->weights[i] / e->upto[e->n - 1]; /* squares must stay finite */

		sum += part;
		squares += part * part;
	}
	class->draws = squares > 0 ? (size_t)fmax(1, round(sum * sum / squares) - 1) : 1;
}

/* Notes the classes in g->sorted, which has the jobs that stayed. */
static void gain_classes(struct gain *g)
{
	struct gain_errors *e = &g->errors;

	for (size_t i = 0; i < e->n; i++) {
		e->all[i] = gain_error(g->sorted[i]);
		e->weights[i] = g->sorted[i]->expected_home_ms;
		e->upto[i] = (i ? e->upto[i - 1] : 0) + e->weights[i];
		if (!i || gain_class_order(g->sorted[i - 1], g->sorted[i]))
			e->classes[e->nclasses++].begin = i;
		e->classes[e->nclasses - 1].n++;
	}
	e->whole.n = e->n;
	gain_end_class(e, &e->whole);
	for (size_t c = 0; c < e->nclasses; c++)
		gain_end_class(e, &e->classes[c]);
}

static bool gain_has_scale(const struct gain_class *class)
{
	return class->n >= GAIN_STAYED && class->draws >= GAIN_EFFECTIVE;
}

static void gain_learn_errors(struct gain *g)
{
	struct gain_report *report = g->report;
	double *ratios = g->errors.pool; /* not drawn yet */

	for (size_t i = 0; i < g->n; i++)
		if (gain_stayed(&g->jobs[i]))
			g->sorted[g->errors.n++] = &g->jobs[i];
	if (!g->errors.n)
		return;
	qsort(g->sorted, g->errors.n, sizeof(g->sorted[0]), gain_by_class);
	gain_classes(g);
	for (size_t i = 0; i < g->errors.n; i++)
		ratios[i] = g->sorted[i]->wall_ms / g->sorted[i]->expected_home_ms;
	gain_sort(ratios, g->errors.n);
	report->stayed = (uint32_t)g->errors.n;
	report->stayed_median = gain_quantile(ratios, g->errors.n, 0.5);
}

/* The jobs of JOB's class that stayed; NULL: none. */
static const struct gain_class *gain_find_class(const struct gain *g, const struct gain_job *job)
{
	size_t low = 0, high = g->errors.nclasses;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gain_class *class = &g->errors.classes[middle];
		int order = gain_class_order(job, g->sorted[class->begin]);

		if (!order)
			return class;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static void gain_judge(struct gain *g, const struct gain_job *job, struct gain_item *item)
{
	const struct gain_errors *e = &g->errors;
	const struct gain_class *class = gain_find_class(g, job);
	bool own = class && gain_has_scale(class);
	double weights = 0;

	if (!own)
		class = &e->whole;
	*item = (struct gain_item){.wall_ms = job->wall_ms,
				   .expected_ms = job->expected_home_ms,
				   .errors = own ? e->own + class->begin : e->pool,
				   .nerrors = class->draws};
	for (size_t i = class->begin; i < class->begin + class->n; i++) {
		item->home_ms += e->weights[i] * gain_at_home(item, e->all[i]);
		weights += e->weights[i];
	}
	item->home_ms = weights > 0 ? item->home_ms / weights : 0;
}

/* Before g->sorted is used for the tables. */
static void gain_judge_all(struct gain *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct gain_job *job = &g->jobs[i];
		enum gain_left_out why = gain_why_not(job, job->expected_home_ms);

		if (!gain_is_asked(g, job))
			continue;
		if (why != GAIN_LEFT_OUT)
			g->report->left_out[why]++;
		else if (job->moved)
			gain_judge(g, job, &g->items[i]);
	}
}

/* --- the tables ------------------------------------------------------------------------------- */

static int gain_in_total(const void *left, const void *right)
{
	(void)left;
	(void)right;
	return 0;
}

#define BY(member)                                                                                 \
	static int gain_by_##member(const void *left, const void *right)                           \
	{                                                                                          \
		return strcmp((*(const struct gain_job *const *)left)->member,                     \
			      (*(const struct gain_job *const *)right)->member);                   \
	}
BY(policy)
BY(node)
BY(user)

static const struct {
	int (*order)(const void *left, const void *right);
	bool named;
	size_t name; /* offset of the row's name in a job */
} gain_tables[GAIN_TABLES] = {
	[GAIN_TOTAL] = {gain_in_total, false, 0},
	[GAIN_POLICY] = {gain_by_policy, true, offsetof(struct gain_job, policy)},
	[GAIN_NODE] = {gain_by_node, true, offsetof(struct gain_job, node)},
	[GAIN_USER] = {gain_by_user, true, offsetof(struct gain_job, user)},
	[GAIN_CLASS] = {gain_by_class, true, offsetof(struct gain_job, class_name)},
};

/* All jobs of one name: g->sorted from BEGIN on. */
struct gain_run {
	size_t begin, n;
	double time_ms;
};

static int gain_longest_first(const void *left, const void *right)
{
	const struct gain_run *a = left, *b = right;

	if (a->time_ms != b->time_ms)
		return a->time_ms < b->time_ms ? 1 : -1;
	return (a->begin > b->begin) - (a->begin < b->begin);
}

static double gain_time_ms(const struct gain_job *job)
{
	return gain_is_time(job->wall_ms) ? job->wall_ms : 0;
}

/* Returns how many RUNS there are in the N jobs of g->sorted. */
static size_t gain_find_runs(struct gain *g, enum gain_by by, size_t n, struct gain_run *runs)
{
	size_t nruns = 0;

	if (n)
		qsort(g->sorted, n, sizeof(g->sorted[0]), gain_tables[by].order);
	for (size_t i = 0; i < n; i++) {
		if (!i || gain_tables[by].order(&g->sorted[i - 1], &g->sorted[i]))
			runs[nruns++] = (struct gain_run){.begin = i};
		runs[nruns - 1].n++;
		runs[nruns - 1].time_ms += gain_time_ms(g->sorted[i]);
	}
	if (nruns)
		qsort(runs, nruns, sizeof(*runs), gain_longest_first);
	return nruns;
}

static void gain_add(struct gain *g, struct gain_row *row, const struct gain_job *job)
{
	const struct gain_item *item = &g->items[job - g->jobs];

	row->jobs++;
	row->left += job->balanced && job->moved;
	row->time_ms += gain_time_ms(job);
	if (item->wall_ms == 0)
		return;
	row->judged++;
	row->took_ms += item->wall_ms;
	row->home_ms += item->home_ms;
	g->lists[g->nlists++] = item;
}

static void gain_add_run(struct gain *g, struct gain_row *row, const struct gain_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		gain_add(g, row, g->sorted[run->begin + i]);
}

/* The row's judged jobs are the last of g->lists. */
static void gain_end_row(struct gain *g, struct gain_row *row)
{
	row->gain_ms = row->home_ms - row->took_ms;
	if (!gain_has_scale(&g->errors.whole) || row->judged < GAIN_LEAST) {
		row->verdict = row->judged < GAIN_LEAST ? GAIN_FEW : GAIN_NO_SCALE;
		row->home_ms = row->gain_ms = 0;
		return;
	}
	g->parts[g->nparts] = (struct gain_part){.row = row,
						 .items = g->lists + g->nlists - row->judged,
						 .sums = g->sums + g->nparts * GAIN_ROUNDS};
	g->nparts++;
}

static void gain_name_row(struct gain_row *row, enum gain_by by, const struct gain_job *job)
{
	if (!gain_tables[by].named)
		return;
	row->name = *(const char *const *)((const char *)job + gain_tables[by].name);
	row->user = job->user;
}

static void gain_make_table(struct gain *g, enum gain_by by, size_t n, struct gain_run *runs)
{
	struct gain_table *table = &g->report->by[by];
	size_t nruns = gain_find_runs(g, by, n, runs);

	table->nrows = nruns < GAIN_ROWS ? nruns : GAIN_ROWS;
	table->others = nruns > GAIN_ROWS ? nruns - GAIN_ROWS + 1 : 0;
	if (by == GAIN_TOTAL)
		table->nrows = 1;
	for (size_t r = 0; r < table->nrows; r++) {
		struct gain_row *row = &table->rows[r];
		size_t last = r + 1 == table->nrows ? nruns : r + 1;

		if (r < nruns && last == r + 1)
			gain_name_row(row, by, g->sorted[runs[r].begin]);
		for (size_t i = r; i < last; i++)
			gain_add_run(g, row, &runs[i]);
		gain_end_row(g, row);
	}
}

static int gain_make_tables(struct gain *g)
{
	struct gain_run *runs = calloc(g->n + 1, sizeof(*runs));
	size_t n = 0;

	if (!runs)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		if (gain_is_asked(g, &g->jobs[i]))
			g->sorted[n++] = &g->jobs[i];
	for (int by = 0; by < GAIN_TABLES; by++)
		gain_make_table(g, by, n, runs);
	free(runs);
	return 0;
}

static void gain_set_verdicts(struct gain *g)
{
	for (size_t p = 0; p < g->nparts; p++) {
		struct gain_row *row = g->parts[p].row;

		row->verdict = row->low_ms > 0 || row->high_ms < 0 ? GAIN_TOLD : GAIN_UNSURE;
	}
}

/* --- the predictions ---------------------------------------------------------------------------
 */

static void gain_predict(struct gain *g, double *ratios)
{
	struct gain_predictions *p = &g->report->predictions;
	uint32_t quarter = 0, two = 0;

	for (size_t i = 0; i < g->n; i++) {
		const struct gain_job *job = &g->jobs[i];
		double ratio = job->wall_ms / job->expected_ms;

		if (!gain_is_asked(g, job) || gain_why_not(job, job->expected_ms) != GAIN_LEFT_OUT)
			continue;
		quarter += ratio >= 1 / 1.25 && ratio <= 1.25;
		two += ratio >= 1 / 2.0 && ratio <= 2.0;
		ratios[p->jobs++] = ratio;
	}
	if (!p->jobs)
		return;
	gain_sort(ratios, p->jobs);
	p->low = gain_quantile(ratios, p->jobs, 0.05);
	p->median = gain_quantile(ratios, p->jobs, 0.5);
	p->high = gain_quantile(ratios, p->jobs, 0.95);
	p->within_quarter = quarter / (double)p->jobs;
	p->within_two = two / (double)p->jobs;
}

/* Of all jobs that ended well, whoever chose their nodes: it is what their users saw. */
static void gain_slow(struct gain *g, double *slowdowns)
{
	struct gain_slowdowns *s = &g->report->slowdowns;
	double sum = 0;

	for (size_t i = 0; i < g->n; i++) {
		const struct gain_job *job = &g->jobs[i];

		if (!gain_is_asked(g, job) || !job->well || !gain_is_time(job->slowdown))
			continue;
		sum += job->slowdown;
		slowdowns[s->jobs++] = job->slowdown;
	}
	if (!s->jobs)
		return;
	gain_sort(slowdowns, s->jobs);
	s->mean = sum / (double)s->jobs;
	s->median = gain_quantile(slowdowns, s->jobs, 0.5);
	s->high = gain_quantile(slowdowns, s->jobs, 0.95);
}

/* --- all together --------------------------------------------------------------------------------
 */

static int gain_allocate(struct gain *g)
{
	size_t n = g->n + 1; /* calloc(0) may return NULL */

	g->sorted = calloc(n, sizeof(*g->sorted));
	g->items = calloc(n, sizeof(*g->items));
	g->lists = calloc(n * GAIN_TABLES, sizeof(*g->lists));
	g->sums = calloc((size_t)GAIN_TABLES * GAIN_ROWS * GAIN_ROUNDS, sizeof(*g->sums));
	g->errors.all = calloc(n, sizeof(double));
	g->errors.weights = calloc(n, sizeof(double));
	g->errors.upto = calloc(n, sizeof(double));
	g->errors.pool = calloc(n, sizeof(double));
	g->errors.own = calloc(n, sizeof(double));
	g->errors.classes = calloc(n, sizeof(*g->errors.classes));
	return g->sorted && g->items && g->lists && g->sums && g->errors.all && g->errors.weights &&
			       g->errors.upto && g->errors.pool && g->errors.own &&
			       g->errors.classes
		       ? 0
		       : -ENOMEM;
}

static void gain_free(struct gain *g)
{
	free(g->sorted);
	free(g->items);
	free(g->lists);
	free(g->sums);
	free(g->errors.all);
	free(g->errors.weights);
	free(g->errors.upto);
	free(g->errors.pool);
	free(g->errors.own);
	free(g->errors.classes);
}

int gain_compute(const struct gain_job *jobs, size_t n, const struct gain_filter *filter,
		 struct gain_report *report)
{
	struct gain g = {.jobs = jobs,
			 .n = n < GAIN_JOBS ? n : GAIN_JOBS,
			 .filter = filter,
			 .report = report};
	int rc = gain_allocate(&g);

	*report = (struct gain_report){0};
	if (!rc) {
		gain_predict(&g, g.errors.pool);
		gain_slow(&g, g.errors.pool);
		gain_learn_errors(&g);
		gain_judge_all(&g);
		rc = gain_make_tables(&g);
	}
	if (!rc) {
		gain_intervals(&g.errors, g.parts, g.nparts);
		gain_set_verdicts(&g);
	}
	gain_free(&g);
	return rc;
}
