/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A process's load = folded (ended threads, writeback charged to it)
 *                  + sum over its live threads since their last fold
 * The same holds for a job's. A thread that folds in the middle of a reading is missing from
 * that reading. Totals never go back: each field keeps its highest value until the fold arrives.
 *
 * Process states: LIVE --(last thread exits)--> EXITED --(age or number)--> forgotten.
 */
#include "user/monitor/monitor_fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct counters) == sizeof(struct iocom_load), "same fields, same order");
_Static_assert(offsetof(struct counters, major_faults) ==
			       offsetof(struct iocom_load, major_faults) &&
		       offsetof(struct counters, cpu_ns) == offsetof(struct iocom_load, cpu_ns),
	       "same fields, same order");

#define NONE UINT32_MAX

struct process {
	struct process_key key;
	uint64_t cgroup_id;
	uint64_t seen_cgroup; /* cgroup in which a reading last saw it alive; 0: none */
	struct iocom_load folded;
	struct iocom_load live; /* counts of live threads, as of reading `seen` */
	struct iocom_load last; /* last reported */
	uint64_t rss_bytes;
	uint64_t exited_s;
	uint32_t uid;
	uint32_t next;	  /* next in the bucket or the free list */
	uint32_t newer;	  /* next in the queue of the exited */
	uint32_t seen;	  /* last reading that saw one of its threads */
	uint32_t changed; /* last reading that brought folded I/O */
	bool known;	  /* comm, uid, cgroup are valid */
	bool exited;
	bool reported_exit;
	char comm[16];
};

struct job {
	uint64_t cgroup_id;
	struct iocom_load folded;
	struct iocom_load live;
	struct iocom_load last;
	struct iocom_disk_time disk, disk_delta;
	uint64_t rss_bytes;  /* with file_pages */
	uint64_t file_pages; /* the most that one of its processes has of files */
	uint32_t tasks;
	uint32_t next;
	uint32_t seen;
	uint32_t used; /* last reading with something new */
};

/* A pool of entries with a hash over it. Entries do not move between fold_begin and fold_end. */
struct table {
	void *entries;
	size_t size; /* size of one entry */
	uint32_t capacity;
	uint32_t used; /* high-water mark */
	uint32_t free; /* list of free entries */
	uint32_t count;
	uint32_t *buckets;
	uint32_t nbuckets; /* a power of two */
};

struct fold {
	struct table processes;
	struct table jobs;
	uint32_t oldest, newest; /* queue of the exited */
	uint32_t nexited, exited_max, jobs_max;
	uint32_t reading;
	uint64_t now_s;
	long page_size;
	struct iocom_task *tasks;
	size_t tasks_capacity;
	struct iocom_job_load *job_loads;
	size_t jobs_capacity;
	struct fold_result result;
};

static uint64_t hash64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ (x >> 32);
}

static struct process *process_at(const struct fold *fold, uint32_t i)
{
	return (struct process *)fold->processes.entries + i;
}

static struct job *job_at(const struct fold *fold, uint32_t i)
{
	return (struct job *)fold->jobs.entries + i;
}

static uint64_t process_hash(const struct process_key *key)
{
	return hash64(key->start ^ ((uint64_t)key->tgid << 40));
}

static const struct iocom_load *as_load(const struct counters *counters)
{
	return (const struct iocom_load *)(const void *)counters;
}

/* Returns true if there is more than the CPU time of a process's last moments. */
static bool does_io(const struct counters *c)
{
	return c->explicit_read_bytes || c->explicit_write_bytes || c->implicit_bytes ||
	       c->sent_bytes || c->received_bytes || c->local_bytes;
}

/* Raises each field of LAST to NOW's value, and puts the differences into DELTA. */
static void monitor_fold_advance(struct iocom_load *last, const struct iocom_load *now,
				 struct iocom_load *delta)
{
	const uint64_t *new = (const uint64_t *)now;
	uint64_t *old = (uint64_t *)last, *diff = (uint64_t *)delta;

