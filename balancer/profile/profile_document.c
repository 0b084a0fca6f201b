/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See profile_document.h. */
#include "balancer/profile/profile_document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/profile/profile_own.h"
#include "balancer/view/json_field.h"
#include "balancer/view/placement.h"

#define RUNS_MOST (2 * PROFILE_RUNS_KEPT)

struct document_class {
	char class_name[PROFILE_CLASS_MAX];
	struct profile profile;
	struct need_options set;
	struct profile_one recent[RUNS_MOST];
	size_t nrecent;
	uint32_t runs;
};

#define ELSEWHERE(name)                                                                            \
	{                                                                                          \
		name, FIELD_ELSEWHERE, 0, 0                                                        \
	}

static const struct field document_fields[] = {ELSEWHERE("iocom_profiles"), ELSEWHERE("profiles")};

static const struct field class_fields[] = {
	{"class", FIELD_TEXT, offsetof(struct document_class, class_name), PROFILE_CLASS_MAX},
	FIELD_OF(FIELD_COUNT, document_class, runs),
	ELSEWHERE("needs"),
	ELSEWHERE("set"),
	ELSEWHERE("recent"),
};

static const struct field one_fields[] = {
	FIELD_OF(FIELD_BOOL, profile_one, warm),
	FIELD_OF(FIELD_LARGE, profile_one, input_id),
	FIELD_OF(FIELD_OPTIONAL, profile_one, input_mb),
	FIELD_OF(FIELD_TEXT, profile_one, node),
	FIELD_OF(FIELD_LARGE, profile_one, end_s),
	ELSEWHERE("needs"),
};

/* --- writing ------------------------------------------------------------------------------- */

static json_t *document_needs(const double need[PROFILE_NEEDS])
{
	json_t *out = json_object();

	for (enum profile_need f = 0; out && f < PROFILE_NEEDS; f++) {
		if (field_set(out, profile_need_name(f), json_real(need[f]))) {
			json_decref(out);
			out = NULL;
		}
	}
	return out;
}

static json_t *document_set(const struct need_options *set)
{
	json_t *out = json_object();

	for (enum need_field f = 0; out && f < NEED_FIELDS; f++) {
		if (set->value[f] >= 0 && field_set(out, need_name(f), json_real(set->value[f]))) {
			json_decref(out);
			out = NULL;
		}
	}
	return out;
}

static json_t *document_recent(const struct profile_one *runs, size_t n)
{
	json_t *list = json_array();
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++) {
		json_t *one = json_object();

		rc = one ? field_write(one, one_fields, FIELD_COUNT_OF(one_fields), &runs[i])
			 : -ENOMEM;
		if (!rc)
			rc = field_set(one, "needs", document_needs(runs[i].need));
		if (rc || json_array_append(list, one))
			rc = -ENOMEM;
		json_decref(one);
	}
	if (!rc)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *document_class_json(const struct document_class *c)
{
	double need[PROFILE_NEEDS];
	json_t *out = json_object();

	for (enum profile_need f = 0; f < PROFILE_NEEDS; f++)
		need[f] = profile_need_of(&c->profile, f);
	if (out && !field_write(out, class_fields, FIELD_COUNT_OF(class_fields), c) &&
	    !field_set(out, "needs", document_needs(need)) &&
	    !field_set(out, "set", document_set(&c->set)) &&
	    !field_set(out, "recent", document_recent(c->recent, c->nrecent)))
		return out;
	json_decref(out);
	return NULL;
}

struct exporting {
	struct profile_store *store;
	uid_t uid;
	struct profile_export *x;
	json_t *list;
	bool full;
	int rc;
	struct iocom_err *err;
};

