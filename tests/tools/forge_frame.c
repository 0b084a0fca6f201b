/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * forge_frame HOW WHERE [UID]: sends one malformed message to WHERE (a socket's path or a port
 * of 127.0.0.1) as UID. Prints the reaction: "refused: SENTENCE", "closed", "silent" (nothing
 * within 2 s) or "answered". make() knows the values of HOW; "connect" only connects.
 *
 * forge_frame slow PORT COUNT SECONDS: opens COUNT connections from 127.0.0.66 that send a byte
 * a second; prints how many the agent cut meanwhile.
 * forge_frame crowd WHERE COUNT UID: opens as many that send one byte, and holds them until
 * standard input ends; prints how many the agent closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/frame.h"
#include "user/pack.h"
#include "user/spec.h"

__attribute__((noreturn)) static void cannot(const char *what)
{
	fprintf(stderr, "forge_frame: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int connect_to(const char *where, const char *from)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET};
	bool path = *where == '/';
	int fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		cannot("socket");
	if (path) {
		snprintf(local.sun_path, sizeof(local.sun_path), "%s", where);
		if (connect(fd, (struct sockaddr *)&local, sizeof(local)))
			cannot(where);
		return fd;
	}
	if (from) {
		inet_pton(AF_INET, from, &in.sin_addr);
		if (bind(fd, (struct sockaddr *)&in, sizeof(in)))
			cannot(from);
	}
	in.sin_port = htons((uint16_t)atoi(where));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&in, sizeof(in))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* --- the messages ------------------------------------------------------------------ */

static uint8_t bytes[8u << 20];
static size_t used;

static void put(const void *data, size_t n)
{
	memcpy(bytes + used, data, n);
	used += n;
}

static void head(uint8_t type, uint32_t length)
{
	frame_header(bytes, type, length);
	used = FRAME_HEADER;
}

static void whole(uint8_t type, const msgpack_sbuffer *payload)
{
	head(type, (uint32_t)payload->size);
	put(payload->data, payload->size);
}

static void start_with(const void *spec, size_t length)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "cred", "MUNGE:AAAA:");
	pack_bin(&pk, "spec", spec, length);
	whole(FRAME_START, &buffer);
	msgpack_sbuffer_destroy(&buffer);
}

/* Fills LENGTH bytes at OUT with { "k": [ 7, 7, ... ] }. */
static void numbers(uint8_t *out, uint32_t length)
{
	const uint32_t n = length - 8;
	const uint8_t begin[] = {0x81,
				 0xa1,
				 'k',
				 0xdd,
				 (uint8_t)(n >> 24),
				 (uint8_t)(n >> 16),
				 (uint8_t)(n >> 8),
				 (uint8_t)n};

	memset(out, 7, length);
	memcpy(out, begin, sizeof(begin));
}

/* Makes a start of a job with one wrong field. */
static void bad_spec(const char *how)
{
	static char *many[SPEC_ARGS_MAX + 2];
	static char *argv[] = {(char *)"true", NULL}, *none[] = {NULL};
	static char path[5001];
	struct spec spec = {.job = "mallory-0-1",
			    .node = "alpha",
			    .nonce = "0",
			    .class_name = "x",
			    .executable = (char *)"/bin/true",
			    .cwd = (char *)"/",
			    .argv = argv,
			    .env = none};
	struct iocom_err err = {0};
	size_t length;
	void *packed;

	memset(path, '/', sizeof(path) - 1);
	if (!strcmp(how, "job-dots"))
		strcpy(spec.job, "../../etc/cron.d/x");
	else if (!strcmp(how, "job-slash"))
		strcpy(spec.job, "a/b");
	else if (!strcmp(how, "job-line"))
		strcpy(spec.job, "a\nb: started by root");
	else if (!strcmp(how, "cwd-relative"))
		spec.cwd = (char *)"tmp";
	else if (!strcmp(how, "cwd-long"))
		spec.cwd = path;
	else if (!strcmp(how, "executable-long"))
		spec.executable = path;
	else if (!strcmp(how, "umask-wide"))
		spec.umask = 01000;
	else if (!strcmp(how, "closed-wide"))
		spec.closed = 8;
	else if (!strcmp(how, "limit-unknown"))
		spec.limits[spec.nlimits++].resource = RLIM_NLIMITS;
	else if (!strcmp(how, "limit-soft")) /* above its hard limit */
		spec.limits[spec.nlimits++] = (struct spec_limit){RLIMIT_NOFILE, 2, 1};
	else if (!strcmp(how, "argv-none"))
		spec.argv = none;
	for (size_t i = 0; !strcmp(how, "argv-many") && i <= SPEC_ARGS_MAX; i++)
		many[i] = (char *)"x";
	if (many[0])
		spec.argv = many;
	if (spec_pack(&spec, &packed, &length, &err)) {
		fprintf(stderr, "forge_frame: %s\n", err.text);
		exit(2);
	}
	start_with(packed, length);
	free(packed);
}

