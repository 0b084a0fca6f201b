/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The ledger records which task dirtied which file, so that writeback is charged to the writer
 * and not to the kernel thread that submits it.
 *
 * writeback_dirty_folio fires once for each clean -> dirty transition. The folio's size is added
 * to the writer's account in the inode's entry, and the account's range of pages grows. A
 * writeback bio is split among up to LEDGER_WRITERS accounts, by how much of it lies in each
 * account's range and how densely that range was dirtied. This is exact for writers of different
 * parts of a file.
 *
 * An entry is removed when nothing is dirty any more: by the bio that empties it; when the
 * flusher leaves the inode clean (folios larger than what was written of them leave a rest); at
 * the first dirty page of a clean inode; or by user space after a minute without dirtying. The
 * last covers files deleted before writeback, and files on disks with limits, whose bios may
 * come after the flusher has left.
 *
 * Known race: two processes that dirty one file for the first time at the same instant (possible
 * only through mappings) may claim one slot; one of them loses a folio.
 */
#ifndef IOCOM_LEDGER_BPF_H
#define IOCOM_LEDGER_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct ledger_key);
	__type(value, struct ledger_value);
} ledger SEC(".maps");

static __always_inline void ledger_key_of(struct inode *inode, struct ledger_key *key)
{
	key->inode = (u64)inode;
	key->number = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->device = BPF_CORE_READ(inode, i_sb, s_dev);
}

/*
 * Notes BYTES that a task dirtied and the block layer will see: the kernel accounts them to the
 * task, too.
 */
static __always_inline void note_on_disk(struct thread_state *state, u64 bytes)
{
	if (state)
		state->block.write_bytes += bytes;
}

/*
 * Fills WRITER with the current task, as implicit if it serves a fault on MAPPING. FRAMES: a
 * fault inside the kernel counts while its frame is on the stack. A dirtied page must not use
 * this, because it may find an old frame that is not yet overwritten. ON_DISK: the block layer
 * will write what WRITER dirtied.
 */
static __always_inline void writer_of(struct task_struct *task, u64 mapping, bool frames,
				      bool on_disk, struct writer *writer)
{
	struct thread_state *state;
	struct pt_regs *regs;

	if (task->flags & PF_KTHREAD) {
		writer->class = task->flags & PF_LOCAL_THROTTLE ? WRITER_STACKED : WRITER_KERNEL;
		return;
	}
	if (!current_in_scope()) {
		writer->class = WRITER_FOREIGN;
		return;
	}
	state = thread_current(task);
	writer->class = WRITER_KERNEL;
	if (!state)
		return;
	if (on_disk)
		note_on_disk(state, writer->dirty_bytes);
	writer->process = state->process;
	writer->cgid = state->cgid;
	writer->class = WRITER_EXPLICIT;
	if (cfg_ablate & ABLATE_FAULTS)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if ((frames ? in_exception(regs, state) : in_user_fault(regs)) ||
	    (mapping && faulted_mapping(regs, state) == mapping))
		writer->class = WRITER_IMPLICIT;
}

__noinline int same_writer(const struct writer *a, const struct writer *b)
{
	if (!a || !b)
		return 0;
	return a->process.start == b->process.start && a->process.tgid == b->process.tgid &&
	       a->class == b->class && a->cgid == b->cgid;
}

static __always_inline void writer_extend(struct writer *w, const struct writer *more)
{
	__sync_fetch_and_add(&w->dirty_bytes, more->dirty_bytes);
	if (more->from < w->from)
		w->from = more->from;
	if (more->to > w->to)
		w->to = more->to;
}

/*
 * Another writer dirties a page in the middle of W's dense range. So the page was clean: W's
 * pages from there on were truncated or written.
 */
__noinline int writer_clip(struct writer *w, u64 index)
{
	if (!w)
		return 0;
	if (index < w->from || index >= w->to ||
	    w->dirty_bytes < (s64)((w->to - w->from) * PAGE_BYTES))
		return 0;
	w->to = index;
	w->dirty_bytes = (s64)((index - w->from) * PAGE_BYTES);
	return 0;
}

