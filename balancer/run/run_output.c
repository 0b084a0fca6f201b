/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One of the client's own outputs; see run.h.  Writing must not block the loop, but O_NONBLOCK
 * would affect all processes that share the open file: so we open a pipe or terminal again.
 */
#include "balancer/run/run.h"
#include "balancer/run/run_modes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void run_output_init(struct run_output *output, int fd)
{
	char name[32];
	struct stat st;

	*output = (struct run_output){.fd = fd, .again = -1, .mode = RUN_OUTPUT_WHOLE};
	if (fd < 0 || fstat(fd, &st))
		return;
	if (S_ISSOCK(st.st_mode))
		output->mode = RUN_OUTPUT_SOCKET;
	if (!S_ISFIFO(st.st_mode) && !isatty(fd))
		return;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	output->again = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	output->mode = output->again >= 0 ? RUN_OUTPUT_AGAIN : RUN_OUTPUT_SMALL;
}

void run_output_deinit(struct run_output *output)
{
	if (output->again >= 0)
		close(output->again);
	output->again = -1;
	queue_free(&output->queue);
}

int run_output_poll(const struct run_output *output)
{
	if (output->closed || !output->queue.length)
		return -1;
	return output->again >= 0 ? output->again : output->fd;
}

static ssize_t write_some(const struct run_output *output, const uint8_t *data, size_t length)
{
	struct pollfd p = {.fd = output->fd, .events = POLLOUT};

	switch (output->mode) {
	case RUN_OUTPUT_AGAIN:
		return write(output->again, data, length);
	case RUN_OUTPUT_SOCKET:
		return send(output->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	case RUN_OUTPUT_SMALL:
		if (poll(&p, 1, 0) <= 0) {
			errno = EAGAIN;
			return -1;
		}
		return write(output->fd, data, length < PIPE_BUF ? length : PIPE_BUF);
	default:
		return write(output->fd, data, length);
	}
}

/* Writes as much as possible.  Returns the bytes written or -EPIPE. */
static ssize_t push(struct run_output *output, const uint8_t *data, size_t length)
{
	size_t done = 0;

	if (output->fd < 0)
		return (ssize_t)length; /* nobody reads: drop it */
	while (done < length) {
		ssize_t n = write_some(output, data + done, length - done);

		if (n >= 0) {
			if (output->modes)
				run_modes_take(output->modes, data + done, (size_t)n);
			done += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			break;
		if (errno != EPIPE)
			output->error = errno;
		run_output_finish(output);
		return -EPIPE;
	}
	return (ssize_t)done;
}

ssize_t run_output_write(struct run_output *output, const void *data, size_t length)
{
	ssize_t waited = 0, now = 0;

	if (output->closed)
		return 0;
	if (output->queue.length) {
		waited = push(output, queue_front(&output->queue), output->queue.length);
		if (waited < 0)
			return waited;
		queue_drop(&output->queue, (size_t)waited);
	}
	if (length && !output->queue.length) {
		now = push(output, data, length);
		if (now < 0)
			return now;
	}
	if ((size_t)now < length &&
	    queue_push(&output->queue, (const uint8_t *)data + now, length - (size_t)now)) {
		output->error = ENOMEM;
		run_output_finish(output);
		return -EPIPE;
	}
	return waited + now;
}

void run_output_finish(struct run_output *output)
{
	int null = -1;

	output->closed = true;
	run_output_deinit(output);
	/* Keep standard error: our own messages go there, too. */
	if (output->fd != STDERR_FILENO)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, output->fd);
		close(null);
	}
}
