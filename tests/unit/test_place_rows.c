/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Home from the request to the answer: who is asked, what the client and the journal get, and
 * that a row stays small in a large cluster.  The guests are played.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/home/home_own.h"
#include "agent/jobs/leases.h"
#include "tests/unit/placement_fixture.h"
#include "user/clock.h"
#include "user/pack.h"

static struct settings set;
static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters, .set = &set, .boot_id = 0xcafe};
static struct matrix matrix;
static struct skews skews;
static struct journal *journal;
static struct profile_store *profiles;
static struct home *home;

/* The played guests: which of them refuse, and which ones were asked. */
static struct {
	const char *refuses[4];
	struct job_order order; /* the last order */
	char asked[200];
	double home_load;
} guests;

/* The answer that the client got. */
static struct {
	struct placement answer;
	bool answered;
	char why[400];
} client;

static void own_vector(void *arg, struct iocom_vector *own)
{
	(void)arg;
	*own = fixture_vector("n1", guests.home_load);
}

static bool mute(void *arg)
{
	(void)arg;
	return false;
}

static bool refuses(const char *node)
{
	for (size_t i = 0; i < 4; i++)
		if (guests.refuses[i] && !strcmp(guests.refuses[i], node))
			return true;
	return false;
}

static int ask_guest(void *arg, const char *node, const char *address, uint16_t port,
		     const struct peer_request *request, peers_answered answered, void *place,
		     struct iocom_err *err)
{
	struct peer_answer answer = {.grant = {.granted = !refuses(node)}};

	(void)arg;
	(void)err;
	assert_int_equal(request->type, PEER_ADMIT);
	assert_true(!strcmp(node, "n1") ? !*address && !port : *address && port == 7700);
	guests.order = *request->order;
	strcat(strcat(guests.asked, " "), node);
	answer.grant.lease_ms = request->order->lease_ms;
	strcpy(answer.grant.nonce, "0123456789abcdef");
	strcpy(answer.grant.reason, "path-missing");
	strcpy(answer.grant.text, "no \xff here");
	answered(place, 0, &answer, NULL);
	return 0;
}

static void placed(void *arg, json_t *answer, const char *why)
{
	assert_ptr_equal(arg, &client);
	assert_false(client.answered);
	client.answered = true;
	if (!answer) {
		snprintf(client.why, sizeof(client.why), "%s", why);
		return;
	}
	assert_int_equal(placement_read(&client.answer, answer, "it", NULL), 0);
	json_decref(answer);
}

/* A cluster of NODES. */
static void up(size_t nodes, double home_load)
{
	const struct home_config config = {
		.base = &base,
		.journal = journal,
		.profiles = profiles,
		.matrix = &matrix,
		.skews = &skews,
		.ports = {.own_vector = own_vector, .mute = mute, .ask = ask_guest},
	};
	struct placement p;

	base.boot_id++;
	memset(&guests, 0, sizeof(guests));
	guests.home_load = home_load;
	placement_init(&p);
	fixture_nodes(&p, &matrix, nodes, home_load);
	placement_fini(&p);
	assert_int_equal(home_new(&home, &config, NULL), 0);
}

static void down(void)
{
	home_free(home);
	matrix_fini(&matrix);
}

static int setup(void **state)
{
	(void)state;
	strcpy(set.name, "n1");
	strcpy(set.policy, "iocm-re");
	strcpy(set.munge_socket, "/munge");
	set.lease_s = 30;
	log_.level = LOG_L_ERROR;
	if (loop_new_virtual(&base.loop, 3600 * CLOCK_NS_PER_S, clock_real_ns(), NULL))
		return -1;
	return journal_open(&journal, ":memory:", NULL) || profile_open(&profiles, ":memory:", NULL)
		       ? -1
		       : 0;
}

static int teardown(void **state)
{
	(void)state;
	journal_close(journal);
	profile_close(profiles);
	loop_free(base.loop);
	return 0;
}

