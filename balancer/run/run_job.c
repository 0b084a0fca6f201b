/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A placed job runs: its stream, its end, and its further attempts; see run_job.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/placement_text.h"
#include "balancer/run/run_follow.h"
#include "balancer/run/run_job.h"

#define WAIT_MIN_MS 10 /* shortest pause when home says when to ask again */

/* Takes the target from the answer; $IOCOM_MUNGE_SOCKET has precedence. */
static int run_job_target(const struct run *run, const struct placement *answer,
			  struct run_target *target, struct iocom_err *err)
{
	const char *socket = getenv("IOCOM_MUNGE_SOCKET");

	if (!socket || !*socket)
		socket = answer->munge_socket;
	*target = (struct run_target){
		.run_dir = run->request.run_dir,
		.address = answer->address,
		.port = (unsigned)answer->port,
		.munge_socket = *socket ? socket : NULL,
		.ticket = "",
	};
	return run_target_key(target, answer->key, err);
}

/* What the callbacks of run_stream need. */
struct contact {
	const struct run *run;
	const struct run_data *data; /* what goes along; NULL: nothing */
	const struct run_target *target;
	struct attach_ask *self;
	struct run_follow follow; /* where the job went */
	uint32_t again_ms;	  /* so long it is asked for */
	bool said;
};

static void run_job_started(void *arg, const struct run_result *result)
{
	const struct contact *contact = arg;

	if (contact->data && contact->run->verbose)
		run_data_tell(contact->data, contact->run->name);
	if (contact->data)
		run_report_staged(&contact->run->report, contact->data);
	run_report_started(&contact->run->report, result->pid);
}

/* The job may have moved.  Returns true if it has. */
static bool run_job_follow(struct contact *contact)
{
	const struct run *run = contact->run;

	if (!run->migratable || !run_follow(&contact->follow, run->request.run_dir, contact->self))
		return false;
	contact->target = &contact->follow.target;
	if (run->verbose)
		fprintf(stderr, "%s: job %s moved to node %s\n", run->name, contact->self->job,
			contact->self->node);
	return true;
}

static int run_job_ask_again(void *arg, const struct attach_ask *ask, struct records *records,
			     bool *secure)
{
	struct contact *contact = arg;
	struct attach_ask wanted = *ask;
	struct iocom_err err = {0};
	bool moved = run_job_follow(contact);
	int fd;

	memcpy(wanted.node, contact->self->node, sizeof(wanted.node));
	*secure = *contact->target->address != 0;
	/* Of a gang one sentence says what became of it. */
	if (!moved && !contact->said && (!contact->run->part || contact->run->verbose))
		fprintf(stderr, "%s: contact with node %s was lost; trying for %g s\n",
			contact->run->name, wanted.node, contact->again_ms / 1000.0);
	contact->said = !moved;
	return run_connect_attach(contact->target, &wanted, &fd, records, &err) ? -1 : fd;
}

/* A lost job that is tied to a node is not run anywhere else. */
static const char *run_job_where(const struct run *run, const struct run_result *result)
{
	if (result->state != RUN_EXITED || result->kind != 3 || result->value != RUN_UNKNOWN ||
	    run->request.ask.restarts < 0 || !*run->request.ask.node)
		return "";
	return " (only at the node that is asked for: --node)";
}

/* Prints how the job ended if iocom, not the job, is the cause. */
static void run_job_tell(const struct run *run, const struct run_result *result, int status)
{
	static const char *const states[] = {"lost", "lost", "exited", "failed", "lost"};
	const char *state = states[result->state];

	if (result->state == RUN_EXITED && result->kind >= 2)
		state = "failed";
	if (*result->text && !result->signal && !run->part &&
	    !(run->worker && status == RUN_FAILED))
		fprintf(stderr, "%s: %s%s\n", run->name, result->text, run_job_where(run, result));
	if (result->output_error)
		fprintf(stderr, "%s: output of the job was lost: %s\n", run->name,
			strerror(result->output_error));
	run_report_end(&run->report, state, result, status, result->text);
}

/* A detached job prints only its name. */
static int run_job_print_name(const struct run *run, const char *job)
{
	if (printf("%s\n", job) > 0 && !fflush(stdout))
		return 0;
	fprintf(stderr, "%s: cannot print the name of job %s, which runs\n", run->name, job);
	return RUN_UNKNOWN;
}

