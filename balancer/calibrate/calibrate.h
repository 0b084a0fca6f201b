/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What this machine's processors and one of its disks can do, measured: the numbers that
 * disk_mb_per_s, disk_fixed_ms, disk_parallel and cpu_speed of the agent's configuration stand for.
 *
 * The disk is read and written past the page cache (O_DIRECT), through a file without a name, so
 * nothing is left whatever happens.  A request of b bytes is taken to cost
 *
 *   s(b) = fixed + b / B
 *
 * B is that of one stream of large requests in order, and fixed is what a small request at a random
 * place takes beyond its bytes.  How many tasks the disk serves at full speed at a time depends on
 * what they do: small requests at random places run beside each other until the device's queues are
 * full, streams until its bandwidth is.  Every task can rely on the lesser of both, which is at
 * most CALIBRATE_STREAMS.
 */
#ifndef IOCOM_CALIBRATE_H
#define IOCOM_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

#define CALIBRATE_DEPTHS  6 /* 1, 2, 4 ... 32 requests at a time */
#define CALIBRATE_STREAMS 4

struct calibrate_disk {
	double read_mb_per_s, write_mb_per_s; /* one stream in order, 1 MiB a request */
	double small_ms;		      /* a read of 4 KiB at a random place */
	double fixed_ms;		      /* the part of it that is not its bytes */
	double reads_per_s[CALIBRATE_DEPTHS]; /* of 4 KiB at random places, by requests at a time */
	double parallel_small;		      /* the most of these over that of one at a time */
	double streams_mb_per_s;	      /* CALIBRATE_STREAMS streams in order, together */
	double parallel;		      /* the lesser of both gains, at least 1 */
};

struct calibrate_disk_plan {
	const char *directory; /* on the disk */
	uint64_t bytes;	       /* of the file */
	double seconds;	       /* that each measurement takes */
	/* tells what is measured next; NULL: nobody listens */
	void (*progress)(void *arg, const char *what);
	void *arg;
};

/*
 * Measures a disk.  Returns 0, or negative errno with the reason in ERR: -EOPNOTSUPP, the
 * directory's file system has no disk of its own (tmpfs, or one that cannot pass the page cache);
 * -ENOSPC, the file would take more than half of what is free.
 */
int calibrate_disk(const struct calibrate_disk_plan *plan, struct calibrate_disk *out,
		   struct iocom_err *err);
/*
 * Millions of steps a second of one processor in a loop of integer and memory work that no compiler
 * shortens: the best of several short runs.  Only its ratio to that of another machine means
 * anything.
 */
double calibrate_cpu(double seconds);

#endif
