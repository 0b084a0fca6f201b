/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See whole.h. */
#include "tests/lib/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "agent/guest/launcher.h"
#include "user/clock.h"
#include "user/frame.h"

#define START_NS (100000 * CLOCK_NS_PER_S)

/* --- a machine that sees nothing ------------------------------------------------ */

static int see_nothing(void *arg, struct monitor_sample *sample, struct iocom_err *err)
{
	const struct whole *w = arg;

	(void)err;
	*sample = (struct monitor_sample){.boot_ns = loop_boot_ns(w->base.loop),
					  .time_ns = loop_real_ns(w->base.loop)};
	return 0;
}

static int look_at_nothing(void *arg, struct iocom_err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

static int see_memory(void *arg, struct host_reading *reading, struct iocom_err *err)
{
	(void)arg;
	(void)err;
	*reading = (struct host_reading){
		.memory_mb = 1000, .used_mb = 100, .cores = 2, .core_share = 1};
	return 0;
}

static void own_vector(void *arg, struct iocom_vector *own)
{
	pulse_own_vector(&((struct whole *)arg)->pulse, own);
}

static uint64_t own_sequence(void *arg)
{
	return ((struct whole *)arg)->pulse.sequence;
}

static void sample_now(void *arg)
{
	pulse_sample(&((struct whole *)arg)->pulse);
}

static void something_changed(void *arg)
{
	pulse_changed(&((struct whole *)arg)->pulse);
}

static bool is_mute(void *arg)
{
	(void)arg;
	return false;
}

/* --- supervisors that cannot be started ------------------------------------------- */

static int no_shim(const struct launch_order *order, int stream, pid_t *shim, int *leash,
		   struct iocom_err *err)
{
	(void)order;
	(void)stream;
	(void)shim;
	(void)leash;
	return iocom_err_set(err, -ENOENT, "no supervisor can be started");
}

static void no_spare(struct launch_spare *spare, const char *shim_path, const char *scope)
{
	(void)spare;
	(void)shim_path;
	(void)scope;
}

static void no_bury(const char *scope, uid_t uid, const char *job)
{
	(void)scope;
	(void)uid;
	(void)job;
}

static int64_t nothing_kept(const char *jobs_dir, const char *run_dir, const char *job)
{
	(void)jobs_dir;
	(void)run_dir;
	(void)job;
	return 0;
}

static int nobody_signalled(const char *run_dir, const char *job, int signal)
{
	(void)run_dir;
	(void)job;
	(void)signal;
	return -ESRCH;
}

static const struct launcher no_launcher = {
	.shim = no_shim,
	.spare_make = no_spare,
	.spare_drop = launch_spare_drop,
	.read = launch_read,
	.lease = launch_lease,
	.recover = launch_recover,
	.outcome = launch_outcome,
	.bury = no_bury,
	.kill = no_bury,
	.forget = nothing_kept,
	.attach = launch_attach,
	.replay = launch_replay,
	.owner = launch_owner,
	.secret = launch_secret,
	.signal_ask = nobody_signalled,
	.signal_answer = launch_signal_answer,
};

/* --- the parts ------------------------------------------------------------------------ */

static void make_pulse(struct whole *w)
{
	const struct pulse_config config = {
		.base = &w->base,
		.source = {.arg = w,
			   .sample = see_nothing,
			   .look = look_at_nothing,
			   .host = see_memory},
		.journal = w->journal,
		.uptime_fd = -1,
		.publish = peers_publish,
		.publish_arg = &w->peers,
	};

	pulse_init(&w->pulse, &config);
}

static int make_guest(struct whole *w, struct iocom_err *err)
{
	const struct guest_config config = {
		.base = &w->base,
		.jobs_dir = w->dir,
		.run_jobs_dir = w->dir,
		.journal = w->journal,
		.accounts = w->accounts,
		.cpu_speed = 1,
		.launcher = &no_launcher,
		.ports = {w, own_vector, own_sequence, sample_now, something_changed, peers_ask,
			  &w->peers, peers_answer, .owner = NULL},
	};
	struct pulse_jobs jobs;
	int rc = guest_new(&w->guest, &config, err);

	if (rc)
		return rc;
	jobs = guest_pulse_jobs(w->guest);
	pulse_set_jobs(&w->pulse, &jobs);
	peers_serve(&w->peers, PEER_ADMIT, guest_on_admit, w->guest);
	peers_serve(&w->peers, PEER_KILL, guest_on_kill, w->guest);
	return 0;
}

static int make_home(struct whole *w, struct iocom_err *err)
{
	const struct home_config config = {
		.base = &w->base,
		.journal = w->journal,
		.profiles = w->profiles,
		.matrix = &w->peers.matrix,
		.skews = &w->peers.skews,
		.ports = {.arg = w,
			  .own_vector = own_vector,
			  .mute = is_mute,
			  .ask = peers_ask,
			  .ask_arg = &w->peers,
			  .answer = peers_answer},
	};
	int rc = home_new(&w->home, &config, err);

	if (rc)
		return rc;
	peers_serve(&w->peers, PEER_STARTED, home_on_started, w->home);
	peers_serve(&w->peers, PEER_DONE, home_on_done, w->home);
	peers_serve(&w->peers, PEER_PROGRESS, home_on_progress, w->home);
	peers_serve(&w->peers, PEER_RENEW, home_on_renew, w->home);
	peers_serve(&w->peers, PEER_ATTACH, home_on_attach, w->home);
	if (gangs_new(&w->front.gangs, &(struct gangs_config){.base = &w->base, .home = w->home},
		      err))
		return -ENOMEM;
	return 0;
}

static int make_front(struct whole *w, struct iocom_err *err)
{
	w->front.base = &w->base;
	w->front.pulse = &w->pulse;
	w->front.peers = &w->peers;
	w->front.guest = w->guest;
	w->front.home = w->home;
	w->front.journal = w->journal;
	w->front.profiles = w->profiles;
	w->front.accounts = w->accounts;
	w->front.unified = "";
	return front_start(&w->front, err);
}

static int make_ground(struct whole *w, const char *journal, struct iocom_err *err)
{
	int rc;

	strcpy(w->dir, "/tmp/iocom-whole-XXXXXX");
	if (!mkdtemp(w->dir))
		return iocom_err_set(err, -errno, "no directory: %s", strerror(errno));
	strcpy(w->set.name, "here");
	strcpy(w->set.policy, "iocm-re");
	strcpy(w->set.run_dir, w->dir);
	strcpy(w->set.state_dir, w->dir);
	w->set.period_s = 1;
	w->set.sensitivity = 0.25;
	w->set.cpu_speed = 1;
	w->set.accept_jobs = true;
	w->set.lease_s = 30;
	w->set.keep_jobs = 1000;
	w->set.keep_days = 1;
	w->log.level = LOG_L_ERROR - 1; /* the monitor reports nothing */
	w->base = (struct base){
		.log = &w->log, .counters = &w->counters, .set = &w->set, .boot_id = 7};
	rc = loop_new_virtual(&w->base.loop, START_NS, clock_real_ns(), err);
	if (!rc)
		rc = accounts_new(&w->accounts, &w->counters, err);
	if (!rc)
		rc = journal_open(&w->journal, journal, err);
	return rc ? rc : profile_open(&w->profiles, ":memory:", err);
}

/* The node "there", which is heard. */
static int know_other(struct whole *w)
{
	const struct iocom_vector there = {
		.name = "there",
		.address = "10.0.0.1",
		.port = 7700,
		.boot_id = 9,
		.sequence = 1,
		.time_ns = 1,
		.period_ms = 1000,
		.cores = 2,
		.cpu_speed = 1,
		.memory_mb = 1000,
		.memory_available_mb = 500,
		.disks = 1,
		.disk_mb_per_s = 100,
		.network_mb_per_s = 100,
		.accepts_jobs = true,
	};

	return matrix_put(&w->peers.matrix, &there, 0, loop_boot_ns(w->base.loop));
}

int whole_new(struct whole *w, const char *journal)
{
	struct iocom_err err = {0};
	int rc;

	*w = (struct whole){0};
	rc = make_ground(w, journal, &err);
	if (!rc)
		rc = peers_start(&w->peers, &w->base, w->journal, NULL, NULL, &err);
	if (!rc) {
		make_pulse(w);
		rc = make_guest(w, &err);
	}
	if (!rc)
		rc = make_home(w, &err);
	if (!rc)
		rc = pulse_start(&w->pulse, &err);
	if (!rc)
		rc = make_front(w, &err);
	if (!rc)
		rc = know_other(w);
	if (rc)
		fprintf(stderr, "%s (%d)\n", err.text, rc);
	return rc;
}

void whole_free(struct whole *w)
{
	peers_stop(&w->peers);
	front_stop(&w->front);
	guest_free(w->guest);
	gangs_free(w->front.gangs);
	home_free(w->home);
	profile_close(w->profiles);
	journal_close(w->journal);
	pulse_fini(&w->pulse);
	peers_free(&w->peers);
	accounts_free(w->accounts);
	loop_free(w->base.loop);
	rmdir(w->dir);
}

static struct whole fresh;
static bool fresh_is_made;

static void whole_fresh_end(void)
{
	if (fresh_is_made)
		whole_free(&fresh);
	fresh_is_made = false;
}

struct whole *whole_fresh(void)
{
	static unsigned uses;

	if (uses++ % 512)
		return &fresh;
	if (uses == 1)
		atexit(whole_fresh_end);
	whole_fresh_end();
	if (whole_new(&fresh, ":memory:"))
		abort();
	fresh_is_made = true;
	return &fresh;
}

void whole_pass_ms(struct whole *w, unsigned ms)
{
	loop_advance(w->base.loop, ms * CLOCK_NS_PER_MS);
}

/* --- programs ------------------------------------------------------------------------- */

int whole_client(struct whole *w, uid_t uid)
{
	const struct ucred who = {.pid = 1, .uid = uid, .gid = uid};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -1;
	if (!clients_adopt(w->front.clients, ends[1], &who)) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	return ends[0];
}

int whole_ask(int fd, const void *map, size_t length)
{
	return frame_write(fd, FRAME_REQUEST, map, (uint32_t)length);
}

unsigned whole_answers(int fd, uint8_t *type, char *text, size_t size)
{
	static uint8_t bytes[1u << 20];
	const uint8_t *payload;
	uint32_t length;
	size_t at = 0, used;
	unsigned n = 0;
	ssize_t have = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	while (have > 0 && !frame_parse(bytes + at, (size_t)have - at, FRAME_DOCUMENT_MAX, type,
					&payload, &length, &used)) {
		snprintf(text, size, "%.*s", (int)length, (const char *)payload);
		at += used;
		n++;
		if (at == (size_t)have)
			break;
	}
	return n;
}
