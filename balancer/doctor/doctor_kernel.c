/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Checks what the kernel offers to the monitor, and whether the monitor runs. */
#include "balancer/doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "user/cgroup.h"
#include "user/monitor/monitor_btf.h"
#include "user/monitor/monitor_hooks.h"

static void add_hooks(struct doctor *d, const struct hooks *hooks)
{
	struct monitor_degraded list[MONITOR_DEGRADED_MAX];
	size_t n = hooks_degraded(hooks, list, MONITOR_DEGRADED_MAX);

	for (size_t h = 0; h < hooks->count; h++) {
		const struct hook_status *s = &hooks->status[h];
		json_t *columns = json_array();

		for (size_t c = 0; c < HOOK_COLUMNS_MAX && s->hook->columns[c]; c++)
			json_array_append_new(columns, json_string(s->hook->columns[c]));
		json_array_append_new(
			d->hooks,
			json_pack("{s:s,s:s,s:s,s:s,s:i,s:b,s:o,s:s,s:s?}", "hook", s->hook->name,
				  "kind", hooks_kind_name(s->hook->kind), "program",
				  s->hook->program, "state", hooks_state_name(s->state),
				  "arguments", s->args, "needed", s->hook->needed, "columns",
				  columns, "without", s->hook->without, "error",
				  s->state == HOOK_REFUSED ? s->error : NULL));
	}
	for (size_t i = 0; i < n && i < MONITOR_DEGRADED_MAX; i++)
		json_array_append_new(d->degraded,
				      json_pack("{s:s,s:s,s:s,s:b}", "column", list[i].column,
						"hook", list[i].hook, "why", list[i].why, "unknown",
						list[i].unknown));
}

static void check_columns(struct doctor *d)
{
	size_t n = json_array_size(d->degraded), unknown = 0, i;
	const json_t *one;

	json_array_foreach (d->degraded, i, one)
		unknown += json_is_true(json_object_get(one, "unknown"));
	if (n)
		doctor_add(d, "columns", DOCTOR_DEGRADED,
			   "listed below; a newer kernel has the hooks",
			   "%zu unknown (null in every reading), %zu less exact", unknown,
			   n - unknown);
	else
		doctor_add(d, "columns", DOCTOR_OK, NULL,
			   "this kernel has the hooks of all of them");
}

/* Loads and attaches the monitor, reads once and unloads it.  Returns false if that failed. */
static bool try_monitor(struct doctor *d)
{
	struct monitor_config config = {0};
	struct monitor_sample sample;
	struct iocom_err err = {0};
	struct monitor *monitor;
	double began = doctor_now_ms(), opened, sampled;
	json_t *check;

	if (!d->root) {
		doctor_add(d, "monitor", DOCTOR_SKIPPED, "run `iocom doctor` as root to try it",
			   "only root may load eBPF programs");
		return false;
	}
	if (monitor_open(&monitor, &config, &err)) {
		doctor_add(d, "monitor", DOCTOR_BROKEN, NULL, "%s", err.text);
		return false;
	}
	opened = doctor_now_ms();
	if (monitor_sample(monitor, &sample, &err)) {
		doctor_add(d, "monitor", DOCTOR_BROKEN, NULL, "loads, but: %s", err.text);
		monitor_free(monitor);
		return false;
	}
	sampled = doctor_now_ms();
	check = doctor_add(d, "monitor", DOCTOR_OK, NULL,
			   "loads and attaches %zu programs; first reading after %.0f ms, %" PRIu32
			   " tasks",
			   sample.nprograms, sampled - began, sample.live_tasks);
	json_object_set_new(check, "load_ms", json_real(opened - began));
	json_object_set_new(check, "first_sample_ms", json_real(sampled - began));
	add_hooks(d, monitor_hooks(monitor));
	monitor_free(monitor);
	return true;
}

/* Checks hooks by type information alone, if the monitor may not or cannot be loaded. */
static void check_hooks(struct doctor *d)
{
	struct iocom_err err = {0};
	struct hooks hooks;
	struct btf_raw btf;

	if (btf_raw_kernel(&btf, &err)) {
		doctor_add(d, "btf", DOCTOR_BROKEN, NULL, "%s", err.text);
		doctor_add(d, "monitor", DOCTOR_SKIPPED, NULL, "it needs type information");
		return;
	}
	doctor_add(d, "btf", DOCTOR_OK, NULL, "%" PRIu32 " types in /sys/kernel/btf/vmlinux",
		   btf.count - 1);
	hooks_probe(&hooks, &btf, NULL);
	btf_raw_deinit(&btf);
	if (hooks_needed(&hooks, &err)) {
		doctor_add(d, "monitor", DOCTOR_BROKEN, "install a newer kernel", "%s", err.text);
		add_hooks(d, &hooks);
		return;
	}
	if (!try_monitor(d))
		add_hooks(d, &hooks);
	check_columns(d);
}

