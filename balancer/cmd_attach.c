/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* `iocom attach` follows a job that was started before. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/commands.h"
#include "balancer/job_command.h"
#include "balancer/job_state.h"
#include "balancer/listing.h"
#include "balancer/reach.h"
#include "user/ending_signal.h"
#include "user/pack.h"
#include "balancer/run/multi.h"
#include "balancer/run/run.h"
#include "balancer/run/run_follow.h"
#include "balancer/view/placement.h"

#define AGAIN_MS 30000

static const char help[] =
	"usage: iocom attach [--take] [--from N] [--escape CHAR] [--run-dir DIR] JOB\n"
	"Shows the output of JOB from the first byte that is still kept, passes input on\n"
	"where the job still reads it, and returns the exit status, even of an ended job.\n\n"
	"  JOB              as `iocom jobs` lists it, of any home node; n2-17 or 17 if no\n"
	"                   other job has that number; last: your newest that was\n"
	"                   submitted here\n"
	"  --take           take the job over from the program that follows it (iocom\n"
	"                   run, another attach); that program ends with 255.  A\n"
	"                   detached job goes to the latest attach without it\n"
	"  --from N         begin at byte N of the standard output\n"
	"  --escape CHAR    for a job with a terminal: ~ at a line's start and then .\n"
	"                   leaves it; CHAR is a character, ^X, or none [~]\n"
	"  --run-dir DIR    the agent's directory\n\n"
	"Of a parallel job (iocom run -n) the output of all parts is shown in whole\n"
	"lines, and input goes to task 0.\n"
	"Ctrl-C, like INT and TERM to this program, goes to the job; for a detached job\n"
	"(run --detach) it only ends this program.\n"
	"exit status: the job's own; 128 + N when signal N ended the job or this program;\n"
	"125 no such job, no agent, usage; 255 contact or output was lost, or the outcome\n"
	"is unknown\n";

struct attach {
	const char *run_dir;
	struct attach_ask ask, self;
	struct run_target target;
	struct records records;
	json_t *answer;
	struct run_tty tty;
	int escape;
	bool part;		  /* of a gang: what failed is said once for all */
	struct run_follow follow; /* where the job went */
};

static int parse_from(const char *text, uint64_t *from)
{
	char *end;

	errno = 0;
	*from = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *from != ATTACH_FIRST)
		return 0;
	fprintf(stderr, "iocom attach: --from takes a number of bytes, not '%s'\n", text);
	return RUN_FAILED;
}

/* Returns -1 to go on, else the exit code. */
static int cmd_attach_parse(struct attach *attach, int argc, char **argv, const char **job)
{
	static const struct option options[] = {
		{"take", no_argument, NULL, 't'},	  {"from", required_argument, NULL, 'f'},
		{"escape", required_argument, NULL, 'e'}, {"run-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	  {0},
	};
	struct iocom_err err = {0};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'r')
			attach->run_dir = optarg;
		else if (c == 't')
			attach->ask.take = true;
		else if (c == 'f' && parse_from(optarg, &attach->ask.from[1]))
			return RUN_FAILED;
		else if (c == 'e' && run_tty_take_escape(&attach->escape, optarg, &err))
			return fprintf(stderr, "iocom attach: %s\n", err.text), RUN_FAILED;
		else if (c != 'f' && c != 'e')
			return c == 'h' ? fputs(help, stdout),
			       0	: (listing_usage("iocom attach"), RUN_FAILED);
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "iocom attach: name one job (iocom jobs lists them)\n");
		return RUN_FAILED;
	}
	*job = argv[optind];
	return -1;
}

/* Asks this node's agent where JOB is, which asks the job's home if that is another node. */
static int cmd_attach_ask(struct attach *attach, const char *job, struct iocom_err *err)
{
	char whole[SPEC_JOB_MAX];
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	struct reach reach;
	int rc = reach_open(&reach, attach->run_dir, err);

	if (!rc)
		rc = reach_job(&reach, job, whole, err);
	if (!rc) {
		pack_begin(&pk, &buffer, 3);
		pack_str(&pk, "op", "attach");
		pack_u64(&pk, "v", 1);
		pack_str(&pk, "job", whole);
		rc = client_request(reach.fd, buffer.data, buffer.size, &attach->answer, err);
		msgpack_sbuffer_destroy(&buffer);
	}
	reach_close(&reach);
	return rc;
}

static int cmd_attach_find(struct attach *attach, const char *job, struct iocom_err *err)
{
	const char *name, *node;
	int rc = cmd_attach_ask(attach, job, err);

	if (rc)
		return rc;
	name = listing_string(attach->answer, "job");
	node = listing_string(attach->answer, "node");
	if (!spec_job_valid(name) || !*node || strlen(node) >= sizeof(attach->ask.node))
		return iocom_err_set(err, -EPROTO, "the agent's answer names no job");
	strcpy(attach->ask.job, name);
	strcpy(attach->ask.node, node);
	if (listing_number(attach->answer, "later") > 0)
		fprintf(stderr, "iocom attach: job %s was lost; attempt %d of it is job %s\n", job,
			1 + (int)listing_number(attach->answer, "later"), name);
	return run_follow_target(&attach->target, attach->answer, attach->run_dir, err);
}

