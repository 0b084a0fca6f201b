/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which hook of the kernel feeds which column of a reading, and what a kernel
 * without it cannot tell.  Decided from type information alone (parameters of
 * a tracepoint, existence of a function), never from the kernel's version: so it
 * needs no root and loads nothing.
 *
 *   hooks_probe       what the type information says: used, missing, of another form
 *   hooks_refuse      what loading adds: the kernel would not take an optional program
 *   hooks_needed      whether the monitor can work at all
 *   hooks_degraded    columns that are unknown or coarser, each with its reason
 */
#ifndef IOCOM_MONITOR_HOOKS_H
#define IOCOM_MONITOR_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "iocom/err.h"
#include "user/monitor/monitor.h"

#define HOOKS_MAX	  32
#define HOOK_COLUMNS_MAX  9
#define HOOK_DEGRADED_MAX 4
#define HOOK_ERROR_MAX	  200

enum hook_kind {
	HOOK_TRACEPOINT, /* typedef btf_trace_NAME; arguments are counted */
	HOOK_ITERATOR,	 /* function bpf_iter_NAME */
	HOOK_FUNCTION,	 /* function NAME (fentry); arguments are counted */
};

enum hook_state {
	HOOK_USED,
	HOOK_MISSING,
	HOOK_OTHER_FORM, /* it has another number of arguments */
	HOOK_REFUSED,	 /* the kernel would not load or attach the program */
	HOOK_SPARE,	 /* there or not: the hook it stands in for is used */
};

/* One row of the table.  All strings are static. */
struct hook {
	enum hook_kind kind;
	const char *name;	/* in the kernel */
	const char *program;	/* in the eBPF object */
	int min_args, max_args; /* that the program fits; 0, 0: not looked at */
	bool needed;		/* no monitor without it (or a stand-in) */
	bool faster;		/* it saves time only: nothing is degraded without it */
	const char *stands_in; /* the program whose place it takes when that one's hook is absent */
	const char *columns[HOOK_COLUMNS_MAX];	/* that it feeds; NULL-terminated */
	const char *unknown[HOOK_DEGRADED_MAX]; /* without it: not measured at all */
	const char *coarse[HOOK_DEGRADED_MAX];	/* without it: measured, less exactly */
	const char *without;			/* one sentence: what is degraded */
};

struct hook_status {
	const struct hook *hook;
	enum hook_state state;
	int args;		    /* found in the kernel; -1: no such hook */
	char error[HOOK_ERROR_MAX]; /* HOOK_REFUSED: the kernel's or libbpf's words */
};

struct hooks {
	struct hook_status status[HOOKS_MAX];
	size_t count;
	char machine[16]; /* as uname -m: some columns depend on the processor */
	/*
	 * Tracepoints may be preempted (they are read-locked by SRCU's fast form), and a
	 * program can forbid it (it may call bpf_preempt_disable).
	 */
	bool srcu_fast, preempt_calls;
	unsigned tcp_sock;   /* number of that type; 0: none */
	unsigned bio_pinned; /* in a bio's flags: its pages are a caller's memory; 0: not told */
};

struct btf_raw;

/*
 * Looks all hooks up in type information (the kernel's, or a made-up one).  MACHINE
 * as uname -m says; NULL: this machine's.
 */
void hooks_probe(struct hooks *hooks, const struct btf_raw *btf, const char *machine);
/*
 * Program NAME was refused with the words ERROR.  True: it is optional, a stand-in
 * may now be in use, load again.  False: needed, unknown or not in use.
 */
bool hooks_refuse(struct hooks *hooks, const char *program, const char *error);
/* Whether PROGRAM is to be loaded; true for programs that are in no row. */
bool hooks_program_used(const struct hooks *hooks, const char *program);
/* 0, or -EOPNOTSUPP with the sentence that names the first needed hook that is not there. */
int hooks_needed(const struct hooks *hooks, struct iocom_err *err);
/*
 * Fills OUT (at most SIZE) with what is degraded; returns how many there are.
 * A column is there once for each reason.  MONITOR_DEGRADED_MAX always suffice.
 */
size_t hooks_degraded(const struct hooks *hooks, struct monitor_degraded *out, size_t size);
/* The programs must keep their CPU themselves. */
bool hooks_preemptible(const struct hooks *hooks);
/* "used", "missing", "another form", "refused", "not needed". */
const char *hooks_state_name(enum hook_state state);
/* "tracepoint", "iterator", "function". */
const char *hooks_kind_name(enum hook_kind kind);

#endif
