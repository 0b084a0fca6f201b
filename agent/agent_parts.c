/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The parts of an agent are made, and wired to each other through their ports:
 *
 *   base <- network part (gate/) <- pulse (measure/) <- peers (cluster/) <- guest, home <- feedback
 *   <- front
 */
#include "agent/agent_own.h"

#include <errno.h>
#include <stdio.h>

#include "agent/base/priority.h"
#include "agent/cluster/stream.h"
#include "agent/front/limits.h"
#include "agent/guest/guest.h"
#include "agent/guest/launcher.h"
#include "agent/home/home.h"
#include "agent/home/home_move.h"
#include "agent/measure/links.h"
#include "agent/measure/uptime_mark.h"
#include "agent/metrics/metrics.h"
#include "user/clock.h"
#include "user/monitor/monitor.h"
#include "user/monitor/sample_names.h"
#include "user/processor.h"
#include "user/trust.h"

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

static void agent_rest_monitor(void *arg, bool resting)
{
	const struct agent *a = arg;

	monitor_rest(a->monitor, resting);
}

static int read_host(void *arg, struct host_reading *reading, struct iocom_err *err)
{
	struct agent *a = arg;

	return host_read(&a->host, reading, err);
}

static int sample_synthetic(void *arg, struct monitor_sample *sample, struct iocom_err *err)
{
	const struct agent *a = arg;

	(void)err;
	synthetic_sample(a->synthetic, loop_boot_ns(a->base.loop), loop_real_ns(a->base.loop),
			 sample);
	return 0;
}

static int look_at_synthetic(void *arg, struct iocom_err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

static int synthetic_memory(void *arg, struct host_reading *reading, struct iocom_err *err)
{
	const struct agent *a = arg;

	(void)err;
	synthetic_host(a->synthetic, loop_boot_ns(a->base.loop), reading);
	return 0;
}

static struct pulse_source agent_source(struct agent *a)
{
	if (a->synthetic)
		return (struct pulse_source){.arg = a,
					     .sample = sample_synthetic,
					     .look = look_at_synthetic,
					     .host = synthetic_memory};
	return (struct pulse_source){.arg = a,
				     .sample = agent_read_monitor,
				     .look = look_at_monitor,
				     .rest = agent_rest_monitor,
				     .host = read_host};
}

static int agent_open_synthetic(struct agent *a, struct iocom_err *err)
{
	int rc = host_init(&a->host, NULL, err); /* for the control groups of jobs */

	if (!rc)
		rc = synthetic_open(&a->synthetic, a->set->synthetic, err);
	if (!rc)
		log_write(&a->log, LOG_L_WARNING,
			  "nothing is measured here: the load is made up, as %s says",
			  a->set->synthetic);
	return rc;
}

static int agent_open_monitor(struct agent *a, struct iocom_err *err)
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
		log_write(&a->log, LOG_L_INFO, "nothing was counted for %.1f s, while no agent ran",
			  (double)(clock_boot_ns() - config.counted_until_ns) / 1e9);
	if (a->host.unified[0])
		a->names = sample_names_new(a->host.unified);
	return 0;
}

/* --- the parts ---------------------------------------------------------------------------- */

