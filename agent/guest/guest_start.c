/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The start of a job at its target, whose client has come with the start message:
 *
 *   its lease is checked -> accepted in the journal -> held until that is durable -> launched
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/account.h"
#include "agent/base/accounts.h"
#include "agent/base/loop_share.h"
#include "agent/guest/guest_own.h"
#include "user/clock.h"
#include "user/pam_service.h"
#include "agent/shim/order.h"
#include "agent/guest/start_message.h"
#include "agent/guest/user_limits.h"
#include "user/wire.h"

#define RESPARE_NS (20 * CLOCK_NS_PER_MS) /* after a job begins */

static int guest_start_accept(struct guest *guest, const struct job *job, struct iocom_err *err)
{
	const struct job_order *o = &job->order;
	struct journal_job row = {
		.job = o->job,
		.home = o->home,
		.node = guest->base->set->name,
		.uid = o->uid,
		.class_name = o->class_name,
		.command = o->command,
		.policy = o->policy,
		.submit_ns = o->submit_ns,
	};
	msgpack_sbuffer order;
	struct job_order kept = *o;
	int rc;

	/* The job's record has the secret: keep it out of the journal. */
	job_order_forget(&kept);
	msgpack_sbuffer_init(&order);
	job_order_pack(&kept, &order);
	rc = o->move ? journal_arrive(guest->journal, &row, order.data, order.size, err)
		     : journal_accept(guest->journal, &row, order.data, order.size, err);
	msgpack_sbuffer_destroy(&order);
	if (rc < 0)
		guest->base->counters->journal_failures++;
	return rc == JOURNAL_E_SEEN ? -EEXIST : rc;
}

/* The directory of PAM's rules for jobs; NULL: no PAM. */
static const char *guest_start_pam(const struct guest *guest)
{
	const struct settings *set = guest->base->set;
	const char *directory = set->pam_dir[0] ? set->pam_dir : PAM_SERVICE_DIRECTORY;
	char file[SETTINGS_PATH_MAX + 16];
	struct stat st;

	if (set->pam != SETTINGS_PAM_AUTO)
		return set->pam == SETTINGS_PAM_ON ? directory : NULL;
	snprintf(file, sizeof(file), "%s/" PAM_SERVICE_NAME, directory);
	/* A link that leads nowhere, or a file that cannot be read, must not let everybody in. */
	return lstat(file, &st) && (errno == ENOENT || errno == ENOTDIR) ? NULL : directory;
}

/* A start that the journal has: its client's stream, user and spec. */
struct start {
	int fd;
	uid_t uid;
	gid_t gid;
	const void *spec; /* packed */
	uint32_t length;
	bool local;
	const struct records *records;	   /* the keys of its stream; NULL: LOCAL */
	const struct guest_placed *placed; /* what its stream begins with; NULL: nothing */
};

/* A start that waits until the disk has it, too. */
struct start_held {
	struct start_held *next;
	struct guest *guest;
	struct journal_wait wait;
	char job[SPEC_JOB_MAX];
	struct start start;
	struct records records; /* if START has any */
	uint8_t spec[];
};

/* Starts JOB, whose row is in the journal.  Returns 0, and the shim has the stream; or an error. */
static int guest_start_launch(struct guest *guest, struct job *job, const struct start *start,
			      struct iocom_err *err)
{
	uint8_t renewal[SECRET_KEY] = {0};
	struct launch_order order = {
		.shim_path = guest->base->set->shim,
		.jobs_dir = guest->jobs_dir,
		.run_dir = guest->run_jobs_dir,
		.scope_cgroup = guest->base->set->scope_cgroup,
		.uid = start->uid,
		.gid = start->gid,
		.allow_root = start->local || guest->base->set->allow_root,
		.pam = guest_start_pam(guest),
		.begin_ms = guest->base->set->begin_limit_s * 1000,
		.lease_until_ms = guest_lease_until_ms(job),
		.secret = job->order.keyed ? job->order.secret : NULL,
		.records = start->records,
		.renew = {.secret = job->order.renews ? renewal : NULL,
			  .address = job->order.home_address,
			  .port = (uint16_t)(job->order.home_port + 2),
			  .lease_ms = job->order.lease_ms},
		.guest = !guest_is_home(guest, &job->order),
		.user_limits = user_limits_of(guest->config.user_limits, start->uid,
					      loop_boot_ns(guest->base->loop)),
		.spool_max = job->attached ? 0 : job->spool_bytes,
		.spill_max = job->attached ? job->spool_bytes : 0,
		.data_dir = guest->base->set->data_dir,
		.data_cache_bytes = (uint64_t)guest->base->set->data_cache_mb << 20,
		.spec = start->spec,
		.spec_length = start->length,
		.spare = &guest->spare,
		.criu = job->order.move ? guest->base->set->criu : NULL,
	};
	struct account account;
	pid_t shim;
	int leash, rc;

