/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "profile": what classes of jobs need, as measured; see balancer/profile/profile.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/accounts.h"
#include "agent/front/front.h"
#include "agent/home/outcomes.h"
#include "user/pack.h"
#include "user/utf8.h"

struct answer {
	struct accounts *accounts;
	struct profile_store *profiles;
	json_t *list;
	const char *class_name; /* "" = all */
};

static json_t *user_json(struct accounts *accounts, uid_t uid)
{
	char name[64];

	accounts_say(accounts, uid, name, sizeof(name));
	return json_string(name);
}

static json_t *class_json(const char *class_name)
{
	char clean[4 * PROFILE_CLASS_MAX];

	utf8_copy(clean, sizeof(clean), class_name, strlen(class_name));
	utf8_plain(clean);
	return json_string(clean);
}

static json_t *phases_json(const struct behaviour *b)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < b->n; i++) {
		const struct behaviour_phase *p = &b->phases[i];

		json_array_append_new(
			list,
			json_pack("{s:f,s:f,s:f,s:f,s:s}", "cpu_ms", p->ms[BEHAVIOUR_CPU], "com_ms",
				  p->ms[BEHAVIOUR_COM], "disk_ms", p->ms[BEHAVIOUR_DISK], "wall_ms",
				  p->wall_ms, "dominant", behaviour_resource_name(p->dominant)));
	}
	return list;
}

static json_t *shares_json(const struct behaviour *b)
{
	double share[BEHAVIOUR_RESOURCES];

	behaviour_shares(b, share);
	return json_pack("{s:f,s:f,s:f}", "cpu", share[BEHAVIOUR_CPU], "com", share[BEHAVIOUR_COM],
			 "disk", share[BEHAVIOUR_DISK]);
}

struct profiles_errors {
	struct profile_error class_error;
	json_t *out; /* of the class; it has a list of its nodes */
};

/* The class comes first, then its nodes. */
static void profiles_add_error(void *arg, const char *node, const struct profile_error *error)
{
	struct profiles_errors *e = arg;

	if (!*node) {
		e->class_error = *error;
		e->out = json_pack("{s:i,s:f,s:f,s:[]}", "jobs", (int)error->jobs, "ratio",
				   exp(error->mean_log), "factor", outcomes_factor(error, NULL),
				   "nodes");
		return;
	}
	json_array_append_new(json_object_get(e->out, "nodes"),
			      json_pack("{s:s,s:i,s:f,s:f}", "node", node, "jobs", (int)error->jobs,
					"ratio", exp(error->mean_log), "factor",
					outcomes_factor(&e->class_error, error)));
}

/* What predictions for the class were off by; null: no job was compared, or it cannot be read. */
static json_t *profiles_corrections_json(const struct answer *answer, uid_t uid,
					 const char *class_name)
{
	struct profiles_errors e = {.out = NULL};
	struct iocom_err ignored;

	if (profile_errors(answer->profiles, uid, class_name, profiles_add_error, &e, &ignored)) {
		json_decref(e.out);
		e.out = NULL;
	}
	return e.out ? e.out : json_null();
}

static void profiles_add(void *arg, uid_t uid, const char *class_name, const struct profile *p)
{
	struct answer *answer = arg;
	const struct behaviour *b = &p->behaviour;
	json_t *last;

	if (answer->class_name[0] && strcmp(answer->class_name, class_name))
		return;
	last = json_pack("{s:f,s:f,s:f,s:f,s:f,s:o,s:i,s:o}", "disk_low_ms", b->disk_low_ms,
			 "disk_high_ms", b->disk_high_ms, "fault_ms", b->fault_ms, "disk_wait_ms",
			 b->disk_wait_ms, "run_wait_ms", b->run_wait_ms, "shares", shares_json(b),
			 "joined_phases", (int)b->joined, "phases", phases_json(b));
	json_array_append_new(
		answer->list,
		json_pack("{s:o,s:o,s:i,s:i,s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:o}", "class",
			  class_json(class_name), "user", user_json(answer->accounts, uid), "uid",
			  (int)uid, "runs", (int)p->runs, "intensive", behaviour_class(b), "cpu_ms",
			  p->cpu_ms, "com_ms", p->com_ms, "disk_ms", p->disk_ms, "memory_mb",
			  p->memory_mb, "requests", profile_requests(p), "implicit_requests",
			  p->fault_requests, "request_kb", profile_request_kb(p), "wall_ms",
			  p->wall_ms, "last_run", last, "corrections",
			  profiles_corrections_json(answer, uid, class_name)));
}

static void profiles_forget(struct front *front, struct client *c, const char *class_name)
{
	struct iocom_err err = {0};
	int rc = profile_forget(front->profiles, client_who(c)->uid, class_name, &err);

	if (rc == -ENOENT)
		client_error(c, "nothing is known about a class '%s' of yours", class_name);
	else if (rc)
		client_error(c, "%s", err.text);
	else
		client_json(c, json_pack("{s:o}", "forgot", class_json(class_name)));
}

void profiles_request(struct front *front, struct client *c, const msgpack_object *request)
{
	uid_t uid = client_who(c)->uid;
	char class_name[PROFILE_CLASS_MAX] = "";
	struct answer answer = {
		.accounts = front->accounts, .profiles = front->profiles, .class_name = class_name};
	struct iocom_err err = {0};
	bool forgets = false;

	if (unpack_get(request, "class") &&
	    unpack_str(request, "class", class_name, sizeof(class_name))) {
		client_error(c, "\"class\" is not a name of up to %d bytes", PROFILE_CLASS_MAX - 1);
		return;
	}
	unpack_bool(request, "forget", &forgets);
	if (forgets) {
		profiles_forget(front, c, class_name);
		return;
	}
	/* The profiles include jobs that ended a moment ago. */
	guest_settle(front->guest);
	answer.list = json_array();
	if (profile_list(front->profiles, uid == 0 ? (uid_t)-1 : uid, profiles_add, &answer,
			 &err)) {
		json_decref(answer.list);
		client_error(c, "%s", err.text);
		return;
	}
	client_json(c, json_pack("{s:o}", "profiles", answer.list));
}
