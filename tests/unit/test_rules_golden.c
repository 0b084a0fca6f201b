/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Decision traces: for each policy a text with seed, view, request and the plan
 * with its reasons, compared with tests/golden/rules_POLICY.txt.  A change of a
 * decision shows as a diff there.  GOLDEN_UPDATE=1 rewrites the files.
 */
#include <unistd.h>

#include "rules_fixture.h"

#define CASES 6

static const char *golden_dir(void)
{
	const char *dir = getenv("GOLDEN_DIR");

	return dir != NULL ? dir : "tests/golden";
}

static void write_node(FILE *out, const struct rules_node *n)
{
	fprintf(out,
		"  %-4s ram %g MB, %g MIPS x %g cores, disk %g ms + %g MB/s, network %g MB/s%s\n",
		n->name, n->ram_mb, n->cpu_mips, n->cores, n->disk_fixed_ms, n->disk_mb_per_s,
		n->network_mb_per_s, n->accepts ? "" : ", closed");
	fprintf(out, "       advertised: io %.6g (explicit %.6g)/ms, memory %g MB, cpu %g\n",
		n->advertised.io_per_ms, n->advertised.explicit_per_ms, n->advertised.memory_mb,
		n->advertised.cpu);
	if (n->has_measured)
		fprintf(out,
			"       measured: disk %.6g/ms busy %g, E(s) %g, E(s^2) %g, queue %.6g, "
			"io tasks %g\n",
			n->measured.disk_arrivals_per_ms, n->measured.disk_utilisation,
			n->measured.service_ms, n->measured.service_ms2, n->measured.cpu_queue,
			n->measured.io_tasks);
}

static void write_request(FILE *out, const struct rules_request *j)
{
	fprintf(out,
		"request: cpu %.6g ms, io %.6g/ms of %g KB, requests %g, memory %.6g MB, "
		"faults %.6g/ms, initial %.6g MB, reaccess %g\n",
		j->cpu_ms, j->io_per_ms, j->request_kb, j->requests, j->memory_mb, j->faults_per_ms,
		j->initial_mb, j->reaccess);
}

static void write_plan(FILE *out, const struct rules_view *view, enum rules_rates rates,
		       const struct rules_plan *plan)
{
	fprintf(out, "plan: %s%s, %u tied, candidates", rules_view_name(view, plan->node),
		plan->stayed ? " (home)" : "", plan->ntied);
	for (uint32_t i = 0; i < plan->ncandidates; i++)
		fprintf(out, " %s", rules_view_name(view, plan->candidates[i]));
	fprintf(out, "\n");
	for (uint32_t i = 0; i < plan->nreasons; i++) {
		const struct rules_reason *r = &plan->reasons[i];

		fprintf(out, "  %-4s %-16s %s  %.9g %s %.9g %s\n", rules_view_name(view, r->node),
			rules_criterion_name(r->criterion), r->holds ? "holds" : "fails", r->left,
			rules_criterion_relation(r->criterion), r->right,
			rules_criterion_unit(r->criterion, rates));
	}
	for (int c = 0; c < RULES_CRITERIA; c++)
		if (plan->refused[c] > 0)
			fprintf(out, "  refused by %s: %u\n", rules_criterion_name(c),
				plan->refused[c]);
}

static void write_case(FILE *out, enum rules_policy policy, uint64_t seed)
{
	enum rules_rates rates = seed % 2 ? RULES_RATES_WALL : RULES_RATES_COMPUTATION;
	struct draws d = {seed};
	struct rules_node nodes[6];
	struct rules_params params;
	struct rules_request job;
	struct rules_plan plan;
	struct rules_view *view;

	for (uint32_t i = 0; i < 6; i++)
		nodes[i] = node_random(&d, i);
	/* A busy home in several ways, so that each policy has something to do. */
	nodes[0].advertised.cpu += 20;
	nodes[0].measured.cpu_queue += 15;
	nodes[0].advertised.memory_mb += seed % 3 == 0 ? nodes[0].ram_mb : 0;
	job = job_random(&d);
	rules_params_default(&params, rates);
	view = view_of(nodes, 6, rates);
	fprintf(out, "seed %llu, %s, %s rates, home n0\nview:\n", (unsigned long long)seed,
		rules_policy_name(policy), rates == RULES_RATES_WALL ? "wall" : "computation");
	for (uint32_t i = 0; i < 6; i++)
		write_node(out, &nodes[i]);
	write_request(out, &job);
	place(policy, &params, view, 0, &job, &plan);
	write_plan(out, view, rates, &plan);
	fprintf(out, "\n");
	rules_view_free(view);
}

static char *trace(enum rules_policy policy, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	assert_non_null(out);
	for (uint64_t seed = 1; seed <= CASES; seed++)
		write_case(out, policy, seed);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void update(const char *path, const char *text, size_t size)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(text, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

/* The first line that differs, for whoever reads the failure. */
static void compare(const char *path, const char *text)
{
	FILE *in = fopen(path, "r");
	char line[512];
	int number = 0;

	if (in == NULL) {
		print_error("%s is missing; GOLDEN_UPDATE=1 writes it\n", path);
		fail();
	}
	while (fgets(line, sizeof(line), in) != NULL) {
		size_t n = strlen(line);

		number++;
		if (strncmp(text, line, n) != 0) {
			print_error("%s:%d\n  there: %s  now:   %.*s\n", path, number, line,
				    (int)strcspn(text, "\n"), text);
			fclose(in);
			fail();
		}
		text += n;
	}
	fclose(in);
	assert_string_equal(text, "");
}

static void decisions_match_their_traces(void **state)
{
	(void)state;
	for (int p = 0; p < RULES_POLICIES; p++) {
		char path[512];
		size_t size;
		char *text = trace(p, &size);

		snprintf(path, sizeof(path), "%s/rules_%s.txt", golden_dir(), rules_policy_name(p));
		if (getenv("GOLDEN_UPDATE") != NULL)
			update(path, text, size);
		compare(path, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decisions_match_their_traces),
	};

	return cmocka_run_group_tests_name("rules: golden traces", tests, NULL, NULL);
}
