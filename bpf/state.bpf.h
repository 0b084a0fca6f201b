/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where counters are kept, and how they leave a task.
 *
 *   task storage (`threads`)   counters of a live thread since its last fold;
 *                              only the thread itself writes: no atomics
 *   `talks`                    the same for TCP, found faster (talks.bpf.h)
 *   fold                       thread -> `jobs` (its cgroup) and `late` (its process),
 *                              when it exits, is freed, or is found in another cgroup
 *   `jobs`, `late`             two of each: the programs fill the pair of the current
 *                              epoch while user space empties the other one
 *
 * A hash element must not be deleted while a program adds to it. So a program raises busy[cpu]
 * before it reads the epoch and lowers it when done. User space changes the epoch, sees every
 * busy[cpu] at 0 once, and then owns the old pair.
 */
#ifndef IOCOM_STATE_BPF_H
#define IOCOM_STATE_BPF_H

#include "taskio.bpf.h"

#define PF_KTHREAD	  0x00200000
#define PF_LOCAL_THROTTLE 0x00100000

/* What a thread did by TCP since its last fold. */
struct talk {
	u64 cgid;   /* its cgroup at the last look */
	u32 looked; /* `moves` + 1 at that look */
	/* slot, plus 1, of the remote that sent the running receive call's bytes */
	u32 arrived : 31;
	u32 gang : 1; /* its cgroup was a gang's at the last look */
	u64 sent_bytes;
	u64 received_bytes;
	u64 sent_messages;
	u64 received_messages;
	u64 local_bytes;
};
#define ARRIVED_NOWHERE 0x7fffffff /* the bytes came from another host, but have no slot */

struct thread_state {
	struct counters counters;
	struct process_key process;
	u64 cgid;
	u64 cpu_base, minor_base, major_base; /* already folded, or spent before counting began */
	struct taskio io_base;
	struct taskio_block block;
	struct job_disk_value on_disk; /* not yet in `job_disks` */
	u32 disk_device, disk_epoch;
	u64 netfs_read_shown, netfs_write_shown; /* value at the last sweep */
	/* Where the frame of the last page fault inside the kernel was, and a digest of it. */
	u64 fault_frame, fault_digest;
	/* The file that a page fault in this system call last waited for. */
	u64 fault_mapping, fault_call;
	struct talk talk; /* used while the thread has no slot in `talks` */
	u32 talk_slot;	  /* its index plus 1; 0: none */
	u32 talk_pid;	  /* the thread's number when it took the slot */
	u32 end_told;	  /* for a leader: user space knows that its process has ended */
	u32 looked;	  /* `moves` + 1 at the last look at the cgroup */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

#define FOLD_MAP(name, key_type, value_type, entries)                                              \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__uint(max_entries, entries);                                                      \
		__type(key, key_type);                                                             \
		__type(value, value_type);                                                         \
	} name SEC(".maps")

FOLD_MAP(late_even, struct process_key, struct late_value, 16384);
FOLD_MAP(late_odd, struct process_key, struct late_value, 16384);
FOLD_MAP(jobs_even, u64, struct counters, 4096);
FOLD_MAP(jobs_odd, u64, struct counters, 4096);

/* The cgroups of gangs; user space keeps it, and tells in `gangs_known` whether there are any. */
FOLD_MAP(gangs, u64, u32, GANGS_MAX);
__u32 gangs_known;

const volatile __u64 cfg_scope_cgid = 0; /* 0: every task is in scope */
const volatile __u32 cfg_scope_level = 0;
const volatile bool cfg_all_disks = true; /* else only those that user space put into `disks` */
const volatile __u32 cfg_ablate = 0;	  /* enum ablate, only for tests */

/* Only grows; user space uses differences and removes entries that were long idle. */
FOLD_MAP(job_disks, struct job_disk_key, struct job_disk_value, JOB_DISKS);

/*
 * Newer kernels may preempt tracepoint programs, and skip a program for all other events of that
 * CPU until the preempted task has left it. A program that forbids preemption keeps its steps
 * together, but whoever wanted the CPU meanwhile gets it as soon as the program allows it, and
 * then the task is still inside. So where user space asks for it (hooks_preemptible), a program
 * says that it is inside, and a second one at the same tracepoint, its understudy, takes the events
 * that were skipped: it finds somebody inside. What comes in a program's very first and last steps
 * is lost all the same: events that the kernel skipped, less `stood_in`, are the drop `recursion`.
 */
const volatile bool cfg_keep_cpu = false;
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

#define BUSY_CPUS 256
enum understudied {
	INSIDE_BIO,
	INSIDE_DIRTY,
	INSIDE_PAGE,
	INSIDE_EXIT,
	INSIDE_FREE,
	INSIDE_SEND,
	INSIDE_RECEIVE,
	INSIDE_SPACE,
	INSIDE_STATE,
};
struct {
	__u32 program[16]; /* a cache line a CPU */
} inside[BUSY_CPUS];

