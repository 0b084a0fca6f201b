/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "profile": what classes of jobs need, as measured; see balancer/profile/profile.h. */
#include <math.h>
#include <string.h>

#include "agent/base/accounts.h"
#include "agent/front/front.h"
#include "agent/front/profiles.h"
#include "agent/home/outcomes.h"
#include "balancer/profile/profile_runs.h"
#include "balancer/profile/profile_talk.h"
#include "user/pack.h"

/*
 * What is expected of a class takes half a millisecond, and a cluster's users have thousands: the
 * list comes in parts, between which the agent does its other work.
 */
#define PROFILES_PART 100

struct answer {
	struct accounts *accounts;
	struct profile_store *profiles;
	json_t *list;
	double input_mb; /* of the next run; below 0: unknown */
};

static json_t *user_json(struct accounts *accounts, uid_t uid)
{
	char name[64];

	accounts_say(accounts, uid, name, sizeof(name));
	return json_string(name);
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

/* What is estimated of each need, and from what. */
static json_t *profiles_estimates_json(const struct profile_expected *e)
{
	json_t *out = json_object();

	for (enum profile_need f = 0; out && f < PROFILE_NEEDS; f++) {
		const struct estimate *x = &e->of[f];
		json_t *one = json_pack("{s:f,s:f,s:f,s:s,s:i,s:b}", "value", x->value, "spread",
					x->spread, "confidence", x->confidence, "word",
					estimate_confidence_word(x->confidence), "runs",
					(int)x->runs, "by_input", x->line);

		if (x->line) {
			json_object_set_new(one, "base", json_real(x->base));
			json_object_set_new(one, "per_mb", json_real(x->per_mb));
		}
		json_object_set_new(out, profile_need_name(f), one);
	}
	return out;
}

static json_t *profiles_set_json(const struct need_options *set)
{
	json_t *out = json_object();

	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		if (set->value[f] >= 0)
			json_object_set_new(out, need_name(f), json_real(set->value[f]));
	return out;
}

static json_t *profiles_last_json(const struct behaviour *b)
{
	return json_pack("{s:f,s:f,s:f,s:f,s:f,s:o,s:i,s:o}", "disk_low_ms", b->disk_low_ms,
			 "disk_high_ms", b->disk_high_ms, "fault_ms", b->fault_ms, "disk_wait_ms",
			 b->disk_wait_ms, "run_wait_ms", b->run_wait_ms, "shares", shares_json(b),
			 "joined_phases", (int)b->joined, "phases", phases_json(b));
}

/* What is expected of the class's next run, of which the input is known at most. */
static void profiles_expect(const struct answer *answer, uid_t uid, const char *class_name,
			    const struct profile *averages, struct profile_expected *out)
{
	const struct profile_next next = {.input_mb = answer->input_mb, .home = ""};
	struct iocom_err ignored;

	if (!profile_expect(answer->profiles, uid, class_name, &next, out, &ignored))
		return;
	*out = (struct profile_expected){.profile = *averages, .input_mb = answer->input_mb};
	need_options_init(&out->set);
}

/* Who of its ranks sends how much to whom; NULL: it is no class of parallel jobs. */
static json_t *profiles_talk_json(const struct answer *answer, uid_t uid, const char *class_name)
{
	struct profile_talk t;
	struct iocom_err ignored;
	double bytes = 0, messages = 0;
	size_t seen = 0;
	json_t *out;

	if (profile_talk_get(answer->profiles, uid, class_name, &t, &ignored))
		return NULL;
	for (size_t i = 0; i < t.n; i++) {
		bytes += t.pairs[i].bytes;
		messages += t.pairs[i].messages;
		seen += t.pairs[i].seen;
	}
	out = json_pack("{s:i,s:i,s:s,s:i,s:i,s:f,s:f}", "tasks", (int)t.tasks, "runs", (int)t.runs,
			"pattern", pattern_name(t.pattern), "pairs", (int)t.n, "seen_pairs",
			(int)seen, "bytes", bytes, "messages", messages);
	if (t.pattern == PATTERN_MASTER)
		json_object_set_new(out, "master", json_integer(t.master));
	profile_talk_fini(&t);
	return out;
}

static void profiles_add(void *arg, uid_t uid, const char *class_name, const struct profile *row)
{
	struct answer *answer = arg;
	struct profile_expected e;
	const struct profile *p = &e.profile;
	json_t *one, *talk;

	profiles_expect(answer, uid, class_name, row, &e);
	one = json_pack("{s:o,s:o,s:i,s:i,s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:o}", "class",
			profiles_class_json(class_name), "user", user_json(answer->accounts, uid),
			"uid", (int)uid, "runs", (int)p->runs, "intensive",
			p->runs && p->behaviour.n ? behaviour_class(&p->behaviour) : "unknown",
			"cpu_ms", p->cpu_ms, "com_ms", p->com_ms, "disk_ms", p->disk_ms,
			"memory_mb", p->memory_mb, "requests", profile_requests(p),
			"implicit_requests", p->fault_requests, "request_kb", profile_request_kb(p),
			"wall_ms", p->wall_ms, "last_run", profiles_last_json(&p->behaviour),
			"corrections", profiles_corrections_json(answer, uid, class_name));
	json_object_set_new(one, "needs", profiles_estimates_json(&e));
	json_object_set_new(one, "set", profiles_set_json(&e.set));
	json_object_set_new(one, "runs_used", json_integer(e.used));
	json_object_set_new(one, "cold_runs", json_integer(e.cold_runs));
	json_object_set_new(one, "warm_runs", json_integer(e.warm_runs));
	json_object_set_new(one, "warm", json_boolean(e.warm && e.used));
	json_object_set_new(one, "input_mb", e.input_mb < 0 ? json_null() : json_real(e.input_mb));
	talk = profiles_talk_json(answer, uid, class_name);
	if (talk)
		json_object_set_new(one, "talk", talk);
	json_array_append_new(answer->list, one);
}

/* Reads whose profiles are asked about.  Returns false after an answer: only root may name one. */
static bool profiles_whose(struct client *c, const msgpack_object *request, uid_t *uid, bool *named)
{
	uint64_t asked;

	*uid = client_who(c)->uid;
	*named = unpack_get(request, "uid") != NULL;
	if (!*named)
		return true;
	if (unpack_u64(request, "uid", &asked) || asked >= UINT32_MAX) {
		client_error(c, "\"uid\" is not the number of a user");
		return false;
	}
	if (*uid != 0 && asked != *uid) {
		client_error(c, "only root sees and changes the profiles of other users");
		return false;
	}
	*uid = (uid_t)asked;
	return true;
}

/* "next" tells where the next part begins.  A class that comes or goes meanwhile moves that. */
static void profiles_answer_list(struct front *front, struct client *c, struct answer *answer,
				 const struct profile_part *part)
{
	struct iocom_err err = {0};
	json_t *out;

	answer->list = json_array();
	if (profile_list_part(front->profiles, part, profiles_add, answer, &err)) {
		json_decref(answer->list);
		client_error(c, "%s", err.text);
		return;
	}
	out = json_pack("{s:O}", "profiles", answer->list);
	if (json_array_size(answer->list) == part->most)
		json_object_set_new(out, "next",
				    json_integer((json_int_t)(part->skip + part->most)));
	json_decref(answer->list);
	client_json(c, out);
}

void profiles_request(struct front *front, struct client *c, const msgpack_object *request)
{
	char class_name[PROFILE_CLASS_MAX] = "", what[16] = "";
	struct answer answer = {
		.accounts = front->accounts, .profiles = front->profiles, .input_mb = -1};
	uint64_t skip = 0;
	bool named;
	uid_t uid;

	if (unpack_get(request, "class") &&
	    unpack_str(request, "class", class_name, sizeof(class_name))) {
		client_error(c, "\"class\" is not a name of up to %d bytes", PROFILE_CLASS_MAX - 1);
		return;
	}
	if (unpack_get(request, "what") && unpack_str(request, "what", what, sizeof(what))) {
		client_error(c,
			     "the agent does not know what is to be done with profiles; is it an "
			     "older version?");
		return;
	}
	if (unpack_get(request, "input_mb") &&
	    (unpack_f64(request, "input_mb", &answer.input_mb) || !(answer.input_mb >= 0) ||
	     answer.input_mb > PROFILE_NEED_MAX)) {
		client_error(c, "\"input_mb\" is not a size");
		return;
	}
	if (unpack_get(request, "from") &&
	    (unpack_u64(request, "from", &skip) || skip > UINT32_MAX)) {
		client_error(c, "\"from\" is not the number of a class");
		return;
	}
	if (!profiles_whose(c, request, &uid, &named))
		return;
	/* The profiles include jobs that ended a moment ago. */
	guest_settle(front->guest);
	if (*what && strcmp(what, "list") != 0)
		profiles_change(front, c, request, what, uid, class_name);
	else
		profiles_answer_list(front, c, &answer,
				     &(struct profile_part){
					     .uid = uid == 0 && !named ? (uid_t)-1 : uid,
					     .class_name = class_name,
					     .skip = skip,
					     .most = PROFILES_PART,
				     });
}
