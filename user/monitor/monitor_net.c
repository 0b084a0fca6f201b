/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* TCP in user space: the zero point of old sockets, and the maps behind the rows by address. */
#include "user/monitor/monitor_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REMOTES_LIMIT 65536

void monitor_net_size(struct iocom_bpf *skel, unsigned remotes_max)
{
	unsigned named = remotes_max ? remotes_max : REMOTES_MAX;

	if (named > REMOTES_LIMIT)
		named = REMOTES_LIMIT;
	bpf_map__set_max_entries(skel->maps.remotes, named + REMOTES_OTHER_MAX);
	bpf_map__set_max_entries(skel->maps.remote_index, named + REMOTES_OTHER_MAX);
	bpf_map__set_max_entries(skel->maps.remote_free, named);
	bpf_map__set_max_entries(skel->maps.remote_free_other, REMOTES_OTHER_MAX);
}

static int forget_slot(void *arg, const struct remote_key *key)
{
	const struct monitor_net *net = arg;

	if (bpf_map_delete_elem(net->index_fd, key) && errno != ENOENT)
		return -errno;
	return 0;
}

static int release_slot(void *arg, unsigned slot, bool other)
{
	const struct monitor_net *net = arg;
	__u32 index = slot;

	if (bpf_map_update_elem(other ? net->free_other_fd : net->free_fd, NULL, &index, BPF_ANY))
		return -errno;
	return 0;
}

/* Reads the next elements of the table FD. */
static int monitor_net_batch(int fd, bool first, __u32 *cursor, void *keys, void *values,
			     size_t room)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	__u32 count = (__u32)room;

	/* The call that reaches the end may bring elements, too; the next one brings none. */
	if (!first && *cursor == UINT32_MAX)
		return 0;
	if (!bpf_map_lookup_batch(fd, first ? NULL : cursor, cursor, keys, values, &count, &opts))
		return (int)count;
	if (errno != ENOENT)
		return -errno;
	*cursor = UINT32_MAX;
	return (int)count;
}

static int read_pairs(void *arg, bool first, struct pair_key *keys, struct pair_value *values,
		      size_t room)
{
	struct monitor_net *net = arg;

	return monitor_net_batch(net->pairs_fd, first, &net->cursor, keys, values, room);
}

static int read_gang_tasks(void *arg, bool first, struct gang_task_key *keys,
			   struct gang_task_value *values, size_t room)
{
	struct monitor_net *net = arg;

	return monitor_net_batch(net->tasks_fd, first, &net->tasks_cursor, keys, values, room);
}

static void remove_pair(void *arg, const struct pair_key *key)
{
	const struct monitor_net *net = arg;

	bpf_map_delete_elem(net->pairs_fd, key);
}

static void remove_gang_task(void *arg, const struct gang_task_key *key)
{
	const struct monitor_net *net = arg;

	bpf_map_delete_elem(net->tasks_fd, key);
}

static struct pairs *monitor_net_pairs(struct monitor_net *net, struct iocom_bpf *skel)
{
	const struct pairs_config config = {
		.read = read_pairs,
		.read_tasks = read_gang_tasks,
		.remove = remove_pair,
		.remove_task = remove_gang_task,
		.arg = net,
		.most = bpf_map__max_entries(skel->maps.pairs),
	};

	net->pairs_fd = bpf_map__fd(skel->maps.pairs);
	net->tasks_fd = bpf_map__fd(skel->maps.gang_tasks);
	return pairs_new(&config);
}

int monitor_net_init(struct monitor_net *net, struct iocom_bpf *skel, unsigned idle_ms,
		     struct iocom_err *err)
{
	unsigned named = bpf_map__max_entries(skel->maps.remote_free);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct remotes_config config = {
		.named = named,
		.other = REMOTES_OTHER_MAX,
		.taken = (const uint64_t *)skel->bss->remotes_taken,
		.idle_ms = idle_ms ? idle_ms : REMOTES_IDLE_MS,
		.forget = forget_slot,
		.release = release_slot,
		.arg = net,
	};
	void *slots;

	net->index_fd = bpf_map__fd(skel->maps.remote_index);
	net->free_fd = bpf_map__fd(skel->maps.remote_free);
	net->free_other_fd = bpf_map__fd(skel->maps.remote_free_other);
	net->mapped = (named + REMOTES_OTHER_MAX) * sizeof(struct remote_slot);
	net->mapped = (net->mapped + page - 1) / page * page;
	slots = mmap(NULL, net->mapped, PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(skel->maps.remotes), 0);
	if (slots == MAP_FAILED)
		return iocom_err_set(err, -errno, "cannot map the table of remote addresses: %s",
				     strerror(errno));
	config.slots = net->slots = slots;
	net->remotes = remotes_new(&config);
	if (net->remotes)
		net->pairs = monitor_net_pairs(net, skel);
	if (!net->remotes || !net->pairs)
		return iocom_err_set(err, -ENOMEM, "cannot set up the table of remote addresses");
	return 0;
}

int monitor_net_baseline(struct iocom_bpf *skel, struct iocom_err *err)
{
	int fd = bpf_iter_create(bpf_link__fd(skel->links.old_sockets));
	char nothing[64];
	ssize_t n;

	if (fd < 0)
		return iocom_err_set(err, -errno, "cannot start the sweep over all sockets: %s",
				     strerror(errno));
	do
		n = read(fd, nothing, sizeof(nothing));
	while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	if (n < 0)
		n = iocom_err_set(err, -errno, "the sweep over all sockets failed: %s",
				  strerror(errno));
	close(fd);
	return (int)n;
}

int monitor_net_read(struct monitor_net *net, uint64_t now_ns, struct monitor_sample *sample,
		     struct iocom_err *err)
{
	int rc = remotes_read(net->remotes, now_ns / 1000000, &sample->remotes, &sample->nremotes);

	if (rc)
		return iocom_err_set(err, rc, "cannot free the slots of remote addresses: %s",
				     strerror(-rc));
	rc = pairs_read(net->pairs, now_ns / 1000000, &sample->pairs);
	if (rc)
		return iocom_err_set(err, rc, "cannot read the connections of gangs: %s",
				     strerror(-rc));
	return 0;
}

int monitor_net_gang(struct monitor_net *net, struct iocom_bpf *skel, uint64_t cgroup_id, bool is,
		     struct iocom_err *err)
{
	int fd = bpf_map__fd(skel->maps.gangs), rc = 0;
	__u32 one = 1;

	if (!is)
		pairs_drop_gang(net->pairs, cgroup_id);
	else
		rc = pairs_add_gang(net->pairs, cgroup_id);
	if (!rc && is && bpf_map_update_elem(fd, &cgroup_id, &one, BPF_ANY)) {
		rc = -errno;
		pairs_drop_gang(net->pairs, cgroup_id);
	}
	if (!is)
		bpf_map_delete_elem(fd, &cgroup_id);
	__atomic_store_n(&skel->bss->gangs_known, pairs_gangs(net->pairs) != 0, __ATOMIC_RELEASE);
	/* Threads look again at their next send or receive. */
	__atomic_fetch_add(&skel->bss->moves, 1, __ATOMIC_RELEASE);
	if (rc)
		return iocom_err_set(err, rc, "cannot count the connections of a gang: %s",
				     strerror(-rc));
	return 0;
}

void monitor_net_deinit(struct monitor_net *net)
{
	pairs_free(net->pairs);
	remotes_free(net->remotes);
	if (net->slots)
		munmap(net->slots, net->mapped);
	memset(net, 0, sizeof(*net));
}
