/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See depart_mover.h. */
#include "agent/shim/depart_mover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/shim/move/belongings.h"
#include "agent/shim/move/criu.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/luggage.h"
#include "agent/shim/move/precopy.h"
#include "agent/shim/move/transfer.h"
#include "agent/shim/shim.h"
#include "user/cgroup_freeze.h"
#include "user/clock.h"

/* Besides the job's memory: page maps, descriptors, the luggage and criu's log. */
#define IMAGES_EXTRA_BYTES (64ULL << 20)
#define DEPART_PACK_MS	   20000 /* for the shim to freeze the job and write its luggage */
/* All is sent: so long the other node may restore it, with so many bytes each ms besides. */
#define DEPART_RESTORE_MS    120000
#define DEPART_RESTORE_BYTES 10000

uint64_t depart_resident_bytes(const struct cgroup *group)
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
	for (int i = streams->tty ? FRAME_STREAMS : 0; !rc && i < LUGGAGE_PIPES; i++)
		if (fds[i] >= 0)
			rc = luggage_look(&luggage->pipes[i], fds[i]);
	if (!rc && streams->tty)
		rc = depart_tty_pack(&shim->depart.tty, shim, &luggage->tty);
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
static int mover_examine(struct shim *shim, struct iocom_err *err)
{
	struct depart_tty *tty = &shim->depart.tty;
	struct belongings_owner owner;
	gid_t *groups;
	int rc = belongings_owner_of(&owner, &groups, shim->child.pid);

	if (!rc && owner.uid != shim->order.uid)
		rc = -EPERM;
	if (rc)
		return iocom_err_set(err, rc, "cannot find out whose it is: %s", strerror(-rc));
	rc = belongings_check(&shim->group, shim->child.pid, &owner, tty->open ? &tty->what : NULL,
			      err);
	free(groups);
	if (!rc && tty->open && tty->what.flags < 0)
		rc = iocom_err_set(err, -ENOTSUP, "it has given its terminal up");
	return rc;
}

/* The job runs, and must see the end of its input when the shim closes that. */
static void mover_forget_streams(const struct shim *shim)
{
	for (size_t i = 0; i < FRAME_STREAMS; i++)
		if (shim->streams.fd[i] > STDERR_FILENO)
			close(shim->streams.fd[i]);
	if (shim->child.status > STDERR_FILENO)
		close(shim->child.status);
}

/* The process that moves a job, and what it does. */
struct mover {
	struct shim *shim; /* as it was when this process began */
	const struct criu *criu;
	struct wire *target;
	int parent;
	uint64_t until_ms;
	bool copies;  /* the job runs, and the parent freezes it when asked */
	bool spooled; /* it has output on disk */
	struct images images;
	struct sending *sending; /* NULL: nothing was sent yet */
	struct precopy copy;
	uint64_t signals; /* a set of those that the parent sent early */
	struct leash_move move;
};

/* Saves it, and notes how long that took and how much it is. */
static int mover_save(struct mover *m, struct iocom_err *err)
{
	struct shim *shim = m->shim;
	const struct criu_job job = {
		.init = shim->child.pid,
		.uid = shim->order.uid,
		.group = shim->group.v2,
		.tty = shim->depart.tty.name,
		.previous = *m->copy.previous ? m->copy.previous : NULL,
	};
	uint64_t begin_ms = clock_boot_ms(), bytes, files;
	int rc = mover_examine(shim, err);

	if (!rc && m->images.fd < 0)
		rc = images_make(&m->images,
				 depart_resident_bytes(&shim->group) + IMAGES_EXTRA_BYTES, err);
	if (!rc)
		rc = criu_dump(m->criu, &job, m->images.path, DEPART_DUMP_MS, err);
	if (!rc && !cgroup_frozen(&shim->group))
		rc = iocom_err_set(err, -EIO, "somebody let it go on while it was saved");
	if (!rc && !m->copies)
		rc = mover_pack(shim, &m->images, err);
	if (!rc)
		rc = images_size(&m->images, &bytes, &files);
	if (!rc)
		m->move.bytes = m->copy.bytes + bytes;
	m->move.dump_ms = clock_boot_ms() - begin_ms;
	return rc;
}

/* Waits for what the parent's helper says, and keeps the signals that come before. */
static int mover_hear_packed(struct mover *m, struct iocom_err *err)
{
	struct pollfd p = {.fd = m->parent, .events = POLLIN};
	uint64_t end_ms = clock_boot_ms() + DEPART_PACK_MS, now_ms;
	struct depart_packed packed;
	ssize_t n = -1;

	while (n != (ssize_t)sizeof(packed) && (now_ms = clock_boot_ms()) < end_ms) {
		if (poll(&p, 1, (int)(end_ms - now_ms)) != 1)
			continue;
		n = read(m->parent, &packed, sizeof(packed));
		if (n == 1)
			m->signals |= 1ULL << (*(uint8_t *)&packed - 1);
		else if (n <= 0)
			break;
	}
	if (n != (ssize_t)sizeof(packed))
		return iocom_err_set(err, -ETIMEDOUT, "it was not frozen in time");
	m->spooled = packed.spooled;
	return packed.rc ? iocom_err_set(err, packed.rc, "%s", packed.why) : 0;
}

/*
 * Sends its memory while it runs, as far as the target takes that, and then has it frozen.  Returns
 * negative errno without a sentence if the job is damaged.
 */