static void document_export_one(void *arg, uid_t uid, const char *name, const struct profile *p)
{
	struct exporting *e = arg;
	struct document_class *c;

	if (e->rc || e->full || (*e->x->class_name && strcmp(name, e->x->class_name)) ||
	    (*e->x->after && strcmp(name, e->x->after) <= 0))
		return;
	e->full = e->x->most && json_array_size(e->list) == e->x->most;
	if (e->full)
		return;
	if (!*name || strlen(name) >= PROFILE_CLASS_MAX || !placement_line_valid(name)) {
		e->x->left_out++;
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		e->rc = iocom_err_set(e->err, -ENOMEM, "out of memory");
		return;
	}
	strcpy(c->class_name, name);
	c->profile = *p;
	c->runs = p->runs;
	e->rc = profile_set_read(e->store, uid, name, &c->set, e->err);
	if (!e->rc)
		e->rc = profile_runs_read(e->store, uid, name, c->recent, &c->nrecent, e->err);
	if (!e->rc && json_array_append_new(e->list, document_class_json(c)))
		e->rc = iocom_err_set(e->err, -ENOMEM, "out of memory");
	strcpy(e->x->last, name);
	free(c);
}

int profile_export(struct profile_store *s, uid_t uid, struct profile_export *x,
		   struct iocom_err *err)
{
	struct exporting e = {.store = s, .uid = uid, .x = x, .list = json_array(), .err = err};
	int rc = e.list ? profile_list(s, uid, document_export_one, &e, err) : -ENOMEM;

	if (!rc)
		rc = e.rc;
	if (!rc && *x->class_name && !json_array_size(e.list))
		rc = iocom_err_set(err, -ENOENT, "nothing is known about a class '%s'",
				   x->class_name);
	if (rc) {
		json_decref(e.list);
		return rc;
	}
	if (!e.full)
		x->last[0] = 0;
	x->document =
		json_pack("{s:i,s:o}", "iocom_profiles", PROFILE_DOCUMENT, "profiles", e.list);
	return x->document ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
}

/* --- reading --------------------------------------------------------------------------------- */

/* Refuses a member of a map of needs that NAMES does not know. */
static int document_unknown(struct field_reader *r, const char *key)
{
	return field_fail(r, "unknown need '%.40s'", key);
}

static int document_read_needs(struct field_reader *r, const json_t *object,
			       double need[PROFILE_NEEDS])
{
	size_t mark = field_enter(r, "needs", 0);
	const char *key;
	json_t *value;
	int rc = json_is_object(object) ? 0 : field_expected(r, "an object", object);

	json_object_foreach ((json_t *)object, key, value) {
		size_t inner = field_enter(r, key, 0);
		enum profile_need f = 0;

		while (f < PROFILE_NEEDS && strcmp(key, profile_need_name(f)) != 0)
			f++;
		rc = f == PROFILE_NEEDS ? document_unknown(r, key)
					: field_number(r, value, &need[f]);
		if (!rc && need[f] > PROFILE_NEED_MAX)
			rc = field_expected(r, "a number up to 1e12", value);
		if (rc)
			return rc;
		field_leave(r, inner);
	}
	if (!rc)
		field_leave(r, mark);
	return rc;
}

static int document_read_set(struct field_reader *r, const json_t *object, struct need_options *set)
{
	size_t mark = field_enter(r, "set", 0);
	const char *key;
	json_t *value;
	int rc = 0;

	need_options_init(set);
	if (object && !json_is_object(object))
		return field_expected(r, "an object", object);
	json_object_foreach ((json_t *)object, key, value) {
		size_t inner = field_enter(r, key, 0);
		enum need_field f = 0;

		while (f < NEED_FIELDS && strcmp(key, need_name(f)) != 0)
			f++;
		rc = f == NEED_FIELDS ? document_unknown(r, key)
				      : field_number(r, value, &set->value[f]);
		if (!rc && !need_value_valid(f, set->value[f]))
			rc = field_fail(r, "the number is too large");
		if (rc)
			return rc;
		field_leave(r, inner);
	}
	field_leave(r, mark);
	return 0;
}

