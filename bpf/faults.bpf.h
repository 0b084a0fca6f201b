/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Page faults: does the current task serve one?
 *
 *   fault taken ...                                  how we know
 *   in user mode                                     the registers saved at entry (compat.bpf.h)
 *   inside the kernel, say in write(2)'s copy        its frame is as page_fault_kernel saw it
 *   without an exception (get_user_pages)            mm_filemap_fault named the mapping in this
 *                                                    system call
 */
#ifndef IOCOM_FAULTS_BPF_H
#define IOCOM_FAULTS_BPF_H

#define FRAME_WORDS 19 /* words of struct pt_regs, from r15 to sp */

/* Not inlined, so that its words are not on the stack of callers that call further. */
static __noinline u64 frame_digest(u64 frame)
{
	u64 words[FRAME_WORDS] = {}, digest = 0;

	bpf_probe_read_kernel(words, sizeof(words), (void *)frame);
#pragma unroll
	for (int i = 0; i < FRAME_WORDS; i++)
		digest = digest * 31 + words[i];
	return digest;
}

/* Identifies a task's current system call: the value stays the same until the call returns. */
static __always_inline u64 call_digest(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (regs->ip * 31 + regs->sp) * 31 + regs->orig_ax * 31 + regs->di * 7 + regs->si;
#else
	return 1;
#endif
}

/* True in a fault that came as an exception. */
static __always_inline bool in_exception(struct pt_regs *regs, struct thread_state *state)
{
	if (in_user_fault(regs))
		return true;
	if (!state->fault_frame)
		return false;
	if (frame_digest(state->fault_frame) == state->fault_digest)
		return true;
	state->fault_frame = 0;
	return false;
}

/* Returns the mapping on which this system call took a fault; 0: none. */
static __always_inline u64 faulted_mapping(struct pt_regs *regs, struct thread_state *state)
{
	if (!state->fault_mapping || call_digest(regs) != state->fault_call)
		return 0;
	return state->fault_mapping;
}

/* A fault on user memory, taken inside the kernel. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(fault_kernel, unsigned long address, struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;

	if ((long)address < 0 || (task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	state = thread_current(task);
	if (!state || (cfg_ablate & ABLATE_FAULTS))
		return 0;
	state->fault_frame = (u64)regs;
	state->fault_digest = frame_digest((u64)regs);
	return 0;
}

/* Kernels since 6.2. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(filemap_fault, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct thread_state *state;

	if (in_user_fault(regs) || (task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	state = thread_current(task);
	if (!state || (cfg_ablate & ABLATE_FAULTS))
		return 0;
	state->fault_mapping = (u64)mapping;
	state->fault_call = call_digest(regs);
	return 0;
}

#endif
