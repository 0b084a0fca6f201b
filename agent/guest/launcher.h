/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The guest's port to shims, so that its decisions can be tested without processes.  Each function
 * is as launch.h describes it.
 */
#ifndef IOCOM_LAUNCHER_H
#define IOCOM_LAUNCHER_H

#include "agent/guest/launch.h"

struct launcher {
	typeof(launch_shim) *shim;
	typeof(launch_spare_make) *spare_make;
	typeof(launch_spare_drop) *spare_drop;
	typeof(launch_read) *read;
	typeof(launch_lease) *lease;
	typeof(launch_recover) *recover;
	typeof(launch_outcome) *outcome;
	typeof(launch_bury) *bury;
	typeof(launch_kill) *kill;
	typeof(launch_forget) *forget;
	typeof(launch_attach) *attach;
	typeof(launch_replay) *replay;
	typeof(launch_owner) *owner;
	typeof(launch_secret) *secret;
	typeof(launch_signal_ask) *signal_ask;
	typeof(launch_expel_ask) *expel_ask;
	typeof(launch_signal_answer) *signal_answer;
	typeof(launch_move_ask) *move_ask;
	typeof(launch_move_answer) *move_answer;
	typeof(launch_decide_ask) *decide_ask;
};

/* The real launcher: shims as processes. */
extern const struct launcher launcher_shims;

#endif
