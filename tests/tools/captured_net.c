/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A captured network part (iocomd --net-program): the real one runs inside it, unconfined, and this
 * program sits between its end of the gate and root's.  So real jobs run between real nodes, while
 * it sees, keeps and may change all that a captured iocom-net could; and it sends root what no
 * network part would (tests/lib/captured.h).
 *
 * It obeys one line at a time, from the file `play/command` beside it, and answers in
 * `play/answer`:
 *
 *   state                  what was seen
 *   bad K                  number K of what is no message; "none" if there is none
 *   flood KIND N [SEED]    N messages, from another thread; root's answers are counted
 *   replay                 all that was kept, once more, with new numbers
 *   mangle TYPE HOW        from now on: "answer", "question", "greeting", "stream", "publish" or
 *                          "off"
 *   fds SOCKET FILE        offers as job streams what is none
 *   held HOW               something to the sockets of job streams that it gave to root
 *   lie NODE HOW           says of NODE what is not true, to root and to the other nodes
 *   greet NODE MUNGE       begins a session with a credential of its own user
 *   stream JOB NODE        begins a stream with a key of its own
 *   rights FILE...         tries what its user may not do
 *   deaf SECONDS           reads nothing
 *   end
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/gate/greeting_head.h"
#include "agent/net/net_own.h"
#include "tests/lib/captured.h"
#include "user/clock.h"
#include "user/frame.h"

#define KEPT_MAX   512
#define HELD_MAX   64
#define LOOK_NS	   (10 * CLOCK_NS_PER_MS)
#define ANSWER_MAX 4096

struct kept {
	struct gate_message message;
	uint8_t *tail;
	size_t n;
};

/* What root said to messages that are marked (captured.h). */
struct told {
	unsigned long replies, with_answer, verdicts, taken, refused, renewed, unrenewed;
	char last[GATE_SENTENCE_MAX + 1];
};

static struct {
	char play[4096];
	int gate; /* root's, for packets past all checks */
	struct loop *loop;
	struct gate *root, *inner; /* to root; to the real network part */
	struct net *net;
	struct loop_timer look;
	unsigned long seen[GATE_TYPES];
	struct kept kept[KEPT_MAX];
	size_t nkept;
	int held[HELD_MAX]; /* duplicates of the sockets of job streams */
	size_t nheld;
	char mangle[16], how[16];
	struct kept waits; /* for the answer that it is exchanged with */
	unsigned long mangled;
	struct told told;
	uint64_t ids;
	struct captured_packet packet; /* of the loop's thread */
	pthread_t thread;
	char flood[32];
	unsigned long flood_n;
	unsigned flood_seed;
} captured;

static char answer[ANSWER_MAX];

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	size_t n = strlen(answer);
	va_list ap;

	va_start(ap, format);
	vsnprintf(answer + n, sizeof(answer) - n, format, ap);
	va_end(ap);
}

