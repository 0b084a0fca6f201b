/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Rounds.  Between two rounds only the coordinator (the caller's thread) works: it finds the time
 * of the next event, decides how far the round may go, and hands out the jobs that arrive before
 * that.  A round ends no later than
 *
 *   the next period boundary at which a decision needs a snapshot,
 *   the next sample,
 *   the next event + the least delay of a transfer (with several shards).
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "sim/engine/core.h"

#define ARRIVALS_AT_ONCE 4096u /* jobs handed out for a round, times the number of shards */

#define SPINS_MOST	 1024u /* polls at a barrier before sleeping: tens of microseconds */

/* A barrier whose threads do not sleep if the others come soon. */
struct core_sync {
	atomic_uint phase, waiting;
	atomic_flag reading; /* held by the thread that reads jobs ahead */
	pthread_mutex_t lock;
	pthread_cond_t moved; /* signalled when `phase` changes */
	pthread_mutex_t gate; /* held until all threads are started */
	pthread_t *threads;
	uint32_t started;
	bool failed; /* not all threads could be started; final before the gate opens */
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static void sleep_until_moved(struct core_sync *sync, unsigned int phase)
{
	pthread_mutex_lock(&sync->lock);
	while (atomic_load(&sync->phase) == phase)
		pthread_cond_wait(&sync->moved, &sync->lock);
	pthread_mutex_unlock(&sync->lock);
}

/* Polls for the other threads to come; true: they came. */
static bool spin(struct core_sync *sync, unsigned int phase, uint32_t spins)
{
	for (uint32_t i = 0; i < spins; i++) {
		if (atomic_load_explicit(&sync->phase, memory_order_acquire) != phase)
			return true;
		pause_briefly();
	}
	return false;
}

/* Polls less after polling in vain: where other programs want the processor, polling soon stops. */
void core_sync_wait(struct core_shard *s)
{
	struct core *c = s->core;
	struct core_sync *sync = c->sync;
	unsigned int phase;

	if (sync == NULL)
		return;
	phase = atomic_load(&sync->phase);
	if (atomic_fetch_add(&sync->waiting, 1) + 1 == c->nshards) {
		atomic_store(&sync->waiting, 0);
		pthread_mutex_lock(&sync->lock);
		atomic_store(&sync->phase, phase + 1);
		pthread_cond_broadcast(&sync->moved);
		pthread_mutex_unlock(&sync->lock);
		return;
	}
	if (spin(sync, phase, s->spins)) {
		s->spins = s->spins < SPINS_MOST ? 2 * s->spins : SPINS_MOST;
		return;
	}
	s->spins = s->spins > 1 ? s->spins / 2 : 1;
	sleep_until_moved(sync, phase);
}

/* Waits for the end of a round; a thread that is early reads jobs for the next rounds. */
static void wait_for_end(struct core_shard *s)
{
	struct core *c = s->core;
	struct core_sync *sync = c->sync;

	if (sync == NULL)
		return;
	if (!atomic_flag_test_and_set(&sync->reading)) {
		while (atomic_load(&sync->waiting) + 1 < c->nshards && core_read_ahead(c))
			;
		atomic_flag_clear(&sync->reading);
	}
	core_sync_wait(s);
}

/* --- planning ------------------------------------------------------------------- */

static double core_round_least(double a, double b)
{
	return a < b ? a : b;
}

static double next_event(const struct core *c)
{
	double next = c->has_next ? c->next.arrival_ms : CORE_FOREVER;

	for (uint32_t k = 0; k < c->nshards; k++) {
		const struct core_shard *s = &c->shards[k];

		next = core_round_least(next, core_next_time(s));
		for (uint32_t to = 0; c->nshards > 1 && to < c->nshards; to++) {
			const struct core_parcels *out = &s->out[c->round % 2][to];

			for (uint32_t i = 0; i < out->used; i++)
				next = core_round_least(next, out->list[i].due_ms);
		}
	}
	return next;
}

static double next_arrival(const struct core *c)
{
	double next = c->has_next ? c->next.arrival_ms : CORE_FOREVER;

	for (uint32_t k = 0; k < c->nshards; k++) {
		const struct core_arrivals *a = &c->shards[k].arrivals;

		if (a->head < a->used)
			next = core_round_least(next, a->jobs[a->head].arrival_ms);
	}
	return next;
}

/* The last multiple of PERIOD that is at TIME or before. */
static double boundary(double time, double period)
{
	double k = floor(time / period);

	if (!(time < CORE_FOREVER))
		return CORE_FOREVER;
	/* Rounding is off by at most one period.  Beyond 2^53 periods adding one would change
	 * nothing. */
	if (k * period > time)
		k--;
	if ((k + 1) * period <= time)
		k++;
	return k * period;
}

/* Decisions need the snapshot of their period; without decisions ahead none is taken. */
static void plan_snapshot(struct core *c, double next)
{
	double wanted;

	c->take_snapshot = false;
	if (!c->looks || c->period_ms == 0)
		return;
	wanted = boundary(next_arrival(c), c->period_ms);
	if (wanted <= c->snapshot_ms) {
		c->end_ms = core_round_least(c->end_ms, boundary(next_arrival(c), c->period_ms) +
								c->period_ms);
	} else if (next >= wanted) {
		c->take_snapshot = true;
		c->snapshot_ms = wanted;
		c->end_ms = core_round_least(c->end_ms, wanted + c->period_ms);
	} else {
		c->end_ms = core_round_least(c->end_ms, wanted);
	}
}

static void plan_sample(struct core *c, double next)
{
	double period = c->params.sample_ms, due;

	c->take_sample = false;
	if (!(period > 0))
		return;
	due = (floor(c->sampled_ms / period + 0.5) + 1) * period;
	if (next >= due) {
		c->take_sample = true;
		c->sample_at_ms = due;
		due += period;
	}
	c->end_ms = core_round_least(c->end_ms, due);
}

static int core_round_hand_over(struct core *c)
{
	struct core_shard *s = &c->shards[core_shard_of(c, c->next.home)];
	struct core_arrivals *a = &s->arrivals;

	if (a->head == a->used)
		a->head = a->used = 0;
	if (core_grow(&a->jobs, &a->room, a->used + 1, sizeof(*a->jobs)) < 0)
		return iocom_err_set(c->err, -ENOMEM, "out of memory for arriving jobs");
	a->jobs[a->used++] = c->next;
	c->arrived++;
	return core_read_next(c);
}

static int hand_out(struct core *c)
{
	uint32_t left = ARRIVALS_AT_ONCE * c->nshards;
	int ret = 0;

	while (ret == 0 && !c->several && c->has_next && c->next.arrival_ms < c->end_ms) {
		if (left-- == 0) {
			c->end_ms = c->next.arrival_ms;
			break;
		}
		ret = core_round_hand_over(c);
	}
	return ret;
}

static bool paused(const struct core *c)
{
	for (uint32_t k = 0; k < c->nshards; k++)
		if (c->shards[k].paused)
			return true;
	return false;
}

static int first_error(struct core *c)
{
	for (uint32_t k = 0; k < c->nshards; k++) {
		if (c->shards[k].error < 0) {
			if (c->err != NULL)
				*c->err = c->shards[k].err;
			return c->shards[k].error;
		}
	}
	return 0;
}

static uint64_t core_round_completed(const struct core *c)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < c->nshards; k++)
		n += c->shards[k].stats.completed;
	return n;
}

