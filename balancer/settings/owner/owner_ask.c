/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is asked of an owner's node, and what it changes:
 *
 *   show
 *   open [disk|network]       close [disk|network]       drain       resume
 *   cap none | RESOURCE=VALUE...
 *   users|classes allow|deny LIST            LIST "all" (allow) or "none" (deny): no such list
 *   hours always | SPANS                     presence on | off
 *   expel [JOB...]
 */
#include "balancer/settings/owner/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/pack.h"
#include "user/utf8.h"

#define OWNER_ASK_FIELDS 4

static void owner_line_set(char *out, size_t size, const char *text)
{
	utf8_copy(out, size, text, strlen(text));
	utf8_plain(out);
	for (char *at = out; *at; at++) /* " ;" begins a comment in the file */
		if (*at == ';')
			*at = ',';
	for (size_t n = strlen(out); n && out[n - 1] == ' '; n--)
		out[n - 1] = 0;
	memmove(out, out + strspn(out, " "), strlen(out + strspn(out, " ")) + 1);
}

void owner_reason_set(char out[OWNER_REASON_MAX], const char *reason)
{
	owner_line_set(out, OWNER_REASON_MAX, reason);
}

/* --- on the wire --- */

void owner_ask_pack(const struct owner_ask *ask, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	pack_begin(&pk, out, OWNER_ASK_FIELDS);
	pack_str(&pk, "reason", ask->reason);
	pack_u64(&pk, "idle_s", ask->idle_s);
	pack_u64(&pk, "grace_s", ask->grace_s);
	pack_key(&pk, "words");
	msgpack_pack_array(&pk, ask->nwords);
	for (size_t i = 0; i < ask->nwords; i++) {
		size_t n = strnlen(ask->words[i], OWNER_WORD_MAX - 1);

		msgpack_pack_str(&pk, n);
		msgpack_pack_str_body(&pk, ask->words[i], n);
	}
}

void owner_ask_request(const struct owner_ask *ask, msgpack_sbuffer *out)
{
	msgpack_sbuffer packed;
	msgpack_packer pk;

	owner_ask_pack(ask, &packed);
	pack_begin(&pk, out, 3);
	pack_str(&pk, "op", "owner");
	pack_u64(&pk, "v", 1);
	pack_bin(&pk, "packed", packed.data, packed.size);
	msgpack_sbuffer_destroy(&packed);
}

/* A word is printable ASCII: names of users, classes and jobs, numbers. */
static int owner_word(const msgpack_object *o, char out[OWNER_WORD_MAX])
{
	uint32_t n = o->via.str.size;

	if (o->type != MSGPACK_OBJECT_STR || n >= OWNER_WORD_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++)
		if (o->via.str.ptr[i] < ' ' || o->via.str.ptr[i] > '~')
			return -EBADMSG;
	memcpy(out, o->via.str.ptr, n);
	out[n] = 0;
	return 0;
}

static int owner_words(struct owner_ask *ask, const msgpack_object *map)
{
	const msgpack_object *words = unpack_get(map, "words");
	int rc = 0;

	if (!words || words->type != MSGPACK_OBJECT_ARRAY || !words->via.array.size ||
	    words->via.array.size > OWNER_WORDS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < words->via.array.size && !rc; i++)
		rc = owner_word(&words->via.array.ptr[i], ask->words[ask->nwords++]);
	return rc;
}

int owner_ask_unpack(struct owner_ask *ask, const void *data, size_t length)
{
	uint64_t idle_s, grace_s;
	char reason[OWNER_REASON_MAX];
	msgpack_unpacked message;
	const msgpack_object *map = &message.data;
	int rc;

	*ask = (struct owner_ask){0};
	if (length > OWNER_PACKED_MAX || unpack_map(&message, data, length))
		return -EBADMSG;
	rc = unpack_str(map, "reason", reason, sizeof(reason)) ||
			     unpack_u64(map, "idle_s", &idle_s) || idle_s > UINT32_MAX ||
			     unpack_u64(map, "grace_s", &grace_s) || grace_s > OWNER_GRACE_MAX_S ||
			     owner_words(ask, map)
		     ? -EBADMSG
		     : 0;
	if (!rc) {
		ask->idle_s = (uint32_t)idle_s;
		ask->grace_s = (uint32_t)grace_s;
		owner_reason_set(ask->reason, reason);
	}
	msgpack_unpacked_destroy(&message);
	return rc;
}

