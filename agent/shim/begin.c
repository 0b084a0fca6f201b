/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a shim begins: it leaves the agent's cgroup, makes the job's cgroup, writes the record,
 * opens the control socket and starts the process. shim_finish undoes each step that was done.
 */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/arrive.h"
#include "agent/shim/rejoin.h"
#include "agent/shim/tty.h"
#include "user/keyring.h"

/*
 * Leaves the agent's cgroup, so that a service manager that stops the agent with all its
 * processes spares the shims. Best effort: a job must not fail because its supervisor is
 * accounted elsewhere.
 *
 * On cgroup v1 the devices that the agent's unit may use would be all that PAM's modules and the
 * job may use; on v2 that limit stays behind with the agent's cgroup.
 */
static void move_out(const struct shim *shim, const struct cgroup_mounts *mounts)
{
	struct cgroup shims;

	(void)cgroup_leave_devices(mounts);
	if (cgroup_name(mounts, shim->order.scope, "shims", &shims, NULL) ||
	    (shim->moved && !shims.nv1))
		return;
	/* Other shims are in this cgroup already, so -EBUSY is no error here. */
	(void)cgroup_create(&shims, NULL);
	(void)cgroup_enter(&shims, !shim->moved);
}

static int shim_make_group(struct shim *shim, struct iocom_err *err)
{
	struct cgroup_mounts mounts;
	int rc = spare_mounts(&shim->spare, &mounts, err);

	if (rc)
		return rc;
	move_out(shim, &mounts);
	rc = user_group_make(&shim->user, &shim->order, &mounts, &shim->group, err);
	/* We also remove a half-made group (v2 without v1), but not one that others use. */
	shim->grouped = rc != -EBUSY && shim->group.depth;
	return rc;
}

static int give_up_record(struct shim *shim)
{
	close(shim->record);
	shim->record = -1;
	return -EALREADY;
}

/* Opens and locks the record at PATH. A current agent has locked it already, an older one has
 * not. */
static int begin_open_record(struct shim *shim, const char *path, struct iocom_err *err)
{
	struct stat given, st;
	int rc;

	if (shim->record >= 0 && (fstat(shim->record, &given) || lstat(path, &st) ||
				  given.st_dev != st.st_dev || given.st_ino != st.st_ino)) {
		close(shim->record);
		shim->record = -1;
	}
	if (shim->record < 0)
		shim->record = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (shim->record < 0)
		return iocom_err_set(err, -errno, "cannot open the job's record %s: %s", path,
				     strerror(errno));
	rc = record_lock(shim->record);
	return rc ? iocom_err_set(err, give_up_record(shim), "job %s has a supervisor already",
				  shim->order.spec.job)
		  : 0;
}

static int write_record(struct shim *shim, struct iocom_err *err)
{
	const struct order *order = &shim->order;
	struct record_start start = {
		.uid = order->uid,
		.shim = getpid(),
		.cgroup_id = shim->group.id,
		.start_ns = shim_wall_ns(),
	};
	char path[sizeof(order->jobs_dir) + SPEC_JOB_MAX + 2];
	struct record_exit given_up;
	int rc;

	start.keyed = order->keyed;
	memcpy(start.secret, order->secret, sizeof(start.secret));
	snprintf(start.job, sizeof(start.job), "%s", order->spec.job);
	snprintf(start.class_name, sizeof(start.class_name), "%s", order->spec.class_name);
	snprintf(start.scope, sizeof(start.scope), "%s", order->scope);
	order_command(order, start.command, sizeof(start.command));
	snprintf(path, sizeof(path), "%s/%s", order->jobs_dir, order->spec.job);
	rc = begin_open_record(shim, path, err);
	if (rc)
		return rc;
	/* An agent that took us for dead has reported the job as lost: it must not run now. */
	if (!record_read_exit(shim->record, &given_up))
		return iocom_err_set(err, give_up_record(shim),
				     "job %s was given up before it began", order->spec.job);
	rc = record_write_start(shim->record, &start, err);
	explicit_bzero(start.secret, sizeof(start.secret));
	explicit_bzero(shim->order.secret, sizeof(shim->order.secret));
	return rc;
}

/* The guard needs no keys. */
static void forget_keys(void *arg)
{
	struct shim *shim = arg;

	records_erase(&shim->client.records);
	records_erase(&shim->source.records);
	records_erase(&shim->order.records);
	explicit_bzero(shim->order.secret, sizeof(shim->order.secret));
	explicit_bzero(shim->order.renew.secret, sizeof(shim->order.renew.secret));
	explicit_bzero(shim->renew.secret, sizeof(shim->renew.secret));
}

