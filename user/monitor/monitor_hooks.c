/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The table of hooks, and which of them a given kernel has; see monitor_hooks.h. */
#include "user/monitor/monitor_hooks.h"

#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "bpf/records.h"
#include "user/monitor/monitor_btf.h"

_Static_assert(CASTS == HOOKS_TYPES, "one number for each type");

static const struct hook table[] = {
	{.name = "block_bio_queue",
	 .program = "bio_queue",
	 .min_args = 1, /* 5.11 removed the argument for the queue */
	 .max_args = 1,
	 .needed = true,
	 .columns = {"explicit_read_bytes", "explicit_write_bytes", "explicit_ops",
		     "implicit_bytes", "implicit_ops", "task_bytes", "stacked_bytes",
		     "unattributed"},
	 .without = "the monitor cannot tell which task does block I/O"},
	{.name = "block_rq_complete",
	 .program = "rq_complete",
	 .min_args = 3,
	 .max_args = 3,
	 .needed = true,
	 .columns = {"requests", "read_bytes", "write_bytes", "service_ms", "utilisation"},
	 .without = "the service time of disks is unknown"},
	{.name = "writeback_dirty_folio",
	 .program = "dirty_folio",
	 .min_args = 2,
	 .max_args = 2,
	 .needed = true,
	 .columns = {"explicit_write_bytes", "writeback_bytes"},
	 .without = "writeback is charged to no task"},
	{.name = "writeback_dirty_page", /* until 5.15 */
	 .program = "dirty_page",
	 .min_args = 2,
	 .max_args = 2,
	 .needed = true,
	 .stands_in = "dirty_folio",
	 .columns = {"explicit_write_bytes", "writeback_bytes"},
	 .without = "writeback is charged to no task"},
	{.name = "writeback_single_inode",
	 .program = "inode_written",
	 .min_args = 3,
	 .max_args = 3,
	 .needed = true,
	 .columns = {"explicit_write_bytes"},
	 .without = "the record of which task dirtied which file is never cleared"},
	{.name = "block_bio_remap",
	 .program = "bio_remap",
	 .min_args = 3,
	 .max_args = 3,
	 .columns = {"stacked_bytes"},
	 .coarse = {"stacked_bytes"},
	 .without = "bytes that md passes to the disks below it are in their "
		    "residual, not in stacked_bytes"},
	{.name = "jbd2_handle_stats",
	 .program = "journal_handle",
	 .min_args = 8,
	 .max_args = 8,
	 .profiles = true,
	 .columns = {"jobs"},
	 .without =
		 "what ext4 writes for a job beside its files' data (inodes, directories) is not "
		 "in what its class is said to write"},
	{.name = "page_fault_kernel", /* x86 only */
	 .program = "fault_kernel",
	 .min_args = 3,
	 .max_args = 3,
	 .columns = {"implicit_bytes", "implicit_ops"},
	 .coarse = {"implicit_bytes", "explicit_read_bytes"},
	 .without = "a page fault taken inside the kernel (write(2) from a cold mapping) counts "
		    "as an explicit read"},
	{.name = "mm_filemap_fault", /* since 6.2 */
	 .program = "filemap_fault",
	 .min_args = 2,
	 .max_args = 2,
	 .columns = {"implicit_bytes", "implicit_ops"},
	 .coarse = {"implicit_bytes", "explicit_read_bytes"},
	 .without = "pages that direct I/O faults into a cold mapping count as "
		    "explicit reads"},
	{.name = "mm_filemap_add_to_page_cache",
	 .program = "page_added",
	 .min_args = 1,
	 .max_args = 1,
	 .columns = {"explicit_read_bytes", "implicit_bytes", "unattributed"},
	 .coarse = {"explicit_read_bytes", "implicit_bytes"},
	 .without = "buffered reads that a limit on I/O holds back are unattributed"},
	{.name = "sock_send_length", /* since 6.3 */
	 .program = "send_length",
	 .min_args = 3,
	 .max_args = 3,
	 .columns = {"sent_bytes", "sent_messages", "local_bytes"},
	 .unknown = {"sent_bytes", "sent_messages"},
	 .coarse = {"local_bytes"},
	 .without = "data that tasks send by TCP is not measured; local traffic is "
		    "measured only at the receiving end"},
	{.name = "sock_recv_length",
	 .program = "recv_length",
	 .min_args = 3,
	 .max_args = 3,
	 .columns = {"received_messages"},
	 .unknown = {"received_messages"},
	 .without = "messages received by TCP are not counted (only their bytes), "
		    "and data received by MPTCP is not counted at all"},
	/*
	 * If the kernel lets programs attach to functions, these exits replace it
	 * (bpf/standin.bpf.h).
	 */
	{.kind = HOOK_FUNCTION,
	 .name = "inet_sendmsg",
	 .program = "standin_sendmsg",
	 .min_args = 3,
	 .max_args = 3,
	 .stands_in = "send_length",
	 .columns = {"sent_bytes", "sent_messages", "local_bytes"},
	 .without = "data that tasks send this way is not measured"},
	{.kind = HOOK_FUNCTION,
	 .name = "inet6_sendmsg",
	 .program = "standin_sendmsg6",
	 .min_args = 3,
	 .max_args = 3,
	 .stands_in = "send_length",
	 .columns = {"sent_bytes", "sent_messages", "local_bytes"},
	 .without = "data that tasks send this way is not measured"},
	{.kind = HOOK_FUNCTION,
	 .name = "inet_sendpage",
	 .program = "standin_sendpage",
	 .min_args = 5,
	 .max_args = 5,
	 .stands_in = "send_length",
	 .columns = {"sent_bytes", "sent_messages", "local_bytes"},
	 .without = "data that tasks send this way is not measured"},
	{.kind = HOOK_FUNCTION,
	 .name = "inet_recvmsg",
	 .program = "standin_recvmsg",
	 .min_args = 4,
	 .max_args = 4,
	 .stands_in = "recv_length",
	 .columns = {"received_messages"},
	 .without = "messages received this way are not counted"},
	{.kind = HOOK_FUNCTION,
	 .name = "inet6_recvmsg",
	 .program = "standin_recvmsg6",
	 .min_args = 4,
	 .max_args = 4,
	 .stands_in = "recv_length",
	 .columns = {"received_messages"},
	 .without = "messages received this way are not counted"},
	{.name = "tcp_rcv_space_adjust",
	 .program = "rcv_space",
	 .min_args = 1,
	 .max_args = 1,
	 .needed = true,
	 .columns = {"received_bytes", "local_bytes"},
	 .without = "data that tasks receive by TCP is not measured"},
	{.name = "inet_sock_set_state",
	 .program = "sock_state",
	 .min_args = 3,
	 .max_args = 3,
	 .needed = true,
	 .columns = {"received_bytes"},
	 .without = "the first bytes of each connection are lost"},
	{.name = "sched_process_exit",
	 .program = "process_exit",
	 .min_args = 1,
	 .max_args = 2, /* 6.15 added group_dead */
	 .needed = true,
	 .columns = {"tasks", "jobs"},
	 .without = "tasks that live for less than a period are lost"},
	{.name = "sched_process_free",
	 .program = "process_free",
	 .min_args = 1,
	 .max_args = 1,
	 .needed = true,
	 .columns = {"tasks", "jobs"},
	 .without = "counts of what a task does while it exits are lost"},
	{.name = "cgroup_attach_task",
	 .program = "cgroup_attach",
	 .min_args = 4,
	 .max_args = 4,
	 .needed = true,
	 .columns = {"jobs"},
	 .without = "when a task moves between cgroups, its earlier counts move to "
		    "the new job"},
	{.kind = HOOK_ITERATOR,
	 .name = "task_file",
	 .program = "old_sockets",
	 .needed = true,
	 .columns = {"received_bytes"},
	 .without = "the first bytes received by connections older than the monitor are lost"},
	{.kind = HOOK_ITERATOR,
	 .name = "task",
	 .program = "sweep",
	 .needed = true,
	 .columns = {"tasks", "cpu_ns", "rss_bytes", "major_faults", "minor_faults"},
	 .without = "live tasks cannot be read"},
	{.kind = HOOK_ITERATOR,
	 .name = "task",
	 .program = "look",
	 .needed = true,
	 .columns = {"run_queue"},
	 .without = "the run queue cannot be read"},
	{.kind = HOOK_FUNCTION,
	 .name = "bpf_iter_task_new", /* since 6.7 */
	 .program = "attach_threads",
	 .columns = {"jobs"},
	 .coarse = {"cpu_ms"},
	 .without = "when a process moves between cgroups, earlier counts of "
		    "threads that did no I/O go to the new job, and the old job "
		    "keeps them, too"},
	{.kind = HOOK_FUNCTION,
	 .name = "bpf_iter_task_new",
	 .program = "walk",
	 .faster = true,
	 .columns = {"tasks", "cpu_ns", "rss_bytes", "major_faults", "minor_faults"},
	 .without = "reading all tasks takes four times as long"},
	{.kind = HOOK_FUNCTION,
	 .name = "bpf_iter_task_new",
	 .program = "walk_look",
	 .faster = true,
	 .columns = {"run_queue"},
	 .without = "reading the run queue takes four times as long"},
};
#define TABLE (sizeof(table) / sizeof(table[0]))
_Static_assert(TABLE <= HOOKS_MAX, "HOOKS_MAX");

