/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Greetings and sessions of honest nodes with an attacker on the path between them, who holds no
 * MUNGE key.  The input is a script of what the nodes do and of what he does with their messages:
 * he delivers, drops, repeats, reorders, reflects, cuts, changes and splices them, to whom he
 * wants, and he writes some of his own.  Nodes start again, and time passes.  One more node holds
 * the key but speaks wrongly.
 *
 * A model knows what each honest node has said to whom.  So for each message that is delivered the
 * answer is known: what must be opened, and what must not.  At the end the attacker goes away, and
 * two nodes of a cluster must be able to speak to each other.
 */
#include <errno.h>
#include <sodium.h>

#include "agent/cluster/greeting.h"
#include "agent/cluster/sessions.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/channel/bytes.h"
#include "user/channel/version.h"
#include "user/clock.h"
#include "user/pack.h"

#define NODES	   4 /* a, b and c of the cluster red, and another b, of blue */
#define RED	   3
#define STEPS_MAX  160
#define POOL	   48
#define GREETS_MAX 6
#define SAID_MAX   (2 * STEPS_MAX + 4 * NODES * NODES)
#define MADE_MAX   (2 * STEPS_MAX + 8 * NODES * NODES)
#define ROGUE	   NODES
#define ROGUES_MAX 4

/* --- random bytes that are the same in each run ---------------------------------------- */

static uint64_t random_calls;

static const char *same_name(void)
{
	return "same";
}

static void same_buf(void *const out, const size_t size)
{
	uint8_t seed[randombytes_SEEDBYTES] = {0};

	random_calls++;
	memcpy(seed, &random_calls, sizeof(random_calls));
	randombytes_buf_deterministic(out, size, seed);
}

static uint32_t same_number(void)
{
	uint32_t value;

	same_buf(&value, sizeof(value));
	return value;
}

static randombytes_implementation same = {
	.implementation_name = same_name, .random = same_number, .buf = same_buf};

/* --- the world --------------------------------------------------------------------------- */

struct packet {
	uint8_t at[400];
	size_t n;
};

/* What a node has said, as it was sent. */
struct said {
	struct packet packet;
	int from, to;	/* -1: whoever hears it */
	uint64_t about; /* HELLO: its number; WELCOME: the HELLO's; SEALED: the session's id */
	bool opened;	/* of SEALED */
};

/* What one node knows of a session. */
struct made {
	int owner, peer;
	unsigned life, peer_life; /* how often each had started before */
	uint64_t id, since_ns;
	bool asked, proven;
	uint64_t received; /* one more than the greatest number that was opened */
};

struct greet {
	struct greeting greeting;
	uint64_t hello;
	int to; /* -1: whoever is there */
};

struct node {
	struct greeting_self self;
	struct sessions *sessions;
	struct counters counters;
	unsigned life;
	struct greet greets[GREETS_MAX];
	size_t ngreets;
};

/* A session of the node that speaks wrongly, of which it has the keys. */
struct rogue {
	int with;
	uint64_t id;
	uint8_t sends[NOISE_KEY];
};

static struct {
	const uint8_t *script, *end;
	uint64_t now_ns, hellos, texts;
	struct node nodes[NODES];
	struct packet pool[POOL]; /* what the attacker has seen or made */
	size_t npool, oldest;
	struct said said[SAID_MAX];
	size_t nsaid;
	struct made made[MADE_MAX];
	size_t nmade;
	struct rogue rogues[ROGUES_MAX];
	size_t nrogues;
	int pair;			 /* the one and the next are to speak at the end */
	bool trusts_replays, trusts_age; /* a munged that began again; credentials that never age */
} w;

static uint8_t next(void)
{
	return w.script < w.end ? *w.script++ : 0;
}

static void pool_put(const struct packet *p)
{
	if (w.npool < POOL) {
		w.pool[w.npool++] = *p;
		return;
	}
	w.pool[w.oldest] = *p;
	w.oldest = (w.oldest + 1) % POOL;
}

static void said_put(const struct packet *p, int from, int to, uint64_t about)
{
	must(w.nsaid < SAID_MAX);
	w.said[w.nsaid++] = (struct said){.packet = *p, .from = from, .to = to, .about = about};
	pool_put(p);
}

/* What was said with these very bytes; NULL: nobody has said that. */
static struct said *said_like(const struct packet *p)
{
	for (size_t i = 0; i < w.nsaid; i++)
		if (w.said[i].packet.n == p->n && !memcmp(w.said[i].packet.at, p->at, p->n))
			return &w.said[i];
	return NULL;
}

static struct made *made_of(int owner, uint64_t id)
{
	for (size_t i = 0; i < w.nmade; i++)
		if (w.made[i].owner == owner && w.made[i].life == w.nodes[owner].life &&
		    w.made[i].id == id)
			return &w.made[i];
	return NULL;
}

