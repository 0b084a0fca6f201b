/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See listen.h. */
#include "agent/base/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int listen_find(struct listen_address *found, const char *address, uint16_t port, bool names,
		struct iocom_err *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | (names ? 0 : AI_NUMERICHOST)};
	struct addrinfo *list = NULL;
	char host[IOCOM_ADDRESS_MAX], service[16];
	size_t n = strlen(address);
	bool brackets = n > 2 && address[0] == '[' && address[n - 1] == ']';
	int rc;

	*found = (struct listen_address){0};
	if (!n || n >= sizeof(host)) /* no name would mean every address */
		return iocom_err_set(err, -EADDRNOTAVAIL, "cannot listen at '%.80s': no address",
				     address);
	/* Brackets belong to URLs only. */
	snprintf(host, sizeof(host), "%.*s", (int)(n - 2 * brackets), address + brackets);
	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc)
		return iocom_err_set(err, -EADDRNOTAVAIL, "cannot listen at %s: %s", address,
				     gai_strerror(rc));
	memcpy(&found->at, list->ai_addr, list->ai_addrlen);
	found->length = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

int listen_numeric(char out[IOCOM_ADDRESS_MAX], const char *address, struct iocom_err *err)
{
	struct listen_address found;
	char host[IOCOM_ADDRESS_MAX];
	int rc = listen_find(&found, address, 0, true, err), n;

	out[0] = 0;
	if (rc)
		return rc;
	rc = getnameinfo((struct sockaddr *)&found.at, found.length, host, sizeof(host), NULL, 0,
			 NI_NUMERICHOST);
	if (rc)
		return iocom_err_set(err, -EADDRNOTAVAIL, "cannot listen at %s: %s", address,
				     gai_strerror(rc));
	n = snprintf(out, IOCOM_ADDRESS_MAX, found.at.ss_family == AF_INET6 ? "[%s]" : "%s", host);
	if (n < IOCOM_ADDRESS_MAX)
		return 0;
	out[0] = 0;
	return iocom_err_set(err, -ENAMETOOLONG, "cannot listen at %s: its address is too long",
			     address);
}

int listen_open(int *listener, const struct listen_address *at)
{
	int fd = socket(at->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, rc;

	*listener = -1;
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&at->at, at->length) || listen(fd, LISTEN_BACKLOG)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*listener = fd;
	return 0;
}
