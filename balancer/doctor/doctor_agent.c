/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Checks the running agent.  If an agent answers, it tells its settings: later checks use them,
 * and they are compared with what the agent would read if it started again now, from its own
 * command line and file.
 */
#include "balancer/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/listing.h"
#include "user/pack.h"

#define ANSWER_S   5
#define ARGS_MAX   128
#define NEARLY	   0.9 /* full */
#define PEERS_SAID 8   /* peers with a line of their own */

int doctor_agent_ask(const char *run_dir, const msgpack_sbuffer *request, struct ucred *who,
		     json_t **answer, struct iocom_err *err)
{
	struct timeval limit = {.tv_sec = ANSWER_S};
	struct ucred ignored;
	socklen_t size = sizeof(*who);
	int fd, rc = client_connect(run_dir, &fd, err);

	if (!who)
		who = &ignored;

	if (rc)
		return rc;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &size))
		*who = (struct ucred){.pid = 0, .uid = (uid_t)-1};
	/* The answer decides which paths we check and read: accept it only from root. */
	if (who->uid != 0) {
		close(fd);
		return iocom_err_set(err, -EPERM, "%s is served by user %u, pid %d, not by root",
				     run_dir, (unsigned)who->uid, (int)who->pid);
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	rc = client_request(fd, request->data, request->size, answer, err);
	close(fd);
	if (rc == -EAGAIN)
		iocom_err_set(err, rc, "the agent at %s accepts but does not answer within %d s",
			      run_dir, ANSWER_S);
	return rc;
}

static int ask_status(const char *run_dir, struct ucred *who, json_t **answer,
		      struct iocom_err *err)
{
	msgpack_sbuffer request;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &request, 2);
	pack_str(&pk, "op", "status");
	pack_u64(&pk, "v", 1);
	rc = doctor_agent_ask(run_dir, &request, who, answer, err);
	msgpack_sbuffer_destroy(&request);
	return rc;
}

/* --- its losses, and how full it is ------------------------------------------------ */

/* Lists all losses as "name count".  Returns how many there are. */
static size_t doctor_agent_lost(const json_t *drops, char *out, size_t size)
{
	json_t *map = (json_t *)drops, *count;
	size_t n = 0, at = 0;
	const char *name;

	out[0] = 0;
	json_object_foreach (map, name, count) {
		if (json_integer_value(count) <= 0)
			continue;
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s %" JSON_INTEGER_FORMAT,
					       n ? ", " : "", name, json_integer_value(count));
		n++;
	}
	return n;
}

static void check_bounds(struct doctor *d, const json_t *bounds)
{
	char full[512] = "";
	size_t i, at = 0;
	json_t *bound;

	json_array_foreach (bounds, i, bound) {
		json_int_t used = json_integer_value(json_object_get(bound, "used"));
		json_int_t max = json_integer_value(json_object_get(bound, "max"));

		if (!max || json_is_true(json_object_get(bound, "turns")) ||
		    (double)used < NEARLY * (double)max || at >= sizeof(full))
			continue;
		at += (size_t)snprintf(full + at, sizeof(full) - at,
				       "%s%s %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT,
				       at ? ", " : "", listing_string(bound, "name"), used, max);
	}
	if (!bounds)
		return;
	if (*full)
		doctor_add(d, "bounds", DOCTOR_DEGRADED,
			   "requests beyond a bound are refused; iocomd(8), BOUNDS, says where",
			   "%s", full);
	else
		doctor_add(d, "bounds", DOCTOR_OK, NULL,
			   "none of the agent's %zu bounds is nearly reached",
			   json_array_size(bounds));
}

/* Writes "N UNIT", or "any number of UNIT" where there is no limit. */
static void say_limit(char *out, size_t size, const json_t *limit, const char *unit)
{
	if (json_is_integer(limit))
		snprintf(out, size, "%" JSON_INTEGER_FORMAT " %s", json_integer_value(limit), unit);
	else
		snprintf(out, size, "any number of %s", unit);
}

/* An agent before user_tasks_max and user_memory_mb says nothing of them. */
static void check_user_limits(struct doctor *d, const json_t *limits)
{
	const json_t *missing = json_object_get(limits, "missing");
	char tasks[64], memory[64];
	json_t *check;

	if (!limits)
		return;
	say_limit(tasks, sizeof(tasks), json_object_get(limits, "tasks"), "tasks");
	say_limit(memory, sizeof(memory), json_object_get(limits, "memory_mb"), "MiB of memory");
	if (json_array_size(missing))
		check = doctor_add(
			d, "user-limits", DOCTOR_DEGRADED,
			"give the jobs' cgroup the controllers pids and memory; iocomd(8), "
			"USERS' LIMITS",
			"nothing keeps one user's jobs from using all %s of this machine",
			json_array_size(missing) > 1
				? "tasks and memory"
				: json_string_value(json_array_get(missing, 0)));
	else
		check = doctor_add(d, "user-limits", DOCTOR_OK, NULL,
				   "one user's jobs together: %s, %s", tasks, memory);
	json_object_set(check, "limits", (json_t *)limits);
}