static void fail(const char *what)
{
	fprintf(stderr, "captured_net: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- what is kept ------------------------------------------------------------------------- */

static void keep_in(struct kept *k, const struct gate_message *m, const uint8_t *tail, size_t n)
{
	free(k->tail);
	k->message = *m;
	k->tail = malloc(n + 1);
	if (!k->tail)
		fail("malloc");
	memcpy(k->tail, tail, n);
	k->n = n;
}

static void keep(const struct gate_message *m, const uint8_t *tail, size_t n)
{
	switch (m->type) {
	case GATE_HELLO:
	case GATE_QUESTION:
	case GATE_ANSWERED:
	case GATE_STREAM:
	case GATE_RENEW:
		if (captured.nkept < KEPT_MAX)
			keep_in(&captured.kept[captured.nkept++], m, tail, n);
		break;
	default:
		break;
	}
}

/* The oldest, or the newest, of TYPE that is kept; NULL: none. */
static struct kept *kept_of(enum gate_type type, bool newest)
{
	struct kept *found = NULL;

	for (size_t i = 0; i < captured.nkept; i++) {
		struct kept *k = &captured.kept[i];

		if (k->message.type == type && k->n && (newest || !found) &&
		    (type != GATE_ANSWERED || !k->message.answered.rc))
			found = k;
	}
	return found;
}

/* --- from root ---------------------------------------------------------------------------- */

/* Returns true if M is about something that only this program sent. */
static bool told(const struct gate_message *m, const uint8_t *tail, size_t n)
{
	struct told *t = &captured.told;

	switch (m->type) {
	case GATE_REPLY:
		if (!CAPTURED_IS(m->reply.ticket))
			return false;
		t->replies += m->reply.last;
		/* That a session is unknown, or why a greeting is refused, grants nothing. */
		t->with_answer += m->reply.last && n > 9 && tail[0] != SESSION_REFUSED;
		t->verdicts += m->reply.verdict > 0;
		return true;
	case GATE_STREAM_OVER:
		if (!CAPTURED_IS(m->stream_over.id))
			return false;
		t->taken += m->stream_over.taken;
		t->refused += !m->stream_over.taken;
		break;
	case GATE_RENEWED:
		if (!CAPTURED_IS(m->renewed.id))
			return false;
		t->renewed += m->renewed.answered;
		t->unrenewed += !m->renewed.answered;
		break;
	default:
		return false;
	}
	if (n <= GATE_SENTENCE_MAX && n) {
		memcpy(t->last, tail, n);
		t->last[n] = 0;
	}
	return true;
}

static bool mangles(const char *type)
{
	return !strcmp(captured.mangle, type);
}

static void lie_about(struct iocom_vector *v)
{
	v->run_queue = v->explicit_per_ms = v->implicit_per_ms = v->disk_utilisation = 0;
	v->cores = 65536;
	v->cpu_speed = v->cpu_burst = 1e6;
	v->memory_mb = v->memory_available_mb = 1e12;
	v->bits = IOCOM_BIT_IO | IOCOM_BIT_CPU;
	v->accepts_jobs = true;
}

static void from_root(void *arg, const struct gate_message *message, uint8_t *tail, size_t n,
		      const int *fds)
{
	struct gate_message m = *message;

	(void)arg;
	captured.seen[m.type]++;
	if (m.type == GATE_PUBLISH && mangles("publish")) {
		lie_about(&m.publish);
		captured.mangled++;
	}
	if (m.type == GATE_ASK && mangles("answer") && !strcmp(captured.how, "none"))
		captured.mangled++; /* it is never asked */
	else if (!told(&m, tail, n))
		(void)gate_send(captured.inner, &m, tail, n, fds);
	for (size_t i = 0; i < gate_fds_of(&m); i++)
		close(fds[i]);
}

static void root_gone(void *arg, const char *why)
{
	(void)arg;
	(void)why;
	_exit(0);
}

/* --- to root ------------------------------------------------------------------------------ */

static void pass(const struct gate_message *m, const uint8_t *tail, size_t n, const int *fds)
{
	(void)gate_send(captured.root, m, tail, n, fds);
}

/* Changes the bytes of TAIL as all kinds of messages may be changed. */
static size_t spoil(const char *how, uint8_t *tail, size_t n)
{
	if (!strcmp(how, "flip"))
		tail[n / 2] ^= 4;
	else if (!strcmp(how, "short"))
		n = n / 2 ? n / 2 : 1;
	else if (!strcmp(how, "noise"))
		for (size_t i = 0; i < n; i++)
			tail[i] = (uint8_t)rand();
	return n;
}

/* An answer to another question, or another answer to this one. */
static bool mangle_answer(struct gate_message m, uint8_t *tail, size_t n)
{
	const struct kept *old = kept_of(GATE_ANSWERED, false);
	struct kept *waits = &captured.waits;

	if (m.answered.rc)
		return false;
	if (!strcmp(captured.how, "old") && old) {
		pass(&m, old->tail, old->n, NULL);
	} else if (!strcmp(captured.how, "twice")) {
		pass(&m, tail, n, NULL);
		pass(&m, tail, n, NULL);
	} else if (!strcmp(captured.how, "other")) { /* and nobody's answers besides */
		for (uint64_t id = 0; id < 200; id++) {
			struct gate_message any = m;

			any.answered.id = id;
			if (id != m.answered.id)
				pass(&any, tail, n, NULL);
		}
		pass(&m, tail, n, NULL);
	} else if (!strcmp(captured.how, "swap") && !waits->n) {
		keep_in(waits, &m, tail, n);
	} else if (!strcmp(captured.how, "swap")) {
		pass(&waits->message, tail, n, NULL);
		pass(&m, waits->tail, waits->n, NULL);
		waits->n = 0;
	} else if (!strcmp(captured.how, "lost")) {
		m.answered.rc = -ESTALE;
		pass(&m, NULL, 0, NULL);
	} else {
		n = spoil(captured.how, tail, n);
		pass(&m, tail, n, NULL);
	}
	return true;
}

static bool mangle_question(struct gate_message m, uint8_t *tail, size_t n)
{
	const struct kept *old = kept_of(GATE_QUESTION, false);

	if (!strcmp(captured.how, "old") && old)
		pass(&m, old->tail, old->n, NULL);
	else
		pass(&m, tail, spoil(captured.how, tail, n), NULL);
	return true;
}

static bool mangle_greeting(struct gate_message m, uint8_t *tail, size_t n)
{
	if (!strcmp(captured.how, "elsewhere"))
		m.hello.credential = 0;
	else if (!strcmp(captured.how, "all"))
		m.hello.credential = 0, m.hello.credential_length = (uint32_t)n;
	else if (!strcmp(captured.how, "empty"))
		m.hello.credential_length = 0;
	else if (!strcmp(captured.how, "version"))
		m.hello.least = m.hello.most = 99;
	pass(&m, tail, spoil(captured.how, tail, n), NULL);
	return true;
}

static bool mangle_stream(struct gate_message m, uint8_t *tail, size_t n, const int *fds)
{
	struct stream_hello *hello = &m.stream.hello;
	const struct kept *old = kept_of(GATE_STREAM, false);

	if (!strcmp(captured.how, "kind"))
		hello->kind =
			hello->kind == STREAM_KIND_START ? STREAM_KIND_ATTACH : STREAM_KIND_START;
	else if (!strcmp(captured.how, "job"))
		strcpy(hello->job, "another");
	else if (!strcmp(captured.how, "node"))
		strcpy(hello->node, "another");
	else if (!strcmp(captured.how, "version"))
		hello->most = 99;
	else if (!strcmp(captured.how, "ticket"))
		strcpy(hello->ticket, "x");
	if (!strcmp(captured.how, "old") && old) {
		m.stream.hello = old->message.stream.hello;
		pass(&m, old->tail, old->n, fds);
	} else {
		pass(&m, tail, spoil(captured.how, tail, n), fds);
	}
	return true;
}

static bool mangle(const struct gate_message *m, uint8_t *tail, size_t n, const int *fds)
{
	bool done = false;

	if (!n)
		return false;
	if (m->type == GATE_ANSWERED && mangles("answer"))
		done = mangle_answer(*m, tail, n);
	else if (m->type == GATE_QUESTION && mangles("question"))
		done = mangle_question(*m, tail, n);
	else if (m->type == GATE_HELLO && mangles("greeting"))
		done = mangle_greeting(*m, tail, n);
	else if (m->type == GATE_STREAM && mangles("stream"))
		done = mangle_stream(*m, tail, n, fds);
	captured.mangled += done;
	return done;
}

static void from_net(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
		     const int *fds)
{
	(void)arg;
	captured.seen[m->type]++;
	if (m->type == GATE_STREAM && captured.nheld < HELD_MAX)
		captured.held[captured.nheld++] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	if (!mangle(m, tail, n, fds)) {
		keep(m, tail, n); /* root has had it */
		pass(m, tail, n, fds);
	}
	for (size_t i = 0; i < gate_fds_of(m); i++)
		close(fds[i]);
}

static void net_gone(void *arg, const char *why)
{
	(void)arg;
	fprintf(stderr, "captured_net: the real network part has ended: %s\n", why);
	_exit(1);
}

/* --- commands ----------------------------------------------------------------------------- */

static uint64_t new_id(void)
{
	return CAPTURED_ID(++captured.ids);
}

static void send_packet(void)
{
	if (captured_send(captured.gate, &captured.packet))
		say("root did not take it; ");
}

static int loose_stream(void)
{
	const char *what;

	return captured_fd(9, "", "", &what);
}

static void play_state(void)
{
	for (unsigned type = 1; type < GATE_TYPES; type++)
		if (captured.seen[type])
			say("%s %lu ", gate_type_name(type), captured.seen[type]);
	say("held %zu mangled %lu replies %lu given %lu verdicts %lu taken %lu refused %lu "
	    "renewed %lu unrenewed %lu",
	    captured.nheld, captured.mangled, captured.told.replies, captured.told.with_answer,
	    captured.told.verdicts, captured.told.taken, captured.told.refused,
	    captured.told.renewed, captured.told.unrenewed);
}

static void play_bad(unsigned k)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const char *what = captured_bad(&captured.packet, k, fd);

	say("%s", what ? what : "none");
	if (what)
		send_packet();
	close(fd);
}

static void *flood_run(void *arg)
{
	static struct captured_packet packet;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), rc = 0;
	unsigned long i = 0;
	char path[4200];
	FILE *out;

	(void)arg;
	for (; i < captured.flood_n && !rc; i++) {
		rc = captured_flood(&packet, captured.flood, i, fd, &captured.flood_seed);
		if (!rc)
			rc = captured_send(captured.gate, &packet);
	}
	close(fd);
	snprintf(path, sizeof(path), "%s/flooded", captured.play);
	out = fopen(path, "we");
	if (out) {
		fprintf(out, "%lu %s\n", i, strerror(-rc));
		fclose(out);
	}
	return NULL;
}

