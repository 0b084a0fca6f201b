/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See shims.h. */
#include "tests/lib/shims.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/base/loop.h"
#include "agent/shim/lease.h"
#include "user/clock.h"

#define EVENTS_MAX 4
#define FIRST_PID  1000

struct shim {
	struct shim *next;
	char job[SPEC_JOB_MAX], class_name[64], jobs_dir[256];
	pid_t pid;
	uid_t uid;
	uint64_t start_ns, lease_until_ms;
	int wake, leash; /* our end; the agent's, or -1 */
	bool runs;
	struct launch_event events[EVENTS_MAX];
	bool stubborn; /* SIGTERM does not end it */
	unsigned signals;
	unsigned first, count; /* the events that the agent has not read yet */
};

static struct {
	struct loop *loop;
	struct shim *list;
	unsigned most, launched;
} shims;

static struct shim *shim_find(const char *job)
{
	struct shim *s = shims.list;

	while (s && strcmp(s->job, job))
		s = s->next;
	return s;
}

static struct shim *shim_by_leash(int leash)
{
	struct shim *s = shims.list;

	while (s && s->leash != leash)
		s = s->next;
	return s;
}

static void shim_say(struct shim *s, const struct launch_event *event)
{
	const uint64_t one = 1;

	if (s->count == EVENTS_MAX)
		abort();
	s->events[(s->first + s->count++) % EVENTS_MAX] = *event;
	if (write(s->wake, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void shim_say_started(struct shim *s)
{
	struct launch_event e = {.type = LAUNCH_STARTED,
				 .pid = s->pid,
				 .cgroup_id = (uint64_t)s->pid,
				 .lease_until_ms = s->lease_until_ms};

	snprintf(e.job, sizeof(e.job), "%s", s->job);
	shim_say(s, &e);
}

static void shim_exit(struct shim *s, uint8_t kind, uint32_t value, const char *text)
{
	struct launch_event e = {.type = LAUNCH_EXITED,
				 .kind = kind,
				 .value = value,
				 .end_ns = loop_real_ns(shims.loop),
				 .wall_ms = (loop_real_ns(shims.loop) - s->start_ns) /
					    CLOCK_NS_PER_MS};

	if (!s->runs)
		return;
	s->runs = false;
	snprintf(e.job, sizeof(e.job), "%s", s->job);
	snprintf(e.text, sizeof(e.text), "%s", text);
	shim_say(s, &e);
}

static int shim_open_leash(struct shim *s)
{
	s->leash = dup(s->wake);
	if (s->leash < 0)
		abort();
	return s->leash;
}

static void shim_free(struct shim *s)
{
	close(s->wake);
	free(s);
}

/* --- what a guest asks for ------------------------------------------------------ */

static void count_class(const char *class_name)
{
	unsigned n = 0;

	for (const struct shim *s = shims.list; s; s = s->next)
		n += s->runs && class_name[0] && !strcmp(s->class_name, class_name);
	if (n > shims.most)
		shims.most = n;
}

static int in_memory_shim(const struct launch_order *order, int stream, pid_t *pid, int *leash,
			  struct iocom_err *err)
{
	struct shim *s = calloc(1, sizeof(*s));
	struct spec spec;

	if (!s || spec_unpack(&spec, order->spec, order->spec_length, err))
		abort();
	memcpy(s->job, spec.job, sizeof(s->job));
	memcpy(s->class_name, spec.class_name, sizeof(s->class_name));
	spec_free(&spec);
	snprintf(s->jobs_dir, sizeof(s->jobs_dir), "%s", order->jobs_dir);
	s->uid = order->uid;
	s->start_ns = loop_real_ns(shims.loop);
	s->lease_until_ms = order->lease_until_ms;
	s->runs = true;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	*pid = s->pid = (pid_t)(FIRST_PID + ++shims.launched);
	*leash = shim_open_leash(s);
	s->next = shims.list;
	shims.list = s;
	count_class(s->class_name);
	shim_say_started(s);
	close(stream);
	return 0;
}

static int in_memory_read(int leash, struct launch_event *event)
{
	struct shim *s = shim_by_leash(leash);
	uint64_t count;

	if (!s)
		return -EPIPE;
	if (read(s->wake, &count, sizeof(count)) < 0)
		return -EAGAIN;
	*event = s->events[s->first];
	s->first = (s->first + 1) % EVENTS_MAX;
	s->count--;
	if (event->type == LAUNCH_EXITED)
		s->leash = -1; /* the agent is about to close it */
	return 0;
}

static int in_memory_lease(int leash, uint64_t until_ms)
{
	struct shim *s = shim_by_leash(leash);

	if (!s)
		return -EPIPE;
	if (!until_ms)
		shim_exit(s, 3, LEASE_OUTCOME, "home has given it to another");
	else if (until_ms > s->lease_until_ms)
		s->lease_until_ms = until_ms;
	return 0;
}

static void found_of(struct shim *s, struct launch_found *f)
{
	*f = (struct launch_found){.leash = -1, .uid = s->uid, .start_ns = s->start_ns};
	memcpy(f->job, s->job, sizeof(f->job));
	if (s->runs) {
		f->leash = shim_open_leash(s);
		f->started.pid = s->pid;
		f->started.cgroup_id = (uint64_t)s->pid;
		f->started.lease_until_ms = s->lease_until_ms;
	} else if (s->count) {
		f->last = s->events[(s->first + s->count - 1) % EVENTS_MAX];
	}
}

static int in_memory_recover(const char *jobs_dir, const char *run_dir,
			     int (*found)(void *arg, const struct launch_found *f), void *arg,
			     struct iocom_err *err)
{
	struct launch_found f;
	int rc = 0;

	(void)run_dir;
	(void)err;
	for (struct shim *s = shims.list, *next; s && !rc; s = next) {
		next = s->next;
		if (strcmp(s->jobs_dir, jobs_dir))
			continue;
		found_of(s, &f);
		rc = found(arg, &f);
	}
	return rc;
}

static int in_memory_outcome(const char *jobs_dir, const char *run_dir, const char *job,
			     struct launch_found *f)
{
	struct shim *s = shim_find(job);

	(void)jobs_dir;
	(void)run_dir;
	if (!s)
		return -ENOENT;
	found_of(s, f);
	return 0;
}

static void in_memory_kill(const char *scope, uid_t uid, const char *job)
{
	struct shim *s = shim_find(job);

	(void)scope;
	(void)uid;
	if (s)
		shim_exit(s, 1, 9, "");
}

static int64_t in_memory_forget(const char *jobs_dir, const char *run_dir, const char *job)
{
	(void)jobs_dir;
	(void)run_dir;
	for (struct shim **p = &shims.list; *p; p = &(*p)->next) {
		struct shim *s = *p;

		if (strcmp(s->job, job))
			continue;
		*p = s->next;
		shim_free(s);
		break;
	}
	return 0;
}

static void in_memory_spare_make(struct launch_spare *spare, const char *path, const char *scope)
{
	(void)spare;
	(void)path;
	(void)scope;
}

static void in_memory_spare_drop(struct launch_spare *spare)
{
	(void)spare;
}

static int in_memory_attach(const char *run_dir, const char *job, const struct launch_ask *ask,
			    int stream)
{
	(void)run_dir;
	(void)job;
	(void)ask;
	(void)stream;
	return -ESRCH;
}

static int in_memory_replay(const char *path, const char *scope, const char *jobs_dir,
			    const char *slot, uid_t uid, const struct launch_ask *ask, int stream,
			    int *leash, struct iocom_err *err)
{
	(void)path;
	(void)scope;
	(void)jobs_dir;
	(void)slot;
	(void)uid;
	(void)ask;
	(void)stream;
	(void)leash;
	return iocom_err_set(err, -ENOSYS, "nothing is kept in memory");
}

static int in_memory_owner(const char *jobs_dir, const char *job, uid_t *uid)
{
	(void)jobs_dir;
	(void)job;
	(void)uid;
	return -ENOENT;
}

static int in_memory_secret(const char *jobs_dir, const char *job, uint8_t secret[SECRET_BYTES])
{
	(void)jobs_dir;
	(void)job;
	(void)secret;
	return -ENOENT;
}

static int in_memory_signal_ask(const char *run_dir, const char *job, int signal)
{
	struct shim *s = shim_find(job);
	int fd;

	(void)run_dir;
	if (!s || !s->runs)
		return -ESRCH;
	fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); /* the answer is there at once */
	s->signals++;
	if (signal == SIGKILL || (signal == SIGTERM && !s->stubborn))
		shim_exit(s, 1, (uint32_t)signal, "");
	return fd < 0 ? -errno : fd;
}

static int in_memory_signal_answer(int fd)
{
	(void)fd;
	return 0;
}

const struct launcher launcher_in_memory = {
	.shim = in_memory_shim,
	.spare_make = in_memory_spare_make,
	.spare_drop = in_memory_spare_drop,
	.read = in_memory_read,
	.lease = in_memory_lease,
	.recover = in_memory_recover,
	.outcome = in_memory_outcome,
	.bury = in_memory_kill,
	.kill = in_memory_kill,
	.forget = in_memory_forget,
	.attach = in_memory_attach,
	.replay = in_memory_replay,
	.owner = in_memory_owner,
	.secret = in_memory_secret,
	.signal_ask = in_memory_signal_ask,
	.signal_answer = in_memory_signal_answer,
};

/* --- what a test asks for ------------------------------------------------------- */

void shims_begin(struct loop *loop)
{
	shims.loop = loop;
	shims.most = shims.launched = 0;
}

void shims_end(void)
{
	while (shims.list) {
		struct shim *s = shims.list;

		shims.list = s->next;
		shim_free(s);
	}
}

uint64_t shims_due_ns(void)
{
	uint64_t due = UINT64_MAX;

	for (const struct shim *s = shims.list; s; s = s->next)
		if (s->runs && s->lease_until_ms && s->lease_until_ms * CLOCK_NS_PER_MS < due)
			due = s->lease_until_ms * CLOCK_NS_PER_MS;
	return due;
}

void shims_tick(void)
{
	uint64_t now = loop_boot_ns(shims.loop);

	for (struct shim *s = shims.list; s; s = s->next)
		if (s->lease_until_ms && now >= s->lease_until_ms * CLOCK_NS_PER_MS)
			shim_exit(s, 3, LEASE_OUTCOME, "its lease is over");
}

void shims_ignore_term(const char *job)
{
	struct shim *s = shim_find(job);

	if (s)
		s->stubborn = true;
}

unsigned shims_signals(const char *job)
{
	const struct shim *s = shim_find(job);

	return s ? s->signals : 0;
}

void shims_finish(const char *job, uint8_t kind, uint32_t value, const char *text)
{
	struct shim *s = shim_find(job);

	if (s)
		shim_exit(s, kind, value, text);
}

bool shims_runs(const char *job)
{
	const struct shim *s = shim_find(job);

	return s && s->runs;
}

unsigned shims_most(void)
{
	return shims.most;
}

void shims_abandon(const char *jobs_dir)
{
	for (struct shim *s = shims.list; s; s = s->next)
		if (!strcmp(s->jobs_dir, jobs_dir))
			s->leash = -1;
}