static struct placement_ask usual(void)
{
	struct placement_ask ask;

	placement_ask_init(&ask);
	strcpy(ask.cwd, "/tmp");
	strcpy(ask.executable, "/bin/sort");
	strcpy(ask.command, "sort big");
	strcpy(ask.class_name, "sort");
	ask.need.value[NEED_IO_PER_S] = 200;
	ask.run = true;
	return ask;
}

/* Sends ASK to home; `client` gets the answer. */
static void submit(const struct placement_ask *ask)
{
	msgpack_unpacked map;
	msgpack_sbuffer b;

	placement_fini(&client.answer);
	client.answered = false;
	client.why[0] = guests.asked[0] = 0;
	loop_advance(base.loop, CLOCK_NS_PER_MS); /* the newest row comes last */
	placement_ask_pack(ask, &b);
	assert_int_equal(unpack_map(&map, b.data, b.size), 0);
	home_place(home, 1000, &map.data, placed, &client);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&b);
	assert_true(client.answered);
}

/* The row of the last job, and how many bytes it has. */
static size_t last_row(struct placement *row)
{
	struct iocom_err err = {0};
	json_t *document;
	size_t length;
	uid_t owner;
	char *text;

	assert_int_equal(journal_place(journal, "last", 1000, &text, &owner, &err), 0);
	length = strlen(text);
	document = json_loads(text, 0, NULL);
	assert_non_null(document);
	assert_null(strstr(text, "0123456789abcdef")); /* only the client gets the nonce */
	assert_int_equal(placement_read(row, document, "it", &err), 0);
	json_decref(document);
	free(text);
	return length;
}

/* The key of the client's streams, from the secret of GUESTS' last order, in hex. */
static void order_key(char text[2 * SECRET_KEY + 1])
{
	uint8_t key[SECRET_KEY];

	assert_true(guests.order.keyed);
	secret_derive(key, guests.order.secret, SECRET_STREAM, guests.order.job, "");
	secret_text(text, key);
}

/* Each attempt at another node has a secret of its own, of which only its client gets the key. */
static void test_keys(void **state)
{
	struct placement_ask ask = usual();
	uint8_t first[SECRET_BYTES];
	char key[2 * SECRET_KEY + 1];
	struct placement row;
	json_t *public;

	(void)state;
	up(5, 9);
	submit(&ask);
	order_key(key);
	assert_string_equal(client.answer.key, key);
	public = placement_public(&client.answer);
	assert_null(json_object_get(public, "key"));
	json_decref(public);
	placement_init(&row);
	last_row(&row);
	assert_string_equal(row.key, "");
	placement_fini(&row);
	memcpy(first, guests.order.secret, sizeof(first));
	submit(&ask);
	assert_memory_not_equal(first, guests.order.secret, sizeof(first));
	/* A node that refused does not know the secret of the next. */
	guests.refuses[0] = client.answer.node[1] == '2' ? "n2" : "n3";
	memcpy(first, guests.order.secret, sizeof(first));
	ask.restarts = -1;
	submit(&ask);
	order_key(key);
	assert_string_equal(client.answer.key, key);
	/* At home the client comes through the local socket. */
	strcpy(ask.node, "n1");
	submit(&ask);
	assert_false(guests.order.keyed);
	assert_string_equal(client.answer.key, "");
	/* A restartable job's secret is in the journal, for its renewals. */
	strcpy(ask.node, "n4");
	ask.restarts = 1;
	submit(&ask);
	order_key(key);
	assert_string_equal(client.answer.key, key);
	assert_int_equal(journal_lease_secret(journal, guests.order.job, first, NULL), 0);
	assert_memory_equal(first, guests.order.secret, sizeof(first));
	down();
}

