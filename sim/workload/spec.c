/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parses "gen:PRESET,key=value,..." into a generator's parameters; see spec.h. */
#include "sim/workload/spec.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/lines.h"
#include "sim/workload/process_trace.h"

#define GENERATOR   "gen:"
#define WEIGHTS_MAX 1000000
#define FOUND_SHOWN 40

enum type { REAL, COUNT32, COUNT64, WEIGHTS, LIFETIME, ARRIVALS, TRACE };

struct key {
	const char *name;
	enum type type;
	size_t offset;
	double low, high;
};

static const struct key keys[] = {
#define KEY(field, type, low, high)                                                                \
	{                                                                                          \
#field, type, offsetof(struct preset_args, field), low, high                       \
	}
	KEY(seed, COUNT64, 1, 18446744073709551615.0),
	KEY(jobs, COUNT64, 1, 1e15),
	KEY(nodes, COUNT32, 1, 1e8),
	KEY(interarrival_ms, REAL, 0, 1e12),
	KEY(home_skew, REAL, 0, 100),
	KEY(home_weights, WEIGHTS, 0, 1e15),
	KEY(lifetime_mean_ms, REAL, 0, 1e15),
	KEY(lifetime_shape, REAL, 0, 1e15),
	KEY(lifetime_max_ms, REAL, 0, 1e15),
	KEY(io_per_ms, REAL, 0, 1e6),
	KEY(request_kb, REAL, 0, 1e9),
	KEY(request_sd_kb, REAL, 0, 1e9),
	KEY(reaccess, REAL, 0, 1e6),
	KEY(faults_per_ms, REAL, 0, 1e6),
	KEY(memory_mb, REAL, 0, 1e9),
	KEY(memory_shape, REAL, 0, 1e3),
	KEY(initial_mb, REAL, 0, 1e9),
	KEY(write_fraction, REAL, 0, 1),
	KEY(parallel, REAL, 0, 1),
	KEY(tasks_min, COUNT32, 1, 1e6),
	KEY(tasks_max, COUNT32, 1, 1e6),
	KEY(barrier_ms, REAL, 0, 1e15),
	KEY(messages_per_ms, REAL, 0, 1e6),
	KEY(message_kb, REAL, 0, 1e9),
	KEY(share, REAL, 0, 1),
#undef KEY
	{"lifetime", LIFETIME, 0, 0, 0},
	{"arrivals", ARRIVALS, 0, 0, 0},
	{"trace", TRACE, 0, 0, 0},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const char *const lifetimes[] = {
	[LIFETIME_CONSTANT] = "constant", [LIFETIME_EXPONENTIAL] = "exponential",
	[LIFETIME_PARETO] = "pareto",	  [LIFETIME_HYPEREXP] = "hyperexp",
	[LIFETIME_GAMMA] = "gamma",
};
static const char *const arrival_names[] = {"poisson", "regular"};

struct parsing {
	const char *text;
	struct preset_args args;
	double *weights;
	uint32_t nweights;
	bool seen[KEYS];
	int lifetime, arrivals; /* -1: not given */
	char trace[PATH_MAX];	/* "": not given */
};

/* Reports "gen:fc,io=3: column 8: expected WHAT, found "..."". */
__attribute__((format(printf, 5, 6))) static int spec_fail(const struct parsing *s, const char *at,
							   size_t length, struct iocom_err *err,
							   const char *expected, ...)
{
	char what[700];
	va_list ap;

	va_start(ap, expected);
	vsnprintf(what, sizeof(what), expected, ap);
	va_end(ap);
	return iocom_err_set(err, -EINVAL, "%.80s: column %zu: expected %s, found \"%.*s%s\"",
			     s->text, (size_t)(at - s->text) + 1, what,
			     (int)(length < FOUND_SHOWN ? length : FOUND_SHOWN), at,
			     length > FOUND_SHOWN ? "..." : "");
}

static int parse_weights(struct parsing *s, const char *p, size_t length, struct iocom_err *err)
{
	const char *end = p + length;
	uint32_t n = 1;

	for (size_t i = 0; i < length; i++)
		n += p[i] == ':';
	if (n > WEIGHTS_MAX)
		return spec_fail(s, p, length, err, "at most %d weights", WEIGHTS_MAX);
	s->weights = calloc(n, sizeof(*s->weights));
	if (!s->weights)
		return iocom_err_set(err, -ENOMEM, "%.80s: out of memory", s->text);
	for (s->nweights = 0; s->nweights < n; s->nweights++) {
		const char *stop = memchr(p, ':', (size_t)(end - p));
		struct token f = {.text = p, .length = (size_t)((stop ? stop : end) - p)};

		if (!token_parse(&f, &s->weights[s->nweights]) || s->weights[s->nweights] < 0 ||
		    s->weights[s->nweights] > 1e15)
			return spec_fail(s, p, f.length, err,
					 "a home's weight, a number from 0 to 1e15");
		p += f.length + 1;
	}
	return 0;
}

static int parse_word(struct parsing *s, const char *p, size_t length, const char *const *words,
		      int n, int *out, struct iocom_err *err)
{
	char list[128] = "";
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		if (strlen(words[i]) == length && !strncasecmp(words[i], p, length)) {
			*out = i;
			return 0;
		}
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       !i	   ? ""
				       : i + 1 < n ? ", "
						   : " or ",
				       words[i]);
	}
	return spec_fail(s, p, length, err, "%s", list);
}