	/*
	 * This process has loaded nsswitch.conf's modules already.  If the name service is silent,
	 * the shim does the lookup and waits instead of the loop.
	 */
	if (!accounts_find(guest->accounts, start->uid, &account))
		order.account = &account;
	secret_derive(renewal, job->order.secret, SECRET_RENEWAL, job->order.job, "");
	job->start_ns = loop_real_ns(guest->base->loop);
	/* Not now: let this job begin first.  A job that ends soon starts the next spare itself. */
	loop_start(guest->base->loop, &guest->respare, RESPARE_NS);
	rc = guest->launcher->shim(&order, start->fd, &shim, &leash, err);
	if (order.account)
		account_free(&account);
	explicit_bzero(renewal, sizeof(renewal));
	if (rc) {
		guest_never_launched(guest, job, err);
		return rc;
	}
	job->state = JOB_LAUNCHING;
	guest_shim_watch(guest, job, leash);
	return 0;
}

static void start_held_free(struct start_held *held)
{
	for (struct start_held **p = &held->guest->held; *p; p = &(*p)->next) {
		if (*p != held)
			continue;
		*p = held->next;
		break;
	}
	journal_forget(held->guest->journal, &held->wait);
	if (held->start.fd >= 0)
		wire_close(held->start.fd);
	records_erase(&held->records);
	free(held);
}

/* Tells the client of a held start why its job does not begin. */
static void start_held_refuse(struct start_held *held, const struct iocom_err *err)
{
	struct wire wire;

	log_write(held->guest->base->log, LOG_L_WARNING, "job %s does not begin: %s", held->job,
		  err->text);
	if (wire_init(&wire, held->start.fd, held->start.records))
		return;
	(void)wire_error(&wire, err->text);
	wire_deinit(&wire);
	held->start.fd = -1;
}

/* Home may have given JOB up while its start waited, and may run it elsewhere. */
static bool start_is_late(const struct guest *guest, const struct job *job)
{
	/* The lease of a job that moves here begins later. */
	return job->order.lease_ms && !job->order.move &&
	       loop_boot_ns(guest->base->loop) >= job->lease.until_ns;
}

static void start_held_durable(void *arg, int rc)
{
	struct start_held *held = arg;
	struct guest *guest = held->guest;
	struct job *job = jobs_find(&guest->jobs, held->job);
	struct iocom_err err = {0};

	if (rc && job) {
		iocom_err_set(
			&err, rc,
			"node %s cannot write to its disk that the job began (%s), so it does "
			"not begin",
			guest->base->set->name, strerror(-rc));
		guest_never_launched(guest, job, &err);
	} else if (job && start_is_late(guest, job)) {
		rc = iocom_err_set(&err, -EACCES,
				   "the disk of node %s was slower than the lease of job %s, which "
				   "is over, so the job does not begin",
				   guest->base->set->name, held->job);
		guest_never_launched(guest, job, &err);
	} else if (job) {
		rc = guest_start_launch(guest, job, &held->start, &err);
	}
	if (job && rc)
		start_held_refuse(held, &err);
	else if (job)
		held->start.fd = -1;
	start_held_free(held);
}

/* Takes the stream.  Returns 0 or -ENOMEM. */
static int guest_start_hold(struct guest *guest, struct job *job, const struct start *start,
			    struct iocom_err *err)
{
	struct start_held *held = calloc(1, sizeof(*held) + start->length);

	if (!held) {
		iocom_err_set(err, -ENOMEM, "out of memory");
		guest_never_launched(guest, job, err);
		return -ENOMEM;
	}
	held->guest = guest;
	held->start = *start;
	held->start.spec = held->spec;
	held->start.placed = NULL; /* said already */
	if (start->records) {
		held->records = *start->records;
		held->start.records = &held->records;
	}
	memcpy(held->spec, start->spec, start->length);
	memcpy(held->job, job->order.job, sizeof(held->job));
	held->wait = (struct journal_wait){.done = start_held_durable, .arg = held};
	held->next = guest->held;
	guest->held = held;
	job->state = JOB_LAUNCHING;
	(void)journal_when_durable(guest->journal, &held->wait);
	return 0;
}

