/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The view file: defaults, every field, writing and reading back, every error. */
#include "tests/unit/view_fixture.h"

#include <errno.h>
#include <unistd.h>

#include "balancer/view/json_text.h"
#include "balancer/view/plan_json.h"
#include "balancer/view/view_decide.h"

static void decode(const char *text, struct view_file *v)
{
	struct iocom_err err = {0};

	if (view_file_decode("t.json", text, strlen(text), v, &err))
		fail_msg("%s", err.text);
}

/* The published example, every field. */
static void test_example(void **state)
{
	struct iocom_err err = {0};
	struct view_file v;
	const struct rules_node *n;
	const struct rules_task *t;

	(void)state;
	if (view_file_read("tests/unit/data/view_example.json", &v, &err))
		fail_msg("%s", err.text);
	assert_int_equal(v.nnodes, 1);
	assert_true(v.time_ms == 0 && v.home == 0 && v.seed == 1);
	assert_true(v.params.network_mb_per_s == 125 && v.params.reference_mips == 800);
	assert_int_equal(v.params.rates, RULES_RATES_COMPUTATION);
	assert_true(v.params.rho_max == 0.99 && v.params.w_io == 0.5);
	n = &v.nodes[0].node;
	assert_string_equal(n->name, "n1");
	assert_true(n->ram_mb == 640 && n->buffer_mb == 160 && n->cpu_mips == 800 && n->cores == 1);
	assert_true(n->disk_fixed_ms == 8 && n->disk_mb_per_s == 40 && n->disk_parallel == 2 &&
		    n->request_kb == 250 && n->request_sd_kb == 50 && n->network_mb_per_s == 125);
	assert_int_equal(n->ntasks, 1);
	t = &n->tasks[0];
	assert_true(t->cpu_ms == 2000 && t->age_ms == 500 && t->io_per_ms == 2 &&
		    t->request_kb == 250 && t->reaccess == 5 && t->memory_mb == 4);
	assert_true(n->has_measured && n->measured.disk_arrivals_per_ms == 0.05 &&
		    n->measured.disk_utilisation == 0.7 && n->measured.service_ms == 14.2 &&
		    n->measured.service_ms2 == 204 && n->measured.cpu_queue == 2 &&
		    n->measured.io_tasks == 0);
	assert_true(n->has_advertised && n->advertised.io_per_ms == 0.4 &&
		    n->advertised.explicit_per_ms == 0.4 && n->advertised.memory_mb == 120 &&
		    n->advertised.cpu == 3 && n->advertised.com_ms == 0);
	assert_true(n->burst_mips == 1600 && n->has_sharers && n->sharers.cpu == 1.5 &&
		    n->sharers.disk == 0.5 && n->sharers.cpu_left_ms == 3000 &&
		    n->sharers.disk_left_ms == 700);
	assert_true(n->has_zatti && n->zatti.cpu_idle_percent == 0 && n->zatti.run_queue == 3 &&
		    n->zatti.blocks_per_s == 12 && n->zatti.free_mb == 200);
	assert_true(n->accepts && n->age_ms == 300);
	assert_true(v.job.cpu_ms == 3000 && v.job.io_per_ms == 1 && v.job.request_kb == 250 &&
		    v.job.reaccess == 5 && v.job.memory_mb == 4 && v.job.initial_mb == 10 &&
		    v.job.requests < 0 && v.job.tasks == 1 && v.job.hops == 0);
	assert_true(v.job.com_ms && v.job.com_ms[0] == 0);
	view_file_fini(&v);
}

static void test_defaults(void **state)
{
	struct rules_params params;
	struct view_file v;
	const struct rules_node *n;

	(void)state;
	rules_params_default(&params, RULES_RATES_COMPUTATION);
	decode("{\"nodes\": [{}, {\"ram_mb\": 100, \"tasks\": [{}]}], \"job\": {}}", &v);
	assert_true(v.time_ms == 0 && v.home == 0 && v.seed == 1);
	assert_memory_equal(&v.params, &params, sizeof(params));
	n = &v.nodes[0].node;
	assert_string_equal(n->name, "n1");
	assert_string_equal(v.nodes[1].node.name, "n2");
	assert_true(n->ram_mb == 640 && n->buffer_mb == 160 && n->cpu_mips == 800 && n->cores == 1);
	assert_true(n->disk_fixed_ms == 8 && n->disk_mb_per_s == 40 && n->request_kb == 250);
	assert_true(n->request_sd_kb == 50 && n->network_mb_per_s == 0);
	assert_true(n->ntasks == 0 && !n->has_measured && !n->has_advertised && !n->has_zatti);
	assert_true(!n->has_sharers && n->burst_mips == 0);
	assert_true(n->accepts && n->age_ms == 0);
	n = &v.nodes[1].node;
	assert_true(n->buffer_mb == 25 && n->ntasks == 1);
	assert_true(n->tasks[0].request_kb == 250 && n->tasks[0].reaccess == 5 &&
		    n->tasks[0].cpu_ms == 0 && !n->tasks[0].pinned);
	assert_true(v.job.request_kb == 250 && v.job.reaccess == 5 && v.job.requests < 0 &&
		    v.job.tasks == 1 && v.job.com_ms == NULL);
	view_file_fini(&v);

	rules_params_default(&params, RULES_RATES_WALL);
	decode("{\"rates\": \"wall\", \"nodes\": [{\"tasks\": [{}]}], \"job\": {\"tasks\": 3, "
	       "\"com_ms\": [1, 2]}}",
	       &v);
	assert_memory_equal(&v.params, &params, sizeof(params));
	assert_true(v.nodes[0].node.buffer_mb == 0 && v.job.reaccess == 0);
	assert_true(v.nodes[0].node.tasks[0].reaccess == 0);
	assert_true(v.job.com_ms[0] == 1 && v.job.com_ms[1] == 2 && v.job.com_ms[2] == 0);
	view_file_fini(&v);
}

