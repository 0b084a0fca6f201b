/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the order; see order.h. */
#include "agent/shim/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "user/pack.h"
#include "user/utf8.h"

static int take_replay(const msgpack_object *map, struct order *order, struct iocom_err *err)
{
	const msgpack_object *ask = unpack_get(map, "attach");
	uint64_t reader = 0;

	order->replay = true;
	if (unpack_get(map, "slot") && (unpack_str(map, "slot", order->slot, sizeof(order->slot)) ||
					unpack_u64(map, "reader", &reader) || reader > UINT32_MAX))
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	order->reader = (uid_t)reader;
	if (ask->type != MSGPACK_OBJECT_BIN ||
	    unpack_str(map, "jobs_dir", order->jobs_dir, sizeof(order->jobs_dir)))
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	return attach_unpack(&order->ask, ask->via.bin.ptr, ask->via.bin.size, err);
}

/* An older agent sends no begin_ms. */
static int take_begin(const msgpack_object *map, struct order *order)
{
	uint64_t ms = SHIM_BEGIN_MS;

	if (unpack_get(map, "begin_ms") &&
	    (unpack_u64(map, "begin_ms", &ms) || !ms || ms > INT32_MAX))
		return -EBADMSG;
	order->begin_ms = (uint32_t)ms;
	return 0;
}

/* An older agent sends no spill_max: it lets each job leave as much as there can be. */
static int take_spill(const msgpack_object *map, struct order *order)
{
	order->spill_max = SHIM_SPILL_MAX;
	return unpack_get(map, "spill_max") && unpack_u64(map, "spill_max", &order->spill_max)
		       ? -EBADMSG
		       : 0;
}

/* Returns 0 also if the agent sent no account. */
static int take_account(const msgpack_object *map, struct order *order)
{
	const msgpack_object *groups = unpack_get(map, "groups");
	struct account *account = &order->account;
	char name[256];
	size_t size;

	if (!groups)
		return 0;
	if (unpack_str(map, "user", name, sizeof(name)) || !*name ||
	    groups->type != MSGPACK_OBJECT_BIN)
		return -EBADMSG;
	size = groups->via.bin.size;
	if (!size || size % sizeof(gid_t) || size > SHIM_GROUPS_MAX * sizeof(gid_t))
		return -EBADMSG;
	account->uid = order->uid;
	account->name = strdup(name);
	account->groups = malloc(size);
	if (!account->name || !account->groups) {
		account_free(account);
		return -ENOMEM;
	}
	memcpy(account->groups, groups->via.bin.ptr, size);
	account->ngroups = (int)(size / sizeof(gid_t));
	return 0;
}

/* Returns 0 or -EBADMSG. An older agent sends no secret and renews the lease itself. */
static int take_renew(const msgpack_object *map, struct order *order)
{
	const msgpack_object *secret = unpack_get(map, "renew_secret");
	struct order_renew *renew = &order->renew;
	uint64_t port, lease_ms;

	if (!secret)
		return 0;
	if (secret->type != MSGPACK_OBJECT_BIN || secret->via.bin.size != RENEWAL_SECRET ||
	    unpack_str(map, "renew_address", renew->address, sizeof(renew->address)) ||
	    unpack_u64(map, "renew_port", &port) || !port || port > UINT16_MAX ||
	    unpack_u64(map, "renew_lease_ms", &lease_ms) || !lease_ms || lease_ms > UINT32_MAX ||
	    !order->lease_until_ms)
		return -EBADMSG;
	memcpy(renew->secret, secret->via.bin.ptr, sizeof(renew->secret));
	renew->port = (uint16_t)port;
	renew->lease_ms = (uint32_t)lease_ms;
	renew->wanted = true;
	return 0;
}

/* Returns 0 or -EBADMSG. An older agent sends neither; a client of this machine has no keys. */
static int take_keys(const msgpack_object *map, struct order *order)
{
	const msgpack_object *secret = unpack_get(map, "secret");
	const msgpack_object *records = unpack_get(map, "records");

	if (secret &&
	    (secret->type != MSGPACK_OBJECT_BIN || secret->via.bin.size != sizeof(order->secret)))
		return -EBADMSG;
	if (records &&
	    (records->type != MSGPACK_OBJECT_BIN ||
	     records_unpack(&order->records, records->via.bin.ptr, records->via.bin.size)))
		return -EBADMSG;
	if (secret)
		memcpy(order->secret, secret->via.bin.ptr, sizeof(order->secret));
	order->keyed = secret != NULL;
	order->secure = records != NULL;
	return 0;
}

