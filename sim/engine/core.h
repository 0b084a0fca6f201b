/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the engine core share: the state of one run.
 *
 * The nodes are dealt out to shards, one a thread; a shard owns its nodes, the
 * tasks on them and their jobs, and alone touches them while a round is run.  A
 * round goes from one boundary to the next: no task sent within it arrives within
 * it, and nobody learns of another shard's nodes but at a boundary.  So what a
 * node does follows from its own past alone, and the number of shards cannot
 * show.  With one shard the rounds are the same and the barriers cost nothing.
 *
 * Order of what is due at one time: information and samples, then steps of nodes,
 * tasks that arrive, flows that end, new jobs; each by node, then by job.
 */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include "sim/run.h"
#include "sim/engine/core_heap.h"
#include "sim/engine/core_stats.h"
#include "sim/engine/node_model.h"

#define CORE_NONE    UINT32_MAX
#define CORE_FOREVER 1e300
#define CORE_LINE    64 /* bytes of a cache line */

enum core_state {
	TASK_RUNNING, /* in a segment at the node model */
	TASK_BARRIER, /* waits for its siblings */
	TASK_TALKING, /* its messages are under way */
	TASK_READING, /* its data is read from the disk it leaves */
	TASK_MOVING,  /* between two nodes */
	TASK_WRITING, /* its data is written where it will run */
};

struct core_task {
	struct node_task at;	 /* what the node model needs */
	double since_ms;	 /* entered its node; under way: left for it */
	double segment_ms;	 /* computation of the segment; under way: what is left */
	double segment_requests; /* likewise; negative: by rate */
	double moving_mb;	 /* data that goes with it */
	double moving_ms;	 /* between the disks */
	/* of the job, for who describes the task without looking at its job */
	double rate_per_ms, initial_mb, write_fraction, com_ms;
	uint32_t job;	  /* slot in the pool */
	uint32_t node;	  /* where it is, or goes */
	uint32_t next;	  /* on the node's list of coming tasks; in the pool's list */
	uint32_t sibling; /* next task of the job */
	uint32_t index;	  /* among them */
	uint32_t phase;	  /* of the job, from 0 */
	uint16_t state;
	bool single; /* the only task of its job */
};

struct core_job {
	struct sim_job job; /* memory_mb and cpu_ms as scaled */
	double alone_ms, start_ms;
	double rate_per_ms; /* accesses as the rules count them */
	double com_ms;	    /* R_COM of a slave */
	uint32_t first;	    /* task; the master */
	uint32_t phases;
	uint32_t waiting; /* tasks at the barrier */
	uint32_t talking; /* flows under way */
	uint32_t ended;	  /* tasks */
	uint32_t moves;
	uint32_t end_node; /* where the first task ended */
	uint32_t next;	   /* in the pool's list, in the batch queue */
};

/* What the core keeps of a node and touches at each of its events. */
struct core_node {
	double last_ms;			 /* of its last event */
	double runnable_ms, resident_ms; /* integrals until then */
	double window_end_ms;		 /* of the measuring window */
	double placed_at_ms;		 /* the snapshot that `placed` belongs to */
	uint32_t runnable, resident;	 /* since then */
	uint32_t coming;		 /* first task under way to it */
	uint32_t placed;		 /* newest placement by this home since the snapshot */
	uint32_t flags;
};
#define NODE_TOUCHED 1u /* had an event: on the shard's list `touched` */
#define NODE_DIRTY   2u /* must be set before the next decision: on `dirty` */

/* Sums at one time. */
struct core_point {
	double time_ms;
	double runnable_ms;
	double disk_requests, disk_busy_ms, service_sum, service_sum2;
};

struct core_measured {
	double arrivals_per_ms, utilisation, service_ms, service_ms2, cpu_queue;
	double since_ms; /* start of the window */
};

/* What only decisions and the end need of a node. */
struct core_meter {
	struct core_point older, newer; /* at the last two ends of windows */
	struct core_measured measured;
	uint64_t arrived, executed;
	double sampled_cpu_ms, sampled_disk_ms; /* at the last sample */
};

/* A node as told to the rules; also what an exported view is made of. */
struct core_look {
	struct rules_node node;
	struct rules_task *tasks;
	uint32_t *ids; /* of the tasks */
	size_t room;
};