static int spec_parse_count(struct parsing *s, const struct key *key, const char *p, size_t length,
			    void *to, struct iocom_err *err)
{
	uint64_t value = 0;
	bool good = length > 0 && length <= 20;

	for (size_t i = 0; i < length && good; i++)
		good = p[i] >= '0' && p[i] <= '9' &&
		       !__builtin_mul_overflow(value, (uint64_t)10, &value) &&
		       !__builtin_add_overflow(value, (uint64_t)(p[i] - '0'), &value);
	if (!good || (double)value < key->low || (double)value > key->high)
		return spec_fail(s, p, length, err, "a whole number from %.20g to %.20g", key->low,
				 key->high);
	if (key->type == COUNT64)
		*(uint64_t *)to = value;
	else
		*(uint32_t *)to = (uint32_t)value;
	return 0;
}

static int parse_value(struct parsing *s, const struct key *key, const char *p, size_t length,
		       struct iocom_err *err)
{
	void *to = (char *)&s->args + key->offset;
	struct token f = {.text = p, .length = length};
	double value;

	switch (key->type) {
	case REAL:
		if (!token_parse(&f, &value) || value < key->low || value > key->high)
			return spec_fail(s, p, length, err, "a number from %g to %g", key->low,
					 key->high);
		*(double *)to = value;
		return 0;
	case COUNT32:
	case COUNT64:
		return spec_parse_count(s, key, p, length, to, err);
	case WEIGHTS:
		return parse_weights(s, p, length, err);
	case LIFETIME:
		return parse_word(s, p, length, lifetimes, 5, &s->lifetime, err);
	case ARRIVALS:
		return parse_word(s, p, length, arrival_names, 2, &s->arrivals, err);
	case TRACE:
		if (!length || length >= sizeof(s->trace))
			return spec_fail(s, p, length, err, "the path of a process trace");
		snprintf(s->trace, sizeof(s->trace), "%.*s", (int)length, p);
		return 0;
	}
	return -EINVAL;
}

static int fail_key(const struct parsing *s, const char *at, size_t length, struct iocom_err *err)
{
	char names[500] = "";
	size_t n = 0;

	for (size_t i = 0; i < KEYS; i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
				      keys[i].name);
	return spec_fail(s, at, length, err, "a key (%s)", names);
}

