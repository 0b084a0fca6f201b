/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocomd: the parts of one agent, set up, wired to each other and torn down.  Only this file knows
 * them all; what each one does is in its own folder:
 *
 *   base <- pulse (measure/) <- peers (cluster/) <- guest, home <- front
 *
 * Order of the start: checks that fail cheaply come first (root, run directory, databases, munged,
 * ports), then the monitor, then what others can see.  Signals are blocked before nng starts its
 * threads, so that they all inherit the mask.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/accounts.h"
#include "agent/base/trust.h"
#include "agent/cluster/peers.h"
#include "agent/cluster/stream.h"
#include "agent/cluster/tunnel.h"
#include "agent/front/front.h"
#include "agent/front/limits.h"
#include "agent/guest/guest.h"
#include "agent/guest/launcher.h"
#include "agent/home/home.h"
#include "agent/jobs/journal.h"
#include "agent/measure/host.h"
#include "agent/measure/pulse.h"
#include "agent/measure/uptime_mark.h"
#include "agent/metrics/metrics.h"
#include "balancer/settings/profile.h"
#include "user/cgroup.h"
#include "user/clock.h"
#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"

#define CHORES_NS      CLOCK_NS_PER_S
#define PRUNE_FIRST_NS (5 * CLOCK_NS_PER_S) /* soon, so that short-lived agents prune, too */
#define PRUNE_NS       (60 * CLOCK_NS_PER_S)
#define SHIMS_LEAVE_MS 1000 /* how long a stopping agent waits for shims that are about to end */

struct agent {
	struct settings *set; /* the caller owns it; changed only while the agent is set up */
	struct logger log;
	struct counters counters;
	struct base base;
	int lock_fd;	   /* RUN_DIR/run.lock: one agent per run directory */
	int state_lock_fd; /* STATE_DIR/state.lock: one agent per journal */
	char jobs_dir[SETTINGS_PATH_MAX + 8], run_jobs_dir[SETTINGS_PATH_MAX + 8];
	int uptime_fd; /* uptime_mark.h */
	struct host host;
	struct monitor *monitor;
	struct sample_names *names;
	const char *disk_names[SETTINGS_DISKS_MAX + 1];
	struct accounts *accounts;
	struct journal *journal;
	struct profile_store *profiles;

	struct pulse pulse;
	struct peers peers;
	struct guest *guest;
	struct home *home;
	struct front front;
	struct streams *streams; /* NULL: this agent serves its own machine only */
	struct metrics *metrics; /* NULL: metrics are not served */
	struct pulse_watch peers_watch;

	struct loop_fd signals;
	struct loop_timer chores;
	uint64_t prune_due_ns; /* CLOCK_BOOTTIME */
};

/* --- directories ---------------------------------------------------------------- */

/* Makes PATH and its parents. */
static int agent_make_directory(const char *path, mode_t mode, struct iocom_err *err)
{
	char part[SETTINGS_PATH_MAX + 16];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return iocom_err_set(err, -ENAMETOOLONG, "path too long: %s", path);
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, i == n ? mode : 0755) && errno != EEXIST)
			return iocom_err_set(err, -errno, "cannot make the directory %s: %s", part,
					     strerror(errno));
	}
	return 0;
}

/*
 * Locks DIRECTORY for one agent: two agents on one journal would each call the other's jobs lost.
 */
static int lock_directory(const char *directory, const char *what, int *fd, struct iocom_err *err)
{
	char lock[SETTINGS_PATH_MAX + 16];

	snprintf(lock, sizeof(lock), "%s/%s.lock", directory, what);
	*fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*fd < 0)
		return iocom_err_set(err, -errno, "cannot write in the %s directory %s: %s", what,
				     directory, strerror(errno));
	if (flock(*fd, LOCK_EX | LOCK_NB))
		return iocom_err_set(err, -EBUSY,
				     "another iocomd already runs on %s; stop it, or choose "
				     "another --%s-dir",
				     directory, what);
	return 0;
}

