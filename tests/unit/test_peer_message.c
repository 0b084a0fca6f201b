/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions and answers of agents as bytes: each means the same when it is unpacked, and none is
 * taken that lacks something, has something of another type, or goes too far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/cluster/peer_message.h"
#include "user/pack.h"
#include "user/user_ask.h"

static const struct job_order order = {
	.job = "there-0f-7",
	.home = "there",
	.home_address = "10.0.0.2",
	.home_port = 7700,
	.uid = 1000,
	.hops = 3,
	.forced = true,
	.class_name = "sh",
	.command = "sh -c true",
	.policy = "iocm-re",
	.cwd = "/tmp",
	.executable = "/bin/sh",
	.submit_ns = 5,
	.lease_ms = 30000,
	.renews = true,
	.move = 3,
	.keyed = true,
	.secret = "of this attempt",
	.need = {.value = {[NEED_MEMORY_MB] = 12}, .source = {[NEED_MEMORY_MB] = NEED_OPTION}},
	.home_io = 0.5,
	.home_cpu = 0.25,
};

static const struct job_order part = {
	.job = "there-0f-7.3",
	.home = "there",
	.home_address = "10.0.0.2",
	.home_port = 7700,
	.uid = 1000,
	.command = "sh -c true",
	.policy = "iocm-re",
	.cwd = "/tmp",
	.executable = "/bin/sh",
	.gang_tasks = 4096,
	.oversubscribe = true,
};

static const struct job_report reports[3] = {
	{.job = "here-0f-1",
	 .state = "exited",
	 .value = 3,
	 .start_ns = 1,
	 .end_ns = 2,
	 .wall_ms = 12,
	 .cpu_ms = 3,
	 .text = "why",
	 .behaviour = {.n = 1, .phases = {{.ms = {1, 0, 2}, .wall_ms = 12, .dominant = 2}}}},
	{.job = "here-0f-2", .state = "killed", .kind = 1, .value = 9},
	{.job = "here-0f-3", .state = "lost", .kind = 3, .value = 255},
};

static const struct job_report running[2] = {
	{.job = "here-0f-4", .state = "running", .start_ns = 1, .wall_ms = 2000, .cpu_ms = 900},
	{.job = "here-0f-5", .state = "running", .requests = 7, .request_kb = 64},
};

static const struct peer_request questions[] = {
	{.type = PEER_ADMIT, .job = "there-0f-7", .order = &order},
	{.type = PEER_STARTED, .job = "here-0f-1", .started = {5, 77}},
	{.type = PEER_DONE, .job = "here-0f-1", .done = {reports, 3}},
	{.type = PEER_KILL, .job = "here-0f-1", .kill = {1000, 64}},
	{.type = PEER_RENEW, .job = "there-0f-7", .renew = {30000}},
	{.type = PEER_HELLO, .hello = {"10.0.0.2", 65533}},
	{.type = PEER_PROGRESS, .job = "here-0f-4", .done = {running, 2}},
	{.type = PEER_ATTACH, .job = "here-0f-1", .attach = {1000, 1}},
	{.type = PEER_USER, .user = {"MUNGE:none:", "ask", 3}},
	{.type = PEER_RELEASE, .job = "there-0f-7.3", .release = {"0123456789abcdef"}},
	{.type = PEER_ADMIT, .job = "there-0f-7.3", .order = &part},
	{.type = PEER_MOVABLE, .job = "here-0f-1"},
	{.type = PEER_MOVE,
	 .job = "here-0f-1",
	 .move = {7, "n2", "10.0.0.2", 7702, "0123", {1, 2}}},
	{.type = PEER_HELD, .job = "here-0f-1", .held = {7, true, true, 1, 2, 3, "why"}},
	{.type = PEER_AWAY, .job = "here-0f-1", .away = {"n2", "iocm-pm", 2e4, 1e4, 600}},
};
#define QUESTIONS (sizeof(questions) / sizeof(*questions))

static struct peer_request got;

/* --- bodies ------------------------------------------------------------------------ */

static msgpack_unpacked opened(msgpack_sbuffer *body)
{
	msgpack_unpacked map;

	assert_int_equal(unpack_map_of(&map, body->data, body->size, PEER_VALUES_MAX), 0);
	return map;
}

