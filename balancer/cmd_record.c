/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom record` writes down what this machine's agent sees and decides until it is stopped,
 * and merges the recordings of several machines.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/commands.h"
#include "balancer/view/json_msgpack.h"
#include "balancer/record/record_csv.h"
#include "balancer/record/record_file.h"
#include "balancer/record/record_stream.h"
#include "balancer/view/recording.h"
#include "balancer/view/replace.h"

#define DELAY_LEAST_S 0.1 /* the limit of iocom top */
#define DELAY_MOST_S  3600.0
#define DEFAULT_OUT   "recording.jsonl.gz"
#define TICK_S	      0.5 /* between updates of the progress line */
#define FLUSH_S	      5.0 /* longest time that lines wait before they are written */
#define FAREWELL_S    5.0 /* time that the agent has to send its end line */

static const char help[] =
	"usage: iocom record [--out FILE] [--seconds N] [--force] [--run-dir DIR]\n"
	"       iocom record --merge OUT [--force] FILE...\n"
	"       iocom record --csv KIND [--out FILE] [--delay SECONDS] [--seconds N]\n"
	"                    [--force] [--direct] [--run-dir DIR]\n"
	"Records what this machine's agent hears from all nodes, each decision it takes\n"
	"with the view it used, the jobs submitted here and what they did, until Ctrl-C.\n"
	"`iocom replay FILE` then shows what another policy would have done, `iocom\n"
	"replay FILE --check` whether the simulator reproduces the recording.  Needs\n"
	"root.\n\n"
	"A job is recorded by the agent where it was submitted: for a whole cluster run\n"
	"one recorder on each node, then join the files with --merge.  The nodes' clocks\n"
	"must agree (NTP).\n\n"
	"  --out FILE      where to; .gz packs it; -: standard output\n"
	"                  [" DEFAULT_OUT "]\n"
	"  --seconds N     stop after N seconds\n"
	"  --force         replace FILE or OUT\n"
	"  --merge OUT     join the recordings FILE..., each of another node, into one\n"
	"  --run-dir DIR   the agent's directory\n\n"
	"--csv instead writes what `iocom top` shows, interval after interval, as one\n"
	"table of KIND: " CSV_KINDS ".\n\n"
	"  --out FILE      where to, as above [iocom-KIND.csv]\n"
	"  --delay SECONDS length of an interval, 0.1 to 3600 [1]\n"
	"  --direct        do not ask an agent (root)\n\n"
	"The file gets its name when recording ends, also by a signal.\n"
	"exit status: 0 recorded to the end; 1 failed (no agent, a full disk) or cut off\n"
	"(the part recorded is kept); 2 usage\n";

struct options {
	const char *out, *merge, *run_dir;
	double seconds; /* 0: until stopped */
	bool force;
	const struct csv_kind *csv; /* write this table instead of a recording */
	double delay_s;
	bool direct;
};

struct record {
	const struct options *options;
	struct record_stream stream;
	struct record_file *file;
	char node[RECORDING_NAME_MAX];
	double start_s, flushed_s, shown_s;
	double farewell_s; /* deadline for the end line; 0: not asked for yet */
	uint64_t lines, submitted, decided, ended, lost;
	bool whole; /* the end line came */
	bool terminal;
};

static volatile sig_atomic_t stopped;
static char *volatile leftover; /* temporary file of a merge, removed on a signal */

static double cmd_record_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int cmd_record_fail(const char *text)
{
	fprintf(stderr, "iocom record: %s\n", text);
	return 1;
}

/* --- lines ------------------------------------------------------------------------- */

/* Returns whether LINE is of kind RECORD, which "record", its first member, tells. */
static bool is(const char *line, size_t length, const char *record)
{
	static const char head[] = "{\"record\":\"";
	size_t h = sizeof(head) - 1, n = strlen(record);

	return length > h + n && !memcmp(line, head, h) && !memcmp(line + h, record, n) &&
	       line[h + n] == '"';
}

static void cmd_record_count(struct record *r, const char *line, size_t length)
{
	json_t *document;

	r->lines++;
	r->submitted += is(line, length, "submit");
	r->decided += is(line, length, "decision");
	r->ended += is(line, length, "finish");
	if (!is(line, length, "header") && !is(line, length, "end"))
		return;
	document = json_loadb(line, length, 0, NULL);
	if (is(line, length, "end")) {
		r->whole = true;
		r->lost = (uint64_t)json_integer_value(json_object_get(document, "dropped"));
	} else {
		const char *node = json_string_value(json_object_get(document, "node"));

		snprintf(r->node, sizeof(r->node), "%s", node ? node : "");
	}
	json_decref(document);
}

static void cmd_record_show(struct record *r, double now)
{
	if (!r->terminal || now - r->shown_s < TICK_S)
		return;
	r->shown_s = now;
	fprintf(stderr,
		"\rrecording %s: %.0f s, %llu jobs, %llu decisions, %llu ended, %llu lines, %.1f "
		"MB\033[K",
		r->node, now - r->start_s, (unsigned long long)r->submitted,
		(unsigned long long)r->decided, (unsigned long long)r->ended,
		(unsigned long long)r->lines, (double)record_file_bytes(r->file) / 1e6);
}

