/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that come later; see guest_attach.h, and user/attach.h for what they say. */
#include "agent/guest/guest_attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/attach.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "agent/guest/spool_quota.h"
#include "user/pack.h"
#include "agent/guest/replays.h"
#include "user/wire.h"

#define DAY_S	   86400
#define SPOOL_PART 8 /* of the free room is one job's */

/* --- who may ------------------------------------------------------------------- */

/* A credential is obeyed once, whatever restarts: munged's memory may not last. */
static int guest_attach_first_time(struct agent *a, const struct attach_ask *ask,
				   struct iocom_err *err)
{
	char half[17] = "";
	int rc;

	memcpy(half, ask->nonce, 16);
	rc = journal_nonce(a->journal, ask->nonce + 16, strtoull(half, NULL, 16),
			   clock_real_ns() / CLOCK_NS_PER_S, 2 * SPEC_CREDENTIAL_TTL_S, err);
	if (rc < 0)
		agent_journal_failed(a, err);
	return rc > 0 ? iocom_err_set(err, -EACCES, "this message was here before: refused") : rc;
}

static int owner_of(struct agent *a, const char *name, uid_t *uid)
{
	const struct job *job = jobs_find(&a->jobs, name);

	if (!job)
		return launch_owner(a->jobs_dir, name, uid);
	*uid = job->order.uid;
	return 0;
}

/* Who asks. */
static int identify(struct agent *a, const struct attach_ask *ask, const void *packed,
		    size_t length, const char *credential, const struct ucred *local, uid_t *who,
		    struct iocom_err *err)
{
	struct credential by;
	int rc;

	if (strcmp(ask->node, a->set.name) != 0)
		return iocom_err_set(err, -EACCES, "the message is meant for node %s, this is %s",
				     ask->node, a->set.name);
	*who = local ? local->uid : (uid_t)-1;
	if (local)
		return 0;
	rc = agent_credential(a, &by, credential, err);
	if (rc)
		return rc;
	rc = attach_bound(ask, packed, length, &by, a->set.name, err);
	*who = by.uid;
	credential_free(&by);
	return rc;
}

static int authorise(struct agent *a, const struct attach_ask *ask, const struct ucred *local,
		     uid_t uid, struct iocom_err *err)
{
	uid_t owner;

	/* Whose jobs there are is nobody else's business: both sentences are one. */
	if (owner_of(a, ask->job, &owner) || (uid != 0 && uid != owner))
		return iocom_err_set(err, -ENOENT,
				     "no job of yours named %s runs at node %s, nor is output of "
				     "it kept there",
				     ask->job, a->set.name);
	/* After that question: who has no job here writes nothing into the journal. */
	return local ? 0 : guest_attach_first_time(a, ask, err);
}

/* --- what has ended and left nothing --------------------------------------------- */

struct ended {
	uid_t uid;
	bool ended;
	int kind, value;
	char text[256];
};

static void take_ended(void *arg, const struct journal_job *job)
{
	struct ended *e = arg;

	e->uid = job->uid;
	e->ended = job->end_ns != 0;
	e->kind = job->exit_kind;
	e->value = job->exit_value;
	snprintf(e->text, sizeof(e->text), "%s", job->text ? job->text : "");
}

/* The end of a job of UID's of which the journal alone is left; then FD is taken. */
static bool tell_ended(struct agent *a, int fd, const char *job, uid_t uid)
{
	struct ended e = {0};
	char text[ATTACH_END_MAX];
	struct wire wire;
	uid_t owner;

	if (!owner_of(a, job, &owner) || journal_find(a->journal, job, uid, take_ended, &e) ||
	    !e.ended || (uid != 0 && uid != e.uid) || wire_init(&wire, fd))
		return false;
	attach_end_text(text, job, e.kind, e.value, e.text);
	(void)wire_exit(&wire, (uint8_t)e.kind, (uint32_t)e.value, text);
	wire_deinit(&wire);
	return true;
}

static int guest_attach_hand_over(struct agent *a, int fd, const char *job, const void *ask,
				  size_t length, uid_t uid, struct iocom_err *err)
{
	const struct job *known = jobs_find(&a->jobs, job);
	int rc = launch_attach(a->run_jobs_dir, job, ask, length, fd);

	if (!rc) {
		close(fd); /* the shim has its own */
		return 0;
	}
	if (rc != -ESRCH)
		return iocom_err_set(err, rc, "the supervisor of job %s does not answer: %s", job,
				     strerror(-rc));
	if (known && known->state != JOB_ENDED)
		return iocom_err_set(err, -EAGAIN, "job %s is only starting, or ending", job);
	return replays_start(a, ask, length, fd, uid, err);
}