/* A placement that its home remembers until the next snapshot. */
struct core_placement {
	struct rules_request request;
	double com_ms;
	uint32_t target, next;
};

/* A task on its way to another shard, with its job. */
struct core_parcel {
	struct core_job job;
	struct core_task task;
	double due_ms;
};

struct core_parcels {
	struct core_parcel *list;
	uint32_t used, room;
};

struct core_arrivals {
	struct sim_job *jobs;
	uint32_t head, used, room; /* jobs[head .. used) wait */
};

struct core_list {
	uint32_t *ids;
	uint32_t used, room;
};

struct core_pool_tasks {
	struct core_task *list;
	uint32_t used, room, free;
};

struct core_pool_jobs {
	struct core_job *list;
	uint32_t used, room, free, live;
};

struct core_flows;
struct core_completions;

struct core_shard {
	struct core *core;
	uint32_t index, first, n; /* its nodes: first .. first + n - 1 */
	int error;
	struct iocom_err err;
	uint32_t spins; /* at the next barrier */
	bool paused;	/* stopped before the round's end, to let the caller look */

	struct sim_cluster cluster; /* borrows the machines */
	struct node_model *model;   /* its nodes are 0 .. n - 1 there */
	struct core_heap steps;	    /* of those nodes */
	struct core_timers timers;  /* tasks that arrive */
	struct core_pool_tasks tasks;
	struct core_pool_jobs jobs;
	struct core_arrivals arrivals;
	struct core_parcels *out[2]; /* to each shard, by parity of the round */
	struct core_flows *flows;

	struct rules *rules;
	struct rules_view *view;
	struct core_list touched, dirty, changed; /* room for all nodes */
	double turn_ms;				  /* period 0: the end of the measuring window */
	struct core_look look, home_look;
	struct {
		struct core_placement *list;
		uint32_t used, room;
	} placed;
	uint32_t *targets; /* nodes of the tasks of one job */
	double *com_ms;
	struct rules_request request; /* of the decision being made, for sim_look_request */
	uint32_t targets_room;
	struct rules_move *moves;
	uint32_t moves_room;
	struct rules_plan plan;

	uint32_t queue_head, queue_tail; /* jobs that wait for free nodes (batch) */
	bool queue_check;
	struct core_stats stats;
	struct core_completions *completions;
	struct core_partial {
		core_fixed cpu_busy, disk_busy, io;
		uint64_t resident;
		uint32_t resident_most;
		double io_most;
		uint64_t remote, migrations;
	} partial;
};

struct sim_look {
	struct core_shard *shard;
	const struct sim_job *job;
	uint32_t home;
};

/* Saved for the callback `decided` only. */
struct core_saved {
	struct rules_node node;
	struct rules_task *tasks;
	size_t room;
};

struct core {
	const struct sim_run *run;
	const struct sim_cluster *cluster;
	struct sim_params params;
	enum rules_policy policy;
	bool feedback;
	bool migrates, batch; /* what the policy does */
	bool looks;	      /* the policy looks at the view */
	bool measures;
	bool transit_counts;
	double period_ms; /* of information; 0: always exact */
	double reference_mips;
	double least_delay_ms; /* of a transfer */
	const char *serial_reason;
	struct core_node *nodes;
	struct core_meter *meters;
	struct core_shard *shards;
	uint32_t nshards, share_first;
	struct rules **own_rules; /* control_per_node: one a node */
	struct core_saved *saved;

	/* the stream: jobs read in idle time, and the next one to hand to a shard */
	struct {
		struct sim_job *jobs; /* jobs[head .. used) */
		uint32_t head, used, room;
		int end; /* what the workload said instead of a job */
		struct iocom_err err;
	} ahead;
	struct sim_job next;
	bool has_next;
	bool several; /* a job of several tasks was met among several shards */
	uint64_t arrived;
	uint64_t first_job, skip_before; /* number of the first job; of where to begin again */
	double last_arrival_ms;

