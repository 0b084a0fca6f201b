/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Judges claims again under another reading: how many hold, and which change. */
#include <stdio.h>
#include <string.h>

#include "sim/experiments/claim_rows.h"
#include "sim/experiments/code_claims.h"

#define JUDGED_MAX 32 /* experiments judged under one reading */

/*
 * For the claims of one type: how many were decided under both readings, and how many
 * hold under each.
 */
struct tally {
	unsigned int tested, chosen, other;
};

/* The claims that hold under only one of the two readings: "ACM-3.2 ACM-5.1". */
struct turned {
	char lost[256], won[256];
	unsigned int n, open; /* open: undecided under one of them */
};

static void code_claims_reading_note(char *list, size_t size, const char *id, size_t claim)
{
	size_t at = strlen(list);

	if (at + 1 < size)
		snprintf(list + at, size - at, " %s.%zu", id, claim);
}

/* Compares PAPER's claims in A (the chosen reading) and B (the other). */
static void code_claims_reading_compare(const struct claim_context *a,
					const struct claim_context *b, struct tally tally[2],
					struct turned *turned)
{
	const struct claim *claims = experiment_find(a->sweep->id)->claims;

	for (size_t i = 0; claims && claims[i].text; i++) {
		struct tally *t = &tally[claims[i].type];
		struct judgement as_chosen, otherwise;

		claim_judge(a, &claims[i], &as_chosen);
		claim_judge(b, &claims[i], &otherwise);
		if (as_chosen.verdict == VERDICT_NOT_TESTED ||
		    otherwise.verdict == VERDICT_NOT_TESTED)
			continue;
		if (as_chosen.verdict == VERDICT_UNDECIDED ||
		    otherwise.verdict == VERDICT_UNDECIDED) {
			turned->open++;
			continue;
		}
		t->tested++;
		t->chosen += as_chosen.verdict == VERDICT_HOLDS;
		t->other += otherwise.verdict == VERDICT_HOLDS;
		if ((as_chosen.verdict == VERDICT_HOLDS) == (otherwise.verdict == VERDICT_HOLDS))
			continue;
		turned->n++;
		if (as_chosen.verdict == VERDICT_HOLDS)
			code_claims_reading_note(turned->lost, sizeof(turned->lost), a->sweep->id,
						 i + 1);
		else
			code_claims_reading_note(turned->won, sizeof(turned->won), a->sweep->id,
						 i + 1);
	}
}

/* Returns -1: there is no such reading. */
static int find_reading(const struct experiment *e, const char *label, size_t *count)
{
	int found = -1;

	for (*count = 0; e->readings[*count].label; (*count)++)
		if (!strcmp(e->readings[*count].label, label))
			found = (int)*count;
	return found;
}

static void code_claims_reading_tell(const struct experiment *e, const struct claim *c,
				     const struct tally t[2], const struct turned *turned,
				     struct judgement *out)
{
	const char *chosen = e->readings[0].label;

	snprintf(out->measured, sizeof(out->measured),
		 "[O] of %u hold %u (%s), %u (%s); [Q] of %u hold %u, %u; %u undecided%s%s%s%s",
		 t[0].tested, t[0].chosen, chosen, t[0].other, c->at, t[1].tested, t[1].chosen,
		 t[1].other, turned->open, turned->lost[0] ? "; hold no longer:" : "", turned->lost,
		 turned->won[0] ? "; hold now:" : "", turned->won);
}

void claim_reading(const struct claim_context *context, const struct claim *c,
		   struct judgement *out)
{
	const struct sweep *s = context->sweep;
	const struct experiment *e = experiment_find(s->id);
	const struct sweep *parts[2][JUDGED_MAX];
	struct tally tally[2] = {0};
	struct turned turned = {0};
	size_t readings, n;
	int other = find_reading(e, c->at, &readings);

	n = s->nparts / readings;
	if (other < 0 || !n || n > JUDGED_MAX) {
		claim_not_tested(out, "nothing was judged under ", c->at);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		parts[0][i] = s->parts[i];
		parts[1][i] = s->parts[(size_t)other * n + i];
	}
	for (size_t i = 0; i < n; i++) {
		struct claim_context a = {parts[0][i], parts[0], n, 0},
				     b = {parts[1][i], parts[1], n, 0};

		if (!strcmp(experiment_find(parts[0][i]->id)->paper, c->a))
			code_claims_reading_compare(&a, &b, tally, &turned);
	}
	if (!tally[0].tested && !tally[1].tested && !turned.open) {
		claim_not_tested(out, "no claim could be judged", NULL);
		return;
	}
	out->verdict = turned.n >= c->printed		      ? VERDICT_HOLDS
		       : turned.n + turned.open >= c->printed ? VERDICT_UNDECIDED
							      : VERDICT_CONTRADICTED;
	code_claims_reading_tell(e, c, tally, &turned, out);
}