static int take(enum peer_type type, const char *job, const msgpack_object *map)
{
	int rc = peer_request_unpack(&got, type, "there", job, map);

	if (rc) /* after that it holds no memory */
		assert_int_equal(rc, -EBADMSG);
	return rc;
}

/* Does the same for a body that is only looked at. */
static int look(enum peer_type type, const char *job, const msgpack_object *map)
{
	int rc = take(type, job, map);

	if (!rc)
		peer_request_free(&got);
	return rc;
}

static int look_at(enum peer_type type, const char *job, msgpack_sbuffer *body)
{
	msgpack_unpacked map = opened(body);
	int rc = look(type, job, &map.data);

	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(body);
	return rc;
}

/* --- questions ------------------------------------------------------------------------ */

static void test_names(void **state)
{
	static const char *const names[PEER_TYPES] = {
		"admit",  "started", "done",	"kill",	   "renew", "hello", "progress", "key",
		"attach", "user",    "release", "movable", "move",  "held",  "away"};
	enum peer_type type;

	(void)state;
	for (int i = 0; i < PEER_TYPES; i++) {
		assert_string_equal(peer_type_name((enum peer_type)i), names[i]);
		assert_int_equal(peer_type_parse(names[i], &type), 0);
		assert_int_equal(type, i);
	}
	assert_int_equal(peer_type_parse("dance", &type), -ENOSYS);
	assert_int_equal(peer_type_parse("", &type), -ENOSYS);
}

/* What a guest expects of a move is a time, and it says why the job is to leave. */
static void test_away_refused(void **state)
{
	static const struct peer_away bad[] = {
		{"n2", "", 1, 1, 1},
		{"n2", "owner", -1, 1, 1},
		{"n2", "owner", 1, NAN, 1},
		{"n2", "owner", 1, 1, -2},
		{"n2", "owner", INFINITY, 1, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct peer_request request = {.type = PEER_AWAY, .away = bad[i]};
		msgpack_sbuffer body;

		peer_request_pack(&request, &body);
		assert_int_equal(look_at(PEER_AWAY, "here-0f-1", &body), -EBADMSG);
	}
}

/* The bodies of all questions, unpacked and packed again, are the same bytes. */
static void test_same_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < QUESTIONS; i++) {
		const struct peer_request *q = &questions[i];
		msgpack_sbuffer one, two;
		msgpack_unpacked map;

		peer_request_pack(q, &one);
		map = opened(&one);
		assert_int_equal(take(q->type, q->job, &map.data), 0);
		assert_int_equal(got.type, q->type);
		assert_string_equal(got.from, "there");
		assert_string_equal(got.job, q->job);
		/* home knows the lease's length itself and believes no other node */
		if (q->type == PEER_RENEW)
			assert_int_equal(got.renew.lease_ms, 0);
		got.renew.lease_ms = q->type == PEER_RENEW ? 30000 : got.renew.lease_ms;
		peer_request_pack(&got, &two);
		assert_int_equal(one.size, two.size);
		assert_memory_equal(one.data, two.data, one.size);
		peer_request_free(&got);
		peer_request_free(&got); /* is harmless */
		msgpack_unpacked_destroy(&map);
		msgpack_sbuffer_destroy(&one);
		msgpack_sbuffer_destroy(&two);
	}
}

static const struct peer_request *unpacked(size_t question)
{
	const struct peer_request *q = &questions[question];
	msgpack_unpacked map;
	msgpack_sbuffer body;

	peer_request_pack(q, &body);
	map = opened(&body);
	assert_int_equal(take(q->type, q->job, &map.data), 0);
	msgpack_unpacked_destroy(&map); /* the question owns memory for what it points to */
	msgpack_sbuffer_destroy(&body);
	return &got;
}

