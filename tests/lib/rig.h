/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A rig for tests that need root: a real block device (loop over a file) with ext4, two network
 * namespaces joined by a veth, and a cgroup2 directory. A guard process removes everything when
 * the test ends, however it ends.
 */
#ifndef IOCOM_TESTS_RIG_H
#define IOCOM_TESTS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rig {
	char name[32]; /* "iocom-rig-PID": name for a mapped disk, if a test makes one */
	int md;	       /* number for an array, if a test makes one */
	char dir[64];  /* holds the image; `mnt` below it is the file system */
	char mount[80];
	char disk[32];	  /* "loop3" */
	char cgroup[128]; /* absolute path of a new cgroup2 directory */
	char limits[128]; /* path for a cgroup with I/O limits, not made yet; "": no limits */
	char netns[2][32];
	char address[2][16];
	int guard_fd;
	pid_t guard;
	char why[256]; /* the reason when rig_up failed */
};

/* Returns 0, or -1 with `why` if the machine lacks something (root, a loop device). */
int rig_up(struct rig *rig, unsigned megabytes);
void rig_down(struct rig *rig);

/* Runs BODY(ARGUMENT) in a child, which exits 0 when BODY returns 0. */
pid_t rig_start(int (*body)(void *argument), void *argument);
/* Waits. Returns the exit status, or -1 if the process was killed. */
int rig_wait(pid_t pid);
/* Runs a shell command quietly. Returns its status. */
__attribute__((format(printf, 1, 2))) int rig_shell(const char *format, ...);
/* Moves process PID (0: this one) into the cgroup2 directory PATH. */
int rig_enter_cgroup(const char *path, pid_t pid);
/*
 * Limits what the tasks of `limits` read from (or write to) the rig's disk. Returns 0, or not 0
 * if the machine has no such limits.
 */
int rig_limit(const struct rig *rig, bool write, unsigned long bytes_per_s);
/* Moves this thread into the network namespace. Returns 0 or -1. */
int rig_enter_netns(const char *name);
/*
 * Drops the page cache, and again until no page of a file on the rig's disk is left: a folio that
 * anybody looks at in that moment stays, and what is read of it later is not read from the disk.
 * Gives up after half a second and says which file stays.
 */
void rig_drop_caches(const struct rig *rig);

#endif