/* Plans the next round; c->finished: there is none. */
static int core_round_plan(struct core *c)
{
	double next = next_event(c), until = c->params.until_ms;
	int ret = first_error(c);

	if (ret < 0)
		return ret;
	if (c->run->progress != NULL && next < CORE_FOREVER &&
	    !c->run->progress(c->run->arg, next, core_round_completed(c)))
		return iocom_err_set(c->err, -ECANCELED, "the run was stopped at %.0f ms", next);
	c->finished = !(next < CORE_FOREVER) || (until > 0 && next >= until);
	if (c->finished)
		return 0;
	if (paused(c)) {
		c->take_snapshot = c->take_sample = false;
	} else {
		c->end_ms = until > 0 ? until : CORE_FOREVER;
		plan_snapshot(c, next);
		plan_sample(c, next);
		if (c->nshards > 1)
			c->end_ms = core_round_least(c->end_ms, next + c->least_delay_ms);
		ret = hand_out(c);
	}
	c->finished = c->several;
	c->round++;
	return ret;
}

static void core_round_sample(struct core_shard *s)
{
	int ret = core_sample_merge(s->core);

	if (ret == -E2BIG)
		core_fail(s, ret, "sample_ms=%g gives a time series of more than %u points",
			  s->core->params.sample_ms, SIM_SAMPLES_MAX);
	else if (ret < 0)
		core_fail(s, ret, "out of memory for samples");
}