/* Makes a message that is wrong from its header on. Returns false if HOW is none of these. */
static bool make_header(const char *how)
{
	if (!strcmp(how, "random")) {
		if (getrandom(bytes, 4096, 0) != 4096)
			cannot("random");
		bytes[0] = 'j';
		used = 4096;
	} else if (!strcmp(how, "version")) {
		head(FRAME_START, 8);
		bytes[2] ^= 0x55;
	} else if (!strcmp(how, "frame-long")) {
		head(FRAME_START, FRAME_PAYLOAD_MAX + 1);
	} else if (!strcmp(how, "request-long")) {
		head(FRAME_REQUEST, (1u << 20) + 1);
	} else if (!strcmp(how, "type")) {
		head(FRAME_EXIT, 0);
	} else if (!strcmp(how, "type-unknown")) {
		head(200, 0);
	} else {
		return false;
	}
	return true;
}

static bool make_request(const char *how)
{
	bool kill = !strncmp(how, "kill:", 5), claim = !strcmp(how, "uid-claimed");
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, kill || claim ? 3 : 1);
	if (!strcmp(how, "no-op"))
		pack_str(&pk, "po", "status");
	else if (!strcmp(how, "op-unknown"))
		pack_str(&pk, "op", "shutdown");
	else if (kill)
		pack_str(&pk, "op", "kill");
	if (kill) {
		pack_str(&pk, "job", how + 5);
		pack_u64(&pk, "signal", 9);
	}
	if (claim) { /* the list of jobs, as root would get it */
		pack_str(&pk, "op", "jobs");
		pack_u64(&pk, "uid", 0);
		pack_bool(&pk, "all", true);
	}
	if (buffer.size > 1)
		whole(FRAME_REQUEST, &buffer);
	msgpack_sbuffer_destroy(&buffer);
	return used > 0;
}

static void make(const char *how)
{
	static const uint8_t claim[] = {0xdf, 0xff, 0xff, 0xff, 0xff};
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	if (make_header(how) || make_request(how))
		return;
	if (!strcmp(how, "empty")) {
		head(FRAME_START, 0);
	} else if (!strcmp(how, "claim")) { /* four billion entries in five bytes */
		head(FRAME_START, sizeof(claim));
		put(claim, sizeof(claim));
	} else if (!strcmp(how, "deep")) { /* lists in lists in lists ... */
		head(FRAME_START, 1u << 20);
		memset(bytes + used, 0x91, 1u << 20);
		used += 1u << 20;
		bytes[used - 1] = 0x90;
	} else if (!strcmp(how, "numbers")) { /* as many values as there is room for */
		head(FRAME_START, FRAME_PAYLOAD_MAX);
		numbers(bytes + used, FRAME_PAYLOAD_MAX);
		used += FRAME_PAYLOAD_MAX;
	} else if (!strcmp(how, "spec-numbers")) {
		static uint8_t spec[SPEC_PACKED_MAX];

		numbers(spec, sizeof(spec));
		start_with(spec, sizeof(spec));
	} else if (!strcmp(how, "no-spec")) {
		pack_begin(&pk, &buffer, 1);
		pack_str(&pk, "cred", "x");
		whole(FRAME_START, &buffer);
	} else if (!strcmp(how, "spec-nonsense")) {
		start_with("nonsense", 8);
	} else if (!strcmp(how, "spec-long")) {
		static uint8_t zeros[SPEC_PACKED_MAX + 1];

		start_with(zeros, sizeof(zeros));
	} else if (!strcmp(how, "job-nul") || !strcmp(how, "job-long")) {
		char job[SPEC_JOB_MAX];

		memset(job, 'a', sizeof(job));
		job[1] = how[4] == 'n' ? 0 : 'a';
		pack_begin(&pk, &buffer, 2);
		pack_u64(&pk, "v", SPEC_VERSION);
		pack_bin(&pk, "job", job, how[4] == 'n' ? 3 : sizeof(job));
		start_with(buffer.data, buffer.size);
		msgpack_sbuffer_destroy(&buffer);
	} else {
		bad_spec(how);
	}
}

