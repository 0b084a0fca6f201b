/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The sweep and the look as one walk along the kernel's list of tasks, if the kernel offers that
 * (6.7). It takes a quarter of the time of the iterator, which looks each thread up by its
 * number and takes a reference. The walk holds RCU, so it ends after `cfg_walk_max` tasks; then,
 * or when `runs` is full, user space uses the iterator. A second walk follows the threads of a
 * process that moves.
 */
#ifndef IOCOM_WALK_BPF_H
#define IOCOM_WALK_BPF_H

struct bpf_iter_task {
	u64 __opaque[3];
} __attribute__((aligned(8)));
#define ALL_THREADS  1
#define PROC_THREADS 2

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;

const volatile __u32 cfg_walk_max = 65536;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WALK_RUNS);
	__type(key, u32);
	__type(value, struct run);
} runs SEC(".maps");

__u32 walk_runs;  /* in `runs` */
__u32 walk_tasks; /* tasks seen */
bool walk_short;  /* some tasks were not seen, or found no room */
bool walk_moved;  /* a thread moved and must be folded, which is the iterator's work */

/* Values of the thread before: threads of a process mostly share both. */
__u64 walk_leader, walk_start;
__u64 walk_css, walk_cgid;

/* A thread on the walk. The members are addresses: reads by helper need no types. */
struct walked {
	u64 task, leader, css;
	u64 cpu_ns, minor_faults, major_faults;
	struct taskio_raw io;
	u32 pid, tgid, runnable, on_cpu;
};

/* What the addresses point to cannot change while the walk holds RCU. */
static __always_inline void walk_owner(const struct walked *w, const struct thread_state *state,
				       u64 *start, u64 *cgid)
{
	struct task_struct *leader;
	struct css_set *css;

	if (w->css != walk_css) {
		css = (struct css_set *)w->css;
		walk_css = w->css;
		walk_cgid = BPF_CORE_READ(css, dfl_cgrp, kn, id);
	}
	if (state) {
		*start = state->process.start;
		*cgid = state->cgid;
		walk_moved |= state->cgid != walk_cgid;
		return;
	}
	if (w->leader != walk_leader) {
		leader = (struct task_struct *)w->leader;
		walk_leader = w->leader;
		walk_start = BPF_CORE_READ(leader, start_boottime);
	}
	*start = walk_start;
	*cgid = walk_cgid;
}

/* This function is not static, so that the verifier checks it once and not for each path through
 * the loop. */
__noinline int walk_add(struct walked *w, struct thread_state *state)
{
	u32 at = walk_runs - 1; /* without a run this is beyond the end, so nothing is found */
	struct task_struct *task;
	struct run *run;
	u64 start, cgid;

	if (!w)
		return 0;
	task = (struct task_struct *)w->task;
	walk_owner(w, state, &start, &cgid);
	run = bpf_map_lookup_elem(&runs, &at);
	if (!run || !run_takes(run, w->tgid, start, cgid)) {
		at = walk_runs;
		run = bpf_map_lookup_elem(&runs, &at);
		if (!run) {
			walk_short = true;
			return 0;
		}
		run_begin(run, w->tgid, start, cgid);
		walk_runs++;
	}
	run->head.threads++;
	run->head.runnable += w->runnable;
	run->head.cpu_ns += w->cpu_ns;
	run->head.run_wait_ns += w->io.run_wait;
	run->head.minor_faults += w->minor_faults;
	run->head.major_faults += w->major_faults;
	if (w->pid == w->tgid) {
		run->head.flags |= RUN_LEADER;
		read_leader(task, &run->leader);
	}
	if (state)
		run_add_state(run, state);
	run_add_accounting(run, &w->io, state, w->on_cpu);
	return 0;
}

/* Reads the thread's counters, but not whose they are. */
static __always_inline void walk_look_at(struct task_struct *task, struct walked *w)
{
	__builtin_memset(w, 0, sizeof(*w));
	w->cpu_ns = task->se.sum_exec_runtime;
	w->minor_faults = task->min_flt;
	w->major_faults = task->maj_flt;
	taskio_raw(task, &w->io);
}

