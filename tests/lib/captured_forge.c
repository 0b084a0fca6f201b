/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See captured.h: beginnings of sessions and streams, and descriptors that are no stream. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <munge.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/cluster/greeting.h"
#include "tests/lib/captured.h"

static char *forge_credential(const msgpack_sbuffer *claim, const char *munge)
{
	munge_ctx_t ctx = munge_ctx_create();
	char *credential = NULL;

	if (munge_ctx_set(ctx, MUNGE_OPT_SOCKET, munge) != EMUNGE_SUCCESS ||
	    munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0) != EMUNGE_SUCCESS ||
	    munge_encode(&credential, ctx, claim->data, (int)claim->size) != EMUNGE_SUCCESS)
		credential = NULL;
	munge_ctx_destroy(ctx);
	return credential;
}

int captured_hello(struct captured_packet *p, uint64_t ticket, const char *from, const char *to,
		   const char *munge)
{
	struct greeting_self self = {.boot_id = 2};
	struct gate_message m = {.type = GATE_HELLO};
	struct greeting_head head;
	struct iocom_err err;
	msgpack_sbuffer claim, out;
	struct greeting g;
	char *credential;
	int rc = -EACCES;

	snprintf(self.name, sizeof(self.name), "%s", from);
	msgpack_sbuffer_init(&claim);
	msgpack_sbuffer_init(&out);
	greeting_begin(&g, &self, to, &claim);
	credential = forge_credential(&claim, munge);
	if (credential && !greeting_hello(&g, credential, &out) &&
	    !greeting_heard(&head, out.data, out.size, &err)) {
		m.hello = (struct gate_hello){
			.ticket = ticket,
			.least = head.least,
			.most = head.most,
			.credential = (uint32_t)(head.credential - out.data),
			.credential_length = (uint32_t)head.length,
		};
		captured_pack(p, &m, out.data, out.size);
		rc = 0;
	}
	free(credential);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_destroy(&out);
	greeting_end(&g);
	return rc;
}

void captured_stream(struct captured_packet *p, uint64_t id, const char *job, const char *node,
		     int fd)
{
	struct gate_message m = {.type = GATE_STREAM, .stream = {.id = id}};
	uint8_t key[SECRET_KEY], out[STREAM_HELLO_MAX];
	struct noise noise;
	size_t n = 0;

	snprintf(m.stream.from, sizeof(m.stream.from), "%s", CAPTURED_ADDRESS);
	stream_hello_fill(&m.stream.hello, STREAM_KIND_START, job, node, "");
	secret_new(key);
	if (stream_hello_pack(&noise, &m.stream.hello, key, NULL, out, &n))
		n = 0;
	noise_end(&noise);
	captured_pack(p, &m, out, n);
	p->fds[0] = fd;
	p->nfds = 1;
}

/* --- descriptors -------------------------------------------------------------------------- */

static int forge_unix(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A socket over IP at the loopback: bound, and connected to itself if it is to be. */
static int forge_inet(int type, bool connected, bool listening)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(at);

	if (bind(fd, (struct sockaddr *)&at, n) || getsockname(fd, (struct sockaddr *)&at, &n) ||
	    (connected && connect(fd, (struct sockaddr *)&at, n)) || (listening && listen(fd, 1))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int forge_pipe(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	close(ends[1]);
	return ends[0];
}

int captured_fd(unsigned k, const char *socket_path, const char *path, const char **what)
{
	static const char *const names[] = {
		"a connection to the agent's own socket",
		"a listening socket",
		"a UDP socket",
		"/dev/null",
		"a file",
		"a directory",
		"a pipe",
		"an event counter",
		"a TCP socket that is not connected",
		"a TCP socket connected to itself",
	};

	if (k >= sizeof(names) / sizeof(*names))
		return -1;
	*what = names[k];
	switch (k) {
	case 0:
		return forge_unix(socket_path);
	case 1:
		return forge_inet(SOCK_STREAM, false, true);
	case 2:
		return forge_inet(SOCK_DGRAM, true, false);
	case 3:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 4:
		return open(path, O_RDONLY | O_CLOEXEC);
	case 5:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 6:
		return forge_pipe();
	case 7:
		return eventfd(0, EFD_CLOEXEC);
	case 8:
		return forge_inet(SOCK_STREAM, false, false);
	default:
		return forge_inet(SOCK_STREAM, true, false);
	}
}
