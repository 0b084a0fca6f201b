/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What decides a run, as texts: NAME=VALUE, sorted by name, one value a name.
 *
 *   nodes=6xfc          the cluster (cluster.h)
 *   nodes.FIELD=VALUE   a field of every machine: nodes.buffer_mb=210
 *   workload=TEXT       "gen:PRESET", "probe:NAME" (probe.h) or the path of a trace
 *   load.KEY=VALUE      a key of generator or probe, or an option of the trace's reader
 *   fidelity=fluid      or request
 *   rates=computation   or wall, as live decisions count: parameters start from its defaults
 *   NAME=VALUE          a parameter of params.h or of the rules
 *
 * The same names serve the tables of experiments, --set and --sweep.
 */
#ifndef SIM_EXPERIMENTS_SETTINGS_H
#define SIM_EXPERIMENTS_SETTINGS_H

#include <iocom/err.h>
#include <stddef.h>

struct setting {
	char *name, *value;
};

struct settings {
	struct setting *v;
	size_t n;
};

/* All that fail: -ENOMEM, or -EINVAL with ERR set (no "=", empty name). */
int settings_set(struct settings *s, const char *name, const char *value);
/* "NAME=VALUE". */
int settings_add(struct settings *s, const char *text, struct iocom_err *err);
/* "NAME=VALUE NAME=VALUE ..."; NULL is empty. */
int settings_parse(struct settings *s, const char *text, struct iocom_err *err);
/* Those of FROM on top of TO. */
int settings_merge(struct settings *to, const struct settings *from);
/* Removes all whose name begins with PREFIX. */
void settings_remove(struct settings *s, const char *prefix);
/* NULL: not set. */
const char *settings_get(const struct settings *s, const char *name);
/* One a line; the caller frees; NULL: no memory. */
char *settings_text(const struct settings *s);
void settings_free(struct settings *s);

#endif
