/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs at their target: their start and end, and the jobs of an earlier agent.  guest_admit.c
 * admits jobs, guest_report.c tells their homes, jobs.c holds the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/account.h"
#include "agent/base/accounts.h"
#include "agent/guest/guest_own.h"
#include "user/clock.h"
#include "agent/guest/paths.h"
#include "agent/guest/replays.h"
#include "agent/guest/signals.h"
#include "agent/jobs/leases.h"
#include "user/pack.h"
#include "agent/shim/lease.h"
#include "agent/guest/start_message.h"

#define SETTLE_NS      (20 * CLOCK_NS_PER_MS)
#define AGAIN_NS       CLOCK_NS_PER_S /* when ends that the journal did not take are written again */
#define SETTLE_BUSY_NS (100 * CLOCK_NS_PER_MS) /* between settlings, when jobs end all the time */
#define STARTS_NS      (20 * CLOCK_NS_PER_MS) /* a job that ends sooner sends no separate "started" */
#define RESPARE_NS     (20 * CLOCK_NS_PER_MS) /* after a job begins */
#define REPORT_EVERY   5		      /* chores */
#define RESPARE_END_NS                                                                             \
	(1 * CLOCK_NS_PER_MS) /* after a job ends, so that its client hears of that first */

/* --- the end of a job -------------------------------------------------------- */

static void close_leash(struct guest *guest, struct job *job)
{
	if (job->leash < 0)
		return;
	loop_remove(guest->base->loop, &job->leash_entry);
	close(job->leash);
	job->leash = -1;
}

/* One reading serves all jobs that ended since the last one. */
static void guest_job_over(struct guest *guest, struct job *job)
{
	close_leash(guest, job);
	job->busy = false;
	job->state = JOB_ENDED;
	if (!guest->spare.waits)
		loop_start(guest->base->loop, &guest->respare, RESPARE_END_NS);
	if (!job->end.end_ns)
		job->end.end_ns = loop_real_ns(guest->base->loop);
	if (!guest->settle.active)
		loop_start(guest->base->loop, &guest->settle,
			   loop_boot_ns(guest->base->loop) - guest->settled_ns < SETTLE_BUSY_NS
				   ? SETTLE_BUSY_NS
				   : SETTLE_NS);
	guest->ports->changed(guest->ports->arg);
}

static int write_end(struct guest *guest, const struct job *job, struct iocom_err *err)
{
	struct job_report r;
	struct journal_job row;
	msgpack_sbuffer body;
	int rc;

	job_report_make(job, guest->config.cpu_speed, &r);
	row = (struct journal_job){
		.job = r.job,
		.state = r.state,
		.start_ns = r.start_ns,
		.end_ns = r.end_ns,
		.exit_kind = (int)r.kind,
		.exit_value = (int)r.value,
		.text = r.text,
	};
	msgpack_sbuffer_init(&body);
	job_report_pack(&r, &body);
	rc = journal_end(guest->journal, &row, body.data, body.size, err);
	msgpack_sbuffer_destroy(&body);
	return rc;
}

/* Writes all ends in one transaction, or none.  0, or the journal failed. */
static int write_ends(struct guest *guest)
{
	struct iocom_err err = {0};
	int rc = journal_begin(guest->journal, &err);
	bool said = true;

	for (struct job *job = guest->jobs.first; job && !rc; job = job->next)
		if (job->state == JOB_ENDED)
			rc = write_end(guest, job, &err);
	if (rc)
		journal_cancel(guest->journal);
	else
		rc = journal_commit(guest->journal, &err);
	for (struct job *job = guest->jobs.first; job; job = job->next)
		if (job->state == JOB_ENDED)
			said &= job->unwritten;
	if (rc && !said)
		base_journal_failed(guest->base, &err);
	return rc;
}

/* RC is the journal's result: if it failed, the shim's record stays, and so does JOB. */
static void settle_job(struct guest *guest, struct job *job, int rc)
{
	if (!job->unwritten) {
		guest->base->counters->jobs_ended++;
		guest->base->counters->jobs_lost += job->lost;
	}
	job->unwritten = rc != 0;
	if (rc)
		return;
	guest_forget(guest, job->order.job, job->order.uid);
	guest_ended(guest, job->order.job);
	jobs_remove(&guest->jobs, job);
}

