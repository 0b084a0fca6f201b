/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One gang from its request to its end; see gang.h. */
#include "balancer/run/gang.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "balancer/listing.h"
#include "balancer/gang_text.h"
#include "balancer/run/gang_watch.h"
#include "balancer/run/run_stream.h"
#include "user/utf8.h"

struct gang {
	struct run *run;
	const struct placement *answer;
	const struct gang_answer *parts; /* of the answer */
	struct gang_plan plan;
	struct gang_watch watch;
	struct gang_progress progress;
	struct multi_node *nodes; /* the workers */
	const char *word;	  /* what a task is called */
	bool told;		  /* that all have begun */
	char text[512];		  /* what failed */
};

/* --- a part's worker ---------------------------------------------------------------- */

static const struct gang_part *gang_part_at(const struct gang *gang, const char *node)
{
	for (uint32_t i = 0; i < gang->parts->nparts; i++)
		if (!strcmp(gang->parts->parts[i].node, node))
			return &gang->parts->parts[i];
	return NULL;
}

/* The placement of one part, as if it were a job of its own. */
static void gang_part_placement(const struct gang *gang, const struct gang_part *part,
				struct placement *out)
{
	placement_init(out);
	out->placed = true;
	out->policy = gang->answer->policy;
	out->home = gang->answer->home;
	out->job = part->job;
	out->node = part->node;
	out->address = part->address;
	out->port = part->port;
	out->nonce = part->nonce;
	out->key = part->key;
	out->munge_socket = gang->answer->munge_socket;
}

/* Runs in the worker: the part at NODE.  What failed goes into the report alone. */
static int gang_part_run(void *arg, const char *node, int report_fd)
{
	struct gang *gang = arg;
	struct run *run = gang->run;
	const struct gang_part *part = gang_part_at(gang, node);
	struct run_part own = {.channel = {.fd = MULTI_CHANNEL_FD}};
	struct placement answer;
	struct iocom_err err = {0};
	void *packed = NULL;
	int rc;

	gang->plan.part = (uint32_t)(part - gang->parts->parts);
	run->report = (struct run_report){.fd = report_fd, .job = "", .node = node, .brief = true};
	rc = gang_plan_pack(&gang->plan, &packed, &own.plan_length, &err);
	if (rc) {
		run_report_end(&run->report, "failed", NULL, RUN_FAILED, err.text);
		return RUN_FAILED;
	}
	own.plan = packed;
	run->part = &own;
	gang_part_placement(gang, part, &answer);
	rc = run_job_placed(run, &answer, &err);
	free(own.channel.kept);
	free(packed);
	return rc < 0 ? RUN_FAILED : rc;
}

/* --- the main process ----------------------------------------------------------------- */

