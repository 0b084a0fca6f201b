/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A page of metrics and its text; see metrics_page.h.  All values are in base units: seconds, bytes
 * (10^6 of them in a megabyte), events.
 */
#include "agent/metrics/metrics_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/metrics/metrics_text.h"

/* --- the copy ----------------------------------------------------------------------- */

/* Copies N elements of SIZE; NULL only when memory is out. */
static void *metrics_page_copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n + 1, size);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

struct metrics_page *metrics_page_new(const struct monitor_sample *sample,
				      const struct metrics_jobs *jobs)
{
	struct metrics_page *page = calloc(1, sizeof(*page));
	struct monitor_sample *s = page ? &page->sample : NULL;

	if (!page)
		return NULL;
	*s = *sample;
	s->tasks = NULL;
	s->jobs = NULL;
	s->remotes = NULL;
	s->ntasks = s->njobs = s->nremotes = 0;
	metrics_jobs_view(jobs, &page->jobs, NULL);
	page->rows = calloc(page->jobs.max + 1, sizeof(*page->rows));
	page->predictions = calloc(PREDICTIONS_MAX, sizeof(*page->predictions));
	s->disks = metrics_page_copy(sample->disks, sample->ndisks, sizeof(*s->disks));
	s->drops = metrics_page_copy(sample->drops, sample->ndrops, sizeof(*s->drops));
	s->programs = metrics_page_copy(sample->programs, sample->nprograms, sizeof(*s->programs));
	s->degraded = metrics_page_copy(sample->degraded, sample->ndegraded, sizeof(*s->degraded));
	s->maps = metrics_page_copy(sample->maps, sample->nmaps, sizeof(*s->maps));
	if (!page->rows || !page->predictions || !s->disks || !s->drops || !s->programs ||
	    !s->maps || !s->degraded) {
		metrics_page_free(page);
		return NULL;
	}
	metrics_jobs_view(jobs, &page->jobs, page->rows);
	return page;
}

void metrics_page_free(struct metrics_page *page)
{
	if (!page)
		return;
	free(page->rows);
	free(page->predictions);
	free((void *)page->sample.disks);
	free((void *)page->sample.drops);
	free((void *)page->sample.programs);
	free((void *)page->sample.maps);
	free((void *)page->sample.degraded);
	free(page);
}

/* --- counters of nodes and jobs -------------------------------------------------------- */

struct load_metric {
	const char *node, *job; /* label names */
	const char *help;
	const char *column; /* the column's name in the document and in degraded entries */
	size_t offset;
	bool ns;
};

#define LOAD(field, name, help)                                                                    \
	{                                                                                          \
		"iocom_node_" name "_total", "iocom_job_" name "_total", help, #field,             \
			offsetof(struct iocom_load, field), false                                  \
	}
#define LOAD_NS(field, name, help)                                                                 \
	{                                                                                          \
		"iocom_node_" name "_total", "iocom_job_" name "_total", help, #field,             \
			offsetof(struct iocom_load, field), true                                   \
	}