static void play_flood(const char *line)
{
	pthread_attr_t loose;

	captured.flood_seed = 1;
	if (sscanf(line, "%31[^,], %lu %u", captured.flood, &captured.flood_n,
		   &captured.flood_seed) < 2) {
		say("what?");
		return;
	}
	pthread_attr_init(&loose);
	pthread_attr_setdetachstate(&loose, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&captured.thread, &loose, flood_run, NULL))
		say("no thread");
	pthread_attr_destroy(&loose);
}

/* Sends K again, as it was but for its number. */
static void replay_one(struct kept *k)
{
	struct gate_message m = k->message;
	int fd = -1;

	if (m.type == GATE_HELLO)
		m.hello.ticket = new_id();
	else if (m.type == GATE_QUESTION)
		m.question.ticket = new_id();
	else if (m.type == GATE_STREAM)
		m.stream.id = new_id();
	else if (m.type == GATE_RENEW)
		m.renew.id = new_id();
	captured_pack(&captured.packet, &m, k->tail, k->n);
	if (m.type == GATE_STREAM) {
		fd = loose_stream();
		captured.packet.fds[0] = fd;
		captured.packet.nfds = 1;
	}
	send_packet();
	if (fd >= 0)
		close(fd);
}

static void play_replay(void)
{
	size_t n = captured.nkept, of[GATE_TYPES] = {0};

	for (size_t i = 0; i < n; i++) {
		of[captured.kept[i].message.type]++;
		replay_one(&captured.kept[i]);
	}
	say("questions %zu greetings %zu streams %zu renewals %zu answers %zu", of[GATE_QUESTION],
	    of[GATE_HELLO], of[GATE_STREAM], of[GATE_RENEW], of[GATE_ANSWERED]);
}

