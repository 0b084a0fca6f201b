/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What live recordings need beyond the simulator's: views of some nodes in an order of their
 * own, lost lines, several recordings merged into one, jobs that never ran.
 */
#include "tests/unit/view_fixture.h"

#include <errno.h>
#include <unistd.h>

#include "balancer/view/recording.h"

#define FILES 3

static char paths[FILES + 1][64]; /* the last one is the merged recording */

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i <= FILES; i++) {
		int fd;

		snprintf(paths[i], sizeof(paths[i]), "/tmp/iocom-live-XXXXXX");
		fd = mkstemp(paths[i]);
		if (fd < 0)
			return -1;
		close(fd);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i <= FILES; i++)
		unlink(paths[i]);
	return 0;
}

static struct recording_header header_of(const char *node, uint64_t start_ns)
{
	struct recording_header h = {
		.live = true, .policy = "iocm-re", .seed = 1, .start_ns = start_ns};

	snprintf(h.node, sizeof(h.node), "%s", node);
	h.period_ms = 1000;
	h.notice_ms = 100;
	rules_params_default(&h.params, RULES_RATES_WALL);
	return h;
}

/* Makes a live view of N nodes called a, b, c and so on, home first. */
static void live_view(struct draws *d, uint32_t home, uint32_t n, struct view_file *v)
{
	view_file_init(v, RULES_RATES_WALL);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i == 0 ? home : i <= home ? i - 1 : i;
		struct rules_node node = node_random(d, k);

		node.ntasks = 0;
		snprintf(node.name, sizeof(node.name), "%c", 'a' + (int)k);
		node.has_advertised = true;
		node.has_measured = true;
		share_randomly(&node, 1, draw_bits(d));
		assert_int_equal(view_file_add(v, &node), 0);
	}
	v->job = job_random(d);
	v->job.tasks = 1;
	v->seed = draw_bits(d) & VIEW_SEED_MAX;
}

/* Decides on V, whose nodes have these NUMBERS, and records it. */
static int record(struct recorder *r, double time_ms, const struct view_file *v,
		  const uint32_t *numbers, const char *policy)
{
	struct view_decision made;
	struct view_policy p;
	struct recording_decision d = {
		.time_ms = time_ms,
		.job = "j",
		.home = numbers[0],
		.seed = v->seed,
		.params = &v->params,
		.request = &v->job,
		.order = numbers,
		.norder = v->nnodes,
		.changed = v->nodes,
		.indexes = numbers,
		.nchanged = v->nnodes,
	};
	int rc;

	assert_int_equal(view_policy_parse(policy, &p, NULL), 0);
	assert_int_equal(view_decide(v, &p, &made, NULL), 0);
	snprintf(d.policy, sizeof(d.policy), "%s", policy);
	d.plan = &made.plan;
	d.nodes = made.nodes;
	d.moves = made.moves;
	d.nmoves = made.nmoves;
	rc = recorder_decision(r, &d, NULL);
	view_decision_fini(&made);
	return rc;
}

/* Gives numbers to the view's nodes; new ones are written. */
static void number_nodes(struct recorder *r, double time_ms, const struct view_file *v,
			 uint32_t *numbers)
{
	for (uint32_t i = 0; i < v->nnodes; i++) {
		if (!recorder_find(r, v->nodes[i].node.name, &numbers[i]))
			continue;
		numbers[i] = recorder_nodes(r);
		assert_int_equal(recorder_node(r, time_ms, numbers[i], &v->nodes[i], NULL), 0);
	}
}

/* Makes every decision again. Returns how many there are. */
static unsigned int decide_again(const char *from)
{
	const struct recording_line *line;
	struct iocom_err err = {0};
	struct recording *r;
	unsigned int n = 0;
	int rc;

	if (recording_open(from, &r, &err))
		fail_msg("%s", err.text);
	while ((rc = recording_next(r, &line, &err)) > 0) {
		struct view_decision made;

		if (line->kind != RECORDING_DECISION)
			continue;
		n++;
		rc = recording_decide(r, 0, &made, &err);
		if (rc != 1)
			fail_msg("line %llu: %d %s", (unsigned long long)line->number, rc,
				 err.text);
		view_decision_fini(&made);
	}
	if (rc)
		fail_msg("%s", err.text);
	recording_close(r);
	return n;
}

