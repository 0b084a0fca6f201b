/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See depart.h. */
#include "agent/shim/depart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/depart_mover.h"
#include "agent/shim/move/criu.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/precopy.h"
#include "agent/shim/shim.h"
#include "user/cgroup_freeze.h"
#include "user/clock.h"

#define DEPART_LATE_MS	 10000 /* after its own limit, until the mover counts as lost */
#define DEPART_SETTLE_MS (DEPART_DUMP_MS + DEPART_LATE_MS)
#define DEPART_LOOK_MS	 10

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
	if (spec->data)
		return "its data went along with it to this node";
	if (spec->gang)
		return "it is a part of a parallel job";
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

/* Forks the mover, which gets TARGET; the job runs still if it COPIES. */
static int depart_fork(struct shim *shim, const struct criu *criu, struct wire *target, bool copies,
		       struct iocom_err *err)
{
	struct depart *depart = &shim->depart;
	pid_t parent = getpid();
	sigset_t term, before;
	int ends[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return iocom_err_set(err, -errno, "cannot make a process that moves it: %s",
				     strerror(errno));
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	depart->mover = fork();
	if (!depart->mover) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ends[0]);
		depart_mover_run(shim, criu, target, ends[1], copies);
	}
	if (depart->mover < 0) {
		rc = iocom_err_set(err, -errno, "cannot make a process that moves it: %s",
				   strerror(errno));
		depart->mover = 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	depart->fd = ends[0];
	return rc;
}

static int depart_freeze(struct shim *shim, struct iocom_err *err)
{
	uint64_t now_ms = clock_boot_ms();
	int rc = cgroup_freeze(&shim->group, DEPART_FREEZE_MS);

	if (rc)
		return iocom_err_set(err, rc, "it could not be stopped within %d ms",
				     DEPART_FREEZE_MS);
	shim->depart.frozen_ms = now_ms;
	shim->depart.processes = cgroup_processes(&shim->group);
	shim->depart.frozen = true;
	return 0;
}

static void depart_thaw(struct shim *shim)
{
	cgroup_thaw(&shim->group);
	shim->depart.frozen = false;
}

/* The job is frozen: begins to save it, or lets it go on. */
static int depart_frozen(struct shim *shim, const struct criu *criu, struct wire *target,
			 struct iocom_err *err)
{
	int rc = depart_tty_take(&shim->depart.tty, shim, err);

	if (!rc)
		rc = depart_fork(shim, criu, target, false, err);
	if (rc) {
		depart_tty_stay(&shim->depart.tty, shim);
		depart_thaw(shim);
	}
	return rc;
}