static void play_fds(const char *line)
{
	struct gate_message m = {.type = GATE_STREAM};
	const struct kept *old = kept_of(GATE_STREAM, true);
	char socket_path[512] = "", path[512] = "";
	const char *what;
	int fd;

	if (sscanf(line, "%511s %511s", socket_path, path) != 2)
		return;
	for (unsigned k = 0; k < 9; k++) { /* the tenth is a stream, if one to nowhere */
		fd = captured_fd(k, socket_path, path, &what);
		say("%s%s", k ? ", " : "", what);
		if (fd < 0) {
			say(" (not made)");
			continue;
		}
		if (old)
			m.stream.hello = old->message.stream.hello;
		m.stream.id = new_id();
		captured_pack(&captured.packet, &m, old ? (const void *)old->tail : "x",
			      old ? old->n : 1);
		captured.packet.fds[0] = fd;
		captured.packet.nfds = 1;
		send_packet();
		close(fd);
	}
}

/* Tells the client in clear that the job has ended well. */
static ssize_t held_inject(int fd)
{
	uint8_t frame[FRAME_HEADER + 5] = {0}; /* exited, 0 */

	frame_header(frame, FRAME_EXIT, 5);
	return send(fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void held_do(int fd, const char *how)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 30};
	uint8_t waste[4096];

	if (!strcmp(how, "inject"))
		say("%zd ", held_inject(fd));
	else if (!strcmp(how, "steal"))
		say("%zd ", recv(fd, waste, sizeof(waste), MSG_DONTWAIT));
	else if (!strcmp(how, "shut"))
		say("%d ", shutdown(fd, SHUT_RDWR));
	else if (!strcmp(how, "half"))
		say("%d ", shutdown(fd, SHUT_WR));
	else if (!strcmp(how, "block"))
		say("%d ", fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) |
				   setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	else if (!strcmp(how, "close"))
		close(fd);
}