/* --- views of some nodes, in an order of their own ------------------------------------ */

static void test_order(void **state)
{
	struct recording_header h = header_of("a", 0);
	struct recorder *r;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct draws d = {seed};
		unsigned int n = 0;

		assert_int_equal(recorder_open(paths[0], &h, &r, NULL), 0);
		for (int step = 0; step < 8; step++) {
			uint32_t nodes = 1 + (uint32_t)draw(&d, 6), numbers[8];
			struct view_file v;

			live_view(&d, (uint32_t)draw(&d, nodes), nodes, &v);
			number_nodes(r, step, &v, numbers);
			for (int p = 0; p < RULES_POLICIES; p++, n++)
				assert_int_equal(record(r, step, &v, numbers,
							rules_policy_name((enum rules_policy)p)),
						 0);
			view_file_fini(&v);
		}
		assert_int_equal(recorder_close(r, NULL), 0);
		assert_int_equal(decide_again(paths[0]), n);
	}
}

#define HEAD "{\"record\": \"header\", \"version\": 1}\n"
#define NODE(number, name)                                                                         \
	"{\"record\": \"node\", \"time_ms\": 0, \"node\": " #number ", \"name\": \"" name "\"}\n"
#define DECISION(rest)                                                                             \
	"{\"record\": \"decision\", \"time_ms\": 0, \"request\": {}, \"plan\": {}, " rest "}\n"

