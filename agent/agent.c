/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Setting the agent up and tearing it down; see agent.h.
 *
 * Order: what can be refused cheaply first (root, run directory, munged, ports),
 * then the monitor, then the journal, then what others see.  Signals are blocked
 * before nng starts its threads, so that they all inherit the mask.
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
#include "user/cgroup.h"
#include "agent/guest/guest_attach.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "agent/measure/uptime_mark.h"
#include "agent/jobs/leases.h"
#include "agent/metrics/metrics.h"
#include "agent/cluster/probe.h"
#include "agent/guest/replays.h"
#include "agent/guest/paths.h"
#include "agent/front/recorders.h"
#include "user/monitor/sample_names.h"
#include "agent/guest/signals.h"
#include "agent/guest/stream.h"
#include "agent/base/trust.h"
#include "agent/cluster/tunnel.h"

#define CHORES_NS	CLOCK_NS_PER_S
#define REPORT_EVERY	5 /* chores */
#define HELLO_EVERY	15
#define PRUNE_FIRST_NS	(5 * CLOCK_NS_PER_S) /* soon: agents that live shortly prune, too */
#define PRUNE_NS	(60 * CLOCK_NS_PER_S)
#define DIRECT_NODES	64 /* up to so many nodes are heard directly, all of them */
#define NEVER_STARTED_S 120
#define DAY_S		86400
#define SHIMS_LEAVE_MS	1000 /* a stopping agent waits so long for shims that are about to leave */

void agent_journal_failed(struct agent *a, const struct iocom_err *err)
{
	a->counters.journal_failures++;
	log_write(&a->log, LOG_L_ERROR, "%s", err->text);
}

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

/* One agent a directory: two on one journal would each call the other's jobs lost. */
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

	snprintf(a->jobs_dir, sizeof(a->jobs_dir), "%s/jobs", a->set.state_dir);
	snprintf(a->run_jobs_dir, sizeof(a->run_jobs_dir), "%s/jobs", a->set.run_dir);
	rc = agent_make_directory(a->set.run_dir, 0755, err);
	if (!rc)
		rc = agent_make_directory(a->run_jobs_dir, 0700, err);
	if (!rc)
		rc = trust_directory(a->set.run_dir, err);
	if (!rc)
		rc = trust_directory(a->run_jobs_dir, err);
	if (rc) {
		iocom_err_prefix(err, "run directory (--run-dir)");
		return rc;
	}
	rc = lock_directory(a->set.run_dir, "run", &a->lock_fd, err);
	if (rc)
		return rc;
	rc = agent_make_directory(a->set.state_dir, 0700, err);
	if (!rc)
		rc = agent_make_directory(a->jobs_dir, 0700, err);
	if (!rc)
		rc = trust_directory(a->set.state_dir, err);
	if (!rc)
		rc = trust_directory(a->jobs_dir, err);
	if (rc) {
		iocom_err_prefix(err, "state directory (--state-dir)");
		return rc;
	}
	return lock_directory(a->set.state_dir, "state", &a->state_lock_fd, err);
}

/* SQLite's own files beside it as well: it would read them. */
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

static int databases(struct agent *a, struct iocom_err *err)
{
	char path[SETTINGS_PATH_MAX + 16];
	int rc;

	/* Of all users: root's alone, also in a directory that others made readable. */
	umask(077);
	snprintf(path, sizeof(path), "%s/iocom.db", a->set.state_dir);
	rc = trust_database(path, err);
	if (!rc)
		rc = journal_open(&a->journal, path, err);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/profile.db", a->set.state_dir);
	rc = trust_database(path, err);
	return rc ? rc : profile_open(&a->profiles, path, err);
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
				tunnels_reaped(a->tunnels, pid);
			continue;
		}
		log_write(&a->log, LOG_L_INFO, "stopping (signal %u); running jobs go on",
			  info.ssi_signo);
		loop_stop(a->loop);
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
	rc = loop_add(a->loop, &a->signals, EPOLLIN);
	return rc ? iocom_err_set(err, rc, "cannot watch for signals: %s", strerror(-rc)) : 0;
}

/* --- the cluster --------------------------------------------------------------------- */

