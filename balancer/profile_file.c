/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom profile export` and `import`.  A document that is larger than a request may be is sent in
 * parts of whole classes: all are checked before the first one is taken.
 */
#include "balancer/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/listing.h"
#include "balancer/profile/profile.h"

#define PART_MAX (900u << 10) /* of a document, in one request */
#define FILE_MAX (32u << 20)  /* more than all that one user may have */

void profile_ask_begin(struct profile_ask *ask, const char *what, size_t more)
{
	pack_begin(&ask->pk, &ask->buffer, 3 + more + ask->of_user);
	pack_str(&ask->pk, "op", "profile");
	pack_u64(&ask->pk, "v", 1);
	pack_str(&ask->pk, "what", what);
	if (ask->of_user)
		pack_u64(&ask->pk, "uid", ask->uid);
}

int profile_ask_send(struct profile_ask *ask, json_t **answer, struct iocom_err *err)
{
	return client_ask(ask->request.run_dir, &ask->buffer, answer, err);
}

static int profile_ask_part(struct profile_ask *ask, const char *class_name, json_int_t from,
			    json_t **answer, struct iocom_err *err)
{
	profile_ask_begin(ask, "list", (size_t)1 + (class_name != NULL) + (ask->input_mb >= 0));
	pack_u64(&ask->pk, "from", (uint64_t)from);
	if (class_name)
		pack_bin(&ask->pk, "class", class_name, strlen(class_name));
	if (ask->input_mb >= 0)
		pack_f64(&ask->pk, "input_mb", ask->input_mb);
	return profile_ask_send(ask, answer, err);
}

int profile_ask_list(struct profile_ask *ask, const char *class_name, json_t **answer,
		     struct iocom_err *err)
{
	json_t *part = NULL;
	json_int_t next, from;
	int rc = profile_ask_part(ask, class_name, 0, answer, err);

	if (rc)
		return rc;
	next = json_integer_value(json_object_get(*answer, "next"));
	json_object_del(*answer, "next");
	for (from = 0; next > from && !rc; json_decref(part)) {
		from = next;
		part = NULL;
		rc = profile_ask_part(ask, class_name, from, &part, err);
		next = json_integer_value(json_object_get(part, "next"));
		if (!rc && json_array_extend(json_object_get(*answer, "profiles"),
					     json_object_get(part, "profiles")))
			rc = iocom_err_set(err, -EPROTO, "the agent's answer has no profiles");
	}
	if (rc) {
		json_decref(*answer);
		*answer = NULL;
	}
	return rc;
}

static int profile_file_fail(const struct iocom_err *err)
{
	fprintf(stderr, "iocom profile: %s\n", err->text);
	return 1;
}

/* --- export ---------------------------------------------------------------------------------- */

/* Opens FILE for writing.  Without --force an existing one stays as it is. */
static FILE *export_open(const struct profile_ask *ask, char *part, size_t size,
			 struct iocom_err *err)
{
	int n = snprintf(part, size, "%s.part-%d", ask->file, (int)getpid()), fd;

	if (n < 0 || (size_t)n >= size) {
		iocom_err_set(err, -ENAMETOOLONG, "the name %.100s... is too long", ask->file);
		return NULL;
	}
	if (!ask->force && !access(ask->file, F_OK)) {
		iocom_err_set(err, -EEXIST, "%s exists; --force replaces it", ask->file);
		return NULL;
	}
	fd = open(part, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		iocom_err_set(err, -errno, "cannot write %s: %s", part, strerror(errno));
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Gives the whole file its name, which must be free without --force. */
static int export_name(const struct profile_ask *ask, const char *part, struct iocom_err *err)
{
	int rc = renameat2(AT_FDCWD, part, AT_FDCWD, ask->file, ask->force ? 0 : RENAME_NOREPLACE)
			 ? -errno
			 : 0;

	return rc ? iocom_err_set(err, rc, "cannot write %s: %s", ask->file, strerror(-rc)) : 0;
}

static int export_file(const struct profile_ask *ask, const json_t *document, struct iocom_err *err)
{
	char part[4096];
	FILE *out = export_open(ask, part, sizeof(part), err);
	int rc = 0;

	if (!out)
		return -EIO;
	if (json_dumpf(document, out, JSON_INDENT(1) | JSON_ENSURE_ASCII) || fputc('\n', out) < 0)
		rc = -EIO;
	if (fflush(out) || fsync(fileno(out)))
		rc = -EIO;
	if (fclose(out) || rc)
		rc = iocom_err_set(err, -EIO, "cannot write %s: %s", part, strerror(errno));
	if (!rc)
		rc = export_name(ask, part, err);
	if (rc)
		unlink(part);
	return rc;
}

static int export_print(const json_t *document)
{
	json_dumpf(document, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII);
	putchar('\n');
	return listing_end();
}

/* Asks for the classes behind AFTER. */
static int export_part(struct profile_ask *ask, const char *after, json_t **answer,
		       struct iocom_err *err)
{
	const char *class_name = ask->request.ask.class_name;

	profile_ask_begin(ask, "export", (*class_name != 0) + (size_t)1);
	pack_bin(&ask->pk, "after", after, strlen(after));
	if (*class_name)
		pack_bin(&ask->pk, "class", class_name, strlen(class_name));
	return profile_ask_send(ask, answer, err);
}

/* Adds the classes of PART to *DOCUMENT, which begins as that of the first part. */
static int export_join(json_t **document, json_t *part, struct iocom_err *err)
{
	json_t *more = json_object_get(part, "document");

	if (!json_is_array(json_object_get(more, "profiles")))
		return iocom_err_set(err, -EPROTO, "the agent's answer has no classes");
	if (!*document)
		*document = json_incref(more);
	else if (json_array_extend(json_object_get(*document, "profiles"),
				   json_object_get(more, "profiles")))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Asks for all parts. */
static int export_ask(struct profile_ask *ask, json_t **document, double *left_out,
		      struct iocom_err *err)
{
	char after[PROFILE_CLASS_MAX] = "", before[PROFILE_CLASS_MAX];
	int rc;

	do {
		json_t *part = NULL;

		strcpy(before, after);
		rc = export_part(ask, before, &part, err);
		if (!rc)
			rc = export_join(document, part, err);
		*left_out += listing_number(part, "left_out");
		snprintf(after, sizeof(after), "%s", listing_string(part, "after"));
		json_decref(part);
		if (!rc && *after && strcmp(after, before) <= 0)
			rc = iocom_err_set(err, -EPROTO, "the agent's answers have no order");
	} while (!rc && *after);
	return rc;
}

int profile_file_export(struct profile_ask *ask)
{
	bool to_file = ask->file && strcmp(ask->file, "-") != 0;
	struct iocom_err err = {0};
	json_t *document = NULL;
	double left_out = 0;
	int rc = export_ask(ask, &document, &left_out, &err);

	if (!rc && left_out > 0)
		fprintf(stderr,
			"iocom profile: %.0f class%s left out: JSON cannot hold such a name\n",
			left_out, left_out == 1 ? " is" : "es are");
	rc = rc					? profile_file_fail(&err)
	     : !to_file				? export_print(document)
	     : export_file(ask, document, &err) ? profile_file_fail(&err)
						: 0;
	json_decref(document);
	return rc;
}

/* --- import ---------------------------------------------------------------------------------- */

static int import_read(const char *file, char **text, size_t *length, struct iocom_err *err)
{
	bool standard = !strcmp(file, "-");
	FILE *in = standard ? stdin : fopen(file, "re");
	size_t room = 0;
	int rc = 0;

	*text = NULL;
	*length = 0;
	if (!in)
		return iocom_err_set(err, -errno, "cannot read %s: %s", file, strerror(errno));
	while (!rc && !feof(in)) {
		if (*length == room) {
			char *more = realloc(*text, room ? 2 * room : 65536);

			if (!more) {
				rc = iocom_err_set(err, -ENOMEM, "out of memory");
				break;
			}
			*text = more;
			room = room ? 2 * room : 65536;
		}
		*length += fread(*text + *length, 1, room - *length, in);
		if (ferror(in))
			rc = iocom_err_set(err, -EIO, "cannot read %s: %s", file, strerror(errno));
		else if (*length > FILE_MAX)
			rc = iocom_err_set(err, -EFBIG, "%s is larger than 32 MiB", file);
	}
	if (!standard)
		fclose(in);
	return rc;
}

/* What the parts of a document came to. */
struct imported {
	double classes, runs, replaced;
};

static int import_part(struct profile_ask *ask, const char *text, size_t length, bool dry_run,
		       struct imported *sum, struct iocom_err *err)
{
	json_t *answer = NULL;
	int rc;

	profile_ask_begin(ask, "import", 4);
	pack_bin(&ask->pk, "document", text, length);
	pack_bin(&ask->pk, "file", ask->file, strlen(ask->file));
	pack_bool(&ask->pk, "force", ask->force);
	pack_bool(&ask->pk, "dry_run", dry_run);
	rc = profile_ask_send(ask, &answer, err);
	if (!rc) {
		sum->classes += listing_number(answer, "classes");
		sum->runs += listing_number(answer, "runs");
		sum->replaced += listing_number(answer, "replaced");
	}
	json_decref(answer);
	return rc;
}

/* Sends LIST, classes of a document, as a document of its own. */
static int import_send(struct profile_ask *ask, json_t *list, bool dry_run, struct imported *sum,
		       const json_t *version, struct iocom_err *err)
{
	json_t *document = json_pack("{s:O,s:O}", "iocom_profiles", version, "profiles", list);
	char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	int rc = text ? import_part(ask, text, strlen(text), dry_run, sum, err)
		      : iocom_err_set(err, -ENOMEM, "out of memory");

	free(text);
	json_decref(document);
	return rc;
}

/* Sends the classes of DOCUMENT in parts. */
static int import_parts(struct profile_ask *ask, const json_t *document, bool dry_run,
			struct imported *sum, struct iocom_err *err)
{
	const json_t *profiles = json_object_get(document, "profiles");
	const json_t *version = json_object_get(document, "iocom_profiles");
	json_t *list = json_array(), *one;
	size_t bytes = 0, i;
	int rc = list ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");

	*sum = (struct imported){0};
	json_array_foreach (profiles, i, one) {
		char *text = rc ? NULL : json_dumps(one, JSON_COMPACT);
		size_t n = text ? strlen(text) + 1 : 0;

		free(text);
		if (!rc && bytes && bytes + n > PART_MAX) {
			rc = import_send(ask, list, dry_run, sum, version, err);
			json_array_clear(list);
			bytes = 0;
		}
		if (!rc && json_array_append(list, one))
			rc = iocom_err_set(err, -ENOMEM, "out of memory");
		bytes += n;
	}
	if (!rc)
		rc = import_send(ask, list, dry_run, sum, version, err);
	json_decref(list);
	return rc;
}

/* Checks what the agent, which gets one part at a time, does not see. */
static int import_check(const struct profile_ask *ask, const json_t *profiles,
			struct iocom_err *err)
{
	json_t *seen = json_object(), *one;
	int rc = seen ? 0 : iocom_err_set(err, -ENOMEM, "out of memory");
	size_t i;

	if (!rc && json_array_size(profiles) > PROFILE_CLASSES_MAX)
		rc = iocom_err_set(err, -E2BIG, "%s has %zu classes; iocom keeps %d of a user",
				   ask->file, json_array_size(profiles), PROFILE_CLASSES_MAX);
	for (i = 0; i < json_array_size(profiles) && !rc; i++) {
		const char *name;

		one = json_array_get(profiles, i);
		name = json_string_value(json_object_get(one, "class"));
		if (name && json_object_get(seen, name))
			rc = iocom_err_set(err, -EINVAL, "%s: class '%.63s' is there twice",
					   ask->file, name);
		else if (name && json_object_set_new(seen, name, json_true()))
			rc = iocom_err_set(err, -ENOMEM, "out of memory");
	}
	json_decref(seen);
	return rc;
}

/* A document of many classes; what is wrong with it otherwise, the agent says. */
static int import_large(struct profile_ask *ask, const char *text, size_t length,
			struct imported *sum, struct iocom_err *err)
{
	json_error_t error;
	json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	int rc;

	if (!document)
		return iocom_err_set(err, -EINVAL, "%s:%d:%d: %s", ask->file, error.line,
				     error.column, error.text);
	if (!json_object_get(document, "iocom_profiles") || json_object_size(document) != 2 ||
	    !json_is_array(json_object_get(document, "profiles")))
		rc = iocom_err_set(err, -EINVAL,
				   "%s: this is no document of `iocom profile export`", ask->file);
	else
		rc = import_check(ask, json_object_get(document, "profiles"), err);
	if (!rc)
		rc = import_parts(ask, document, true, sum, err);
	if (!rc && !ask->dry_run)
		rc = import_parts(ask, document, false, sum, err);
	json_decref(document);
	return rc;
}

static int import_print(const struct profile_ask *ask, const struct imported *sum)
{
	if (ask->json) {
		json_t *out =
			json_pack("{s:f,s:f,s:f,s:b}", "classes", sum->classes, "runs", sum->runs,
				  "replaced", sum->replaced, "dry_run", ask->dry_run);
		int rc = listing_print_json(out);

		json_decref(out);
		return rc;
	}
	printf("%.0f class%s, %.0f recent run%s, %s%.0f of them replaced\n", sum->classes,
	       sum->classes == 1 ? "" : "es", sum->runs, sum->runs == 1 ? "" : "s",
	       ask->dry_run ? "all sound and nothing written; would be " : "", sum->replaced);
	return listing_end();
}

int profile_file_import(struct profile_ask *ask)
{
	struct imported sum = {0};
	struct iocom_err err = {0};
	size_t length;
	char *text;
	int rc = import_read(ask->file, &text, &length, &err);

	if (!rc && length <= PART_MAX)
		rc = import_part(ask, text, length, ask->dry_run, &sum, &err);
	else if (!rc)
		rc = import_large(ask, text, length, &sum, &err);
	free(text);
	return rc ? profile_file_fail(&err) : import_print(ask, &sum);
}
