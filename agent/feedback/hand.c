/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See hand.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/feedback/hand_own.h"

#define HAND_NEARLY 32 /* a bound that is off by less than this part of it stays */

const char *const hand_state_names[HAND_STATES] = {
	[HAND_FREE] = "free",	    [HAND_WOULD] = "would be held",
	[HAND_HELD] = "held",	    [HAND_FOREIGN] = "changed by somebody else",
	[HAND_REFUSED] = "refused", [HAND_NONE] = "no memory controller",
	[HAND_GONE] = "gone",
};

int hand_new(struct hand **out, const struct cgroup_mounts *mounts, const char *scope,
	     const char *path)
{
	struct hand *hand = calloc(1, sizeof(*hand));

	if (!hand)
		return -ENOMEM;
	pthread_mutex_init(&hand->lock, NULL);
	hand->holders = 1;
	hand->mounts = *mounts;
	snprintf(hand->scope, sizeof(hand->scope), "%s", scope);
	snprintf(hand->path, sizeof(hand->path), "%s", path);
	*out = hand;
	return 0;
}

struct hand *hand_get(struct hand *hand)
{
	hand->holders++;
	return hand;
}

static void hand_drop(struct hand *hand, struct hand_group *group)
{
	for (struct hand_group **g = &hand->groups; *g; g = &(*g)->next)
		if (*g == group) {
			*g = group->next;
			break;
		}
	free(group);
}

static void hand_drop_all(struct hand *hand)
{
	while (hand->groups)
		hand_drop(hand, hand->groups);
}

void hand_put(struct hand *hand)
{
	if (!hand || --hand->holders > 0)
		return;
	hand_drop_all(hand);
	pthread_mutex_destroy(&hand->lock);
	free(hand);
}

static struct hand_group *hand_find(const struct hand *hand, const char *name)
{
	struct hand_group *g = hand->groups;

	while (g && strcmp(g->name, name) != 0)
		g = g->next;
	return g;
}

static void hand_failed(struct hand_done *done, const char *what, const char *name, int rc)
{
	if (!*done->why)
		snprintf(done->why, sizeof(done->why), "cannot %s %.120s: %s", what, name,
			 strerror(-rc));
}

static bool hand_is_gone(int rc)
{
	return rc == -ENOENT || rc == -ENODEV;
}

/* --- letting go ------------------------------------------------------------------------- */

/*
 * Gives G its original back.  Returns 0, also if it is gone or somebody else's; negative errno: it
 * stays ours.
 */
static int hand_give_back(const struct hand *hand, const struct hand_group *g,
			  struct hand_done *done)
{
	char now[CGROUP_HIGH_TEXT];
	struct cgroup_high high;
	uint64_t bytes;
	int rc = cgroup_high_find(&hand->mounts, hand->scope, g->name, &high);

	if (!rc && high.v2 != g->v2)
		rc = -ENOENT;
	if (!rc)
		rc = cgroup_high_read(&high, &bytes, now);
	if (!rc && bytes != g->before && bytes != g->written) {
		done->foreign++;
		return 0;
	}
	if (!rc)
		rc = cgroup_high_write(&high, g->original);
	if (!rc)
		done->restored++;
	else if (hand_is_gone(rc) || rc == -EOPNOTSUPP)
		done->gone++;
	else
		return rc;
	return 0;
}

/* Lets go of all groups, or of those that this turn has not SEEN. */
static void hand_let_go(struct hand *hand, bool unseen, struct hand_done *done)
{
	struct hand_group *next;
	bool changed = false;
	int rc;

	for (struct hand_group *g = hand->groups; g; g = next) {
		next = g->next;
		if (unseen && g->seen)
			continue;
		rc = g->state == HAND_HELD ? hand_give_back(hand, g, done) : 0;
		if (rc) {
			done->refused++;
			hand_failed(done, "give the original back to", g->name, rc);
			continue;
		}
		changed |= g->state == HAND_HELD;
		hand_drop(hand, g);
	}
	rc = changed ? hand_store_write(hand, false) : 0;
	if (rc)
		hand_failed(done, "write", hand->path, rc);
}

void hand_close(struct hand *hand, struct hand_done *done)
{
	*done = (struct hand_done){0};
	pthread_mutex_lock(&hand->lock);
	hand->closed = true;
	hand_let_go(hand, false, done);
	pthread_mutex_unlock(&hand->lock);
}

