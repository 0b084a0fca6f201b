/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_caches.h. */
#include "agent/measure/data_caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/question_thread.h"
#include "user/clock.h"
#include "user/data_usage.h"

#define CACHES_EVERY_S	5
#define CACHES_LIMIT_MS 30000

struct data_caches {
	const struct base *base;
	struct question_thread *thread; /* NULL: nothing was read yet */
	void (*have)(void *arg, const struct data_caches_use *use);
	void *arg;
	uint64_t next_ns;
	bool reading;
};

struct caches_task {
	struct question_task task;
	struct data_caches *caches; /* the loop's; the thread leaves it alone */
	char data_dir[SETTINGS_PATH_MAX];
	int rc;
	struct data_usage_all all;
};

static void caches_run(struct question_task *task)
{
	struct caches_task *t = (struct caches_task *)task;

	t->rc = data_usage_all(t->data_dir, &t->all);
}

static void caches_free(struct question_task *task)
{
	free(task);
}

static uint32_t caches_count(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void caches_done(struct question_task *task, int rc)
{
	struct caches_task *t = (struct caches_task *)task;
	struct data_caches *c = t->caches;
	const struct data_usage *sum = &t->all.sum;

	c->reading = false;
	if (rc)
		return; /* the disk hangs; the thread frees it */
	if (!t->rc)
		c->have(c->arg, &(struct data_caches_use){
					.jobs = caches_count(sum->jobs),
					.refused = caches_count(sum->refused),
					.mb = (double)sum->sum.cache_bytes / 1e6,
					.files = caches_count(sum->sum.cache_files),
					.hits = caches_count(sum->sum.found_files),
					.misses = caches_count(sum->sum.copied_files),
					.evicted = caches_count(sum->sum.evicted_files),
				});
	free(t);
}

/* A user's directory in DATA_DIR is a link more. */
static bool caches_any(const char *data_dir)
{
	struct stat st;

	return *data_dir && !stat(data_dir, &st) && st.st_nlink != 2;
}

void data_caches_chores(struct data_caches *c)
{
	const char *data_dir = c->base->set->data_dir;
	uint64_t now = loop_boot_ns(c->base->loop);
	struct iocom_err err = {0};
	struct caches_task *t;

	if (now < c->next_ns || c->reading)
		return;
	c->next_ns = now + CACHES_EVERY_S * CLOCK_NS_PER_S;
	if (!caches_any(data_dir) || (!c->thread && question_thread_new(&c->thread, c->base->loop,
									CACHES_LIMIT_MS, 1, &err)))
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->task =
		(struct question_task){.run = caches_run, .done = caches_done, .free = caches_free};
	t->caches = c;
	snprintf(t->data_dir, sizeof(t->data_dir), "%s", data_dir);
	c->reading = !question_thread_ask(c->thread, &t->task);
}

struct data_caches *data_caches_new(const struct base *base,
				    void (*have)(void *arg, const struct data_caches_use *use),
				    void *arg)
{
	struct data_caches *c = calloc(1, sizeof(*c));

	if (c)
		*c = (struct data_caches){.base = base, .have = have, .arg = arg};
	return c;
}

void data_caches_free(struct data_caches *c)
{
	if (!c)
		return;
	question_thread_free(c->thread);
	free(c);
}
