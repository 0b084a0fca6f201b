/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See job_order.h. */
#include "agent/jobs/job_order.h"

#include <errno.h>
#include <string.h>

#include "user/gang_name.h"
#include "user/pack.h"

void job_order_pack(const struct job_order *o, msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 17u + (o->move ? 3 : 0) + o->keyed + o->renews + o->durable +
				      o->data + !!*o->shared + !!o->gang_tasks + o->oversubscribe +
				      !!o->move + o->migratable);
	if (o->migratable)
		pack_bool(&pk, "migratable", true);
	if (o->move) {
		pack_u64(&pk, "move", o->move);
		pack_f64(&pk, "done_cpu_ms", o->done_cpu_ms);
		pack_f64(&pk, "done_requests", o->done_requests);
		pack_u64(&pk, "processor", o->processor);
	}
	if (o->gang_tasks)
		pack_u64(&pk, "gang_tasks", o->gang_tasks);
	if (o->oversubscribe)
		pack_bool(&pk, "oversubscribe", true);
	if (*o->shared)
		pack_bin(&pk, "shared", o->shared, strlen(o->shared));
	if (o->data)
		pack_bool(&pk, "data", true);
	if (o->durable)
		pack_bool(&pk, "durable", true);
	if (o->keyed)
		pack_bin(&pk, "secret", o->secret, sizeof(o->secret));
	if (o->renews)
		pack_bool(&pk, "renews", true);
	pack_str(&pk, "job", o->job);
	pack_str(&pk, "home", o->home);
	pack_str(&pk, "home_address", o->home_address);
	pack_u64(&pk, "home_port", o->home_port);
	pack_u64(&pk, "uid", o->uid);
	pack_u64(&pk, "hops", o->hops);
	pack_bool(&pk, "forced", o->forced);
	pack_bin(&pk, "class", o->class_name, strlen(o->class_name));
	pack_bin(&pk, "command", o->command, strlen(o->command));
	pack_str(&pk, "policy", o->policy);
	pack_bin(&pk, "cwd", o->cwd, strlen(o->cwd));
	pack_bin(&pk, "executable", o->executable, strlen(o->executable));
	pack_u64(&pk, "submit_ns", o->submit_ns);
	pack_u64(&pk, "lease_ms", o->lease_ms);
	pack_f64(&pk, "home_io", o->home_io);
	pack_f64(&pk, "home_cpu", o->home_cpu);
	need_pack(&o->need, &pk);
}

/* Returns 0 or -EBADMSG; the order that a target keeps has no secret. */
static int take_secret(struct job_order *o, const msgpack_object *map)
{
	const msgpack_object *secret = unpack_get(map, "secret");

	if (unpack_get(map, "renews") && unpack_bool(map, "renews", &o->renews))
		return -EBADMSG;
	if (!secret)
		return o->renews ? -EBADMSG : 0;
	if (secret->type != MSGPACK_OBJECT_BIN || secret->via.bin.size != sizeof(o->secret))
		return -EBADMSG;
	memcpy(o->secret, secret->via.bin.ptr, sizeof(o->secret));
	o->keyed = true;
	return 0;
}

void job_order_forget(struct job_order *o)
{
	explicit_bzero(o->secret, sizeof(o->secret));
	o->keyed = o->renews = false;
}

/* What only jobs have that came from another node.  Returns 0 or -EBADMSG. */
static int order_take_move(struct job_order *o, const msgpack_object *map)
{
	if (!unpack_get(map, "move"))
		return 0;
	if (unpack_u64(map, "move", &o->move) || unpack_f64(map, "done_cpu_ms", &o->done_cpu_ms) ||
	    !(o->done_cpu_ms >= 0) || unpack_f64(map, "done_requests", &o->done_requests) ||
	    !(o->done_requests >= 0) ||
	    (unpack_get(map, "processor") && unpack_u64(map, "processor", &o->processor)))
		return -EBADMSG;
	return 0;
}

/* What only parts of gangs have.  Returns 0 or -EBADMSG. */
static int order_take_gang(struct job_order *o, const msgpack_object *map)
{
	uint64_t tasks = 0;

	if ((unpack_get(map, "gang_tasks") && unpack_u64(map, "gang_tasks", &tasks)) ||
	    tasks > GANG_TASKS_MAX || (tasks && !gang_part_of(o->job, NULL, NULL)) ||
	    (unpack_get(map, "oversubscribe") &&
	     unpack_bool(map, "oversubscribe", &o->oversubscribe)))
		return -EBADMSG;
	o->gang_tasks = (uint32_t)tasks;
	return 0;
}

int job_order_unpack(struct job_order *o, const msgpack_object *map)
{
	uint64_t port, uid, hops, lease_ms = 0;

	*o = (struct job_order){0};
	if (unpack_str(map, "job", o->job, sizeof(o->job)) || !spec_job_valid(o->job) ||
	    unpack_str(map, "home", o->home, sizeof(o->home)) ||
	    unpack_str(map, "home_address", o->home_address, sizeof(o->home_address)) ||
	    unpack_u64(map, "home_port", &port) || port > UINT16_MAX ||
	    unpack_u64(map, "uid", &uid) || uid >= UINT32_MAX || unpack_u64(map, "hops", &hops) ||
	    hops > 1000 ||
	    (unpack_get(map, "lease_ms") && unpack_u64(map, "lease_ms", &lease_ms)) ||
	    lease_ms > UINT32_MAX || unpack_bool(map, "forced", &o->forced) ||
	    (unpack_get(map, "shared") &&
	     unpack_str(map, "shared", o->shared, sizeof(o->shared))) ||
	    (unpack_get(map, "data") && unpack_bool(map, "data", &o->data)) ||
	    order_take_move(o, map) ||
	    (unpack_get(map, "migratable") && unpack_bool(map, "migratable", &o->migratable)) ||
	    (unpack_get(map, "durable") && unpack_bool(map, "durable", &o->durable)) ||
	    unpack_str(map, "class", o->class_name, sizeof(o->class_name)) ||
	    unpack_str(map, "command", o->command, sizeof(o->command)) ||
	    unpack_str(map, "policy", o->policy, sizeof(o->policy)) ||
	    unpack_str(map, "cwd", o->cwd, sizeof(o->cwd)) ||
	    unpack_str(map, "executable", o->executable, sizeof(o->executable)) ||
	    unpack_u64(map, "submit_ns", &o->submit_ns) ||
	    unpack_f64(map, "home_io", &o->home_io) || o->home_io < 0 ||
	    unpack_f64(map, "home_cpu", &o->home_cpu) || o->home_cpu < 0 || take_secret(o, map) ||
	    order_take_gang(o, map) || need_unpack(&o->need, map))
		return -EBADMSG;
	o->home_port = (uint16_t)port;
	o->uid = (uid_t)uid;
	o->hops = (uint32_t)hops;
	o->lease_ms = (uint32_t)lease_ms;
	return 0;
}