/* Not static: the verifier then checks it once, not for each path to it. */
__noinline int ledger_account(struct ledger_value *entry, const struct writer *writer)
{
	u32 i, mine = LEDGER_WRITERS, unused = LEDGER_WRITERS;
	struct writer *w;

	if (!entry || !writer)
		return 0;
	entry->touched_s = now_s;
#pragma unroll
	for (i = 0; i < LEDGER_WRITERS; i++) {
		w = &entry->writers[i];
		if (w->class == WRITER_NONE) {
			unused = unused < LEDGER_WRITERS ? unused : i;
			continue;
		}
		if (mine == LEDGER_WRITERS && same_writer(w, writer)) {
			mine = i;
			continue;
		}
		writer_clip(w, writer->from);
		if (w->dirty_bytes <= 0 && unused == LEDGER_WRITERS)
			unused = i;
	}
	if (mine < LEDGER_WRITERS) {
		w = &entry->writers[mine];
		if (w->dirty_bytes > 0) {
			writer_extend(w, writer);
		} else {
			*w = *writer;
		}
		entry->last = mine;
	} else if (unused < LEDGER_WRITERS) {
		entry->writers[unused] = *writer;
		entry->last = unused;
	} else {
		/* A fifth writer has no slot, so its page counts for the fourth. */
		writer_extend(&entry->writers[LEDGER_WRITERS - 1], writer);
		count_drop(DROP_COWRITERS);
	}
	return 0;
}

/* Returns true if no page is dirty and no bio of the file is held back. */
static __always_inline bool all_written(struct inode *inode)
{
	return !inode_has_dirty_pages(inode) && !file_may_hold_back(inode);
}

/*
 * The initial value of entries. It is static because older verifiers do not allow it on the
 * stack.
 */
static const volatile struct ledger_value nobody = {};

static __always_inline int ledger_dirty(struct inode *inode, u64 mapping, u64 index, u64 bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ledger_value *entry;
	struct ledger_key key;
	struct writer writer = {.dirty_bytes = bytes};
	bool is_block_device;

	if (!inode || (cfg_ablate & ABLATE_LEDGER))
		return 0;
	is_block_device = (inode->i_mode & S_IFMT) == S_IFBLK;
	if (is_metadata(inode, inode->i_mode)) {
		if (!(task->flags & PF_KTHREAD) && current_in_scope())
			note_on_disk(thread_current(task), bytes);
		return 0;
	}
	key.inode = (u64)inode;
	key.number = inode->i_ino;
	key.generation = inode->i_generation;
	key.device = inode->i_sb->s_dev;
	writer_of(task, mapping, false, is_on_disk(inode, is_block_device), &writer);
	writer.from = index;
	writer.to = index + bytes / PAGE_BYTES;
	entry = bpf_map_lookup_elem(&ledger, &key);
	/*
	 * This is the first dirty page, so an existing entry is stale, perhaps of another file
	 * at the same address.
	 */
	if (entry && all_written(inode)) {
		bpf_map_delete_elem(&ledger, &key);
		entry = 0;
	}
	if (!entry) {
		bpf_map_update_elem(&ledger, &key, (const void *)&nobody, BPF_NOEXIST);
		entry = bpf_map_lookup_elem(&ledger, &key);
	}
	if (entry)
		ledger_account(entry, &writer);
	else
		count_drop(DROP_LEDGER);
	return 0;
}

static __always_inline s64 ledger_total(const struct ledger_value *entry)
{
	s64 total = 0;

#pragma unroll
	for (u32 i = 0; i < LEDGER_WRITERS; i++)
		if (entry->writers[i].dirty_bytes > 0)
			total += entry->writers[i].dirty_bytes;
	return total;
}

static __always_inline void charge_counters(struct counters *to, u32 class, u64 bytes, u64 ops,
					    bool read)
{
	if (class != WRITER_EXPLICIT) {
		__sync_fetch_and_add(&to->implicit_bytes, bytes);
		__sync_fetch_and_add(&to->implicit_ops, ops);
		return;
	}
	if (read)
		__sync_fetch_and_add(&to->explicit_read_bytes, bytes);
	else
		__sync_fetch_and_add(&to->explicit_write_bytes, bytes);
	__sync_fetch_and_add(&to->explicit_ops, ops);
}

/*
 * Corrects for a bio that was held back: the kernel accounted its bytes to the task before we
 * saw it, so they count as network file system bytes. User space adds both up.
 */
static __always_inline void take_back_netfs(struct counters *from, u64 bytes, bool read)
{
	__sync_fetch_and_add(read ? &from->netfs_read_bytes : &from->netfs_write_bytes, -bytes);
}

