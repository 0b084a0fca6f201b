/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See asks.h. */
#include "tests/lib/asks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/cluster/peer_requests.h"
#include "agent/jobs/journal.h"
#include "user/frame.h"
#include "user/pack.h"

/* --- programs ----------------------------------------------------------------- */

void asks_on(struct whole *w, int fd, struct question q)
{
	msgpack_sbuffer map;
	msgpack_packer pk;

	pack_begin(&pk, &map, 3u + (q.job != NULL) + (q.signal != 0));
	pack_str(&pk, "op", q.op);
	if (q.job)
		pack_str(&pk, "job", q.job);
	pack_bool(&pk, "now", q.now);
	pack_bool(&pk, "all", q.all);
	if (q.signal)
		pack_u64(&pk, "signal", (uint64_t)q.signal);
	assert_int_equal(whole_ask(fd, map.data, map.size), 0);
	msgpack_sbuffer_destroy(&map);
	whole_pass_ms(w, 1);
}

int asks(struct whole *w, uid_t uid, struct question q)
{
	int fd = whole_client(w, uid);

	assert_true(fd >= 0);
	asks_on(w, fd, q);
	return fd;
}

static const char *read_one(int fd, uint8_t wanted)
{
	static char text[65536];
	uint8_t type = 0;

	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 1);
	if (type != wanted)
		print_error("%s\n", text);
	assert_int_equal(type, wanted);
	close(fd);
	return text;
}

void reads_error(int fd, const char *sentence)
{
	assert_string_equal(read_one(fd, FRAME_ERROR), sentence);
}

json_t *reads_json(int fd)
{
	json_t *document = json_loads(read_one(fd, FRAME_JSON), 0, NULL);

	assert_non_null(document);
	return document;
}

void reads_job(int fd, const char *name, const char *state, int value)
{
	json_t *document = reads_json(fd), *job = json_object_get(document, "job");

	assert_string_equal(json_string_value(json_object_get(job, "job")), name);
	assert_string_equal(json_string_value(json_object_get(job, "state")), state);
	assert_int_equal(json_integer_value(json_object_get(job, "exit_value")), value);
	json_decref(document);
}

void reads_nothing(int fd)
{
	char text[256];
	uint8_t type;

	assert_int_equal(whole_answers(fd, &type, text, sizeof(text)), 0);
}

/* --- jobs --------------------------------------------------------------------- */

static struct journal_job row_of(const struct whole *w, const char *job, uid_t uid)
{
	static uint64_t order;

	return (struct journal_job){
		.job = job,
		.uid = uid,
		.class_name = "sh",
		.command = "sh -c true",
		.home = "there",
		.node = "here",
		.policy = "iocm-re",
		.submit_ns = loop_real_ns(w->base.loop) + ++order,
	};
}

void submitted(struct whole *w, const char *job, uid_t uid, const char *node)
{
	const struct journal_job row = row_of(w, job, uid);

	assert_int_equal(journal_submit(w->journal, &row, NULL), 0);
	assert_int_equal(journal_placed(w->journal, job, node, "{\"node\":\"there\"}", NULL, NULL),
			 0);
	assert_int_equal(journal_home_state(w->journal, job, "running", 1, 77, NULL), 0);
}

void submitted_restartable(struct whole *w, const char *job, uid_t uid, const char *node)
{
	static const uint8_t secret[RENEWAL_SECRET] = {1};

	submitted(w, job, uid, node);
	assert_int_equal(journal_lease_begin(w->journal, job, job, 1, 2, 30000, secret, NULL), 0);
}

void accepted(struct whole *w, const char *job, uid_t uid)
{
	const struct journal_job row = row_of(w, job, uid);

	assert_int_equal(journal_accept(w->journal, &row, "", 0, NULL), 0);
	assert_int_equal(journal_started(w->journal, job, 1, 77, 0, NULL), 0);
}

/* --- other agents --------------------------------------------------------------- */

int shows(struct peers *peers, const char *from, uint64_t id, const struct peer_request *r,
	  msgpack_sbuffer *answer)
{
	struct control_head head = {.to = "here", .id = id};
	msgpack_sbuffer body, unseen;
	msgpack_unpacked map;
	int rc;

	snprintf(head.type, sizeof(head.type), "%s", peer_type_name(r->type));
	snprintf(head.from, sizeof(head.from), "%s", from);
	snprintf(head.job, sizeof(head.job), "%s", r->job);
	msgpack_sbuffer_init(&unseen);
	peer_request_pack(r, &body);
	assert_int_equal(unpack_map(&map, body.data, body.size), 0);
	rc = peer_requests_handle(peers, &head, &map.data, answer ? answer : &unseen);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&body);
	msgpack_sbuffer_destroy(&unseen);
	return rc;
}

int tells_end(struct whole *w, const char *node, const char *job, const char *state, int kind,
	      int value)
{
	static uint64_t id;
	struct job_report report = {
		.kind = (uint64_t)kind,
		.value = (uint64_t)value,
		.end_ns = loop_real_ns(w->base.loop),
	};
	struct peer_request r = {.type = PEER_DONE, .done = {&report, 1}};

	snprintf(report.job, sizeof(report.job), "%s", job);
	snprintf(report.state, sizeof(report.state), "%s", state);
	snprintf(r.job, sizeof(r.job), "%s", job);
	return shows(&w->peers, node, ++id, &r, NULL);
}