static int again(void *arg, const struct attach_ask *ask, struct records *records, bool *secure)
{
	struct attach *attach = arg;
	struct attach_ask wanted = *ask;
	struct iocom_err err = {0};
	int fd;

	if (run_follow(&attach->follow, attach->run_dir, &attach->self))
		attach->target = attach->follow.target;
	memcpy(wanted.node, attach->self.node, sizeof(wanted.node));
	*secure = *attach->target.address != 0;
	return run_connect_attach(&attach->target, &wanted, &fd, records, &err) ? -1 : fd;
}

/*
 * Names the offset in the form of --from. Both outputs may go to one place, so the position of this
 * message among them tells nothing.
 */
static void tell_gap(void *arg, int stream, uint64_t from, uint64_t to)
{
	(void)arg;
	fprintf(stderr,
		"iocom attach: bytes %llu to %llu of the job's %soutput were not kept (%llu "
		"bytes)\n",
		(unsigned long long)from, (unsigned long long)to, stream == 2 ? "error " : "",
		(unsigned long long)(to - from));
}

static int cmd_attach_follow(struct attach *attach, struct iocom_err *err)
{
	struct run_stream_options options = {
		.stdio = {0, 1, 2},
		.signals = true,
		.tty = &attach->tty,
		.look = true,
		.gap = tell_gap,
		.records = run_target_records(&attach->target, &attach->records),
		.again = again,
		.again_ms = AGAIN_MS,
		.self = &attach->self,
		.arg = attach,
	};
	struct run_result result;
	int fd, rc;

	attach_nonce(attach->ask.nonce);
	/* We do not want bytes before --from: count them as received. */
	if (attach->ask.from[1] != ATTACH_FIRST)
		attach->ask.taken[1] = attach->ask.from[1];
	attach->ask.gaps = true;
	attach->ask.recent = attach->tty.fd >= 0 && isatty(STDOUT_FILENO);
	attach->self = attach->ask;
	memcpy(attach->self.resume, attach->ask.nonce, sizeof(attach->self.resume));
	if (run_connect_attach(&attach->target, &attach->ask, &fd, &attach->records, err))
		return RUN_FAILED;
	rc = run_stream(&options, fd, &result);
	records_erase(&attach->records);
	run_follow_fini(&attach->follow);
	if (result.left && result.state != RUN_LOST)
		fprintf(stderr, "iocom attach: left; job %s goes on\n", attach->ask.job);
	if (*result.text && !result.signal && attach->part)
		iocom_err_set(err, 0, "%s", result.text);
	else if (*result.text && !result.signal)
		fprintf(stderr, "iocom attach: %s\n", result.text);
	if (result.output_error)
		fprintf(stderr, "iocom attach: output of the job was lost: %s\n",
			strerror(result.output_error));
	return rc;
}

/* --- all parts of a gang ---------------------------------------------------------------- */

struct attach_gang {
	struct attach *attach;
	struct multi_node *nodes; /* whose names are the parts' */
	uint32_t count;
	int stopped;	/* the last signal that stops programs; 0: none came */
	char text[512]; /* what a part says of its end; "": nothing */
};

/* Runs in the process of one part. */
static int attach_part_run(void *arg, const char *part, int report_fd)
{
	const struct run_report report = {.fd = report_fd, .job = part, .node = ""};
	struct attach *attach = ((struct attach_gang *)arg)->attach;
	struct iocom_err err = {0};
	int rc;

	attach->part = true;
	run_tty_init(&attach->tty, -1);
	rc = cmd_attach_find(attach, part, &err) ? RUN_FAILED : cmd_attach_follow(attach, &err);
	if (*err.text)
		run_report_end(&report, "failed", NULL, rc, err.text);
	return rc;
}

static void attach_gang_begin(void *arg, struct multi_node *nodes)
{
	((struct attach_gang *)arg)->nodes = nodes;
}

static void attach_gang_packet(void *arg, size_t node, const void *data, size_t length)
{
	(void)arg;
	(void)node;
	(void)data;
	(void)length;
}

static void attach_gang_ended(void *arg, size_t node)
{
	(void)arg;
	(void)node;
}

static void attach_gang_signal(void *arg, int signal)
{
	struct attach_gang *gang = arg;

	for (uint32_t i = 0; i < gang->count; i++)
		if (gang->nodes[i].pid > 0)
			kill(gang->nodes[i].pid, signal);
	if (signal_asks_to_end(signal))
		gang->stopped = signal;
}