/* Parses one "key=value" of LENGTH characters at P. */
static int parse_pair(struct parsing *s, const char *p, size_t length, struct iocom_err *err)
{
	const char *equals = memchr(p, '=', length);
	size_t n = equals ? (size_t)(equals - p) : length;

	for (size_t i = 0; i < KEYS; i++) {
		if (strlen(keys[i].name) != n || strncmp(keys[i].name, p, n))
			continue;
		if (!equals)
			return spec_fail(s, p, length, err, "%s=VALUE", keys[i].name);
		if (s->seen[i])
			return spec_fail(s, p, length, err, "each key once");
		s->seen[i] = true;
		return parse_value(s, &keys[i], equals + 1, length - n - 1, err);
	}
	return fail_key(s, p, n, err);
}

static int parse_pairs(struct parsing *s, const char *p, struct iocom_err *err)
{
	while (*p) {
		size_t length;
		int rc;

		p++; /* skips the comma */
		length = strcspn(p, ",");
		rc = parse_pair(s, p, length, err);
		if (rc)
			return rc;
		p += length;
	}
	return 0;
}

/* Repeats the weights if there are fewer weights than nodes. */
static int repeat_weights(struct parsing *s, uint32_t nodes, struct iocom_err *err)
{
	double *all;

	if (s->nweights > nodes)
		return iocom_err_set(err, -EINVAL,
				     "%.80s: expected at most a weight for each of %u nodes, "
				     "found %u",
				     s->text, nodes, s->nweights);
	if (s->nweights == nodes)
		return 0;
	all = realloc(s->weights, nodes * sizeof(*all));
	if (!all)
		return iocom_err_set(err, -ENOMEM, "%.80s: out of memory", s->text);
	for (uint32_t i = s->nweights; i < nodes; i++)
		all[i] = all[i - s->nweights];
	s->weights = all;
	return 0;
}

static int spec_fill(struct parsing *s, const char *name, const struct workload_options *o,
		     struct generator_params *p, struct iocom_err *err)
{
	struct preset_args *a = &s->args;
	int rc;

	if (o && !a->seed)
		a->seed = o->seed;
	if (!a->nodes)
		a->nodes = o && o->nodes > s->nweights ? o->nodes : s->nweights;
	rc = s->weights ? repeat_weights(s, a->nodes, err) : 0;
	if (rc)
		return rc;
	a->home_weights = s->weights;
	rc = preset_fill(p, name, a, err);
	if (rc) {
		iocom_err_prefix(err, "%.80s: column %zu", s->text, strlen(GENERATOR) + 1);
		return rc;
	}
	if (o && o->jobs_max && p->jobs > o->jobs_max)
		p->jobs = o->jobs_max;
	if (s->lifetime >= 0)
		p->lifetime = (enum generator_lifetime)s->lifetime;
	if (s->arrivals >= 0)
		p->arrivals_regular = s->arrivals;
	return s->trace[0] ? process_trace_part(p, s->trace, err) : 0;
}

int workload_spec_parse(const char *text, const struct workload_options *options,
			struct generator_params *p, double **weights, struct iocom_err *err)
{
	struct parsing s = {.text = text, .lifetime = -1, .arrivals = -1};
	const char *name = text + strlen(GENERATOR);
	char preset[FOUND_SHOWN];
	size_t length;
	int rc;

	*weights = NULL;
	if (strncmp(text, GENERATOR, strlen(GENERATOR)))
		return spec_fail(&s, text, strlen(text), err, GENERATOR "PRESET,key=value,...");
	length = strcspn(name, ",");
	snprintf(preset, sizeof(preset), "%.*s", (int)(length < sizeof(preset) ? length : 0), name);
	preset_args_default(&s.args);
	rc = parse_pairs(&s, name + length, err);
	if (!rc)
		rc = spec_fill(&s, preset, options, p, err);
	if (rc)
		free(s.weights);
	else
		*weights = s.weights;
	return rc;
}

struct workload *workload_spec_open(const char *text, const struct workload_options *options,
				    struct iocom_err *err)
{
	struct generator_params p;
	struct workload *w;
	double *weights;

	if (strncmp(text, GENERATOR, strlen(GENERATOR)))
		return workload_open(text, options, err);
	if (workload_spec_parse(text, options, &p, &weights, err))
		return NULL;
	w = generator_new(&p, err);
	free(weights);
	return w;
}