static void shim_died(struct guest *guest, struct job *job);

static void settle_all(void *arg)
{
	struct guest *guest = arg;
	struct job *next;
	bool any = false;
	int rc = 0;

	guest->ports->sample(guest->ports->arg);
	guest->settled_ns = loop_boot_ns(guest->base->loop);
	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (job->busy)
			shim_died(guest, job);
		any |= job->state == JOB_ENDED;
	}
	if (any)
		rc = write_ends(guest);
	guest_report_ended(guest, rc != 0);
	for (struct job *job = guest->jobs.first; job; job = next) {
		next = job->next;
		if (job->state == JOB_ENDED)
			settle_job(guest, job, rc);
	}
	if (rc && !guest->settle.active)
		loop_start(guest->base->loop, &guest->settle, AGAIN_NS);
}

/* Ends a job as lost: no shim supervises it, and no record tells its outcome. */
static void guest_lost(struct guest *guest, struct job *job, const char *why)
{
	/* The job's record may not name its cgroup, or may be missing. */
	guest->launcher->bury(guest->base->set->scope_cgroup, job->order.job);
	job->lost = true;
	job->end.kind = 3;
	job->end.value = LEASE_OUTCOME;
	if (!job->end.text[0])
		snprintf(job->end.text, sizeof(job->end.text), "%s", why);
	log_write(guest->base->log, LOG_L_ERROR, "job %s is lost: %.200s", job->order.job,
		  job->end.text);
	guest_job_over(guest, job);
}

static void guest_on_started(struct guest *guest, struct job *job, const struct launch_event *e)
{
	/* A shim that renewed its lease sends the same event. */
	if (job->state == JOB_RUNNING && !job->late && job->pid == e->pid) {
		guest_lease_told(job, e);
		return;
	}
	guest->base->counters->jobs_started += job->state != JOB_RUNNING;
	job->state = JOB_RUNNING;
	job->pid = e->pid;
	job->cgroup_id = e->cgroup_id;
	job->late = false;
	guest_lease_told(job, e);
	if (!job->start_ns)
		job->start_ns = loop_real_ns(guest->base->loop);
	job->told = false;
	if (!guest->starts.active)
		loop_start(guest->base->loop, &guest->starts, STARTS_NS);
}

static void guest_starts(void *arg)
{
	struct guest *guest = arg;
	struct iocom_err err = {0};

	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (job->state != JOB_RUNNING || job->told)
			continue;
		job->told = true;
		if (journal_started(guest->journal, job->order.job, job->start_ns, job->pid,
				    job->cgroup_id, &err))
			base_journal_failed(guest->base, &err);
		guest_tell_started(guest, job);
	}
}

static void guest_respare(void *arg)
{
	struct guest *guest = arg;

	guest->launcher->spare_make(&guest->spare, guest->base->set->shim,
				    guest->base->set->scope_cgroup);
}

static void is_newer(struct guest *guest, struct job *job);

static void leash_ready(void *arg, uint32_t events)
{
	struct job *job = arg;
	struct guest *guest = job->guest;
	struct launch_event e = {0};
	int rc = guest->launcher->read(job->leash, &e);

	(void)events;
	if (rc == -EAGAIN)
		return;
	if (rc == -EPROTONOSUPPORT) {
		close_leash(guest, job);
		is_newer(guest, job);
		return;
	}
	if (rc) {
		shim_died(guest, job);
		return;
	}
	if (e.type == LAUNCH_STARTED) {
		guest_on_started(guest, job, &e);
	} else if (e.type == LAUNCH_EXITED) {
		job->end = e;
		job->lost = e.kind == 3 && e.value == LEASE_OUTCOME;
		guest_job_over(guest, job);
	}
}

/* If that is impossible, the chores ask its shim for another leash. */
static void watch_leash(struct guest *guest, struct job *job, int leash)
{
	int rc;

	job->leash = leash;
	job->leash_entry = (struct loop_fd){.fd = leash, .ready = leash_ready, .arg = job};
	rc = loop_add(guest->base->loop, &job->leash_entry, EPOLLIN);
	if (!rc)
		return;
	log_write(guest->base->log, LOG_L_ERROR, "cannot watch job %s: %s; tried again",
		  job->order.job, strerror(-rc));
	close_leash(guest, job);
	job->busy = true;
}