	/* the round: set by the coordinator, read by all */
	uint32_t round;
	double end_ms;
	double snapshot_ms; /* time of the snapshot in force */
	bool take_snapshot, take_sample, finished;
	double sample_at_ms, sampled_ms; /* this one, the one before */
	uint64_t sampled_remote, sampled_migrations;
	struct core_sync *sync; /* NULL: one shard */
	int error;
	struct iocom_err *err;
	struct sim_result *result;
	uint32_t samples_room;
	struct core_reported *reported; /* by the controller: one, or one a node */
};

/* The first shard has c->share_first nodes, the others as good as equally many. */
static inline uint32_t core_shard_of(const struct core *c, uint32_t node)
{
	if (node < c->share_first)
		return 0;
	return 1 + (uint32_t)((uint64_t)(node - c->share_first) * (c->nshards - 1) /
			      (c->cluster->n - c->share_first));
}

static inline struct core_task *core_task(const struct core_shard *s, uint32_t id)
{
	return &s->tasks.list[id];
}

/* Hint: SIZE bytes at P will be used soon. */
static inline void core_fetch(const void *p, size_t size)
{
	for (size_t at = 0; at < size; at += CORE_LINE)
		__builtin_prefetch((const char *)p + at, 1);
}

static inline struct core_job *core_job_of(const struct core_shard *s, const struct core_task *t)
{
	return &s->jobs.list[t->job];
}

