/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tasks: the sweep over all threads and the look at the run queue, as an iterator that every
 * kernel has (newer ones have a faster walk, walk.bpf.h), and the folds when a thread ends or
 * moves to another cgroup.
 */
#ifndef IOCOM_TASKS_BPF_H
#define IOCOM_TASKS_BPF_H

static __always_inline bool is_runnable(struct task_struct *task)
{
	return !task->__state && !task->exit_state && task->pid != (pid_t)reader_tid;
}

/* Reads only by helper, because TASK may be a plain address. */
static __always_inline void read_leader(struct task_struct *task, struct leader_record *leader)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	leader->file_pages = 0;
	leader->rss_pages = mm ? rss_pages(mm, &leader->file_pages) : 0;
	leader->uid = BPF_CORE_READ(task, cred, uid.val);
	bpf_probe_read_kernel(leader->comm, sizeof(leader->comm), task->comm);
}

/* The run of threads being summed, laid out as it is written. */
struct run {
	struct run_record head; /* tgid 0: no run */
	struct leader_record leader;
	struct counters counters;
};
_Static_assert(sizeof(struct run) == RUN_SIZE, "as user space reads it");

static __always_inline void run_begin(struct run *run, u32 tgid, u64 start, u64 cgid)
{
	__builtin_memset(&run->head, 0, sizeof(run->head));
	run->head.tgid = tgid;
	run->head.start = start;
	run->head.cgid = cgid;
}

static __always_inline bool run_takes(const struct run *run, u32 tgid, u64 start, u64 cgid)
{
	return run->head.tgid == tgid && run->head.start == start && run->head.cgid == cgid;
}

/* True for fields from the kernel's accounting: during a fold the counters have them, too. */
static __always_inline bool is_accounted(u32 field)
{
#define FIELD(name) (offsetof(struct counters, name) / sizeof(u64))
	return (field >= FIELD(dirtied_bytes) && field <= FIELD(netfs_write_bytes)) ||
	       field == FIELD(io_wait_ns);
#undef FIELD
}

static __always_inline void run_open_counters(struct run *run)
{
	if (run->head.flags & RUN_COUNTERS)
		return;
	run->head.flags |= RUN_COUNTERS;
	__builtin_memset(&run->counters, 0, sizeof(run->counters));
}

static __always_inline void run_add_state(struct run *run, const struct thread_state *state)
{
	u64 *to = (u64 *)&run->counters;
	const u64 *from = (const u64 *)&state->counters;

	run->head.cpu_ns -= state->cpu_base;
	run->head.run_wait_ns -= state->io_base.run_wait;
	run->head.minor_faults -= state->minor_base;
	run->head.major_faults -= state->major_base;
	run_open_counters(run);
#pragma unroll
	for (u32 i = 0; i < COUNTERS; i++)
		if (!is_accounted(i))
			to[i] += from[i];
	talk_show(state, &run->counters);
}

/*
 * Adds what the kernel accounted. A task on a CPU may be between the accounting and the event
 * that tells us where the bytes go. For such a task we use the last known share of network file
 * systems.
 */
static __always_inline void run_add_accounting(struct run *run, const struct taskio_raw *raw,
					       struct thread_state *state, bool on_cpu)
{
	struct taskio_block none = {};
	struct taskio now = {}; /* older verifiers need the initialisation */

	taskio_of(raw, state ? &state->block : &none, &now);
	if (state) {
		now.dirtied -= state->io_base.dirtied;
		now.cancelled -= state->io_base.cancelled;
		now.io_wait -= state->io_base.io_wait;
		if (!on_cpu) {
			state->netfs_read_shown = above(now.netfs_read, state->io_base.netfs_read);
			state->netfs_write_shown =
				above(now.netfs_write, state->io_base.netfs_write);
		}
		now.netfs_read = state->netfs_read_shown;
		now.netfs_write = state->netfs_write_shown;
	} else if (on_cpu) {
		now.netfs_read = now.netfs_write = 0;
	}
	if (!(now.dirtied | now.cancelled | now.netfs_read | now.netfs_write | now.io_wait))
		return;
	run_open_counters(run);
	run->counters.dirtied_bytes += now.dirtied;
	run->counters.cancelled_bytes += now.cancelled;
	run->counters.netfs_read_bytes += now.netfs_read;
	run->counters.netfs_write_bytes += now.netfs_write;
	run->counters.io_wait_ns += now.io_wait;
}

