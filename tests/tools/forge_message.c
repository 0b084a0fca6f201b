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
#include <munge.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
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

static const char *ask(const char *url, const char *text, nng_duration limit_ms)
{
	nng_socket socket;
	nng_msg *msg = message(text);
	int e = nng_req0_open(&socket);

	if (!e)
		e = nng_dial(socket, url, NULL, 0);
	if (!e)
		e = nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, limit_ms);
	if (!e) /* a message that is too long may not be taken whole */
		e = nng_socket_set_ms(socket, NNG_OPT_SENDTIMEO, ANSWER_MS);
	if (e)
		cannot(url, nng_strerror(e));
	e = nng_sendmsg(socket, msg, 0);
	if (e)
		nng_msg_free(msg);
	if (e && e != NNG_ETIMEDOUT)
		cannot("send", nng_strerror(e));
	if (!e) {
		e = nng_recvmsg(socket, &msg, 0);
		if (!e)
			nng_msg_free(msg);
	}
	nng_close(socket);
	return e ? "no answer" : "answered";
}

static void joined(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	(void)pipe;
	(void)event;
	*(volatile int *)arg = 1;
}

/* Waits until an agent has subscribed. */
static nng_socket publish_at(const char *url)
{
	static volatile int here;
	nng_socket socket;
	int e = nng_pub0_open(&socket);

	if (!e)
		e = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_POST, joined, (void *)&here);
	if (!e)
		e = nng_listen(socket, url, NULL, 0);
	if (e)
		cannot(url, nng_strerror(e));
	for (int i = 0; i < 1000 && !here; i++)
		usleep(10000);
	if (!here)
		cannot(url, "no agent came");
	usleep(50000);
	return socket;
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
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", atoi(argv[2]) + control);
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
			end = ask(url, last, strcmp(how, "true") ? REFUSED_MS : ANSWER_MS);
		else if (nng_sendmsg(publisher, message(last), 0))
			cannot("publish", "failed");
		printf("%s: %s\n", how, end);
		fflush(stdout);
	}
	free(last);
	return 0;
}
