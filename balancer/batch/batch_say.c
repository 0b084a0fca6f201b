/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Passes the outputs of the commands of `iocom batch` on.
 *
 *   one worker, or the command whose turn it is   in pieces as they arrive
 *   otherwise                                     when the command has ended
 *   keep_order                                    when it and all commands before it have ended
 *
 * A held output stays in memory up to BATCH_TOGETHER_MAX, the excess in an unnamed file.  Under
 * keep_order, held outputs count into held_bytes, which stops us giving commands.  When the
 * files reach BATCH_FILED_MAX, an output is passed on before its command has ended; under
 * keep_order that is an error.
 */
#include "balancer/batch/batch_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define RING_MIN 256

int batch_signal(struct pool *pool)
{
	struct signalfd_siginfo info;

	if (!pool->result->signal && read(pool->signals, &info, sizeof(info)) == sizeof(info))
		pool->result->signal = (int)info.ssi_signo;
	return pool->result->signal;
}

/*
 * A reader may stand still (a pager), but a signal must still end us: write at most as much as
 * a ready pipe takes without blocking.
 */
static int batch_say_write_all(struct pool *pool, int fd, const uint8_t *data, size_t length,
			       struct iocom_err *err)
{
	while (length && !pool->mute) {
		struct pollfd ready[2] = {
			{.fd = fd, .events = POLLOUT},
			{.fd = pool->stopping ? -1 : pool->signals, .events = POLLIN}};
		ssize_t n;

		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			return iocom_err_set(err, -errno, "cannot wait: %s", strerror(errno));
		if (ready[1].revents && batch_signal(pool))
			return -EINTR;
		if (!ready[0].revents)
			continue;
		n = write(fd, data, length < PIPE_BUF ? length : PIPE_BUF);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0) {
			pool->mute = true;
			return iocom_err_set(err, -errno, "cannot write a command's output: %s",
					     strerror(errno));
		}
		batch_show_wrote(pool, fd, data, (size_t)n);
		data += n;
		length -= (size_t)n;
	}
	return 0;
}

/* --- texts ------------------------------------------------------------------------ */

void batch_text_free(struct pool *pool, struct batch_text *text)
{
	queue_free(&text->last);
	if (text->fd)
		close(text->fd);
	pool->filed_bytes -= text->filed_bytes;
	text->filed_bytes = 0;
	text->fd = 0;
}

static int batch_say_open_file(void)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	dir = dir && *dir ? dir : "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (snprintf(path, sizeof(path), "%s/iocom-batch-XXXXXX", dir) >= (int)sizeof(path))
		return errno = ENAMETOOLONG, -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* Moves the output in memory to the file. */
static int put_aside(struct pool *pool, struct batch_text *text, struct iocom_err *err)
{
	if (!text->fd && (text->fd = batch_say_open_file()) < 0) {
		text->fd = 0;
		return iocom_err_set(err, -errno,
				     "cannot make a file for a command's output ($TMPDIR, or "
				     "/tmp): %s",
				     strerror(errno));
	}
	while (text->last.length) {
		ssize_t n = write(text->fd, queue_front(&text->last), text->last.length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return iocom_err_set(err, -errno,
					     "cannot keep a command's output until its end "
					     "($TMPDIR, or /tmp): %s",
					     strerror(errno));
		queue_drop(&text->last, (size_t)n);
		text->filed_bytes += (uint64_t)n;
		pool->filed_bytes += (uint64_t)n;
	}
	return 0;
}

/* Passes all of TEXT on to FD. */
static int batch_say_pass_on(struct pool *pool, int fd, struct batch_text *text,
			     struct iocom_err *err)
{
	uint8_t piece[16384];
	off_t at = 0;
	int rc = 0;

	if (text->fd || text->last.length)
		batch_show_before(pool, fd);
	while (!rc && text->fd) {
		ssize_t n = pread(text->fd, piece, sizeof(piece), at);

		if (n < 0)
			return iocom_err_set(err, -errno, "cannot read a command's output: %s",
					     strerror(errno));
		if (n == 0)
			break;
		rc = batch_say_write_all(pool, fd, piece, (size_t)n, err);
		at += n;
	}
	if (!rc && text->last.length)
		rc = batch_say_write_all(pool, fd, queue_front(&text->last), text->last.length,
					 err);
	if (!rc)
		batch_text_free(pool, text);
	return rc;
}

int batch_said(struct pool *pool, struct batch_command *c, int i, const void *data, size_t length,
	       struct iocom_err *err)
{
	struct batch_text *text = &c->text[i];
	bool alone = pool->options->workers == 1 ||
		     (pool->options->keep_order && c->turn == pool->next_turn);

	if (pool->mute)
		return 0;
	if (queue_push(&text->last, data, length))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (text->last.length <= BATCH_TOGETHER_MAX)
		return 0;
	if (!alone && pool->filed_bytes < BATCH_FILED_MAX)
		return put_aside(pool, text, err);
	if (!alone && pool->options->keep_order)
		return iocom_err_set(err, -EFBIG,
				     "more than %llu MiB of output wait for their turn; without -k "
				     "none would have to wait",
				     BATCH_FILED_MAX >> 20);
	return batch_say_pass_on(pool, 1 + i, text, err);
}

/* --- their order ------------------------------------------------------------------ */

static size_t batch_say_weight(const struct batch_command *c)
{
	return sizeof(*c) + strlen(c->line) + c->text[0].last.length + c->text[1].last.length +
	       BATCH_TOGETHER_MAX * ((c->text[0].fd != 0) + (c->text[1].fd != 0));
}

static struct batch_command **batch_say_place_of(const struct pool *pool, uint32_t turn)
{
	return &pool->ring[turn & (pool->ring_size - 1)];
}

static int batch_say_grow(struct pool *pool, uint32_t turn)
{
	size_t size = pool->ring_size ? pool->ring_size : RING_MIN, old = pool->ring_size;
	struct batch_command **was = pool->ring, **now;

	while (turn - pool->next_turn >= size)
		size *= 2;
	if (size == old)
		return 0;
	now = calloc(size, sizeof(struct batch_command *));
	if (!now)
		return -ENOMEM;
	pool->ring = now;
	pool->ring_size = size;
	for (size_t i = 0; i < old; i++)
		if (was[i])
			*batch_say_place_of(pool, was[i]->turn) = was[i];
	free(was);
	return 0;
}

/* Passes C's outputs on and frees C. */
static int say(struct pool *pool, struct batch_command *c, struct iocom_err *err)
{
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++)
		rc = batch_say_pass_on(pool, 1 + i, &c->text[i], err);
	batch_command_free(pool, c);
	return rc;
}

int batch_over(struct pool *pool, struct batch_command *c, struct iocom_err *err)
{
	int rc = 0;

	if (!pool->options->keep_order)
		return say(pool, c, err);
	if (batch_say_grow(pool, c->turn)) {
		batch_command_free(pool, c);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	*batch_say_place_of(pool, c->turn) = c;
	pool->held_bytes += batch_say_weight(c);
	while (!rc && (c = *batch_say_place_of(pool, pool->next_turn))) {
		*batch_say_place_of(pool, pool->next_turn++) = NULL;
		pool->held_bytes -= batch_say_weight(c);
		rc = say(pool, c, err);
	}
	return rc;
}

void batch_order_free(struct pool *pool)
{
	for (size_t i = 0; i < pool->ring_size; i++)
		if (pool->ring[i])
			batch_command_free(pool, pool->ring[i]);
	free(pool->ring);
}