static __always_inline void run_add(struct run *run, struct task_struct *task,
				    struct thread_state *state)
{
	struct taskio_raw raw;

	taskio_raw(task, &raw);
	run->head.threads++;
	run->head.runnable += is_runnable(task);
	run->head.cpu_ns += task->se.sum_exec_runtime;
	run->head.run_wait_ns += raw.run_wait;
	run->head.minor_faults += task->min_flt;
	run->head.major_faults += task->maj_flt;
	if (task->pid == task->tgid) {
		run->head.flags |= RUN_LEADER;
		read_leader(task, &run->leader);
	}
	if (state)
		run_add_state(run, state);
	run_add_accounting(run, &raw, state, task_on_cpu(task));
}

/*
 * Returns true if another task may fold TASK's counters: TASK is not adding to them on another CPU,
 * or it has none. Otherwise TASK folds at its own next event.
 */
static __always_inline bool may_fold(struct task_struct *task, const struct thread_state *state)
{
	const u64 *field = (const u64 *)&state->counters;
	u64 any = 0;

	if (!task_on_cpu(task) || task == bpf_get_current_task_btf())
		return true;
#pragma unroll
	for (u32 i = 0; i < COUNTERS; i++)
		any |= field[i];
	return !(any | talk_any(state));
}

/* Folds a thread that moved and had no event since: its counts stay with the old cgroup. */
static __always_inline void settle_move(struct task_struct *task)
{
	struct thread_state *state = thread_find(task);
	u64 cgid = cgroup_id(task);

	if (!state || state->cgid == cgid || !may_fold(task, state))
		return;
	fold_thread(task, state, 0);
	state->cgid = cgid;
}

/* Finds the process and cgroup that TASK's counters belong to. */
static __always_inline void counted_for(struct task_struct *task, const struct thread_state *state,
					u64 *start, u64 *cgid)
{
	if (state) {
		*start = state->process.start;
		*cgid = state->cgid;
		return;
	}
	*start = BPF_CORE_READ(task, group_leader, start_boottime);
	*cgid = cgroup_id(task);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct run);
} pending SEC(".maps");

/*
 * Writes the run out and ends it. When the buffer is full the kernel discards what this call
 * wrote and calls again for the same task, so the run must stay.
 */
static __always_inline bool run_write(struct run *run, struct seq_file *seq)
{
	u32 flags = run->head.flags;
	long rc;

	if (!run->head.tgid)
		return true;
	if (flags & RUN_COUNTERS)
		rc = bpf_seq_write(seq, run, sizeof(*run));
	else if (flags & RUN_LEADER)
		rc = bpf_seq_write(seq, run, sizeof(run->head) + sizeof(run->leader));
	else
		rc = bpf_seq_write(seq, run, sizeof(run->head));
	if (rc)
		return false;
	run->head.tgid = 0;
	return true;
}

/* Not inlined: its records and those of a fold do not fit on one stack. */
static __noinline int sweep_task(struct task_struct *task, struct seq_file *seq, struct run *run)
{
	struct thread_state *state = thread_find(task);
	u64 start, cgid;

	counted_for(task, state, &start, &cgid);
	if (!run_takes(run, task->tgid, start, cgid)) {
		if (!run_write(run, seq))
			return 0;
		run_begin(run, task->tgid, start, cgid);
	}
	run_add(run, task, state);
	return 0;
}

