/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom-relay`: TLS for one job stream. iocomd spawns it:
 *
 *   iocom-relay server CERTIFICATE KEY CA                 descriptor 3 plain, 4 TCP
 *   iocom-relay client CERTIFICATE KEY CA NODE ADDR PORT  descriptor 3 plain
 *   iocom-relay ask CERTIFICATE KEY CA NODE ADDR PORT     writes to descriptor 3 what is wrong
 *                                                         with that peer; "" for the files:
 *                                                         this node has no TLS
 *
 * `--as UID GID` before the role names the user to become; without it that is nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/frame.h"
#include "agent/relay/relay.h"
#include "user/wire.h"

#define NOBODY	   65534
#define CONNECT_MS 5000

static struct {
	uid_t uid;
	gid_t gid;
} self = {NOBODY, NOBODY};

/*
 * Drops privilege after the key is read: a break-in then gains only this one stream. The process
 * is not dumpable, so that no other process of that user can trace it or read its memory.
 */
static int become_nobody(struct iocom_err *err)
{
	if (setgroups(0, NULL) || setresgid(self.gid, self.gid, self.gid) ||
	    setresuid(self.uid, self.uid, self.uid) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return iocom_err_set(err, -errno, "cannot drop privileges: %s", strerror(errno));
	if (setuid(0) == 0 || setgid(0) == 0)
		return iocom_err_set(err, -EPERM, "cannot drop privileges for good");
	return 0;
}

static void main_set_option(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

/* The ends of the stream see only a socketpair and cannot watch the TCP connection, so the relay
 * does. */
static void main_watch(int fd)
{
	main_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	wire_watch(fd, WIRE_SILENCE_S);
}

static int main_connect_one(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, info->ai_addr, info->ai_addrlen) && errno != EINPROGRESS)
		error = errno;
	else if (poll(&p, 1, CONNECT_MS) != 1)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = errno;
	if (!error)
		return fd;
	close(fd);
	return -error;
}

static int connect_to(const char *address, const char *port, struct iocom_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(address, port, &hints, &list), fd = -EHOSTUNREACH;

	if (rc)
		return iocom_err_set(err, -EHOSTUNREACH, "it has no usable address '%s': %s",
				     address, gai_strerror(rc));
	for (const struct addrinfo *at = list; at && fd < 0; at = at->ai_next)
		fd = main_connect_one(at);
	freeaddrinfo(list);
	return fd < 0 ? iocom_err_set(err, fd, "it cannot be reached at %s port %s: %s", address,
				      port, strerror(-fd))
		      : fd;
}

static int main_serve(char **argv, struct session *session, struct iocom_err *err)
{
	int rc = session_init(session, true, argv[2], argv[3], argv[4], err);

	if (!rc)
		rc = become_nobody(err);
	if (!rc) {
		main_watch(RELAY_FD_TCP);
		rc = session_handshake(session, RELAY_FD_TCP, err);
	}
	return rc ? rc : pump_run(session, RELAY_FD_PLAIN);
}

/* Connects and shakes hands. */
static int main_join(char **argv, struct session *session, struct iocom_err *err)
{
	int rc = session_init(session, false, argv[2], argv[3], argv[4], err);
	int fd;

	if (!rc)
		rc = become_nobody(err);
	if (rc)
		return rc;
	fd = connect_to(argv[6], argv[7], err);
	if (fd < 0)
		return fd;
	main_watch(fd);
	return session_handshake(session, fd, err);
}

/* --- the role "ask" ------------------------------------------------------------------ */

/* Checks that the peer has no TLS either; a peer with TLS answers with an error. */
static int ask_plain(char **argv, struct iocom_err *err)
{
	const struct timeval limit = {.tv_sec = CONNECT_MS / 1000};
	struct frame frame = {0};
	int rc = become_nobody(err);
	int fd = rc ? rc : connect_to(argv[6], argv[7], err);

	if (fd < 0)
		return fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!frame_write(fd, FRAME_REQUEST, NULL, 0) && !frame_read(fd, &frame, 1024, NULL) &&
	    frame.type == FRAME_ERROR)
		rc = iocom_err_set(err, -EPROTO, "it says: %.500s", (const char *)frame.payload);
	frame_free(&frame);
	close(fd);
	return rc;
}

static int main_ask(char **argv, struct session *session, struct iocom_err *err)
{
	uint8_t header[FRAME_HEADER];
	int rc;

	if (!*argv[2])
		return ask_plain(argv, err);
	rc = main_join(argv, session, err);
	if (rc)
		return rc;
	frame_header(header, FRAME_REQUEST, 0);
	(void)mbedtls_ssl_write(&session->ssl, header, sizeof(header));
	(void)mbedtls_ssl_close_notify(&session->ssl);
	return 0;
}

static int relay(char **argv, struct iocom_err *err)
{
	struct session session = {.fd = -1};
	int rc;

	if (!strcmp(argv[1], "server")) {
		rc = main_serve(argv, &session, err);
	} else if (!strcmp(argv[1], "ask")) {
		rc = main_ask(argv, &session, err);
		/* A peer that cannot be reached says nothing about TLS. */
		if (rc && rc != -EPROTO && rc != -EACCES && rc != -EINVAL)
			err->text[0] = 0;
	} else {
		rc = main_join(argv, &session, err);
		if (rc)
			iocom_err_prefix(err, "node %s", argv[5]);
		else
			rc = pump_run(&session, RELAY_FD_PLAIN);
	}
	session_deinit(&session);
	return rc;
}

static bool is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

/* Reads an id that is not root's. Returns 0 or -EINVAL. */
static int take_id(const char *text, unsigned *id)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value == 0 || value >= UINT32_MAX)
		return -EINVAL;
	*id = (unsigned)value;
	return 0;
}

int main(int argc, char **argv)
{
	bool as = argc > 4 && !strcmp(argv[1], "--as") && !take_id(argv[2], &self.uid) &&
		  !take_id(argv[3], &self.gid);
	bool server, client;
	struct iocom_err err = {0};

	if (as) {
		argv += 3;
		argc -= 3;
	}
	server = argc == 5 && !strcmp(argv[1], "server");
	client = argc == 8 && (!strcmp(argv[1], "client") || !strcmp(argv[1], "ask"));
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("iocom-relay %s\n", IOCOM_VERSION);
		return 0;
	}
	if ((!server && !client) || !is_socket(RELAY_FD_PLAIN) ||
	    (server && !is_socket(RELAY_FD_TCP))) {
		fprintf(stderr, "iocom-relay: carries one job stream over TLS; only iocomd "
				"starts it\n");
		return 2;
	}
	close_range((server ? RELAY_FD_TCP : RELAY_FD_PLAIN) + 1, ~0U, 0);
	signal(SIGPIPE, SIG_IGN);
	if (!relay(argv, &err))
		_exit(0); /* nothing must be flushed, and no exit handler must run */
	if (err.text[0])
		(void)frame_write(RELAY_FD_PLAIN, FRAME_ERROR, err.text,
				  (uint32_t)strlen(err.text));
	_exit(1);
}
