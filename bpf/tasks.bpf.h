/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tasks: the sweep over all threads, the look at the run queue, and the folds at
 * the end of a thread or its move to another cgroup.
 */
#ifndef IOCOM_TASKS_BPF_H
#define IOCOM_TASKS_BPF_H

static __always_inline bool is_runnable(struct task_struct *task)
{
	return !task->__state && !task->exit_state && task->pid != (pid_t)reader_tid;
}

static __always_inline void read_leader(struct task_struct *task, struct leader_record *leader)
{
	struct mm_struct *mm = task->mm;

	leader->rss_pages = mm ? rss_pages(mm) : 0;
	leader->uid = BPF_CORE_READ(task, cred, uid.val);
	bpf_probe_read_kernel(leader->comm, sizeof(leader->comm), task->comm);
}

/*
 * False: all zero.  A task on a CPU may be between the kernel's accounting and
 * the event that tells us where the bytes go: its share of network file systems
 * is what it last was.
 */
static __always_inline bool read_accounting(struct task_struct *task, struct thread_state *state,
					    struct accounting_record *out)
{
	struct taskio_block none = {};
	struct taskio now;

	taskio_read(task, state ? &state->block : &none, &now);
	out->dirtied_bytes = now.dirtied;
	out->cancelled_bytes = now.cancelled;
	out->io_wait_ns = now.io_wait;
	if (state) {
		out->dirtied_bytes -= state->io_base.dirtied;
		out->cancelled_bytes -= state->io_base.cancelled;
		out->io_wait_ns -= state->io_base.io_wait;
		if (!task_on_cpu(task)) {
			state->netfs_read_shown = above(now.netfs_read, state->io_base.netfs_read);
			state->netfs_write_shown =
				above(now.netfs_write, state->io_base.netfs_write);
		}
		out->netfs_read_bytes = state->netfs_read_shown;
		out->netfs_write_bytes = state->netfs_write_shown;
	} else {
		bool settled = !task_on_cpu(task);

		out->netfs_read_bytes = settled ? now.netfs_read : 0;
		out->netfs_write_bytes = settled ? now.netfs_write : 0;
	}
	return out->dirtied_bytes | out->cancelled_bytes | out->netfs_read_bytes |
	       out->netfs_write_bytes | out->io_wait_ns;
}

/* A thread that moved and had no event since: what it did so far stays where it was. */
static __always_inline void settle_move(struct task_struct *task)
{
	struct thread_state *state = thread_find(task);
	u64 cgid = task->cgroups->dfl_cgrp->kn->id;

	if (!state || state->cgid == cgid)
		return;
	fold_thread(task, state, 0);
	state->cgid = cgid;
}

/* Not inline: its records and those of a fold do not fit one stack. */
static __noinline int read_thread(struct task_struct *task, struct seq_file *seq)
{
	struct thread_state *state = thread_find(task);
	bool is_leader = task->pid == task->tgid;
	struct accounting_record accounted;
	struct thread_record thread = {
		.tgid = task->tgid,
		.cpu_ns = task->se.sum_exec_runtime,
		.run_wait_ns = task_run_wait(task),
		.minor_faults = task->min_flt,
		.major_faults = task->maj_flt,
	};

	if (state) {
		thread.flags = THREAD_COUNTERS;
		thread.start = state->process.start;
		thread.cgid = state->cgid;
		thread.cpu_ns -= state->cpu_base;
		thread.minor_faults -= state->minor_base;
		thread.major_faults -= state->major_base;
		thread.run_wait_ns -= state->io_base.run_wait;
	} else {
		/* Direct steps: cheaper than reads by helper, and this is the hot loop. */
		thread.start = task->group_leader->start_boottime;
		thread.cgid = task->cgroups->dfl_cgrp->kn->id;
	}
	if (task->exit_state)
		thread.flags |= THREAD_ZOMBIE;
	if (is_runnable(task))
		thread.flags |= THREAD_RUNNABLE;
	if (is_leader)
		thread.flags |= THREAD_LEADER;
	if (read_accounting(task, state, &accounted))
		thread.flags |= THREAD_ACCOUNTING;
	bpf_seq_write(seq, &thread, sizeof(thread));
	if (is_leader) {
		struct leader_record leader = {};

		read_leader(task, &leader);
		bpf_seq_write(seq, &leader, sizeof(leader));
	}
	if (state)
		bpf_seq_write(seq, &state->counters, sizeof(state->counters));
	if (thread.flags & THREAD_ACCOUNTING)
		bpf_seq_write(seq, &accounted, sizeof(accounted));
	return 0;
}

SEC("iter/task")
int sweep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || (task->flags & PF_KTHREAD) || !in_scope(task))
		return 0;
	if (sweep_mode == SWEEP_READ) {
		settle_move(task);
		read_thread(task, ctx->meta->seq);
	} else {
		accounting = taskio_kinds(bpf_get_current_task_btf());
		if (task->start_boottime < began_ns)
			thread_get(task, cgroup_id(task));
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
 * Files are not closed yet, and some kernels never tell sched_process_free of a
 * task: so everything is folded here, and what comes later there.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct thread_state *state;
	struct task_struct *leader = 0;

	if ((task->flags & PF_KTHREAD) || !current_in_scope() || (cfg_ablate & ABLATE_FOLD))
		return 0;
	state = thread_current(task);
	if (!state)
		return 0;
	if (!BPF_CORE_READ(task, signal, live.counter))
		leader = BPF_CORE_READ(task, group_leader);
	fold_thread(task, state, leader);
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(process_free, struct task_struct *task)
{
	struct thread_state *state = thread_find(task);

	if (state && !(cfg_ablate & ABLATE_FOLD))
		fold_thread(task, state, 0);
	return 0;
}

/* What a process did before it moved to where it is now; see enum late_part. */
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
 * A task that was not counted yet moves: what it did so far belongs to where it
 * came from, which user space knows when an earlier reading saw it there.
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
	fold_end(cpu);
	__builtin_memset(&state->counters, 0, sizeof(state->counters));
	set_bases(task, state);
	return 0;
}

/*
 * Told after the move, and for the leader only; its threads fold at their next event or
 * the next sweep.
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
	else if (state->cgid != cgroup_id(task))
		thread_get(task, cgroup_id(task));
	return 0;
}

#endif