/* Columns that depend on the processor, not on a hook. */
static const struct {
	bool fine_on_x86, fine_on_arm64;
	struct monitor_degraded what;
} processors[] = {
	{.fine_on_x86 = true,
	 .what = {"explicit_read_bytes", "processor",
		  "after a fault inside the kernel, later reads of the same file by that thread "
		  "count as implicit",
		  false}},
	{.fine_on_x86 = true,
	 .fine_on_arm64 = true,
	 .what = {"implicit_bytes", "processor",
		  "page faults and system calls cannot be told apart on this "
		  "processor: all reads count as explicit",
		  true}},
	{.fine_on_x86 = true,
	 .fine_on_arm64 = true,
	 .what = {"implicit_ops", "processor",
		  "page faults and system calls cannot be told apart on this "
		  "processor: all reads count as explicit",
		  true}},
};
#define PROCESSORS (sizeof(processors) / sizeof(processors[0]))

/* Returns the number of parameters of the prototype that type ID leads to, or -1. */
static int parameters(const struct btf_raw *btf, uint32_t id)
{
	const struct btf_type *t = btf_raw_type(btf, id);

	if (t && BTF_INFO_KIND(t->info) == BTF_KIND_PTR)
		t = btf_raw_type(btf, t->type);
	return t && BTF_INFO_KIND(t->info) == BTF_KIND_FUNC_PROTO ? (int)BTF_INFO_VLEN(t->info)
								  : -1;
}