static __always_inline void say_inside(u32 cpu, enum understudied program, bool now)
{
	if (cpu < BUSY_CPUS)
		inside[cpu].program[program] = now;
}

#define KEEP_CPU(name, call)                                                                       \
	do {                                                                                       \
		u32 on = 0;                                                                        \
                                                                                                   \
		if (cfg_keep_cpu) {                                                                \
			on = bpf_get_smp_processor_id();                                           \
			say_inside(on, name, true);                                                \
			bpf_preempt_disable();                                                     \
		}                                                                                  \
		call;                                                                              \
		if (cfg_keep_cpu) {                                                                \
			bpf_preempt_enable();                                                      \
			say_inside(on, name, false);                                               \
		}                                                                                  \
	} while (0)

__u64 stood_in; /* events that understudies took */

/* What an understudy does: CALL, if the program skipped this event. */
#define IF_SKIPPED(name, call)                                                                     \
	do {                                                                                       \
		u32 on = bpf_get_smp_processor_id();                                               \
                                                                                                   \
		if (cfg_keep_cpu && on < BUSY_CPUS && inside[on].program[name]) {                  \
			bpf_preempt_disable();                                                     \
			__sync_fetch_and_add(&stood_in, 1);                                        \
			call;                                                                      \
			bpf_preempt_enable();                                                      \
		}                                                                                  \
	} while (0)

/* Shared with user space through the mapped .bss. */
__u64 began_ns; /* CLOCK_BOOTTIME */
__u32 epoch;
__u32 now_s; /* a clock that user space sets once a reading */
__u32 sweep_mode;
__u32 reader_tid;
__u32 runnable;
__u32 accounting;
__u32 moves; /* moves of any task between cgroups */
/*
 * Set after something was put into the pair of an even or odd epoch, or added to `job_disks`: user
 * space reads these tables only then, because to find them empty costs as much as to read them.
 */
__u32 epoch_filled[2];
__u32 job_disks_added;
__u64 drops[DROPS];
__u64 lost[COUNTERS]; /* a struct counters: what did not fit into a full `jobs` */
struct {
	__u64 count;
	__u64 pad[7];
} busy[BUSY_CPUS];

static __always_inline void count_drop(u32 cause)
{
	if (cause < DROPS)
		__sync_fetch_and_add(&drops[cause], 1);
}

static __always_inline u32 fold_begin(void)
{
	u32 cpu = bpf_get_smp_processor_id() & (BUSY_CPUS - 1);

	__sync_fetch_and_add(&busy[cpu].count, 1);
	return cpu;
}

static __always_inline void fold_end(u32 cpu)
{
	__sync_fetch_and_add(&busy[cpu & (BUSY_CPUS - 1)].count, -1);
}

static __always_inline u64 cgroup_id(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

/* For tasks other than the current one. */
static __always_inline bool in_scope(struct task_struct *task)
{
	struct cgroup *cgroup;

	if (!cfg_scope_cgid)
		return true;
	cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	if (BPF_CORE_READ(cgroup, level) < (int)cfg_scope_level)
		return false;
	return ancestor_id(cgroup, cfg_scope_level) == cfg_scope_cgid;
}

static __always_inline void process_of(struct task_struct *task, struct process_key *key)
{
	key->tgid = task->tgid;
	key->part = LATE_COUNTED;
	if (task->pid == task->tgid)
		key->start = task->start_boottime;
	else
		key->start = BPF_CORE_READ(task, group_leader, start_boottime);
}

static __always_inline struct thread_state *thread_find(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, 0, 0);
}

/* Not static: the verifier then checks it once, not at every call. */
__noinline int counters_add(struct counters *into, struct counters *from)
{
	u64 *to = (u64 *)into;
	const u64 *what = (const u64 *)from;

	if (!into || !from)
		return 0;
#pragma unroll /* most are 0, and a test is cheaper than an atomic addition */
	for (u32 i = 0; i < COUNTERS; i++)
		if (what[i])
			__sync_fetch_and_add(&to[i], what[i]);
	return 0;
}

/* The initial value of elements. It is static because older verifiers do not allow it on the
 * stack. */
static const volatile struct late_value nothing_late = {};

/* Read once, because user space may change it at any time. */
static __always_inline bool epoch_is_odd(void)
{
	return *(volatile u32 *)&epoch & 1;
}