static int directories(struct agent *a, struct iocom_err *err)
{
	int rc;

	snprintf(a->jobs_dir, sizeof(a->jobs_dir), "%s/jobs", a->set->state_dir);
	snprintf(a->run_jobs_dir, sizeof(a->run_jobs_dir), "%s/jobs", a->set->run_dir);
	rc = agent_make_directory(a->set->run_dir, 0755, err);
	if (!rc)
		rc = agent_make_directory(a->run_jobs_dir, 0700, err);
	if (!rc)
		rc = trust_directory(a->set->run_dir, err);
	if (!rc)
		rc = trust_directory(a->run_jobs_dir, err);
	if (rc) {
		iocom_err_prefix(err, "run directory (--run-dir)");
		return rc;
	}
	rc = lock_directory(a->set->run_dir, "run", &a->lock_fd, err);
	if (rc)
		return rc;
	rc = agent_make_directory(a->set->state_dir, 0700, err);
	if (!rc)
		rc = agent_make_directory(a->jobs_dir, 0700, err);
	if (!rc)
		rc = trust_directory(a->set->state_dir, err);
	if (!rc)
		rc = trust_directory(a->jobs_dir, err);
	if (rc) {
		iocom_err_prefix(err, "state directory (--state-dir)");
		return rc;
	}
	return lock_directory(a->set->state_dir, "state", &a->state_lock_fd, err);
}

/* Also checks SQLite's own files beside PATH, because SQLite would read them. */
static int trust_database(const char *path, struct iocom_err *err)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	char file[SETTINGS_PATH_MAX + 32];
	int rc = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends) && !rc; i++) {
		snprintf(file, sizeof(file), "%s%s", path, ends[i]);
		rc = trust_file(file, err);
	}
	return rc;
}

/* Logs that FILE was migrated; BACKUP "": it was not. */
static void tell_migrated(struct agent *a, const char *file, const char *backup)
{
	if (*backup)
		log_write(&a->log, LOG_L_INFO,
			  "%s was brought to this version's layout; as it was it is in %s", file,
			  backup);
}

static int databases(struct agent *a, struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 16];
	int rc;

	/*
	 * The files hold data of all users: only root may read them, even in a directory that
	 * others can read.
	 */
	umask(077);
	snprintf(path, sizeof(path), "%s/iocom.db", a->set->state_dir);
	rc = trust_database(path, err);
	if (!rc)
		rc = journal_open(&a->journal, path, err);
	if (rc)
		return rc;
	tell_migrated(a, path, journal_backup(a->journal));
	snprintf(path, sizeof(path), "%s/profile.db", a->set->state_dir);
	rc = trust_database(path, err);
	if (!rc)
		rc = profile_open(&a->profiles, path, err);
	if (!rc)
		tell_migrated(a, path, profile_backup(a->profiles));
	return rc;
}

/* --- signals ---------------------------------------------------------------------- */

static void agent_signalled(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct signalfd_siginfo info;
	pid_t pid;

	(void)events;
	while (read(a->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
				tunnels_reaped(a->peers.tunnels, pid);
			continue;
		}
		log_write(&a->log, LOG_L_INFO, "stopping (signal %u); running jobs go on",
			  info.ssi_signo);
		loop_stop(a->base.loop);
	}
}

static int agent_catch_signals(struct agent *a, struct iocom_err *err)
{
	sigset_t set;
	int fd, rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return iocom_err_set(err, -errno, "cannot watch for signals: %s", strerror(errno));
	a->signals = (struct loop_fd){.fd = fd, .ready = agent_signalled, .arg = a};
	rc = loop_add(a->base.loop, &a->signals, EPOLLIN);
	return rc ? iocom_err_set(err, rc, "cannot watch for signals: %s", strerror(-rc)) : 0;
}

/* --- measuring ------------------------------------------------------------------------ */

static int agent_read_monitor(void *arg, struct monitor_sample *sample, struct iocom_err *err)
{
	const struct agent *a = arg;

	return monitor_sample(a->monitor, sample, err);
}

static int look_at_monitor(void *arg, struct iocom_err *err)
{
	const struct agent *a = arg;

	return monitor_look(a->monitor, err);
}

static int read_host(void *arg, struct host_reading *reading, struct iocom_err *err)
{
	const struct agent *a = arg;

	return host_read(&a->host, reading, err);
}