static int attach_gang_turn(void *arg)
{
	(void)arg;
	return -1;
}

/* The parts' highest status: what home says of the gang comes before it. */
static int attach_gang_conclude(void *arg, bool unread)
{
	struct attach_gang *gang = arg;
	int status = gang->stopped ? 128 + gang->stopped : 0;

	(void)unread;
	for (uint32_t i = 0; i < gang->count; i++) {
		if (gang->nodes[i].status > status)
			status = gang->nodes[i].status;
		if (!*gang->text)
			snprintf(gang->text, sizeof(gang->text), "%s",
				 listing_string(gang->nodes[i].end, "text"));
	}
	return status;
}

/*
 * The exit status of JOB, a gang, if home knows that it has ended; else STATUS.  Says why it is not
 * 0: home's words, or else SAID, those of a part.
 */
static int attach_gang_status(const struct job_command *command, const char *job, int status,
			      const char *said)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;
	const json_t *record;

	if (!job_command_ask(command, "explain", job, -1, &answer, &err)) {
		record = json_object_get(answer, "record");
		if (listing_number(record, "end_ns") > 0)
			status = job_state_status(record);
		if (status && *listing_string(record, "text"))
			said = listing_string(record, "text");
	}
	if (status && *said)
		fprintf(stderr, "iocom attach: %s\n", said);
	json_decref(answer);
	return status;
}

static int attach_gang_follow(struct attach *attach, const struct gang_answer *parts, char *said,
			      size_t size)
{
	struct attach_gang gang = {.attach = attach, .count = parts->nparts};
	struct multi_watch watch = {
		.reader = SIZE_MAX,
		.begin = attach_gang_begin,
		.packet = attach_gang_packet,
		.ended = attach_gang_ended,
		.signal = attach_gang_signal,
		.turn = attach_gang_turn,
		.conclude = attach_gang_conclude,
	};
	const struct multi_job job = {.name = "iocom attach",
				      .run = attach_part_run,
				      .arg = &gang,
				      .status_fd = -1,
				      .watch = &watch};
	const struct multi_options options = {.fanout = parts->nparts};
	struct nodelist names = {0};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < parts->nparts; i++) {
		rc = nodelist_add(&names, parts->parts[i].job);
		if (parts->ranks[parts->parts[i].first] == 0)
			watch.reader = i;
	}
	rc = rc ? RUN_FAILED : multi_run(&options, &job, &names);
	nodelist_fini(&names);
	snprintf(said, size, "%s", gang.text);
	return rc;
}

/* Follows all parts if JOB is a gang.  Returns the exit code; -1: it is none. */
static int attach_gang(struct attach *attach, const char *job, struct iocom_err *err)
{
	const struct job_command command = {.run_dir = attach->run_dir};
	struct iocom_err ignored = {0};
	struct placement place;
	json_t *answer = NULL;
	int rc = -1;

	placement_init(&place);
	if (!job_command_ask(&command, "explain", job, -1, &answer, &ignored) &&
	    json_object_get(json_object_get(answer, "place"), "gang"))
		rc = placement_read(&place, json_object_get(answer, "place"), "the stored decision",
				    err)
			     ? RUN_FAILED
			     : 0;
	if (rc == 0 && attach->ask.from[1] != ATTACH_FIRST)
		rc = iocom_err_set(err, RUN_FAILED,
				   "--from needs one stream of output: name a part of the job, %s",
				   place.gang->parts[0].job);
	if (rc == 0) {
		char said[512];

		rc = attach_gang_follow(attach, place.gang, said, sizeof(said));
		rc = attach_gang_status(&command, place.gang->job, rc, said);
	}
	placement_fini(&place);
	json_decref(answer);
	return rc;
}

int cmd_attach(int argc, char **argv)
{
	struct attach attach = {.ask.from = {0, ATTACH_FIRST, ATTACH_FIRST},
				.escape = RUN_TTY_ESCAPE};
	struct iocom_err err = {0};
	uint32_t closed = run_closed_descriptors();
	const char *job;
	int rc;

	rc = cmd_attach_parse(&attach, argc, argv, &job);
	if (rc >= 0)
		return rc;
	rc = attach_gang(&attach, job, &err);
	if (rc < 0) {
		run_tty_init(&attach.tty, closed & 1 ? -1 : STDIN_FILENO);
		attach.tty.escape = attach.escape;
		rc = cmd_attach_find(&attach, job, &err) ? RUN_FAILED
							 : cmd_attach_follow(&attach, &err);
		run_tty_deinit(&attach.tty);
	}
	if (*err.text)
		fprintf(stderr, "iocom attach: %s\n", err.text);
	explicit_bzero(attach.target.key, sizeof(attach.target.key));
	json_decref(attach.answer);
	return rc;
}
