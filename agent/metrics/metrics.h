/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * /metrics of this agent: takes every reading and has a new page each period.  The network part
 * serves its text: it says GATE_WANT_PAGE and gets GATE_PAGE with a file, which is empty until
 * there is a page.  Without the setting metrics_listen there is no page.
 *
 * The listening socket is opened before (metrics_listen.h), because the network part gets it when
 * it starts.
 */
#ifndef IOCOM_AGENT_METRICS_H
#define IOCOM_AGENT_METRICS_H

#include <stddef.h>
#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/base/limit.h"
#include "agent/base/prediction.h"
#include "agent/gate/net_part.h"
#include "agent/measure/pulse.h"
#include "agent/metrics/metrics_page.h"

struct metrics;
struct sample_names;

/* Ports to what the page shows of other modules. */
struct metrics_ports {
	void *arg;
	/* These are limits_list and guest_whose. */
	size_t (*limits)(void *arg, struct limit out[LIMITS_LISTED]);
	int (*whose)(void *arg, uint64_t cgroup_id, const char **job, uid_t *uid);
	uint64_t (*charges_lost)(void *arg);
	/* home_predictions */
	size_t (*predictions)(void *arg, struct prediction *out);
};

struct metrics_config {
	/* Borrowed, as long as there are metrics. */
	const struct base *base;
	struct pulse *pulse;
	struct net_part *net;
	struct sample_names *names; /* NULL: cgroups have no names */
	struct metrics_ports ports;
};

/*
 * Does nothing if the settings want no metrics: METRICS stays NULL.  Watches the pulse and the
 * network part, and serves GATE_WANT_PAGE.  Returns 0; negative errno with the reason in ERR, and
 * METRICS, if it is not NULL, is to be freed.
 */
int metrics_new(struct metrics **metrics, const struct metrics_config *config,
		struct iocom_err *err);
/* Call it after the pulse's last reading and before net_part_free.  NULL is fine. */
void metrics_free(struct metrics *metrics);

#endif
