/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The settings that are parameters of the rules (balancer/rules/README.md), by the parameters'
 * names: those by which the policies decide live.  A node decides by its own about the jobs
 * submitted there.
 */
#ifndef IOCOM_SETTINGS_RULES_H
#define IOCOM_SETTINGS_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* X(kind, type, parameter, name, value's name, help, default, least, most) */
#define SETTINGS_RULES(X)                                                                          \
	X(COUNT, uint32_t, hop_max, "hop-max", "N",                                                \
	  "nodes that a job is offered to before it runs at home; 0: it stays", "3", 0, 3)         \
	X(NUMBER, double, fixed_cost_ms, "fixed-cost-ms", "MS",                                    \
	  "what moving a job takes at least, in ms", "100", 0, 1e9)                                \
	X(NUMBER, double, cpu_threshold, "cpu-threshold", "TASKS",                                 \
	  "a node with more tasks than this a core is overloaded", "4", 0, 1e6)                    \
	X(NUMBER, double, overload_ratio, "overload-ratio", "X",                                   \
	  "wal: home is overloaded above this multiple of the mean load", "1.25", 0, 1e6)          \
	X(NUMBER, double, w_io, "w-io", "X", "wal: weight of disk load against that of tasks",     \
	  "0.5", 0, 1)                                                                             \
	X(NUMBER, double, io_significance, "io-significance", "X",                                 \
	  "a disk that is busy for no more of the time counts as unloaded", "0.05", 0, 1)          \
	X(NUMBER, double, delay_margin, "delay-margin", "X",                                       \
	  "least-delay: part of the delay that leaving must save", "0.1", 0, 1)                    \
	X(COUNT, uint32_t, eager_probes, "eager-probes", "N",                                      \
	  "threshold, shortest: nodes that are asked", "3", 0, 1000)                               \
	X(NUMBER, double, eager_threshold, "eager-threshold", "TASKS",                             \
	  "random, threshold, shortest: tasks from which a node is busy", "4", 0, 1e6)             \
	X(NUMBER, double, zatti_queue, "zatti-queue", "TASKS",                                     \
	  "zatti: run queue a core up to which home will do", "4", 0, 1e6)                         \
	X(NUMBER, double, zatti_queue_delta, "zatti-queue-delta", "TASKS",                         \
	  "zatti: by how much another node's run queue must be shorter", "3", 0, 1e6)              \
	X(BOOL, bool, zatti_idle, "zatti-idle", "yes|no",                                          \
	  "zatti: look at the processor's idle time, not the run queue", "no", 0, 0)               \
	X(NUMBER, double, zatti_idle_percent, "zatti-idle-percent", "PERCENT",                     \
	  "zatti: a processor that is idle for less is busy", "10", 0, 100)                        \
	X(NUMBER, double, zatti_blocks_per_s, "zatti-blocks-per-s", "N",                           \
	  "zatti: disk requests/s up to which home will do", "100", 0, 1e9)                        \
	X(NUMBER, double, zatti_blocks_delta, "zatti-blocks-delta", "N",                           \
	  "zatti: by how many requests/s another node must do fewer", "0", 0, 1e9)                 \
	X(BOOL, bool, zatti_relative, "zatti-relative", "yes|no",                                  \
	  "zatti: the deltas are from home's load, not from its threshold", "yes", 0, 0)           \
	X(BOOL, bool, zatti_superset, "zatti-superset", "yes|no",                                  \
	  "zatti-binary: take nodes that offer more than the job needs", "yes", 0, 0)              \
	X(COUNT, uint32_t, zatti_intervals, "zatti-intervals", "N",                                \
	  "zatti-real: intervals of processor and disk load", "10", 1, 1000)                       \
	X(NUMBER, double, zatti_cpu_need, "zatti-cpu-need", "PERCENT",                             \
	  "zatti: a job that computes for more of its time needs the processor", "30", 0, 100)     \
	X(NUMBER, double, zatti_io_need, "zatti-io-need", "N",                                     \
	  "zatti: a job with more disk requests/s needs the disk", "2", 0, 1e9)

#define SETTINGS_RULES_MEMBER(kind, type, member, name, value, help, usual, least, most)           \
	type member;

struct settings_rules {
	SETTINGS_RULES(SETTINGS_RULES_MEMBER)
};

struct rules_params;
/* Puts the settings into PARAMS.  Settings that were never read (all 0) change nothing. */
void settings_rules_apply(const struct settings_rules *s, struct rules_params *params);

#endif
