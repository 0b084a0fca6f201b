/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finds the names of control groups by one table of patterns; see group_name.h.
 *
 * A pattern describes the last directories of a group's path. One that begins with a slash
 * describes the whole path. In a directory's name, `*` stands for any bytes, and these stand for
 * what the name says of the group:
 *
 *   %d  a decimal number
 *   %x  the id of a container: 64 hexadecimal digits
 *   %u  the id of a pod: a UUID, its dashes perhaps turned to underscores, or 32 digits
 *   %s  a slot of HTCondor: slot1, slot1_2
 *   %n  the rest of the name
 *
 * The last of them is the name that is shown; without one it is the directory's.
 */
#include "user/group_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/utf8.h"

#define PARTS_MAX   64 /* directories of a path; those further below belong to one of these */
#define PATH_BYTES  4096
#define DIGITS_MAX  10
#define ID_BYTES    64
#define ID_SHOWN    12
#define UID_BYTES   36
#define UID_DIGITS  32
#define SLICE	    ".slice"
#define SERVICE	    ".service"
#define USERS_SLICE "user.slice"

/* A piece of a text. */
struct piece {
	const char *at;
	size_t n;
};

/*
 * Where a pattern may be. A user can make groups below his own slice, and so can a service to
 * which systemd gave its group away, but neither becomes another's job by this.
 */
enum where {
	ANYWHERE,  /* containers, also those of a user without rights */
	NO_USERS,  /* not below a user's slice */
	SYSTEM,	   /* not below a user's slice or a service */
	IN_SLICES, /* only slices are above */
};

struct rule {
	enum group_kind kind;
	const char *pattern;
	enum where where;
};