static const struct load_metric loads[] = {
	LOAD(explicit_read_bytes, "explicit_read_bytes", "Bytes of disks read by calls."),
	LOAD(explicit_write_bytes, "explicit_write_bytes",
	     "Bytes of disks written by calls, late writeback included."),
	LOAD(explicit_ops, "explicit_requests", "Block requests (bios) of calls."),
	LOAD(implicit_bytes, "implicit_bytes",
	     "Bytes of disks read and written because of page faults."),
	LOAD(implicit_ops, "implicit_requests", "Block requests (bios) of page faults."),
	LOAD(major_faults, "major_faults", "Page faults that waited for a disk."),
	LOAD(minor_faults, "minor_faults", "Page faults that waited for no disk."),
	LOAD(sent_bytes, "sent_bytes", "Bytes sent by TCP to other nodes."),
	LOAD(received_bytes, "received_bytes", "Bytes received by TCP from other nodes."),
	LOAD(sent_messages, "sent_messages", "Successful calls that sent by TCP to other nodes."),
	LOAD(received_messages, "received_messages",
	     "Successful calls that received by TCP from other nodes."),
	LOAD(local_bytes, "local_bytes", "Bytes by TCP that stayed on the node, both ends."),
	LOAD(dirtied_bytes, "dirtied_bytes", "Bytes of pages made dirty, and of direct writes."),
	LOAD(cancelled_bytes, "cancelled_bytes",
	     "Dirty bytes thrown away before they were written."),
	LOAD(netfs_read_bytes, "netfs_read_bytes", "Bytes read from network file systems."),
	LOAD(netfs_write_bytes, "netfs_written_bytes", "Bytes written to network file systems."),
	LOAD_NS(cpu_ns, "cpu_seconds", "CPU time."),
	LOAD_NS(run_wait_ns, "run_wait_seconds", "Time ready to run while others had the CPU."),
	LOAD_NS(io_wait_ns, "io_wait_seconds", "Time asleep until block I/O ended."),
};
#define NLOADS (sizeof(loads) / sizeof(loads[0]))

/* Returns true if this kernel does not report M; then it has no series, rather than zeros. */
static bool metrics_page_unknown(const struct metrics_page *page, const struct load_metric *m)
{
	const struct monitor_sample *s = &page->sample;

	for (size_t i = 0; i < s->ndegraded; i++)
		if (s->degraded[i].unknown && !strcmp(s->degraded[i].column, m->column))
			return true;
	switch (m->offset) {
	case offsetof(struct iocom_load, dirtied_bytes):
	case offsetof(struct iocom_load, cancelled_bytes):
	case offsetof(struct iocom_load, netfs_read_bytes):
	case offsetof(struct iocom_load, netfs_write_bytes):
		return s->no_task_io;
	case offsetof(struct iocom_load, run_wait_ns):
		return s->no_run_wait;
	case offsetof(struct iocom_load, io_wait_ns):
		return s->no_io_wait;
	default:
		return false;
	}
}

static void metrics_page_put_load(struct metrics_text *t, const struct load_metric *m,
				  const char *name, const struct metrics_labels *labels,
				  const struct iocom_load *load)
{
	uint64_t value;

	memcpy(&value, (const char *)load + m->offset, sizeof(value));
	if (m->ns)
		metrics_seconds(t, name, labels, value);
	else
		metrics_integer(t, name, labels, value);
}

static struct metrics_labels node_labels(const struct metrics_page *page)
{
	struct metrics_labels labels = {0};

	metrics_label(&labels, "node", page->vector.name);
	return labels;
}

static struct metrics_labels with(const struct metrics_labels *node, const char *name,
				  const char *value)
{
	struct metrics_labels labels = *node;

	metrics_label(&labels, name, value);
	return labels;
}

/* Writes a gauge of each job: its tasks or its memory. */
static void job_gauge(struct metrics_text *t, const struct metrics_page *page,
		      const struct metrics_labels *labels, const char *name, const char *help,
		      uint64_t (*value)(const struct metrics_job *))
{
	metrics_family(t, name, "gauge", help);
	for (size_t i = 0; i < page->jobs.count; i++)
		metrics_integer(t, name, &labels[i], value(&page->rows[i]));
	metrics_integer(t, name, &labels[page->jobs.count], value(&page->jobs.other));
}

static uint64_t tasks_of(const struct metrics_job *job)
{
	return job->tasks;
}

static uint64_t metrics_page_memory_of(const struct metrics_job *job)
{
	return job->rss_bytes;
}

