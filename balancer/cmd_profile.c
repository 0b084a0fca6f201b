/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom profile` shows what classes of jobs need, learned from their runs. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/listing.h"
#include "user/pack.h"

static const char help[] =
	"usage: iocom profile [--json] [--run-dir DIR] [CLASS]\n"
	"       iocom profile --forget CLASS [--run-dir DIR]\n"
	"Shows what your classes of jobs need (everybody's for root), learned from their runs.\n\n"
	"  CLASS            only this class, with the phases of its last run, and what\n"
	"                   predictions for it were off by\n"
	"  --forget         forget what was learned of CLASS\n"
	"  --json           one document\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent, no such class); 2 usage\n";

static int ask_profile(const char *run_dir, const char *class_name, bool forget, json_t **answer,
		       struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, class_name ? 4 : 3);
	pack_str(&pk, "op", "profile");
	pack_u64(&pk, "v", 1);
	pack_bool(&pk, "forget", forget);
	if (class_name)
		pack_bin(&pk, "class", class_name, strlen(class_name));
	return client_ask(run_dir, &buffer, answer, err);
}

static void span_cell(struct listing *l, const json_t *object, const char *key)
{
	char span[32];

	listing_span(span, sizeof(span), listing_number(object, key));
	listing_cell(l, "%s", span);
}

static int cmd_profile_print_table(const json_t *profiles)
{
	static const struct listing_column columns[] = {
		{"CLASS", false},     {"USER", false},	{"RUNS", true},
		{"INTENSIVE", false}, {"CPU", true},	{"COM", true},
		{"DISK", true},	      {"MEM MB", true}, {"ELAPSED", true},
	};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *p;
	int rc;

	json_array_foreach (profiles, i, p) {
		listing_cell(l, "%s", listing_string(p, "class"));
		listing_cell(l, "%s", listing_string(p, "user"));
		listing_cell(l, "%.0f", listing_number(p, "runs"));
		listing_cell(l, "%s", listing_string(p, "intensive"));
		span_cell(l, p, "cpu_ms");
		span_cell(l, p, "com_ms");
		span_cell(l, p, "disk_ms");
		listing_cell(l, "%.0f", listing_number(p, "memory_mb"));
		span_cell(l, p, "wall_ms");
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc;
}

/* The least and the most that its disk time can be are often the same. */
static void print_waits(const json_t *last)
{
	double low_ms = listing_number(last, "disk_low_ms");
	double high_ms = listing_number(last, "disk_high_ms");

	printf("  Disk time ");
	if (high_ms - low_ms >= 1)
		printf("between %.0f and ", low_ms);
	printf("%.0f ms, %.0f ms of it for page faults; requests waited\n"
	       "  %.0f ms in queues, the job %.0f ms for a CPU.\n",
	       high_ms, listing_number(last, "fault_ms"), listing_number(last, "disk_wait_ms"),
	       listing_number(last, "run_wait_ms"));
}

static int print_phases(const json_t *profile)
{
	static const struct listing_column columns[] = {
		{"  PHASE", true}, {"MOSTLY", false}, {"CPU", true},
		{"COM", true},	   {"DISK", true},    {"ELAPSED", true},
	};
	const json_t *last = json_object_get(profile, "last_run");
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *p;
	int rc;

	printf("\nThe last run of %s (user %s):\n", listing_string(profile, "class"),
	       listing_string(profile, "user"));
	json_array_foreach (json_object_get(last, "phases"), i, p) {
		listing_cell(l, "  %zu", i + 1);
		listing_cell(l, "%s", listing_string(p, "dominant"));
		span_cell(l, p, "cpu_ms");
		span_cell(l, p, "com_ms");
		span_cell(l, p, "disk_ms");
		span_cell(l, p, "wall_ms");
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	print_waits(last);
	return rc;
}

/* Shows what predictions for the class were off by, and how decisions correct them. */
static int print_corrections(const json_t *profile)
{
	static const struct listing_column columns[] = {
		{"  NODE", false},
		{"JOBS", true},
		{"TOOK/EXPECTED", true},
		{"FACTOR", true},
	};
	const json_t *all = json_object_get(profile, "corrections");
	struct listing *l;
	double jobs;
	size_t i;
	json_t *n;
	int rc;

	if (!json_is_object(all))
		return 0;
	jobs = listing_number(all, "jobs");
	printf("\n%.0f job%s took %.2f times what was expected before correction.  The next "
	       "expectation\n"
	       "is corrected by %.2f, and at these nodes by FACTOR:\n",
	       jobs, jobs == 1 ? "" : "s", listing_number(all, "ratio"),
	       listing_number(all, "factor"));
	l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	json_array_foreach (json_object_get(all, "nodes"), i, n) {
		listing_cell(l, "  %s", listing_string(n, "node"));
		listing_cell(l, "%.0f", listing_number(n, "jobs"));
		listing_cell(l, "%.2f", listing_number(n, "ratio"));
		listing_cell(l, "%.2f", listing_number(n, "factor"));
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc;
}

static int cmd_profile_print(const json_t *answer, const char *class_name, bool forgot)
{
	const json_t *profiles = json_object_get(answer, "profiles");
	json_t *p;
	size_t i;
	int rc;

	if (forgot)
		return 0;
	if (class_name && !json_array_size(profiles)) {
		fprintf(stderr, "iocom profile: nothing is known about a class '%s'\n", class_name);
		return 1;
	}
	if (!json_array_size(profiles)) {
		printf("Nothing is known yet: iocom learns a class from jobs that end with status "
		       "0.\n");
		return listing_end();
	}
	rc = cmd_profile_print_table(profiles);
	json_array_foreach (profiles, i, p) {
		if (class_name && !rc)
			rc = print_phases(p);
		if (class_name && !rc)
			rc = print_corrections(p);
	}
	return rc ? 1 : listing_end();
}

int cmd_profile(int argc, char **argv)
{
	static const struct option options[] = {
		{"forget", no_argument, NULL, 'f'},
		{"json", no_argument, NULL, 'j'},
		{"run-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *run_dir = NULL, *class_name;
	bool forget = false, json = false;
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int c, rc;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'f')
			forget = true;
		else if (c == 'j')
			json = true;
		else if (c == 'r')
			run_dir = optarg;
		else
			return fputs(help, c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2;
	}
	class_name = optind < argc ? argv[optind] : NULL;
	if (optind + 1 < argc || (forget && !class_name)) {
		fprintf(stderr, "iocom profile: %s\n",
			forget && !class_name ? "which class? (`iocom profile` lists them)"
					      : "takes one class");
		return 2;
	}
	if (ask_profile(run_dir, class_name, forget, &answer, &err)) {
		fprintf(stderr, "iocom profile: %s\n", err.text);
		return 1;
	}
	rc = json ? listing_print_json(answer) : cmd_profile_print(answer, class_name, forget);
	json_decref(answer);
	return rc;
}
