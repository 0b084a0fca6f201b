/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_here.h. */
#include "tests/lib/net_here.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int net_here_begin(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	struct net_here *here = arg;
	const struct net_config config = {.loop = here->base.loop,
					  .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};

	net_free(here->net);
	here->net = NULL;
	here->starts++;
	*pidfd = -1;
	if (config.fd < 0)
		return -errno;
	if (here->away) {
		close(config.fd);
		return iocom_err_set(err, -ENOENT, "it is away");
	}
	return net_new(&here->net, &config, err);
}

struct gate_setup net_here_setup(const char *name, uint16_t port)
{
	struct gate_setup setup = {.listen = "127.0.0.1",
				   .port = port,
				   .log_level = LOG_L_INFO,
				   .networked = true,
				   .boot_id = 7};

	snprintf(setup.name, sizeof(setup.name), "%s", name);
	return setup;
}

int net_here_start(struct net_here *here, const struct base *base, const struct gate_setup *setup,
		   int streams, int http, struct iocom_err *err)
{
	const struct net_part_config config = {.base = &here->base,
					       .setup = *setup,
					       .streams = streams,
					       .http = http,
					       .start = {.start = net_here_begin, .arg = here}};

	*here = (struct net_here){.base = *base};
	return net_part_new(&here->part, &config, err);
}

void net_here_kill(struct net_here *here)
{
	net_free(here->net);
	here->net = NULL;
}

void net_here_stop(struct net_here *here)
{
	net_part_free(here->part);
	net_free(here->net);
	*here = (struct net_here){0};
}