static void check_cgroups(struct doctor *d)
{
	struct cgroup_mounts mounts;
	struct iocom_err err = {0};
	const char *mode;
	char v1[512] = "";
	json_t *check;

	if (cgroup_mounts_read("/proc/self/mounts", &mounts, &err)) {
		doctor_add(d, "cgroup", DOCTOR_BROKEN, NULL, "%s", err.text);
		return;
	}
	mode = mounts.nv1 ? "hybrid" : "v2";
	for (size_t i = 0, at = 0; i < mounts.nv1; i++) {
		int n = snprintf(v1 + at, sizeof(v1) - at, "%s%s", i ? " " : ", v1 at ",
				 mounts.v1[i]);

		at = n > 0 && at + (size_t)n < sizeof(v1) ? at + (size_t)n : sizeof(v1) - 1;
	}
	check = doctor_add(d, "cgroup", DOCTOR_OK, NULL, "%s: v2 at %s%s", mode, mounts.v2, v1);
	json_object_set_new(check, "mode", json_string(mode));
	json_object_set_new(check, "v2", json_string(mounts.v2));
}

void doctor_kernel(struct doctor *d)
{
	struct utsname name;
	json_t *check;

	if (uname(&name)) {
		doctor_add(d, "kernel", DOCTOR_BROKEN, NULL, "cannot ask its name: %s",
			   strerror(errno));
	} else {
		check = doctor_add(d, "kernel", DOCTOR_OK, NULL, "%s %s %s", name.sysname,
				   name.release, name.machine);
		json_object_set_new(check, "release", json_string(name.release));
		json_object_set_new(check, "machine", json_string(name.machine));
	}
	check_hooks(d);
	check_cgroups(d);
}

/* --- limits --------------------------------------------------------------------- */

/* Reads the first line of a small file.  Returns 0 or negative errno. */
static int read_line(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	int rc = 0;

	if (!f)
		return -errno;
	if (!fgets(out, (int)size, f))
		rc = -EIO;
	else
		out[strcspn(out, "\n")] = 0;
	fclose(f);
	return rc;
}

static void check_memlock(struct doctor *d)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		doctor_add(d, "memlock", DOCTOR_OK, NULL, "unlimited");
	else
		doctor_add(d, "memlock", DOCTOR_OK, NULL,
			   "%" PRIu64 " KiB; only kernels before 5.11 charge eBPF maps to it",
			   (uint64_t)limit.rlim_cur / 1024);
}

static void check_lockdown(struct doctor *d)
{
	char line[128];

	if (read_line("/sys/kernel/security/lockdown", line, sizeof(line)))
		doctor_add(d, "lockdown", DOCTOR_OK, NULL,
			   "none (not in this kernel, or not visible)");
	else if (strstr(line, "[confidentiality]"))
		doctor_add(d, "lockdown", DOCTOR_BROKEN,
			   "boot with lockdown=integrity, or without lockdown",
			   "confidentiality: eBPF programs may not read kernel memory");
	else
		doctor_add(d, "lockdown", DOCTOR_OK, NULL, "%.100s", line);
}

/* Delay accounting feeds the only column that an administrator must turn on. */
static void check_waits(struct doctor *d)
{
	char line[32];

	if (read_line("/proc/sys/kernel/task_delayacct", line, sizeof(line)))
		doctor_add(d, "io-wait", DOCTOR_DEGRADED, NULL,
			   "io_wait_ms is null in every reading: this kernel has no "
			   "kernel.task_delayacct");
	else if (!strcmp(line, "0"))
		doctor_add(d, "io-wait", DOCTOR_DEGRADED,
			   "sysctl kernel.task_delayacct=1, then restart the agent",
			   "io_wait_ms is null in every reading: kernel.task_delayacct is 0");
	else
		doctor_add(d, "io-wait", DOCTOR_OK, NULL, "kernel.task_delayacct is on");
}

void doctor_limits(struct doctor *d)
{
	char line[32];

	check_waits(d);
	check_memlock(d);
	check_lockdown(d);
	if (read_line("/proc/sys/kernel/bpf_stats_enabled", line, sizeof(line)))
		doctor_add(d, "bpf-stats", DOCTOR_SKIPPED, NULL,
			   "kernel.bpf_stats_enabled cannot be read");
	else if (strcmp(line, "0") != 0)
		doctor_add(d, "bpf-stats", DOCTOR_DEGRADED, "sysctl kernel.bpf_stats_enabled=0",
			   "always on: each eBPF program of this machine reads the clock twice an "
			   "event");
	else
		doctor_add(d, "bpf-stats", DOCTOR_OK, NULL, "on only while a monitor asks for it");
	if (read_line("/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line)))
		doctor_add(d, "unprivileged", DOCTOR_SKIPPED, NULL,
			   "kernel.unprivileged_bpf_disabled cannot be read");
	else if (!strcmp(line, "0"))
		doctor_add(d, "unprivileged", DOCTOR_OK, NULL,
			   "every user may load eBPF programs; iocom does not need that "
			   "(kernel.unprivileged_bpf_disabled=2 forbids it)");
	else
		doctor_add(d, "unprivileged", DOCTOR_OK, NULL, "only root may load eBPF programs");
}