static bool cmd_record_time_to_stop(const struct record *r, double now)
{
	double limit = r->options->seconds;

	return stopped || (limit > 0 && now - r->start_s >= limit);
}

/* Waits between two lines.  Returns 0: go on; 1: stop; negative errno. */
static int pause_for_more(struct record *r, struct iocom_err *err)
{
	struct pollfd p = {.fd = r->stream.fd, .events = POLLIN};
	double now = cmd_record_now_s(), wait = TICK_S, limit = r->options->seconds;
	int rc = 0;

	cmd_record_show(r, now);
	if (now - r->flushed_s >= FLUSH_S) {
		r->flushed_s = now;
		rc = record_file_flush(r->file, err);
	}
	if (rc)
		return rc;
	if (!r->farewell_s && cmd_record_time_to_stop(r, now)) {
		record_stream_finish(&r->stream);
		r->farewell_s = now + FAREWELL_S;
	}
	if (r->farewell_s && now >= r->farewell_s)
		return 1;
	if (!r->farewell_s && limit > 0 && r->start_s + limit - now < wait)
		wait = fmax(r->start_s + limit - now, 0);
	poll(&p, 1, (int)ceil(wait * 1e3));
	return 0;
}

/* Records until the end line or another reason to stop.  Returns 0 or negative errno. */
static int take_lines(struct record *r, struct iocom_err *err)
{
	const char *line;
	size_t length;
	int rc = 0;

	while (!rc && !r->whole) {
		rc = record_stream_next(&r->stream, &line, &length, err);
		if (rc > 0) {
			cmd_record_count(r, line, length);
			rc = record_file_add(r->file, line, length, err);
			/* A busy agent must not keep us from stopping. */
			if (!rc &&
			    (r->farewell_s || !cmd_record_time_to_stop(r, cmd_record_now_s())))
				continue;
		}
		if (!rc && r->stream.ended)
			break;
		if (!rc)
			rc = pause_for_more(r, err);
	}
	return rc < 0 ? rc : 0;
}

/* --- the recording ------------------------------------------------------------------ */

static void cmd_record_tell(const struct record *r)
{
	const char *out = r->options->out;

	fprintf(stderr,
		"%s: node %s, %.0f s: %llu jobs submitted, %llu decisions, %llu ended; %llu "
		"lines\n",
		strcmp(out, "-") ? out : "standard output", r->node,
		cmd_record_now_s() - r->start_s, (unsigned long long)r->submitted,
		(unsigned long long)r->decided, (unsigned long long)r->ended,
		(unsigned long long)r->lines);
	if (r->lost)
		fprintf(stderr,
			"iocom record: %llu lines were lost because they came faster than they "
			"could be "
			"written\n",
			(unsigned long long)r->lost);
}

static int cmd_record_keep(struct record *r, int rc, struct iocom_err *err)
{
	struct iocom_err why = {0};
	int kept = record_file_keep(r->file, &why);

	if (r->terminal)
		fputs("\r\033[K", stderr);
	if (rc)
		fprintf(stderr, "iocom record: %s; the part recorded so far is kept\n", err->text);
	else if (!r->whole)
		fprintf(stderr, "iocom record: %s; the part recorded so far is kept\n",
			r->farewell_s ? "the agent did not end the recording in time"
				      : "the agent closed the connection");
	if (kept && !rc)
		cmd_record_fail(why.text);
	cmd_record_tell(r);
	return rc || kept || !r->whole;
}

static int record(const struct options *o)
{
	struct record r = {.options = o, .stream.fd = -1, .terminal = isatty(STDERR_FILENO)};
	struct iocom_err err = {0};
	int rc = record_file_open(o->out, o->force, &r.file, &err);

	if (rc)
		return cmd_record_fail(err.text);
	rc = record_stream_open(o->run_dir, &r.stream, &err);
	r.start_s = r.flushed_s = cmd_record_now_s();
	if (!rc)
		rc = take_lines(&r, &err);
	record_stream_close(&r.stream);
	if (r.lines)
		return cmd_record_keep(&r, rc, &err);
	record_file_drop(r.file);
	return cmd_record_fail(rc ? err.text
				  : "the agent closed the connection before it said anything");
}

/* --- merging ------------------------------------------------------------------------ */

static void drop_leftover(int number)
{
	if (leftover)
		unlink(leftover);
	_exit(128 + number);
}

static int merge_into(const char *to, char **files, int n, struct iocom_err *err)
{
	unsigned int cut = 0;
	int rc = recording_merge((const char *const *)files, (size_t)n, to, &cut, err);

	if (!rc && cut)
		fprintf(stderr, "iocom record: %u of the recordings %s cut off\n", cut,
			cut == 1 ? "was" : "were");
	return rc;
}