/* --- its peers --------------------------------------------------------------------- */

/* A line for each configured peer that is not heard; an agent before `nodes --peers` tells none. */
static void check_peers(struct doctor *d, const json_t *peers)
{
	size_t i, missing = 0;
	json_t *p, *check = NULL;

	json_array_foreach (peers, i, p) {
		const char *why = listing_string(p, "why"), *advice = listing_string(p, "advice");

		if (json_is_true(json_object_get(p, "heard")))
			continue;
		if (++missing > PEERS_SAID)
			continue;
		check = doctor_add(d, "peers", DOCTOR_DEGRADED, *advice ? advice : NULL,
				   "%s is not heard: %s%s%s", listing_string(p, "peer"),
				   listing_string(p, "state"), *why ? ": " : "", why);
		json_object_set(check, "peer", p);
	}
	if (missing > PEERS_SAID)
		doctor_add(d, "peers", DOCTOR_DEGRADED, "`iocom nodes --peers` says why",
			   "%zu more peer%s not heard", missing - PEERS_SAID,
			   missing - PEERS_SAID == 1 ? " is" : "s are");
	else if (!missing && json_array_size(peers))
		doctor_add(d, "peers", DOCTOR_OK, NULL, "all %zu configured peers are heard",
			   json_array_size(peers));
}

/* An agent from before it could set them aside says nothing of them. */
static void check_profiles(struct doctor *d, const json_t *profiles)
{
	const char *aside = json_string_value(json_object_get(profiles, "aside"));

	if (!profiles)
		return;
	if (aside)
		doctor_add(
			d, "profiles", DOCTOR_DEGRADED,
			"nothing needs to be done: learning has begun anew; a copy of before, if "
			"there is one (iocom profile export), can be imported",
			"the class profiles were set aside as %.300s: %.300s", aside,
			listing_string(profiles, "why"));
	else
		doctor_add(d, "profiles", DOCTOR_OK, NULL, "the class profiles are in order");
}

/* --- its settings ----------------------------------------------------------------- */

/*
 * Takes the settings that later checks use.  Keys that this user may not see keep the file's
 * value.
 */
static void take_settings(struct doctor *d, const json_t *settings)
{
	json_t *map = (json_t *)settings, *value;
	const char *name;

	json_object_foreach (map, name, value)
		config_set(&settings_program, name, json_string_value(value), &d->set, NULL);
	d->configured |= settings != NULL;
}

/*
 * Puts the words of PID's command line, from the second on, into TEXT.  Returns how many; 0:
 * not visible.
 */
static int doctor_agent_command_line(pid_t pid, char *text, size_t size, char **words)
{
	char path[64];
	ssize_t n;
	int fd, count = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || (size_t)n == size - 1)
		return 0;
	text[n] = 0;
	for (char *at = text; at < text + n && count < ARGS_MAX; at += strlen(at) + 1)
		words[count++] = at;
	words[count] = NULL;
	return count;
}

/*
 * Reads what a start with the agent's own options would read now; PID 0: a start without options.
 * Returns 0 or negative errno with the reason in ERR.
 */
static int read_again(const struct doctor *d, pid_t pid, struct settings *set,
		      struct iocom_err *err)
{
	static char *none[] = {(char *)"iocomd", NULL};
	char *words[ARGS_MAX + 1], *text = malloc(1 << 16);
	int n = text && pid ? doctor_agent_command_line(pid, text, 1 << 16, words) : 0;
	int rc = config_load(&settings_program, n ? n : 1, n ? words : none, set, err);
	bool shim, net;

	free(text);
	if (!rc && d->config) /* the user asked about this file, so it decides */
		rc = config_read(&settings_program, d->config, set, err);
	shim = !rc && !set->shim[0];
	net = !rc && !set->net_program[0];
	if (!rc)
		rc = settings_complete(set, err);
	if (shim) /* look beside iocomd, not beside us */
		set->shim[0] = 0;
	if (net)
		set->net_program[0] = 0;
	return rc > 0 ? -EINVAL : rc;
}

/*
 * Lists the settings in RUNS that differ from SET: "name=value, which would be 'other' WHEN;
 * ...".
 */
static void doctor_agent_compare(const json_t *runs, struct settings *set, const char *when,
				 char *says, size_t size, json_t *differs)
{
	size_t at = 0;

	for (size_t i = 0; i < settings_program.nkeys; i++) {
		const struct config_key *key = &settings_program.keys[i];
		const char *now = json_string_value(json_object_get(runs, key->name));
		char *file = now ? settings_text(set, key) : NULL;

		if (file && strcmp(now, file) != 0 &&
		    (*file ||
		     (strcmp(key->name, "shim") != 0 && strcmp(key->name, "net-program") != 0))) {
			if (at < size)
				at += (size_t)snprintf(says + at, size - at,
						       "%s%s=%.200s, which would be '%.200s'%s",
						       at ? "; " : "", key->name, now, file, when);
			json_array_append_new(differs,
					      json_pack("{s:s,s:s,s:s}", "setting", key->name,
							"runs", now, "file", file));
		}
		free(file);
	}
}