static void put_text(const char *to, const char *text)
{
	FILE *f = fopen(to, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_order_errors(void **state)
{
	static const struct {
		const char *text, *said;
	} errors[] = {
		{DECISION("\"nodes\": 3"), "nodes: expected a list of the numbers of nodes"},
		{DECISION("\"nodes\": [0, 2]"), "nodes[1]: expected a whole number from 0 to 1"},
		{DECISION("\"nodes\": [1, 0, 1]"), "nodes[2]: node 1 is there twice"},
		{DECISION("\"nodes\": [1]"), "home: expected one of \"nodes\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		const struct recording_line *line;
		struct iocom_err err = {0};
		struct recording *r;
		char text[1000];
		int rc;

		snprintf(text, sizeof(text), "%s%s%s%s", HEAD, NODE(0, "a"), NODE(1, "b"),
			 errors[i].text);
		put_text(paths[0], text);
		assert_int_equal(recording_open(paths[0], &r, &err), 0);
		while ((rc = recording_next(r, &line, &err)) > 0)
			;
		assert_int_equal(rc, -EINVAL);
		if (!strstr(err.text, errors[i].said))
			fail_msg("'%s', wanted '%s'", err.text, errors[i].said);
		recording_close(r);
	}
}

/* --- lost lines ---------------------------------------------------------------------- */

struct lossy {
	FILE *f;
	struct draws draws;
	double chance;
	unsigned int lost;
};

static int lossy_write(void *arg, const char *line, size_t n)
{
	struct lossy *l = arg;

	if (draw_chance(&l->draws, l->chance)) {
		l->lost++;
		return -ENOBUFS;
	}
	assert_int_equal(line[n - 1], '\n');
	return fwrite(line, 1, n, l->f) == n ? 0 : -EIO;
}

/* Writes a node again that could not be written. Returns 0, or an error if its line was lost
 * again. */
static int try_numbers(struct recorder *r, double time_ms, const struct view_file *v,
		       uint32_t *numbers)
{
	for (uint32_t i = 0; i < v->nnodes; i++) {
		if (!recorder_find(r, v->nodes[i].node.name, &numbers[i]))
			continue;
		numbers[i] = recorder_nodes(r);
		if (recorder_node(r, time_ms, numbers[i], &v->nodes[i], NULL))
			return -1;
	}
	return 0;
}

struct last_line {
	bool loses_vectors;
	char text[4096];
};

static int write_last(void *arg, const char *line, size_t n)
{
	struct last_line *l = arg;

	assert_true(n < sizeof(l->text));
	memcpy(l->text, line, n);
	l->text[n] = 0;
	return l->loses_vectors && strstr(l->text, "\"vector\"") ? -ENOBUFS : 0;
}

/* What is left is written again, although the line of the machine, with a cap now, was not lost. */
static void test_lost_work_left(void **state)
{
	struct recording_header h = header_of("a", 0);
	struct last_line last = {.loses_vectors = false};
	struct view_file v;
	struct rules_node node = node_fc("a");
	struct rules_node *at;
	struct recorder *r;
	char wanted[40];

	(void)state;
	view_file_init(&v, RULES_RATES_WALL);
	assert_int_equal(view_file_add(&v, &node), 0);
	at = &v.nodes[0].node;
	assert_int_equal(recorder_open_to(write_last, &last, &h, &r, NULL), 0);
	assert_int_equal(recorder_node(r, 0, 0, &v.nodes[0], NULL), 0);
	for (double left_ms = 0; left_ms < 3000; left_ms += 1000) {
		at->burst_mips += at->cpu_mips;
		at->has_sharers = true;
		at->sharers.cpu_left_ms = left_ms;
		last.loses_vectors = true;
		assert_int_equal(recorder_node(r, 0, 0, &v.nodes[0], NULL), -ENOBUFS);
		last.loses_vectors = false;
		last.text[0] = 0;
		assert_int_equal(recorder_node(r, 0, 0, &v.nodes[0], NULL), 0);
		assert_non_null(strstr(last.text, "\"vector\""));
		snprintf(wanted, sizeof(wanted), "\"cpu_left_ms\":%.1f", left_ms);
		assert_non_null(strstr(last.text, wanted));
	}
	assert_int_equal(recorder_close(r, NULL), 0);
	view_file_fini(&v);
}

static void test_lost_lines(void **state)
{
	struct recording_header h = header_of("a", 0);

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct lossy l = {fopen(paths[0], "w"), {seed}, 0, 0};
		struct draws d = {seed + 100};
		struct recorder *r;
		unsigned int kept = 0;

		assert_int_equal(recorder_open_to(lossy_write, &l, &h, &r, NULL), 0);
		l.chance = 0.4;
		for (int step = 0; step < 200; step++) {
			uint32_t nodes = 1 + (uint32_t)draw(&d, 6), numbers[8];
			struct view_file v;

			live_view(&d, 0, nodes, &v);
			if (!try_numbers(r, step, &v, numbers)) {
				for (uint32_t i = 0; i < nodes; i++)
					recorder_node(r, step, numbers[i], &v.nodes[i], NULL);
				kept += record(r, step, &v, numbers,
					       step % 2 ? "iocm-re" : "least-delay") == 0;
			}
			view_file_fini(&v);
		}
		recorder_dropped(r, l.lost);
		l.chance = 0;
		assert_int_equal(recorder_flush(r, NULL), 0);
		assert_int_equal(recorder_close(r, NULL), 0);
		fclose(l.f);
		assert_true(l.lost > 0 && kept > 0);
		assert_int_equal(decide_again(paths[0]), kept);
	}
	/* Without its header there is no recording. */
	{
		struct lossy none = {NULL, {1}, 1, 0};
		struct recorder *r;
		struct iocom_err err = {0};

		assert_int_equal(recorder_open_to(lossy_write, &none, &h, &r, &err), -ENOBUFS);
		assert_non_null(strstr(err.text, "a line of the recording was lost"));
	}
}

/* --- several recordings merged ------------------------------------------------------- */

static struct recording_job job_of(const char *id, double time_ms, uint32_t home)
{
	struct recording_job j = {.time_ms = time_ms,
				  .home = home,
				  .tasks = 1,
				  .cpu_ms = 100,
				  .io_per_ms = 0.3,
				  .request_kb = 64,
				  .requests = 700,
				  .memory_mb = 20};

	snprintf(j.id, sizeof(j.id), "%s", id);
	return j;
}

static struct recording_finish end_of(const char *id, double time_ms, uint32_t node)
{
	struct recording_finish f = {
		.time_ms = time_ms,
		.start_ms = time_ms - 500,
		.node = node,
		.has_measured = true,
		.measured = {.wall_ms = 490, .cpu_ms = 80, .requests = 690, .request_mb = 44.16},
	};

	snprintf(f.id, sizeof(f.id), "%s", id);
	return f;
}

/* Makes node INDEX's own recording, begun INDEX seconds after the first. */
static unsigned int record_node(uint32_t index, bool whole)
{
	char name[2] = {(char)('a' + (int)index), 0}, id[32];
	struct recording_header h = header_of(name, 1790000000000000000u + index * 1000000000ull);
	struct draws d = {index + 5};
	struct recorder *r;
	unsigned int n = 0;

	assert_int_equal(recorder_open(paths[index], &h, &r, NULL), 0);
	for (int step = 0; step < 6; step++) {
		uint32_t numbers[FILES];
		struct recording_job job;
		struct recording_finish end;
		struct view_file v;
		double t = step * 700;

		live_view(&d, index, FILES, &v);
		number_nodes(r, t, &v, numbers);
		for (uint32_t i = 0; i < FILES && step % 2; i++)
			assert_int_equal(recorder_node(r, t, numbers[i], &v.nodes[i], NULL), 0);
		snprintf(id, sizeof(id), "%s-%d", name, step);
		job = job_of(id, t, numbers[0]);
		assert_int_equal(recorder_submit(r, &job, NULL), 0);
		for (int p = 0; p < RULES_POLICIES; p++, n++)
			assert_int_equal(
				record(r, t, &v, numbers, rules_policy_name((enum rules_policy)p)),
				0);
		end = end_of(id, t + 600, numbers[step % FILES]);
		assert_int_equal(recorder_finish(r, &end, NULL), 0);
		view_file_fini(&v);
	}
	recorder_dropped(r, index);
	recorder_disturbed(r, &(struct recording_end){.others_cpu = 0.25 * index,
						      .stolen = 0.5 - 0.25 * index});
	if (whole)
		assert_int_equal(recorder_close(r, NULL), 0);
	else
		recorder_abandon(r);
	return n;
}

static const char *const all[FILES] = {paths[0], paths[1], paths[2]};

static void test_merge(void **state)
{
	const struct recording_line *line;
	unsigned int n = 0, cut, jobs = 0, ends = 0;
	struct recording_end ended = {0};
	struct iocom_err err = {0};
	struct recording *r;
	double time_ms = 0;

	(void)state;
	for (uint32_t i = 0; i < FILES; i++)
		n += record_node(i, i != 1);
	if (recording_merge(all, FILES, paths[FILES], &cut, &err))
		fail_msg("%s", err.text);
	assert_int_equal(cut, 1);
	assert_int_equal(decide_again(paths[FILES]), n);
	assert_int_equal(recording_open(paths[FILES], &r, &err), 0);
	assert_string_equal(recording_header(r)->node, "");
	assert_true(recording_header(r)->start_ns == 1790000000000000000u);
	assert_true(recording_header(r)->notice_ms == 100);
	while (recording_next(r, &line, &err) > 0) {
		uint32_t count;
		const struct view_node *nodes = recording_nodes(r, &count);

		assert_true(line->time_ms >= time_ms);
		time_ms = line->time_ms;
		if (line->kind == RECORDING_SUBMIT) {
			const struct recording_job *j = &line->job;

			/* "b-3" was submitted at b, 3 x 700 ms after b's own start. */
			assert_int_equal(nodes[j->home].node.name[0], j->id[0]);
			assert_true(j->time_ms ==
				    (j->id[0] - 'a') * 1000.0 + (j->id[2] - '0') * 700.0);
			jobs++;
		}
		ends += line->kind == RECORDING_FINISH;
		if (line->kind == RECORDING_FINISH)
			assert_true(line->finish.start_ms == line->finish.time_ms - 500);
		if (line->kind == RECORDING_END)
			ended = line->end;
	}
	assert_true(recording_complete(r));
	/* b's end line is missing; of what disturbed, the most at any node */
	assert_int_equal(ended.dropped, 0 + 2);
	assert_true(ended.others_cpu == 0.5 && ended.stolen == 0.5);
	recording_nodes(r, &n);
	assert_int_equal(n, FILES);
	assert_int_equal(jobs, 18);
	assert_int_equal(ends, 18);
	recording_close(r);
}

static void test_merge_refused(void **state)
{
	const char *const twice[] = {paths[0], paths[0]}, *const simulated[] = {paths[0], paths[2]};
	const char *const missing[] = {"/nonexistent/x"};
	struct iocom_err err = {0};
	unsigned int cut;

	(void)state;
	record_node(0, true);
	assert_int_equal(recording_merge(twice, 2, paths[FILES], &cut, &err), -EINVAL);
	assert_non_null(strstr(err.text, "are both of node 'a'"));
	put_text(paths[2], HEAD NODE(0, "z"));
	assert_int_equal(recording_merge(simulated, 2, paths[FILES], &cut, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is of a simulated run"));
	assert_int_equal(recording_merge(missing, 1, paths[FILES], &cut, &err), -ENOENT);
	assert_int_equal(recording_merge(NULL, 0, paths[FILES], &cut, &err), -EINVAL);
	assert_int_equal(recording_merge(all, 1, "/nonexistent/x", &cut, &err), -ENOENT);
	assert_int_equal(recording_merge(all, 1, "/dev/full", &cut, &err), -ENOSPC);
}

/* --- jobs ---------------------------------------------------------------------------- */

static void test_times(void **state)
{
	struct recording_job j = job_of("1", 1000, 0);
	struct recording_finish f = end_of("1", 3000, 0);

	(void)state;
	assert_true(recording_turnaround_ms(&j, NULL) < 0);
	f.start_ms = 1200;
	assert_true(recording_turnaround_ms(&j, &f) == 690);
	f.start_ms = 900; /* the node's clock is behind */
	assert_true(recording_turnaround_ms(&j, &f) == 490);
	f.measured.wall_ms = 0;
	assert_true(recording_turnaround_ms(&j, &f) == 2000);
	assert_false(recording_never_ran(&f));
	f.measured.cpu_ms = f.measured.requests = 0;
	assert_true(recording_never_ran(&f));
	assert_true(recording_turnaround_ms(&j, &f) < 0);
	f.has_measured = false;
	assert_false(recording_never_ran(&f));
	assert_true(recording_turnaround_ms(&j, &f) == 2000);
}

static void test_jobs(void **state)
{
	struct recording_job j;
	struct recording_jobs *jobs;
	struct iocom_err err = {0};
	char id[32];

	(void)state;
	record_node(0, true);
	assert_int_equal(recording_jobs_open(paths[0], &jobs, &err), 0);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(recording_jobs_next(jobs, &j, &err), 1);
		snprintf(id, sizeof(id), "a-%d", i);
		assert_string_equal(recording_jobs_submitted(jobs)->id, id);
		assert_true(recording_jobs_submitted(jobs)->requests == 700 && j.requests == 690);
		assert_string_equal(recording_jobs_finish(jobs)->id, id);
	}
	assert_int_equal(recording_jobs_next(jobs, &j, &err), 0);
	recording_jobs_free(jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	   cmocka_unit_test(test_order_errors),
		cmocka_unit_test(test_lost_lines), cmocka_unit_test(test_lost_work_left),
		cmocka_unit_test(test_merge),	   cmocka_unit_test(test_merge_refused),
		cmocka_unit_test(test_times),	   cmocka_unit_test(test_jobs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
