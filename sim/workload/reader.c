/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Turns records into jobs: checks the order, applies options, generates fields and numbers the
 * jobs; see reader.h.  A generated value depends only on (seed, number of the record), so leaving
 * jobs out does not change the others.
 */
#include "sim/workload/reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "sim/workload/recognise.h"
#include "sim/workload/purpose.h"

static const char *const hold_names[HOLDS_BITS] = {
	"home",	    "cpu_ms",	     "memory_mb",  "io_per_ms",	     "request_kb",
	"reaccess", "faults_per_ms", "initial_mb", "write_fraction",
};

/* --- for the formats ------------------------------------------------------------ */

int reader_line(struct reader *r, char comment, struct iocom_err *err)
{
	for (;;) {
		int rc = lines_next(&r->lines, err);
		const char *p = r->lines.text;

		if (rc <= 0)
			return rc;
		p += strspn(p, " \t");
		if (*p && !(comment && *p == comment))
			return 1;
	}
}

int reader_fields(struct reader *r, struct token *f, size_t count, struct iocom_err *err)
{
	size_t n;
	int rc = quoted_split(&r->quoted, &r->lines, f, count + 1, &n, err);

	if (rc || n == count)
		return rc;
	return tokens_fail_count(&r->lines, f, n, count, "fields", err);
}

uint32_t reader_hosts(const struct reader *r)
{
	return r->options.nodes ? r->options.nodes : READER_NODES_MAX;
}

int reader_host(struct reader *r, const struct token *f, const char *what, uint32_t *home,
		struct iocom_err *err)
{
	const struct wanted wanted = {what, 0, reader_hosts(r) - 1.0, true};
	double value;
	int rc = token_number(&r->lines, f, &wanted, &value, err);

	if (!rc)
		*home = (uint32_t)value;
	return rc;
}