static int put_jobs(struct metrics_text *t, const struct metrics_page *page,
		    const struct metrics_labels *node)
{
	size_t n = page->jobs.count;
	struct metrics_labels *labels = calloc(n + 1, sizeof(*labels));

	if (!labels)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		labels[i] = with(node, "job_name", page->rows[i].name);
	labels[n] = with(node, "job_name", page->jobs.other.name);
	for (size_t k = 0; k < NLOADS; k++) {
		if (metrics_page_unknown(page, &loads[k]))
			continue;
		metrics_family(t, loads[k].job, "counter", loads[k].help);
		for (size_t i = 0; i < n; i++)
			metrics_page_put_load(t, &loads[k], loads[k].job, &labels[i],
					      &page->rows[i].load);
		metrics_page_put_load(t, &loads[k], loads[k].job, &labels[n],
				      &page->jobs.other.load);
	}
	job_gauge(t, page, labels, "iocom_job_tasks", "Live processes.", tasks_of);
	job_gauge(t, page, labels, "iocom_job_memory_bytes", "Resident memory.",
		  metrics_page_memory_of);
	free(labels);
	metrics_family(t, "iocom_jobs_named", "gauge", "Jobs that have series of their own.");
	metrics_integer(t, "iocom_jobs_named", node, n);
	metrics_family(t, "iocom_jobs_named_max", "gauge",
		       "How many jobs may have series of their own (metrics_max_jobs).");
	metrics_integer(t, "iocom_jobs_named_max", node, page->jobs.max);
	metrics_family(t, "iocom_jobs_in_other", "gauge",
		       "Cgroups that did something in the last reading and count for "
		       "job_name=other.");
	metrics_integer(t, "iocom_jobs_in_other", node, page->jobs.other_cgroups);
	metrics_family(t, "iocom_jobs_replaced_total", "counter",
		       "Idle jobs that lost their series to another job.");
	metrics_integer(t, "iocom_jobs_replaced_total", node, page->jobs.replaced);
	return 0;
}

/* --- the node ---------------------------------------------------------------------------- */

struct real_metric {
	const char *name, *help;
	double value;
};

static void put_reals(struct metrics_text *t, const struct metrics_labels *node,
		      const struct real_metric *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		metrics_family(t, list[i].name, "gauge", list[i].help);
		metrics_real(t, list[i].name, node, list[i].value);
	}
}

/* Data that went along with jobs, as the agent read it last. */
static void put_caches(struct metrics_text *t, const struct iocom_vector *v,
		       const struct metrics_labels *node)
{
	const struct {
		const char *name, *help;
		uint32_t value;
	} list[] = {
		{"iocom_data_cache_jobs_total", "Jobs whose data went along to this node.",
		 v->cache_jobs},
		{"iocom_data_cache_refused_total",
		 "Jobs whose data had no room here: quota, or a full disk.", v->cache_refused},
		{"iocom_data_cache_hits_total", "Files of jobs that were found here.",
		 v->cache_hits},
		{"iocom_data_cache_misses_total", "Files of jobs that were copied here.",
		 v->cache_misses},
		{"iocom_data_cache_evicted_total", "Files that made room for others.",
		 v->cache_evicted},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		metrics_family(t, list[i].name, "counter", list[i].help);
		metrics_integer(t, list[i].name, node, list[i].value);
	}
}