/* The session as OWNER has it at NOW_NS; at 0 nothing is void. */
static const struct session *session_by_id(int owner, uint64_t id, uint64_t now_ns)
{
	uint8_t named[SESSION_UNKNOWN_LEN] = {SESSION_UNKNOWN};

	memcpy(named + 1, &id, sizeof(id));
	return sessions_named(w.nodes[owner].sessions, named, sizeof(named), now_ns);
}

static bool same_cluster(int x, int y)
{
	return !strcmp(w.nodes[x].self.cluster, w.nodes[y].self.cluster);
}

static bool same_name_of(int x, int y)
{
	return !strcmp(w.nodes[x].self.name, w.nodes[y].self.name);
}

/* --- in place of munged: a credential is the number of what it seals ------------------- */

static struct {
	msgpack_sbuffer sealed;
	uint64_t made_ns;
	bool opened_by[NODES + 1];
} vault[2 * MADE_MAX];
static size_t nvault;

static void vault_seal(const msgpack_sbuffer *data, char text[32])
{
	must(nvault < sizeof(vault) / sizeof(*vault));
	snprintf(text, 32, "cred-%zu;", nvault);
	memset(&vault[nvault], 0, sizeof(vault[nvault]));
	vault[nvault].made_ns = w.now_ns;
	msgpack_sbuffer_write(&vault[nvault++].sealed, data->data, data->size);
}

static const msgpack_sbuffer *vault_open(const char *text, size_t length, int by)
{
	unsigned long n = SIZE_MAX;
	char copy[32] = "", after = 0;

	if (length < sizeof(copy))
		memcpy(copy, text, length);
	if (sscanf(copy, "cred-%lu%c", &n, &after) != 2 || after != ';' || n >= nvault)
		return NULL;
	if (!w.trusts_age && w.now_ns - vault[n].made_ns > 60 * CLOCK_NS_PER_S)
		return NULL;
	if (!w.trusts_replays && vault[n].opened_by[by])
		return NULL;
	vault[n].opened_by[by] = true;
	return &vault[n].sealed;
}

/* --- the honest nodes ---------------------------------------------------------------------- */

static void take(struct packet *out, msgpack_sbuffer *from)
{
	must(from->size <= sizeof(out->at));
	memcpy(out->at, from->data, from->size);
	out->n = from->size;
	msgpack_sbuffer_destroy(from);
}

static const struct session *begin_session(int x, struct greeting *g, int peer, bool asked)
{
	struct node *me = &w.nodes[x];
	struct made m = {
		.owner = x, .peer = peer, .life = me->life, .asked = asked, .proven = asked};
	const struct session *s;
	uint64_t boot_id = g->boot_id;

	must(strcmp(g->node, me->self.name) != 0);
	s = sessions_add(me->sessions, g, asked ? "tcp://there:1" : "", w.now_ns);
	must(s && w.nmade < MADE_MAX);
	must(session_is_confirmed(s) == asked);
	m.peer_life = (unsigned)(boot_id & 0xffff);
	m.id = session_id(s);
	m.since_ns = w.now_ns;
	must(!made_of(x, m.id));
	w.made[w.nmade++] = m;
	return s;
}

static void greet_drop(struct node *me, size_t i)
{
	greeting_end(&me->greets[i].greeting);
	me->greets[i] = me->greets[--me->ngreets];
}

/* Node X sends a HELLO; TO -1: to whoever hears it. */
static void node_greets(int x, int to)
{
	struct node *me = &w.nodes[x];
	msgpack_sbuffer claim, hello;
	struct greet *greet;
	struct packet packet;
	char credential[32];

	if (me->ngreets == GREETS_MAX)
		greet_drop(me, 0);
	greet = &me->greets[me->ngreets++];
	greet->to = to;
	greet->hello = ++w.hellos;
	msgpack_sbuffer_init(&claim);
	greeting_begin(&greet->greeting, &me->self, to < 0 ? "" : w.nodes[to].self.name, &claim);
	vault_seal(&claim, credential);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_init(&hello);
	must(!greeting_hello(&greet->greeting, credential, &hello));
	take(&packet, &hello);
	said_put(&packet, x, to, greet->hello);
}

/* Returns whether X must accept SAID as a HELLO, if munged opens its credential. */
static bool hello_is_for(const struct said *said, int x)
{
	return said && said->packet.at[0] == SESSION_HELLO && same_cluster(said->from, x) &&
	       said->from != x && (said->to < 0 || same_name_of(said->to, x));
}

