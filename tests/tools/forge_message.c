/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * forge_message control PORT MUNGE TO | forge_message bulletin PORT MUNGE NAME
 *
 * Speaks to an agent as another agent would, but with something forged; reads one HOW a
 * line and answers each with a line "HOW: answered", "HOW: no answer" or "HOW: sent".
 * control sends to base port PORT + 1; bulletin publishes at PORT, where an agent that has
 * it among its peers listens.  HOW:
 *
 *   true      nothing is forged
 *   user      sealed by uid 65534
 *   plain     not sealed at all
 *   key       sealed with the munged of $FORGE_OTHER_MUNGE
 *   changed   one byte of the seal changed
 *   twice     the last sealed message once more
 *   id        (control) a fresh seal around the last message: the same number
 *   to own type version body head empty
 *             (control) meant for another node, said to be from the node itself, an unknown
 *             type, another version, no body, no head, nothing in the seal
 *   done      (control) how an unknown job ended, and with it $FORGE_JOB: as another node's
 *   nonsense version
 *             (bulletin) not our message in a good seal, another version
 *   large     more bytes than an agent takes
 */
#include <errno.h>
#include <endian.h>
#include <munge.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/cluster/bulletin.h"
#include "user/clock.h"
#include "agent/cluster/control.h"
#include "agent/jobs/job_report.h"
#include "user/pack.h"

#define ANSWER_MS  10000
#define REFUSED_MS 250 /* refused messages get no answer: the log must show them */
#define LARGE	   (1u << 20)

static const char *munge_socket, *name;
static uint64_t last_id;
static char *last; /* the last message sent */

__attribute__((noreturn)) static void cannot(const char *what, const char *why)
{
	fprintf(stderr, "forge_message: %s: %s\n", what, why);
	exit(2);
}

static char *seal_bytes(const char *socket, uid_t uid, const void *data, size_t length)
{
	munge_ctx_t ctx = munge_ctx_create();
	char *credential = NULL;

	munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket);
	munge_ctx_set(ctx, MUNGE_OPT_TTL, SEAL_TTL_S);
	munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
	if (seteuid(uid) || munge_encode(&credential, ctx, data, (int)length) != EMUNGE_SUCCESS ||
	    seteuid(0))
		cannot("munge", munge_ctx_strerror(ctx));
	munge_ctx_destroy(ctx);
	return credential;
}

/* Seals BYTES as HOW says. The result is malloc'ed. */
static char *dress(const char *how, const msgpack_sbuffer *bytes)
{
	const char *other = getenv("FORGE_OTHER_MUNGE");
	char *text;

	if (!strcmp(how, "plain"))
		return strdup("no seal at all");
	if (!strcmp(how, "large")) {
		text = malloc(LARGE + 1);
		memset(text, 'x', LARGE);
		text[LARGE] = 0;
		return text;
	}
	if (!strcmp(how, "empty"))
		return seal_bytes(munge_socket, 0, "", 0);
	if (!strcmp(how, "key"))
		return seal_bytes(other ? other : "", 0, bytes->data, bytes->size);
	text = seal_bytes(munge_socket, strcmp(how, "user") ? 0 : 65534, bytes->data, bytes->size);
	if (!strcmp(how, "changed")) {
		char *at = text + strlen(text) / 2;

		*at = *at == 'A' ? 'B' : 'A';
	}
	return text;
}

/* Packs the end of no job, and the end of a job that this node does not have. */
static void pack_ends(msgpack_sbuffer *body)
{
	struct job_report r = {.job = "mallory-0-1", .state = "exited", .end_ns = 1};
	const char *job = getenv("FORGE_JOB");

	msgpack_sbuffer_init(body);
	job_report_pack_first(&r, 1, body);
	snprintf(r.job, sizeof(r.job), "%s", job ? job : "");
	job_report_pack(&r, body);
}

/* Asks to kill a job that does not exist: harmless if it is obeyed. */
static void pack_control(const char *how, msgpack_sbuffer *out)
{
	bool own = !strcmp(how, "own"), no_body = !strcmp(how, "body");
	bool done = !strcmp(how, "done");
	msgpack_sbuffer body;
	msgpack_packer pk;

	if (strcmp(how, "id"))
		last_id++;
	if (done) {
		pack_ends(&body);
	} else {
		pack_begin(&pk, &body, 2);
		pack_u64(&pk, "uid", 0);
		pack_u64(&pk, "signal", 9);
	}
	pack_begin(&pk, out, strcmp(how, "head") ? 7 : 1);
	pack_u64(&pk, "v", strcmp(how, "version") ? CONTROL_VERSION : CONTROL_VERSION + 7);
	if (strcmp(how, "head")) {
		pack_str(&pk, "type", !strcmp(how, "type") ? "format" : done ? "done" : "kill");
		pack_str(&pk, "from", own ? name : "mallory");
		pack_str(&pk, "to", strcmp(how, "to") ? name : "another");
		pack_str(&pk, "job", "mallory-0-1");
		pack_u64(&pk, "id", last_id);
		if (no_body)
			pack_str(&pk, "body", "none");
		else
			pack_bin(&pk, "body", body.data, body.size);
	}
	msgpack_sbuffer_destroy(&body);
}