static void play_held(const char *how)
{
	say("%zu: ", captured.nheld);
	for (size_t i = 0; i < captured.nheld; i++)
		held_do(captured.held[i], how);
	if (!strcmp(how, "close"))
		captured.nheld = 0;
}

/* HOW: "load", what is not true of a node; "place", it is where the attacker listens. */
static void play_lie(const char *line)
{
	char node[IOCOM_NAME_MAX] = "", how[16] = "load";
	struct gate_message m = {.type = GATE_VECTOR, .vector = {.direct = true}};
	const struct matrix_entry *e;

	(void)sscanf(line, "%63s %15s", node, how);
	e = matrix_find(&captured.net->matrix, node);
	m.vector.vector = e ? e->vector : captured_vector(node, 1);
	if (!strcmp(how, "load"))
		lie_about(&m.vector.vector);
	if (!strcmp(how, "place")) {
		strcpy(m.vector.vector.address, CAPTURED_ADDRESS);
		m.vector.vector.port = CAPTURED_PORT;
	}
	if (!strcmp(how, "away"))
		m.vector.vector.boot_id ^= 1;
	m.vector.vector.sequence = UINT64_MAX - 1;
	m.vector.vector.period_ms = 3600000;
	m.vector.vector.time_ns = UINT64_MAX - 1;
	captured_pack(&captured.packet, &m, NULL, 0);
	send_packet();
	/* The real part's own table is what other nodes are told. */
	(void)matrix_put(&captured.net->matrix, &m.vector.vector, 0, loop_boot_ns(captured.loop));
	say("%s", e ? "known" : "new");
}

static void play_greet(const char *line)
{
	char node[IOCOM_NAME_MAX] = "", munge[512] = "";

	(void)sscanf(line, "%63s %511s", node, munge);
	if (captured_hello(&captured.packet, new_id(), "mallory", node, munge))
		say("no credential");
	else
		send_packet();
}

static void play_stream(const char *line)
{
	char job[SPEC_JOB_MAX] = "", node[IOCOM_NAME_MAX] = "";
	int fd = loose_stream();

	(void)sscanf(line, "%63s %63s", job, node);
	captured_stream(&captured.packet, new_id(), job, node, fd);
	send_packet();
	close(fd);
}

static void try_to(const char *what, bool done)
{
	say("%s%s; ", what, done ? " DONE" : " refused");
}

static void play_rights(char *files)
{
	pid_t root = getppid();
	char *rest, *file = strtok_r(files, " \n", &rest);

	try_to("setuid(0)", !setuid(0));
	try_to("kill", !kill(root, 0));
	try_to("ptrace", !ptrace(PTRACE_ATTACH, root, NULL, NULL));
	for (; file; file = strtok_r(NULL, " \n", &rest)) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);

		try_to(file, fd >= 0);
		if (fd >= 0)
			close(fd);
	}
}

static void play_mangle(const char *line)
{
	captured.mangle[0] = captured.how[0] = 0;
	captured.mangled = 0;
	(void)sscanf(line, "%15s %15s", captured.mangle, captured.how);
	if (captured.waits.n)
		pass(&captured.waits.message, captured.waits.tail, captured.waits.n, NULL);
	captured.waits.n = 0;
}