/*
 * Reports that the agent runs with what its own options and the file give now, and what the
 * options change.
 */
static json_t *say_same(struct doctor *d, const json_t *runs)
{
	struct settings *set = calloc(1, sizeof(*set));
	json_t *options = json_array(), *check;
	struct iocom_err err = {0};
	char says[1024] = "";
	int rc = set ? read_again(d, 0, set, &err) : -ENOMEM;

	if (!rc)
		doctor_agent_compare(runs, set, "", says, sizeof(says), options);
	free(set);
	if (rc || *says)
		check = doctor_add(
			d, "settings", DOCTOR_OK, NULL,
			"the agent's settings are those that a start with the same options would "
			"read now; without them: %s%s",
			rc ? "it would not start: " : "", rc ? err.text : says);
	else
		check = doctor_add(d, "settings", DOCTOR_OK, NULL,
				   "the agent's settings are those that a start would read now%s",
				   d->root ? "" : ", as far as you are told");
	json_object_set_new(check, "by_options", options);
	return check;
}

static void doctor_agent_check_settings(struct doctor *d, pid_t pid, const json_t *runs)
{
	json_t *differs = json_array(), *check;
	struct settings *set = calloc(1, sizeof(*set));
	struct iocom_err err = {0};
	char says[1024] = "";

	if (!set || read_again(d, pid, set, &err)) {
		doctor_add(d, "settings", set ? DOCTOR_DEGRADED : DOCTOR_SKIPPED,
			   "the agent would not start again",
			   "what a start would read now is wrong: %s", err.text);
		free(set);
		json_decref(differs);
		return;
	}
	doctor_agent_compare(runs, set, " now", says, sizeof(says), differs);
	check = *says ? doctor_add(d, "settings", DOCTOR_DEGRADED, "restart the agent",
				   "the agent runs with %s", says)
		      : say_same(d, runs);
	json_object_set_new(check, "differs", differs);
	free(set);
}

static void doctor_agent_told(struct doctor *d, const struct ucred *who, json_t *answer)
{
	const char *version = listing_string(answer, "iocom");
	const json_t *settings = json_object_get(answer, "settings");
	char span[32], drops[512];
	json_t *check;

	listing_span(span, sizeof(span), listing_number(answer, "uptime_s") * 1000);
	d->agent_pid = (pid_t)listing_number(answer, "pid");
	if (strcmp(version, IOCOM_VERSION) != 0)
		check = doctor_add(d, "agent", DOCTOR_DEGRADED, "restart the agent",
				   "node %s runs iocomd %s, this is iocom %s",
				   listing_string(answer, "node"), version, IOCOM_VERSION);
	else
		check = doctor_add(d, "agent", DOCTOR_OK, NULL,
				   "node %s, iocomd %s, pid %d, up %s, hears %.0f others",
				   listing_string(answer, "node"), version, (int)d->agent_pid, span,
				   listing_number(answer, "others"));
	json_object_set(check, "status", answer);
	if (settings) {
		doctor_agent_check_settings(d, who->pid, settings);
		take_settings(d, settings);
	}
	if (doctor_agent_lost(json_object_get(answer, "drops"), drops, sizeof(drops)))
		doctor_add(d, "drops", DOCTOR_DEGRADED, "iocom-top(1), JSON, says what each means",
			   "the agent could not count everything: %s", drops);
	else
		doctor_add(d, "drops", DOCTOR_OK, NULL, "the agent has lost nothing");
	check_bounds(d, json_object_get(answer, "bounds"));
	check_user_limits(d, json_object_get(answer, "user_limits"));
	check_peers(d, json_object_get(answer, "peers"));
	check_profiles(d, json_object_get(answer, "profiles"));
}

/* Returns whether an agent is meant to run here: root asks, or one was set up. */
static bool expected(const struct doctor *d)
{
	return d->root || d->config || !access(settings_program.file, F_OK) ||
	       !access(d->run_dir, F_OK);
}

void doctor_agent(struct doctor *d)
{
	struct iocom_err err = {0};
	json_t *answer = NULL;
	struct ucred who = {0};
	int rc = ask_status(d->run_dir, &who, &answer, &err);

	if (!rc)
		doctor_agent_told(d, &who, answer);
	else if ((rc == -ENOENT || rc == -ECONNREFUSED) && !d->no_agent && expected(d))
		doctor_add(d, "agent", DOCTOR_BROKEN,
			   "start it (systemctl start iocomd), or use --no-agent if none should "
			   "run yet",
			   "no agent runs: nothing answers in %s", d->run_dir);
	else if (rc == -ENOENT || rc == -ECONNREFUSED || rc == -EACCES)
		doctor_add(d, "agent", DOCTOR_SKIPPED, NULL, "%s", err.text);
	else if (rc == -EPERM)
		doctor_add(d, "agent", DOCTOR_BROKEN, "stop it", "%s", err.text);
	else
		doctor_add(d, "agent", rc == -EIO ? DOCTOR_DEGRADED : DOCTOR_BROKEN,
			   rc == -EIO ? NULL : "restart the agent", "%s", err.text);
	json_decref(answer);
}