/* Groups given in part: the other fields follow from the given ones. */
static void test_parts(void **state)
{
	struct view_file v;
	struct rules_node *n;

	(void)state;
	decode("{\"nodes\": [{\"tasks\": [{\"memory_mb\": 30, \"io_per_ms\": 0.5, \"cpu_ms\": 10,"
	       "\"reaccess\": 0}, {\"memory_mb\": 12, \"com_ms\": 7}],"
	       "\"advertised\": {\"cpu\": 9}, \"measured\": {\"disk_arrivals_per_ms\": 0.05,"
	       "\"service_ms\": 10}, \"zatti\": {\"blocks_per_s\": 3}}, {\"advertised\":"
	       "{\"io_per_ms\": 2}, \"measured\": {}, \"zatti\": {}}], \"job\": {}}",
	       &v);
	n = &v.nodes[0].node;
	assert_true(n->advertised.cpu == 9 && n->advertised.memory_mb == 42 &&
		    n->advertised.com_ms == 7);
	assert_true(n->advertised.io_per_ms == 0.5 && n->advertised.explicit_per_ms == 0.5);
	assert_true(n->measured.disk_utilisation == 0.5 && n->measured.service_ms2 == 100 &&
		    n->measured.cpu_queue == 9);
	assert_true(n->zatti.blocks_per_s == 3 && n->zatti.run_queue == 9 &&
		    n->zatti.cpu_idle_percent == 0 && n->zatti.free_mb == 480 - 42);
	n = &v.nodes[1].node;
	assert_true(n->advertised.io_per_ms == 2 && n->advertised.explicit_per_ms == 2 &&
		    n->advertised.cpu == 0);
	assert_true(n->measured.disk_utilisation == 0 && n->measured.cpu_queue == 0);
	assert_true(n->zatti.cpu_idle_percent == 100 && n->zatti.blocks_per_s == 2000 &&
		    n->zatti.free_mb == 480);
	view_file_fini(&v);
}

/* The manual lists every parameter. */
static void test_manual(void **state)
{
	struct rules_params params;
	char text[32768] = "", wanted[80];
	FILE *f = fopen("balancer/iocom-view.5.scd", "r");
	const char *name;

	(void)state;
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) < sizeof(text) - 1);
	fclose(f);
	rules_params_default(&params, RULES_RATES_COMPUTATION);
	for (unsigned int i = 0; rules_params_get(&params, i, &name), name; i++) {
		size_t n = 0;

		wanted[n++] = '*';
		for (; *name; name++) {
			if (*name == '_')
				wanted[n++] = '\\';
			wanted[n++] = *name;
		}
		memcpy(wanted + n, "* [", 4);
		if (!strstr(text, wanted))
			fail_msg("iocom-view(5) does not tell of %s", wanted);
	}
}

static void same_view(const struct view_file *a, const struct view_file *b)
{
	assert_memory_equal(&a->params, &b->params, sizeof(a->params));
	assert_true(a->time_ms == b->time_ms && a->home == b->home && a->seed == b->seed);
	assert_int_equal(a->nnodes, b->nnodes);
	for (uint32_t i = 0; i < a->nnodes; i++) {
		assert_true(view_node_same(&a->nodes[i], &b->nodes[i]));
		assert_true(a->nodes[i].node.age_ms == b->nodes[i].node.age_ms);
	}
	assert_true(a->job.cpu_ms == b->job.cpu_ms && a->job.io_per_ms == b->job.io_per_ms &&
		    a->job.requests == b->job.requests && a->job.tasks == b->job.tasks &&
		    a->job.hops == b->job.hops && a->job.written_mb == b->job.written_mb &&
		    a->job.output_mb == b->job.output_mb);
	assert_int_equal(a->job.com_ms == NULL, b->job.com_ms == NULL);
	if (a->job.com_ms)
		assert_memory_equal(a->job.com_ms, b->job.com_ms, a->job.tasks * sizeof(double));
	assert_true(a->job.correction == b->job.correction);
	assert_int_equal(a->job.ncorrections, b->job.ncorrections);
	for (size_t i = 0; i < a->job.ncorrections; i++) {
		assert_int_equal(a->job.corrections[i].node, b->job.corrections[i].node);
		assert_true(a->job.corrections[i].factor == b->job.corrections[i].factor);
	}
}