static void agent_heard(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	struct agent *a = arg;
	const struct matrix_entry *e = matrix_find(&a->matrix, v->name);
	bool joins = !e || !e->alive;

	if (direct)
		skews_forget(&a->skews, v->name);
	switch (matrix_put(&a->matrix, v, age_ns, clock_boot_ns())) {
	case 0:
		a->counters.vectors_accepted++;
		if (joins) {
			log_write(&a->log, LOG_L_INFO, "node %s at %s:%u is here", v->name,
				  v->address, v->port);
			if (a->matrix.count <= DIRECT_NODES && v->address[0])
				bulletin_dial(a->bulletin, v->address, v->port);
			a->chores_count = 0; /* greet it with the next chores */
		}
		break;
	case MATRIX_E_OWN:
		if (direct && v->boot_id != a->self.boot_id) {
			a->counters.vectors_refused_name++;
			log_write(&a->log, LOG_L_WARNING,
				  "another node also calls itself %s (at %s:%u); give each its own "
				  "--name",
				  v->name, v->address, v->port);
		}
		break;
	case MATRIX_E_OLD:
		a->counters.vectors_refused_old += direct;
		break;
	case MATRIX_E_FULL:
		a->counters.vectors_refused_full++;
		break;
	default:
		break;
	}
}

static void skewed(void *arg, const char *node, int64_t ahead_s)
{
	struct agent *a = arg;

	skews_note(&a->skews, node, ahead_s, clock_boot_ns());
}

static int make_tunnels(struct agent *a, struct iocom_err *err)
{
	bool shared = false;
	int rc = tunnels_new(&a->tunnels, a->set.relay_user, &shared, err);

	if (rc || !a->tls) /* without TLS they only ask what keeps a peer silent */
		return rc;
	if (shared)
		log_write(&a->log, LOG_L_WARNING,
			  "TLS relays run as nobody, which other services may be too; make a user "
			  "'iocom', or name one by relay_user");
	else
		log_write(&a->log, LOG_L_INFO, "TLS relays run as uid %u",
			  (unsigned)tunnels_uid(a->tunnels));
	return 0;
}

static int agent_join(struct agent *a, struct iocom_err *err)
{
	struct bulletin_config b = {
		a->loop,     a->seal, &a->log, &a->counters, a->set.listen, (uint16_t)a->set.port,
		agent_heard, a,	      a->tls,  skewed};
	struct control_config c = {a->loop,
				   a->seal,
				   &a->log,
				   &a->counters,
				   a->set.name,
				   a->set.listen,
				   (uint16_t)a->set.port,
				   home_handle,
				   a,
				   a->tls};
	int rc = 0;

	if (a->set.tls_ca[0])
		rc = tls_new(&a->tls, a->set.tls_certificate, a->set.tls_key, a->set.tls_ca, err);
	if (!rc)
		rc = make_tunnels(a, err);
	b.tls = c.tls = a->tls;
	if (!rc)
		rc = bulletin_new(&a->bulletin, &b, err);

	if (!rc)
		rc = control_new(&a->control, &c, err);
	if (!rc)
		rc = streams_new(&a->streams, a, err);
	if (!rc)
		rc = probes_new(&a->probes, a, err);
	return rc;
}

static void dial_peers(struct agent *a)
{
	for (size_t i = 0; a->bulletin && i < a->set.npeers; i++) {
		const struct settings_peer *p = &a->set.peers[i];

		if (settings_is_self(&a->set, p))
			continue;
		bulletin_dial(a->bulletin, p->address, p->port);
	}
}

/* Without munged an agent serves its own machine only, and says so. */
static int identity(struct agent *a, struct iocom_err *err)
{
	int rc;

	if (!settings_networked(&a->set))
		return 0;
	rc = seal_new(&a->seal, a->set.munge_socket, err);
	if (!rc)
		return 0;
	if (a->set.npeers) {
		iocom_err_prefix(err, "agents prove who they are by MUNGE");
		return rc;
	}
	log_write(&a->log, LOG_L_WARNING, "serving this machine only: %s", err->text);
	a->set.listen[0] = a->set.address[0] = 0;
	err->text[0] = 0;
	return 0;
}

int agent_credential(struct agent *a, struct credential *credential, const char *text,
		     struct iocom_err *err)
{
	int rc;

	if (!a->seal)
		return iocom_err_set(err, -EHOSTDOWN, "node %s serves its own users only",
				     a->set.name);
	rc = seal_open_credential(a->seal, credential, text, err);
	a->counters.seal_failures += rc == -EHOSTDOWN;
	return rc;
}

/* --- measuring ------------------------------------------------------------------------ */

