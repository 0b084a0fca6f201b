/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A rig for tests that need root: a real block device (loop over a file) with
 * ext4, two network namespaces joined by a veth, a cgroup2 directory.  A guard
 * process takes everything down when the test ends, however it ends.
 */
#ifndef IOCOM_TESTS_RIG_H
#define IOCOM_TESTS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rig {
	char name[32]; /* "iocom-rig-PID": of a mapped disk, should a test make one */
	int md;	       /* number for an array, should a test make one */
	char dir[64];  /* holds the image, `mnt` below it is the file system */
	char mount[80];
	char disk[32];	  /* "loop3" */
	char cgroup[128]; /* absolute path of a fresh cgroup2 directory */
	char limits[128]; /* a cgroup's path for I/O limits, not made yet; "": the machine has none
			   */
	char netns[2][32];
	char address[2][16];
	int guard_fd;
	pid_t guard;
	char why[256]; /* when rig_up failed */
};

/* 0, or -1 with `why`: the machine lacks something (not root, no loop device). */
int rig_up(struct rig *rig, unsigned megabytes);
void rig_down(struct rig *rig);

/* Runs BODY(ARGUMENT) in a child, which exits 0 when BODY returns 0. */
pid_t rig_start(int (*body)(void *argument), void *argument);
/* Waits; the exit status, or -1 when it did not exit. */
int rig_wait(pid_t pid);
/* A shell command; its status.  Quiet. */
__attribute__((format(printf, 1, 2))) int rig_shell(const char *format, ...);
/* Moves process PID (0: this one) into the cgroup2 directory PATH. */
int rig_enter_cgroup(const char *path, pid_t pid);
/*
 * Limits what the tasks of `limits` read from (or write to) the rig's disk.  0,
 * or not 0 where the machine has no such limits.
 */
int rig_limit(const struct rig *rig, bool write, unsigned long bytes_per_s);
/* This thread enters the network namespace; 0 or -1. */
int rig_enter_netns(const char *name);
/* Throws the page cache away. */
void rig_drop_caches(void);

#endif