/* Factors by name become factors by node in ascending order, whatever the order of names. */
static void test_corrections(void **state)
{
	struct view_file v;

	(void)state;
	decode("{\"nodes\": [{}, {}, {\"name\": \"x\"}], \"job\": {\"correction\": 0.5,"
	       "\"corrections\": {\"x\": 0.25, \"n1\": 4, \"n2\": 1}}}",
	       &v);
	assert_true(v.job.correction == 0.5);
	assert_int_equal(v.job.ncorrections, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(v.job.corrections[i].node, i);
	assert_true(v.job.corrections[0].factor == 4 && v.job.corrections[1].factor == 1 &&
		    v.job.corrections[2].factor == 0.25);
	view_file_fini(&v);
	decode("{\"nodes\": [{}], \"job\": {\"corrections\": {}}}", &v);
	assert_true(v.job.ncorrections == 0 && v.job.correction == 0);
	view_file_fini(&v);
}

/* What the job does on a shared file system; its server's place follows the nodes that leave. */
static void test_shared(void **state)
{
	struct view_file v, back;
	struct iocom_err err = {0};
	json_t *document;
	size_t n;
	char *text;

	(void)state;
	decode("{\"nodes\": [{}, {}, {\"name\": \"x\"}], \"job\": {\"shared\": {\"read_mb\": 9,"
	       "\"written_mb\": 1, \"server\": \"x\", \"cached\": {\"x\": 2.5, \"n1\": 3}}}}",
	       &v);
	document = view_file_json(&v);
	text = json_text_dump(document, &n);
	assert_int_equal(view_file_decode("t.json", text, n, &back, &err), 0);
	assert_true(back.job.shared.read_mb == 9 && back.job.shared.written_mb == 1);
	assert_true(back.job.shared.served && back.job.shared.server == 2);
	assert_int_equal(back.job.shared.ncached, 2);
	assert_true(back.job.shared.cached[1].node == 2 && back.job.shared.cached[1].mb == 2.5);
	view_file_remove(&back, 0);
	assert_true(back.job.shared.served && back.job.shared.server == 1);
	assert_int_equal(back.job.shared.ncached, 1);
	assert_true(back.job.shared.cached[0].node == 1);
	view_file_remove(&back, 1);
	assert_false(back.job.shared.served);
	assert_int_equal(back.job.shared.ncached, 0);
	json_decref(document);
	free(text);
	view_file_fini(&v);
	view_file_fini(&back);
}

static void pairs_refused(const char *text, const char *why)
{
	struct iocom_err err = {0};
	struct view_file v;

	assert_int_equal(view_file_decode("t.json", text, strlen(text), &v, &err), -EINVAL);
	if (!strstr(err.text, why))
		print_error("%s\n", err.text);
	assert_non_null(strstr(err.text, why));
}

/* Who talks to whom goes both ways, and all tasks are then placed at once. */
static void test_pairs(void **state)
{
	static const char text_in[] =
		"{\"rates\": \"wall\", \"nodes\": [{}, {\"port\": {\"busy_mb_per_s\": 2, "
		"\"round_trip_ms\": 0.5, \"slots\": 1}}, {\"port\": {}}], \"job\": {\"cpu_ms\": "
		"5000, "
		"\"tasks\": 3, \"phases\": 4, \"pairs\": [[0, 2, 5e9, 10], [2, 0, 7, 0]]}}";
	struct view_policy policy;
	struct view_decision d;
	struct view_file v, back;
	struct iocom_err err = {0};
	json_t *document, *answer, *gang;
	const char *sentence;
	size_t n;
	char *text;

	(void)state;
	decode(text_in, &v);
	document = view_file_json(&v);
	text = json_text_dump(document, &n);
	assert_int_equal(view_file_decode("t.json", text, n, &back, &err), 0);
	assert_int_equal(back.job.npairs, 2);
	assert_true(back.job.pairs[0].to == 2 && back.job.pairs[0].bytes == 5e9);
	assert_true(back.job.pairs[0].messages == 10 && back.job.phases == 4);
	assert_true(!back.nodes[0].node.has_port && back.nodes[1].node.port.slots == 1);
	assert_true(back.nodes[1].node.port.busy_mb_per_s == 2);
	assert_true(back.nodes[2].node.has_port && back.nodes[2].node.port.slots < 0);
	assert_int_equal(view_policy_parse("least-delay", &policy, &err), 0);
	assert_int_equal(view_decide(&back, &policy, &d, &err), 0);
	assert_true(d.is_gang && d.gang.searched);
	assert_int_equal(d.nodes[0], d.nodes[2]); /* 5 GB are 40 s over the network */
	answer = plan_json(&d, true);
	gang = json_object_get(answer, "gang");
	sentence = json_string_value(json_object_get(gang, "text"));
	assert_non_null(sentence);
	assert_non_null(strstr(sentence, "slowest task "));
	assert_non_null(strstr(sentence, "so communication binds"));
	assert_true(json_is_object(json_object_get(gang, "packed")));
	json_decref(answer);
	view_decision_fini(&d);
	for (uint32_t i = 0; i < 3; i++) {
		back.nodes[i].node.has_port = true;
		back.nodes[i].node.port.slots = i == 0;
	}
	assert_int_equal(view_decide(&back, &policy, &d, &err), -ERANGE);
	assert_non_null(strstr(err.text, "3 tasks do not fit"));
	json_decref(document);
	free(text);
	view_file_fini(&v);
	view_file_fini(&back);
	pairs_refused("{\"nodes\": [{}], \"job\": {\"tasks\": 2, \"pairs\": [[0, 2, 1, 1]]}}",
		      "pairs");
	pairs_refused("{\"nodes\": [{}], \"job\": {\"tasks\": 2, \"pairs\": [[0, 1, 1]]}}",
		      "bytes");
	pairs_refused("{\"nodes\": [{}], \"job\": {\"tasks\": 2, \"pairs\": [[0, 1, -1, 0]]}}",
		      "pairs");
	pairs_refused("{\"nodes\": [{}], \"job\": {\"pairs\": 3}}", "list");
	pairs_refused("{\"nodes\": [{}], \"job\": {\"phases\": 1.5}}", "phases");
	pairs_refused("{\"nodes\": [{\"port\": {\"speed\": 3}}], \"job\": {}}", "speed");
}

/* What nodes have of the data, too; a node that leaves takes its part along. */
static void test_held(void **state)
{
	struct view_file v, back;
	struct iocom_err err = {0};
	json_t *document;
	size_t n;
	char *text;

	(void)state;
	decode("{\"nodes\": [{}, {}, {\"name\": \"x\"}], \"job\": {\"initial_mb\": 9,"
	       "\"held\": {\"x\": 2.5, \"n1\": 0}}}",
	       &v);
	assert_int_equal(v.job.nheld, 2);
	assert_true(v.job.held[0].node == 0 && v.job.held[0].mb == 0);
	assert_true(v.job.held[1].node == 2 && v.job.held[1].mb == 2.5);
	document = view_file_json(&v);
	text = json_text_dump(document, &n);
	assert_int_equal(view_file_decode("t.json", text, n, &back, &err), 0);
	assert_int_equal(back.job.nheld, 2);
	assert_true(back.job.held[1].node == 2 && back.job.held[1].mb == 2.5);
	view_file_remove(&back, 0);
	assert_int_equal(back.job.nheld, 1);
	assert_true(back.job.held[0].node == 1 && back.job.held[0].mb == 2.5);
	json_decref(document);
	free(text);
	view_file_fini(&v);
	view_file_fini(&back);
}

/* A node leaves with its factor, and the others keep theirs. */
static void test_remove(void **state)
{
	struct view_file v;

	(void)state;
	decode("{\"home\": 2, \"nodes\": [{}, {\"ram_mb\": 7}, {}], \"job\": {\"corrections\":"
	       "{\"n1\": 0.5, \"n2\": 2, \"n3\": 4}}}",
	       &v);
	view_file_remove(&v, 1);
	assert_int_equal(v.nnodes, 2);
	assert_string_equal(v.nodes[1].node.name, "n3");
	assert_int_equal(v.home, 1);
	assert_int_equal(v.job.ncorrections, 2);
	assert_true(v.job.corrections[0].node == 0 && v.job.corrections[0].factor == 0.5);
	assert_true(v.job.corrections[1].node == 1 && v.job.corrections[1].factor == 4);
	view_file_remove(&v, 1); /* home */
	assert_true(v.nnodes == 1 && v.home == 0 && v.job.ncorrections == 1);
	view_file_remove(&v, 0);
	assert_true(v.nnodes == 0 && v.home == 0 && v.job.ncorrections == 0);
	view_file_fini(&v);
}

static char *encode(const struct view_file *v, size_t *n)
{
	json_t *document = view_file_json(v);
	char *text;

	assert_non_null(document);
	text = json_text_dump(document, n);
	assert_non_null(text);
	json_decref(document);
	return text;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct draws d = {seed};
		struct iocom_err err = {0};
		struct view_file v, back;
		size_t n, m;
		char *text, *again;

		view_random(&d, &v);
		text = encode(&v, &n);
		if (view_file_decode("t.json", text, n, &back, &err))
			fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
		same_view(&v, &back);
		again = encode(&back, &m);
		assert_string_equal(text, again);
		free(text);
		free(again);
		view_file_fini(&v);
		view_file_fini(&back);
	}
}