/* Ends the transaction that home began for this job, with all that home wrote, if it did. */
static int guest_start_commit(struct guest *guest, struct iocom_err *err)
{
	int rc = journal_settle(guest->journal, err);

	guest->base->counters->journal_failures += rc != 0;
	return rc;
}

/* Sends what comes before the job's own frames: the shim is not there yet. */
static int guest_start_lead(struct guest *guest, struct job *job, const struct start *start,
			    struct iocom_err *err)
{
	const struct guest_placed *placed = start->placed;
	ssize_t n = send(start->fd, placed->lead, placed->lead_length, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n == (ssize_t)placed->lead_length)
		return 0;
	iocom_err_set(err, -EPIPE, "the client of job %s left before its job began",
		      job->order.job);
	guest_never_launched(guest, job, err);
	return -EPIPE;
}

/*
 * A start that is told to somebody who then leaves (a detached job's) must survive a power cut: the
 * disk has the job's row before it begins.  The start of an attached job waits for no disk.  After
 * a power cut its processes are gone, and it cannot begin again, because its lease and nonce were
 * in the lost agent's memory only; its home has not been told that it runs (guest_shim_begun),
 * and so calls it failed.
 */
static int guest_start_job(struct guest *guest, struct job *job, const struct start *start,
			   struct iocom_err *err)
{
	int rc = guest_start_accept(guest, job, err);

	if (!rc)
		rc = guest_start_commit(guest, err);
	if (!rc && start->placed)
		rc = guest_start_lead(guest, job, start, err);
	if (rc)
		return rc;
	if (job->order.durable &&
	    !journal_is_durable(guest->journal, journal_position(guest->journal)))
		return guest_start_hold(guest, job, start, err);
	return guest_start_launch(guest, job, start, err);
}

static int guest_start_lease(struct guest *guest, const struct spec *spec, struct job **out,
			     struct iocom_err *err)
{
	struct job *job = jobs_find(&guest->jobs, spec->job);

	if (strcmp(spec->node, guest->base->set->name))
		return iocom_err_set(err, -EACCES, "job %s is meant for node %s, this is %s",
				     spec->job, spec->node, guest->base->set->name);
	if (!job || job->state != JOB_LEASED || strcmp(job->nonce, spec->nonce))
		return iocom_err_set(
			err, -EACCES,
			"node %s holds no lease for job %s: it expired after %d s, was "
			"used, or was never granted",
			guest->base->set->name, spec->job, (int)(JOBS_LEASE_NS / CLOCK_NS_PER_S));
	/* Home counts the lease from the grant: it may have given the job up by now. */
	if (start_is_late(guest, job))
		return iocom_err_set(err, -EACCES,
				     "the job stream came too late: the lease of job %s is over",
				     spec->job);
	*out = job;
	return 0;
}

/* Who starts a job: a client of this machine, or whoever made the credential. */
struct starter {
	uid_t uid;
	gid_t gid;
	bool local;
	bool agent;			   /* of the node where the job is now; it has no uid */
	const struct records *records;	   /* the keys of its stream; NULL: LOCAL */
	const struct guest_placed *placed; /* the job's place, if the client learns it with this */
};

/* A job that moves here has its user's own group. */
static int guest_start_gid(const struct guest *guest, const struct job *job, gid_t *gid,
			   struct iocom_err *err)
{
	struct account account;
	int rc = accounts_find(guest->accounts, job->order.uid, &account);

	if (rc)
		return iocom_err_set(err, rc, "node %s does not know user %u now",
				     guest->base->set->name, (unsigned)job->order.uid);
	*gid = account.gid;
	account_free(&account);
	return 0;
}