static void test_what_they_say(void **state)
{
	(void)state;
	assert_string_equal(unpacked(0)->order->command, "sh -c true");
	assert_int_equal(got.order->home_port, 7700);
	assert_int_equal(got.order->lease_ms, 30000);
	assert_true(got.order->renews && got.order->forced);
	assert_memory_equal(got.order->secret, order.secret, sizeof(order.secret));
	assert_true(got.order->need.value[NEED_MEMORY_MB] == 12);
	peer_request_free(&got);
	assert_int_equal(unpacked(1)->started.start_ns, 5);
	assert_int_equal(got.started.pid, 77);
	assert_int_equal(unpacked(2)->done.count, 3);
	assert_int_equal(got.done.reports[0].value, 3);
	assert_string_equal(got.done.reports[1].state, "killed");
	assert_string_equal(got.done.reports[2].job, "here-0f-3");
	peer_request_free(&got);
	assert_int_equal(unpacked(3)->kill.uid, 1000);
	assert_int_equal(got.kill.signal, 64);
	assert_string_equal(unpacked(5)->hello.address, "10.0.0.2");
	assert_int_equal(got.hello.port, 65533);
	assert_string_equal(unpacked(8)->user.credential, "MUNGE:none:");
	assert_int_equal(got.user.length, 3);
	assert_memory_equal(got.user.ask, "ask", 3);
	peer_request_free(&got);
	assert_string_equal(unpacked(9)->release.nonce, "0123456789abcdef");
	assert_int_equal(unpacked(10)->order->gang_tasks, 4096);
	assert_true(got.order->oversubscribe);
	peer_request_free(&got);
}

/* Only a part of a gang has tasks, and not too many. */
static void test_parts(void **state)
{
	struct job_order whole = order, large = part;
	struct peer_request q = questions[0];
	msgpack_sbuffer body;

	(void)state;
	whole.gang_tasks = 1;
	q.order = &whole;
	peer_request_pack(&q, &body);
	assert_int_equal(look_at(q.type, q.job, &body), -EBADMSG);
	q = questions[10];
	large.gang_tasks = 4097;
	q.order = &large;
	peer_request_pack(&q, &body);
	assert_int_equal(look_at(q.type, q.job, &body), -EBADMSG);
}

/* The end of a job that runs, and the progress of one that ended, are no messages. */
static void test_running_or_ended(void **state)
{
	const struct job_report mixed[2] = {running[0], reports[0]};
	const struct peer_request wrong[] = {
		{.type = PEER_DONE, .job = "here-0f-4", .done = {running, 1}},
		{.type = PEER_PROGRESS, .job = "here-0f-1", .done = {reports, 1}},
		{.type = PEER_PROGRESS, .job = "here-0f-4", .done = {mixed, 2}},
		{.type = PEER_DONE, .job = "here-0f-4", .done = {mixed, 2}},
	};
	msgpack_sbuffer body;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		peer_request_pack(&wrong[i], &body);
		assert_int_equal(look_at(wrong[i].type, wrong[i].job, &body), -EBADMSG);
	}
	assert_int_equal(unpacked(6)->done.count, 2);
	assert_true(job_report_running(&got.done.reports[1]));
	assert_true(got.done.reports[1].requests == 7);
	peer_request_free(&got);
}

/* --- what lacks something, or has it of another type ------------------------------------- */

static bool is_key(const msgpack_object *key, const char *name)
{
	return key->via.str.size == strlen(name) && !memcmp(key->via.str.ptr, name, strlen(name));
}

/* An older agent leaves these out. */
static bool may_lack(const msgpack_object *key)
{
	return is_key(key, "lease_ms") || is_key(key, "renews") || is_key(key, "behaviour") ||
	       is_key(key, "more") || is_key(key, "fault_requests") || is_key(key, "fault_kb") ||
	       is_key(key, "read_kb") || is_key(key, "written_kb") || is_key(key, "alone_ms") ||
	       is_key(key, "netfs_read_kb") || is_key(key, "netfs_written_kb") ||
	       is_key(key, "stopped") || is_key(key, "gang_tasks") ||
	       is_key(key, "oversubscribe") || is_key(key, "move") || is_key(key, "processor");
}

/* A renewal has no fields to read, and lists may be empty. */
static bool may_be(enum peer_type type, const msgpack_object *key, const msgpack_object *value)
{
	return type == PEER_RENEW || (value->type == MSGPACK_OBJECT_ARRAY && is_key(key, "more")) ||
	       (value->type == MSGPACK_OBJECT_MAP && is_key(key, "need"));
}