static void test_placed(void **state)
{
	struct placement_ask ask = usual();
	struct placement row;

	(void)state;
	up(5, 9);
	strcpy(ask.comment, "of the night");
	ask.picked = true;
	submit(&ask);
	assert_true(client.answer.placed && !client.answer.forced);
	assert_string_not_equal(client.answer.node, "n1");
	assert_string_equal(client.answer.nonce, "0123456789abcdef");
	assert_string_equal(client.answer.munge_socket, "/munge");
	assert_string_equal(client.answer.address, "10.0.0.1");
	assert_int_equal(client.answer.port, 7702);
	assert_int_equal(client.answer.attempt, 0);
	assert_int_equal(client.answer.nnodes, 5);
	assert_true(client.answer.need.source[NEED_IO_PER_S] == NEED_OPTION);
	assert_string_equal(guests.order.command, "sort big");
	assert_string_equal(guests.order.cwd, "/tmp");
	assert_string_equal(guests.order.class_name, "sort");
	assert_true(guests.order.need.value[NEED_IO_PER_S] == 200 && !guests.order.forced);
	last_row(&row);
	assert_string_equal(row.job, client.answer.job);
	assert_string_equal(row.node, client.answer.node);
	assert_string_equal(row.ask.comment, "of the night");
	assert_true(row.ask.picked && client.answer.ask.picked);
	assert_string_equal(client.answer.ask.comment, "of the night");
	assert_int_equal(row.seed, client.answer.seed);
	assert_true(json_equal(row.plan.document, client.answer.plan.document));
	placement_fini(&row);
	down();
}

/* Each node that refuses is kept with its reason, in valid UTF-8; home is the last. */
static void test_refused(void **state)
{
	struct placement_ask ask = usual();
	struct placement row;

	(void)state;
	up(5, 9);
	submit(&ask);
	guests.refuses[0] = strdup(client.answer.node);
	submit(&ask);
	assert_int_equal(client.answer.nrefused, 1);
	assert_string_equal(client.answer.refused[0].node, guests.refuses[0]);
	assert_string_equal(client.answer.refused[0].text, "no \xef\xbf\xbd here");
	assert_string_not_equal(client.answer.node, guests.refuses[0]);
	/* If the user named a node, its refusal is final. */
	ask.run = true;
	strcpy(ask.node, guests.refuses[0]);
	submit(&ask);
	assert_non_null(strstr(client.why, "refused the job (path-missing)"));
	assert_true(guests.order.forced);
	last_row(&row);
	assert_true(row.failed && row.forced && !row.placed);
	assert_string_equal(row.node, guests.refuses[0]);
	assert_int_equal(row.nrefused, 1);
	placement_fini(&row);
	free((char *)guests.refuses[0]);
	/* No node takes the job. */
	ask.node[0] = 0;
	guests.refuses[0] = "n1";
	guests.home_load = 0;
	submit(&ask);
	assert_string_equal(client.why, "node n1 cannot take the job: no \xff here");
	assert_string_equal(guests.asked, " n1");
	last_row(&row);
	assert_true(row.failed && !row.placed);
	assert_string_equal(row.node, "");
	placement_fini(&row);
	down();
}

/* What the view that the client got says of the job at NODE. */
static struct rules_expectation expected_at(const char *node)
{
	char *text = json_dumps(client.answer.view, 0);
	struct rules_expectation out = {0};
	struct iocom_err err = {0};
	struct rules_view *indexed;
	struct view_policy policy;
	struct view_question q;
	struct view_file v;
	uint32_t at = 0;

	assert_non_null(text);
	assert_int_equal(view_file_decode("it", text, strlen(text), &v, &err), 0);
	free(text);
	while (strcmp(v.nodes[at].node.name, node) != 0)
		assert_true(++at < v.nnodes);
	assert_int_equal(view_index(&v, NULL, &indexed, &err), 0);
	q = (struct view_question){.params = &v.params,
				   .job = &v.job,
				   .seed = v.seed,
				   .home = v.home,
				   .home_node = &v.nodes[v.home].node};
	assert_int_equal(view_policy_parse(client.answer.policy, &policy, &err), 0);
	assert_int_equal(view_expect(indexed, &q, policy.policy, &at, 1, &out), 0);
	rules_view_free(indexed);
	view_file_fini(&v);
	return out;
}

