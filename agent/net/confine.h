/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the network part of the agent takes from itself before it reads a byte of a stranger.  Root
 * starts it as root with few descriptors (the log, the gate, listeners); then
 *
 *   confine_early: one thread.  An empty root, namespaces, another user, no capabilities.
 *   ...            the libraries start their threads, the sockets that listen are opened.
 *   confine_late:  all threads.  A filter of system calls, and no new process or thread.
 *
 * Whoever takes over the process after that has what it has anyway: the gate, the network as a
 * user without any privilege (TCP connections to anywhere, also to services of this machine), its
 * own memory, and processor time.  A filter cannot look at what a pointer points to, so where a
 * connection goes is for a firewall, and what comes over the gate is for root to judge.
 */
#ifndef IOCOM_CONFINE_H
#define IOCOM_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "iocom/err.h"

#define CONFINE_E_UNFILTERED 1 /* built with a sanitizer, which the filter would stop */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define CONFINE_SANITIZED 1
#endif
#endif

/* What confine_early could make its own. */
struct confined {
	bool own_root; /* a file system of its own; false: chroot into the empty directory */
	bool own_ipc, own_uts, own_cgroup;
	char said[300]; /* a sentence for the log if something of these is missing, else "" */
};

/*
 * Blocks for no longer than system calls do.  For a process of root with one thread, whose parent
 * stays until this returns.  EMPTY_DIR: an empty directory of root, in directories that only root
 * can change; it becomes the root.  UID and GID are numbers of a user of its own.  Descriptors from
 * 1024 on are closed.
 *
 * Afterwards the process
 *  - sees an empty root that is only read, and has no descriptor of a directory outside it;
 *  - has its own mounts, System V IPC, host name and view of cgroups, as far as the kernel permits;
 *  - is UID and GID without other groups, and has no capabilities, nor can it get any (bounding
 *    and ambient set, securebits, no_new_privs); it does not share its parent's session keyring;
 *  - leaves no core, can be traced by nobody but root, and dies with its parent (the thread that
 *    started it);
 *  - has the time zone UTC and few arenas of malloc: the C library looks for no file of these;
 *  - can make no file longer.  If the log at standard error is a regular file, this limit is not
 *    set, because it would be hit there; there are no other files.
 *
 * Returns 0; -EINVAL: UID or GID is root's, or EMPTY_DIR is not as said above; -EBUSY: there are
 * more threads, or a descriptor of a directory is open; -EPERM: a step is refused, or root could be
 * regained; -ESRCH: the parent is gone; another negative errno of a step.  The process must not go
 * on after an error.
 */
int confine_early(uid_t uid, gid_t gid, const char *empty_dir, struct confined *confined,
		  struct iocom_err *err);

/*
 * Sets the filter over all threads of the process.  From then on it can
 *  - use its descriptors: read, write, accept, poll, receive further ones;
 *  - make TCP sockets (IPv4, IPv6) and connect them, with the few options that are needed;
 *  - get and free memory that is not executable, wait, ask for the time and random bytes;
 *  - abort and exit.
 * Everything else fails with EPERM: to open a file or look at one by its path, execute, fork or
 * start a thread, bind or listen, use other sockets (unix, netlink, datagram, raw), signal or trace
 * a process, change its own limits, ids or settings, load eBPF or another filter, use keys,
 * io_uring, userfaultfd, shared memory, futexes with priorities and whatever new kernels bring.
 * System calls of another architecture kill the process.
 *
 * The kernel's log names what was refused (of the audit's type SECCOMP), which is worth an alarm;
 * not what happens in good order: nng's look-up of a numeric address asks netlink which families
 * the machine has and does without, and paths that are looked at with stat.
 *
 * Returns 0; CONFINE_E_UNFILTERED with a sentence: there is no filter; negative errno: the process
 * must not go on.
 */
int confine_late(struct iocom_err *err);

/* --- parts of it, for a helper process -------------------------------------------------- */

/*
 * Makes this process, which has one thread, UID and GID for good: ids, groups, capabilities,
 * keyring, no_new_privs, not dumpable.  Returns 0 or negative errno, as above.
 */
int confine_become(uid_t uid, gid_t gid, struct iocom_err *err);
/* From now on the process dies with PARENT.  Returns 0 or negative errno; -ESRCH: it is gone. */
int confine_to_parent(pid_t parent, struct iocom_err *err);
/* The limits of confine_early.  Returns 0 or negative errno. */
int confine_limits(struct iocom_err *err);
/* From now on the process can start no process or thread.  Returns 0 or negative errno. */
int confine_alone(struct iocom_err *err);

#endif