static void try_without_each(const struct peer_request *q, msgpack_object *map)
{
	msgpack_object_kv *entries = map->via.map.ptr;

	if (!map->via.map.size)
		return; /* it asks for nothing but its type */
	map->via.map.size--;
	for (uint32_t i = 0; i <= map->via.map.size; i++) {
		msgpack_object_kv last = entries[map->via.map.size], mine = entries[i];

		entries[i] = last; /* the order of a map's keys does not matter */
		assert_int_equal(look(q->type, q->job, map), may_lack(&mine.key) ? 0 : -EBADMSG);
		entries[i] = mine;
		entries[map->via.map.size] = last;
	}
	map->via.map.size++;
}

static void try_others_for_each(const struct peer_request *q, msgpack_object *map)
{
	static const msgpack_object wrong[] = {
		{.type = MSGPACK_OBJECT_NIL},
		{.type = MSGPACK_OBJECT_ARRAY},
		{.type = MSGPACK_OBJECT_MAP},
		{.type = MSGPACK_OBJECT_NEGATIVE_INTEGER, .via.i64 = -1},
		{.type = MSGPACK_OBJECT_STR, .via.str = {3, "a\0b"}},
	};

	for (uint32_t i = 0; i < map->via.map.size; i++) {
		msgpack_object_kv *entry = &map->via.map.ptr[i];
		const msgpack_object right = entry->val;

		for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++) {
			entry->val = wrong[k];
			assert_int_equal(look(q->type, q->job, map),
					 may_be(q->type, &entry->key, &wrong[k]) ? 0 : -EBADMSG);
		}
		entry->val = right;
	}
}

static void test_each_is_needed(void **state)
{
	(void)state;
	for (size_t i = 0; i < QUESTIONS; i++) {
		msgpack_unpacked map;
		msgpack_sbuffer body;

		peer_request_pack(&questions[i], &body);
		map = opened(&body);
		try_without_each(&questions[i], &map.data);
		try_others_for_each(&questions[i], &map.data);
		msgpack_unpacked_destroy(&map);
		msgpack_sbuffer_destroy(&body);
	}
}

/* --- what goes too far, or contradicts itself ----------------------------------------------- */

static int look_again(const struct peer_request *q)
{
	msgpack_sbuffer body;

	peer_request_pack(q, &body);
	return look_at(q->type, q->job, &body);
}

static void test_another_job(void **state)
{
	struct job_order mine = order;
	struct peer_request q = questions[0];
	struct job_report r = reports[0];

	(void)state;
	q.order = &mine;
	strcpy(mine.home, "elsewhere"); /* the head names "there" as the home */
	assert_int_equal(look_again(&q), -EBADMSG);
	strcpy(mine.home, "there");
	strcpy(mine.job, "there-0f-8");
	assert_int_equal(look_again(&q), -EBADMSG);
	strcpy(mine.job, "../there");
	strcpy(q.job, "../there");
	assert_int_equal(look_again(&q), -EBADMSG);
	q = questions[2];
	q.done.reports = &r;
	q.done.count = 1;
	assert_int_equal(look_again(&q), 0);
	strcpy(r.job, "here-0f-9");
	assert_int_equal(look_again(&q), -EBADMSG);
	strcpy(r.job, "here-0f-1");
	strcpy(r.state, "asleep");
	assert_int_equal(look_again(&q), -EBADMSG);
}

static void test_too_many_reports(void **state)
{
	struct job_report many[JOB_REPORTS_MAX + 1];
	struct peer_request q = {.type = PEER_DONE, .job = "here-0f-1", .done = {many, 0}};

	(void)state;
	for (size_t i = 0; i <= JOB_REPORTS_MAX; i++)
		many[i] = reports[0];
	q.done.count = JOB_REPORTS_MAX;
	assert_int_equal(look_again(&q), 0);
	q.done.count = JOB_REPORTS_MAX + 1;
	assert_int_equal(look_again(&q), -EBADMSG);
	q.done.count = 5;
	many[4].cpu_ms = -1; /* one report is invalid, so none is taken */
	assert_int_equal(look_again(&q), -EBADMSG);
}

