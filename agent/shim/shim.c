/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The life of a shim from its order to its end; see shim.h. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/clock.h"
#include "agent/shim/rejoin.h"

uint64_t shim_now_ms(void)
{
	return clock_boot_ms();
}

uint64_t shim_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The job goes on elsewhere: its client is not told an end, and looks for it there.  What is left
 * here for the agent is that it moved.
 */
static void shim_has_left(struct shim *shim)
{
	shim->end = (struct record_exit){
		.kind = RECORD_MOVED,
		.pid = shim->child.pid,
		.end_ns = shim->end.end_ns,
		.wall_ms = shim->end.wall_ms,
	};
	snprintf(shim->end.text, sizeof(shim->end.text), "the job moved to another node");
	shim_client_lost(shim);
	record_forget_output(shim->record);
}

/*
 * Reports the end in this order: disk, agent, client. The slow fsync comes later, and only if no
 * agent took the end or output is kept: otherwise the agent removes the record within moments.  But
 * a client that has attached to a detached job is told nothing that a power cut could undo.
 */
static void shim_finish(struct shim *shim)
{
	bool left = shim->depart.state == DEPART_LEFT;
	struct iocom_err err = {0};

	streams_close(&shim->streams, 0);
	if (shim->grouped) {
		user_group_outcome(&shim->user, &shim->order, &shim->group, &shim->end);
		cgroup_remove(&shim->group, SHIM_REMOVE_MS);
		user_group_leave(&shim->user, &shim->group);
	}
	gang_line_outcome(&shim->gang, shim->order.spec.node, &shim->end);
	guard_end(&shim->guard);
	lease_outcome(&shim->lease, &shim->end);
	shim->end.end_ns = shim_wall_ns();
	shim->end.wall_ms = shim->started_ms ? shim->ran_ms + shim_now_ms() - shim->started_ms : 0;
	if (left)
		shim_has_left(shim);
	if (shim->record >= 0 && record_write_exit(shim->record, &shim->end, &err))
		fprintf(stderr, "iocom-shim: job %s: %s\n", shim->leash.job, err.text);
	leash_exited(&shim->leash, &shim->end);
	if (left) {
		shim_audit_end(shim);
		shim_end_session(shim);
		return;
	}
	if (shim->detached && shim->record >= 0 && !shim->client_gone)
		record_sync(shim->record);
	shim_deliver(shim);
	leash_unlisten(&shim->leash);
}

/* The process of an earlier record is init's to reap. */
static void shim_audit(struct shim *shim, struct audit_event event)
{
	event.job = shim->order.spec.job;
	event.user = shim->user_name;
	event.uid = shim->order.uid;
	event.address = shim->address;
	shim->audit = audit_tell(&event, shim->audit, shim->order.run_dir);
	if (shim->audit < 0)
		fprintf(stderr, "iocom-shim: job %s: no process for its audit record: %s\n",
			event.job, strerror((int)-shim->audit));
}

void shim_audit_start(struct shim *shim)
{
	shim_audit(shim, (struct audit_event){.what = AUDIT_JOB_STARTED});
}

void shim_audit_end(struct shim *shim)
{
	const struct record_exit *end = &shim->end;
	enum audit_what what = AUDIT_JOB_LOST;

	if (!spec_job_valid(shim->order.spec.job))
		return; /* not even the order was good */
	if (!shim->started_ms)
		what = AUDIT_JOB_REFUSED;
	else if (end->kind <= 1)
		what = end->kind ? AUDIT_JOB_KILLED : AUDIT_JOB_EXITED;
	else if (end->kind == RECORD_MOVED)
		what = AUDIT_JOB_MOVED;
	shim_audit(shim,
		   (struct audit_event){.what = what, .value = end->value, .reason = end->text});
}

static void failed_to_begin(struct shim *shim, int rc, const struct iocom_err *err)
{
	shim->end.kind = rc > 0 ? 2 : 3;
	/* A job that was let go on here, and did not, is lost. */
	shim->end.value = rc > 0			 ? (uint32_t)rc
			  : shim->leash.word == LEASH_GO ? LEASE_OUTCOME
							 : 125;
	snprintf(shim->end.text, sizeof(shim->end.text), "%.255s", err->text);
	shim->streams.told[1] = shim->streams.told[2] = true; /* the job had no outputs */
	shim->detached = false;
	/* A job that did not begin leaves no record. -EALREADY: it is another supervisor's
	 * record. */
	if (rc > 0 || rc == -EALREADY || !spec_job_valid(shim->order.spec.job))
		return;
	record_remove(shim->order.jobs_dir, shim->order.spec.job);
	if (shim->record >= 0)
		close(shim->record);
	shim->record = -1;
}

int shim_run(struct shim *shim, int fd_leash, int fd_order, int fd_stream)
{
	const int none[FRAME_STREAMS] = {-1, -1, -1};
	struct iocom_err err = {0};
	int rc;

	streams_init(&shim->streams, none);
	spool_init(&shim->spool);
	scratch_init(&shim->scratch);
	gang_line_init(&shim->gang);
	leash_init(&shim->leash, fd_leash, "");
	depart_init(&shim->depart);
	shim->source.fd = -1;
	shim->renew.fd = -1;
	rc = order_read(fd_order, &shim->order, &err);
	close(fd_order);
	if (wire_init(&shim->client, fd_stream, shim->order.secure ? &shim->order.records : NULL))
		return 1;
	records_erase(&shim->order.records); /* the wire has them */
	if (!rc && shim->order.replay) {
		rc = shim_replay(shim, &err);
	} else {
		if (!rc) {
			leash_init(&shim->leash, fd_leash, shim->order.spec.job);
			audit_address(shim->client.fd, shim->address, sizeof(shim->address));
			rc = shim_begin(shim, &err);
		}
		if (rc)
			failed_to_begin(shim, rc, &err);
		else
			shim_loop(shim);
		shim_finish(shim);
	}
	if (shim->audit > 0)
		(void)audit_told(shim->audit, SHIM_AUDIT_MS);
	scratch_remove(&shim->scratch);
	renew_deinit(&shim->renew);
	gang_line_deinit(&shim->gang);
	streams_deinit(&shim->streams);
	depart_deinit(&shim->depart);
	wire_deinit(&shim->source);
	wire_deinit(&shim->client);
	leash_deinit(&shim->leash);
	if (shim->record >= 0)
		close(shim->record);
	order_deinit(&shim->order);
	return rc < 0 ? 1 : 0;
}