static void put_vector(struct metrics_text *t, const struct metrics_page *page,
		       const struct metrics_labels *node)
{
	const struct iocom_vector *v = &page->vector;
	const struct real_metric list[] = {
		{"iocom_node_cores", "Processors; a quota rounds up.", v->cores},
		{"iocom_node_cpu_speed_ratio", "Speed of a processor to the reference machine's.",
		 v->cpu_speed},
		{"iocom_node_cpu_burst_ratio",
		 "The same until a cap on the processors is used up; without a cap the same.",
		 v->cpu_burst},
		{"iocom_node_run_queue", "Runnable tasks, mean of a period, smoothed.",
		 v->run_queue},
		{"iocom_node_tasks", "Live processes.", v->tasks},
		{"iocom_node_jobs", "Running jobs of iocom.", v->jobs},
		{"iocom_node_memory_bytes", "Memory for all jobs.", v->memory_mb * 1e6},
		{"iocom_node_memory_available_bytes",
		 "Memory that a new job could have without paging.", v->memory_available_mb * 1e6},
		{"iocom_node_memory_requested_bytes", "Memory in use or declared by jobs.",
		 v->memory_requested_mb * 1e6},
		{"iocom_node_explicit_requests_per_second",
		 "Explicit I/O load as the balancer sees it: jobs count with their rate when "
		 "alone.",
		 v->explicit_per_ms * 1e3},
		{"iocom_node_implicit_requests_per_second",
		 "Implicit I/O load as the balancer sees it.", v->implicit_per_ms * 1e3},
		{"iocom_node_io_tasks", "Processes that did disk I/O in the last period.",
		 v->io_tasks},
		{"iocom_node_disks", "Disks of this node.", v->disks},
		{"iocom_node_disk_requests_per_second", "Requests that came to the disks.",
		 v->disk_arrivals_per_ms * 1e3},
		{"iocom_node_disk_service_seconds", "Mean service time of a request.",
		 v->disk_service_ms / 1e3},
		{"iocom_node_disk_utilisation_ratio", "Share of time the busiest disk served.",
		 v->disk_utilisation},
		{"iocom_node_disk_capacity_bytes_per_second",
		 "Bandwidth of the disk: configured, or learned.", v->disk_mb_per_s * 1e6},
		{"iocom_node_cpu_sharers",
		 "Tasks that compete for the processors, each with the share of its time that it "
		 "computes.",
		 v->cpu_sharers},
		{"iocom_node_disk_sharers", "The same for the disk.", v->disk_sharers},
		{"iocom_node_cpu_left_seconds",
		 "Time on a processor that the tasks have left: jobs by what their classes need.",
		 v->cpu_left_ms / 1e3},
		{"iocom_node_disk_left_seconds", "The same for the disk.", v->disk_left_ms / 1e3},
		{"iocom_node_network_capacity_bytes_per_second", "Capacity of the network.",
		 v->network_mb_per_s * 1e6},
		{"iocom_data_cache_bytes", "Data of jobs that users' caches here have.",
		 v->cache_mb * 1e6},
		{"iocom_data_cache_files", "The files of it.", v->cache_files},
		{"iocom_node_accepts_jobs", "1 when the owner lets jobs of other nodes in.",
		 v->accepts_jobs},
		{"iocom_node_available_io", "1 when the node has room for I/O.",
		 (v->bits & IOCOM_BIT_IO) != 0},
		{"iocom_node_available_cpu", "1 when the node has room on its processors.",
		 (v->bits & IOCOM_BIT_CPU) != 0},
	};

	put_reals(t, node, list, sizeof(list) / sizeof(list[0]));
	put_caches(t, v, node);
}

static void metrics_page_put_node(struct metrics_text *t, const struct metrics_page *page,
				  const struct metrics_labels *node)
{
	static const char *const minutes[] = {"1", "5", "15"};
	const struct monitor_sample *s = &page->sample;
	struct metrics_labels labels = with(node, "version", IOCOM_VERSION);

	metrics_family(t, "iocom_build_info", "gauge", "1; the version is a label.");
	metrics_integer(t, "iocom_build_info", &labels, 1);
	metrics_family(t, "iocom_counting_since_seconds", "gauge",
		       "When counting began, seconds since 1970.");
	metrics_seconds(t, "iocom_counting_since_seconds", node, s->since_ns);
	metrics_family(t, "iocom_reading_time_seconds", "gauge",
		       "When these numbers were read, seconds since 1970.");
	metrics_seconds(t, "iocom_reading_time_seconds", node, s->time_ns);
	if (page->has_load_average) {
		metrics_family(t, "iocom_node_load_average", "gauge",
			       "The machine's load average over so many minutes.");
		for (size_t i = 0; i < 3; i++) {
			labels = with(node, "minutes", minutes[i]);
			metrics_real(t, "iocom_node_load_average", &labels, page->load_average[i]);
		}
	}
	put_vector(t, page, node);
	for (size_t k = 0; k < NLOADS; k++) {
		if (metrics_page_unknown(page, &loads[k]))
			continue;
		metrics_family(t, loads[k].node, "counter", loads[k].help);
		metrics_page_put_load(t, &loads[k], loads[k].node, node, &page->total);
	}
}