/* Leaves the job alone until it ends; the chores check for that. */
static void is_newer(struct guest *guest, struct job *job)
{
	if (!job->newer)
		log_write(guest->base->log, LOG_L_WARNING,
			  "job %s: its supervisor speaks a later version than this agent; the job "
			  "is left alone until it ends",
			  job->order.job);
	job->newer = job->late = job->busy = true;
}

/*
 * The shim lives but has not answered: it is stopped, slow, or of a later version.  The job is not
 * lost: it counts as running until its shim answers or is gone.
 */
static void is_late(struct guest *guest, struct job *job, const struct launch_found *f)
{
	bool late = f->busy || (f->leash >= 0 && !f->started.pid);

	guest->base->counters->jobs_late += late && !job->late;
	job->late = late;
	if (f->newer)
		is_newer(guest, job);
}

/* What a look at the job's record and shim found. */
static void guest_take_found(struct guest *guest, struct job *job, const struct launch_found *f)
{
	job->busy = f->busy;
	is_late(guest, job, f);
	if (f->start_ns)
		job->start_ns = f->start_ns;
	if (f->started.cgroup_id)
		job->cgroup_id = f->started.cgroup_id;
	if (f->busy)
		return;
	if (f->leash < 0) {
		job->end = f->last;
		if (f->last.kind == 3 && f->last.value == LAUNCH_NEVER)
			guest->launcher->bury(
				guest->base->set->scope_cgroup,
				job->order.job); /* the directory is made before the record */
		if (f->last.kind == 3 && f->last.value != LAUNCH_NEVER)
			guest_lost(guest, job, "its supervisor was killed");
		else
			guest_job_over(guest, job);
		return;
	}
	watch_leash(guest, job, f->leash);
	if (f->started.pid)
		guest_on_started(guest, job, &f->started);
}

/* The shim is gone without reporting an end: take the record's outcome, else the job is lost. */
static void shim_died(struct guest *guest, struct job *job)
{
	struct launch_found f = {0};
	bool before = job->busy;

	close_leash(guest, job);
	if (guest->launcher->outcome(guest->jobs_dir, guest->run_jobs_dir, job->order.job, &f)) {
		guest_lost(guest, job, "the job's supervisor was killed, and its record is gone");
		return;
	}
	guest_take_found(guest, job, &f);
	/* Killed a moment ago, it may hold its lock yet.  Later the chores look. */
	if (job->busy && !before && !guest->settle.active)
		loop_start(guest->base->loop, &guest->settle, SETTLE_NS);
}

/* --- the start of a job ------------------------------------------------------ */

static int accept_once(struct guest *guest, const struct job *job, struct iocom_err *err)
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

	/* The shim has the secret: keep it out of the journal. */
	kept.renews = false;
	msgpack_sbuffer_init(&order);
	job_order_pack(&kept, &order);
	rc = journal_accept(guest->journal, &row, order.data, order.size, err);
	msgpack_sbuffer_destroy(&order);
	if (rc < 0)
		guest->base->counters->journal_failures++;
	return rc == JOURNAL_E_SEEN ? -EEXIST : rc;
}

/* Marks a job that was accepted but never launched. */
static void never_launched(struct guest *guest, struct job *job, const struct iocom_err *err)
{
	job->end.kind = 3;
	job->end.value = LAUNCH_NEVER;
	snprintf(job->end.text, sizeof(job->end.text), "%.250s", err->text);
	guest_job_over(guest, job);
}

/* The directory of PAM's rules for jobs; NULL: no PAM. */
static const char *pam_directory(const struct guest *guest)
{
	const char *directory =
		guest->base->set->pam_dir[0] ? guest->base->set->pam_dir : "/etc/pam.d";
	char file[SETTINGS_PATH_MAX + 16];

	if (guest->base->set->pam == SETTINGS_PAM_AUTO) {
		snprintf(file, sizeof(file), "%s/iocom", directory);
		return access(file, F_OK) ? NULL : directory;
	}
	return guest->base->set->pam == SETTINGS_PAM_ON ? directory : NULL;
}