static int open_monitor(struct agent *a, struct iocom_err *err)
{
	char mark[SETTINGS_PATH_MAX + 16];
	struct monitor_config config = {0};
	int rc = host_init(&a->host, a->set->scoped ? a->set->scope_cgroup : NULL, err);

	if (rc)
		return rc;
	if (a->set->scoped) {
		for (size_t i = 0; i < a->set->nscope_disks; i++)
			a->disk_names[i] = a->set->scope_disks[i];
		config.scope_cgroup = a->host.scope;
		config.scope_disks = a->disk_names;
	}
	snprintf(mark, sizeof(mark), "%s/counting", a->set->state_dir);
	rc = trust_file(mark, err);
	if (!rc)
		rc = uptime_mark_open(&a->uptime_fd, a->set->state_dir, &config.counted_until_ns,
				      err);
	if (!rc)
		rc = monitor_open(&a->monitor, &config, err);
	if (rc)
		return rc;
	/* A time later than now means a damaged file: then the monitor reports no gap. */
	if (config.counted_until_ns && config.counted_until_ns < clock_boot_ns())
		log_write(&a->log, LOG_L_INFO, "counting restarts: nothing was counted for %.1f s",
			  (double)(clock_boot_ns() - config.counted_until_ns) / 1e9);
	if (a->host.unified[0])
		a->names = sample_names_new(a->host.unified);
	return 0;
}

/* --- the parts ---------------------------------------------------------------------------- */

/* Without munged an agent serves its own machine only, and logs that. */
static int open_seal(struct agent *a, struct seal **seal, struct iocom_err *err)
{
	int rc;

	if (!settings_networked(a->set))
		return 0;
	rc = seal_new(seal, a->set->munge_socket, err);
	if (!rc)
		return 0;
	if (a->set->npeers) {
		iocom_err_prefix(err, "agents prove who they are by MUNGE");
		return rc;
	}
	log_write(&a->log, LOG_L_WARNING, "serving this machine only: %s", err->text);
	a->set->listen[0] = a->set->address[0] = 0;
	err->text[0] = 0;
	return 0;
}

static int make_base(struct agent *a, struct iocom_err *err)
{
	a->base.log = &a->log;
	a->base.counters = &a->counters;
	a->base.set = a->set;
	while (!a->base.boot_id)
		if (getrandom(&a->base.boot_id, sizeof(a->base.boot_id), 0) < 0)
			return iocom_err_set(err, -errno, "no random bytes: %s", strerror(errno));
	return loop_new(&a->base.loop, err);
}

static void make_pulse(struct agent *a)
{
	const struct pulse_config config = {
		.base = &a->base,
		.source = {.arg = a,
			   .sample = agent_read_monitor,
			   .look = look_at_monitor,
			   .host = read_host},
		.journal = a->journal,
		.uptime_fd = a->uptime_fd,
		.publish = peers_publish,
		.publish_arg = &a->peers,
	};

	pulse_init(&a->pulse, &config);
	a->peers_watch = (struct pulse_watch){.closes = peers_period, .arg = &a->peers};
	pulse_watch(&a->pulse, &a->peers_watch);
}

static int agent_open_credential(void *arg, struct credential *credential, const char *text,
				 struct iocom_err *err)
{
	struct agent *a = arg;
	int rc;

	if (!a->peers.seal)
		return iocom_err_set(err, -EHOSTDOWN, "node %s serves its own users only",
				     a->set->name);
	rc = seal_open_credential(a->peers.seal, credential, text, err);
	a->counters.seal_failures += rc == -EHOSTDOWN;
	return rc;
}

static void own_vector(void *arg, struct iocom_vector *own)
{
	struct agent *a = arg;

	pulse_own_vector(&a->pulse, own);
}

static uint64_t own_sequence(void *arg)
{
	const struct agent *a = arg;

	return a->pulse.sequence;
}

static void sample_now(void *arg)
{
	struct agent *a = arg;

	pulse_sample(&a->pulse);
}

static void something_changed(void *arg)
{
	struct agent *a = arg;

	pulse_changed(&a->pulse);
}

static bool is_mute(void *arg)
{
	const struct agent *a = arg;

	return peers_mute(&a->peers);
}

static int make_guest(struct agent *a, struct iocom_err *err)
{
	const struct guest_config config = {
		.base = &a->base,
		.jobs_dir = a->jobs_dir,
		.run_jobs_dir = a->run_jobs_dir,
		.journal = a->journal,
		.accounts = a->accounts,
		.names = a->names,
		.cpu_speed = a->set->cpu_speed,
		.launcher = &launcher_shims,
		.ports = {.arg = a,
			  .own_vector = own_vector,
			  .sequence = own_sequence,
			  .sample = sample_now,
			  .changed = something_changed,
			  .credential = agent_open_credential,
			  .ask = peers_ask,
			  .ask_arg = &a->peers,
			  .answer = peers_answer},
	};
	struct pulse_jobs jobs;
	int rc = guest_new(&a->guest, &config, err);

	if (rc)
		return rc;
	jobs = guest_pulse_jobs(a->guest);
	pulse_set_jobs(&a->pulse, &jobs);
	peers_serve(&a->peers, PEER_ADMIT, guest_on_admit, a->guest);
	peers_serve(&a->peers, PEER_KILL, guest_on_kill, a->guest);
	return 0;
}

