/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What pattern a communication matrix has.  Pure.
 *
 * Ranks of one node that talk by shared memory are not in a matrix of TCP: only pairs on different
 * nodes are judged, and those on one node if any of them is there.  Of a named pattern,
 *
 *   share     part of all bytes that are between pairs of the pattern
 *   coverage  part of the pattern's pairs (that can be judged) with at least a tenth of their mean
 *
 * A pattern is recognised if its share is at least PATTERN_SHARE and its coverage at least
 * PATTERN_COVERAGE, in the order of `enum pattern_kind`; of the rest, one in which so many of all
 * pairs talk is all-to-all, and another is irregular.
 */
#ifndef IOCOM_PATTERN_H
#define IOCOM_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_SHARE	 0.9
#define PATTERN_COVERAGE 0.75

enum pattern_kind {
	PATTERN_NONE,	   /* nothing was sent */
	PATTERN_PAIR,	   /* two ranks */
	PATTERN_MASTER,	   /* master and slaves: one rank is an end of nearly all */
	PATTERN_RING,	   /* rank r and r + 1, and the last with the first */
	PATTERN_CHAIN,	   /* rank r and r + 1 */
	PATTERN_GRID,	   /* neighbours in a grid of rows and columns, with or without wrapping */
	PATTERN_ALL,	   /* all to all */
	PATTERN_IRREGULAR, /* no pattern that has a name here */
	PATTERNS
};

struct pattern_cell {
	uint32_t from, to;
	bool inside; /* both are on one node */
	uint64_t bytes, messages;
};

struct pattern {
	enum pattern_kind kind;
	double share, coverage;
	uint32_t master;	/* PATTERN_MASTER */
	uint32_t rows, columns; /* PATTERN_GRID */
	bool wraps;		/* the grid: first and last are neighbours, too */
};

/*
 * Recognises the pattern of TASKS ranks; PART has the part of each (-1: unknown).  Returns 0 or
 * -ENOMEM.
 */
int pattern_find(struct pattern *pattern, uint32_t tasks, const int32_t *part,
		 const struct pattern_cell *cells, size_t ncells);
/* Whether ranks A and B exchange data in PATTERN of TASKS ranks. */
bool pattern_pair(const struct pattern *pattern, uint32_t tasks, uint32_t a, uint32_t b);
/* "master-slaves", "ring", "nearest-neighbour", "all-to-all", ... */
const char *pattern_name(enum pattern_kind kind);

#endif
