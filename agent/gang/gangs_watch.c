/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What becomes of a gang follows from what the journal has of its parts:
 *
 *   a part failed, or its node is lost, or some have not started in time   -> it fails: the others
 *                                                                             are ended
 *   all parts have ended                                                   -> it has ended
 *
 * With keep_going a part that exits with another status than 0 does not end the others.  A part
 * that has not begun gives up its lease; one that runs gets SIGTERM, and from GANGS_LINGER_MS on
 * SIGKILL, again and again until it has ended, also when its node is heard again only after the
 * gang has ended: no part outlives its gang.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/base/matrix.h"
#include "agent/gang/gangs_own.h"
#include "user/clock.h"
#include "user/gang_plan.h"

#define LOST_VALUE 255

/* Of a part that gave up its lease, because its gang ended: never the reason of that. */
static const char gang_never[] = "it never started: its gang ended first";

struct gang_seen {
	const struct gangs *gangs;
	const struct gang *gang;
	uint32_t parts, starting, running, gone; /* gone: unended, at a lost node */
	uint32_t tasks;
	uint64_t start_ns, end_ns; /* the first start, the last end */
	/* the part that failed first, the first whose node is lost, and the first that starts */
	char bad[SPEC_JOB_MAX], bad_node[IOCOM_NAME_MAX], bad_text[256];
	int bad_kind, bad_value;
	enum gang_reason bad_reason;
	uint64_t bad_ns;
	bool worse; /* it did not just exit with some status */
	char lost[SPEC_JOB_MAX], lost_node[IOCOM_NAME_MAX];
	char late[SPEC_JOB_MAX], late_node[IOCOM_NAME_MAX];
};

/* --- what there is --------------------------------------------------------------------------- */

/* Whether NODE has been silent for so long that its part counts as lost. */
static bool gang_node_lost(const struct gangs *gangs, const struct gang *g, const char *node)
{
	const struct home *home = gangs->home;
	const struct matrix_entry *e = matrix_find(home->matrix, node);
	uint64_t now = loop_boot_ns(gangs->base->loop), heard = g->since_ns;
	uint64_t patience_s = e && e->left ? GANGS_AWAY_S : GANGS_LOST_S;

	if (!strcmp(node, gangs->base->set->name) || (e && e->alive))
		return false;
	if (e && e->heard_ns > heard)
		heard = e->heard_ns;
	return now > heard + patience_s * CLOCK_NS_PER_S;
}

static bool gang_part_unended(const struct journal_job *job)
{
	return !strcmp(job->state, "starting") || !strcmp(job->state, "running");
}

/* The signal by which a part, or a task whose status it has, ended; 0: by none. */
static int gang_end_signal(int kind, int value)
{
	return kind == 0 && value > 128 && value < 128 + NSIG ? value - 128 : kind == 1 ? value : 0;
}

static enum gang_reason gang_reason_of(const struct gang *g, const struct journal_job *job)
{
	const char *text = job->text ? job->text : "", *heard = gang_told_text(text);
	int signal = gang_end_signal(job->exit_kind, job->exit_value);

	if (!strcmp(text, gang_never))
		return REASON_NEVER;
	if (!strcmp(text, GANG_CLIENT_LOST))
		return REASON_LEFT;
	if (heard)
		return *heard ? REASON_HEARD : REASON_TOLD;
	if (g->keep_going)
		return REASON_OWN;
	/* A shim of an older iocom has no text. */
	if (!*text && signal == SIGTERM)
		return REASON_TOLD;
	return *text && gang_crash_signal(signal) ? REASON_CRASH : REASON_OWN;
}

static void gang_seen_bad(struct gang_seen *s, const struct journal_job *job)
{
	enum gang_reason reason = gang_reason_of(s->gang, job);

	if (reason == REASON_NEVER ||
	    (*s->bad &&
	     (reason != s->bad_reason ? reason > s->bad_reason : job->end_ns >= s->bad_ns)))
		return;
	s->bad_reason = reason;
	snprintf(s->bad, sizeof(s->bad), "%s", job->job);
	snprintf(s->bad_node, sizeof(s->bad_node), "%s", job->node);
	snprintf(s->bad_text, sizeof(s->bad_text), "%.255s", job->text ? job->text : "");
	s->bad_kind = job->exit_kind;
	s->bad_value = job->exit_value;
	s->bad_ns = job->end_ns;
	if (!strcmp(job->state, "lost"))
		s->bad_value = LOST_VALUE;
}

