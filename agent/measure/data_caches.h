/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the users' caches of jobs' data have and did here, for this node's vector: read now and
 * then from DATA_DIR/UID/usage (user/data_usage.h), in a thread, because a disk may hang.
 */
#ifndef IOCOM_DATA_CACHES_H
#define IOCOM_DATA_CACHES_H

#include "agent/base/base.h"
#include "agent/measure/vector.h"

struct data_caches;

/* Borrows BASE.  HAVE is called in the loop with each reading.  NULL: no memory. */
struct data_caches *data_caches_new(const struct base *base,
				    void (*have)(void *arg, const struct data_caches_use *use),
				    void *arg);
void data_caches_free(struct data_caches *caches); /* NULL is fine */
/* Once a second.  A node without any cache costs one look at a directory. */
void data_caches_chores(struct data_caches *caches);

#endif