static void find_tracepoint(struct hooks *hooks, const struct btf_raw *btf, const char *name,
			    uint32_t proto)
{
	for (size_t h = 0; h < hooks->count; h++)
		if (hooks->status[h].hook->kind == HOOK_TRACEPOINT &&
		    !strcmp(name, hooks->status[h].hook->name))
			/* The first parameter is the context. */
			hooks->status[h].args = parameters(btf, proto) - 1;
}

static void find_function(struct hooks *hooks, const struct btf_raw *btf, const char *name,
			  uint32_t proto)
{
	static const char prefix[] = "bpf_iter_";
	bool iterator = !strncmp(name, prefix, sizeof(prefix) - 1);

	hooks->srcu_fast |= !strcmp(name, "init_srcu_struct_fast");
	hooks->preempt_calls |= !strcmp(name, "bpf_preempt_disable");
	for (size_t h = 0; h < hooks->count; h++) {
		const struct hook *hook = hooks->status[h].hook;

		if (hook->kind == HOOK_ITERATOR && iterator &&
		    !strcmp(name + sizeof(prefix) - 1, hook->name))
			hooks->status[h].args = 0;
		else if (hook->kind == HOOK_FUNCTION && !strcmp(name, hook->name))
			hooks->status[h].args = parameters(btf, proto);
	}
}

