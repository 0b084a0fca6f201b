/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sealed bulletins of any bytes; and a script of what publishers and one subscriber do, with an
 * attacker between them who has no key: he repeats, reorders, cuts, changes and splices bulletins,
 * and gives those of one publisher to the subscriber as those of another.  One publisher seals with
 * any numbers.  A model knows what was sealed, so it knows what must be opened: what is authentic,
 * with growing numbers.
 */
#include <errno.h>
#include <sodium.h>

#include "user/channel/bulletin_seal.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "user/channel/bytes.h"

#define PUBLISHERS 3
#define ROGUE	   2
#define STEPS_MAX  400
#define SEEN_MAX   64

static const char longest[] = "a-name-of-63-bytes-which-is-the-longest-that-a-node-may-ever-have";
_Static_assert(sizeof(longest) > IOCOM_NAME_MAX, "it is cut");

struct packet {
	uint8_t at[256];
	size_t n;
};

static struct {
	const uint8_t *script, *end;
	struct publisher {
		char name[IOCOM_NAME_MAX];
		struct bulletin_key own;
		/* What the subscriber has of it, and an answer with a key that is on its way. */
		struct bulletin_key got, answer;
		bool has_opened;
		uint64_t opened; /* the greatest number in this epoch */
	} publishers[PUBLISHERS];
	struct packet seen[SEEN_MAX]; /* by the attacker */
	size_t nseen;
	struct sealed {
		struct packet packet;
		int by;
		uint64_t epoch, number;
	} sealed[STEPS_MAX];
	size_t nsealed;
} w;

static uint8_t next(void)
{
	return w.script < w.end ? *w.script++ : 0;
}

static void see(const struct packet *p)
{
	w.seen[w.nseen++ % SEEN_MAX] = *p;
}

static const struct packet *any_seen(void)
{
	return w.nseen ? &w.seen[next() % (w.nseen < SEEN_MAX ? w.nseen : SEEN_MAX)] : NULL;
}

static void sealed_put(const struct packet *p, int by, uint64_t number)
{
	struct sealed *s = &w.sealed[w.nsealed++];

	*s = (struct sealed){
		.packet = *p, .by = by, .epoch = w.publishers[by].own.epoch, .number = number};
	see(p);
}

static void publishes(int i)
{
	uint8_t length = next() % 64;
	struct publisher *p = &w.publishers[i];
	uint64_t number = p->own.next;
	msgpack_sbuffer plain, out;
	struct packet packet;

	msgpack_sbuffer_init(&plain);
	msgpack_sbuffer_init(&out);
	for (uint8_t k = 0; k < length; k++)
		must(!msgpack_sbuffer_write(&plain, (const char *)&k, 1));
	must(!bulletin_seal(&p->own, p->name, &plain, &out));
	must(p->own.next != number && out.size <= sizeof(packet.at));
	memcpy(packet.at, out.data, out.size);
	packet.n = out.size;
	sealed_put(&packet, i, number);
	msgpack_sbuffer_destroy(&plain);
	msgpack_sbuffer_destroy(&out);
}

/* The rogue seals with a number of its choice, perhaps one that it has used. */
static void rogue_publishes(void)
{
	static const uint64_t numbers[] = {0, 1, 5, 1ull << 32, UINT64_MAX - 1, UINT64_MAX};

	w.publishers[ROGUE].own.next = numbers[next() % 6];
	publishes(ROGUE);
}

/* As bulletin_key does: a key that is here stays. */
static void hears_key(struct publisher *p)
{
	if (!p->answer.epoch || p->got.epoch == p->answer.epoch)
		return;
	p->got = p->answer;
	p->has_opened = false;
}

/* The bulletin that was sealed with these bytes; NULL: none. */
static const struct sealed *sealed_like(const struct packet *p)
{
	for (size_t i = 0; i < w.nsealed; i++)
		if (w.sealed[i].packet.n == p->n && !memcmp(w.sealed[i].packet.at, p->at, p->n))
			return &w.sealed[i];
	return NULL;
}

/* The subscriber hears P as a bulletin of publisher I. */
static void hears(int i, const struct packet *packet)
{
	const struct sealed *sealed = sealed_like(packet);
	struct publisher *p = &w.publishers[i];
	struct packet copy = *packet;
	struct bulletin_key before = p->got;
	struct bulletin_head head;
	const void *plain;
	int rc = bulletin_head_read(&head, copy.at, copy.n);
	size_t n;

	must(rc == 0 || rc == -EPROTO || rc == -EBADMSG);
	must(!sealed || !rc);
	if (rc || head.epoch != p->got.epoch || strcmp(head.from, p->name) != 0)
		return;
	rc = bulletin_open(&p->got, &head, copy.at, copy.n, &plain, &n);
	if (!sealed || sealed->by != i || sealed->number == UINT64_MAX)
		must(rc == -EBADMSG);
	else
		must(rc == (sealed->number < before.next ? -EALREADY : 0));
	if (rc) {
		must(!memcmp(&before, &p->got, sizeof(before)));
		return;
	}
	must(sealed->epoch == head.epoch && sealed->number == head.number);
	must(!p->has_opened || head.number > p->opened);
	must((const uint8_t *)plain + n + NOISE_TAG == copy.at + copy.n);
	for (size_t k = 0; k < n; k++)
		must(((const uint8_t *)plain)[k] == k);
	p->has_opened = true;
	p->opened = head.number;
}

