/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel side of the monitor: tracepoints through BTF only.
 *
 *   state.bpf.h   maps, knobs, folding        block.bpf.h   block I/O, page faults
 *   ledger.bpf.h  who dirtied which file      net.bpf.h     TCP
 *   tasks.bpf.h   sweep, exit, cgroup moves   taskio.bpf.h  what the kernel accounts to tasks
 *   compat.bpf.h  kernel differences
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "records.h"
#include "compat.bpf.h"
#include "state.bpf.h"
#include "ledger.bpf.h"
#include "block.bpf.h"
#include "net.bpf.h"
#include "tasks.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