static void test_numbers(void **state)
{
	static const double values[] = {0,     1,	  -1,	0.1,	1.0 / 3,
					1e21,  1e-300,	  4e15, 5e-324, 2.5e17,
					1e300, 123456789, 0.7,	1e22,	125};
	char out[JSON_TEXT_NUMBER_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		size_t n = json_text_number(values[i], out);

		assert_int_equal(n, strlen(out));
		assert_true(strtod(out, NULL) == values[i]);
		assert_non_null(strpbrk(out, ".e"));
	}
	json_text_number(0.1, out);
	assert_string_equal(out, "0.1");
	json_text_number(125, out);
	assert_string_equal(out, "125.0");
}

#define NODE	   "{\"name\": \"n1\"}"
#define VIEW(node) "{\"nodes\": [" node "], \"job\": {}}"
#define JOB(job)   "{\"nodes\": [" NODE "], \"job\": " job "}"

/* Wrong texts, and what the error must say. */
static const struct {
	const char *text, *said;
} errors[] = {
	{"", "t.json:1:1: '[' or '{' expected"},
	{"[]", "t.json:1:1: expected an object, found a list"},
	{"{\n \"home\": nope}", "t.json:2:10: home: invalid token near 'nope'"},
	{"{} {}", "end of file expected"},
	{"{\"job\": {}}", "t.json:1:1: nodes: expected a list of at least one node, found nothing"},
	{"{\"nodes\": [], \"job\": {}}",
	 "nodes: expected a list of at least one node, found a list"},
	{"{\"nodes\": {}, \"job\": {}}",
	 "nodes: expected a list of at least one node, found an object"},
	{"{\"nodes\": [" NODE "]}", "t.json:1:1: job: expected an object, found nothing"},
	{"{\"nodes\": [" NODE "], \"job\": 3}", "job: expected an object, found 3"},
	{"{\"version\": 2, \"nodes\": [" NODE "], \"job\": {}}",
	 "version: expected 1, the version that this program reads, found 2"},
	{"{\"jobs\": {}}", "t.json:1:10: jobs: unknown field; expected one of version, time_ms"},
	{"{\"rates\": \"cpu\", \"nodes\": [" NODE "], \"job\": {}}",
	 "rates: expected \"computation\" or \"wall\", found \"cpu\""},
	{"{\"home\": 1, \"nodes\": [" NODE "], \"job\": {}}",
	 "t.json:1:10: home: expected the index of a node, 0 to 0, found 1"},
	{"{\"home\": -1, \"nodes\": [" NODE "], \"job\": {}}",
	 "home: expected a whole number from 0 to 4294967295, found -1"},
	{"{\"home\": 0.5, \"nodes\": [" NODE "], \"job\": {}}", "home: expected a whole number"},
	{"{\"seed\": \"x\", \"nodes\": [" NODE "], \"job\": {}}", "seed: expected a whole number"},
	{"{\"time_ms\": true, \"nodes\": [" NODE "], \"job\": {}}",
	 "time_ms: expected a number, found true"},
	{"{\"params\": {\"w_oi\": 1}, \"nodes\": [" NODE "], \"job\": {}}",
	 "params.w_oi: no parameter of the rules has this name"},
	{"{\"params\": {\"w_io\": 2}, \"nodes\": [" NODE "], \"job\": {}}",
	 "params.w_io: expected a value in the parameter's range, found 2"},
	{"{\"params\": {\"w_io\": -1}, \"nodes\": [" NODE "], \"job\": {}}",
	 "params.w_io: expected a number that is not negative, found -1"},
	{"{\"params\": {\"w_io\": \"1\"}, \"nodes\": [" NODE "], \"job\": {}}",
	 "params.w_io: expected a number, found \"1\""},
	{"{\"params\": [], \"nodes\": [" NODE "], \"job\": {}}",
	 "params: expected an object of parameters, found a list"},
	{"{\"network_mb_per_s\": 0, \"nodes\": [" NODE "], \"job\": {}}",
	 "network_mb_per_s: expected a value in the parameter's range, found 0"},
	{"{\"network_mb_per_s\": 5, \"params\": {\"network_mb_per_s\": 5}, \"nodes\": [{}], "
	 "\"job\": {}}",
	 "t.json:1:22: network_mb_per_s: expected once, found in \"params\" as well"},
	{VIEW("3"), "nodes[0]: expected an object, found 3"},
	{VIEW(NODE ", " NODE), "nodes[1].name: expected a unique name; \"n1\" is nodes[0]'s name"},
	{VIEW("{\"name\": \"n2\"}, {}"), "nodes[1].name: expected a unique name"},
	{VIEW("{\"name\": \"\"}"), "nodes[0].name: expected a name that is not empty"},
	{VIEW("{\"name\": 7}"), "nodes[0].name: expected a text of at most 63 bytes, found 7"},
	{VIEW("{\"name\": \"a\\u001b[31m\"}"),
	 "nodes[0].name: expected a text without control characters"},
	{VIEW("{\"name\": \"a\\u0000b\"}"), "t.json:1:"},
	{VIEW("{\"ram_mb\": NaN}"), "t.json:1:23: nodes[0].ram_mb: invalid token near 'NaN'; "
				    "expected a JSON value"},
	{VIEW(NODE ", {\"tasks\": [{}, {\"cpu_ms\": -Infinity}]}"),
	 "nodes[1].tasks[1].cpu_ms: invalid token near '-'"},
	{VIEW("{\"ram_mb\": 1e999}"), "nodes[0].ram_mb: real number overflow"},
	{VIEW("{\"ram_mb\": 1, \"ram_mb\": 2}"),
	 "nodes[0]: duplicate object key near '\"ram_mb\"'"},
	{VIEW("{\"ram_mb\": null}"), "nodes[0].ram_mb: expected a number, found null"},
	{VIEW("{\"ram_mb\": 100, \"buffer_mb\": 100}"),
	 "nodes[0].buffer_mb: expected less than ram_mb, found 100"},
	{VIEW("{\"cpu_mips\": 0}"), "nodes[0].cpu_mips: expected a number above 0, found 0"},
	{VIEW("{\"burst_mips\": 799}"),
	 "t.json:1:27: nodes[0].burst_mips: expected 0, or a number from cpu_mips, found 799"},
	{VIEW("{\"disk_parallel\": 0.5}"),
	 "nodes[0].disk_parallel: expected 0, or a number from 1, found 0.5"},
	{VIEW("{\"burst_mips\": -1}"),
	 "nodes[0].burst_mips: expected a number that is not negative, found -1"},
	{VIEW("{\"cores\": 0.5}"), "nodes[0].cores: expected a number from 1, found 0.5"},
	{VIEW("{\"mips\": 0}"), "nodes[0].mips: unknown field; expected one of name, ram_mb"},
	{VIEW("{\"tasks\": {}}"), "nodes[0].tasks: expected a list of tasks, found an object"},
	{VIEW("{\"tasks\": [[]]}"), "nodes[0].tasks[0]: expected an object, found a list"},
	{VIEW(NODE ", {\"tasks\": [{}, {\n\"io_per_ms\": -1}]}"),
	 "t.json:2:14: nodes[1].tasks[1].io_per_ms: expected a number that is not negative, found "
	 "-1"},
	{VIEW("{\"tasks\": [{\"pinned\": 1}]}"),
	 "nodes[0].tasks[0].pinned: expected true or false, found 1"},
	{VIEW("{\"measured\": {\"queue\": 1}}"), "nodes[0].measured.queue: unknown field"},
	{VIEW("{\"measured\": null}"), "nodes[0].measured: expected an object, found null"},
	{VIEW("{\"advertised\": {\"cpu\": -1}}"), "nodes[0].advertised.cpu: expected a number"},
	{VIEW("{\"sharers\": []}"), "nodes[0].sharers: expected an object, found a list"},
	{VIEW("{\"sharers\": {}}"),
	 "nodes[0].sharers.cpu: expected a number that is not negative, found nothing"},
	{VIEW("{\"sharers\": {\"cpu\": 1, \"disk\": 0, \"cpu_left_ms\": 9}}"),
	 "nodes[0].sharers.disk_left_ms: expected a number that is not negative, found nothing"},
	{VIEW("{\"sharers\": {\"cpu\": 1, \"disk\": -2, \"cpu_left_ms\": 9, \"disk_left_ms\": 0}}"),
	 "nodes[0].sharers.disk: expected a number that is not negative, found -2"},
	{VIEW("{\"sharers\": {\"cpu_ms\": 1}}"), "nodes[0].sharers.cpu_ms: unknown field"},
	{VIEW("{\"zatti\": {\"cpu_idle_percent\": 101}}"),
	 "nodes[0].zatti.cpu_idle_percent: expected a number from 0 to 100, found 101"},
	{VIEW("{\"owner\": {\"accepts\": \"yes\"}}"),
	 "nodes[0].owner.accepts: expected true or false, found \"yes\""},
	{VIEW("{\"charged\": 1}"), "nodes[0].charged: expected a list of jobs, found 1"},
	{VIEW("{\"charged\": [{\"tasks\": 2}]}"), "nodes[0].charged[0].tasks: expected 1, found 2"},
	{VIEW("{\"tasks\": [{\"memory_mb\": 1e308}, {\"memory_mb\": 1e308}], \"zatti\": {}}"),
	 "t.json:1:12: nodes[0]: expected loads whose sums do not overflow"},
	{"{\"nodes\": [{}], \"job\": {\"tasks\": 0}}",
	 "job.tasks: expected a whole number from 1 to 1000000, found 0"},
	{"{\"nodes\": [{}], \"job\": {\"tasks\": 1000001}}", "job.tasks: expected a whole number"},
	{"{\"nodes\": [{}], \"job\": {\"requests\": \"many\"}}",
	 "job.requests: expected a number, found \"many\""},
	{"{\"nodes\": [{}], \"job\": {\"com_ms\": 0}}",
	 "job.com_ms: expected a list of numbers, found 0"},
	{"{\"nodes\": [{}], \"job\": {\"com_ms\": [0, -4], \"tasks\": 3}}",
	 "t.json:1:39: job.com_ms[1]: expected a number that is not negative, found -4"},
	{"{\"nodes\": [{}], \"job\": {\"com_ms\": [0, 4]}}",
	 "job.com_ms: expected at most 1 numbers, one a task, found 2"},
	{"{\"nodes\": [{}], \"job\": {\"class\": \"x\"}}", "job.class: unknown field"},
	{JOB("{\"corrections\": [1]}"),
	 "job.corrections: expected an object of factors by the nodes' names, found a list"},
	{JOB("{\"corrections\": {\"n1\": 1, \"n2\": 2}}"),
	 "t.json:1:68: job.corrections.n2: expected the name of a node of this view"},
	{JOB("{\"corrections\": {\"n1\": 0.24}}"),
	 "job.corrections.n1: expected a factor from 0.25 to 1024, found 0.24"},
	{JOB("{\"corrections\": {\"n1\": 1025}}"),
	 "job.corrections.n1: expected a factor from 0.25 to 1024, found 1025"},
	{JOB("{\"corrections\": {\"n1\": -1}}"),
	 "job.corrections.n1: expected a number that is not negative, found -1"},
	{JOB("{\"corrections\": {\"n1\": null}}"),
	 "job.corrections.n1: expected a number, found null"},
	{JOB("{\"held\": [1]}"),
	 "job.held: expected an object of MB by the nodes' names, found a list"},
	{JOB("{\"held\": {\"n7\": 1}}"), "job.held.n7: expected the name of a node of this view"},
	{JOB("{\"held\": {\"n1\": -1}}"),
	 "job.held.n1: expected a number that is not negative, found -1"},
	{JOB("{\"shared\": 1}"), "job.shared: expected an object, found 1"},
	{JOB("{\"shared\": {\"read_mb\": -1}}"),
	 "job.shared.read_mb: expected a number that is not negative, found -1"},
	{JOB("{\"shared\": {\"server\": \"n7\"}}"),
	 "job.shared.server: expected the name of a node of this view"},
	{JOB("{\"shared\": {\"cached\": {\"n7\": 1}}}"),
	 "job.shared.cached.n7: expected the name of a node of this view"},
	{JOB("{\"shared\": {\"disk\": 1}}"), "job.shared.disk: unknown field"},
	{JOB("{\"correction\": 0}"),
	 "job.correction: expected a factor from 0.25 to 1024, found 0"},
	{JOB("{\"correction\": \"1\"}"), "job.correction: expected a number, found \"1\""},
	{VIEW("{\"charged\": [{\"correction\": 2}]}"),
	 "nodes[0].charged[0].correction: unknown field"},
	{VIEW("{\"charged\": [{\"corrections\": {\"n1\": 2}}]}"),
	 "nodes[0].charged[0].corrections: unknown field"},
};