	for (size_t i = 0; i < COUNTERS; i++) {
		diff[i] = new[i] > old[i] ? new[i] - old[i] : 0;
		old[i] += diff[i];
	}
}

void fold_at_least_zero(struct iocom_load *load)
{
	uint64_t *field = (uint64_t *)load;

	for (size_t i = 0; i < COUNTERS; i++)
		if (field[i] > INT64_MAX)
			field[i] = 0;
}

static bool is_zero(const struct iocom_load *load)
{
	const uint64_t *field = (const uint64_t *)load;

	for (size_t i = 0; i < COUNTERS; i++)
		if (field[i])
			return false;
	return true;
}

static int monitor_fold_table_init(struct table *table, size_t size, uint32_t capacity)
{
	memset(table, 0, sizeof(*table));
	table->size = size;
	table->capacity = capacity;
	table->nbuckets = capacity;
	table->free = NONE;
	table->entries = malloc(size * capacity);
	table->buckets = malloc(sizeof(uint32_t) * capacity);
	if (!table->entries || !table->buckets)
		return -ENOMEM;
	memset(table->buckets, 0xff, sizeof(uint32_t) * capacity);
	return 0;
}

static void table_deinit(struct table *table)
{
	free(table->entries);
	free(table->buckets);
}

static int table_grow(struct table *table)
{
	void *entries = realloc(table->entries, table->size * table->capacity * 2);

	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	table->capacity *= 2;
	return 0;
}

/* Returns an unused, zeroed entry's index, or NONE if there is no memory. */
static uint32_t table_take(struct table *table, size_t next_offset)
{
	uint32_t i = table->free;
	char *entry;

	if (i != NONE) {
		entry = (char *)table->entries + i * table->size;
		memcpy(&table->free, entry + next_offset, sizeof(uint32_t));
	} else {
		if (table->used == table->capacity && table_grow(table))
			return NONE;
		i = table->used++;
		entry = (char *)table->entries + i * table->size;
	}
	memset(entry, 0, table->size);
	table->count++;
	return i;
}

