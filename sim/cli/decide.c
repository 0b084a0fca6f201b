/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `--decide`: more seeds for undecided claims, within a budget of runs or time.
 *
 * In each look, the cells that undecided claims read get the seeds that these are estimated to
 * need, the cheapest claims first while the budget lasts, and at most about twice as many more as
 * the claim has.  Then only these claims are judged again.  Looking again and again would find
 * something by chance, so look k may err in 5 % / 2^k: all looks together in 5 % more at most.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/experiments/runner.h"
#include "sim/report/progress.h"

#define LOOKS 8
#define FEW   8 /* seeds that one look may always add */

/* An undecided claim. */
struct open_claim {
	size_t report, claim;
	uint32_t seeds;	 /* that it should have after the next look */
	uint32_t enough; /* that are estimated to decide it */
	size_t runs;	 /* that it needs for these */
};

struct decide {
	struct cli *cli;
	struct report *reports;
	size_t n;
	const struct sweep **all;
	struct open_claim *open;
	size_t nopen;
	double alpha;
	size_t runs_left;
	double until_s; /* 0: no limit */
	struct progress progress;
};

static struct claim_context decide_context(const struct decide *d, size_t report)
{
	return (struct claim_context){d->reports[report].sweep, d->all, d->n, d->alpha};
}

/* --- which cells ------------------------------------------------------------------ */

static bool can_grow(const struct sweep *s)
{
	return !s->few_seeds && s->npoints * s->nseries > 0;
}

/* Begins or ends noting which cells are read. */
static int note_asked(struct decide *d, bool on)
{
	int ret = 0;

	for (size_t i = 0; i < d->n; i++) {
		struct sweep *s = d->reports[i].sweep;

		free(s->asked);
		s->asked = on ? calloc(s->npoints * s->nseries + 1, sizeof(*s->asked)) : NULL;
		ret = on && !s->asked ? -ENOMEM : ret;
	}
	return ret;
}

/* The runs that are missing until the cells that were read have so many SEEDS; what they want
 * already is not counted.  0: none was read, or there are no more seeds. */
static size_t runs_needed(const struct decide *d, uint32_t seeds)
{
	size_t runs = 0;

	for (size_t i = 0; i < d->n; i++) {
		const struct sweep *s = d->reports[i].sweep;

		for (size_t c = 0; c < s->npoints * s->nseries; c++) {
			uint32_t has;

			if (!s->asked[c])
				continue;
			if (!can_grow(s))
				return 0;
			has = sweep_done(s, c / s->nseries, c % s->nseries);
			has = has > s->wanted[c] ? has : s->wanted[c];
			runs += seeds > has ? seeds - has : 0;
		}
	}
	return runs;
}

static void want_asked(struct decide *d, uint32_t seeds)
{
	for (size_t i = 0; i < d->n; i++) {
		struct sweep *s = d->reports[i].sweep;

		for (size_t c = 0; c < s->npoints * s->nseries; c++)
			if (s->asked[c] && s->wanted[c] < seeds)
				s->wanted[c] = seeds;
	}
}

/* Judges an open claim while its cells are noted. */
static int look_at(struct decide *d, const struct open_claim *o, struct judgement *out)
{
	struct claim_context context = decide_context(d, o->report);
	int ret = note_asked(d, true);

	if (!ret)
		claim_judge(&context, d->reports[o->report].judged[o->claim].claim, out);
	return ret;
}

/* Finds what claim O needs; a claim that more seeds cannot decide needs no runs. */
static int open_estimate(struct decide *d, struct open_claim *o)
{
	struct judgement j;
	int ret = look_at(d, o, &j);
	uint32_t more = j.more_seeds, has = (uint32_t)j.interval.n, most;

	if (ret)
		return ret;
	o->runs = 0;
	if (j.verdict != VERDICT_UNDECIDED || !more || more >= VERDICT_SEEDS_MAX)
		return 0;
	most = 2 * has + FEW;
	o->seeds = has + (more < most ? more : most);
	o->enough = has + more;
	o->runs = runs_needed(d, o->enough);
	return 0;
}