static void test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct iocom_err err = {0};
		struct view_file v;
		int rc = view_file_decode("t.json", errors[i].text, strlen(errors[i].text), &v,
					  &err);

		if (rc != -EINVAL || !strstr(err.text, errors[i].said))
			fail_msg("%s\n%d '%s'\nwanted '%s'", errors[i].text, rc, err.text,
				 errors[i].said);
	}
}

static void refused(const char *text, size_t length, const char *said)
{
	struct iocom_err err = {0};
	struct view_file v;

	assert_int_equal(view_file_decode("t.json", text, length, &v, &err), -EINVAL);
	if (!strstr(err.text, said))
		fail_msg("'%s', wanted '%s'", err.text, said);
}

static void test_sizes(void **state)
{
	size_t deep = 100000;
	char *text = malloc(deep);
	struct iocom_err err = {0};
	struct view_file v;

	(void)state;
	assert_non_null(text);
	memset(text, '[', deep);
	refused(text, deep, "maximum parsing depth reached");
	free(text);
	/* The size is checked before the text. */
	refused("{", (size_t)VIEW_BYTES_MAX + 1, "larger than 128 MB");
	refused("{\"a\": \"\xff\"}", 10, "unable to decode byte 0xff");
	refused("{\"a\0\": 1}", 9, "t.json:1:");
	assert_int_equal(view_file_read("/nonexistent/view.json", &v, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot read /nonexistent/view.json: No such file"));
	assert_int_equal(view_file_read("/", &v, &err), -EISDIR);
}

/* --- deciding --------------------------------------------------------------------- */

static json_t *answer(const struct view_file *v, const char *policy)
{
	struct iocom_err err = {0};
	struct view_decision d;
	struct view_policy p;
	json_t *out;

	if (view_policy_parse(policy, &p, &err) || view_decide(v, &p, &d, &err))
		fail_msg("%s", err.text);
	assert_int_equal(d.ntasks, d.plan.queued ? 0 : v->job.tasks);
	out = plan_json(&d, true);
	assert_non_null(out);
	view_decision_fini(&d);
	return out;
}

static void upper(const char *name, char *out)
{
	do
		*out++ = (char)(*name >= 'a' && *name <= 'z' ? *name - 32 : *name);
	while (*name++);
}

static void test_policies(void **state)
{
	static const char *const names[] = {
		"nlb",	   "cpu-re",	   "mem-re",	 "cm",	   "io",	  "io-re",
		"iocm-re", "iocm-re-hom",  "iocm-pm",	 "wal",	   "wal-fc",	  "com",
		"bs",	   "zatti-binary", "zatti-real", "random", "threshold",	  "shortest",
		"cpu-pm",  "mem-pm",	   "io-pm",	 "wal-pm", "least-delay",
	};
	struct iocom_err err = {0};
	struct view_policy p;
	struct view_file v;

	(void)state;
	if (view_file_read("tests/unit/data/view_four.json", &v, &err))
		fail_msg("%s", err.text);
	assert_int_equal(sizeof(names) / sizeof(*names), RULES_POLICIES);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char shout[32], with[32];
		json_t *plain = answer(&v, names[i]), *loud, *fed;

		upper(names[i], shout);
		loud = answer(&v, shout);
		assert_true(json_equal(plain, loud));
		assert_string_equal(json_string_value(json_object_get(plain, "policy")), names[i]);
		snprintf(with, sizeof(with), "FeedBack+%s", names[i]);
		fed = answer(&v, with);
		/* Before any job has ended, the controller has changed nothing. */
		assert_true(plan_json_same(json_object_get(plain, "nodes"),
					   json_object_get(fed, "nodes"), 0));
		snprintf(with, sizeof(with), "feedback+%s", names[i]);
		assert_string_equal(json_string_value(json_object_get(fed, "policy")),
				    strcmp(names[i], "wal-fc") ? with : "wal-fc");
		json_decref(plain);
		json_decref(loud);
		json_decref(fed);
	}
	assert_int_equal(view_policy_parse("iocm", &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "unknown policy 'iocm'; known: nlb cpu-re"));
	assert_non_null(strstr(err.text, "wal-pm"));
	view_file_fini(&v);
}

/* Decides without the codec, with every index. */
static void decide_plainly(const struct view_file *v, enum rules_policy policy,
			   struct rules_plan *plan)
{
	struct rules *rules = rules_new(policy, &v->params, v->seed);
	struct rules_view *view = rules_view_new();
	uint32_t node;

	assert_true(rules && view);
	rules_view_rates(view, v->params.rates);
	rules_view_reference(view, v->params.reference_mips);
	for (uint32_t i = 0; i < v->nnodes; i++) {
		assert_int_equal(rules_view_set(view, i, &v->nodes[i].node), 0);
		for (size_t j = 0; j < v->nodes[i].ncharged; j++)
			assert_int_equal(rules_view_charge(view, i, &v->nodes[i].charged[j]), 0);
	}
	assert_int_equal(rules_place_job(rules, view, v->home, &v->job, plan, &node), 0);
	rules_view_free(view);
	rules_free(rules);
}

static void test_as_without(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct draws d = {seed};
		struct view_file v;

		view_random(&d, &v);
		v.job.tasks = 1;
		for (int i = 0; i < RULES_POLICIES; i++) {
			struct view_decision decision;
			struct view_policy p = {.policy = (enum rules_policy)i, .name = "p"};
			struct rules_plan plan;

			decide_plainly(&v, p.policy, &plan);
			assert_int_equal(view_decide(&v, &p, &decision, NULL), 0);
			assert_int_equal(decision.plan.node, plan.node);
			assert_int_equal(decision.plan.ntied, plan.ntied);
			assert_int_equal(decision.plan.nreasons, plan.nreasons);
			for (uint32_t k = 0; k < plan.nreasons; k++)
				assert_true(plan.reasons[k].left == decision.plan.reasons[k].left &&
					    plan.reasons[k].right ==
						    decision.plan.reasons[k].right);
			view_decision_fini(&decision);
		}
		view_file_fini(&v);
	}
}

