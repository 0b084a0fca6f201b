/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Why a peer is not heard: nng dials for ever and never says.  A configured peer that is
 * silent is asked at its job port, by a relay, whether one understands the other: one
 * side with TLS and the other without, another CA, a certificate that is not valid.  Both
 * agents say what was wrong, this one when it changes.
 */
#ifndef IOCOM_PROBE_H
#define IOCOM_PROBE_H

#include "agent/base/base.h"
#include "agent/cluster/matrix.h"

struct probes;
struct tunnels;

#define PROBE_FIRST_S 2
#define PROBE_AGAIN_S 60  /* doubled from the first up to this while it is not there */
#define PROBE_SAID_S  600 /* when it was there, and something is wrong */

/* 0 or -ENOMEM. */
int probes_new(struct probes **probes, const struct base *base, const struct matrix *matrix,
	       const struct tunnels *tunnels, struct iocom_err *err);
void probes_free(struct probes *probes);
/* Once a second: asks at most one peer. */
void probes_run(struct probes *probes);

#endif
