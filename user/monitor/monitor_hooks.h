/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which kernel hook feeds which column of a reading, and what is unknown on a kernel without it.
 * We decide by type information alone (parameters of a tracepoint, existence of a function),
 * never by the kernel's version, so this needs no root and loads nothing.
 *
 *   hooks_probe       what the type information says: used, missing, of another form
 *   hooks_refuse      what loading adds: the kernel refused an optional program
 *   hooks_needed      whether the monitor can work at all
 *   hooks_degraded    columns that are unknown or less exact, each with its reason
 */
#ifndef IOCOM_MONITOR_HOOKS_H
#define IOCOM_MONITOR_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "iocom/err.h"
#include "user/monitor/monitor.h"

#define HOOKS_MAX	  32
#define HOOK_COLUMNS_MAX  9
#define HOOKS_TYPES	  7
#define HOOK_DEGRADED_MAX 4
#define HOOK_ERROR_MAX	  200

enum hook_kind {
	HOOK_TRACEPOINT, /* typedef btf_trace_NAME; its arguments are counted */
	HOOK_ITERATOR,	 /* function bpf_iter_NAME */
	HOOK_FUNCTION,	 /* function NAME (fentry); its arguments are counted */
};

enum hook_state {
	HOOK_USED,
	HOOK_MISSING,
	HOOK_OTHER_FORM, /* it has another number of arguments */
	HOOK_REFUSED,	 /* the kernel would not load or attach the program */
	HOOK_SPARE,	 /* not needed: the hook that it could replace is used */
};

/* One row of the table.  All strings are static. */
struct hook {
	enum hook_kind kind;
	const char *name;	/* name in the kernel */
	const char *program;	/* name in the eBPF object */
	int min_args, max_args; /* range that the program fits; 0, 0: not checked */
	bool needed;		/* the monitor cannot work without it or a stand-in */
	bool faster;		/* it only saves time: nothing is degraded without it */
	bool profiles;	       /* it only makes class profiles more exact, no column of a reading */
	const char *stands_in; /* the program that it replaces if that one's hook is missing */
	const char *columns[HOOK_COLUMNS_MAX];	/* the columns it feeds; NULL-terminated */
	const char *unknown[HOOK_DEGRADED_MAX]; /* columns not measured without it */
	const char *coarse[HOOK_DEGRADED_MAX];	/* columns measured less exactly without it */
	const char *without;			/* one sentence about what is degraded */
};

struct hook_status {
	const struct hook *hook;
	enum hook_state state;
	int args;		    /* number found in the kernel; -1: no such hook */
	char error[HOOK_ERROR_MAX]; /* HOOK_REFUSED: the words of the kernel or libbpf */
};

struct hooks {
	struct hook_status status[HOOKS_MAX];
	size_t count;
	/* the machine as `uname -m` prints it: some columns depend on the processor */
	char machine[16];
	/*
	 * Whether the kernel may preempt tracepoint programs (it protects them with SRCU's fast
	 * form), and whether a program can forbid that (it may call bpf_preempt_disable).
	 */
	bool srcu_fast, preempt_calls;
	bool understudies_refused;
	unsigned types[HOOKS_TYPES]; /* numbers of kernel types (enum cast_type); 0: none */
	unsigned bio_pinned;	     /* bio flag: its pages are a caller's memory; 0: none */
};

struct btf_raw;

/*
 * Looks all hooks up in type information (the kernel's, or a made-up one). MACHINE is as `uname
 * -m` prints it; NULL: this machine's.
 */
void hooks_probe(struct hooks *hooks, const struct btf_raw *btf, const char *machine);
/*
 * Notes that program NAME was refused with the words ERROR. Returns true if it is optional: load
 * again, perhaps with a stand-in. Returns false if it is needed, unknown or not in use.
 */
bool hooks_refuse(struct hooks *hooks, const char *program, const char *error);
/* Returns true if PROGRAM must be loaded; also for programs that are in no row. */
bool hooks_program_used(const struct hooks *hooks, const char *program);
/* Returns 0, or -EOPNOTSUPP with a sentence that names the first needed hook that is missing. */
int hooks_needed(const struct hooks *hooks, struct iocom_err *err);
/*
 * Fills OUT (at most SIZE) with the degraded columns, once for each reason. Returns how many
 * there are; MONITOR_DEGRADED_MAX is always enough.
 */
size_t hooks_degraded(const struct hooks *hooks, struct monitor_degraded *out, size_t size);
/* Returns true if the programs must forbid preemption themselves. */
bool hooks_preemptible(const struct hooks *hooks);
/*
 * An understudy, named NAME_again, takes the events for which the kernel skipped program NAME. It
 * is used where hooks_preemptible says so. Returns whether PROGRAM is one; fills NAME (of SIZE
 * bytes).
 */
bool hooks_understudy(const char *program, char *name, size_t size);
/* Returns "used", "missing", "another form", "refused" or "not needed". */
const char *hooks_state_name(enum hook_state state);
/* Returns "tracepoint", "iterator" or "function". */
const char *hooks_kind_name(enum hook_kind kind);

#endif
