/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See connection_cut.h.
 *
 * nng does not tell a pipe's descriptor: it is the one with both addresses.  nng may close it at
 * any time, and its number may then be another's; so a copy is made, looked at once more, and shut
 * down.
 */
#include "agent/net/connection_cut.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define DISCARD_BYTES (1u << 20)
#define GAP_MAX	      4096
#define DISCARDS      64 /* the kernel holds some MB for a connection */

static int ends_take(nng_pipe pipe, const char *option, struct sockaddr_storage *out)
{
	nng_sockaddr sa;
	int e = nng_pipe_get_addr(pipe, option, &sa);

	memset(out, 0, sizeof(*out));
	if (e)
		return e;
	if (sa.s_family == NNG_AF_INET) {
		struct sockaddr_in *four = (struct sockaddr_in *)out;

		four->sin_family = AF_INET;
		four->sin_port = sa.s_in.sa_port; /* both are in network order */
		four->sin_addr.s_addr = sa.s_in.sa_addr;
	} else if (sa.s_family == NNG_AF_INET6) {
		struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

		six->sin6_family = AF_INET6;
		six->sin6_port = sa.s_in6.sa_port;
		memcpy(&six->sin6_addr, sa.s_in6.sa_addr, sizeof(six->sin6_addr));
	} else {
		return NNG_ENOTSUP;
	}
	return 0;
}

int connection_ends_of(nng_pipe pipe, struct connection_ends *ends)
{
	int e = ends_take(pipe, NNG_OPT_REMADDR, &ends->remote);

	return e ? e : ends_take(pipe, NNG_OPT_LOCADDR, &ends->local);
}

void connection_address(nng_pipe pipe, char out[IOCOM_ADDRESS_MAX])
{
	struct sockaddr_storage from;
	const void *at = &((const struct sockaddr_in *)&from)->sin_addr;
	int e = ends_take(pipe, NNG_OPT_REMADDR, &from);

	if (!e && from.ss_family == AF_INET6)
		at = &((const struct sockaddr_in6 *)&from)->sin6_addr;
	if (e || !inet_ntop(from.ss_family, at, out, IOCOM_ADDRESS_MAX))
		out[0] = 0;
}

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)a, *four_b = (const void *)b;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a, *six_b = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return four->sin_port == four_b->sin_port &&
		       four->sin_addr.s_addr == four_b->sin_addr.s_addr;
	return a->ss_family == AF_INET6 && six->sin6_port == six_b->sin6_port &&
	       !memcmp(&six->sin6_addr, &six_b->sin6_addr, sizeof(six->sin6_addr));
}

static bool connects(int fd, const struct connection_ends *ends)
{
	struct sockaddr_storage local = {0}, remote = {0};
	socklen_t n = sizeof(remote);

	errno = 0;
	if (getpeername(fd, (struct sockaddr *)&remote, &n) || !is_same(&remote, &ends->remote))
		return false;
	n = sizeof(local);
	return !getsockname(fd, (struct sockaddr *)&local, &n) && is_same(&local, &ends->local);
}

static bool cut_if(int fd, const struct connection_ends *ends)
{
	bool done = false;
	int copy;

	if (!connects(fd, ends))
		return false;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return false;
	done = connects(copy, ends) && !shutdown(copy, SHUT_RDWR);
	/* From now on what arrives resets the connection, but what is here could still be read. */
	for (int i = 0; done && i < DISCARDS; i++)
		if (recv(copy, NULL, DISCARD_BYTES, MSG_TRUNC | MSG_DONTWAIT) <= 0)
			break;
	close(copy);
	return done;
}

/* The network part sees no /proc, and descriptors are numbered without large gaps. */
bool connection_cut(const struct connection_ends *ends)
{
	for (int fd = 0, unused = 0; unused < GAP_MAX; fd++) {
		if (cut_if(fd, ends))
			return true;
		unused = errno == EBADF ? unused + 1 : 0;
	}
	return false;
}