/* A view and its copy, read back from a file, decide the same. */
static void test_same_answer(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct draws d = {seed};
		struct view_file v, back;
		size_t n;
		char *text;

		view_random(&d, &v);
		text = encode(&v, &n);
		assert_int_equal(view_file_decode("t", text, n, &back, NULL), 0);
		for (int p = 0; p < RULES_POLICIES; p++) {
			json_t *a = answer(&v, rules_policy_name((enum rules_policy)p));
			json_t *b = answer(&back, rules_policy_name((enum rules_policy)p));

			assert_true(json_equal(a, b));
			json_decref(a);
			json_decref(b);
		}
		free(text);
		view_file_fini(&v);
		view_file_fini(&back);
	}
}

/* Damaged texts give an error or a view, and a view can be decided on or says why not. */
static void test_damaged(void **state)
{
	static const char put[] = "0123456789-.eE\"{}[],: nulltrue\\";
	struct draws d = {99};

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct view_file v;
		size_t n;
		char *text;

		view_random(&d, &v);
		text = encode(&v, &n);
		view_file_fini(&v);
		for (int i = 0; i < 60; i++) {
			struct view_policy p = {.policy = (enum rules_policy)(i % RULES_POLICIES)};
			struct iocom_err err = {0};
			struct view_decision made;
			size_t at = (size_t)draw(&d, (double)n);
			char was = text[at];
			int rc;

			text[at] = put[(size_t)draw(&d, sizeof(put) - 1)];
			rc = view_file_decode("t", text, n, &v, &err);
			assert_true(rc == 0 || (rc == -EINVAL && err.text[0]));
			if (rc == 0) {
				if (view_decide(&v, &p, &made, &err) == 0)
					view_decision_fini(&made);
				else
					assert_true(err.text[0]);
				view_file_fini(&v);
			}
			if (i % 3)
				text[at] = was;
		}
		free(text);
	}
}

