/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two relays with TLS between them: bytes, ends, who is refused and with which words, and what
 * their processes may do. openssl makes the certificates for each run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/frame.h"
#include "agent/base/spawn.h"
#include "tests/lib/stage.h"

static char directory[] = "/tmp/iocom-relay-XXXXXX", program[PATH_MAX + 64];

#define MAKE                                                                                       \
	"cd %s && new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2' && "       \
	"for ca in ca other; do openssl req -x509 $new -subj /CN=$ca -keyout $ca.key -out "        \
	"$ca.pem || exit 1; done && for n in a b; do openssl req $new -subj /CN=$n -keyout "       \
	"$n.key -out $n.csr && openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key "             \
	"-CAcreateserial -days 2 -out $n.pem || exit 1; done"

static int setup(void **state)
{
	struct stage stage;
	char command[1200];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	/* The relay is in the same directory as the shim. */
	if (stage_up(&stage))
		return -1;
	snprintf(program, sizeof(program), "%.*siocom-relay",
		 (int)(strrchr(stage.shim, '/') + 1 - stage.shim), stage.shim);
	stage_down(&stage);
	snprintf(command, sizeof(command), "{ " MAKE "; } >/dev/null 2>&1", directory);
	return system(command);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

struct ends {
	int plain[2]; /* the test's ends: of the client's relay and the server's */
	pid_t pid[2];
};

struct files {
	const char *own, *ca; /* names without ".pem" */
};

static int spawn(struct ends *ends, int i, char *const argv[], int tcp)
{
	int pair[2];
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fds[0] = pair[1];
	fds[1] = tcp;
	ends->plain[i] = pair[0];
	i = spawn_spawn(program, argv, fds, tcp < 0 ? 1 : 2, &ends->pid[i]);
	close(pair[1]);
	return i;
}

static void paths(const struct files *files, char out[3][128])
{
	snprintf(out[0], 128, "%s/%s.pem", directory, files->own);
	snprintf(out[1], 128, "%s/%s.key", directory, files->own);
	snprintf(out[2], 128, "%s/%s.pem", directory, files->ca);
}

static int listen_any(char port[16])
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(sa);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &length), 0);
	snprintf(port, 16, "%u", ntohs(sa.sin_port));
	return fd;
}

static void start_client(struct ends *ends, const char *role, const struct files *files,
			 const char *port)
{
	char file[3][128];
	char *const argv[] = {
		(char *)"iocom-relay", (char *)role,	    file[0],	  file[1], file[2],
		(char *)"n2",	       (char *)"127.0.0.1", (char *)port, NULL};

	paths(files, file);
	assert_int_equal(spawn(ends, 0, argv, -1), 0);
}

static void start_server(struct ends *ends, const struct files *files, int tcp)
{
	char file[3][128];
	char *const argv[] = {
		(char *)"iocom-relay", (char *)"server", file[0], file[1], file[2], NULL};

	paths(files, file);
	assert_int_equal(spawn(ends, 1, argv, tcp), 0);
	close(tcp);
}

static struct ends start(const struct files *client, const struct files *server)
{
	struct ends ends;
	char port[16];
	int fd = listen_any(port);

	start_client(&ends, "client", client, port);
	start_server(&ends, server, accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	close(fd);
	return ends;
}

/* Returns both exit codes: 10 * client + server. */
static int stop(struct ends *ends)
{
	int status[2], sum = 0;

	for (int i = 0; i < 2; i++)
		if (ends->plain[i] >= 0)
			close(ends->plain[i]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(ends->pid[i], &status[i], 0), ends->pid[i]);
		assert_true(WIFEXITED(status[i]));
		sum = 10 * sum + WEXITSTATUS(status[i]);
	}
	return sum;
}

static const struct files good_a = {"a", "ca"}, good_b = {"b", "ca"};

static void read_exactly(int fd, void *out, size_t n)
{
	for (size_t have = 0; have < n;) {
		ssize_t got = read(fd, (char *)out + have, n - have);

		if (got <= 0)
			fail_msg("the stream ended after %zu of %zu bytes", have, n);
		have += (size_t)got;
	}
}