/* Submits ASK; answer and row must tell what is expected at NODE, where it runs. */
static struct rules_expectation must_expect(const struct placement_ask *ask, const char *node)
{
	const struct rules_expectation *told = &client.answer.expectation;
	struct rules_expectation right;
	struct placement row;

	submit(ask);
	if (node)
		assert_string_equal(client.answer.node, node);
	right = expected_at(client.answer.node);
	assert_true(told->known && told->there_ms > 0 && told->home_ms > 0);
	assert_true(told->there_ms == right.there_ms && told->home_ms == right.home_ms);
	assert_true(told->there_factor == 1 && told->home_factor == 1);
	if (ask->run) {
		last_row(&row);
		assert_true(row.expectation.known && row.expectation.there_ms == told->there_ms &&
			    row.expectation.home_ms == told->home_ms);
		placement_fini(&row);
	}
	return *told;
}

/* The expectation is that of the node that takes the job, not of the one that was chosen. */
static void test_expected_where_it_runs(void **state)
{
	struct placement_ask ask = usual();
	struct rules_expectation first, second;
	struct placement row;
	char chosen[3][IOCOM_NAME_MAX];

	(void)state;
	up(5, 9);
	ask.view = true;
	ask.run = false; /* so that nothing is charged */
	first = must_expect(&ask, NULL);
	assert_true(client.answer.plan.ncandidates >= 3 && first.there_ms < first.home_ms);
	for (int i = 0; i < 3; i++)
		strcpy(chosen[i], client.answer.plan.candidates[i]);
	assert_string_equal(client.answer.node, chosen[0]);
	ask.run = true;
	guests.refuses[0] = chosen[0];
	second = must_expect(&ask, chosen[1]);
	assert_true(second.there_ms > first.there_ms && second.home_ms == first.home_ms);
	guests.refuses[1] = chosen[1];
	guests.refuses[2] = chosen[2];
	second = must_expect(&ask, "n1");
	assert_true(second.there_ms == second.home_ms && second.home_ms == first.home_ms);
	/* The user's choice, which no policy would take. */
	memset(guests.refuses, 0, sizeof(guests.refuses));
	strcpy(ask.node, chosen[2]);
	strcpy(ask.policy, "nlb");
	second = must_expect(&ask, chosen[2]);
	assert_true(second.there_ms != second.home_ms);
	strcpy(ask.node, "n1");
	second = must_expect(&ask, "n1");
	assert_true(second.there_ms == second.home_ms);
	/* Each policy has its own formula. */
	strcpy(ask.policy, "least-delay");
	ask.run = false;
	first = must_expect(&ask, "n1");
	assert_true(fabs(first.there_ms - second.there_ms) > 1);
	ask.run = true;
	/* A job that no node took ran nowhere. */
	guests.refuses[0] = "n1";
	submit(&ask);
	last_row(&row);
	assert_true(row.failed && !row.expectation.known);
	placement_fini(&row);
	down();
}

/* Without an option and without a profile there is only a default, and nothing is expected. */
static void test_nothing_is_expected_of_the_unknown(void **state)
{
	static const enum need_field telling[] = {NEED_CPU_S, NEED_REQUESTS, NEED_IO_PER_S};
	struct placement_ask ask = usual();
	struct placement row;

	(void)state;
	up(3, 9);
	ask.need.value[NEED_IO_PER_S] = -1;
	ask.need.value[NEED_MEMORY_MB] = 20; /* says nothing of a time */
	submit(&ask);
	assert_true(client.answer.placed && !client.answer.expectation.known);
	last_row(&row);
	assert_true(row.placed && !row.expectation.known);
	assert_null(json_object_get(row.document, "expected"));
	placement_fini(&row);
	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		need_options_init(&ask.need);
		ask.need.value[telling[i]] = 2;
		submit(&ask);
		assert_true(client.answer.placed && client.answer.expectation.known);
	}
	down();
}