bool owner_ask_is_show(const struct owner_ask *ask)
{
	return ask->nwords == 1 && !strcmp(ask->words[0], "show");
}

void owner_ask_text(const struct owner_ask *ask, char *out, size_t size)
{
	size_t at = 0;

	*out = 0;
	for (size_t i = 0; i < ask->nwords && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? " " : "", ask->words[i]);
	if (at < size && *ask->reason)
		snprintf(out + at, size - at, " (%s)", ask->reason);
}

/* --- what it changes --- */

static int owner_unknown(const struct owner_ask *ask, const char *expected, struct iocom_err *err)
{
	char text[200];

	owner_ask_text(ask, text, sizeof(text));
	return iocom_err_set(err, -EINVAL, "`%s`: expected %s", text, expected);
}

static bool owner_is(const struct owner_ask *ask, size_t at, const char *word)
{
	return at < ask->nwords && !strcmp(ask->words[at], word);
}

static void owner_set_state(const struct owner_ask *ask, enum owner_state state,
			    struct owner_rules *r)
{
	r->state = state;
	memcpy(r->reason, ask->reason, sizeof(r->reason));
}

/* open and close; a resource's name after them means only its faucet. */
static int owner_door(const struct owner_ask *ask, bool shut, struct owner_rules *r,
		      struct iocom_err *err)
{
	if (ask->nwords == 1) {
		owner_set_state(ask, shut ? OWNER_CLOSED : OWNER_OPEN, r);
		return 0;
	}
	for (size_t i = 1; i < ask->nwords; i++) {
		enum owner_resource at = OWNER_DISK;

		while (at < OWNER_RESOURCES && strcmp(ask->words[i], owner_resource_names[at]) != 0)
			at++;
		if (at == OWNER_RESOURCES)
			return owner_unknown(ask,
					     "disk or network (every job needs cpu and memory: "
					     "`close` closes the node)",
					     err);
		r->shut[at] = shut;
	}
	return 0;
}

static int owner_caps(const struct owner_ask *ask, struct owner_rules *r, struct iocom_err *err)
{
	bool said[OWNER_RESOURCES] = {0};
	int rc = 0;

	if (ask->nwords < 2)
		return owner_unknown(ask, "cap RESOURCE=VALUE... or cap none", err);
	if (owner_is(ask, 1, "none") && ask->nwords == 2) {
		memset(r->caps, 0, sizeof(r->caps));
		return 0;
	}
	for (size_t i = 1; i < ask->nwords && !rc; i++) {
		const char *word = ask->words[i], *equal = strchr(word, '=');
		enum owner_resource at = 0;

		while (at < OWNER_RESOURCES &&
		       (!equal || strlen(owner_resource_names[at]) != (size_t)(equal - word) ||
			strncmp(word, owner_resource_names[at], (size_t)(equal - word)) != 0))
			at++;
		if (at == OWNER_RESOURCES)
			return owner_unknown(ask, "cpu=, memory=, disk= or network=", err);
		if (said[at])
			return iocom_err_set(err, -EINVAL,
					     "two caps of %s in one command contradict each other",
					     owner_resource_names[at]);
		said[at] = true;
		rc = owner_cap_parse(at, equal + 1, &r->caps[at], err);
	}
	return rc;
}

/* Joins the words from FROM on with BETWEEN.  Returns 0 or -EINVAL: too long. */
static int owner_join(const struct owner_ask *ask, size_t from, const char *between,
		      char out[OWNER_LIST_MAX], struct iocom_err *err)
{
	size_t at = 0;

	*out = 0;
	for (size_t i = from; i < ask->nwords; i++) {
		at += (size_t)snprintf(out + at, OWNER_LIST_MAX - at, "%s%s",
				       i > from ? between : "", ask->words[i]);
		if (at >= OWNER_LIST_MAX)
			return iocom_err_set(err, -EINVAL,
					     "a list is longer than %d characters; name @groups",
					     OWNER_LIST_MAX - 1);
	}
	return 0;
}

static int owner_set_list(const struct owner_ask *ask, char *allow, char *deny,
			  struct iocom_err *err)
{
	bool denies = owner_is(ask, 1, "deny");
	char list[OWNER_LIST_MAX], name[OWNER_LIST_MAX], *kept = denies ? deny : allow;
	int rc;