/* Sends in both directions at once, more than all buffers hold. */
static void test_bytes(void **state)
{
	static uint8_t sent[2 << 20], got[sizeof(sent)];
	struct ends ends = start(&good_a, &good_b);
	pid_t writer[2];

	(void)state;
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 2654435761u >> 13);
	for (int i = 0; i < 2; i++) {
		writer[i] = fork();
		if (!writer[i])
			_exit(write(ends.plain[i], sent, sizeof(sent)) != sizeof(sent));
	}
	for (int i = 1; i >= 0; i--) {
		memset(got, 0, sizeof(got));
		read_exactly(ends.plain[i], got, sizeof(got));
		assert_memory_equal(got, sent, sizeof(sent));
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(waitpid(writer[i], NULL, 0), writer[i]);
	assert_int_equal(stop(&ends), 0);
}

/* One end says that it sends no more, and still receives from the other. */
static void test_half_close(void **state)
{
	struct ends ends = start(&good_a, &good_b);
	char got[8];

	(void)state;
	assert_int_equal(write(ends.plain[0], "ping", 4), 4);
	shutdown(ends.plain[0], SHUT_WR);
	read_exactly(ends.plain[1], got, 4);
	assert_int_equal(read(ends.plain[1], got, 1), 0);
	assert_int_equal(write(ends.plain[1], "pong", 4), 4);
	shutdown(ends.plain[1], SHUT_WR);
	read_exactly(ends.plain[0], got, 4);
	assert_int_equal(read(ends.plain[0], got, 1), 0);
	assert_int_equal(stop(&ends), 0);
}

static void test_one_end_dies(void **state)
{
	struct ends ends = start(&good_a, &good_b);
	char got[8];
	int status;

	(void)state;
	assert_int_equal(write(ends.plain[0], "ping", 4), 4);
	read_exactly(ends.plain[1], got, 4);
	kill(ends.pid[1], SIGKILL);
	assert_int_equal(read(ends.plain[0], got, 1), 0); /* the other sees the end */
	close(ends.plain[0]);
	close(ends.plain[1]);
	for (int i = 0; i < 2; i++)
		waitpid(ends.pid[i], &status, 0);
}

/* A reader that stops bounds how much its writer can send. */
static void test_stalled_reader(void **state)
{
	static uint8_t piece[65536];
	struct ends ends = start(&good_a, &good_b);
	size_t put = 0;
	struct pollfd p = {.fd = ends.plain[0], .events = POLLOUT};
	char got[4];

	(void)state;
	assert_int_equal(write(ends.plain[0], piece, 4), 4);
	read_exactly(ends.plain[1], got, 4);
	while (poll(&p, 1, 1000) > 0) {
		ssize_t n = send(p.fd, piece, sizeof(piece), MSG_DONTWAIT);

		if (n > 0)
			put += (size_t)n;
		assert_in_range(put, 0, 64 << 20);
	}
	printf("# | a stalled reader: %zu KB on their way through two relays\n", put >> 10);
	close(ends.plain[1]);
	ends.plain[1] = -1;
	stop(&ends);
}

/* --- who is refused ------------------------------------------------------------ */

static const char *sentence(int fd)
{
	static char text[1200];
	struct frame frame;

	text[0] = 0;
	if (!frame_read(fd, &frame, 1024, NULL)) {
		if (frame.type == FRAME_ERROR)
			snprintf(text, sizeof(text), "%s", (char *)frame.payload);
		frame_free(&frame);
	}
	return text;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in '%s'", part, text);
}

