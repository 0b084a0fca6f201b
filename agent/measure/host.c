/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* This node's resources; see host.h. */
#include "agent/measure/host.h"

#include <errno.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* On v1, "unlimited" is LONG_MAX rounded to pages; no machine has 2^60 bytes. */
#define UNLIMITED (1ull << 60)

static int host_read_text(struct kept_file *file, const char *dir, const char *name, char *out,
			  size_t size)
{
	char path[PATH_MAX + 64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	n = kept_file_read(file, path, out, size);
	return n < 0 ? (int)n : 0;
}

/* Reads one number; "max" is UNLIMITED.  Returns 0 or negative errno. */
static int read_u64(struct kept_file *file, const char *dir, const char *name, uint64_t *out)
{
	char text[64];
	int rc = host_read_text(file, dir, name, text, sizeof(text));

	if (rc)
		return rc;
	if (!strncmp(text, "max", 3)) {
		*out = UNLIMITED;
		return 0;
	}
	return sscanf(text, "%" SCNu64, out) == 1 ? 0 : -EBADMSG;
}

/* Returns the value behind KEY in lines of "KEY VALUE" (or "KEY: VALUE"); 0 when absent. */
static uint64_t keyed(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && (line[n] == ' ' || line[n] == ':'))
			return strtoull(line + n + 1, NULL, 10);
	}
	return 0;
}

/* Finds where the v1 controller NAME, or cgroup2 (NAME NULL), is mounted; "" nowhere. */
static void find_mount(const char *name, char out[PATH_MAX])
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;

	out[0] = 0;
	if (!f)
		return;
	while (!out[0] && (m = getmntent(f))) {
		bool match = name ? !strcmp(m->mnt_type, "cgroup") && hasmntopt(m, name)
				  : !strcmp(m->mnt_type, "cgroup2");

		if (match)
			snprintf(out, PATH_MAX, "%s", m->mnt_dir);
	}
	endmntent(f);
}

/* Finds the scope's directory under controller NAME, v1 first. */
static bool controller(const char *name, const char *probe_v2, const struct host *host,
		       const char *scope, char out[PATH_MAX])
{
	char mount[PATH_MAX], path[2 * PATH_MAX];

	find_mount(name, mount);
	if (mount[0]) {
		snprintf(path, sizeof(path), "%s/%s", mount, scope);
		if (strlen(path) < PATH_MAX && access(path, F_OK) == 0) {
			strcpy(out, path);
			return false;
		}
	}
	snprintf(path, sizeof(path), "%s/%s", host->scope, probe_v2);
	if (access(path, F_OK) == 0)
		strcpy(out, host->scope);
	return true;
}

int host_init(struct host *host, const char *scope, struct iocom_err *err)
{
	char path[2 * PATH_MAX];
	struct stat st;

	*host = (struct host){0};
	find_mount(NULL, host->unified);
	if (!scope)
		return 0;
	if (!host->unified[0])
		return iocom_err_set(
			err, -ENOENT,
			"a scope needs cgroup2, which is not mounted; mount -t cgroup2 "
			"none /sys/fs/cgroup/unified");
	snprintf(path, sizeof(path), "%s/%s", host->unified, scope);
	if (strlen(path) >= PATH_MAX || stat(path, &st) || !S_ISDIR(st.st_mode))
		return iocom_err_set(
			err, -ENOENT,
			"the scope's cgroup %.200s/%.200s does not exist; create it first",
			host->unified, scope);
	strcpy(host->scope, path);
	host->memory_v2 = controller("memory", "memory.current", host, scope, host->memory);
	host->cpu_v2 = controller("cpu", "cpu.max", host, scope, host->cpu);
	return 0;
}