static int launch(struct guest *guest, struct job *job, int fd, uid_t uid, gid_t gid,
		  const void *spec, uint32_t length, bool local, struct iocom_err *err)
{
	struct launch_order order = {
		.shim_path = guest->base->set->shim,
		.jobs_dir = guest->jobs_dir,
		.run_dir = guest->run_jobs_dir,
		.scope_cgroup = guest->base->set->scope_cgroup,
		.uid = uid,
		.gid = gid,
		.allow_root = local || guest->base->set->allow_root,
		.pam = pam_directory(guest),
		.begin_ms = guest->base->set->begin_limit_s * 1000,
		.lease_until_ms = guest_lease_until_ms(job),
		.renew = {.secret = job->order.renews ? job->order.secret : NULL,
			  .address = job->order.home_address,
			  .port = (uint16_t)(job->order.home_port + 2),
			  .lease_ms = job->order.lease_ms},
		.spool_max = job->spool_bytes,
		.spec = spec,
		.spec_length = length,
		.spare = &guest->spare,
	};
	struct account account;
	pid_t shim;
	int leash, rc;

	rc = accept_once(guest, job, err);
	if (rc)
		return rc;
	/*
	 * This process has loaded nsswitch.conf's modules already.  If the name service is silent,
	 * the shim does the lookup and waits instead of the loop.
	 */
	if (!accounts_find(guest->accounts, uid, &account))
		order.account = &account;
	job->start_ns = loop_real_ns(guest->base->loop);
	/* Not now: let this job begin first.  A job that ends soon starts the next spare itself. */
	loop_start(guest->base->loop, &guest->respare, RESPARE_NS);
	rc = guest->launcher->shim(&order, fd, &shim, &leash, err);
	if (order.account)
		account_free(&account);
	explicit_bzero(job->order.secret, sizeof(job->order.secret));
	job->order.renews = false;
	if (rc) {
		never_launched(guest, job, err);
		return rc;
	}
	job->state = JOB_LAUNCHING;
	watch_leash(guest, job, leash);
	return 0;
}

static int check_lease(struct guest *guest, const struct spec *spec, struct job **out,
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
	if (job->order.lease_ms && loop_boot_ns(guest->base->loop) >= job->lease.until_ns)
		return iocom_err_set(err, -EACCES,
				     "the job stream came too late: the lease of job %s is over",
				     spec->job);
	*out = job;
	return 0;
}

static int start_spec(struct guest *guest, int fd, const struct spec *spec, const void *packed,
		      uint32_t length, const char *credential, const struct ucred *local,
		      struct iocom_err *err)
{
	uid_t uid = local ? local->uid : (uid_t)-1;
	gid_t gid = local ? local->gid : (gid_t)-1;
	struct job *job = NULL;
	int rc = check_lease(guest, spec, &job, err);

	if (rc)
		return rc;
	if (!local) {
		struct credential who;

		rc = guest->ports->credential(guest->ports->arg, &who, credential, err);
		if (rc)
			return rc;
		rc = spec_bound(spec, packed, length, &who, guest->base->set->name, err);
		uid = who.uid;
		gid = who.gid;
		credential_free(&who);
		if (rc)
			return rc;
	}
	if (uid != job->order.uid)
		return iocom_err_set(err, -EACCES, "job %s was submitted by uid %u, not by uid %u",
				     spec->job, (unsigned)job->order.uid, (unsigned)uid);
	if (spec->detach)
		job->spool_bytes = guest_spool_quota(guest, job->order.uid, spec->spool_bytes);
	return launch(guest, job, fd, uid, gid, packed, length, local != NULL, err);
}

int guest_start(void *arg, int fd, const void *payload, uint32_t length, const struct ucred *local,
		struct iocom_err *err)
{
	struct guest *guest = arg;
	struct start_message m;
	int rc = start_message_unpack(&m, payload, length, err);

	if (rc)
		return rc;
	if (!local && !m.credential)
		rc = iocom_err_set(err, -EACCES, "a job from another machine needs a credential");
	else
		rc = start_spec(guest, fd, &m.spec, m.packed, m.length, m.credential, local, err);
	start_message_free(&m);
	return rc;
}

