/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Supervisors that a test plays; see guest_shims.h. */
#include "tests/lib/guest_shims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/trace.h"

struct shims_played shims;

/* What a shim says on a leash. */
struct shim_word {
	int rc;
	struct launch_event event;
};

void shims_up(void)
{
	memset(&shims, 0, sizeof(shims));
}

static void close_ends(struct shim_played *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].end >= 0)
			close(list[i].end);
}

void shims_down(void)
{
	close_ends(shims.all, shims.n);
	close_ends(shims.signals, shims.nsignals);
	close_ends(shims.replays, shims.nreplays);
	shims_up();
}

/* Adds a pair for JOB to LIST and returns the agent's end. */
static int shim_pair(struct shim_played *list, size_t *n, const char *job)
{
	int fds[2];

	assert_true(*n < SHIMS_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	list[*n] = (struct shim_played){.leash = fds[0], .end = fds[1]};
	snprintf(list[*n].job, sizeof(list[*n].job), "%s", job);
	++*n;
	return fds[0];
}

/* Returns the newest entry of JOB whose end is open. */
static struct shim_played *shim_of(struct shim_played *list, size_t n, const char *job)
{
	while (n-- > 0)
		if (list[n].end >= 0 && !strcmp(list[n].job, job))
			return &list[n];
	fail_msg("no shim of job %s", job);
	return NULL;
}

/* --- the test's side ------------------------------------------------------------------ */

static void shim_word(const char *job, const struct shim_word *word)
{
	const struct shim_played *s = shim_of(shims.all, shims.n, job);

	assert_int_equal(send(s->end, word, sizeof(*word), 0), sizeof(*word));
}

void shim_says(const char *job, const struct launch_event *event)
{
	const struct shim_word word = {.event = *event};

	shim_word(job, &word);
}

void shim_started(const char *job, pid_t pid)
{
	const struct launch_event e = {
		.type = LAUNCH_STARTED, .pid = pid, .cgroup_id = 1000 + (uint64_t)pid};

	trace_line("shim of %s: started, pid %d", job, (int)pid);
	shim_says(job, &e);
}

void shim_holds(const char *job, pid_t pid, uint64_t until_ms, bool renews)
{
	const struct launch_event e = {.type = LAUNCH_STARTED,
				       .pid = pid,
				       .cgroup_id = 1000 + (uint64_t)pid,
				       .lease_until_ms = until_ms,
				       .renews = renews};

	trace_line("shim of %s: lease until %llu%s", job, (unsigned long long)until_ms,
		   renews ? ", renews itself" : "");
	shim_says(job, &e);
}

void shim_exited(const char *job, uint8_t kind, uint32_t value)
{
	const struct launch_event e = {
		.type = LAUNCH_EXITED, .kind = kind, .value = value, .wall_ms = 5};

	trace_line("shim of %s: exited, kind %u, value %u", job, kind, value);
	shim_says(job, &e);
}

void shim_says_rc(const char *job, int rc)
{
	const struct shim_word word = {.rc = rc};

	trace_line("shim of %s: %s", job, strerror(-rc));
	shim_word(job, &word);
}

void shim_gone(const char *job)
{
	struct shim_played *s = shim_of(shims.all, shims.n, job);

	trace_line("shim of %s: gone", job);
	close(s->end);
	s->end = -1;
}

struct shim_record *shim_record(const char *job)
{
	struct shim_record *r = shims.records;

	for (; r < shims.records + shims.nrecords; r++)
		if (!strcmp(r->found.job, job))
			return r;
	assert_true(shims.nrecords < SHIMS_MAX);
	shims.nrecords++;
	*r = (struct shim_record){.found = {.leash = -1}};
	snprintf(r->found.job, sizeof(r->found.job), "%s", job);
	r->found.uid = 1000;
	r->found.last = (struct launch_event){.type = LAUNCH_EXITED, .kind = 3, .value = 255};
	return r;
}

void shim_signalled(const char *job, int rc)
{
	for (size_t i = 0; i < shims.nsignals; i++) {
		struct shim_played *s = &shims.signals[i];

		if (s->end < 0 || strcmp(s->job, job))
			continue;
		assert_int_equal(send(s->end, &rc, sizeof(rc), 0), sizeof(rc));
		close(s->end);
		s->end = -1;
		return;
	}
	fail_msg("no signal for job %s waits", job);
}

/* --- the guest's side ----------------------------------------------------------------- */

/* The job that ORDER is about. */
static void order_job(const struct launch_order *order, char job[SPEC_JOB_MAX])
{
	struct spec spec = {0};

	assert_int_equal(spec_unpack(&spec, order->spec, order->spec_length, NULL), 0);
	memcpy(job, spec.job, SPEC_JOB_MAX);
	spec_free(&spec);
}

/* A leash that cannot be watched is a file. */
static int shim_leash(const char *job)
{
	return shims.deaf_leash ? memfd_create("leash", MFD_CLOEXEC)
				: shim_pair(shims.all, &shims.n, job);
}

static int played_shim(const struct launch_order *order, int stream, pid_t *pid, int *leash,
		       struct iocom_err *err)
{
	char job[SPEC_JOB_MAX];

	order_job(order, job);
	shims.spill_max = order->spill_max;
	shims.secure = order->records != NULL;
	if (order->secret)
		memcpy(shims.secret, order->secret, sizeof(shims.secret));
	if (order->renew.secret)
		memcpy(shims.renews_with, order->renew.secret, sizeof(shims.renews_with));
	trace_line("launch %s as %s (%u:%u)%s, output %llu MB, lease until %llu%s%s%s", job,
		   order->account ? order->account->name : "?", (unsigned)order->uid,
		   (unsigned)order->gid, order->allow_root ? ", also root" : "",
		   (unsigned long long)order->spool_max >> 20,
		   (unsigned long long)order->lease_until_ms,
		   order->renew.secret ? ", renews itself at " : "",
		   order->renew.secret ? order->renew.address : "",
		   order->spare && order->spare->waits ? ", a spare" : "");
	if (shims.launch_rc)
		return iocom_err_set(err, shims.launch_rc, "cannot start the supervisor: %s",
				     strerror(-shims.launch_rc));
	if (order->spare)
		order->spare->waits = false;
	close(stream);
	*pid = 77;
	*leash = shim_leash(job);
	return 0;
}

static void played_spare_make(struct launch_spare *spare, const char *shim_path, const char *scope)
{
	(void)shim_path;
	(void)scope;
	shims.spares += !spare->waits;
	spare->waits = true;
}

static void played_spare_drop(struct launch_spare *spare)
{
	shims.dropped++;
	spare->waits = false;
}

static int played_read(int leash, struct launch_event *event)
{
	struct shim_word word;
	ssize_t n = recv(leash, &word, sizeof(word), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	if (n != sizeof(word))
		return -EPIPE;
	*event = word.event;
	return word.rc;
}

static int played_lease(int leash, uint64_t until_ms)
{
	const struct shim_played *s = shims.all + shims.n;

	while (s-- > shims.all)
		if (s->leash == leash)
			break;
	trace_line("tell shim of %s: lease until %llu", s < shims.all ? "?" : s->job,
		   (unsigned long long)until_ms);
	return shims.lease_rc;
}

/* Returns what an agent finds of R, with a leash if the shim lives. */
static struct launch_found look_at(const struct shim_record *r)
{
	struct launch_found f = r->found;

	if (r->lives)
		f.leash = shim_leash(f.job);
	return f;
}

static int played_recover(const char *jobs_dir, const char *run_dir,
			  int (*found)(void *arg, const struct launch_found *f), void *arg,
			  struct iocom_err *err)
{
	(void)jobs_dir;
	(void)run_dir;
	for (size_t i = 0; i < shims.nrecords; i++) {
		struct launch_found f = look_at(&shims.records[i]);
		int rc = found(arg, &f);

		if (rc)
			return iocom_err_set(err, rc, "cannot take over job %s", f.job);
	}
	return 0;
}

static int played_outcome(const char *jobs_dir, const char *run_dir, const char *job,
			  struct launch_found *f)
{
	(void)jobs_dir;
	(void)run_dir;
	for (size_t i = 0; i < shims.nrecords; i++)
		if (!strcmp(shims.records[i].found.job, job)) {
			*f = look_at(&shims.records[i]);
			return 0;
		}
	return -ENOENT;
}

static void played_bury(const char *scope, uid_t uid, const char *job)
{
	(void)scope;
	(void)uid;
	trace_line("bury %s", job);
}

static void played_kill(const char *scope, uid_t uid, const char *job)
{
	(void)scope;
	(void)uid;
	trace_line("kill %s without its shim", job);
}

static int64_t played_forget(const char *jobs_dir, const char *run_dir, const char *job)
{
	(void)jobs_dir;
	(void)run_dir;
	if (!shims.quiet)
		trace_line("forget %s", job);
	return shims.forget;
}

static int played_attach(const char *run_dir, const char *job, const struct launch_ask *ask,
			 int stream)
{
	(void)run_dir;
	(void)stream;
	shims.secure = ask->records != NULL;
	trace_line("hand over a client to the shim of %s: %d", job, shims.attach_rc);
	return shims.attach_rc;
}

static int played_replay(const char *shim_path, const char *scope, const char *jobs_dir,
			 const char *slot, uid_t uid, const struct launch_ask *ask, int stream,
			 int *leash, struct iocom_err *err)
{
	(void)shim_path;
	(void)scope;
	(void)jobs_dir;
	shims.secure = ask->records != NULL;
	trace_line("replay for uid %u at place %s", (unsigned)uid, strrchr(slot, '/') + 1);
	if (shims.replay_rc)
		return iocom_err_set(err, shims.replay_rc, "cannot start the supervisor");
	close(stream);
	*leash = shim_pair(shims.replays, &shims.nreplays, slot);
	return 0;
}

static int played_owner(const char *jobs_dir, const char *job, uid_t *uid)
{
	(void)jobs_dir;
	for (size_t i = 0; i < shims.nrecords; i++)
		if (!strcmp(shims.records[i].found.job, job)) {
			*uid = shims.records[i].found.uid;
			return 0;
		}
	return -ENOENT;
}

static int played_secret(const char *jobs_dir, const char *job, uint8_t secret[SECRET_BYTES])
{
	(void)jobs_dir;
	for (size_t i = 0; i < shims.nrecords; i++)
		if (!strcmp(shims.records[i].found.job, job)) {
			memset(secret, 7, SECRET_BYTES);
			return shims.records[i].old ? -ENODATA : 0;
		}
	return -ENOENT;
}

static int played_signal_ask(const char *run_dir, const char *job, int signal)
{
	(void)run_dir;
	trace_line("ask shim of %s for signal %d", job, signal);
	return shims.signal_rc ? shims.signal_rc : shim_pair(shims.signals, &shims.nsignals, job);
}

static int played_expel_ask(const char *run_dir, const char *job, int signal, const char *why)
{
	(void)run_dir;
	trace_line("ask shim of %s to expel it with signal %d: %s", job, signal, why);
	return shims.signal_rc ? shims.signal_rc : shim_pair(shims.signals, &shims.nsignals, job);
}

static int played_signal_answer(int fd)
{
	int rc;
	ssize_t n = recv(fd, &rc, sizeof(rc), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	return n == sizeof(rc) ? rc : -ESRCH;
}

const struct launcher launcher_played = {
	.shim = played_shim,
	.spare_make = played_spare_make,
	.spare_drop = played_spare_drop,
	.read = played_read,
	.lease = played_lease,
	.recover = played_recover,
	.outcome = played_outcome,
	.bury = played_bury,
	.kill = played_kill,
	.forget = played_forget,
	.attach = played_attach,
	.replay = played_replay,
	.owner = played_owner,
	.secret = played_secret,
	.signal_ask = played_signal_ask,
	.expel_ask = played_expel_ask,
	.signal_answer = played_signal_answer,
};
