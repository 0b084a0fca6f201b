/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The state of one run, shared by the files of the engine core.
 *
 * The nodes are divided among shards, one per thread.  A shard owns its nodes, the tasks on them
 * and their jobs; during a round nothing else touches these.  A round lasts from one boundary to
 * the next: no task sent within a round arrives in it, and shards learn about each other's nodes
 * only at boundaries.  So a node's events follow from its own past alone, and the result does not
 * depend on the number of shards.  A run with one shard has the same rounds, without barriers.
 *
 * What is due at one time happens in this order: information and samples, steps of nodes, tasks
 * that arrive, flows that end, new jobs; each of these by node, then by job.
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
	TASK_RUNNING, /* computes a segment at the node model */
	TASK_BARRIER, /* waits for its siblings */
	TASK_TALKING, /* its messages are on the network */
	TASK_READING, /* its data is being read from the disk of the node it leaves */
	TASK_MOVING,  /* between two nodes */
	TASK_WRITING, /* its data is being written to the disk of its next node */
};

struct core_task {
	struct node_task at;	 /* what the node model needs */
	double since_ms;	 /* when it entered its node; on the way: when it left for it */
	double segment_ms;	 /* computation of the segment; on the way: what is left of it */
	double segment_requests; /* requests of the segment, likewise; negative: by rate */
	double moving_mb;	 /* data that moves with the task */
	double moving_ms;	 /* time the data takes between the two disks */
	/* copied from the job, so that describing the task need not fetch the job */
	double rate_per_ms, initial_mb, write_fraction, com_ms;
	double implicit_share; /* the part of rate_per_ms that a vector tells as implicit */
	uint32_t job;	       /* slot of its job in the pool */
	uint32_t node;	       /* the node it is on or moves to */
	uint32_t next;	  /* next task on the list of tasks coming to a node, or on the pool's free
			   * list */
	uint32_t sibling; /* next task of the job */
	uint32_t index;	  /* the task's number in its job */
	uint32_t phase;	  /* phase of the job, from 0 */
	uint16_t state;
	bool single; /* the only task of its job */
};

struct core_job {
	struct sim_job job; /* memory_mb and cpu_ms are scaled */
	double alone_ms, start_ms;
	double rate_per_ms; /* accesses as the rules count them */
	double com_ms;	    /* R_COM of a slave */
	uint32_t first;	    /* the first task, the master */
	uint32_t phases;
	uint32_t waiting; /* tasks that wait at the barrier */
	uint32_t talking; /* flows on the network */
	uint32_t ended;	  /* tasks that have ended */
	uint32_t moves;
	uint32_t end_node; /* node on which the first task ended */
	uint32_t next;	   /* next job in the pool's free list or in the batch queue */
};

/* What the core keeps per node and touches at each event of the node. */
struct core_node {
	double last_ms;			 /* time of the node's last event */
	double runnable_ms, resident_ms; /* integrals up to last_ms */
	double window_end_ms;		 /* end of the measuring window */
	double placed_at_ms;		 /* time of the snapshot that `placed` belongs to */
	uint32_t runnable, resident;	 /* numbers of tasks since last_ms */
	uint32_t coming;		 /* first task on its way to this node */
	uint32_t placed;		 /* newest placement by this home since the snapshot */
	uint32_t flags;
};
#define NODE_TOUCHED 1u /* the node had an event and is on the shard's list `touched` */
#define NODE_DIRTY   2u /* the node is on the shard's list `dirty`: set it before deciding */

/* A node's sums up to one time. */
struct core_point {
	double time_ms;
	double runnable_ms;
	double disk_requests, disk_busy_ms, service_sum, service_sum2;
};

struct core_measured {
	double arrivals_per_ms, utilisation, service_ms, service_ms2, cpu_queue;
	double since_ms; /* start of the window */
};

/* What only decisions and the final result need of a node. */
struct core_meter {
	struct core_point older, newer; /* sums at the ends of the last two windows */
	struct core_measured measured;
	uint64_t arrived, executed;
	double sampled_cpu_ms, sampled_disk_ms; /* values at the last sample */
};