/* The flag's enumeration has no name. */
static void find_flag(struct hooks *hooks, const struct btf_raw *btf, const struct btf_type *t)
{
	const struct btf_enum *flags = (const void *)(t + 1);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info); i++)
		if (flags[i].name_off < btf->strings_size && flags[i].val >= 0 &&
		    flags[i].val < 16 &&
		    !strcmp(btf->strings + flags[i].name_off, "BIO_PAGE_PINNED"))
			hooks->bio_pinned = 1u << flags[i].val;
}

static struct hook_status *by_program(const struct hooks *hooks, const char *program)
{
	for (size_t h = 0; h < hooks->count; h++)
		if (!strcmp(program, hooks->status[h].hook->program))
			return (struct hook_status *)&hooks->status[h];
	return NULL;
}

static bool monitor_hooks_fits(const struct hook_status *status)
{
	const struct hook *hook = status->hook;

	return (!hook->min_args && !hook->max_args) ||
	       (status->args >= hook->min_args && status->args <= hook->max_args);
}

/* The table has a stand-in after the hook that it replaces, so one pass is enough. */
static void monitor_hooks_settle(struct hooks *hooks)
{
	for (size_t h = 0; h < hooks->count; h++) {
		struct hook_status *status = &hooks->status[h];
		const char *first = status->hook->stands_in;
		const struct hook_status *other = first ? by_program(hooks, first) : NULL;

		if (status->state == HOOK_REFUSED)
			continue;
		if (other && other->state == HOOK_USED)
			status->state = HOOK_SPARE;
		else if (status->args < 0)
			status->state = HOOK_MISSING;
		else
			status->state = monitor_hooks_fits(status) ? HOOK_USED : HOOK_OTHER_FORM;
	}
}

static void find_type(struct hooks *hooks, const char *name, uint32_t id)
{
	static const char *const names[CASTS] = {
		[CAST_TCP_SOCK] = "tcp_sock", [CAST_TASK] = "task_struct",
		[CAST_BIO] = "bio",	      [CAST_REQUEST] = "request",
		[CAST_INODE] = "inode",	      [CAST_MAPPING] = "address_space",
		[CAST_FOLIO] = "folio",
	};

	for (size_t i = 0; i < CASTS; i++)
		if (!strcmp(name, names[i]))
			hooks->types[i] = id;
}

void hooks_probe(struct hooks *hooks, const struct btf_raw *btf, const char *machine)
{
	static const char prefix[] = "btf_trace_";
	struct utsname name;

	memset(hooks, 0, sizeof(*hooks));
	if (!machine)
		machine = uname(&name) ? "" : name.machine;
	snprintf(hooks->machine, sizeof(hooks->machine), "%.*s", (int)sizeof(hooks->machine) - 1,
		 machine);
	hooks->count = TABLE;
	for (size_t h = 0; h < TABLE; h++) {
		hooks->status[h].hook = &table[h];
		hooks->status[h].args = -1;
	}
	for (uint32_t id = 1; id < btf->count; id++) {
		const struct btf_type *t = btf_raw_type(btf, id);
		const char *text = btf_raw_name(btf, t);
		uint32_t kind = BTF_INFO_KIND(t->info);

		if (kind == BTF_KIND_FUNC)
			find_function(hooks, btf, text, t->type);
		else if (kind == BTF_KIND_TYPEDEF && !strncmp(text, prefix, sizeof(prefix) - 1))
			find_tracepoint(hooks, btf, text + sizeof(prefix) - 1, t->type);
		else if (kind == BTF_KIND_ENUM && !text[0])
			find_flag(hooks, btf, t);
		else if (kind == BTF_KIND_STRUCT)
			find_type(hooks, text, id);
	}
	monitor_hooks_settle(hooks);
}

bool hooks_preemptible(const struct hooks *hooks)
{
	return hooks->srcu_fast && hooks->preempt_calls;
}

/*
 * Returns true if another hook of STATUS's group is used: one that it replaces, or one that
 * replaces it.
 */
static bool monitor_hooks_replaced(const struct hooks *hooks, const struct hook_status *status)
{
	const char *head =
		status->hook->stands_in ? status->hook->stands_in : status->hook->program;

	for (size_t h = 0; h < hooks->count; h++) {
		const struct hook_status *other = &hooks->status[h];

		if (other->state == HOOK_USED &&
		    (!strcmp(other->hook->program, head) ||
		     (other->hook->stands_in && !strcmp(other->hook->stands_in, head))))
			return true;
	}
	return false;
}