static void test_numbers(void **state)
{
	struct peer_request q = questions[3];

	(void)state;
	q.kill.signal = 0;
	assert_int_equal(look_again(&q), 0);
	q.kill.signal = 65;
	assert_int_equal(look_again(&q), -EBADMSG);
	q = questions[5];
	q.hello.port = 1;
	assert_int_equal(look_again(&q), 0);
	q.hello.port = 0;
	assert_int_equal(look_again(&q), -EBADMSG);
	q.hello.port = 65534; /* the two ports above it must be valid, too */
	assert_int_equal(look_again(&q), -EBADMSG);
	q = questions[5];
	q.hello.address[0] = 0;
	assert_int_equal(look_again(&q), -EBADMSG);
	q = questions[7];
	q.attach.hops = 0;
	assert_int_equal(look_again(&q), 0);
	q.attach.hops = 2;
	assert_int_equal(look_again(&q), -EBADMSG);
	q.attach.hops = 1;
	q.attach.uid = (uid_t)-1;
	assert_int_equal(look_again(&q), -EBADMSG);
}

/*
 * --- answers ------------------------------------------------------------------------------------
 */

static int take_answer(struct peer_answer *answer, enum peer_type type, msgpack_sbuffer *body)
{
	msgpack_unpacked map = opened(body);
	int rc = peer_answer_unpack(answer, type, &map.data);

	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(body);
	return rc;
}

static int pack_and_take(struct peer_answer *answer, enum peer_type type,
			 const struct peer_answer *packed)
{
	msgpack_sbuffer body;

	msgpack_sbuffer_init(&body);
	peer_answer_pack(type, packed, &body);
	return take_answer(answer, type, &body);
}

static void test_answers(void **state)
{
	struct peer_answer packed, answer;

	(void)state;
	for (int type = PEER_STARTED; type < PEER_TYPES; type++) {
		packed = (struct peer_answer){
			.ok = true, .error = -EPERM, .taken = 4, .key = {.epoch = 5, .next = 6}};
		if (type == PEER_ATTACH || type == PEER_USER || type == PEER_MOVABLE)
			continue; /* test_ticket, test_user_answers, test_moves */
		assert_int_equal(pack_and_take(&answer, (enum peer_type)type, &packed), 0);
		assert_true(answer.ok);
		assert_string_equal(answer.text, "");
		/* `error` is set only in this node's own answers */
		assert_int_equal(answer.error, 0);
		assert_int_equal(answer.taken, type == PEER_DONE ? 4 : 1);
		assert_int_equal(answer.key.epoch, type == PEER_KEY ? 5 : 0);
		assert_int_equal(answer.key.next, type == PEER_KEY ? 6 : 0);
		peer_answer_refuse(&packed, "no job %s", "here-0f-1");
		assert_int_equal(pack_and_take(&answer, (enum peer_type)type, &packed), 0);
		assert_false(answer.ok);
		assert_string_equal(answer.text, "no job here-0f-1");
	}
}

/* The order of a job that may move, and what home decides. */
static void test_moves(void **state)
{
	struct peer_answer packed = {.ok = true, .order = {"an order", 8}}, answer;
	msgpack_sbuffer body;
	msgpack_packer pk;

	(void)state;
	msgpack_sbuffer_init(&body);
	peer_answer_pack(PEER_MOVABLE, &packed, &body);
	{
		msgpack_unpacked map = opened(&body);

		assert_int_equal(peer_answer_unpack(&answer, PEER_MOVABLE, &map.data), 0);
		assert_int_equal(answer.order.length, 8);
		assert_memory_equal(answer.order.packed, "an order", 8);
		msgpack_unpacked_destroy(&map);
	}
	msgpack_sbuffer_destroy(&body);
	for (int i = 0; i < PEER_DECISIONS; i++) {
		packed = (struct peer_answer){.ok = true, .decision = (enum peer_decision)i};
		assert_int_equal(pack_and_take(&answer, PEER_HELD, &packed), 0);
		assert_int_equal(answer.decision, i);
	}
	/* A word that nobody knows decides nothing. */
	pack_begin(&pk, &body, 2);
	pack_bool(&pk, "ok", true);
	pack_str(&pk, "decision", "perhaps");
	assert_int_equal(take_answer(&answer, PEER_HELD, &body), -EBADMSG);
}

