/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job needs: each field from the options given, else as its user set it for the class, else
 * from the class's profile, else a guess, else a stated default.
 */
#ifndef IOCOM_NEED_RESOLVE_H
#define IOCOM_NEED_RESOLVE_H

#include "balancer/profile/profile.h"
#include "balancer/view/need.h"

/* What earlier runs say. */
struct need_learned {
	const struct profile *profile;	/* of the class; NULL: it was never seen */
	const struct need_options *set; /* what its user set for the class; NULL: nothing */
	const struct profile *guess;	/* without a profile: computation and I/O; NULL: none */
};

/* The rate of a class is that of a job alone on MACHINE, the home (profile_rate_per_ms). */
void need_resolve(struct need *need, const struct need_options *options,
		  const struct need_learned *learned, const struct profile_machine *machine);

#endif
