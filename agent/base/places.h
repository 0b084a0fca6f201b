/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Shares the places of a table among users, so that a few of them cannot take all:
 *
 *   free = max - of_root - used          places that users other than root may still take
 *   a user gets a place while            own < of_one   and   own < free
 *   root gets a place while              used < max
 *
 * Alone, a user gets half of the places, a second one half of the rest, and so on.  A user without
 * a place is refused only when none is free.  Places that root has taken do not count for of_root:
 * that many are always left.
 */
#ifndef IOCOM_PLACES_H
#define IOCOM_PLACES_H

#include <stddef.h>
#include <sys/types.h>

#include "agent/base/counters.h"
#include "iocom/err.h"

struct places {
	const char *what;  /* what takes a place, as in "uid 7 has 3 jobs there" */
	const char *limit; /* the table's name in the list of limits (front/limits.c) */
	const char *one;   /* what sets OF_ONE: a setting, or LIMIT */
	size_t max;	   /* all places */
	size_t of_root;	   /* of MAX: places that only root takes */
	size_t of_one;	   /* for one user; 0: no bound but the rule above */
};

/*
 * Asks for a place for UID, who has OWN of the USED ones.  Returns 0; with the sentence in ERR:
 * -EDQUOT the user has as many as one user may have (COUNTERS has those for whom only a part of the
 * places is left), -EAGAIN none is free.
 */
int places_ask(const struct places *places, uid_t uid, size_t used, size_t own,
	       struct counters *counters, struct iocom_err *err);

#endif
