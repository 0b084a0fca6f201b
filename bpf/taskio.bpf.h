/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the kernel itself accounts to a task: pages dirtied, bytes read and written, time waited.
 * A network file system never reaches the block layer, so its bytes are those that only the
 * accounting has:
 *
 *   netfs_read  = ioac.read_bytes  - bios read by the task
 *   netfs_write = ioac.write_bytes - pages dirtied of disk file systems and block
 *                                    devices - direct writes
 *
 * The kernel accounts a read in submit_bio, and a dirtied folio in the function that has the
 * tracepoint, so on disk file systems both are 0 to the byte. A bio that a limit holds back is
 * accounted when submitted, but we see it when it is sent: until then netfs has its bytes, and
 * then we take them back from the job and the process (take_back_netfs). FUSE accounts only what
 * it dirties (mappings, its writeback cache). Fields that the kernel was built without read as
 * 0; `accounting` tells which.
 */
#ifndef IOCOM_TASKIO_BPF_H
#define IOCOM_TASKIO_BPF_H

#define FS_REQUIRES_DEV 1

struct taskio {
	u64 dirtied, cancelled;
	u64 netfs_read, netfs_write;
	u64 run_wait, io_wait;
};

/* The part of it that reached the block layer. */
struct taskio_block {
	u64 read_bytes, write_bytes;
};

static __always_inline u64 above(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static __always_inline bool has_ioac(void)
{
	return bpf_core_field_exists(((struct task_io_accounting *)0)->read_bytes);
}

static __always_inline u64 task_run_wait(struct task_struct *task)
{
	if (bpf_core_field_exists(((struct sched_info *)0)->run_delay))
		return task->sched_info.run_delay;
	return 0;
}

/* The accounting as a task has it; `delays` is an address. */
struct taskio_raw {
	u64 read_bytes, write_bytes, cancelled;
	u64 run_wait, delays;
};

static __always_inline void taskio_raw(struct task_struct *task, struct taskio_raw *raw)
{
	__builtin_memset(raw, 0, sizeof(*raw));
	raw->run_wait = task_run_wait(task);
	if (bpf_core_field_exists(task->delays))
		bpf_core_read(&raw->delays, sizeof(raw->delays), &task->delays);
	if (!has_ioac())
		return;
	raw->read_bytes = task->ioac.read_bytes;
	raw->write_bytes = task->ioac.write_bytes;
	raw->cancelled = task->ioac.cancelled_write_bytes;
}

static __always_inline bool task_on_cpu(struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && task->on_cpu;
}

static __always_inline u32 taskio_kinds(struct task_struct *reader)
{
	u32 kinds = 0;

	if (has_ioac())
		kinds |= ACCOUNTING_IO;
	if (bpf_core_field_exists(((struct sched_info *)0)->run_delay))
		kinds |= ACCOUNTING_RUN_WAIT;
	if (bpf_core_field_exists(reader->delays) && reader->delays)
		kinds |= ACCOUNTING_IO_WAIT;
	return kinds;
}

/* Not static: the verifier then checks it once, not for each path to it. */
__noinline int taskio_of(const struct taskio_raw *raw, const struct taskio_block *block,
			 struct taskio *out)
{
	struct task_delay_info *delays;

	if (!raw || !block || !out)
		return 0;
	delays = (struct task_delay_info *)raw->delays;
	out->run_wait = raw->run_wait;
	out->io_wait = delays ? BPF_CORE_READ(delays, blkio_delay) : 0;
	out->dirtied = raw->write_bytes;
	out->cancelled = raw->cancelled;
	out->netfs_read = above(raw->read_bytes, block->read_bytes);
	out->netfs_write = above(out->dirtied, block->write_bytes);
	return 0;
}

static __always_inline void taskio_read(struct task_struct *task, const struct taskio_block *block,
					struct taskio *out)
{
	struct taskio_raw raw;

	taskio_raw(task, &raw);
	taskio_of(&raw, block, out);
}

/*
 * Moves BASE, up to which all is folded, forward. The two differences may be ahead of the truth;
 * they never go back.
 */
__noinline int taskio_move(struct taskio *base, const struct taskio *now)
{
	u64 netfs_read, netfs_write;

	if (!base || !now)
		return 0;
	netfs_read = base->netfs_read;
	netfs_write = base->netfs_write;
	*base = *now;
	if (base->netfs_read < netfs_read)
		base->netfs_read = netfs_read;
	if (base->netfs_write < netfs_write)
		base->netfs_write = netfs_write;
	return 0;
}

static __always_inline void taskio_rebase(struct task_struct *task,
					  const struct taskio_block *block, struct taskio *base)
{
	struct taskio now = {}; /* older verifiers need the initialisation */

	taskio_read(task, block, &now);
	taskio_move(base, &now);
}

/*
 * Returns true if pages of INODE end in the block layer: a disk file system's, or a block device's.
 */
static __always_inline bool is_on_disk(struct inode *inode, bool is_block_device)
{
	return is_block_device || (BPF_CORE_READ(inode, i_sb, s_type, fs_flags) & FS_REQUIRES_DEV);
}

#endif
