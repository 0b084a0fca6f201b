/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Clients that attach later (user/attach.h has their request), and the output that is kept for
 * them.
 */
#include "agent/guest/guest_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/attach.h"
#include "user/clock.h"
#include "agent/guest/spool_quota.h"
#include "user/pack.h"
#include "agent/guest/replays.h"
#include "agent/shim/order.h"
#include "user/wire.h"

#define DAY_S	   86400
#define SPOOL_PART 8 /* one job gets this part of the free room */

/* --- who may ------------------------------------------------------------------- */

/* A credential is obeyed once, whatever restarts: munged forgets used ones when it restarts. */
static int guest_attach_first_time(struct guest *guest, const struct attach_ask *ask,
				   struct iocom_err *err)
{
	char half[17] = "";
	int rc;

	memcpy(half, ask->nonce, 16);
	rc = journal_nonce(guest->journal, ask->nonce + 16, strtoull(half, NULL, 16),
			   loop_real_ns(guest->base->loop) / CLOCK_NS_PER_S,
			   2 * SPEC_CREDENTIAL_TTL_S, err);
	if (rc < 0)
		base_journal_failed(guest->base, err);
	return rc > 0 ? iocom_err_set(err, -EACCES, "this message was here before: refused") : rc;
}

static int owner_of(struct guest *guest, const char *name, uid_t *uid)
{
	const struct job *job = jobs_find(&guest->jobs, name);

	if (!job)
		return guest->launcher->owner(guest->jobs_dir, name, uid);
	*uid = job->order.uid;
	return 0;
}

/* Checks that the question is for this node. */
static int is_for_us(const struct guest *guest, const struct attach_ask *ask, struct iocom_err *err)
{
	if (strcmp(ask->node, guest->base->set->name) != 0)
		return iocom_err_set(err, -EACCES, "the message is meant for node %s, this is %s",
				     ask->node, guest->base->set->name);
	return 0;
}

/* Which jobs exist is secret from other users: both cases get the same sentence. */
static int not_theirs(const struct guest *guest, const char *job, struct iocom_err *err)
{
	return iocom_err_set(
		err, -ENOENT,
		"no job of yours named %s runs at node %s, nor is output of it kept there", job,
		guest->base->set->name);
}

static int authorise(struct guest *guest, const struct attach_ask *ask, bool local, uid_t uid,
		     struct iocom_err *err)
{
	uid_t owner;

	if (owner_of(guest, ask->job, &owner) || (uid != 0 && uid != owner))
		return not_theirs(guest, ask->job, err);
	/* Only now: a user without a job here must not write to the journal. */
	return local ? 0 : guest_attach_first_time(guest, ask, err);
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

/* Returns true if only the journal still knows UID's job, and its end E. */
static bool has_ended(struct guest *guest, const char *job, uid_t uid, struct ended *e)
{
	uid_t owner;

	*e = (struct ended){0};
	return owner_of(guest, job, &owner) &&
	       !journal_find(guest->journal, job, uid, take_ended, e) && e->ended &&
	       (uid == 0 || uid == e->uid);
}

int guest_attach_owned(struct guest *guest, const char *job, uid_t uid, bool *ended,
		       struct iocom_err *err)
{
	struct ended e;
	uid_t owner;

	*ended = has_ended(guest, job, uid, &e);
	return *ended || (!owner_of(guest, job, &owner) && (uid == 0 || uid == owner))
		       ? 0
		       : not_theirs(guest, job, err);
}

/* A client that attaches: its connection, the keys of its stream, and whose it is. */
struct attacher {
	int fd;
	const struct records *records; /* NULL: a client of this machine */
	uid_t uid;
};

/* Tells the end of the client's job, if only the journal still knows it; then FD is taken. */
static bool tell_ended(struct guest *guest, const struct attacher *by, const char *job)
{
	char text[ATTACH_END_MAX];
	struct ended e;
	struct wire wire;

	if (!has_ended(guest, job, by->uid, &e) || wire_init(&wire, by->fd, by->records))
		return false;
	attach_end_text(text, job, e.kind, e.value, e.text);
	(void)wire_exit(&wire, (uint8_t)e.kind, (uint32_t)e.value, text);
	wire_deinit(&wire);
	return true;
}

static int guest_attach_hand_over(struct guest *guest, const struct attacher *by, const char *job,
				  const msgpack_object_bin *bin, struct iocom_err *err)
{
	const struct launch_ask ask = {
		.packed = bin->ptr, .length = bin->size, .records = by->records};
	const struct job *known = jobs_find(&guest->jobs, job);
	int rc = guest->launcher->attach(guest->run_jobs_dir, job, &ask, by->fd);

	if (!rc) {
		wire_close(by->fd); /* the shim has its own copy */
		return 0;
	}
	if (rc != -ESRCH)
		return iocom_err_set(err, rc, "the supervisor of job %s does not answer: %s", job,
				     strerror(-rc));
	if (known && known->state != JOB_ENDED)
		return iocom_err_set(err, -EAGAIN, "job %s is just starting or ending", job);
	return replays_start(guest, job, &ask, by->fd, by->uid, err);
}

/* An attach message; BIN is what its credential binds. */
struct attach_message {
	msgpack_unpacked map;
	const msgpack_object_bin *bin;
	struct attach_ask ask;
};

/* Returns 0: the caller destroys M's map; negative errno with the reason in ERR. */
static int attach_message_unpack(struct attach_message *m, const void *payload, uint32_t length,
				 struct iocom_err *err)
{
	const msgpack_object *bin;
	int rc = unpack_map(&m->map, payload, length);