static void test_wrong_authority(void **state)
{
	static const struct {
		struct files client, server;
		const char *at_client, *at_server;
	} cases[] = {
		/* the first trusts another CA, the second is signed by another */
		{{"a", "other"},
		 {"b", "ca"},
		 "is not one of the CA in tls_ca",
		 "trusts another CA"},
		{{"other", "ca"},
		 {"b", "ca"},
		 "trusts another CA",
		 "is not one of the CA in tls_ca"},
		{{"a", "ca"},
		 {"b", "other"},
		 "trusts another CA",
		 "is not one of the CA in tls_ca"},
		{{"a", "ca"},
		 {"other", "ca"},
		 "is not one of the CA in tls_ca",
		 "trusts another CA"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ends ends = start(&cases[i].client, &cases[i].server);

		/* The relay may have refused and ended already: then it has said why. */
		(void)!send(ends.plain[0], "secret", 6, MSG_NOSIGNAL);
		expect(sentence(ends.plain[0]), cases[i].at_client);
		expect(sentence(ends.plain[1]), cases[i].at_server);
		assert_int_equal(stop(&ends), 11);
	}
}

static void test_files(void **state)
{
	const struct files none = {"nothing", "ca"};
	struct ends ends;

	(void)state;
	start_client(&ends, "client", &none, "1");
	expect(sentence(ends.plain[0]), "tls_certificate");
	close(ends.plain[0]);
	waitpid(ends.pid[0], NULL, 0);
}

static void test_peer_without_tls(void **state)
{
	struct ends ends;
	char port[16];
	int fd = listen_any(port), peer;

	(void)state;
	/* A plain client at a server with TLS gets its answer without TLS. */
	start_client(&ends, "ask", &good_a, port); /* only to have something that connects */
	peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	frame_write(peer, FRAME_ERROR, "plain", 5);
	expect(sentence(ends.plain[0]), "it speaks without TLS");
	close(peer);
	close(ends.plain[0]);
	waitpid(ends.pid[0], NULL, 0);

	peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(peer,
				 (struct sockaddr *)&(struct sockaddr_in){
					 .sin_family = AF_INET,
					 .sin_port = htons((uint16_t)atoi(port)),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
				 sizeof(struct sockaddr_in)),
			 0);
	start_server(&ends, &good_b, accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	frame_write(peer, FRAME_START, "environment", 11);
	expect(sentence(peer), "takes encrypted job streams only");
	expect(sentence(ends.plain[1]), "it speaks without TLS");
	close(peer);
	close(ends.plain[1]);
	waitpid(ends.pid[1], NULL, 0);
	close(fd);
}

static void test_slow_peer(void **state)
{
	struct ends ends;
	char port[16];
	int fd = listen_any(port), peer;

	(void)state;
	start_client(&ends, "client", &good_a, port);
	peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	expect(sentence(ends.plain[0]), "handshake took longer than 5 s");
	close(peer);
	close(fd);
	close(ends.plain[0]);
	waitpid(ends.pid[0], NULL, 0);
}

static void test_unreachable(void **state)
{
	struct ends ends;
	char port[16];

	(void)state;
	close(listen_any(port));
	start_client(&ends, "client", &good_a, port);
	expect(sentence(ends.plain[0]), "node n2: it cannot be reached at 127.0.0.1");
	close(ends.plain[0]);
	waitpid(ends.pid[0], NULL, 0);
	start_client(&ends, "ask", &good_a, port); /* that says nothing about TLS */
	assert_string_equal(sentence(ends.plain[0]), "");
	close(ends.plain[0]);
	waitpid(ends.pid[0], NULL, 0);
}

static void test_not_for_users(void **state)
{
	char command[PATH_MAX + 128];

	(void)state;
	snprintf(command, sizeof(command), "%s >/dev/null 2>&1", program);
	assert_int_equal(WEXITSTATUS(system(command)), 2);
	snprintf(command, sizeof(command), "%s server a b c 3<&- >/dev/null 2>&1", program);
	assert_int_equal(WEXITSTATUS(system(command)), 2);
}

/* --- the rights of its process ------------------------------------------------------- */

static void test_is_nobody(void **state)
{
	struct ends ends = start(&good_a, &good_b);
	const char *status;
	char path[64], got[4];

	(void)state;
	assert_int_equal(write(ends.plain[0], "ping", 4), 4);
	read_exactly(ends.plain[1], got, 4);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/status", ends.pid[i]);
		status = stage_read(path);
		expect(status, "Uid:\t65534\t65534\t65534\t65534");
		expect(status, "Gid:\t65534\t65534\t65534\t65534");
		expect(status, "Groups:\t \n");
		expect(status, "CapPrm:\t0000000000000000");
		expect(status, "CapEff:\t0000000000000000");
		expect(status, "NoNewPrivs:\t1");
	}
	assert_int_equal(stop(&ends), 0);
}

/* Returns as bits what another process of USER can do to PID. */
static int reach(uid_t user, pid_t pid)
{
	pid_t other = fork();
	int status;

	if (!other) {
		char path[64];
		int rc = 0, fd;

		if (setgroups(0, NULL) || setresgid(user, user, user) ||
		    setresuid(user, user, user))
			_exit(99);
		rc |= ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
		snprintf(path, sizeof(path), "/proc/%d/mem", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		rc |= (fd >= 0) << 1;
		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		rc |= (fd >= 0) << 2;
		_exit(rc);
	}
	assert_int_equal(waitpid(other, &status, 0), other);
	return WEXITSTATUS(status);
}

#define STRANGER 65533
#define NOBODY	 65534

/* A relay with a user of its own: no process of that user can read its key. */
static void test_is_somebody(void **state)
{
	char file[3][128];
	char *const argv[] = {(char *)"iocom-relay",
			      (char *)"--as",
			      (char *)"65533",
			      (char *)"65532",
			      (char *)"server",
			      file[0],
			      file[1],
			      file[2],
			      NULL};
	struct ends ends;
	char path[64], port[16], got[4];
	const char *status;
	int fd = listen_any(port);
	pid_t plain;

	(void)state;
	paths(&good_b, file);
	start_client(&ends, "client", &good_a, port);
	{
		int tcp = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		assert_int_equal(spawn(&ends, 1, argv, tcp), 0);
		close(tcp);
	}
	close(fd);
	assert_int_equal(write(ends.plain[0], "ping", 4), 4);
	read_exactly(ends.plain[1], got, 4);
	snprintf(path, sizeof(path), "/proc/%d/status", ends.pid[1]);
	status = stage_read(path);
	expect(status, "Uid:\t65533\t65533\t65533\t65533");
	expect(status, "Gid:\t65532\t65532\t65532\t65532");
	assert_int_equal(reach(STRANGER, ends.pid[1]), 0);
	assert_int_equal(reach(NOBODY, ends.pid[0]), 0);
	assert_int_equal(stop(&ends), 0);
	/* For comparison: the same check succeeds on a process that does not guard itself. */
	plain = fork();
	if (!plain) {
		if (setgroups(0, NULL) || setresgid(STRANGER, STRANGER, STRANGER) ||
		    setresuid(STRANGER, STRANGER, STRANGER) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
			_exit(1);
		pause();
		_exit(0);
	}
	for (int i = 0; i < 500 && !(reach(STRANGER, plain) & 2); i++)
		usleep(10000);
	assert_true(reach(STRANGER, plain) & 2);
	kill(plain, SIGKILL);
	waitpid(plain, NULL, 0);
}

/* A relay must not run as root, and its user must be a number. */
static void test_bad_user(void **state)
{
	static const char *const users[][2] = {
		{"0", "1"},	     {"1", "0"}, {"x", "1"}, {"-1", "1"},
		{"4294967295", "1"}, {"", "1"},	 {"1", "1"}, /* accepted: it fails later */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		char *const argv[] = {(char *)"iocom-relay", (char *)"--as",   (char *)users[i][0],
				      (char *)users[i][1],   (char *)"client", (char *)"/a",
				      (char *)"/b",	     (char *)"/c",     (char *)"n2",
				      (char *)"127.0.0.1",   (char *)"1",      NULL};
		struct ends ends;
		int status;

		assert_int_equal(spawn(&ends, 0, argv, -1), 0);
		assert_int_equal(waitpid(ends.pid[0], &status, 0), ends.pid[0]);
		assert_int_equal(WEXITSTATUS(status), strcmp(users[i][0], users[i][1]) ? 2 : 1);
		close(ends.plain[0]);
	}
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void test_cost(void **state)
{
	double began = now_ms(), up, trips, all;
	struct ends ends = start(&good_a, &good_b);
	static uint8_t piece[65536];
	char got[4];
	size_t total = 64 << 20;
	pid_t writer;

	(void)state;
	assert_int_equal(write(ends.plain[0], "ping", 4), 4);
	read_exactly(ends.plain[1], got, 4);
	up = now_ms() - began;
	began = now_ms();
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(write(ends.plain[0], "ping", 4), 4);
		read_exactly(ends.plain[1], got, 4);
		assert_int_equal(write(ends.plain[1], "pong", 4), 4);
		read_exactly(ends.plain[0], got, 4);
	}
	trips = now_ms() - began;
	began = now_ms();
	writer = fork();
	if (!writer) {
		for (size_t n = 0; n < total; n += sizeof(piece))
			if (write(ends.plain[0], piece, sizeof(piece)) != sizeof(piece))
				_exit(1);
		_exit(0);
	}
	for (size_t n = 0; n < total; n += sizeof(piece))
		read_exactly(ends.plain[1], piece, sizeof(piece));
	all = now_ms() - began;
	waitpid(writer, NULL, 0);
	printf("# | TLS relays: both started and shaken hands %.1f ms, round trip %.0f us, "
	       "%.0f MB/s\n",
	       up, trips, (double)total / 1e3 / all);
	assert_int_equal(stop(&ends), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_one_end_dies),
		cmocka_unit_test(test_stalled_reader),
		cmocka_unit_test(test_wrong_authority),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_peer_without_tls),
		cmocka_unit_test(test_slow_peer),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_not_for_users),
		cmocka_unit_test(test_is_nobody),
		cmocka_unit_test(test_is_somebody),
		cmocka_unit_test(test_bad_user),
		cmocka_unit_test(test_cost),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP a relay needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("relay", tests, setup, teardown);
}
