/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A monitor reading as a JSON document; see sample_json.h.
 *
 * Tasks and jobs are ordered by their largest share of a resource:
 *
 *   cpu      cpu time / (elapsed * cores)
 *   disk     (explicit read + write + implicit bytes) / (elapsed * capacity)
 *   network  (sent + received bytes) / (elapsed * capacity)
 *
 * Capacity of disk is what the caller configured or learned, else what the
 * disk that worked most has shown so far: bytes per time of service.
 */
#include "sample_json.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISK_MB_PER_S_UNKNOWN	 100.0 /* nothing configured, and no disk has served anything */
#define NETWORK_MB_PER_S_UNKNOWN 125.0
#define NESTING_MAX		 64
#define NAME_BYTES		 4096

/* Every field of struct iocom_load but the CPU time, which changes its unit. */
#define LOAD_FIELDS(F)                                                                             \
	F(explicit_read_bytes)                                                                     \
	F(explicit_write_bytes)                                                                    \
	F(explicit_ops)                                                                            \
	F(implicit_bytes)                                                                          \
	F(implicit_ops)                                                                            \
	F(major_faults)                                                                            \
	F(minor_faults)                                                                            \
	F(sent_bytes)                                                                              \
	F(received_bytes)                                                                          \
	F(sent_messages)                                                                           \
	F(received_messages)                                                                       \
	F(local_bytes)

struct load_field {
	const char *name, *rate;
	size_t offset;
};

#define LOAD_FIELD(f) {#f, #f "_per_s", offsetof(struct iocom_load, f)},
static const struct load_field load_fields[] = {LOAD_FIELDS(LOAD_FIELD)};
#define NLOAD_FIELDS (sizeof(load_fields) / sizeof(load_fields[0]))

struct share {
	double value;
	const char *resource; /* "cpu", "disk", "network" */
};

struct task_ref {
	const struct iocom_task *task;
	struct share share;
	uint64_t owner; /* id of the cgroup that names its job */
};

struct job_ref {
	struct iocom_job_load sum; /* nested cgroups of a job folded in */
	struct share share;
	uint32_t mine, others; /* tasks of this reading, by user */
};

struct build {
	const struct monitor_sample *sample;
	const struct sample_json_options *opt;
	struct sample_names *names;
	double seconds;
	double disk_bytes_per_s, network_bytes_per_s;
	struct task_ref *tasks;
	struct job_ref *jobs;
	size_t njobs;
};

/* Sets a member; takes VALUE.  0, or -1 when memory is out (VALUE may be NULL). */
static int put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new_nocheck(object, key, value);
}

static json_t *integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* Thousandths are enough for every unit here, and print short. */
static json_t *real(double value)
{
	return json_real(isfinite(value) ? round(value * 1000.0) / 1000.0 : 0.0);
}

/* How many bytes form a valid character of UTF-8 at S; 0 when none do. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	static const struct {
		unsigned char mask, lead, least, most; /* bounds of the second byte */
	} shapes[] = {
		{0xff, 0xe0, 0xa0, 0xbf}, {0xff, 0xed, 0x80, 0x9f}, {0xff, 0xf0, 0x90, 0xbf},
		{0xff, 0xf4, 0x80, 0x8f}, {0xe0, 0xc0, 0x80, 0xbf}, {0xf0, 0xe0, 0x80, 0xbf},
	};
	size_t need;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	need = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n < need)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if ((s[0] & shapes[i].mask) == shapes[i].lead)
			return s[1] >= shapes[i].least && s[1] <= shapes[i].most ? need : 0;
	return need; /* F1..F3: any second byte */
}

void sample_json_utf8(char *out, size_t size, const char *text, size_t length)
{
	size_t n = strnlen(text, length), i = 0, o = 0;

	while (i < n) {
		size_t good = utf8_length((const unsigned char *)text + i, n - i);
		const char *from = good ? text + i : "\xef\xbf\xbd";
		size_t put_bytes = good ? good : 3;

		if (o + put_bytes >= size)
			break;
		memcpy(out + o, from, put_bytes);
		o += put_bytes;
		i += good ? good : 1;
	}
	out[o] = 0;
}

static json_t *text(const char *s)
{
	char clean[NAME_BYTES];

	sample_json_utf8(clean, sizeof(clean), s, NAME_BYTES);
	return json_string_nocheck(clean);
}

