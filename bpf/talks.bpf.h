/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Counters of the threads that talk by TCP, without a look-up in task storage (a helper's call, a
 * lock and three lines of the cache).
 *
 *   talks        slots; a thread's slot is its number modulo their number
 *   talk_owners  slot -> number of the thread that took it
 *
 * A slot has one owner at a time. To take it, a thread inserts its owner into the hash, which only
 * one thread can do. It gives the slot back when it ends. A thread that finds its slot taken
 * counts in its storage and tries again at its next look at its cgroup, once a reading. So the
 * table loses nothing. `talks_taken` counts such tries.
 *
 * Only the owner adds to a slot; others take what is there only when the owner is not running
 * (may_fold) or has ended. A number may be reused after an end that we did not see (drop
 * `recursion`; the slot then stays taken), so an owner is recognised by number and start time.
 */
#ifndef IOCOM_TALKS_BPF_H
#define IOCOM_TALKS_BPF_H

#define PF_EXITING 0x4

/* Two lines of the cache; all that a send or receive inside the host needs is in the first. */
struct talk_slot {
	u64 start; /* start time of the owner */
	u32 pid;   /* its number; 0: the slot is free */
	u32 pad;
	struct talk talk;
	u64 apart[7];
};
_Static_assert(sizeof(struct talk_slot) == 128, "lines of the cache");

/* Memory for mapping begins on a page, so that slots begin on lines. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TALKS);
	__type(key, u32);
	__type(value, struct talk_slot);
} talks SEC(".maps");

FOLD_MAP(talk_owners, u32, u32, TALKS);

const volatile __u32 cfg_talks = TALKS; /* a power of 2 */
__u64 talks_taken;

static __always_inline struct talk_slot *talk_slot_of(u32 pid)
{
	u32 index = pid & (cfg_talks - 1);

	return bpf_map_lookup_elem(&talks, &index);
}

static __always_inline struct talk_slot *talk_slot_at(const struct thread_state *state)
{
	u32 index = state->talk_slot - 1;

	return bpf_map_lookup_elem(&talks, &index);
}

/* Each number leaves its old place before it arrives at the new one: a sweep reads them in the
 * other order, so that it counts none twice. */
static __always_inline void talk_move(struct talk *talk, struct counters *to)
{
#define MOVE(field)                                                                                \
	do {                                                                                       \
		u64 value = talk->field;                                                           \
		*(volatile u64 *)&talk->field = 0;                                                 \
		*(volatile u64 *)&to->field += value;                                              \
	} while (0)
	MOVE(sent_bytes);
	MOVE(received_bytes);
	MOVE(sent_messages);
	MOVE(received_messages);
	MOVE(local_bytes);
#undef MOVE
}

/* Moves what the thread did by TCP into its other counters. Not static: verified once. */
__noinline int talk_take(struct thread_state *state)
{
	struct talk_slot *slot;

	if (!state)
		return 0;
	talk_move(&state->talk, &state->counters);
	slot = talk_slot_at(state);
	if (slot)
		talk_move(&slot->talk, &state->counters);
	return 0;
}

/* Gives the thread's slot back. Not static: verified once. */
__noinline int talk_leave(struct thread_state *state)
{
	struct talk_slot *slot;
	u32 index;

	if (!state)
		return 0;
	index = state->talk_slot - 1;
	slot = bpf_map_lookup_elem(&talks, &index);
	if (!slot)
		return 0;
	talk_move(&slot->talk, &state->counters);
	state->talk.arrived = slot->talk.arrived;
	state->talk_slot = 0;
	slot->start = slot->pid = slot->talk.looked = 0;
	bpf_map_delete_elem(&talk_owners, &index);
	return 0;
}

/* Takes the slot of TASK, the current task, if it is free. */
static __always_inline void talk_enter(struct task_struct *task, struct thread_state *state)
{
	u32 pid = task->pid, index = pid & (cfg_talks - 1);
	struct talk_slot *slot = bpf_map_lookup_elem(&talks, &index);

	if (!slot)
		return;
	if (bpf_map_update_elem(&talk_owners, &index, &pid, BPF_NOEXIST)) {
		__sync_fetch_and_add(&talks_taken, 1);
		return;
	}
	__builtin_memset(&slot->talk, 0, sizeof(slot->talk));
	slot->talk.arrived = state->talk.arrived;
	slot->pid = state->talk_pid = pid;
	state->talk_slot = index + 1;
}

/* Adds what the thread did by TCP to a run's counters; the run has the other ones already. */
static __always_inline void talk_show(const struct thread_state *state, struct counters *to)
{
	const struct talk *own = &state->talk;
	struct talk_slot *slot = talk_slot_at(state);
	struct talk now = {};

	asm volatile("" ::: "memory");
	if (slot) {
		__builtin_memcpy(&now, &slot->talk, sizeof(now));
		/* Another thread may have the slot by now: then the owner has folded. */
		if (*(volatile u32 *)&slot->pid != state->talk_pid)
			__builtin_memset(&now, 0, sizeof(now));
	}
	to->sent_bytes += own->sent_bytes + now.sent_bytes;
	to->received_bytes += own->received_bytes + now.received_bytes;
	to->sent_messages += own->sent_messages + now.sent_messages;
	to->received_messages += own->received_messages + now.received_messages;
	to->local_bytes += own->local_bytes + now.local_bytes;
}

static __always_inline u64 talk_bits(const struct talk *talk)
{
	return talk->sent_bytes | talk->received_bytes | talk->sent_messages |
	       talk->received_messages | talk->local_bytes;
}

/* Returns 0 if the thread did nothing by TCP since its last fold. Not static: verified once. */
__noinline int talk_any(const struct thread_state *state)
{
	const struct talk_slot *slot;

	if (!state)
		return 0;
	slot = talk_slot_at(state);
	return (talk_bits(&state->talk) | (slot ? talk_bits(&slot->talk) : 0)) != 0;
}

#endif