/* A node as described to the rules; exported views contain the same. */
struct core_look {
	struct rules_node node;
	struct rules_task *tasks;
	uint32_t *ids; /* ids of the tasks */
	size_t room;
};

/* A placement that its home counts until the next snapshot. */
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
struct core_easy;

struct core_shard {
	struct core *core;
	uint32_t index, first, n; /* the shard's nodes: first .. first + n - 1 */
	int error;
	struct iocom_err err;
	uint32_t spins; /* how often to poll at the next barrier before sleeping */
	bool paused;	/* stopped before the end of the round, so that the caller can look */

	struct sim_cluster cluster; /* borrows the machines */
	struct node_model *model;   /* it numbers the shard's nodes 0 .. n - 1 */
	struct core_heap steps;	    /* next events of those nodes */
	struct core_timers timers;  /* arrivals of tasks that are on their way */
	struct core_pool_tasks tasks;
	struct core_pool_jobs jobs;
	struct core_arrivals arrivals;
	struct core_parcels *out[2]; /* parcels to each shard, by parity of the round */
	struct core_flows *flows;

	struct rules *rules;
	struct rules_view *view;
	struct core_list touched, dirty, changed; /* each has room for all nodes */
	double turn_ms;				  /* period 0: the end of the measuring window */
	struct core_look look, home_look;
	struct {
		struct core_placement *list;
		uint32_t used, room;
	} placed;
	uint32_t *targets; /* the nodes for the tasks of one job */
	double *com_ms;
	struct rules_pair *pairs; /* who of the job's tasks sends to whom */
	uint32_t pairs_room;
	/* of the last gang; NULL: there was none */
	struct rules_port *ports; /* of all nodes */
	struct rules_gang_plan *gang;
	struct rules_request request; /* the request of this decision */
	uint32_t targets_room;
	struct rules_move *moves;
	uint32_t moves_room;
	struct rules_plan plan;

	uint32_t queue_head, queue_tail; /* jobs that wait for free nodes (batch) */
	bool queue_check;
	struct core_easy *easy; /* this queue with EASY backfill, instead of the list; or NULL */
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

/* Kept only for the callback `decided`. */
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
	bool migrates, batch; /* whether the policy migrates running tasks, keeps a batch queue */
	bool looks;	      /* the policy looks at the view */
	bool measures;
	bool transit_counts;
	double period_ms; /* information period; 0: the view is always exact */
	double reference_mips;
	double least_delay_ms; /* the least delay of a transfer */
	const char *serial_reason;
	struct core_node *nodes;
	struct core_meter *meters;
	double *port_share; /* the part of the time in which each node's port had messages to carry
			     */
	struct core_shard *shards;
	uint32_t nshards, share_first;
	struct rules **own_rules; /* with control_per_node: one for each node */
	struct core_saved *saved;

	/* the stream: jobs read ahead in idle time, and the next job to give to a shard */
	struct {
		struct sim_job *jobs; /* jobs[head .. used) */
		uint32_t head, used, room;
		int end; /* the workload's answer when it had no more jobs */
		struct iocom_err err;
	} ahead;
	struct sim_job next;
	bool has_next;
	bool several; /* one of several shards met a job of several tasks */
	uint64_t arrived;
	uint64_t first_job, skip_before; /* number of the first job; where to restart */
	double last_arrival_ms;

	/* the round: the coordinator sets it, all shards read it */
	uint32_t round;
	double end_ms;
	double snapshot_ms; /* time of the snapshot in force */
	bool take_snapshot, take_sample, finished;
	double sample_at_ms, sampled_ms; /* times of this sample and of the last */
	uint64_t sampled_remote, sampled_migrations;
	struct core_sync *sync; /* NULL: one shard */
	int error;
	struct iocom_err *err;
	struct sim_result *result;
	uint32_t samples_room;
	struct core_reported *reported; /* one controller for all nodes, or one for each node */
};

/* The first shard has c->share_first nodes, the others share the rest as evenly as possible. */
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

/* Hint: the caller will soon use SIZE bytes at P. */
static inline void core_fetch(const void *p, size_t size)
{
	for (size_t at = 0; at < size; at += CORE_LINE)
		__builtin_prefetch((const char *)p + at, 1);
}