void hand_open(struct hand *hand)
{
	pthread_mutex_lock(&hand->lock);
	hand->closed = false;
	pthread_mutex_unlock(&hand->lock);
}

size_t hand_held(struct hand *hand)
{
	size_t n = 0;

	pthread_mutex_lock(&hand->lock);
	for (const struct hand_group *g = hand->groups; g; g = g->next)
		n += g->state == HAND_HELD;
	pthread_mutex_unlock(&hand->lock);
	return n;
}

int hand_recover(struct hand *hand, struct hand_done *done, struct iocom_err *err)
{
	char scope[sizeof(hand->scope)], aside[sizeof(hand->path) + 32];
	int rc;

	*done = (struct hand_done){0};
	pthread_mutex_lock(&hand->lock);
	memcpy(scope, hand->scope, sizeof(scope));
	rc = hand_store_read(hand, err);
	if (rc == -EBADMSG || rc == -EPERM) {
		hand_drop_all(hand);
		snprintf(aside, sizeof(aside), "%s.damaged-%lld", hand->path,
			 (long long)time(NULL));
		(void)rename(hand->path, aside);
	} else if (!rc) {
		hand_let_go(hand, false, done);
		if (!hand->groups)
			(void)hand_store_write(hand, false);
	}
	/* What could not be given back has the other agent's scope, too: it is tried at its next
	 * start. */
	if (hand->groups && strcmp(scope, hand->scope) != 0)
		hand_drop_all(hand);
	memcpy(hand->scope, scope, sizeof(scope));
	pthread_mutex_unlock(&hand->lock);
	return rc == -ENOENT ? 0 : rc;
}

/* --- a turn ------------------------------------------------------------------------------- */

/* Fills in what JOB's group uses; GROUP: it is held, or was left alone. */
static void hand_measure(const struct hand *hand, struct hand_job *job, struct cgroup_high *high)
{
	const struct hand_group *g = hand_find(hand, job->name);
	int rc = cgroup_high_find(&hand->mounts, hand->scope, job->name, high);

	job->high_bytes = 0;
	job->original[0] = 0;
	if (!rc)
		rc = cgroup_high_use(high, &job->use);
	if (rc) {
		job->state = rc == -EOPNOTSUPP ? HAND_NONE : HAND_GONE;
		return;
	}
	if (g) {
		job->state = g->state;
		memcpy(job->original, g->original, sizeof(job->original));
	} else {
		job->state = job->use.cache_bytes >= HAND_CACHE_LEAST &&
					     2 * job->use.cache_bytes >= job->use.bytes
				     ? HAND_WOULD
				     : HAND_FREE;
	}
}

static bool hand_counts(const struct hand_job *job)
{
	return job->state == HAND_HELD || job->state == HAND_WOULD;
}

/* The bounds of the jobs that do I/O, in whole pages. */
static void hand_share(struct hand_turn *turn)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	double all = 0;

	for (size_t i = 0; i < turn->njobs; i++)
		if (hand_counts(&turn->jobs[i]))
			all += (double)turn->jobs[i].use.cache_bytes +
			       (double)turn->jobs[i].missed_bytes;
	for (size_t i = 0; i < turn->njobs; i++) {
		struct hand_job *job = &turn->jobs[i];
		double own = (double)job->use.cache_bytes + (double)job->missed_bytes;
		uint64_t share = all > 0 ? (uint64_t)((double)turn->buffer_bytes * own / all) : 0;

		if (!hand_counts(job))
			continue;
		if (share < HAND_CACHE_LEAST)
			share = HAND_CACHE_LEAST;
		job->high_bytes = (job->use.bytes - job->use.cache_bytes + share) / page * page;
	}
}

/* Somebody else has changed G's bound: it is not ours any more, nor is it in the file. */
static void hand_foreign(const struct hand *hand, struct hand_group *g, struct hand_job *job,
			 struct hand_done *done)
{
	int rc;

	g->state = job->state = HAND_FOREIGN;
	job->high_bytes = 0;
	done->foreign++;
	rc = hand_store_write(hand, false);
	if (rc)
		hand_failed(done, "write", hand->path, rc);
}

/* Looks at what is there now.  Returns true if JOB's bound is to be written. */
static bool hand_wants(struct hand *hand, struct hand_job *job, const struct cgroup_high *high,
		       struct hand_done *done, bool *added)
{
	struct hand_group *g = hand_find(hand, job->name);
	char now[CGROUP_HIGH_TEXT];
	uint64_t bytes, off;
	int rc = cgroup_high_read(high, &bytes, now);

