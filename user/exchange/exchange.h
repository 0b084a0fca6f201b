/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who sent how much to whom, as the node of one part of a gang counts it: a row for each TCP
 * connection of each of its ranks.  The node knows its own end only; home joins the ends of all
 * parts (join.h).
 *
 * A connection is named by a digest of both ends' addresses and ports, which both nodes make alike,
 * so a report needs no addresses.
 */
#ifndef IOCOM_EXCHANGE_H
#define IOCOM_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_RANKS_MAX  4096 /* ranks are less */
#define EXCHANGE_ROWS_MAX   2048 /* of one part; the others are in `rest` */
#define EXCHANGE_TASKS_MAX  1024
#define EXCHANGE_COUNT_MAX  (1ull << 50) /* no number of a report is more */
#define EXCHANGE_SUM_MAX    (1ull << 62) /* nor any sum, whatever many nodes claim */
#define EXCHANGE_PACKED_MAX (96u << 10)

struct exchange_sum {
	uint64_t sent_bytes, received_bytes, sent_messages, received_messages;
};

struct exchange_row {
	uint64_t connection;
	int32_t rank; /* -1: a process without a rank: a launcher, a daemon */
	bool second;  /* which of the two ends it is */
	bool inside;  /* the other end is on the same node */
	struct exchange_sum sum;
};

/* What the processes of one rank did in all. */
struct exchange_task {
	int32_t rank; /* 0 or more */
	uint64_t cpu_us;
	uint64_t bursts, burst_us; /* monitor.h */
};

struct exchange {
	struct exchange_row *rows;
	size_t nrows;
	struct exchange_task *tasks;
	size_t ntasks;
	struct exchange_sum rest; /* what has no row here */
	uint64_t rest_rows;	  /* connections in `rest` */
	uint64_t disk_us;	  /* T_Disk of the whole part (job_times.h) */
	bool late;		  /* counting began after the part: what came before is not in it */
};

/* Names a connection; ends are as in in_addr or in6_addr.  SECOND gets which of them is local. */
uint64_t exchange_connection(int family, const uint8_t local[16], uint16_t local_port,
			     const uint8_t remote[16], uint16_t remote_port, bool *second);
/* These stop at EXCHANGE_SUM_MAX. */
uint64_t exchange_add(uint64_t a, uint64_t b);
void exchange_sum_add(struct exchange_sum *into, const struct exchange_sum *from);
/*
 * Packs at most EXCHANGE_PACKED_MAX bytes, malloc'ed: the rows with most bytes, the others into
 * `rest`.  Sorts the rows.  Returns 0 or -ENOMEM.
 */
int exchange_pack(struct exchange *x, void **data, size_t *length);
/* Returns 0: X is the caller's, who frees it; -EBADMSG; -ENOMEM. */
int exchange_unpack(struct exchange *x, const void *data, size_t length);
void exchange_fini(struct exchange *x);

#endif
