/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#ifndef FUZZ_SAMPLE_VECTOR_H
#define FUZZ_SAMPLE_VECTOR_H

#include "iocom/vector.h"

/* The vector of a node that tells only what it must; for an initialiser. */
#define SAMPLE_VECTOR(its_name)                                                                    \
	.name = (its_name), .address = "10.0.0.1", .port = 7700, .boot_id = 7, .sequence = 1,      \
	.time_ns = 1, .period_ms = 1000, .cores = 2, .cpu_speed = 1, .cpu_burst = 1

#endif
