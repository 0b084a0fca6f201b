/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom-sim replay RECORDING --check` tests whether the simulator predicts what really happened.
 *
 * Placements: the same rules take each recorded decision again on the view that it used.  Times:
 * the recorded jobs, doing what was measured, run on simulated nodes like the recorded ones under
 * the recording's policy; each job's turn-around is compared with the measured one.  Both
 * slowdowns have the same divisor: the simulated time of the job alone at home.  One small
 * difference may send a job, and those after it, to other nodes.  So the jobs run a second time,
 * each on the node where it really ran, which tests the machines alone.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/view/plan_json.h"
#include "iocom/array.h"
#include "sim/cli/as_recorded.h"
#include "sim/cli/cli.h"
#include "sim/experiments/scenario.h"

#define GOAL_PLACEMENTS 95.0 /* per cent */
#define GOAL_SLOWDOWN	10.0
/* With more of a node's processors or disk, the simulation, which knows jobs alone, means nothing.
 */
#define OTHERS_CPU_MOST	 0.25
#define OTHERS_DISK_MOST 0.10
#define STOLEN_MOST	 0.10
#define CROWDED_MOST	 0.10
#define SHOWN_MAX	 5    /* number of differing decisions that are listed */
#define ROUNDING	 1e-9 /* relative tolerance: simulated recordings round charges differently */

struct check_job {
	double turnaround_ms; /* measured; negative: unknown */
	double slowdown;      /* the recorded slowdown; 0: unknown */
	uint32_t node;	      /* where the job ended */
	bool never_ran;
};

/* Sums over jobs, for their means. */
struct check_sums {
	uint64_t jobs, same_node;
	double measured, simulated;	  /* slowdowns */
	double measured_ms, simulated_ms; /* turn-arounds */
	double error;			  /* relative error of each job's turn-around */
};

struct check_times {
	struct check_sums all, kinds[SIM_KINDS_MAX];
};

struct check {
	const struct cli *cli;
	struct recorded_facts facts;
	uint64_t decisions, placed_alike, alike;
	struct {
		uint64_t line;
		char job[RECORDING_ID_MAX];
	} shown[SHOWN_MAX]; /* decisions with another placement */
	struct check_job *jobs;
	size_t njobs, room;
	uint64_t never_ran, ended;
	json_t *running; /* id -> index in jobs */
	struct check_times own, recorded, *now;
	struct workload_info info;
	struct iocom_err err;
};

/* --- the recording ------------------------------------------------------------------ */

static int add_job(struct check *c, const struct recording_job *job)
{
	if (array_reserve(c->jobs, c->room, c->njobs + 1, 256))
		return -ENOMEM;
	if (json_object_set_new(
		    c->running, job->id,
		    json_pack("{s:I,s:f}", "index", (json_int_t)c->njobs, "time_ms", job->time_ms)))
		return -ENOMEM;
	c->jobs[c->njobs++] = (struct check_job){.turnaround_ms = -1};
	return 0;
}

static void end_job(struct check *c, const struct recording_finish *finish)
{
	const json_t *known = json_object_get(c->running, finish->id);
	struct recording_job job = {0};
	struct check_job *j;

	if (!known)
		return; /* the job was submitted before the recording began */
	job.time_ms = json_number_value(json_object_get(known, "time_ms"));
	j = &c->jobs[json_integer_value(json_object_get(known, "index"))];
	j->turnaround_ms = recording_turnaround_ms(&job, finish);
	j->slowdown = finish->slowdown;
	j->node = finish->node;
	j->never_ran = recording_never_ran(finish);
	c->never_ran += j->never_ran;
	c->ended += !j->never_ran;
	json_object_del(c->running, finish->id);
}

static int decide_again(struct check *c, struct recording *recording,
			const struct recording_line *line)
{
	struct view_decision made;
	json_t *plan;
	int rc = recording_decide(recording, c->facts.live ? 0 : ROUNDING, &made, &c->err);
	bool placed;

	if (rc < 0)
		return rc;
	plan = plan_json(&made, false);
	view_decision_fini(&made);
	if (!plan)
		return -ENOMEM;
	placed = plan_json_same(json_object_get(plan, "nodes"),
				json_object_get(line->decision.answer, "nodes"), 0);
	json_decref(plan);
	if (!placed && c->decisions - c->placed_alike < SHOWN_MAX) {
		size_t at = c->decisions - c->placed_alike;

		c->shown[at].line = line->number;
		memcpy(c->shown[at].job, line->decision.job, sizeof(c->shown[at].job));
	}
	c->decisions++;
	c->placed_alike += placed;
	c->alike += rc == 1;
	return 0;
}

static int check_take_line(struct check *c, struct recording *recording,
			   const struct recording_line *line)
{
	switch (line->kind) {
	case RECORDING_SUBMIT:
		return add_job(c, &line->job);
	case RECORDING_FINISH:
		end_job(c, &line->finish);
		return 0;
	case RECORDING_DECISION:
		return decide_again(c, recording, line);
	default:
		return 0;
	}
}

static int read_recording(struct check *c)
{
	const struct recording_line *line;
	struct recording *recording;
	int rc = recording_open(c->cli->trace, &recording, &c->err);

	if (rc)
		return rc;
	while ((rc = recording_next(recording, &line, &c->err)) > 0) {
		rc = check_take_line(c, recording, line);
		if (!rc && c->cli->cancel && *c->cli->cancel)
			rc = iocom_err_set(&c->err, -ECANCELED, "interrupted");
		if (rc)
			break;
	}
	recording_close(recording);
	return rc;
}

/* Gives jobs the numbers that the workload uses; jobs that never ran have none. */
static void number_jobs(struct check *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->njobs; i++)
		if (!c->jobs[i].never_ran)
			c->jobs[kept++] = c->jobs[i];
	c->njobs = kept;
}

/* --- the simulation ----------------------------------------------------------------- */

static void check_add_sums(struct check_sums *s, const struct check_job *j,
			   const struct sim_completion *done)
{
	double ms = done->end_ms - done->job->arrival_ms;

	s->jobs++;
	s->same_node += done->node == j->node;
	s->measured += j->slowdown > 0 ? j->slowdown : j->turnaround_ms / done->alone_ms;
	s->simulated += done->slowdown;
	s->measured_ms += j->turnaround_ms;
	s->simulated_ms += ms;
	s->error += fabs(ms - j->turnaround_ms) / j->turnaround_ms;
}

static void check_completed(void *arg, const struct sim_completion *done)
{
	struct check *c = arg;
	const struct check_job *j;

	if (done->job->id >= c->njobs)
		return;
	j = &c->jobs[done->job->id];
	if (!(j->turnaround_ms > 0) || !(done->alone_ms > 0))
		return;
	check_add_sums(&c->now->all, j, done);
	check_add_sums(&c->now->kinds[done->job->kind], j, done);
}

static bool check_keep_going(void *arg, double time_ms, uint64_t ended)
{
	const struct check *c = arg;

	(void)time_ms;
	(void)ended;
	return !(c->cli->cancel && *c->cli->cancel);
}

static int check_run(struct check *c, struct scenario *scenario)
{
	uint64_t seed = c->facts.live ? c->cli->seed : c->facts.seed;
	struct workload *workload = scenario_workload(scenario, seed, &c->err);
	struct sim_result result;
	struct sim_run sim = {
		.cluster = &scenario->cluster,
		.workload = workload,
		.policy = c->facts.policy,
		.params = &scenario->params,
		.progress = check_keep_going,
		.completed = check_completed,
		.arg = c,
	};
	int rc;

	if (!workload)
		return -EINVAL;
	scenario->params.seed = seed;
	c->info = *workload_info(workload);
	rc = sim_run(&sim, &result, &c->err);
	if (!rc)
		sim_result_free(&result);
	workload_free(workload);
	return rc;
}

static int check_simulate(struct check *c, struct settings *s)
{
	struct scenario scenario;
	int rc;

	if (settings_set(s, "workload", c->cli->trace) || settings_set(s, "fidelity", "request") ||
	    settings_merge(s, &c->cli->set))
		return -ENOMEM;
	if (c->cli->nodes && settings_set(s, "nodes", c->cli->nodes))
		return -ENOMEM;
	rc = scenario_open(&scenario, s, &c->err);
	if (rc)
		return rc;
	c->now = &c->own;
	rc = check_run(c, &scenario);
	scenario.params.follow_recorded = true;
	c->now = &c->recorded;
	if (!rc && c->facts.live)
		rc = check_run(c, &scenario);
	scenario_close(&scenario);
	return rc;
}

/* --- what came of it ---------------------------------------------------------------- */

static double check_percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : NAN;
}

static double check_difference(double simulated, double measured)
{
	return measured > 0 ? 100 * (simulated / measured - 1) : NAN;
}

static bool placements_met(const struct check *c)
{
	return !c->decisions ||
	       check_percent((double)c->placed_alike, (double)c->decisions) >= GOAL_PLACEMENTS;
}

static bool slowdown_met(const struct check *c)
{
	const struct check_sums *s = &c->own.all;

	return !s->jobs || fabs(check_difference(s->simulated, s->measured)) <= GOAL_SLOWDOWN;
}

/* Returns true if others took too much for times to be compared; what was not measured did not. */
static bool is_void(const struct check *c)
{
	const struct recording_end *e = &c->facts.end;

	return e->others_cpu > OTHERS_CPU_MOST || e->others_disk > OTHERS_DISK_MOST ||
	       e->stolen > STOLEN_MOST || e->crowded > CROWDED_MOST;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_recording(const struct check *c)
{
	const struct recorded_facts *f = &c->facts;

	printf("recording    %s: %s, %u node%s, %.0f s, %llu job%s, %llu ended; policy %s\n",
	       c->cli->trace, f->live ? "live" : "simulated", f->nodes, plural(f->nodes),
	       f->length_ms / 1e3, (unsigned long long)c->njobs, plural(c->njobs),
	       (unsigned long long)c->ended, f->policy);
	if (f->mixed)
		printf("             (some of its jobs ran under other policies; all are simulated "
		       "under %s)\n",
		       f->policy);
	if (c->never_ran)
		printf("             %llu job%s never ran and %s left out\n",
		       (unsigned long long)c->never_ran, plural(c->never_ran),
		       c->never_ran == 1 ? "is" : "are");
	if (!f->complete)
		printf("             the recording was cut off\n");
	if (f->end.dropped)
		printf("             the recorder lost %llu line%s\n",
		       (unsigned long long)f->end.dropped, plural(f->end.dropped));
}

static void check_share(char *out, size_t size, double share)
{
	if (share < 0)
		snprintf(out, size, "not known");
	else
		snprintf(out, size, "%.0f %%", 100 * share);
}

/* Says how much of the recorded nodes others took, at the node where it was most. */
static void print_others(const struct check *c)
{
	const struct recording_end *e = &c->facts.end;
	char cpu[16], disk[16], stolen[16], crowded[16];

	if (!c->facts.live || !c->facts.complete)
		return;
	check_share(cpu, sizeof(cpu), e->others_cpu);
	check_share(disk, sizeof(disk), e->others_disk);
	check_share(stolen, sizeof(stolen), e->stolen);
	check_share(crowded, sizeof(crowded), e->crowded);
	printf("others       what is no job took at most, of a node's processors: %s; of its disk: "
	       "%s; "
	       "stolen from a machine: %s; no processor idle: %s of the time\n",
	       cpu, disk, stolen, crowded);
	if (is_void(c))
		printf("void         that is too much to compare times (limits: %.0f, %.0f, %.0f "
		       "and "
		       "%.0f %%): record again when the nodes run nothing but jobs\n",
		       100 * OTHERS_CPU_MOST, 100 * OTHERS_DISK_MOST, 100 * STOLEN_MOST,
		       100 * CROWDED_MOST);
}

static void print_placements(const struct check *c)
{
	if (!c->decisions) {
		printf("placements   no decision is recorded\n");
		return;
	}
	printf("placements   %llu of %llu decisions, taken again on the same view, are the "
	       "same: %.1f %% (goal: %.0f %%); %llu with the same reasons to the last digit\n",
	       (unsigned long long)c->placed_alike, (unsigned long long)c->decisions,
	       check_percent((double)c->placed_alike, (double)c->decisions), GOAL_PLACEMENTS,
	       (unsigned long long)c->alike);
	for (size_t i = 0; i < SHOWN_MAX && c->shown[i].line; i++)
		printf("             line %llu, job %s: not the same\n",
		       (unsigned long long)c->shown[i].line,
		       c->shown[i].job[0] ? c->shown[i].job : "(none: it only asked)");
}

static void print_kinds(const struct check *c)
{
	printf("\n%-24s %6s %10s %10s %11s\n", "class", "jobs", "measured", "simulated",
	       "difference");
	for (uint32_t k = 0; k < c->info.kinds; k++) {
		const struct check_sums *s = &c->own.kinds[k];
		double n = (double)s->jobs;

		if (s->jobs)
			printf("%-24s %6llu %10.2f %10.2f %+9.1f %%\n",
			       c->info.kind[k][0] ? c->info.kind[k] : "(none)",
			       (unsigned long long)s->jobs, s->measured / n, s->simulated / n,
			       check_difference(s->simulated, s->measured));
	}
}

static void print_times(const struct check *c)
{
	const struct check_sums *s = &c->own.all, *r = &c->recorded.all;
	double n = (double)s->jobs;

	if (!s->jobs) {
		printf("slowdown     no job's end is recorded\n");
		return;
	}
	printf("slowdown     measured %.2f, simulated %.2f: %+.1f %% (goal: within %.0f %%)\n",
	       s->measured / n, s->simulated / n, check_difference(s->simulated, s->measured),
	       GOAL_SLOWDOWN);
	printf("turn-around  measured %.2f s, simulated %.2f s: %+.1f %%; job by job they are "
	       "%.1f %% apart\n",
	       s->measured_ms / n / 1e3, s->simulated_ms / n / 1e3,
	       check_difference(s->simulated_ms, s->measured_ms), 100 * s->error / n);
	printf("nodes        %llu of %llu simulated jobs ran on the node where they really ran: "
	       "%.1f %%\n",
	       (unsigned long long)s->same_node, (unsigned long long)s->jobs,
	       check_percent((double)s->same_node, n));
	if (r->jobs)
		printf("machines     with every job where it really ran: slowdown %.2f: %+.1f %%; "
		       "job by job %.1f %% apart\n",
		       r->simulated / n, check_difference(r->simulated, r->measured),
		       100 * r->error / n);
	print_kinds(c);
}

static json_t *cli_check_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *check_share_json(double share)
{
	return share < 0 ? json_null() : json_real(share);
}

static json_t *sums_json(const struct check_sums *s)
{
	double n = (double)s->jobs;

	return json_pack(
		"{s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "jobs", (json_int_t)s->jobs,
		"slowdown_measured", cli_check_number(s->measured / n), "slowdown_simulated",
		cli_check_number(s->simulated / n), "slowdown_difference_percent",
		cli_check_number(check_difference(s->simulated, s->measured)),
		"turnaround_measured_ms", cli_check_number(s->measured_ms / n),
		"turnaround_simulated_ms", cli_check_number(s->simulated_ms / n),
		"turnaround_difference_percent",
		cli_check_number(check_difference(s->simulated_ms, s->measured_ms)),
		"turnaround_job_error_percent", cli_check_number(100 * s->error / n),
		"same_node_percent", cli_check_number(check_percent((double)s->same_node, n)));
}

static json_t *check_json(const struct check *c)
{
	const struct recorded_facts *f = &c->facts;
	json_t *kinds = json_object();

	for (uint32_t k = 0; kinds && k < c->info.kinds; k++)
		if (c->own.kinds[k].jobs)
			json_object_set_new(kinds, c->info.kind[k], sums_json(&c->own.kinds[k]));
	return json_pack(
		"{s:s,s:b,s:b,s:I,s:I,s:s,s:b,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:b,"
		"s:{s:o,s:o,s:o,s:o}}",
		"recording", c->cli->trace, "live", f->live, "complete", f->complete, "lines_lost",
		(json_int_t)f->end.dropped, "nodes", (json_int_t)f->nodes, "policy", f->policy,
		"policies_mixed", f->mixed, "length_ms", cli_check_number(f->length_ms), "jobs",
		(json_int_t)c->njobs, "jobs_ended", (json_int_t)c->ended, "jobs_never_ran",
		(json_int_t)c->never_ran, "decisions", (json_int_t)c->decisions, "placements_same",
		(json_int_t)c->placed_alike, "plans_same", (json_int_t)c->alike,
		"placements_same_percent",
		cli_check_number(check_percent((double)c->placed_alike, (double)c->decisions)),
		"times", sums_json(&c->own.all), "times_where_they_ran",
		sums_json(&c->recorded.all), "classes", kinds, "void", is_void(c), "others", "cpu",
		check_share_json(f->end.others_cpu), "disk", check_share_json(f->end.others_disk),
		"stolen", check_share_json(f->end.stolen), "crowded",
		check_share_json(f->end.crowded));
}

static int check_deliver(const struct check *c)
{
	if (c->cli->json) {
		json_t *out = check_json(c);
		int rc =
			out ? json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : -1;

		json_decref(out);
		putchar('\n');
		if (rc)
			return cli_fail(c->cli, CLI_FAILED, "cannot write the output");
	} else {
		print_recording(c);
		print_others(c);
		print_placements(c);
		print_times(c);
	}
	if (fflush(stdout))
		return cli_fail(c->cli, CLI_FAILED, "cannot write the output");
	return placements_met(c) && slowdown_met(c) && c->facts.complete && !is_void(c)
		       ? CLI_OK
		       : CLI_FAILED;
}

/* --- the command -------------------------------------------------------------------- */

static int check(struct check *c, struct settings *s)
{
	int rc = recorded_settings(c->cli->trace, s, &c->facts, &c->err);

	if (rc == 0 && access(c->cli->trace, R_OK))
		return iocom_err_set(&c->err, -errno, "cannot open %s: %s", c->cli->trace,
				     strerror(errno));
	if (rc == 0)
		return iocom_err_set(&c->err, -EINVAL,
				     "%s is not a recording, or cannot be read twice",
				     c->cli->trace);
	if (rc < 0)
		return rc;
	if (c->cli->policies)
		snprintf(c->facts.policy, sizeof(c->facts.policy), "%s", c->cli->policies);
	rc = read_recording(c);
	if (rc)
		return rc;
	number_jobs(c);
	return c->njobs ? check_simulate(c, s) : 0;
}

int cli_check_recording(const struct cli *cli)
{
	struct check c = {.cli = cli, .running = json_object()};
	struct settings s = {0};
	int rc = c.running ? check(&c, &s) : -ENOMEM, ret;

	if (rc)
		ret = cli_fail(cli, CLI_FAILED, "%s", c.err.text[0] ? c.err.text : strerror(-rc));
	else
		ret = check_deliver(&c);
	settings_free(&s);
	json_decref(c.running);
	free(c.jobs);
	return ret;
}
