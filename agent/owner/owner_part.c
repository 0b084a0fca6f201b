/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The rules in force, and what is asked of them; see owner_part.h. */
#include "agent/owner/owner_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/accounts.h"
#include "user/clock.h"
#include "user/utf8.h"

#define CAPS_AGAIN_NS  (10 * CLOCK_NS_PER_S) /* processors come and go */
#define STORE_AGAIN_NS (5 * CLOCK_NS_PER_S)  /* a disk is full for a while */

/* --- now ---------------------------------------------------------------------------- */

void owner_part_moment(struct owner_part *part, uint64_t age_ns, struct owner_moment *moment)
{
	time_t now = (time_t)(loop_real_ns(part->base->loop) / CLOCK_NS_PER_S);
	struct guest_use use;

	*moment = (struct owner_moment){.present = owner_presence(part, age_ns)};
	if (part->rules.state == OWNER_DRAINING && part->guest) {
		guest_use(part->guest, &use);
		moment->guests = use.jobs;
	}
	localtime_r(&now, &moment->local);
}

/* What others are told is ASCII. */
static void part_ascii(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static bool part_says(struct owner_part *part, uint64_t age_ns, char *out, size_t size)
{
	struct owner_moment moment;
	bool accepts;

	owner_part_moment(part, age_ns, &moment);
	accepts = owner_says(&part->rules, &moment, out, size);
	if (accepts && !part->base->set->accept_jobs) {
		snprintf(out, size, "closed: accept_jobs = no");
		accepts = false;
	}
	part_ascii(out);
	return accepts;
}

void owner_part_tell(struct owner_part *part)
{
	char says[sizeof(part->says)];
	bool accepts = part_says(part, OWNER_REST_NS, says, sizeof(says));

	if (part->said && accepts == part->accepts && !strcmp(says, part->says))
		return;
	if (part->said)
		log_write(part->base->log, LOG_L_INFO, "owner: guests %s%s%s",
			  accepts ? "get in" : "do not get in", *says ? ": " : "", says);
	part->said = true;
	part->accepts = accepts;
	memcpy(part->says, says, sizeof(says));
	part->config.ports.says(part->config.ports.arg, accepts, says);
}

/* RC and ERR are owner_store_write's. */
static void part_set_unwritten(struct owner_part *part, int rc, const struct iocom_err *err)
{
	part->unwritten.text[0] = 0;
	if (rc < 0)
		iocom_err_set(&part->unwritten, rc,
			      "holds until this agent ends, because it cannot be written: %s",
			      err->text);
	else if (rc)
		iocom_err_set(&part->unwritten, rc,
			      "is written, but a power cut may bring the former rules back: %s",
			      err->text);
}

int owner_part_new(struct owner_part **out, const struct owner_config *config,
		   struct iocom_err *err)
{
	struct owner_part *part = calloc(1, sizeof(*part));

	if (!part)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	part->config = *config;
	part->base = config->base;
	part->sessions.entry.fd = -1;
	snprintf(part->path, sizeof(part->path), "%s/owner.rules", config->base->set->state_dir);
	owner_store_load(part);
	*out = part;
	return 0;
}

/* Writes what could not be written.  Returns as owner_store_write. */
static int part_store_again(struct owner_part *part)
{
	struct iocom_err err = {0};
	int rc = owner_store_write(part, &part->rules, &err);

	part->tried_ns = loop_boot_ns(part->base->loop);
	if (!rc)
		log_write(part->base->log, LOG_L_INFO,
			  "owner: the rules in force are written now, and survive a restart");
	part_set_unwritten(part, rc, &err);
	return rc;
}

void owner_part_free(struct owner_part *part)
{
	if (!part)
		return;
	owner_sessions_stop(part);
	if (part->unwritten.text[0] && part_store_again(part))
		log_write(part->base->log, LOG_L_ERROR,
			  "owner: the rules in force may be lost with this agent: %s",
			  part->unwritten.text);
	free(part);
}

static void part_warn_log(void *log, const char *text)
{
	log_write(log, LOG_L_WARNING, "%s", text);
}

static void part_names_log(const struct owner_part *part)
{
	const struct settings *set = part->base->set;

	owner_names_unknown(part, "owners =", set->owners, part_warn_log, part->base->log);
	owner_names_unknown(part, "administrators =", set->administrators, part_warn_log,
			    part->base->log);
}

void owner_part_begin(struct owner_part *part, struct guest *guest)
{
	part->guest = guest;
	owner_part_tell(part);
	owner_caps_begin(part);
	part_names_log(part);
}

void owner_part_chores(struct owner_part *part)
{
	owner_part_tell(part);
	if (part->capped && loop_boot_ns(part->base->loop) - part->capped_ns >= CAPS_AGAIN_NS)
		owner_caps_apply(part);
	if (part->unwritten.text[0] &&
	    loop_boot_ns(part->base->loop) - part->tried_ns >= STORE_AGAIN_NS)
		(void)part_store_again(part);
}

void owner_part_reload(struct owner_part *part)
{
	owner_part_tell(part);
	part_names_log(part);
}

/* --- the answer ----------------------------------------------------------------------- */

static json_t *part_caps_json(const struct owner_part *part)
{
	json_t *caps = json_object();
	char cap[32], held[256];

	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++) {
		if (part->rules.caps[at].unit == OWNER_NO_CAP)
			continue;
		owner_cap_text(at, &part->rules.caps[at], cap, sizeof(cap));
		owner_caps_held(part, at, held, sizeof(held));
		json_object_set_new(caps, owner_resource_names[at],
				    json_pack("{s:s,s:s}", "cap", cap, "held", held));
	}
	return caps;
}

