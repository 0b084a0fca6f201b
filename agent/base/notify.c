/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Notes to systemd; see notify.h. */
#include "agent/base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_systemd(const char *state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (!n || n >= sizeof(sa.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(sa.sun_path, path, n);
	if (*path == '@') /* an abstract socket */
		sa.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}