static int one(const char *how, const char *where)
{
	struct timeval limit = {.tv_sec = 2};
	struct iocom_err err = {0};
	struct frame frame;
	int fd = connect_to(where, NULL), rc;

	if (fd < 0)
		cannot(where);
	make(how);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (size_t at = 0; at < used;) { /* the agent may hang up in the middle */
		ssize_t n = send(fd, bytes + at, used - at, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	rc = frame_read(fd, &frame, FRAME_DOCUMENT_MAX, &err);
	if (rc == 0)
		printf("%s: %.3000s\n", frame.type == FRAME_ERROR ? "refused" : "answered",
		       (char *)frame.payload);
	else
		puts(rc == -EAGAIN ? "silent" : "closed");
	return rc == 0 && frame.type != FRAME_ERROR;
}

/* --- many connections -------------------------------------------------------------- */

static void allow_many(void)
{
	struct rlimit limit = {65536, 65536};

	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Returns how many of ALL the agent has answered or closed. */
static int sent_away(const int *all, int count)
{
	int away = 0;
	uint8_t byte;

	for (int i = 0; i < count; i++)
		away += recv(all[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || errno != EAGAIN;
	return away;
}

/*
 * Opens COUNT connections that begin a message and send no more. Returns how many the agent
 * closed.
 */
static int crowd(const char *where, int count, uid_t uid)
{
	int *all = calloc((size_t)count, sizeof(*all)), away = 0, same = 0;
	uint8_t byte;

	allow_many();
	if (setgid((gid_t)uid) || setuid(uid))
		cannot("setuid");
	for (int i = 0; i < count; i++) {
		all[i] = connect_to(where, NULL);
		(void)!send(all[i], "i", 1, MSG_NOSIGNAL);
	}
	while (!away || same < 5) { /* counts until the number stays the same for 1.5 s */
		int before = away;

		usleep(300000);
		away = sent_away(all, count);
		same = away == before ? same + 1 : 0;
	}
	printf("%d\n", away);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

/* --- slow clients ---------------------------------------------------------------------- */

static int slow(const char *port, int count, int seconds)
{
	struct pollfd *all = calloc((size_t)count, sizeof(*all));
	uint8_t message[64] = {0};
	int cut = 0, never = 0;

	allow_many();
	frame_header(message, FRAME_START, 1000);
	for (int i = 0; i < count; i++) {
		all[i].fd = connect_to(port, "127.0.0.66");
		all[i].events = POLLIN;
		never += all[i].fd < 0;
	}
	printf("open\n");
	fflush(stdout);
	for (int second = 0; second < seconds; second++) {
		for (int i = 0; i < count; i++)
			if (all[i].fd >= 0 &&
			    send(all[i].fd, message + second % 64, 1, MSG_NOSIGNAL) != 1) {
				close(all[i].fd);
				all[i].fd = -1;
				cut++;
			}
		sleep(1);
	}
	printf("connections %d, cut %d, not let in %d\n", count, cut, never);
	return 0;
}

int main(int argc, char **argv)
{
	uid_t uid = argc == 4 ? (uid_t)atoi(argv[3]) : 0;

	if (argc == 5 && !strcmp(argv[1], "slow"))
		return slow(argv[2], atoi(argv[3]), atoi(argv[4]));
	if (argc == 5 && !strcmp(argv[1], "crowd"))
		return crowd(argv[2], atoi(argv[3]), (uid_t)atoi(argv[4]));
	if (argc < 3) {
		fprintf(stderr, "usage: forge_frame HOW WHERE [UID]\n");
		return 2;
	}
	if (uid && (setgid((gid_t)uid) || setuid(uid)))
		cannot("setuid");
	if (!strcmp(argv[1], "connect")) {
		connect_to(argv[2], NULL);
		return 0;
	}
	return one(argv[1], argv[2]);
}
