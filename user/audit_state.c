/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See audit_state.h. */
#include "user/audit_state.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWERS_MAX 16 /* messages that we read in search of the answer */

static int audit_socket(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);

	return fd < 0 ? -errno : fd;
}

bool audit_possible(void)
{
	int fd = audit_socket();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Takes one message of N bytes. Returns 0, -EAGAIN if it is not the answer, or the kernel's
 * error. */
static int audit_answer(const struct nlmsghdr *message, ssize_t n, struct audit_state *state)
{
	struct audit_status head = {0}; /* the kernel's may be longer or shorter */
	const size_t needed = offsetof(struct audit_status, rate_limit);
	struct nlmsgerr refused;

	if (n < (ssize_t)sizeof(*message) || message->nlmsg_len > (size_t)n)
		return -EIO;
	if (message->nlmsg_type == NLMSG_ERROR &&
	    message->nlmsg_len >= NLMSG_LENGTH(sizeof(refused))) {
		memcpy(&refused, NLMSG_DATA(message), sizeof(refused));
		return refused.error ? refused.error : -EAGAIN;
	}
	if (message->nlmsg_type != AUDIT_GET || message->nlmsg_len < NLMSG_LENGTH(needed))
		return -EAGAIN;
	memcpy(&head, NLMSG_DATA(message), needed);
	*state = (struct audit_state){.enabled = head.enabled, .daemon = (pid_t)head.pid};
	return 0;
}

int audit_state_read(struct audit_state *state)
{
	struct nlmsghdr ask = {.nlmsg_len = NLMSG_LENGTH(0),
			       .nlmsg_type = AUDIT_GET,
			       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			       .nlmsg_seq = 1};
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	const struct timeval limit = {.tv_sec = 2};
	union {
		struct nlmsghdr header;
		char bytes[1024];
	} answer;
	int fd = audit_socket(), rc = -EAGAIN;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (sendto(fd, &ask, sizeof(ask), 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		rc = -errno;
	for (int i = 0; rc == -EAGAIN && i < ANSWERS_MAX; i++) {
		ssize_t n = recv(fd, &answer, sizeof(answer), 0);

		if (n < 0) {
			rc = errno == EAGAIN ? -ETIMEDOUT : -errno;
			break;
		}
		rc = audit_answer(&answer.header, n, state);
	}
	close(fd);
	return rc == -EAGAIN ? -EIO : rc;
}