/* Asks shims again that could not be asked before. */
static void look_for_busy(struct guest *guest)
{
	for (struct job *job = guest->jobs.first; job; job = job->next)
		if (job->busy)
			shim_died(guest, job);
}

static void guest_expire(struct guest *guest)
{
	uint64_t now = loop_boot_ns(guest->base->loop);
	struct job *next;

	look_for_busy(guest);

	for (struct job *job = guest->jobs.first; job; job = next) {
		struct job_report r;

		next = job->next;
		if (job->state != JOB_LEASED || job->lease_until_ns > now)
			continue;
		guest->base->counters->leases_expired++;
		job->end.kind = 3;
		job->end.value = LAUNCH_NEVER;
		job->end.end_ns = loop_real_ns(guest->base->loop);
		snprintf(job->end.text, sizeof(job->end.text),
			 "the client did not come within %d s of the lease",
			 (int)(JOBS_LEASE_NS / CLOCK_NS_PER_S));
		job_report_make(job, guest->config.cpu_speed, &r);
		guest_report(guest, &job->order, &r);
		jobs_remove(&guest->jobs, job);
		guest->ports->changed(guest->ports->arg);
	}
}

/* --- after a restart --------------------------------------------------------- */

static void unfinished(void *arg, const char *name, uint64_t start_ns, uint64_t cgroup_id,
		       const void *order, size_t length)
{
	struct guest *guest = arg;
	struct job_order o;
	msgpack_unpacked map;
	struct job *job = NULL;

	if (!unpack_map(&map, order, length)) {
		job = job_order_unpack(&o, &map.data) == 0 ? jobs_add(&guest->jobs, &o) : NULL;
		msgpack_unpacked_destroy(&map);
	}
	if (!job) {
		log_write(guest->base->log, LOG_L_ERROR,
			  "job %s: its order in the journal cannot be read, or there is no memory "
			  "for it; this agent cannot tell when it ends",
			  name);
		return;
	}
	job->guest = guest;
	job->state = JOB_LAUNCHING;
	job->start_ns = start_ns;
	job->cgroup_id = cgroup_id;
}

static int found(void *arg, const struct launch_found *f)
{
	struct guest *guest = arg;
	struct job *job = jobs_find(&guest->jobs, f->job);

	if (!job) {
		/*
		 * The job's end is in the journal and only the shim's files are left, or it is not
		 * our job.
		 */
		if (f->leash >= 0)
			close(f->leash);
		guest_forget(guest, f->job, f->uid);
		return 0;
	}
	if (f->spooled)
		job->spool_bytes = guest_spool_share(guest, job->order.uid);
	if (f->leash >= 0 || f->busy)
		log_write(guest->base->log, LOG_L_INFO, "job %s still runs", f->job);
	guest_take_found(guest, job, f);
	return 0;
}

/* A 48-bit number that identifies this boot of the machine; 0: not known. */
static double this_boot(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned high = 0, low = 0;

	if (file && fscanf(file, "%8x-%4x", &high, &low) != 2)
		high = low = 0;
	if (file)
		fclose(file);
	return high * 65536.0 + low;
}

/*
 * The job was accepted, but it has no record.  A record is removed only if its job did not begin,
 * or if the journal has its end; but a power cut may have destroyed it.
 */
static void nothing_left(struct guest *guest, struct job *job, bool same_boot)
{
	struct iocom_err err = {.text = "it never began: its agent ended first"};

	guest->launcher->bury(guest->base->set->scope_cgroup, job->order.job);
	if (same_boot && !job->start_ns)
		never_launched(guest, job, &err);
	else
		guest_lost(guest, job, "no record of it was left after the agent's restart");
}

int guest_recover(struct guest *guest, struct iocom_err *err)
{
	double boot = this_boot();
	bool same_boot = boot > 0 && journal_fact(guest->journal, "boot") == boot;
	int rc;

	if (!same_boot)
		(void)journal_set_fact(guest->journal, "boot", boot);
	if (journal_unfinished(guest->journal, unfinished, guest))
		return iocom_err_set(err, -EIO, "cannot read the job journal in %s",
				     guest->base->set->state_dir);
	rc = guest->launcher->recover(guest->jobs_dir, guest->run_jobs_dir, found, guest, err);
	if (rc)
		return rc;
	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (job->leash < 0 && !job->busy && job->state != JOB_ENDED)
			nothing_left(guest, job, same_boot);
	}
	guest_spool_prune(guest);
	replays_recover(guest);
	return 0;
}

