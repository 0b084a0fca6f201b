/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_log.h. */
#include "agent/gate/net_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The level is at the line's head, as systemd has it (log.h); one without has that of a warning. */
static enum log_level net_log_level(const char **line)
{
	const char *l = *line;

	if (l[0] != '<' || !strchr("3467", l[1]) || !l[1] || l[2] != '>')
		return LOG_L_WARNING;
	*line += 3;
	return (enum log_level)(l[1] - '0');
}

static void net_log_line(struct net_log *l)
{
	const char *line = l->line;
	enum log_level level;

	if (!l->n)
		return;
	l->line[l->n] = 0;
	level = net_log_level(&line);
	log_provoked(l->log, level, "%s%s",
		     strncmp(line, "iocom-net: ", strlen("iocom-net: ")) ? "iocom-net: " : "",
		     line);
	l->n = 0;
}

static void net_log_take(struct net_log *l, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			net_log_line(l);
			l->cut = false;
		} else if (!l->cut) {
			l->line[l->n++] = bytes[i] ? bytes[i] : '?';
			l->cut = l->n == sizeof(l->line) - 1;
			if (l->cut)
				net_log_line(l);
		}
	}
}

/* Returns whether there may be more. */
static bool net_log_read(struct net_log *l)
{
	char bytes[NET_LOG_BYTES];
	ssize_t n = read(l->entry.fd, bytes, sizeof(bytes));

	if (n > 0)
		net_log_take(l, bytes, (size_t)n);
	return n == (ssize_t)sizeof(bytes);
}

static void net_log_ready(void *arg, uint32_t events)
{
	struct net_log *l = arg;

	(void)events;
	if (!net_log_read(l))
		return;
	loop_change(l->loop, &l->entry, 0);
	loop_start(l->loop, &l->rest, NET_LOG_REST_NS);
}

static void net_log_rested(void *arg)
{
	struct net_log *l = arg;

	loop_change(l->loop, &l->entry, EPOLLIN);
}

int net_log_open(struct net_log *l, struct loop *loop, struct logger *log, struct iocom_err *err)
{
	int ends[2], rc;

	*l = (struct net_log){.loop = loop, .log = log, .writer = -1};
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return iocom_err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	l->writer = ends[1];
	l->entry = (struct loop_fd){.fd = ends[0], .ready = net_log_ready, .arg = l};
	l->rest = (struct loop_timer){.fire = net_log_rested, .arg = l};
	rc = loop_add(loop, &l->entry, EPOLLIN);
	if (rc) {
		net_log_close(l);
		return iocom_err_set(err, rc, "cannot watch a pipe: %s", strerror(-rc));
	}
	return 0;
}

void net_log_flush(struct net_log *l)
{
	if (!l->loop || l->writer < 0)
		return;
	(void)net_log_read(l);
	net_log_line(l);
	l->cut = false;
}

void net_log_close(struct net_log *l)
{
	if (!l->loop || l->writer < 0)
		return;
	net_log_flush(l);
	loop_cancel(l->loop, &l->rest);
	loop_remove(l->loop, &l->entry);
	close(l->entry.fd);
	close(l->writer);
	l->writer = -1;
}
