/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Loads the eBPF object. The running kernel's type information decides which programs fit, never
 * its version: distributions backport.
 */
#include "user/monitor/monitor_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/monitor/monitor_btf.h"

/*
 * libbpf's print hook is one per process and has no context argument. We keep its last words per
 * thread, for the sentence of the failing call.
 */
static _Thread_local char last_words[256];

static int keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[256];
	size_t length;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	length = strcspn(line, "\n");
	line[length] = '\0';
	/* Keep the first complaint, which names the cause; later ones only pass it on. */
	if (!last_words[0])
		memcpy(last_words, line, length + 1);
	return 0;
}

/* Makes DATA a file in memory. Failing is harmless: libbpf then finds the types itself. */
static void types_file(struct monitor_types *types, const void *data, size_t size)
{
	size_t at = 0;
	ssize_t n = 1;

	types->fd = memfd_create("iocom-types", MFD_CLOEXEC);
	while (types->fd >= 0 && at < size && n > 0) {
		n = write(types->fd, (const char *)data + at, size - at);
		if (n > 0)
			at += (size_t)n;
	}
	if (types->fd >= 0 && at == size)
		snprintf(types->path, sizeof(types->path), "/proc/self/fd/%d", types->fd);
	if (types->path[0] && access(types->path, R_OK))
		types->path[0] = '\0'; /* no /proc here */
}

static void types_extract(struct monitor_types *types, const struct btf_raw *raw)
{
	struct iocom_bpf *skel = iocom_bpf__open();
	void *data = NULL;
	size_t size;

	if (skel && !btf_raw_extract(raw, bpf_object__btf(skel->obj), &data, &size))
		types_file(types, data, size);
	free(data);
	iocom_bpf__destroy(skel);
}

void monitor_types_deinit(struct monitor_types *types)
{
	if (types->fd >= 0)
		close(types->fd);
	types->fd = -1;
	types->path[0] = '\0';
}

int monitor_load_probe(struct hooks *hooks, struct monitor_types *types, struct iocom_err *err)
{
	struct btf_raw raw;
	int rc;

	*types = (struct monitor_types){.fd = -1};
	if (geteuid() != 0)
		return iocom_err_set(err, -EPERM,
				     "cannot load the monitor's eBPF programs as an ordinary user: "
				     "run as root");
	libbpf_set_print(keep_words);
	rc = btf_raw_kernel(&raw, err);
	if (rc)
		return rc;
	hooks_probe(hooks, &raw, NULL);
	rc = hooks_needed(hooks, err);
	if (!rc)
		types_extract(types, &raw);
	btf_raw_deinit(&raw);
	return rc;
}

/* Finds the program that libbpf's words "prog 'NAME': ..." are about; "": none. */
static void accused(char *name, size_t size)
{
	const char *from = strstr(last_words, "prog '"), *end;

	name[0] = '\0';
	from = from ? from + strlen("prog '") : NULL;
	end = from ? strchr(from, '\'') : NULL;
	if (end)
		snprintf(name, size, "%.*s", (int)(end - from), from);
}

static void monitor_load_limit(struct bpf_map *map, __u32 entries)
{
	if (entries)
		bpf_map__set_max_entries(map, entries);
}

static void limit_disks(struct iocom_bpf *skel, __u32 places)
{
	monitor_load_limit(skel->maps.disks, places);
	monitor_load_limit(skel->maps.disk_values, places);
	monitor_load_limit(skel->maps.disk_marks, places);
	monitor_load_limit(skel->maps.disk_free, places);
}

/* Makes room for more than twice the present disks: each takes 112 bytes per CPU. */
static void size_disks(struct iocom_bpf *skel)
{
	DIR *dir = opendir("/sys/block");
	__u32 here = 0;

	while (dir && readdir(dir))
		here++;
	if (dir)
		closedir(dir);
	limit_disks(skel, 2 * here + 128);
}