/* A login begins in "/" where its directory is missing. */
static void test_login(void **state)
{
	struct placement_ask ask = usual();

	(void)state;
	up(2, 0);
	ask.home_dir = true;
	submit(&ask);
	assert_string_equal(client.answer.directory, "/tmp");
	guests.refuses[0] = "n1";
	submit(&ask);
	assert_string_equal(guests.asked, " n1 n1");
	assert_string_equal(guests.order.cwd, "/");
	down();
}

static void test_asked_only(void **state)
{
	struct placement_ask ask = usual();
	struct journal_rows rows;
	struct placement row;

	(void)state;
	up(3, 9);
	ask.run = false;
	ask.view = true;
	submit(&ask);
	assert_string_equal(guests.asked, "");
	assert_true(*client.answer.node && !client.answer.placed && !*client.answer.job);
	assert_int_equal(json_array_size(json_object_get(client.answer.view, "nodes")), 3);
	journal_rows(journal, &rows);
	assert_int_equal(rows.home, 0);
	/*
	 * The nodes that the decision looked at are for the client only: a row with all of them
	 * would grow with the cluster.
	 */
	ask.run = true;
	submit(&ask);
	assert_non_null(client.answer.view);
	last_row(&row);
	assert_null(row.view);
	placement_fini(&row);
	down();
}

static void test_mistakes(void **state)
{
	struct placement_ask ask = usual();

	(void)state;
	up(3, 0);
	strcpy(ask.node, "n9");
	submit(&ask);
	assert_string_equal(client.why, "node 'n9' is unknown here; known nodes: n1, n2, n3");
	ask = usual();
	strcpy(ask.policy, "best");
	submit(&ask);
	assert_non_null(strstr(client.why, "unknown policy 'best'"));
	ask = usual();
	ask.cwd[0] = 0;
	submit(&ask);
	assert_string_equal(client.why, "the request lacks \"cwd\" or \"executable\"");
	ask = usual();
	strcpy(ask.again, "n1-0000cafe-1");
	submit(&ask);
	assert_string_equal(client.why, "\"again\" without \"restarts\"");
	ask.restarts = 3;
	submit(&ask);
	assert_string_equal(client.why, "no restartable job of yours named n1-0000cafe-1");
	assert_string_equal(guests.asked, "");
	down();
}

static void test_attempts(void **state)
{
	struct placement_ask ask = usual();
	char first[SPEC_JOB_MAX];

	(void)state;
	up(3, 9);
	ask.restarts = 2;
	submit(&ask);
	snprintf(first, sizeof(first), "%s", client.answer.job);
	assert_int_equal(client.answer.attempt, 1);
	assert_int_equal(client.answer.restarts, 2);
	assert_string_equal(client.answer.first, first);
	assert_int_equal(client.answer.lease_ms, 30000);
	strcpy(ask.again, first);
	submit(&ask); /* the job may still run there */
	assert_true(client.answer.lost.wait_ms > 0 && !client.answer.placed);
	assert_int_equal(journal_home_end(journal,
					  &(struct journal_job){.job = first,
								.state = "exited",
								.exit_kind = 0,
								.exit_value = 7,
								.end_ns = 5},
					  NULL),
			 0);
	submit(&ask);
	assert_string_equal(client.answer.lost.state, "exited");
	assert_int_equal(client.answer.lost.value, 7);
	down();
}

static bool shows(const struct placement *p, const char *name)
{
	size_t times = 0;

	for (size_t i = 0; i < p->nnodes; i++)
		times += !strcmp(p->nodes[i].vector.name, name);
	assert_true(times <= 1);
	return times;
}

