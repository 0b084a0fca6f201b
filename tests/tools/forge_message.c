/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * forge_message control PORT MUNGE TO | forge_message bulletin PORT MUNGE NAME
 *
 * Speaks to an agent as another agent (mallory, NAME) would, but with something forged; reads one
 * HOW a line and answers each with a line "HOW: answered", "HOW: refused" (a sentence came),
 * "HOW: unknown" (session), "HOW: no answer" or "HOW: sent".  control sends to base port PORT + 1;
 * bulletin publishes at PORT, where an agent that has it among its peers listens, and gives that
 * agent its key.  HOW:
 *
 *   true      nothing is forged
 *   plain     not sealed at all
 *   changed   one byte of the sealed part changed
 *   twice     the last message once more
 *   empty large
 *             nothing in the seal; more bytes than an agent takes
 *
 * control, greetings:
 *   user      the credential of the HELLO is made by uid 65534
 *   key       it is made with the munged of $FORGE_OTHER_MUNGE
 *   hello     the last true HELLO once more
 *   mixed     its head, with the Noise message of another
 *   another   meant for another node
 *   self      said to be from the node itself
 *   versions  of versions that nobody speaks
 *   old       a message of the version without sessions
 * control, in a session:
 *   id        the number of the last message under a fresh seal
 *   reflect   the agent's own answer sent back
 *   session   of a session that does not exist
 *   held      sent 100 s ago
 *   to own type body head
 *             meant for another node, said to be from the node itself, an unknown type, no body, no
 *             head
 *   done      how an unknown job ended, and with it $FORGE_JOB: as another node's
 *   claim     a user asks to kill $FORGE_JOB, with a credential that nobody made
 *
 * bulletin:
 *   key       sealed with the key of another epoch
 *   number    the number of a later one
 *   name      in the name of another node
 *   late      made 100 s ago
 *   nonsense version
 *             not our message in a good seal, an older version
 */
#include <endian.h>
#include <errno.h>
#include <munge.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/cluster/control.h"
#include "agent/cluster/peer_message.h"
#include "agent/gate/net_part.h"
#include "agent/jobs/job_report.h"
#include "agent/net/net_bulletin.h"
#include "agent/net/net_control.h"
#include "tests/lib/asker.h"
#include "user/channel/version.h"
#include "user/clock.h"
#include "user/pack.h"
#include "user/user_ask.h"

#define ANSWER_MS  10000
#define REFUSED_MS 250 /* most refused messages get no answer: the log must show them */
#define LARGE	   (1u << 20)

static const char *munge_socket, *name;
static uint64_t last_id;
static msgpack_sbuffer last; /* the last message sent */

__attribute__((noreturn)) static void cannot(const char *what, const char *why)
{
	fprintf(stderr, "forge_message: %s: %s\n", what, why);
	exit(2);
}

static void put(msgpack_sbuffer *out, const void *data, size_t length)
{
	msgpack_sbuffer_clear(out);
	if (msgpack_sbuffer_write(out, data, length))
		cannot("message", "out of memory");
}

static void put_large(msgpack_sbuffer *out)
{
	char *text = calloc(1, LARGE);

	if (!text)
		cannot("message", "out of memory");
	put(out, text, LARGE);
	free(text);
}

/* --- control ---------------------------------------------------------------------- */

static struct asker asker;
static msgpack_sbuffer last_hello, last_answer;
static const char *control_port;

static char *seal_as(const char *socket, uid_t uid, const msgpack_sbuffer *bytes)
{
	munge_ctx_t ctx = munge_ctx_create();
	char *credential = NULL;

	munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket);
	munge_ctx_set(ctx, MUNGE_OPT_TTL, SEAL_TTL_S);
	munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, (uid_t)0);
	if (seteuid(uid) ||
	    munge_encode(&credential, ctx, bytes->data, (int)bytes->size) != EMUNGE_SUCCESS ||
	    seteuid(0))
		cannot("munge", munge_ctx_strerror(ctx));
	munge_ctx_destroy(ctx);
	return credential;
}

/* A HELLO whose credential was made at SOCKET by UID, from FROM to TO. */
static void hello_as(const char *socket, uid_t uid, const char *from, const char *to,
		     msgpack_sbuffer *out)
{
	struct greeting_self self = {.boot_id = 2};
	msgpack_sbuffer claim;
	struct greeting g;
	char *credential;

	snprintf(self.name, sizeof(self.name), "%s", from);
	msgpack_sbuffer_init(&claim);
	greeting_begin(&g, &self, to, &claim);
	credential = seal_as(socket, uid, &claim);
	msgpack_sbuffer_clear(out);
	if (greeting_hello(&g, credential, out))
		cannot("hello", "too long");
	free(credential);
	msgpack_sbuffer_destroy(&claim);
	greeting_end(&g);
}

