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

static __always_inline void read_thread(struct task_struct *task, struct seq_file *seq)
{
	struct thread_state *state = thread_find(task);
	bool is_leader = task->pid == task->tgid;
	struct thread_record thread = {
		.tgid = task->tgid,
		.cpu_ns = task->se.sum_exec_runtime,
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
	bpf_seq_write(seq, &thread, sizeof(thread));
	if (is_leader) {
		struct leader_record leader = {};

		read_leader(task, &leader);
		bpf_seq_write(seq, &leader, sizeof(leader));
	}
	if (state)
		bpf_seq_write(seq, &state->counters, sizeof(state->counters));
}

SEC("iter/task")
int sweep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || (task->flags & PF_KTHREAD) || !in_scope(task))
		return 0;
	if (sweep_mode == SWEEP_READ)
		read_thread(task, ctx->meta->seq);
	else if (task->start_boottime < began_ns)
		thread_get(task, cgroup_id(task));
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

	if ((task->flags & PF_KTHREAD) || !current_in_scope())
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

	if (state)
		fold_thread(task, state, 0);
	return 0;
}

/* Told for the leader only; its threads fold at their next event. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(cgroup_attach, struct cgroup *cgroup, const char *path, struct task_struct *task)
{
	struct thread_state *state;

	if (task->flags & PF_KTHREAD)
		return 0;
	state = thread_find(task);
	if (state && state->cgid != cgroup_id(task)) {
		fold_thread(task, state, 0);
		state->cgid = cgroup_id(task);
	}
	return 0;
}

#endif
