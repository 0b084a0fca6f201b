/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom feedback` shows what the feedback controller of this node does, and why. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/listing.h"
#include "user/pack.h"

static const char help[] =
	"usage: iocom feedback [--json]\n"
	"Shows this node's feedback controller (setting feedback = off, dry-run or on):\n"
	"the weight of disk load that wal-fc decides by, the memory for I/O (buffer)\n"
	"that the groups of jobs that do I/O share, its last steps and why, and what\n"
	"each of your jobs has.\n\n"
	"  weight    W_IO, learnt from the slowdowns of jobs submitted here\n"
	"  buffer    applied now, of the node's memory; wanted by the rules; between\n"
	"            least and most\n"
	"  error     wanted less applied, and in how many samples in a row it asked the\n"
	"            same\n"
	"  STATE     free: it does no I/O to speak of; held; would be held (dry-run);\n"
	"            changed by somebody else: left alone; refused by the kernel\n\n"
	"  --json         all of it, one document\n"
	"  --run-dir DIR  the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent); 2 usage\n";

static int feedback_ask(const struct job_command *command, json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", "feedback");
	pack_u64(&pk, "v", 1);
	return client_ask(client_run_dir(command->run_dir), &buffer, answer, err);
}

static void feedback_print_weight(const json_t *w)
{
	double jobs = listing_number(w, "jobs");

	if (json_is_null(w))
		return;
	printf("%-8s W_IO %.3f, W_CPU %.3f", "weight", listing_number(w, "w_io"),
	       listing_number(w, "w_cpu"));
	if (jobs > 0)
		printf("; %.0f job%s ended, mean slowdown %.2f\n", jobs, jobs > 1 ? "s" : "",
		       listing_number(w, "slowdown"));
	else
		printf("; no job has ended yet\n");
}

static void feedback_print_buffer(const json_t *b)
{
	const char *bound = listing_string(b, "bound");

	if (json_is_null(b))
		return;
	printf("%-8s %.0f MB of %.0f; wanted %.0f (least %.0f, most %.0f)\n", "buffer",
	       listing_number(b, "applied_mb"), listing_number(b, "memory_mb"),
	       listing_number(b, "wanted_mb"), listing_number(b, "least_mb"),
	       listing_number(b, "most_mb"));
	if (*bound)
		printf("%-8s it is at its %s and goes no further\n", "", bound);
	printf("%-8s %+.0f MB, in %.0f of %.0f samples: %s\n", "error",
	       listing_number(b, "error_mb"), listing_number(b, "persisted"),
	       listing_number(b, "persist"), listing_string(b, "why"));
}

static void feedback_print_steps(const json_t *answer)
{
	double now_ms = (double)time(NULL) * 1e3;
	const json_t *step;
	char ago[32];
	size_t i;

	json_array_foreach (json_object_get(answer, "steps"), i, step) {
		listing_span(ago, sizeof(ago), now_ms - listing_number(step, "time_ns") / 1e6);
		printf("%-8s %s ago: %.0f -> %.0f MB (wanted %.0f): %s%s\n", i ? "" : "steps", ago,
		       listing_number(step, "from_mb"), listing_number(step, "to_mb"),
		       listing_number(step, "wanted_mb"), listing_string(step, "why"),
		       json_is_true(json_object_get(step, "dry_run")) ? ", dry-run" : "");
	}
}

static void feedback_megabytes(struct listing *l, const json_t *group, const char *key)
{
	if (json_is_number(json_object_get(group, key)))
		listing_cell(l, "%.1f", listing_number(group, key) / 1e6);
	else
		listing_cell(l, "-");
}

static int feedback_print_groups(const json_t *groups)
{
	static const struct listing_column columns[] = {{"JOB", false},	     {"MEMORY MB", true},
							{"CACHE MB", true},  {"BOUND MB", true},
							{"ORIGINAL", false}, {"STATE", false}};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	const json_t *g;
	size_t i;
	int rc;

	json_array_foreach (groups, i, g) {
		const char *original = listing_string(g, "original");
		const char *error = listing_string(g, "error");

		listing_cell(l, "%s", listing_string(g, "job"));
		feedback_megabytes(l, g, "memory_bytes");
		feedback_megabytes(l, g, "cache_bytes");
		feedback_megabytes(l, g, "bound_bytes");
		/* v1 writes a number of 19 digits where there is no bound. */
		listing_cell(l, "%s", !*original ? "-" : strlen(original) > 18 ? "none" : original);
		listing_cell(l, "%s%s%s", listing_string(g, "state"), *error ? ": " : "", error);
	}
	listing_cut(l);
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc;
}

static int feedback_print(const json_t *answer)
{
	const json_t *groups = json_object_get(answer, "groups");
	const char *mode = listing_string(answer, "feedback");
	char text[600];

	if (!strcmp(mode, "off")) {
		printf("feedback off (feedback = dry-run shows what it would do)\n");
		return listing_end();
	}
	snprintf(text, sizeof(text), "%-8s %s, %s; %s", "feedback", mode,
		 listing_string(answer, "controller"), listing_string(answer, "holds"));
	listing_wrap(stdout, text, 9);
	feedback_print_weight(json_object_get(answer, "weight"));
	feedback_print_buffer(json_object_get(answer, "buffer"));
	feedback_print_steps(answer);
	if (*listing_string(answer, "failure")) {
		snprintf(text, sizeof(text), "%-8s %s", "failed",
			 listing_string(answer, "failure"));
		listing_wrap(stdout, text, 9);
	}
	if (json_array_size(groups) && feedback_print_groups(groups))
		return 1;
	return listing_end();
}

int cmd_feedback(int argc, char **argv)
{
	static const struct option options[] = {JOB_COMMAND_OPTION_JSON, JOB_COMMAND_OPTIONS, {0}};
	struct job_command command = {.help = help, .usage_status = 2};
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int rc;

	if (job_command_option(&command, argc, argv, "h", options) == JOB_COMMAND_LEAVE)
		return command.status;
	if (optind < argc) {
		fprintf(stderr, "iocom feedback: takes no argument '%s'\n", argv[optind]);
		return 2;
	}
	if (feedback_ask(&command, &answer, &err)) {
		fprintf(stderr, "iocom feedback: %s\n", err.text);
		return 1;
	}
	rc = command.json ? listing_print_json(answer) : feedback_print(answer);
	json_decref(answer);
	return rc;
}