static void test_same_plan(void **state)
{
	json_t *a = json_pack("{s:s,s:[f,i],s:{s:s}}", "node", "n1", "x", 2.0, 3, "r", "text", "a");
	json_t *b = json_pack("{s:{s:s},s:[i,i],s:s}", "r", "text", "b", "x", 2, 3, "node", "n1");

	(void)state;
	assert_true(plan_json_same(a, b, 0));
	json_array_set_new(json_object_get(b, "x"), 0, json_real(2.0000001));
	assert_false(plan_json_same(a, b, 0));
	assert_false(plan_json_same(a, b, 1e-9));
	assert_true(plan_json_same(a, b, 1e-7));
	json_array_set_new(json_object_get(b, "x"), 0, json_integer(2));
	json_array_append_new(json_object_get(b, "x"), json_integer(1));
	assert_false(plan_json_same(a, b, 0));
	assert_false(plan_json_same(a, NULL, 0));
	json_array_remove(json_object_get(b, "x"), 2);
	json_object_set_new(b, "node", json_string("n2"));
	assert_false(plan_json_same(a, b, 0));
	json_object_set_new(b, "node", json_string("n1"));
	json_object_set_new(b, "more", json_true());
	assert_false(plan_json_same(a, b, 0));
	assert_false(plan_json_same(b, a, 0));
	json_decref(a);
	json_decref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_example),	   cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_parts),	   cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_numbers),	   cmocka_unit_test(test_errors),
		cmocka_unit_test(test_sizes),	   cmocka_unit_test(test_policies),
		cmocka_unit_test(test_as_without), cmocka_unit_test(test_same_answer),
		cmocka_unit_test(test_same_plan),  cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_manual),	   cmocka_unit_test(test_corrections),
		cmocka_unit_test(test_remove),	   cmocka_unit_test(test_held),
		cmocka_unit_test(test_shared),	   cmocka_unit_test(test_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