	if (rc) {
		job->state = hand_is_gone(rc) ? HAND_GONE : HAND_REFUSED;
		job->rc = rc;
		return false;
	}
	if (g && bytes != g->before && bytes != g->written) {
		hand_foreign(hand, g, job, done);
		return false;
	}
	off = job->high_bytes > bytes ? job->high_bytes - bytes : bytes - job->high_bytes;
	if (g && off < job->high_bytes / HAND_NEARLY) {
		job->high_bytes = bytes;
		return false;
	}
	if (!g) {
		g = hand_add(hand, job->name);
		if (!g)
			return false;
		memcpy(g->original, now, sizeof(g->original));
		memcpy(job->original, now, sizeof(job->original));
		g->v2 = high->v2;
		g->state = HAND_HELD;
		*added = true;
	}
	g->seen = true;
	g->before = bytes;
	g->written = job->high_bytes;
	return true;
}

/* Takes back what is above the bound first, so that the write itself takes no time. */
static void hand_write(struct hand *hand, struct hand_job *job, const struct cgroup_high *high,
		       struct hand_done *done)
{
	struct hand_group *g;
	char text[CGROUP_HIGH_TEXT];
	uint64_t now;
	int rc;

	if (job->high_bytes < job->use.bytes) {
		pthread_mutex_unlock(&hand->lock);
		(void)cgroup_high_reclaim(high, job->use.bytes - job->high_bytes);
		pthread_mutex_lock(&hand->lock);
	}
	g = hand_find(hand, job->name);
	if (hand->closed || !g)
		return;
	/* Once more: reclaiming took its time, and so did the disk. */
	rc = cgroup_high_read(high, &now, text);
	if (!rc && now != g->before) {
		hand_foreign(hand, g, job, done);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, job->high_bytes);
	if (!rc)
		rc = cgroup_high_write(high, text);
	job->state = g->state;
	if (!rc) {
		done->writes++;
	} else if (hand_is_gone(rc)) {
		job->state = HAND_GONE;
		hand_drop(hand, g);
	} else {
		g->state = job->state = HAND_REFUSED;
		job->rc = rc;
		done->refused++;
		hand_failed(done, "bound the memory of", job->name, rc);
	}
}

struct hand_aim {
	struct cgroup_high high;
	bool due;
};

static void hand_act(struct hand *hand, struct hand_turn *turn, struct hand_aim *aims)
{
	bool added = false, any = false;
	int rc;

	for (size_t i = 0; i < turn->njobs; i++) {
		struct hand_job *job = &turn->jobs[i];

		if (!hand_counts(job))
			continue;
		aims[i].due = hand_wants(hand, job, &aims[i].high, &turn->done, &added);
		any |= aims[i].due;
	}
	rc = any || added ? hand_store_write(hand, added) : 0;
	if (rc) {
		/* What is new was not touched yet; the others keep what they have. */
		hand_failed(&turn->done, "write", hand->path, rc);
		turn->done.refused++;
		for (size_t i = 0; i < turn->njobs; i++) {
			struct hand_group *g = hand_find(hand, turn->jobs[i].name);

			if (!aims[i].due || !g)
				continue;
			turn->jobs[i].high_bytes = 0;
			g->written = g->before;
			if (turn->jobs[i].state != HAND_WOULD)
				continue;
			hand_drop(hand, g);
		}
		return;
	}
	for (size_t i = 0; i < turn->njobs && !hand->closed; i++)
		if (aims[i].due)
			hand_write(hand, &turn->jobs[i], &aims[i].high, &turn->done);
}

void hand_turn(struct hand *hand, struct hand_turn *turn)
{
	struct hand_aim *aims = calloc(turn->njobs + 1, sizeof(*aims));

	turn->done = (struct hand_done){0};
	if (!aims)
		return;
	pthread_mutex_lock(&hand->lock);
	for (struct hand_group *g = hand->groups; g; g = g->next)
		g->seen = false;
	for (size_t i = 0; i < turn->njobs; i++) {
		struct hand_group *g = hand_find(hand, turn->jobs[i].name);

		hand_measure(hand, &turn->jobs[i], &aims[i].high);
		if (g)
			g->seen = turn->jobs[i].state != HAND_GONE;
	}
	hand_share(turn);
	if (!hand->closed && !turn->dry) {
		hand_let_go(hand, true, &turn->done);
		hand_act(hand, turn, aims);
	}
	pthread_mutex_unlock(&hand->lock);
	free(aims);
}