	if (rc)
		return iocom_err_set(err, rc,
				     rc == -E2BIG ? "the attach message has too many values"
						  : "the attach message is not a MessagePack map");
	bin = unpack_get(&m->map.data, "ask");
	if (!bin || bin->type != MSGPACK_OBJECT_BIN) {
		rc = iocom_err_set(err, -EBADMSG, "the attach message asks for nothing");
	} else {
		m->bin = &bin->via.bin;
		rc = attach_unpack(&m->ask, m->bin->ptr, m->bin->size, err);
	}
	if (rc)
		msgpack_unpacked_destroy(&m->map);
	return rc;
}

static int guest_attach_user(struct guest *guest, const struct attacher *by,
			     const struct attach_message *m, struct iocom_err *err)
{
	int rc;

	if (guest_move_is_elsewhere(guest, m->ask.job, by->uid)) {
		if (!*m->ask.resume)
			return iocom_err_set(err, -EAGAIN,
					     "job %s moved to another node just now: try again",
					     m->ask.job);
		wire_close(by->fd); /* without an answer, so its client asks home where it is */
		return 0;
	}
	/*
	 * A client that resumes must not get just an end, which would look as if it had all output.
	 */
	if (!*m->ask.resume && tell_ended(guest, by, m->ask.job))
		return 0;
	rc = authorise(guest, &m->ask, !by->records, by->uid, err);
	if (!rc)
		rc = guest_attach_hand_over(guest, by, m->ask.job, m->bin, err);
	if (rc != -EAGAIN || !*m->ask.resume)
		return rc;
	/* Its shim left a moment ago, which is not known here yet: home is asked, as above. */
	err->text[0] = 0;
	wire_close(by->fd);
	return 0;
}

int guest_attach(void *arg, int fd, const void *payload, uint32_t length, const struct ucred *local,
		 struct iocom_err *err)
{
	const struct attacher by = {.fd = fd, .uid = local->uid};
	struct attach_message m;
	int rc = attach_message_unpack(&m, payload, length, err);