/* Node X hears P, which begins as a HELLO does. */
static void node_hears_hello(int x, const struct packet *p)
{
	const struct said *said = said_like(p);
	msgpack_sbuffer claim, welcome;
	const msgpack_sbuffer *opened;
	struct iocom_err err = {0};
	struct packet answer;
	struct greeting g = {0};
	char credential[32];
	struct greeting_head head;
	int rc = greeting_heard(&head, p->at, p->n, &err);

	if (rc) {
		must(*err.text && !said);
		return;
	}
	must(head.credential >= (const char *)p->at &&
	     head.credential + head.length <= (const char *)p->at + p->n);
	opened = vault_open(head.credential, head.length, x);
	if (!opened)
		return;
	msgpack_sbuffer_init(&claim);
	rc = greeting_accept(&g, &w.nodes[x].self, channel_version_choose(head.least, head.most),
			     p->at, p->n, opened->data, opened->size, &claim, &err);
	must(hello_is_for(said, x) == !rc && !rc == !*err.text);
	if (!rc) {
		must(g.version == CHANNEL_VERSION_MAX);
		must(!strcmp(g.node, w.nodes[said->from].self.name));
		vault_seal(&claim, credential);
		msgpack_sbuffer_init(&welcome);
		must(!greeting_welcome(&g, credential, &welcome));
		take(&answer, &welcome);
		said_put(&answer, x, said->from, said->about);
		begin_session(x, &g, said->from, false);
	}
	greeting_end(&g);
	msgpack_sbuffer_destroy(&claim);
}

/* Node X takes P for the answer to its greeting I. */
static bool node_hears_welcome(int x, size_t i, const struct packet *p)
{
	struct greet *greet = &w.nodes[x].greets[i];
	const struct said *said = said_like(p);
	const msgpack_sbuffer *opened;
	struct iocom_err err = {0};
	char *credential = NULL;
	bool is_right = said && p->at[0] == SESSION_WELCOME && said->about == greet->hello;
	int rc = greeting_welcomed(&greet->greeting, p->at, p->n, &credential, &err);

	must(!rc == is_right);
	must(rc ? !credential && (*err.text || p->n == 1) : credential != NULL);
	if (!rc) {
		must(said->to == x && (greet->to < 0 || same_name_of(greet->to, said->from)));
		opened = vault_open(credential, strlen(credential), x);
		rc = opened ? greeting_trust(&greet->greeting, &w.nodes[x].self, opened->data,
					     opened->size, &err)
			    : -EACCES;
		must(!rc == (opened != NULL));
	}
	if (!rc) {
		must(!strcmp(greet->greeting.node, w.nodes[said->from].self.name));
		begin_session(x, &greet->greeting, said->from, true);
	}
	free(credential);
	greet_drop(&w.nodes[x], i);
	return rc == 0;
}

/* Node X says something new to its peer in SESSION. */
static void node_says(int x, const struct session *session)
{
	struct packet p = {.n = sizeof(uint64_t) + SESSION_OVERHEAD};
	uint64_t id = session_id(session), text = ++w.texts;

	must(session_is_confirmed(session));
	session_seal(w.nodes[x].sessions, session, &text, sizeof(text), p.at);
	said_put(&p, x, made_of(x, id)->peer, id);
}

static uint64_t number_of(const struct packet *p)
{
	return p->n >= SESSION_OVERHEAD ? bytes_u64(p->at + 9) : 0;
}

/* What must come of P, a SEALED that is named by the session MADE. */
static int sealed_judged(const struct made *made, const struct packet *p)
{
	const struct said *said = said_like(p);
	uint64_t number = number_of(p);

	if (!said || p->at[0] != SESSION_SEALED || said->to != made->owner ||
	    said->from != made->peer || said->about != made->id || number == UINT64_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < w.nsaid; i++) {
		const struct said *other = &w.said[i];

		if (other->opened && other->from == said->from && other->to == said->to &&
		    other->about == said->about && number_of(&other->packet) == number)
			return -EALREADY;
	}
	return number < made->received && made->received - number >= SESSION_WINDOW ? -EALREADY : 0;
}

/* Node X hears P, which begins as a SEALED does.  Returns session_open's result; 1: unknown. */
static int node_hears_sealed(int x, const struct packet *p)
{
	struct sessions *sessions = w.nodes[x].sessions;
	const struct session *s = sessions_named(sessions, p->at, p->n, w.now_ns);
	struct packet copy = *p, unknown = {.n = SESSION_UNKNOWN_LEN};
	struct made *made;
	const uint8_t *data;
	int rc;
	size_t n;

	if (!s) {
		if (p->n >= SESSION_OVERHEAD) {
			session_unknown(p->at, unknown.at);
			pool_put(&unknown);
		}
		return 1;
	}
	made = made_of(x, session_id(s));
	must(made != NULL);
	rc = session_open(sessions, s, copy.at, copy.n, &data, &n);
	must(rc == sealed_judged(made, p));
	if (rc)
		return rc;
	must(data >= copy.at && data + n <= copy.at + copy.n && n == p->n - SESSION_OVERHEAD);
	must(session_is_confirmed(s));
	made->proven = true;
	if (number_of(p) >= made->received)
		made->received = number_of(p) + 1;
	said_like(p)->opened = true;
	return 0;
}