static int document_read_one(struct field_reader *r, const json_t *object, struct profile_one *one)
{
	int rc;

	*one = (struct profile_one){.input_mb = -1};
	rc = field_read(r, object, one_fields, FIELD_COUNT_OF(one_fields), one);
	if (!rc && one->input_mb > PROFILE_NEED_MAX)
		rc = field_fail(r, "\"input_mb\" is more than 1e12");
	return rc ? rc : document_read_needs(r, json_object_get(object, "needs"), one->need);
}

static int document_read_recent(struct field_reader *r, const json_t *list,
				struct document_class *c)
{
	size_t mark = field_enter(r, "recent", 0), i, kinds[2] = {0};
	json_t *value;
	int rc = 0;

	if (list && !json_is_array(list))
		return field_expected(r, "a list", list);
	json_array_foreach (list, i, value) {
		size_t inner = field_enter(r, NULL, i);

		if (i == RUNS_MOST)
			return field_fail(r, "a class has at most %d recent runs", RUNS_MOST);
		rc = document_read_one(r, value, &c->recent[i]);
		if (!rc && kinds[c->recent[i].warm]++ == PROFILE_RUNS_KEPT)
			rc = field_fail(r, "a class has at most %d recent runs that are %s",
					PROFILE_RUNS_KEPT, c->recent[i].warm ? "warm" : "cold");
		if (rc)
			return rc;
		field_leave(r, inner);
	}
	c->nrecent = json_array_size(list);
	if (c->nrecent > c->runs)
		return field_fail(r, "there are %zu recent runs of %u", c->nrecent, c->runs);
	field_leave(r, mark);
	return 0;
}

static int document_read_class(struct field_reader *r, const json_t *object,
			       struct document_class *c)
{
	double need[PROFILE_NEEDS] = {0};
	int rc;

	*c = (struct document_class){.runs = 0};
	rc = field_read(r, object, class_fields, FIELD_COUNT_OF(class_fields), c);
	if (!rc && !*c->class_name)
		rc = field_fail(r, "\"class\" is missing or empty");
	if (!rc && (c->runs || json_object_get(object, "needs")))
		rc = document_read_needs(r, json_object_get(object, "needs"), need);
	if (!rc)
		rc = document_read_set(r, json_object_get(object, "set"), &c->set);
	if (!rc)
		rc = document_read_recent(r, json_object_get(object, "recent"), c);
	for (enum profile_need f = 0; f < PROFILE_NEEDS; f++)
		profile_need_put(&c->profile, f, need[f]);
	c->profile.runs = c->runs;
	return rc;
}

static int document_version(struct field_reader *r, const json_t *document)
{
	const json_t *version = json_object_get(document, "iocom_profiles");

	if (!json_is_object(document) || !version)
		return field_fail(r, "this is no document of `iocom profile export`: it has no "
				     "\"iocom_profiles\"");
	if (!json_is_integer(version))
		return field_fail(r, "\"iocom_profiles\", its version, is no whole number");
	if (json_integer_value(version) != PROFILE_DOCUMENT)
		return field_fail(r,
				  "the document is of version %lld, and this iocom reads version "
				  "%d",
				  (long long)json_integer_value(version), PROFILE_DOCUMENT);
	return 0;
}

/* --- importing -----------------------------------------------------------------------------------
 */

static int import_write(struct profile_store *s, uid_t uid, const struct document_class *c,
			struct iocom_err *err)
{
	int rc = profile_make_room(s, uid, err);

	if (!rc)
		rc = profile_write(s, uid, c->class_name, &c->profile, err);
	if (!rc)
		rc = profile_set_write(s, uid, c->class_name, &c->set, err);
	for (size_t i = c->nrecent; i-- > 0 && !rc;)
		rc = profile_runs_add(s, uid, c->class_name, &c->recent[i], err);
	return rc;
}