static int guest_attach(struct agent *a, int fd, const msgpack_object *map,
			const struct ucred *local, struct iocom_err *err)
{
	const msgpack_object *cred = unpack_get(map, "cred"), *bin = unpack_get(map, "ask");
	char *credential = NULL;
	struct attach_ask ask;
	uid_t uid = (uid_t)-1;
	int rc;

	if (!bin || bin->type != MSGPACK_OBJECT_BIN)
		return iocom_err_set(err, -EBADMSG, "the attach message asks for nothing");
	if (cred && cred->type == MSGPACK_OBJECT_STR)
		credential = strndup(cred->via.str.ptr, cred->via.str.size);
	if (!local && !credential)
		return iocom_err_set(err, -EACCES,
				     "attaching from another machine needs a credential");
	rc = attach_unpack(&ask, bin->via.bin.ptr, bin->via.bin.size, err);
	if (!rc)
		rc = identify(a, &ask, bin->via.bin.ptr, bin->via.bin.size, credential, local, &uid,
			      err);
	/* Who comes back for the rest is not told an end that would look whole. */
	if (!rc && !*ask.resume && tell_ended(a, fd, ask.job, uid)) {
		free(credential);
		return 0;
	}
	if (!rc)
		rc = authorise(a, &ask, local, uid, err);
	if (!rc)
		rc = guest_attach_hand_over(a, fd, ask.job, bin->via.bin.ptr, bin->via.bin.size,
					    uid, err);
	free(credential);
	return rc;
}

int target_attach(struct agent *a, int fd, const void *payload, uint32_t length,
		  const struct ucred *local, struct iocom_err *err)
{
	msgpack_unpacked map;
	int rc;

	if (unpack_map(&map, payload, length))
		return iocom_err_set(err, -EBADMSG, "the attach message is not a MessagePack map");
	rc = guest_attach(a, fd, &map.data, local, err);
	msgpack_unpacked_destroy(&map);
	return rc;
}

/* --- what is kept ----------------------------------------------------------------- */

static bool is_live(void *arg, const char *job)
{
	const struct agent *a = arg;

	return jobs_find(&a->jobs, job) != NULL;
}

struct leaving {
	struct leaving *next;
	char job[SPEC_JOB_MAX];
	uid_t uid;
};

static void leaves(struct agent *a, const char *job, uid_t uid)
{
	struct leaving *l = calloc(1, sizeof(*l));

	if (!l)
		return; /* without memory the next prune finds it */
	snprintf(l->job, sizeof(l->job), "%s", job);
	l->uid = uid;
	l->next = a->leaving;
	a->leaving = l;
}

static void kept_counted(struct agent *a, uid_t uid, uint64_t bytes)
{
	a->spool_kept_bytes += bytes;
	spool_quota_users_add(&a->spool_users, uid, bytes);
}

void target_forget(struct agent *a, const char *job, uid_t uid)
{
	int64_t kept = launch_forget(a->jobs_dir, a->run_jobs_dir, job);

	if (kept > 0)
		kept_counted(a, uid, (uint64_t)kept);
	if (kept == -EBUSY)
		leaves(a, job, uid);
}

void target_forget_left(struct agent *a)
{
	struct leaving *todo = a->leaving, *l;

	a->leaving = NULL;
	while ((l = todo)) {
		todo = l->next;
		target_forget(a, l->job, l->uid);
		free(l);
	}
}

size_t target_leaving_of(struct agent *a, uid_t uid)
{
	size_t n = 0;

	for (const struct leaving *l = a->leaving; l; l = l->next)
		n += l->uid == uid;
	return n;
}

static void leaving_free(struct agent *a)
{
	struct leaving *l;

	while ((l = a->leaving)) {
		a->leaving = l->next;
		free(l);
	}
}

/* Bytes that running detached jobs may still write: all, or those of ONE user. */
static uint64_t reserved(const struct agent *a, const uid_t *one)
{
	uint64_t sum = 0;

	for (const struct job *job = a->jobs.first; job; job = job->next)
		if (!one || job->order.uid == *one)
			sum += job->spool_bytes;
	return sum;
}