static void put_unattributed(struct metrics_text *t, const struct metrics_page *page,
			     const struct metrics_labels *node)
{
	const struct monitor_sample *s = &page->sample;
	const struct {
		const char *kind;
		uint64_t bytes;
	} list[] = {
		{"metadata", s->unattributed.metadata_bytes},
		{"writeback", s->unattributed.writeback_bytes},
		{"swap_out", s->unattributed.swap_out_bytes},
		{"other", s->unattributed.other_bytes},
	};

	metrics_family(t, "iocom_node_unattributed_bytes_total", "counter",
		       "Bytes of disks that no task is charged with, by kind.");
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct metrics_labels labels = with(node, "kind", list[i].kind);

		metrics_integer(t, "iocom_node_unattributed_bytes_total", &labels, list[i].bytes);
	}
}

/* --- disks ----------------------------------------------------------------------------------- */

struct disk_metric {
	const char *name, *help;
	size_t offset;
	bool ns;
};

#define DISK(field, name, help)                                                                    \
	{                                                                                          \
		"iocom_disk_" name "_total", help, offsetof(struct iocom_disk, field), false       \
	}
static const struct disk_metric disks[] = {
	DISK(requests, "requests", "Requests completed."),
	DISK(read_bytes, "read_bytes", "Bytes read, as completed."),
	DISK(write_bytes, "written_bytes", "Bytes written, as completed."),
	{"iocom_disk_service_seconds_total",
	 "Time spent serving; its rate is the utilisation, by requests the mean service time.",
	 offsetof(struct iocom_disk, service_sum_ns), true},
	{"iocom_disk_response_seconds_total",
	 "Time of all requests from their start to their end, waits included.",
	 offsetof(struct iocom_disk, response_sum_ns), true},
	DISK(task_bytes, "task_bytes", "Bytes that tasks are charged with."),
	DISK(stacked_bytes, "stacked_bytes", "Bytes that a stacked disk sent to this one."),
	DISK(unattributed_bytes, "unattributed_bytes",
	     "Bytes whose owner is not known: metadata, journal and the like."),
	DISK(foreign_bytes, "foreign_bytes", "Bytes of tasks outside this node's scope."),
	DISK(kernel_bytes, "kernel_bytes", "Bytes by the kernel's own disk statistics."),
};

/*
 * Returns true if another listed disk has the same name (a disk that came back); only one of them
 * is shown.
 */
static bool repeated(const struct monitor_sample *s, size_t i)
{
	for (size_t j = i + 1; j < s->ndisks; j++)
		if (!strcmp(s->disks[i].name, s->disks[j].name))
			return true;
	return false;
}

static int put_disks(struct metrics_text *t, const struct metrics_page *page,
		     const struct metrics_labels *node)
{
	static const char residual[] = "iocom_disk_residual_bytes";
	const struct monitor_sample *s = &page->sample;
	struct metrics_labels *labels = calloc(s->ndisks + 1, sizeof(*labels));
	uint64_t value;

	if (!labels)
		return -ENOMEM;
	for (size_t i = 0; i < s->ndisks; i++)
		if (!repeated(s, i))
			labels[i] = with(node, "disk", s->disks[i].name);
	for (size_t k = 0; s->ndisks && k < sizeof(disks) / sizeof(disks[0]); k++) {
		metrics_family(t, disks[k].name, "counter", disks[k].help);
		for (size_t i = 0; i < s->ndisks; i++) {
			if (!labels[i].used)
				continue;
			memcpy(&value, (const char *)&s->disks[i] + disks[k].offset, sizeof(value));
			if (disks[k].ns)
				metrics_seconds(t, disks[k].name, &labels[i], value);
			else
				metrics_integer(t, disks[k].name, &labels[i], value);
		}
	}
	if (s->ndisks)
		metrics_family(t, residual, "gauge",
			       "Bytes in the kernel's statistics beyond task, stacked, "
			       "unattributed and foreign bytes together; 0 when all is right.");
	for (size_t i = 0; i < s->ndisks; i++)
		if (labels[i].used)
			metrics_real(t, residual, &labels[i], (double)s->disks[i].residual_bytes);
	free(labels);
	return 0;
}