/* --- threads ---------------------------------------------------------------------- */

void core_round(struct core_shard *s)
{
	struct core *c = s->core;

	if (c->nshards > 1)
		core_take_parcels(s);
	if (c->take_snapshot) {
		core_snapshot_own(s, c->snapshot_ms);
		core_sync_wait(s);
		core_snapshot_others(s);
		core_sync_wait(s);
	}
	if (c->take_sample) {
		core_sample_partial(s);
		core_sync_wait(s);
		if (s->index == 0)
			core_round_sample(s);
		core_sync_wait(s);
	}
	core_run_shard(s);
}

static void *core_round_work(void *arg)
{
	struct core_shard *s = arg;
	struct core *c = s->core;

	pthread_mutex_lock(&c->sync->gate);
	pthread_mutex_unlock(&c->sync->gate);
	if (c->sync->failed)
		return NULL;
	core_view_init(s);
	core_sync_wait(s);
	for (;;) {
		core_sync_wait(s);
		if (c->finished)
			break;
		core_round(s);
		wait_for_end(s);
	}
	return NULL;
}

static int sync_new(struct core *c)
{
	struct core_sync *sync = calloc(1, sizeof(*sync));

	if (sync == NULL)
		return -ENOMEM;
	sync->threads = calloc(c->nshards, sizeof(*sync->threads));
	if (sync->threads == NULL) {
		free(sync);
		return -ENOMEM;
	}
	atomic_flag_clear(&sync->reading);
	pthread_mutex_init(&sync->lock, NULL);
	pthread_cond_init(&sync->moved, NULL);
	pthread_mutex_init(&sync->gate, NULL);
	c->sync = sync;
	return 0;
}

static int start_threads(struct core *c)
{
	struct core_sync *sync = c->sync;
	int ret = 0;

	pthread_mutex_lock(&sync->gate);
	for (uint32_t k = 1; ret == 0 && k < c->nshards; k++) {
		ret = pthread_create(&sync->threads[k], NULL, core_round_work, &c->shards[k]);
		sync->started += ret == 0;
	}
	sync->failed = ret != 0;
	pthread_mutex_unlock(&sync->gate);
	if (ret == 0)
		return 0;
	return iocom_err_set(c->err, -ret, "cannot start more than %u of %u threads",
			     sync->started + 1, c->nshards);
}

/* The threads wait at the gate (when too few could be started) or at the barrier before a round. */
static void stop_threads(struct core *c)
{
	struct core_sync *sync = c->sync;

	if (!sync->failed) {
		c->finished = true;
		core_sync_wait(&c->shards[0]);
	}
	for (uint32_t k = 1; k <= sync->started; k++)
		pthread_join(sync->threads[k], NULL);
	c->sync = NULL;
	pthread_mutex_destroy(&sync->gate);
	pthread_cond_destroy(&sync->moved);
	pthread_mutex_destroy(&sync->lock);
	free(sync->threads);
	free(sync);
}

int core_rounds(struct core *c)
{
	int ret = c->nshards > 1 ? sync_new(c) : 0;

	if (ret == 0 && c->sync != NULL)
		ret = start_threads(c);
	if (ret == 0) {
		core_view_init(&c->shards[0]);
		core_sync_wait(&c->shards[0]);
	}
	while (ret == 0) {
		ret = core_round_plan(c);
		if (ret < 0 || c->finished)
			break;
		core_sync_wait(&c->shards[0]);
		core_round(&c->shards[0]);
		wait_for_end(&c->shards[0]);
	}
	if (c->sync != NULL)
		stop_threads(c);
	return ret;
}
