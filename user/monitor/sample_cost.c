/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the monitor lost, what it cannot measure on this kernel, and what it costs. */
#include "user/monitor/sample_build.h"

#include <math.h>

#include "user/utf8.h"

json_t *sample_drops(const struct monitor_sample *s, bool help)
{
	json_t *object = json_object();
	int rc = object ? 0 : -1;

	for (size_t i = 0; i < s->ndrops; i++) {
		const struct monitor_drop *d = &s->drops[i];

		if (!help)
			rc |= sample_put(object, d->name, sample_integer(d->count));
		else if (d->count && d->help)
			rc |= sample_put(object, d->name, sample_text(d->help));
	}
	return sample_finish(object, rc);
}

json_t *sample_degraded(const struct monitor_sample *s)
{
	json_t *array = json_array();
	int rc = array ? 0 : -1;

	for (size_t i = 0; i < s->ndegraded; i++) {
		const struct monitor_degraded *d = &s->degraded[i];

		rc |= json_array_append_new(array, json_pack("{s:s,s:s,s:s,s:b}", "column",
							     d->column, "hook", d->hook, "why",
							     d->why, "unknown", d->unknown));
	}
	return sample_finish(array, rc);
}

static json_t *program_json(const struct monitor_program *p)
{
	json_t *object = json_object();
	char name[3 * sizeof(p->name) + 1];
	int rc;

	utf8_copy(name, sizeof(name), p->name, sizeof(p->name));
	rc = sample_put(object, "name", json_string_nocheck(name));
	rc |= sample_put(object, "runs", sample_integer(p->runs));
	rc |= sample_put(object, "run_ns", sample_integer(p->run_ns));
	rc |= sample_put(object, "ns_per_run",
			 p->runs && p->run_ns ? sample_real((double)p->run_ns / (double)p->runs)
					      : json_null());
	return sample_finish(object, rc);
}

static json_t *map_json(const struct monitor_map *m)
{
	json_t *object = json_object();
	int rc = sample_put(object, "name", sample_text(m->name));

	rc |= sample_put(object, "entries",
			 m->entries == MONITOR_ENTRIES_UNKNOWN ? json_null()
							       : sample_integer(m->entries));
	rc |= sample_put(object, "entries_max",
			 m->entries_max ? sample_integer(m->entries_max) : json_null());
	rc |= sample_put(object, "memory_bytes",
			 m->memory_bytes ? sample_integer(m->memory_bytes) : json_null());
	return sample_finish(object, rc);
}

static json_t *six_digits(double value)
{
	return json_real(round(value * 1e6) / 1e6);
}

static json_t *classifier_json(const struct monitor_sample *s)
{
	json_t *object = json_object(), *missing = json_array();
	uint64_t all = s->classifier.task_bytes, inferred = s->classifier.inferred_bytes;
	int rc = 0;

	if (s->classifier.no_kernel_faults)
		rc |= json_array_append_new(missing, json_string("kernel_faults"));
	if (s->classifier.no_direct_faults)
		rc |= json_array_append_new(missing, json_string("direct_faults"));
	rc |= sample_put(object, "task_bytes", sample_integer(all));
	rc |= sample_put(object, "inferred_bytes", sample_integer(inferred));
	rc |= sample_put(object, "confidence",
			 all ? six_digits(monitor_confidence(s)) : json_null());
	rc |= sample_put(object, "missing", missing);
	return sample_finish(object, rc);
}

json_t *sample_cost(const struct monitor_sample *s)
{
	json_t *object = json_object(), *programs = json_array(), *maps = json_array();
	int rc = 0;

	for (size_t i = 0; i < s->nprograms; i++)
		rc |= json_array_append_new(programs, program_json(&s->programs[i]));
	for (size_t i = 0; i < s->nmaps; i++)
		rc |= json_array_append_new(maps, map_json(&s->maps[i]));
	rc |= sample_put(object, "programs", programs);
	rc |= sample_put(object, "measured_ms", sample_real((double)s->measured_ns / 1e6));
	rc |= sample_put(object, "events_per_s", sample_real(s->events.per_s));
	rc |= sample_put(object, "ns_per_event",
			 s->events.ns_each > 0 ? sample_real(s->events.ns_each) : json_null());
	rc |= sample_put(object, "program_core_share", six_digits(s->events.core_share));
	rc |= sample_put(object, "maps", maps);
	rc |= sample_put(object, "taken",
			 json_pack("{s:I, s:I}", "talks", (json_int_t)s->taken.talks, "streams",
				   (json_int_t)s->taken.streams));
	rc |= sample_put(object, "classifier", classifier_json(s));
	rc |= sample_put(object, "sweep_ms", sample_real((double)s->sweep_ns / 1e6));
	rc |= sample_put(object, "user_cpu_ms", sample_real((double)s->user_cpu_ns / 1e6));
	return sample_finish(object, rc);
}