static int measuring(struct agent *a, struct iocom_err *err)
{
	char counting[SETTINGS_PATH_MAX + 16];
	struct monitor_config config = {0};
	int rc = host_init(&a->host, a->set.scoped ? a->set.scope_cgroup : NULL, err);

	if (rc)
		return rc;
	if (a->set.scoped) {
		for (size_t i = 0; i < a->set.nscope_disks; i++)
			a->disk_names[i] = a->set.scope_disks[i];
		config.scope_cgroup = a->host.scope;
		config.scope_disks = a->disk_names;
	}
	snprintf(counting, sizeof(counting), "%s/counting", a->set.state_dir);
	rc = trust_file(counting, err);
	if (!rc)
		rc = uptime_mark_open(&a->counting_fd, a->set.state_dir, &config.counted_until_ns,
				      err);
	if (rc)
		return rc;
	rc = monitor_open(&a->monitor, &config, err);
	if (rc)
		return rc;
	/* A later moment than now is damage: the monitor takes no gap from it. */
	if (config.counted_until_ns && config.counted_until_ns < clock_boot_ns())
		log_write(&a->log, LOG_L_INFO,
			  "counting begins anew: nothing was counted for %.1f s",
			  (double)(clock_boot_ns() - config.counted_until_ns) / 1e9);
	if (a->host.unified[0])
		a->names = sample_names_new(a->host.unified);
	return 0;
}

static int agent_describe(struct agent *a, struct iocom_err *err)
{
	struct vector_self *self = &a->self;

	*self = (struct vector_self){
		.port = (uint16_t)a->set.port,
		.period_ms = (uint32_t)(a->set.period_s * 1e3),
		.cpu_speed = a->set.cpu_speed,
		.disk_mb_per_s = a->set.disk_mb_per_s,
		.disk_fixed_ms = a->set.disk_fixed_ms,
		.network_mb_per_s = a->set.network_mb_per_s,
		.accepts_jobs = a->set.accept_jobs,
	};
	memcpy(self->name, a->set.name, sizeof(self->name));
	memcpy(self->address, a->set.address, sizeof(self->address));
	while (!self->boot_id)
		if (getrandom(&self->boot_id, sizeof(self->boot_id), 0) < 0)
			return iocom_err_set(err, -errno, "no random bytes: %s", strerror(errno));
	a->jobs.network_mb_per_s = a->set.network_mb_per_s;
	matrix_init(&a->matrix, a->set.name);
	vector_init(&a->measured);
	return 0;
}

/* --- chores ------------------------------------------------------------------------------ */

static bool agent_gone(void *arg, const char *node)
{
	const struct agent *a = arg;
	const struct matrix_entry *e = matrix_find(&a->matrix, node);

	return strcmp(node, a->set.name) && (!e || !e->alive);
}

static void agent_prune(struct agent *a)
{
	uint64_t now = clock_real_ns();
	uint64_t span = (uint64_t)a->set.keep_days * DAY_S * CLOCK_NS_PER_S;
	struct iocom_err err = {0};
	int n = journal_home_stale(a->journal, now - NEVER_STARTED_S * CLOCK_NS_PER_S);

	if (n > 0)
		log_write(&a->log, LOG_L_WARNING, "%d job%s never started", n, n == 1 ? "" : "s");
	n = journal_home_lost(a->journal, now > span ? now - span : 0, agent_gone, a);
	if (n > 0)
		log_write(&a->log, LOG_L_WARNING,
			  "%d job%s lost: their nodes have not been heard of for %u days", n,
			  n == 1 ? " is" : "s are", a->set.keep_days);
	if (journal_prune(a->journal, a->set.keep_jobs, now > span ? now - span : 0, &err))
		agent_journal_failed(a, &err);
	target_spool_prune(a);
	wait_ended(a, NULL); /* those that never started */
}

static void chores(void *arg)
{
	struct agent *a = arg;
	uint64_t n = a->chores_count++;

	target_expire(a);
	if (a->probes)
		probes_run(a->probes);
	lease_expire(a);
	lease_tick(a);
	wait_tick(a);
	target_forget_left(a);
	if (n % REPORT_EVERY == 0)
		target_report_pending(a);
	if (n % HELLO_EVERY == 0)
		home_hello(a);
	if (clock_boot_ns() >= a->prune_due_ns) {
		agent_prune(a);
		a->prune_due_ns = clock_boot_ns() + PRUNE_NS;
	}
	loop_start(a->loop, &a->chores, CHORES_NS);
}