static uint64_t guest_attach_minus(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* What one user may have on the disk; 0 in the settings: half of all. */
static uint64_t share_of_one(const struct agent *a)
{
	uint64_t mb = a->set.spool_user_mb;

	return mb ? mb << 20 : ((uint64_t)a->set.spool_total_mb << 20) / 2;
}

/* UID is to have ROOM bytes free, the others keep what they have. */
static void guest_attach_prune(struct agent *a, uid_t uid, uint64_t room)
{
	uint64_t now = clock_real_ns(), total = (uint64_t)a->set.spool_total_mb << 20;
	uint64_t span = (uint64_t)a->set.keep_days * DAY_S * CLOCK_NS_PER_S;
	const struct spool_quota_limits limits = {
		.jobs = a->set.keep_jobs,
		.oldest_ns = now > span ? now - span : 0,
		.bytes = guest_attach_minus(total, reserved(a, NULL) + room),
		.of_one = share_of_one(a),
		.uid = uid,
		.of_uid = uid ? guest_attach_minus(share_of_one(a), reserved(a, &uid) + room) : 0,
	};
	struct spool_quota_sum sum;
	int rc = spool_quota_prune(a->jobs_dir, a->run_jobs_dir, &limits, is_live, a, &sum,
				   &a->spool_users);

	if (rc)
		log_write(&a->log, LOG_L_ERROR, "cannot tidy the jobs' records in %s: %s",
			  a->jobs_dir, strerror(-rc));
	a->spool_kept_bytes = sum.bytes;
	a->counters.outputs_removed += sum.removed_jobs;
	a->counters.outputs_removed_share += sum.removed_share;
}

void target_spool_prune(struct agent *a)
{
	guest_attach_prune(a, 0, 0);
}

uint64_t target_spool_share(const struct agent *a, uid_t uid)
{
	uint64_t total = (uint64_t)a->set.spool_total_mb << 20;
	uint64_t most = (uint64_t)a->set.spool_mb << 20;
	uint64_t part = guest_attach_minus(total, reserved(a, NULL)) / SPOOL_PART;
	uint64_t own = uid ? guest_attach_minus(share_of_one(a), reserved(a, &uid)) : part;

	if (part > own)
		part = own;
	return most < part ? most : part;
}

uint64_t target_spool_quota(struct agent *a, uid_t uid, uint64_t wanted)
{
	uint64_t total = (uint64_t)a->set.spool_total_mb << 20,
		 most = (uint64_t)a->set.spool_mb << 20;
	uint64_t share = target_spool_share(a, uid), left;

	if (!wanted || wanted > most)
		wanted = most;
	a->counters.outputs_short += wanted > share;
	if (wanted > share)
		wanted = share;
	if (reserved(a, NULL) + a->spool_kept_bytes + wanted > total ||
	    (uid && reserved(a, &uid) + spool_quota_users_of(&a->spool_users, uid) + wanted >
			    share_of_one(a)))
		guest_attach_prune(a, uid, wanted);
	left = guest_attach_minus(total, reserved(a, NULL) + a->spool_kept_bytes);
	return wanted < left ? wanted : left;
}

void target_attach_stop(struct agent *a)
{
	replays_stop(a);
	leaving_free(a);
	spool_quota_users_free(&a->spool_users);
}

/* --- the CLI -------------------------------------------------------------------- */

struct where {
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
	uid_t uid;
	bool found;
};

static void take_where(void *arg, const struct journal_job *job)
{
	struct where *w = arg;

	w->found = true;
	w->uid = job->uid;
	snprintf(w->job, sizeof(w->job), "%s", job->job);
	snprintf(w->node, sizeof(w->node), "%s", job->node ? job->node : "");
}

void attach_request(struct agent *a, struct client *c, const msgpack_object *request)
{
	const struct matrix_entry *e = NULL;
	uid_t uid = client_who(c)->uid;
	char job[SPEC_JOB_MAX];
	struct where w = {0};
	int later = 0;
	bool local;

	if (unpack_str(request, "job", job, sizeof(job))) {
		client_error(c, "the request names no \"job\"");
		return;
	}
	/* Of a job that was run again: its last attempt, which is the same user's. */
	if (strcmp(job, "last"))
		later = journal_lease_last(a->journal, job, NULL);
	if (later < 0 || journal_find(a->journal, job, uid, take_where, &w)) {
		client_error(c, "cannot read the job journal in %s", a->set.state_dir);
		return;
	}
	if (!w.found || !w.node[0] || (uid != 0 && uid != w.uid)) {
		client_error(c,
			     "no job of yours named %s was submitted or ran at node %s; ask at its "
			     "home node, `iocom jobs --all` lists them",
			     job, a->set.name);
		return;
	}
	local = !strcmp(w.node, a->set.name);
	if (!local) {
		e = matrix_find(&a->matrix, w.node);
		if (!e || !e->alive) {
			client_error(c, "node %s, where job %s was placed, is silent", w.node, job);
			return;
		}
	}
	client_json(c, json_pack("{s:s,s:i,s:s,s:s,s:i,s:b,s:s}", "job", w.job, "later", later,
				 "node", w.node, "address", local ? "" : e->vector.address, "port",
				 local ? 0 : e->vector.port + 2, "tls", a->tls && !local,
				 "munge_socket", a->set.munge_socket));
}