/* The map in a HELLO's head, with versions that nobody speaks. */
static void hello_versions(msgpack_sbuffer *out)
{
	uint8_t begin[3] = {SESSION_HELLO}, noise[NOISE_HANDSHAKE] = {0};
	msgpack_sbuffer head;
	msgpack_packer pk;

	pack_begin(&pk, &head, 3);
	pack_u64(&pk, "min", CHANNEL_VERSION_MAX + 7);
	pack_u64(&pk, "max", CHANNEL_VERSION_MAX + 8);
	pack_str(&pk, "cred", "MUNGE:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:");
	begin[2] = (uint8_t)head.size;
	put(out, begin, sizeof(begin));
	msgpack_sbuffer_write(out, head.data, head.size);
	msgpack_sbuffer_write(out, (char *)noise, sizeof(noise));
	msgpack_sbuffer_destroy(&head);
}

/* Fills LAST with a forged greeting, if that is what HOW asks for. */
static bool forge_greeting(const char *how)
{
	const char *other = getenv("FORGE_OTHER_MUNGE");
	msgpack_sbuffer mixed = {0};

	if (!strcmp(how, "user"))
		hello_as(munge_socket, 65534, "mallory", name, &last);
	else if (!strcmp(how, "key"))
		hello_as(other ? other : "", 0, "mallory", name, &last);
	else if (!strcmp(how, "another"))
		hello_as(munge_socket, 0, "mallory", "another", &last);
	else if (!strcmp(how, "self"))
		hello_as(munge_socket, 0, name, name, &last);
	else if (!strcmp(how, "versions"))
		hello_versions(&last);
	else if (!strcmp(how, "hello"))
		put(&last, last_hello.data, last_hello.size);
	else if (!strcmp(how, "mixed")) {
		hello_as(munge_socket, 0, "mallory", name, &last);
		hello_as(munge_socket, 0, "mallory", name, &mixed);
		memcpy(last.data + last.size - NOISE_HANDSHAKE,
		       mixed.data + mixed.size - NOISE_HANDSHAKE, NOISE_HANDSHAKE);
		msgpack_sbuffer_destroy(&mixed);
	} else {
		return false;
	}
	return true;
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

/* What the user's own client would send, but for the credential. */
static void pack_user(msgpack_sbuffer *out)
{
	struct user_ask ask = {.nonce = "00112233445566778899aabbccddeeff",
			       .at_s = clock_real_ns() / CLOCK_NS_PER_S};
	struct peer_request request = {.type = PEER_USER};
	const char *job = getenv("FORGE_JOB");
	msgpack_sbuffer inner;
	msgpack_packer pk;
	char credential[300];
	void *packed;

	pack_begin(&pk, &inner, 3);
	pack_str(&pk, "op", "kill");
	pack_str(&pk, "job", job ? job : "");
	pack_u64(&pk, "uid", 0);
	snprintf(ask.node, sizeof(ask.node), "%s", name);
	ask.request = inner.data;
	ask.length = inner.size;
	if (user_ask_pack(&ask, &packed, &request.user.length))
		cannot("pack", "out of memory");
	snprintf(credential, sizeof(credential), "MUNGE:%0200d:", 0);
	request.user.credential = credential;
	request.user.ask = packed;
	peer_request_pack(&request, out);
	free(packed);
	msgpack_sbuffer_destroy(&inner);
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
	} else if (!strcmp(how, "claim")) {
		pack_user(&body);
	} else {
		pack_begin(&pk, &body, 2);
		pack_u64(&pk, "uid", 0);
		pack_u64(&pk, "signal", 9);
	}
	pack_begin(&pk, out, strcmp(how, "head") ? 7 : 1);
	if (!strcmp(how, "head"))
		pack_u64(&pk, "id", last_id);
	else {
		pack_str(&pk, "type",
			 !strcmp(how, "type")	 ? "format"
			 : !strcmp(how, "claim") ? "user"
			 : done			 ? "done"
						 : "kill");
		pack_str(&pk, "from", own ? name : "mallory");
		pack_str(&pk, "to", strcmp(how, "to") ? name : "another");
		pack_str(&pk, "job", "mallory-0-1");
		pack_u64(&pk, "id", last_id);
		pack_u64(&pk, "at",
			 clock_real_ns() / CLOCK_NS_PER_MS - (strcmp(how, "held") ? 0 : 100000));
		if (no_body)
			pack_str(&pk, "body", "none");
		else
			pack_bin(&pk, "body", body.data, body.size);
	}
	msgpack_sbuffer_destroy(&body);
}

