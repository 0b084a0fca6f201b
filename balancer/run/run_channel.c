/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Between the stream of a gang's part and the client's main process, which decides for all parts
 * (gang_watch.h).  Messages for the launcher and from it pass unread.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "balancer/run/gang_watch.h"
#include "balancer/run/run_stream.h"
#include "user/gang_plan.h"

static bool run_channel_ready(const struct run_stream *s)
{
	return s->result->state == RUN_STARTED && !run_quiet(s);
}

int run_channel_poll(const struct run_stream *s)
{
	const struct run_channel *channel = s->options->channel;

	/* A message waits, so the node is not heard now: more would only add to it. */
	return channel && !channel->kept_length && !s->over ? channel->fd : -1;
}

void run_channel_resume(struct run_stream *s)
{
	struct run_channel *channel = s->options->channel;

	if (!channel || !channel->kept_length || !run_channel_ready(s))
		return;
	if (wire_send(&s->wire, FRAME_GANG, channel->kept, channel->kept_length, NULL, 0))
		run_broken(s, -EPIPE);
	free(channel->kept);
	channel->kept = NULL;
	channel->kept_length = 0;
}

/* A signal for the tasks: where nobody can tell them, the part counts as lost. */
static void run_channel_signal(struct run_stream *s, int signal)
{
	if (run_channel_ready(s)) {
		if (wire_signal(&s->wire, (uint8_t)signal))
			run_broken(s, -EPIPE);
		return;
	}
	if (signal == SIGCONT || signal == SIGTSTP || s->over)
		return;
	if (s->result->state == RUN_STARTED)
		run_lost(s, RUN_CONTACT_LOST);
	else
		run_abandon(s, signal);
}

static void run_channel_take(struct run_stream *s, const uint8_t *packet, size_t length)
{
	struct run_channel *channel = s->options->channel;

	if (length == GANG_ORDER && packet[0] == GANG_ORDER_SIGNAL) {
		run_channel_signal(s, packet[1]);
	} else if (length == GANG_ORDER && packet[0] == GANG_ORDER_LEAVE) {
		s->over = true;
	} else {
		channel->kept = malloc(length);
		if (!channel->kept) {
			run_lost(s, "out of memory for a message to the job's tasks");
			return;
		}
		memcpy(channel->kept, packet, length);
		channel->kept_length = (uint32_t)length;
		run_channel_resume(s);
	}
}

void run_channel_serve(struct run_stream *s)
{
	struct run_channel *channel = s->options->channel;
	uint8_t packet[GANG_MESSAGE_MAX];
	ssize_t n = recv(channel->fd, packet, sizeof(packet), MSG_DONTWAIT);

	if (n > 0)
		run_channel_take(s, packet, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		channel->fd = -1;
}

int run_channel_pass(struct run_stream *s, const uint8_t *payload, uint32_t length)
{
	const struct run_channel *channel = s->options->channel;

	if (s->result->state != RUN_STARTED || !length || length > GANG_MESSAGE_MAX)
		return -EPROTO;
	/* Who looks at a part only, as `iocom attach` does, has no use for it. */
	if (!channel || channel->fd < 0)
		return 0;
	/* A launcher says three things at most: no room is no honest launcher's doing. */
	return send(channel->fd, payload, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE
		       ? -EPROTO
		       : 0;
}