static __always_inline void walk_task(struct task_struct *task)
{
	struct walked w;

	walk_look_at(task, &w);
	w.task = (u64)task;
	w.pid = task->pid;
	w.tgid = task->tgid;
	w.runnable = is_runnable(task);
	w.on_cpu = task_on_cpu(task);
	bpf_core_read(&w.leader, sizeof(w.leader), &task->group_leader);
	bpf_core_read(&w.css, sizeof(w.css), &task->cgroups);
	walk_add(&w, thread_find(task));
}

static __always_inline bool walk_goes_on(void)
{
	if (walk_tasks++ < cfg_walk_max && !walk_short)
		return true;
	walk_short = true;
	return false;
}

static __always_inline void walk_reset(void)
{
	walk_runs = walk_tasks = 0;
	walk_leader = walk_css = 0;
	walk_short = walk_moved = false;
}

SEC("syscall")
int walk(void *ctx)
{
	struct bpf_iter_task it;
	struct task_struct *task;

	walk_reset();
	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, 0, ALL_THREADS);
	while ((task = bpf_iter_task_next(&it)) && walk_goes_on())
		if (!(task->flags & PF_KTHREAD) && in_scope(task))
			walk_task(task);
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall")
int walk_look(void *ctx)
{
	struct bpf_iter_task it;
	struct task_struct *task;

	walk_reset();
	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, 0, ALL_THREADS);
	while ((task = bpf_iter_task_next(&it)) && walk_goes_on())
		if (!(task->flags & PF_KTHREAD) && is_runnable(task) && in_scope(task))
			runnable++;
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}

/* STATE is new: what W did before it moved goes to its old cgroup. Not static: verified once. */
__noinline int walk_moved_past(struct walked *w, struct thread_state *state)
{
	struct taskio now = {}; /* older verifiers need the initialisation */
	u32 cpu;

	if (!w || !state)
		return 0;
	taskio_of(&w->io, &state->block, &now);
	state->counters.cpu_ns = state->cpu_base = w->cpu_ns;
	state->counters.minor_faults = state->minor_base = w->minor_faults;
	state->counters.major_faults = state->major_base = w->major_faults;
	state->counters.dirtied_bytes = now.dirtied;
	state->counters.cancelled_bytes = now.cancelled;
	state->counters.netfs_read_bytes = now.netfs_read;
	state->counters.netfs_write_bytes = now.netfs_write;
	state->counters.run_wait_ns = now.run_wait;
	state->counters.io_wait_ns = now.io_wait;
	state->io_base = now;
	cpu = fold_begin();
	late_add_moved(state);
	__builtin_memset(&state->counters, 0, sizeof(state->counters));
	fold_end(cpu);
	return 0;
}

/*
 * The kernel reports a move only for the leader. A thread without counters of its own would take
 * its past to the new job, though its old job's readings have it: it would count twice. A thread
 * with counters folds them now, if it can, or at its next event.
 */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(attach_threads, struct cgroup *cgroup, const char *path, struct task_struct *leader)
{
	struct thread_state *state;
	struct bpf_iter_task it;
	struct task_struct *task;
	u64 cgid = cgroup_id(leader);
	struct walked w;

	if ((leader->flags & PF_KTHREAD) || !in_scope(leader))
		return 0;
	bpf_iter_task_new(&it, leader, PROC_THREADS);
	while ((task = bpf_iter_task_next(&it))) {
		/* The thread is in another cgroup: it moved alone (cgroup.threads). */
		if (cgroup_id(task) != cgid)
			continue;
		if (thread_find(task)) {
			settle_move(task);
			continue;
		}
		state = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!state) {
			count_drop(DROP_TASK_STORAGE);
			continue;
		}
		process_of(task, &state->process);
		state->cgid = cgid;
		walk_look_at(task, &w);
		walk_moved_past(&w, state);
	}
	bpf_iter_task_destroy(&it);
	return 0;
}

#endif
