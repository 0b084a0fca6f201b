/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Where a job goes, and what it is there; see run_job.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/look_aside.h"
#include "balancer/run/run_job.h"

/* The plan of the gang goes with each part. */
static int run_place_part(const struct run_part *part, struct spec *spec, struct iocom_err *err)
{
	spec->gang = malloc(part->plan_length);
	if (!spec->gang) {
		spec_free(spec);
		return iocom_err_set(err, -ENOMEM, "out of memory for the job's description");
	}
	memcpy(spec->gang, part->plan, part->plan_length);
	spec->gang_length = part->plan_length;
	return 0;
}

/* Fills SPEC, but for what its place is called: job, node and nonce. */
static int run_place_describe(const struct run *run, const char *cwd, struct spec *spec,
			      struct iocom_err *err)
{
	int rc = run_spec_fill(spec, run->command, cwd, run->executable, run->env_rule, err);

	if (rc)
		return rc;
	placement_request_class(&run->request, run->command, spec->class_name);
	spec->closed = run->closed;
	spec->grace_ms = (uint32_t)lround(run->grace_s * 1000);
	if (run->pty)
		run_tty_describe(&run->tty, &spec->tty);
	spec->detach = run->detach;
	spec->migratable = run->migratable;
	spec->worker = run->request.ask.worker;
	return run->part ? run_place_part(run->part, spec, err) : 0;
}

/*
 * The start goes with the request, unless somebody must hear of the place before it, or the place
 * decides what the job is: its directory, or which attempt it is.
 */
static bool run_place_may_begin(const struct run *run)
{
	const struct placement_ask *ask = &run->request.ask;

	return !ask->named && !*ask->again && ask->restarts < 0 && !run->home;
}

/* While the agents decide: what the handshake with another node will need. */
static void run_place_meanwhile(void *arg)
{
	struct run *run = arg;

	noise_pair_new(&run->pair);
}

/* Places the job, which has begun if it runs here and its spec is not long. */
static int run_place_begin(struct run *run, struct placement *answer, struct iocom_err *err)
{
	void *packed = NULL;
	size_t length = 0;
	int rc = run_place_describe(run, run->cwd, &run->spec, err);

	placement_init(answer);
	if (!rc) {
		strcpy(run->spec.job, SPEC_UNPLACED);
		strcpy(run->spec.node, SPEC_UNPLACED);
		rc = spec_pack(&run->spec, &packed, &length, err);
	}
	if (!rc && length <= PLACEMENT_SPEC_MAX) {
		run->request.ask.spec = packed;
		run->request.ask.spec_length = (uint32_t)length;
	}
	if (!rc)
		rc = placement_request_begin(&run->request, run_place_meanwhile, run, run->cwd,
					     run->executable, run->command, answer, &run->stream,
					     err);
	run->request.ask.spec = NULL;
	free(packed);
	return rc;
}

int run_place(void *arg, struct placement *answer, struct iocom_err *err)
{
	struct run *run = arg;

	if (run_place_may_begin(run))
		return run_place_begin(run, answer, err);
	return placement_request_ask(&run->request, true, run->cwd, run->executable, run->command,
				     answer, err);
}

/* Copies one field of the answer.  Returns 0 or -EPROTO. */
static int run_place_field(const char *value, const char *key, char *out, size_t size,
			   struct iocom_err *err)
{
	if (*value && strlen(value) < size) {
		strcpy(out, value);
		return 0;
	}
	return iocom_err_set(err, -EPROTO, "the agent's answer has no usable '%s'", key);
}

static void run_place_enter(const void *arg, void *out)
{
	*(int *)out = chdir(arg) ? errno : 0;
}

/* The directory in which the job begins: ours, or the home directory for a login. */
static const char *run_place_directory(const struct run *run, const struct placement *answer)
{
	const char *directory = *answer->directory ? answer->directory : run->cwd;
	int error = 0, late = 0;

	if (!run->home)
		return run->cwd;
	/* For a local job nobody has tried the directory yet: we do. */
	if (!*answer->address)
		late = look_aside(run_place_enter, run->cwd, &error, sizeof(error));
	if (error || late)
		directory = "/";
	if (strcmp(directory, run->cwd) != 0)
		fprintf(stderr, "%s: %s home directory %s on %s; starting in /\n", run->name,
			late == -ETIMEDOUT ? "no file system answers for the" : "there is no",
			run->cwd, answer->node);
	return directory;
}

int run_place_name(struct run *run, const struct placement *answer, struct spec *spec,
		   struct iocom_err *err)
{
	int rc = 0;

	*spec = run->spec;
	run->spec = (struct spec){0};
	if (!spec->argv)
		rc = run_place_describe(run, run_place_directory(run, answer), spec, err);
	if (!rc && run->along.used && *answer->address)
		rc = run_data_describe(&run->along.set, spec, err);
	if (rc)
		return rc;
	rc = run_place_field(answer->job, "job", spec->job, sizeof(spec->job), err);
	if (!rc)
		rc = run_place_field(answer->node, "node", spec->node, sizeof(spec->node), err);
	if (!rc)
		rc = run_place_field(answer->nonce, "nonce", spec->nonce, sizeof(spec->nonce), err);
	if (rc)
		spec_free(spec);
	return rc;
}