/* Checks one class, and writes it unless that is only a check; inside a transaction. */
static int import_class(struct profile_store *s, uid_t uid, struct profile_import *in,
			struct field_reader *r, const json_t *value, struct document_class *c)
{
	struct profile known;
	int rc = document_read_class(r, value, c);

	if (rc)
		return rc;
	rc = profile_get(s, uid, c->class_name, &known, r->err);
	if (rc && rc != -ENOENT)
		return rc;
	if (!rc && !in->force)
		return iocom_err_set(r->err, -EEXIST,
				     "class '%s' is known already, from %u run%s; --force replaces "
				     "what is known; nothing was imported",
				     c->class_name, known.runs, known.runs == 1 ? "" : "s");
	in->replaced += !rc;
	in->classes++;
	in->runs += c->nrecent;
	if (in->dry_run)
		return 0;
	if (!rc)
		rc = profile_erase(s, uid, c->class_name, r->err);
	return rc && rc != -ENOENT ? rc : import_write(s, uid, c, r->err);
}

static int import_names(struct field_reader *r, const json_t *list)
{
	json_t *seen = json_object(), *value;
	size_t i;
	int rc = seen ? 0 : -ENOMEM;

	json_array_foreach (list, i, value) {
		const char *name = json_string_value(json_object_get(value, "class"));
		size_t mark = field_enter(r, NULL, i);

		if (!rc && name && json_object_get(seen, name))
			rc = field_fail(r, "class '%.63s' is there twice", name);
		if (!rc && name && json_object_set_new(seen, name, json_true()))
			rc = -ENOMEM;
		if (!rc)
			field_leave(r, mark);
	}
	json_decref(seen);
	return rc == -ENOMEM ? iocom_err_set(r->err, rc, "out of memory") : rc;
}

static int import_list(struct profile_store *s, uid_t uid, struct profile_import *in,
		       struct field_reader *r, const json_t *list)
{
	struct document_class *c = malloc(sizeof(*c));
	size_t mark = field_enter(r, "profiles", 0), i;
	json_t *value;
	int rc = c ? 0 : iocom_err_set(r->err, -ENOMEM, "out of memory");

	if (!rc && !json_is_array(list))
		rc = field_expected(r, "a list of classes", list);
	if (!rc && json_array_size(list) > PROFILE_CLASSES_MAX)
		rc = iocom_err_set(r->err, -E2BIG, "%s has %zu classes; iocom keeps %d of a user",
				   r->file, json_array_size(list), PROFILE_CLASSES_MAX);
	if (!rc)
		rc = import_names(r, list);
	json_array_foreach (list, i, value) {
		size_t inner;

		if (rc)
			break;
		inner = field_enter(r, NULL, i);
		rc = import_class(s, uid, in, r, value, c);
		if (!rc)
			field_leave(r, inner);
	}
	if (!rc)
		field_leave(r, mark);
	free(c);
	return rc;
}

static int import_document(struct profile_store *s, uid_t uid, struct profile_import *in,
			   struct field_reader *r, const json_t *document)
{
	int rc = document_version(r, document);

	if (!rc)
		rc = field_read(r, document, document_fields, FIELD_COUNT_OF(document_fields), in);
	if (!rc)
		rc = profile_run(s, "BEGIN IMMEDIATE", r->err);
	if (rc)
		return rc;
	rc = import_list(s, uid, in, r, json_object_get(document, "profiles"));
	return profile_end_transaction(s, rc, r->err);
}

int profile_import(struct profile_store *s, uid_t uid, struct profile_import *in,
		   struct iocom_err *err)
{
	struct field_reader r = {
		.file = in->file,
		.err = err,
		.text = in->text,
		.text_length = in->length,
		.line = 1,
	};
	json_t *document = NULL;
	int rc = field_parse(&r, &document);

	in->classes = in->runs = in->replaced = 0;
	if (!rc)
		rc = import_document(s, uid, in, &r, document);
	json_decref(document);
	return rc;
}