static void attacker_changes(void)
{
	const struct packet *one = any_seen(), *other = any_seen();
	struct packet p;
	size_t at;

	if (!one)
		return;
	p = *one;
	at = p.n ? next() % p.n : 0;
	switch (next() % 6) {
	case 0:
		p.at[at] ^= (uint8_t)(1u << next() % 8);
		break;
	case 1:
		p.n = at;
		break;
	case 2:
		for (at = next() % 16; at && p.n < sizeof(p.at); at--)
			p.at[p.n++] = next();
		break;
	case 3: /* the head of one, the rest of the other */
		if (other->n > at) {
			memcpy(p.at + at, other->at + at, other->n - at);
			p.n = other->n;
		}
		break;
	case 4: /* the name, and what it shifts */
		p.at[3] = next();
		break;
	default: /* another number */
		at = 12u + p.at[3];
		if (at + 8 <= p.n)
			bytes_put_u64(p.at + at, next() % 2 ? next() : UINT64_MAX);
		break;
	}
	see(&p);
}

static void step(void)
{
	uint8_t op = next(), who = next();
	int i = who % PUBLISHERS;
	struct publisher *p = &w.publishers[i];

	switch (op % 10) {
	case 0:
	case 1:
		publishes(i);
		hears(who & 128 ? i : (i + 1) % PUBLISHERS, &w.sealed[w.nsealed - 1].packet);
		break;
	case 2: /* the subscriber asks; the answer comes now or later */
		p->answer = p->own;
		if (who & 128)
			hears_key(p);
		break;
	case 3:
		hears_key(p);
		p->answer.epoch = 0;
		break;
	case 4:
		bulletin_epoch(&p->own);
		must(p->own.epoch && !p->own.next);
		break;
	case 5:
		rogue_publishes();
		break;
	case 6:
	case 7:
		attacker_changes();
		break;
	default:
		if (w.nseen) {
			struct packet copy = *any_seen();

			hears(i, &copy);
		}
		break;
	}
}

/* Any bytes, which end where the allocator knows. */
static void fuzz_bytes(const uint8_t *data, size_t size)
{
	struct bulletin_key key = {0};
	struct bulletin_head head;
	uint8_t *copy;
	const void *plain;
	size_t n;
	int rc = bulletin_head_read(&head, data, size);

	must(rc == 0 || rc == -EPROTO || rc == -EBADMSG);
	must_end(head.from, sizeof(head.from));
	if (rc)
		return;
	must(head.from[0] && head.length + NOISE_TAG <= size && head.length <= BULLETIN_HEAD_MAX);
	copy = malloc(size);
	must(copy != NULL);
	memcpy(copy, data, size);
	key.epoch = head.epoch;
	must(bulletin_open(&key, &head, copy, size, &plain, &n) == -EBADMSG && !key.next);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[PUBLISHERS] = {"p", longest, "rogue"};

	fuzz_bytes(data, size);
	memset(&w, 0, sizeof(w));
	w.script = data;
	w.end = data + size;
	for (int i = 0; i < PUBLISHERS; i++) {
		snprintf(w.publishers[i].name, IOCOM_NAME_MAX, "%s", names[i]);
		bulletin_epoch(&w.publishers[i].own);
	}
	for (int i = 0; i < STEPS_MAX && w.script < w.end; i++)
		step();
	/* Without an attacker the subscriber hears again what is published. */
	for (int i = 0; i < ROGUE; i++) {
		struct publisher *p = &w.publishers[i];

		if (w.nsealed == STEPS_MAX)
			break;
		p->answer = p->own;
		hears_key(p);
		publishes(i);
		hears(i, &w.sealed[w.nsealed - 1].packet);
		must(p->has_opened && p->opened + 1 == p->own.next);
	}
	return 0;
}

bool sample(int n, FILE *out)
{
	static const uint8_t hears_all[] = {2, 128, 0, 128, 9, 0, 128, 3, 8, 0, 0, 0, 128, 5};
	static const uint8_t epochs[] = {2, 128, 0, 128, 9, 4, 0, 0, 128, 9,
					 2, 0,	 0, 128, 1, 3, 0, 0, 128, 7};
	static const uint8_t changes[] = {2, 129, 0, 129, 9, 6, 0, 0, 0, 20, 0, 3,
					  8, 1,	  1, 6,	  0, 0, 0, 9, 1, 8,  1, 1};
	static const uint8_t rogue[] = {2, 130, 5, 0, 4, 3, 8, 2, 0, 5, 0, 5, 3, 8, 2, 1, 8, 2, 0};
	static const struct {
		const uint8_t *at;
		size_t n;
	} all[] = {{hears_all, sizeof(hears_all)},
		   {epochs, sizeof(epochs)},
		   {changes, sizeof(changes)},
		   {rogue, sizeof(rogue)}};

	if (n == 4) {
		LLVMFuzzerTestOneInput(hears_all, sizeof(hears_all));
		fwrite(w.sealed[0].packet.at, 1, w.sealed[0].packet.n, out);
		return true;
	}
	if (n > 4)
		return false;
	fwrite(all[n].at, 1, all[n].n, out);
	return true;
}

FUZZ_SAMPLES