/* The job's name, the cgroup's path, or null for the root and the nameless kernel. */
static json_t *job_text(struct build *b, uint64_t owner)
{
	const struct sample_json_options *o = b->opt;
	const char *name = o->job_name ? o->job_name(o->job_name_arg, owner) : NULL;
	char number[32];

	if (name)
		return text(name);
	if (b->names)
		name = sample_names_path(b->names, owner, NULL);
	if (!owner || (name && !strcmp(name, "/")))
		return json_null();
	if (name)
		return text(name);
	snprintf(number, sizeof(number), "cgroup:%llu", (unsigned long long)owner);
	return json_string(number);
}

/* The nearest cgroup at or above ID that is a job of iocom, else ID itself. */
static uint64_t job_owner(struct build *b, uint64_t id)
{
	const struct sample_json_options *o = b->opt;
	uint64_t at = id;

	if (!o->job_name)
		return id;
	for (unsigned depth = 0; at && depth < NESTING_MAX; depth++) {
		if (o->job_name(o->job_name_arg, at))
			return at;
		if (!b->names || !sample_names_path(b->names, at, &at))
			break;
	}
	return id;
}

static double capacity_of_disk(const struct monitor_sample *sample)
{
	const struct iocom_disk *busiest = NULL;

	for (size_t i = 0; i < sample->ndisks; i++) {
		const struct iocom_disk *d = &sample->disks[i];

		if (d->service_sum_ns && (!busiest || d->service_sum_ns > busiest->service_sum_ns))
			busiest = d;
	}
	if (!busiest || busiest->read_bytes + busiest->write_bytes == 0)
		return DISK_MB_PER_S_UNKNOWN * 1e6;
	return (double)(busiest->read_bytes + busiest->write_bytes) * 1e9 /
	       (double)busiest->service_sum_ns;
}

static struct share share_of(const struct build *b, const struct iocom_load *delta)
{
	double disk = (double)delta->explicit_read_bytes + (double)delta->explicit_write_bytes +
		      (double)delta->implicit_bytes;
	double network = (double)delta->sent_bytes + (double)delta->received_bytes;
	struct share share = {0, "cpu"};

	if (b->seconds <= 0)
		return share;
	share.value =
		(double)delta->cpu_ns / 1e9 / b->seconds / (b->opt->cores ? b->opt->cores : 1);
	disk /= b->seconds * b->disk_bytes_per_s;
	network /= b->seconds * b->network_bytes_per_s;
	if (disk > share.value)
		share = (struct share){disk, "disk"};
	if (network > share.value)
		share = (struct share){network, "network"};
	return share;
}

/* All 13 numbers and their rates. */
static int put_load(const struct build *b, json_t *object, const struct iocom_load *load,
		    const struct iocom_load *delta)
{
	double per = b->seconds > 0 ? 1 / b->seconds : 0;
	int rc = 0;

	for (size_t i = 0; load && i < NLOAD_FIELDS; i++) {
		const char *at = (const char *)load + load_fields[i].offset;
		uint64_t value;

		memcpy(&value, at, sizeof(value));
		rc |= put(object, load_fields[i].name, integer(value));
	}
	if (load)
		rc |= put(object, "cpu_ms", real((double)load->cpu_ns / 1e6));
	for (size_t i = 0; i < NLOAD_FIELDS; i++) {
		const char *at = (const char *)delta + load_fields[i].offset;
		uint64_t value;

		memcpy(&value, at, sizeof(value));
		rc |= put(object, load_fields[i].rate, real((double)value * per));
	}
	rc |= put(object, "cpu_ms_per_s", real((double)delta->cpu_ns / 1e6 * per));
	return rc;
}

static int put_share(json_t *object, const struct share *share)
{
	return put(object, "share", json_real(round(share->value * 1e6) / 1e6)) |
	       put(object, "share_of", json_string(share->resource));
}

