/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See endings.h. */
#include "balancer/report/endings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/listing.h"
#include "iocom/array.h"
#include "user/pack.h"

/* Returns false if JOB is not as agents write it. */
static bool endings_take(const json_t *job, struct gain_job *out)
{
	const char *basis;
	int balanced, moved, kind, value;

	*out = (struct gain_job){
		.wall_ms = listing_number(job, "took_ms"),
		.expected_ms = listing_number(job, "expected_ms"),
		.expected_home_ms = listing_number(job, "expected_home_ms"),
		.slowdown = listing_number(job, "slowdown"), /* an older agent's jobs have none */
	};
	/* The formats of json_unpack take no const. */
	if (json_unpack((json_t *)job, "{s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:i,s:i}", "policy",
			&out->policy, "node", &out->node, "user", &out->user, "class",
			&out->class_name, "basis", &basis, "balanced", &balanced, "moved", &moved,
			"exit_kind", &kind, "exit_value", &value))
		return false;
	out->known = strcmp(basis, "nothing") != 0;
	out->balanced = balanced;
	out->moved = moved;
	out->well = kind == 0 && value == 0;
	return true;
}

/*
 * Two files may have the same job, because their times overlap or a report was merged before.
 * Returns 1 if a file had JOB, 0 if none had it, or -ENOMEM.
 */
static int endings_seen(struct endings *o, const json_t *job)
{
	const char *name = json_string_value(json_object_get(job, "job"));

	if (!o->seen || !name)
		return 0;
	if (json_object_get(o->seen, name))
		return 1;
	return json_object_set_new(o->seen, name, json_true()) ? -ENOMEM : 0;
}

int endings_add(struct endings *o, const json_t *list, struct iocom_err *err)
{
	if (!json_is_array(list))
		return iocom_err_set(err, -EBADMSG, "there is no list of jobs");
	if (!o->listed)
		o->listed = json_array();
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *job = json_array_get(list, i);
		int seen = endings_seen(o, job);

		if (seen == 1)
			continue;
		if (o->njobs == GAIN_JOBS) {
			o->cut = true;
			return 0;
		}
		if (seen || array_reserve(o->jobs, o->room, o->njobs + 1, 512) ||
		    json_array_append(o->listed, job))
			return iocom_err_set(err, -ENOMEM, "out of memory");
		if (!endings_take(job, &o->jobs[o->njobs]))
			return iocom_err_set(err, -EBADMSG,
					     "job %zu of the list is not as iocom writes it",
					     i + 1);
		o->njobs++;
	}
	return 0;
}

/* --- from the agent ------------------------------------------------------------------- */

static int endings_ask_page(int fd, uint64_t since_ns, int64_t uid, const json_t *last,
			    json_t **answer, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &buffer, 6);
	pack_str(&pk, "op", "report");
	pack_u64(&pk, "v", 1);
	pack_u64(&pk, "since_ns", since_ns);
	pack_u64(&pk, "before_ns",
		 (uint64_t)json_integer_value(json_object_get(last, "submit_ns")));
	pack_str(&pk, "before", json_string_value(json_object_get(last, "job")));
	if (uid < 0)
		pack_bool(&pk, "all", true);
	else
		pack_u64(&pk, "uid", (uint64_t)uid);
	rc = client_request(fd, buffer.data, buffer.size, answer, err);
	msgpack_sbuffer_destroy(&buffer);
	return rc;
}

/* Returns 1 if another page follows. */
static int endings_page(struct endings *o, int fd, uint64_t since_ns, int64_t uid, json_t **node,
			struct iocom_err *err)
{
	json_t *answer = NULL, *jobs;
	size_t before = o->njobs;
	int rc = endings_ask_page(fd, since_ns, uid, json_array_get(o->listed, before - 1), &answer,
				  err);

	if (rc)
		return rc;
	jobs = json_object_get(answer, "jobs");
	rc = endings_add(o, jobs, err);
	if (!rc && !*node && json_is_string(json_object_get(answer, "node")))
		*node = json_incref(json_object_get(answer, "node"));
	/* A page without jobs is the last one, whatever it says. */
	if (!rc && json_array_size(jobs))
		rc = json_is_true(json_object_get(answer, "more"));
	json_decref(answer);
	return rc;
}

int endings_ask(struct endings *o, const char *run_dir, uint64_t since_ns, int64_t uid,
		json_t **node, struct iocom_err *err)
{
	int fd, rc = client_connect(client_run_dir(run_dir), &fd, err);

	*node = NULL;
	if (rc)
		return rc;
	do
		rc = endings_page(o, fd, since_ns, uid, node, err);
	while (rc == 1 && !o->cut);
	close(fd);
	return rc < 0 ? rc : 0;
}

/* --- from a file ------------------------------------------------------------------------ */

/* Adds the names of LIST that NODES lacks. */
static void endings_add_nodes(json_t *nodes, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *name = json_array_get(list, i);
		size_t at = 0;

		while (at < json_array_size(nodes) && !json_equal(json_array_get(nodes, at), name))
			at++;
		if (at == json_array_size(nodes) && json_is_string(name))
			json_array_append(nodes, name);
	}
}

int endings_read(struct endings *o, const char *file, json_t *nodes, struct iocom_err *err)
{
	json_error_t why;
	json_t *document = json_load_file(file, JSON_REJECT_DUPLICATES, &why);
	struct iocom_err reason = {0};
	int rc;

	if (!document)
		return iocom_err_set(err, -EBADMSG, "cannot read the report %s: %s", file,
				     why.text);
	endings_add_nodes(nodes, json_object_get(document, "homes"));
	if (!o->seen)
		o->seen = json_object();
	o->cut |= json_is_true(json_object_get(document, "cut"));
	rc = endings_add(o, json_object_get(document, "jobs"), &reason);
	if (rc)
		iocom_err_set(err, rc,
			      "cannot read the report %s: %s (was it made with --json "
			      "--jobs?)",
			      file, reason.text);
	json_decref(document);
	return rc;
}

void endings_free(struct endings *o)
{
	free(o->jobs);
	json_decref(o->listed);
	json_decref(o->seen);
	*o = (struct endings){0};
}