/* Returns 0 or -EBADMSG. */
static int take_user_limits(const msgpack_object *map, struct order *order)
{
	struct cgroup_limits *limits = &order->user_limits;

	(void)unpack_bool(map, "guest", &order->guest);
	order->by_user = unpack_get(map, "user_tasks") != NULL;
	if (!order->by_user)
		return 0;
	return unpack_u64(map, "user_tasks", &limits->tasks) ||
			       unpack_u64(map, "user_memory_bytes", &limits->memory_bytes) ||
			       unpack_u64(map, "user_swap_bytes", &limits->swap_bytes) ||
			       limits->memory_bytes > INT64_MAX / 2 ||
			       limits->swap_bytes > INT64_MAX / 2
		       ? -EBADMSG
		       : 0;
}

/* An older agent has no place for data. */
static int take_data(const msgpack_object *map, struct order *order)
{
	if (!unpack_get(map, "data_dir"))
		return 0;
	return unpack_str(map, "data_dir", order->data_dir, sizeof(order->data_dir)) ||
			       unpack_u64(map, "data_cache_bytes", &order->data_cache_bytes) ||
			       order->data_cache_bytes > DATA_BYTES_MAX
		       ? -EBADMSG
		       : 0;
}

static int take_arrival(const msgpack_object *map, struct order *order)
{
	order->arrives = unpack_get(map, "criu") != NULL;
	return order->arrives && unpack_str(map, "criu", order->criu, sizeof(order->criu))
		       ? -EBADMSG
		       : 0;
}

static int order_take(const msgpack_object *map, struct order *order, struct iocom_err *err)
{
	uint64_t version, uid, gid;
	const msgpack_object *spec;

	if (unpack_u64(map, "v", &version) || version < SHIM_VERSION_MIN || version > SHIM_VERSION)
		return iocom_err_set(
			err, -EPROTO,
			"iocom-shim and iocomd are of different versions; install both "
			"from one build");
	if (take_keys(map, order))
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	if (unpack_get(map, "attach"))
		return take_replay(map, order, err);
	spec = unpack_get(map, "spec");
	if (unpack_u64(map, "uid", &uid) || unpack_u64(map, "gid", &gid) || uid >= UINT32_MAX ||
	    gid >= UINT32_MAX || unpack_bool(map, "allow_root", &order->allow_root) ||
	    unpack_str(map, "jobs_dir", order->jobs_dir, sizeof(order->jobs_dir)) ||
	    unpack_str(map, "run_dir", order->run_dir, sizeof(order->run_dir)) ||
	    unpack_str(map, "scope", order->scope, sizeof(order->scope)) ||
	    unpack_str(map, "pam", order->pam, sizeof(order->pam)) ||
	    unpack_u64(map, "spool_max", &order->spool_max) || !spec ||
	    spec->type != MSGPACK_OBJECT_BIN)
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	if (unpack_get(map, "lease_until_ms") &&
	    (unpack_u64(map, "lease_until_ms", &order->lease_until_ms) || !order->lease_until_ms))
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	if (take_begin(map, order) || take_spill(map, order) || take_renew(map, order) ||
	    take_user_limits(map, order) || take_data(map, order) || take_arrival(map, order))
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	order->uid = (uid_t)uid;
	order->gid = (gid_t)gid;
	if (take_account(map, order))
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	return spec_unpack(&order->spec, spec->via.bin.ptr, spec->via.bin.size, err);
}

int order_read(int fd, struct order *order, struct iocom_err *err)
{
	msgpack_unpacked message;
	struct stat st;
	void *data;
	int rc;

	*order = (struct order){0};
	if (fstat(fd, &st))
		return iocom_err_set(err, -errno, "cannot read the agent's order: %s",
				     strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > SHIM_ORDER_MAX)
		return iocom_err_set(err, -EBADMSG, "the agent's order is malformed");
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return iocom_err_set(err, -errno, "cannot read the agent's order: %s",
				     strerror(errno));
	rc = unpack_map(&message, data, (size_t)st.st_size)
		     ? iocom_err_set(err, -EBADMSG, "the agent's order is malformed")
		     : 0;
	if (!rc) {
		rc = order_take(&message.data, order, err);
		msgpack_unpacked_destroy(&message);
	}
	munmap(data, (size_t)st.st_size);
	return rc;
}

void order_deinit(struct order *order)
{
	spec_free(&order->spec);
	account_free(&order->account);
	explicit_bzero(order->secret, sizeof(order->secret));
	records_erase(&order->records);
}

void order_command(const struct order *order, char *out, size_t size)
{
	utf8_line(order->spec.argv, out, size);
}
