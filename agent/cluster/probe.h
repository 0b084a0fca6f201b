/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds out why a peer is silent: nng dials for ever and reports no reason.  A relay asks a silent
 * configured peer at its job port whether the two understand each other: one side may lack TLS,
 * have another CA, or an invalid certificate.  Both agents log the error, this one only when it
 * changes.
 */
#ifndef IOCOM_PROBE_H
#define IOCOM_PROBE_H

#include "agent/base/base.h"
#include "agent/cluster/matrix.h"

struct probes;
struct tunnels;

#define PROBE_FIRST_S 2
#define PROBE_AGAIN_S 60  /* the wait doubles up to this while the peer cannot be reached */
#define PROBE_SAID_S  600 /* the wait after the peer answered with an error */

/* Returns 0 or -ENOMEM. */
int probes_new(struct probes **probes, const struct base *base, const struct matrix *matrix,
	       const struct tunnels *tunnels, struct iocom_err *err);
void probes_free(struct probes *probes);
/* Once a second: asks at most one peer. */
void probes_run(struct probes *probes);

#endif