/* The client of JOB came with M: checks whose it is, and starts the job. */
static int guest_start_leased(struct guest *guest, int fd, struct start_message *m, struct job *job,
			      const struct starter *by, struct iocom_err *err)
{
	gid_t gid = by->gid;
	int rc;

	if (by->agent != (job->order.move != 0))
		return iocom_err_set(err, -EACCES, "job %s runs already and moves here",
				     m->spec.job);
	if (!by->agent && by->uid != job->order.uid)
		return iocom_err_set(err, -EACCES, "job %s was submitted by uid %u, not by uid %u",
				     m->spec.job, (unsigned)job->order.uid, (unsigned)by->uid);
	rc = by->agent ? guest_start_gid(guest, job, &gid, err) : 0;
	if (!rc)
		rc = start_message_open(m, err);
	if (rc)
		return rc;
	job->attached = !m->spec.detach;
	job->order.migratable = m->spec.migratable;
	job->spool_bytes = job->attached
				   ? guest_spill_quota(guest, job->order.uid)
				   : guest_spool_quota(guest, job->order.uid, m->spec.spool_bytes);
	return guest_start_job(guest, job,
			       &(struct start){.fd = fd,
					       .uid = job->order.uid,
					       .gid = gid,
					       .spec = m->packed,
					       .length = m->length,
					       .local = by->local,
					       .records = by->records,
					       .placed = by->placed},
			       err);
}

/*
 * A stranger costs no more than a look at three names.  Whoever knows the lease's nonce has it from
 * the job's user, who is charged from there on; the spec is decoded when the sender is known.
 */
static int guest_start_spec(struct guest *guest, int fd, struct start_message *m,
			    const struct starter *by, struct iocom_err *err)
{
	struct job *job = NULL;
	int rc = guest_start_lease(guest, &m->spec, &job, err);
	uid_t before;

	if (rc)
		return rc;
	before = loop_share_enter(guest->base->shares, job->order.uid);
	rc = guest_start_leased(guest, fd, m, job, by, err); /* this may free JOB */
	loop_share_leave(guest->base->shares, before);
	return rc;
}

int guest_start(void *arg, int fd, const void *payload, uint32_t length, const struct ucred *local,
		struct iocom_err *err)
{
	const struct starter by = {.uid = local->uid, .gid = local->gid, .local = true};
	struct start_message m;
	int rc = start_message_unpack(&m, payload, length, err);

	if (rc)
		return rc;
	rc = guest_start_spec(arg, fd, &m, &by, err);
	start_message_free(&m);
	return rc;
}

int guest_start_placed(void *arg, int fd, const struct guest_placed *placed,
		       const struct ucred *local, struct iocom_err *err)
{
	const struct starter by = {
		.uid = local->uid, .gid = local->gid, .local = true, .placed = placed};
	struct start_message m;
	int rc = start_message_name(&m, placed->spec, placed->length, placed->job, placed->node,
				    placed->nonce, err);

	if (rc)
		return rc;
	rc = guest_start_spec(arg, fd, &m, &by, err);
	start_message_free(&m);
	return rc;
}

int guest_start_check(void *arg, const struct stream_hello *hello, const void *payload,
		      uint32_t length, char **credential, struct iocom_err *err)
{
	struct job *job = NULL;
	struct start_message m;
	int rc = start_message_unpack(&m, payload, length, err);

	*credential = NULL;
	if (rc)
		return rc;
	if (strcmp(m.spec.job, hello->job) != 0)
		rc = iocom_err_set(err, -EACCES, "the stream is for job %s, the message for job %s",
				   hello->job, m.spec.job);
	else
		rc = guest_start_lease(arg, &m.spec, &job, err);
	/* Of a job that moves here home gave the key to nobody but the agent of its node. */
	if (!rc && !m.credential && !job->order.move)
		rc = iocom_err_set(err, -EACCES, "a job from another machine needs a credential");
	if (!rc) {
		*credential = m.credential;
		m.credential = NULL;
	}
	start_message_free(&m);
	return rc;
}

int guest_start_of(void *arg, int fd, const struct stream_secure *secure, const void *payload,
		   uint32_t length, const struct credential *who, struct iocom_err *err)
{
	const struct starter by = {.uid = who ? who->uid : 0,
				   .gid = who ? who->gid : 0,
				   .agent = !who,
				   .records = &secure->records};
	struct guest *guest = arg;
	struct start_message m;
	int rc = start_message_unpack(&m, payload, length, err);

	if (rc)
		return rc;
	rc = who ? spec_bound(&m.spec, m.packed, m.length, who, guest->base->set->name, err) : 0;
	if (!rc)
		rc = guest_start_spec(guest, fd, &m, &by, err);
	start_message_free(&m);
	return rc;
}

void guest_start_stop(struct guest *guest)
{
	while (guest->held)
		start_held_free(guest->held);
}