/* Returns the job's counters, new ones if necessary, or `lost` if there is no room. */
static __always_inline struct counters *job_get(u64 cgid)
{
	bool odd = epoch_is_odd();
	void *map = odd ? (void *)&jobs_odd : (void *)&jobs_even;
	struct counters *job = bpf_map_lookup_elem(map, &cgid);

	if (!job) {
		bpf_map_update_elem(map, &cgid, (const void *)&nothing_late.counters, BPF_NOEXIST);
		job = bpf_map_lookup_elem(map, &cgid);
		epoch_filled[odd] = 1;
	}
	if (job)
		return job;
	count_drop(DROP_JOBS);
	return (struct counters *)lost;
}

static __always_inline void job_add(u64 cgid, struct counters *what)
{
	counters_add(job_get(cgid), what);
}

static __noinline int job_disk_add(u64 cgid, u32 device, u64 operations, u64 bytes, u64 metadata)
{
	struct job_disk_key key = {.cgid = cgid, .device = device};
	struct job_disk_value fresh = {operations, bytes, metadata}, *value;

	value = bpf_map_lookup_elem(&job_disks, &key);
	if (!value) {
		if (!bpf_map_update_elem(&job_disks, &key, &fresh, BPF_NOEXIST)) {
			job_disks_added = 1;
			return 0;
		}
		value = bpf_map_lookup_elem(&job_disks, &key);
	}
	if (!value) {
		count_drop(DROP_JOB_DISKS);
		return 0;
	}
	__sync_fetch_and_add(&value->operations, operations);
	__sync_fetch_and_add(&value->bytes, bytes);
	__sync_fetch_and_add(&value->metadata_bytes, metadata);
	if (!job_disks_added)
		job_disks_added = 1;
	return 0;
}

static __always_inline void job_disk_flush(struct thread_state *state)
{
	if (state->on_disk.bytes)
		job_disk_add(state->cgid, state->disk_device, state->on_disk.operations,
			     state->on_disk.bytes, 0);
	state->on_disk.operations = state->on_disk.bytes = 0;
}

/* The thread itself calls this. It updates the hash for every eighth bio and after each reading. */
static __always_inline void job_disk_note(struct thread_state *state, u32 device, u64 operations,
					  u64 bytes)
{
	if (state->disk_device != device || state->disk_epoch != epoch ||
	    state->on_disk.operations >= 8) {
		job_disk_flush(state);
		state->disk_device = device;
		state->disk_epoch = epoch;
	}
	state->on_disk.operations += operations;
	state->on_disk.bytes += bytes;
}

static __always_inline void late_identify(struct late_value *value, struct task_struct *task)
{
	value->cgid = cgroup_id(task);
	value->uid = BPF_CORE_READ(task, cred, uid.val);
	bpf_probe_read_kernel(value->comm, sizeof(value->comm), task->comm);
	value->exited = 1;
}

/* Returns the process's late value, a new one if necessary; NULL: no room. */
static __always_inline struct late_value *late_find(const struct process_key *key)
{
	bool odd = epoch_is_odd();
	void *map = odd ? (void *)&late_odd : (void *)&late_even;
	struct late_value *value = bpf_map_lookup_elem(map, key);

	if (!value) {
		bpf_map_update_elem(map, key, (const void *)&nothing_late, BPF_NOEXIST);
		value = bpf_map_lookup_elem(map, key);
		epoch_filled[odd] = 1;
	}
	return value;
}

/* Does the same and counts a drop if there is no room. */
static __always_inline struct late_value *late_get(const struct process_key *key)
{
	struct late_value *value = late_find(key);

	if (!value)
		count_drop(DROP_LATE);
	return value;
}

/*
 * Moves a thread's complete counters to its job and process. Call it between fold_begin and
 * fold_end. Not static: the verifier then checks it once, not for each path to it.
 */
__noinline int fold_counters(struct thread_state *state)
{
	struct process_key process; /* before 6.2 a map key must not be memory of an argument */
	struct late_value *late;

	if (!state)
		return 0;
	process = state->process;
	job_add(state->cgid, &state->counters);
	late = late_get(&process);
	if (late)
		counters_add(&late->counters, &state->counters);
	__builtin_memset(&state->counters, 0, sizeof(state->counters));
	return 0;
}

/*
 * Notes that a process is over; LEADER is its leader. The epoch may have changed since
 * fold_counters, which counted the drop if there is no room.
 */
static __always_inline void late_end(const struct process_key *key, struct task_struct *leader)
{
	struct late_value *value = late_find(key);

	if (value)
		late_identify(value, leader);
}

/* Puts what the kernel accounted to TASK since the last fold into OUT. */
static __always_inline void unfolded_accounting(struct task_struct *task,
						const struct thread_state *state,
						struct counters *out)
{
	struct taskio now = {}; /* older verifiers need the initialisation */

	taskio_read(task, &state->block, &now);
	out->dirtied_bytes = now.dirtied - state->io_base.dirtied;
	out->cancelled_bytes = now.cancelled - state->io_base.cancelled;
	out->netfs_read_bytes = above(now.netfs_read, state->io_base.netfs_read);
	out->netfs_write_bytes = above(now.netfs_write, state->io_base.netfs_write);
	out->run_wait_ns = now.run_wait - state->io_base.run_wait;
	out->io_wait_ns = now.io_wait - state->io_base.io_wait;
}

