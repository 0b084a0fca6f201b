/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom nodes` prints the load matrix as the local agent knows it, one row a node. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/listing.h"
#include "user/pack.h"

#define WIDE	 137   /* a terminal of this many columns shows all */
#define LARGE_MB 10000 /* memory is told in GB from here on, where there is little room */

static const char help[] =
	"usage: iocom nodes [--wide | --peers | --links] [--json]\n"
	"                   [--watch[=SECONDS]] [--run-dir DIR]\n"
	"Prints the load matrix: what each node reported of itself, and how long ago.\n\n"
	"  NODE      * marks this machine\n"
	"  AGE       since its newest vector arrived; a node silent for 3 periods is\n"
	"            dropped\n"
	"  RUNQ      runnable tasks, mean of the period\n"
	"  CORES     number x relative speed of one (a CPU quota counts as a slower one)\n"
	"  MEM MB    requested / what jobs may use; with G at the end: GB\n"
	"  EXPL/s    explicit I/O (EXPLICIT/s): requests/s as tasks make them (the disk\n"
	"            may split one into several, which the disk line of iocom top\n"
	"            counts).  Of each job the most of what it measured and what it\n"
	"            announced (--io-rate, or earlier runs of its class), until it ends\n"
	"  IMPL/s    implicit I/O (IMPLICIT/s): the same for page faults, only measured\n"
	"  DISK      utilisation; E(s) mean service time of a request; CAPACITY\n"
	"            throughput\n"
	"  LEFT      seconds of computing / at the disk that its tasks have left: jobs\n"
	"            what their class needs less what they did\n"
	"  SENT RECV TCP that leaves or enters the node\n"
	"  JOBS      of iocom that run there\n"
	"  OWNER     open, limited, draining, drained, closed: what its owner lets jobs\n"
	"            of other nodes do; the lines below the table say more, and\n"
	"            `iocom owner --node NODE` all\n\n"
	"Below it: nodes that were dropped, and configured peers that are not heard, and\n"
	"why.\n\n"
	"  --peers          all configured peers, and why one is not heard\n"
	"  --links          this node's links to the others, from the kernel's counts of\n"
	"                   all TCP connections: RTT ms, the least round trip; NOW MB/s,\n"
	"                   carried in the last period; AT LEAST MB/s, the most that\n"
	"                   was ever carried: the link may be faster; TCP MB/s, its\n"
	"                   estimate by the last connection that filled the link; AGE,\n"
	"                   of what is before it; -: no connection has shown it yet\n"
	"  --wide           all columns, as on a terminal of 137 or more: E(s), CAPACITY,\n"
	"                   LEFT, SENT and RECV, too; and a line on the caches of\n"
	"                   data that went along with jobs (iocom run --data)\n"
	"  --json           the whole vectors, one document\n"
	"  --watch[=S]      repeat every S seconds [1], also after a restart of the agent\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"exit status: 0; 1 failed (no agent); 2 usage\n";

static int ask_nodes(struct client_patience *patience, const char *run_dir, json_t **answer,
		     struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", "nodes");
	pack_u64(&pk, "v", 1);
	return client_ask_patiently(patience, run_dir, &buffer, answer, err);
}

/* Requests per second of the kind KEY. */
static void rate_cell(struct listing *l, const json_t *n, const char *key)
{
	double per_s = 1000 * listing_number(n, key);

	listing_cell(l, "%.*f", per_s < 1000 ? 1 : 0, per_s);
}

static void memory_cell(struct listing *l, const json_t *n, bool wide)
{
	double asked = listing_number(n, "memory_requested_mb"),
	       all = listing_number(n, "memory_mb");

	if (wide || all < LARGE_MB)
		listing_cell(l, "%.0f/%.0f", asked, all);
	else
		listing_cell(l, "%.0f/%.0fG", asked / 1000, all / 1000);
}

static void disk_cells(struct listing *l, const json_t *n, bool wide)
{
	if (!wide && listing_number(n, "disks") <= 0) {
		listing_cell(l, "none");
		return;
	}
	if (!wide) {
		listing_cell(l, "%.0f %%", 100 * listing_number(n, "disk_utilisation"));
		return;
	}
	if (listing_number(n, "disks") <= 0) {
		listing_cell(l, "-");
		listing_cell(l, "none");
		listing_cell(l, "-");
		return;
	}
	listing_cell(l, "%.0f %%", 100 * listing_number(n, "disk_utilisation"));
	if (listing_number(n, "disk_service_ms") > 0)
		listing_cell(l, "%.2f ms", listing_number(n, "disk_service_ms"));
	else
		listing_cell(l, "idle");
	listing_cell(l, "%.0f MB/s", listing_number(n, "disk_mb_per_s"));
}

static void cmd_nodes_row(struct listing *l, const json_t *n, bool wide)
{
	const char *owner;
	char age[32];
	size_t length;

	listing_span(age, sizeof(age), listing_number(n, "age_ms"));
	listing_cell(l, "%s%s", listing_string(n, "name"),
		     json_is_true(json_object_get(n, "self")) ? "*" : "");
	listing_cell(l, "%s", age);
	listing_cell(l, "%.1f", listing_number(n, "run_queue"));
	listing_cell(l, "%.0fx%.2f", listing_number(n, "cores"), listing_number(n, "cpu_speed"));
	memory_cell(l, n, wide);
	rate_cell(l, n, "explicit_per_ms");
	rate_cell(l, n, "implicit_per_ms");
	disk_cells(l, n, wide);
	if (wide) {
		listing_cell(l, "%.1f/%.1f", listing_number(n, "cpu_left_ms") / 1e3,
			     listing_number(n, "disk_left_ms") / 1e3);
		listing_cell(l, "%.2f", listing_number(n, "sent_mb_per_s"));
		listing_cell(l, "%.2f", listing_number(n, "received_mb_per_s"));
	}
	listing_cell(l, "%.0f", listing_number(n, "jobs"));
	owner = listing_string(n, "owner");
	length = strcspn(owner, ":");
	if (length)
		listing_cell(l, "%.*s", (int)length, owner);
	else
		listing_cell(l, "%s",
			     json_is_true(json_object_get(n, "accepts_jobs")) ? "open" : "closed");
}

/* --- configured peers --------------------------------------------------------------- */

/* Writes how long ago, in seconds, "" for null. */
static const char *cmd_nodes_ago(char out[32], const json_t *peer, const char *key)
{
	*out = 0;
	if (json_is_number(json_object_get(peer, key)))
		listing_span(out, 32, 1e3 * listing_number(peer, key));
	return out;
}

static int cmd_nodes_print_peers(const json_t *answer)
{
	static const struct listing_column columns[] = {{"PEER", false}, {"STATE", false},
							{"SINCE", true}, {"NODE", false},
							{"HEARD", true}, {"WHY", false}};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	const json_t *p;
	char span[32];
	size_t i;
	int rc;

	json_array_foreach (json_object_get(answer, "peers"), i, p) {
		const char *node = listing_string(p, "node");

		listing_cell(l, "%s", listing_string(p, "peer"));
		listing_cell(l, "%s", listing_string(p, "state"));
		listing_cell(l, "%s", *cmd_nodes_ago(span, p, "since_s") ? span : "-");
		listing_cell(l, "%s", *node ? node : "-");
		listing_cell(l, "%s", *cmd_nodes_ago(span, p, "last_heard_s") ? span : "-");
		listing_cell(l, "%s", listing_string(p, "why"));
	}
	listing_cut(l);
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc ? 1 : listing_end();
}

/* --- links --------------------------------------------------------------------------- */

static void cmd_nodes_link_cells(struct listing *l, const json_t *link, const char *value,
				 const char *age, int digits)
{
	char span[32];

	if (!json_is_number(json_object_get(link, value))) {
		listing_cell(l, "-");
		listing_cell(l, "-");
		return;
	}
	listing_cell(l, "%.*f", digits, listing_number(link, value));
	listing_span(span, sizeof(span), 1e3 * listing_number(link, age));
	listing_cell(l, "%s", span);
}

static int cmd_nodes_print_links(const json_t *answer)
{
	static const struct listing_column columns[] = {
		{"NODE", false}, {"CONNECTIONS", true}, {"RTT ms", true},
		{"AGE", true},	 {"NOW MB/s", true},	{"AT LEAST MB/s", true},
		{"AGE", true},	 {"TCP MB/s", true},	{"AGE", true},
	};
	struct listing *l = listing_new(columns, sizeof(columns) / sizeof(columns[0]));
	const json_t *link;
	size_t i;
	int rc;

	json_array_foreach (json_object_get(answer, "links"), i, link) {
		listing_cell(l, "%s", listing_string(link, "node"));
		listing_cell(l, "%.0f", listing_number(link, "connections"));
		cmd_nodes_link_cells(l, link, "round_trip_ms", "round_trip_age_s", 3);
		listing_cell(l, "%.3f", listing_number(link, "carried_mb_per_s"));
		cmd_nodes_link_cells(l, link, "at_least_mb_per_s", "at_least_age_s", 3);
		cmd_nodes_link_cells(l, link, "tcp_mb_per_s", "tcp_age_s", 3);
	}
	rc = listing_print(l, stdout);
	listing_free(l);
	return rc ? 1 : listing_end();
}

/* Prints NAME, WHAT and TEXT, in as many lines as they need. */
static void nodes_line(const char *name, const char *what, const char *text)
{
	char *line;

	if (asprintf(&line, "%s%s%s", name, what, text) < 0)
		return;
	listing_wrap(stdout, line, 2);
	free(line);
}

/* Those that are not heard; a node that was dropped has its line already if no more is known. */
static void cmd_nodes_print_missing(const json_t *answer)
{
	const json_t *p;
	char span[32], head[512];
	size_t i;

	json_array_foreach (json_object_get(answer, "peers"), i, p) {
		const char *state = listing_string(p, "state"), *why = listing_string(p, "why");

		if (json_is_true(json_object_get(p, "heard")) || !strcmp(state, "left") ||
		    (!strcmp(state, "silent") &&
		     json_is_number(json_object_get(p, "last_heard_s"))))
			continue;
		snprintf(head, sizeof(head), "peer %s: %s%s%s%s", listing_string(p, "peer"), state,
			 *cmd_nodes_ago(span, p, "since_s") ? " for " : "", span, *why ? ": " : "");
		nodes_line(head, "", why);
	}
}

/* What the caches of jobs' data have and did, of a node that has any. */
static void cmd_nodes_print_cache(const json_t *n)
{
	char text[256];

	if (listing_number(n, "cache_jobs") <= 0 && listing_number(n, "cache_refused") <= 0)
		return;
	snprintf(text, sizeof(text),
		 "%.1f MB in %.0f files; jobs found %.0f files and copied %.0f; %.0f were "
		 "evicted; %.0f jobs had no room",
		 listing_number(n, "cache_mb"), listing_number(n, "cache_files"),
		 listing_number(n, "cache_hits"), listing_number(n, "cache_misses"),
		 listing_number(n, "cache_evicted"), listing_number(n, "cache_refused"));
	nodes_line(listing_string(n, "name"), ": data cache: ", text);
}

static int cmd_nodes_print_table(const json_t *answer, bool wide)
{
	static const struct listing_column all[] = {
		{"NODE", false},      {"AGE", true},	{"RUNQ", true},
		{"CORES", true},      {"MEM MB", true}, {"EXPLICIT/s", true},
		{"IMPLICIT/s", true}, {"DISK", true},	{"E(s)", true},
		{"CAPACITY", true},   {"LEFT s", true}, {"SENT MB/s", true},
		{"RECV MB/s", true},  {"JOBS", true},	{"OWNER", false},
	};
	static const struct listing_column narrow[] = {
		{"NODE", false},  {"AGE", true},    {"RUNQ", true},   {"CORES", true},
		{"MEM MB", true}, {"EXPL/s", true}, {"IMPL/s", true}, {"DISK", true},
		{"JOBS", true},	  {"OWNER", false},
	};
	struct listing *l = wide ? listing_new(all, sizeof(all) / sizeof(all[0]))
				 : listing_new(narrow, sizeof(narrow) / sizeof(narrow[0]));
	size_t i;
	json_t *n;
	int rc;

	json_array_foreach (json_object_get(answer, "nodes"), i, n)
		cmd_nodes_row(l, n, wide);
	if (!wide)
		listing_limit(l, LISTING_WIDTH);
	rc = listing_print(l, stdout);
	listing_free(l);
	json_array_foreach (json_object_get(answer, "nodes"), i, n)
		if (*listing_string(n, "owner"))
			nodes_line(listing_string(n, "name"),
				   ": owner: ", listing_string(n, "owner"));
	if (wide)
		json_array_foreach (json_object_get(answer, "nodes"), i, n)
			cmd_nodes_print_cache(n);
	json_array_foreach (json_object_get(answer, "dropped"), i, n)
		nodes_line(listing_string(n, "name"), ": ", listing_string(n, "reason"));
	cmd_nodes_print_missing(answer);
	return rc ? 1 : listing_end();
}

/* What is shown of the answer. */
struct shown {
	bool json, peers, links, wide;
};

static int once(struct client_patience *patience, const char *run_dir, const struct shown *shown)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;
	int rc;

	if (ask_nodes(patience, run_dir, &answer, &err)) {
		fprintf(stderr, "iocom nodes: %s\n", err.text);
		return 1;
	}
	rc = shown->json    ? listing_print_json(answer)
	     : shown->peers ? cmd_nodes_print_peers(answer)
	     : shown->links ? cmd_nodes_print_links(answer)
			    : cmd_nodes_print_table(answer, shown->wide);
	json_decref(answer);
	return rc;
}

int cmd_nodes(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},	 {"peers", no_argument, NULL, 'p'},
		{"links", no_argument, NULL, 'l'},	 {"wide", no_argument, NULL, 'W'},
		{"watch", optional_argument, NULL, 'w'}, {"run-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	 {0},
	};
	struct client_patience patience = {.name = "iocom nodes"};
	const char *run_dir = NULL;
	double watch = 0;
	unsigned columns = listing_width();
	struct shown shown = {.wide = columns >= WIDE && columns != UINT_MAX};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'j')
			shown.json = true;
		else if (c == 'p')
			shown.peers = true;
		else if (c == 'l')
			shown.links = true;
		else if (c == 'W')
			shown.wide = true;
		else if (c == 'w')
			watch = optarg ? strtod(optarg, NULL) : 1;
		else if (c == 'r')
			run_dir = optarg;
		else
			return c == 'h' ? fputs(help, stdout), 0 : listing_usage("iocom nodes");
		if (c == 'w' && !(watch >= 0.1 && watch <= 86400)) {
			fprintf(stderr,
				"iocom nodes: --watch takes 0.1 to 86400 seconds, not '%s'\n",
				optarg);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "iocom nodes: takes no argument '%s'\n", argv[optind]);
		return 2;
	}
	for (;;) {
		int rc = once(&patience, run_dir, &shown);

		if (rc || watch <= 0)
			return rc;
		usleep((useconds_t)(watch * 1e6));
		if (isatty(STDOUT_FILENO) && !shown.json)
			fputs("\033[H\033[2J", stdout);
	}
}
