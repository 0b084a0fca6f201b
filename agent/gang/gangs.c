/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The gangs of this node: which there are, and when they are looked at; see gangs.h. */
#include "agent/gang/gangs.h"

#include <errno.h>
#include <signal.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gang/gangs_own.h"
#include "user/utf8.h"

#define GANGS_BY_SIGNAL "it was ended by signal "

#define LOOK_EVERY	5 /* chores */

static struct gang *gangs_find(const struct gangs *gangs, const char *job)
{
	struct gang *g = gangs->first;

	while (g && strcmp(g->job, job) != 0)
		g = g->next;
	return g;
}

struct gang *gang_look_soon(struct gangs *gangs, const char *job)
{
	char whole[SPEC_JOB_MAX];
	struct gang *g = gangs_find(gangs, gang_part_of(job, whole, NULL) ? whole : job);

	if (!g)
		return NULL;
	g->dirty = true;
	if (!gangs->look.active)
		loop_start(gangs->base->loop, &gangs->look, 0);
	return g;
}

/* A part has ended: home's journal has that, or will when its transaction is over. */
static void gangs_part_ended(void *arg, const char *from, const struct job_report *report)
{
	struct gang *g =
		gang_part_of(report->job, NULL, NULL) ? gang_look_soon(arg, report->job) : NULL;

	(void)from;
	if (g && !report->kind && !report->value)
		gang_used(g, report);
}

static void gangs_part_started(void *arg, const char *job)
{
	if (gang_part_of(job, NULL, NULL))
		(void)gang_look_soon(arg, job);
}

/* One that just runs is looked at seldom: what its parts say comes by itself. */
static bool gangs_is_due(const struct gangs *gangs, const struct gang *g)
{
	return !g->start_ns || g->ending || g->over || gangs->chores % LOOK_EVERY == 0;
}

static void gangs_look(struct gangs *gangs, bool all)
{
	struct gang *next;

	for (struct gang *g = gangs->first; g; g = next) {
		next = g->next;
		if (g->dirty || (all && gangs_is_due(gangs, g)))
			gang_look(gangs, g);
	}
}

static void gangs_look_dirty(void *arg)
{
	gangs_look(arg, false);
}

bool gangs_end(struct gangs *gangs, const char *job, int signal)
{
	struct gang *g = gangs_find(gangs, job);
	char why[64];

	if (!g || g->ending || g->over)
		return false;
	snprintf(why, sizeof(why), GANGS_BY_SIGNAL "%d (%s)%s", signal,
		 sigabbrev_np(signal) ? sigabbrev_np(signal) : "?",
		 g->start_ns ? "" : " before all its tasks ran");
	gang_fail(gangs, g, REASON_TOLD, 1, signal, why);
	return true;
}

bool gangs_give_up(struct gangs *gangs, const char *job, int value, const char *why)
{
	struct gang *g = gangs_find(gangs, job);
	char text[sizeof(g->why)];

	if (!g || g->ending || g->over)
		return false;
	snprintf(text, sizeof(text), "%s", why);
	utf8_plain(text);
	gang_fail(gangs, g, REASON_HEARD, 3, value, text);
	return true;
}

void gangs_chores(struct gangs *gangs)
{
	gangs->chores++;
	gangs_look(gangs, true);
}

struct gang *gang_add(struct gangs *gangs, const char *job, uid_t uid, const char *class_name,
		      uint64_t submit_ns)
{
	struct gang *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	snprintf(g->job, sizeof(g->job), "%s", job);
	snprintf(g->class_name, sizeof(g->class_name), "%s", class_name);
	g->uid = uid;
	g->submit_ns = submit_ns;
	g->since_ns = loop_boot_ns(gangs->base->loop);
	g->next = gangs->first;
	gangs->first = g;
	gangs->count++;
	return g;
}

void gang_remove(struct gangs *gangs, struct gang *g)
{
	for (struct gang **q = &gangs->first; *q; q = &(*q)->next) {
		if (*q != g)
			continue;
		*q = g->next;
		gangs->count--;
		free(g);
		return;
	}
}

size_t gangs_count(const struct gangs *gangs)
{
	return gangs ? gangs->count + gangs->ntries : 0;
}

/* --- an agent's life ------------------------------------------------------------------------- */

int gangs_new(struct gangs **out, const struct gangs_config *config, struct iocom_err *err)
{
	struct gangs *gangs = calloc(1, sizeof(*gangs));

	if (!gangs)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	gangs->config = *config;
	gangs->base = config->base;
	gangs->home = config->home;
	gangs->look = (struct loop_timer){.fire = gangs_look_dirty, .arg = gangs};
	gangs->watch = (struct home_watch){
		.started = gangs_part_started, .finished = gangs_part_ended, .arg = gangs};
	home_watch(gangs->home, &gangs->watch);
	*out = gangs;
	return 0;
}

/* Whether its user said that a failed task does not end the others. */
static bool gangs_keeps_going(const struct gangs *gangs, const struct gang *g)
{
	struct iocom_err err = {0};
	char *text = NULL;
	json_t *place;
	uid_t owner;
	bool keeps;

	if (journal_place(gangs->home->journal, g->job, g->uid, &text, &owner, &err))
		return false;
	place = json_loads(text, 0, NULL);
	keeps = json_is_true(json_object_get(place, "keep_going"));
	json_decref(place);
	free(text);
	return keeps;
}

struct gangs_loading {
	struct gangs *gangs;
	bool failed;
};

static void gangs_take(void *arg, const struct journal_job *job)
{
	struct gangs_loading *l = arg;
	struct gang *g = gang_add(l->gangs, job->job, job->uid, job->class_name, job->submit_ns);

	if (!g) {
		l->failed = true;
		return;
	}
	g->start_ns = job->start_ns;
	g->over = strcmp(job->state, "starting") != 0 && strcmp(job->state, "running") != 0;
	g->ending = job->text && *job->text;
	g->kind = job->exit_kind;
	g->value = job->exit_value;
	snprintf(g->why, sizeof(g->why), "%s", job->text ? job->text : "");
	g->weak = strncmp(g->why, GANGS_BY_SIGNAL, strlen(GANGS_BY_SIGNAL)) ? REASON_OWN
									    : REASON_TOLD;
}

int gangs_load(struct gangs *gangs, struct iocom_err *err)
{
	struct gangs_loading l = {.gangs = gangs};

	if (journal_gangs(gangs->home->journal, gangs_take, &l))
		return iocom_err_set(err, -EIO, "cannot read the gangs in the job journal");
	if (l.failed)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	for (struct gang *g = gangs->first; g; g = g->next)
		g->keep_going = gangs_keeps_going(gangs, g);
	return 0;
}

void gangs_free(struct gangs *gangs)
{
	if (!gangs)
		return;
	gangs_place_stop(gangs);
	loop_cancel(gangs->base->loop, &gangs->look);
	while (gangs->first)
		gang_remove(gangs, gangs->first);
	/* The home party, which goes after it, calls it no more. */
	for (struct home_watch **w = &gangs->home->watches; *w; w = &(*w)->next)
		if (*w == &gangs->watch) {
			*w = gangs->watch.next;
			break;
		}
	free(gangs);
}