bool hooks_understudy(const char *program, char *name, size_t size)
{
	static const char suffix[] = "_again";
	size_t length = strlen(program), tail = sizeof(suffix) - 1;

	if (length <= tail || strcmp(program + length - tail, suffix) != 0)
		return false;
	snprintf(name, size, "%.*s", (int)(length - tail), program);
	return true;
}

bool hooks_refuse(struct hooks *hooks, const char *program, const char *error)
{
	struct hook_status *status = by_program(hooks, program);
	char name[64];

	if (hooks_understudy(program, name, sizeof(name))) {
		if (hooks->understudies_refused)
			return false;
		hooks->understudies_refused = true; /* then what is skipped is counted */
		return true;
	}
	if (!status || status->state != HOOK_USED)
		return false;
	status->state = HOOK_REFUSED;
	snprintf(status->error, sizeof(status->error), "%s", error);
	monitor_hooks_settle(hooks);
	return !status->hook->needed || monitor_hooks_replaced(hooks, status);
}

bool hooks_program_used(const struct hooks *hooks, const char *program)
{
	const struct hook_status *status;
	char name[64];
	bool again = hooks_understudy(program, name, sizeof(name));

	if (again && (!hooks_preemptible(hooks) || hooks->understudies_refused))
		return false;
	status = by_program(hooks, again ? name : program);
	return !status || status->state == HOOK_USED;
}

int hooks_needed(const struct hooks *hooks, struct iocom_err *err)
{
	for (size_t h = 0; h < hooks->count; h++) {
		const struct hook_status *status = &hooks->status[h];

		if (!status->hook->needed || monitor_hooks_replaced(hooks, status))
			continue;
		if (status->state == HOOK_REFUSED)
			return iocom_err_set(err, -EOPNOTSUPP,
					     "the kernel refused the monitor's program %s: %s",
					     status->hook->program, status->error);
		return iocom_err_set(err, -EOPNOTSUPP,
				     "this kernel is too old for the monitor: its %s %s is %s; "
				     "Linux 5.15 or newer is needed",
				     hooks_kind_name(status->hook->kind), status->hook->name,
				     status->args < 0 ? "missing" : "of another form");
	}
	return 0;
}

static size_t monitor_hooks_add(struct monitor_degraded *out, size_t size, size_t n,
				const struct hook *hook, const char *column, bool unknown)
{
	if (n < size)
		out[n] = (struct monitor_degraded){column, hook->name, hook->without, unknown};
	return n + 1;
}

size_t hooks_degraded(const struct hooks *hooks, struct monitor_degraded *out, size_t size)
{
	bool x86 = !strcmp(hooks->machine, "x86_64"), arm64 = !strcmp(hooks->machine, "aarch64");
	size_t n = 0;

	for (size_t h = 0; h < hooks->count; h++) {
		const struct hook *hook = hooks->status[h].hook;

		/* The first hook of a group speaks for the group. */
		if (hook->stands_in || monitor_hooks_replaced(hooks, &hooks->status[h]))
			continue;
		for (size_t i = 0; i < HOOK_DEGRADED_MAX && hook->unknown[i]; i++)
			n = monitor_hooks_add(out, size, n, hook, hook->unknown[i], true);
		for (size_t i = 0; i < HOOK_DEGRADED_MAX && hook->coarse[i]; i++)
			n = monitor_hooks_add(out, size, n, hook, hook->coarse[i], false);
	}
	for (size_t p = 0; p < PROCESSORS; p++) {
		if ((x86 && processors[p].fine_on_x86) || (arm64 && processors[p].fine_on_arm64))
			continue;
		if (n < size)
			out[n] = processors[p].what;
		n++;
	}
	return n;
}

const char *hooks_state_name(enum hook_state state)
{
	static const char *const names[] = {"used", "missing", "another form", "refused",
					    "not needed"};

	return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

const char *hooks_kind_name(enum hook_kind kind)
{
	static const char *const names[] = {"tracepoint", "iterator", "function"};

	return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}
