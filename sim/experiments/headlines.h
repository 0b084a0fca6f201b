/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What each paper is known for: the few of its claims that open the page of figures, in words for
 * somebody who has not read the papers.  The numbers are those of the run.
 */
#ifndef SIM_EXPERIMENTS_HEADLINES_H
#define SIM_EXPERIMENTS_HEADLINES_H

#include "sim/experiments/experiment.h"

struct headline {
	const char *id;	     /* the experiment */
	const char *claim;   /* the text of the claim there */
	const char *says;    /* the claim in plain words, without its number */
	const char *printed; /* the paper's number, if the claim does not tell; or NULL */
	const char *reason;  /* a sentence: why the claim does not hold; NULL: as its `why` */
};

const struct headline *headline_at(size_t i); /* papers one after the other; NULL at the end */
/* Index of the headline's claim among those of E, or -1. */
int headline_find(const struct headline *h, const struct experiment *e);

#endif