static void pack_bulletin(const char *how, msgpack_sbuffer *out)
{
	struct iocom_vector own = {
		.address = "127.0.0.1",
		.port = 9,
		.boot_id = 7,
		.sequence = ++last_id,
		.time_ns = clock_real_ns(),
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.cpu_burst = 1,
		.memory_mb = 100,
	};
	static struct matrix none;
	msgpack_packer pk;

	snprintf(own.name, sizeof(own.name), "%s", name);
	if (!strcmp(how, "nonsense")) {
		pack_begin(&pk, out, 1);
		pack_str(&pk, "hello", "world");
	} else if (!strcmp(how, "version")) {
		pack_begin(&pk, out, 2);
		pack_u64(&pk, "v", BULLETIN_VERSION + 7);
		pack_str(&pk, "from", name);
	} else {
		msgpack_sbuffer_init(out);
		bulletin_pack(out, &own, &none, 0);
	}
}

static nng_msg *message(const char *text)
{
	nng_msg *msg;

	if (nng_msg_alloc(&msg, 0) || nng_msg_append(msg, text, strlen(text)))
		cannot("message", "out of memory");
	return msg;
}

static bool send_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t put = send(fd, at, n, MSG_NOSIGNAL);

		if (put <= 0)
			return false;
		at += put;
		n -= (size_t)put;
	}
	return true;
}

/*
 * Asks as a requester of nng does, but once: nng itself would come again after the agent has cut
 * the connection.
 */
static const char *ask(uint16_t port, const char *text, unsigned limit_ms)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
	const uint64_t length = htobe64(4 + strlen(text));
	const uint32_t id = htobe32(0x80000001u);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t answer[8];
	bool answered;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		cannot("connect", strerror(errno));
	if (!send_all(fd, "\0SP\0\0\x30\0\0", 8) || recv(fd, answer, 8, MSG_WAITALL) != 8)
		cannot("connect", "the agent does not shake hands");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	answered = send_all(fd, &length, sizeof(length)) && send_all(fd, &id, sizeof(id)) &&
		   send_all(fd, text, strlen(text)) && recv(fd, answer, 8, MSG_WAITALL) == 8;
	close(fd);
	return answered ? "answered" : "no answer";
}

static atomic_int subscribed, left; /* agents that are, and connections that have been */

static void changed(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	(void)pipe;
	(void)arg;
	left += event == NNG_PIPE_EV_REM_POST;
	subscribed += event == NNG_PIPE_EV_ADD_POST ? 1 : -1;
}

static bool until_more(const atomic_int *count, int than)
{
	for (int i = 0; i < 2000 && *count <= than; i++)
		usleep(10000);
	return *count > than;
}

static nng_socket publish_at(const char *url)
{
	nng_socket socket;
	int e = nng_pub0_open(&socket);

	if (!e)
		e = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_POST, changed, NULL);
	if (!e)
		e = nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, changed, NULL);
	if (!e)
		e = nng_listen(socket, url, NULL, 0);
	if (e)
		cannot(url, nng_strerror(e));
	return socket;
}

/* An agent cuts the connection on which such a bulletin came, and subscribes again. */
static bool is_cut_for(const char *how)
{
	return !strcmp(how, "user") || !strcmp(how, "plain") || !strcmp(how, "key") ||
	       !strcmp(how, "changed") || !strcmp(how, "empty") || !strcmp(how, "large");
}

/* Publishes TEXT to an agent, which has subscribed or will. */
static void publish(nng_socket socket, const char *how, const char *text)
{
	int before;

	if (!until_more(&subscribed, 0))
		cannot("publish", "no agent came");
	usleep(50000);
	before = left;
	if (nng_sendmsg(socket, message(text), 0))
		cannot("publish", "failed");
	if (is_cut_for(how) && !until_more(&left, before))
		cannot("publish", "the agent did not cut the connection");
}

int main(int argc, char **argv)
{
	bool control = argc == 5 && !strcmp(argv[1], "control");
	nng_socket publisher = NNG_SOCKET_INITIALIZER;
	char url[128], how[64];

	if (argc != 5) {
		fprintf(stderr, "usage: forge_message control|bulletin PORT MUNGE NAME\n");
		return 2;
	}
	munge_socket = argv[3];
	name = argv[4];
	if (getrandom(&last_id, sizeof(last_id) / 2, 0) < 0)
		return 2;
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", atoi(argv[2]));
	if (!control)
		publisher = publish_at(url);
	while (scanf("%63s", how) == 1) {
		const char *end = "sent";
		msgpack_sbuffer bytes;

		if (strcmp(how, "twice") || !last) {
			if (control)
				pack_control(how, &bytes);
			else
				pack_bulletin(how, &bytes);
			free(last);
			last = dress(how, &bytes);
			msgpack_sbuffer_destroy(&bytes);
		}
		if (control)
			end = ask((uint16_t)(atoi(argv[2]) + 1), last,
				  strcmp(how, "true") ? REFUSED_MS : ANSWER_MS);
		else
			publish(publisher, how, last);
		printf("%s: %s\n", how, end);
		fflush(stdout);
	}
	free(last);
	return 0;
}
