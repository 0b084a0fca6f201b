/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The settings of a run as text: NAME=VALUE, sorted by name, one value for each name.
 *
 *   nodes=6xfc          the cluster (cluster.h)
 *   nodes.FIELD=VALUE   a field of every machine: nodes.buffer_mb=210
 *   workload=TEXT       "gen:PRESET", "probe:NAME" (probe.h) or the path of a trace
 *   load.KEY=VALUE      a key of the generator or probe, or an option of the trace's reader
 *   fidelity=fluid      or request
 *   rates=computation   or wall, as in live decisions: sets the defaults of parameters
 *   NAME=VALUE          a parameter of params.h or of the rules
 *
 * The tables of experiments, --set and --sweep use the same names.
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

/* These functions fail with -ENOMEM, or with -EINVAL and ERR set (no "=", empty name). */
int settings_set(struct settings *s, const char *name, const char *value);
/* Adds "NAME=VALUE". */
int settings_add(struct settings *s, const char *text, struct iocom_err *err);
/* Adds "NAME=VALUE NAME=VALUE ..."; NULL is empty. */
int settings_parse(struct settings *s, const char *text, struct iocom_err *err);
/* Sets all settings of FROM in TO. */
int settings_merge(struct settings *to, const struct settings *from);
/* Removes all settings whose name begins with PREFIX. */
void settings_remove(struct settings *s, const char *prefix);
/* Returns NULL if NAME is not set. */
const char *settings_get(const struct settings *s, const char *name);
/* Writes one setting per line.  The caller frees the text; NULL: no memory. */
char *settings_text(const struct settings *s);
void settings_free(struct settings *s);

#endif