static json_t *part_closed_json(const struct owner_rules *r)
{
	json_t *closed = json_array();

	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++)
		if (r->shut[at])
			json_array_append_new(closed, json_string(owner_resource_names[at]));
	return closed;
}

/* What the owner should know of the rules in force. */
static json_t *part_warnings_json(const struct owner_part *part)
{
	json_t *warnings = json_array();
	char text[200];

	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++)
		if (owner_caps_idle(part, at, text, sizeof(text)))
			json_array_append_new(warnings, json_string(text));

	if (part->unwritten.text[0])
		json_array_append_new(warnings, json_string(part->unwritten.text));
	return warnings;
}

static json_t *part_json(struct owner_part *part)
{
	const struct owner_rules *r = &part->rules;
	char hours[2 * OWNER_LIST_MAX], boot[17], says[sizeof(part->says)];
	bool accepts = part_says(part, OWNER_NOW_NS, says, sizeof(says));
	struct guest_use use = {0};

	if (part->guest)
		guest_use(part->guest, &use);
	owner_hours_text(r, hours, sizeof(hours));
	snprintf(boot, sizeof(boot), "%016llx", (unsigned long long)part->base->boot_id);
	return json_pack("{s:i,s:s,s:s,s:s,s:s,s:b,s:s,s:s,s:I,s:o,s:o,s:{s:s,s:s},s:{s:s,s:s},s:s,"
			 "s:{s:b,s:i,s:b},s:I,s:o}",
			 "version", 1, "node", part->base->set->name, "boot_id", boot, "state",
			 owner_state_name(r->state), "says", says, "accepts", accepts, "reason",
			 r->reason, "by", r->by, "since_s", (json_int_t)r->since_s, "caps",
			 part_caps_json(part), "closed", part_closed_json(r), "users", "allow",
			 r->users_allow, "deny", r->users_deny, "classes", "allow",
			 r->classes_allow, "deny", r->classes_deny, "hours", hours, "presence",
			 "on", r->presence, "idle_s", (int)r->idle_s, "somebody",
			 r->presence && part->somebody, "guests", (json_int_t)use.jobs, "warnings",
			 part_warnings_json(part));
}

/* --- what is asked --------------------------------------------------------------------- */

/* Returns 0; -ENOENT: some of the jobs named are no guests here, as ERR says. */
static int part_expel(struct owner_part *part, const struct owner_ask *ask, size_t *count,
		      struct iocom_err *err)
{
	char missing[OWNER_LIST_MAX] = "";
	uint32_t grace_s = ask->grace_s ? ask->grace_s : OWNER_GRACE_S;
	char why[160];

	snprintf(why, sizeof(why), "expelled by the owner of node %.40s%s%s", part->base->set->name,
		 *ask->reason ? ": " : "", ask->reason);
	*count = 0;
	for (size_t i = 1; i < ask->nwords; i++) {
		size_t found = guest_expel(part->guest, ask->words[i], why, grace_s), n;

		*count += found;
		n = strlen(missing);
		if (!found)
			snprintf(missing + n, sizeof(missing) - n, "%s%.100s", n ? ", " : "",
				 ask->words[i]);
	}
	if (ask->nwords == 1)
		*count = guest_expel(part->guest, "", why, grace_s);
	if (!*missing)
		return 0;
	return iocom_err_set(err, -ENOENT,
			     "node %s has no guest %s (a job's whole name, as `iocom jobs` shows "
			     "it); expelled: %zu",
			     part->base->set->name, missing, *count);
}