/*
 * --- what is lost, and what it costs ------------------------------------------------------------
 */

static void put_drops(struct metrics_text *t, const struct metrics_page *page,
		      const struct metrics_labels *node)
{
	const struct monitor_sample *s = &page->sample;
	struct metrics_labels labels;

	metrics_family(t, "iocom_drops_total", "counter",
		       "What the monitor could not count, by cause; see iocom-top(1).");
	for (size_t i = 0; i < s->ndrops; i++) {
		labels = with(node, "cause", s->drops[i].name);
		metrics_integer(t, "iocom_drops_total", &labels, s->drops[i].count);
	}
	metrics_family(t, "iocom_agent_events_total", "counter",
		       "What the agent sent, received, refused and lost, by event.");
#define X(event)                                                                                   \
	labels = with(node, "event", #event);                                                      \
	metrics_integer(t, "iocom_agent_events_total", &labels, page->counters.event);
	COUNTERS(X)
#undef X
	labels = with(node, "event", "charges_lost");
	metrics_integer(t, "iocom_agent_events_total", &labels, page->charges_lost);
	labels = with(node, "event", "log_lines_suppressed");
	metrics_integer(t, "iocom_agent_events_total", &labels, page->log_lines_suppressed);
	metrics_family(
		t, "iocom_agent_tick_late_ms", "gauge",
		"The greatest delay of a tick of the agent's loop in the last minute, in ms.");
	metrics_integer(t, "iocom_agent_tick_late_ms", node, page->counters.tick_late_ms);
}

static void put_bounds(struct metrics_text *t, const struct metrics_page *page,
		       const struct metrics_labels *node)
{
	struct metrics_labels labels;

	metrics_family(t, "iocom_bound_used", "gauge",
		       "How full each bounded resource of the agent is.");
	for (size_t i = 0; i < page->nbounds; i++) {
		labels = with(node, "bound", page->bounds[i].name);
		if (page->bounds[i].used != LIMIT_UNKNOWN)
			metrics_integer(t, "iocom_bound_used", &labels, page->bounds[i].used);
	}
	metrics_family(t, "iocom_bound_max", "gauge",
		       "Capacity of each bounded resource; iocom_agent_events_total counts what "
		       "was refused.");
	for (size_t i = 0; i < page->nbounds; i++) {
		labels = with(node, "bound", page->bounds[i].name);
		if (page->bounds[i].max)
			metrics_integer(t, "iocom_bound_max", &labels, page->bounds[i].max);
	}
}

struct prediction_metric {
	const char *name, *type, *help;
	double (*value)(const struct prediction *p);
};

static double prediction_jobs(const struct prediction *p)
{
	return (double)p->total.jobs;
}

static double prediction_log_error(const struct prediction *p)
{
	return p->total.log_error;
}

static double prediction_within_1_25(const struct prediction *p)
{
	return (double)p->total.within_1_25;
}

static double prediction_within_2(const struct prediction *p)
{
	return (double)p->total.within_2;
}

static double prediction_ratio(const struct prediction *p)
{
	return p->ratio;
}

static const struct prediction_metric prediction_metrics[] = {
	{"iocom_prediction_jobs_total", "counter",
	 "Jobs of which a response time was expected, and which succeeded, by where they ran.",
	 prediction_jobs},
	{"iocom_prediction_log_error_total", "counter",
	 "Sum over these jobs of |ln(measured / expected)|; divided by the jobs, the exponential "
	 "of it is the typical factor that predictions are off by.",
	 prediction_log_error},
	{"iocom_prediction_within_1_25x_total", "counter",
	 "Those of these jobs whose response was within a factor 1.25 of the expected one.",
	 prediction_within_1_25},
	{"iocom_prediction_within_2x_total", "counter",
	 "Those of these jobs whose response was within a factor 2 of the expected one.",
	 prediction_within_2},
	{"iocom_prediction_ratio", "gauge",
	 "Geometric mean of measured over expected response of the last jobs, about 50.",
	 prediction_ratio},
};

static void put_predictions(struct metrics_text *t, const struct metrics_page *page,
			    const struct metrics_labels *node)
{
	for (size_t k = 0; k < sizeof(prediction_metrics) / sizeof(*prediction_metrics); k++) {
		const struct prediction_metric *m = &prediction_metrics[k];

		metrics_family(t, m->name, m->type, m->help);
		for (size_t i = 0; i < page->npredictions; i++) {
			const struct prediction *p = &page->predictions[i];
			struct metrics_labels labels = with(node, "target", p->node);

			metrics_label(&labels, "policy", p->policy);
			metrics_real(t, m->name, &labels, m->value(p));
		}
	}
}

static void put_degraded(struct metrics_text *t, const struct metrics_page *page,
			 const struct metrics_labels *node)
{
	const struct monitor_sample *s = &page->sample;

	if (!s->ndegraded)
		return;
	metrics_family(t, "iocom_column_degraded", "gauge",
		       "1: this kernel does not report the column, and its metrics are left out; "
		       "0: it is less exact.  iocom-doctor(1) names the missing hook.");
	for (size_t i = 0; i < s->ndegraded; i++) {
		struct metrics_labels labels = with(node, "column", s->degraded[i].column);

		metrics_label(&labels, "hook", s->degraded[i].hook);
		metrics_integer(t, "iocom_column_degraded", &labels, s->degraded[i].unknown);
	}
}

static void put_served(struct metrics_text *t, const struct metrics_page *page,
		       const struct metrics_labels *node)
{
	const struct {
		const char *outcome;
		uint64_t count;
	} list[] = {{"answered", page->served.answered},
		    {"refused", page->served.refused},
		    {"cut", page->served.cut}};

	metrics_family(t, "iocom_metrics_requests_total", "counter",
		       "Requests for this page, by outcome.");
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct metrics_labels labels = with(node, "outcome", list[i].outcome);

		metrics_integer(t, "iocom_metrics_requests_total", &labels, list[i].count);
	}
}

