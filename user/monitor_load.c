/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Loads the eBPF object.  Which programs fit is asked of the running kernel's
 * type information, never of its version: distributions backport.
 */
#include "monitor_internal.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A tracepoint, its number of arguments as our program takes them, and what is lost without. */
struct hook {
	const char *tracepoint;
	const char *program;
	int min_args, max_args; /* of the tracepoint, 0: any */
	bool needed;
};

static const struct hook hooks[] = {
	{"block_bio_queue", "bio_queue", 1, 1, true},
	{"block_rq_complete", "rq_complete", 3, 3, true},
	{"sched_process_exit", "process_exit", 1, 2, true}, /* 6.15 added group_dead */
	{"sched_process_free", "process_free", 1, 1, true},
	{"tcp_rcv_space_adjust", "rcv_space", 1, 1, true},
	{"inet_sock_set_state", "sock_state", 3, 3, true},
	{"cgroup_attach_task", "cgroup_attach", 4, 4, true},
	{"writeback_single_inode", "inode_written", 3, 3, true},
	{"writeback_dirty_folio", "dirty_folio", 2, 2, false},
	{"writeback_dirty_page", "dirty_page", 2, 2, false},
	{"block_bio_remap", "bio_remap", 3, 3, false},
	{"page_fault_kernel", "fault_kernel", 3, 3, false},
	{"mm_filemap_fault", "filemap_fault", 2, 2, false},
	{"sock_send_length", "send_length", 3, 3, false},
	{"sock_recv_length", "recv_length", 3, 3, false},
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

/*
 * libbpf's print hook is one per process and has no context argument; its last
 * words are kept per thread for the sentence of the failing call.
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
	/* The first complaint tells the cause, the later ones only who passed it on. */
	if (!last_words[0])
		memcpy(last_words, line, length + 1);
	return 0;
}

/* Parameters of each hook's tracepoint in BTF; -1 where there is none. */
static int count_parameters(const struct btf *btf, int *parameters)
{
	static const char prefix[] = "btf_trace_";
	__u32 n = btf__type_cnt(btf);

	for (size_t h = 0; h < HOOKS; h++)
		parameters[h] = -1;
	for (__u32 id = 1; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name;

		if (!btf_is_typedef(t))
			continue;
		name = btf__name_by_offset(btf, t->name_off);
		if (!name || strncmp(name, prefix, sizeof(prefix) - 1) != 0)
			continue;
		for (size_t h = 0; h < HOOKS; h++) {
			if (strcmp(name + sizeof(prefix) - 1, hooks[h].tracepoint) != 0)
				continue;
			t = btf__type_by_id(btf, t->type);
			t = t ? btf__type_by_id(btf, t->type) : NULL;
			if (t && btf_is_func_proto(t))
				parameters[h] = btf_vlen(t) - 1; /* the context comes first */
			break;
		}
	}
	return 0;
}

static int choose_programs(struct iocom_bpf *skel, struct iocom_err *err)
{
	int parameters[HOOKS];
	struct btf *btf = btf__load_vmlinux_btf();
	bool ledger = false;

	if (!btf)
		return iocom_err_set(err, -EOPNOTSUPP,
				     "cannot read the kernel's type information "
				     "(/sys/kernel/btf/vmlinux): %s; the monitor needs a kernel "
				     "built with CONFIG_DEBUG_INFO_BTF",
				     strerror(errno));
	count_parameters(btf, parameters);
	btf__free(btf);
	for (size_t h = 0; h < HOOKS; h++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(skel->obj, hooks[h].program);
		bool fits =
			parameters[h] >= hooks[h].min_args && parameters[h] <= hooks[h].max_args;

		if (!fits && hooks[h].needed)
			return iocom_err_set(err, -EOPNOTSUPP,
					     "this kernel is too old for the monitor: its "
					     "tracepoint %s is %s; Linux 5.15 or newer is needed",
					     hooks[h].tracepoint,
					     parameters[h] < 0 ? "missing" : "of another form");
		bpf_program__set_autoload(program, fits);
		ledger |= fits && strncmp(hooks[h].program, "dirty_", 6) == 0;
	}
	if (!ledger)
		return iocom_err_set(err, -EOPNOTSUPP,
				     "this kernel is too old for the monitor: it has neither "
				     "writeback_dirty_folio nor writeback_dirty_page");
	return 0;
}

int monitor_load_open(struct iocom_bpf **skel, __u64 scope_id, __u32 scope_level, bool all_disks,
		      struct iocom_err *err)
{
	int rc;

	if (geteuid() != 0)
		return iocom_err_set(err, -EPERM,
				     "cannot load the monitor's eBPF programs as an ordinary user: "
				     "run as root");
	last_words[0] = '\0';
	libbpf_set_print(keep_words);
	*skel = iocom_bpf__open();
	if (!*skel)
		return iocom_err_set(err, -errno, "cannot open the monitor's eBPF object: %s%s%s",
				     strerror(errno), last_words[0] ? ": " : "", last_words);
	(*skel)->rodata->cfg_scope_cgid = scope_id;
	(*skel)->rodata->cfg_scope_level = scope_level;
	(*skel)->rodata->cfg_all_disks = all_disks;
	rc = choose_programs(*skel, err);
	if (rc)
		goto fail;
	rc = iocom_bpf__load(*skel);
	if (rc) {
		iocom_err_set(err, rc, "the kernel refused the monitor's eBPF programs: %s%s%s",
			      strerror(-rc), last_words[0] ? ": " : "", last_words);
		goto fail;
	}
	return 0;
fail:
	iocom_bpf__destroy(*skel);
	*skel = NULL;
	return rc;
}

static int attach_one(struct bpf_program *program, struct bpf_link **link, struct iocom_err *err)
{
	int rc;

	*link = bpf_program__attach(program);
	if (*link)
		return 0;
	rc = errno ? -errno : -EINVAL;
	return iocom_err_set(err, rc, "cannot attach eBPF program %s: %s%s%s",
			     bpf_program__name(program), strerror(-rc), last_words[0] ? ": " : "",
			     last_words);
}

int monitor_load_attach(struct iocom_bpf *skel, struct iocom_err *err)
{
	last_words[0] = '\0';
	for (int i = 0; i < skel->skeleton->prog_cnt; i++) {
		struct bpf_prog_skeleton *prog = &skel->skeleton->progs[i];
		int rc;

		if (*prog->link || !bpf_program__autoload(*prog->prog))
			continue;
		rc = attach_one(*prog->prog, prog->link, err);
		if (rc)
			return rc;
	}
	return 0;
}
