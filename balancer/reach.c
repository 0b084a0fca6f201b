/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See reach.h. */
#include "balancer/reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/client.h"
#include "balancer/job_name.h"
#include "balancer/listing.h"
#include "user/attach.h"
#include "user/pack.h"
#include "user/user_ask.h"

#define REACH_NODES_MAX	  64   /* in one request to the agent */
#define REACH_ONE_WAIT_MS 2500 /* a signal may take its time */
#define REACH_ALL_WAIT_MS 1000

int reach_open(struct reach *reach, const char *run_dir, struct iocom_err *err)
{
	const char *socket = getenv("IOCOM_MUNGE_SOCKET");
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc;

	*reach = (struct reach){
		.run_dir = run_dir, .fd = -1, .self = "", .wait_ms = REACH_ALL_WAIT_MS};
	rc = client_connect(run_dir, &reach->fd, err);
	if (rc) {
		reach->fd = -1;
		return rc;
	}
	pack_begin(&pk, &buffer, 2);
	pack_str(&pk, "op", "reach");
	pack_u64(&pk, "v", 1);
	rc = client_request(reach->fd, buffer.data, buffer.size, &reach->known, err);
	msgpack_sbuffer_destroy(&buffer);
	if (rc == -EIO && strstr(err->text, "does not know the request")) {
		err->text[0] = 0;
		return 0;
	}
	if (rc)
		return rc;
	reach->self = listing_string(reach->known, "node");
	if (!socket || !*socket)
		socket = listing_string(reach->known, "munge_socket");
	reach->munge_socket = *socket ? socket : NULL;
	return 0;
}

void reach_close(struct reach *reach)
{
	if (reach->fd >= 0)
		close(reach->fd);
	json_decref(reach->known);
	*reach = (struct reach){.fd = -1, .self = ""};
}

bool reach_knows(const struct reach *reach, const char *node, bool *alive)
{
	json_t *n;
	size_t i;

	json_array_foreach (json_object_get(reach->known, "nodes"), i, n) {
		if (strcmp(listing_string(n, "name"), node) != 0)
			continue;
		if (alive)
			*alive = json_is_true(json_object_get(n, "alive"));
		return true;
	}
	return false;
}

/* --- asking ---------------------------------------------------------------------- */

/* Adds { node, ask, cred } for NODE. */
static int reach_seal(const struct reach *reach, const char *node, const msgpack_sbuffer *request,
		      msgpack_packer *pk, struct iocom_err *err)
{
	struct user_ask ask = {.boot_id = reach->boot_id,
			       .at_s = (uint64_t)time(NULL),
			       .request = request->data,
			       .length = request->size};
	char *credential = NULL;
	void *packed = NULL;
	size_t length;
	int rc;

	if (strlen(node) >= sizeof(ask.node))
		return iocom_err_set(err, -EPROTO, "the agent names a node that cannot be");
	strcpy(ask.node, node);
	attach_nonce(ask.nonce);
	rc = user_ask_pack(&ask, &packed, &length);
	if (rc)
		return iocom_err_set(err, rc, "the request for node %s is too long", node);
	rc = user_ask_seal(&ask, packed, length, reach->munge_socket, &credential, err);
	if (!rc) {
		msgpack_pack_map(pk, 3);
		pack_str(pk, "node", node);
		pack_bin(pk, "ask", packed, length);
		pack_str(pk, "cred", credential);
	}
	free(credential);
	free(packed);
	return rc;
}

/* Asks COUNT nodes, and calls EACH for their answers. */
static int reach_some(struct reach *reach, const char *const *nodes, size_t count,
		      const msgpack_sbuffer *request, unsigned wait_ms, reach_each *each, void *arg,
		      struct iocom_err *err)
{
	json_t *answer = NULL, *row;
	msgpack_sbuffer buffer;
	msgpack_packer pk;
	int rc = 0;
	size_t i;