static void gang_send(void *arg, uint32_t part, const void *data, size_t length)
{
	const struct gang *gang = arg;
	int channel = gang->nodes[part].channel;

	/* A worker that takes nothing is one that has ended, or is killed in the end. */
	if (channel >= 0)
		(void)send(channel, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void gang_begin(void *arg, struct multi_node *nodes)
{
	((struct gang *)arg)->nodes = nodes;
}

static void gang_packet(void *arg, size_t node, const void *data, size_t length)
{
	struct gang *gang = arg;

	gang_watch_packet(&gang->watch, (uint32_t)node, data, length, run_now_ms());
}

static void gang_part_ended(void *arg, size_t node)
{
	struct gang *gang = arg;
	const struct multi_node *n = &gang->nodes[node];
	const char *state = listing_string(n->end, "state"), *kind = listing_string(n->end, "kind");
	struct gang_end end = {
		.status = n->status,
		.taken = !strcmp(listing_string(n->end, "text"), ATTACH_ELSEWHERE),
		.lost = n->status && (!n->end || !strcmp(state, "lost")),
		.exited = !strcmp(kind, "exited"),
		.signalled = !strcmp(kind, "signalled"),
		.value = (int)listing_number(n->end, "value"),
		.text = listing_string(n->end, "text"),
	};

	gang_watch_ended(&gang->watch, (uint32_t)node, &end, run_now_ms());
}

/* Home ends the job when the user does, so that it knows by which signal. */
static void gang_signal(void *arg, int signal)
{
	struct gang *gang = arg;
	bool before = gang->watch.failure.kind == GANG_FAILED_STOPPED;

	gang_watch_signal(&gang->watch, signal, run_now_ms());
	if (!before && gang->watch.failure.kind == GANG_FAILED_STOPPED)
		run_home_give_up(gang->run->request.run_dir, gang->parts->job, signal, 0, "");
}

static int gang_turn(void *arg)
{
	struct gang *gang = arg;
	uint64_t now_ms = run_now_ms();
	int wait_ms = gang_watch_time(&gang->watch, now_ms);
	int show_ms = gang_progress_show(&gang->progress, gang->run->name, &gang->watch, now_ms);

	if (!gang->told && gang_watch_runs(&gang->watch)) {
		gang->told = true;
		gang_report_started(&gang->run->report, gang->parts);
		if (gang->run->detach)
			gang_watch_order(&gang->watch, GANG_ORDER_LEAVE, 0);
	}
	if (gang->watch.leave)
		return MULTI_TURN_KILL;
	return wait_ms < 0 || (show_ms >= 0 && show_ms < wait_ms) ? show_ms : wait_ms;
}

/* A detached gang prints only its name. */
static int gang_print_name(const struct gang *gang)
{
	if (printf("%s\n", gang->parts->job) > 0 && !fflush(stdout))
		return 0;
	fprintf(stderr, "%s: cannot print the name of job %s, which runs\n", gang->run->name,
		gang->parts->job);
	return RUN_UNKNOWN;
}

/* A detached gang has begun, however it ends: `iocom wait` says that. */
static bool gang_left(const struct gang *gang)
{
	const struct gang_failure *f = &gang->watch.failure;

	return f->kind == GANG_FINE ? gang->told : f->kind == GANG_FAILED_RANK && f->began;
}

/*
 * A part that we gave up while it was to start may begin all the same, and would wait for the
 * others: home ends it, and learns our reason.
 */
static void gang_give_up(const struct gang *gang)
{
	const struct gang_watch *watch = &gang->watch;
	const struct gang_failure *f = &watch->failure;

	if (f->kind != GANG_FINE && f->kind != GANG_TAKEN && f->kind != GANG_FAILED_STOPPED &&
	    watch->begun < watch->gang->nparts)
		run_home_give_up(gang->run->request.run_dir, gang->parts->job, SIGTERM, f->status,
				 gang->text);
}

/* What follows from something else, from `iocom kill` perhaps, home explains. */
static void gang_ask_home(struct gang *gang)
{
	struct gang_failure *f = &gang->watch.failure;
	char text[sizeof(f->text)];
	int status;

	if (gang->watch.stopped || gang->watch.keep_going || !gang_watch_follows(&gang->watch) ||
	    !run_home_ends(gang->run->request.run_dir, gang->parts->job, f->status == RUN_UNKNOWN,
			   &status, text, sizeof(text)))
		return;
	f->kind = GANG_FAILED_PART;
	f->status = status;
	f->whole = true;
	if (strncmp(text, "it", 2) != 0)
		snprintf(f->text, sizeof(f->text), "%.400s", text);
	else
		snprintf(f->text, sizeof(f->text), "job %s: %.400s", gang->parts->job, text);
	utf8_plain(f->text);
}

static int gang_conclude(void *arg, bool unread)
{
	struct gang *gang = arg;
	const struct run *run = gang->run;
	int status;

	gang_ask_home(gang);
	status = gang->watch.failure.status;
	gang_progress_clear(&gang->progress);
	if (run->detach && gang_left(gang))
		return gang_print_name(gang);
	gang_watch_sentence(&gang->watch, gang->word, unread, gang->text, sizeof(gang->text));
	gang_give_up(gang);
	if (*gang->text)
		fprintf(stderr, "%s: %s\n", run->name, gang->text);
	gang_report_end(&run->report, &gang->watch, gang->nodes, status, gang->text);
	return status;
}

/* --- before ------------------------------------------------------------------------------ */

/* Where other nodes reach this machine: as its agent has told them. */
static const char *gang_home_address(const struct placement *answer)
{
	for (size_t i = 0; i < answer->nnodes; i++)
		if (answer->nodes[i].self)
			return answer->nodes[i].vector.address;
	return "";
}

static const char *gang_address(const struct gang *gang, const struct gang_part *part)
{
	return *part->address ? part->address : gang_home_address(gang->answer);
}

static int gang_plan_fill(struct gang *gang, enum gang_launch launch, struct iocom_err *err)
{
	const struct gang_answer *parts = gang->parts;
	const struct gang_options *options = &gang->run->gang;
	struct gang_plan *plan = &gang->plan;

	*plan = (struct gang_plan){
		.launch = launch,
		.label = options->label,
		.keep_going = options->keep_going,
		.bind = options->bind,
		.tasks = parts->tasks,
		.nnodes = parts->nparts,
		.nodes = calloc(parts->nparts, sizeof(*plan->nodes)),
		.ranks = calloc(parts->tasks, sizeof(*plan->ranks)),
	};
	if (!plan->nodes || !plan->ranks)
		return iocom_err_set(err, -ENOMEM, "out of memory for the plan of the job");
	strcpy(plan->gang, parts->job);
	memcpy(plan->ranks, parts->ranks, parts->tasks * sizeof(*plan->ranks));
	randombytes_buf(plan->secret, sizeof(plan->secret));
	for (uint32_t i = 0; i < parts->nparts; i++) {
		const struct gang_part *part = &parts->parts[i];
		struct gang_node *node = &plan->nodes[i];

		*node = (struct gang_node){.first = part->first, .tasks = part->tasks};
		strcpy(node->name, part->node);
		snprintf(node->address, sizeof(node->address), "%s", gang_address(gang, part));
	}
	return 0;
}

/* The part that has rank 0. */
static size_t gang_reader(const struct gang_answer *parts)
{
	for (uint32_t i = 0; i < parts->nparts; i++)
		if (parts->ranks[parts->parts[i].first] == 0)
			return i;
	return SIZE_MAX;
}

static int gang_run_parts(struct gang *gang, struct iocom_err *err)
{
	const struct multi_watch watch = {
		.reader = gang->run->detach ? SIZE_MAX : gang_reader(gang->parts),
		.begin = gang_begin,
		.packet = gang_packet,
		.ended = gang_part_ended,
		.signal = gang_signal,
		.turn = gang_turn,
		.conclude = gang_conclude,
	};
	const struct multi_job job = {
		.name = gang->run->name,
		.run = gang_part_run,
		.arg = gang,
		.status_fd = -1,
		.watch = &watch,
	};
	const struct multi_options options = {.fanout = GANG_PARTS_MAX};
	struct nodelist nodes = {0};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < gang->parts->nparts; i++)
		rc = nodelist_add(&nodes, gang->parts->parts[i].node);
	rc = rc ? iocom_err_set(err, RUN_FAILED, "out of memory for the list of nodes")
		: multi_run(&options, &job, &nodes);
	nodelist_fini(&nodes);
	return rc;
}

static void gang_say_begin(const struct gang *gang, const struct gang_mpi_choice *mpi)
{
	static const char *const words[] = {"", "independent tasks", "ranks by PMIx",
					    "ranks by PMI-1"};
	const struct run *run = gang->run;
	const char *why = listing_string(gang->parts->why, "text");

	fprintf(stderr, "%s: job %s: %u %s", run->name, gang->parts->job, gang->parts->tasks,
		words[mpi->launch]);
	if (*mpi->library)
		fprintf(stderr, " (%s needs %s)", mpi->name, mpi->library);
	fprintf(stderr, ": ");
	gang_text_where(gang->parts, stderr);
	fprintf(stderr, "\n");
	if (*why)
		fprintf(stderr, "%s: %s\n", run->name, why);
	if (mpi->program == MPI_PROGRAM_SCRIPT && run->gang.mpi == GANG_MPI_AUTO)
		fprintf(stderr,
			"%s: what %s starts is not known: its ranks find each other by PMIx; if it "
			"is a program of MPICH, say --mpi=pmi1\n",
			run->name, run->command[0]);
}

/* The answer has what a gang needs.  Returns 0 or -EPROTO. */
static int gang_check(const struct placement *answer, int64_t tasks, struct iocom_err *err)
{
	if (!answer->gang)
		return iocom_err_set(err, -EPROTO,
				     "this machine's agent is of an older version that knows no "
				     "parallel jobs (-n)");
	if (answer->gang->tasks == (uint32_t)tasks && answer->gang->nparts <= GANG_PARTS_MAX)
		return 0;
	return iocom_err_set(err, -EPROTO,
			     "the agent placed %u tasks on %u nodes, but %lld are asked for",
			     answer->gang->tasks, answer->gang->nparts, (long long)tasks);
}

static int gang_placed(struct gang *gang, const struct gang_mpi_choice *mpi, struct iocom_err *err)
{
	struct run *run = gang->run;
	int rc = gang_plan_fill(gang, mpi->launch, err);

	run->report.job = gang->parts->job;
	if (!rc &&
	    gang_watch_init(&gang->watch, gang->parts, gang->plan.nodes[0].address, run_now_ms()))
		rc = iocom_err_set(err, -ENOMEM, "out of memory for the job's parts");
	if (rc)
		return RUN_FAILED;
	gang->watch.keep_going = run->gang.keep_going;
	gang->watch.send = gang_send;
	gang->watch.arg = gang;
	gang_progress_begin(&gang->progress, run_now_ms());
	run_report_placed(&run->report, gang->answer);
	if (run->verbose)
		gang_say_begin(gang, mpi);
	return gang_run_parts(gang, err);
}

int gang_run(struct run *run, struct iocom_err *err)
{
	struct placement answer;
	struct gang gang = {
		.run = run,
		.answer = &answer,
		.word = run->gang.mpi == GANG_MPI_NONE ? "task" : "rank",
	};
	struct gang_mpi_choice mpi;
	int rc = gang_mpi_choose(run, &mpi, err);
	bool rsh = !rc && mpi.launch == GANG_LAUNCH_NONE;

	if (rc) {
		run_report_end(&run->report, "failed", NULL, rc, err->text);
		return rc;
	}
	/* What mpirun starts are jobs of their own: this one is only decided. */
	rc = placement_request_ask(&run->request, !rsh, run->cwd, run->executable, run->command,
				   &answer, err);
	if (!rc)
		rc = gang_check(&answer, run->gang.tasks, err);
	gang.parts = answer.gang;
	rc = rc	   ? RUN_FAILED
	     : rsh ? gang_rsh(run, &answer, mpi.program, err)
		   : gang_placed(&gang, &mpi, err);
	if (*err->text)
		run_report_end(&run->report, "failed", NULL, rc, err->text);
	run->report.job = "";
	gang_plan_free(&gang.plan);
	gang_watch_fini(&gang.watch);
	placement_fini(&answer);
	return rc;
}