static int by_runs(const void *a, const void *b)
{
	const struct open_claim *x = a, *y = b;

	if (x->runs != y->runs)
		return x->runs < y->runs ? -1 : 1;
	if (x->report != y->report)
		return x->report < y->report ? -1 : 1;
	return (x->claim > y->claim) - (x->claim < y->claim);
}

/* Lists the undecided claims with what they need. */
static int list_open(struct decide *d)
{
	int ret = 0;

	d->nopen = 0;
	for (size_t i = 0; i < d->n && !ret; i++)
		ret = sweep_want_none(d->reports[i].sweep);
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->reports[i].njudged && !ret; k++) {
			struct open_claim *o = &d->open[d->nopen];

			if (d->reports[i].judged[k].judgement.verdict != VERDICT_UNDECIDED)
				continue;
			*o = (struct open_claim){.report = i, .claim = k};
			ret = open_estimate(d, o);
			d->nopen++;
		}
	qsort(d->open, d->nopen, sizeof(*d->open), by_runs);
	return ret;
}

/* Chooses claims while the budget lasts; *MOST: how many seeds sweeps need. */
static int choose_open(struct decide *d, uint32_t *most)
{
	size_t runs = 0;
	int ret = 0;

	*most = 0;
	for (size_t i = 0; i < d->nopen && !ret; i++) {
		struct open_claim *o = &d->open[i];
		struct judgement ignored;

		if (!o->runs)
			continue;
		ret = look_at(d, o, &ignored);
		if (ret || runs_needed(d, o->enough) > d->runs_left - runs)
			continue;
		runs += runs_needed(d, o->seeds);
		want_asked(d, o->seeds);
		*most = o->seeds > *most ? o->seeds : *most;
	}
	return ret ? ret : note_asked(d, false);
}

/* Gives all sweeps that can grow the same number of seeds, so that claims may compare them. */
static int grow_all(struct decide *d, uint32_t seeds)
{
	int ret = 0;

	for (size_t i = 0; i < d->n; i++) {
		struct sweep *s = d->reports[i].sweep;

		if (can_grow(s) && !ret)
			ret = sweep_grow(s, s->seeds > seeds ? s->seeds : seeds);
	}
	return ret;
}

/* --- looks ------------------------------------------------------------------------ */

static void decide_show(void *arg, double done, size_t total)
{
	progress_show(arg, done, total);
}

static int run_wanted(struct decide *d, const struct runner_options *options, size_t *made,
		      struct iocom_err *err)
{
	struct sweep **sweeps = calloc(d->n ? d->n : 1, sizeof(struct sweep *));
	struct runner_options more = *options;
	double spent = progress_seconds(&d->progress);
	int ret;

	if (!sweeps)
		return iocom_err_set(err, -ENOMEM, "no memory for the runs");
	for (size_t i = 0; i < d->n; i++)
		sweeps[i] = d->reports[i].sweep;
	more.more = d->runs_left;
	more.seconds = d->until_s > 0 ? d->until_s - spent : 0;
	more.made = made;
	more.progress = decide_show;
	more.arg = &d->progress;
	ret = runner_run(sweeps, d->n, &more, err);
	free(sweeps);
	return ret;
}

static void judge_open(struct decide *d)
{
	for (size_t i = 0; i < d->nopen; i++) {
		const struct open_claim *o = &d->open[i];
		struct claim_context context = decide_context(d, o->report);
		struct judged *judged = &d->reports[o->report].judged[o->claim];
		struct judgement before = judged->judgement;

		claim_judge(&context, judged->claim, &judged->judgement);
		/* Without more values it stays as it was; others' cells may have brought some. */
		if (judged->judgement.verdict == VERDICT_NOT_TESTED ||
		    judged->judgement.interval.n <= before.interval.n)
			judged->judgement = before;
	}
}

