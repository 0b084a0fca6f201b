/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* iocomd's table of settings; the machinery is user/config.c. */
#include "balancer/settings/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/view/view_decide.h"

#define BASE_PORT_MAX	     65533 /* three ports: base, +1 control, +2 job streams */
#define METRICS_PORT	     3

#define SLOTS_MOST	     65536
#define USER_TASKS_MOST	     4194304 /* the kernel's PID_MAX_LIMIT */
#define USER_MEMORY_LEAST_MB 16	     /* less does not even start a program */
#define USER_MEMORY_MOST_MB  1073741824

static int check_name(void *target, const char *value, struct iocom_err *err)
{
	(void)target;
	if (!*value || *value == '.' || *value == '-' ||
	    value[strspn(value,
			 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		return iocom_err_set(err, -EINVAL,
				     "expected a node name of letters, digits, '.', '_' and '-', "
				     "not '%.64s'",
				     value);
	return 0;
}

/* The name crosses in credentials, and in sentences of other nodes. */
static int check_cluster(void *target, const char *value, struct iocom_err *err)
{
	(void)target;
	if (value[strspn(value,
			 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		return iocom_err_set(err, -EINVAL,
				     "expected a cluster's name of letters, digits, '.', '_' and "
				     "'-', not '%.64s'",
				     value);
	return 0;
}

/* Without its controller an agent takes fewer policies than a view does. */
static int unknown_policy(const char *name, struct iocom_err *err)
{
	char known[400] = "";

	for (enum rules_policy p = 0; p < RULES_POLICIES; p++) {
		size_t n = strlen(known);

		if (p != RULES_WAL_FC)
			snprintf(known + n, sizeof(known) - n, "%s%s", n ? " " : "",
				 rules_policy_name(p));
	}
	return iocom_err_set(err, -EINVAL, "unknown policy '%.60s'; known: %s", name, known);
}

int settings_policy(const char *name, enum settings_feedback_mode mode, struct view_policy *policy,
		    struct iocom_err *err)
{
	int rc = view_policy_parse(name, policy, err);

	if (rc && mode != FEEDBACK_ON)
		return unknown_policy(name, err);
	if (rc || !policy->feedback || mode == FEEDBACK_ON)
		return rc;
	return iocom_err_set(
		err, -EINVAL,
		"'%s' needs the feedback controller, which %s: its weights would never move; set "
		"feedback = on, or take '%s'",
		policy->name,
		mode == FEEDBACK_OFF ? "is off on this node (feedback = off)"
				     : "only calculates on this node (feedback = dry-run)",
		policy->policy == RULES_WAL_FC ? "wal" : rules_policy_name(policy->policy));
}

/* Whether the controller that it may need is on is judged when all settings are read. */
static int check_policy(void *target, const char *value, struct iocom_err *err)
{
	struct view_policy policy;

	(void)target;
	return settings_policy(value, FEEDBACK_ON, &policy, err);
}

const char *const settings_feedback_names[FEEDBACK_MODES] = {"off", "dry-run", "on"};

static int set_feedback(void *target, const char *value, struct iocom_err *err)
{
	for (int mode = 0; mode < FEEDBACK_MODES; mode++)
		if (!strcmp(value, settings_feedback_names[mode])) {
			((struct settings *)target)->feedback.mode =
				(enum settings_feedback_mode)mode;
			return 0;
		}
	return iocom_err_set(err, -EINVAL, "expected off, dry-run or on, not '%.40s'", value);
}

static int set_controller(void *target, const char *value, struct iocom_err *err)
{
	for (uint32_t at = 0; at < RULES_CONTROLLERS; at++)
		if (!strcmp(value, rules_controller_name((enum rules_controller)at))) {
			((struct settings *)target)->feedback.controller = at;
			return 0;
		}
	return iocom_err_set(err, -EINVAL,
			     "expected published, smoothed, gradient or predictive, not '%.40s'",
			     value);
}

const char *const settings_pam_names[] = {"off", "auto", "on"};

static const struct {
	const char *name;
	enum log_level level;
} levels[] = {{"error", LOG_L_ERROR},
	      {"warning", LOG_L_WARNING},
	      {"info", LOG_L_INFO},
	      {"debug", LOG_L_DEBUG}};

const char *settings_level_name(enum log_level level)
{
	size_t i = 0;

	while (i + 1 < sizeof(levels) / sizeof(*levels) && levels[i].level != level)
		i++;
	return levels[i].name;
}

static int check_level(void *target, const char *value, struct iocom_err *err)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		if (!strcmp(value, levels[i].name)) {
			((struct settings *)target)->log_level = levels[i].level;
			return 0;
		}
	}
	return iocom_err_set(err, -EINVAL, "expected error, warning, info or debug, not '%.40s'",
			     value);
}

static int check_absolute(void *target, const char *value, struct iocom_err *err)
{
	(void)target;
	if (*value && *value != '/')
		return iocom_err_set(err, -EINVAL, "expected an absolute path, not '%.200s'",
				     value);
	return 0;
}

static int set_pam(void *target, const char *value, struct iocom_err *err)
{
	/* The settings that are only yes or no have these names. */
	if (!strcmp(value, "yes") || !strcmp(value, "no")) {
		((struct settings *)target)->pam =
			*value == 'y' ? SETTINGS_PAM_ON : SETTINGS_PAM_OFF;
		return 0;
	}
	for (size_t i = 0; i < sizeof(settings_pam_names) / sizeof(*settings_pam_names); i++)
		if (!strcmp(value, settings_pam_names[i])) {
			((struct settings *)target)->pam = (enum settings_pam)i;
			return 0;
		}
	return iocom_err_set(err, -EINVAL, "expected auto, on (yes) or off (no), not '%.40s'",
			     value);
}

/* "auto", "none" (or 0), or a count from LEAST to MOST. */
static int settings_limit(const char *value, int64_t least, int64_t most, const char *unit,
			  int64_t *out, struct iocom_err *err)
{
	char *end;
	long long count;

	if (!strcmp(value, "auto") || !strcmp(value, "none") || !strcmp(value, "0")) {
		*out = *value == 'a' ? SETTINGS_LIMIT_AUTO : SETTINGS_LIMIT_NONE;
		return 0;
	}
	errno = 0;
	count = strtoll(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || count < least || count > most)
		return iocom_err_set(err, -EINVAL,
				     "expected a number of %s from %lld to %lld, auto or none, not "
				     "'%.40s'",
				     unit, (long long)least, (long long)most, value);
	*out = count;
	return 0;
}

static int set_user_tasks(void *target, const char *value, struct iocom_err *err)
{
	return settings_limit(value, 1, USER_TASKS_MOST, "tasks",
			      &((struct settings *)target)->user_tasks_max, err);
}

static int set_slots(void *target, const char *value, struct iocom_err *err)
{
	return settings_limit(value, 1, SLOTS_MOST, "tasks", &((struct settings *)target)->slots,
			      err);
}

static int set_user_memory(void *target, const char *value, struct iocom_err *err)
{
	return settings_limit(value, USER_MEMORY_LEAST_MB, USER_MEMORY_MOST_MB, "MiB",
			      &((struct settings *)target)->user_memory_mb, err);
}

/* Names, uids and @groups; they are resolved when a job comes. */
static int check_users(void *target, const char *value, struct iocom_err *err)
{
	static const char blanks[] = ", \t";

	(void)target;
	for (value += strspn(value, blanks); *value; value += strspn(value, blanks)) {
		size_t n = strcspn(value, blanks), at = *value == '@';

		if (n == at ||
		    strspn(value + at, "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-$\\+") < n - at)
			return iocom_err_set(err, -EINVAL,
					     "expected names, uids and @groups with commas between "
					     "them, not '%.*s'",
					     (int)n, value);
		value += n;
	}
	return 0;
}

/* "HOST", "HOST:PORT" or "[V6]:PORT"; a missing port is 0, the agent's own. */
static int parse_peer(const char *text, struct settings_peer *peer, struct iocom_err *err)
{
	const char *colon = strrchr(text, ':'), *end = text + strlen(text);
	char *rest;
	long port = 0;
	size_t n;

	if (*text == '[' && (!colon || !strchr(colon, ']')) && colon && colon[-1] != ']')
		return iocom_err_set(err, -EINVAL, "expected [ADDRESS]:PORT, not '%.80s'", text);
	if (colon && strchr(colon, ']'))
		colon = NULL; /* the colon belongs to the address in the brackets */
	if (colon) {
		port = strtol(colon + 1, &rest, 10);
		if (rest == colon + 1 || *rest || port < 1 || port > BASE_PORT_MAX)
			return iocom_err_set(err, -EINVAL,
					     "expected ADDRESS:PORT with a port from 1 to %d, not "
					     "'%.80s'",
					     BASE_PORT_MAX, text);
		end = colon;
	}
	n = (size_t)(end - text);
	if (!n || n >= sizeof(peer->address))
		return iocom_err_set(err, -EINVAL, "expected ADDRESS[:PORT], not '%.80s'", text);
	memcpy(peer->address, text, n);
	peer->address[n] = 0;
	peer->port = (uint16_t)port;
	return 0;
}

static int set_peers(void *target, const char *value, struct iocom_err *err)
{
	struct settings *s = target;
	char *copy = strdup(value), *state = NULL;
	int rc = copy ? 0 : -ENOMEM;

	s->npeers = 0;
	for (char *p = copy ? strtok_r(copy, ", \t", &state) : NULL; p && !rc;
	     p = strtok_r(NULL, ", \t", &state)) {
		if (s->npeers == SETTINGS_PEERS_MAX)
			rc = iocom_err_set(err, -EINVAL,
					   "there are more than %d peers; name a few, and they "
					   "tell of the others",
					   SETTINGS_PEERS_MAX);
		else
			rc = parse_peer(p, &s->peers[s->npeers++], err);
	}
	free(copy);
	return rc;
}

/* Returns whether ADDRESS is numeric, so that no name server is needed. */
static bool settings_numeric(const char *address)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found;
	char plain[IOCOM_ADDRESS_MAX];
	size_t n = strlen(address);
	bool brackets = n > 2 && address[0] == '[' && address[n - 1] == ']';

	snprintf(plain, sizeof(plain), "%.*s", (int)(n - 2 * brackets), address + brackets);
	if (getaddrinfo(plain, NULL, &hints, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

static int set_metrics(void *target, const char *value, struct iocom_err *err)
{
	struct settings *s = target;
	int rc;

	s->metrics = (struct settings_peer){0};
	if (!*value)
		return 0;
	rc = parse_peer(value, &s->metrics, err);
	if (!rc && !settings_numeric(s->metrics.address))
		rc = iocom_err_set(err, -EINVAL,
				   "expected a numeric address with or without a port, as "
				   "127.0.0.1:7703 or [::1]:7703, not '%.80s'",
				   value);
	return rc;
}

static int set_disks(struct settings *s, char *value, struct iocom_err *err)
{
	char *state = NULL;

	for (char *d = strtok_r(value, "+", &state); d; d = strtok_r(NULL, "+", &state)) {
		if (s->nscope_disks == SETTINGS_DISKS_MAX || strlen(d) >= sizeof(s->scope_disks[0]))
			return iocom_err_set(
				err, -EINVAL,
				"expected at most %d disks with kernel names, not '%.80s'",
				SETTINGS_DISKS_MAX, d);
		if (!strncmp(d, "/dev/", 5))
			d += 5;
		strcpy(s->scope_disks[s->nscope_disks++], d);
	}
	return 0;
}

static int scope_path(char *out, const char *value, bool relative, struct iocom_err *err)
{
	if (relative)
		value += strspn(value, "/");
	if (strlen(value) >= SETTINGS_PATH_MAX || strstr(value, "..") ||
	    (!relative && *value != '/'))
		return iocom_err_set(err, -EINVAL, "'%.200s' is not a usable path", value);
	strcpy(out, value);
	return 0;
}

static int set_scope(void *target, const char *value, struct iocom_err *err)
{
	struct settings *s = target;
	char *copy = strdup(value), *state = NULL;
	int rc = copy ? 0 : -ENOMEM;

	s->scoped = *value != 0;
	s->scope_cgroup[0] = s->scope_mount[0] = 0;
	s->nscope_disks = 0;
	for (char *p = copy ? strtok_r(copy, ",", &state) : NULL; p && !rc;
	     p = strtok_r(NULL, ",", &state)) {
		if (!strncmp(p, "cgroup=", 7))
			rc = scope_path(s->scope_cgroup, p + 7, true, err);
		else if (!strncmp(p, "disk=", 5))
			rc = set_disks(s, p + 5, err);
		else if (!strncmp(p, "mount=", 6))
			rc = scope_path(s->scope_mount, p + 6, false, err);
		else
			rc = iocom_err_set(
				err, -EINVAL,
				"expected cgroup=REL,disk=NAME[+NAME...],mount=PATH, not "
				"'%.80s'",
				p);
	}
	free(copy);
	if (!rc && s->scoped && !s->scope_cgroup[0])
		rc = iocom_err_set(err, -EINVAL, "a scope needs cgroup=RELATIVE-PATH");
	return rc;
}

#define FIELD(member) offsetof(struct settings, member), sizeof(((struct settings *)0)->member)
#define NONE	      0, 0

#define RULE(kind, type, member, name, value, help, usual, least, most)                            \
	{name, value, help, usual, CONFIG_##kind, FIELD(rules.member), least, most, NULL},
#define MOVE(kind, type, member, name, value, help, usual, least, most)                            \
	{name, value, help, usual, CONFIG_##kind, FIELD(moves.member), least, most, NULL},
#define CONTROL(kind, type, member, name, value, help, usual, least_, most_)                       \
	{name, value, help, usual, CONFIG_##kind, FIELD(feedback.member), least_, most_, NULL},

static const struct config_key keys[] = {
	{"name", "NAME", "this node's name [the host's name]", NULL, CONFIG_STRING, FIELD(name), 0,
	 0, check_name},
	{"cluster", "NAME", "the cluster's name: nodes of others are refused [none]", NULL,
	 CONFIG_STRING, FIELD(cluster), 0, 0, check_cluster},
	{"listen", "ADDR", "address to listen at; needed with peers", NULL, CONFIG_STRING,
	 FIELD(listen), 0, 0, NULL},
	{"address", "ADDR", "address told to peers [the listen address]", NULL, CONFIG_STRING,
	 FIELD(address), 0, 0, NULL},
	{"port", "PORT", "base port: bulletins; +1 control, +2 job streams", "7700", CONFIG_COUNT,
	 FIELD(port), 1, BASE_PORT_MAX, NULL},
	{"peers", "A[:P],B[:P]...", "agents to join; a few are enough", NULL, CONFIG_CUSTOM, NONE,
	 0, 0, set_peers},
	{"period", "SECONDS", "how often loads are measured and published", "1", CONFIG_NUMBER,
	 FIELD(period_s), 0.05, 3600, NULL},
	{"sensitivity", "X", "a load that changes by more than this part of it is told at once",
	 "0.25", CONFIG_NUMBER, FIELD(sensitivity), 0.01, 1, NULL},
	{"run-dir", "DIR", "sockets of running things", "/run/iocom", CONFIG_STRING, FIELD(run_dir),
	 0, 0, check_absolute},
	{"state-dir", "DIR", "job journal and class profiles", "/var/lib/iocom", CONFIG_STRING,
	 FIELD(state_dir), 0, 0, check_absolute},
	{"munge-socket", "PATH", "munged's socket [MUNGE's default]", NULL, CONFIG_STRING,
	 FIELD(munge_socket), 0, 0, check_absolute},
	{"scope", "SCOPE",
	 "what belongs to this node: cgroup=REL,disk=NAME[+NAME],mount=PATH [all]", NULL,
	 CONFIG_CUSTOM, NONE, 0, 0, set_scope},
	{"cpu-speed", "X", "speed relative to the reference machine", "1", CONFIG_NUMBER,
	 FIELD(cpu_speed), 0.001, 1000, NULL},
	{"disk-mb-per-s", "X", "throughput of the disk; 0: learn it", "0", CONFIG_NUMBER,
	 FIELD(disk_mb_per_s), 0, 1e6, NULL},
	{"disk-fixed-ms", "X", "seek and rotation per request; 0: by the kind of disk", "0",
	 CONFIG_NUMBER, FIELD(disk_fixed_ms), 0, 1e4, NULL},
	{"disk-parallel", "N", "tasks that the disk serves at full speed at a time", "1",
	 CONFIG_NUMBER, FIELD(disk_parallel), 1, 1024, NULL},
	{"network-mb-per-s", "X", "capacity of the network", "125", CONFIG_NUMBER,
	 FIELD(network_mb_per_s), 0.001, 1e6, NULL},
	{"policy", "POLICY", "policy for jobs that name none", SETTINGS_POLICY, CONFIG_STRING,
	 FIELD(policy), 0, 0, check_policy},
	{"feedback", "off|dry-run|on",
	 "control weights and I/O memory by the slowdown of ended jobs", "off", CONFIG_CUSTOM, NONE,
	 0, 0, set_feedback},
	{"feedback-controller", "NAME", "published, smoothed, gradient or predictive", "predictive",
	 CONFIG_CUSTOM, NONE, 0, 0, set_controller},
	{"feedback-restore", "yes|no", "only give back what a killed agent's controller changed",
	 "no", CONFIG_BOOL, FIELD(feedback.restore), 0, 0, NULL},
	SETTINGS_FEEDBACK(CONTROL) SETTINGS_RULES(RULE) SETTINGS_MOVES(MOVE){
		"synthetic", "FILE",
		"tell of the loads in FILE and measure nothing, to try a large cluster", NULL,
		CONFIG_STRING, FIELD(synthetic), 0, 0, check_absolute},
	{"shim", "PATH", "the iocom-shim program [found beside iocomd]", NULL, CONFIG_STRING,
	 FIELD(shim), 0, 0, check_absolute},
	{"net-program", "PATH", "the iocom-net program [found beside iocomd]", NULL, CONFIG_STRING,
	 FIELD(net_program), 0, 0, check_absolute},
	{"net-user", "USER", "whom the network part runs as", SETTINGS_NET_USER, CONFIG_STRING,
	 FIELD(net_user), 0, 0, NULL},
	{"accept-jobs", "yes|no", "let jobs of other nodes in", "yes", CONFIG_BOOL,
	 FIELD(accept_jobs), 0, 0, NULL},
	{"allow-root", "yes|no", "let root of other nodes run jobs here", "no", CONFIG_BOOL,
	 FIELD(allow_root), 0, 0, NULL},
	{"min-uid", "UID", "least uid of other nodes' users who are let in", "1000", CONFIG_COUNT,
	 FIELD(min_uid), 0, 4294967294.0, NULL},
	{"allow-users", "LIST", "let only these users, uids, @groups of other nodes in [all]", NULL,
	 CONFIG_STRING, FIELD(allow_users), 0, 0, check_users},
	{"deny-users", "LIST", "do not let these in", NULL, CONFIG_STRING, FIELD(deny_users), 0, 0,
	 check_users},
	{"owners", "LIST", "users who may change this node's owner's rules (iocom owner)", NULL,
	 CONFIG_STRING, FIELD(owners), 0, 0, check_users},
	{"administrators", "LIST", "the same: users who may at any node of the cluster", NULL,
	 CONFIG_STRING, FIELD(administrators), 0, 0, check_users},
	{"pam", "off|auto|on", "PAM account and session for jobs; auto: if DIR/iocom exists",
	 "auto", CONFIG_CUSTOM, NONE, 0, 0, set_pam},
	{"pam-dir", "DIR", "where PAM's service file 'iocom' is [/etc/pam.d]", NULL, CONFIG_STRING,
	 FIELD(pam_dir), 0, 0, check_absolute},
	{"begin-limit-s", "S", "limit for PAM to let a job in, and for its program to start", "60",
	 CONFIG_COUNT, FIELD(begin_limit_s), 1, 3600, NULL},
	{"user-jobs-max", "N", "jobs of one user here at a time, root exempt; 0: no bound", "2048",
	 CONFIG_COUNT, FIELD(user_jobs_max), 0, 1e6, NULL},
	{"user-tasks-max", "N|auto|none",
	 "tasks of one user's jobs here together, root exempt; auto: a third of what the machine "
	 "can have",
	 "auto", CONFIG_CUSTOM, NONE, 0, 0, set_user_tasks},
	{"user-memory-mb", "N|auto|none",
	 "MiB of memory of one user's jobs here together, root exempt; auto: nine tenths", "auto",
	 CONFIG_CUSTOM, NONE, 0, 0, set_user_memory},
	{"slots", "N|auto|none",
	 "tasks of parallel jobs (iocom run -n) here at a time; auto: as many as processors",
	 "auto", CONFIG_CUSTOM, NONE, 0, 0, set_slots},
	{"user-requests-per-s", "N",
	 "requests of one user at the local socket, root exempt; 0: no bound", "5000", CONFIG_COUNT,
	 FIELD(user_requests_per_s), 0, 1e6, NULL},
	{"all-connections", "yes|no",
	 "count the TCP connections of every job one by one, not only of parallel jobs", "no",
	 CONFIG_BOOL, FIELD(all_connections), 0, 0, NULL},
	{"keep-jobs", "N", "finished jobs kept in the journal", "10000", CONFIG_COUNT,
	 FIELD(keep_jobs), 1, 1e9, NULL},
	{"keep-days", "N", "days they are kept", "30", CONFIG_COUNT, FIELD(keep_days), 1, 36500,
	 NULL},
	{"lease-s", "S", "how long a restartable job may go on without its home node", "30",
	 CONFIG_COUNT, FIELD(lease_s), 5, 3600, NULL},
	{"light-ms", "MS", "jobs of classes that need less than this never leave home; 0: all may",
	 "200", CONFIG_COUNT, FIELD(light_ms), 0, 3600000, NULL},
	{"spool-mb", "N", "MiB of a detached job's output that are kept", "64", CONFIG_COUNT,
	 FIELD(spool_mb), 0, 1048576, NULL},
	{"spool-total-mb", "N", "MiB of output kept of all jobs together", "1024", CONFIG_COUNT,
	 FIELD(spool_total_mb), 0, 1048576, NULL},
	{"spool-user-mb", "N", "MiB of one user, root exempt; 0: half of all", "0", CONFIG_COUNT,
	 FIELD(spool_user_mb), 0, 1048576, NULL},
	{"criu", "PATH", "moves jobs [criu in /usr/sbin or /usr/local/sbin]", NULL, CONFIG_STRING,
	 FIELD(criu), 0, 0, check_absolute},
	{"moves-precopy", "yes|no",
	 "send memory of jobs that move before they are frozen, where the kernel tracks it", "yes",
	 CONFIG_BOOL, FIELD(moves_precopy), 0, 0, NULL},
	{"data-dir", "DIR", "data that goes along with jobs [STATE_DIR-data]", NULL, CONFIG_STRING,
	 FIELD(data_dir), 0, 0, check_absolute},
	{"data-cache-mb", "N", "MiB of it that are kept for one user", "10240", CONFIG_COUNT,
	 FIELD(data_cache_mb), 0, 1e9, NULL},
	{"metrics-listen", "A[:P]", "serve /metrics for Prometheus here [nowhere; P: port+3]", NULL,
	 CONFIG_CUSTOM, NONE, 0, 0, set_metrics},
	{"metrics-max-jobs", "N", "jobs with metrics of their own; the rest are 'other'", "200",
	 CONFIG_COUNT, FIELD(metrics_max_jobs), 0, 10000, NULL},
	{"log-level", "LEVEL", "error, warning, info or debug", "info", CONFIG_CUSTOM, NONE, 0, 0,
	 check_level},
	{"foreground", "yes|no", "stay in the foreground (iocomd never leaves it)", "yes",
	 CONFIG_BOOL, FIELD(foreground), 0, 0, NULL},
};

/* The settings of TLS: older versions encrypted only by certificates. */
static const char *const retired[] = {"tls-certificate", "tls-key", "tls-ca", "relay-user", NULL};

/* Notes KEY in the words of settings_retired.  The first one of the file tells the file's name. */
static void settings_skip(void *target, const char *key, const char *file, int line)
{
	struct settings *s = target;
	size_t at = strlen(s->retired), size = sizeof(s->retired) - at;
	const char *comma = at ? ", " : "";

	if (!file)
		snprintf(s->retired + at, size, "%s--%s", comma, key);
	else if (strstr(s->retired, " of "))
		snprintf(s->retired + at, size, "%s%s (line %d)", comma, key, line);
	else
		snprintf(s->retired + at, size, "%s%s (line %d of %.*s)", comma, key, line,
			 SETTINGS_PATH_MAX, file);
	s->nretired++;
}

bool settings_retired(const struct settings *s, struct iocom_err *sentence)
{
	bool one = s->nretired == 1;

	if (s->nretired)
		iocom_err_set(sentence, 0,
			      "%s %s not used any more: nodes always encrypt what they send each "
			      "other, without certificates; remove %s",
			      s->retired, one ? "is" : "are", one ? "it" : "them");
	return s->nretired > 0;
}

const struct config_program settings_program = {
	.name = "iocomd",
	.summary = "The iocom agent: measures this node's load, tells the others, places and\n"
		   "runs jobs.",
	.section = "iocom",
	.file = "/etc/iocom/iocom.conf",
	.keys = keys,
	.nkeys = sizeof(keys) / sizeof(*keys),
	.retired = retired,
	.skip = settings_skip,
};

bool settings_networked(const struct settings *s)
{
	return s->npeers > 0 || s->listen[0];
}

bool settings_is_self(const struct settings *s, const struct settings_peer *peer)
{
	return peer->port == s->port &&
	       (!strcmp(peer->address, s->address) || !strcmp(peer->address, s->listen));
}

static bool wildcard(const char *address)
{
	return !strcmp(address, "0.0.0.0") || !strcmp(address, "[::]") || !strcmp(address, "*");
}

/* Returns 1: ADDRESS is one that each machine has itself; 0: it is not; -1: it is a name. */
static int settings_loopback(const char *address)
{
	char host[IOCOM_ADDRESS_MAX];
	struct in6_addr six;
	struct in_addr four;
	size_t n = strlen(address);
	bool brackets = n > 2 && address[0] == '[' && address[n - 1] == ']';

	snprintf(host, sizeof(host), "%.*s", (int)(n - 2 * brackets), address + brackets);
	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	if (inet_pton(AF_INET6, host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return -1;
}

int settings_reached(const struct settings *s, const char *address, const char *name,
		     struct iocom_err *err)
{
	if (settings_loopback(address) != 1)
		return 0;
	for (size_t i = 0; i < s->npeers; i++)
		if (!settings_loopback(s->peers[i].address))
			return iocom_err_set(err, -EINVAL,
					     "the peer %s is another machine, but this node's "
					     "address is %s%s%s%s, where that machine reaches only "
					     "itself; set listen to the address of this machine "
					     "that its peers know",
					     s->peers[i].address, address, *name ? " (" : "", name,
					     *name ? ")" : "");
	return 0;
}

/*
 * Fills FOUND with the path of PROGRAM.  The build tree has it beside iocomd; an installed one is
 * in libexec.
 */
static void settings_find_program(const char *program, char found[SETTINGS_PATH_MAX])
{
	static const char *const places[] = {"", "../libexec/iocom/"};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return;
	slash[1] = 0;
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s%s", self, places[i], program);
		if (access(path, X_OK) == 0 && strlen(path) < SETTINGS_PATH_MAX) {
			strcpy(found, path);
			return;
		}
	}
}

/* What one setting of the controller says of another. */
static int settings_check_feedback(const struct settings *s, struct iocom_err *err)
{
	struct view_policy policy;

	if (s->feedback.least > s->feedback.most)
		return iocom_err_set(err, -EINVAL,
				     "feedback-min (%g) is more than feedback-max (%g): there is "
				     "no buffer between them",
				     s->feedback.least, s->feedback.most);
	return *s->policy ? settings_policy(s->policy, s->feedback.mode, &policy, err) : 0;
}

int settings_complete(struct settings *s, struct iocom_err *err)
{
	int rc = settings_check_feedback(s, err);

	if (rc)
		return rc;
	if (!s->name[0]) {
		if (gethostname(s->name, sizeof(s->name) - 1))
			return iocom_err_set(err, -errno, "cannot read the host's name: %s",
					     strerror(errno));
		if (check_name(s, s->name, NULL))
			return iocom_err_set(
				err, -EINVAL,
				"the host's name '%s' does not serve as a node name; set "
				"one with --name",
				s->name);
	}
	if (s->npeers && !s->listen[0])
		return iocom_err_set(err, -EINVAL,
				     "peers are named (%s%s), but no address to listen at: they "
				     "could not reach this node; set listen to the address of this "
				     "machine that they know",
				     s->peers[0].address, s->npeers > 1 ? " ..." : "");
	if (settings_networked(s)) {
		if (!s->address[0] && wildcard(s->listen))
			return iocom_err_set(
				err, -EINVAL,
				"listening at every address (%s) needs --address, the one "
				"that peers reach this node at",
				s->listen);
		if (!s->address[0])
			strcpy(s->address, s->listen);
		if (settings_reached(s, s->address, "", err))
			return -EINVAL;
	} else {
		s->address[0] = 0;
	}
	if (!s->data_dir[0] && snprintf(s->data_dir, sizeof(s->data_dir), "%s-data",
					s->state_dir) >= (int)sizeof(s->data_dir))
		return iocom_err_set(err, -EINVAL, "the name of the state directory is too long");
	for (size_t i = 0; i < s->npeers; i++)
		if (!s->peers[i].port)
			s->peers[i].port = (uint16_t)s->port;
	if (s->metrics.address[0] && !s->metrics.port && s->port + METRICS_PORT > UINT16_MAX)
		return iocom_err_set(err, -EINVAL,
				     "--metrics-listen needs a port: %u + %d is not a valid one",
				     s->port, METRICS_PORT);
	if (s->metrics.address[0] && !s->metrics.port)
		s->metrics.port = (uint16_t)(s->port + METRICS_PORT);
	if (!s->shim[0])
		settings_find_program("iocom-shim", s->shim);
	if (!s->net_program[0])
		settings_find_program("iocom-net", s->net_program);
	return 0;
}