static const struct rule rules[] = {
	/*
	 * Slurm with cgroup/v2: src/plugins/cgroup/v2/cgroup_v2.c (SYSTEM_CGSLICE, SYSTEM_CGSCOPE)
	 * and doc/html/cgroup_v2.shtml. A build for several slurmd per host (Debian, Ubuntu) puts
	 * the node's name before it. CgroupSlice in cgroup.conf(5) may name another slice. The
	 * tasks are below job_N/step_S/user; slurmstepd.scope/system is a waiting room.
	 */
	{GROUP_SLURM, "*.slice/slurmstepd.scope/job_%d", SYSTEM},
	{GROUP_SLURM, "*.slice/*_slurmstepd.scope/job_%d", SYSTEM},
	/* Slurm with cgroup/v1: src/interfaces/cgroup.c, cgroup_prepend is /slurm or /slurm_%n. */
	{GROUP_SLURM, "slurm/uid_%d/job_%d", SYSTEM},
	{GROUP_SLURM, "slurm_*/uid_%d/job_%d", SYSTEM},
	/*
	 * HTCondor: src/condor_starter.V6.1/vanilla_proc.cpp names a group below BASE_CGROUP
	 * (by default "htcondor") after EXECUTE, its slashes as underscores, and the slot. Manual,
	 * "Cgroup-Based Process Tracking".
	 */
	{GROUP_HTCONDOR, "htcondor/*_%s", NO_USERS},
	{GROUP_HTCONDOR, "htcondor/*_%s@*", NO_USERS},
	/*
	 * Kubernetes: pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go.
	 * With the systemd driver dashes of the UID become underscores, and --cgroup-root comes
	 * before "kubepods" (kind: kubelet-kubepods.slice). With the driver cgroupfs each level is
	 * a directory. A runtime of the other driver leaves "POD.slice:cri-containerd:ID".
	 */
	{GROUP_POD, "kubepods*-pod%u.slice", ANYWHERE},
	{GROUP_POD, "kubepods*-pod%u.slice:*", ANYWHERE},
	{GROUP_POD, "*-kubepods*-pod%u.slice", ANYWHERE},
	{GROUP_POD, "*-kubepods*-pod%u.slice:*", ANYWHERE},
	{GROUP_POD, "kubepods/pod%u", ANYWHERE},
	{GROUP_POD, "kubepods/burstable/pod%u", ANYWHERE},
	{GROUP_POD, "kubepods/besteffort/pod%u", ANYWHERE},
	/*
	 * Docker: docs.docker.com, "Runtime metrics", for the drivers systemd and cgroupfs;
	 * without root the scope is below user@UID.service.
	 */
	{GROUP_DOCKER, "docker-%x.scope", ANYWHERE},
	{GROUP_DOCKER, "docker/%x", ANYWHERE},
	/*
	 * Podman: libpod/container_internal_linux.go (getOCICgroupPath). The third form is that of
	 * --cgroups=split, as Quadlet's services have it. conmon's own scope, libpod-conmon-ID, is
	 * no container.
	 */
	{GROUP_PODMAN, "libpod-%x.scope", ANYWHERE},
	{GROUP_PODMAN, "libpod-%x", ANYWHERE},
	{GROUP_PODMAN, "libpod-payload-%x", ANYWHERE},
	/*
	 * containerd: its CRI plugin (internal/cri/server/helpers.go, getCgroupsPath), nerdctl
	 * (pkg/cmd/container/run_cgroup_linux.go), and the driver cgroupfs: /NAMESPACE/ID.
	 */
	{GROUP_CONTAINERD, "cri-containerd-%x.scope", ANYWHERE},
	{GROUP_CONTAINERD, "nerdctl-%x.scope", ANYWHERE},
	{GROUP_CONTAINERD, "default/%x", ANYWHERE},
	{GROUP_CONTAINERD, "k8s.io/%x", ANYWHERE},
	/* CRI-O: internal/config/cgmgr; crio-conmon-ID is no container. */
	{GROUP_CRIO, "crio-%x.scope", ANYWHERE},
	{GROUP_CRIO, "crio-%x", ANYWHERE},
	/*
	 * LXC, LXD, Incus: src/lxc/cgroups/cgroup.h (DEFAULT_PAYLOAD_CGROUP_PREFIX) since 4.0,
	 * lxc.payload/NAME in 3.2, lxc/NAME before and in Proxmox. lxc.monitor.NAME watches one.
	 */
	{GROUP_LXC, "lxc.payload.%n", ANYWHERE},
	{GROUP_LXC, "/lxc.payload/%n", ANYWHERE},
	{GROUP_LXC, "/lxc/%n", ANYWHERE},
	/* systemd: user@.service(5), pam_systemd(8): sessions and the user's own services. */
	{GROUP_SESSION, "/user.slice/user-%d.slice", IN_SLICES},
	/* systemd.unit(5): the units that have groups; slices hold others. */
	{GROUP_UNIT, "*.service", IN_SLICES},
	{GROUP_UNIT, "*.scope", IN_SLICES},
	{GROUP_UNIT, "*.socket", IN_SLICES},
	{GROUP_UNIT, "*.mount", IN_SLICES},
	{GROUP_UNIT, "*.swap", IN_SLICES},
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static const char *const words[GROUP_KINDS] = {
	[GROUP_SLURM] = "slurm:",
	[GROUP_HTCONDOR] = "htcondor:",
	[GROUP_POD] = "pod:",
	[GROUP_DOCKER] = "docker:",
	[GROUP_PODMAN] = "podman:",
	[GROUP_CRIO] = "crio:",
	[GROUP_CONTAINERD] = "containerd:",
	[GROUP_LXC] = "lxc:",
	[GROUP_SESSION] = "session:",
	[GROUP_UNIT] = "",
};

struct parts {
	struct piece part[PARTS_MAX];
	size_t n;
};

/* --- what a % stands for ------------------------------------------------------------- */

/* Each returns the bytes it takes from the start of TEXT, 0 if it is not there. */

static size_t digits_take(struct piece text)
{
	size_t n = 0;

	while (n < text.n && text.at[n] >= '0' && text.at[n] <= '9')
		n++;
	return n <= DIGITS_MAX ? n : 0;
}

static size_t hex_take(struct piece text)
{
	size_t n = 0;

	while (n < text.n && text.at[n] && strchr("0123456789abcdef", text.at[n]))
		n++;
	return n;
}

static size_t id_take(struct piece text)
{
	return hex_take(text) == ID_BYTES ? ID_BYTES : 0;
}

/* A pod of a file on the node has a hash without dashes as its UID. */
static size_t pod_take(struct piece text)
{
	static const size_t groups[] = {8, 4, 4, 4, 12};
	size_t at = 0;

	if (hex_take(text) == UID_DIGITS)
		return UID_DIGITS;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (i && (at >= text.n || (text.at[at] != '-' && text.at[at] != '_')))
			return 0;
		at += i > 0;
		if (hex_take((struct piece){text.at + at, text.n - at}) != groups[i])
			return 0;
		at += groups[i];
	}
	return at;
}

static size_t slot_take(struct piece text)
{
	size_t n = strlen("slot"), more;

	if (text.n <= n || strncmp(text.at, "slot", n) != 0)
		return 0;
	more = digits_take((struct piece){text.at + n, text.n - n});
	if (!more)
		return 0;
	n += more;
	if (n == text.n || text.at[n] != '_')
		return n;
	more = digits_take((struct piece){text.at + n + 1, text.n - n - 1});
	return more ? n + 1 + more : n;
}

static size_t group_name_take(char what, struct piece text)
{
	switch (what) {
	case 'd':
		return digits_take(text);
	case 'x':
		return id_take(text);
	case 'u':
		return pod_take(text);
	case 's':
		return slot_take(text);
	default:
		return text.n;
	}
}

/* --- patterns ------------------------------------------------------------------------ */

/*
 * Returns whether the directory TEXT is as PATTERN says; NAME becomes what is shown. It calls
 * itself once for each `*`; no directory of a pattern has more than two before other text.
 */
