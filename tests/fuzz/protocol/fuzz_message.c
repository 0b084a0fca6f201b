/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An opened message of another agent: head and body are refused, or mean the same when packed
 * again. Then an agent that has jobs of the other one obeys it, once.
 */
#include "agent/cluster/peer_requests.h"
#include "agent/cluster/message.h"
#include "tests/fuzz/protocol/fuzz_protocol.h"
#include "tests/lib/whole.h"
#include "agent/cluster/peer_message.h"
#include "user/pack.h"

static void pack_body(int n, msgpack_sbuffer *body)
{
	static const struct job_order order = {.job = "there-0f-7",
					       .home = "there",
					       .home_address = "10.0.0.2",
					       .home_port = 7700,
					       .uid = 1000,
					       .cwd = "/",
					       .executable = "/bin/sh"};
	static const struct job_order part = {.job = "there-0f-7.1",
					      .home = "there",
					      .home_address = "10.0.0.2",
					      .home_port = 7700,
					      .uid = 1000,
					      .cwd = "/",
					      .executable = "/bin/sh",
					      .gang_tasks = 4,
					      .oversubscribe = true};
	static const struct peer_request release = {.type = PEER_RELEASE,
						    .release = {"0123456789abcdef"}};
	static const struct job_report report = {.job = "here-0f-1", .state = "exited"};
	static const struct peer_answer key = {.ok = true, .key = {.epoch = 9, .next = 5}};
	static const struct peer_request user = {
		.type = PEER_USER,
		.user = {"MUNGE:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:", "an ask", 6}};
	static const struct peer_request move = {
		.type = PEER_MOVE, .move = {7, "n2", "10.0.0.2", 7702, "0123", {1, 2}}};
	static const struct peer_request held = {.type = PEER_HELD,
						 .held = {7, true, true, 1, 2, 3, "why"}};
	static const struct peer_request away = {.type = PEER_AWAY,
						 .away = {"n2", "owner", 2, 1, 1}};
	msgpack_packer pk;

	msgpack_sbuffer_init(body);
	if (n == 12) {
		peer_request_pack(&move, body);
	} else if (n == 13) {
		peer_request_pack(&held, body);
	} else if (n == 14) {
		peer_request_pack(&away, body);
	} else if (n == 0) {
		job_order_pack(&order, body);
	} else if (n == 1) {
		job_report_pack_first(&report, 1, body);
		job_report_pack(&report, body);
	} else if (n == 7) {
		peer_answer_pack(PEER_KEY, &key, body);
	} else if (n == 9) {
		peer_request_pack(&user, body);
	} else if (n == 10) {
		peer_request_pack(&release, body);
	} else if (n == 11) {
		job_order_pack(&part, body);
	} else {
		msgpack_packer_init(&pk, body, msgpack_sbuffer_write);
		msgpack_pack_map(&pk, 7);
		pack_u64(&pk, "hops", 1);
		pack_u64(&pk, "start_ns", 5);
		pack_u64(&pk, "pid", 77);
		pack_u64(&pk, "uid", 0);
		pack_u64(&pk, "signal", 9);
		pack_str(&pk, "address", "10.0.0.2");
		pack_u64(&pk, "port", 7700);
	}
}

bool sample(int n, FILE *out)
{
	static const char *const types[] = {"admit",   "done",	"started", "kill",   "hello",
					    "renew",   "key",	"answer",  "attach", "user",
					    "release", "admit", "move",	   "held",   "away"};
	struct control_head head = {.from = "there", .to = "here", .id = 3};
	msgpack_sbuffer body, buffer;

	if (n >= (int)(sizeof(types) / sizeof(*types)))
		return false;
	snprintf(head.type, sizeof(head.type), "%s", types[n]);
	snprintf(head.job, sizeof(head.job), "%s",
		 n >= 10 ? "there-0f-7.1"
		 : n	 ? "here-0f-1"
			 : "there-0f-7");
	pack_body(n, &body);
	message_pack(&head, &body, &buffer);
	fwrite(buffer.data, 1, buffer.size, out);
	msgpack_sbuffer_destroy(&buffer);
	msgpack_sbuffer_destroy(&body);
	return true;
}