	if (rc)
		return rc;
	rc = is_for_us(arg, &m.ask, err);
	if (!rc)
		rc = guest_attach_user(arg, &by, &m, err);
	msgpack_unpacked_destroy(&m.map);
	return rc;
}

/* Checks that the request is what its stream's key is for. */
static int guest_attach_fits(const struct guest *guest, const struct stream_hello *hello,
			     const struct attach_ask *ask, struct iocom_err *err)
{
	if (strcmp(ask->job, hello->job) != 0)
		return iocom_err_set(err, -EACCES,
				     "the stream is for job %s, the message for job %s", hello->job,
				     ask->job);
	if (!*hello->ticket && !*ask->resume)
		return iocom_err_set(err, -EACCES,
				     "attaching from another node needs a ticket of node %s, which "
				     "`iocom attach` asks for",
				     guest->base->set->name);
	return 0;
}

int guest_attach_check(void *arg, const struct stream_hello *hello, const void *payload,
		       uint32_t length, char **credential, struct iocom_err *err)
{
	const msgpack_object *cred;
	struct attach_message m;
	int rc = attach_message_unpack(&m, payload, length, err);

	*credential = NULL;
	if (rc)
		return rc;
	cred = unpack_get(&m.map.data, "cred");
	if (!cred || cred->type != MSGPACK_OBJECT_STR)
		rc = iocom_err_set(err, -EACCES,
				   "attaching from another machine needs a credential");
	else
		rc = is_for_us(arg, &m.ask, err);
	if (!rc)
		rc = guest_attach_fits(arg, hello, &m.ask, err);
	if (!rc) {
		*credential = strndup(cred->via.str.ptr, cred->via.str.size);
		if (!*credential)
			rc = iocom_err_set(err, -ENOMEM, "out of memory");
	}
	msgpack_unpacked_destroy(&m.map);
	return rc;
}

/*
 * A ticket is good for the first request.  One that resumes is its holder's: the shim asks for the
 * nonce of its connection.
 */
static int guest_attach_ticket(struct guest *guest, const struct stream_hello *hello,
			       const struct attach_ask *ask, uid_t uid, struct iocom_err *err)
{
	if (*ask->resume)
		return 0;
	return tickets_use(&guest->tickets, hello->ticket, hello->job, uid,
			   loop_boot_ns(guest->base->loop), err);
}

int guest_attach_of(void *arg, int fd, const struct stream_secure *secure, const void *payload,
		    uint32_t length, const struct credential *who, struct iocom_err *err)
{
	const struct attacher by = {.fd = fd, .uid = who->uid, .records = &secure->records};
	struct guest *guest = arg;
	struct attach_message m;
	int rc = attach_message_unpack(&m, payload, length, err);

	if (rc)
		return rc;
	rc = attach_bound(&m.ask, m.bin->ptr, m.bin->size, who, guest->base->set->name, err);
	if (!rc)
		rc = guest_attach_ticket(guest, &secure->hello, &m.ask, who->uid, err);
	if (!rc)
		rc = guest_attach_user(guest, &by, &m, err);
	msgpack_unpacked_destroy(&m.map);
	return rc;
}

/* --- what is kept ----------------------------------------------------------------- */

static bool is_live(void *arg, const char *job)
{
	const struct guest *guest = arg;

	return jobs_find(&guest->jobs, job) != NULL;
}

struct leaving {
	struct leaving *next;
	char job[SPEC_JOB_MAX];
	uid_t uid;
	struct spool_reserved reserved;
};

static void leaves(struct guest *guest, const char *job, uid_t uid,
		   const struct spool_reserved *reserved)
{
	struct leaving *l = calloc(1, sizeof(*l));

	if (!l)
		return; /* if memory is out, the next prune finds it */
	snprintf(l->job, sizeof(l->job), "%s", job);
	l->uid = uid;
	l->reserved = *reserved;
	l->next = guest->leaving;
	guest->leaving = l;
}

static void kept_counted(struct guest *guest, uid_t uid, uint64_t bytes)
{
	guest->spool_kept_bytes += bytes;
	spool_quota_users_add(&guest->spool_users, uid, bytes);
}

void guest_forget(struct guest *guest, const char *job, uid_t uid,
		  const struct spool_reserved *reserved)
{
	int64_t kept = -EBUSY;

	/* A client that attached just after the end was sent to the record: it must find it. */
	if (!replays_read(guest, job))
		kept = guest->launcher->forget(guest->jobs_dir, guest->run_jobs_dir, job);
	if (kept > 0)
		kept_counted(guest, uid, (uint64_t)kept);
	if (kept == -EBUSY)
		leaves(guest, job, uid, reserved);
}

void guest_forget_left(struct guest *guest)
{
	struct leaving *todo = guest->leaving, *l;

	guest->leaving = NULL;
	while ((l = todo)) {
		todo = l->next;
		guest_forget(guest, l->job, l->uid, &l->reserved);
		free(l);
	}
}

size_t guest_leaving_of(const struct guest *guest, uid_t uid, size_t *all)
{
	size_t n = 0;

	*all = 0;
	for (const struct leaving *l = guest->leaving; l; l = l->next) {
		n += l->uid == uid;
		++*all;
	}
	return n;
}

static void leaving_free(struct guest *guest)
{
	struct leaving *l;

	while ((l = guest->leaving)) {
		guest->leaving = l->next;
		free(l);
	}
}

/* What running jobs have reserved, and jobs whose shims have not left. */
struct room_taken {
	uint64_t all, attached;	    /* of all users */
	uint64_t own, own_attached; /* of one user */
};

static void room_add(struct room_taken *room, const struct spool_reserved *r, bool own)
{
	uint64_t attached = r->attached ? r->bytes : 0;

	room->all += r->bytes;
	room->attached += attached;
	room->own += own ? r->bytes : 0;
	room->own_attached += own ? attached : 0;
}

static struct room_taken room_taken(const struct guest *guest, uid_t uid)
{
	struct room_taken room = {0};

