/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lists of node names as people write them for pdsh, clush and Slurm: "n1,n2", "n[1-4,7]",
 * "rack[1-2]-n[01-16]".  Leading zeros keep the width.
 */
#ifndef IOCOM_NODELIST_H
#define IOCOM_NODELIST_H

#include <stddef.h>

#include "iocom/err.h"

#define NODELIST_MAX 16384 /* most names in one list */

struct nodelist {
	char **names; /* distinct, in the order given */
	size_t count, room;
};

/*
 * Parses TEXT into OUT, which must be zero (free it only after 0).  Returns 0; -EINVAL with the
 * reason in ERR: an empty list or name, a bad range, a name given twice, too many names; -ENOMEM.
 */
int nodelist_parse(const char *text, struct nodelist *out, struct iocom_err *err);
/* Adds a copy of NAME without a check.  Returns 0 or -ENOMEM. */
int nodelist_add(struct nodelist *list, const char *name);
void nodelist_sort(struct nodelist *list); /* Sorts by name, and numbers by value. */
void nodelist_fini(struct nodelist *list);
/*
 * Returns the COUNT names in short form, sorted, as "db,n[1-3,7]"; parsing gives the same
 * names. The caller frees it; NULL: out of memory.
 */
char *nodelist_fold(const char *const *names, size_t count);

#endif