/* Node X hears P as a question; it answers what it believes. */
static void node_hears(int x, const struct packet *p)
{
	const struct session *s;

	if (p->n && p->at[0] == SESSION_HELLO) {
		node_hears_hello(x, p);
	} else if (p->n && p->at[0] == SESSION_SEALED) {
		if (node_hears_sealed(x, p))
			return;
		s = sessions_named(w.nodes[x].sessions, p->at, p->n, w.now_ns);
		must(s != NULL);
		node_says(x, s);
	}
}

/* Node X asked in a session and hears P, which may say that the other side does not know it. */
static void node_hears_answer(int x, const struct packet *p)
{
	const struct session *s;

	if (p->n == SESSION_UNKNOWN_LEN && p->at[0] == SESSION_UNKNOWN) {
		s = sessions_named(w.nodes[x].sessions, p->at, p->n, w.now_ns);
		if (s && session_is_confirmed(s))
			sessions_drop_until(w.nodes[x].sessions, s);
	} else if (p->n && p->at[0] == SESSION_SEALED) {
		(void)node_hears_sealed(x, p);
	}
}

static void node_starts(int x)
{
	struct node *me = &w.nodes[x];

	while (me->ngreets)
		greet_drop(me, 0);
	sessions_free(me->sessions);
	me->life++;
	me->self.boot_id = (uint64_t)(x + 1) << 16 | me->life;
	me->sessions = sessions_new(&me->self, &me->counters);
	must(me->sessions != NULL);
}

/* --- what must always hold ------------------------------------------------------------------ */

static void check_made(const struct made *m, const struct session *s)
{
	const struct node *me = &w.nodes[m->owner];

	must(session_is_confirmed(s) == m->proven);
	if (m->peer == ROGUE) {
		must(!strcmp(session_node(s), "r"));
		return;
	}
	must(!strcmp(session_node(s), w.nodes[m->peer].self.name));
	must(strcmp(session_node(s), me->self.name) != 0 && same_cluster(m->owner, m->peer));
	if (!m->proven)
		return;
	for (size_t i = 0; i < w.nmade; i++) {
		const struct made *other = &w.made[i];

		if (other->id == m->id && other->owner == m->peer && other->peer == m->owner &&
		    other->life == m->peer_life && other->peer_life == m->life &&
		    other->asked != m->asked)
			return;
	}
	must(false); /* it trusts a session that the other side never had */
}

static void check_finds(int x)
{
	const struct node *me = &w.nodes[x];

	for (int y = 0; y < NODES; y++) {
		const char *name = w.nodes[y].self.name;
		const struct session *s = sessions_find(me->sessions, name, "", w.now_ns);

		must(!s || (session_is_confirmed(s) && !strcmp(session_node(s), name) &&
			    session_age_ns(s, w.now_ns) < SESSION_LIFE_S * CLOCK_NS_PER_S));
		must(!s || y != x);
	}
}

static void check_all(void)
{
	for (int x = 0; x < NODES; x++) {
		size_t of[NODES + 1] = {0}, all = 0;

		for (size_t i = 0; i < w.nmade; i++) {
			const struct made *m = &w.made[i];
			const struct session *s;

			if (m->owner != x || m->life != w.nodes[x].life)
				continue;
			s = session_by_id(x, m->id, 0);
			if (!s)
				continue;
			check_made(m, s);
			all++;
			must(++of[m->peer] <= SESSIONS_OF_ONE);
		}
		must(all == sessions_count(w.nodes[x].sessions) && all <= SESSIONS_MAX);
		check_finds(x);
	}
}

/* --- the node that speaks wrongly ----------------------------------------------------------- */

enum wrong {
	WRONG_NOTHING,
	WRONG_TYPE,
	WRONG_CLUSTER,
	WRONG_TO,
	WRONG_FROM_YOU,
	WRONG_SHORT,
	WRONG_BYTES,
	WRONG_VERSION,
	WRONGS
};

/* A claim to node X that is wrong in one way. */
static void rogue_claim(const char *type, const char *key, const uint8_t bytes[NOISE_KEY], int x,
			enum wrong wrong, msgpack_sbuffer *out)
{
	const struct greeting_self *to = &w.nodes[x].self;
	uint8_t other[NOISE_KEY];
	msgpack_packer pk;

