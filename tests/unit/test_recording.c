/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Recordings: a reader reads what was written, every decision comes out the same again, and
 * every error says where it is.
 */
#include "tests/unit/view_fixture.h"

#include <errno.h>
#include <unistd.h>
#include <zlib.h>

#include "balancer/view/json_text.h"
#include "balancer/view/plan_json.h"
#include "balancer/view/recording.h"

static char path[64], packed[80];

static int setup(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/iocom-recording-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(packed, sizeof(packed), "%s.gz", path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(packed);
	return 0;
}

static struct recording_header header_of(enum rules_rates rates, bool live)
{
	struct recording_header h = {
		.live = live,
		.program = "test 1",
		.cluster = "3xfc",
		.source = "by hand",
		.hash = "sha256:0",
		.policy = "iocm-re",
		.start_ns = live ? 1790000000000000000u : 0,
		.seed = 7,
	};

	rules_params_default(&h.params, rates);
	return h;
}

static struct recorder *create(const char *to, const struct recording_header *h)
{
	struct iocom_err err = {0};
	struct recorder *r = NULL;

	if (recorder_open(to, h, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void finish(struct recorder *r)
{
	struct iocom_err err = {0};

	if (recorder_close(r, &err))
		fail_msg("%s", err.text);
}

static struct recording *open_it(const char *from)
{
	struct iocom_err err = {0};
	struct recording *r = NULL;

	if (recording_open(from, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static const struct recording_line *next(struct recording *r)
{
	const struct recording_line *line = NULL;
	struct iocom_err err = {0};
	int rc = recording_next(r, &line, &err);

	if (rc < 0)
		fail_msg("%s", err.text);
	return rc ? line : NULL;
}

/* --- decisions -------------------------------------------------------------------- */

/* Records the decision on V; the call gets all that the decision used. */
static void record_decision(struct recorder *r, double time_ms, const struct view_file *v,
			    const char *policy)
{
	struct iocom_err err = {0};
	struct view_decision made;
	struct view_policy p;
	struct recording_decision d = {
		.time_ms = time_ms,
		.job = "17",
		.home = v->home,
		.seed = v->seed,
		.params = &v->params,
		.request = &v->job,
		.changed = v->nodes,
		.nchanged = v->nnodes,
	};

	if (view_policy_parse(policy, &p, &err) || view_decide(v, &p, &made, &err))
		fail_msg("%s", err.text);
	snprintf(d.policy, sizeof(d.policy), "%s", policy);
	d.plan = &made.plan;
	d.nodes = made.nodes;
	d.moves = made.moves;
	d.nmoves = made.nmoves;
	if (recorder_decision(r, &d, &err))
		fail_msg("%s", err.text);
	view_decision_fini(&made);
}

/* Changes some nodes of the view, as time does. */
static void disturb(struct draws *d, struct view_file *v)
{
	for (uint32_t i = 0; i < v->nnodes; i++) {
		struct rules_task tasks[6];
		struct rules_node node;
		struct view_node from = {0};

		if (draw_chance(d, 0.6))
			continue;
		node = view_node_random(d, i, tasks);
		if (draw_chance(d, 0.7)) /* only the node's load changes */
			memcpy(&node.ram_mb, &v->nodes[i].node.ram_mb,
			       offsetof(struct rules_node, tasks) -
				       offsetof(struct rules_node, ram_mb));
		from.node = node;
		view_node_fini(&v->nodes[i]);
		assert_int_equal(view_node_copy(&v->nodes[i], &from), 0);
	}
	free(v->com_ms);
	free(v->corrections);
	v->com_ms = NULL;
	view_random_job(d, v);
	v->seed = draw_bits(d) & VIEW_SEED_MAX;
	v->params.w_io = draw(d, 1);
	v->home = (uint32_t)draw(d, v->nnodes);
}

static unsigned int record_views(const char *to, uint64_t seed)
{
	struct draws d = {seed};
	struct view_file v;
	struct recording_header h;
	struct recorder *r;
	unsigned int n = 0;

	view_random(&d, &v);
	h = header_of(v.params.rates, false);
	r = create(to, &h);
	for (uint32_t i = 0; i < v.nnodes; i++)
		assert_int_equal(recorder_node(r, 0, i, &v.nodes[i], NULL), 0);
	for (int step = 0; step < 6; step++) {
		/* In half of the steps the state itself changes, else only the decision's view. */
		for (uint32_t i = 0; step % 2 && i < v.nnodes; i++)
			assert_int_equal(recorder_node(r, step, i, &v.nodes[i], NULL), 0);
		for (int p = 0; p < RULES_POLICIES; p++, n++)
			record_decision(r, step, &v, rules_policy_name((enum rules_policy)p));
		record_decision(r, step, &v, "feedback+wal");
		n++;
		disturb(&d, &v);
	}
	finish(r);
	view_file_fini(&v);
	return n;
}

/* Makes every decision of the recording again. Returns how many there are. */
static unsigned int decide_again(const char *from, uint64_t seed)
{
	struct recording *r = open_it(from);
	const struct recording_line *line;
	struct iocom_err err = {0};
	unsigned int n = 0;

	while ((line = next(r))) {
		struct view_decision made;
		int rc;

		if (line->kind != RECORDING_DECISION)
			continue;
		n++;
		rc = recording_decide(r, 0, &made, &err);
		if (rc != 1)
			fail_msg("seed %llu, line %llu: %d %s", (unsigned long long)seed,
				 (unsigned long long)line->number, rc, err.text);
		view_decision_fini(&made);
	}
	assert_true(recording_complete(r));
	recording_close(r);
	return n;
}

static void test_decided_again(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 25; seed++) {
		const char *to = seed % 2 ? path : packed;
		unsigned int n = record_views(to, seed);

		assert_int_equal(decide_again(to, seed), n);
	}
}

/* The check finds a decision that was made differently. */
static void test_other_plan(void **state)
{
	struct recording_header h = header_of(RULES_RATES_COMPUTATION, false);
	struct rules_node n = node_fc("a");
	struct recorder *r = create(path, &h);
	struct view_decision made;
	struct view_policy p;
	struct view_file v;
	struct recording *in;

	(void)state;
	view_file_init(&v, RULES_RATES_COMPUTATION);
	v.job = job_cpu(1000);
	assert_int_equal(view_file_add(&v, &n), 0);
	strcpy(n.name, "b");
	assert_int_equal(view_file_add(&v, &n), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(recorder_node(r, 0, i, &v.nodes[i], NULL), 0);
	assert_int_equal(view_policy_parse("nlb", &p, NULL), 0);
	assert_int_equal(view_decide(&v, &p, &made, NULL), 0);
	made.plan.node = 1;
	{
		struct recording_decision d = {.job = "1",
					       .policy = "nlb",
					       .seed = 1,
					       .params = &v.params,
					       .request = &v.job,
					       .plan = &made.plan};

		assert_int_equal(recorder_decision(r, &d, NULL), 0);
	}
	view_decision_fini(&made);
	finish(r);
	in = open_it(path);
	assert_int_equal(next(in)->kind, RECORDING_NODE);
	assert_int_equal(next(in)->kind, RECORDING_NODE);
	assert_int_equal(recording_decide(in, 0, &made, NULL), -EINVAL);
	assert_int_equal(next(in)->kind, RECORDING_DECISION);
	assert_int_equal(recording_decide(in, 0, &made, NULL), 0);
	assert_int_equal(made.plan.node, 0);
	view_decision_fini(&made);
	recording_close(in);
	view_file_fini(&v);
}

/* --- a reader reads what was written ------------------------------------------------- */

/*
 * A decision by node n3, which sees n1 as its second node and does not see n2: the line names the
 * corrected nodes, so reading it back gives the same places.
 */
static void test_corrections_by_name(void **state)
{
	const struct rules_correction both[] = {{0, 0.5}, {1, 4}};
	const uint32_t order[] = {2, 0};
	struct recording_header h = header_of(RULES_RATES_COMPUTATION, false);
	struct recorder *r = create(path, &h);
	struct rules_plan plan = {.stayed = true};
	struct rules_request job = job_cpu(1000);
	struct recording_decision d = {.job = "1",
				       .policy = "nlb",
				       .home = 2,
				       .seed = 1,
				       .params = &h.params,
				       .request = &job,
				       .order = order,
				       .norder = 2,
				       .plan = &plan};
	const struct recording_line *line;
	struct recording *in;
	struct view_file view;
	json_t *document, *factors;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct view_node n = {.node = node_fc(i == 0 ? "n1" : i == 1 ? "n2" : "n3")};

		assert_int_equal(recorder_node(r, 0, i, &n, NULL), 0);
	}
	job.corrections = both;
	job.ncorrections = 2;
	job.correction = 0.25;
	assert_int_equal(recorder_decision(r, &d, NULL), 0);
	finish(r);
	in = open_it(path);
	for (int i = 0; i < 3; i++)
		assert_int_equal(next(in)->kind, RECORDING_NODE);
	line = next(in);
	assert_int_equal(line->kind, RECORDING_DECISION);
	assert_int_equal(recording_view(in, &view), 0);
	assert_string_equal(view.nodes[0].node.name, "n3");
	assert_int_equal(view.job.ncorrections, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(view.job.corrections[i].node == both[i].node &&
			    view.job.corrections[i].factor == both[i].factor);
	assert_true(view.job.correction == 0.25);
	document = view_file_json(&view);
	factors = json_object_get(json_object_get(document, "job"), "corrections");
	assert_true(json_number_value(json_object_get(factors, "n3")) == 0.5);
	assert_true(json_number_value(json_object_get(factors, "n1")) == 4);
	json_decref(document);
	recording_close(in);
}

static struct recording_job job_of(const char *id, double time_ms)
{
	struct recording_job j = {
		.class_name = "scan",
		.time_ms = time_ms,
		.home = 1,
		.tasks = 2,
		.cpu_ms = 1000,
		.io_per_ms = 0.25,
		.request_kb = 256,
		.request_sd_kb = 51.2,
		.reaccess = 5,
		.requests = -1,
		.memory_mb = 4,
		.faults_per_ms = 0.5,
		.initial_mb = 10,
		.write_fraction = 0.3,
		.barrier_ms = 100,
		.messages_per_ms = 0.1,
		.message_kb = 64,
	};

	snprintf(j.id, sizeof(j.id), "%s", id);
	return j;
}

static struct recording_finish end_of(const char *id, double time_ms)
{
	struct recording_finish f = {
		.time_ms = time_ms,
		.start_ms = time_ms - 5,
		.node = 1,
		.moves = 2,
		.exit = -9,
		.alone_ms = 4,
		.slowdown = 1.25,
		.has_measured = true,
		.measured = {.cpu_ms = 4000,
			     .requests = 500,
			     .request_mb = 50,
			     .page_faults = 20,
			     .memory_mb = 80,
			     .io_per_ms = 0.1,
			     .messages = 3,
			     .sent_mb = 1.5,
			     .received_mb = 2.5},
	};

	snprintf(f.id, sizeof(f.id), "%s", id);
	return f;
}

static void two_nodes(struct recorder *r)
{
	struct view_node a = {.node = node_fc("a")}, b = {.node = node_fc("b")};

	assert_int_equal(recorder_node(r, 0, 0, &a, NULL), 0);
	assert_int_equal(recorder_node(r, 0, 1, &b, NULL), 0);
}

static void check_lines(const char *from)
{
	struct recording *r = open_it(from);
	const struct recording_header *h = recording_header(r);
	struct recording_header wanted = header_of(RULES_RATES_WALL, true);
	struct recording_job job = job_of("n1-1f-3", 10.5);
	struct recording_finish end = end_of("n1-1f-3", 20);
	const struct recording_line *line;
	const struct view_node *nodes;
	uint32_t n;

	assert_true(h->live && h->seed == 7 && h->start_ns == wanted.start_ns);
	assert_string_equal(h->program, "test 1");
	assert_string_equal(h->cluster, "3xfc");
	assert_string_equal(h->source, "by hand");
	assert_string_equal(h->hash, "sha256:0");
	assert_string_equal(h->policy, "iocm-re");
	assert_memory_equal(&h->params, &wanted.params, sizeof(wanted.params));
	assert_int_equal(next(r)->node, 0);
	assert_int_equal(next(r)->node, 1);
	line = next(r);
	assert_int_equal(line->kind, RECORDING_SUBMIT);
	assert_int_equal(line->number, 4);
	assert_memory_equal(&line->job, &job, sizeof(job));
	line = next(r); /* b's vector */
	assert_int_equal(line->kind, RECORDING_NODE);
	assert_int_equal(line->node, 1);
	nodes = recording_nodes(r, &n);
	assert_int_equal(n, 2);
	assert_true(nodes[1].node.has_advertised && nodes[1].node.advertised.cpu == 3);
	assert_false(nodes[1].node.accepts);
	assert_true(nodes[1].node.ram_mb == 640);
	line = next(r); /* b's machine */
	assert_true(nodes[1].node.ram_mb == 1280 && nodes[1].node.advertised.cpu == 3);
	line = next(r);
	assert_int_equal(line->kind, RECORDING_FINISH);
	assert_memory_equal(&line->finish, &end, sizeof(end));
	line = next(r);
	assert_int_equal(line->kind, RECORDING_END);
	assert_int_equal(line->end.dropped, 3);
	assert_true(line->end.others_cpu == 0.25 && line->end.others_disk == 0.5 &&
		    line->end.stolen == 0.125 && line->end.crowded == 0.75);
	assert_null(next(r));
	assert_true(recording_complete(r));
	assert_int_equal(recording_rewind(r, NULL), 0);
	assert_false(recording_complete(r));
	recording_nodes(r, &n);
	assert_int_equal(n, 0);
	assert_int_equal(next(r)->node, 0);
	recording_close(r);
}

static void test_lines(void **state)
{
	struct recording_header h = header_of(RULES_RATES_WALL, true);
	struct recording_job job = job_of("n1-1f-3", 10.5);
	struct recording_finish end = end_of("n1-1f-3", 20);
	struct view_node b = {.node = node_fc("b")};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct recorder *r = create(i ? packed : path, &h);

		two_nodes(r);
		two_nodes(r); /* nothing is new, so no line is written */
		assert_int_equal(recorder_submit(r, &job, NULL), 0);
		b = (struct view_node){.node = node_fc("b")};
		b.node.has_advertised = true;
		b.node.advertised.cpu = 3;
		b.node.accepts = false;
		assert_int_equal(recorder_node(r, 11, 1, &b, NULL), 0);
		b.node.ram_mb = 1280;
		assert_int_equal(recorder_node(r, 12, 1, &b, NULL), 0);
		b.node.age_ms = 40; /* only the age has changed, so no line is written */
		assert_int_equal(recorder_node(r, 13, 1, &b, NULL), 0);
		assert_int_equal(recorder_finish(r, &end, NULL), 0);
		recorder_dropped(r, 3);
		recorder_disturbed(r, &(struct recording_end){.others_cpu = 0.25, .stolen = 0.1});
		recorder_disturbed(r, &(struct recording_end){.others_cpu = 0.2,
							      .others_disk = 0.5,
							      .stolen = 0.125,
							      .crowded = 0.75});
		finish(r);
		check_lines(i ? packed : path);
	}
}

static void test_text_of_others(void **state)
{
	struct recording_header h = header_of(RULES_RATES_WALL, true);
	struct recorder *r = create(path, &h);
	struct recording_job job = job_of("1", 1);
	struct recording *in;

	(void)state;
	two_nodes(r);
	strcpy(job.class_name, "a\x1b[31m\xff\"b");
	assert_int_equal(recorder_submit(r, &job, NULL), 0);
	finish(r);
	in = open_it(path);
	next(in);
	next(in);
	assert_string_equal(next(in)->job.class_name, "a?[31m?\"b");
	recording_close(in);
}

static void test_refused(void **state)
{
	struct recording_header h = header_of(RULES_RATES_COMPUTATION, false);
	struct recording_job job = job_of("1", 5);
	struct recording_finish end = end_of("1", 20);
	struct view_node a = {.node = node_fc("a")};
	struct recorder *r = create(path, &h), *none;
	struct iocom_err err = {0};

	(void)state;
	assert_int_equal(recorder_submit(r, &job, &err), -EINVAL); /* there is no node yet */
	assert_int_equal(recorder_node(r, 5, 1, &a, &err), -EINVAL);
	assert_int_equal(recorder_node(r, 5, 0, &a, &err), 0);
	/* node 1 gets the name of node 0 */
	assert_int_equal(recorder_node(r, 5, 1, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a node has no name, or that of another node"));
	assert_int_equal(recorder_node(r, 4, 0, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "time goes back"));
	assert_int_equal(recorder_node(r, NAN, 0, &a, &err), -EINVAL);
	job.home = 0;
	assert_int_equal(recorder_submit(r, &job, &err), 0);
	assert_int_equal(recorder_finish(r, &end, &err), -EINVAL);
	job.cpu_ms = INFINITY;
	assert_int_not_equal(recorder_submit(r, &job, &err), 0);
	finish(r);
	assert_int_equal(recorder_open("/nonexistent/x", &h, &none, &err), -ENOENT);
	h.seed = UINT64_MAX;
	assert_int_equal(recorder_open(path, &h, &none, &err), -EINVAL);
}

static void test_full_disk(void **state)
{
	struct recording_header h = header_of(RULES_RATES_COMPUTATION, false);
	struct view_node a = {.node = node_fc("a")};
	struct recorder *r = create("/dev/full", &h);
	struct iocom_err err = {0};
	int rc = 0;

	(void)state;
	for (int i = 0; i < 5000 && !rc; i++) {
		a.node.ram_mb = 640 + i;
		rc = recorder_node(r, i, 0, &a, &err);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_string_equal(err.text, "cannot write /dev/full: No space left on device");
	assert_int_equal(recorder_node(r, 1e6, 0, &a, &err), -ENOSPC);
	assert_int_equal(recorder_close(r, &err), -ENOSPC);
	r = create("/dev/full", &h);
	assert_int_equal(recorder_flush(r, &err), -ENOSPC);
	recorder_abandon(r);
	r = create("/dev/full", &h);
	assert_int_equal(recorder_close(r, &err), -ENOSPC);
}

/* --- errors ------------------------------------------------------------------------ */

#define HEAD  "{\"record\": \"header\", \"version\": 1}\n"
#define NODES "{\"record\": \"node\", \"time_ms\": 0, \"node\": 0, \"name\": \"a\"}\n"

#define DECISION(request)                                                                          \
	"{\"record\": \"decision\", \"time_ms\": 0, \"request\": " request ", \"plan\": {}}\n"

static const struct {
	const char *text, *said;
} errors[] = {
	{"", ": is empty; expected a recording"},
	{"{}", ":1: the recording is cut off in this line"},
	{"{}\n", ":1:1: record"},
	{"[]\n", "expected an object, found a list"},
	{"{\"record\": \"node\"}\n", ":1:12: record: expected \"header\", found \"node\""},
	{"{\"record\": \"header\"}\n", "version: expected 1, the version that this program reads"},
	{"{\"record\": \"header\", \"version\": 2}\n", ":1:33: version: expected 1"},
	{"{\"record\": \"header\", \"version\": 1, \"x\": 2}\n", "x: unknown field"},
	{"{\"record\": \"header\", \"version\": 1, \"params\": {\"x\": 2}}\n",
	 "params.x: no parameter"},
	{HEAD "nonsense\n", ":2:1: '[' or '{' expected near 'nonsense'"},
	{HEAD "\n", ":2:1:"},
	{HEAD "{\"record\": \"header\", \"time_ms\": 0}\n", ":2:12: record: expected \"node\""},
	{HEAD "{\"record\": \"node\", \"node\": 0}\n", "time_ms: expected a time not before"},
	{HEAD "{\"record\": \"node\", \"time_ms\": -1}\n", ":2:31: time_ms: expected a time not"},
	{HEAD "{\"record\": \"node\", \"time_ms\": 0, \"node\": 1}\n",
	 ":2:42: node: expected a whole number from 0 to 0, found 1"},
	{HEAD "{\"record\": \"vector\", \"time_ms\": 0, \"node\": 0}\n",
	 "node: expected a node that was told before"},
	{HEAD NODES "{\"record\": \"node\", \"time_ms\": 0, \"node\": 1, \"name\": \"a\"}\n",
	 ":3:53: name: expected a name of its own"},
	{HEAD NODES "{\"record\": \"node\", \"time_ms\": 0, \"node\": 0, \"tasks\": []}\n",
	 "tasks: unknown field"},
	{HEAD NODES "{\"record\": \"vector\", \"time_ms\": 0, \"node\": 0, \"ram_mb\": 1}\n",
	 "ram_mb: unknown field"},
	{HEAD NODES
	 "{\"record\": \"vector\", \"time_ms\": 0, \"node\": 0, \"tasks\": [{\"cpu_ms\": "
	 "-2}]}\n",
	 ":3:68: tasks[0].cpu_ms: expected a number that is not negative, found -2"},
	{HEAD NODES "{\"record\": \"submit\", \"time_ms\": 0}\n", "job: expected the job's id"},
	{HEAD NODES "{\"record\": \"submit\", \"time_ms\": 0, \"job\": \"1\", \"home\": 1}\n",
	 "home: expected the number of a node that was told before, found 1"},
	{HEAD NODES "{\"record\": \"submit\", \"time_ms\": 0, \"job\": \"1\", \"tasks\": 0}\n",
	 "tasks: expected a whole number from 1 to 1000000, found 0"},
	{HEAD NODES "{\"record\": \"finish\", \"time_ms\": 0, \"job\": \"1\", \"node\": 3}\n",
	 "node: expected the number of a node that was told before, found 3"},
	{HEAD NODES
	 "{\"record\": \"finish\", \"time_ms\": 0, \"job\": \"1\", \"measured\": {\"x\": 1}}\n",
	 "measured.x: unknown field"},
	{HEAD NODES "{\"record\": \"decision\", \"time_ms\": 0, \"request\": {}}\n",
	 "plan: expected an object, found nothing"},
	{HEAD NODES "{\"record\": \"decision\", \"time_ms\": 0, \"plan\": {}}\n",
	 "request: expected an object, found nothing"},
	{HEAD NODES "{\"record\": \"decision\", \"time_ms\": 0, \"changed\": [{\"node\": 4}]}\n",
	 ":3:59: changed[0].node: expected a whole number from 0 to 0, found 4"},
	{HEAD NODES "{\"record\": \"decision\", \"time_ms\": 0, \"changed\": [3]}\n",
	 "changed[0]: expected a node, found 3"},
	{HEAD NODES DECISION("{\"corrections\": {\"b\": 1}}"),
	 "request.corrections.b: expected the name of a node of this view"},
	{HEAD NODES DECISION("{\"corrections\": {\"a\": 5000}}"),
	 "request.corrections.a: expected a factor from 0.25 to 1024, found 5000"},
	{HEAD NODES DECISION("{\"correction\": 0.1}"),
	 "request.correction: expected a factor from 0.25 to 1024, found 0.1"},
	{HEAD NODES "{\"record\": \"node\", \"time_ms\": 0, \"node\": 1, \"name\": \"b\"}\n"
		    "{\"record\": \"decision\", \"time_ms\": 0, \"nodes\": [0], \"request\": "
		    "{\"corrections\": {\"b\": 1}}, \"plan\": {}}\n",
	 "request.corrections.b: expected the name of a node of this view"},
	{HEAD "{\"record\": \"end\", \"time_ms\": 0, \"lines\": 9}\n",
	 ":2:42: lines: expected 2 lines, with this one: some are missing, found 9"},
	{HEAD "{\"record\": \"end\", \"time_ms\": 0, \"stolen\": 5}\n",
	 "stolen: expected a share between 0 and 1, or null, found 5"},
	{HEAD "{\"record\": \"end\", \"time_ms\": 0}\n" NODES,
	 ":3:1: nothing may follow the \"end\""},
	{HEAD NODES "{\"record\": \"node\", \"time_ms\"",
	 ":3: the recording is cut off in this line"},
};

static void put_file(const char *to, const void *bytes, size_t n)
{
	FILE *f = fopen(to, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Reads everything. Returns 0, or the error with its sentence. */
static int read_all(const char *from, struct iocom_err *err)
{
	const struct recording_line *line;
	struct recording *r;
	int rc = recording_open(from, &r, err);

	if (rc)
		return rc;
	do
		rc = recording_next(r, &line, err);
	while (rc > 0);
	recording_close(r);
	return rc;
}

static void test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct iocom_err err = {0};
		int rc;

		put_file(path, errors[i].text, strlen(errors[i].text));
		rc = read_all(path, &err);
		if (rc != -EINVAL || !strstr(err.text, errors[i].said) || !strstr(err.text, path))
			fail_msg("%s\n%d '%s'\nwanted '%s'", errors[i].text, rc, err.text,
				 errors[i].said);
	}
}

static void test_cut_off(void **state)
{
	struct iocom_err err = {0};
	char bytes[8192];
	size_t n, at;
	FILE *f;

	(void)state;
	record_views(packed, 3);
	f = fopen(packed, "r");
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	/* Cut at any byte: no crash, and the reader reports it. */
	for (at = 1; at < n; at += 97) {
		put_file(packed, bytes, at);
		assert_int_equal(read_all(packed, &err), -EINVAL);
	}
	put_file(packed, bytes, n - 1);
	assert_int_equal(read_all(packed, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cut off"));
	/* All lines but the last: readable, but incomplete. */
	put_file(path, HEAD NODES, strlen(HEAD NODES));
	{
		struct recording *r = open_it(path);

		assert_non_null(next(r));
		assert_null(next(r));
		assert_false(recording_complete(r));
		recording_close(r);
	}
}

/* Damaged recordings give lines or an error that says where, and nothing else. */
static void test_damaged(void **state)
{
	struct draws d = {5};
	struct iocom_err err = {0};
	static char bytes[1 << 20];
	unsigned int wrong = 0;
	size_t n;
	FILE *f;

	(void)state;
	record_views(path, 4);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	assert_true(n < sizeof(bytes));
	for (int i = 0; i < 60; i++) {
		size_t at = (size_t)draw(&d, (double)n);
		char was = bytes[at];
		int rc;

		bytes[at] = (char)draw(&d, 256);
		put_file(packed, bytes, n);
		rc = read_all(packed, &err);
		assert_true(rc == 0 || rc == -EINVAL);
		wrong += rc != 0;
		bytes[at] = was;
	}
	assert_true(wrong > 10);
}

static void test_long_line(void **state)
{
	gzFile f = gzopen(packed, "wb1");
	struct iocom_err err = {0};
	char spaces[65536];

	(void)state;
	assert_non_null(f);
	memset(spaces, ' ', sizeof(spaces));
	gzputs(f, HEAD "{");
	for (size_t n = 0; n < RECORDING_LINE_MAX + 3 * sizeof(spaces); n += sizeof(spaces))
		gzwrite(f, spaces, sizeof(spaces));
	gzputs(f, "}\n");
	assert_int_equal(gzclose(f), Z_OK);
	assert_int_equal(read_all(packed, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2: the line is longer than 64 MB"));
}

static void test_recognise(void **state)
{
	(void)state;
	assert_true(recording_recognise(HEAD, strlen(HEAD)));
	assert_false(recording_recognise(NODES, strlen(NODES)));
	assert_false(recording_recognise("0 1 2 3", 7));
	assert_false(recording_recognise("", 0));
}

/* --- jobs ---------------------------------------------------------------------------- */

static void test_to_job(void **state)
{
	struct recording_job j = job_of("1", 1), out;
	struct recording_finish f = end_of("1", 9);

	(void)state;
	recording_to_job(&j, NULL, &out);
	assert_memory_equal(&j, &out, sizeof(j));
	f.has_measured = false;
	recording_to_job(&j, &f, &out);
	assert_memory_equal(&j, &out, sizeof(j));
	f.has_measured = true;
	recording_to_job(&j, &f, &out);
	assert_true(out.cpu_ms == 2000 && out.requests == 250 && out.request_kb == 100 &&
		    out.memory_mb == 40 && out.faults_per_ms == 0.005 && out.io_per_ms == 0.25);
	j.io_per_ms = 0;
	f.measured.page_faults = f.measured.requests = 0;
	recording_to_job(&j, &f, &out);
	assert_true(out.requests == 0 && out.request_kb == 256 && out.faults_per_ms == 0.5 &&
		    out.io_per_ms == 0.1);
	/* A reader of mapped files: its page faults are requests, wherever it runs. */
	f.measured.page_faults = 1000;
	f.measured.page_fault_mb = 100;
	f.measured.request_mb = 0;
	f.measured.wall_ms = 10000;
	recording_to_job(&j, &f, &out);
	assert_true(out.requests == 500 && out.request_kb == 100 &&
		    out.faults_per_ms == j.faults_per_ms && out.io_per_ms == 0.1);
	/* Where memory was short, they may be what short memory makes. */
	f.memory_short = true;
	recording_to_job(&j, &f, &out);
	assert_true(out.requests == 0 && out.faults_per_ms == 0.25);
	f.measured = (struct recording_measured){.page_faults = 1};
	assert_false(recording_never_ran(&f));
}

/* Jobs that end in another order than they came, one that never ends, many at once. */
static void record_jobs(const char *to, bool live, unsigned int n)
{
	struct recording_header h = header_of(RULES_RATES_WALL, live);
	struct recorder *r = create(to, &h);
	char id[32];

	two_nodes(r);
	for (unsigned int i = 0; i < n; i++) {
		struct recording_job j;

		snprintf(id, sizeof(id), "job-%u", i);
		j = job_of(id, i);
		assert_int_equal(recorder_submit(r, &j, NULL), 0);
		if (i >= 100 && i % 100 == 0) {
			for (unsigned int k = i - 100; k < i; k++) {
				struct recording_finish f;

				/* In reverse order, and number 37 never ends. */
				snprintf(id, sizeof(id), "job-%u", 2 * i - 101 - k);
				f = end_of(id, i);
				f.measured.requests = 2 * (2 * i - 101 - k);
				if (strcmp(id, "job-37") != 0)
					assert_int_equal(recorder_finish(r, &f, NULL), 0);
			}
		}
	}
	finish(r);
}

static void test_jobs(void **state)
{
	struct iocom_err err = {0};
	struct recording_jobs *jobs;
	struct recording_job j;
	char id[32];

	(void)state;
	for (int live = 0; live < 2; live++) {
		record_jobs(path, live, 1001);
		assert_int_equal(recording_jobs_open(path, &jobs, &err), 0);
		assert_int_equal(recording_header(recording_jobs_source(jobs))->live, live);
		for (int round = 0; round < 2; round++) {
			for (unsigned int i = 0; i < 1001; i++) {
				if (recording_jobs_next(jobs, &j, &err) != 1)
					fail_msg("%u: %s", i, err.text);
				snprintf(id, sizeof(id), "job-%u", i);
				assert_string_equal(j.id, id);
				if (live && i != 37 && i < 1000)
					assert_true(j.requests == i && j.cpu_ms == 2000);
				else
					assert_true(j.requests < 0 && j.cpu_ms == 1000);
			}
			assert_int_equal(recording_jobs_next(jobs, &j, &err), 0);
			assert_int_equal(recording_jobs_next(jobs, &j, &err), 0);
			assert_int_equal(recording_jobs_rewind(jobs, &err), 0);
		}
		recording_jobs_free(jobs);
	}
	put_file(path, HEAD "x\n", strlen(HEAD "x\n"));
	assert_int_equal(recording_jobs_open(path, &jobs, &err), 0);
	assert_int_equal(recording_jobs_next(jobs, &j, &err), -EINVAL);
	recording_jobs_free(jobs);
	assert_int_equal(recording_jobs_open("/nonexistent/x", &jobs, &err), -ENOENT);
	recording_jobs_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decided_again), cmocka_unit_test(test_other_plan),
		cmocka_unit_test(test_lines),	      cmocka_unit_test(test_text_of_others),
		cmocka_unit_test(test_refused),	      cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_errors),	      cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_long_line),     cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_recognise),     cmocka_unit_test(test_to_job),
		cmocka_unit_test(test_jobs),	      cmocka_unit_test(test_corrections_by_name),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
