/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The part that moves running jobs away, and what it is connected with. */
#include "agent/agent_own.h"

static struct cluster_view *look_at_cluster(void *arg, bool feedback)
{
	const struct agent *a = arg;

	return home_view(a->home, feedback);
}

static size_t movable_jobs(void *arg, struct guest_running *out, size_t max)
{
	const struct agent *a = arg;

	return guest_movable(a->guest, out, max);
}

static int ask_away(void *arg, const char *job, const struct peer_away *why, guest_away_told told,
		    void *told_arg, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_away(a->guest, job, why, told, told_arg, err);
}

int agent_make_moves(struct agent *a, struct iocom_err *err)
{
	const struct moves_config config = {
		.base = &a->base,
		.cpu_speed = a->pulse.self.cpu_speed,
		.ports = {.arg = a,
			  .look = look_at_cluster,
			  .running = movable_jobs,
			  .away = ask_away},
	};
	int rc = moves_new(&a->moves, &config, err);

	if (rc)
		return rc;
	a->left_watch = (struct guest_watch){.left = moves_left, .arg = a->moves};
	guest_watch(a->guest, &a->left_watch);
	return 0;
}
