/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a processor can do that programs ask it for once, when they begin, and use from then on.  A
 * program that goes on at a processor without it dies there of an illegal instruction.
 */
#ifndef IOCOM_PROCESSOR_H
#define IOCOM_PROCESSOR_H

#include <stddef.h>
#include <stdint.h>

/*
 * A set with one bit for each ability, and one for the kind of processor.  The bits are the same on
 * all nodes and in all versions of iocom.  0: nothing is known.
 */
typedef uint64_t processor_set;

/* What the first processor of this machine can do, as file INFO, "/proc/cpuinfo", says. */
processor_set processor_look(const char *info);

/*
 * Writes the names of what NEED has and HAVE lacks to OUT of SIZE bytes, as many as fit, with
 * commas. Returns how many there are; 0 too if one of the two is not known.
 */
unsigned processor_lacks(processor_set have, processor_set need, char *out, size_t size);

#endif