/* Fills LAST with a message in the session, forged as HOW says. */
static void forge_message(const char *how)
{
	msgpack_sbuffer plain, sealed;

	if (!strcmp(how, "plain") || !strcmp(how, "old")) {
		const char *text = *how == 'p' ? "no seal at all, and not even near one"
					       : "MUNGE:AwQFAACU1zVt2Uk2fHP0Aqw9ZGhO1wAAAAAA:";

		put(&last, text, strlen(text));
		return;
	}
	if (!strcmp(how, "large")) {
		put_large(&last);
		return;
	}
	if (!strcmp(how, "reflect")) {
		put(&last, last_answer.data, last_answer.size);
		return;
	}
	pack_control(how, &plain);
	if (!strcmp(how, "empty"))
		plain.size = 0;
	asker_seal(&asker, &plain, &sealed);
	if (!strcmp(how, "changed"))
		sealed.data[sealed.size / 2] ^= 1;
	if (!strcmp(how, "session"))
		sealed.data[5] ^= 1;
	put(&last, sealed.data, sealed.size);
	msgpack_sbuffer_destroy(&sealed);
	msgpack_sbuffer_destroy(&plain);
}

static void control_connect(void)
{
	int rc = asker_connect(&asker, "127.0.0.1", (uint16_t)(atoi(control_port) + 1));

	if (rc)
		cannot("connect", strerror(-rc));
}

/* Greets, and keeps the HELLO for later. */
static void control_meet(void)
{
	struct iocom_err err = {0};
	msgpack_sbuffer hello;
	struct greeting g;
	uint8_t *answer;

	control_connect();
	if (asker_greet(&asker, &err))
		cannot("greet", err.text);
	/* One more, to be sent again: munged must know it as used. */
	if (asker_hello(&asker, &g, &hello, &err) ||
	    asker_exchange(&asker, hello.data, hello.size, ANSWER_MS, &answer) <= 0)
		cannot("greet", err.text);
	free(answer);
	put(&last_hello, hello.data, hello.size);
	msgpack_sbuffer_destroy(&hello);
	greeting_end(&g);
}

static const char *control_say(const char *how)
{
	bool true_one = !strcmp(how, "true");
	uint8_t *answer = NULL;
	const char *end;
	ssize_t n;

	/* The agent may have started again, or cut the connection: meet anew for what is true. */
	if (true_one || !asker.session)
		control_meet();
	else
		control_connect();
	if ((strcmp(how, "twice") || !last.size) && !forge_greeting(how))
		forge_message(how);
	n = asker_exchange(&asker, last.data, last.size, true_one ? ANSWER_MS : REFUSED_MS,
			   &answer);
	end = n <= 0			   ? "no answer"
	      : *answer == SESSION_REFUSED ? "refused"
	      : *answer == SESSION_UNKNOWN ? "unknown"
					   : "answered";
	if (n > 0 && true_one)
		put(&last_answer, answer, (size_t)n);
	free(answer);
	return end;
}

/* --- bulletins -------------------------------------------------------------------- */

static atomic_int subscribed, left; /* agents that are, and connections that have been */
static atomic_int keys_given;
static struct bulletin_key epoch;

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

/* Gives the key of the epoch to whoever asks. */
static int give_key(void *arg, const struct control_head *head, const msgpack_object *body,
		    msgpack_sbuffer *out)
{
	struct peer_answer answer = {.ok = true, .key = epoch};

	(void)arg;
	(void)body;
	if (strcmp(head->type, "key"))
		return -ENOSYS;
	peer_answer_pack(PEER_KEY, &answer, out);
	keys_given++;
	return 0;
}

static void ignore_skew(void *arg, const char *node, int64_t ahead_s)
{
	(void)arg;
	(void)node;
	(void)ahead_s;
}

static void *run_loop(void *loop)
{
	loop_run(loop);
	return NULL;
}

/* Of a network part only control: bulletins are this program's own. */
static struct {
	struct base base;
	struct gate *gate;
	struct net_control *control;
	uint16_t port;
} part;

static void part_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			  const int *fds)
{
	const struct gate_message pong = {.type = GATE_PONG, .id = m->id};

	(void)arg;
	(void)fds;
	if (m->type == GATE_PING)
		(void)gate_send(part.gate, &pong, NULL, 0, NULL);
	else if (m->type == GATE_REPLY)
		net_control_reply(part.control, &m->reply, tail, n);
	else if (m->type == GATE_ASK)
		net_control_ask(part.control, &m->ask, tail, n);
}

static void part_broken(void *arg, const char *why)
{
	(void)arg;
	cannot("control", why);
}

static int part_start(void *arg, int fd, int *pidfd, struct iocom_err *err)
{
	const struct gate_config gate = {.loop = part.base.loop,
					 .side = GATE_TO_NET,
					 .fd = dup(fd),
					 .received = part_received,
					 .broken = part_broken};
	const struct gate_message ready = {.type = GATE_READY};
	struct net_control_config config = {
		.base = &part.base, .listen = "127.0.0.1", .port = part.port};
	int rc = gate_new(&part.gate, &gate, err);

	(void)arg;
	*pidfd = -1;
	config.gate = part.gate;
	if (!rc)
		rc = net_control_new(&part.control, &config, err);
	return rc ? rc : gate_send(part.gate, &ready, NULL, 0, NULL);
}