static int make_home(struct agent *a, struct iocom_err *err)
{
	const struct home_config config = {
		.base = &a->base,
		.journal = a->journal,
		.profiles = a->profiles,
		.matrix = &a->peers.matrix,
		.skews = &a->peers.skews,
		.tls = a->peers.tls != NULL,
		.ports = {.arg = a,
			  .own_vector = own_vector,
			  .mute = is_mute,
			  .ask = peers_ask,
			  .ask_arg = &a->peers},
	};
	int rc = home_new(&a->home, &config, err);

	if (rc)
		return rc;
	peers_serve(&a->peers, PEER_STARTED, home_on_started, a->home);
	peers_serve(&a->peers, PEER_DONE, home_on_done, a->home);
	peers_serve(&a->peers, PEER_RENEW, home_on_renew, a->home);
	return 0;
}

static int take_start(void *arg, int fd, const void *payload, uint32_t length,
		      const struct ucred *local, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_start(a->guest, fd, payload, length, local, err);
}

static int take_attach(void *arg, int fd, const void *payload, uint32_t length,
		       const struct ucred *local, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_attach(a->guest, fd, payload, length, local, err);
}

static int take_renewal(void *arg, const void *payload, uint32_t length,
			uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err)
{
	const struct agent *a = arg;

	return home_renew(a->home, payload, length, answer, err);
}

static int make_streams(struct agent *a, struct iocom_err *err)
{
	const struct stream_ports ports = {
		.arg = a, .start = take_start, .attach = take_attach, .renew = take_renewal};

	return a->peers.seal ? streams_new(&a->streams, &a->base,
					   a->peers.tls ? a->peers.tunnels : NULL, &ports, err)
			     : 0;
}

static size_t list_limits(void *arg, struct limit out[LIMITS_LISTED])
{
	struct agent *a = arg;

	return limits_list(&a->front, out);
}

static int whose_cgroup(void *arg, uint64_t cgroup_id, const char **job, uid_t *uid)
{
	const struct agent *a = arg;

	return guest_whose(a->guest, cgroup_id, job, uid);
}

static uint64_t charges_lost(void *arg)
{
	const struct agent *a = arg;
	struct home_counts counts;

	home_count(a->home, &counts);
	return counts.charges_lost;
}

static int make_metrics(struct agent *a, struct iocom_err *err)
{
	const struct metrics_ports ports = {.arg = a,
					    .limits = list_limits,
					    .whose = whose_cgroup,
					    .charges_lost = charges_lost};

	return metrics_new(&a->metrics, &a->base, &a->pulse, a->names, &ports, err);
}

/* Wires the front early: other parts may ask for limits before clients are served. */
static void wire_front(struct agent *a)
{
	a->front.base = &a->base;
	a->front.pulse = &a->pulse;
	a->front.peers = &a->peers;
	a->front.guest = a->guest;
	a->front.home = a->home;
	a->front.journal = a->journal;
	a->front.profiles = a->profiles;
	a->front.accounts = a->accounts;
	a->front.streams = a->streams;
	a->front.unified = a->host.unified;
	a->front.names = a->names;
}

/* --- chores ------------------------------------------------------------------------------ */

static void agent_chores(void *arg)
{
	struct agent *a = arg;

	guest_chores(a->guest);
	home_chores(a->home);
	peers_chores(&a->peers);
	front_chores(&a->front);
	if (clock_boot_ns() >= a->prune_due_ns) {
		home_prune(a->home);
		guest_spool_prune(a->guest);
		a->prune_due_ns = clock_boot_ns() + PRUNE_NS;
	}
	loop_start(a->base.loop, &a->chores, CHORES_NS);
}

/* --- all of it -------------------------------------------------------------------------- */

/*
 * Raises the descriptor limit for streams, clients and leashes; each job gets its user's own limit.
 */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Sets up what must exist before anybody hears of this agent. */
