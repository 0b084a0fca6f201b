/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A load that is made up: what an agent reads in place of the monitor and of /proc, so that
 * hundreds of agents run on one machine and each tells of another load.  Nothing is measured, not
 * the jobs either; all else of the agent is as ever.  A file of JSON says it:
 *
 *   { "cores": 8, "memory_mb": 16000, "disk": true,
 *     "loads": [ { "seconds": 60, "run_queue": 2.5, "cpu": 2, "memory_used_mb": 3000,
 *                  "disk_requests_per_s": 120, "disk_service_ms": 4, "disk_mb_per_s": 30,
 *                  "sent_mb_per_s": 0, "received_mb_per_s": 0, "messages_per_s": 0 }, ... ] }
 *
 * Each entry holds for its seconds, from the agent's start on, and then the next; after the last
 * one the first again.  What is left out is 0.  "cpu" is in cores; memory in 10^6 bytes.
 */
#ifndef IOCOM_SYNTHETIC_H
#define IOCOM_SYNTHETIC_H

#include <stdint.h>

#include "agent/measure/host.h"
#include "iocom/err.h"
#include "user/monitor/monitor.h"

#define SYNTHETIC_LOADS_MAX 4096
#define SYNTHETIC_BYTES_MAX (1u << 20)

struct synthetic;

/* Returns 0; -EPROTO and others with the file and what is wrong in ERR. */
int synthetic_open(struct synthetic **s, const char *path, struct iocom_err *err);
void synthetic_free(struct synthetic *s);
/* The reading at NOW_NS (CLOCK_BOOTTIME); SAMPLE points into S until the next. */
void synthetic_sample(struct synthetic *s, uint64_t now_ns, uint64_t real_ns,
		      struct monitor_sample *sample);
void synthetic_host(const struct synthetic *s, uint64_t now_ns, struct host_reading *out);

#endif