static void must_show_plan(const struct placement *p)
{
	assert_true(p->nodes[0].self && shows(p, "n1") && shows(p, p->plan.node));
	for (size_t i = 0; i < p->plan.nreasons; i++)
		assert_true(shows(p, p->plan.reasons[i].node));
	for (size_t i = 0; i < p->plan.ncandidates; i++)
		assert_true(shows(p, p->plan.candidates[i]));
	for (size_t i = 0; i < p->plan.ntied; i++)
		assert_true(shows(p, p->plan.tied[i]));
}

/*
 * A small cluster's row has all nodes; a large one's has home and the nodes that the decision
 * names.
 */
static void test_nodes_shown(void **state)
{
	struct placement_ask ask = usual();
	const struct placement *p = &client.answer;

	(void)state;
	up(PLACEMENT_ROW_WHOLE, 9);
	submit(&ask);
	assert_int_equal(p->nnodes, PLACEMENT_ROW_WHOLE);
	assert_int_equal(placement_known(p), PLACEMENT_ROW_WHOLE);
	assert_false(p->room_elsewhere); /* room of the nodes that are not shown; there are none */
	assert_true(placement_room_elsewhere(p));
	down();
	up(300, 9);
	strcpy(ask.node, "n277");
	submit(&ask);
	assert_true(shows(p, "n277"));
	must_show_plan(p);
	assert_int_equal(placement_known(p), 300);
	assert_true(p->room_elsewhere && p->nnodes < 60);
	ask.need.value[NEED_MEMORY_MB] = 901; /* each node has at most 900 MB left */
	submit(&ask);
	assert_false(p->room_elsewhere || placement_room_elsewhere(p));
	ask.need.value[NEED_MEMORY_MB] = 900;
	ask.node[0] = 0;
	submit(&ask);
	must_show_plan(p); /* most of the nodes refused */
	ask.run = false;
	submit(&ask);
	assert_int_equal(p->nnodes, 300); /* a client that only asks gets all nodes */
	assert_true(placement_room_elsewhere(p));
	ask.brief = true; /* it prints no more */
	submit(&ask);
	assert_true(shows(p, p->home) && shows(p, p->plan.node) && p->nnodes <= 2);
	assert_int_equal(placement_known(p), 300);
	assert_true(placement_room_elsewhere(p) && p->plan.nreasons > 2);
	strcpy(ask.node, "n277");
	submit(&ask);
	assert_true(shows(p, "n277"));
	ask.node[0] = 0;
	ask.need.value[NEED_DATA_MB] = 5; /* its sentences compare the ways to all */
	submit(&ask);
	assert_int_equal(p->nnodes, 300);
	down();
}

/* The row of a job that runs, for clusters of three sizes. */
static void test_row_size(void **state)
{
	size_t of[3], idle[3];

	(void)state;
	for (size_t i = 0, nodes = 10; i < 3; i++, nodes *= 10) {
		struct placement_ask ask = usual();
		struct placement row;

		up(nodes, 9);
		submit(&ask);
		of[i] = last_row(&row);
		/* A client that runs a job gets the examined nodes, as the row has them. */
		assert_int_equal(placement_known(&client.answer), nodes);
		assert_in_range(client.answer.nnodes, 2, 60);
		assert_int_equal(client.answer.nnodes, row.nnodes);
		assert_int_equal(placement_known(&row), nodes);
		placement_fini(&row);
		guests.home_load = 0;
		submit(&ask);
		idle[i] = last_row(&row);
		placement_fini(&row);
		down();
	}
	printf("# |a job's row in the journal: %zu, %zu, %zu bytes with 10, 100, 1000 nodes; "
	       "%zu, %zu, %zu where home keeps it\n",
	       of[0], of[1], of[2], idle[0], idle[1], idle[2]);
	assert_true(of[2] < of[1] + 1000 && of[2] < 80000);
	assert_true(idle[2] < idle[0] + 200 && idle[2] < 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_placed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expected_where_it_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_expected_of_the_unknown, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_login, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_attempts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nodes_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_row_size, setup, teardown),
	};
	int rc;

	placement_init(&client.answer);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	placement_fini(&client.answer);
	return rc;
}
