/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's side of data that goes along, on the job's own stream (user/data_stage.h):
 *
 *   quiet     until the node asks                             fetching  when the job is over
 *   listing   what there is -> the node says what it lacks    done      all is here
 *   sending   that, each file read once, hashed meanwhile
 *   sent      until the job has started, or is refused
 *
 * Outputs are written under a temporary name beside their own, and get it when they are whole.
 */
#ifndef IOCOM_RUN_DATA_H
#define IOCOM_RUN_DATA_H

#include "balancer/data/data_memory.h"
#include "user/spec.h"
#include "user/wire.h"

enum run_data_state {
	RUN_DATA_QUIET,
	RUN_DATA_LISTING,
	RUN_DATA_LISTED,
	RUN_DATA_SENDING,
	RUN_DATA_SENT,
	RUN_DATA_RUNS,
	RUN_DATA_ASKING,
	RUN_DATA_FETCHING,
	RUN_DATA_DONE
};

struct run_data {
	struct data_set *set;
	struct data_memory *memory;
	char node[64];
	enum run_data_state state;
	size_t next;   /* the item that is listed or sent */
	uint8_t *want; /* of each item, whether the node lacks it */
	size_t nwant;
	/* the file that is sent */
	int fd;
	struct data_hash *hash;
	uint64_t left;
	struct timespec since;
	uint64_t begun_ms, ended_ms; /* run_now_ms: the whole staging */
	bool has_stats;
	bool full; /* the node has no room for it */
	struct data_stats stats;
	/* the file that is fetched */
	struct data_entry getting;
	int to, beside;	    /* its temporary file, and its directory */
	char temporary[64]; /* "": it has no name */
	uint64_t got, fetched_bytes, fetched_files;
	size_t entries; /* that the node has sent */
	char gone[512]; /* the first output that could not be fetched, and why; "": all were */
	uint8_t *in;	/* what came of a message */
	size_t nin;
	struct iocom_err err; /* why we cannot go on */
};

/* Borrows SET and MEMORY. */
int run_data_init(struct run_data *data, struct data_set *set, struct data_memory *memory,
		  const char *node);
void run_data_fini(struct run_data *data);
/* Returns whether data goes along or comes back now. */
static inline bool run_data_under_way(const struct run_data *data)
{
	return (data->state > RUN_DATA_QUIET && data->state < RUN_DATA_RUNS) ||
	       data->state == RUN_DATA_ASKING || data->state == RUN_DATA_FETCHING;
}
/* Takes a frame of the node.  Returns 0, or negative errno with the sentence in data->err. */
int run_data_take(struct run_data *data, const uint8_t *payload, uint32_t length);
/* Returns whether run_data_send has something to send. */
bool run_data_sends(const struct run_data *data);
/* Sends a piece, while WIRE is idle.  Returns as wire_send, or negative errno with data->err. */
int run_data_send(struct run_data *data, struct wire *wire);
/*
 * After such an error: returns whether the job runs or has run, and only what was to be fetched is
 * given up.
 */
bool run_data_give_up(struct run_data *data);
/* The job has started: its data is there. */
void run_data_started(struct run_data *data);
/* Says on standard error what became of the data. */
void run_data_tell(const struct run_data *data, const char *name);
/* Returns whether there is something that was to be fetched and was not; then `gone` says why. */
bool run_data_unfetched(struct run_data *data);

/*
 * Says on standard error what could not be fetched, and frees DATA.  Returns STATUS of the job, or
 * RUN_UNKNOWN instead of 0.
 */
int run_data_end(struct run_data *data, const char *name, int status);
/* Makes SPEC that of a job with which SET goes along.  Returns 0 or -ENOMEM. */
int run_data_describe(const struct data_set *set, struct spec *spec, struct iocom_err *err);

/* --- run_fetch.c --- */

/* Takes one message of the node after the job.  Returns 0 or negative errno with data->err. */
int run_fetch_take(struct run_data *data, uint8_t type, const uint8_t *payload, uint32_t length);
/* Drops what is not whole. */
void run_fetch_drop(struct run_data *data);

#endif
