/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_command.h. */
#include "balancer/job_command.h"

#include <stdio.h>

#include "balancer/listing.h"
#include "balancer/reach.h"
#include "user/pack.h"

int job_command_option(struct job_command *command, int argc, char **argv, const char *letters,
		       const struct option *options)
{
	int c;

	while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		switch (c) {
		case JOB_COMMAND_JSON:
			command->json = true;
			break;
		case JOB_COMMAND_RUN_DIR:
			command->run_dir = optarg;
			break;
		case 'h':
			fputs(command->help, stdout);
			command->status = 0;
			return JOB_COMMAND_LEAVE;
		case '?':
			listing_usage(argv[0]);
			command->status = command->usage_status;
			return JOB_COMMAND_LEAVE;
		default:
			return c;
		}
	}
	return -1;
}

int job_command_ask(const struct job_command *command, const char *op, const char *job, int signal,
		    json_t **answer, struct iocom_err *err)
{
	return job_command_send(command,
				&(struct job_command_ask){.op = op, .job = job, .signal = signal},
				answer, err);
}

int job_command_send(const struct job_command *command, const struct job_command_ask *ask,
		     json_t **answer, struct iocom_err *err)
{
	char name[SPEC_JOB_MAX];
	struct reach reach;
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc = reach_open(&reach, command->run_dir, err);

	if (!rc)
		rc = reach_job(&reach, ask->job, name, err);
	if (!rc) {
		pack_begin(&pk, &buffer, 3u + (ask->signal >= 0) + !!ask->node);
		pack_str(&pk, "op", ask->op);
		pack_u64(&pk, "v", 1);
		pack_str(&pk, "job", name);
		if (ask->signal >= 0)
			pack_u64(&pk, "signal", (uint64_t)ask->signal);
		if (ask->node)
			pack_str(&pk, "node", ask->node);
		rc = reach_home(&reach, name, &buffer, answer, err);
		msgpack_sbuffer_destroy(&buffer);
	}
	reach_close(&reach);
	return rc;
}