static void gang_seen_part(void *arg, const struct journal_job *job)
{
	struct gang_seen *s = arg;

	s->parts++;
	s->tasks += job->tasks;
	if (job->start_ns && (!s->start_ns || job->start_ns < s->start_ns))
		s->start_ns = job->start_ns;
	if (job->end_ns > s->end_ns)
		s->end_ns = job->end_ns;
	if (!gang_part_unended(job)) {
		if (strcmp(job->state, "exited") != 0 || job->exit_value)
			gang_seen_bad(s, job);
		s->worse |= strcmp(job->state, "exited") != 0;
		return;
	}
	if (gang_node_lost(s->gangs, s->gang, job->node)) {
		s->gone++;
		if (!*s->lost) {
			snprintf(s->lost, sizeof(s->lost), "%s", job->job);
			snprintf(s->lost_node, sizeof(s->lost_node), "%s", job->node);
		}
	}
	if (!strcmp(job->state, "running")) {
		s->running++;
		return;
	}
	s->starting++;
	if (!*s->late) {
		snprintf(s->late, sizeof(s->late), "%s", job->job);
		snprintf(s->late_node, sizeof(s->late_node), "%s", job->node);
	}
}

/* --- ending its parts ------------------------------------------------------------------------ */

struct gang_told {
	struct gangs *gangs;
	char part[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
	bool ends; /* the part's row ends if the lease was given up */
};

static void gang_part_never(struct gangs *gangs, const char *part)
{
	const struct journal_job row = {
		.job = part,
		.state = "failed",
		.end_ns = loop_real_ns(gangs->base->loop),
		.exit_kind = 3,
		.exit_value = 125,
		.text = gang_never,
	};
	char node[IOCOM_NAME_MAX], class_name[64];
	struct iocom_err err = {0};
	bool ended;
	uid_t uid;

	if (journal_home_get(gangs->home->journal, part, node, &uid, class_name, &ended, &err) ||
	    ended)
		return;
	if (journal_home_end(gangs->home->journal, &row, &err)) {
		base_journal_failed(gangs->base, &err);
		return;
	}
	home_tell_ended(gangs->home, part);
	(void)gang_look_soon(gangs, part);
}

static void gang_release_answered(void *arg, int rc, const struct peer_answer *answer,
				  const char *why)
{
	struct gang_told *told = arg;

	(void)why;
	if (!rc && answer->ok && told->ends)
		gang_part_never(told->gangs, told->part);
	free(told);
}

static void gang_kill_answered(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	/* A part that has ended says so itself, and one that has not is told again. */
	(void)rc;
	(void)answer;
	(void)why;
	free(arg);
}

static void gang_tell(struct gangs *gangs, const char *part, const char *node,
		      struct peer_request *request, bool ends, peers_answered answered)
{
	const struct home_ports *ports = gangs->home->ports;
	const struct matrix_entry *e = matrix_find(gangs->home->matrix, node);
	bool own = !strcmp(node, gangs->base->set->name);
	struct gang_told *told = own || e ? calloc(1, sizeof(*told)) : NULL;
	struct iocom_err err = {0};