static void test_ticket(void **state)
{
	const struct peer_answer good = {.ok = true,
					 .attach = {.job = "here-0f-2",
						    .later = 1,
						    .node = "n3",
						    .address = "10.0.0.3",
						    .port = 7702,
						    .ticket = "0123456789abcdef0123456789abcdef",
						    .key = {1, 2, 3}}};
	struct peer_answer packed = good, answer;

	(void)state;
	assert_int_equal(pack_and_take(&answer, PEER_ATTACH, &packed), 0);
	assert_true(answer.ok);
	assert_memory_equal(&answer.attach, &good.attach, sizeof(answer.attach));
	packed.attach.port = 0;
	assert_int_equal(pack_and_take(&answer, PEER_ATTACH, &packed), -EBADMSG);
	packed = good;
	packed.attach.ticket[5] = 0;
	assert_int_equal(pack_and_take(&answer, PEER_ATTACH, &packed), -EBADMSG);
	packed = good;
	packed.attach.node[0] = 0;
	assert_int_equal(pack_and_take(&answer, PEER_ATTACH, &packed), -EBADMSG);
	packed = good;
	strcpy(packed.attach.job, "../x");
	assert_int_equal(pack_and_take(&answer, PEER_ATTACH, &packed), -EBADMSG);
	packed = good;
	packed.ok = false; /* a refusal has no ticket */
	assert_int_equal(pack_and_take(&answer, PEER_ATTACH, &packed), 0);
	assert_int_equal(answer.attach.port, 0);
}

static void test_grant(void **state)
{
	const struct peer_answer packed = {.grant = {.granted = true,
						     .lease_ms = 30000,
						     .nonce = "abc",
						     .boot_id = 7,
						     .sequence = 8,
						     .reason = "r",
						     .text = "t"}};
	struct peer_answer answer;

	(void)state;
	assert_int_equal(pack_and_take(&answer, PEER_ADMIT, &packed), 0);
	assert_memory_equal(&answer.grant.boot_id, &packed.grant.boot_id,
			    2 * sizeof(packed.grant.boot_id));
	assert_true(answer.grant.granted);
	assert_int_equal(answer.grant.lease_ms, 30000);
	assert_string_equal(answer.grant.nonce, "abc");
	assert_string_equal(answer.grant.reason, "r");
	assert_string_equal(answer.grant.text, "t");
}

/*
 * A grant needs its nonce and the node whose vector counts the job; a refusal needs no more than
 * "no".
 */
static void test_incomplete_grants(void **state)
{
	static const char *const keys[] = {"nonce", "boot_id", "sequence"};

	(void)state;
	for (int lacks = 0; lacks <= 3; lacks++) {
		for (int granted = 0; granted < 2; granted++) {
			struct peer_answer answer;
			msgpack_sbuffer body;
			msgpack_packer pk;

			pack_begin(&pk, &body, lacks == 3 ? 4 : 3);
			pack_bool(&pk, "grant", granted);
			for (int k = 0; k < 3; k++)
				if (k != lacks && k == 0)
					pack_str(&pk, keys[k], "abc");
				else if (k != lacks)
					pack_u64(&pk, keys[k], 7);
			assert_int_equal(take_answer(&answer, PEER_ADMIT, &body),
					 granted && lacks < 3 ? -EBADMSG : 0);
			assert_string_equal(answer.grant.reason, "refused");
			assert_int_equal(answer.grant.lease_ms, 0);
		}
	}
}

/* A lease that is longer than there are any is none. */
static void test_long_lease(void **state)
{
	struct peer_answer answer;
	msgpack_sbuffer body;
	msgpack_packer pk;

	(void)state;
	pack_begin(&pk, &body, 2);
	pack_bool(&pk, "grant", false);
	pack_u64(&pk, "lease_ms", UINT32_MAX + 30000ull);
	assert_int_equal(take_answer(&answer, PEER_ADMIT, &body), 0);
	assert_int_equal(answer.grant.lease_ms, 0);
}

static int answer_user(const void *json, size_t length, struct peer_answer *answer)
{
	const struct peer_answer packed = {.ok = true, .user = {json, length}};

	return pack_and_take(answer, PEER_USER, &packed);
}