static void put_maps(struct metrics_text *t, const struct metrics_page *page,
		     const struct metrics_labels *node)
{
	const struct monitor_sample *s = &page->sample;
	struct metrics_labels labels;

	metrics_family(t, "iocom_map_entries", "gauge",
		       "Entries in each table of the eBPF programs.");
	for (size_t i = 0; i < s->nmaps; i++) {
		labels = with(node, "map", s->maps[i].name);
		if (s->maps[i].entries != MONITOR_ENTRIES_UNKNOWN)
			metrics_integer(t, "iocom_map_entries", &labels, s->maps[i].entries);
	}
	metrics_family(t, "iocom_map_entries_max", "gauge", "Entries that a table has room for.");
	for (size_t i = 0; i < s->nmaps; i++) {
		labels = with(node, "map", s->maps[i].name);
		if (s->maps[i].entries_max)
			metrics_integer(t, "iocom_map_entries_max", &labels,
					s->maps[i].entries_max);
	}
	metrics_family(t, "iocom_map_memory_bytes", "gauge", "Memory of a table in the kernel.");
	for (size_t i = 0; i < s->nmaps; i++) {
		labels = with(node, "map", s->maps[i].name);
		if (s->maps[i].memory_bytes)
			metrics_integer(t, "iocom_map_memory_bytes", &labels,
					s->maps[i].memory_bytes);
	}
}