static void rehash_processes(struct fold *fold)
{
	struct table *t = &fold->processes;
	uint32_t n = t->nbuckets * 2;
	uint32_t *buckets;

	if (t->count < t->nbuckets * 2)
		return;
	buckets = malloc(sizeof(*buckets) * n);
	if (!buckets)
		return; /* slower, but not wrong */
	memset(buckets, 0xff, sizeof(*buckets) * n);
	for (uint32_t b = 0; b < t->nbuckets; b++) {
		for (uint32_t i = t->buckets[b], next; i != NONE; i = next) {
			struct process *p = process_at(fold, i);
			uint32_t *to = &buckets[process_hash(&p->key) & (n - 1)];

			next = p->next;
			p->next = *to;
			*to = i;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->nbuckets = n;
}

static struct process *process_get(struct fold *fold, const struct process_key *key)
{
	struct table *t = &fold->processes;
	uint32_t *bucket = &t->buckets[process_hash(key) & (t->nbuckets - 1)];
	struct process *p;
	uint32_t i;

	for (i = *bucket; i != NONE; i = p->next) {
		p = process_at(fold, i);
		if (p->key.start == key->start && p->key.tgid == key->tgid)
			return p;
	}
	i = table_take(t, offsetof(struct process, next));
	if (i == NONE)
		return NULL;
	p = process_at(fold, i);
	p->key = *key;
	p->newer = NONE;
	p->seen = fold->reading; /* so that its absence counts from here on */
	p->uid = (uint32_t)-1;
	strcpy(p->comm, "?");
	p->next = *bucket;
	*bucket = i;
	return p;
}

static void process_forget(struct fold *fold, uint32_t i)
{
	struct table *t = &fold->processes;
	struct process *p = process_at(fold, i);
	uint32_t *link = &t->buckets[process_hash(&p->key) & (t->nbuckets - 1)];

	while (*link != i)
		link = &process_at(fold, *link)->next;
	*link = p->next;
	memset(p, 0, sizeof(*p));
	p->next = t->free;
	t->free = i;
	t->count--;
}

static void process_exit(struct fold *fold, struct process *p)
{
	uint32_t i = (uint32_t)(p - process_at(fold, 0));

	if (p->exited)
		return;
	p->exited = true;
	p->exited_s = fold->now_s;
	p->newer = NONE;
	if (fold->newest == NONE)
		fold->oldest = i;
	else
		process_at(fold, fold->newest)->newer = i;
	fold->newest = i;
	fold->nexited++;
}

static void forget_exited(struct fold *fold)
{
	while (fold->oldest != NONE) {
		struct process *p = process_at(fold, fold->oldest);
		uint32_t newer = p->newer;
		bool full = fold->nexited > fold->exited_max;

		if (!full && fold->now_s - p->exited_s < FOLD_EXITED_S)
			return;
		fold->result.evicted_processes += full;
		process_forget(fold, fold->oldest);
		fold->oldest = newer;
		fold->nexited--;
		if (newer == NONE)
			fold->newest = NONE;
	}
}

static struct job *job_get(struct fold *fold, uint64_t cgroup_id)
{
	struct table *t = &fold->jobs;
	uint32_t *bucket = &t->buckets[hash64(cgroup_id) & (t->nbuckets - 1)];
	struct job *job;
	uint32_t i;

	for (i = *bucket; i != NONE; i = job->next) {
		job = job_at(fold, i);
		if (job->cgroup_id == cgroup_id)
			return job;
	}
	i = table_take(t, offsetof(struct job, next));
	if (i == NONE)
		return NULL;
	job = job_at(fold, i);
	job->cgroup_id = cgroup_id;
	job->used = fold->reading;
	job->next = *bucket;
	*bucket = i;
	return job;
}

static void job_forget(struct fold *fold, uint32_t i)
{
	struct table *t = &fold->jobs;
	struct job *job = job_at(fold, i);
	uint32_t *link = &t->buckets[hash64(job->cgroup_id) & (t->nbuckets - 1)];

	while (*link != i)
		link = &job_at(fold, *link)->next;
	*link = job->next;
	memset(job, 0, sizeof(*job));
	job->next = t->free;
	t->free = i;
	t->count--;
	fold->result.evicted_jobs++;
}

/* If there are too many jobs, forgets the half that has been idle longest. */
static void forget_jobs(struct fold *fold)
{
	uint32_t oldest = fold->reading, i;

	if (fold->jobs.count <= fold->jobs_max)
		return;
	for (i = 0; i < fold->jobs.used; i++)
		if (job_at(fold, i)->cgroup_id && job_at(fold, i)->used < oldest)
			oldest = job_at(fold, i)->used;
	for (i = 0; i < fold->jobs.used; i++) {
		struct job *job = job_at(fold, i);

		if (job->cgroup_id && !job->tasks &&
		    job->used <= oldest + (fold->reading - oldest) / 2)
			job_forget(fold, i);
	}
}

struct fold *fold_new(uint32_t exited_max, uint32_t jobs_max)
{
	struct fold *fold = calloc(1, sizeof(*fold));

	if (!fold)
		return NULL;
	fold->exited_max = exited_max ? exited_max : FOLD_EXITED_MAX;
	fold->jobs_max = jobs_max ? jobs_max : FOLD_JOBS_MAX;
	fold->oldest = fold->newest = NONE;
	fold->page_size = sysconf(_SC_PAGESIZE);
	if (monitor_fold_table_init(&fold->processes, sizeof(struct process), 1024) ||
	    monitor_fold_table_init(&fold->jobs, sizeof(struct job), 256)) {
		fold_free(fold);
		return NULL;
	}
	return fold;
}

void fold_free(struct fold *fold)
{
	if (!fold)
		return;
	table_deinit(&fold->processes);
	table_deinit(&fold->jobs);
	free(fold->tasks);
	free(fold->job_loads);
	free(fold);
}

void fold_begin(struct fold *fold, uint64_t now_s)
{
	fold->reading++;
	fold->now_s = now_s;
	fold->result.runnable = 0;
	forget_exited(fold);
	forget_jobs(fold);
	rehash_processes(fold);
}

int fold_job(struct fold *fold, uint64_t cgroup_id, const struct counters *what)
{
	struct job *job = job_get(fold, cgroup_id);

	if (!job)
		return -ENOMEM;
	iocom_load_add(&job->folded, as_load(what));
	job->used = fold->reading;
	return 0;
}

int fold_disk_time(struct fold *fold, uint64_t cgroup_id, const struct iocom_disk_time *time)
{
	struct job *job = job_get(fold, cgroup_id);

	if (!job)
		return -ENOMEM;
	iocom_disk_time_add(&job->disk, time);
	iocom_disk_time_add(&job->disk_delta, time);
	job->used = fold->reading;
	return 0;
}

/*
 * Counts what a process did, uncounted, before it moved. Its job is the cgroup in which an
 * earlier reading saw it, even if its end is known by now. If no reading saw it, its new cgroup
 * counts.
 */
static int fold_moved(struct fold *fold, const struct process *p, const struct late_value *value)
{
	return fold_job(fold, p->seen_cgroup ? p->seen_cgroup : value->cgid, &value->counters);
}

int fold_late(struct fold *fold, const struct process_key *key, const struct late_value *value)
{
	struct process_key whole = {.start = key->start, .tgid = key->tgid};
	struct process *p = process_get(fold, &whole);

	if (!p)
		return -ENOMEM;
	if (key->part == LATE_MOVED && fold_moved(fold, p, value))
		return -ENOMEM;
	iocom_load_add(&p->folded, as_load(&value->counters));
	if (does_io(&value->counters))
		p->changed = fold->reading;
	if (value->exited) {
		p->known = true;
		p->uid = value->uid;
		p->cgroup_id = value->cgid;
		memcpy(p->comm, value->comm, sizeof(p->comm));
		process_exit(fold, p);
	}
	return 0;
}

/* Programs and libraries are mostly the same pages in all processes of a job: they count once. */
static void job_take_memory(struct job *job, const struct leader_record *leader, uint64_t page)
{
	uint64_t files =
		leader->file_pages < leader->rss_pages ? leader->file_pages : leader->rss_pages;
	uint64_t more = files > job->file_pages ? files - job->file_pages : 0;

	job->tasks++;
	job->file_pages += more;
	job->rss_bytes += (leader->rss_pages - files + more) * page;
}

static int run_into_job(struct fold *fold, const struct run_record *run,
			const struct leader_record *leader, const struct iocom_load *load)
{
	struct job *job = job_get(fold, run->cgid);

	if (!job)
		return -ENOMEM;
	if (job->seen != fold->reading) {
		job->seen = fold->reading;
		memset(&job->live, 0, sizeof(job->live));
		job->tasks = 0;
		job->rss_bytes = 0;
		job->file_pages = 0;
	}
	iocom_load_add(&job->live, load);
	if (leader)
		job_take_memory(job, leader, (uint64_t)fold->page_size);
	return 0;
}

static int run_into_process(struct fold *fold, const struct run_record *run,
			    const struct leader_record *leader, const struct iocom_load *load)
{
	struct process_key key = {.start = run->start, .tgid = run->tgid};
	struct process *p = process_get(fold, &key);

	if (!p)
		return -ENOMEM;
	if (p->seen != fold->reading) {
		p->seen = fold->reading;
		memset(&p->live, 0, sizeof(p->live));
	}
	iocom_load_add(&p->live, load);
	if (leader) {
		p->known = true;
		p->uid = leader->uid;
		p->cgroup_id = p->seen_cgroup = run->cgid;
		p->rss_bytes = leader->rss_pages * (uint64_t)fold->page_size;
		memcpy(p->comm, leader->comm, sizeof(p->comm));
	}
	return 0;
}

int fold_run(struct fold *fold, const struct run_record *run, const struct leader_record *leader,
	     const struct counters *counters)
{
	struct iocom_load load = {0};
	int rc;

	if (counters)
		load = *as_load(counters);
	load.cpu_ns = run->cpu_ns;
	load.run_wait_ns = run->run_wait_ns;
	load.minor_faults = run->minor_faults;
	load.major_faults = run->major_faults;
	fold->result.runnable += run->runnable;
	rc = run_into_job(fold, run, leader, &load);
	return rc ? rc : run_into_process(fold, run, leader, &load);
}

static void report_process(struct fold *fold, struct process *p)
{
	struct iocom_task *task = &fold->tasks[fold->result.ntasks];
	struct iocom_load now = p->folded;

	if (p->seen == fold->reading && !p->exited)
		iocom_load_add(&now, &p->live);
	fold_at_least_zero(&now);
	memset(task, 0, sizeof(*task));
	monitor_fold_advance(&p->last, &now, &task->delta);
	task->pid = (pid_t)p->key.tgid;
	task->uid = p->uid;
	task->start_ns = p->key.start;
	task->cgroup_id = p->cgroup_id;
	memcpy(task->comm, p->comm, sizeof(task->comm));
	task->comm[sizeof(task->comm) - 1] = '\0';
	task->rss_bytes = p->exited ? 0 : p->rss_bytes;
	task->exited = p->exited;
	task->load = p->last;
	fold->result.ntasks++;
	fold->result.live_tasks += !p->exited;
	fold->result.io_tasks += task->delta.explicit_ops || task->delta.implicit_ops ||
				 task->delta.explicit_write_bytes;
}

static int report_processes(struct fold *fold)
{
	struct table *t = &fold->processes;

	if (fold->tasks_capacity < t->used) {
		free(fold->tasks);
		fold->tasks_capacity = t->used + t->used / 4;
		fold->tasks = malloc(sizeof(*fold->tasks) * fold->tasks_capacity);
		if (!fold->tasks) {
			fold->tasks_capacity = 0;
			return -ENOMEM;
		}
	}
	for (uint32_t i = 0; i < t->used; i++) {
		struct process *p = process_at(fold, i);

		if (!p->key.tgid)
			continue;
		if (!p->exited && fold->reading - p->seen > FOLD_MISSING_MAX)
			process_exit(fold, p);
		if (p->exited ? p->reported_exit && p->changed != fold->reading : !p->known)
			continue;
		report_process(fold, p);
		p->reported_exit = p->exited;
	}
	return 0;
}

static int report_jobs(struct fold *fold)
{
	struct table *t = &fold->jobs;

	if (fold->jobs_capacity < t->used) {
		free(fold->job_loads);
		fold->jobs_capacity = t->capacity;
		fold->job_loads = malloc(sizeof(*fold->job_loads) * fold->jobs_capacity);
		if (!fold->job_loads) {
			fold->jobs_capacity = 0;
			return -ENOMEM;
		}
	}
	for (uint32_t i = 0; i < t->used; i++) {
		struct job *job = job_at(fold, i);
		struct iocom_job_load *out = &fold->job_loads[fold->result.njobs];
		struct iocom_load now = job->folded;

		if (!job->cgroup_id)
			continue;
		if (job->seen == fold->reading)
			iocom_load_add(&now, &job->live);
		else
			job->tasks = 0, job->rss_bytes = 0;
		fold_at_least_zero(&now);
		memset(out, 0, sizeof(*out));
		monitor_fold_advance(&job->last, &now, &out->delta);
		if (job->tasks || !is_zero(&out->delta))
			job->used = fold->reading;
		out->cgroup_id = job->cgroup_id;
		out->tasks = job->tasks;
		out->rss_bytes = job->rss_bytes;
		out->load = job->last;
		out->disk = job->disk;
		out->disk_delta = job->disk_delta;
		memset(&job->disk_delta, 0, sizeof(job->disk_delta));
		fold->result.njobs++;
	}
	return 0;
}

int fold_end(struct fold *fold, struct fold_result *result)
{
	int rc;

	fold->result.ntasks = fold->result.njobs = 0;
	fold->result.live_tasks = fold->result.io_tasks = 0;
	rc = report_processes(fold);
	if (!rc)
		rc = report_jobs(fold);
	fold->result.tasks = fold->tasks;
	fold->result.jobs = fold->job_loads;
	*result = fold->result;
	return rc;
}
