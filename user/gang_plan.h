/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a gang's tasks are started: the client makes the plan, each part's spec carries it packed,
 * and the part's launcher (iocom-tasks, iocom-pmix) obeys it as the job's user.
 */
#ifndef IOCOM_GANG_PLAN_H
#define IOCOM_GANG_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/vector.h"
#include "user/gang_name.h"

#define GANG_SECRET	 32
#define GANG_PACKED_MAX	 (256u << 10)
#define GANG_MESSAGE_MAX 4096 /* one message between a launcher and its client (FRAME_GANG) */
#define GANG_BEGIN_S	 60   /* a launcher waits so long for its gang to begin */

enum gang_launch {
	GANG_LAUNCH_NONE,  /* an ordinary job, or one that starts its tasks itself */
	GANG_LAUNCH_TASKS, /* independent tasks */
	GANG_LAUNCH_PMIX,  /* ranks that find each other by PMIx, as Open MPI's do */
	GANG_LAUNCH_PMI1,  /* ranks that find each other by PMI-1, as MPICH's do */
	GANG_LAUNCHES
};

struct gang_node {
	char name[IOCOM_NAME_MAX];
	char address[IOCOM_ADDRESS_MAX]; /* at which the other nodes reach it; "": this machine */
	uint32_t first;			 /* its first entry in `ranks` */
	uint32_t tasks;			 /* >= 1 */
};

struct gang_plan {
	char gang[SPEC_JOB_MAX];
	enum gang_launch launch;
	bool label;	 /* each line of a task begins with its number */
	bool keep_going; /* a task that fails does not end the others */
	bool bind;	 /* each task has processors of its own, where there are enough */
	uint32_t tasks;
	uint32_t part;	 /* which of `nodes` this part is */
	uint32_t nnodes; /* part K is on nodes[K] */
	struct gang_node *nodes;
	uint32_t *ranks; /* the tasks of each node, ascending; each of 0..tasks-1 once */
	uint8_t secret[GANG_SECRET]; /* by which the launchers know each other */
};

/* Packs PLAN into a malloc'ed buffer.  Returns 0, -E2BIG or -ENOMEM. */
int gang_plan_pack(const struct gang_plan *plan, void **data, size_t *length,
		   struct iocom_err *err);
/*
 * Returns 0; -EBADMSG with the reason in ERR (also for a plan that does not have each task exactly
 * once); -E2BIG; -ENOMEM.
 */
int gang_plan_unpack(struct gang_plan *plan, const void *data, size_t length,
		     struct iocom_err *err);
void gang_plan_free(struct gang_plan *plan); /* frees what it points to, and erases the secret */

/*
 * Messages between a launcher and its client, by way of the shim, each a MessagePack map of at most
 * GANG_MESSAGE_MAX bytes.  In this order:
 *
 *   READY   launcher: it can start its tasks; part 0 of a PMIx or PMI-1 gang says its port
 *   GO      client: all parts are ready; where part 0 is
 *   BEGUN   launcher: its tasks run
 *   FAILED  launcher: RANK ended otherwise than with status 0; the first that did, and once more
 *           if another one turns out to have crashed, which is why the first did
 *
 * A launcher that gets no GO within GANG_BEGIN_S ends with status 125 and starts nothing.
 */
enum gang_message_type { GANG_READY = 1, GANG_GO, GANG_BEGUN, GANG_FAILED };
struct gang_message {
	enum gang_message_type type;
	uint16_t port;			 /* READY of part 0, and GO */
	char address[IOCOM_ADDRESS_MAX]; /* GO; "": this machine */
	uint32_t rank;			 /* FAILED */
	bool signalled;			 /* FAILED: `value` is a signal, not an exit status */
	uint32_t value;			 /* FAILED */
	bool crash;	/* FAILED: by a gang_crash_signal, before anything had ended the part */
	char text[256]; /* FAILED: a sentence if no status says it; "" */
};
/* Of a part that ends because its gang does, or its user wants it to: never why the gang failed. */
#define GANG_TOLD_TO_END "it was told to end"
/*
 * Returns why, as far as the part knows, if TEXT is of a part that was told to end ("": it does not
 * know); NULL: it was not.
 */
const char *gang_told_text(const char *text);
/* The same, but this is why, unless a task had failed before. */
#define GANG_CLIENT_LOST "its client was lost for longer than its grace"
/* Whether SIGNAL is one by which a process ends that has crashed, or was killed. */
bool gang_crash_signal(int signal);
/* Writes how task RANK of NODE ended, as a sentence.  WORD: "task", or "rank" for MPI's. */
void gang_task_sentence(const char *word, uint32_t rank, const char *node, bool signalled,
			uint32_t value, char *out, size_t size);
/* Returns the length of the message in OUT. */
size_t gang_message_pack(const struct gang_message *message, uint8_t out[GANG_MESSAGE_MAX]);
/* Returns 0 or -EBADMSG. */
int gang_message_unpack(struct gang_message *message, const void *data, size_t length);

#endif