/* A job that ended well has made its outputs: their bytes count for the next one of its class. */
static void run_job_note(const struct run *run, struct run_data *data)
{
	const struct run_result *result = &run->result;

	if (result->state != RUN_EXITED || result->kind || result->value)
		return;
	if (!data)
		placement_data_note(&run->along, data_set_brought(&run->along.set));
	else if (!run_data_unfetched(data))
		placement_data_note(&run->along, data->fetched_bytes);
}

static int run_job_there(struct run *run, const struct placement *answer, const struct spec *spec,
			 struct iocom_err *err)
{
	struct run_target target;
	struct records records;
	struct attach_ask self = {0};
	struct contact contact = {.run = run, .target = &target, .self = &self};
	struct run_stream_options options = {
		/*
		 * A closed input is /dev/null by now, which would end a terminal's input at
		 * once.
		 */
		.stdio = {(run->closed & 1 && !run->pty) || run->detach ? -1 : 0, 1, 2},
		.signals = !run->kept, /* in the background we handle the signals ourselves */
		.tty = run->pty && !run->detach ? &run->tty : NULL,
		.leave = run->detach && !run->part,
		.deaf = run->detach && run->part,
		.started = run_job_started,
		.again = run->detach ? NULL : run_job_ask_again,
		.again_ms = spec->grace_ms,
		.self = &self,
		.channel = run->part ? &run->part->channel : NULL,
		.arg = &contact,
	};
	struct run_result *result = &run->result;
	struct run_data data;
	int fd, status;

	memcpy(self.job, spec->job, sizeof(self.job));
	memcpy(self.node, spec->node, sizeof(self.node));
	memcpy(self.resume, spec->nonce, sizeof(self.resume));
	if (run_job_target(run, answer, &target, err))
		return -1;
	target.pair = &run->pair;
	if (spec->data && run_data_init(&data, &run->along.set, run->along.memory, spec->node))
		return iocom_err_set(err, -1, "out of memory for the job's data");
	if (spec->data)
		contact.data = options.data = &data;
	if (answer->begun)
		fd = run->stream;
	else if (run_connect(&target, spec, &fd, &records, err))
		fd = -1;
	if (fd < 0) {
		if (spec->data)
			run_data_fini(&data);
		return -1;
	}
	options.records = run_target_records(&target, &records);
	run->stream = -1;
	if (run->request.ask.restarts >= 0)
		run_again_keep_outputs(&options, (int)answer->lease_ms, run->migratable);
	contact.again_ms = options.again_ms;
	status = run_stream(&options, fd, result);
	records_erase(&records);
	explicit_bzero(target.key, sizeof(target.key));
	run_follow_fini(&contact.follow);
	memcpy(run->at, self.node, sizeof(run->at));
	if (run->request.ask.restarts >= 0)
		run_again_drop_outputs(&options);
	if (result->state == RUN_LOST && run->request.ask.restarts < 0 && !result->signal &&
	    !result->left && strcmp(result->text, ATTACH_ELSEWHERE) != 0)
		status = run_home(run->request.run_dir, spec->job, result);
	run->failed = !result->signal && status == RUN_FAILED &&
		      (result->state == RUN_REFUSED ||
		       (result->state == RUN_EXITED && result->kind == 3));
	run->full = run->failed && spec->data && data.full;
	if (run->part && result->state == RUN_STARTED && !status)
		return 0; /* it was left */
	if (run->detach && result->state == RUN_STARTED && !status)
		return run_job_print_name(run, spec->job);
	run_job_tell(run, result, status);
	run_job_note(run, spec->data ? &data : NULL);
	if (spec->data && run->request.ask.restarts >= 0 && run_may_restart(result))
		run_data_fini(&data); /* a further attempt fetches */
	else if (spec->data)
		status = run_data_end(&data, run->name, status);
	return status;
}

int run_job_placed(struct run *run, const struct placement *answer, struct iocom_err *err)
{
	char before[SPEC_JOB_MAX + 64];
	struct spec spec = {0};
	int status;

	run->at[0] = 0;
	if (run_place_name(run, answer, &spec, err)) {
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err->text);
		return -1;
	}
	run->report.job = spec.job;
	run->report.node = spec.node;
	run_report_placed(&run->report, answer);
	/* A batch has many workers, and one list of needs: `iocom explain` says it of each. */
	if (!run->request.ask.worker && answer->attempt <= 1 && !run->part) {
		snprintf(before, sizeof(before), "%s: job %s: ", run->name, spec.job);
		placement_text_unmet(answer, before, stderr);
	}
	if (run->verbose && !run->part) {
		fprintf(stderr, "%s: job %s: ", run->name, spec.job);
		placement_text_line(answer, stderr);
	}
	status = run_job_there(run, answer, &spec, err);
	if (status < 0)
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err->text);
	run->report.job = run->report.node = "";
	spec_free(&spec);
	return status;
}