FUZZ_SAMPLES

static void again(const struct message *m)
{
	const msgpack_object *body = unpack_get(&m->map.data, "body");
	msgpack_sbuffer bytes = {.data = (char *)body->via.bin.ptr, .size = body->via.bin.size};
	msgpack_sbuffer packed;
	struct message other;

	message_pack(&m->head, &bytes, &packed);
	must(!message_unpack(&other, packed.data, packed.size, NULL));
	must(!memcmp(&m->head, &other.head, sizeof(m->head)));
	message_free(&other);
	msgpack_sbuffer_destroy(&packed);
}

static void with_job(struct journal *journal)
{
	const struct journal_job job = {.job = "here-0f-1",
					.uid = 1000,
					.class_name = "sh",
					.command = "sh",
					.node = "there"};

	(void)journal_submit(journal, &job, NULL);
	(void)journal_placed(journal, job.job, "there", "{}", NULL, NULL);
}

/* The codec alone: what is understood means the same when packed again. */
static void same_again(const struct message *m)
{
	struct peer_request one, two;
	msgpack_sbuffer packed, twice;
	msgpack_unpacked map;
	enum peer_type type;

	if (peer_type_parse(m->head.type, &type) ||
	    peer_request_unpack(&one, type, m->head.from, m->head.job, &m->body.data))
		return;
	peer_request_pack(&one, &packed);
	must(!unpack_map_of(&map, packed.data, packed.size, PEER_VALUES_MAX));
	must(!peer_request_unpack(&two, type, m->head.from, m->head.job, &map.data));
	peer_request_pack(&two, &twice);
	must(packed.size == twice.size && !memcmp(packed.data, twice.data, twice.size));
	msgpack_sbuffer_destroy(&twice);
	msgpack_sbuffer_destroy(&packed);
	msgpack_unpacked_destroy(&map);
	peer_request_free(&one);
	peer_request_free(&two);
}

/* The body as an answer to a question of TYPE. */
static void same_answer(const struct message *m, enum peer_type type)
{
	struct peer_answer one, two;
	msgpack_sbuffer packed, twice;
	msgpack_unpacked map;

	if (peer_answer_unpack(&one, type, &m->body.data))
		return;
	must_end(one.text, sizeof(one.text));
	must(type != PEER_KEY || !one.ok || one.key.epoch);
	msgpack_sbuffer_init(&packed);
	msgpack_sbuffer_init(&twice);
	peer_answer_pack(type, &one, &packed);
	must(!unpack_map_of(&map, packed.data, packed.size, PEER_VALUES_MAX));
	must(!peer_answer_unpack(&two, type, &map.data));
	peer_answer_pack(type, &two, &twice);
	must(packed.size == twice.size && !memcmp(packed.data, twice.data, twice.size));
	msgpack_sbuffer_destroy(&twice);
	msgpack_sbuffer_destroy(&packed);
	msgpack_unpacked_destroy(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct whole *w = whole_fresh();
	struct iocom_err err = {0};
	msgpack_sbuffer answer;
	msgpack_unpacked map;
	struct message m;

	if (message_unpack(&m, data, size, &err)) {
		must(*err.text);
		return 0;
	}
	again(&m);
	same_again(&m);
	for (int type = 0; type < PEER_TYPES; type++)
		same_answer(&m, (enum peer_type)type);
	with_job(w->journal);
	msgpack_sbuffer_init(&answer);
	if (!peer_requests_handle(&w->peers, &m.head, &m.body.data, &answer)) {
		/* No answer: it comes later. */
		must(!answer.size ||
		     !unpack_map_of(&map, answer.data, answer.size, PEER_VALUES_MAX));
		if (answer.size)
			msgpack_unpacked_destroy(&map);
		msgpack_sbuffer_clear(&answer);
		/* The same message came before, so it is refused. */
		must(peer_requests_handle(&w->peers, &m.head, &m.body.data, &answer) != 0);
	}
	whole_pass_ms(w, 1);
	msgpack_sbuffer_destroy(&answer);
	message_free(&m);
	return 0;
}