const char *reader_base_name(const struct reader *r)
{
	const char *name = source_name(r->source), *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

uint32_t reader_kind(struct reader *r, const char *name, size_t length)
{
	const uint32_t last = SIM_KINDS_MAX - 1;
	struct workload_info *info = &r->info;

	if (length >= sizeof(info->kind[0]))
		length = sizeof(info->kind[0]) - 1;
	for (uint32_t i = 0; i < info->kinds; i++)
		if (strlen(info->kind[i]) == length && !memcmp(info->kind[i], name, length))
			return i;
	if (info->kinds == SIM_KINDS_MAX) {
		snprintf(info->kind[last], sizeof(info->kind[last]), "others");
		return last;
	}
	memcpy(info->kind[info->kinds], name, length);
	info->kind[info->kinds][length] = '\0';
	return info->kinds++;
}

void reader_kinds(struct reader *r, const char *const *names, uint32_t n)
{
	r->info.kinds = n;
	for (uint32_t i = 0; i < n; i++)
		snprintf(r->info.kind[i], sizeof(r->info.kind[i]), "%s", names[i]);
}

static const struct {
	const char *name, *words;
} left_reasons[WORKLOAD_LEFT_COUNT] = {
	[WORKLOAD_NO_JOB] = {"no_job", "never ran or hold no work"},
	[WORKLOAD_OTHER_RUN] = {"other_run", "are of other runs (load.run=N takes another)"},
	[WORKLOAD_EARLY] = {"before_from", "are before load.from_s"},
	[WORKLOAD_LATE] = {"after_to", "are after load.to_s"},
	[WORKLOAD_SHORT] = {"short", "compute less than load.min_cpu_ms"},
	[WORKLOAD_WIDE] = {"too_wide", "need more processors than there are"},
	[WORKLOAD_BEYOND_MAX] = {"beyond_max", "are beyond load.jobs_max"},
};

const char *workload_left_words(enum workload_left why)
{
	return left_reasons[why].words;
}

const char *workload_left_name(enum workload_left why)
{
	return left_reasons[why].name;
}

/* --- a pass --------------------------------------------------------------------- */

static int begin_pass(struct reader *r, struct iocom_err *err)
{
	r->first_known = false;
	r->record = r->emitted = 0;
	memset(r->left, 0, sizeof(r->left));
	return r->format->begin(r, err);
}

static int reader_check_order(struct reader *r, const struct record *record, struct iocom_err *err)
{
	char found[32];

	if (!r->first_known) {
		r->first_known = true;
		r->first_ms = r->last_ms = record->arrival_ms;
	}
	if (record->arrival_ms < r->last_ms) {
		snprintf(found, sizeof(found), "%.10g", record->arrival_ms / 1000);
		return lines_fail(&r->lines, record->column, found, strlen(found), err,
				  "an arrival not before that of the row above (%.10g s; sort the "
				  "rows by arrival)",
				  r->last_ms / 1000);
	}
	r->last_ms = record->arrival_ms;
	return 0;
}

/* Folds a job of more than MOST tasks into fewer tasks with more work each. */
static void fold(struct sim_job *job, uint32_t most)
{
	double f;

	if (!most || job->tasks <= most)
		return;
	f = (double)job->tasks / most;
	job->tasks = most;
	job->cpu_ms *= f;
	job->memory_mb *= f;
	if (job->requests >= 0)
		job->requests = round(job->requests * f);
}

/*
 * Returns why the options exclude the job; WORKLOAD_LEFT_COUNT: they do not.  Converts its time to
 * that of the run.
 */
static enum workload_left unwanted(struct reader *r, struct record *record)
{
	const struct workload_options *o = &r->options;
	double ms = record->arrival_ms - (r->format->from_first ? r->first_ms : 0);

	fold(&record->job, o->tasks_max);
	if (ms < o->from_s * 1000)
		return WORKLOAD_EARLY;
	if (o->to_s > 0 && ms >= o->to_s * 1000)
		return WORKLOAD_LATE;
	if (record->job.cpu_ms < o->min_cpu_ms)
		return WORKLOAD_SHORT;
	if (o->batch && o->nodes && record->job.tasks > o->nodes)
		return WORKLOAD_WIDE;
	if (o->jobs_max && r->emitted >= o->jobs_max)
		return WORKLOAD_BEYOND_MAX;
	record->job.arrival_ms = (ms - o->from_s * 1000) * o->time_scale;
	return WORKLOAD_LEFT_COUNT;
}

static struct sim_random stream_of(const struct reader *r, uint64_t purpose)
{
	return sim_random_stream(r->options.seed, purpose, r->record);
}

/* MODEL 5.7: Pareto memory, uniform access rate, otherwise the options' values. */
static void generate(const struct reader *r, uint32_t holds, struct sim_job *job)
{
	const struct workload_options *o = &r->options;
	struct sim_random home = stream_of(r, PURPOSE_TRACE_HOME);
	struct sim_random memory = stream_of(r, PURPOSE_TRACE_MEMORY);
	struct sim_random io = stream_of(r, PURPOSE_TRACE_IO);

	if (!(holds & HOLDS_HOME))
		job->home = homes_draw(&r->homes, sim_random_uniform(&home));
	if (!(holds & HOLDS_MEMORY))
		job->memory_mb = o->memory_shape > 0 ? sim_random_pareto(&memory, o->memory_mean_mb,
									 o->memory_shape)
						     : o->memory_mean_mb;
	if (!(holds & HOLDS_IO)) {
		job->io_per_ms = 2 * o->io_per_ms * sim_random_uniform(&io);
		job->requests = -1;
	}
	if (!(holds & HOLDS_REQUEST)) {
		job->request_kb = o->request_kb;
		job->request_sd_kb = o->request_sd_kb;
	}
	if (!(holds & HOLDS_REACCESS))
		job->reaccess = o->reaccess;
	if (!(holds & HOLDS_FAULTS))
		job->faults_per_ms = o->faults_per_ms;
	if (!(holds & HOLDS_INITIAL))
		job->initial_mb = o->initial_mb;
}

static void note_job(struct reader *r, const struct record *record)
{
	uint32_t missing = HOLDS_ALL & ~record->holds;

	r->missing |= missing;
	r->lacking &= missing;
	if (record->holds & HOLDS_HOME && record->job.home >= r->homes_seen)
		r->homes_seen = record->job.home + 1;
}

static int reader_next(void *state, struct sim_job *job, struct iocom_err *err)
{
	struct reader *r = state;

	for (;;) {
		struct record record = {.job = {.tasks = 1, .requests = -1}};
		enum workload_left why = WORKLOAD_NO_JOB;
		int rc;

		if (!r->scanning && r->options.jobs_max && r->emitted >= r->options.jobs_max)
			return 0;
		rc = r->format->next(r, &record, err);
		if (rc <= 0)
			return rc;
		r->record++;
		if (rc == 1) {
			rc = reader_check_order(r, &record, err);
			if (rc)
				return rc;
			why = unwanted(r, &record);
			if (why == WORKLOAD_LEFT_COUNT) {
				if (r->scanning)
					note_job(r, &record);
				else
					generate(r, record.holds, &record.job);
				record.job.id = r->emitted++;
				*job = record.job;
				return 1;
			}
		}
		r->left[why]++;
	}
}

static int reader_rewind(void *state, struct iocom_err *err)
{
	struct reader *r = state;
	int rc = lines_rewind(&r->lines, err);

	return rc ? rc : begin_pass(r, err);
}

static void reader_free(void *state)
{
	struct reader *r = state;

	if (r->state) {
		r->format->end(r);
		free(r->state);
	}
	homes_deinit(&r->homes);
	quoted_deinit(&r->quoted);
	lines_deinit(&r->lines);
	source_free(r->source);
	free(r);
}

static const struct workload_ops reader_ops = {reader_next, reader_rewind, reader_free};

/* --- opening --------------------------------------------------------------------- */

static void name_synthetic(struct reader *r)
{
	size_t at = 0;

	/* A trace that says nothing about writes only reads: no value was generated. */
	for (unsigned int i = 0; i < HOLDS_BITS; i++) {
		if (!(r->missing & ~HOLDS_WRITES & 1u << i))
			continue;
		at += (size_t)snprintf(r->synthetic + at, sizeof(r->synthetic) - at, "%s%s%s",
				       at ? ", " : "", hold_names[i],
				       r->lacking & 1u << i ? "" : " (in part)");
	}
	r->info.synthetic = r->synthetic;
}

/* Reads the whole content once to find all errors, count and hash. */
static int reader_scan(struct reader *r, struct iocom_err *err)
{
	struct hash hash;
	struct sim_job job;
	int rc = hash_begin(&hash);

	if (rc)
		return iocom_err_set(err, rc, "cannot compute SHA-256");
	r->scanning = true;
	r->lacking = HOLDS_ALL;
	r->lines.hash = &hash;
	rc = reader_rewind(r, err);
	while (!rc && (rc = reader_next(r, &job, err)) > 0)
		rc = 0;
	r->lines.hash = NULL;
	r->scanning = false;
	if (rc)
		return rc;
	r->info.jobs = r->info.records = r->emitted;
	for (unsigned int why = 0; why < WORKLOAD_LEFT_COUNT; why++) {
		r->info.left[why] = r->left[why];
		r->info.left_out += r->left[why];
	}
	r->info.records += r->info.left_out;
	return hash_end(&hash, r->info.hash);
}

/* Says why no record is used. */
static int reader_tell_none(const struct reader *r, struct iocom_err *err)
{
	char why[400] = "";
	size_t at = 0;

	for (unsigned int i = 0; i < WORKLOAD_LEFT_COUNT && at < sizeof(why); i++)
		if (r->left[i])
			at += (size_t)snprintf(why + at, sizeof(why) - at, "%s %llu %s",
					       at ? "," : ":", (unsigned long long)r->left[i],
					       workload_left_words(i));
	return iocom_err_set(err, -EINVAL, "%s: none of its %llu records is used%s",
			     source_name(r->source), (unsigned long long)r->record, why);
}

static int reader_finish(struct reader *r, struct iocom_err *err)
{
	uint32_t n = r->options.nodes ? r->options.nodes : r->own_nodes ? r->own_nodes : 1;

	if (!r->record)
		return iocom_err_set(err, -EINVAL, "%s: the trace has no job",
				     source_name(r->source));
	if (!r->info.jobs)
		return reader_tell_none(r, err);
	name_synthetic(r);
	r->info.nodes = r->missing & HOLDS_HOME && n > r->homes_seen ? n : r->homes_seen;
	r->info.cores = r->own_cores;
	r->info.processors = r->own_processors;
	if (!*r->info.source)
		snprintf(r->info.source, sizeof(r->info.source), "%s %s", r->format->name,
			 reader_base_name(r));
	r->format->describe(r);
	return r->missing & HOLDS_HOME
		       ? homes_init(&r->homes, n, r->options.home_skew, NULL, r->options.seed, err)
		       : 0;
}

/* Takes SOURCE over. */
static struct reader *reader_new(struct source *source, const struct workload_options *options)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r || lines_init(&r->lines, source)) {
		source_free(source);
		free(r);
		return NULL;
	}
	r->source = source;
	quoted_init(&r->quoted);
	if (options)
		r->options = *options;
	else
		workload_options_default(&r->options);
	return r;
}

