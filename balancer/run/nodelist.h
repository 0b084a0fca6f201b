/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lists of node names as people write them for pdsh, clush and Slurm:
 * "n1,n2", "n[1-4,7]", "rack[1-2]-n[01-16]".  A zero in front keeps the width.
 */
#ifndef IOCOM_NODELIST_H
#define IOCOM_NODELIST_H

#include <stddef.h>

#include "iocom/err.h"

#define NODELIST_MAX 16384 /* names in one list */

struct nodelist {
	char **names; /* each once, in the order they were given */
	size_t count, room;
};

/*
 * All names of TEXT into OUT (from zero; to be freed only after 0).  0; -EINVAL with the
 * sentence: nothing in it, an empty name, a bad range, a name given twice, too many; -ENOMEM.
 */
int nodelist_parse(const char *text, struct nodelist *out, struct iocom_err *err);
/* Adds a copy of NAME, unseen.  0 or -ENOMEM. */
int nodelist_add(struct nodelist *list, const char *name);
void nodelist_sort(struct nodelist *list); /* by name, numbers by value */
void nodelist_fini(struct nodelist *list);
/*
 * The COUNT names in short form, sorted: "db,n[1-3,7]".  Parsing it gives the same names.
 * malloc'ed; NULL when memory is out.
 */
char *nodelist_fold(const char *const *names, size_t count);

#endif