	memcpy(other, bytes, NOISE_KEY);
	if (wrong == WRONG_BYTES)
		other[next() % NOISE_KEY] ^= (uint8_t)(next() | 1);
	pack_begin(&pk, out, 6);
	pack_str(&pk, "type", wrong == WRONG_TYPE ? "start" : type);
	pack_str(&pk, "cluster", wrong == WRONG_CLUSTER ? "green" : to->cluster);
	pack_str(&pk, "from", wrong == WRONG_FROM_YOU ? to->name : "r");
	pack_str(&pk, "to", wrong == WRONG_TO ? "z" : to->name);
	pack_u64(&pk, "boot_id", 7);
	pack_bin(&pk, key, other, wrong == WRONG_SHORT ? next() % NOISE_KEY : NOISE_KEY);
}

/* Writes a HELLO by hand: as greeting_hello does, but with versions of its own. */
static void rogue_hello(struct noise *noise, const uint8_t psk[NOISE_KEY], const char *credential,
			bool wrong, struct packet *out)
{
	uint8_t prologue[512] = "iocom session";
	msgpack_sbuffer head;
	msgpack_packer pk;
	size_t n = sizeof("iocom session");

	pack_begin(&pk, &head, 3);
	pack_u64(&pk, "min", wrong ? CHANNEL_VERSION_MAX + 1 : CHANNEL_VERSION_MIN);
	pack_u64(&pk, "max", wrong ? CHANNEL_VERSION_MAX + 2 : CHANNEL_VERSION_MAX + 1);
	pack_str(&pk, "cred", credential);
	memcpy(prologue + n, head.data, head.size);
	noise_begin(noise, true, psk, prologue, n + head.size);
	out->at[0] = SESSION_HELLO;
	out->at[1] = 0;
	out->at[2] = (uint8_t)head.size;
	memcpy(out->at + 3, head.data, head.size);
	must(!noise_write(noise, NULL, 0, out->at + 3 + head.size));
	out->n = 3 + head.size + NOISE_HANDSHAKE;
	msgpack_sbuffer_destroy(&head);
}

static void rogue_keeps(int x, struct noise *noise)
{
	struct noise_key sends, receives;
	uint8_t hash[NOISE_HASH];
	struct rogue *r;

	if (w.nrogues == ROGUES_MAX)
		w.nrogues = 0;
	r = &w.rogues[w.nrogues++];
	noise_split(noise, &sends, &receives, hash);
	*r = (struct rogue){.with = x};
	memcpy(&r->id, hash, sizeof(r->id));
	memcpy(r->sends, sends.key, sizeof(r->sends));
}

/* It asks node X.  Only what is right in all things leads to a session. */
static void rogue_asks(int x)
{
	enum wrong wrong = (enum wrong)(next() % WRONGS);
	uint8_t psk[NOISE_KEY], payload[1024];
	msgpack_sbuffer claim, welcome;
	const msgpack_sbuffer *opened;
	struct iocom_err err = {0};
	struct greeting g = {0};
	struct packet hello;
	struct noise noise;
	char credential[32];
	struct greeting_head head;
	int rc;

	randombytes_buf(psk, sizeof(psk));
	rogue_claim("hello", "psk", psk, x, wrong, &claim);
	vault_seal(&claim, credential);
	msgpack_sbuffer_destroy(&claim);
	rogue_hello(&noise, psk, credential, wrong == WRONG_VERSION, &hello);
	rc = greeting_heard(&head, hello.at, hello.n, &err);
	must(wrong == WRONG_VERSION ? rc == -EPROTO : rc == 0);
	if (rc)
		return;
	opened = vault_open(head.credential, head.length, x);
	must(opened != NULL);
	msgpack_sbuffer_init(&claim);
	rc = greeting_accept(&g, &w.nodes[x].self, channel_version_choose(head.least, head.most),
			     hello.at, hello.n, opened->data, opened->size, &claim, &err);
	must(!rc == (wrong == WRONG_NOTHING));
	if (!rc) {
		vault_seal(&claim, credential);
		msgpack_sbuffer_init(&welcome);
		must(!greeting_welcome(&g, credential, &welcome));
		must(welcome.size - 1 - NOISE_HANDSHAKE <= sizeof(payload));
		must(!noise_read(&noise, welcome.data + 1, welcome.size - 1, payload));
		msgpack_sbuffer_destroy(&welcome);
		rogue_keeps(x, &noise);
		begin_session(x, &g, ROGUE, false);
		must(w.made[w.nmade - 1].id == w.rogues[w.nrogues - 1].id);
	}
	greeting_end(&g);
	msgpack_sbuffer_destroy(&claim);
}