/* Looks at what goes along, as it is now.  Returns 0 or negative errno with the reason in ERR. */
static int run_job_look(struct run *run, struct iocom_err *err)
{
	return run->home ? 0
			 : placement_data_look(&run->along, &run->request, run->cwd,
					       run->executable, run->command, err);
}

/* Returns 0: ANSWER is the next attempt's; 1: *STATUS says how the job ended. */
static int run_job_next(struct run *run, struct placement *answer, int *status,
			struct iocom_err *err)
{
	struct placement next;
	int rc;

	snprintf(run->request.ask.again, sizeof(run->request.ask.again), "%s", answer->job);
	if (run->input_at >= 0)
		(void)lseek(STDIN_FILENO, run->input_at, SEEK_SET);
	rc = run_job_look(run, err);
	if (rc) {
		iocom_err_prefix(err, "its data cannot go along again");
		*status = RUN_UNKNOWN;
		return 1;
	}
	rc = run_again(run_place, run, run->detach ? RUN_KEEP_MS : WAIT_MIN_MS, &run->result, &next,
		       err);
	run->request.ask.again[0] = 0;
	if (rc == 1) {
		*status = run_exit_code(&run->result);
		run->report.job = answer->job;
		run->report.node = answer->node;
		run_job_tell(run, &run->result, *status);
		run->report.job = run->report.node = "";
		if (run->along.set.nbrings && *answer->address) {
			fprintf(stderr, "%s: what --bring names was not fetched from node %s\n",
				run->name, answer->node);
			*status = *status ? *status : RUN_UNKNOWN;
		}
	}
	if (rc < 0)
		*status = RUN_UNKNOWN;
	if (rc) {
		placement_fini(&next);
		return 1;
	}
	fprintf(stderr, "%s: job %s was lost with node %s; attempt %d is job %s at node %s\n",
		run->name, answer->job, *run->at ? run->at : answer->node, (int)next.attempt,
		next.job, next.node);
	placement_fini(answer);
	*answer = next;
	return 0;
}

/* Runs the job in as many attempts as it takes.  Returns as run_job_placed does. */
static int run_job_attempts(struct run *run, struct placement *answer, struct iocom_err *err)
{
	int status;

	run->input_at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	status = run_job_placed(run, answer, err);
	if (run->detach && run->request.ask.restarts >= 0 && status == 0) {
		placement_data_free(&run->along); /* its descriptors will be closed */
		if (run_background(run->name, answer->job))
			return status;
		run->report.fd = -1;
		run->kept = true;
	}
	while (run->request.ask.restarts >= 0 && status >= 0 && run_may_restart(&run->result)) {
		if (run_job_next(run, answer, &status, err))
			return status;
		memset(&run->result, 0, sizeof(run->result));
		status = run_job_placed(run, answer, err);
		if (status >= 0)
			continue;
		/*
		 * Home placed this attempt, but we cannot reach it: it counts as lost before
		 * its start.
		 */
		fprintf(stderr, "%s: %s\n", run->name, err->text);
		err->text[0] = 0;
		run->result.state = RUN_LOST;
		status = RUN_UNKNOWN;
	}
	return status;
}

/* Places the job and runs it.  Returns as run_job does. */
static int run_job_once(struct run *run, struct iocom_err *err)
{
	struct placement answer;
	int rc;

	placement_init(&answer);
	rc = run_place(run, &answer, err) ? RUN_FAILED : 0;
	if (rc)
		run_report_end(&run->report, "failed", NULL, rc, err->text);
	else
		rc = run_job_attempts(run, &answer, err);
	placement_fini(&answer);
	return rc;
}

/*
 * A node that has no room for the job's data fails only the job of somebody who asked for that
 * node.  Any other job runs at home, where its data is; nothing of it has run yet.
 */
int run_job(struct run *run, struct iocom_err *err)
{
	struct placement_ask *ask = &run->request.ask;
	int rc = run_job_look(run, err);

	if (rc) {
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err->text);
		return RUN_FAILED;
	}
	rc = run_job_once(run, err);
	if (!run->full || *ask->node)
		return rc;
	fprintf(stderr, "%s: the job runs at home, where its data is\n", run->name);
	run->result = (struct run_result){0};
	run->full = run->failed = false;
	snprintf(ask->policy, sizeof(ask->policy), "nlb");
	return run_job_once(run, err);
}