static inline struct core_job *core_job_of(const struct core_shard *s, const struct core_task *t)
{
	return &s->jobs.list[t->job];
}

/* Stops the run with CODE; the shard's ERR gets the message. */
int core_fail(struct core_shard *s, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* --- core.c, core_round.c: set-up and rounds ------------------------------------ */
int core_rounds(struct core *c);
int core_read_next(struct core *c); /* Returns 0; -EINVAL; or the workload's error */
/* Reads a job before it is needed; false: there is no room or no job. */
bool core_read_ahead(struct core *c);
/* Does one round of a shard, in the shard's own thread. */
void core_round(struct core_shard *s);
/* Waits until all other shards have come to this barrier. */
void core_sync_wait(struct core_shard *s);

/* --- core_loop.c: the events of a shard ------------------------------------------ */
/* Handles all events that are due before the end of the round. */
void core_run_shard(struct core_shard *s);
double core_next_time(const struct core_shard *s);
/* Call these before and after every call that changes node NODE of the model. */
void core_node_begin(struct core_shard *s, uint32_t node, double now);
void core_node_end(struct core_shard *s, uint32_t node);

/* --- core_pool.c ------------------------------------------------------------------- */
/* Both return CORE_NONE if there is no memory, and may move the pool. */
uint32_t core_task_new(struct core_shard *s);
void core_task_drop(struct core_shard *s, uint32_t task);
uint32_t core_job_new(struct core_shard *s);
void core_job_drop(struct core_shard *s, uint32_t job);
int core_list_add(struct core_list *l, uint32_t id); /* 0, -ENOMEM */
/* Grows *ARRAY of *ROOM elements to at least N; 0, -ENOMEM. */
int core_grow(void *array, uint32_t *room, uint32_t n, size_t size);

/* --- core_job.c: a job's life -------------------------------------------------------- */
/* Starts JOB at its home. */
void core_arrive(struct core_shard *s, const struct sim_job *job, double now);
/* Starts the tasks of JOB on the nodes in shard->targets. */
int core_dispatch(struct core_shard *s, uint32_t job, double now);
/* Continues TASK, whose segment has ended. */
void core_segment_done(struct core_shard *s, uint32_t task, double now);
/* Continues JOB: all messages of its phase have arrived. */
void core_talk_done(struct core_shard *s, uint32_t job, double now);
/* Adds a task that was on its way to its node. */
void core_task_enters(struct core_shard *s, uint32_t task, double now);

/* --- core_move.c: tasks between nodes -------------------------------------------------- */
/* Sends the new TASK from its home FROM to its node. */
int core_send_new(struct core_shard *s, uint32_t task, uint32_t from, double now);
/* Handles TASK, which has crossed the network. */
void core_task_arrives(struct core_shard *s, uint32_t task, double now);
void core_disk_work_done(struct core_shard *s, uint32_t task, double now);
/* Migrates running tasks away from HOME as the rules say. */
int core_migrate(struct core_shard *s, uint32_t home, double now);
/* Takes the tasks that other shards sent in the last round. */
int core_take_parcels(struct core_shard *s);
double core_written_mb(const struct core_task *t);
void core_coming_remove(struct core_shard *s, uint32_t task);

/* --- core_easy.c: the batch queue with EASY backfill -------------------------------- */
int core_easy_new(struct core_shard *s); /* 0, -ENOMEM */
void core_easy_free(struct core_easy *e);
/* Queues a new JOB; core_easy_try, when no more events are due at this time, may start it. */
void core_easy_add(struct core_shard *s, uint32_t job);
void core_easy_try(struct core_shard *s, double now);
/* The last task of JOB has ended. */
void core_easy_done(struct core_shard *s, uint32_t job);

/* --- core_place.c: decisions ------------------------------------------------------------ */
/*
 * Writes into shard->targets where the tasks of JOB go.  Returns 1: the job must wait; 0; -errno.
 */
int core_decide(struct core_shard *s, uint32_t job, double now);
/* Batch: tries to place the jobs that wait. */
void core_queue_try(struct core_shard *s, double now);
void core_queue_add(struct core_shard *s, uint32_t job);
/* Prepares the view for a decision of HOME, and restores it after. */
int core_view_open(struct core_shard *s, uint32_t home, double now);
void core_view_close(struct core_shard *s);
struct rules *core_rules_of(const struct core_shard *s, uint32_t node);
struct rules_request core_request_of(const struct core_shard *s, const struct core_job *j);
/* HOME counts REQUEST on TARGET until the next snapshot. */
void core_remember(struct core_shard *s, uint32_t home, uint32_t target,
		   const struct rules_request *request, double com_ms);
uint64_t core_ties_seed(const struct core *c, const struct sim_job *job);

/* --- core_gang.c: jobs whose tasks are placed all at once ---------------------------------- */
/* Returns whether JOB is placed so. */
bool core_gang_is(const struct core *c, const struct core_job *j);
/*
 * Writes into shard->targets where the tasks go, by shard->request, which gets the pairs.  Returns
 * 0; 1: they fit nowhere; -errno.
 */
int core_gang_place(struct core_shard *s, const struct core_job *j);
/* The part of the time that messages of the node's tasks take, at most 1. */
double core_port_share(const struct core_look *look);

/* --- core_view.c: what decisions look at -------------------------------------------------- */
/* Creates a view of idle nodes; the shard takes an error. */
void core_view_init(struct core_shard *s);
/* Hint: the node will soon be described or changed. */
void core_fetch_node(const struct core_shard *s, uint32_t node);
void core_window_turn(struct core_shard *s, uint32_t node, double now);
/* Measures the node; only its owner may.  Returns whether the values stay so without events. */
bool core_measure(struct core_shard *s, uint32_t node, double now);
/* Adds what a task still does, LEFT, to the work that N tells, as rules_view_charge counts it in
 * wall rates. */
void core_view_share(struct rules_node *n, const struct rules_request *left, double reference_mips);
/* Brings NODE, if it is the shard's, up to NOW where it tells the work that its tasks have left. */
void core_view_age(struct core_shard *s, uint32_t node, double now);
/* Describes NODE of any shard into LOOK, without tasks that were sent at SENT_BEFORE or later. */
int core_describe(const struct core *c, uint32_t node, double now, double sent_before,
		  struct core_look *look);
int core_set(struct core_shard *s, uint32_t node, double now, double sent_before);
/* Period 0: sets the nodes that have changed. */
int core_view_refresh(struct core_shard *s, double now);
/* Take a snapshot: each shard sets its own changed nodes, then copies those of the others. */
int core_snapshot_own(struct core_shard *s, double now);
int core_snapshot_others(struct core_shard *s);
void core_touch(struct core_shard *s, uint32_t node);
void core_mark_dirty(struct core_shard *s, uint32_t node);
/* The I/O, memory and communication load of a look (MODEL 1.2). */
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
/* Sends a message of KB from a task's node to another for JOB; 0, -ENOMEM. */
int core_flow_add(struct core_shard *s, uint32_t job, uint32_t from, uint32_t to, double kb,
		  double now);
/* Ends the flows that are due at NOW. */
void core_flows_step(struct core_shard *s, double now);
size_t core_flows_bytes(const struct core_flows *f);
/* Updates rates and end times of flows whose ports changed at NOW. */
void core_flows_settle(struct core_shard *s, double now);

/* --- core_control.c: feedback ------------------------------------------------------------ */
int core_control_init(struct core *c);
void core_control_done(struct core_shard *s, uint32_t node, double slowdown, double now);
void core_control_free(struct core *c);

/* --- core_result.c: results -------------------------------------------------------------- */
void core_complete(struct core_shard *s, uint32_t job, double now);
int core_completions_new(struct core_shard *s);
void core_completions_free(struct core_completions *k);
/* Reports the completions before NOW in order. */
void core_completions_tell(struct core_shard *s, double now);
void core_sample_partial(struct core_shard *s);
int core_sample_merge(struct core *c);
int core_result(struct core *c);
size_t core_bytes(const struct core *c);

/* --- core_alone.c -------------------------------------------------------------------------- */
/* Like sim_alone_ms, for a job whose fields are scaled already. */
double core_alone_ms(const struct sim_job *job, const struct sim_machine *home,
		     const struct sim_params *p, double reference_mips);
void core_scale(struct sim_job *job, const struct sim_params *p);

#endif