static int scope_memory(struct host *host, struct host_reading *out, struct iocom_err *err)
{
	bool v2 = host->memory_v2;
	uint64_t limit = UNLIMITED, usage, swap, cache;
	char stat[8192];
	int rc = read_u64(&host->files[HOST_USAGE], host->memory,
			  v2 ? "memory.current" : "memory.usage_in_bytes", &usage);

	if (!rc)
		rc = host_read_text(&host->files[HOST_STAT], host->memory, "memory.stat", stat,
				    sizeof(stat));
	if (rc)
		return iocom_err_set(err, rc, "cannot read the scope's memory in %.200s: %s",
				     host->memory, strerror(-rc));
	read_u64(&host->files[HOST_LIMIT], host->memory,
		 v2 ? "memory.max" : "memory.limit_in_bytes", &limit);
	cache = keyed(stat, v2 ? "inactive_file" : "total_inactive_file") +
		keyed(stat, v2 ? "active_file" : "total_active_file");
	swap = keyed(stat, "total_swap");
	if (v2 && read_u64(&host->files[HOST_SWAP], host->memory, "memory.swap.current", &swap))
		swap = 0;
	if ((double)limit / 1e6 < out->memory_mb)
		out->memory_mb = (double)limit / 1e6;
	out->used_mb = (double)((usage > cache ? usage - cache : 0) + swap) / 1e6;
	out->dirty_mb = (double)(keyed(stat, v2 ? "file_dirty" : "total_dirty") +
				 keyed(stat, v2 ? "file_writeback" : "total_writeback")) /
			1e6;
	return 0;
}

static void scope_cpu(struct host *host, struct host_reading *out)
{
	long long quota = -1, period = 100000;
	uint64_t value;
	char text[64];
	double cores;

	if (host->cpu_v2) {
		if (host_read_text(&host->files[HOST_QUOTA], host->cpu, "cpu.max", text,
				   sizeof(text)) ||
		    sscanf(text, "%lld %lld", &quota, &period) != 2)
			return;
	} else {
		if (host_read_text(&host->files[HOST_QUOTA], host->cpu, "cpu.cfs_quota_us", text,
				   sizeof(text)))
			return;
		quota = strtoll(text, NULL, 10);
		if (!read_u64(&host->files[HOST_PERIOD], host->cpu, "cpu.cfs_period_us", &value))
			period = (long long)value;
	}
	cores = quota > 0 && period > 0 ? (double)quota / (double)period : 0;
	if (cores <= 0 || cores >= out->cores)
		return;
	out->cores = (uint32_t)cores + (cores > (uint32_t)cores);
	out->core_share = cores / out->cores;
}

uint32_t host_online(const char *list)
{
	uint32_t n = 0;

	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if (to < from || to - from >= UINT16_MAX)
			return 0;
		n += (uint32_t)(to - from) + 1;
		list = *end == ',' ? end + 1 : "";
	}
	return n;
}

/* As sysconf(_SC_NPROCESSORS_ONLN), which opens the file each time. */
static uint32_t host_cores(struct host *host)
{
	char text[4096];
	uint32_t n = 0;
	long cores;

	if (!host_read_text(&host->files[HOST_ONLINE], "/sys/devices/system/cpu", "online", text,
			    sizeof(text)))
		n = host_online(text);
	if (n)
		return n;
	cores = sysconf(_SC_NPROCESSORS_ONLN);
	return cores > 0 ? (uint32_t)cores : 1;
}

int host_read(struct host *host, struct host_reading *out, struct iocom_err *err)
{
	char text[4096];
	int rc = host_read_text(&host->files[HOST_MEMINFO], "/proc", "meminfo", text, sizeof(text));

	*out = (struct host_reading){.cores = host_cores(host), .core_share = 1};
	if (rc)
		return iocom_err_set(err, rc, "cannot read /proc/meminfo: %s", strerror(-rc));
	out->memory_mb = (double)keyed(text, "MemTotal") * 1024 / 1e6;
	out->used_mb = out->memory_mb - (double)keyed(text, "MemAvailable") * 1024 / 1e6;
	out->dirty_mb = (double)(keyed(text, "Dirty") + keyed(text, "Writeback")) * 1024 / 1e6;
	if (host->cpu[0])
		scope_cpu(host, out);
	return host->memory[0] ? scope_memory(host, out, err) : 0;
}

void host_fini(struct host *host)
{
	for (int i = 0; i < HOST_FILES; i++)
		kept_file_close(&host->files[i]);
}

bool host_rotational(const char *disk)
{
	struct kept_file file = {0};
	char dir[128];
	uint64_t value;
	int rc;

	snprintf(dir, sizeof(dir), "/sys/block/%.64s/queue", disk);
	rc = read_u64(&file, dir, "rotational", &value);
	kept_file_close(&file);
	return !rc && value == 1;
}
