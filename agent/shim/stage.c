/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See stage.h. */
#include "agent/shim/stage.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/data_io.h"
#include "agent/shim/shim.h"

#define STAGE_PROGRAM "/proc/self/exe" /* this program, also after it was replaced */
#define STAGE_TEXT    250	       /* of the sentence of a process that failed */

enum stage_fd {
	STAGE_IN,
	STAGE_OUT,
	STAGE_ERR,
	STAGE_CLIENT,
	STAGE_CHILD,
	STAGE_CONTROL,
	STAGE_LEASH,
	STAGE_FDS
};

struct stage {
	struct shim *shim;
	struct child child;
	struct cgroup group;
	struct user_group user;
	bool before; /* the job has not begun */
	bool ended;
	int status;
	int rc;		 /* why we gave up; 0: we have not */
	int signal;	 /* that somebody sent to the job */
	struct queue in; /* what the process has not read yet */
	char text[STAGE_TEXT + 1];
	size_t length;
	uint8_t last[DATA_HEAD + 1024]; /* the last bytes that it wrote */
	size_t nlast;
};

/* --- the process ---------------------------------------------------------------------- */

static int stage_group(struct stage *stage, struct iocom_err *err)
{
	struct cgroup_mounts mounts;
	int rc = spare_mounts(&stage->shim->spare, &mounts, err);

	return rc ? rc
		  : user_group_beside(&stage->user, &stage->shim->order, DATA_GROUP, &mounts,
				      &stage->group, err);
}

/* Starts the process with WORDS, as the job's user, in the job's directory. */
static int stage_begin(struct stage *stage, const struct identity *identity, char **words,
		       struct iocom_err *err)
{
	struct order *order = malloc(sizeof(*order)); /* too large for the stack */
	static char *none[] = {NULL};
	int rc;

	if (!order)
		return iocom_err_set(err, -ENOMEM, "out of memory for the job's data");
	*order = stage->shim->order;
	rc = stage_group(stage, err);
	order->spec.executable = (char *)STAGE_PROGRAM;
	order->spec.cwd = stage->shim->scratch.path;
	order->spec.argv = words;
	order->spec.env = none;
	order->spec.umask = 077;
	order->spec.nlimits = 0;
	order->spec.closed = 0;
	order->spec.tty.wanted = false;
	order->spec.migratable = false;
	if (!rc)
		rc = child_start(&stage->child, order, identity, &stage->group, NULL, err);
	explicit_bzero(order, sizeof(*order));
	free(order);
	if (rc)
		stage->child = (struct child){.pidfd = -1, .stdio = {-1, -1, -1}, .status = -1};
	return rc > 0 ? -EIO : rc;
}

static void stage_close(struct stage *stage, int which)
{
	if (stage->child.stdio[which] >= 0)
		close(stage->child.stdio[which]);
	stage->child.stdio[which] = -1;
}

static void stage_give_up(struct stage *stage, int rc)
{
	if (!stage->rc)
		stage->rc = rc;
	cgroup_kill(&stage->group);
}

static void stage_end(struct stage *stage)
{
	for (int i = 0; i < 3; i++)
		stage_close(stage, i);
	if (stage->child.pidfd >= 0)
		close(stage->child.pidfd);
	queue_free(&stage->in);
	if (stage->group.depth) {
		cgroup_kill(&stage->group);
		cgroup_remove(&stage->group, SHIM_REMOVE_MS);
		user_group_leave(&stage->user, &stage->group);
	}
}

/* --- between it and the client -------------------------------------------------------- */

static void stage_write(struct stage *stage)
{
	ssize_t n = 1;

	while (stage->in.length && n > 0) {
		n = write(stage->child.stdio[0], queue_front(&stage->in), stage->in.length);
		if (n > 0)
			queue_drop(&stage->in, (size_t)n);
	}
	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return;
	/* It reads no more: its sentence says why. */
	queue_free(&stage->in);
	stage_close(stage, 0);
}

static int stage_take_frame(struct stage *stage, uint8_t type, const uint8_t *payload,
			    uint32_t length)
{
	if (type == FRAME_STAGE)
		return stage->child.stdio[0] < 0 ? 0 : queue_push(&stage->in, payload, length);
	return stage->before ? -EPROTO : shim_take_frame(stage->shim, type, payload, length);
}

/* Obeys the frames that are here, while the process has read what came before them. */
static void stage_frames(struct stage *stage)
{
	struct wire *client = &stage->shim->client;
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = 0;

	while (!rc && !stage->in.length && !stage->shim->client_gone) {
		rc = wire_next(client, &type, &payload, &length);
		if (rc == FRAME_E_MORE)
			return;
		rc = rc ? -EPROTO : stage_take_frame(stage, type, payload, length);
		if (!rc && stage->in.length)
			stage_write(stage);
	}
	if (rc)
		shim_client_lost(stage->shim);
}