static int make_ground(struct agent *a, struct iocom_err *err)
{
	int rc = directories(a, err);

	allow_descriptors();
	if (!rc)
		rc = make_base(a, err);
	if (!rc)
		rc = accounts_new(&a->accounts, &a->counters, err);
	if (!rc)
		rc = agent_catch_signals(a, err);
	return rc ? rc : databases(a, err);
}

static int make_parts(struct agent *a, struct iocom_err *err)
{
	struct seal *seal = NULL;
	int rc = open_seal(a, &seal, err);

	if (!rc)
		rc = peers_start(&a->peers, &a->base, a->journal, seal, err);
	if (!rc)
		rc = make_streams(a, err);
	if (!rc)
		rc = open_monitor(a, err);
	if (rc)
		return rc;
	make_pulse(a);
	rc = make_guest(a, err);
	if (!rc)
		rc = make_home(a, err);
	if (rc)
		return rc;
	wire_front(a);
	return make_metrics(a, err);
}

static int begin(struct agent *a, struct iocom_err *err)
{
	int rc = pulse_start(&a->pulse, err);

	if (!rc)
		rc = home_load(a->home, err);
	if (!rc)
		rc = guest_recover(a->guest, err);
	if (!rc)
		rc = front_start(&a->front, err);
	if (rc)
		return rc;
	peers_dial(&a->peers);
	guest_begin(a->guest);
	a->chores = (struct loop_timer){.fire = agent_chores, .arg = a};
	a->prune_due_ns = clock_boot_ns() + PRUNE_FIRST_NS;
	loop_start(a->base.loop, &a->chores, 0);
	return 0;
}

static void say_where(struct agent *a)
{
	if (a->peers.seal)
		log_write(&a->log, LOG_L_INFO, "node %s, listening at %s ports %u to %u%s",
			  a->set->name, a->set->listen, a->set->port, a->set->port + 2,
			  a->peers.tls ? ", with TLS" : "");
	else
		log_write(&a->log, LOG_L_INFO, "node %s, this machine only", a->set->name);
}

int agent_start(struct agent **out, struct settings *set, struct iocom_err *err)
{
	struct agent *a;
	int rc;

	*out = NULL;
	if (geteuid() != 0)
		return iocom_err_set(err, -EPERM,
				     "iocomd measures the kernel and starts jobs of all users: run "
				     "it as root");
	if (access(set->shim[0] ? set->shim : "iocom-shim", X_OK))
		return iocom_err_set(err, -ENOENT,
				     "the program iocom-shim is not at %s; name it with --shim",
				     set->shim[0] ? set->shim : "its place beside iocomd");
	a = calloc(1, sizeof(*a));
	if (!a)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	a->set = set;
	log_init(&a->log, "iocomd");
	a->log.level = set->log_level;
	a->lock_fd = a->state_lock_fd = a->uptime_fd = a->signals.fd = -1;
	rc = make_ground(a, err);
	if (!rc)
		rc = make_parts(a, err);
	if (!rc)
		rc = begin(a, err);
	if (rc) {
		agent_stop(a);
		return rc;
	}
	say_where(a);
	*out = a;
	return 0;
}

int agent_run(struct agent *a)
{
	return loop_run(a->base.loop);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void agent_stop(struct agent *a)
{
	int saved = errno;

	streams_free(a->streams);
	guest_stop(a->guest);
	peers_stop(&a->peers); /* this ends decisions under way */
	front_stop(&a->front);
	metrics_free(a->metrics);
	guest_free(a->guest);
	home_free(a->home);
	profile_close(a->profiles);
	journal_close(a->journal);
	sample_names_free(a->names);
	if (a->monitor) /* a monitor means that this agent held the directories' locks */
		cgroup_tidy(a->set->scope_cgroup, SHIMS_LEAVE_MS);
	while (waitpid(-1, NULL, WNOHANG) > 0) /* children that ended meanwhile */
		;
	monitor_free(a->monitor);
	pulse_fini(&a->pulse);
	peers_free(&a->peers);
	accounts_free(a->accounts);
	close_if_open(a->signals.fd);
	loop_free(a->base.loop);
	close_if_open(a->uptime_fd);
	close_if_open(a->state_lock_fd);
	close_if_open(a->lock_fd);
	free(a);
	errno = saved;
}