/* Answers greetings and questions for keys at PORT + 1 in a thread of its own. */
static void control_serve(uint16_t port)
{
	static struct logger log;
	static struct counters counters;
	const struct net_part_config net = {.base = &part.base, .start = {.start = part_start}};
	struct control_config config = {
		.log = &log,
		.counters = &counters,
		.self = {.boot_id = 7},
		.handler = give_key,
		.skewed = ignore_skew,
	};
	struct iocom_err err = {0};
	struct control *control;
	pthread_t thread;

	snprintf(config.self.name, sizeof(config.self.name), "%s", name);
	part.port = port;
	part.base = (struct base){.log = &log, .counters = &counters};
	if (loop_new(&config.loop, &err))
		cannot("control", err.text);
	part.base.loop = config.loop;
	if (net_part_new(&config.net, &net, &err) ||
	    seal_new(&config.seal, config.loop, &counters, munge_socket, &err) ||
	    control_new(&control, &config, &err))
		cannot("control", err.text);
	if (pthread_create(&thread, NULL, run_loop, config.loop))
		cannot("control", "no thread");
}

static void pack_bulletin(const char *how, msgpack_sbuffer *out)
{
	uint64_t now_ms = clock_real_ns() / CLOCK_NS_PER_MS;
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
		pack_u64(&pk, "v", BULLETIN_VERSION - 1);
		pack_str(&pk, "from", name);
	} else {
		msgpack_sbuffer_init(out);
		bulletin_pack(out, &own, &none, 0, strcmp(how, "late") ? now_ms : now_ms - 100000);
	}
}

static void forge_bulletin(const char *how)
{
	struct bulletin_key other;
	msgpack_sbuffer plain;

	msgpack_sbuffer_clear(&last);
	if (!strcmp(how, "plain")) {
		put(&last, "no seal at all, and not even near to one", 40);
		return;
	}
	if (!strcmp(how, "large")) {
		put_large(&last);
		return;
	}
	pack_bulletin(how, &plain);
	if (!strcmp(how, "empty"))
		plain.size = 0;
	bulletin_epoch(&other);
	bulletin_seal(strcmp(how, "key") ? &epoch : &other, strcmp(how, "name") ? name : "another",
		      &plain, &last);
	msgpack_sbuffer_destroy(&plain);
	if (!strcmp(how, "changed"))
		last.data[last.size / 2] ^= 1;
	if (!strcmp(how, "number"))
		last.data[4 + strlen(name) + 15]++;
}

/* An agent cuts the connection on which such a bulletin came, and subscribes again. */
static bool is_cut_for(const char *how)
{
	return !strcmp(how, "plain") || !strcmp(how, "changed") || !strcmp(how, "number") ||
	       !strcmp(how, "large");
}

static void publish(nng_socket socket, const char *how)
{
	nng_msg *msg;
	int before;

	if (!until_more(&subscribed, 0) || !until_more(&keys_given, 0))
		cannot("publish", "no agent came");
	usleep(50000);
	before = left;
	if (strcmp(how, "twice") || !last.size)
		forge_bulletin(how);
	if (nng_msg_alloc(&msg, 0) || nng_msg_append(msg, last.data, last.size) ||
	    nng_sendmsg(socket, msg, 0))
		cannot("publish", "failed");
	if (is_cut_for(how) && !until_more(&left, before))
		cannot("publish", "the agent did not cut the connection");
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

int main(int argc, char **argv)
{
	bool control = argc == 5 && !strcmp(argv[1], "control");
	nng_socket publisher = NNG_SOCKET_INITIALIZER;
	struct iocom_err err = {0};
	char url[128], how[64];

	if (argc != 5) {
		fprintf(stderr, "usage: forge_message control|bulletin PORT MUNGE NAME\n");
		return 2;
	}
	munge_socket = argv[3];
	name = argv[4];
	if (getrandom(&last_id, sizeof(last_id) / 2, 0) < 0)
		return 2;
	control_port = argv[2];
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", atoi(argv[2]));
	if (control && asker_new(&asker, "mallory", name, munge_socket, &err))
		cannot("munge", err.text);
	if (!control) {
		bulletin_epoch(&epoch);
		control_serve((uint16_t)atoi(argv[2]));
		publisher = publish_at(url);
	}
	while (scanf("%63s", how) == 1) {
		const char *end = "sent";

		if (control)
			end = control_say(how);
		else
			publish(publisher, how);
		printf("%s: %s\n", how, end);
		fflush(stdout);
	}
	_exit(0); /* the loop's thread needs no end */
}
