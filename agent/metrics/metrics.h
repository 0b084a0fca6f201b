/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * /metrics of this agent: takes every reading and shows a new page each period.  Without the
 * setting metrics_listen there is no page.
 */
#ifndef IOCOM_AGENT_METRICS_H
#define IOCOM_AGENT_METRICS_H

#include <stddef.h>
#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/base/limit.h"
#include "agent/base/prediction.h"
#include "agent/measure/pulse.h"

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

/*
 * Listens if the settings say so, else METRICS stays NULL.  Watches PULSE.  Returns 0; negative
 * errno with the reason in ERR.
 */
int metrics_new(struct metrics **metrics, const struct base *base, struct pulse *pulse,
		struct sample_names *names, const struct metrics_ports *ports,
		struct iocom_err *err);
/* Call it after the pulse's last reading.  NULL is fine. */
void metrics_free(struct metrics *metrics);

#endif