/* Frees arguments and environment, which can be megabytes: the process has its own copy now. */
static void forget_words(struct spec *spec)
{
	struct spec bare = *spec;

	bare.executable = bare.cwd = NULL;
	bare.argv = bare.env = NULL;
	bare.gang = NULL; /* its launcher has it */
	bare.gang_length = 0;
	spec_free(spec);
	*spec = bare;
}

/* Makes the files for a detached job's output before the job runs its first instruction. */
static int make_spool(struct shim *shim, struct iocom_err *err)
{
	static const uint64_t begin[FRAME_STREAMS];
	const struct spec *spec = &shim->order.spec;
	uint64_t quota = spec->spool_bytes;
	struct spool_size size;

	if (!quota || quota > shim->order.spool_max)
		quota = shim->order.spool_max;
	size = spool_share(quota, spec->tty.wanted);
	return spool_make(&shim->spool, shim->record, begin, &size, true, err);
}

/*
 * PAM's modules run in this process, and what they put into its session keyring is for this job:
 * so it must not be the agent's. The one that pam_keyinit makes for the user becomes the job's.
 */
static int begin_session(struct shim *shim, struct identity *identity, struct iocom_err *err)
{
	int32_t ours = keyring_join_new();
	int rc = pam_begin(&shim->pam, &shim->order, identity, err);

	if (!rc && ours > 0) {
		int32_t now = keyring_session();

		identity->keyring = now != ours ? now : 0;
	}
	return rc;
}

/* What came before (the name service, PAM) may have been slow: then the job may run elsewhere. */
static int begin_in_time(const struct shim *shim, struct iocom_err *err)
{
	if (!shim->lease.until_ms || shim_now_ms() < shim->lease.until_ms)
		return 0;
	return iocom_err_set(err, -ETIME,
			     "node %.64s took longer to begin job %s than its lease, which is over",
			     shim->order.spec.node, shim->order.spec.job);
}

int shim_begin(struct shim *shim, struct iocom_err *err)
{
	struct gang_launcher launcher = {0};
	struct identity identity = {0};
	struct spec *spec = &shim->order.spec;
	bool arrives = shim->order.arrives;
	int rc = identity_lookup(&identity, &shim->order, err);

	if (!rc)
		snprintf(shim->user_name, sizeof(shim->user_name), "%s", identity.name);
	if (!rc && *spec->tty.name && tty_set_term(&spec->env, spec->tty.name))
		rc = iocom_err_set(err, -ENOMEM, "out of memory for the job's environment");
	shim->lease.until_ms = shim->order.lease_until_ms;
	shim->leash.lease = &shim->lease;
	renew_init(&shim->renew, &shim->order, spec->job, shim_now_ms());
	shim->leash.renews = shim->renew.able;

	shim->detached = spec->detach;
	if (spec->detach && !spec->tty.wanted)
		spec->closed |= 1; /* no client is there to write to it */
	if (!rc)
		rc = shim_make_group(shim, err);
	if (!rc)
		rc = write_record(shim, err);
	if (!rc && spec->detach && !arrives)
		rc = make_spool(shim, err);
	if (!rc)
		rc = leash_listen(&shim->leash, shim->order.run_dir, err);
	if (!rc && shim->order.pam[0])
		rc = begin_session(shim, &identity, err);
	if (!rc && spec->data && !arrives)
		rc = stage_take(shim, &identity, err);
	if (!rc && !arrives)
		rc = begin_in_time(shim, err);
	/* A job that arrives has its lease when it may run (arrive.h). */
	if (!rc && shim->lease.until_ms)
		rc = guard_begin(&shim->guard, &shim->group,
				 arrives ? GUARD_NO_END_MS : shim->lease.until_ms, forget_keys,
				 shim, err);
	if (!rc)
		rc = gang_prepare(&shim->gang, &launcher, spec, err);
	if (arrives)
		rc = arrive_take(shim, &identity, rc, err);
	else if (!rc)
		rc = child_start(&shim->child, &shim->order, &identity, &shim->group, &launcher,
				 err);
	gang_launcher_close(&launcher);
	identity_deinit(&identity);
	if (rc)
		return rc;
	shim->started_ms = shim_now_ms();
	shim->end.pid = shim->child.pid;
	if (!arrives) {
		shim->start_ns = shim_wall_ns();
		streams_init(&shim->streams, shim->child.stdio);
		shim->streams.tty = spec->tty.wanted;
		shim->streams.spool = shim->spool;
		shim->streams.record = shim->record;
		memcpy(shim->owner, spec->nonce, sizeof(shim->owner));
	}
	shim->gives = spec->data & DATA_FLAG_BRING;
	leash_started(&shim->leash, shim->child.pid, shim->group.id);
	if (!shim->client_gone && shim_tell_started(shim))
		shim_client_lost(shim);
	shim_audit_start(shim);
	forget_words(spec);
	return 0;
}