static int mover_copy(struct mover *m, struct iocom_err *err)
{
	uint64_t room = depart_resident_bytes(&m->shim->group) + IMAGES_EXTRA_BYTES;
	int rc = images_make(&m->images, room, err);

	if (!rc)
		rc = transfer_open(&m->sending, m->target, room, PRECOPY_ASK_MS, m->until_ms, err);
	m->copy = (struct precopy){
		.criu = m->criu,
		.init = m->shim->child.pid,
		.group = m->shim->group.v2,
		.images = &m->images,
		.room_bytes = room,
		.sending = m->sending,
	};
	if (!rc && transfer_takes_rounds(m->sending))
		rc = precopy_run(&m->copy, err);
	if (rc)
		return rc;
	/* The place of the images says all: freeze it now, and put the luggage there. */
	if (write(m->parent, m->images.path, sizeof(m->images.path)) !=
	    (ssize_t)sizeof(m->images.path))
		return iocom_err_set(err, -EPIPE, "its supervisor is gone");
	return mover_hear_packed(m, err);
}

static int mover_send(struct mover *m, struct iocom_err *err)
{
	const struct shim *shim = m->shim;
	int record = m->spooled ? shim->record : -1;

	return m->sending ? transfer_rest(m->sending, &m->images, record, err)
			  : transfer_send(m->target, &m->images, record, m->until_ms, err);
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

/* The other node has BYTES of it.  While it says nothing the job stands still. */
static int mover_await(struct wire *target, uint64_t bytes, uint64_t until_ms,
		       struct iocom_err *err)
{
	uint64_t most_ms = clock_boot_ms() + DEPART_RESTORE_MS + bytes / DEPART_RESTORE_BYTES;
	int rc = transfer_await(target, most_ms < until_ms ? most_ms : until_ms, err);

	if (rc == -ETIMEDOUT && clock_boot_ms() >= most_ms)
		iocom_err_set(err, rc,
			      "the other node has it, and does not say that it is restored");
	return rc;
}

static void mover_tell(struct mover *m, int rc, const char *why)
{
	struct leash_move *move = &m->move;

	move->failed = rc != 0;
	move->frozen_ms = m->copy.frozen_us / 1000; /* what the shim adds to */
	if (!rc && m->copy.rounds)
		snprintf(move->why, sizeof(move->why),
			 "%.1f MB in %u rounds were sent while it ran, stopped for %llu ms of "
			 "it%s%.120s",
			 (double)m->copy.bytes / 1e6, m->copy.rounds,
			 (unsigned long long)move->frozen_ms, *why ? "; then all of it: " : "",
			 why);
	else
		snprintf(move->why, sizeof(move->why), "%.255s", why);
	if (write(m->parent, move, sizeof(*move)) != (ssize_t)sizeof(*move) || rc)
		return;
	for (uint8_t signal = 1; signal < _NSIG; signal++)
		if (m->signals & 1ULL << (signal - 1))
			(void)transfer_signal(m->target, signal, clock_boot_ms() + DEPART_END_MS);
	mover_hand_on(m->target, m->parent);
}

void depart_mover_run(struct shim *shim, const struct criu *criu, struct wire *target, int parent,
		      bool copies)
{
	struct mover m = {
		.shim = shim,
		.criu = criu,
		.target = target,
		.parent = parent,
		.until_ms = clock_boot_ms() + DEPART_LIMIT_MS,
		.copies = copies,
		.spooled = shim->streams.spool.fd[1] >= 0,
		.images = {.fd = -1},
	};
	struct iocom_err err = {0};
	int rc = cgroup_enter(&shim->depart.group, true);
	sigset_t term;

	mover_forget(shim);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (rc)
		iocom_err_set(&err, rc, "cannot enter the cgroup of its images: %s", strerror(-rc));
	if (copies)
		mover_forget_streams(shim);
	if (!rc && copies)
		rc = mover_copy(&m, &err);
	if (!rc)
		rc = mover_save(&m, &err);
	if (rc && !*err.text)
		_exit(1); /* criu was killed: the shim looks at a job whose mover says nothing */
	/* The shim says by SIGTERM that the job stays, which has waited as long as criu worked. */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	if (!rc)
		rc = mover_send(&m, &err);
	images_free(&m.images);
	if (!rc)
		rc = mover_await(target, m.move.bytes, m.until_ms, &err);
	mover_tell(&m, rc, rc ? err.text : m.copy.why.text);
	_exit(rc ? 1 : 0);
}

void depart_packer_run(struct shim *shim, const char *path)
{
	struct images images = {.fd = -1};
	struct iocom_err err = {0};
	struct depart_packed packed = {0};
	int rc = cgroup_enter(&shim->depart.group, true);

	mover_forget(shim);
	if (!rc) {
		images.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		rc = images.fd < 0 ? -errno : 0;
	}
	if (rc)
		iocom_err_set(&err, rc, "cannot reach its images: %s", strerror(-rc));
	else
		rc = mover_pack(shim, &images, &err);
	packed.rc = rc;
	packed.spooled = shim->streams.spool.fd[1] >= 0;
	snprintf(packed.why, sizeof(packed.why), "%.255s", err.text);
	_exit(send(shim->depart.fd, &packed, sizeof(packed), MSG_NOSIGNAL) != sizeof(packed));
}