/*
 * Completes TASK's counters with all it did since the last fold. It changes them in place
 * because older verifiers do not allow a copy on the stack.
 */
static __always_inline void complete(struct task_struct *task, struct thread_state *state)
{
	struct counters *out = &state->counters;

	out->cpu_ns = task->se.sum_exec_runtime - state->cpu_base;
	out->minor_faults = task->min_flt - state->minor_base;
	out->major_faults = task->maj_flt - state->major_base;
	unfolded_accounting(task, state, out);
}

static __always_inline void set_bases(struct task_struct *task, struct thread_state *state)
{
	state->cpu_base = task->se.sum_exec_runtime;
	state->minor_base = task->min_flt;
	state->major_base = task->maj_flt;
	taskio_rebase(task, &state->block, &state->io_base);
	state->netfs_read_shown = state->netfs_write_shown = 0;
}

#include "talks.bpf.h"

/*
 * Moves TASK's counters to its job and process. ENDED is the leader if the process ends with
 * this thread, else NULL.
 */
static __noinline int fold_thread(struct task_struct *task, struct thread_state *state,
				  struct task_struct *ended)
{
	u32 cpu;

	if (!task || !state)
		return 0;
	complete(task, state);
	talk_take(state);
	job_disk_flush(state);
	cpu = fold_begin();
	/* Do all this before fold_end, so that a sweep after the emptying counts nothing twice. */
	fold_counters(state);
	if (ended)
		late_end(&state->process, ended);
	set_bases(task, state);
	fold_end(cpu);
	return 0;
}

/* Returns TASK's storage, a new one if necessary, which counts for its present cgroup CGID. */
static __always_inline struct thread_state *thread_get(struct task_struct *task, u64 cgid)
{
	struct thread_state *state = thread_find(task);

	if (state) {
		if (state->cgid != cgid) {
			fold_thread(task, state, 0);
			state->cgid = cgid;
		}
		return state;
	}
	state = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		count_drop(DROP_TASK_STORAGE);
		return 0;
	}
	process_of(task, &state->process);
	state->cgid = cgid;
	if (task->start_boottime < began_ns)
		set_bases(task, state);
	return state;
}

/*
 * The rare half of thread_current, verified once: each step from one trusted pointer to the next
 * makes newer verifiers search all of BTF (about 1 ms).
 */
__noinline int thread_renew(void)
{
	thread_get(bpf_get_current_task_btf(), bpf_get_current_cgroup_id());
	return 0;
}

/* Reading the task's cgroup costs as much as all the rest, so we do it only after some task
 * moved. */
static __always_inline struct thread_state *thread_current(struct task_struct *task)
{
	struct thread_state *state = thread_find(task);
	u32 now = moves + 1;

	if (state && state->looked == now)
		return state;
	if (!state || state->cgid != bpf_get_current_cgroup_id()) {
		thread_renew();
		state = thread_find(task);
	}
	if (state)
		state->looked = now;
	return state;
}

/*
 * The rare part of talk_current: the thread looked at its cgroup anew, or has no slot yet. Its
 * number changes if it executes a program while it is not the leader. Not static: verified once.
 */
__noinline int talk_renew(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state = thread_find(task);
	struct talk_slot *slot;
	bool gang;
	u64 cgid;

	if (!state)
		return 0;
	if (state->talk_slot && state->talk_pid != (u32)task->pid)
		talk_leave(state);
	if (!state->talk_slot && !(task->flags & PF_EXITING))
		talk_enter(task, state);
	state->talk.cgid = cgid = state->cgid;
	state->talk.looked = state->looked;
	gang = gangs_known && bpf_map_lookup_elem(&gangs, &cgid);
	state->talk.gang = gang;
	slot = talk_slot_at(state);
	if (!slot)
		return 0;
	slot->start = task->start_boottime;
	slot->talk.cgid = state->cgid;
	slot->talk.looked = state->looked;
	slot->talk.gang = gang;
	return 0;
}

/* Returns where TASK, the current task, counts what it does by TCP. */
static __always_inline struct talk *talk_current(struct task_struct *task)
{
	struct thread_state *state = thread_current(task);
	struct talk_slot *slot;

	if (!state)
		return 0;
	if (state->talk.looked != state->looked)
		talk_renew();
	slot = talk_slot_at(state);
	return slot ? &slot->talk : &state->talk;
}

static __always_inline bool current_in_scope(void)
{
	return !cfg_scope_cgid ||
	       bpf_get_current_ancestor_cgroup_id(cfg_scope_level) == cfg_scope_cgid;
}

#endif