/* It answers a greeting of node X to whoever is there. */
static void rogue_answers(int x)
{
	enum wrong wrong = (enum wrong)(next() % WRONGS);
	uint8_t prologue[512] = "iocom session", claimed[NOISE_KEY], message[1024];
	struct node *me = &w.nodes[x];
	const msgpack_object *psk;
	msgpack_unpacked map;
	msgpack_sbuffer payload, claim;
	struct iocom_err err = {0};
	const struct said *said;
	char credential[32], *answered = NULL;
	struct noise noise;
	msgpack_packer pk;
	struct greet *greet;
	size_t n, cut;
	int rc;

	node_greets(x, -1);
	greet = &me->greets[me->ngreets - 1];
	said = &w.said[w.nsaid - 1];
	/* It holds the MUNGE key, so it can open the credential. */
	must(!unpack_map(&map, vault[nvault - 1].sealed.data, vault[nvault - 1].sealed.size));
	psk = unpack_get(&map.data, "psk");
	n = said->packet.n - 3 - NOISE_HANDSHAKE;
	memcpy(prologue + sizeof("iocom session"), said->packet.at + 3, n);
	noise_begin(&noise, false, (const uint8_t *)psk->via.bin.ptr, prologue,
		    sizeof("iocom session") + n);
	msgpack_unpacked_destroy(&map);
	must(!noise_read(&noise, said->packet.at + 3 + n, NOISE_HANDSHAKE, NULL));
	memcpy(claimed, noise.h, sizeof(claimed));
	rogue_claim("welcome", "hash", claimed, x, wrong, &claim);
	vault_seal(&claim, credential);
	msgpack_sbuffer_destroy(&claim);
	pack_begin(&pk, &payload, 2);
	pack_u64(&pk, "v", wrong == WRONG_VERSION ? next() % 2 * 99 : CHANNEL_VERSION_MAX);
	pack_str(&pk, "cred", credential);
	message[0] = SESSION_WELCOME;
	cut = next() % 8 ? 0 : next() % (payload.size + 1);
	must(!noise_write(&noise, payload.data, payload.size - cut, message + 1));
	n = 1 + NOISE_HANDSHAKE + payload.size - cut;
	msgpack_sbuffer_destroy(&payload);
	rc = greeting_welcomed(&greet->greeting, message, n, &answered, &err);
	must(!rc == (!cut && wrong != WRONG_VERSION) && !rc == !!answered);
	if (!rc) {
		const msgpack_sbuffer *opened = vault_open(answered, strlen(answered), x);

		must(opened != NULL);
		rc = greeting_trust(&greet->greeting, &me->self, opened->data, opened->size, &err);
		must(!rc == (wrong == WRONG_NOTHING));
	}
	if (!rc) {
		begin_session(x, &greet->greeting, ROGUE, true);
		rogue_keeps(x, &noise);
	}
	free(answered);
	greet_drop(me, me->ngreets - 1);
}

/* It sends SEALED with any number, and rubbish in it. */
static void rogue_says(void)
{
	const struct rogue *r = w.nrogues ? &w.rogues[next() % w.nrogues] : NULL;
	const struct made *made = r ? made_of(r->with, r->id) : NULL;
	uint8_t text[64] = "rubbish", how = next();
	struct packet p = {.at = {SESSION_SEALED}};
	uint64_t number;

	if (!made)
		return;
	number = how % 5 == 0	? next()
		 : how % 5 == 1 ? UINT64_MAX - next() % 4
		 : how % 5 == 2 ? made->received + SESSION_WINDOW - 4 + next() % 8
		 : how % 5 == 3 ? made->received - SESSION_WINDOW - 4 + next() % 8
				: made->received - 1 - next() % 8;
	p.n = SESSION_OVERHEAD + how / 5;
	memcpy(p.at + 1, &r->id, sizeof(r->id));
	bytes_put_u64(p.at + 9, number);
	noise_seal_at(r->sends, number, p.at, SESSION_HEAD, text, p.n - SESSION_OVERHEAD,
		      p.at + SESSION_HEAD);
	if (!said_like(&p))
		said_put(&p, ROGUE, r->with, r->id);
	(void)node_hears_sealed(r->with, &p);
}

/* --- the attacker ----------------------------------------------------------------------------- */

static struct packet *any_packet(void)
{
	return w.npool ? &w.pool[next() % w.npool] : NULL;
}

