/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom doctor` checks whether an agent has all it needs and which columns this kernel lacks. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/commands.h"
#include "balancer/doctor/doctor.h"
#include "balancer/listing.h"

static const char help[] =
	"usage: iocom doctor [--json] [--no-agent] [--config FILE] [--run-dir DIR]\n"
	"Checks all that an agent needs: kernel, hooks and the columns that they feed,\n"
	"configuration, directories, ports, munge, clock, PAM, audit, criu, the agent.\n"
	"Changes nothing.  As root it loads the monitor for a test, and unloads it.\n\n"
	"  --json           print one document\n"
	"  --no-agent       do not call a missing agent broken\n"
	"  --config FILE    the agent's configuration [/etc/iocom/iocom.conf]\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"Exit status: 0 nothing is broken (degraded counts as fine), 1 something is,\n"
	"2 usage.\n";

static void cmd_doctor_look(struct doctor *d)
{
	doctor_kernel(d);
	doctor_limits(d);
	doctor_config(d);
	doctor_agent(d);
	doctor_directories(d);
	doctor_ports(d);
	doctor_net(d);
	doctor_owner(d);
	doctor_munge(d);
	doctor_clock(d);
	doctor_pam(d);
	doctor_audit(d);
	doctor_criu(d);
	doctor_moves(d);
}

static int cmd_doctor_print(const json_t *report, bool json)
{
	const char *no_colour = getenv("NO_COLOR");
	bool terminal = isatty(STDOUT_FILENO);
	unsigned width = listing_width();

	if (json)
		return listing_print_json(report);
	if (!terminal)
		width = 0;
	else if (width < 60 || width > 120)
		width = width < 60 ? 60 : 120;
	doctor_print(report, stdout, width, terminal && !(no_colour && *no_colour));
	return listing_end();
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	  {"no-agent", no_argument, NULL, 'n'},
		{"config", required_argument, NULL, 'c'}, {"run-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	  {0},
	};
	struct doctor *d = calloc(1, sizeof(*d));
	json_t *report = NULL;
	bool json = false;
	int c, rc = 0;

	if (!d)
		return 1;
	d->root = geteuid() == 0;
	d->path = getenv("PATH");
	while (!rc && (c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == 'n')
			d->no_agent = true;
		else if (c == 'c')
			d->config = optarg;
		else if (c == 'r')
			d->run_dir = optarg;
		else {
			free(d);
			return c == 'h' ? fputs(help, stdout), 0 : listing_usage("iocom doctor");
		}
	}
	if (optind < argc) {
		fprintf(stderr, "iocom doctor: takes no argument '%s'\n", argv[optind]);
		free(d);
		return 2;
	}
	if (!doctor_init(d)) {
		cmd_doctor_look(d);
		report = doctor_report(d);
	}
	if (!report)
		fprintf(stderr, "iocom doctor: out of memory\n");
	rc = !report || cmd_doctor_print(report, json) || d->worst == DOCTOR_BROKEN;
	json_decref(report);
	doctor_deinit(d);
	free(d);
	return rc;
}