/* Stops the run with CODE and what ERR of the shard says. */
int core_fail(struct core_shard *s, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* --- core.c, core_round.c: set-up and rounds ------------------------------------ */
int core_rounds(struct core *c);
int core_read_next(struct core *c); /* 0; -EINVAL; what the workload says */
/* Reads a job before it is asked for; false: no room, or none is left. */
bool core_read_ahead(struct core *c);
/* What all shards do in a round, each in its thread. */
void core_round(struct core_shard *s);
/* Waits for all other shards. */
void core_sync_wait(struct core_shard *s);

/* --- core_loop.c: the events of a shard ------------------------------------------ */
/* Does all that is due before the round's end. */
void core_run_shard(struct core_shard *s);
double core_next_time(const struct core_shard *s);
/* Around every call that changes node NODE of the model. */
void core_node_begin(struct core_shard *s, uint32_t node, double now);
void core_node_end(struct core_shard *s, uint32_t node);

/* --- core_pool.c ------------------------------------------------------------------- */
/* CORE_NONE: no memory.  Pointers into the pool may move. */
uint32_t core_task_new(struct core_shard *s);
void core_task_drop(struct core_shard *s, uint32_t task);
uint32_t core_job_new(struct core_shard *s);
void core_job_drop(struct core_shard *s, uint32_t job);
int core_list_add(struct core_list *l, uint32_t id); /* 0, -ENOMEM */
/* Grows *ARRAY of *ROOM elements to at least N; 0, -ENOMEM. */
int core_grow(void *array, uint32_t *room, uint32_t n, size_t size);

/* --- core_job.c: a job's life -------------------------------------------------------- */
/* A job arrives at its home. */
void core_arrive(struct core_shard *s, const struct sim_job *job, double now);
/* Puts the tasks of JOB where shard->targets says. */
int core_dispatch(struct core_shard *s, uint32_t job, double now);
/* The segment of TASK has ended. */
void core_segment_done(struct core_shard *s, uint32_t task, double now);
/* All messages of JOB's phase have arrived. */
void core_talk_done(struct core_shard *s, uint32_t job, double now);
/* A task that was under way is at its node. */
void core_task_enters(struct core_shard *s, uint32_t task, double now);

/* --- core_move.c: tasks between nodes -------------------------------------------------- */
/* Sends TASK, which is new, FROM its home to its node. */
int core_send_new(struct core_shard *s, uint32_t task, uint32_t from, double now);
/* TASK has crossed the network. */
void core_task_arrives(struct core_shard *s, uint32_t task, double now);
void core_disk_work_done(struct core_shard *s, uint32_t task, double now);
/* Moves running tasks away from HOME, as the rules say. */
int core_migrate(struct core_shard *s, uint32_t home, double now);
/* Takes what other shards sent in the round before. */
int core_take_parcels(struct core_shard *s);
double core_written_mb(const struct core_task *t);
void core_coming_remove(struct core_shard *s, uint32_t task);

/* --- core_place.c: decisions ------------------------------------------------------------ */
/* Where the tasks of JOB go: shard->targets.  1: it must wait; 0; -errno. */
int core_decide(struct core_shard *s, uint32_t job, double now);
/* Batch: tries the jobs that wait. */
void core_queue_try(struct core_shard *s, double now);
void core_queue_add(struct core_shard *s, uint32_t job);
/* The view before and after a decision of HOME. */
int core_view_open(struct core_shard *s, uint32_t home, double now);
void core_view_close(struct core_shard *s);
struct rules *core_rules_of(const struct core_shard *s, uint32_t node);
struct rules_request core_request_of(const struct core_shard *s, const struct core_job *j);
/* HOME charges TARGET with REQUEST until the next snapshot. */
void core_remember(struct core_shard *s, uint32_t home, uint32_t target,
		   const struct rules_request *request, double com_ms);
uint64_t core_ties_seed(const struct core *c, const struct sim_job *job);

/* --- core_view.c: what decisions look at -------------------------------------------------- */
/* A view of idle nodes; what fails is in the shard. */
void core_view_init(struct core_shard *s);
/* Hint: the node will be described, or changed, soon. */
void core_fetch_node(const struct core_shard *s, uint32_t node);
void core_window_turn(struct core_shard *s, uint32_t node, double now);
/* Updates the node's measured state; owner only.  Returns whether it will stay so. */
bool core_measure(struct core_shard *s, uint32_t node, double now);
/* Describes NODE of any shard into LOOK; tasks sent since SENT_BEFORE are left out. */
int core_describe(const struct core *c, uint32_t node, double now, double sent_before,
		  struct core_look *look);
int core_set(struct core_shard *s, uint32_t node, double now, double sent_before);
/* Period 0: sets what has changed. */
int core_view_refresh(struct core_shard *s, double now);
/* A snapshot: each shard sets its nodes that have changed; then each copies the others'. */
int core_snapshot_own(struct core_shard *s, double now);
int core_snapshot_others(struct core_shard *s);
void core_touch(struct core_shard *s, uint32_t node);
void core_mark_dirty(struct core_shard *s, uint32_t node);
/* Explicit and implicit I/O load of a look (MODEL 1.2). */
struct core_load {
	double explicit_per_ms, implicit_per_ms, memory_mb, com_ms;
};
struct core_load core_load_of(const struct core_look *look);
int core_look_reserve(struct core_look *look, size_t n); /* 0, -ENOMEM */
void core_look_free(struct core_look *look);

/* --- core_flow.c: messages --------------------------------------------------------------- */
int core_flows_new(struct core_shard *s);
void core_flows_free(struct core_flows *f);
double core_flows_next(const struct core_flows *f);
/* A message of KB from a task's node to another, of JOB; 0, -ENOMEM. */
int core_flow_add(struct core_shard *s, uint32_t job, uint32_t from, uint32_t to, double kb,
		  double now);
/* What ends at NOW. */
void core_flows_step(struct core_shard *s, double now);
size_t core_flows_bytes(const struct core_flows *f);
/* After changes at NOW: rates and times of the flows concerned. */
void core_flows_settle(struct core_shard *s, double now);

/* --- core_control.c: feedback ------------------------------------------------------------ */
int core_control_init(struct core *c);
void core_control_done(struct core_shard *s, uint32_t node, double slowdown, double now);
void core_control_free(struct core *c);

/* --- core_result.c: results -------------------------------------------------------------- */
void core_complete(struct core_shard *s, uint32_t job, double now);
int core_completions_new(struct core_shard *s);
void core_completions_free(struct core_completions *k);
/* Tells the completions before NOW, in order. */
void core_completions_tell(struct core_shard *s, double now);
void core_sample_partial(struct core_shard *s);
int core_sample_merge(struct core *c);
int core_result(struct core *c);
size_t core_bytes(const struct core *c);

/* --- core_alone.c -------------------------------------------------------------------------- */
/* sim_alone_ms of a job that is scaled already. */
double core_alone_ms(const struct sim_job *job, const struct sim_machine *home,
		     const struct sim_params *p, double reference_mips);
void core_scale(struct sim_job *job, const struct sim_params *p);

#endif