/* --- the party ---------------------------------------------------------------- */

void guest_settle(struct guest *guest)
{
	if (!guest->settle.active)
		return;
	loop_cancel(guest->base->loop, &guest->settle);
	settle_all(guest);
}

void guest_ended(const struct guest *guest, const char *job)
{
	for (const struct guest_watch *w = guest->watches; w; w = w->next)
		w->ended(w->arg, job);
}

void guest_watch(struct guest *guest, struct guest_watch *watch)
{
	watch->next = guest->watches;
	guest->watches = watch;
}

void guest_chores(struct guest *guest)
{
	guest_expire(guest);
	guest_lease_chores(guest);
	guest_forget_left(guest);
	if (guest->chores++ % REPORT_EVERY == 0)
		guest_report_pending(guest);
}

int guest_new(struct guest **out, const struct guest_config *config, struct iocom_err *err)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest || paths_new(&guest->paths, config->base->loop)) {
		free(guest);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	guest->config = *config;
	guest->base = config->base;
	guest->ports = &guest->config.ports;
	guest->launcher = config->launcher;
	guest->jobs_dir = config->jobs_dir;
	guest->run_jobs_dir = config->run_jobs_dir;
	guest->journal = config->journal;
	guest->accounts = config->accounts;
	guest->jobs.network_mb_per_s = config->base->set->network_mb_per_s;
	guest->settle = (struct loop_timer){.fire = settle_all, .arg = guest};
	guest->starts = (struct loop_timer){.fire = guest_starts, .arg = guest};
	guest->respare = (struct loop_timer){.fire = guest_respare, .arg = guest};
	*out = guest;
	return 0;
}

void guest_begin(struct guest *guest)
{
	loop_start(guest->base->loop, &guest->respare, 0);
}

void guest_stop(struct guest *guest)
{
	if (!guest)
		return;
	paths_free(guest->paths);
	guest->paths = NULL;
	signals_stop(guest);
}

void guest_free(struct guest *guest)
{
	if (!guest)
		return;
	guest_stop(guest);
	guest_attach_stop(guest);
	for (struct job *job = guest->jobs.first; job; job = job->next)
		close_leash(guest, job);
	loop_cancel(guest->base->loop, &guest->settle);
	loop_cancel(guest->base->loop, &guest->starts);
	loop_cancel(guest->base->loop, &guest->respare);
	guest->launcher->spare_drop(&guest->spare);
	jobs_fini(&guest->jobs);
	free(guest);
}

/* --- what others may know ------------------------------------------------------ */

static uint64_t guest_sampled(void *arg, const struct monitor_sample *sample)
{
	struct guest *guest = arg;

	return jobs_sampled(&guest->jobs, guest->config.names, sample);
}

static void guest_period(void *arg, double elapsed_ms)
{
	struct guest *guest = arg;

	jobs_period(&guest->jobs, elapsed_ms);
}

static struct vector_job *guest_vector(void *arg, size_t *n)
{
	const struct guest *guest = arg;

	return jobs_vector(&guest->jobs, n);
}

struct pulse_jobs guest_pulse_jobs(struct guest *guest)
{
	return (struct pulse_jobs){
		.arg = guest,
		.sampled = guest_sampled,
		.period = guest_period,
		.vector = guest_vector,
	};
}

int guest_whose(const struct guest *guest, uint64_t cgroup_id, const char **job, uid_t *uid)
{
	return jobs_whose(&guest->jobs, cgroup_id, job, uid);
}

bool guest_is_late(const struct guest *guest, const char *name)
{
	const struct job *job = jobs_find(&guest->jobs, name);

	return job && job->late && job->state != JOB_ENDED;
}

void guest_count(const struct guest *guest, struct guest_counts *counts)
{
	*counts = (struct guest_counts){
		.jobs = guest->jobs.count,
		.signals = signals_count(guest),
		.replays = replays_count(guest),
		.spool_bytes = guest->spool_kept_bytes,
	};
	if (guest->paths)
		counts->paths = paths_count(guest->paths, &counts->paths_late);
}