static void limit_maps(struct iocom_bpf *skel, const struct monitor_limits *limits)
{
	monitor_load_limit(skel->maps.late_even, limits->late);
	monitor_load_limit(skel->maps.late_odd, limits->late);
	monitor_load_limit(skel->maps.jobs_even, limits->jobs);
	monitor_load_limit(skel->maps.jobs_odd, limits->jobs);
	limit_disks(skel, limits->disks);
	monitor_load_limit(skel->maps.ledger, limits->ledger);
	monitor_load_limit(skel->maps.pairs, limits->pairs);
	if (limits->slots) {
		monitor_load_limit(skel->maps.talks, limits->slots);
		monitor_load_limit(skel->maps.talk_owners, limits->slots);
		monitor_load_limit(skel->maps.streams, limits->slots);
		monitor_load_limit(skel->maps.stream_owners, limits->slots);
		skel->rodata->cfg_talks = skel->rodata->cfg_streams = limits->slots;
	}
	if (limits->walk)
		skel->rodata->cfg_walk_max = limits->walk;
}

static int load_once(struct iocom_bpf **skel, const struct hooks *hooks,
		     const struct monitor_knobs *knobs, const struct monitor_types *types,
		     struct iocom_err *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	struct bpf_program *program = NULL;
	int rc;

	last_words[0] = '\0';
	if (types->path[0])
		options.btf_custom_path = types->path;
	*skel = iocom_bpf__open_opts(&options);
	if (!*skel)
		return iocom_err_set(err, -errno, "cannot open the monitor's eBPF object: %s%s%s",
				     strerror(errno), last_words[0] ? ": " : "", last_words);
	(*skel)->rodata->cfg_scope_cgid = knobs->scope_id;
	(*skel)->rodata->cfg_scope_level = knobs->scope_level;
	(*skel)->rodata->cfg_all_disks = knobs->all_disks;
	(*skel)->rodata->cfg_ablate = knobs->ablate;
	(*skel)->rodata->cfg_bio_pinned = (__u16)hooks->bio_pinned;
	for (size_t i = 0; i < CASTS; i++)
		(*skel)->rodata->cfg_types[i] = hooks->types[i];
	(*skel)->rodata->cfg_keep_cpu = hooks_preemptible(hooks);
	monitor_net_size(*skel, knobs->remotes_max);
	size_disks(*skel);
	if (knobs->limits)
		limit_maps(*skel, knobs->limits);
	while ((program = bpf_object__next_program((*skel)->obj, program)))
		bpf_program__set_autoload(program,
					  hooks_program_used(hooks, bpf_program__name(program)));
	if (!hooks_program_used(hooks, "walk") || !hooks_program_used(hooks, "walk_look"))
		monitor_load_limit((*skel)->maps.runs, 1);
	rc = iocom_bpf__load(*skel);
	if (!rc)
		return 0;
	iocom_bpf__destroy(*skel);
	*skel = NULL;
	return iocom_err_set(err, rc, "the kernel refused the monitor's eBPF programs: %s%s%s",
			     strerror(-rc), last_words[0] ? ": " : "", last_words);
}

int monitor_load_open(struct iocom_bpf **skel, struct hooks *hooks,
		      const struct monitor_knobs *knobs, const struct monitor_types *types,
		      struct iocom_err *err)
{
	char name[64];
	int rc;

	/* This ends, because each round leaves out one more program. */
	do {
		rc = load_once(skel, hooks, knobs, types, err);
		accused(name, sizeof(name));
	} while (rc && hooks_refuse(hooks, name, last_words));
	return rc;
}

static int attach_one(struct bpf_program *program, struct bpf_link **link, struct iocom_err *err)
{
	int rc;

	last_words[0] = '\0';
	*link = bpf_program__attach(program);
	if (*link)
		return 0;
	rc = errno ? -errno : -EINVAL;
	return iocom_err_set(err, rc, "cannot attach eBPF program %s: %s%s%s",
			     bpf_program__name(program), strerror(-rc), last_words[0] ? ": " : "",
			     last_words);
}

int monitor_load_attach(struct iocom_bpf *skel, struct hooks *hooks, struct iocom_err *err)
{
	for (int i = 0; i < skel->skeleton->prog_cnt; i++) {
		struct bpf_prog_skeleton *prog = &skel->skeleton->progs[i];
		int rc;

		if (*prog->link || !bpf_program__autoload(*prog->prog) ||
		    bpf_program__type(*prog->prog) == BPF_PROG_TYPE_SYSCALL)
			continue;
		rc = attach_one(*prog->prog, prog->link, err);
		if (rc)
			return hooks_refuse(hooks, prog->name, err->text) ? MONITOR_E_AGAIN : rc;
	}
	return 0;
}
