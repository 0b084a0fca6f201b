/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The owner's caps on the control group of guests.  What a kernel cannot hold there the admission
 * holds alone: it lets no job in that would exceed the cap by what it is known to need.
 */
#include "agent/owner/owner_own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/clock.h"

bool owner_caps_any(const struct owner_rules *rules)
{
	for (enum owner_resource at = 0; at < OWNER_RESOURCES; at++)
		if (rules->caps[at].unit != OWNER_NO_CAP)
			return true;
	return false;
}

/* What the node has of a resource, in cores, bytes, MB/s; 0: nobody knows. */
static double caps_whole(const struct iocom_vector *own, enum owner_resource at)
{
	/* A limit on the node's own processors counts as slower ones. */
	double share = own->cpu_burst > 0 ? own->cpu_speed / own->cpu_burst : 1;
	const double whole[OWNER_RESOURCES] = {own->cores * share, own->memory_mb * 1e6,
					       own->disk_mb_per_s, own->network_mb_per_s};

	return whole[at];
}

double owner_caps_amount(const struct owner_part *part, enum owner_resource at,
			 const struct iocom_vector *own)
{
	const struct owner_cap *cap = &part->rules.caps[at];

	if (cap->unit == OWNER_NO_CAP)
		return -1;
	return cap->unit == OWNER_AMOUNT ? cap->value : caps_whole(own, at) * cap->value / 100;
}

bool owner_caps_idle(const struct owner_part *part, enum owner_resource at, char *out, size_t size)
{
	const struct owner_cap *cap = &part->rules.caps[at];
	struct iocom_vector own = {0};
	double whole;
	char text[32];

	if (cap->unit != OWNER_AMOUNT)
		return false;
	part->config.ports.own_vector(part->config.ports.arg, &own);
	whole = caps_whole(&own, at);
	if (whole <= 0 || cap->value < whole)
		return false;
	owner_cap_text(at, cap, text, sizeof(text));
	snprintf(out, size, "`cap %s=%s` is no cap here: node %s has only %.4g %s",
		 owner_resource_names[at], text, part->base->set->name,
		 at == OWNER_MEMORY ? whole / (1 << 20) : whole, at == OWNER_MEMORY ? "M" : "MB/s");
	return true;
}

/* Reads "8:0" of the disk NAME. */
static bool caps_disk(const char *name, char out[16])
{
	char path[300];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/block/%s/dev", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, out, 15);
	close(fd);
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	return *out != 0;
}

static void caps_add_disk(struct cgroup_caps *caps, const char *name)
{
	if (caps->ndisks < CGROUP_GUESTS_DISKS && caps_disk(name, caps->disks[caps->ndisks]))
		caps->ndisks++;
}

/* The node's own disks, or all of the machine that are no memory. */
static void caps_disks(const struct settings *set, struct cgroup_caps *caps)
{
	static const char *const others[] = {"loop", "ram", "zram", "sr", "fd"};
	const struct dirent *entry;
	DIR *dir;

	for (size_t i = 0; set->scoped && i < set->nscope_disks; i++)
		caps_add_disk(caps, set->scope_disks[i]);
	dir = set->scoped ? NULL : opendir("/sys/block");
	while (dir && (entry = readdir(dir))) {
		bool memory = entry->d_name[0] == '.';

		for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
			memory |= !strncmp(entry->d_name, others[i], strlen(others[i]));
		if (!memory)
			caps_add_disk(caps, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

void owner_caps_apply(struct owner_part *part)
{
	struct iocom_vector own = {0};
	struct cgroup_caps caps = {0};
	bool any = owner_caps_any(&part->rules);
	double amount;

	if (!any && !part->capped)
		return;
	part->capped = any;
	part->capped_ns = loop_boot_ns(part->base->loop);
	part->config.ports.own_vector(part->config.ports.arg, &own);
	amount = owner_caps_amount(part, OWNER_CPU, &own);
	caps.cores = amount > 0 ? amount : 0;
	amount = owner_caps_amount(part, OWNER_MEMORY, &own);
	caps.memory_bytes = amount > 0 ? (uint64_t)amount : 0;
	amount = owner_caps_amount(part, OWNER_DISK, &own);
	caps.disk_bytes_per_s = amount > 0 ? (uint64_t)(amount * 1e6) : 0;
	caps_disks(part->base->set, &caps);
	part->cap_err.text[0] = 0;
	if (!part->mounted)
		part->mounted =
			!cgroup_mounts_read("/proc/self/mounts", &part->mounts, &part->cap_err);
	if (!part->mounted || cgroup_guests_cap(&part->mounts, part->base->set->scope_cgroup, &caps,
						&part->held, &part->cap_err))
		part->held = (struct cgroup_caps_held){0};
}

void owner_caps_begin(struct owner_part *part)
{
	struct cgroup guests;

	part->mounted = !cgroup_mounts_read("/proc/self/mounts", &part->mounts, &part->cap_err);
	part->capped = part->mounted &&
		       !cgroup_name(&part->mounts, part->base->set->scope_cgroup, CGROUP_GUESTS,
				    &guests, NULL) &&
		       !access(guests.v2, F_OK);
	owner_caps_apply(part);
}

void owner_caps_held(const struct owner_part *part, enum owner_resource at, char *out, size_t size)
{
	const struct cgroup_held *const held[OWNER_RESOURCES] = {
		&part->held.cpu, &part->held.memory, &part->held.disk, NULL};

	if (at == OWNER_NETWORK)
		snprintf(out, size, "by admission only: control groups do not cap networks");
	else if (held[at]->file)
		snprintf(out, size, "by control group (%s) and admission", held[at]->file);
	else if (part->cap_err.text[0])
		snprintf(out, size, "by admission only: %.150s", part->cap_err.text);
	else if (held[at]->rc == -ENOENT || !held[at]->rc)
		snprintf(out, size, "by admission only: the guests' control group has no %s",
			 at == OWNER_CPU      ? "cpu.max or cpu.cfs_quota_us"
			 : at == OWNER_MEMORY ? "memory.max or memory.limit_in_bytes"
					      : "io.max");
	else
		snprintf(out, size, "by admission only: the control group refuses: %s",
			 strerror(-held[at]->rc));
}
