/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a submission asks for: policy, node, need, restarts; see place.c. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "user/clock.h"
#include "user/pack.h"
#include "agent/home/place.h"

static int take_policy(struct place *p, const msgpack_object *req, struct iocom_err *err)
{
	char name[64];
	int rc = unpack_str(req, "policy", name, sizeof(name));

	if (rc == -ENOENT)
		snprintf(name, sizeof(name), "%s", p->home->base->set->policy);
	else if (rc)
		return iocom_err_set(err, rc, "\"policy\" is not a name");
	rc = settings_policy(name, &p->policy, err);
	if (!rc)
		snprintf(p->order.policy, sizeof(p->order.policy), "%s", p->policy.name);
	return rc;
}

static int place_request_take_node(struct place *p, const msgpack_object *req,
				   struct iocom_err *err)
{
	const struct home *home = p->home;
	const struct matrix_entry *e;
	char known[600] = "", why[PEER_TEXT_MAX], silent[128] = "unknown here";
	int rc = unpack_str(req, "node", p->node, sizeof(p->node));

	if (rc == -ENOENT)
		return 0;
	if (rc)
		return iocom_err_set(err, rc, "\"node\" is not a name");
	if (!strcmp(p->node, home->base->set->name))
		return 0;
	e = matrix_find(home->matrix, p->node);
	if ((e && e->alive) || unpack_get(req, "again")) /* it may come back: not_again */
		return 0;
	for (size_t i = 0; i < home->matrix->count; i++) {
		size_t n = strlen(known);

		if (matrix_at(home->matrix, i)->alive)
			snprintf(known + n, sizeof(known) - n, ", %s",
				 matrix_at(home->matrix, i)->vector.name);
	}
	/* Every node looks silent then: the fault is here. */
	if (home->ports->mute(home->ports->arg))
		return iocom_err_set(err, -EHOSTDOWN,
				     "node '%s' is not heard: munged does not answer on this "
				     "machine, and without it no other machine is believed; start "
				     "it (systemctl start munge)",
				     p->node);
	if (skews_say(home->skews, p->node, loop_boot_ns(home->base->loop), why, sizeof(why)))
		return iocom_err_set(err, -ENOENT, "node '%s' is not believed: %s", p->node, why);
	if (e)
		snprintf(silent, sizeof(silent),
			 "silent for %.0f s: it is down or cut off (is iocomd running there?)",
			 (double)matrix_age_ns(e, loop_boot_ns(home->base->loop)) / 1e9);
	return iocom_err_set(err, -ENOENT, "node '%s' is %s; known nodes: %s%s", p->node, silent,
			     home->base->set->name, known);
}

static int take_need(struct place *p, const msgpack_object *req, uid_t uid, struct iocom_err *err)
{
	struct home *home = p->home;
	struct profile profile;
	bool known = false;
	int rc;

	if (p->order.class_name[0]) {
		rc = profile_get(home->profiles, uid, p->order.class_name, &profile, err);
		if (rc && rc != -ENOENT)
			base_journal_failed(home->base, err);
		known = rc == 0;
	}
	rc = need_resolve(&p->order.need, unpack_get(req, "need"), known ? &profile : NULL, err);
	if (!rc)
		need_request(&p->order.need, &p->request);
	return rc;
}

static int take_restart(struct place *p, const msgpack_object *req, struct iocom_err *err)
{
	int rc = unpack_u64(req, "restarts", &p->restarts);

	p->attempt = 1;
	p->restartable = rc == 0;
	if (rc && rc != -ENOENT)
		return iocom_err_set(err, rc, "\"restarts\" is not a number");
	if (p->restarts > LEASE_RESTARTS_MAX)
		return iocom_err_set(err, -EINVAL, "\"restarts\" is more than %d",
				     LEASE_RESTARTS_MAX);
	rc = unpack_str(req, "again", p->again, sizeof(p->again));
	if (rc && rc != -ENOENT)
		return iocom_err_set(err, rc, "\"again\" is not a job's name");
	return rc || p->restartable ? 0
				    : iocom_err_set(err, -EINVAL, "\"again\" without \"restarts\"");
}

int place_take_request(struct place *p, const msgpack_object *req, uid_t uid, struct iocom_err *err)
{
	struct job_order *o = &p->order;
	struct home *home = p->home;
	int rc = take_policy(p, req, err);

	if (!rc)
		rc = place_request_take_node(p, req, err);
	if (rc)
		return rc;
	if (unpack_str(req, "cwd", o->cwd, sizeof(o->cwd)) ||
	    unpack_str(req, "executable", o->executable, sizeof(o->executable)))
		return iocom_err_set(err, -EINVAL,
				     "the request lacks \"cwd\" or \"executable\", or they are "
				     "longer than %d bytes",
				     PATH_MAX - 1);
	rc = unpack_str(req, "class", o->class_name, sizeof(o->class_name));
	if (rc && rc != -ENOENT)
		return iocom_err_set(err, rc, "\"class\" is not a name of at most 63 bytes");
	if (unpack_str(req, "command", o->command, sizeof(o->command)))
		snprintf(o->command, sizeof(o->command), "%.255s", o->executable);
	unpack_bool(req, "run", &p->run);
	unpack_bool(req, "view", &p->show_view);
	unpack_bool(req, "picked", &p->picked);
	unpack_bool(req, "home_dir", &p->home_dir);
	unpack_bool(req, "worker", &p->worker);
	snprintf(o->home, sizeof(o->home), "%s", home->base->set->name);
	snprintf(o->home_address, sizeof(o->home_address), "%s", home->base->set->address);
	o->home_port = (uint16_t)home->base->set->port;
	o->uid = uid;
	o->submit_ns = loop_real_ns(home->base->loop);
	o->forced = p->node[0] != 0;
	rc = take_restart(p, req, err);
	return rc ? rc : take_need(p, req, uid, err);
}
