/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See launcher.h. */
#include "agent/guest/launcher.h"

const struct launcher launcher_shims = {
	.shim = launch_shim,
	.spare_make = launch_spare_make,
	.spare_drop = launch_spare_drop,
	.read = launch_read,
	.lease = launch_lease,
	.recover = launch_recover,
	.outcome = launch_outcome,
	.bury = launch_bury,
	.kill = launch_kill,
	.forget = launch_forget,
	.attach = launch_attach,
	.replay = launch_replay,
	.owner = launch_owner,
	.secret = launch_secret,
	.signal_ask = launch_signal_ask,
	.expel_ask = launch_expel_ask,
	.signal_answer = launch_signal_answer,
	.move_ask = launch_move_ask,
	.move_answer = launch_move_answer,
	.decide_ask = launch_decide_ask,
};