/* He changes a copy of one message, with the help of another. */
static void attacker_changes(void)
{
	const struct packet *one = any_packet(), *other = any_packet();
	struct packet p;
	size_t at;

	if (!one)
		return;
	p = *one;
	switch (next() % 7) {
	case 0:
		if (p.n)
			p.at[(next() | next() << 8) % p.n] ^= (uint8_t)(1u << next() % 8);
		break;
	case 1:
		p.n = p.n ? (size_t)(next() | next() << 8) % p.n : 0;
		break;
	case 2:
		for (at = 1 + next() % 16; at && p.n < sizeof(p.at); at--)
			p.at[p.n++] = next();
		break;
	case 3: /* the head of one, the rest of the other */
		at = p.n ? (size_t)(next() | next() << 8) % p.n : 0;
		if (other->n > at) {
			memcpy(p.at + at, other->at + at, other->n - at);
			p.n = other->n;
		}
		break;
	case 4: /* one in the session of the other */
		if (p.n >= SESSION_HEAD && other->n >= SESSION_HEAD)
			memcpy(p.at + 1, other->at + 1, next() % 2 ? 8 : 16);
		break;
	case 5:
		if (p.n)
			p.at[0] = next() % 8;
		break;
	default: /* the Noise message of the other */
		if (p.n >= NOISE_HANDSHAKE && other->n >= NOISE_HANDSHAKE)
			memcpy(p.at + p.n - NOISE_HANDSHAKE, other->at + other->n - NOISE_HANDSHAKE,
			       NOISE_HANDSHAKE);
		break;
	}
	pool_put(&p);
}

/* He writes what needs no key. */
static void attacker_writes(void)
{
	struct packet p = {0};
	msgpack_sbuffer out;

	if (next() % 2 && w.nmade) {
		p.at[0] = next() % 2 ? SESSION_UNKNOWN : SESSION_SEALED;
		memcpy(p.at + 1, &w.made[next() % w.nmade].id, 8);
		p.n = p.at[0] == SESSION_UNKNOWN ? SESSION_UNKNOWN_LEN
						 : SESSION_OVERHEAD + next() % 16;
	} else {
		msgpack_sbuffer_init(&out);
		greeting_refuse(PEER_C_NONE, "go away", &out);
		take(&p, &out);
	}
	pool_put(&p);
}

static void time_passes(void)
{
	static const uint64_t seconds[] = {1,	 5,    29,   31,   60,	 61,
					   1800, 3599, 3600, 3601, 7199, 7200};
	uint8_t how = next();

	w.now_ns += seconds[how % 12] * CLOCK_NS_PER_S;
	for (int x = 0; how & 16 && x < NODES; x++)
		sessions_expire(w.nodes[x].sessions, w.now_ns);
}

/* As control_ask.c begins a question. */
static void node_asks(int x, int y)
{
	struct sessions *sessions = w.nodes[x].sessions;
	const struct session *s = sessions_find(sessions, w.nodes[y].self.name, "", w.now_ns);

	if (x == y)
		return;
	if (!s || (session_is_stale(s, w.now_ns) && session_may_greet(sessions, s, w.now_ns)))
		node_greets(x, y);
	if (s)
		node_says(x, s);
}

static void attacker_delivers(int x, uint8_t how)
{
	struct packet *p = any_packet(), copy;
	struct node *me = &w.nodes[x];

	if (!p)
		return;
	copy = *p; /* the pool may be overwritten */
	if (how % 3 == 0)
		node_hears(x, &copy);
	else if (how % 3 == 1 && me->ngreets)
		(void)node_hears_welcome(x, next() % me->ngreets, &copy);
	else
		node_hears_answer(x, &copy);
}

/* The newest message goes on to node X, as it would without an attacker. */
static void newest_goes_on(int x, bool as_welcome)
{
	struct packet copy;

	if (!w.npool)
		return;
	copy = w.pool[w.npool < POOL ? w.npool - 1 : (w.oldest + POOL - 1) % POOL];
	if (as_welcome && w.nodes[x].ngreets)
		(void)node_hears_welcome(x, w.nodes[x].ngreets - 1, &copy);
	else
		node_hears(x, &copy);
}

static void step(void)
{
	uint8_t op = next(), who = next();
	int x = who % NODES, y = who / NODES % NODES;

	switch (op % 16) {
	case 0:
		node_greets(x, who & 64 || x == y ? -1 : y);
		break;
	case 1:
	case 2:
		node_asks(x, y);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
	case 7:
		attacker_delivers(x, who >> 2);
		break;
	case 8:
	case 9:
		attacker_changes();
		break;
	case 10:
		attacker_writes();
		break;
	case 11:
		time_passes();
		break;
	case 12:
		if (who & 16)
			node_starts(x);
		else
			rogue_answers(x);
		break;
	case 13:
		rogue_asks(x);
		break;
	case 14:
		rogue_says();
		break;
	default:
		newest_goes_on(x, who & 16);
		break;
	}
}

/* --- begin and end ------------------------------------------------------------------------- */

/* X greets Y, and nobody is between them. */
static void greet_in_peace(int x, int y)
{
	struct packet copy;

	node_greets(x, y);
	copy = w.said[w.nsaid - 1].packet;
	node_hears(y, &copy);
	copy = w.said[w.nsaid - 1].packet;
	must(copy.at[0] == SESSION_WELCOME);
	must(node_hears_welcome(x, w.nodes[x].ngreets - 1, &copy));
}