/* Without munged an agent serves its own machine only, and logs that. */
static int agent_open_seal(struct agent *a, struct seal **seal, struct iocom_err *err)
{
	int rc;

	if (!settings_networked(a->set))
		return 0;
	rc = seal_new(seal, a->base.loop, &a->counters, a->set->munge_socket, err);
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

static void caches_have(void *arg, const struct data_caches_use *use)
{
	struct agent *a = arg;

	pulse_set_caches(&a->pulse, use);
}

static void agent_make_pulse(struct agent *a)
{
	const struct pulse_config config = {
		.base = &a->base,
		.source = agent_source(a),
		.journal = a->journal,
		.uptime_fd = a->uptime_fd,
		.publish = peers_publish,
		.publish_arg = &a->peers,
	};

	pulse_init(&a->pulse, &config);
	a->caches = data_caches_new(&a->base, caches_have, a);
	a->peers_watch = (struct pulse_watch){.closes = peers_period, .arg = &a->peers};
	pulse_watch(&a->pulse, &a->peers_watch);
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

static void tell_gang(void *arg, uint64_t cgroup_id, bool is)
{
	struct agent *a = arg;
	struct iocom_err err = {0};

	if (a->monitor && monitor_gang(a->monitor, cgroup_id, is, &err))
		log_provoked(&a->log, LOG_L_WARNING, "%s", err.text);
}

static bool is_mute(void *arg)
{
	const struct agent *a = arg;

	return peers_mute(&a->peers);
}

static void owner_says_now(void *arg, bool accepts, const char *says)
{
	struct agent *a = arg;

	pulse_set_owner(&a->pulse, accepts, says);
}

static int agent_make_owner(struct agent *a, struct iocom_err *err)
{
	const struct owner_config config = {
		.base = &a->base,
		.accounts = a->accounts,
		.devices = "/dev",
		.sessions = "/run/systemd/sessions",
		.loginctl = "/usr/bin/loginctl",
		.ports = {.arg = a, .own_vector = own_vector, .says = owner_says_now},
	};

	return owner_part_new(&a->owner, &config, err);
}

static bool owner_admits(void *arg, const struct guest_asking *asking, char *why, size_t size)
{
	const struct agent *a = arg;

	return owner_part_admit(a->owner, asking, why, size);
}

static int agent_make_guest(struct agent *a, struct iocom_err *err)
{
	const struct guest_config config = {
		.base = &a->base,
		.jobs_dir = a->jobs_dir,
		.run_jobs_dir = a->run_jobs_dir,
		.journal = a->journal,
		.accounts = a->accounts,
		.names = a->names,
		.user_limits = &a->user_limits,
		.cpu_speed = a->set->cpu_speed,
		.processor = processor_look("/proc/cpuinfo"),
		.launcher = &launcher_shims,
		.ports = {.arg = a,
			  .owner = owner_admits,
			  .own_vector = own_vector,
			  .sequence = own_sequence,
			  .sample = sample_now,
			  .gang = tell_gang,
			  .changed = something_changed,
			  .ask = peers_ask,
			  .ask_arg = &a->peers,
			  .answer = peers_answer},
	};
	struct pulse_jobs jobs;
	int rc;

	user_limits_init(&a->user_limits, a->set, &a->log, loop_boot_ns(a->base.loop));
	rc = guest_new(&a->guest, &config, err);

	if (rc)
		return rc;
	jobs = guest_pulse_jobs(a->guest);
	pulse_set_jobs(&a->pulse, &jobs);
	peers_serve(&a->peers, PEER_ADMIT, guest_on_admit, a->guest);
	peers_serve(&a->peers, PEER_KILL, guest_on_kill, a->guest);
	peers_serve(&a->peers, PEER_RELEASE, guest_on_release, a->guest);
	peers_serve(&a->peers, PEER_MOVABLE, guest_on_movable, a->guest);
	peers_serve(&a->peers, PEER_MOVE, guest_on_move, a->guest);
	return 0;
}

/* A question about a job that is placed somewhere is home's to forward; its node's to answer. */
static int answer_attach(void *arg, const struct peer_request *request, uint64_t ticket,
			 struct peer_answer *answer)
{
	const struct agent *a = arg;

	return request->attach.hops ? guest_on_attach(a->guest, request, ticket, answer)
				    : home_on_attach(a->home, request, ticket, answer);
}

static double controlled_w_io(void *arg)
{
	const struct agent *a = arg;

	return a->feedback ? feedback_w_io(a->feedback) : a->set->rules.w_io;
}

static int agent_make_home(struct agent *a, struct iocom_err *err)
{
	const struct home_config config = {
		.base = &a->base,
		.journal = a->journal,
		.profiles = a->profiles,
		.matrix = &a->peers.matrix,
		.skews = &a->peers.skews,
		.ports = {.arg = a,
			  .own_vector = own_vector,
			  .mute = is_mute,
			  .w_io = controlled_w_io,
			  .ask = peers_ask,
			  .ask_arg = &a->peers,
			  .answer = peers_answer},
	};
	int rc = home_new(&a->home, &config, err);

	if (rc)
		return rc;
	peers_serve(&a->peers, PEER_STARTED, home_on_started, a->home);
	peers_serve(&a->peers, PEER_DONE, home_on_done, a->home);
	peers_serve(&a->peers, PEER_PROGRESS, home_on_progress, a->home);
	peers_serve(&a->peers, PEER_RENEW, home_on_renew, a->home);
	peers_serve(&a->peers, PEER_HELD, home_on_held, a->home);
	peers_serve(&a->peers, PEER_AWAY, home_on_away, a->home);
	peers_serve(&a->peers, PEER_ATTACH, answer_attach, a);
	return 0;
}

static void way_to(void *arg, const struct iocom_vector *v, struct rules_port *port)
{
	const struct agent *a = arg;

	links_port(a->front.links, v, port);
}

static int agent_make_gangs(struct agent *a, struct iocom_err *err)
{
	const struct gangs_config config = {
		.base = &a->base, .home = a->home, .port = way_to, .arg = a};

	return gangs_new(&a->gangs, &config, err);
}

static void cluster_add(const struct iocom_vector *v, struct feedback_cluster *sum)
{
	double cpu = v->cores ? v->run_queue / v->cores : 0;

	sum->cpu_utilisation += cpu < 1 ? cpu : 1;
	sum->disk_utilisation += v->disk_utilisation < 1 ? v->disk_utilisation : 1;
}

static void cluster_means(void *arg, struct feedback_cluster *out)
{
	const struct agent *a = arg;
	const struct matrix *m = &a->peers.matrix;
	double nodes = 1;

	*out = (struct feedback_cluster){0};
	cluster_add(&a->pulse.own, out);
	for (size_t i = 0; i < m->count; i++)
		if (matrix_at(m, i)->alive) {
			cluster_add(&matrix_at(m, i)->vector, out);
			nodes++;
		}
	out->cpu_utilisation /= nodes;
	out->disk_utilisation /= nodes;
}

static size_t running_jobs(void *arg, struct guest_running *out, size_t max)
{
	const struct agent *a = arg;

	return guest_running(a->guest, out, max);
}

static int agent_make_feedback(struct agent *a, struct iocom_err *err)
{
	const struct feedback_config config = {
		.base = &a->base,
		.journal = a->journal,
		.mounts = "/proc/self/mounts",
		.ports = {.arg = a,
			  .own_vector = own_vector,
			  .cluster = cluster_means,
			  .running = running_jobs},
	};
	int rc = feedback_new(&a->feedback, &config, err);

	if (rc)
		return rc;
	a->ran_watch = (struct guest_watch){.slowed = feedback_ran_slowed, .arg = a->feedback};
	guest_watch(a->guest, &a->ran_watch);
	a->submitted_watch =
		(struct home_watch){.slowed = feedback_submitted_slowed, .arg = a->feedback};
	home_watch(a->home, &a->submitted_watch);
	return 0;
}

static int find_key(void *arg, const struct stream_hello *hello, uint8_t key[SECRET_KEY])
{
	const struct agent *a = arg;

	return guest_stream_key(a->guest, hello, key);
}

static int check_start(void *arg, const struct stream_hello *hello, const void *payload,
		       uint32_t length, char **credential, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_start_check(a->guest, hello, payload, length, credential, err);
}

static int take_start(void *arg, int fd, const struct stream_secure *secure, const void *payload,
		      uint32_t length, const struct credential *who, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_start_of(a->guest, fd, secure, payload, length, who, err);
}

static int check_attach(void *arg, const struct stream_hello *hello, const void *payload,
			uint32_t length, char **credential, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_attach_check(a->guest, hello, payload, length, credential, err);
}

static int take_attach(void *arg, int fd, const struct stream_secure *secure, const void *payload,
		       uint32_t length, const struct credential *who, struct iocom_err *err)
{
	const struct agent *a = arg;

	return guest_attach_of(a->guest, fd, secure, payload, length, who, err);
}

static int take_renewal(void *arg, const void *payload, uint32_t length,
			uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err)
{
	const struct agent *a = arg;

	return home_renew(a->home, payload, length, answer, err);
}

static int agent_make_streams(struct agent *a, struct iocom_err *err)
{
	const struct stream_ports ports = {.arg = a,
					   .key = find_key,
					   .start = {check_start, take_start},
					   .attach = {check_attach, take_attach},
					   .renew = take_renewal};

	return a->peers.seal
		       ? streams_new(&a->streams, &a->base, a->net, a->peers.seal, &ports, err)
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

static size_t list_predictions(void *arg, struct prediction *out)
{
	const struct agent *a = arg;

	return home_predictions(a->home, out);
}

static int agent_make_metrics(struct agent *a, struct iocom_err *err)
{
	const struct metrics_config config = {.base = &a->base,
					      .pulse = &a->pulse,
					      .net = a->net,
					      .names = a->names,
					      .ports = {.arg = a,
							.limits = list_limits,
							.whose = whose_cgroup,
							.charges_lost = charges_lost,
							.predictions = list_predictions}};

	return metrics_new(&a->metrics, &config, err);
}

/* Wires the front early: other parts may ask for limits before clients are served. */
static void agent_wire_front(struct agent *a)
{
	a->front.base = &a->base;
	a->front.pulse = &a->pulse;
	a->front.peers = &a->peers;
	a->front.guest = a->guest;
	a->front.owner = a->owner;
	a->front.feedback = a->feedback;
	a->front.moves = a->moves;
	a->front.home = a->home;
	a->front.gangs = a->gangs;
	a->front.journal = a->journal;
	a->front.profiles = a->profiles;
	a->front.accounts = a->accounts;
	a->front.streams = a->streams;
	a->front.unified = a->host.unified;
	a->front.names = a->names;
	a->front.user_limits = &a->user_limits;
}

int agent_make_parts(struct agent *a, struct iocom_err *err)
{
	struct priority_mark own;
	struct seal *seal = NULL;
	int rc = agent_open_seal(a, &seal, err);

	priority_mark(&own);
	if (!rc)
		rc = agent_make_net(a, seal != NULL, err);
	if (!rc)
		rc = peers_start(&a->peers, &a->base, a->journal, seal, a->net, err);
	else
		seal_free(seal);
	if (!rc)
		rc = agent_make_streams(a, err);
	if (!rc)
		rc = a->set->synthetic[0] ? agent_open_synthetic(a, err)
					  : agent_open_monitor(a, err);
	if (rc)
		return rc;
	agent_make_pulse(a);
	rc = agent_make_owner(a, err);
	if (!rc)
		rc = agent_make_guest(a, err);
	if (!rc)
		rc = agent_make_home(a, err);
	if (!rc)
		rc = agent_make_gangs(a, err);
	if (!rc)
		rc = agent_make_feedback(a, err);
	if (!rc)
		rc = agent_make_moves(a, err);
	if (rc)
		return rc;
	agent_wire_front(a);
	rc = agent_make_metrics(a, err);
	priority_lower(&own); /* the thread that makes the metrics' text */
	return rc;
}
