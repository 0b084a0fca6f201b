/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job needs: each field from the options given, else from its class's profile, else a
 * stated default.
 */
#ifndef IOCOM_NEED_RESOLVE_H
#define IOCOM_NEED_RESOLVE_H

#include "balancer/settings/profile.h"
#include "balancer/view/need.h"

/*
 * The rate of a class is that of a job alone on MACHINE, the home (profile_rate_per_ms).  PROFILE
 * may be NULL.
 */
void need_resolve(struct need *need, const struct need_options *options,
		  const struct profile *profile, const struct profile_machine *machine);

#endif
