/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See depart.h. */
#include "agent/shim/depart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/move/belongings.h"
#include "agent/shim/move/criu.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/luggage.h"
#include "agent/shim/move/transfer.h"
#include "agent/shim/shim.h"
#include "user/cgroup_freeze.h"
#include "user/clock.h"

/* Besides the job's memory: page maps, descriptors, the luggage and criu's log. */
#define IMAGES_EXTRA_BYTES (64ULL << 20)
#define DEPART_LATE_MS	   10000 /* after its own limit, until the mover counts as lost */
#define DEPART_SETTLE_MS   (DEPART_DUMP_MS + DEPART_LATE_MS)
#define DEPART_LOOK_MS	   10
#define DEPART_END_MS	   2000 /* for the mover to hand on the last signals */

/* --- the mover --------------------------------------------------------------------------- */

/* Resident memory of all processes of GROUP, in bytes; what two share counts twice. */
static uint64_t resident_bytes(const struct cgroup *group)
{
	char path[CGROUP_PATH_MAX + 16];
	unsigned long long pages, sum = 0;
	FILE *pids, *statm;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group->v2);
	pids = fopen(path, "re");
	while (pids && fscanf(pids, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/statm", pid);
		statm = fopen(path, "re");
		if (statm && fscanf(statm, "%*u %llu", &pages) == 1)
			sum += pages;
		if (statm)
			fclose(statm);
	}
	if (pids)
		fclose(pids);
	return sum * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int copy_bytes(struct luggage_bytes *to, const void *data, size_t length)
{
	to->data = malloc(length + 1);
	if (!to->data)
		return -ENOMEM;
	if (length)
		memcpy(to->data, data, length);
	to->length = length;
	return 0;
}

static int pack_output(struct luggage_kept *to, const struct resend_buffer *kept)
{
	const uint8_t *at;
	size_t n;

	to->start = kept->start;
	to->bytes.data = malloc((size_t)(kept->end - kept->start) + 1);
	if (!to->bytes.data)
		return -ENOMEM;
	for (uint64_t offset = kept->start; offset < kept->end; offset += n) {
		at = resend_at(kept, offset, &n);
		memcpy(to->bytes.data + to->bytes.length, at, n);
		to->bytes.length += n;
	}
	return 0;
}

/* Returns the job's CPU time so far, also where it ran before, in us. */
static uint64_t depart_cpu_us(const struct shim *shim)
{
	uint64_t used_us = cgroup_cpu_us(&shim->group);

	return shim->cpu_before_us +
	       (used_us > shim->cpu_base_us ? used_us - shim->cpu_base_us : 0);
}

/* Puts together what this shim knows of the frozen job. */
static int luggage_gather(struct luggage *luggage, const struct shim *shim)
{
	const struct streams *streams = &shim->streams;
	const int fds[LUGGAGE_PIPES] = {streams->fd[0], streams->fd[1], streams->fd[2],
					shim->child.status};
	uint8_t packed[SPOOL_PACKED];
	int rc = 0;

	*luggage = (struct luggage){
		.start_ns = shim->start_ns,
		.ran_ms = shim->ran_ms + clock_boot_ms() - shim->started_ms,
		.moves = shim->depart.moves + 1,
		.grace_ms = shim->order.spec.grace_ms,
		.cpu_us = depart_cpu_us(shim),
		.begin_us = shim->child.begin_us,
		.detached = shim->detached,
		.input_ended = streams->input_ended,
		.received = streams->sent[0],
		.consumed = streams->consumed,
	};
	memcpy(luggage->job, shim->order.spec.job, sizeof(luggage->job));
	memcpy(luggage->owner, shim->owner, sizeof(luggage->owner));
	for (int i = 0; !rc && i < LUGGAGE_PIPES; i++)
		if (fds[i] >= 0)
			rc = luggage_look(&luggage->pipes[i], fds[i]);
	if (!rc && streams->spool.fd[1] >= 0) {
		spool_pack(&streams->spool, packed);
		rc = copy_bytes(&luggage->spool, packed, sizeof(packed));
	}
	if (!rc)
		rc = copy_bytes(&luggage->input,
				streams->input.length ? queue_front(&streams->input) : NULL,
				streams->input.length);
	for (int i = 1; !rc && i < FRAME_STREAMS; i++)
		rc = pack_output(&luggage->kept[i], &streams->kept[i]);
	return rc;
}

static int mover_pack(const struct shim *shim, const struct images *images, struct iocom_err *err)
{
	struct luggage luggage;
	int rc = luggage_gather(&luggage, shim);

	/* Its end says how it ended, and must not wait in an image. */
	if (!rc && luggage.pipes[LUGGAGE_PIPES - 1].held.length)
		rc = -ESRCH;
	if (!rc)
		rc = luggage_write(&luggage, images);
	luggage_free(&luggage);
	if (rc == -ESRCH)
		return iocom_err_set(err, rc, "it has ended");
	return rc ? iocom_err_set(err, rc, "cannot save the state of its streams: %s",
				  strerror(-rc))
		  : 0;
}

/* The job may have only what its user may have: the other shim asks for no more, and no less. */
static int mover_examine(const struct shim *shim, struct iocom_err *err)
{
	struct belongings_owner owner;
	gid_t *groups;
	int rc = belongings_owner_of(&owner, &groups, shim->child.pid);

	if (!rc && owner.uid != shim->order.uid)
		rc = -EPERM;
	if (rc)
		return iocom_err_set(err, rc, "cannot find out whose it is: %s", strerror(-rc));
	rc = belongings_check(&shim->group, shim->child.pid, &owner, err);
	free(groups);
	return rc;
}

/* Saves it, and notes in MOVE how long that took and how much it is. */
static int mover_save(const struct shim *shim, const struct criu *criu, struct images *images,
		      struct leash_move *move, struct iocom_err *err)
{
	uint64_t begin_ms = clock_boot_ms(), files;
	int rc = mover_examine(shim, err);

	if (!rc)
		rc = images_make(images, resident_bytes(&shim->group) + IMAGES_EXTRA_BYTES, err);
	if (!rc)
		rc = criu_dump(criu, shim->child.pid, shim->order.uid, shim->group.v2, images->path,
			       DEPART_DUMP_MS, err);
	if (!rc && !cgroup_frozen(&shim->group))
		rc = iocom_err_set(err, -EIO, "somebody let it go on while it was saved");
	if (!rc)
		rc = mover_pack(shim, images, err);
	if (!rc)
		rc = images_size(images, &move->bytes, &files);
	move->dump_ms = clock_boot_ms() - begin_ms;
	return rc;
}

/* Hands on the signals that the parent sends, until it says no more. */
static void mover_hand_on(struct wire *target, int parent)
{
	uint8_t signal;

	while (read(parent, &signal, 1) == 1)
		if (transfer_signal(target, signal, clock_boot_ms() + DEPART_END_MS))
			return;
}

/* Takes from a copy of the shim what is only the shim's.  PARENT, TARGET: what the copy needs. */
static void mover_forget(struct shim *shim)
{
	records_erase(&shim->client.records);
	records_erase(&shim->source.records);
	explicit_bzero(&shim->renew.secret, sizeof(shim->renew.secret));
	for (size_t i = 0; i < 5; i++) {
		const int fds[] = {shim->client.fd, shim->source.fd, shim->leash.fd,
				   shim->leash.listen, shim->guard.fd};

		if (fds[i] > STDERR_FILENO)
			close(fds[i]);
	}
}

/* The process that saves and sends the job, and says once, as MOVE, how that went; it does not
 * return. */
static void mover_run(struct shim *shim, const struct criu *criu, struct wire *target, int parent)
{
	uint64_t until_ms = clock_boot_ms() + DEPART_LIMIT_MS;
	struct leash_move move = {0};
	struct images images = {.fd = -1};
	struct iocom_err err = {0};
	int rc = cgroup_enter(&shim->depart.group, true);
	sigset_t term;

	mover_forget(shim);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (rc)
		iocom_err_set(&err, rc, "cannot enter the cgroup of its images: %s", strerror(-rc));
	if (!rc)
		rc = mover_save(shim, criu, &images, &move, &err);
	/* The shim says by SIGTERM that the job stays, which has waited as long as criu worked. */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	if (!rc)
		rc = transfer_send(target, &images,
				   shim->streams.spool.fd[1] >= 0 ? shim->record : -1, until_ms,
				   &err);
	images_free(&images);
	if (!rc)
		rc = transfer_await(target, until_ms, &err);
	move.failed = rc != 0;
	snprintf(move.why, sizeof(move.why), "%.255s", err.text);
	if (write(parent, &move, sizeof(move)) == (ssize_t)sizeof(move) && !rc)
		mover_hand_on(target, parent);
	_exit(rc ? 1 : 0);
}

/* --- the shim ---------------------------------------------------------------------------- */

void depart_init(struct depart *depart)
{
	*depart = (struct depart){.fd = -1};
}

/* Why the job cannot move at all; NULL: it can. */
static const char *depart_hindrance(const struct shim *shim)
{
	const struct spec *spec = &shim->order.spec;

	if (!spec->migratable)
		return "it was not started with --migratable";
	if (spec->tty.wanted)
		return "it has a terminal";
	if (spec->data)
		return "its data went along with it to this node";
	if (spec->gang)
		return "it is a part of a parallel job";
	if (shim->lease.until_ms)
		return "it is restartable: home would run it again meanwhile";
	if (!shim->started_ms || shim->main_ended || shim->child.status < 0)
		return "it has ended";
	if (shim->killed || shim->hung_up)
		return "it is being ended";
	return NULL;
}

static int make_move_group(struct shim *shim, struct iocom_err *err)
{
	struct depart *depart = &shim->depart;
	struct cgroup_mounts mounts;
	int rc = spare_mounts(&shim->spare, &mounts, err);

	if (!rc)
		rc = user_group_beside(&depart->user, &shim->order, MOVE_GROUP, &mounts,
				       &depart->group, err);
	if (rc == -EBUSY)
		depart->group = (struct cgroup){0}; /* others use it */
	return rc;
}

static void remove_move_group(struct depart *depart)
{
	if (depart->group.depth) {
		cgroup_remove(&depart->group, SHIM_REMOVE_MS);
		user_group_leave(&depart->user, &depart->group);
	}
	depart->group = (struct cgroup){0};
}

static void depart_close(struct depart *depart)
{
	if (depart->fd >= 0)
		close(depart->fd);
	depart->fd = -1;
}

/* Forks the mover, which gets TARGET. */
static int depart_fork(struct shim *shim, const struct criu *criu, struct wire *target)
{
	struct depart *depart = &shim->depart;
	pid_t parent = getpid();
	sigset_t term, before;
	int ends[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	depart->mover = fork();
	if (!depart->mover) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ends[0]);
		mover_run(shim, criu, target, ends[1]);
	}
	if (depart->mover < 0) {
		rc = -errno;
		depart->mover = 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	depart->fd = ends[0];
	return rc;
}

int depart_begin(struct shim *shim, struct leash_request *request, struct iocom_err *err)
{
	struct depart *depart = &shim->depart;
	const char *hindrance = depart_hindrance(shim);
	struct wire target;
	struct criu criu;
	int rc;

	if (depart_going(depart))
		return iocom_err_set(err, -EALREADY, "it is on its way already");
	if (hindrance)
		return iocom_err_set(err, shim->main_ended ? -ESRCH : -ENOTSUP, "%s", hindrance);
	rc = criu_find(&criu, request->criu, err);
	if (rc)
		return rc;
	if (wire_init(&target, request->stream, request->secure ? &request->records : NULL))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	request->stream = -1;
	rc = make_move_group(shim, err);
	depart->signals = 0;
	depart->told = depart->failed = false;
	depart->frozen_ms = clock_boot_ms();
	if (!rc) {
		rc = cgroup_freeze(&shim->group, DEPART_FREEZE_MS);
		if (rc)
			iocom_err_set(err, rc, "it could not be stopped within %d ms",
				      DEPART_FREEZE_MS);
	}
	if (!rc) {
		rc = depart_fork(shim, &criu, &target);
		if (rc)
			iocom_err_set(err, rc, "cannot make a process that moves it: %s",
				      strerror(-rc));
		if (rc)
			cgroup_thaw(&shim->group);
	}
	wire_deinit(&target);
	if (!rc) {
		depart->state = DEPART_SAVING;
		return 0;
	}
	depart_close(depart);
	remove_move_group(depart);
	return rc;
}

/* The job is held; as MOVE says, also at the other node. */
static void depart_held(struct shim *shim, struct leash_move *move)
{
	struct depart *depart = &shim->depart;

	if (!move->failed && !cgroup_frozen(&shim->group)) {
		move->failed = true;
		snprintf(move->why, sizeof(move->why), "somebody let it go on meanwhile");
		kill(depart->mover, SIGTERM); /* the other node ends what it holds */
	}
	depart->failed = move->failed;
	depart->state = DEPART_HELD;
	move->frozen_ms = clock_boot_ms() - depart->frozen_ms;
	leash_moved(&shim->leash, move);
}

void depart_hear(struct shim *shim)
{
	struct depart *depart = &shim->depart;
	struct leash_move move;
	ssize_t n = read(depart->fd, &move, sizeof(move));

	if (n == (ssize_t)sizeof(move)) {
		depart->told = true;
		if (depart->state == DEPART_SAVING)
			depart_held(shim, &move);
		return;
	}
	depart_close(depart);
	if (depart->state == DEPART_SAVING) {
		move = (struct leash_move){.failed = true,
					   .why = "the process that moved it was killed"};
		depart_held(shim, &move);
	}
}

uint64_t depart_due(const struct depart *depart)
{
	if (depart->state == DEPART_SAVING)
		return depart->frozen_ms + DEPART_LIMIT_MS + DEPART_LATE_MS;
	if (depart->state == DEPART_STAYING)
		return clock_boot_ms() + DEPART_LOOK_MS;
	return UINT64_MAX; /* others decide */
}

void depart_overdue(struct shim *shim)
{
	struct leash_move move = {.failed = true, .why = "it could not be moved in time"};

	if (shim->depart.state == DEPART_SAVING)
		depart_held(shim, &move);
}

bool depart_keep_signal(struct depart *depart, int signal)
{
	uint8_t byte = (uint8_t)signal;

	if (!depart_going(depart))
		return false;
	depart->signals |= 1ULL << (signal - 1);
	if (depart->fd >= 0)
		(void)send(depart->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

int depart_stay(struct shim *shim)
{
	struct depart *depart = &shim->depart;

	if (depart->state != DEPART_SAVING && depart->state != DEPART_HELD)
		return -EALREADY;
	depart->state = DEPART_STAYING;
	depart->settle_ms = clock_boot_ms() + DEPART_SETTLE_MS;
	leash_decided(&shim->leash);
	if (depart->mover > 0)
		kill(depart->mover, SIGTERM);
	return 0;
}

/* Returns true if nothing works on the job any more. */
static bool depart_is_alone(struct depart *depart)
{
	if (depart->mover > 0 && waitpid(depart->mover, NULL, WNOHANG) != 0)
		depart->mover = 0;
	return !depart->mover && (!depart->group.depth || cgroup_populated(&depart->group) != 1);
}

bool depart_settled(struct shim *shim, struct iocom_err *err)
{
	struct depart *depart = &shim->depart;
	bool late;

	if (depart->state != DEPART_STAYING)
		return false;
	late = clock_boot_ms() >= depart->settle_ms;
	if (!depart_is_alone(depart) && !late)
		return false;
	depart_close(depart);
	remove_move_group(depart);
	if (depart->mover > 0)
		(void)criu_wait(depart->mover, 0);
	depart->mover = 0;
	depart->state = DEPART_NONE;
	/* Who was killed has not tidied up. */
	if (!depart->told || late) {
		criu_bare_proc(shim->child.pid);
		if (criu_is_inside(shim->group.v2)) {
			iocom_err_set(err, -EIO,
				      "criu was killed while it saved the job, which is damaged");
			return true;
		}
	}
	cgroup_thaw(&shim->group);
	return true;
}

int depart_leave(struct shim *shim)
{
	struct depart *depart = &shim->depart;

	if (depart->state != DEPART_HELD || depart->failed)
		return -EALREADY;
	depart->state = DEPART_LEFT;
	leash_decided(&shim->leash);
	/* Killed as it is: it does not run for a moment more. */
	cgroup_kill(&shim->group);
	/* Signals that nobody has read yet still go on. */
	if (depart->fd >= 0)
		shutdown(depart->fd, SHUT_WR);
	return 0;
}

void depart_deinit(struct depart *depart)
{
	bool left = depart->state == DEPART_LEFT;

	if (!left)
		depart_close(depart);
	if (depart->mover > 0)
		(void)criu_wait(depart->mover, clock_boot_ms() + (left ? DEPART_END_MS : 0));
	depart->mover = 0;
	depart_close(depart);
	remove_move_group(depart);
}