/* A question of X to Y gets there, whatever was before: at the second attempt at the latest. */
static void speak_in_peace(int x, int y)
{
	for (int i = 0; i < 2; i++) {
		struct sessions *sessions = w.nodes[x].sessions;
		const struct session *s =
			sessions_find(sessions, w.nodes[y].self.name, "", w.now_ns);
		struct packet copy;
		int rc;

		if (!s) {
			greet_in_peace(x, y);
			s = sessions_find(sessions, w.nodes[y].self.name, "", w.now_ns);
		}
		must(s != NULL);
		node_says(x, s);
		copy = w.said[w.nsaid - 1].packet;
		rc = node_hears_sealed(y, &copy);
		if (!rc)
			return;
		must(rc == 1); /* unknown */
		sessions_drop_until(sessions, s);
	}
	must(false);
}

static void begin(const uint8_t *data, size_t size)
{
	static const struct greeting_self names[NODES] = {
		{"red", "a", 0}, {"red", "b", 0}, {"red", "c", 0}, {"blue", "b", 0}};
	uint8_t how;

	memset(&w, 0, sizeof(w));
	random_calls = 0;
	w.script = data;
	w.end = data + size;
	w.now_ns = 1000 * CLOCK_NS_PER_S;
	how = next();
	w.trusts_replays = how & 1;
	w.trusts_age = how & 2;
	w.pair = how / 4 % RED;
	for (int x = 0; x < NODES; x++) {
		w.nodes[x].self = names[x];
		node_starts(x);
	}
}

static void end(void)
{
	for (int x = 0; x < NODES; x++) {
		while (w.nodes[x].ngreets)
			greet_drop(&w.nodes[x], 0);
		sessions_free(w.nodes[x].sessions);
	}
	while (nvault)
		msgpack_sbuffer_destroy(&vault[--nvault].sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin(data, size);
	for (int i = 0; i < STEPS_MAX && w.script < w.end; i++) {
		step();
		check_all();
	}
	speak_in_peace(w.pair, (w.pair + 1) % RED);
	speak_in_peace((w.pair + 1) % RED, w.pair);
	check_all();
	end();
	return 0;
}

/* --- first inputs --------------------------------------------------------------------------- */

#define TO(x, y)  ((x) | (y) << 2)
#define HELLO_TO  15, TO(1, 0)	    /* the newest goes on to b */
#define WELCOMES  15, TO(0, 0) | 16 /* ... to a, as a WELCOME */
#define GREETS	  0, TO(0, 1)
#define ASKS	  1, TO(0, 1)
#define HEARS	  15, TO(1, 0)
#define PASSES(n) 11, 0, n

bool sample(int n, FILE *out)
{
	static const uint8_t peace[] = {0, GREETS, HELLO_TO, WELCOMES, ASKS, HEARS, ASKS, HEARS};
	static const uint8_t again[] = {1, GREETS, HELLO_TO, WELCOMES, ASKS, HEARS,    3, TO(1, 0),
					0, 3,	   TO(1, 0), 2,	       3,    TO(0, 0), 2};
	static const uint8_t starts[] = {0,	 GREETS,   HELLO_TO, WELCOMES, ASKS,
					 HEARS,	 12,	   1 | 16,   ASKS,     HEARS,
					 GREETS, HELLO_TO, WELCOMES, ASKS,     HEARS};
	static const uint8_t changes[] = {3,  GREETS, HELLO_TO, WELCOMES, ASKS, 8, 0, 2, 2, 0,
					  9,  0,      3,	TO(1, 0), 3,	8, 0, 0, 1, 6,
					  30, 0,      3,	TO(1, 0), 4};
	static const uint8_t ages[] = {0,     GREETS,	 HELLO_TO,   WELCOMES, ASKS,
				       HEARS, PASSES(8), ASKS,	     HELLO_TO, WELCOMES,
				       ASKS,  HEARS,	 PASSES(24), GREETS,   HELLO_TO};
	static const uint8_t rogue[] = {0, 13, 0,  0, 14, 0,  0,  0, 5, 14, 0, 0,
					4, 9,  13, 1, 1,  12, 0,  0, 1, 12, 0, 3,
					1, 14, 0,  0, 1,  2,  14, 0, 0, 2,  2};
	static const struct {
		const uint8_t *at;
		size_t n;
	} all[] = {{peace, sizeof(peace)},     {again, sizeof(again)}, {starts, sizeof(starts)},
		   {changes, sizeof(changes)}, {ages, sizeof(ages)},   {rogue, sizeof(rogue)}};

	if (n >= (int)(sizeof(all) / sizeof(*all)))
		return false;
	fwrite(all[n].at, 1, all[n].n, out);
	return true;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	must(!randombytes_set_implementation(&same) && sodium_init() >= 0);
	return samples_of(*argc, *argv);
}