static void play(char *line)
{
	char verb[16] = "";
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	(void)sscanf(line, "%15s %n", verb, &at);
	line += at;
	if (!strcmp(verb, "state"))
		play_state();
	else if (!strcmp(verb, "bad"))
		play_bad((unsigned)atoi(line));
	else if (!strcmp(verb, "flood"))
		play_flood(line);
	else if (!strcmp(verb, "replay"))
		play_replay();
	else if (!strcmp(verb, "mangle"))
		play_mangle(line);
	else if (!strcmp(verb, "fds"))
		play_fds(line);
	else if (!strcmp(verb, "held"))
		play_held(line);
	else if (!strcmp(verb, "lie"))
		play_lie(line);
	else if (!strcmp(verb, "greet"))
		play_greet(line);
	else if (!strcmp(verb, "stream"))
		play_stream(line);
	else if (!strcmp(verb, "rights"))
		play_rights(line);
	else if (!strcmp(verb, "told"))
		say("%s", captured.told.last);
	else if (!strcmp(verb, "reset"))
		captured.told = (struct told){0};
	else if (!strcmp(verb, "deaf"))
		sleep((unsigned)atoi(line));
	else if (!strcmp(verb, "end"))
		_exit(0);
	else
		say("what?");
}

static void play_answer(void)
{
	char path[4200], made[4200];
	FILE *out;

	snprintf(made, sizeof(made), "%s/answer.new", captured.play);
	snprintf(path, sizeof(path), "%s/answer", captured.play);
	out = fopen(made, "we");
	if (!out)
		return;
	fprintf(out, "%s\n", answer);
	fclose(out);
	(void)rename(made, path);
}

static void look(void *arg)
{
	char path[4200], line[2048] = "";
	FILE *in;

	(void)arg;
	loop_start(captured.loop, &captured.look, LOOK_NS);
	snprintf(path, sizeof(path), "%s/command", captured.play);
	in = fopen(path, "re");
	if (!in)
		return;
	if (!fgets(line, sizeof(line), in))
		line[0] = 0;
	fclose(in);
	unlink(path);
	answer[0] = 0;
	play(line);
	play_answer();
}

/* --- set-up --------------------------------------------------------------------------------- */

static void find_play(void)
{
	ssize_t n = readlink("/proc/self/exe", captured.play, sizeof(captured.play) - 16);
	char *slash;

	if (n <= 0)
		fail("/proc/self/exe");
	captured.play[n] = 0;
	slash = strrchr(captured.play, '/');
	strcpy(slash, "/play");
}

static void become(const char *uid, const char *gid)
{
	if (setgroups(0, NULL) || setgid((gid_t)atoi(gid)) || setuid((uid_t)atoi(uid)))
		fail("cannot become the network part's user");
}

static void begin(struct iocom_err *err)
{
	struct gate_config root = {
		.side = GATE_TO_NET, .fd = 3, .received = from_root, .broken = root_gone};
	struct gate_config inner = {.side = GATE_TO_ROOT, .received = from_net, .broken = net_gone};
	struct net_config net = {0};
	int ends[2];

	if (loop_new(&captured.loop, err) || gate_pair(ends, err))
		fail(err->text);
	root.loop = inner.loop = net.loop = captured.loop;
	inner.fd = ends[0];
	net.fd = ends[1];
	captured.gate = fcntl(3, F_DUPFD_CLOEXEC, 10);
	if (gate_new(&captured.root, &root, err) || gate_new(&captured.inner, &inner, err))
		fail(err->text);
	/* The set-up goes on to the real part, which waits for it. */
	if (gate_wait(captured.root, 10000) || net_new(&captured.net, &net, err))
		fail(err->text);
}

int main(int argc, char **argv)
{
	struct iocom_err err = {0};

	if (argc != 4) {
		fputs("usage: iocomd --net-program captured_net\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	find_play();
	become(argv[1], argv[2]);
	begin(&err);
	captured.look = (struct loop_timer){.fire = look};
	loop_start(captured.loop, &captured.look, LOOK_NS);
	return loop_run(captured.loop) != 0;
}