	pack_begin(&pk, &buffer, 4);
	pack_str(&pk, "op", "gather");
	pack_u64(&pk, "v", 1);
	pack_u64(&pk, "wait_ms", wait_ms);
	pack_key(&pk, "asks");
	msgpack_pack_array(&pk, count);
	for (i = 0; i < count && !rc; i++)
		rc = reach_seal(reach, nodes[i], request, &pk, err);
	if (!rc)
		rc = client_request(reach->fd, buffer.data, buffer.size, &answer, err);
	msgpack_sbuffer_destroy(&buffer);
	json_array_foreach (json_object_get(answer, "answers"), i, row)
		each(arg, listing_string(row, "node"), json_object_get(row, "answer"),
		     listing_string(row, "error"), json_is_true(json_object_get(row, "silent")));
	json_decref(answer);
	return rc;
}

int reach_all(struct reach *reach, const msgpack_sbuffer *request, reach_each *each, void *arg,
	      struct iocom_err *err)
{
	const char *nodes[REACH_NODES_MAX];
	size_t i, n = 0;
	json_t *node;
	int rc = 0;

	json_array_foreach (json_object_get(reach->known, "nodes"), i, node) {
		if (!json_is_true(json_object_get(node, "alive"))) {
			each(arg, listing_string(node, "name"), NULL, "is silent", true);
			continue;
		}
		nodes[n++] = listing_string(node, "name");
		if (n < REACH_NODES_MAX)
			continue;
		rc = reach_some(reach, nodes, n, request, reach->wait_ms, each, arg, err);
		n = 0;
		if (rc)
			return rc;
	}
	return n ? reach_some(reach, nodes, n, request, reach->wait_ms, each, arg, err) : 0;
}

struct reach_one {
	json_t *answer;
	struct iocom_err *err;
	int rc;
};

/* "is silent" and "did not answer in 1 s" go on from the node's name; other reasons do not. */
static bool reach_predicate(const char *why)
{
	return !strncmp(why, "is ", 3) || !strncmp(why, "did ", 4);
}

static void reach_took(void *arg, const char *node, json_t *answer, const char *why, bool silent)
{
	struct reach_one *one = arg;

	if (answer) {
		one->answer = json_incref(answer);
		one->rc = 0;
	} else if (silent) {
		one->rc = iocom_err_set(one->err, -EHOSTUNREACH,
					reach_predicate(why) ? "node %s %.400s" : "node %s: %.400s",
					node, why);
	} else {
		one->rc = iocom_err_set(one->err, -EIO, "%.400s", why);
	}
}

int reach_ask(struct reach *reach, const char *node, const msgpack_sbuffer *request,
	      json_t **answer, struct iocom_err *err)
{
	struct reach_one one = {.err = err, .rc = -EPROTO};
	int rc = reach_some(reach, &node, 1, request, REACH_ONE_WAIT_MS, reach_took, &one, err);

	*answer = one.answer;
	if (!rc && one.rc == -EPROTO)
		return iocom_err_set(err, -EPROTO, "the agent's answer does not name node %s",
				     node);
	return rc ? rc : one.rc;
}

/* --- jobs' names ------------------------------------------------------------------- */

const char *reach_where(const struct reach *reach, const char *job, char home[64])
{
	struct job_name name;
	bool alive = false;

	job_name_parse(job, &name);
	if (name.kind != JOB_NAME_WHOLE || !strcmp(name.home, reach->self) ||
	    !reach_knows(reach, name.home, &alive) || !alive)
		return NULL;
	strcpy(home, name.home);
	return home;
}

/* The jobs that a short name may mean. */
struct reach_named {
	const struct job_name *name;
	const char *self;
	char job[SPEC_JOB_MAX]; /* the first of those that have not ended, else of all */
	char list[400];		/* all */
	size_t all, live, listed;
};

static void named_add(struct reach_named *named, const char *job, bool ended)
{
	size_t used = strlen(named->list), n = strlen(job);
	const char *again = strstr(named->list, job);

	if (n >= SPEC_JOB_MAX || !job_name_fits(named->name, job) ||
	    (again && (again[n] == 0 || again[n] == ',')))
		return; /* its node told of it, too */
	if (!named->all || (!ended && !named->live))
		strcpy(named->job, job);
	named->all++;
	named->live += !ended;
	if (used + n + 3 < sizeof(named->list)) {
		snprintf(named->list + used, sizeof(named->list) - used, "%s%s", used ? ", " : "",
			 job);
		named->listed++;
	}
}