/* Merges into a temporary file, which gets the name OUT when it is complete. */
static int merge_file(const struct options *o, char **files, int n, struct iocom_err *err)
{
	char *temporary = record_file_temporary(o->merge);
	int suffix = (int)strlen(json_msgpack_suffix(o->merge));
	int fd = temporary ? mkostemps(temporary, suffix, O_CLOEXEC) : -1, rc;

	if (fd < 0) {
		rc = temporary ? -errno : -ENOMEM;
		iocom_err_set(err, rc, "cannot write %s: %s", o->merge, strerror(-rc));
		free(temporary);
		return rc;
	}
	close(fd);
	leftover = temporary;
	rc = merge_into(temporary, files, n, err);
	if (!rc)
		rc = replace_rename(temporary, o->merge, o->force, err);
	leftover = NULL;
	if (rc)
		unlink(temporary);
	free(temporary);
	return rc;
}

static int cmd_record_merge(const struct options *o, char **files, int n)
{
	struct sigaction action = {.sa_handler = drop_leftover};
	struct iocom_err err = {0};
	int rc = replace_check(o->merge, o->force, &err);

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (!rc)
		rc = strcmp(o->merge, "-") ? merge_file(o, files, n, &err)
					   : merge_into("-", files, n, &err);
	return rc ? cmd_record_fail(err.text) : 0;
}

/* --- the command ---------------------------------------------------------------------- */

static int cmd_record_usage(const char *text)
{
	fprintf(stderr, "iocom record: %s (iocom record --help)\n", text);
	return 2;
}

static bool take_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return *text && !*end && isfinite(*seconds) && *seconds > 0;
}

/* Takes one option.  Returns 0, else the exit code + 1. */
static int cmd_record_take(struct options *o, int c, const char *value)
{
	switch (c) {
	case 'o':
		o->out = value;
		return 0;
	case 'm':
		o->merge = value;
		return 0;
	case 'r':
		o->run_dir = value;
		return 0;
	case 'f':
		o->force = true;
		return 0;
	case 'c':
		o->csv = csv_kind_find(value);
		return o->csv ? 0 : cmd_record_usage("--csv takes " CSV_KINDS) + 1;
	case 'd':
		if (take_seconds(value, &o->delay_s) && o->delay_s >= DELAY_LEAST_S &&
		    o->delay_s <= DELAY_MOST_S)
			return 0;
		return cmd_record_usage("--delay takes seconds from 0.1 to 3600") + 1;
	case 'D':
		o->direct = true;
		return 0;
	case 's':
		if (take_seconds(value, &o->seconds))
			return 0;
		return cmd_record_usage("--seconds takes a number above 0") + 1;
	case 'h':
		fputs(help, stdout);
		return 0 + 1;
	default:
		return cmd_record_usage("bad option") + 1;
	}
}

static void cmd_record_stop(int number)
{
	(void)number;
	stopped = 1;
}

static void cmd_record_catch_signals(void)
{
	struct sigaction action = {.sa_handler = cmd_record_stop};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

static int cmd_record_table(const struct options *o)
{
	struct record_csv_options csv = {
		.kind = o->csv,
		.out = o->out,
		.force = o->force,
		.seconds = o->seconds,
		.source = {.run_dir = o->run_dir,
			   .direct = o->direct,
			   .interval_s = o->delay_s > 0 ? o->delay_s : 1},
		.stopped = &stopped,
	};

	return record_csv(&csv);
}

int cmd_record(int argc, char **argv)
{
	static const struct option list[] = {
		{"out", required_argument, NULL, 'o'},
		{"seconds", required_argument, NULL, 's'},
		{"force", no_argument, NULL, 'f'},
		{"merge", required_argument, NULL, 'm'},
		{"run-dir", required_argument, NULL, 'r'},
		{"csv", required_argument, NULL, 'c'},
		{"delay", required_argument, NULL, 'd'},
		{"direct", no_argument, NULL, 'D'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {0};
	int c;

	while ((c = getopt_long(argc, argv, "d:h", list, NULL)) != -1) {
		int rc = cmd_record_take(&o, c, optarg);

		if (rc)
			return rc - 1;
	}
	if (!o.csv && (o.delay_s > 0 || o.direct))
		return cmd_record_usage("--delay and --direct go only with --csv");
	if (o.merge && (o.out || o.seconds > 0 || o.run_dir || o.csv))
		return cmd_record_usage("--merge goes only with --force");
	if (o.merge)
		return optind < argc ? cmd_record_merge(&o, argv + optind, argc - optind)
				     : cmd_record_usage("name the recordings to merge");
	if (optind < argc)
		return cmd_record_usage("there is an argument too many; --out names the file");
	cmd_record_catch_signals();
	if (o.csv)
		return cmd_record_table(&o);
	if (!o.out)
		o.out = DEFAULT_OUT;
	return record(&o);
}