static void put_taken(struct metrics_text *t, const struct metrics_page *page,
		      const struct metrics_labels *node)
{
	struct metrics_labels labels;

	metrics_family(t, "iocom_slot_taken_total", "counter",
		       "Times that a thread or a connection found its place in a table taken: it "
		       "costs more to measure, but nothing is lost.");
	labels = with(node, "map", "talks");
	metrics_integer(t, "iocom_slot_taken_total", &labels, page->sample.taken.talks);
	labels = with(node, "map", "streams");
	metrics_integer(t, "iocom_slot_taken_total", &labels, page->sample.taken.streams);
}

static void put_classifier(struct metrics_text *t, const struct metrics_page *page,
			   const struct metrics_labels *node)
{
	const struct monitor_sample *s = &page->sample;

	metrics_family(t, "iocom_inferred_bytes_total", "counter",
		       "Bytes whose class, explicit or implicit, was inferred from their pages "
		       "and not seen by an exception.");
	metrics_integer(t, "iocom_inferred_bytes_total", node, s->classifier.inferred_bytes);
	metrics_family(t, "iocom_classifier_confidence_ratio", "gauge",
		       "Share of all bytes of tasks whose class is certain.");
	metrics_real(t, "iocom_classifier_confidence_ratio", node, monitor_confidence(s));
}

static void put_cost(struct metrics_text *t, const struct metrics_page *page,
		     const struct metrics_labels *node)
{
	const struct monitor_sample *s = &page->sample;
	struct metrics_labels labels;

	metrics_family(t, "iocom_program_runs_total", "counter",
		       "Runs of each eBPF program while the kernel's statistics were on.");
	for (size_t i = 0; i < s->nprograms; i++) {
		labels = with(node, "program", s->programs[i].name);
		metrics_integer(t, "iocom_program_runs_total", &labels, s->programs[i].runs);
	}
	metrics_family(t, "iocom_program_run_seconds_total", "counter",
		       "Time each eBPF program ran while the kernel's statistics were on.");
	for (size_t i = 0; i < s->nprograms; i++) {
		labels = with(node, "program", s->programs[i].name);
		metrics_seconds(t, "iocom_program_run_seconds_total", &labels,
				s->programs[i].run_ns);
	}
	metrics_family(
		t, "iocom_programs_measured_seconds_total", "counter",
		"How long the kernel's statistics were on: divide runs and run seconds by it.");
	metrics_seconds(t, "iocom_programs_measured_seconds_total", node, s->measured_ns);
	metrics_family(t, "iocom_agent_cpu_seconds_total", "counter", "CPU time of the agent.");
	metrics_seconds(t, "iocom_agent_cpu_seconds_total", node, s->user_cpu_ns);
	metrics_family(t, "iocom_agent_memory_bytes", "gauge", "Resident memory of the agent.");
	metrics_integer(t, "iocom_agent_memory_bytes", node, page->agent_rss_bytes);
	metrics_family(t, "iocom_sweep_seconds", "gauge", "How long the last reading took.");
	metrics_seconds(t, "iocom_sweep_seconds", node, s->sweep_ns);
}

int metrics_page_render(const struct metrics_page *page, char **text, size_t *length)
{
	struct metrics_labels node = node_labels(page);
	struct metrics_text t = {0};
	int rc;

	metrics_page_put_node(&t, page, &node);
	put_unattributed(&t, page, &node);
	rc = put_disks(&t, page, &node);
	if (!rc)
		rc = put_jobs(&t, page, &node);
	put_drops(&t, page, &node);
	put_bounds(&t, page, &node);
	put_predictions(&t, page, &node);
	put_degraded(&t, page, &node);
	put_served(&t, page, &node);
	put_cost(&t, page, &node);
	put_maps(&t, page, &node);
	put_taken(&t, page, &node);
	put_classifier(&t, page, &node);
	if (rc || t.failed) {
		metrics_text_free(&t);
		return -ENOMEM;
	}
	*text = t.data;
	*length = t.used;
	return 0;
}