static void named_each(void *arg, const char *node, json_t *answer, const char *why, bool silent)
{
	struct reach_named *named = arg;
	json_t *job;
	size_t i;

	(void)why;
	(void)silent; /* its jobs cannot be meant: nobody could do anything with them */
	json_array_foreach (json_object_get(answer, "jobs"), i, job) {
		const char *text = listing_string(job, "job");
		struct job_name whole;

		/* Another node's word counts for the jobs of which it is the home. */
		job_name_parse(text, &whole);
		if (!strcmp(node, named->self) || !strcmp(node, whole.home))
			named_add(named, text, listing_number(job, "end_ns") > 0);
	}
}

/* Finds what the short NAME means. */
static int reach_short(struct reach *reach, const struct job_name *name, struct reach_named *named,
		       struct iocom_err *err)
{
	bool alive = false, far = reach_knows(reach, name->home, &alive);
	char pattern[SPEC_JOB_MAX];
	json_t *answer = NULL;
	msgpack_sbuffer request;
	msgpack_packer pk;
	int rc;

	job_name_pattern(name, pattern, sizeof(pattern));
	pack_begin(&pk, &request, 3);
	pack_str(&pk, "op", "jobs");
	pack_u64(&pk, "v", 1);
	pack_str(&pk, "named", pattern);
	rc = client_request(reach->fd, request.data, request.size, &answer, err);
	if (!rc)
		named_each(named, reach->self, answer, "", false);
	json_decref(answer);
	answer = NULL;
	if (!rc && far && alive) {
		(void)reach_ask(reach, name->home, &request, &answer, err);
		named_each(named, name->home, answer, "", false);
		json_decref(answer);
		err->text[0] = 0;
	} else if (!rc && !*name->home) {
		rc = reach_all(reach, &request, named_each, named, err);
	}
	msgpack_sbuffer_destroy(&request);
	return rc;
}

int reach_job(struct reach *reach, const char *text, char job[SPEC_JOB_MAX], struct iocom_err *err)
{
	struct job_name name;
	struct reach_named named = {.name = &name, .self = reach->self};
	bool unknown;
	int rc;

	job_name_parse(text, &name);
	if (strlen(text) >= SPEC_JOB_MAX)
		return iocom_err_set(err, -ENOENT, "no job has so long a name");
	strcpy(job, text);
	if (name.kind == JOB_NAME_ODD)
		return iocom_err_set(err, -ENOENT,
				     "'%.100s' is no job's name; `iocom jobs --all` lists yours",
				     text);
	if (name.kind != JOB_NAME_SHORT)
		return 0;
	unknown = *name.home && strcmp(name.home, reach->self) != 0 &&
		  !reach_knows(reach, name.home, NULL);
	rc = reach_short(reach, &name, &named, err);
	if (rc)
		return rc;
	if (!named.all)
		return iocom_err_set(err, -ENOENT,
				     "no job of yours has the number %s%s%s%s; `iocom jobs --all` "
				     "lists them",
				     name.number, *name.home ? " at node " : "", name.home,
				     unknown ? ", which is not known here" : "");
	if (named.all > 1 && named.live != 1)
		return iocom_err_set(err, -ENOTUNIQ, "'%s' may be %s%s: write the whole name", text,
				     named.list, named.listed < named.all ? " and others" : "");
	strcpy(job, named.job);
	return 0;
}

int reach_home(struct reach *reach, const char *job, const msgpack_sbuffer *request,
	       json_t **answer, struct iocom_err *err)
{
	char home[64];
	const char *node = reach_where(reach, job, home);
	struct iocom_err own = {0};
	struct job_name name;
	bool alive = true;
	int rc;

	if (node) {
		rc = reach_ask(reach, node, request, answer, err);
		if (rc != -EHOSTUNREACH && rc != -EHOSTDOWN)
			return rc;
		/* If the job runs here, this node can do without its home. */
		if (client_request(reach->fd, request->data, request->size, answer, &own))
			return rc;
		err->text[0] = 0;
		return 0;
	}
	rc = client_request(reach->fd, request->data, request->size, answer, err);
	job_name_parse(job, &name);
	if (rc == -EIO && name.kind == JOB_NAME_WHOLE && reach_knows(reach, name.home, &alive) &&
	    !alive)
		return iocom_err_set(err, -EHOSTUNREACH,
				     "node %s, where job %s was submitted, is silent", name.home,
				     job);
	return rc;
}