static json_t *task_json(struct build *b, const struct task_ref *ref)
{
	const struct iocom_task *t = ref->task;
	json_t *object = json_object();
	char comm[3 * sizeof(t->comm) + 1];
	int rc;

	sample_json_utf8(comm, sizeof(comm), t->comm, sizeof(t->comm));
	rc = put(object, "pid", json_integer(t->pid));
	rc |= put(object, "comm", json_string_nocheck(comm));
	rc |= put(object, "uid", json_integer(t->uid));
	rc |= put(object, "job", job_text(b, ref->owner));
	if (t->exited)
		rc |= put(object, "exited", json_true());
	rc |= put(object, "rss_bytes", integer(t->rss_bytes));
	rc |= put_load(b, object, &t->load, &t->delta);
	rc |= put_share(object, &ref->share);
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *job_json(struct build *b, const struct job_ref *ref)
{
	json_t *object = json_object();
	int rc = put(object, "job", job_text(b, ref->sum.cgroup_id));

	rc |= put(object, "cgroup_id", integer(ref->sum.cgroup_id));
	rc |= put(object, "tasks", json_integer(ref->sum.tasks));
	rc |= put(object, "rss_bytes", integer(ref->sum.rss_bytes));
	rc |= put_load(b, object, &ref->sum.load, &ref->sum.delta);
	rc |= put_share(object, &ref->share);
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* What was there before, or NULL when rates of this disk are not known. */
static const struct iocom_disk *disk_before(const struct build *b, const struct iocom_disk *disk)
{
	static const struct iocom_disk none;
	const struct sample_json_options *o = b->opt;
	uint64_t counting = b->sample->time_ns - b->sample->since_ns;

	for (size_t i = 0; i < o->ndisks_before; i++)
		if (o->disks_before[i].major == disk->major &&
		    o->disks_before[i].minor == disk->minor)
			return &o->disks_before[i];
	if (o->disks_before || (double)b->sample->elapsed_ns * 1.05 >= (double)counting)
		return &none;
	return NULL;
}

static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

static int put_disk_rates(const struct build *b, json_t *object, const struct iocom_disk *d)
{
	const struct iocom_disk *was = b->seconds > 0 ? disk_before(b, d) : NULL;
	double requests, busy_ms;
	int rc = 0;

	if (!was) {
		rc |= put(object, "requests_per_s", json_null());
		rc |= put(object, "read_bytes_per_s", json_null());
		rc |= put(object, "write_bytes_per_s", json_null());
		rc |= put(object, "utilisation", json_null());
		return rc | put(object, "service_ms", json_null());
	}
	requests = since(d->requests, was->requests);
	busy_ms = since(d->service_sum_ns, was->service_sum_ns) / 1e6;
	rc |= put(object, "requests_per_s", real(requests / b->seconds));
	rc |= put(object, "read_bytes_per_s",
		  real(since(d->read_bytes, was->read_bytes) / b->seconds));
	rc |= put(object, "write_bytes_per_s",
		  real(since(d->write_bytes, was->write_bytes) / b->seconds));
	rc |= put(object, "utilisation", real(busy_ms / 1e3 / b->seconds));
	return rc |
	       put(object, "service_ms", requests > 0 ? real(busy_ms / requests) : json_null());
}

static json_t *disk_json(const struct build *b, const struct iocom_disk *d)
{
	json_t *object = json_object();
	int rc = put(object, "name", text(d->name));

	rc |= put(object, "major", json_integer(d->major));
	rc |= put(object, "minor", json_integer(d->minor));
	rc |= put(object, "requests", integer(d->requests));
	rc |= put(object, "read_bytes", integer(d->read_bytes));
	rc |= put(object, "write_bytes", integer(d->write_bytes));
	rc |= put(object, "service_sum_ns", integer(d->service_sum_ns));
	rc |= put(object, "service_sum2_ms2", real(d->service_sum2_ms2));
	rc |= put(object, "task_bytes", integer(d->task_bytes));
	rc |= put(object, "stacked_bytes", integer(d->stacked_bytes));
	rc |= put(object, "unattributed_bytes", integer(d->unattributed_bytes));
	rc |= put(object, "foreign_bytes", integer(d->foreign_bytes));
	rc |= put(object, "kernel_bytes", integer(d->kernel_bytes));
	rc |= put(object, "residual_bytes", json_integer(d->residual_bytes));
	rc |= put_disk_rates(b, object, d);
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int order(double a, double b, uint64_t ida, uint64_t idb)
{
	if (a != b)
		return a > b ? -1 : 1;
	return ida < idb ? -1 : ida > idb;
}

static int tasks_by_share(const void *a, const void *b)
{
	const struct task_ref *x = a, *y = b;

	return order(x->share.value, y->share.value, (uint64_t)x->task->pid,
		     (uint64_t)y->task->pid);
}

static int jobs_by_share(const void *a, const void *b)
{
	const struct job_ref *x = a, *y = b;

	return order(x->share.value, y->share.value, x->sum.cgroup_id, y->sum.cgroup_id);
}

static int jobs_by_id(const void *a, const void *b)
{
	const struct job_ref *x = a, *y = b;

	return x->sum.cgroup_id < y->sum.cgroup_id ? -1 : x->sum.cgroup_id > y->sum.cgroup_id;
}

/* Jobs in order of id, the nested cgroups of one job summed up. */
static void collect_jobs(struct build *b)
{
	const struct monitor_sample *s = b->sample;
	size_t n = 0;

	for (size_t i = 0; i < s->njobs; i++) {
		b->jobs[i].sum = s->jobs[i];
		b->jobs[i].sum.cgroup_id = job_owner(b, s->jobs[i].cgroup_id);
	}
	if (s->njobs)
		qsort(b->jobs, s->njobs, sizeof(*b->jobs), jobs_by_id);
	for (size_t i = 0; i < s->njobs; i++) {
		struct iocom_job_load *from = &b->jobs[i].sum, *into;

		if (!n || b->jobs[n - 1].sum.cgroup_id != from->cgroup_id) {
			b->jobs[n++] = b->jobs[i];
			continue;
		}
		into = &b->jobs[n - 1].sum;
		into->tasks += from->tasks;
		into->rss_bytes += from->rss_bytes;
		iocom_load_add(&into->load, &from->load);
		iocom_load_add(&into->delta, &from->delta);
	}
	b->njobs = n;
	for (size_t i = 0; i < n; i++)
		b->jobs[i].share = share_of(b, &b->jobs[i].sum.delta);
}

static void collect_tasks(struct build *b)
{
	const struct monitor_sample *s = b->sample;

	for (size_t i = 0; i < s->ntasks; i++) {
		const struct iocom_task *t = &s->tasks[i];
		uint64_t owner = job_owner(b, t->cgroup_id);
		struct job_ref key = {.sum.cgroup_id = owner}, *job;

		b->tasks[i] = (struct task_ref){t, share_of(b, &t->delta), owner};
		job = b->njobs ? bsearch(&key, b->jobs, b->njobs, sizeof(key), jobs_by_id) : NULL;
		if (job && t->uid == b->opt->uid)
			job->mine++;
		else if (job)
			job->others++;
	}
	if (s->ntasks)
		qsort(b->tasks, s->ntasks, sizeof(*b->tasks), tasks_by_share);
	if (b->njobs)
		qsort(b->jobs, b->njobs, sizeof(*b->jobs), jobs_by_share);
}

static bool job_shown(const struct build *b, const struct job_ref *job)
{
	const struct sample_json_options *o = b->opt;
	uid_t uid;

	if (!o->own_only)
		return true;
	if (o->job_uid && !o->job_uid(o->job_name_arg, job->sum.cgroup_id, &uid))
		return uid == o->uid;
	return job->mine && !job->others;
}

static json_t *tasks_json(struct build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->sample->ntasks; i++) {
		if (b->opt->own_only && b->tasks[i].task->uid != b->opt->uid)
			continue;
		if (json_array_append_new(array, task_json(b, &b->tasks[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *jobs_json(struct build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->njobs; i++) {
		if (!job_shown(b, &b->jobs[i]))
			continue;
		if (json_array_append_new(array, job_json(b, &b->jobs[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *disks_json(const struct build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->sample->ndisks; i++) {
		if (json_array_append_new(array, disk_json(b, &b->sample->disks[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

/* Rates of all tasks together, also those that own_only leaves out. */
static json_t *totals_json(const struct build *b)
{
	struct iocom_load sum = {0};
	json_t *object = json_object();
	int rc;

	for (size_t i = 0; i < b->sample->ntasks; i++)
		iocom_load_add(&sum, &b->sample->tasks[i].delta);
	rc = put(object, "tasks", json_integer(b->sample->live_tasks));
	rc |= put(object, "cores", json_integer(b->opt->cores));
	rc |= put(object, "run_queue", real(b->sample->run_queue));
	rc |= put_load(b, object, NULL, &sum);
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *unattributed_json(const struct monitor_sample *s)
{
	json_t *object = json_object();
	int rc = put(object, "metadata_bytes", integer(s->unattributed.metadata_bytes));

	rc |= put(object, "writeback_bytes", integer(s->unattributed.writeback_bytes));
	rc |= put(object, "other_bytes", integer(s->unattributed.other_bytes));
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* With HELP: the sentences of those drops that happened. */
static json_t *drops_json(const struct monitor_sample *s, bool help)
{
	json_t *object = json_object();
	int rc = object ? 0 : -1;

	for (size_t i = 0; i < s->ndrops; i++) {
		const struct monitor_drop *d = &s->drops[i];

		if (!help)
			rc |= put(object, d->name, integer(d->count));
		else if (d->count && d->help)
			rc |= put(object, d->name, text(d->help));
	}
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *program_json(const struct monitor_program *p)
{
	json_t *object = json_object();
	char name[3 * sizeof(p->name) + 1];
	int rc;

	sample_json_utf8(name, sizeof(name), p->name, sizeof(p->name));
	rc = put(object, "name", json_string_nocheck(name));
	rc |= put(object, "runs", integer(p->runs));
	rc |= put(object, "run_ns", integer(p->run_ns));
	rc |= put(object, "ns_per_run",
		  p->runs && p->run_ns ? real((double)p->run_ns / (double)p->runs) : json_null());
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *cost_json(const struct monitor_sample *s)
{
	json_t *object = json_object(), *programs = json_array();
	int rc = 0;

	for (size_t i = 0; i < s->nprograms; i++)
		rc |= json_array_append_new(programs, program_json(&s->programs[i]));
	rc |= put(object, "programs", programs);
	rc |= put(object, "sweep_ms", real((double)s->sweep_ns / 1e6));
	rc |= put(object, "user_cpu_ms", real((double)s->user_cpu_ns / 1e6));
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *document(struct build *b)
{
	const struct monitor_sample *s = b->sample;
	json_t *doc = json_object();
	int rc = put(doc, "time_ns", integer(s->time_ns));

	rc |= put(doc, "since_ns", integer(s->since_ns));
	rc |= put(doc, "elapsed_ns", integer(s->elapsed_ns));
	rc |= put(doc, "node", text(b->opt->node ? b->opt->node : ""));
	rc |= put(doc, "totals", totals_json(b));
	rc |= put(doc, "tasks", tasks_json(b));
	rc |= put(doc, "jobs", jobs_json(b));
	rc |= put(doc, "disks", disks_json(b));
	rc |= put(doc, "unattributed", unattributed_json(s));
	rc |= put(doc, "drops", drops_json(s, false));
	rc |= put(doc, "drops_help", drops_json(s, true));
	rc |= put(doc, "cost", cost_json(s));
	if (rc) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

json_t *sample_json(const struct monitor_sample *sample, const struct sample_json_options *options)
{
	const struct sample_json_options *o = options;
	struct build b = {.sample = sample, .opt = o, .names = o->names};
	json_t *doc = NULL;

	b.seconds = (double)sample->elapsed_ns / 1e9;
	b.disk_bytes_per_s =
		o->disk_mb_per_s > 0 ? o->disk_mb_per_s * 1e6 : capacity_of_disk(sample);
	b.network_bytes_per_s =
		(o->network_mb_per_s > 0 ? o->network_mb_per_s : NETWORK_MB_PER_S_UNKNOWN) * 1e6;
	b.tasks = calloc(sample->ntasks + 1, sizeof(*b.tasks));
	b.jobs = calloc(sample->njobs + 1, sizeof(*b.jobs));
	if (!b.names && o->cgroup_root)
		b.names = sample_names_new(o->cgroup_root);
	if (b.tasks && b.jobs && (b.names || !o->cgroup_root)) {
		if (b.names)
			sample_names_begin(b.names);
		collect_jobs(&b);
		collect_tasks(&b);
		doc = document(&b);
	}
	free(b.tasks);
	free(b.jobs);
	if (b.names != o->names)
		sample_names_free(b.names);
	return doc;
}