int depart_begin(struct shim *shim, struct leash_request *request, struct iocom_err *err)
{
	struct depart *depart = &shim->depart;
	const char *hindrance = depart_hindrance(shim);
	struct wire target;
	struct criu criu;
	bool copies;
	int rc;

	if (depart->state != DEPART_NONE)
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
	depart->told = depart->failed = depart->ended = false;
	depart->begun_ms = clock_boot_ms();
	/* What waits in a terminal is taken while it is frozen. */
	copies = request->precopy && !shim->streams.tty &&
		 depart_resident_bytes(&shim->group) >= PRECOPY_LEAST_BYTES && precopy_tracks();
	if (!rc && copies) {
		rc = depart_fork(shim, &criu, &target, true, err);
	} else if (!rc) {
		rc = depart_freeze(shim, err);
		if (!rc)
			rc = depart_frozen(shim, &criu, &target, err);
	}
	wire_deinit(&target);
	if (!rc) {
		depart->state = copies ? DEPART_COPYING : DEPART_SAVING;
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
	if (depart->frozen)
		move->frozen_ms += clock_boot_ms() - depart->frozen_ms;
	leash_moved(&shim->leash, move);
}

/* What has come to the shim since the mover began only a copy of the shim of now knows. */
static int depart_pack(struct shim *shim, const char *path, struct iocom_err *err)
{
	struct depart *depart = &shim->depart;
	pid_t parent = getpid();

	depart->packer = fork();
	if (!depart->packer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		depart_packer_run(shim, path);
	}
	if (depart->packer > 0)
		return 0;
	depart->packer = 0;
	return iocom_err_set(err, -errno, "cannot make a process that moves it: %s",
			     strerror(errno));
}

/* The mover has sent what it could, and the images are at PATH: now it is frozen. */
static void depart_stop(struct shim *shim, const char *path)
{
	struct depart *depart = &shim->depart;
	struct iocom_err err = {0};
	struct depart_packed packed = {0};
	int rc = 0;

	if (depart->state != DEPART_COPYING)
		rc = iocom_err_set(&err, -ECANCELED, "the move was given up");
	else if (shim->main_ended)
		rc = iocom_err_set(&err, -ESRCH, "it has ended");
	else
		rc = depart_freeze(shim, &err);
	if (!rc)
		rc = depart_pack(shim, path, &err);
	if (!rc)
		depart->state = DEPART_SAVING;
	if (!rc)
		return;
	packed.rc = rc; /* the mover ends, and says why */
	snprintf(packed.why, sizeof(packed.why), "%.255s", err.text);
	(void)send(depart->fd, &packed, sizeof(packed), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Nothing more is heard of the mover: who was killed may have left criu's code in the job. */
static void depart_lost(struct shim *shim)
{
	struct leash_move move = {.failed = true, .why = "the process that moved it was killed"};
	struct iocom_err err;

	if (!shim->depart.frozen && !shim->main_ended)
		(void)depart_freeze(shim, &err);
	depart_held(shim, &move);
}

static bool depart_works(const struct depart *depart)
{
	return depart->state == DEPART_COPYING || depart->state == DEPART_SAVING;
}

void depart_hear(struct shim *shim)
{
	struct depart *depart = &shim->depart;
	union {
		struct leash_move move;
		char path[IMAGES_PATH_MAX];
	} word;
	ssize_t n = read(depart->fd, &word, sizeof(word));

	if (n == (ssize_t)sizeof(word.path)) {
		word.path[sizeof(word.path) - 1] = 0;
		depart_stop(shim, word.path);
		return;
	}
	if (n == (ssize_t)sizeof(word.move)) {
		depart->told = true;
		if (depart_works(depart))
			depart_held(shim, &word.move);
		return;
	}
	depart_close(depart);
	if (depart_works(depart))
		depart_lost(shim);
}

uint64_t depart_due(const struct depart *depart)
{
	if (depart_works(depart))
		return depart->begun_ms + DEPART_LIMIT_MS + DEPART_LATE_MS;
	if (depart->state == DEPART_STAYING)
		return clock_boot_ms() + DEPART_LOOK_MS;
	return UINT64_MAX; /* others decide */
}

void depart_overdue(struct shim *shim)
{
	struct leash_move move = {.failed = true, .why = "it could not be moved in time"};

	if (depart_works(&shim->depart))
		depart_held(shim, &move);
}

bool depart_keep_signal(struct depart *depart, int signal)
{
	uint8_t byte = (uint8_t)signal;

	if (!depart->frozen)
		return false;
	depart->signals |= 1ULL << (signal - 1);
	if (depart->fd >= 0)
		(void)send(depart->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

int depart_stay(struct shim *shim)
{
	struct depart *depart = &shim->depart;

	if (!depart_works(depart) && depart->state != DEPART_HELD)
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
	int status = 0;

	if (depart->mover > 0 && waitpid(depart->mover, &status, WNOHANG) != 0) {
		depart->mover = 0;
		depart->ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
	}
	if (depart->packer > 0 && waitpid(depart->packer, NULL, WNOHANG) != 0)
		depart->packer = 0;
	return !depart->mover && !depart->packer &&
	       (!depart->group.depth || cgroup_populated(&depart->group) != 1);
}

/* A process that met criu's trap when criu was gone has died of it, though frozen. */
static bool depart_damaged(const struct shim *shim)
{
	const struct depart *depart = &shim->depart;

	return criu_is_inside(shim->group.v2) ||
	       (!depart->told && !depart->ended && depart->frozen &&
		cgroup_processes(&shim->group) < depart->processes);
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
	if (depart->packer > 0)
		(void)criu_wait(depart->packer, 0);
	depart->mover = depart->packer = 0;
	depart->state = DEPART_NONE;
	/* Who was killed has not tidied up. */
	if ((!depart->told || late) && !shim->main_ended)
		criu_bare_proc(shim->child.pid);
	if ((!depart->told || late || depart->failed) && !shim->main_ended &&
	    depart_damaged(shim)) {
		depart->frozen = false; /* not for a move: its end is to be seen */
		iocom_err_set(err, -EIO,
			      "criu was killed while it saved the job, which is damaged");
		return true;
	}
	depart_tty_stay(&depart->tty, shim);
	depart_thaw(shim);
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
	if (depart->packer > 0)
		(void)criu_wait(depart->packer, 0);
	depart->mover = depart->packer = 0;
	depart_close(depart);
	remove_move_group(depart);
	typed_free(&depart->tty.typed);
}