static struct workload *open_source(struct source *source, const struct workload_options *options,
				    struct iocom_err *err)
{
	struct reader *r = reader_new(source, options);
	struct workload *w;

	if (!r) {
		iocom_err_set(err, -ENOMEM, "cannot read a workload: out of memory");
		return NULL;
	}
	r->format = format_packed(source) ?: format_recognise(&r->lines, &r->quoted, err);
	if (!r->format)
		goto fail;
	r->state = calloc(1, r->format->state ? r->format->state : 1);
	if (!r->state) {
		iocom_err_set(err, -ENOMEM, "%s: out of memory", source_name(source));
		goto fail;
	}
	if (reader_scan(r, err) || reader_finish(r, err) || reader_rewind(r, err))
		goto fail;
	w = workload_new(&reader_ops, r, &r->info);
	if (!w)
		iocom_err_set(err, -ENOMEM, "cannot read a workload: out of memory");
	return w;
fail:
	reader_free(r);
	return NULL;
}

struct workload *workload_open(const char *path, const struct workload_options *options,
			       struct iocom_err *err)
{
	struct source *source = source_open(path, err);

	return source ? open_source(source, options, err) : NULL;
}

struct workload *workload_open_memory(const void *data, size_t n, const char *name,
				      const struct workload_options *options, struct iocom_err *err)
{
	struct source *source = source_memory(data, n, name);

	if (!source) {
		iocom_err_set(err, -ENOMEM, "%s: out of memory", name);
		return NULL;
	}
	return open_source(source, options, err);
}