/* --- all of it -------------------------------------------------------------------------- */

/* Streams, clients and leashes want many; each job gets its user's own limit. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int agent_set_up(struct agent *a, struct iocom_err *err)
{
	int rc = directories(a, err);

	allow_descriptors();

	if (!rc)
		rc = loop_new(&a->loop, err);
	if (!rc && paths_new(&a->paths, a->loop))
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	if (!rc)
		rc = accounts_new(&a->accounts, &a->counters, err);
	if (!rc)
		rc = agent_catch_signals(a, err);
	if (!rc)
		rc = identity(a, err);
	if (!rc)
		rc = agent_describe(a, err);
	if (!rc && a->seal)
		rc = agent_join(a, err);
	if (!rc)
		rc = metrics_start(a, err);
	if (!rc)
		rc = measuring(a, err);
	if (!rc)
		rc = databases(a, err);
	if (rc)
		return rc;
	a->settle = (struct loop_timer){.fire = target_settle, .arg = a};
	a->starts = (struct loop_timer){.fire = target_starts, .arg = a};
	a->respare = (struct loop_timer){.fire = target_respare, .arg = a};
	a->chores = (struct loop_timer){.fire = chores, .arg = a};
	rc = tick_start(a, err);
	if (!rc)
		rc = lease_load(a, err);
	if (!rc)
		rc = target_recover(a, err);
	if (!rc) {
		target_spool_prune(a);
		replays_recover(a);
		rc = clients_new(&a->clients, a, err);
	}
	if (rc)
		return rc;
	dial_peers(a);
	a->prune_due_ns = clock_boot_ns() + PRUNE_FIRST_NS;
	loop_start(a->loop, &a->chores, 0);
	loop_start(a->loop, &a->respare, 0);
	return 0;
}

int agent_start(struct agent *a, struct iocom_err *err)
{
	int rc;

	a->lock_fd = a->state_lock_fd = a->counting_fd = -1;
	a->signals.fd = -1;
	if (geteuid() != 0)
		return iocom_err_set(err, -EPERM,
				     "iocomd measures the kernel and starts jobs of all users: run "
				     "it as root");
	if (access(a->set.shim[0] ? a->set.shim : "iocom-shim", X_OK))
		return iocom_err_set(err, -ENOENT,
				     "the program iocom-shim is not at %s; name it with --shim",
				     a->set.shim[0] ? a->set.shim : "its place beside iocomd");
	rc = agent_set_up(a, err);
	if (rc) {
		agent_stop(a);
		return rc;
	}
	if (a->seal)
		log_write(&a->log, LOG_L_INFO, "node %s, listening at %s ports %u to %u%s",
			  a->set.name, a->set.listen, a->set.port, a->set.port + 2,
			  a->tls ? ", with TLS" : "");
	else
		log_write(&a->log, LOG_L_INFO, "node %s, this machine only", a->set.name);
	return 0;
}

int agent_run(struct agent *a)
{
	return loop_run(a->loop);
}

void agent_stop(struct agent *a)
{
	int saved = errno;

	probes_free(a->probes);
	streams_free(a->streams);
	paths_free(a->paths);
	signals_stop(a);
	bulletin_free(a->bulletin);
	control_free(a->control); /* decisions under way end here */
	a->control = NULL;
	recorders_stop(a);
	metrics_stop(a);
	clients_free(a->clients);
	if (a->loop) {
		target_attach_stop(a);
		target_stop(a);
		lease_unload(a);
	}
	profile_close(a->profiles);
	journal_close(a->journal);
	sample_names_free(a->names);
	if (a->monitor) /* so this agent held the directories' locks */
		cgroup_tidy(a->set.scope_cgroup, SHIMS_LEAVE_MS);
	while (waitpid(-1, NULL, WNOHANG) > 0) /* those that left meanwhile */
		;
	monitor_free(a->monitor);
	vector_fini(&a->measured);
	view_charges_fini(&a->charges);
	matrix_fini(&a->matrix);
	tls_free(a->tls);
	tunnels_free(a->tunnels);
	seal_free(a->seal);
	accounts_free(a->accounts);
	if (a->signals.fd >= 0)
		close(a->signals.fd);
	loop_free(a->loop);
	if (a->counting_fd >= 0)
		close(a->counting_fd);
	if (a->state_lock_fd >= 0)
		close(a->state_lock_fd);
	if (a->lock_fd >= 0)
		close(a->lock_fd);
	errno = saved;
}