/* A document is there and bounded; a refusal has none. */
static void test_user_answers(void **state)
{
	static char large[PEER_DOCUMENT_MAX + 1];
	struct peer_answer answer;

	(void)state;
	assert_int_equal(answer_user("{}", 2, &answer), 0);
	assert_int_equal(answer.user.length, 2);
	assert_int_equal(answer_user("", 0, &answer), -EBADMSG);
	assert_int_equal(answer_user(large, PEER_DOCUMENT_MAX, &answer), 0);
	assert_int_equal(answer_user(large, PEER_DOCUMENT_MAX + 1, &answer), -EBADMSG);
	peer_answer_refuse(&answer, "not %s", "you");
	assert_int_equal(pack_and_take(&answer, PEER_USER, &(struct peer_answer){.text = "no"}), 0);
	assert_false(answer.ok);
	assert_string_equal(answer.text, "no");
	assert_null(answer.user.json);
}

static int question_user(const char *credential, size_t n, size_t length)
{
	static const char ask[USER_ASK_MAX + 1];
	msgpack_sbuffer body;
	msgpack_packer pk;

	pack_begin(&pk, &body, 2);
	pack_key(&pk, "cred");
	msgpack_pack_str(&pk, n);
	msgpack_pack_str_body(&pk, credential, n);
	pack_bin(&pk, "ask", ask, length);
	return look_at(PEER_USER, "", &body);
}

/* What comes with a user's question is bounded, and its credential is a text. */
static void test_user_questions(void **state)
{
	static char credential[USER_ASK_CREDENTIAL_MAX + 1];

	(void)state;
	memset(credential, 'M', sizeof(credential));
	assert_int_equal(question_user(credential, 1, 1), 0);
	assert_int_equal(question_user(credential, USER_ASK_CREDENTIAL_MAX, USER_ASK_MAX), 0);
	assert_int_equal(question_user(credential, 0, 1), -EBADMSG);
	assert_int_equal(question_user(credential, 1, 0), -EBADMSG);
	assert_int_equal(question_user(credential, USER_ASK_CREDENTIAL_MAX + 1, 1), -EBADMSG);
	assert_int_equal(question_user(credential, 1, USER_ASK_MAX + 1), -EBADMSG);
	assert_int_equal(question_user("M\0M", 3, 1), -EBADMSG);
}

static void test_incomplete_answers(void **state)
{
	(void)state;
	for (int type = 0; type < PEER_TYPES; type++) {
		struct peer_answer answer;
		msgpack_sbuffer body;
		msgpack_packer pk;

		pack_begin(&pk, &body, 0);
		assert_int_equal(take_answer(&answer, (enum peer_type)type, &body), -EBADMSG);
		pack_begin(&pk, &body, 2); /* neither is a boolean */
		pack_u64(&pk, "ok", 1);
		pack_u64(&pk, "grant", 1);
		assert_int_equal(take_answer(&answer, (enum peer_type)type, &body), -EBADMSG);
	}
}

/* An older home says neither why nor how many. */
static void test_short_answers(void **state)
{
	struct peer_answer answer;
	msgpack_sbuffer body;
	msgpack_packer pk;

	(void)state;
	pack_begin(&pk, &body, 1);
	pack_bool(&pk, "ok", true);
	assert_int_equal(take_answer(&answer, PEER_DONE, &body), 0);
	assert_int_equal(answer.taken, 1);
	assert_string_equal(answer.text, "");
	pack_begin(&pk, &body, 2);
	pack_bool(&pk, "ok", true);
	pack_u64(&pk, "taken", 0); /* an answer that is OK takes at least one report */
	assert_int_equal(take_answer(&answer, PEER_DONE, &body), 0);
	assert_int_equal(answer.taken, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_away_refused),
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_what_they_say),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_running_or_ended),
		cmocka_unit_test(test_each_is_needed),
		cmocka_unit_test(test_another_job),
		cmocka_unit_test(test_too_many_reports),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_ticket),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_grant),
		cmocka_unit_test(test_incomplete_grants),
		cmocka_unit_test(test_long_lease),
		cmocka_unit_test(test_user_answers),
		cmocka_unit_test(test_user_questions),
		cmocka_unit_test(test_incomplete_answers),
		cmocka_unit_test(test_short_answers),
	};

	return cmocka_run_group_tests_name("peer_message", tests, NULL, NULL);
}
