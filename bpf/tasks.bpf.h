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

SEC("tp_btf/sched_process_free")
int BPF_PROG(process_free, struct task_struct *task)
{
	struct thread_state *state;
	struct process_key key;
	struct counters what;
	u64 cgid;
	u32 cpu;

	if ((task->flags & PF_KTHREAD) || !in_scope(task))
		return 0;
	state = thread_find(task);
	cgid = cgroup_id(task);
	if (state && state->cgid != cgid)
		fold_thread(task, state);
	unfolded(task, state, &what);
	if (state)
		key = state->process;
	else
		process_of(task, &key);
	cpu = fold_begin();
	job_add(cgid, &what);
	if (state || task->pid == task->tgid || BPF_CORE_READ(task, group_leader, pid) == task->tgid)
		late_add(&key, &what, task->pid == task->tgid ? task : 0);
	else
		count_drop(DROP_LATE); /* the leader's memory is gone already */
	fold_end(cpu);
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
		fold_thread(task, state);
		state->cgid = cgroup_id(task);
	}
	return 0;
}

#endif