static void stage_hear(struct stage *stage, short revents)
{
	struct shim *shim = stage->shim;

	if (shim->client_gone)
		return;
	if ((revents & POLLOUT && wire_flush(&shim->client)) ||
	    (revents & ~POLLOUT && wire_fill(&shim->client) < 0) || wire_silent(&shim->client))
		shim_client_lost(shim);
	stage_frames(stage);
}

static void stage_note_last(struct stage *stage, const uint8_t *at, size_t n)
{
	size_t room = sizeof(stage->last), keep;

	if (n >= room) {
		memcpy(stage->last, at + n - room, room);
		stage->nlast = room;
		return;
	}
	keep = stage->nlast < room - n ? stage->nlast : room - n;
	memmove(stage->last, stage->last + stage->nlast - keep, keep);
	memcpy(stage->last + keep, at, n);
	stage->nlast = keep + n;
}

static void stage_read(struct stage *stage)
{
	static uint8_t piece[FRAME_DATA_MAX];
	ssize_t n = read(stage->child.stdio[1], piece, sizeof(piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stage_close(stage, 1);
		return;
	}
	if (stage->before)
		stage_note_last(stage, piece, (size_t)n);
	if (!stage->shim->client_gone &&
	    wire_send(&stage->shim->client, FRAME_STAGE, NULL, 0, piece, (size_t)n))
		shim_client_lost(stage->shim);
}

static void stage_read_text(struct stage *stage)
{
	char piece[STAGE_TEXT];
	ssize_t n = read(stage->child.stdio[2], piece, sizeof(piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stage_close(stage, 2);
		return;
	}
	for (ssize_t i = 0; i < n && stage->length < STAGE_TEXT; i++)
		stage->text[stage->length++] =
			(unsigned char)piece[i] < ' ' || piece[i] == 127 ? '?' : piece[i];
}

/* Somebody asks the shim for something; a job that has not begun can only be killed. */
static void stage_control(struct stage *stage)
{
	struct shim *shim = stage->shim;
	struct leash_request request;
	enum leash_what what;

	if (!stage->before) {
		shim_serve_control(shim);
		return;
	}
	what = leash_serve(&shim->leash, &request);
	if (what != LEASH_SIGNAL) {
		leash_decline(&request, what, EALREADY);
		return;
	}
	stage->signal = request.signal;
	leash_answer(request.connection, 0);
	stage_give_up(stage, -ECANCELED);
}

static void stage_wait(struct stage *stage, struct pollfd fds[STAGE_FDS])
{
	struct shim *shim = stage->shim;
	bool more = !shim->client_gone && wire_idle(&shim->client);

	for (int i = 0; i < 3; i++)
		fds[i] = (struct pollfd){.fd = stage->child.stdio[i], .events = POLLIN};
	fds[STAGE_IN].events = stage->in.length ? POLLOUT : 0;
	/* What the client has not taken yet holds the process up, and what it has not, the client.
	 */
	if (!more && !shim->client_gone)
		fds[STAGE_OUT].fd = -1;
	fds[STAGE_CLIENT] = (struct pollfd){
		.fd = shim->client_gone ? -1 : shim->client.fd,
		.events = (short)((stage->in.length ? 0 : POLLIN) | (more ? 0 : POLLOUT)),
	};
	fds[STAGE_CHILD] =
		(struct pollfd){.fd = stage->ended ? -1 : stage->child.pidfd, .events = POLLIN};
	fds[STAGE_CONTROL] = (struct pollfd){.fd = shim->leash.listen, .events = POLLIN};
	fds[STAGE_LEASH] = (struct pollfd){.fd = shim->leash.fd, .events = POLLIN};
	if (poll(fds, STAGE_FDS, wire_look_ms(&shim->client)) <= 0)
		for (int i = 0; i < STAGE_FDS; i++)
			fds[i].revents = 0;
}

static void stage_serve(struct stage *stage, const struct pollfd fds[STAGE_FDS])
{
	struct shim *shim = stage->shim;

	if (fds[STAGE_IN].revents && stage->child.stdio[0] >= 0)
		stage_write(stage);
	stage_hear(stage, fds[STAGE_CLIENT].revents);
	if (fds[STAGE_OUT].revents)
		stage_read(stage);
	if (fds[STAGE_ERR].revents)
		stage_read_text(stage);
	if (fds[STAGE_CONTROL].revents)
		stage_control(stage);
	if (fds[STAGE_LEASH].revents)
		leash_hear(&shim->leash, &shim->lease);
	if (fds[STAGE_CHILD].revents &&
	    waitpid(stage->child.pid, &stage->status, WNOHANG) == stage->child.pid)
		stage->ended = true;
	if (shim->client_gone)
		stage_give_up(stage, -EPIPE);
	else if (shim->lease.until_ms && lease_over(&shim->lease, shim_now_ms()))
		stage_give_up(stage, -ETIME);
}

/* Runs until the process has ended and all that it wrote is read. */
static void stage_loop(struct stage *stage)
{
	struct pollfd fds[STAGE_FDS];

	while (!stage->ended || stage->child.stdio[1] >= 0 || stage->child.stdio[2] >= 0) {
		stage_wait(stage, fds);
		stage_serve(stage, fds);
	}
}

/* --- before the job ------------------------------------------------------------------- */

/* The last message of a process that ended well has what it did. */
static void stage_note_stats(struct stage *stage)
{
	struct data_stats stats;
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;

	for (size_t at = 0; at + DATA_HEAD <= stage->nlast; at++)
		if (stage->last[at] == DATA_STATS &&
		    !data_next(stage->last + at, stage->nlast - at, &type, &payload, &length,
			       &consumed) &&
		    at + consumed == stage->nlast && !data_stats_unpack(&stats, payload, length)) {
			scratch_note(&stage->shim->scratch, &stats);
			return;
		}
}

static int stage_taken(struct stage *stage, struct iocom_err *err)
{
	const struct spec *spec = &stage->shim->order.spec;

	if (stage->rc == -ECANCELED)
		return iocom_err_set(
			err, -ECANCELED,
			"job %s got signal %d while its data was on the way to node %s", spec->job,
			stage->signal, spec->node);
	if (stage->rc == -EPIPE)
		return iocom_err_set(err, -EPIPE,
				     "the client left while the job's data was on the way");
	if (stage->rc)
		return iocom_err_set(err, stage->rc,
				     "the lease ended while the job's data was on the way");
	if (WIFEXITED(stage->status) && !WEXITSTATUS(stage->status)) {
		stage_note_stats(stage);
		return 0;
	}
	if (WIFEXITED(stage->status) && WEXITSTATUS(stage->status) == DATA_NO_ROOM)
		scratch_note_refused(&stage->shim->scratch);
	if (stage->length)
		return iocom_err_set(err, -EIO, "%s", stage->text);
	return iocom_err_set(err, -EIO, "the data of job %s did not get to node %s: %s %d",
			     spec->job, spec->node,
			     WIFSIGNALED(stage->status) ? "its process there was killed by signal"
							: "its process there ended with",
			     WIFSIGNALED(stage->status) ? WTERMSIG(stage->status)
							: WEXITSTATUS(stage->status));
}

/* The job begins in its own directory, and its $PWD says so. */
static int stage_move_in(struct shim *shim, struct iocom_err *err)
{
	struct spec *spec = &shim->order.spec;
	char *cwd = strdup(shim->scratch.path), *pwd = NULL;

	if (cwd && asprintf(&pwd, "PWD=%s", cwd) < 0)
		pwd = NULL;
	if (!cwd || !pwd) {
		free(cwd);
		return iocom_err_set(err, -ENOMEM, "out of memory for the job's data");
	}
	free(spec->cwd);
	spec->cwd = cwd;
	for (char **env = spec->env; *env; env++) {
		if (strncmp(*env, "PWD=", 4) != 0)
			continue;
		free(*env);
		*env = pwd;
		return 0;
	}
	free(pwd);
	return 0;
}

int stage_take(struct shim *shim, const struct identity *identity, struct iocom_err *err)
{
	struct stage stage = {.shim = shim,
			      .before = true,
			      .child = {.pidfd = -1, .stdio = {-1, -1, -1}, .status = -1}};
	const struct order *order = &shim->order;
	char quota[24];
	int rc;

	snprintf(quota, sizeof(quota), "%" PRIu64, order->data_cache_bytes);
	rc = scratch_make(&shim->scratch, order->data_dir, identity->uid, identity->gid,
			  order->spec.job, err);
	if (!rc)
		rc = stage_begin(&stage, identity,
				 (char *[]){"iocom-data", DATA_TAKE_WORD, shim->scratch.cache,
					    shim->order.spec.node, quota, NULL},
				 err);
	if (!rc) {
		if (wire_send(&shim->client, FRAME_STAGE, NULL, 0, NULL, 0))
			shim_client_lost(shim);
		stage_loop(&stage);
		rc = stage_taken(&stage, err);
	}
	stage_end(&stage);
	return rc ? rc : stage_move_in(shim, err);
}

/* --- after the job -------------------------------------------------------------------- */

void stage_give(struct shim *shim)
{
	struct stage stage = {.shim = shim,
			      .child = {.pidfd = -1, .stdio = {-1, -1, -1}, .status = -1}};
	struct identity identity = {0};
	struct iocom_err err = {0};
	int rc = identity_lookup(&identity, &shim->order, &err);

	if (!rc)
		rc = stage_begin(&stage, &identity, (char *[]){"iocom-data", DATA_GIVE_WORD, NULL},
				 &err);
	if (!rc && wire_send(&shim->client, FRAME_STAGE, NULL, 0, NULL, 0))
		shim_client_lost(shim);
	if (!rc)
		stage_loop(&stage);
	else
		fprintf(stderr, "iocom-shim: job %s: %s\n", shim->order.spec.job, err.text);
	stage_end(&stage);
	identity_deinit(&identity);
}