static int part_change(struct owner_part *part, const struct owner_rules *rules,
		       struct iocom_err *err)
{
	int rc = owner_store_write(part, rules, err);

	/* An owner must be able to close the node on a full disk, too. */
	if (rc < 0 && !owner_narrows(&part->rules, rules)) {
		char why[sizeof(err->text)];

		memcpy(why, err->text, sizeof(why));
		return iocom_err_set(err, rc, "%.400s; nothing is changed", why);
	}
	part_set_unwritten(part, rc, err);
	part->tried_ns = loop_boot_ns(part->base->loop);
	part->rules = *rules;
	part->seen_ns = 0;
	part->base->counters->owner_changes++;
	owner_caps_apply(part);
	owner_part_tell(part);
	return 0;
}

/* Logs who asks what, and how it ended. */
static void part_audit(const struct owner_part *part, const struct owner_ask *ask, const char *who,
		       uid_t uid, const char *outcome)
{
	char what[400];

	owner_ask_text(ask, what, sizeof(what));
	utf8_plain(what);
	log_write(part->base->log, LOG_L_INFO, "owner: %s (uid %u): %s: %s", who, (unsigned)uid,
		  what, outcome);
}

/* Writes who asks into WHO, and returns it. */
static const char *part_who(const struct owner_part *part, uid_t uid, const char *from,
			    char who[OWNER_BY_MAX])
{
	char user[64] = "";

	accounts_say(part->config.accounts, uid, user, sizeof(user));
	snprintf(who, OWNER_BY_MAX, "%.30s@%.40s", user, *from ? from : part->base->set->name);
	return who;
}

int owner_part_refuse(struct owner_part *part, uid_t uid, const char *from, const char *why,
		      struct iocom_err *err)
{
	char who[OWNER_BY_MAX];

	part->base->counters->owner_refused++;
	log_provoked(part->base->log, LOG_L_WARNING, "owner: refused %s (uid %u): %s",
		     part_who(part, uid, from, who), (unsigned)uid, why);
	return iocom_err_set(err, -EPERM, "%s", why);
}

static void part_warn_json(void *warnings, const char *text)
{
	json_array_append_new(warnings, json_string(text));
}

static void part_names_json(const struct owner_part *part, json_t *warnings)
{
	const struct owner_rules *r = &part->rules;

	owner_names_unknown(part, "users allow", r->users_allow, part_warn_json, warnings);
	owner_names_unknown(part, "users deny", r->users_deny, part_warn_json, warnings);
}

int owner_part_obey(struct owner_part *part, const struct owner_ask *ask, uid_t uid,
		    const char *from, json_t **answer, struct iocom_err *err)
{
	struct owner_rules rules = part->rules;
	char who[OWNER_BY_MAX] = "";
	size_t expelled = 0;
	int what;

	if (!owner_ask_is_show(ask))
		(void)part_who(part, uid, from, who);
	what = owner_ask_apply(ask, who, loop_real_ns(part->base->loop) / CLOCK_NS_PER_S, &rules,
			       err);
	if (what != OWNER_SHOW) {
		char why[300];

		/* Who may not learns nothing but that. */
		if (!owner_admit_change(part, uid, from, why, sizeof(why)))
			return owner_part_refuse(part, uid, from, why, err);
	}
	if (what < 0)
		return what;
	if (what == OWNER_CHANGE) {
		int rc = part_change(part, &rules, err);

		part_audit(part, ask, who, uid, rc ? err->text : "done");
		if (rc)
			return rc;
		if (part->unwritten.text[0])
			log_write(part->base->log, LOG_L_WARNING, "owner: this %s",
				  part->unwritten.text);
	} else if (what == OWNER_EXPEL) {
		int rc = part_expel(part, ask, &expelled, err);

		part_audit(part, ask, who, uid, rc ? err->text : "done");
		if (rc)
			return rc;
	}
	*answer = part_json(part);
	if (*answer && what == OWNER_CHANGE && !strcmp(ask->words[0], "users"))
		part_names_json(part, json_object_get(*answer, "warnings"));
	if (*answer && what == OWNER_EXPEL)
		json_object_set_new(*answer, "expelled", json_integer((json_int_t)expelled));
	return *answer ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
}
