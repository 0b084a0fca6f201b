/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The cluster as home's decisions see it now. */
#include "agent/cluster/cluster_view.h"
#include "agent/home/home_own.h"

int home_look(struct home *home, bool feedback, uint64_t now, struct iocom_err *err)
{
	struct iocom_vector own;
	int rc;

	home->ports->own_vector(home->ports->arg, &own);
	rc = cluster_view_refresh(home->view, &own, now);
	if (rc)
		return iocom_err_set(err, rc,
				     "cannot decide: this node's own load is out of the range of "
				     "the rules");
	cluster_view_weigh(home->view, feedback && home->ports->w_io
					       ? home->ports->w_io(home->ports->arg)
					       : home->w_io);
	return 0;
}

struct cluster_view *home_view(struct home *home, bool feedback)
{
	return home_look(home, feedback, loop_boot_ns(home->base->loop), NULL) ? NULL : home->view;
}