SEC("iter/task")
int sweep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct run *run;
	u32 zero = 0;

	if (task && ((task->flags & PF_KTHREAD) || !in_scope(task)))
		return 0;
	if (sweep_mode == SWEEP_BASELINE) {
		accounting = taskio_kinds(bpf_get_current_task_btf());
		if (task && task->start_boottime < began_ns)
			thread_get(task, cgroup_id(task));
		return 0;
	}
	run = bpf_map_lookup_elem(&pending, &zero);
	if (!run)
		return 0;
	if (task) {
		settle_move(task);
		sweep_task(task, ctx->meta->seq, run);
	} else {
		run_write(run, ctx->meta->seq);
	}
	return 0;
}

SEC("iter/task")
int look(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task && !(task->flags & PF_KTHREAD) && is_runnable(task) && in_scope(task))
		runnable++;
	return 0;
}

/*
 * Files are not closed yet at this point, but some kernels never report sched_process_free for a
 * task. So this folds everything so far, and sched_process_free folds what comes later.
 */
static __always_inline int on_process_exit(struct task_struct *task)
{
	struct thread_state *state;
	struct task_struct *leader = 0;

	if ((task->flags & PF_KTHREAD) || !current_in_scope() || (cfg_ablate & ABLATE_FOLD))
		return 0;
	state = thread_current(task);
	if (!state)
		return 0;
	if (!BPF_CORE_READ(task, signal, live.counter)) {
		leader = BPF_CORE_READ(task, group_leader);
		state->end_told = task->pid == task->tgid;
	}
	fold_thread(task, state, leader);
	talk_leave(state);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	KEEP_CPU(INSIDE_EXIT, on_process_exit(task));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit_again, struct task_struct *task)
{
	IF_SKIPPED(INSIDE_EXIT, on_process_exit(task));
	return 0;
}

/*
 * From about 7.1 a program may be preempted, and the end of another task on that CPU then skips
 * it (drop `recursion`). So the leader's end, the last of its process that we see, reports the
 * end of the process.
 */
static __always_inline int on_process_free(struct task_struct *task)
{
	struct thread_state *state = thread_find(task);
	bool untold;

	if (!state || (cfg_ablate & ABLATE_FOLD))
		return 0;
	untold = task->pid == task->tgid && !state->end_told;
	fold_thread(task, state, untold ? task : 0);
	talk_leave(state);
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(process_free, struct task_struct *task)
{
	KEEP_CPU(INSIDE_FREE, on_process_free(task));
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(process_free_again, struct task_struct *task)
{
	IF_SKIPPED(INSIDE_FREE, on_process_free(task));
	return 0;
}

/* Records what a process did before it moved to its present cgroup; see enum late_part. */
static __always_inline void late_add_moved(struct thread_state *state)
{
	struct process_key key = state->process;
	struct late_value *value;

	key.part = LATE_MOVED;
	value = late_get(&key);
	if (!value)
		return;
	counters_add(&value->counters, &state->counters);
	value->cgid = state->cgid;
}

/*
 * A task moves that was not counted yet. What it did so far belongs to its old cgroup, which
 * user space knows if an earlier reading saw the task there.
 */
static __noinline int note_move(struct task_struct *task)
{
	struct thread_state *state;
	u32 cpu;

	if (!task || !in_scope(task))
		return 0;
	state = thread_get(task, cgroup_id(task));
	if (!state || task->start_boottime < began_ns)
		return 0;
	complete(task, state);
	cpu = fold_begin();
	late_add_moved(state);
	__builtin_memset(&state->counters, 0, sizeof(state->counters));
	set_bases(task, state);
	fold_end(cpu);
	return 0;
}

/*
 * Fires after the move, and only for the leader. attach_threads (walk.bpf.h) handles its
 * threads, or they fold at their next event or the next sweep.
 */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(cgroup_attach, struct cgroup *cgroup, const char *path, struct task_struct *task)
{
	struct thread_state *state;

	__sync_fetch_and_add(&moves, 1);
	if (task->flags & PF_KTHREAD)
		return 0;
	state = thread_find(task);
	if (!state)
		note_move(task);
	else if (state->cgid != cgroup_id(task) && may_fold(task, state))
		thread_get(task, cgroup_id(task));
	return 0;
}

#endif