static bool group_name_like(struct piece pattern, struct piece text, struct piece *name)
{
	while (pattern.n && *pattern.at != '*') {
		size_t n = 1, of = *pattern.at == '%' ? 2 : 1;

		if (of == 2) {
			n = group_name_take(pattern.at[1], text);
			*name = (struct piece){text.at, n};
		}
		if (!n || !text.n || (of == 1 && *text.at != *pattern.at))
			return false;
		pattern = (struct piece){pattern.at + of, pattern.n - of};
		text = (struct piece){text.at + n, text.n - n};
	}
	if (!pattern.n)
		return !text.n;
	pattern = (struct piece){pattern.at + 1, pattern.n - 1};
	if (!pattern.n)
		return true;
	for (size_t i = 0; i <= text.n; i++)
		if (group_name_like(pattern, (struct piece){text.at + i, text.n - i}, name))
			return true;
	return false;
}

static bool part_ends(struct piece part, const char *with)
{
	size_t n = strlen(with);

	return part.n >= n && !strncmp(part.at + part.n - n, with, n);
}

static bool part_is(struct piece part, const char *text)
{
	return part.n == strlen(text) && !strncmp(part.at, text, part.n);
}

/* Returns whether a pattern with ABOVE directories above it may be there. */
static bool group_name_placed(const struct parts *parts, size_t above, enum where where)
{
	for (size_t i = 0; i < above; i++) {
		struct piece part = parts->part[i];

		if (where == IN_SLICES && !part_ends(part, SLICE))
			return false;
		if ((where == NO_USERS || where == SYSTEM) && part_is(part, USERS_SLICE))
			return false;
		if (where == SYSTEM && part_ends(part, SERVICE))
			return false;
	}
	return true;
}

/* Returns whether the path down to the directory LAST is as the rule says. */
static bool rule_fits(const struct rule *rule, const struct parts *parts, size_t last,
		      struct piece *name)
{
	const char *begin = rule->pattern + (*rule->pattern == '/');
	const char *end = rule->pattern + strlen(rule->pattern);
	size_t above = last + 1;

	*name = (struct piece){0};
	while (end > begin) {
		const char *slash = memrchr(begin, '/', (size_t)(end - begin));
		const char *from = slash ? slash + 1 : begin;
		struct piece ignored, *to = name->at ? &ignored : name;

		if (!above--)
			return false;
		if (!group_name_like((struct piece){from, (size_t)(end - from)}, parts->part[above],
				     to))
			return false;
		if (!name->at)
			*name = parts->part[above];
		end = slash ? slash : begin;
	}
	return (*rule->pattern != '/' || !above) && group_name_placed(parts, above, rule->where);
}

/* --- names --------------------------------------------------------------------------- */

/* Returns false if this is no path of a group: it must be absolute, without "..". */
static bool parts_split(const char *path, struct parts *parts)
{
	size_t length = strnlen(path, PATH_BYTES);

	parts->n = 0;
	if (*path != '/' || length == PATH_BYTES)
		return false;
	for (const char *at = path; *at;) {
		size_t n = strcspn(at + 1, "/");
		struct piece part = {at + 1, n};

		if (!n || part_is(part, ".") || part_is(part, ".."))
			return false;
		if (parts->n < PARTS_MAX)
			parts->part[parts->n++] = part;
		at += 1 + n;
	}
	return true;
}

static void group_name_fill(struct group_name *out, const struct rule *rule, const char *path,
			    struct piece last, struct piece name)
{
	bool id = rule->kind >= GROUP_DOCKER && rule->kind <= GROUP_CRIO;
	unsigned long uid = rule->kind == GROUP_SESSION ? strtoul(name.at, NULL, 10) : UINT32_MAX;

	*out = (struct group_name){
		.kind = rule->kind,
		.length = (size_t)(last.at + last.n - path),
		.uid = uid < UINT32_MAX ? (uint32_t)uid : UINT32_MAX,
	};
	snprintf(out->text, sizeof(out->text), "%s%.*s", words[rule->kind],
		 id ? ID_SHOWN : (int)name.n, name.at);
	for (char *c = out->text; rule->kind == GROUP_POD && *c; c++)
		*c = *c == '_' ? '-' : *c;
	utf8_plain(out->text);
}

/* Finds the outermost directory that a rule for kinds from FIRST to LAST names. */
static bool outermost(const char *path, const struct parts *parts, enum group_kind first,
		      enum group_kind last, struct group_name *out)
{
	struct piece name;

	for (size_t i = 0; i < parts->n; i++)
		for (size_t r = 0; r < RULES; r++) {
			if (rules[r].kind < first || rules[r].kind > last ||
			    !rule_fits(&rules[r], parts, i, &name))
				continue;
			group_name_fill(out, &rules[r], path, parts->part[i], name);
			return true;
		}
	return false;
}

int group_name_find(const char *path, struct group_name *out)
{
	struct parts parts;

	if (!parts_split(path, &parts) ||
	    (!outermost(path, &parts, GROUP_SLURM, GROUP_LXC, out) &&
	     !outermost(path, &parts, GROUP_SESSION, GROUP_UNIT, out)))
		return -ENOENT;
	return 0;
}
