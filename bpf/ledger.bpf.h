/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The ledger: who dirtied which file, so that writeback is charged to the writer
 * and not to the kernel thread that happens to submit it.
 *
 * writeback_dirty_folio fires once for each clean -> dirty transition: the folio's
 * size goes to the writer's account in the inode's entry.  A bio of B bytes then
 * takes B * dirty_i / (sum of dirty) from each of up to LEDGER_WRITERS accounts.
 * An entry goes when nothing is dirty any more: at the bio that empties it, or when
 * the flusher leaves the inode clean (folios larger than what was written of them
 * leave a rest), or by user space after a minute without dirtying (files that were
 * deleted before writeback).
 *
 * Known race: two processes that dirty one file for the first time at the same
 * instant (only possible through mappings) may claim one slot; one loses a folio.
 */
#ifndef IOCOM_LEDGER_BPF_H
#define IOCOM_LEDGER_BPF_H

#define S_IFMT	0170000
#define S_IFBLK 0060000

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, struct ledger_key);
	__type(value, struct ledger_value);
} ledger SEC(".maps");

/* INODE is a block device's and a file system lives there: metadata. */
static __always_inline bool is_metadata(struct inode *inode, umode_t mode)
{
	struct bdev_inode *both;

	if ((mode & S_IFMT) != S_IFBLK)
		return false;
	both = (void *)inode - bpf_core_field_offset(((struct bdev_inode *)0)->vfs_inode);
	return holds_filesystem(&both->bdev);
}

static __always_inline void ledger_key_of(struct inode *inode, struct ledger_key *key)
{
	key->inode = (u64)inode;
	key->number = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->device = BPF_CORE_READ(inode, i_sb, s_dev);
}

/* A task dirtied BYTES that the block layer will see: the kernel accounts them to it, too. */
static __always_inline void note_on_disk(struct thread_state *state, u64 bytes)
{
	if (state)
		state->block.write_bytes += bytes;
}

static __always_inline void writer_of(struct task_struct *task, struct writer *writer, bool on_disk)
{
	struct thread_state *state;

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
	writer->class = in_user_fault((struct pt_regs *)bpf_task_pt_regs(task)) ? WRITER_IMPLICIT
										: WRITER_EXPLICIT;
}

static __always_inline bool same_writer(const struct writer *a, const struct writer *b)
{
	return a->process.start == b->process.start && a->process.tgid == b->process.tgid &&
	       a->class == b->class && a->cgid == b->cgid;
}

static __always_inline void ledger_account(struct ledger_value *entry, const struct writer *writer)
{
	struct writer *w;
	u32 i;

	entry->touched_s = now_s;
#pragma unroll
	for (i = 0; i < LEDGER_WRITERS; i++) {
		w = &entry->writers[i];
		if (same_writer(w, writer)) {
			__sync_fetch_and_add(&w->dirty_bytes, writer->dirty_bytes);
			entry->last = i;
			return;
		}
	}
#pragma unroll
	for (i = 0; i < LEDGER_WRITERS; i++) {
		w = &entry->writers[i];
		if (w->class == WRITER_NONE || w->dirty_bytes <= 0) {
			*w = *writer;
			entry->last = i;
			return;
		}
	}
	/* A fifth writer: the last one carries it. */
	__sync_fetch_and_add(&entry->writers[LEDGER_WRITERS - 1].dirty_bytes, writer->dirty_bytes);
	count_drop(DROP_COWRITERS);
}

static __always_inline int ledger_dirty(struct inode *inode, u64 bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ledger_value *entry, fresh = {};
	struct ledger_key key;
	struct writer writer = {.dirty_bytes = bytes};
	bool is_block_device;

	if (!inode)
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
	writer_of(task, &writer, is_on_disk(inode, is_block_device));
	entry = bpf_map_lookup_elem(&ledger, &key);
	if (!entry) {
		fresh.writers[0] = writer;
		fresh.touched_s = now_s;
		if (!bpf_map_update_elem(&ledger, &key, &fresh, BPF_NOEXIST))
			return 0;
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

static __always_inline void charge_counters(struct counters *to, u32 class, u64 bytes, u64 ops)
{
	if (class == WRITER_EXPLICIT) {
		__sync_fetch_and_add(&to->explicit_write_bytes, bytes);
		__sync_fetch_and_add(&to->explicit_ops, ops);
	} else {
		__sync_fetch_and_add(&to->implicit_bytes, bytes);
		__sync_fetch_and_add(&to->implicit_ops, ops);
	}
}

/* Charges BYTES of writeback (one bio, when OPS) to WRITER. */
__noinline int charge_writer(struct writer *writer, u64 bytes, u64 ops, struct disk_value *disk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;
	struct late_value *late;
	struct counters *job;
	u32 cpu;

	if (!writer)
		return 0;
	if (writer->class != WRITER_EXPLICIT && writer->class != WRITER_IMPLICIT) {
		if (!disk)
			return 0;
		if (writer->class == WRITER_STACKED)
			__sync_fetch_and_add(&disk->stacked_bytes, bytes);
		else if (writer->class == WRITER_FOREIGN)
			__sync_fetch_and_add(&disk->foreign_bytes, bytes);
		else
			__sync_fetch_and_add(&disk->other_bytes, bytes);
		return 0;
	}
	if (disk)
		__sync_fetch_and_add(&disk->task_bytes, bytes);
	if (task->tgid == (pid_t)writer->process.tgid) {
		/* It writes back its own pages (fsync, O_SYNC). */
		state = thread_find(task);
		if (state && state->process.start == writer->process.start &&
		    state->cgid == writer->cgid) {
			charge_counters(&state->counters, writer->class, bytes, ops);
			if (disk)
				job_disk_note(state, disk->device, ops, bytes);
			return 0;
		}
	}
	if (disk)
		job_disk_add(writer->cgid, disk->device, ops, bytes);
	cpu = fold_begin();
	job = job_get(writer->cgid);
	if (job)
		charge_counters(job, writer->class, bytes, ops);
	late = late_get(&writer->process);
	if (late)
		charge_counters(&late->counters, writer->class, bytes, ops);
	fold_end(cpu);
	return 0;
}

struct charge {
	struct ledger_key key;
	u64 bytes;
};

/* Charges a bio of INODE's pages.  False: nobody known to have dirtied it. */
__noinline int ledger_charge(struct charge *charge, struct disk_value *disk)
{
	struct ledger_value *entry;
	u64 bytes, rest;
	s64 total;
	u32 last;

	if (!charge)
		return 0;
	entry = bpf_map_lookup_elem(&ledger, &charge->key);
	if (!entry)
		return 0;
	bytes = rest = charge->bytes;
	total = ledger_total(entry);
	last = entry->last & (LEDGER_WRITERS - 1);
	for (u32 i = 0; i < LEDGER_WRITERS; i++) {
		struct writer *w = &entry->writers[i];
		u64 part;

		if (total <= 0 || i == last || w->dirty_bytes <= 0)
			continue;
		part = bytes * (u64)w->dirty_bytes / (u64)total;
		if (part > rest)
			part = rest;
		if (!part)
			continue;
		charge_writer(w, part, 0, disk);
		__sync_fetch_and_add(&w->dirty_bytes, -(s64)part);
		rest -= part;
	}
	charge_writer(&entry->writers[last], rest, 1, disk);
	__sync_fetch_and_add(&entry->writers[last].dirty_bytes, -(s64)rest);
	if (ledger_total(entry) <= 0)
		bpf_map_delete_elem(&ledger, &charge->key);
	return 1;
}

#endif