/* One look; *MADE runs were made, 0: nothing is left to do. */
static int decide_look(struct decide *d, const struct runner_options *options, size_t *made,
		       struct iocom_err *err)
{
	uint32_t seeds = 0;
	int ret = list_open(d);

	*made = 0;
	if (!ret)
		ret = choose_open(d, &seeds);
	if (!ret && seeds)
		ret = grow_all(d, seeds);
	if (ret)
		iocom_err_set(err, ret, "no memory for more seeds");
	if (!ret && seeds)
		ret = run_wanted(d, options, made, err);
	if (!ret && *made)
		judge_open(d);
	return ret;
}

static size_t count_open(const struct decide *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->reports[i].njudged; k++)
			n += d->reports[i].judged[k].judgement.verdict == VERDICT_UNDECIDED;
	return n;
}

static void tell_open(const struct decide *d, FILE *f)
{
	const char *comma = "";

	for (size_t i = 0; i < d->n; i++) {
		const struct report *r = &d->reports[i];

		for (size_t k = 0; k < r->njudged; k++) {
			const struct judgement *j = &r->judged[k].judgement;

			if (j->verdict != VERDICT_UNDECIDED)
				continue;
			fprintf(f, "%s%s.%zu", comma, r->sweep->id, k + 1);
			if (j->more_seeds && j->more_seeds < VERDICT_SEEDS_MAX)
				fprintf(f, " (%u more seeds)", j->more_seeds);
			comma = ", ";
		}
	}
}

static void tell_decided(const struct decide *d, size_t runs, unsigned int looks, size_t before)
{
	size_t open = count_open(d);

	fprintf(stderr, "--decide: %zu more runs in %u look%s decided %zu of %zu undecided claims",
		runs, looks, looks == 1 ? "" : "s", before - open, before);
	if (open) {
		fputs("; still undecided: ", stderr);
		tell_open(d, stderr);
	}
	fputc('\n', stderr);
}

static int decide_looks(struct decide *d, const struct runner_options *options,
			struct iocom_err *err)
{
	size_t before = count_open(d), runs = 0;
	unsigned int looks = 0;
	int ret = 0;

	while (!ret && looks < LOOKS && d->runs_left && count_open(d) &&
	       (d->until_s == 0 || progress_seconds(&d->progress) < d->until_s)) {
		size_t made;

		d->alpha /= 2;
		ret = decide_look(d, options, &made, err);
		if (!made)
			break;
		runs += made;
		d->runs_left -= made;
		looks++;
	}
	progress_end(&d->progress);
	if (!ret)
		tell_decided(d, runs, looks, before);
	return ret;
}

int cli_decide(struct cli *cli, struct report *reports, size_t n,
	       const struct runner_options *options, struct iocom_err *err)
{
	struct decide d = {
		.cli = cli,
		.reports = reports,
		.n = n,
		.alpha = STATS_ALPHA,
		.runs_left = cli->decide_runs ? cli->decide_runs : SIZE_MAX,
		.until_s = cli->decide_s,
	};
	size_t claims = 0;
	int ret;

	if (!cli->decide_runs && !(cli->decide_s > 0))
		return 0;
	for (size_t i = 0; i < n; i++)
		claims += reports[i].njudged;
	d.all = calloc(n ? n : 1, sizeof(*d.all));
	d.open = calloc(claims ? claims : 1, sizeof(*d.open));
	if (d.all && d.open) {
		for (size_t i = 0; i < n; i++)
			d.all[i] = reports[i].sweep;
		progress_begin(&d.progress, "decide");
		ret = decide_looks(&d, options, err);
		note_asked(&d, false);
	} else {
		ret = iocom_err_set(err, -ENOMEM, "no memory for more seeds");
	}
	free(d.all);
	free(d.open);
	return ret;
}