	for (const struct job *job = guest->jobs.first; job; job = job->next)
		room_add(&room, &(struct spool_reserved){job->spool_bytes, job->attached},
			 job->order.uid == uid);
	for (const struct leaving *l = guest->leaving; l; l = l->next)
		room_add(&room, &l->reserved, l->uid == uid);
	return room;
}

uint64_t guest_spool_reserved(const struct guest *guest)
{
	return room_taken(guest, 0).all;
}

static uint64_t guest_attach_minus(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* One user's share of the disk; 0 in the settings: half of all. */
static uint64_t share_of_one(const struct guest *guest)
{
	uint64_t mb = guest->base->set->spool_user_mb;

	return mb ? mb << 20 : ((uint64_t)guest->base->set->spool_total_mb << 20) / 2;
}

/* Prunes until UID has ROOM bytes free; other users keep their output. */
static void guest_attach_prune(struct guest *guest, uid_t uid, uint64_t room)
{
	uint64_t now = loop_real_ns(guest->base->loop),
		 total = (uint64_t)guest->base->set->spool_total_mb << 20;
	uint64_t span = (uint64_t)guest->base->set->keep_days * DAY_S * CLOCK_NS_PER_S;
	const struct room_taken taken = room_taken(guest, uid);
	const struct spool_quota_limits limits = {
		.jobs = guest->base->set->keep_jobs,
		.oldest_ns = now > span ? now - span : 0,
		.bytes = guest_attach_minus(total, taken.all + room),
		.of_one = share_of_one(guest),
		.uid = uid,
		.of_uid = uid ? guest_attach_minus(share_of_one(guest), taken.own + room) : 0,
	};
	struct spool_quota_sum sum;
	int rc = spool_quota_prune(guest->jobs_dir, guest->run_jobs_dir, &limits, is_live, guest,
				   &sum, &guest->spool_users);

	if (rc)
		log_write(guest->base->log, LOG_L_ERROR, "cannot tidy the jobs' records in %s: %s",
			  guest->jobs_dir, strerror(-rc));
	guest->spool_kept_bytes = sum.bytes;
	guest->base->counters->outputs_removed += sum.removed_jobs;
	guest->base->counters->outputs_removed_share += sum.removed_share;
}

void guest_spool_prune(struct guest *guest)
{
	guest_attach_prune(guest, 0, 0);
}

uint64_t guest_spool_share(const struct guest *guest, uid_t uid)
{
	const struct room_taken taken = room_taken(guest, uid);
	uint64_t total = (uint64_t)guest->base->set->spool_total_mb << 20;
	uint64_t most = (uint64_t)guest->base->set->spool_mb << 20;
	uint64_t part = guest_attach_minus(total, taken.all) / SPOOL_PART;
	uint64_t own = uid ? guest_attach_minus(share_of_one(guest), taken.own) : part;

	if (part > own)
		part = own;
	return most < part ? most : part;
}

/* Makes room for WANTED bytes of a new job of UID.  Returns how many of them there are. */
static uint64_t make_room(struct guest *guest, uid_t uid, uint64_t wanted)
{
	const struct room_taken taken = room_taken(guest, uid);
	uint64_t total = (uint64_t)guest->base->set->spool_total_mb << 20, left;

	if (taken.all + guest->spool_kept_bytes + wanted > total ||
	    (uid && taken.own + spool_quota_users_of(&guest->spool_users, uid) + wanted >
			    share_of_one(guest)))
		guest_attach_prune(guest, uid, wanted);
	left = guest_attach_minus(total, taken.all + guest->spool_kept_bytes);
	return wanted < left ? wanted : left;
}

uint64_t guest_spool_quota(struct guest *guest, uid_t uid, uint64_t wanted)
{
	uint64_t most = (uint64_t)guest->base->set->spool_mb << 20;
	uint64_t share = guest_spool_share(guest, uid);

	if (!wanted || wanted > most)
		wanted = most;
	guest->base->counters->outputs_short += wanted > share;
	return make_room(guest, uid, wanted < share ? wanted : share);
}

static uint64_t guest_attach_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What attached jobs may still reserve, as the header says; UID 0 only shares half of all. */
static uint64_t spill_share(const struct guest *guest, uid_t uid)
{
	const struct room_taken taken = room_taken(guest, uid);
	uint64_t total = (uint64_t)guest->base->set->spool_total_mb << 20;
	uint64_t share = share_of_one(guest), room = guest_attach_minus(total, taken.all);
	uint64_t unused = guest_attach_minus(total / 2, taken.attached);

	room = guest_attach_least(room, unused);
	if (!uid)
		return room;
	room = guest_attach_least(room, guest_attach_minus(unused, taken.own_attached));
	room = guest_attach_least(room, guest_attach_minus(share, taken.own));
	return guest_attach_least(room, guest_attach_minus(share / 2, taken.own_attached));
}

uint64_t guest_spill_quota(struct guest *guest, uid_t uid)
{
	uint64_t share = guest_attach_least(spill_share(guest, uid), SHIM_SPILL_MAX);

	/* Where no output is ever kept, none is short. */
	guest->base->counters->outputs_short +=
		guest->base->set->spool_total_mb && share < SHIM_SPILL_MAX;
	return make_room(guest, uid, share);
}

void guest_attach_stop(struct guest *guest)
{
	replays_stop(guest);
	leaving_free(guest);
	spool_quota_users_free(&guest->spool_users);
}