	if (!told)
		return;
	told->gangs = gangs;
	told->ends = ends;
	snprintf(told->part, sizeof(told->part), "%s", part);
	snprintf(request->job, sizeof(request->job), "%s", part);
	if (ports->ask(ports->ask_arg, node, own ? "" : e->vector.address, own ? 0 : e->vector.port,
		       request, answered, told, &err))
		free(told);
}

static void gang_give_back(struct gangs *gangs, const char *part, const char *node,
			   const char *nonce, bool ends)
{
	struct peer_request request = {.type = PEER_RELEASE};

	snprintf(request.release.nonce, sizeof(request.release.nonce), "%s", nonce);
	gang_tell(gangs, part, node, &request, ends, gang_release_answered);
}

void gang_release(struct gangs *gangs, const char *part, const char *node, const char *nonce)
{
	gang_give_back(gangs, part, node, nonce, false);
}

struct gang_end {
	struct gangs *gangs;
	const struct gang *gang;
	int signal;
};

static void gang_end_part(void *arg, const struct journal_job *job)
{
	const struct gang_end *e = arg;
	struct peer_request request = {.type = PEER_KILL,
				       .kill = {.uid = e->gang->uid, .signal = e->signal}};

	if (!gang_part_unended(job))
		return;
	if (!strcmp(job->state, "starting"))
		gang_give_back(e->gangs, job->job, job->node, "", true);
	gang_tell(e->gangs, job->job, job->node, &request, false, gang_kill_answered);
}

/* Tells the parts to end if that is due. */
static void gang_end_parts(struct gangs *gangs, struct gang *g)
{
	uint64_t now = loop_boot_ns(gangs->base->loop);
	struct gang_end e = {gangs, g, g->asks ? SIGKILL : SIGTERM};

	if (g->asks && now < g->asked_ns + GANGS_LINGER_MS * CLOCK_NS_PER_MS)
		return;
	g->asks++;
	g->asked_ns = now;
	(void)journal_gang_parts(gangs->home->journal, g->job, gang_end_part, &e);
}

/* --- what follows ---------------------------------------------------------------------------- */

void gang_fail(struct gangs *gangs, struct gang *g, enum gang_reason reason, int kind, int value,
	       const char *why)
{
	struct iocom_err err = {0};

	if (g->ending)
		return;
	g->ending = true;
	g->kind = kind;
	g->value = value;
	g->weak = reason;
	snprintf(g->why, sizeof(g->why), "%s", why);
	if (journal_gang_fails(gangs->home->journal, g->job, kind, value, g->why, &err))
		base_journal_failed(gangs->base, &err);
	log_provoked(gangs->base->log, LOG_L_INFO, "parallel job %s ends: %s", g->job, g->why);
	(void)gang_look_soon(gangs, g->job);
}

/* How a part failed, in words. */
static void gang_fail_by(struct gangs *gangs, struct gang *g, const struct gang_seen *s)
{
	bool ends = s->parts > 1 && (!g->keep_going || s->worse);
	const char *others = ends ? "; the others were ended" : "";
	int signal = gang_end_signal(s->bad_kind, s->bad_value);
	const char *name = signal ? sigabbrev_np(signal) : NULL;
	bool own = s->bad_reason != REASON_TOLD, run = s->bad_kind <= 1 && *s->bad_text;
	/* The launcher's status says how its task ended. */
	bool by_signal = signal && (!own || strstr(s->bad_text, " was ended by signal "));
	char why[sizeof(g->why)];

	if (!own && signal)
		snprintf(why, sizeof(why), "it was ended by signal %d (%s)", signal,
			 name ? name : "?");
	else if (!own)
		snprintf(why, sizeof(why), "it was told to end, and ended with status %d",
			 s->bad_value);
	else if (s->bad_reason == REASON_LEFT)
		snprintf(why, sizeof(why), "%s", s->bad_text);
	else if (s->bad_reason == REASON_HEARD)
		snprintf(why, sizeof(why), "%s%s", gang_told_text(s->bad_text), others);
	else if (run && strstr(s->bad_text, s->bad_node))
		snprintf(why, sizeof(why), "%s%s", s->bad_text, others);
	else if (s->bad_kind == 0 && !run)
		snprintf(why, sizeof(why), "its part on node %s (%s) ended with status %d%s",
			 s->bad_node, s->bad, s->bad_value, others);
	else if (s->bad_kind == 1 && !run)
		snprintf(why, sizeof(why), "its part on node %s (%s) was ended by signal %d%s",
			 s->bad_node, s->bad, s->bad_value, others);
	else
		snprintf(why, sizeof(why), "its part on node %s (%s) failed: %s%s", s->bad_node,
			 s->bad, *s->bad_text ? s->bad_text : "iocom could not run it", others);
	if (s->bad_reason == REASON_HEARD)
		gang_fail(gangs, g, s->bad_reason, 3, 125, why);
	else if (by_signal)
		gang_fail(gangs, g, s->bad_reason, 1, signal, why);
	else
		gang_fail(gangs, g, s->bad_reason, s->bad_kind, s->bad_value, why);
}

static void gang_judge(struct gangs *gangs, struct gang *g, const struct gang_seen *s)
{
	uint64_t now = loop_boot_ns(gangs->base->loop);
	bool forgiven = g->keep_going && !s->worse;
	char why[sizeof(g->why)];

	if (!s->parts) {
		gang_fail(gangs, g, REASON_OWN, 3, 125, "it never began: its agent ended first");
	} else if (*s->bad && (!forgiven || !(s->starting + s->running))) {
		gang_fail_by(gangs, g, s);
	} else if (*s->lost) {
		snprintf(why, sizeof(why),
			 "node %s with its part %s is lost: it has been silent for more than %d s; "
			 "the others were ended",
			 s->lost_node, s->lost, GANGS_LOST_S);
		gang_fail(gangs, g, REASON_OWN, 3, LOST_VALUE, why);
	} else if (s->starting && now > g->since_ns + GANGS_START_S * CLOCK_NS_PER_S) {
		snprintf(why, sizeof(why),
			 "its part %s on node %s did not start within %d s; the others were ended",
			 s->late, s->late_node, GANGS_START_S);
		gang_fail(gangs, g, REASON_OWN, 3, 125, why);
	}
}

static const char *gang_state(const struct gang *g)
{
	if (!g->ending || g->kind == 0)
		return "exited";
	if (g->kind == 1)
		return "killed";
	return g->value == LOST_VALUE ? "lost" : "failed";
}

/* Tells who watches home's jobs of the end of G, with what its parts said. */
static void gang_tell_finished(struct gangs *gangs, const struct gang *g,
			       const struct journal_job *row)
{
	const struct profile *used = &g->used;
	struct job_report report = {
		.kind = (uint8_t)row->exit_kind,
		.value = (uint32_t)row->exit_value,
		.start_ns = row->start_ns,
		.end_ns = row->end_ns,
		.wall_ms = (uint64_t)used->wall_ms,
		.cpu_ms = used->cpu_ms,
		.requests = used->requests,
		.request_kb = used->requests > 0 ? used->request_mb * 1e3 / used->requests : 0,
		.memory_mb = used->memory_mb,
	};

	snprintf(report.job, sizeof(report.job), "%s", g->job);
	snprintf(report.state, sizeof(report.state), "%s", row->state);
	home_tell_finished(gangs->home, gangs->base->set->name, &report);
}

/* Writes the end of G. */
static void gang_write_end(struct gangs *gangs, struct gang *g, const struct gang_seen *s)
{
	uint64_t now = loop_real_ns(gangs->base->loop);
	const struct journal_job row = {
		.job = g->job,
		.state = gang_state(g),
		.start_ns = s->start_ns,
		.end_ns = s->end_ns ? s->end_ns : now,
		.exit_kind = g->kind,
		.exit_value = g->value,
		.text = g->why,
		.wall_ms = now > g->submit_ns && s->start_ns
				   ? (double)(now - g->submit_ns) / CLOCK_NS_PER_MS
				   : 0,
	};
	struct iocom_err err = {0};

	if (journal_home_end(gangs->home->journal, &row, &err)) {
		base_journal_failed(gangs->base, &err); /* the next look tries again */
		return;
	}
	g->over = true;
	gang_tell_finished(gangs, g, &row);
	home_tell_ended(gangs->home, g->job);
	if (!g->ending)
		gang_learn(gangs, g, s->tasks, s->parts);
}

static void gang_runs(struct gangs *gangs, struct gang *g, const struct gang_seen *s)
{
	struct iocom_err err = {0};

	if (g->start_ns || s->starting || !s->start_ns || g->over)
		return;
	g->start_ns = s->start_ns;
	if (journal_home_state(gangs->home->journal, g->job, "running", s->start_ns, 0, &err))
		base_journal_failed(gangs->base, &err);
}

static void gang_look_at(struct gangs *gangs, struct gang *g)
{
	struct gang_seen s = {.gangs = gangs, .gang = g};
	uint32_t unended;

	g->dirty = false;
	if (journal_gang_parts(gangs->home->journal, g->job, gang_seen_part, &s))
		return; /* the next look tries again */
	unended = s.starting + s.running;
	gang_runs(gangs, g, &s);
	if (g->ending && !g->over && *s.bad && s.bad_reason < g->weak) {
		g->ending = false;
		gang_fail_by(gangs, g, &s);
	}
	if (!g->ending && !g->over)
		gang_judge(gangs, g, &s);
	if ((g->ending || g->over) && unended)
		gang_end_parts(gangs, g);
	if (!g->over && (!unended || (g->ending && unended == s.gone)))
		gang_write_end(gangs, g, &s);
	if (g->over && !unended)
		gang_remove(gangs, g);
}

void gang_look(struct gangs *gangs, struct gang *g)
{
	uid_t before = loop_share_enter(gangs->base->shares, g->uid);

	gang_look_at(gangs, g);
	loop_share_leave(gangs->base->shares, before);
}