	if (ask->nwords < 3 || (!denies && !owner_is(ask, 1, "allow")))
		return owner_unknown(ask, "allow LIST or deny LIST (allow all, deny none: no list)",
				     err);
	rc = owner_join(ask, 2, ",", list, err);
	if (rc)
		return rc;
	if (strpbrk(list, ";#\"'=[]"))
		return owner_unknown(ask, "names with commas between them", err);
	*kept = 0;
	if (strcmp(list, denies ? "none" : "all") != 0)
		for (const char *rest = list; (rest = owner_next(rest, name));)
			snprintf(kept + strlen(kept), OWNER_LIST_MAX - strlen(kept), "%s%s",
				 *kept ? "," : "", name);
	return 0;
}

static int owner_set_presence(const struct owner_ask *ask, struct owner_rules *r,
			      struct iocom_err *err)
{
	bool on = owner_is(ask, 1, "on");

	if (ask->nwords != 2 || (!on && !owner_is(ask, 1, "off")))
		return owner_unknown(ask, "presence on or presence off", err);
	if (!on && ask->idle_s)
		return iocom_err_set(err, -EINVAL,
				     "`presence off` and --idle contradict each other");
	if (ask->idle_s && (ask->idle_s < OWNER_IDLE_MIN_S || ask->idle_s > 86400))
		return iocom_err_set(err, -EINVAL, "expected --idle from %d s to a day",
				     OWNER_IDLE_MIN_S);
	r->presence = on;
	if (ask->idle_s)
		r->idle_s = ask->idle_s;
	return 0;
}

/* Words without an argument that set the state.  Returns 0; -ENOENT: it is another word. */
static int owner_state_word(const struct owner_ask *ask, struct owner_rules *r)
{
	if (ask->nwords != 1 || (!owner_is(ask, 0, "drain") && !owner_is(ask, 0, "resume")))
		return -ENOENT;
	owner_set_state(ask, owner_is(ask, 0, "drain") ? OWNER_DRAINING : OWNER_OPEN, r);
	return 0;
}

static int owner_change(const struct owner_ask *ask, struct owner_rules *r, struct iocom_err *err)
{
	char hours[OWNER_LIST_MAX];
	int rc = owner_state_word(ask, r);

	if (rc != -ENOENT)
		return rc;
	if (owner_is(ask, 0, "open") || owner_is(ask, 0, "close"))
		return owner_door(ask, owner_is(ask, 0, "close"), r, err);
	if (owner_is(ask, 0, "cap"))
		return owner_caps(ask, r, err);
	if (owner_is(ask, 0, "users"))
		return owner_set_list(ask, r->users_allow, r->users_deny, err);
	if (owner_is(ask, 0, "classes"))
		return owner_set_list(ask, r->classes_allow, r->classes_deny, err);
	if (owner_is(ask, 0, "presence"))
		return owner_set_presence(ask, r, err);
	if (owner_is(ask, 0, "hours") && ask->nwords < 2)
		return owner_unknown(ask,
				     "hours SPANS, such as hours 'mon-fri 20:00-08:00, sat+sun "
				     "00:00-24:00', or hours always",
				     err);
	if (!owner_is(ask, 0, "hours"))
		return owner_unknown(ask,
				     "open, close, drain, resume, cap, users, classes, hours, "
				     "presence or expel",
				     err);
	rc = owner_join(ask, 1, " ", hours, err);
	return rc ? rc : owner_hours_parse(hours, r, err);
}

int owner_ask_apply(const struct owner_ask *ask, const char *by, uint64_t now_s,
		    struct owner_rules *rules, struct iocom_err *err)
{
	struct owner_rules changed = *rules;
	bool same;
	int rc;

	if (owner_is(ask, 0, "show") && ask->nwords == 1)
		return OWNER_SHOW;
	if (owner_is(ask, 0, "expel"))
		return OWNER_EXPEL;
	rc = owner_change(ask, &changed, err);
	if (!rc)
		rc = owner_check(&changed, err);
	if (rc)
		return rc;
	same = changed.state == rules->state && !strcmp(changed.reason, rules->reason);
	if (!same) {
		owner_line_set(changed.by, sizeof(changed.by), by); /* it may be cut */
		changed.since_s = now_s;
	}
	*rules = changed;
	return OWNER_CHANGE;
}
