/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Request "profile": what its users do with their profiles; see profiles.h. */
#include "agent/front/profiles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "balancer/profile/profile_document.h"
#include "user/pack.h"
#include "user/utf8.h"

json_t *profiles_class_json(const char *class_name)
{
	char clean[4 * PROFILE_CLASS_MAX];

	utf8_copy(clean, sizeof(clean), class_name, strlen(class_name));
	utf8_plain(clean);
	return json_string(clean);
}

/* What a request is about. */
struct change {
	struct front *front;
	struct client *client;
	const msgpack_object *request;
	uid_t uid;
	const char *class_name;
};

/* Answers what became of the class, by RC. */
static void change_answer(const struct change *c, int rc, const char *done,
			  const struct iocom_err *err)
{
	if (rc == -ENOENT)
		client_error(c->client, "nothing is known about a class '%s' of yours%s",
			     c->class_name,
			     client_who(c->client)->uid == 0 && c->uid == 0
				     ? "; --user NAME names another user's"
				     : "");
	else if (rc)
		client_error(c->client, "%s", err->text);
	else
		client_json(c->client,
			    json_pack("{s:o}", done, profiles_class_json(c->class_name)));
}

static void change_forget(const struct change *c)
{
	struct iocom_err err = {0};
	int rc = profile_forget(c->front->profiles, c->uid, c->class_name, &err);

	change_answer(c, rc, "forgot", &err);
}

static void change_set(const struct change *c)
{
	const msgpack_object *need = unpack_get(c->request, "need");
	struct iocom_err err = {0};
	struct need_options set;
	bool any = false;
	int rc;

	need_options_init(&set);
	rc = need ? need_options_unpack(&set, need, &err) : 0;
	for (enum need_field f = 0; f < NEED_FIELDS; f++)
		any = any || set.value[f] >= 0;
	if (!rc && !any)
		rc = iocom_err_set(&err, -EINVAL, "no need is given");
	if (!rc)
		rc = profile_set(c->front->profiles, c->uid, c->class_name, &set, &err);
	change_answer(c, rc, "set", &err);
}

static void change_unset(const struct change *c)
{
	struct iocom_err err = {0};
	int rc = profile_unset(c->front->profiles, c->uid, c->class_name, &err);

	if (rc == -ENOENT)
		client_error(c->client, "no need of a class '%s' of yours is set", c->class_name);
	else
		change_answer(c, rc, "unset", &err);
}

static void change_export(const struct change *c)
{
	char after[PROFILE_CLASS_MAX] = "";
	struct profile_export x = {
		.class_name = c->class_name, .after = after, .most = PROFILE_EXPORT_PART};
	struct iocom_err err = {0};

	if (unpack_get(c->request, "after") &&
	    unpack_str(c->request, "after", after, sizeof(after)))
		client_error(c->client, "\"after\" is no name of a class");
	else if (profile_export(c->front->profiles, c->uid, &x, &err))
		client_error(c->client, "%s", err.text);
	else
		client_json(c->client,
			    json_pack("{s:o,s:I,s:s}", "document", x.document, "left_out",
				      (json_int_t)x.left_out, "after", x.last));
}

static void change_import(const struct change *c)
{
	const msgpack_object *document = unpack_get(c->request, "document");
	struct profile_import in = {0};
	struct iocom_err err = {0};
	char file[256] = "the document";

	if (!document || document->type != MSGPACK_OBJECT_BIN) {
		client_error(c->client, "the request has no \"document\"");
		return;
	}
	if (unpack_get(c->request, "file"))
		unpack_str(c->request, "file", file, sizeof(file));
	utf8_plain(file);
	in.text = document->via.bin.ptr;
	in.length = document->via.bin.size;
	in.file = file;
	unpack_bool(c->request, "force", &in.force);
	unpack_bool(c->request, "dry_run", &in.dry_run);
	if (profile_import(c->front->profiles, c->uid, &in, &err))
		client_error(c->client, "%s", err.text);
	else
		client_json(c->client,
			    json_pack("{s:I,s:I,s:I,s:b}", "classes", (json_int_t)in.classes,
				      "runs", (json_int_t)in.runs, "replaced",
				      (json_int_t)in.replaced, "dry_run", in.dry_run));
}

void profiles_change(struct front *front, struct client *c, const msgpack_object *request,
		     const char *what, uid_t uid, const char *class_name)
{
	static const struct {
		const char *what;
		void (*change)(const struct change *c);
		bool of_class;
	} table[] = {
		{"forget", change_forget, true},  {"set", change_set, true},
		{"unset", change_unset, true},	  {"export", change_export, false},
		{"import", change_import, false},
	};
	const struct change change = {front, c, request, uid, class_name};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (strcmp(table[i].what, what) != 0)
			continue;
		if (table[i].of_class && !*class_name)
			client_error(c, "the request names no class");
		else
			table[i].change(&change);
		return;
	}
	client_error(c, "the agent does not know how to %s profiles; is it an older version?",
		     what);
}
