/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel side of the monitor: tracepoints through BTF only.
 *
 *   state.bpf.h   maps, knobs, folding        block.bpf.h    block I/O
 *   talks.bpf.h   threads that use TCP      streams.bpf.h  TCP connections
 *   faults.bpf.h  page faults                 pages.bpf.h    a bio's first page
 *   ledger.bpf.h  who dirtied which file      carried.bpf.h  whose bio a kernel thread sends
 *   tasks.bpf.h   sweep, exit, cgroup moves   taskio.bpf.h   what the kernel accounts to tasks
 *   net.bpf.h     TCP                         remotes.bpf.h  TCP by remote address
 *   walk.bpf.h    the sweep, faster           standin.bpf.h  TCP on older kernels
 *   disks.bpf.h   where a disk's numbers are  compat.bpf.h   kernel differences
 *   journal.bpf.h what file systems write for jobs
 *   pairs.bpf.h   TCP connections of gangs
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "records.h"
#include "compat.bpf.h"
#include "state.bpf.h"
#include "disks.bpf.h"
#include "pages.bpf.h"
#include "faults.bpf.h"
#include "ledger.bpf.h"
#include "carried.bpf.h"
#include "block.bpf.h"
#include "journal.bpf.h"
#include "net.bpf.h"
#include "standin.bpf.h"
#include "tasks.bpf.h"
#include "walk.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