/* Charges WRITER for BYTES written or read. OPS counts the bio. */
__noinline int charge_writer(struct writer *writer, u64 bytes, u64 ops, bool read,
			     struct disk_value *disk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process_key process; /* before 6.2 a map key must not be memory of an argument */
	struct thread_state *state;
	struct late_value *late;
	struct counters *job;
	u32 cpu;

	if (!writer)
		return 0;
	if (writer->class != WRITER_EXPLICIT && writer->class != WRITER_IMPLICIT) {
		if (writer->class == WRITER_STACKED)
			disk_add_stacked(disk, bytes);
		else if (writer->class == WRITER_FOREIGN)
			DISK_ADD(disk, foreign_bytes, bytes);
		else
			DISK_ADD(disk, other_bytes, bytes);
		return 0;
	}
	DISK_ADD(disk, task_bytes, bytes);
	if (task->tgid == (pid_t)writer->process.tgid) {
		/* The task writes back its own pages (fsync, O_SYNC). */
		state = thread_find(task);
		if (state && state->process.start == writer->process.start &&
		    state->cgid == writer->cgid) {
			charge_counters(&state->counters, writer->class, bytes, ops, read);
			if (disk)
				job_disk_note(state, disk->device, ops, bytes);
			return 0;
		}
	}
	process = writer->process;
	if (disk)
		job_disk_add(writer->cgid, disk->device, ops, bytes, 0);
	cpu = fold_begin();
	job = job_get(writer->cgid);
	charge_counters(job, writer->class, bytes, ops, read);
	if (writer->held)
		take_back_netfs(job, bytes, read);
	late = late_get(&process);
	if (late)
		charge_counters(&late->counters, writer->class, bytes, ops, read);
	if (late && writer->held)
		take_back_netfs(&late->counters, bytes, read);
	fold_end(cpu);
	return 0;
}

/* A writeback bio of a file: BYTES from page FROM on. */
struct charge {
	struct ledger_key key;
	u64 bytes;
	u64 from;
};

/*
 * Returns how many of the pages [FROM, TO) W dirtied, estimated from its range, times 256. This
 * function and the next are not static: the verifier then checks each once, not for each path
 * through all writers.
 */
__noinline u64 writer_weight(const struct writer *w, u64 from, u64 to)
{
	u64 span, low, high;

	if (!w)
		return 0;
	span = w->to - w->from;
	low = w->from;
	high = w->to;
	if (w->dirty_bytes <= 0 || !span)
		return 0;
	if (low < from)
		low = from;
	if (high > to)
		high = to;
	if (low >= high)
		return 0;
	return (high - low) * ((u64)w->dirty_bytes * 256 / (span * PAGE_BYTES));
}

/* Returns W's weight if no writer dirtied any of a bio's pages. */
__noinline u64 writer_pages(const struct writer *w)
{
	return w && w->dirty_bytes > 0 ? (u64)w->dirty_bytes / PAGE_BYTES : 0;
}

__noinline int writer_written(struct writer *w, u64 from, u64 to, u64 bytes)
{
	if (!w)
		return 0;
	__sync_fetch_and_add(&w->dirty_bytes, -(s64)bytes);
	/* Writeback goes from front to back, so the rest of the range remains. */
	if (from <= w->from && to > w->from)
		w->from = to < w->to ? to : w->to;
	return 0;
}

/* Charges the writers for a bio of a file's pages. Returns false if none is known. */
__noinline int ledger_charge(struct charge *charge, struct disk_value *disk)
{
	u64 weight[LEDGER_WRITERS], total = 0, bytes, rest, to;
	struct ledger_value *entry;
	struct ledger_key key; /* before 6.2 a map key must not be memory of an argument */
	u32 best;

	if (!charge)
		return 0;
	key = charge->key;
	entry = bpf_map_lookup_elem(&ledger, &key);
	if (!entry)
		return 0;
	bytes = rest = charge->bytes;
	to = charge->from + (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	best = entry->last & (LEDGER_WRITERS - 1);
#pragma unroll
	for (u32 i = 0; i < LEDGER_WRITERS; i++)
		total += weight[i] = writer_weight(&entry->writers[i], charge->from, to);
	if (!total)
#pragma unroll
		for (u32 i = 0; i < LEDGER_WRITERS; i++)
			total += weight[i] = writer_pages(&entry->writers[i]);
#pragma unroll
	for (u32 i = 0; i < LEDGER_WRITERS; i++)
		if (weight[i] > weight[best & (LEDGER_WRITERS - 1)])
			best = i;
	for (u32 i = 0; i < LEDGER_WRITERS; i++) {
		struct writer *w = &entry->writers[i];
		u64 part;

		if (!total || i == best || !weight[i])
			continue;
		part = bytes * weight[i] / total;
		if (part > rest)
			part = rest;
		if (!part)
			continue;
		charge_writer(w, part, 0, false, disk);
		writer_written(w, charge->from, to, part);
		rest -= part;
	}
	best &= LEDGER_WRITERS - 1;
	charge_writer(&entry->writers[best], rest, 1, false, disk);
	writer_written(&entry->writers[best], charge->from, to, rest);
	if (ledger_total(entry) <= 0)
		bpf_map_delete_elem(&ledger, &key);
	return 1;
}

#endif
