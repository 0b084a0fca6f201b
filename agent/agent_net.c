/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Starts the agent's network part.  Root opens the listeners whose descriptors can be passed, so
 * that they outlive a network part: who connects while it starts again only waits.
 */
#include <stdio.h>
#include <string.h>

#include "agent/agent_own.h"
#include "agent/base/listen.h"
#include "agent/cluster/stream.h"
#include "agent/gate/net_spawn.h"
#include "agent/metrics/metrics_listen.h"

static int agent_listen(struct agent *a, bool networked, struct gate_setup *setup,
			struct iocom_err *err)
{
	const struct settings *set = a->set;
	int rc = 0;

	setup->networked = setup->streams = networked;
	setup->http = set->metrics.address[0] != 0;
	if (networked)
		rc = listen_numeric(setup->listen, set->listen, err);
	/* Some systems have the host's own name in /etc/hosts, as 127.0.1.1. */
	if (!rc && networked && !strcmp(set->address, set->listen))
		rc = settings_reached(set, setup->listen, set->listen, err);
	if (!rc && networked)
		rc = streams_listen(&a->streams_fd, setup->listen, (uint16_t)(set->port + 2), err);
	if (!rc && setup->http)
		rc = metrics_listen(&a->metrics_fd, set->metrics.address, set->metrics.port, err);
	return rc;
}

int agent_make_net(struct agent *a, bool networked, struct iocom_err *err)
{
	struct net_part_config config = {
		.base = &a->base,
		.setup = {.port = (uint16_t)a->set->port,
			  .log_level = (uint8_t)a->log.level,
			  .systemd = true, /* root reads its lines (net_log.h) */
			  .boot_id = a->base.boot_id},
		.start = {.start = net_spawn_start,
			  .waited_ns = net_spawn_waited_ns,
			  .arg = &a->net_spawn},
	};
	int rc;

	if (!networked && !a->set->metrics.address[0])
		return 0;
	snprintf(config.setup.name, sizeof(config.setup.name), "%s", a->set->name);
	rc = agent_listen(a, networked, &config.setup, err);
	config.streams = a->streams_fd;
	config.http = a->metrics_fd;
	if (!rc)
		rc = net_spawn_init(&a->net_spawn, &a->base, err);
	return rc ? rc : net_part_new(&a->net, &config, err);
}
